//! Why a drive cannot be learned.

use super::stalls::Stalls;
use crate::{Obstacle, ProbeError};
use headtime_disk::ProfileError;

/// Why a drive cannot be learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The drive could not be read.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// There is no turn.
    #[error(
        "nothing turns: the times at which a sector was read again have no turn in common (agreement {coherence:.2} of 1); \
         an SSD, a disk under load, or one whose firmware moves sectors about"
    )]
    DoesNotTurn {
        /// How well the times agree with the best turn, 0 to 1.
        coherence: f64,
    },
    /// Whatever was read comes from a buffer from then on.
    #[error(
        "the buffer still has what was read {places} reads before, so that no place could be read twice from the medium"
    )]
    Buffered {
        /// Places that were read in between.
        places: u64,
    },
    /// It turned, and does no more.
    #[error(
        "the phase of the platters was lost: known sectors came at other angles than before; is the disk under load?"
    )]
    PhaseLost,
    /// Some commands took far longer than any movement.
    #[error(
        "{} of {} commands took over {} each, the longest {}: the disk does something of its own in between, as shingled \
         (SMR) disks do, retries sectors that it can hardly read, or is kept busy by something else",
        .0.count, .0.of, Obstacle::STALL, .0.longest
    )]
    Stalls(Stalls),
    /// A sector cannot be read from the medium.
    #[error("sector {lba} does not leave the drive's buffer, whatever else is read")]
    Sticks {
        /// Which.
        lba: u64,
    },
    /// It is too small.
    #[error("{sectors} sectors are too few to learn anything; a disk has a million and more")]
    TooSmall {
        /// What it has.
        sectors: u64,
    },
    /// The tracks follow no rule.
    #[error(
        "no rule of tracks holds: {zones} beginnings of zones within the first {lba} sectors; \
         a disk that maps its sectors anew (SMR, an array), or one under load"
    )]
    NoRule {
        /// Zones that were begun.
        zones: usize,
        /// How far the walk came.
        lba: u64,
    },
    /// There is no profile yet.
    #[error("the tracks are not known yet")]
    TooEarly,
    /// The profile does not pass its own checks.
    #[error("what was learned is no profile: {0}")]
    Profile(#[from] ProfileError),
}
