//! Number of commands that the drive gets.
//!
//! A drive with many commands serves clients faster, but leaves no gaps and delays reads of the scan. A date without a bound shortens the
//! queue when reads beside many commands do not keep the date. The deep queue returns when such reads keep the date.

/// Consecutive checks that change the queue: to the short queue, and back. Verdicts change for the worse and the better by the same
/// numbers.
pub(super) const CHECKS_IN_ROW: (u32, u32) = (5, 60);

/// The deep queue returns when the pace is below this part of the scan's rate beside the deep queue.
const EASY_PACE_SHARE: f64 = 0.8;

/// Length of the drive's queue, with a date or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum QueueLength {
    /// Two commands at most.
    Short,
    /// More than two commands, with or without promises.
    Deep,
    /// More commands, or two if a date needs that.
    DeepOrNot,
}

/// State of the choice of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    /// True if the drive gets two commands at most.
    pub is_short: bool,
    /// Consecutive checks that want the other queue.
    wants_other: u32,
    /// Most blocks per second that the scan could read beside the deep queue.
    brings: f64,
}

impl Queue {
    /// Chooses the short or the deep queue of the drive at a check. `pace` is the rate that the date requires, and `brings` the greatest rate
    /// of the scan with the present queue, both in blocks per second. If `may` is false, the short queue is not allowed, and the deep queue
    /// returns at once. Returns true if the queue has changed.
    pub fn turns(&mut self, may: bool, learns: bool, pace: f64, brings: f64) -> bool {
        let (wants, looks) = match (self.is_short, may) {
            (true, true) => (pace < EASY_PACE_SHARE * self.brings, CHECKS_IN_ROW.1),
            (true, false) => (true, 1),
            (false, _) => (may && pace > brings, CHECKS_IN_ROW.0),
        };
        if may && learns {
            return false;
        }
        self.wants_other = if wants { self.wants_other + 1 } else { 0 };
        let turns = self.wants_other >= looks;
        if turns {
            let brings = if self.is_short { self.brings } else { brings };
            *self = Queue {
                is_short: !self.is_short,
                wants_other: 0,
                brings,
            };
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_shortened_for_a_pace_that_reads_beside_it_do_not_keep() {
        let mut queue = Queue::default();
        assert!(
            (0..100).all(|_| !queue.turns(true, true, 9.0, 8.0)),
            "it learns"
        );
        assert!(
            (0..100).all(|_| !queue.turns(false, false, 9.0, 8.0)),
            "it may not"
        );
        assert!(
            (0..100).all(|_| !queue.turns(true, false, 7.0, 8.0)),
            "reads beside the deep queue suffice"
        );
        let turns = (1..9).find(|_| queue.turns(true, false, 9.0, 8.0));
        assert_eq!((turns, queue.is_short), (Some(5), true));
        // Reads beside two commands do not count for the deep queue.
        assert!((0..100).all(|_| !queue.turns(true, false, 7.0, 99.0)));
        let turns = (1..99).find(|_| queue.turns(true, false, 6.0, 0.0));
        assert_eq!((turns, queue.is_short), (Some(60), false));
        (0..5).for_each(|_| _ = queue.turns(true, false, 9.0, 8.0));
        assert!(queue.is_short && queue.turns(false, false, 9.0, 8.0));
    }
}
