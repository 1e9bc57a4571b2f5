//! Sizes, durations and plain numbers as text: `4KiB`, `1GB`, `100us`, `14d`, `0.03`.

use crate::Nanos;
use core::fmt;
use core::str::FromStr;

/// A size in bytes.
///
/// As text, `kB`, `MB`, `GB`, `TB` are powers of 1000 and `KiB`, `MiB`, `GiB`, `TiB` powers of
/// 1024; a bare number is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A plain number, such as a weight, in millionths of 1; never negative.
///
/// As text, a decimal of at most six digits behind the point, without a unit: `0.03` is
/// `Millionths(30_000)`.
///
/// # Examples
///
/// ```
/// use headtime_units::Millionths;
///
/// assert_eq!("0.03".parse(), Ok(Millionths(30_000)));
/// assert_eq!(Millionths(1_500_000).to_string(), "1.5");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millionths(pub u64);

impl Millionths {
    /// The number 0.
    pub const ZERO: Millionths = Millionths(0);
    /// The number 1.
    pub const ONE: Millionths = Millionths(1_000_000);
}

/// Why a text is not a duration, a size or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseUnitError {
    /// The text does not begin with a digit.
    NoNumber,
    /// A number without a unit.
    NoDurationUnit,
    /// A number without a unit.
    NoSizeUnit,
    /// A rate without `/s`.
    NoRate,
    /// Not one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`.
    UnknownDurationUnit,
    /// Not one of `B`, `kB`, `KiB`, `MB`, `MiB`, `GB`, `GiB`, `TB`, `TiB`.
    UnknownSizeUnit,
    /// More digits behind the point than the unit can show in whole nanoseconds or bytes.
    NotWhole,
    /// The text is no plain number; it may have a unit.
    NotPlain,
    /// More than six digits behind the point of a plain number.
    TooFine,
    /// More than 64 bits.
    TooLarge,
    /// A duration above [`Nanos::LONGEST`].
    TooLong,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseUnitError::NoNumber => "no number at the start; write for example 30ms or 4KiB",
            ParseUnitError::NoDurationUnit => {
                "a duration needs its unit: ns, us, ms, s, m, h or d, as in 30ms"
            }
            ParseUnitError::NoSizeUnit => {
                "a size needs its unit: B, kB, KiB, MB, MiB, GB, GiB, TB or TiB, as in 4KiB"
            }
            ParseUnitError::NoRate => "a rate is a size and /s, as in 100MB/s",
            ParseUnitError::UnknownDurationUnit => {
                "unknown unit of duration; allowed are ns, us, ms, s, m, h and d"
            }
            ParseUnitError::UnknownSizeUnit => {
                "unknown unit of size; allowed are B, kB, KiB, MB, MiB, GB, GiB, TB and TiB"
            }
            ParseUnitError::NotWhole => "not a whole number of nanoseconds or bytes",
            ParseUnitError::NotPlain => {
                "not a plain number; write for example 0.03, without a unit"
            }
            ParseUnitError::TooFine => "at most six digits may follow the point",
            ParseUnitError::TooLarge => "too large",
            ParseUnitError::TooLong => "a duration is at most 3650d",
        })
    }
}

impl core::error::Error for ParseUnitError {}

const DURATIONS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// Reads `digits[.digits]unit` exactly, in integers.
fn parse(
    text: &str,
    units: &[(&str, u64)],
    bare: ParseUnitError,
    unknown: ParseUnitError,
) -> Result<u64, ParseUnitError> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim_start());
    let number = Decimal::read(number).ok_or(ParseUnitError::NoNumber)?;
    if unit.is_empty() {
        return Err(bare);
    }
    let (_, scale) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or(unknown)?;
    number.times(*scale)
}

/// The digits before and after the point.
struct Decimal<'a> {
    whole: &'a str,
    part: &'a str,
}

impl Decimal<'_> {
    /// Splits what consists of digits and points; `None` if it is not `digits[.digits]`.
    fn read(number: &str) -> Option<Decimal<'_>> {
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let wrong =
            whole.is_empty() || part.contains('.') || (number.contains('.') && part.is_empty());
        (!wrong).then_some(Decimal { whole, part })
    }

    /// The product with `scale`, exactly.
    fn times(&self, scale: u64) -> Result<u64, ParseUnitError> {
        let digits = |text: &str| {
            text.bytes().try_fold(0_u64, |value, digit| {
                value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
            })
        };
        let whole = digits(self.whole)
            .and_then(|whole| whole.checked_mul(scale))
            .ok_or(ParseUnitError::TooLarge)?;
        let part = self.part.trim_end_matches('0');
        let mut below = 0;
        if !part.is_empty() {
            let one = u32::try_from(part.len())
                .ok()
                .and_then(|places| 10_u128.checked_pow(places))
                .ok_or(ParseUnitError::NotWhole)?;
            let part = digits(part).ok_or(ParseUnitError::NotWhole)?;
            let scaled = u128::from(part) * u128::from(scale);
            if !scaled.is_multiple_of(one) {
                return Err(ParseUnitError::NotWhole);
            }
            // Less than `scale`, since the part is less than one.
            below = (scaled / one) as u64;
        }
        whole.checked_add(below).ok_or(ParseUnitError::TooLarge)
    }
}

/// Reads `100us`, `1.5ms`, `14d`: a number and one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`; at most
/// [`Nanos::LONGEST`].
impl FromStr for Nanos {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Nanos, ParseUnitError> {
        let nanos = parse(
            text,
            &DURATIONS,
            ParseUnitError::NoDurationUnit,
            ParseUnitError::UnknownDurationUnit,
        );
        match nanos.map(Nanos::from_nanos) {
            Ok(span) if span <= Nanos::LONGEST => Ok(span),
            Ok(_) | Err(ParseUnitError::TooLarge) => Err(ParseUnitError::TooLong),
            Err(error) => Err(error),
        }
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Bytes, ParseUnitError> {
        parse(
            text,
            &SIZES,
            ParseUnitError::NoSizeUnit,
            ParseUnitError::UnknownSizeUnit,
        )
        .map(Bytes)
    }
}

/// Reads `2`, `0.03`: digits, and at most six more behind a point.
impl FromStr for Millionths {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Millionths, ParseUnitError> {
        let text = text.trim();
        if !text
            .bytes()
            .all(|sign| sign.is_ascii_digit() || sign == b'.')
        {
            return Err(ParseUnitError::NotPlain);
        }
        let number = Decimal::read(text).ok_or(ParseUnitError::NotPlain)?;
        match number.times(Millionths::ONE.0) {
            Ok(millionths) => Ok(Millionths(millionths)),
            Err(ParseUnitError::NotWhole) => Err(ParseUnitError::TooFine),
            Err(error) => Err(error),
        }
    }
}

/// Writes the number without needless zeros: `2`, `0.03`.
impl fmt::Display for Millionths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut part) = (self.0 / Millionths::ONE.0, self.0 % Millionths::ONE.0);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let mut places = 6;
        while part.is_multiple_of(10) {
            part /= 10;
            places -= 1;
        }
        write!(f, "{whole}.{part:0places$}")
    }
}

/// Writes the size in the largest unit that divides it: `4KiB`, `500GB`, `1536B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = SIZES
            .into_iter()
            .rev()
            .filter(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit))
            .max_by_key(|(_, unit)| *unit)
            .unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(feature = "serde")]
mod serde_impls {
    use super::*;

    crate::serde_as_text!(Nanos, "a duration with its unit, such as \"30ms\"");
    crate::serde_as_text!(Bytes, "a size with its unit, such as \"4KiB\"");
    crate::serde_as_text!(Millionths, "a plain number in quotes, such as \"0.03\"");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::{String, ToString};

    #[test]
    fn reads_durations() {
        for (text, nanos) in [
            ("100us", 100_000),
            ("1.5ms", 1_500_000),
            ("30 ms", 30_000_000),
            ("14d", 1_209_600_000_000_000),
            ("0ns", 0),
            ("0.000000001s", 1),
            ("3650d", 315_360_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn reads_sizes() {
        for (text, bytes) in [
            ("4KiB", 4096),
            ("1GB", 1_000_000_000),
            ("1.5MiB", 1_572_864),
            ("512B", 512),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        assert_eq!(Bytes(4096).to_string(), "4KiB");
        assert_eq!(Bytes(1536).to_string(), "1536B");
        assert_eq!(Bytes(500_000_000_000).to_string(), "500GB");
        assert_eq!(Bytes(0).to_string(), "0B");
    }

    #[test]
    fn refuses_what_is_not_clear() {
        use ParseUnitError::*;
        for (text, error) in [
            ("30", NoDurationUnit),
            ("", NoNumber),
            ("ms", NoNumber),
            ("-3ms", NoNumber),
            (".5ms", NoNumber),
            ("1.ms", NoNumber),
            ("1.2.3ms", NoNumber),
            ("1 hour", UnknownDurationUnit),
            ("1.5ns", NotWhole),
            ("3650.1d", TooLong),
            ("315360000000000001us", TooLong),
            ("213503d", TooLong),
            ("999999999999d", TooLong),
        ] {
            assert_eq!(text.parse::<Nanos>(), Err(error), "{text}");
        }
        assert_eq!("4".parse::<Bytes>(), Err(NoSizeUnit));
        assert_eq!("4k".parse::<Bytes>(), Err(UnknownSizeUnit));
        for text in [
            "", ".", ".5", "1.", "1.2.3", "-1", "+1", "1e-3", "1ms", "0,5", "½",
        ] {
            assert_eq!(text.parse::<Millionths>(), Err(NotPlain), "{text}");
        }
        assert_eq!("0.0000001".parse::<Millionths>(), Err(TooFine));
        assert_eq!("18446744073710".parse::<Millionths>(), Err(TooLarge));
    }

    #[test]
    fn reads_plain_numbers() {
        for (text, millionths, written) in [
            ("0", 0, "0"),
            ("0.03", 30_000, "0.03"),
            (" 0.300 ", 300_000, "0.3"),
            ("0.000001", 1, "0.000001"),
            ("1.0000000", 1_000_000, "1"),
            ("10", 10_000_000, "10"),
            ("18446744073709.551615", u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(text.parse(), Ok(Millionths(millionths)), "{text}");
            assert_eq!(Millionths(millionths).to_string(), written);
        }
    }

    proptest! {
        #[test]
        fn durations_round_trip(nanos in 0..=Nanos::LONGEST.as_nanos()) {
            let span = Nanos::from_nanos(nanos);
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn sizes_round_trip(bytes in any::<u64>()) {
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }

        #[test]
        fn plain_numbers_round_trip(millionths in any::<u64>()) {
            let number = Millionths(millionths);
            prop_assert_eq!(number.to_string().parse(), Ok(number));
        }

        #[test]
        fn never_panics(text in prop_oneof![any::<String>(), "[0-9.]{0,25}[a-zA-Z]{0,3}"]) {
            let _ = text.parse::<Nanos>();
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Millionths>();
        }
    }
}
