//! Fields of a line.

use crate::error::FieldError;
use crate::number::{self, Allowed, DATE_MAX, TIME_MAX};

/// Splits a line at blanks, from left to right.
pub(crate) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
}

/// A field, and the index of its first byte in the line, counted from 0.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub at: usize,
    pub text: &'a [u8],
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Fields<'a> {
        Fields { line, at: 0 }
    }

    /// Splits the part of a line from byte `at` on.
    pub(crate) fn behind(line: &'a [u8], at: usize) -> Fields<'a> {
        Fields { line, at }
    }

    /// Returns the next run of bytes without a blank. The run is empty at the end of the line.
    #[inline]
    pub(crate) fn next(&mut self) -> Field<'a> {
        let mut from = self.at;
        while from < self.line.len() && is_blank(self.line[from]) {
            from += 1;
        }
        let mut to = from;
        while to < self.line.len() && !is_blank(self.line[to]) {
            to += 1;
        }
        self.at = to;
        Field {
            at: from,
            text: &self.line[from..to],
        }
    }

    /// Returns the bytes behind the last field.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    /// Checks that nothing but blanks is left.
    #[inline]
    pub(crate) fn end(&mut self, allowed: &str) -> Result<(), Box<FieldError>> {
        let field = self.next();
        if field.text.is_empty() {
            Ok(())
        } else {
            Err(field.error("a further field", allowed))
        }
    }
}

impl<'a> Field<'a> {
    /// Returns the empty field at the end of a line.
    pub(crate) fn end(line: &'a [u8]) -> Field<'a> {
        Field {
            at: line.len(),
            text: b"",
        }
    }

    #[cold]
    pub(crate) fn error(self, name: &str, allowed: &str) -> Box<FieldError> {
        let missing = b"(nothing, the line ends)";
        let found: &[u8] = if self.text.is_empty() {
            missing
        } else {
            self.text
        };
        FieldError::new(self.at, name, found, allowed)
    }

    #[inline]
    pub(crate) fn unsigned(self, name: &str) -> Result<u64, Box<FieldError>> {
        number::unsigned(self.text).map_err(|Allowed(allowed)| self.error(name, allowed))
    }

    #[inline]
    pub(crate) fn unsigned_32(self, name: &str) -> Result<u32, Box<FieldError>> {
        let value = self.unsigned(name)?;
        u32::try_from(value).map_err(|_| self.error(name, "a whole number from 0 to 4294967295"))
    }

    /// Returns true if the field is a column of `line` in quotes.
    pub(crate) fn is_quoted(self, line: &[u8]) -> bool {
        self.at > 0 && line[self.at - 1] == b'"'
    }

    /// Reads a number of bytes, counted in units of `unit` bytes.
    #[inline(always)]
    pub(crate) fn bytes(self, name: &str, unit: u64) -> Result<u64, Box<FieldError>> {
        (self.unsigned(name)?)
            .checked_mul(unit)
            .ok_or_else(|| self.error(name, "an address of at most 64 bits of bytes"))
    }

    #[inline]
    pub(crate) fn hexadecimal(self, name: &str) -> Result<u32, Box<FieldError>> {
        number::hexadecimal(self.text).map_err(|Allowed(allowed)| self.error(name, allowed))
    }

    /// Reads a time that counts from the zero of the trace.
    #[inline]
    pub(crate) fn time(self, name: &str, unit: u64) -> Result<u64, Box<FieldError>> {
        number::time(self.text, unit, TIME_MAX)
            .map_err(|Allowed(allowed)| self.error(name, allowed))
    }

    /// Reads a time that may count from a calendar's zero.
    #[inline]
    pub(crate) fn date(self, name: &str, unit: u64) -> Result<u64, Box<FieldError>> {
        number::time(self.text, unit, DATE_MAX)
            .map_err(|Allowed(allowed)| self.error(name, allowed))
    }
}

/// Splits a line at separators, and removes blanks and quotes around columns.
///
/// A quoted column may contain the separator. A quote inside is doubled, and stays doubled. If the
/// separator is a blank, a run of blanks counts as one separator.
pub(crate) struct Columns<'a> {
    line: &'a [u8],
    at: usize,
    separator: u8,
    ended: bool,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(line: &'a [u8], separator: u8) -> Columns<'a> {
        Columns {
            line,
            at: 0,
            separator,
            ended: false,
        }
    }

    /// Returns the next column, or `None` after the last.
    ///
    /// # Errors
    ///
    /// If a quote is not closed, or something follows it.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>, Box<FieldError>> {
        if self.ended {
            return Ok(None);
        }
        let mut from = self.at;
        while from < self.line.len()
            && is_blank(self.line[from])
            && (self.line[from] != self.separator || self.separator == b' ')
        {
            from += 1;
        }
        if self.line.get(from) == Some(&b'"') {
            return self.quoted(from).map(Some);
        }
        if self.separator == b' ' && from == self.line.len() && self.at > 0 {
            self.ended = true;
            return Ok(None);
        }
        let rest = &self.line[from..];
        let len = match self.separator {
            b' ' => rest.iter().position(|byte| is_blank(*byte)),
            separator => rest.iter().position(|byte| *byte == separator),
        };
        self.ended = len.is_none();
        let to = from + len.unwrap_or(rest.len());
        self.at = to + 1;
        let mut text = &self.line[from..to];
        while let Some((last, others)) = text.split_last() {
            if !is_blank(*last) {
                break;
            }
            text = others;
        }
        Ok(Some(Field { at: from, text }))
    }

    /// Returns all columns that are left.
    pub(crate) fn all(mut self) -> Result<Vec<Field<'a>>, Box<FieldError>> {
        std::iter::from_fn(|| self.next().transpose()).collect()
    }

    /// Returns the column whose opening quote is at `from`.
    #[cold]
    fn quoted(&mut self, from: usize) -> Result<Field<'a>, Box<FieldError>> {
        let open = Field {
            at: from,
            text: &self.line[from..],
        };
        let mut to = from + 1;
        loop {
            match self.line.get(to) {
                None => return Err(open.error("a quoted column", "a quote at its end")),
                Some(b'"') if self.line.get(to + 1) == Some(&b'"') => to += 2,
                Some(b'"') => break,
                Some(_) => to += 1,
            }
        }
        let field = Field {
            at: from + 1,
            text: &self.line[from + 1..to],
        };
        let behind = self.line[to + 1..]
            .iter()
            .position(|byte| *byte == self.separator || !is_blank(*byte));
        match behind.map(|behind| to + 1 + behind) {
            None => self.ended = true,
            Some(at) if self.line[at] == self.separator => self.at = at + 1,
            Some(_) => {
                return Err(open.error("a quoted column", "a separator behind the closing quote"));
            }
        }
        Ok(field)
    }
}

/// The words of a line with the places where they start.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut fields = Fields::new(line);
    std::iter::from_fn(move || {
        let field = fields.next();
        (!field.text.is_empty()).then_some((field.at, field.text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(line: &str, separator: u8) -> Result<Vec<String>, String> {
        let mut columns = Columns::new(line.as_bytes(), separator);
        let mut found = Vec::new();
        while let Some(field) = columns
            .next()
            .map_err(|error| format!("{} {} {}", error.column, error.found, error.allowed))?
        {
            found.push(String::from_utf8_lossy(field.text).into_owned());
        }
        Ok(found)
    }

    #[test]
    fn columns_are_split_at_separators_outside_of_quotes() {
        for (line, separator, expected) in [
            ("a,b,,c", b',', vec!["a", "b", "", "c"]),
            (" a , b ,", b',', vec!["a", "b", ""]),
            ("", b',', vec![""]),
            ("a\t\tb", b'\t', vec!["a", "", "b"]),
            ("  a \t b  c ", b' ', vec!["a", "b", "c"]),
            ("\"a,b\" ,\"c\"\"d\",e", b',', vec!["a,b", "c\"\"d", "e"]),
            ("\"a\"", b',', vec!["a"]),
            ("x,\"\"", b',', vec!["x", ""]),
        ] {
            assert_eq!(columns(line, separator).unwrap(), expected, "{line:?}");
        }
        assert_eq!(
            columns("a,\"b", b',').unwrap_err(),
            "3 \"b a quote at its end"
        );
        assert_eq!(
            columns("\"b\"c,d", b',').unwrap_err(),
            "1 \"b\"c,d a separator behind the closing quote"
        );
    }

    proptest! {
        #[test]
        fn splitting_any_line_ends(line in prop::collection::vec(any::<u8>(), 0..40), separator in any::<u8>()) {
            let mut columns = Columns::new(&line, separator);
            let mut count = 0;
            while let Ok(Some(field)) = columns.next() {
                prop_assert!(field.at + field.text.len() <= line.len());
                count += 1;
                prop_assert!(count <= line.len() + 1);
            }
        }
    }
}
