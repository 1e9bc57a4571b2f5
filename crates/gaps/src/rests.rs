//! How long a job in the background rests after reads that fail.

use headtime_units::{Nanos, Time};

/// After the first failure; doubled with each more in a row.
const FIRST: Nanos = Nanos::from_millis(100);
const LONGEST: Nanos = Nanos::from_secs(10);

/// When a job may go on whose reads fail for something else than their sectors: more reads do not help, whatever is wrong.
/// It rests for 100 ms, twice as long after each further failure in a row, and never longer than 10 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rests {
    failures: u32,
    until: Time,
}

impl Rests {
    /// A read failed.
    pub fn failed(&mut self, now: Time) {
        let rest = FIRST.saturating_mul(1 << self.failures.min(10));
        self.failures += 1;
        self.until = now.saturating_add(rest.min(LONGEST));
    }

    /// A read succeeded: the next failure is the first.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How many reads in a row have failed, up to now.
    pub fn in_a_row(&self) -> u32 {
        self.failures
    }

    /// When the job may go on.
    pub fn until(&self) -> Time {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_doubles_up_to_the_longest_and_begins_anew_after_a_success() {
        let mut rests = Rests::default();
        assert_eq!(rests.until(), Time::ZERO);
        let now = Time::ZERO + Nanos::from_secs(5);
        let mut rest = || {
            rests.failed(now);
            rests.until() - now
        };
        let rested: Vec<u64> = (0..9).map(|_| rest().as_nanos() / 1_000_000).collect();
        assert_eq!(
            rested,
            [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
        for _ in 0..100 {
            rest();
        }
        assert_eq!(rest(), Nanos::from_secs(10));
        rests.succeeded();
        rests.failed(now);
        assert_eq!(rests.until() - now, Nanos::from_millis(100));
    }
}
