//! A segment of the buffer: what it holds, and what happens to it.

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
    /// The medium is filling it, for a command or ahead of one.
    Reading,
    /// Some of the sectors are not on the medium yet, and the arm is not on its way to them.
    Dirty,
    /// Dirty, and the arm is writing them.
    Writing,
    /// Given up for dirty data that are kept in runs.
    Lent,
}

/// A run of consecutive sectors in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// First sector held.
    pub start: u64,
    /// Behind the last sector held.
    pub end: u64,
    /// First sector not yet on the medium, if dirty or being written.
    pub dirty_start: u64,
    /// Behind the last of them.
    pub dirty_end: u64,
    /// Reading may not be interrupted before it has come here.
    pub ahead_min: u64,
    /// Reading ahead ends here.
    pub ahead_max: u64,
    /// What happens to it.
    pub state: State,
    /// Commands that still need it: it cannot be given away.
    pub users: u16,
    /// It was a write that used it last; `None` if it was never used.
    pub last_was_write: Option<bool>,
    /// Larger the later it was used.
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

    /// Returns true if the first sector of `extent` is here.
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
