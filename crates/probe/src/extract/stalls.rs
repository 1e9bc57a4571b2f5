//! Answers that took too long for any movement.

use crate::Obstacle;
use headtime_units::Nanos;
use serde::{Deserialize, Serialize};

/// Answers that took too long for any movement: their number, the number of all answers, and the longest time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    pub count: u64,
    pub of: u64,
    pub longest: Nanos,
}

/// Fewest stalls that count. One stall is a disk that spins up, and a few in an hour are calibrations.
const STALLS_MIN: u64 = 3;
/// Number of commands per stall below which a disk cannot be learned.
const STALLS_PART: u64 = 1_000;

impl Stalls {
    /// Counts an answer. Returns true if it is one stall too many.
    pub(super) fn too_many(&mut self, took: Nanos) -> bool {
        self.of += 1;
        if took < Obstacle::STALL_MIN {
            return false;
        }
        self.count += 1;
        self.longest = self.longest.max(took);
        self.count >= STALLS_MIN && self.count * STALLS_PART > self.of
    }
}
