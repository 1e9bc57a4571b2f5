//! Errors in a text, with their places.

use headtime_units::shown::OneLine;
use std::fmt::{self, Write};
use std::sync::Arc;

/// Place of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of a file, counted from 1.
    Line(Arc<str>, usize),
    /// A line and a key of a file in another format. Errors name this key.
    Key(Arc<str>, usize, Arc<str>),
    /// An option of the command line, shown as given.
    Option(Arc<str>),
    /// No text: the program's own default.
    BuiltIn,
    /// No text: a value that a program made. Errors omit this place.
    NoText,
}

impl Place {
    /// Makes the place of a line of a file.
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

/// Joins the key of a table and a key in the table; either may be empty.
pub(crate) fn join(table: &str, key: &str) -> String {
    let point = if table.is_empty() || key.is_empty() {
        ""
    } else {
        "."
    };
    format!("{table}{point}{key}")
}

/// Error in a text, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Place of the error.
    pub place: Place,
    /// Key with all its tables, `engine.depth`; empty if the error concerns the text as a whole.
    pub key: String,
    /// The problem, and the allowed values.
    pub problem: String,
}

impl Error {
    /// Makes an error about a key.
    pub fn new(place: Place, key: impl Into<String>, problem: impl Into<String>) -> Error {
        Error {
            place,
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// Prefixes the error's key by the key of its table.
    pub fn below(self, key: &str) -> Error {
        let key = join(key, &self.key);
        Error { key, ..self }
    }

    /// Line of the error, if it concerns a file.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::Line(_, line) | Place::Key(_, line, _) => Some(line),
            _ => None,
        }
    }
}

/// Writes place, key and problem. Line breaks from the file are escaped, so that the error stays on one line.
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

/// Error about a key of the table that is being read, for a `TryFrom` or a `deserialize_with` that looks at several keys. Like serde's own
/// errors it has no place. The reader finds the key's place.
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
    /// Makes an error about a key of the table. A key in an inner table has the form `engine.depth`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> KeyError {
        KeyError {
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// Splits the text of [`fmt::Display`] into key and problem.
    pub(crate) fn read(text: &str) -> Option<(&str, &str)> {
        text.strip_prefix(SEPARATOR)?.split_once(SEPARATOR)
    }
}

/// Mark at the beginning of a [`KeyError`]'s text, since serde passes errors on as text alone. No other message begins with this character.
const SEPARATOR: char = '\u{1}';

/// Writes the form that this crate's reader takes apart.
impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SEPARATOR}{}{SEPARATOR}{}", self.key, self.problem)
    }
}

impl std::error::Error for KeyError {}
