//! Values as fio writes them.

use super::read::{File, Section, Setting};
use headtime_config::Error;
use headtime_units::Nanos;
use std::collections::BTreeMap;

/// The settings of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub file: &'a File,
    pub section: &'a Section,
    /// 1000 or 1024.
    kb_base: u64,
}

impl<'a> Values<'a> {
    pub fn new(file: &'a File, section: &'a Section) -> Result<Values<'a>, Error> {
        let mut values = Values {
            file,
            section,
            kb_base: 1024,
        };
        if let Some(base) = values.whole("kb_base", 1000, 1024)? {
            if base != 1000 && base != 1024 {
                return Err(values.error("kb_base", "allowed is 1000 or 1024"));
            }
            values.kb_base = base;
        }
        Ok(values)
    }

    pub fn get(self, key: &str) -> Option<&'a Setting> {
        self.section.settings.get(key)
    }

    pub fn text(self, key: &str) -> Option<&'a str> {
        self.get(key).map(|setting| setting.text.as_str())
    }

    /// The line of a key, or of the section.
    pub fn line(self, key: &str) -> usize {
        self.get(key)
            .map_or(self.section.line, |setting| setting.line)
    }

    /// An error about the value of a key.
    pub fn error(self, key: &str, problem: impl AsRef<str>) -> Error {
        let found = self
            .text(key)
            .map_or_else(String::new, |text| format!("`{text}`: "));
        let problem = format!("{found}{}", problem.as_ref());
        self.file.error(self.line(key), key, problem)
    }

    /// Reads the value of a key, if the key is there.
    fn read<T>(
        self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let value = self.text(key).map(read).transpose();
        value.map_err(|problem| self.error(key, problem))
    }

    pub fn whole(self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Error> {
        self.read(key, |text| match self.bytes_of(text) {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(format!("allowed is a whole number from {least} to {most}")),
        })
    }

    pub fn flag(self, key: &str) -> Result<bool, Error> {
        Ok(self.whole(key, 0, 1)? == Some(1))
    }

    pub fn bytes(self, key: &str) -> Result<Option<u64>, Error> {
        self.read(key, |text| self.bytes_of(text))
    }

    /// A number of bytes: decimal or 0x.., with a prefix such as k.
    pub fn bytes_of(self, text: &str) -> Result<u64, String> {
        const PREFIXES: &str = "kmgtp";
        if text.ends_with('%') {
            return Err("the size of the file is not known here; give bytes, as in 10g".to_owned());
        }
        let wrong = || "allowed is a number of bytes, as in 4096, 4k, 4KiB or 1g".to_owned();
        let lower = text.trim().to_ascii_lowercase();
        let (radix, digits) = match lower.strip_prefix("0x") {
            Some(digits) => (16, digits),
            None => (10, lower.as_str()),
        };
        let end = digits.find(|digit: char| !digit.is_digit(radix));
        let (digits, unit) = digits.split_at(end.unwrap_or(digits.len()));
        let number = u64::from_str_radix(digits, radix).map_err(|_| wrong())?;
        let (prefix, rest) = match unit.chars().next() {
            Some(letter) if letter != 'b' => unit.split_at(letter.len_utf8()),
            _ => ("", unit),
        };
        // fio takes 4kib, and only that, for the other base: 4000 bytes if 4k are 4096. So measured with fio 3.33.
        let base = match rest {
            "" | "b" | "i" => self.kb_base,
            "ib" => 2024 - self.kb_base,
            _ => return Err(wrong()),
        };
        let power = match PREFIXES.find(prefix) {
            Some(_) if prefix.is_empty() => 0,
            Some(at) => at as u32 + 1,
            None => return Err(wrong()),
        };
        let factor = base.checked_pow(power);
        let bytes = factor.and_then(|factor| number.checked_mul(factor));
        bytes
            .filter(|bytes| *bytes <= i64::MAX as u64)
            .ok_or_else(|| "is too large".to_owned())
    }

    /// A time, whose unit is `unit` if none is given.
    pub fn time(self, key: &str, unit: Nanos) -> Result<Option<Nanos>, Error> {
        self.read(key, |text| {
            let lower = text.to_ascii_lowercase();
            let end = lower.find(|digit: char| !digit.is_ascii_digit());
            let (digits, suffix) = lower.split_at(end.unwrap_or(lower.len()));
            let unit = match suffix.trim() {
                "" => unit,
                "d" => Nanos::from_secs(86_400),
                "h" => Nanos::from_secs(3_600),
                "m" => Nanos::from_secs(60),
                "s" | "sec" => Nanos::from_secs(1),
                "ms" | "msec" => Nanos::from_millis(1),
                "us" | "usec" => Nanos::from_micros(1),
                _ => Nanos::ZERO,
            };
            let number = digits.parse::<u64>().ok().filter(|_| !unit.is_zero());
            let time = number.and_then(|number| number.checked_mul(unit.as_nanos()));
            let time = time.filter(|time| *time <= TIME_MAX.as_nanos());
            let allowed = "allowed is one whole number with us, ms, s, m, h or d, at most 3650d";
            time.map(Nanos::from_nanos)
                .ok_or_else(|| allowed.to_owned())
        })
    }

    /// The values for reads and for writes, separated by a comma. One value is for both; a third, for trims, is ignored.
    pub fn both<T: Clone>(
        self,
        key: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<[Option<T>; 2], Error> {
        let Some(text) = self.text(key) else {
            return Ok([None, None]);
        };
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let part = |part: &str| match part {
            "" => Ok(None),
            part => read(part)
                .map(Some)
                .map_err(|problem| self.error(key, problem)),
        };
        match parts[..] {
            [""] => Err(self.error(key, "has no value")),
            [one] => part(one).map(|one| [one.clone(), one]),
            [reads, writes] | [reads, writes, _] => Ok([part(reads)?, part(writes)?]),
            _ => Err(self.error(
                key,
                "allowed are at most three values: reads, writes, trims",
            )),
        }
    }

    /// The given keys among these, in the order of the file.
    pub fn in_order<'k>(self, keys: &[&'k str]) -> Vec<&'k str> {
        let lines: BTreeMap<usize, &str> = keys
            .iter()
            .filter_map(|key| Some((self.get(key)?.line, *key)))
            .collect();
        lines.into_values().collect()
    }
}

/// The longest duration of a scenario.
const TIME_MAX: Nanos = Nanos::from_secs(3650 * 86_400);
