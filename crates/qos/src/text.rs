//! Text files in which damage is detected: a first line with kind and version, keys, rows, and a last line with a checksum.

use std::fmt::Write as _;
use std::str::{FromStr, Lines as StrLines};
use thiserror::Error;
use twox_hash::XxHash64;

/// Reason why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct TextError {
    /// Line of the text, counted from 1.
    pub line: u64,
    /// The problem, with the key, the allowed values, and the remedy.
    pub problem: String,
}

/// Largest length of the name of a site or a program, in bytes.
const NAME_MAX: usize = 200;

/// Returns true if a text can be the name of a site or a program: 1 to 200 bytes, no control character, no space at either
/// end.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name.trim() == name
        && !name.chars().any(char::is_control)
}

/// Allowed names, for messages.
pub(crate) const NAMES: &str =
    "1 to 200 bytes without control characters and without a space at either end";

/// First line of a text of this kind and version.
pub(crate) fn first_line(kind: &str, version: u32) -> String {
    format!("headtime-{kind} {version}\n")
}

/// Appends the last line: the number of earlier lines, and their checksum.
pub(crate) fn seal(text: &mut String) {
    let (lines, hash) = (text.lines().count(), XxHash64::oneshot(0, text.as_bytes()));
    writeln!(text, "end {lines} {hash:016x}").expect("a string takes all text");
}

/// Reads a text line by line.
pub(crate) struct Lines<'a> {
    text: &'a str,
    lines: StrLines<'a>,
    /// Lines read.
    read: u64,
    kind: &'static str,
}

impl<'a> Lines<'a> {
    /// Reads the first line of a text of a kind and version.
    pub fn open(text: &'a str, kind: &'static str, version: u32) -> Result<Lines<'a>, TextError> {
        let mut lines = Lines {
            text,
            lines: text.lines(),
            read: 0,
            kind,
        };
        let first = lines.next()?;
        match first
            .strip_prefix("headtime-")
            .and_then(|first| first.split_once(' '))
        {
            Some((found, number)) if found == kind => match number.parse::<u32>() {
                Ok(found) if found == version => Ok(lines),
                _ => Err(lines.error(format!(
                    "version `{number}` of a {kind}; this program reads version {version}"
                ))),
            },
            _ => Err(lines.error(format!(
                "no {kind}: the first line of a {kind} is `headtime-{kind} {version}`"
            ))),
        }
    }

    /// Error in the last line that was read.
    pub fn error(&self, problem: impl Into<String>) -> TextError {
        TextError {
            line: self.read.max(1),
            problem: problem.into(),
        }
    }

    /// The next line.
    pub fn next(&mut self) -> Result<&'a str, TextError> {
        let line = self.lines.next();
        self.read += 1;
        line.ok_or_else(|| self.cut_off())
    }

    fn cut_off(&self) -> TextError {
        self.error(format!(
            "the {} is cut off: its last line is not `end`; copy the file again or make it anew",
            self.kind
        ))
    }

    /// The value of the next line, which must be `key = value`. Returns an error for a value that `value` refuses.
    pub fn key<T>(
        &mut self,
        key: &str,
        allowed: &str,
        value: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, TextError> {
        let line = self.next()?;
        let (found, text) = line.split_once(" = ").unwrap_or((line, ""));
        if found != key {
            return Err(self.error(format!("`{line}` stands in place of the key `{key}`")));
        }
        value(text).ok_or_else(|| self.error(format!("{key} is `{text}`; allowed: {allowed}")))
    }

    /// Reads the next line as [`Lines::key`] does, with any value of a type.
    pub fn value<T: FromStr>(&mut self, key: &str, allowed: &str) -> Result<T, TextError> {
        self.key(key, allowed, |text| text.parse().ok())
    }

    /// Checks that the line read last, `line`, and the end of the text are as [`seal`] left them.
    pub fn finish(mut self, line: &str) -> Result<(), TextError> {
        let mut words = line.split(' ').skip(1);
        let count = words.next().and_then(|word| word.parse::<u64>().ok());
        let hash = words
            .next()
            .and_then(|word| u64::from_str_radix(word, 16).ok());
        let (Some(count), Some(hash), None) = (count, hash, words.next()) else {
            return Err(self.cut_off());
        };
        let whole = self.text.strip_suffix('\n').unwrap_or(self.text);
        let body = &whole[..whole.rfind('\n').map_or(0, |at| at + 1)];
        if self.lines.next().is_some() {
            self.read += 1;
            return Err(self.error("text behind the last line, `end`"));
        }
        if count.checked_add(1) != Some(self.read) || hash != XxHash64::oneshot(0, body.as_bytes())
        {
            return Err(self.error(format!(
                "the {} is damaged: its checksum differs, so an earlier line has changed; copy the file again or make it anew",
                self.kind
            )));
        }
        Ok(())
    }
}

/// A finite number.
pub(crate) fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(lines: &str) -> String {
        let mut text = first_line("profile", 1) + lines;
        seal(&mut text);
        text
    }

    fn read(text: &str) -> Result<u32, TextError> {
        let mut lines = Lines::open(text, "profile", 1)?;
        let value = lines.value("servers", "whole numbers")?;
        let last = lines.next()?;
        lines.finish(last)?;
        Ok(value)
    }

    #[test]
    fn a_sealed_text_is_read_and_each_damage_is_an_error_with_its_line() {
        let good = sealed("servers = 9\n");
        assert_eq!(read(&good), Ok(9));
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("").starts_with("line 1: the profile is cut off"));
        assert!(error("mouse\n").starts_with(
            "line 1: no profile: the first line of a profile is `headtime-profile 1`"
        ));
        assert!(
            error(&good.replace("profile 1", "profile 2"))
                .starts_with("line 1: version `2` of a profile; this program")
        );
        assert_eq!(
            error(&sealed("servers = x\n")),
            "line 2: servers is `x`; allowed: whole numbers"
        );
        assert!(
            error(&sealed("server = 9\n"))
                .contains("line 2: `server = 9` stands in place of the key `servers`")
        );
        assert!(error(&good.replace('9', "8")).starts_with("line 3: the profile is damaged"));
        assert!(error(&(good.clone() + "more\n")).starts_with("line 4: text behind"));
        for end in 0..good.len() - 1 {
            assert!(read(&good[..end]).is_err(), "cut off at byte {end}");
        }
    }

    #[test]
    fn names_have_no_line_breaks_and_no_space_at_the_ends() {
        for good in ["a", "mpi io", "größe"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", " a", "a ", "a\nb", &"a".repeat(201)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
