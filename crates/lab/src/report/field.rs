//! Values of results as text, CSV and JSON have them.

use crate::output::line;
use headtime_config::Value as Written;
use serde::{Serialize, Serializer};
use std::fmt;

/// The value of a column in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Field {
    /// The row has no such value.
    Nothing,
    /// A count.
    Count(u64),
    /// A measured number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Words.
    Text(String),
}

impl Field {
    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Field::Count(count) => Some(*count as f64),
            Field::Number(number) => Some(*number),
            Field::Nothing | Field::Flag(_) | Field::Text(_) => None,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Nothing => Ok(()),
            Field::Count(count) => write!(f, "{count}"),
            Field::Number(number) => write!(f, "{number}"),
            Field::Flag(flag) => write!(f, "{flag}"),
            Field::Text(text) => f.write_str(text),
        }
    }
}

/// A row by its headings: an object in JSON, a line in CSV.
#[derive(Clone, Debug)]
pub struct Fields<'a>(pub Vec<(&'a str, Field)>);

impl Fields<'_> {
    /// Rows that have the same headings as CSV.
    pub fn csv(rows: &[Fields<'_>]) -> String {
        let first = rows.first().map(|row| row.0.iter());
        let heading = first.map(|fields| line(fields.map(|(name, _)| (*name).to_owned())));
        let lines = rows.iter().map(|row| {
            let fields = row.0.iter();
            line(fields.map(|(_, field)| field.to_string()))
        });
        heading.into_iter().chain(lines).collect()
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, field)| (name, field)))
    }
}

macro_rules! into_field {
    ($($from:ty => |$value:ident| $field:expr;)+) => {$(
        impl From<$from> for Field {
            fn from($value: $from) -> Field {
                $field
            }
        }
    )+};
}

into_field! {
    u64 => |count| Field::Count(count);
    u32 => |count| Field::Count(count.into());
    f64 => |number| Field::Number(number);
    bool => |flag| Field::Flag(flag);
    &str => |text| Field::Text(text.to_owned());
    &String => |text| Field::Text(text.clone());
}

/// A value of a scenario as it stands in results.
impl From<&Written> for Field {
    fn from(value: &Written) -> Field {
        match value {
            Written::Integer(number) => match u64::try_from(*number) {
                Ok(count) => Field::Count(count),
                Err(_) => Field::Number(*number as f64),
            },
            Written::Float(number) => Field::Number(*number),
            Written::Flag(flag) => Field::Flag(*flag),
            Written::Text(_) | Written::List(_) | Written::Table(_) => Field::Text(value.text()),
        }
    }
}

impl<T: Into<Field>> From<Option<T>> for Field {
    fn from(value: Option<T>) -> Field {
        value.map_or(Field::Nothing, Into::into)
    }
}
