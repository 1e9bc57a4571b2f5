//! Points and spans of time, in integer nanoseconds.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// A point in time: nanoseconds since the start of the run.
///
/// The largest value, about 584 years, never occurs in a run and serves as "never"
/// ([`Time::NEVER`]). Half of the range is for points that somebody may name or a run may come to,
/// up to [`Time::LATEST`]; the other half is room for sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time, in nanoseconds.
///
/// Texts of spans are at most [`Nanos::LONGEST`]. Computed spans may be longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// A point that is never reached.
    pub const NEVER: Time = Time(u64::MAX);
    /// The latest point that readers of times accept, and the end of the longest run: 2⁶³ − 1 ns, about
    /// 292 years. Twenty-nine times [`Nanos::LONGEST`] later is still before [`Time::NEVER`], so the sum
    /// of an accepted time and a few accepted spans does not overflow. A deadline may be the sum of many
    /// spans and need not come: compute it with [`Time::saturating_add`].
    pub const LATEST: Time = Time(i64::MAX as u64);

    /// The point `nanos` nanoseconds after the start of the run.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the start of the run.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run, for statistics and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, at most [`Time::NEVER`].
    pub const fn saturating_add(self, span: Nanos) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// `self − span`, at least [`Time::ZERO`].
    pub const fn saturating_sub(self, span: Nanos) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// The longest span.
    pub const MAX: Nanos = Nanos(u64::MAX);
    /// The longest span that a text may name: 3650 days. See [`Time::LATEST`].
    pub const LONGEST: Nanos = Nanos::from_secs(3650 * 86_400);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Nanos {
        Nanos(nanos)
    }

    /// A span of `micros` microseconds.
    ///
    /// # Panics
    ///
    /// If it does not fit into 64 bits of nanoseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        times(micros, 1_000)
    }

    /// A span of `millis` milliseconds.
    ///
    /// # Panics
    ///
    /// If it does not fit into 64 bits of nanoseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        times(millis, 1_000_000)
    }

    /// A span of `secs` seconds.
    ///
    /// # Panics
    ///
    /// If it does not fit into 64 bits of nanoseconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        times(secs, 1_000_000_000)
    }

    /// The span nearest to `millis` milliseconds; zero for negative values and NaN.
    pub fn from_millis_f64(millis: f64) -> Nanos {
        // A cast from float saturates, and takes NaN to zero.
        Nanos((millis * 1e6 + 0.5) as u64)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in microseconds, for statistics.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The span in milliseconds, for statistics.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span in seconds, for statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self − other`, at least zero.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// `self + other`, at most [`Nanos::MAX`].
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// `self` multiplied by `times`, at most [`Nanos::MAX`].
    pub const fn saturating_mul(self, times: u64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }

    /// Returns true if the span has no length.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Checks for overflow in every build.
const fn times(count: u64, unit: u64) -> Nanos {
    match count.checked_mul(unit) {
        Some(nanos) => Nanos(nanos),
        None => panic!("span overflow"),
    }
}

impl Sub for Time {
    type Output = Nanos;

    /// # Panics
    ///
    /// If `earlier` is later than `self`.
    fn sub(self, earlier: Time) -> Nanos {
        Nanos(self.0.checked_sub(earlier.0).expect("time went backwards"))
    }
}

impl Add<Nanos> for Time {
    type Output = Time;

    /// # Panics
    ///
    /// If the sum leaves 64 bits.
    fn add(self, span: Nanos) -> Time {
        Time(self.0.checked_add(span.0).expect("time overflow"))
    }
}

impl Sub<Nanos> for Time {
    type Output = Time;

    /// # Panics
    ///
    /// If the result lies before the start of the run.
    fn sub(self, span: Nanos) -> Time {
        Time(
            self.0
                .checked_sub(span.0)
                .expect("time before the start of the run"),
        )
    }
}

impl AddAssign<Nanos> for Time {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Add for Nanos {
    type Output = Nanos;

    /// # Panics
    ///
    /// If the sum leaves 64 bits.
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.checked_add(other.0).expect("span overflow"))
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    /// # Panics
    ///
    /// If `other` is longer than `self`.
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.checked_sub(other.0).expect("negative span"))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Nanos) {
        *self = *self - other;
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;

    /// # Panics
    ///
    /// If the product leaves 64 bits.
    fn mul(self, times: u64) -> Nanos {
        Nanos(self.0.checked_mul(times).expect("span overflow"))
    }
}

impl Div<u64> for Nanos {
    type Output = Nanos;

    /// Rounds down.
    fn div(self, parts: u64) -> Nanos {
        Nanos(self.0 / parts)
    }
}

impl Rem for Nanos {
    type Output = Nanos;

    fn rem(self, period: Nanos) -> Nanos {
        Nanos(self.0 % period.0)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(spans: I) -> Nanos {
        spans.fold(Nanos::ZERO, Add::add)
    }
}

/// Writes the span in the largest unit that keeps it at one or more, exactly: `1.5ms`, `30s`, `0ns`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        let (unit, name) = UNITS
            .into_iter()
            .find(|(unit, _)| self.0 >= *unit)
            .unwrap_or((1, "ns"));
        write!(f, "{}", self.0 / unit)?;
        let (mut rest, mut place) = (self.0 % unit, unit / 10);
        if rest > 0 {
            f.write_str(".")?;
        }
        while rest > 0 {
            write!(f, "{}", rest / place)?;
            rest %= place;
            place /= 10;
        }
        f.write_str(name)
    }
}

/// Writes the point as the span since the start of the run.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Nanos(self.0).fmt(f)
    }
}

/// As the duration since time zero.
#[cfg(feature = "serde")]
mod as_text {
    use super::{Nanos, Time};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl<'de> Deserialize<'de> for Time {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
            Nanos::deserialize(from).map(|since| Time::ZERO + since)
        }
    }

    impl Serialize for Time {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            (*self - Time::ZERO).serialize(to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn points_and_spans() {
        let start = Time::from_nanos(1_000);
        assert_eq!(start + Nanos::from_micros(2), Time::from_nanos(3_000));
        assert_eq!(Time::from_nanos(3_000) - start, Nanos::from_nanos(2_000));
        assert_eq!(start.saturating_since(Time::from_nanos(5_000)), Nanos::ZERO);
        assert_eq!(Time::NEVER.saturating_add(Nanos::from_secs(1)), Time::NEVER);
    }

    #[test]
    fn what_is_let_in_adds_up() {
        let few = (0..29).map(|_| Nanos::LONGEST).sum::<Nanos>();
        assert!(Time::LATEST + few < Time::NEVER);
        assert_eq!(Nanos::LONGEST.to_string(), "315360000s");
        assert_eq!(Nanos::MAX.saturating_mul(2), Nanos::MAX);
    }

    #[test]
    #[should_panic(expected = "span overflow")]
    fn spans_in_larger_units_do_not_wrap() {
        let _ = Nanos::from_millis(u64::MAX / 1_000);
    }

    #[test]
    #[should_panic(expected = "time went backwards")]
    fn time_does_not_go_backwards() {
        let _ = Time::ZERO - Time::from_nanos(1);
    }

    #[test]
    fn spans_as_text() {
        for (nanos, text) in [
            (0, "0ns"),
            (1, "1ns"),
            (999, "999ns"),
            (1_500, "1.5us"),
            (8_333_333, "8.333333ms"),
            (124_000_000, "124ms"),
            (90_000_000_000, "90s"),
            (1_000_000_001, "1.000000001s"),
        ] {
            assert_eq!(Nanos::from_nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn rounds_floats_to_the_nearest() {
        assert_eq!(Nanos::from_millis_f64(0.000_000_6), Nanos::from_nanos(1));
        assert_eq!(Nanos::from_millis_f64(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_millis_f64(f64::NAN), Nanos::ZERO);
    }
}
