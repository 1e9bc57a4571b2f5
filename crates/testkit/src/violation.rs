//! A finding of a checker.

use headtime_units::Time;
use std::fmt;

/// A promise that every policy makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// An inserted request is queued until the scheduler hands it out, and the scheduler hands out every request in
    /// the end.
    Conserved,
    /// A request that is handed out was queued with the same fields, and is handed out once.
    Once,
    /// No request is overtaken more often than the policy says.
    Bounded,
    /// No request waits longer than the policy says.
    InTime,
    /// A wait ends later than now and has an end. The scheduler says that it is empty only if nothing is queued.
    Live,
    /// A take returns the request that the peek showed, and a peek changes nothing.
    Peek,
    /// A candidate becomes urgent at the time that the elevator states, and not before.
    Expires,
    /// Draining returns all queued requests in order of arrival.
    Drain,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub at: Time,
    /// Description of the observed behaviour.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.rule, self.at, self.what)
    }
}

impl std::error::Error for Violation {}
