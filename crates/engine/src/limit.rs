//! A limit on the data of a client in a second.
//!
//! # How it works
//!
//! Each request moves the time of the next one by the request's bytes over the rate. So the mean is exact for requests of
//! any size. A client that was idle, or that is let in late, has saved up what its rate gives in 100 ms, and no more.
//!
//! # Source
//!
//! Virtual scheduling (ITU-T I.371, appendix). A request goes while any of the saved time is left, so the last one may
//! have more bytes than were saved.

use headtime_units::{Nanos, Rate, Time};

/// Longest time whose bytes a client saves up.
const SAVED_MAX: Nanos = Nanos::from_millis(100);

/// Limit on the data of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    rate: Rate,
    /// A request may go after this time.
    paid: Time,
}

impl Limit {
    /// Creates a limit of `rate`.
    pub fn new(rate: Rate) -> Limit {
        let paid = Time::ZERO;
        Limit { rate, paid }
    }

    /// Earliest time of the next request.
    pub fn opens(&self) -> Time {
        self.paid.saturating_add(Nanos::from_nanos(1))
    }

    /// Notes that a request of `bytes` goes.
    pub fn take(&mut self, bytes: u64, now: Time) {
        let earliest = Time::ZERO + now.saturating_since(Time::ZERO).saturating_sub(SAVED_MAX);
        self.paid = (self.paid.max(earliest)).saturating_add(self.rate.time(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Bytes that go until `end` if a request of `bytes` always waits, and the client is let in `late` after each time.
    fn goes(limit: &mut Limit, bytes: u64, from: Time, end: Time, late: Nanos) -> u64 {
        let (mut now, mut all) = (from, 0);
        while now < end {
            match limit.opens() <= now {
                true => {
                    limit.take(bytes, now);
                    all += bytes;
                }
                false => now = limit.opens() + late,
            }
        }
        all
    }

    #[test]
    fn the_mean_is_the_rate_whatever_the_size_of_requests_and_the_delays_of_the_caller() {
        for bytes in [512, 4_096, 65_536, MIB, 32 * MIB] {
            for late in [0, 1, 20].map(Nanos::from_millis) {
                let mut limit = Limit::new(Rate(20 * MIB));
                let start = Time::ZERO + Nanos::from_secs(5);
                limit.take(0, start);
                let all = goes(&mut limit, bytes, start, start + Nanos::from_secs(20), late);
                let most = 20 * 20 * MIB + 2 * MIB + bytes;
                assert!(
                    (20 * 20 * MIB..=most).contains(&all),
                    "{bytes} {late} {all}"
                );
            }
        }
    }

    #[test]
    fn after_a_pause_no_more_than_a_tenth_of_a_second_goes_at_once() {
        let mut limit = Limit::new(Rate(20 * MIB));
        let hour = Time::ZERO + Nanos::from_secs(3_600);
        let end = hour + Nanos::from_nanos(1);
        assert_eq!(goes(&mut limit, 65_536, hour, end, Nanos::ZERO), 2 * MIB);
        assert!(limit.opens() > hour);
    }

    #[test]
    fn a_request_larger_than_a_second_goes_and_is_paid_for() {
        let mut limit = Limit::new(Rate(MIB));
        let start = Time::ZERO + Nanos::from_secs(1);
        assert!(limit.opens() <= start);
        limit.take(64 * MIB, start);
        let opens = limit.opens().saturating_since(start);
        assert!(opens > Nanos::from_millis(63_800), "{opens}");
    }
}
