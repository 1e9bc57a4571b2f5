//! What is found out of a disk, and what stands in the way.

use crate::ProbeError;
use headtime_units::{Lba, Nanos};

/// Why a disk cannot be learned, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// It has too few sectors to have an arm that moves.
    #[error("it has {bytes} bytes; a disk of less than 16 MiB is none that has to seek")]
    TooSmall {
        /// Its size.
        bytes: u64,
    },
    /// Times between reads of one place have no period.
    #[error(
        "nothing turns: {reads} reads of the same places, {mean} each on average, come back at any time; \
         that is an SSD, memory, or a cache in front of a disk"
    )]
    NoRotation {
        /// Reads of places that had been read before.
        reads: u64,
        /// Their mean time.
        mean: Nanos,
    },
    /// Reads of places that were read before come from the buffer.
    #[error(
        "the buffer still has what was read {places} reads before, so that no place could be read twice \
         from the medium"
    )]
    Buffered {
        /// Places that were read in between.
        places: u64,
    },
    /// Reads behind the same movement differ by more than a turn.
    #[error(
        "{percent} % of the reads took over a turn longer than others behind the same movement: something \
         else uses the disk; stop it, and try again"
    )]
    Loaded {
        /// Share of such reads.
        percent: u64,
    },
    /// Some reads took far longer than any movement.
    #[error(
        "{count} of {reads} reads took over {} each, the longest {longest}: the disk does something of \
         its own in between, as shingled (SMR) disks do, or retries sectors that it can hardly read",
        Obstacle::STALL
    )]
    Stalls {
        count: u64,
        reads: u64,
        longest: Nanos,
    },
    /// The time is over, and no part got enough reads.
    #[error("{reads} reads took {took}; that is too slow to learn anything in this time")]
    Slow {
        reads: u64,
        /// All of them.
        took: Nanos,
    },
    /// A command failed.
    #[error("{0}")]
    Failed(String),
}

impl Obstacle {
    /// A read that takes so long, alone in the drive, stalled.
    pub const STALL: Nanos = Nanos::from_millis(250);
}

impl From<ProbeError> for Obstacle {
    fn from(error: ProbeError) -> Obstacle {
        Obstacle::Failed(error.to_string())
    }
}

/// How fast it turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation {
    /// Time of a turn, in ns.
    pub turn_ns: f64,
    /// Standard error, as a share of the turn.
    pub error: f64,
    /// Part of the reads from the medium that come whole turns after others of their place, up to a tenth of one.
    pub agree: f64,
    /// Reads that it rests on.
    pub reads: u64,
}

impl Rotation {
    /// Turns in a minute.
    pub fn rpm(&self) -> f64 {
        60e9 / self.turn_ns
    }
}

/// Sequential bandwidth at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Where.
    pub place: Lba,
    pub bytes_per_second: f64,
}

/// Random reads of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomReads {
    /// Commands in the drive.
    pub depth: u16,
    /// Answers counted.
    pub reads: u64,
    /// Answers in a second.
    pub iops: f64,
    /// Mean time of an answer.
    pub mean: Nanos,
    /// The time that 99 % of the answers stay below.
    pub most: Nanos,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is being measured.
    pub part: &'static str,
    /// Of the time that it may take, 0 to 1.
    pub done: f64,
}

/// A read of this size is one that databases and file systems make, and costs little beside its positioning.
pub const READ_BYTES: u64 = 4096;

/// The most commands at a time.
pub(super) const DEPTH_MAX: u16 = 32;
