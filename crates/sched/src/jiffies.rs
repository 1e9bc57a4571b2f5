//! Time as a kernel counts it: in ticks of its timer.
//!
//! The schedulers of Linux 2.6 keep all their times in jiffies, so the tick rate changes their behaviour: a wait of
//! 6.67 ms is 6 ticks of 1 ms, or 1 tick of 4 ms. A timer that is set for n ticks fires on a tick, and the current tick
//! counts. The timer fires after more than n − 1 ticks and at most n.

use core::ops::Add;
use headtime_units::{Nanos, Time};

const SECOND_NS: u64 = 1_000_000_000;

/// A point in time, in whole ticks since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jiffies(u64);

impl Jiffies {
    /// The point `ticks` ticks after the start.
    pub const fn new(ticks: u64) -> Jiffies {
        Jiffies(ticks)
    }

    /// Ticks since the start.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Ticks since `earlier`; 0 if `earlier` is later.
    pub const fn since(self, earlier: Jiffies) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Adds ticks, up to the last possible point in time.
impl Add<u64> for Jiffies {
    type Output = Jiffies;

    fn add(self, ticks: u64) -> Jiffies {
        Jiffies(self.0.saturating_add(ticks))
    }
}

/// Tick rate of a kernel's timer, per second.
///
/// # Examples
///
/// ```
/// use headtime_sched::Hz;
/// use headtime_units::{Nanos, Time};
///
/// let hz = Hz::new(250).expect("it is allowed");
/// assert_eq!(hz.ticks(Nanos::from_millis(125)), 31);
/// // 3 ms into a tick of 4 ms, a timer for one tick fires after 1 ms.
/// let now = Time::ZERO + Nanos::from_millis(3);
/// assert_eq!(hz.fires(now, 1), Time::ZERO + Nanos::from_millis(4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hz(u64);

impl Hz {
    /// The lowest and the highest rate allowed: the range of Linux's build options.
    pub const RANGE: (u64, u64) = (100, 1_000);

    /// 250 ticks per second, the rate of most kernels of the time.
    pub const DEFAULT: Hz = Hz(250);

    /// A rate in ticks per second; `None` outside [`Hz::RANGE`].
    pub const fn new(per_second: u64) -> Option<Hz> {
        if Hz::RANGE.0 <= per_second && per_second <= Hz::RANGE.1 {
            Some(Hz(per_second))
        } else {
            None
        }
    }

    /// Ticks per second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whole ticks that have passed at `now`.
    pub const fn at(self, now: Time) -> Jiffies {
        Jiffies(self.scaled(now.as_nanos()).0)
    }

    /// Time of a tick: the first nanosecond at which [`Hz::at`] returns this tick. The end of time if that is earlier.
    pub const fn time(self, jiffies: Jiffies) -> Time {
        let (seconds, rest) = (jiffies.0 / self.0, jiffies.0 % self.0);
        let nanos = seconds.saturating_mul(SECOND_NS);
        Time::from_nanos(nanos.saturating_add((rest * SECOND_NS).div_ceil(self.0)))
    }

    /// Returns the time at which a timer fires that is set now for `ticks` ticks. Later than `now` unless `ticks` is 0.
    pub fn fires(self, now: Time, ticks: u64) -> Time {
        self.time(self.at(now) + ticks)
    }

    /// A span in ticks, rounded down, but at least one tick unless the span is 0.
    ///
    /// With the spans of a second that their sources state (`HZ / 8` is 125 ms), these are the
    /// kernel's values at every rate.
    pub const fn ticks(self, span: Nanos) -> u64 {
        let (ticks, _) = self.scaled(span.as_nanos());
        if ticks == 0 && !span.is_zero() {
            1
        } else {
            ticks
        }
    }

    /// A span in ticks, rounded up.
    pub const fn ticks_up(self, span: Nanos) -> u64 {
        let (ticks, exact) = self.scaled(span.as_nanos());
        if exact { ticks } else { ticks + 1 }
    }

    /// Nanoseconds as ticks, rounded down, and whether that was exact.
    const fn scaled(self, nanos: u64) -> (u64, bool) {
        let parts = nanos % SECOND_NS * self.0;
        let ticks = nanos / SECOND_NS * self.0 + parts / SECOND_NS;
        (ticks, parts.is_multiple_of(SECOND_NS))
    }
}

impl Default for Hz {
    fn default() -> Hz {
        Hz::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hz(per_second: u64) -> Hz {
        Hz::new(per_second).expect("it is allowed")
    }

    #[test]
    fn only_rates_of_kernels_are_allowed() {
        assert_eq!(Hz::new(99), None);
        assert_eq!(Hz::new(1_001), None);
        assert_eq!([100, 1_000].map(|rate| hz(rate).get()), [100, 1_000]);
    }

    #[test]
    fn spans_are_rounded_both_ways() {
        let ms = Nanos::from_millis;
        assert_eq!(
            [ms(125), ms(8), ms(1), ms(0)].map(|s| hz(250).ticks(s)),
            [31, 2, 1, 0]
        );
        assert_eq!(
            [ms(125), ms(8), ms(2), ms(0)].map(|s| hz(250).ticks_up(s)),
            [32, 2, 1, 0]
        );
        assert_eq!(hz(1_000).ticks_up(Nanos::from_nanos(1)), 1);
    }

    proptest! {
        #[test]
        fn a_tick_comes_when_it_is_counted(
            rate in Hz::RANGE.0..=Hz::RANGE.1,
            tick in 1..1_u64 << 40,
        ) {
            let (hz, tick) = (hz(rate), Jiffies::new(tick));
            let time = hz.time(tick);
            prop_assert_eq!(hz.at(time), tick);
            let before = time.saturating_sub(Nanos::from_nanos(1));
            prop_assert_eq!(hz.at(before) + 1, tick);
        }

        #[test]
        fn a_timer_fires_after_its_ticks_less_up_to_one(
            rate in Hz::RANGE.0..=Hz::RANGE.1,
            now in 0..1_u64 << 60,
            ticks in 1..10_000_u64,
        ) {
            let (hz, now) = (hz(rate), Time::from_nanos(now));
            let after = hz.fires(now, ticks).saturating_since(now).as_nanos();
            prop_assert!(u128::from(after) * u128::from(rate) > u128::from((ticks - 1) * SECOND_NS));
            prop_assert!(after <= (ticks * SECOND_NS).div_ceil(rate));
        }
    }
}
