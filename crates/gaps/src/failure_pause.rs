//! Pauses of a background job after failed reads.

use headtime_units::{Nanos, Time};

/// Pause after the first failure; doubled with each further failure in a row.
const PAUSE_FIRST: Nanos = Nanos::from_millis(100);
const PAUSE_MAX: Nanos = Nanos::from_secs(10);

/// Time at which a job may go on after reads that failed for another reason than their sectors. Further reads do not help then. The job
/// pauses for 100 ms, twice as long after each further failure in a row, and never longer than 10 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailurePause {
    failures: u32,
    until: Time,
}

impl FailurePause {
    /// Notes a failed read.
    pub fn failed(&mut self, now: Time) {
        let rest = PAUSE_FIRST.saturating_mul(1 << self.failures.min(10));
        self.failures += 1;
        self.until = now.saturating_add(rest.min(PAUSE_MAX));
    }

    /// Notes a successful read. The next failure counts as the first.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of reads in a row that have failed.
    pub fn in_a_row(&self) -> u32 {
        self.failures
    }

    /// Returns the time at which the job may go on.
    pub fn until(&self) -> Time {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_doubles_up_to_the_longest_and_begins_anew_after_a_success() {
        let mut rests = FailurePause::default();
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
