//! Changes that no flush has covered yet.

use headtime_sched::Op;

/// Number of changes up to some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Changes(u64);

/// Changes of a disk since the last flush.
///
/// A change counts when it arrives, and again when the device is done with it. If none has counted since a flush arrived
/// that succeeded, the device was done with all changes before, and none has come since.
#[derive(Debug, Default)]
pub(super) struct Unflushed {
    changes: Changes,
    /// Changes at the arrival of the last flush that succeeded.
    flushed: Option<Changes>,
}

impl Unflushed {
    /// Notes an operation that arrives, or that the device is done with.
    #[inline]
    pub fn note(&mut self, op: Op) {
        self.changes.0 += u64::from(op.changes());
    }

    /// Changes up to now, for a flush that arrives.
    #[inline]
    pub fn changes(&self) -> Changes {
        self.changes
    }

    /// Notes that a flush has succeeded that arrived after so many changes.
    pub fn flushed(&mut self, changes: Changes) {
        self.flushed = self.flushed.max(Some(changes));
    }

    /// True if all changes are on the medium. False before the first flush, since an earlier server may have left some.
    pub fn is_none(&self) -> bool {
        self.flushed == Some(self.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_what_was_done_before_it_arrived() {
        let mut unflushed = Unflushed::default();
        assert!(!unflushed.is_none());
        unflushed.flushed(unflushed.changes());
        assert!(unflushed.is_none());
        unflushed.note(Op::Read);
        assert!(unflushed.is_none());
        // A write on its way, then done, then flushed.
        unflushed.note(Op::Write);
        assert!(!unflushed.is_none());
        unflushed.note(Op::Write);
        assert!(!unflushed.is_none());
        unflushed.flushed(unflushed.changes());
        assert!(unflushed.is_none());
    }

    #[test]
    fn a_flush_does_not_cover_what_was_on_its_way_when_it_arrived() {
        let mut unflushed = Unflushed::default();
        unflushed.note(Op::Discard);
        let flush = unflushed.changes();
        unflushed.note(Op::Discard);
        unflushed.flushed(flush);
        assert!(!unflushed.is_none());
        // An older flush that ends late takes nothing back.
        let newer = unflushed.changes();
        unflushed.flushed(newer);
        unflushed.flushed(flush);
        assert!(unflushed.is_none());
    }
}
