//! Spans that may be negative.

use crate::{Nanos, ParseUnitError, Time};
use core::fmt;
use core::str::FromStr;

/// Difference of two durations in nanoseconds, negative if the first is shorter.
///
/// As text, a duration with an optional minus sign: `-0.5ms`.
///
/// # Examples
///
/// ```
/// use headtime_units::{Nanos, SignedNanos};
///
/// let less: SignedNanos = "-0.5ms".parse().unwrap();
/// assert_eq!(less.to_string(), "-500us");
/// assert_eq!(less.after(Nanos::from_millis(2)), Nanos::from_micros(1500));
/// assert_eq!(less.after(Nanos::from_micros(300)), Nanos::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignedNanos(i64);

impl SignedNanos {
    /// No difference.
    pub const ZERO: SignedNanos = SignedNanos(0);

    /// A difference of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i64) -> SignedNanos {
        SignedNanos(nanos)
    }

    /// The span nearest to `millis` milliseconds; zero for NaN.
    pub fn from_millis_f64(millis: f64) -> SignedNanos {
        // A cast from float saturates, and takes NaN to zero.
        let half = if millis < 0.0 { -0.5 } else { 0.5 };
        SignedNanos((millis * 1e6 + half) as i64)
    }

    /// The span from `from` to `to`: negative if `to` is sooner, and at most as far from zero as 63 bits hold.
    pub const fn between(from: Time, to: Time) -> SignedNanos {
        let (from, to) = (from.as_nanos(), to.as_nanos());
        let span = from.abs_diff(to);
        let span = if span > i64::MAX as u64 {
            i64::MAX
        } else {
            span as i64
        };
        SignedNanos(if to < from { -span } else { span })
    }

    /// Length of `span` minus the length of `other`; see [`SignedNanos::between`].
    pub const fn longer(span: Nanos, other: Nanos) -> SignedNanos {
        SignedNanos::between(
            Time::from_nanos(other.as_nanos()),
            Time::from_nanos(span.as_nanos()),
        )
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Milliseconds, for statistics.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span without its sign.
    pub const fn abs(self) -> Nanos {
        Nanos::from_nanos(self.0.unsigned_abs())
    }

    /// Returns true if it is less than zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Returns `span` plus this difference, at least zero.
    pub const fn after(self, span: Nanos) -> Nanos {
        Nanos::from_nanos(span.as_nanos().saturating_add_signed(self.0))
    }
}

impl From<Nanos> for SignedNanos {
    /// The same span, or the longest difference if 63 bits cannot hold the span.
    fn from(span: Nanos) -> SignedNanos {
        SignedNanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Writes the span as [`Nanos`] is written, behind a minus sign if it is negative.
impl fmt::Display for SignedNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_str("-")?;
        }
        self.abs().fmt(f)
    }
}

impl FromStr for SignedNanos {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<SignedNanos, ParseUnitError> {
        let (is_negative, span) = match text.trim_start().strip_prefix('-') {
            Some(rest) => (true, rest.parse::<Nanos>()?),
            None => (false, text.parse::<Nanos>()?),
        };
        // A span that is let in has far less than 63 bits.
        let SignedNanos(nanos) = SignedNanos::from(span);
        Ok(SignedNanos(if is_negative { -nanos } else { nanos }))
    }
}

#[cfg(feature = "serde")]
crate::serde_as_text!(
    SignedNanos,
    "a duration with its unit, such as \"0.8ms\" or \"-0.2ms\""
);

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_difference_of_any_two_points_has_its_sign() {
        for (from, to, nanos) in [
            (3, 5, 2),
            (5, 3, -2),
            (7, 7, 0),
            (0, u64::MAX, i64::MAX),
            (u64::MAX, 0, -i64::MAX),
            (i64::MAX as u64 + 2, i64::MAX as u64, -2),
        ] {
            let between =
                SignedNanos::between(Time::from_nanos(from), Time::from_nanos(to)).as_nanos();
            assert_eq!(between, nanos, "{from} to {to}");
            let longer = SignedNanos::longer(Nanos::from_nanos(to), Nanos::from_nanos(from));
            assert_eq!(longer.as_nanos(), nanos, "{to} and {from}");
        }
    }

    #[test]
    fn text_of_any_sign_is_read_and_written_back() {
        for (text, nanos) in [
            ("0ns", 0),
            ("1.5ms", 1_500_000),
            ("-483us", -483_000),
            ("-1ns", -1),
            ("-2s", -2_000_000_000),
        ] {
            let span = SignedNanos::from_nanos(nanos);
            assert_eq!(text.parse(), Ok(span));
            assert_eq!(span.to_string(), text);
        }
        assert_eq!("-0ns".parse(), Ok(SignedNanos::ZERO));
        assert_eq!(" -1 us ".parse(), Ok(SignedNanos::from_nanos(-1000)));
        for (text, error) in [
            ("--1ms", ParseUnitError::NoNumber),
            ("-1", ParseUnitError::NoDurationUnit),
            ("-", ParseUnitError::NoNumber),
            ("18446744073s", ParseUnitError::TooLong),
            ("-315360001s", ParseUnitError::TooLong),
        ] {
            assert_eq!(text.parse::<SignedNanos>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_difference_never_makes_less_than_nothing() {
        let second = Nanos::from_secs(1);
        assert_eq!(
            SignedNanos::from_nanos(-1).after(second),
            Nanos::from_nanos(999_999_999)
        );
        assert_eq!(SignedNanos::from_nanos(i64::MIN).after(second), Nanos::ZERO);
        assert_eq!(SignedNanos::from(second).after(second), Nanos::from_secs(2));
        assert_eq!(
            SignedNanos::from_nanos(i64::MAX).after(Nanos::MAX),
            Nanos::MAX
        );
        assert_eq!(SignedNanos::from(Nanos::MAX).as_nanos(), i64::MAX);
        assert_eq!(SignedNanos::from_nanos(i64::MIN).abs().as_nanos(), 1 << 63);
    }

    #[test]
    fn milliseconds_round_to_the_nearest_nanosecond_on_both_sides() {
        let nanos = |millis| SignedNanos::from_millis_f64(millis).as_nanos();
        assert_eq!(nanos(-0.483), -483_000);
        assert_eq!(nanos(0.000_000_6), 1);
        assert_eq!(nanos(-0.000_000_6), -1);
        assert_eq!((nanos(f64::NAN), nanos(-1e300)), (0, i64::MIN));
        assert_eq!(SignedNanos::from_nanos(-483_000).as_millis_f64(), -0.483);
    }
}
