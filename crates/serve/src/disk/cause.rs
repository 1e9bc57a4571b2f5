//! Reasons why a disk takes no writes, and why it does not take writes again.

use crate::backing::Lost;
use crate::device::ControlError;
use crate::request::Failure;
use headtime_units::{Extent, Sectors};

/// Reason why a disk takes no writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// A write failed, and the client got the error.
    #[error("a write of sectors {extent} failed: {failure}")]
    Write {
        /// Sectors of the request.
        extent: Extent,
        /// Failure that the device reported.
        failure: Failure,
        /// True if the write was to be on stable storage when it completed.
        durable: bool,
    },
    /// A flush failed.
    #[error("a flush failed: {failure}")]
    Flush {
        /// Failure that the device reported.
        failure: Failure,
    },
    /// A discard was given up on and may still happen, also to data that are written later.
    #[error("a discard of sectors {extent} was given up on and may still happen")]
    Discard {
        /// Sectors of the request.
        extent: Extent,
    },
    /// The power was cut before acknowledged writes had reached the medium.
    #[error(
        "the power was cut, and {sectors} sectors that were acknowledged and not flushed are lost"
    )]
    PowerCut {
        /// Number of lost sectors.
        sectors: Sectors,
    },
    /// The power was cut, and the writes that the cut should undo could not be undone in the store.
    #[error("the power was cut, and {error}")]
    NotTakenBack {
        /// Error of the store.
        error: ControlError,
    },
    /// Another program has deleted, replaced or truncated the file or device under the disk.
    #[error("{0}")]
    Backing(Lost),
}

impl Cause {
    /// Returns true if acknowledged writes are lost.
    pub fn is_loss(&self) -> bool {
        match self {
            Cause::Write { .. } | Cause::Flush { .. } | Cause::Discard { .. } => false,
            Cause::PowerCut { .. } | Cause::NotTakenBack { .. } | Cause::Backing(_) => true,
        }
    }
}

/// Reason why a disk does not take writes again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCleared {
    /// The disk takes writes already.
    #[error("nothing has failed")]
    NotFailed,
    /// Writes that were given up on may still happen.
    #[error(
        "{0} commands that were given up on are still with the device and may overtake new ones"
    )]
    Abandoned(usize),
    /// The file or device under the disk is still deleted, replaced or truncated.
    #[error("{0}")]
    Backing(Lost),
}
