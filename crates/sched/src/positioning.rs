//! What a position-aware policy believes about the disk.

use crate::Op;
use headtime_units::{Extent, Lba, Nanos, Time};

/// A prediction of the time until the head is over the first sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// Moving the arm and switching heads, settled.
    pub seek: Nanos,
    /// The rest of the time until the sector comes: waiting for it after the seek, and whatever
    /// processing delays the arm. More than a turn only if processing is.
    pub rotation: Nanos,
}

impl Predicted {
    /// Seek and rotation together: the positioning time.
    pub fn positioning(self) -> Nanos {
        self.seek + self.rotation
    }
}

/// A model of where sectors are and how long the head takes to reach them.
///
/// In a live server this is a calibrated profile. In a simulation it is a profile of its own, beside the
/// simulated drive's, so that prediction errors are real.
///
/// A policy asks for a request's place once, when the request is inserted: locating costs more than
/// predicting.
pub trait Positioning {
    /// A physical position, whatever the model needs of it.
    type Place: Copy;

    /// Returns the place of the first sector of `extent`.
    ///
    /// Sectors past the end of the model's disk are taken as its last one: the model may be wrong
    /// about the capacity, and a policy cannot fail.
    fn start(&self, extent: Extent) -> Self::Place;

    /// Returns the place at which an access of `extent` leaves the head.
    fn end(&self, extent: Extent) -> Self::Place;

    /// From the dispatch of a command at `now`, to a drive whose head rests at `from`, until the
    /// first sector of `to` is under it.
    fn predict(&self, now: Time, from: Self::Place, to: Self::Place, op: Op) -> Predicted;

    /// The seek part of [`Positioning::predict`] alone, which does not depend on time.
    fn seek(&self, from: Self::Place, to: Self::Place, op: Op) -> Nanos;

    /// A lower bound of [`Positioning::seek`] for any request that starts at least as far from
    /// `from` as `lba` is, on the same side; used to end a search early. Zero is always right.
    fn seek_at_least(&self, _from: Self::Place, _lba: Lba) -> Nanos {
        Nanos::ZERO
    }
}

impl<P: Positioning + ?Sized> Positioning for alloc::sync::Arc<P> {
    type Place = P::Place;

    fn start(&self, extent: Extent) -> P::Place {
        (**self).start(extent)
    }

    fn end(&self, extent: Extent) -> P::Place {
        (**self).end(extent)
    }

    fn predict(&self, now: Time, from: P::Place, to: P::Place, op: Op) -> Predicted {
        (**self).predict(now, from, to, op)
    }

    fn seek(&self, from: P::Place, to: P::Place, op: Op) -> Nanos {
        (**self).seek(from, to, op)
    }

    fn seek_at_least(&self, from: P::Place, lba: Lba) -> Nanos {
        (**self).seek_at_least(from, lba)
    }
}
