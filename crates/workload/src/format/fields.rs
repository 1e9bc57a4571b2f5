//! Fields of a line.

use crate::error::FieldError;
use crate::number::{self, Allowed};

/// A line that is taken apart from left to right at blanks.
pub(crate) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
}

/// A field and where in the line it starts, counted from 0.
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

    /// The next run of bytes without a blank; empty at the end of the line.
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

    /// Nothing but blanks is left.
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

impl Field<'_> {
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

    #[inline]
    pub(crate) fn hexadecimal(self, name: &str) -> Result<u32, Box<FieldError>> {
        number::hexadecimal(self.text).map_err(|Allowed(allowed)| self.error(name, allowed))
    }

    #[inline]
    pub(crate) fn time(self, name: &str, unit: u64) -> Result<u64, Box<FieldError>> {
        number::time(self.text, unit).map_err(|Allowed(allowed)| self.error(name, allowed))
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
