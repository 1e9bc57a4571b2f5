//! Lines of a byte stream, without a copy per line.

use std::io::{self, Read};
use std::ops::Range;

/// Longest line accepted, in bytes, without its line end.
pub const LINE_MAX: usize = 64 * 1024;

const BUFFER: usize = 2 * LINE_MAX;

/// Reason why there is no next line.
#[derive(Debug)]
pub(crate) enum LineError {
    /// Reading failed.
    Read {
        /// Bytes read before the error.
        offset: u64,
        /// Error of the reader.
        source: io::Error,
    },
    /// The line with this number is longer than [`LINE_MAX`].
    TooLong {
        /// Number of the line, counted from 1.
        line: u64,
    },
}

/// Splits a stream into lines.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    ended: bool,
    line: u64,
    current: Range<usize>,
    /// Bytes taken from `input`.
    offset: u64,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R) -> Lines<R> {
        Lines {
            input,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            ended: false,
            line: 0,
            current: 0..0,
            offset: 0,
        }
    }

    /// Number of the current line, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The stream, whose position the caller may ask for.
    pub(crate) fn input(&self) -> &R {
        &self.input
    }

    /// Returns the next bytes without taking them: at least [`LINE_MAX`], or all that are left. The
    /// current line is lost.
    pub(crate) fn sample(&mut self) -> Result<&[u8], LineError> {
        while !self.ended && self.end - self.start < LINE_MAX {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Skips `mark` if the next bytes begin with it.
    pub(crate) fn skip(&mut self, mark: &[u8]) -> Result<(), LineError> {
        if self.sample()?.starts_with(mark) {
            self.start += mark.len();
        }
        Ok(())
    }

    /// Moves to the next line. Returns `false` at the end. The last line may lack its line end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool, LineError> {
        let mut searched = self.start;
        let (from, to) = loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let from = self.start;
                self.start = searched + at + 1;
                break (from, searched + at);
            }
            if self.ended {
                if self.start == self.end {
                    return Ok(false);
                }
                let from = self.start;
                self.start = self.end;
                break (from, self.end);
            }
            if self.end - self.start > LINE_MAX + 1 {
                return Err(LineError::TooLong {
                    line: self.line + 1,
                });
            }
            let unsearched = self.end - self.start;
            self.fill()?;
            searched = self.start + unsearched;
        };
        let line = &self.buffer[from..to];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LINE_MAX {
            self.start = from;
            return Err(LineError::TooLong {
                line: self.line + 1,
            });
        }
        self.line += 1;
        self.current = from..from + line.len();
        Ok(true)
    }

    /// Skips the rest of a line that is too long.
    pub(crate) fn skip_line(&mut self) -> Result<(), LineError> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                break;
            }
            self.start = self.end;
            if self.ended {
                break;
            }
            self.fill()?;
        }
        self.line += 1;
        Ok(())
    }

    /// Takes the next `count` bytes, at most [`LINE_MAX`]. Returns fewer at the end.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&[u8], LineError> {
        while !self.ended && self.end - self.start < count {
            self.fill()?;
        }
        let from = self.start;
        self.start = self.end.min(from + count);
        Ok(&self.buffer[from..self.start])
    }

    /// Returns the line that [`Lines::advance`] moved to, without its `\n` or `\r\n`.
    #[inline]
    pub(crate) fn current(&self) -> &[u8] {
        &self.buffer[self.current.clone()]
    }

    /// Reads more bytes. If the buffer has no room at its end, the remaining bytes move to the front.
    fn fill(&mut self) -> Result<(), LineError> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(bytes) => {
                    self.end += bytes;
                    self.offset += bytes as u64;
                    return Ok(());
                }
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(LineError::Read {
                        offset: self.offset,
                        source,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reader that gives at most `step` bytes at a time.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let bytes = self.1.min(into.len()).min(self.0.len());
            into[..bytes].copy_from_slice(&self.0[..bytes]);
            self.0 = &self.0[bytes..];
            Ok(bytes)
        }
    }

    fn all(text: &[u8], step: usize) -> Result<Vec<Vec<u8>>, LineError> {
        let mut lines = Lines::new(Dribble(text, step));
        let mut out = Vec::new();
        while lines.advance()? {
            out.push(lines.current().to_vec());
        }
        Ok(out)
    }

    #[test]
    fn lines_end_at_newlines_and_at_the_end_of_the_file() {
        let lines = all(b"a\r\n\nb\n\rc\r\nlast", 1).unwrap();
        assert_eq!(lines, [&b"a"[..], b"", b"b", b"\rc", b"last"]);
        assert!(all(b"", 1).unwrap().is_empty());
        assert_eq!(all(b"\n", 1).unwrap(), [b""]);
    }

    #[test]
    fn a_line_may_fill_the_limit_but_not_pass_it() {
        let mut text = vec![b'x'; LINE_MAX];
        text.push(b'\n');
        text.extend_from_slice(b"y\n");
        assert_eq!(all(&text, usize::MAX).unwrap().len(), 2);
        text.insert(0, b'x');
        assert!(matches!(
            all(&text, usize::MAX),
            Err(LineError::TooLong { line: 1 })
        ));
        // A stream without any line end does not fill the memory.
        assert!(matches!(
            all(&vec![b'x'; 10 * LINE_MAX], 1000),
            Err(LineError::TooLong { line: 1 })
        ));
    }

    #[test]
    fn a_sample_leaves_the_lines_to_be_read() {
        let mut lines = Lines::new(Dribble(b"one\ntwo\n", 2));
        assert_eq!(lines.sample().unwrap(), b"one\ntwo\n");
        assert!(lines.advance().unwrap());
        assert_eq!(lines.current(), b"one");
        assert_eq!(lines.number(), 1);
    }

    proptest! {
        #[test]
        fn lines_are_those_of_splitting_the_whole_text(
            lines in prop::collection::vec("[a-z]{0,200}", 0..50),
            step in 1_usize..100,
        ) {
            let mut text = lines.join("\n").into_bytes();
            if !text.is_empty() || lines.len() > 1 {
                text.push(b'\n');
            }
            let found = all(&text, step).unwrap();
            let expected: Vec<Vec<u8>> = if text.is_empty() {
                Vec::new()
            } else {
                lines.iter().map(|line| line.clone().into_bytes()).collect()
            };
            prop_assert_eq!(found, expected);
        }
    }
}
