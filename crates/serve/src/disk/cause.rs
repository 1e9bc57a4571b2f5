//! Why a disk takes no writes, and why it does not take them again.

use crate::backing::Lost;
use crate::device::ControlError;
use crate::request::Failure;
use headtime_units::{Extent, Sectors};

/// Why a disk takes no writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// A write failed, of which the client was told.
    #[error("a write of sectors {extent} failed: {failure}")]
    Write {
        /// Its sectors.
        extent: Extent,
        /// How.
        failure: Failure,
        /// Whether it was to be on stable storage when it completed.
        durable: bool,
    },
    /// A flush failed.
    #[error("a flush failed: {failure}")]
    Flush {
        /// How.
        failure: Failure,
    },
    /// A discard was given up on and may still happen, also to data that are written later.
    #[error("a discard of sectors {extent} was given up on and may still happen")]
    Discard {
        /// Its sectors.
        extent: Extent,
    },
    /// The power was cut before acknowledged writes had reached the medium.
    #[error(
        "the power was cut, and {sectors} sectors that were acknowledged and not flushed are lost"
    )]
    PowerCut {
        /// How many sectors.
        sectors: Sectors,
    },
    /// The power was cut, and the store holds neither what the medium would nor what was written.
    #[error("the power was cut, and {error}")]
    NotTakenBack {
        /// What went wrong.
        error: ControlError,
    },
    /// The file or device under the disk is not what it was.
    #[error("{0}")]
    Backing(Lost),
}

impl Cause {
    /// Whether writes that had been acknowledged are lost.
    pub fn is_loss(&self) -> bool {
        match self {
            Cause::Write { .. } | Cause::Flush { .. } | Cause::Discard { .. } => false,
            Cause::PowerCut { .. } | Cause::NotTakenBack { .. } | Cause::Backing(_) => true,
        }
    }
}

/// Why a disk does not take writes again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCleared {
    /// It takes them.
    #[error("nothing has failed")]
    NotFailed,
    /// Writes that were given up on may still happen.
    #[error(
        "{0} commands that were given up on are still with the device and may overtake new ones"
    )]
    Abandoned(usize),
    /// The file or device under it is still not what it was.
    #[error("{0}")]
    Backing(Lost),
}
