//! Learned keys of a profile, and reasons for the missing keys.

use serde::{Deserialize, Serialize};

/// Keys of a profile that a probe has learned, and keys that it has not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnedKeys {
    /// Known keys with the confidence in their values, 0 to 1.
    pub known: Vec<(String, f64)>,
    /// Keys that retain the format's default, with the reasons.
    pub unknown: Vec<(String, String)>,
}

impl LearnedKeys {
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
