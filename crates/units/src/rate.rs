//! Rates of data as text: `117.7MB/s`.

use crate::{Bytes, Nanos, ParseUnitError};
use core::fmt;
use core::str::FromStr;

/// Bytes a second.
///
/// As text, a size and `/s`: `117.7MB/s`.
///
/// # Examples
///
/// ```
/// use headtime_units::{Nanos, Rate};
///
/// let gigabit: Rate = "125MB/s".parse()?;
/// assert_eq!(gigabit.time(1_000), Nanos::from_micros(8));
/// # Ok::<(), headtime_units::ParseUnitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Rate {
    /// Time for a number of bytes at this rate, rounded up. A rate of 0 counts as 1 byte a second.
    pub fn time(self, bytes: u64) -> Nanos {
        let nanos = u128::from(bytes) * 1_000_000_000;
        let time = nanos.div_ceil(u128::from(self.0).max(1));
        let time = u64::try_from(time).map_or(Nanos::LONGEST, Nanos::from_nanos);
        time.min(Nanos::LONGEST)
    }

    /// Bytes in a time at this rate, rounded down.
    pub fn bytes_in(self, span: Nanos) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Rate of a number of bytes in a time, rounded down. A time of 0 counts as 1 ns.
    pub fn of(bytes: u64, span: Nanos) -> Rate {
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos().max(1));
        Rate(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Rate, ParseUnitError> {
        let size = text.trim().strip_suffix("/s");
        let size: Bytes = size.ok_or(ParseUnitError::NoRate)?.parse()?;
        Ok(Rate(size.0))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Bytes(self.0))
    }
}

#[cfg(feature = "serde")]
crate::serde_as_text!(Rate, "a rate, such as \"100MB/s\"");

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn reads_and_writes_rates() {
        for (text, rate, written) in [
            ("117.7MB/s", 117_700_000, "117700kB/s"),
            ("1GiB/s", 1 << 30, "1GiB/s"),
        ] {
            assert_eq!(text.parse(), Ok(Rate(rate)), "{text}");
            assert_eq!(Rate(rate).to_string(), written);
        }
        for text in ["117.7MB", "1/s", "", "/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_and_rates_are_rounded_down_and_never_overflow() {
        let second = Nanos::from_secs(1);
        assert_eq!(Rate(3).bytes_in(Nanos::from_millis(999)), 2);
        assert_eq!(Rate(u64::MAX).bytes_in(Nanos::LONGEST), u64::MAX);
        assert_eq!(Rate::of(2, Nanos::from_secs(3)), Rate(0));
        assert_eq!(Rate::of(7, second), Rate(7));
        assert_eq!(Rate::of(u64::MAX, Nanos::ZERO), Rate(u64::MAX));
    }

    #[test]
    fn a_time_is_rounded_up_and_never_overflows() {
        assert_eq!(Rate(3).time(1), Nanos::from_nanos(333_333_334));
        assert_eq!(Rate(1).time(u64::MAX), Nanos::LONGEST);
        assert_eq!(Rate(0).time(1), Nanos::from_secs(1));
        assert_eq!(Rate(0).time(0), Nanos::ZERO);
    }
}
