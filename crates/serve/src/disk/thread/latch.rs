//! Requests that a disk refuses after a failure, until an administrator clears the failure.
//!
//! | what failed | writes and discards | flushes and forced writes |
//! |---|---|---|
//! | a write, or a discard that may still happen | refused from now on | go on |
//! | a flush or a forced write | refused from now on | fail, also those that had come before |
//! | acknowledged data are lost ([`Cause::is_loss`]) | fail, also those that had come before | fail, also those that had come before |
//!
//! A kernel reports a loss once and a drive not at all, so the disk has to remember the loss. Only [`Latch::clear`]
//! ends the refusal. The return of the power or a later success does not.

use crate::disk::cause::Cause;
use crate::request::{Failure, Kind};

/// Record of the failures of a disk.
#[derive(Debug, Default)]
pub(super) struct Latch {
    cause: Option<Cause>,
    /// Failure that every flush gets; `None` if flushes go on.
    flush: Option<Failure>,
    marks: Mark,
}

/// Numbers of failures up to some time. Clearing does not reset them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    flushes: u64,
    losses: u64,
}

impl Latch {
    /// Records a failure. Returns true if this is the first failure, or the first loss.
    pub fn set(&mut self, cause: Cause) -> bool {
        let flush = match &cause {
            Cause::Write {
                failure, durable, ..
            } if *durable => Some(*failure),
            Cause::Flush { failure } => Some(*failure),
            cause if cause.is_loss() => Some(Failure::new(Kind::Lost)),
            _ => None,
        };
        if let Some(failure) = flush {
            self.marks.flushes += 1;
            if cause.is_loss() || self.flush.is_none() {
                self.flush = Some(failure);
            }
        }
        self.marks.losses += u64::from(cause.is_loss());
        let news = match &self.cause {
            None => true,
            // The administrator has to know the graver of two failures, which is the loss.
            Some(before) => cause.is_loss() && !before.is_loss(),
        };
        if news {
            self.cause = Some(cause);
        }
        news
    }

    /// Ends all refusals. Returns false if nothing had failed.
    pub fn clear(&mut self) -> bool {
        self.flush = None;
        self.cause.take().is_some()
    }

    /// Returns the reason why writes are refused.
    pub fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// Returns the failure that a flush gets if it arrives now.
    pub fn flush_failure(&self) -> Option<Failure> {
        self.flush
    }

    /// Returns true if acknowledged data are lost and the failure has not been cleared.
    pub fn has_lost(&self) -> bool {
        self.cause.as_ref().is_some_and(Cause::is_loss)
    }

    /// Returns the mark to store with a request that arrives now.
    pub fn mark(&self) -> Mark {
        self.marks
    }

    /// Returns true if, since `mark`, a flush or a forced write has failed or acknowledged data were lost.
    pub fn flush_failed_since(&self, mark: Mark) -> bool {
        self.marks.flushes > mark.flushes
    }

    /// Returns true if acknowledged data were lost since `mark`.
    pub fn lost_since(&self, mark: Mark) -> bool {
        self.marks.losses > mark.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_units::{Extent, Sectors};

    fn write(durable: bool) -> Cause {
        Cause::Write {
            extent: Extent::at(8, 8),
            failure: Failure::new(Kind::Device),
            durable,
        }
    }

    fn loss() -> Cause {
        Cause::PowerCut {
            sectors: Sectors::new(8),
        }
    }

    #[test]
    fn a_failed_write_fails_no_flush() {
        let mut latch = Latch::default();
        let before = latch.mark();
        assert!(latch.set(write(false)));
        assert!(!latch.set(write(false)));
        assert_eq!(latch.flush_failure(), None);
        assert!(!latch.flush_failed_since(before) && !latch.lost_since(before));
        assert!(latch.clear());
        assert!(!latch.clear());
        assert_eq!(latch.cause(), None);
    }

    #[test]
    fn a_failed_forced_write_fails_flushes_that_had_come_before_also_after_it_is_cleared() {
        let mut latch = Latch::default();
        let before = latch.mark();
        latch.set(write(true));
        assert_eq!(latch.flush_failure(), Some(Failure::new(Kind::Device)));
        latch.clear();
        assert_eq!(latch.flush_failure(), None);
        assert!(latch.flush_failed_since(before) && !latch.lost_since(before));
        assert!(!latch.flush_failed_since(latch.mark()));
    }

    #[test]
    fn a_loss_is_told_instead_of_a_failure_before_it_and_not_the_other_way_round() {
        let mut latch = Latch::default();
        let before = latch.mark();
        assert!(latch.set(write(false)));
        assert!(latch.set(loss()));
        assert!(!latch.set(write(true)));
        assert!(latch.has_lost());
        assert_eq!(latch.flush_failure(), Some(Failure::new(Kind::Lost)));
        assert_eq!(latch.cause(), Some(&loss()));
        assert!(latch.lost_since(before));
    }
}
