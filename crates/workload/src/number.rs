//! Parses numbers from bytes without rounding errors.
//!
//! The standard parsers require UTF-8 and use floats for a decimal point. The parsers here take bytes
//! and use only integers. An error describes the allowed numbers in words that follow "allowed is".

use headtime_units::Nanos;

/// Largest span that a trace may hold, in nanoseconds: 2⁶³ − 1, about 292 years. The upper half of the
/// range is left for sums.
pub(crate) const TIME_MAX: u64 = i64::MAX as u64;

/// Largest time from an unknown zero, in nanoseconds: about 584 years. Dates of any calendar fit, until
/// the first date is subtracted.
pub(crate) const DATE_MAX: u64 = u64::MAX - 1;

/// Description of the numbers that are allowed, as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowed(pub &'static str);

const UNSIGNED: Allowed = Allowed("a whole number from 0 to 18446744073709551615");
const DECIMAL: Allowed = Allowed("a decimal number such as 12, 12.5 or 1.25e3");
const NOT_NEGATIVE: Allowed = Allowed("a number of 0 or more");
const TIME_RANGE: Allowed = Allowed("a time of at most 292 years (584 for a date)");

/// Parses a whole number in decimal digits.
pub(crate) fn unsigned(text: &[u8]) -> Result<u64, Allowed> {
    if text.is_empty() {
        return Err(UNSIGNED);
    }
    let mut value = 0_u64;
    // Nineteen digits always fit. Further digits are checked.
    for (index, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(UNSIGNED);
        }
        value = if index < 19 {
            value * 10 + u64::from(digit)
        } else {
            value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u64::from(digit)))
                .ok_or(UNSIGNED)?
        };
    }
    Ok(value)
}

/// Parses a whole number in hexadecimal digits, with or without `0x`.
pub(crate) fn hexadecimal(text: &[u8]) -> Result<u32, Allowed> {
    const HEX: Allowed = Allowed("a hexadecimal number of at most 8 digits");
    let digits = text
        .strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
        .unwrap_or(text);
    if digits.is_empty() || digits.len() > 8 {
        return Err(HEX);
    }
    digits.iter().try_fold(0_u32, |value, byte| {
        let digit = char::from(*byte).to_digit(16).ok_or(HEX)?;
        Ok(value << 4 | digit)
    })
}

/// Parses a time of `text` units of `unit` nanoseconds each. The result is rounded to the nearest
/// nanosecond, half up, and is at most `most` nanoseconds.
#[inline]
pub(crate) fn time(text: &[u8], unit: u64, most: u64) -> Result<u64, Allowed> {
    quick_time(text, unit)
        .map_or_else(|| slow_time(text, unit), Ok)
        .and_then(|nanos| {
            if nanos <= most {
                Ok(nanos)
            } else {
                Err(TIME_RANGE)
            }
        })
}

/// Returns true if a number that [`time`] accepts is an integer.
pub(crate) fn is_integer(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

const POWERS: [u64; 10] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Parses the common case: few digits on both sides of the point, and a whole number of nanoseconds.
/// `None` leaves the number to [`slow_time`].
fn quick_time(text: &[u8], unit: u64) -> Option<u64> {
    let mut digits = 0_u64;
    let mut point = None;
    if text.len() > 19 {
        return None;
    }
    for (index, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            digits = digits * 10 + u64::from(digit);
        } else if *byte == b'.' && point.is_none() {
            point = Some(index);
        } else {
            return None;
        }
    }
    let places = match point {
        None => 0,
        Some(index) if index > 0 => text.len() - 1 - index,
        Some(_) => return None,
    };
    let scale = *POWERS.get(places)?;
    if text.is_empty() || !unit.is_multiple_of(scale) {
        return None;
    }
    digits.checked_mul(unit / scale)
}

/// Parses any decimal number, with sign and exponent.
fn slow_time(text: &[u8], unit: u64) -> Result<u64, Allowed> {
    let (negative, text) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let split = text
        .iter()
        .position(|byte| matches!(byte, b'e' | b'E'))
        .unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(split);
    let mut exponent = exponent
        .get(1..)
        .map_or(Ok(0), |digits| signed(digits).ok_or(DECIMAL))?;

    // Digits after the 28th only change the exponent. Rounding half up does not depend on them.
    const DIGITS_MAX: u32 = 28;
    let (mut value, mut kept, mut seen, mut point) = (0_u128, 0, 0_u32, false);
    for byte in mantissa {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            seen += 1;
            if kept < DIGITS_MAX {
                value = value * 10 + u128::from(digit);
                kept += u32::from(value > 0);
                exponent -= i64::from(point);
            } else {
                exponent += i64::from(!point);
            }
        } else if *byte == b'.' && !point {
            point = true;
        } else {
            return Err(DECIMAL);
        }
    }
    if seen == 0 {
        return Err(DECIMAL);
    }
    if negative && value > 0 {
        return Err(NOT_NEGATIVE);
    }
    let value = value * u128::from(unit);
    let nanos = if value == 0 {
        0
    } else if exponent >= 0 {
        u32::try_from(exponent)
            .ok()
            .and_then(|exponent| 10_u128.checked_pow(exponent))
            .and_then(|scale| value.checked_mul(scale))
            .ok_or(TIME_RANGE)?
    } else {
        u32::try_from(-exponent)
            .ok()
            .and_then(|exponent| 10_u128.checked_pow(exponent))
            .map_or(0, |scale| (value + scale / 2) / scale)
    };
    u64::try_from(nanos).map_err(|_| TIME_RANGE)
}

/// Parses a whole number with a sign, small enough for an exponent.
fn signed(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.split_first()? {
        (b'-', rest) => (-1, rest),
        (b'+', rest) => (1, rest),
        _ => (1, text),
    };
    let value = unsigned(digits).ok()?;
    // A larger exponent exceeds every range or rounds to zero.
    Some(sign * i64::try_from(value.min(1_000_000)).ok()?)
}

/// Writes `nanos` as milliseconds with six decimal places, as DiskSim writes arrivals.
pub(crate) fn write_millis(nanos: Nanos, out: &mut Vec<u8>) {
    let nanos = nanos.as_nanos();
    write_unsigned(nanos / 1_000_000, out);
    out.push(b'.');
    let (mut rest, mut place) = (nanos % 1_000_000, 100_000);
    while place > 0 {
        out.push(b'0' + (rest / place) as u8);
        rest %= place;
        place /= 10;
    }
}

/// Writes `value` in decimal digits.
pub(crate) fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut value = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn decimal_times_are_exact_to_the_nanosecond() {
        for (text, unit, nanos) in [
            ("13.191135", MS, 13_191_135),
            ("1532949.045363", MS, 1_532_949_045_363),
            ("0", MS, 0),
            ("-0.0", MS, 0),
            (".5", MS, 500_000),
            ("5.", MS, 5_000_000),
            ("+7", 1, 7),
            ("1.5e3", MS, 1_500_000_000),
            ("2.5E-06", 1_000_000_000, 2_500),
            ("0.4", 1, 0),
            ("0.5", 1, 1),
            ("1.49999999999999999999999999999999999999", 1, 1),
            (
                "0.00000000000000000000000000000000000000000000000000009",
                MS,
                0,
            ),
            (
                "00000000000000000000000000000000000000000000012.5",
                MS,
                12_500_000,
            ),
        ] {
            assert_eq!(time(text.as_bytes(), unit, TIME_MAX), Ok(nanos), "{text}");
        }
        assert_eq!(time(b"9223372036854775807", 1, TIME_MAX), Ok(TIME_MAX));
        let date = time(b"128166372003061629", 100, DATE_MAX);
        assert_eq!(date, Ok(12_816_637_200_306_162_900));
    }

    #[test]
    fn what_is_not_a_time_says_so() {
        for (text, allowed) in [
            ("", DECIMAL),
            (".", DECIMAL),
            ("-", DECIMAL),
            ("1.2.3", DECIMAL),
            ("1e", DECIMAL),
            ("e5", DECIMAL),
            ("nan", DECIMAL),
            ("12,5", DECIMAL),
            ("-1", NOT_NEGATIVE),
            ("-0.001", NOT_NEGATIVE),
            ("1e300", TIME_RANGE),
            ("1e99999999999999999999", DECIMAL),
            ("9223372036854775808", TIME_RANGE),
            (
                "99999999999999999999999999999999999999999999999999",
                TIME_RANGE,
            ),
        ] {
            assert_eq!(time(text.as_bytes(), 1, TIME_MAX), Err(allowed), "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_read_up_to_their_limits() {
        assert_eq!(unsigned(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(unsigned(b"18446744073709551616"), Err(UNSIGNED));
        assert_eq!(unsigned(b"000000000000000000000000001"), Ok(1));
        assert_eq!(unsigned(b"-1"), Err(UNSIGNED));
        assert_eq!(hexadecimal(b"1F"), Ok(31));
        assert_eq!(hexadecimal(b"0x1"), Ok(1));
        assert!(hexadecimal(b"").is_err() && hexadecimal(b"123456789").is_err());
    }

    proptest! {
        #[test]
        fn written_milliseconds_are_read_back_exactly(nanos in 0..=TIME_MAX) {
            let mut text = Vec::new();
            write_millis(Nanos::from_nanos(nanos), &mut text);
            prop_assert_eq!(time(&text, MS, TIME_MAX), Ok(nanos));
        }

        #[test]
        fn fast_and_slow_parsing_of_a_time_agree(
            text in "[0-9]{1,12}(\\.[0-9]{0,9})?",
            unit in prop::sample::select(vec![1, 100, 1_000, MS, 1_000_000_000]),
        ) {
            if let Some(nanos) = quick_time(text.as_bytes(), unit) {
                prop_assert_eq!(slow_time(text.as_bytes(), unit), Ok(nanos));
            }
        }

        #[test]
        fn written_whole_numbers_are_read_back(value in any::<u64>()) {
            let mut text = Vec::new();
            write_unsigned(value, &mut text);
            prop_assert_eq!(unsigned(&text), Ok(value));
        }

        #[test]
        fn no_bytes_make_a_parser_panic(text in prop::collection::vec(any::<u8>(), 0..60), unit in 1..=1_000_000_000_u64) {
            let _ = time(&text, unit, TIME_MAX);
            let _ = unsigned(&text);
            let _ = hexadecimal(&text);
        }
    }
}
