//! Rotation time, and sectors with known angles.

use serde::{Deserialize, Serialize};

/// Number of reads of each place that determine its angle.
pub(super) const ROUNDS_PER_PLACE: usize = 4;
/// Number of places above which the buffer is large. With more places a second sample takes long, since a place must leave the buffer
/// first. Reading all places takes long, too.
pub(super) const LARGE_BUFFER_PLACES: usize = 100;

/// A sector and the angle of its answers, in turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    pub lba: u64,
    pub angle: f64,
}

/// Rotation time, sectors with known angles, and the spread of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spindle {
    /// Rotation time in nanoseconds.
    pub turn: f64,
    /// Share of the times between reads of the same sector that are not whole turns.
    pub astray: f64,
    /// Places with known angles, which serve to find the phase again.
    pub places: Vec<Mark>,
    /// Shortest time of a miss, in nanoseconds; faster answers come from the buffer.
    pub hit_below: f64,
    /// Longest time that the drive reads on behind a read before any other work, in nanoseconds.
    #[serde(default)]
    pub linger: f64,
    /// Standard deviation of a single answer, in turns.
    #[serde(default)]
    pub varies: f64,
}
