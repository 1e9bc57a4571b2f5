//! The buffer of the drive: its segments and the sectors that they hold.
//!
//! A segment holds one run of consecutive sectors. A read fills it from the medium, and goes on
//! after the command is done (read-ahead). A write fills it from the bus. The choice of a segment
//! and the definition of a hit follow the DiskSim 4.0 manual (section on the disk module) and the
//! behaviour of its disk cache. The order of preference is exact. The least recently used of equal
//! segments is taken.
//!
//! The cache knows no time. The drive reports the progress of reading ahead and then asks the
//! cache.

mod filled;
mod lookup;
mod lru;
mod near;
mod segment;

use crate::dirty::Dirty;
use crate::profile::{CacheSpec, ReadAhead, RequestedData};
use filled::Filled;
use headtime_units::{Extent, Lba};
use lru::Lru;
use near::Nears;

pub(crate) use lookup::{ReadLookup, WriteLookup};
pub(crate) use segment::{Segment, SegmentId, State};

/// All segments of a drive.
///
/// Invariants: `empty` is the number of empty segments; `dirty` is the number of segments that are dirty or being
/// written, and at most the profile's `write_segments`; `clock` is the largest `used` of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    segments: Vec<Segment>,
    /// Index of the segments that concern a read, by the read's first sector.
    near: Nears,
    order: Lru,
    /// Number of empty segments.
    empty: u32,
    filled: Filled,
    spec: CacheSpec,
    ahead_min: u64,
    ahead_max: u64,
    capacity: u64,
    /// Stamp of the segment used last.
    clock: u64,
    dirty: u32,
    runs: Dirty,
    /// The segments that are given up for runs.
    lent: Vec<SegmentId>,
}

/// The least and the most sectors that are read ahead. Limits that contradict each other are settled as
/// DiskSim settles them.
fn ahead_limits(spec: &CacheSpec) -> (u64, u64) {
    if spec.read_ahead == ReadAhead::Off {
        return (0, 0);
    }
    let least = u64::from(spec.read_ahead_min);
    (least, least.max(spec.read_ahead_max.into()))
}

impl Cache {
    /// An empty buffer for a disk of `capacity` sectors. A sector of the medium has `per` such
    /// sectors.
    pub fn new(spec: &CacheSpec, capacity: u64, per: u64) -> Cache {
        let segment = Segment {
            start: 0,
            end: 0,
            dirty_start: 0,
            dirty_end: 0,
            ahead_min: 0,
            ahead_max: 0,
            state: State::Empty,
            users: 0,
            last_was_write: None,
            used: 0,
        };
        let mut segments = vec![segment; spec.segments as usize];
        for (stamp, segment) in segments.iter_mut().enumerate() {
            segment.used = stamp as u64;
        }
        let (ahead_min, ahead_max) = ahead_limits(spec);
        Cache {
            clock: segments.len() as u64 - 1,
            near: Nears::of(&segments),
            order: Lru::new(spec.segments),
            empty: spec.segments,
            filled: Filled::new(spec),
            segments,
            spec: *spec,
            ahead_min,
            ahead_max,
            capacity,
            dirty: 0,
            runs: Dirty::new(spec, per),
            lent: Vec::with_capacity(match spec.keeps_runs() {
                true => spec.write_segments as usize,
                false => 0,
            }),
        }
    }

    /// The parameters.
    pub fn spec(&self) -> &CacheSpec {
        &self.spec
    }

    /// Goes on with parameters that differ in reading ahead and in when a write completes. Data in the buffer stay.
    /// Nothing more is read ahead behind earlier commands.
    ///
    /// Nothing may be in use or read ahead, and nothing dirty if writes are to complete otherwise.
    pub fn change(&mut self, spec: &CacheSpec) {
        debug_assert!(spec.write_back == self.spec.write_back || self.is_clean());
        (self.ahead_min, self.ahead_max) = ahead_limits(spec);
        for segment in &mut self.segments {
            debug_assert!(segment.users == 0 && segment.state != State::Reading);
            (segment.ahead_min, segment.ahead_max) = (0, 0);
        }
        self.spec = *spec;
    }

    /// A segment.
    pub fn get(&self, id: SegmentId) -> &Segment {
        &self.segments[id.index()]
    }

    fn get_mut(&mut self, id: SegmentId) -> &mut Segment {
        &mut self.segments[id.index()]
    }

    /// A command needs the segment.
    pub fn add_user(&mut self, id: SegmentId) {
        self.get_mut(id).users += 1;
    }

    /// A command that needed the segment has completed.
    pub fn drop_user(&mut self, id: SegmentId) {
        self.get_mut(id).users -= 1;
    }

    fn set_state(&mut self, id: SegmentId, state: State) {
        let segment = &mut self.segments[id.index()];
        self.empty += u32::from(state == State::Empty);
        self.empty -= u32::from(segment.state == State::Empty);
        segment.state = state;
        self.filled.count(id.index(), segment);
    }

    /// Updates the indexes after a change of a segment's sectors.
    #[inline]
    fn changed(&mut self, id: SegmentId) {
        let segment = &self.segments[id.index()];
        self.near.set(id.index(), segment);
        self.filled.count(id.index(), segment);
    }

    /// Empties the least recently used segments while the segments hold more than there is room for. Spares `growing`,
    /// the segment that has just grown.
    #[inline]
    fn make_room(&mut self, growing: SegmentId) {
        if self.filled.is_over() {
            self.give_up_unused(growing);
        }
    }

    #[cold]
    fn give_up_unused(&mut self, growing: SegmentId) {
        while self.filled.is_over() {
            let unused = self.segments.iter().enumerate().filter(|(index, segment)| {
                segment.state == State::Clean && segment.users == 0 && *index != growing.index()
            });
            let Some((index, _)) = unused.min_by_key(|(_, segment)| segment.used) else {
                return;
            };
            let id = SegmentId(index as u32);
            let segment = self.get_mut(id);
            segment.start = segment.end;
            self.set_state(id, State::Empty);
            self.changed(id);
        }
    }

    /// Number of segments with data that is not on the medium.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Returns true if everything is on the medium.
    pub fn is_clean(&self) -> bool {
        self.dirty == 0 && self.runs.is_empty()
    }

    /// The dirty runs, which are stored outside of segments.
    pub fn runs(&self) -> &Dirty {
        &self.runs
    }

    /// Like [`Cache::runs`], to change them.
    pub fn runs_mut(&mut self) -> &mut Dirty {
        &mut self.runs
    }

    /// Returns true if written data can serve a part of a read whose rest is on the medium alone,
    /// and if writes change copies of their sectors.
    pub fn overlays(&self) -> bool {
        self.spec.enabled && self.changes_copies()
    }

    /// Returns true if dirty runs have all of a read and serve it.
    pub fn runs_serve(&self, extent: Extent) -> bool {
        let serves = self.spec.enabled && self.spec.read_hits_on_write_data;
        serves && !self.runs.is_empty() && self.runs.covers(extent)
    }

    /// Returns true if all sectors of `extent` are in the buffer, in a segment or in dirty runs.
    pub fn has_all(&self, extent: Extent) -> bool {
        let (start, end) = (extent.start.get(), extent.end().get());
        let held = |s: &Segment| s.state != State::Empty && s.start <= start && end <= s.end;
        extent.is_empty()
            || self.spec.enabled && self.segments.iter().any(held)
            || self.runs.covers(extent)
    }

    /// Number of further segments that the buffer must give up for a write into the runs.
    pub fn lacks(&self, extent: Extent) -> u64 {
        let size = u64::from(self.spec.segment_sectors);
        let needed = (self.runs.sectors() + extent.len.get()).div_ceil(size);
        needed.saturating_sub(self.lent.len() as u64)
    }

    /// The segment to give up next for dirty runs, if there is one. Order of preference: an empty
    /// segment; a segment that no read has used since it was last given up; a clean segment; a
    /// segment that is only being filled ahead.
    pub fn find_lender(&self) -> Option<SegmentId> {
        let mut best = (0_u8, u64::MAX, 0);
        for (index, s) in self.segments.iter().enumerate() {
            if self.spec.dedicated_write_segment && index != 0 {
                break;
            }
            let value = match s.state {
                // A read may still need data that have been overwritten since.
                _ if s.users > 0 => continue,
                State::Empty => 4,
                State::Clean if s.last_was_write == Some(true) => 3,
                State::Clean => 2,
                State::Reading => 1,
                _ => continue,
            };
            if value > best.0 || (value == best.0 && s.used < best.1) {
                best = (value, s.used, index);
            }
        }
        (best.0 > 0).then_some(SegmentId(best.2 as u32))
    }

    /// Gives up a segment for dirty runs.
    pub fn lend(&mut self, id: SegmentId) {
        let segment = &mut self.segments[id.index()];
        debug_assert!(segment.users == 0 && !segment.is_dirty());
        segment.start = 0;
        segment.end = 0;
        segment.ahead_min = 0;
        segment.ahead_max = 0;
        self.set_state(id, State::Lent);
        self.changed(id);
        self.lent.push(id);
        self.touch(id, true);
        self.make_room(id);
    }

    /// The arm has written a run. Segments that the remaining runs do not need become segments
    /// again. The first such segment holds the written run.
    pub fn end_run(&mut self) {
        let written = self.runs.end();
        let size = u64::from(self.spec.segment_sectors);
        let keep = self.spec.enabled && self.spec.read_hits_on_write_data;
        let mut kept = written.len.get() <= size && keep;
        while self.lent.len() as u64 > self.runs.sectors().div_ceil(size) {
            let Some(id) = self.lent.pop() else { return };
            self.set_state(id, State::Empty);
            if std::mem::take(&mut kept) {
                self.set_state(id, State::Clean);
                let segment = self.get_mut(id);
                segment.start = written.start.get();
                segment.end = written.end().get();
                self.changed(id);
            }
        }
    }

    /// The sectors that are not on the medium yet. No sector is dirty in two segments.
    pub fn dirty_extents(&self) -> impl Iterator<Item = (SegmentId, Extent)> + '_ {
        (0..)
            .zip(&self.segments)
            .filter(|(_, s)| s.is_dirty())
            .map(|(index, s)| (SegmentId(index), s.dirty()))
    }

    /// The dirty segments that the arm has not started to write.
    pub fn to_destage(&self) -> impl Iterator<Item = (SegmentId, Extent)> + '_ {
        self.segments
            .iter()
            .enumerate()
            .filter(|(_, s)| s.state == State::Dirty)
            .map(|(i, s)| (SegmentId(i as u32), s.dirty()))
    }

    /// The least recently used dirty segment.
    pub fn oldest_dirty(&self) -> Option<SegmentId> {
        let mut oldest: Option<(u64, usize)> = None;
        for (index, segment) in self.segments.iter().enumerate() {
            if segment.state == State::Dirty && oldest.is_none_or(|(used, _)| segment.used < used) {
                oldest = Some((segment.used, index));
            }
        }
        oldest.map(|(_, index)| SegmentId(index as u32))
    }

    /// A dirty segment, not being written, that shares a sector with `extent`.
    pub fn dirty_overlap(&self, extent: Extent) -> Option<SegmentId> {
        if self.dirty == 0 {
            return None;
        }
        self.segments
            .iter()
            .position(|s| s.is_dirty() && s.dirty().overlaps(extent))
            .map(|index| SegmentId(index as u32))
    }

    fn is_dirty_nowhere_but(&self, id: SegmentId, extent: Extent) -> bool {
        let mut others = (0..).zip(&self.segments).filter(|(n, _)| *n != id.0);
        !others.any(|(_, s)| s.is_dirty() && s.dirty().overlaps(extent))
    }

    fn is_dedicated(&self, index: usize) -> bool {
        self.spec.dedicated_write_segment && index == 0
    }

    /// Returns true if a write into `id` directly follows another write that it does not continue. Some drives then
    /// give up the bus before the data have come.
    pub fn follows_other_write(&self, id: SegmentId, extent: Extent) -> bool {
        let s = self.get(id);
        s.used == self.clock && s.last_was_write == Some(true) && extent.start.get() != s.end
    }

    /// Marks a segment as the one used last, by a read or a write.
    pub fn touch(&mut self, id: SegmentId, write: bool) {
        let segment = &mut self.segments[id.index()];
        segment.last_was_write = Some(write);
        if segment.used != self.clock {
            self.clock += 1;
            segment.used = self.clock;
            self.order.make_newest(id);
        }
    }

    /// Empties a segment and begins reading into it at `start`.
    pub fn begin_read(&mut self, id: SegmentId, start: u64) {
        let segment = &mut self.segments[id.index()];
        debug_assert!(!segment.is_dirty(), "dirty data would be lost");
        segment.start = start;
        segment.end = start;
        segment.ahead_min = 0;
        segment.ahead_max = 0;
        self.set_state(id, State::Reading);
        self.changed(id);
    }

    /// Goes on reading into a segment.
    pub fn resume_read(&mut self, id: SegmentId) {
        self.set_state(id, State::Reading);
    }

    /// Drops all sectors of a segment.
    pub fn drop_all(&mut self, id: SegmentId) {
        let segment = self.get_mut(id);
        segment.start = segment.end;
        self.changed(id);
        self.end_read(id);
    }

    /// Notes that a read of `extent` uses the segment, and sets the limits of reading on behind the
    /// read.
    ///
    /// `track` takes the sector behind the request. It returns the first sector of that sector's
    /// track, the sector behind that track's last, and the number of sectors on the request's
    /// track. It is called only if the limit depends on it.
    pub fn extend_ahead(
        &mut self,
        id: SegmentId,
        extent: Extent,
        track: impl FnOnce(Lba) -> (u64, u64, u64),
    ) {
        let end = extent.end().get();
        let size = u64::from(self.spec.segment_sectors);
        let len = extent.len.get();
        let segment = &mut self.segments[id.index()];
        let max = match self.spec.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::NextTrack if end >= self.capacity => end,
            ReadAhead::NextTrack => {
                let (first, behind, sectors) = track(extent.end());
                if segment.start < first {
                    behind + sectors
                } else {
                    behind
                }
            }
            _ if self.ahead_max > 0 && self.spec.requested_data == RequestedData::Kept => {
                // The request itself has to stay.
                let full = (extent.start.get() + size).max(end + self.ahead_min);
                full.min(end + self.ahead_max)
            }
            _ if self.ahead_max > 0 => end + self.ahead_max,
            _ if self.spec.requested_data == RequestedData::Kept => {
                if len >= size || size - len < self.ahead_min {
                    end + self.ahead_min
                } else {
                    extent.start.get() + size
                }
            }
            _ => end + size,
        };
        let capacity = self.capacity;
        segment.ahead_min = segment.ahead_min.max((end + self.ahead_min).min(capacity));
        segment.ahead_max = segment.ahead_max.max(max.min(capacity));
    }

    /// Forbids an interruption before `until` of reading on behind `extent`, for which the segment is used. The limit
    /// holds as far as the segment has room.
    pub fn bind_ahead(&mut self, id: SegmentId, extent: Extent, until: Lba) {
        let size = u64::from(self.spec.segment_sectors);
        let room = match self.spec.requested_data {
            // The request itself has to stay.
            RequestedData::Kept => extent.start.get() + size,
            RequestedData::Dropped | RequestedData::Replaceable => extent.end().get() + size,
        };
        let until = until.get().min(room);
        let segment = &mut self.segments[id.index()];
        segment.ahead_min = segment.ahead_min.max(until);
        segment.ahead_max = segment.ahead_max.max(until);
    }

    /// Notes that reading into a segment has reached `end`, and that sectors up to `taken` have their places there.
    /// Drops sectors at the front that no longer fit.
    pub fn read_to(&mut self, id: SegmentId, end: u64, taken: u64) {
        let size = u64::from(self.spec.segment_sectors);
        let segment = &mut self.segments[id.index()];
        segment.end = segment.end.max(end);
        let front = segment.end.max(taken).saturating_sub(size);
        segment.start = segment.start.max(front.min(segment.end));
        self.changed(id);
        self.make_room(id);
    }

    /// Ends reading into a segment, complete or not.
    pub fn end_read(&mut self, id: SegmentId) {
        let segment = self.get(id);
        if segment.state == State::Reading {
            let kept = self.spec.enabled && segment.start < segment.end;
            self.set_state(id, if kept { State::Clean } else { State::Empty });
        }
    }

    /// Puts the data of a write into a segment of its own.
    pub fn begin_write(&mut self, id: SegmentId, extent: Extent) {
        debug_assert!(
            self.is_dirty_nowhere_but(id, extent),
            "{extent} dirty twice"
        );
        let segment = &mut self.segments[id.index()];
        debug_assert!(!segment.is_dirty(), "dirty data would be lost");
        segment.start = extent.start.get();
        segment.end = extent.end().get();
        segment.dirty_start = segment.start;
        segment.dirty_end = segment.end;
        segment.ahead_min = 0;
        segment.ahead_max = 0;
        self.set_state(id, State::Dirty);
        self.changed(id);
        self.dirty += 1;
        debug_assert!(self.dirty <= self.spec.write_segments);
        self.make_room(id);
    }

    /// Puts the data of a write beside or over dirty data.
    pub fn join_write(&mut self, id: SegmentId, extent: Extent) {
        let size = u64::from(self.spec.segment_sectors);
        debug_assert!(
            self.is_dirty_nowhere_but(id, extent),
            "{extent} dirty twice"
        );
        let segment = &mut self.segments[id.index()];
        debug_assert!(segment.is_dirty());
        segment.dirty_start = segment.dirty_start.min(extent.start.get());
        segment.dirty_end = segment.dirty_end.max(extent.end().get());
        segment.start = segment.start.min(segment.dirty_start);
        segment.end = segment.end.max(segment.dirty_end);
        // Clean sectors at the front make room; dirty ones never do.
        let front = segment.end.saturating_sub(size).min(segment.dirty_start);
        segment.start = segment.start.max(front);
        self.changed(id);
        self.make_room(id);
    }

    /// The arm sets out to write the dirty sectors of a segment.
    pub fn begin_destage(&mut self, id: SegmentId) {
        debug_assert!(self.get(id).is_dirty());
        self.set_state(id, State::Writing);
    }

    /// The arm has written the dirty sectors up to `written`.
    pub fn end_destage(&mut self, id: SegmentId, written: u64) {
        let keep = self.spec.enabled && self.spec.read_hits_on_write_data;
        let segment = &mut self.segments[id.index()];
        debug_assert_eq!(segment.state, State::Writing);
        segment.dirty_start = written;
        if segment.dirty_start >= segment.dirty_end {
            self.set_state(id, if keep { State::Clean } else { State::Empty });
            self.dirty -= 1;
        } else {
            self.set_state(id, State::Dirty);
        }
    }

    /// Returns true if a write changes the copies that other segments have of its sectors.
    /// Otherwise the copies are stale. Written data that can serve reads are equally good in any
    /// segment, unless the drive keeps them apart.
    ///
    /// In DiskSim the copies are always stale, and with them the whole segment. Real drives that
    /// serve reads from written data still hit in a track after a write to it (see the design
    /// note).
    fn changes_copies(&self) -> bool {
        self.spec.read_hits_on_write_data && !self.spec.dedicated_write_segment
    }

    /// Drops clean copies that a write of `extent` into `writer` makes stale. Returns true if such a write makes copies
    /// stale.
    pub fn overwrite(&mut self, extent: Extent, writer: Option<SegmentId>) -> bool {
        let stale = !self.changes_copies();
        if stale {
            self.invalidate(extent, writer);
        }
        stale
    }

    /// Drops clean copies of sectors in segments other than `writer`.
    ///
    /// Drops a clean segment as a whole. A segment that is being filled loses all its sectors. A
    /// segment with dirty data behind clean data keeps the dirty data.
    pub fn invalidate(&mut self, extent: Extent, writer: Option<SegmentId>) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if writer.is_some_and(|id| id.index() == index) || !segment.overlaps(extent) {
                continue;
            }
            match segment.state {
                State::Clean => {
                    segment.state = State::Empty;
                    self.empty += 1;
                }
                State::Reading => segment.start = segment.end,
                State::Dirty | State::Writing => {
                    let front = extent.end().get().min(segment.dirty_start);
                    segment.start = segment.start.max(front);
                }
                State::Empty | State::Lent => {}
            }
            self.near.set(index, segment);
            self.filled.count(index, segment);
        }
    }

    /// Adds sectors in front of a segment, from `front` on, as far as there is room for them.
    pub fn read_before(&mut self, id: SegmentId, front: u64) {
        let size = u64::from(self.spec.segment_sectors);
        let segment = &mut self.segments[id.index()];
        let front = front.max(segment.end.saturating_sub(size));
        segment.start = segment.start.min(front);
        self.changed(id);
        self.make_room(id);
    }

    /// Drops the data of a completed command if the drive does not keep requested data. Keeps dirty
    /// sectors and everything behind them.
    pub fn completed_read(&mut self, id: SegmentId, extent: Extent) {
        let dropped = self.spec.requested_data == RequestedData::Dropped;
        let segment = &mut self.segments[id.index()];
        if dropped && segment.users == 0 {
            let until = match segment.is_dirty() {
                true => segment.dirty_start,
                false => segment.end,
            };
            segment.start = segment.start.max(extent.end().get().min(until));
            self.changed(id);
        }
    }
}

#[cfg(test)]
mod tests;
