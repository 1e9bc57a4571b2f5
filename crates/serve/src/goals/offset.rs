//! Difference of two clocks, by exchanges.
//!
//! A server reads its clock between the sending of a question and the receipt of the answer. Each exchange therefore
//! bounds the difference from both sides. The bounds hold for any delays of question and answer. The estimate is the
//! middle of all bounds together. Clocks drift, so older bounds widen with time.

use headtime_units::{Nanos, Time};

/// Largest drift of two clocks, in millionths: quartz clocks have under 100 each.
const DRIFT: u64 = 200;

/// Bounds of the time of a server less the time of the coordinator, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    low: i64,
    high: i64,
    /// Time of the last exchange.
    at: Time,
}

impl Offset {
    /// The bounds of one exchange: sent and received by the clock here, answered at `theirs` by the other clock. All are at most
    /// [`Time::LATEST`].
    pub fn of(sent: Time, received: Time, theirs: Time) -> Offset {
        Offset {
            low: difference(theirs, received),
            high: difference(theirs, sent),
            at: received,
        }
    }

    /// Adds an exchange. Bounds that contradict it are forgotten: a clock was set, or is of another machine.
    pub fn add(&mut self, new: Offset) {
        let since = new.at.saturating_since(self.at).as_nanos();
        let drift = (since / 1_000_000).saturating_mul(DRIFT) + 1;
        let drift = i64::try_from(drift).unwrap_or(i64::MAX);
        let low = self.low.saturating_sub(drift).max(new.low);
        let high = self.high.saturating_add(drift).min(new.high);
        *self = match low <= high {
            true => Offset { low, high, ..new },
            false => new,
        };
    }

    /// The estimate, in nanoseconds.
    pub fn nanos(self) -> i64 {
        self.low.midpoint(self.high)
    }

    /// Largest error of the estimate.
    pub fn error(self) -> Nanos {
        Nanos::from_nanos(self.high.abs_diff(self.low).div_ceil(2))
    }

    /// The time here at a time of the server; 0 if that was before the clock here started.
    pub fn here(self, theirs: Time) -> Time {
        shifted(theirs, self.nanos().saturating_neg())
    }

    /// The time of the server at a time here; 0 if that was before the server's clock started.
    pub fn there(self, here: Time) -> Time {
        shifted(here, self.nanos())
    }
}

fn difference(one: Time, other: Time) -> i64 {
    one.as_nanos().wrapping_sub(other.as_nanos()) as i64
}

fn shifted(time: Time, by: i64) -> Time {
    let nanos = time.as_nanos().saturating_add_signed(by);
    Time::from_nanos(nanos.min(Time::LATEST.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: u64 = 1_000_000_000_000;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_true_difference_is_within_the_stated_error_whatever_the_two_ways_take(
            offset in -900_000_000_000_i64..900_000_000_000,
            drift in -100_i64..100,
            exchanges in prop::collection::vec((0_u64..3_000_000_000, 0_u64..20_000_000, 0_u64..20_000_000), 1..60),
        ) {
            let (mut now, mut least) = (BASE, u64::MAX);
            let mut estimate: Option<Offset> = None;
            for (pause, forth, back) in exchanges {
                now += pause;
                let theirs = |at: u64| {
                    let drifted = (at - BASE) as i64 / 1_000_000 * drift;
                    at.saturating_add_signed(offset + drifted)
                };
                let (sent, answered, received) = (now, now + forth, now + forth + back);
                now = received;
                let [from, to, other] = [sent, received, theirs(answered)].map(Time::from_nanos);
                let new = Offset::of(from, to, other);
                match &mut estimate {
                    Some(estimate) => estimate.add(new),
                    None => estimate = Some(new),
                }
                let estimate = estimate.unwrap();
                let truth = theirs(received) as i64 - received as i64;
                // Drift within the exchange itself.
                let error = estimate.error().as_nanos() + 10_000;
                prop_assert!(truth.abs_diff(estimate.nanos()) <= error, "{truth} {estimate:?}");
                least = least.min(forth + back);
                if pause == 0 {
                    prop_assert!(estimate.error().as_nanos() <= (forth + back).div_ceil(2));
                }
            }
        }
    }

    #[test]
    fn one_short_exchange_bounds_many_that_are_long_one_way() {
        let at = |ms: u64| Time::from_nanos(BASE + ms * 1_000_000);
        // The server is 5 ms ahead; questions take 30 ms, and answers nothing.
        let mut offset = Offset::of(at(0), at(30), at(35));
        assert_eq!(
            (offset.nanos(), offset.error()),
            (20_000_000, Nanos::from_millis(15))
        );
        offset.add(Offset::of(at(100), at(102), at(106)));
        for ms in [200, 300, 400] {
            offset.add(Offset::of(at(ms), at(ms + 30), at(ms + 35)));
        }
        assert!(offset.nanos().abs_diff(5_000_000) <= 600_000, "{offset:?}");
        assert!(offset.error() <= Nanos::from_micros(600), "{offset:?}");
        assert_eq!(offset.here(offset.there(at(7))), at(7));
    }

    #[test]
    fn a_clock_that_was_set_is_followed_at_once() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut offset = Offset::of(at(1000), at(1002), at(9001));
        offset.add(Offset::of(at(1100), at(1102), at(3)));
        assert_eq!(
            (offset.nanos(), offset.error()),
            (-1_098_000_000, Nanos::from_millis(1))
        );
        // Times before the start of a clock are 0.
        assert_eq!(
            (offset.there(at(5)), offset.here(at(5))),
            (Time::ZERO, at(1103))
        );
    }
}
