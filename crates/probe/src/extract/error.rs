//! Why a drive cannot be learned.

use super::stalls::Stalls;
use crate::{Obstacle, ProbeError};
use headtime_disk::ProfileError;
use headtime_units::Nanos;

/// Why a drive cannot be learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The drive could not be read.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The drive failed a command.
    #[error(transparent)]
    Failed(ProbeError),
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
    #[error(
        "it has too few sectors to learn anything from, {sectors}; a disk has a million and more"
    )]
    TooSmall {
        /// What it has.
        sectors: u64,
    },
    /// The tracks follow no rule.
    #[error(
        "no rule of tracks holds: {zones} beginnings of zones and {rows} of rows within {tracks} tracks, the first {lba} \
         sectors; a disk that maps its sectors anew (SMR, an array), one under load, or one whose tracks all differ"
    )]
    NoRule {
        /// Zones that were begun.
        zones: usize,
        /// Rows of tracks that were begun.
        rows: u64,
        /// Tracks that they explain.
        tracks: u64,
        /// How far the walk came.
        lba: u64,
    },
    /// The tracks follow a rule, if any, by which learning them takes too long.
    #[error(
        "its tracks take too long: after {:.0} min of looking at them {:.1} % of the disk is explained ({rows} rows begin on \
         {tracks} tracks), {}, and the patience is {:.1} h",
        spent.as_secs_f64() / 60.0, 100.0 * share, at_this_pace(*least), hours(*patience)
    )]
    TooSlow {
        /// How long the tracks were looked at.
        spent: Nanos,
        /// The part of the disk that is explained.
        share: f64,
        /// Rows of tracks that were begun.
        rows: u64,
        /// Tracks that they explain.
        tracks: u64,
        /// How long that will take in all, if it goes on as it did.
        least: Option<Nanos>,
        /// How long it may take.
        patience: Nanos,
    },
    /// One step of a walk took too long; who walks says what that means.
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
