//! Range of two sizes as one value.

use crate::parse;
use headtime_units::Bytes;
use serde::de::Deserializer;
use serde::{Serialize, Serializer};

type Range = Option<(Bytes, Bytes)>;

/// Reads two sizes, the first below the second: `0B..10GB`.
///
/// # Errors
///
/// If the text is not two sizes in this order.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Range, D::Error> {
    parse(from, "two sizes, such as \"0B..10GB\"", |text| {
        let ends = text.split_once("..");
        let (from, to) = ends.ok_or("the two ends are not separated by ..")?;
        let size = |text: &str| {
            let size = text.parse::<Bytes>();
            size.map_err(|error| format!("`{text}`: {error}"))
        };
        match (size(from)?, size(to)?) {
            (from, to) if from < to => Ok(Some((from, to))),
            _ => Err("the first end must be below the second".to_owned()),
        }
    })
}

/// Writes the range as text.
///
/// # Errors
///
/// If `to` refuses the text.
pub fn serialize<S: Serializer>(range: &Range, to: S) -> Result<S::Ok, S::Error> {
    let text = range.map(|(from, to)| format!("{from}..{to}"));
    text.serialize(to)
}
