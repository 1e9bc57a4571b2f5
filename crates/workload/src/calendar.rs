//! Parses dates and times of day from bytes.

use crate::number::{self, Allowed, TIME_MAX};
use std::ops::RangeInclusive;

const SECOND: u64 = 1_000_000_000;

const DATE: Allowed = Allowed(
    "a date from 1970 to 2261 such as 2024-01-15, 2024-01-15 10:30:45.123456 or 2024-01-15T10:30:45Z",
);
/// Years of which each nanosecond is below 2^63 since 1970.
const YEARS: RangeInclusive<u64> = 1970..=2261;
const CLOCK: Allowed = Allowed("a time of day such as 10:30:45.123456");

/// Returns the nanoseconds from 1970 to a date (ISO 8601, with `/` allowed for `-`). A time of day may
/// follow a blank or `T`. A time zone may follow the time of day, and is subtracted. Without a zone the
/// time is UTC.
pub(crate) fn date(text: &[u8]) -> Result<u64, Allowed> {
    const DAYS: [u64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (day, rest) = text.split_at_checked(10).ok_or(DATE)?;
    let part = |digits: &[u8]| number::unsigned(digits).map_err(|_| DATE);
    let (year, month, date) = (part(&day[..4])?, part(&day[5..7])?, part(&day[8..])?);
    let separated = matches!(day[4], b'-' | b'/') && day[4] == day[7];
    let days_of_month = DAYS.get((month as usize).wrapping_sub(1));
    if !separated
        || !YEARS.contains(&year)
        || date == 0
        || days_of_month.is_none_or(|days| date > *days)
    {
        return Err(DATE);
    }
    // Years are counted from March, so that a leap day ends its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let since_year_0 = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5;
    let midnight = (since_year_0 + date - 1 - 719_468) * 86_400 * SECOND;
    let Some((separator, rest)) = rest.split_first() else {
        return Ok(midnight);
    };
    if !matches!(separator, b' ' | b'T' | b't') {
        return Err(DATE);
    }
    let (time, zone) = match rest
        .iter()
        .position(|byte| matches!(byte, b'Z' | b'+' | b'-'))
    {
        Some(at) => rest.split_at(at),
        None => (rest, &b""[..]),
    };
    let local = midnight.checked_add(clock(time)?).ok_or(DATE)?;
    match zone.split_first() {
        None | Some((b'Z', [])) => Ok(local),
        Some((sign @ (b'+' | b'-'), [hours @ .., b':', tens, ones])) => {
            let minutes = part(&[*tens, *ones])?.min(59);
            let offset = (part(hours)?.min(99) * 60 + minutes) * 60 * SECOND;
            let utc = if *sign == b'+' {
                local.checked_sub(offset)
            } else {
                local.checked_add(offset)
            };
            utc.ok_or(DATE)
        }
        _ => Err(DATE),
    }
}

/// Returns the nanoseconds from midnight to a time such as `10:30:45.123456`.
pub(crate) fn clock(text: &[u8]) -> Result<u64, Allowed> {
    let mut parts = text.splitn(3, |byte| *byte == b':');
    let mut next = |most: u64| {
        let part = parts.next().and_then(|part| number::unsigned(part).ok());
        part.filter(|part| *part <= most).ok_or(CLOCK)
    };
    let minutes = next(24)? * 60 + next(59)?;
    let seconds = number::time(parts.next().ok_or(CLOCK)?, SECOND, TIME_MAX);
    // 60 is a leap second.
    let seconds = seconds.ok().filter(|nanos| *nanos < 61 * SECOND);
    Ok(minutes * 60 * SECOND + seconds.ok_or(CLOCK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_from_1970() {
        for (text, seconds, nanos) in [
            ("1970-01-01", 0, 0),
            ("2000-02-29", 951_782_400, 0),
            ("2024-01-15 10:30:45.123456", 1_705_314_645, 123_456_000),
            ("2024/03/01T00:00:00Z", 1_709_251_200, 0),
            ("2024-01-15T12:30:45+02:00", 1_705_314_645, 0),
            ("2024-01-15T05:00:45-05:30", 1_705_314_645, 0),
            ("2261-12-31T23:59:59Z", 9_214_646_399, 0),
        ] {
            assert_eq!(
                date(text.as_bytes()),
                Ok(seconds * SECOND + nanos),
                "{text}"
            );
        }
        assert_eq!(clock(b"23:59:60.5"), Ok(86_400 * SECOND + SECOND / 2));
    }

    #[test]
    fn what_is_no_date_says_so() {
        for text in [
            "",
            "2024",
            "2024-1-15",
            "2024-13-01",
            "2024-00-01",
            "2024-04-31",
            "1969-12-31",
            "2262-01-01",
            "9999-12-31 23:59:59",
            "2024-01/15",
            "2024-01-15 10:30",
            "2024-01-15x10:30:45",
            "2024-01-15 25:00:00",
            "2024-01-15 10:30:45+2",
            "2024-01-15 10:30:99",
            "1970-01-01 00:00:00+01:00",
            "15.01.2024",
            "2024-01-15 10:30:45Zx",
        ] {
            assert!(date(text.as_bytes()).is_err(), "{text}");
        }
    }
}
