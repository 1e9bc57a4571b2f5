//! What is wrong with a text, and where.

use headtime_units::shown::OneLine;
use std::fmt::{self, Write};
use std::sync::Arc;

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a file, at a line counted from 1.
    Line(Arc<str>, usize),
    /// In a file of another form, at a line and under a key of that form. Errors name this key.
    Key(Arc<str>, usize, Arc<str>),
    /// On the command line, in an option that is shown as given.
    Option(Arc<str>),
    /// Nowhere: the program's own default.
    BuiltIn,
    /// In no text: a value that a program made. Errors say nothing of it.
    NoText,
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
            Place::Line(file, line) | Place::Key(file, line, _) => write!(f, "{file}:{line}"),
            Place::Option(text) => f.write_str(text),
            Place::BuiltIn => f.write_str("built-in default"),
            Place::NoText => Ok(()),
        }
    }
}

/// A key in a table that is itself behind a key; either may be empty.
pub(crate) fn join(table: &str, key: &str) -> String {
    let point = if table.is_empty() || key.is_empty() {
        ""
    } else {
        "."
    };
    format!("{table}{point}{key}")
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

    /// The same error in a table that is itself behind a key.
    pub fn below(self, key: &str) -> Error {
        let key = join(key, &self.key);
        Error { key, ..self }
    }

    /// The line, if it is about a text.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::Line(_, line) | Place::Key(_, line, _) => Some(line),
            _ => None,
        }
    }
}

/// Place, key and problem, on one line whatever the file held.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place != Place::NoText {
            write!(f, "{}: ", self.place)?;
        }
        let mut line = OneLine::new(f, usize::MAX);
        let key = match &self.place {
            Place::Key(_, _, key) => key,
            _ => &*self.key,
        };
        if !key.is_empty() {
            write!(line, "{key}: ")?;
        }
        line.write_str(&self.problem)
    }
}

impl std::error::Error for Error {}

/// What is wrong with a key of the table that is being read, for a `TryFrom` or a `deserialize_with` that
/// looks at several keys. As serde's own errors it carries no place; the reader finds the key's.
///
/// # Examples
///
/// ```
/// use headtime_config::{KeyError, Place, Table, read};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Text {
///     plug: bool,
///     plug_requests: Option<u32>,
/// }
///
/// #[derive(Deserialize, Debug)]
/// #[serde(try_from = "Text")]
/// struct Plug(Option<u32>);
///
/// impl TryFrom<Text> for Plug {
///     type Error = KeyError;
///
///     fn try_from(text: Text) -> Result<Plug, KeyError> {
///         match (text.plug, text.plug_requests) {
///             (false, Some(_)) => Err(KeyError::new("plug_requests", "is for plug = true")),
///             (_, requests) => Ok(Plug(requests)),
///         }
///     }
/// }
///
/// let table = Table::parse("a.toml", "plug = false\nplug_requests = 4").unwrap();
/// let error = read::<Plug>(&table, &Place::line("a.toml", 1)).unwrap_err();
/// assert_eq!(error.to_string(), "a.toml:2: plug_requests: is for plug = true");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    pub(crate) key: String,
    pub(crate) problem: String,
}

impl KeyError {
    /// About a key of the table, `engine.depth` for one further in.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> KeyError {
        KeyError {
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// What [`fmt::Display`] has written, taken apart.
    pub(crate) fn read(text: &str) -> Option<(&str, &str)> {
        text.strip_prefix(SEPARATOR)?.split_once(SEPARATOR)
    }
}

/// Serde hands errors on as text alone; no message begins with this.
const SEPARATOR: char = '\u{1}';

/// For the reader of this crate.
impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SEPARATOR}{}{SEPARATOR}{}", self.key, self.problem)
    }
}

impl std::error::Error for KeyError {}
