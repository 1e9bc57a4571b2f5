//! Text from elsewhere on one line of a message; see [`headtime_units::shown`].

pub use headtime_units::shown::{OneLine, SHOWN_MAX, Shown, is_plain};
use std::fmt::Write;

/// A text as [`OneLine`] writes it, however long.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    // A string takes everything.
    let _ = OneLine::new(&mut line, usize::MAX).write_str(text);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_on_its_line() {
        let text = "disk=\"a\\nb\" one\ntwo\u{1b}[0m";
        assert_eq!(one_line(text), "disk=\"a\\nb\" one\\ntwo\\u{1b}[0m");
    }
}
