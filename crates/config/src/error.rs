//! What is wrong with a text, and where.

use headtime_units::shown::OneLine;
use std::fmt::{self, Write};
use std::sync::Arc;

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a file, at a line counted from 1.
    Line(Arc<str>, usize),
    /// On the command line, in an option that is shown as given.
    Option(Arc<str>),
    /// Nowhere: the program's own default.
    BuiltIn,
}

impl Place {
    /// A line of a file.
    pub fn line(file: &str, line: usize) -> Place {
        Place::Line(file.into(), line)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(file, line) => write!(f, "{file}:{line}"),
            Place::Option(text) => f.write_str(text),
            Place::BuiltIn => f.write_str("built-in default"),
        }
    }
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where.
    pub place: Place,
    /// The key with all its tables, `engine.depth`; empty if it is about the text as a whole.
    pub key: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

impl Error {
    /// An error about a key.
    pub fn new(place: Place, key: impl Into<String>, problem: impl Into<String>) -> Error {
        Error {
            place,
            key: key.into(),
            problem: problem.into(),
        }
    }
}

/// Place, key and problem, on one line whatever the file held.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        let mut line = OneLine::new(f, usize::MAX);
        if !self.key.is_empty() {
            write!(line, "{}: ", self.key)?;
        }
        line.write_str(&self.problem)
    }
}

impl std::error::Error for Error {}
