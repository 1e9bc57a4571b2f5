//! Reasons why a drive cannot be learned.

use super::stalls::Stalls;
use crate::{Obstacle, ProbeError};
use headtime_disk::ProfileError;
use headtime_units::Nanos;

/// Reasons why a drive cannot be learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The drive could not be read.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The drive failed a command.
    #[error(transparent)]
    Failed(ProbeError),
    /// No rotation was found.
    #[error(
        "nothing turns: the times at which a sector was read again have no turn in common (agreement {coherence:.2} of 1); \
         an SSD, a disk under load, or one whose firmware moves sectors about"
    )]
    DoesNotTurn {
        /// Agreement of the times with the best period, 0 to 1.
        coherence: f64,
    },
    /// The buffer answers all repeated reads.
    #[error(
        "the buffer still has what was read {places} reads before, so that no place could be read twice from the medium"
    )]
    Buffered {
        /// Places that were read in between.
        places: u64,
    },
    /// The phase was lost after the rotation had been found.
    #[error(
        "the phase of the platters was lost: known sectors came at other angles than before; is the disk under load?"
    )]
    PhaseLost,
    /// Some commands took far longer than any movement.
    #[error(
        "{} of {} commands took over {} each, the longest {}: the disk does something of its own in between, as shingled \
         (SMR) disks do, retries sectors that it can hardly read, or is kept busy by something else",
        .0.count, .0.of, Obstacle::STALL_MIN, .0.longest
    )]
    Stalls(Stalls),
    /// A sector cannot be read from the medium.
    #[error("sector {lba} does not leave the drive's buffer, whatever else is read")]
    Sticks {
        /// Address of the sector.
        lba: u64,
    },
    /// The drive is too small.
    #[error(
        "it has too few sectors to learn anything from, {sectors}; a disk has a million and more"
    )]
    TooSmall {
        /// Size of the drive.
        sectors: u64,
    },
    /// The tracks follow no rule.
    #[error(
        "no rule of tracks holds: {zones} beginnings of zones and {rows} of rows within {tracks} tracks, the first {lba} \
         sectors; a disk that maps its sectors anew (SMR, an array), one under load, or one whose tracks all differ"
    )]
    NoRule {
        /// Zones that were started.
        zones: usize,
        /// Rows of tracks that were started.
        rows: u64,
        /// Tracks that these rows explain.
        tracks: u64,
        /// Sectors that the walk explained.
        lba: u64,
    },
    /// The tracks follow no rule, or follow a rule that takes too long to learn.
    #[error(
        "its tracks take too long: after {:.0} min of looking at them {:.1} % of the disk is explained ({rows} rows begin on \
         {tracks} tracks), {}, and the patience is {:.1} h",
        spent.as_secs_f64() / 60.0, 100.0 * share, at_this_pace(*least), hours(*patience)
    )]
    TooSlow {
        /// Time that the walk took.
        spent: Nanos,
        /// Share of the disk that is explained.
        share: f64,
        /// Rows of tracks that were started.
        rows: u64,
        /// Tracks that these rows explain.
        tracks: u64,
        /// Lower estimate of the total time at this pace.
        least: Option<Nanos>,
        /// Time limit.
        patience: Nanos,
    },
    /// A step of a walk took too long; the caller decides what follows.
    #[error("a step over the tracks took too long")]
    GivenUp,
    /// There is no profile yet.
    #[error("the tracks are not known yet")]
    TooEarly,
    /// The profile does not pass its own checks.
    #[error("what was learned is no profile: {0}")]
    Profile(#[from] ProfileError),
}

fn at_this_pace(least: Option<Nanos>) -> String {
    match least {
        Some(least) => format!("which makes {:.1} h for all", hours(least)),
        None => "and it gets no farther".to_owned(),
    }
}

fn hours(time: Nanos) -> f64 {
    time.as_secs_f64() / 3_600.0
}
