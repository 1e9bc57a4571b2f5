//! What was learned of the keys of a profile, and why others could not be.

use serde::{Deserialize, Serialize};

/// Keys that are known, and keys that are not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// A key, and how far its value can be relied on, 0 to 1.
    pub known: Vec<(String, f64)>,
    /// A key that keeps the format's default, and the reason.
    pub unknown: Vec<(String, String)>,
}

impl Told {
    pub(super) fn know(&mut self, key: &str, confidence: f64) {
        self.unknown.retain(|(other, _)| other != key);
        self.known.retain(|(other, _)| other != key);
        self.known.push((key.to_owned(), confidence));
    }

    pub(super) fn doubt(&mut self, key: &str, why: impl Into<String>) {
        self.known.retain(|(other, _)| other != key);
        self.unknown.retain(|(other, _)| other != key);
        self.unknown.push((key.to_owned(), why.into()));
    }

    /// Returns true if the value of a key was learned.
    pub fn knows(&self, key: &str) -> bool {
        self.known.iter().any(|(known, _)| known == key)
    }
}
