//! A permitted excess in percent.

use crate::Millionths;
use core::fmt;
use core::str::FromStr;

/// Percentage by which a value may exceed the same value without a requested feature.
///
/// As text, a number of at most six digits behind the point between `+` and `%`: `+5%`, `+0.5%`; 1000 at the most.
///
/// # Examples
///
/// ```
/// use headtime_units::MorePercent;
///
/// let more: MorePercent = "+5%".parse().unwrap();
/// assert_eq!((more.share(), more.to_string().as_str()), (0.05, "+5%"));
/// assert!("5%".parse::<MorePercent>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MorePercent(Millionths);

impl MorePercent {
    /// The most: eleven times as much.
    pub const MOST: MorePercent = MorePercent(Millionths(1_000 * Millionths::ONE.0));

    /// As a share of 1.
    pub fn share(self) -> f64 {
        self.percent() / 100.0
    }

    /// The number before the sign.
    pub fn percent(self) -> f64 {
        self.0.0 as f64 / Millionths::ONE.0 as f64
    }
}

/// Why a text does not say by how many percent more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseMorePercentError;

impl fmt::Display for ParseMorePercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("allowed is +0% to +1000%, as in +5% or +0.5%")
    }
}

impl core::error::Error for ParseMorePercentError {}

impl FromStr for MorePercent {
    type Err = ParseMorePercentError;

    fn from_str(text: &str) -> Result<MorePercent, ParseMorePercentError> {
        let number = text
            .strip_prefix('+')
            .and_then(|text| text.strip_suffix('%'));
        let number = number.filter(|number| !number.contains(char::is_whitespace));
        let percent = number.and_then(|number| number.parse().ok());
        let percent = percent.map(MorePercent);
        percent
            .filter(|percent| *percent <= MorePercent::MOST)
            .ok_or(ParseMorePercentError)
    }
}

impl fmt::Display for MorePercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn more_by_some_percent_has_both_signs_and_a_number_between_them() {
        for (text, percent) in [
            ("+0%", 0.0),
            ("+5%", 5.0),
            ("+0.5%", 0.5),
            ("+1000%", 1000.0),
            ("+12.000001%", 12.000_001),
        ] {
            let more: MorePercent = text.parse().expect(text);
            assert_eq!((more.percent(), more.to_string().as_str()), (percent, text));
        }
        for text in [
            "",
            "5",
            "5%",
            "+5",
            "+%",
            "-5%",
            "+-5%",
            "++5%",
            "+NaN%",
            "+inf%",
            "+1e2%",
            "+1000.000001%",
            "+0.0000001%",
            "+99999999999999999999%",
            "+ 5%",
            "40ms",
        ] {
            assert_eq!(
                text.parse::<MorePercent>(),
                Err(ParseMorePercentError),
                "{text}"
            );
        }
    }
}
