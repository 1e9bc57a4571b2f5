//! What a checker found.

use headtime_units::Time;
use std::fmt;

/// A promise that every policy makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// What was inserted is queued until it is handed out, and is handed out in the end.
    Conserved,
    /// What is handed out was queued, as it stands there, and is handed out once.
    Once,
    /// Nobody is overtaken more often than the policy says.
    Bounded,
    /// Nobody waits longer than the policy says.
    InTime,
    /// A wait ends later than now and has an end, and nothing is queued when there is nothing to do.
    Live,
    /// What is peeked at is what is taken, and looking changes nothing.
    Peek,
    /// A candidate is urgent when the elevator says that it will be, and not before.
    Expires,
    /// What is drained is what was queued, in order of arrival.
    Drain,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub at: Time,
    /// What happened instead.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.rule, self.at, self.what)
    }
}

impl std::error::Error for Violation {}
