//! Text from elsewhere on one line of a message; see [`headtime_units::shown`].

pub use headtime_units::shown::{OneLine, SHOWN_MAX, Shown, is_plain};
use std::fmt::{self, Display, Write};
use std::path::Path;

/// Returns a text as [`OneLine`] writes it, of any length.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _ = OneLine::new(&mut line, usize::MAX).write_str(text);
    line
}

/// A path in a message. A line break in its name is escaped.
#[derive(Clone, Copy, Debug)]
pub struct ShownPath<'a>(&'a Path);

impl Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(OneLine::new(f, usize::MAX), "{}", self.0.display())
    }
}

/// Display of paths in messages.
pub trait PathShown {
    /// Returns the path as text, with escapes for line breaks and control characters.
    fn shown(&self) -> ShownPath<'_>;
}

impl PathShown for Path {
    fn shown(&self) -> ShownPath<'_> {
        ShownPath(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_on_its_line() {
        let text = "disk=\"a\\nb\" one\ntwo\u{1b}[0m";
        assert_eq!(one_line(text), "disk=\"a\\nb\" one\\ntwo\\u{1b}[0m");
        assert_eq!(Path::new("a\nb").shown().to_string(), "a\\nb");
    }
}
