//! Dedication of a disk to one stream, by order of a coordinator of several disks.

use crate::Tag;
use alloc::collections::VecDeque;
use headtime_units::Time;

/// The marked requests of a disk that is dedicated to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Dedication {
    /// End of the dedication. In the past while the disk is not dedicated.
    until: Time,
    /// Queued requests in the order in which they go.
    marked: VecDeque<Tag>,
}

impl Dedication {
    /// Serves marked requests only until this time.
    pub fn begin(&mut self, until: Time) {
        self.until = until;
    }

    /// Ends the dedication. Marks are forgotten.
    pub fn end(&mut self) {
        self.until = Time::ZERO;
        self.marked.clear();
    }

    /// End of the dedication, if the disk is dedicated now.
    #[inline]
    pub fn until(&self, now: Time) -> Option<Time> {
        (now < self.until).then_some(self.until)
    }

    /// The marked request that goes first.
    pub fn first(&self) -> Option<Tag> {
        self.marked.front().copied()
    }

    /// Marks a queued request, once.
    pub fn mark(&mut self, tag: Tag) {
        if !self.marked.contains(&tag) {
            self.marked.push_back(tag);
        }
    }

    /// Forgets a request that is queued no longer. Returns true if the request was marked.
    #[inline]
    pub fn forget(&mut self, tag: Tag) -> bool {
        let at = self.marked.iter().position(|marked| *marked == tag);
        at.is_some_and(|at| self.marked.remove(at).is_some())
    }
}
