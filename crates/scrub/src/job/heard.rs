//! Promises as the job knows them, and as the progress file has them.

use super::super::promises::{FinishBy, Promises};
use headtime_gaps::Verdict;
use headtime_linux::clock::Wall;
use headtime_units::{Nanos, Time};

/// Promises, verdict and pause in the progress file. Differences from the present values are still to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnFile {
    pub promises: Promises,
    pub said: Option<(Verdict, Wall)>,
    pub paused: bool,
}

/// A date, and the part of its time that had passed when the job took the date over. The wall clock is read only then. Later the job counts
/// the time itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    date: FinishBy,
    at: Time,
    passed: Nanos,
}

impl Heard {
    /// Takes over a date. If `before` has the same date, its count continues.
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

    /// Part of the date's time that has passed.
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
