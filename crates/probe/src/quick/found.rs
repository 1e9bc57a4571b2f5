//! Results of a quick measurement, and obstacles to it.

use crate::ProbeError;
use headtime_units::{Lba, Nanos};

/// Reasons for an incomplete measurement of a disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// The disk has too few sectors to have an arm that moves.
    #[error("it has {bytes} bytes; a disk of less than 16 MiB is none that has to seek")]
    TooSmall {
        /// Size of the disk.
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
        /// Mean time of these reads.
        mean: Nanos,
    },
    /// The buffer answers reads of places that were read before.
    #[error(
        "the buffer still has what was read {places} reads before, so that no place could be read twice \
         from the medium"
    )]
    Buffered {
        /// Places that were read in between.
        places: u64,
    },
    /// Reads after the same movement differ by more than a turn.
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
        Obstacle::STALL_MIN
    )]
    Stalls {
        count: u64,
        reads: u64,
        longest: Nanos,
    },
    /// Time is over, and no part got enough reads.
    #[error("{reads} reads took {took}; that is too slow to learn anything in this time")]
    Slow {
        reads: u64,
        /// Total time of these reads.
        took: Nanos,
    },
    /// A command failed.
    #[error("{0}")]
    Failed(String),
}

impl Obstacle {
    /// Shortest time of a stalled read, alone in the drive.
    pub const STALL_MIN: Nanos = Nanos::from_millis(250);
}

impl From<ProbeError> for Obstacle {
    fn from(error: ProbeError) -> Obstacle {
        Obstacle::Failed(error.to_string())
    }
}

/// Rotation speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation {
    /// Time of a turn, in ns.
    pub turn_ns: f64,
    /// Standard error, as a share of the turn.
    pub error: f64,
    /// Share of the reads from the medium that are whole turns apart from other reads of their place, within a tenth of a turn.
    pub agree: f64,
    /// Number of reads in the result.
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
    /// Address of the place.
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
    /// 99th percentile of the answer times.
    pub most: Nanos,
}

/// Progress of the measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Subject of the current measurement.
    pub part: &'static str,
    /// Share of the time limit that has passed, 0 to 1.
    pub done: f64,
}

/// Size of a read, in bytes. Databases and file systems make reads of this size, and the transfer takes little time beside the positioning.
pub const READ_BYTES: u64 = 4096;

/// Most commands at a time.
pub(super) const DEPTH_MAX: u16 = 32;
