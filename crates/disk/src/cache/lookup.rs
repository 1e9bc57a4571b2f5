//! Finds the segment that serves a command.

use super::Cache;
use super::segment::{Segment, SegmentId, State};
use crate::profile::WriteBack;
use headtime_units::Extent;

/// Result of a lookup for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadLookup {
    /// The segment has all data of the read.
    Whole(SegmentId),
    /// The segment has the beginning of the data.
    Partial(SegmentId),
    /// No segment has usable data. Gives a segment to read into, if one is available.
    Miss(Option<SegmentId>),
    /// Part of the data is dirty in this segment and cannot be taken from the buffer. The dirty
    /// data must reach the medium first.
    Blocked(SegmentId),
    /// Dirty runs have all data of the read.
    Dirty,
    /// The run that begins at this sector has part of the data. The run must reach the medium
    /// first.
    BlockedByRun(u64),
}

/// Result of a lookup for a write: the place for its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteLookup {
    /// A place behind dirty data of this segment. Before the arm has set out, a place in front of
    /// or over the dirty data too.
    Join(SegmentId),
    /// A segment of its own.
    Fresh(SegmentId),
    /// Sectors of the write are dirty in this segment, and the write cannot join them. They must
    /// reach the medium first.
    Blocked(SegmentId),
    /// No segment may take it now.
    Full,
}

impl Cache {
    /// Finds the data that the buffer has for a read.
    ///
    /// A whole hit is preferred to a partial hit. Among equal hits the order is: dirty data, data
    /// being read, clean data. Without a hit the order is: an empty segment, a clean segment, a
    /// segment that is only being filled ahead.
    pub fn find_read(&self, extent: Extent) -> ReadLookup {
        let found = match self.dirty > 0 || self.spec.dedicated_write_segment {
            true => None,
            false => self.find_clean_read(extent),
        };
        let Some(found) = found else {
            return self.find_read_in_all(extent);
        };
        debug_assert_eq!(found, self.find_read_in_all(extent));
        found
    }

    /// Returns true if any segment concerns a read: it may have the first sector or reach it next.
    /// Ignores dirty segments and a segment for writes.
    fn is_near(&self, extent: Extent) -> bool {
        self.near.any(&self.segments, extent.start.get())
    }

    /// Returns true if the sector behind the end of a segment is in another segment.
    pub fn has_elsewhere(&self, id: SegmentId) -> bool {
        let next = Extent::at(self.get(id).end, 1);
        let visit = |index: usize, segment: &Segment| {
            let has =
                index != id.index() && segment.state != State::Empty && segment.has_first(next);
            (!has).then_some(())
        };
        let found = self.near.try_each(&self.segments, next.start.get(), visit);
        found.is_none()
    }

    /// Returns true if a read may find all its data in segments.
    pub fn may_serve(&self, extent: Extent) -> bool {
        self.dirty > 0 || self.spec.dedicated_write_segment || self.is_near(extent)
    }

    /// The segment to read into when none has the first sector and none is dirty.
    fn find_unused(&self) -> Option<SegmentId> {
        let oldest_first = || {
            let ids = self.order.iter();
            ids.map(|id| (id, &self.segments[id.index()]))
        };
        if self.empty > 0 {
            let mut empty = oldest_first().filter(|(_, s)| s.state == State::Empty);
            return empty.next().map(|(id, _)| id);
        }
        let mut filled_ahead = None;
        for (id, segment) in oldest_first().filter(|(_, s)| s.users == 0) {
            match segment.state {
                State::Clean => return Some(id),
                State::Reading => filled_ahead = filled_ahead.or(Some(id)),
                _ => {}
            }
        }
        filled_ahead
    }

    /// Like [`Cache::find_read`] if no segment is dirty, from the segments alone that
    /// concern the read. `None` if these do not suffice.
    fn find_clean_read(&self, extent: Extent) -> Option<ReadLookup> {
        let (start, end) = (extent.start.get(), extent.end().get());
        let mut best = (0_u8, u64::MAX);
        let mut best_index = 0;
        self.near.try_each(&self.segments, start, |index, s| {
            if s.state == State::Empty || !s.has_first(extent) {
                let next = s.state == State::Reading && s.end == start;
                return (!next || !self.spec.almost_read_hits).then_some(());
            }
            let whole = match s.state {
                State::Reading if self.spec.enabled => 9,
                State::Clean
                    if self.spec.read_hits_on_write_data || s.last_was_write == Some(false) =>
                {
                    8
                }
                _ => return None,
            };
            let value = if s.end >= end { whole } else { whole - 4 };
            if value > best.0 || (value == best.0 && s.used < best.1) {
                best = (value, s.used);
                best_index = index;
            }
            Some(())
        })?;
        let id = SegmentId(best_index as u32);
        Some(match best.0 {
            0 => ReadLookup::Miss(self.find_unused()),
            8.. => ReadLookup::Whole(id),
            _ => ReadLookup::Partial(id),
        })
    }

    pub(super) fn find_read_in_all(&self, extent: Extent) -> ReadLookup {
        let end = extent.end().get();
        let mut best = 0_u8;
        let mut best_used = u64::MAX;
        let mut best_index = usize::MAX;
        let mut blocked = None;
        for (index, s) in self.segments.iter().enumerate() {
            let value = if self.is_dedicated(index) {
                if s.is_dirty() && s.overlaps(extent) {
                    blocked = Some(index);
                }
                continue;
            } else if s.state == State::Empty {
                3
            } else if !s.has_first(extent) {
                match s.state {
                    State::Clean if s.users == 0 => 2,
                    State::Reading if s.end == extent.start.get() && self.spec.almost_read_hits => {
                        5
                    }
                    State::Reading if s.users == 0 => 1,
                    State::Dirty | State::Writing if s.overlaps(extent) => {
                        blocked = Some(index);
                        continue;
                    }
                    _ => continue,
                }
            } else {
                let whole = match s.state {
                    State::Dirty | State::Writing => {
                        let serves = self.spec.enabled && self.spec.read_hits_on_write_data;
                        // No other segment has these dirty data. The sectors behind are not read
                        // from the medium into a segment that is still to be written.
                        if !serves || s.end < end {
                            blocked = Some(index);
                            continue;
                        }
                        11
                    }
                    State::Reading if self.spec.enabled => 9,
                    State::Clean
                        if self.spec.read_hits_on_write_data || s.last_was_write == Some(false) =>
                    {
                        8
                    }
                    _ => continue,
                };
                if s.end >= end { whole } else { whole - 4 }
            };
            if value > best || (value == best && s.used < best_used) {
                best = value;
                best_used = s.used;
                best_index = index;
            }
        }
        let id = SegmentId(best_index as u32);
        // If writes change copies, a whole copy in another segment serves the read as well.
        if let Some(blocked) = blocked
            && (best < 8 || !self.changes_copies())
        {
            return ReadLookup::Blocked(SegmentId(blocked as u32));
        }
        match best {
            0 => ReadLookup::Miss(None),
            1..=3 => ReadLookup::Miss(Some(id)),
            8.. => ReadLookup::Whole(id),
            _ => ReadLookup::Partial(id),
        }
    }

    /// Finds where the data of a write go.
    ///
    /// Order of preference: appending to data that the arm is writing; any other joining; a clean
    /// segment that the write makes stale anyway; an empty segment; a clean segment; a segment that
    /// is only being filled ahead or whose copies the write changes.
    pub fn find_write(&self, extent: Extent) -> WriteLookup {
        let (start, end) = (extent.start.get(), extent.end().get());
        let size = u64::from(self.spec.segment_sectors);
        let may_take = self.dirty < self.spec.write_segments;
        let mut best = 0_u8;
        let mut best_used = u64::MAX;
        let mut best_index = usize::MAX;
        for (index, s) in self.segments.iter().enumerate() {
            if self.spec.dedicated_write_segment && index != 0 {
                continue;
            }
            let value = match s.state {
                State::Empty if may_take => 3,
                State::Reading if may_take && s.users == 0 => 1,
                State::Clean if may_take && s.users == 0 => match s.overlaps(extent) {
                    false => 2,
                    // The segment stays useful, since the write changes its copies.
                    true if self.changes_copies() => 1,
                    true => 4,
                },
                State::Dirty | State::Writing => {
                    let writing = s.state == State::Writing;
                    let combine = self.spec.combine_sequential_writes;
                    if combine && start == s.end && start == s.dirty_end {
                        // More may come than fits: the rest waits for the medium.
                        if s.dirty_end - s.dirty_start >= size {
                            continue;
                        }
                        if writing { 7 } else { 6 }
                    } else if combine && !writing && end == s.start && s.start == s.dirty_start {
                        if s.end - start > size {
                            continue;
                        }
                        5
                    } else if s.overlaps(extent) {
                        let inside = s.dirty_start <= start && end <= s.dirty_end;
                        if inside && !writing && self.spec.write_back == WriteBack::Full {
                            return WriteLookup::Join(SegmentId(index as u32));
                        }
                        if !s.dirty().overlaps(extent) && !writing {
                            continue;
                        }
                        return WriteLookup::Blocked(SegmentId(index as u32));
                    } else {
                        continue;
                    }
                }
                _ => continue,
            };
            if value > best || (value == best && s.used < best_used) {
                best = value;
                best_used = s.used;
                best_index = index;
            }
        }
        let id = SegmentId(best_index as u32);
        match best {
            0 => WriteLookup::Full,
            1..=4 => WriteLookup::Fresh(id),
            _ => WriteLookup::Join(id),
        }
    }

    /// Returns true if a segment may have all of a read; [`Cache::find_read`] says whether it has.
    pub fn may_hold(&self, extent: Extent) -> bool {
        let (start, end) = (extent.start.get(), extent.end().get());
        let holds = |s: &Segment| start >= s.start && end <= s.end;
        self.is_near(extent) && self.segments.iter().any(holds)
    }
}
