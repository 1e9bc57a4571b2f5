//! Timeout of commands.

use headtime_config::parse;
use headtime_units::{Nanos, ParseUnitError};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// The time after which a command is given up on; `None` for never. Written as a duration from 100 ms on, or `"off"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeout(pub Option<Nanos>);

impl Timeout {
    /// Shortest timeout in text.
    const MIN: Nanos = Nanos::from_millis(100);

    /// Returns true if no command is given up on.
    pub fn is_off(&self) -> bool {
        self.0.is_none()
    }

    fn read(text: &str) -> Result<Timeout, String> {
        if text == "off" {
            return Ok(Timeout(None));
        }
        let allowed = || "allowed is 100ms to 3650d, or \"off\"".to_owned();
        let span: Nanos = text.parse().map_err(|error| match error {
            ParseUnitError::TooLong => allowed(),
            error => format!("{error}"),
        })?;
        match span >= Timeout::MIN {
            true => Ok(Timeout(Some(span))),
            false => Err(allowed()),
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("off"),
            Some(span) => span.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Timeout, D::Error> {
        parse(from, "a duration, or \"off\"", Timeout::read)
    }
}

impl Serialize for Timeout {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
