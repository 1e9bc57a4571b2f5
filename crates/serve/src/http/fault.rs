//! Faults to inject, as text.
//!
//! ```text
//! kind=unreadable&lba=2048&sectors=8          these sectors cannot be read until they are written
//! kind=unreadable&lba=2048&sectors=8&retries=3   tried for three more turns
//! kind=stall&for=500ms                        nothing begins for so long
//! kind=lose-next                              the next command is never answered
//! ```

use headtime_disk::drive::Fault;
use headtime_units::{Extent, Lba, Nanos, Sectors};

/// Turns for which a drive retries by default.
const RETRIES: u32 = 3;

/// Largest number of turns. These take more than ten minutes on any drive, so every timeout can be tested.
const RETRIES_MAX: u64 = 100_000;

/// The longest stall.
const STALL_MAX: Nanos = Nanos::from_secs(3600);

/// Reason why a text does not describe a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A piece has no `=`.
    #[error("`{0}`: write key=value, joined by &")]
    NoValue(String),
    /// A key is unknown, or does not belong to the kind.
    #[error("{key}: unknown here; allowed are {allowed}")]
    Unknown {
        key: String,
        /// Allowed keys.
        allowed: &'static str,
    },
    /// A key is missing.
    #[error("{0}: missing")]
    Missing(&'static str),
    /// A value is not allowed.
    #[error("{key}: `{value}`: {problem}")]
    Value {
        key: &'static str,
        value: String,
        /// Problem of the value, with the allowed values.
        problem: String,
    },
}

/// Reads a fault of a disk of `capacity` sectors.
///
/// # Errors
///
/// If the text is malformed, or names sectors beyond the disk.
pub fn from_query(query: &str, capacity: Sectors) -> Result<Fault, FaultError> {
    let mut pairs = Vec::new();
    for piece in query.split('&').filter(|piece| !piece.is_empty()) {
        let pair = piece.split_once('=');
        pairs.push(pair.ok_or_else(|| FaultError::NoValue(piece.to_owned()))?);
    }
    let mut take = |key: &'static str| {
        let at = pairs.iter().position(|(name, _)| *name == key)?;
        Some(pairs.remove(at).1)
    };
    let kind = take("kind").ok_or(FaultError::Missing("kind"))?;
    let (fault, allowed) = match kind {
        "unreadable" => {
            let lba = take("lba").ok_or(FaultError::Missing("lba"))?;
            let lba = number("lba", lba, 0, capacity.get() - 1)?;
            let sectors = take("sectors").map_or(Ok(1), |sectors| {
                number("sectors", sectors, 1, capacity.get() - lba)
            })?;
            let retries = take("retries").map_or(Ok(u64::from(RETRIES)), |retries| {
                number("retries", retries, 0, RETRIES_MAX)
            })?;
            let fault = Fault::Unreadable {
                extent: Extent::new(Lba::new(lba), Sectors::new(sectors)),
                retries: retries as u32,
            };
            (fault, "kind, lba, sectors, retries")
        }
        "stall" => {
            let value = take("for").ok_or(FaultError::Missing("for"))?;
            let wrong = |problem: String| FaultError::Value {
                key: "for",
                value: value.to_owned(),
                problem,
            };
            let span: Nanos = value.parse().map_err(|error| wrong(format!("{error}")))?;
            if span > STALL_MAX {
                return Err(wrong(format!("allowed is up to {STALL_MAX}")));
            }
            (Fault::Stall(span), "kind, for")
        }
        "lose-next" => (Fault::LoseNext, "kind"),
        other => {
            return Err(FaultError::Value {
                key: "kind",
                value: other.to_owned(),
                problem: "allowed are unreadable, stall, lose-next".to_owned(),
            });
        }
    };
    match pairs.first() {
        Some((key, _)) => Err(FaultError::Unknown {
            key: (*key).to_owned(),
            allowed,
        }),
        None => Ok(fault),
    }
}

fn number(key: &'static str, text: &str, low: u64, high: u64) -> Result<u64, FaultError> {
    let number = text.parse().ok();
    number
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| FaultError::Value {
            key,
            value: text.to_owned(),
            problem: format!("allowed is a whole number, {low} to {high}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(query: &str) -> Result<Fault, String> {
        from_query(query, Sectors::new(1000)).map_err(|error| error.to_string())
    }

    #[test]
    fn faults_are_read_as_documented() {
        let unreadable = |lba, sectors, retries| {
            let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
            Ok(Fault::Unreadable { extent, retries })
        };
        assert_eq!(
            read("kind=unreadable&lba=8&sectors=4&retries=1"),
            unreadable(8, 4, 1)
        );
        assert_eq!(read("lba=999&kind=unreadable"), unreadable(999, 1, 3));
        assert_eq!(
            read("kind=stall&for=500ms"),
            Ok(Fault::Stall(Nanos::from_millis(500)))
        );
        assert_eq!(read("kind=lose-next"), Ok(Fault::LoseNext));
        for (query, error) in [
            ("", "kind: missing"),
            ("kind", "`kind`: write key=value, joined by &"),
            (
                "kind=x",
                "kind: `x`: allowed are unreadable, stall, lose-next",
            ),
            ("kind=unreadable", "lba: missing"),
            (
                "kind=unreadable&lba=1000",
                "lba: `1000`: allowed is a whole number, 0 to 999",
            ),
            (
                "kind=unreadable&lba=999&sectors=2",
                "sectors: `2`: allowed is a whole number, 1 to 1",
            ),
            ("kind=stall&for=2h", "for: `2h`: allowed is up to 3600s"),
            (
                "kind=lose-next&lba=1",
                "lba: unknown here; allowed are kind",
            ),
        ] {
            let found = read(query).unwrap_err();
            assert!(found.starts_with(error), "{query}: {found}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}", pieces in "(kind|lba|for|sectors|=|&|stall|unreadable|[0-9]{1,30}|ms){0,12}") {
            let _ = read(&text);
            let _ = read(&pieces);
        }
    }
}
