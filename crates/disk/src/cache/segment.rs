//! A segment of the buffer: its sectors and its state.

use headtime_units::Extent;

/// A segment, by its place in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentId(pub(super) u32);

impl SegmentId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing of use.
    Empty,
    /// Sectors as they are on the medium.
    Clean,
    /// The segment is being filled from the medium, for a command or ahead of one.
    Reading,
    /// Some sectors are not on the medium yet, and the arm has not set out to write them.
    Dirty,
    /// Dirty, and the arm is writing them.
    Writing,
    /// Given up for dirty data in runs.
    Lent,
}

/// A run of consecutive sectors in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// First sector held.
    pub start: u64,
    /// The sector behind the last sector held.
    pub end: u64,
    /// First sector not yet on the medium, if dirty or being written.
    pub dirty_start: u64,
    /// The sector behind the last such sector.
    pub dirty_end: u64,
    /// Reading may not be interrupted in front of this sector.
    pub ahead_min: u64,
    /// Reading ahead ends here.
    pub ahead_max: u64,
    /// The present state.
    pub state: State,
    /// Commands that still need the segment. While there are any, the segment cannot be given away.
    pub users: u16,
    /// True if the last use was a write; `None` if the segment was never used.
    pub last_was_write: Option<bool>,
    /// Stamp of the last use: larger for later uses.
    pub(super) used: u64,
}

impl Segment {
    /// Returns true if some of its sectors are not on the medium yet.
    pub fn is_dirty(&self) -> bool {
        matches!(self.state, State::Dirty | State::Writing)
    }

    pub(super) fn overlaps(&self, extent: Extent) -> bool {
        self.state != State::Empty
            && extent.start.get() < self.end
            && self.start < extent.end().get()
    }

    /// Returns true if the segment has the first sector of `extent`.
    pub(super) fn has_first(&self, extent: Extent) -> bool {
        self.start <= extent.start.get() && extent.start.get() < self.end
    }

    /// The sectors that are not on the medium yet. The segment holds them all.
    pub fn dirty(&self) -> Extent {
        debug_assert!(
            self.start <= self.dirty_start && self.dirty_end <= self.end,
            "dirty sectors were dropped: {self:?}"
        );
        Extent::at(self.dirty_start, self.dirty_end - self.dirty_start)
    }
}
