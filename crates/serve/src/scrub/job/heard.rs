//! What a scrub has heard of its promises, and what its file has of them.

use super::super::promises::{FinishBy, Promises};
use headtime_gaps::Verdict;
use headtime_linux::clock::Wall;
use headtime_units::{Nanos, Time};

/// What the file has: what could not be written is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnFile {
    pub promises: Promises,
    pub said: Option<(Verdict, Wall)>,
}

/// A date, and how much of its time was over when it was heard of. The clock on the wall is asked once: from then on the time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    date: FinishBy,
    at: Time,
    passed: Nanos,
}

impl Heard {
    /// The date is heard of, or is what it was `before`.
    pub fn of(before: Option<Heard>, date: FinishBy, now: Time, wall: Wall) -> Heard {
        match before.filter(|heard| heard.date == date) {
            Some(heard) => heard,
            None => Heard {
                date,
                at: now,
                passed: date.passed(wall),
            },
        }
    }

    /// How much of its time is over.
    pub fn passed(&self, now: Time) -> Nanos {
        self.passed.saturating_add(now.saturating_since(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_does_not_move_a_date_that_was_heard_of() {
        let date = FinishBy {
            within: Nanos::from_secs(60),
            promised: Wall(100_000),
        };
        let at = |seconds| Time::ZERO + Nanos::from_secs(seconds);
        let heard = Heard::of(None, date, at(10), Wall(120_000));
        assert_eq!(heard.passed(at(10)), Nanos::from_secs(20));
        // Ten seconds later the clock is set to another day.
        let again = Heard::of(Some(heard), date, at(20), Wall(900_000_000));
        assert_eq!(again.passed(at(20)), Nanos::from_secs(30));
        let other = FinishBy {
            within: Nanos::from_secs(61),
            ..date
        };
        let other = Heard::of(Some(heard), other, at(20), Wall(130_000));
        assert_eq!(other.passed(at(20)), Nanos::from_secs(30));
        assert_eq!(other.passed(at(21)), Nanos::from_secs(31));
    }
}
