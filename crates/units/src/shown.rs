//! Text from elsewhere, made safe for our messages: names that clients send, paths, messages of the kernel.
//!
//! A line break in such a text would forge a message of ours. An escape sequence would control the
//! terminal of the reader.

use core::fmt::{self, Write};

/// The most characters of a text that [`Shown`] writes.
pub const SHOWN_MAX: usize = 128;

/// A text within quotes of ours: escaped as in a string of Rust, and cut if it is long.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, char) in self.0.chars().enumerate() {
            if count == SHOWN_MAX {
                return write!(f, "...({} bytes)", self.0.len());
            }
            match char {
                // Else what follows them could pass for the rest of the message.
                '"' | '\\' => write!(f, "\\{char}")?,
                _ => escaped(f, char)?,
            }
        }
        Ok(())
    }
}

/// Writer that passes on at most a number of bytes on one line. Escapes characters that would leave the line.
///
/// The writer leaves escapes and quotes as they are, since it is for whole messages.
#[derive(Debug)]
pub struct OneLine<W> {
    to: W,
    left: usize,
    is_cut: bool,
}

impl<W: Write> OneLine<W> {
    /// A writer with room for `bytes` bytes.
    pub fn new(to: W, bytes: usize) -> OneLine<W> {
        OneLine {
            to,
            left: bytes,
            is_cut: false,
        }
    }

    /// Returns true if some text did not fit.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// Leaves out text that does not fit, without an error.
impl<W: Write> Write for OneLine<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            let len = match is_plain(char) {
                true => char.len_utf8(),
                false => char.escape_default().len(),
            };
            self.is_cut |= len > self.left;
            if self.is_cut {
                break;
            }
            self.left -= len;
            escaped(&mut self.to, char)?;
        }
        Ok(())
    }
}

fn escaped(out: &mut impl Write, char: char) -> fmt::Result {
    match is_plain(char) {
        true => out.write_char(char),
        false => write!(out, "{}", char.escape_default()),
    }
}

/// Returns true if a character stays in its place. Such a character does not end the line or control the terminal. It
/// leaves the order of the text around it, unlike the bidirectional marks of Unicode.
pub fn is_plain(char: char) -> bool {
    let moves = matches!(
        char,
        '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    );
    !char.is_control() && !moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::ToOwned;
    use std::format;
    use std::string::{String, ToString};

    fn within(text: &str, bytes: usize) -> (String, bool) {
        let mut out = String::new();
        let mut line = OneLine::new(&mut out, bytes);
        line.write_str(text).unwrap();
        let is_cut = line.is_cut();
        (out, is_cut)
    }

    #[test]
    fn a_name_cannot_end_its_line_nor_its_quotes() {
        for (name, shown) in [
            ("", ""),
            ("disk0", "disk0"),
            ("Größe 磁盘", "Größe 磁盘"),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\u{0}"),
            ("\u{1b}[31m\u{7f}\u{9b}31m", "\\u{1b}[31m\\u{7f}\\u{9b}31m"),
            ("x\" and \\n", "x\\\" and \\\\n"),
            ("\u{202e}abc\u{2028}", "\\u{202e}abc\\u{2028}"),
        ] {
            assert_eq!(Shown(name).to_string(), shown);
        }
    }

    #[test]
    fn a_long_name_is_cut_and_its_length_said() {
        let fits = "x".repeat(SHOWN_MAX);
        assert_eq!(Shown(&fits).to_string(), fits);
        let long = "\n".repeat(4096);
        let expected = format!("{}...(4096 bytes)", "\\n".repeat(SHOWN_MAX));
        assert_eq!(Shown(&long).to_string(), expected);
    }

    #[test]
    fn a_message_stays_on_its_line_and_keeps_its_quotes() {
        let text = "disk=\"a\\nb\" one\ntwo\u{1b}[0m";
        let expected = "disk=\"a\\nb\" one\\ntwo\\u{1b}[0m";
        assert_eq!(within(text, 1000), (expected.to_owned(), false));
    }

    /// Nothing follows what had no room, and nothing is cut within an escape or a character.
    #[test]
    fn a_message_without_room_is_cut_between_characters() {
        let text = "ab\u{1b}é\nz";
        let whole = "ab\\u{1b}é\\nz";
        let ends = [1, 2, 8, 10, 12, 13];
        for bytes in 0..=whole.len() {
            let end = ends.into_iter().rfind(|end| *end <= bytes).unwrap_or(0);
            let (out, is_cut) = within(text, bytes);
            assert_eq!(out, whole[..end], "{bytes}");
            assert_eq!(is_cut, end < whole.len(), "{bytes}");
        }
    }
}
