//! How many commands the drive gets.
//!
//! A drive with many commands serves more, and leaves no gaps. A date without a bound shortens the queue where idle time does not suffice, and
//! gives the queue back where it does.

/// Looks in a row that change the queue: to the short one, and back. Verdicts change for the worse and the better by the same numbers.
pub(super) const AGREE: (u32, u32) = (5, 60);

/// The short queue ends when idle time alone suffices in this share of the time left.
const EASILY: f64 = 0.8;

/// Length of the drive's queue, with a date or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum QueueLength {
    /// Two commands at most.
    Short,
    /// More commands, whatever is promised.
    Deep,
    /// More commands, or two if a date needs that.
    DeepOrNot,
}

/// The choice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    /// Whether the drive gets two commands at most.
    pub is_short: bool,
    /// How many looks in a row want the other queue.
    wants_other: u32,
    /// Blocks a second in idle time with the deep queue.
    idle: f64,
}

impl Queue {
    /// Chooses by the pace and by what idle time brings, both in blocks a second. A queue that `may` not be short is given back at once. Returns
    /// true if the queue has changed.
    pub fn turns(&mut self, may: bool, learns: bool, pace: f64, idle: f64) -> bool {
        let (wants, looks) = match (self.is_short, may) {
            (true, true) => (pace < EASILY * self.idle, AGREE.1),
            (true, false) => (true, 1),
            (false, _) => (may && pace > idle, AGREE.0),
        };
        if may && learns {
            return false;
        }
        self.wants_other = if wants { self.wants_other + 1 } else { 0 };
        let turns = self.wants_other >= looks;
        if turns {
            let idle = if self.is_short { self.idle } else { idle };
            *self = Queue {
                is_short: !self.is_short,
                wants_other: 0,
                idle,
            };
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_shortened_where_idle_time_does_not_suffice_and_given_back_where_it_does() {
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
            "idle time suffices"
        );
        let turns = (1..9).find(|_| queue.turns(true, false, 9.0, 8.0));
        assert_eq!((turns, queue.is_short), (Some(5), true));
        // Idle time that is used beside two commands says nothing of many.
        assert!((0..100).all(|_| !queue.turns(true, false, 7.0, 99.0)));
        let turns = (1..99).find(|_| queue.turns(true, false, 6.0, 0.0));
        assert_eq!((turns, queue.is_short), (Some(60), false));
        (0..5).for_each(|_| _ = queue.turns(true, false, 9.0, 8.0));
        assert!(queue.is_short && queue.turns(false, false, 9.0, 8.0));
    }
}
