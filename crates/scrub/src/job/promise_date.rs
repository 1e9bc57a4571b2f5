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
pub(super) struct PromiseDate {
    date: FinishBy,
    at: Time,
    passed: Nanos,
}

impl PromiseDate {
    /// Takes over a date. If `before` has the same date, its count continues.
    pub fn of(before: Option<PromiseDate>, date: FinishBy, now: Time, wall: Wall) -> PromiseDate {
        match before.filter(|date_taken| date_taken.date == date) {
            Some(date_taken) => date_taken,
            None => PromiseDate {
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
        let date_taken = PromiseDate::of(None, date, at(10), Wall(120_000));
        assert_eq!(date_taken.passed(at(10)), Nanos::from_secs(20));
        // Ten seconds later the clock is set to another day.
        let again = PromiseDate::of(Some(date_taken), date, at(20), Wall(900_000_000));
        assert_eq!(again.passed(at(20)), Nanos::from_secs(30));
        let other = FinishBy {
            within: Nanos::from_secs(61),
            ..date
        };
        let other = PromiseDate::of(Some(date_taken), other, at(20), Wall(130_000));
        assert_eq!(other.passed(at(20)), Nanos::from_secs(30));
        assert_eq!(other.passed(at(21)), Nanos::from_secs(31));
    }
}
