//! What is known of the rotation, once it was found.

use serde::{Deserialize, Serialize};

/// Times that each place is read until its angle is known.
pub(super) const ROUNDS: usize = 4;
/// If more places than this are needed so that each is out of the buffer when its turn comes again, looking twice takes long. So does
/// reading all of them.
pub(super) const MANY: usize = 100;

/// A sector and the angle, in turns, at which it has come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    pub lba: u64,
    pub angle: f64,
}

/// What is known of the rotation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spindle {
    /// A turn, in nanoseconds.
    pub turn: f64,
    /// Times of the same sector that were no whole turns apart, as a part of all.
    pub astray: f64,
    /// Places whose angles are known, to find the phase again.
    pub places: Vec<Mark>,
    /// The fastest that a miss may be, in nanoseconds: what is faster came from the buffer.
    pub hit_below: f64,
    /// How long the drive may read on behind a read before it does anything else, in nanoseconds.
    #[serde(default)]
    pub linger: f64,
    /// The standard deviation of a single answer, in turns.
    #[serde(default)]
    pub varies: f64,
}
