//! What a position-aware policy believes about the disk.

use crate::{Op, Twin};
use alloc::boxed::Box;
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

/// The head behind a request, as a model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<Place> {
    /// Where it is left.
    pub place: Place,
    /// From when on the arm may leave for another request, by the clock of the model.
    pub free: Time,
}

/// A prediction of a whole request: the time for which it has the head, and what comes of that.
///
/// Head time is seek, rotational latency and transfer. Lumb, Schindler and Ganger (FAST 2002, section 4.2 and figure 6)
/// count it from the end of one request to the end of the next, while commands and bus are hidden behind the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadTime<Place> {
    /// Moving the arm and switching heads, settled, and on to other tracks within the request.
    pub seek: Nanos,
    /// Every wait for a sector, and processing that delays the arm.
    pub rotation: Nanos,
    /// Sectors under the head.
    pub transfer: Nanos,
    /// The head behind the request.
    pub head: Head<Place>,
    /// When the drive tells that the request is done, by the clock of the model.
    pub done: Time,
    /// Whether that is when the medium has served it. A write that ends in the drive's buffer tells nothing of the head, unless it is forced to the
    /// medium (FUA).
    pub on_medium: bool,
    /// Of a write for which the arm need not leave, since the drive takes its data and goes for them when it sees fit: when the drive tells that it
    /// has them. `head` and `done` are those of a write that is forced to the medium.
    pub buffered: Option<Time>,
}

impl<Place: Copy> HeadTime<Place> {
    /// The same behind `head` for a request that is `forced` to the medium or not: where it need not be, the arm stays.
    pub fn buffered_unless(self, forced: bool, head: &Head<Place>) -> HeadTime<Place> {
        match self.buffered {
            Some(done) if !forced => HeadTime {
                head: *head,
                done,
                ..self
            },
            _ => HeadTime {
                on_medium: self.on_medium || forced,
                buffered: None,
                ..self
            },
        }
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

    /// Returns the place at which an access of `extent` leaves the head, if its operation is known.
    fn left_by(&self, extent: Extent, _op: Op) -> Self::Place {
        self.end(extent)
    }

    /// The time of a revolution; `None` if the model does not know where the platter is.
    fn turn(&self) -> Option<Nanos> {
        None
    }

    /// A simulated drive at rest, if the model has one.
    fn twin(&self) -> Option<Box<dyn Twin>> {
        None
    }

    /// For how long a drive may keep a write in its buffer that it has told to be done. As long as it can, where nobody knows; a drive
    /// whose writes end on the medium is not asked.
    fn holds_writes(&self) -> Nanos {
        Nanos::MAX
    }

    /// From the dispatch of a command at `now`, to a drive whose head rests at `from`, until the
    /// first sector of `to` is under it.
    fn predict(&self, now: Time, from: Self::Place, to: Self::Place, op: Op) -> Predicted;

    /// Like [`Positioning::predict`], for a command that is sent at `sent` to a drive whose head may still be busy.
    /// Counts from when the head is free and the command is sent, whichever is later.
    fn predict_behind(
        &self,
        head: &Head<Self::Place>,
        sent: Time,
        to: Self::Place,
        op: Op,
    ) -> Predicted {
        self.predict(head.free.max(sent), head.place, to, op)
    }

    /// Predicts a whole request that is sent at `sent` and comes behind `head`. The end of one is where the next one begins.
    fn follow(
        &self,
        head: &Head<Self::Place>,
        sent: Time,
        extent: Extent,
        op: Op,
    ) -> HeadTime<Self::Place> {
        let begin = head.free.max(sent);
        let Predicted { seek, rotation } = self.predict_behind(head, sent, self.start(extent), op);
        let free = begin + seek + rotation;
        HeadTime {
            seek,
            rotation,
            transfer: Nanos::ZERO,
            head: Head {
                place: self.left_by(extent, op),
                free,
            },
            done: free,
            on_medium: true,
            buffered: None,
        }
    }

    /// The seek part of [`Positioning::predict`] alone, which does not depend on time.
    fn seek(&self, from: Self::Place, to: Self::Place, op: Op) -> Nanos;

    /// A lower bound of [`Positioning::seek`] for any request that starts at least as far from
    /// `from` as `lba` is, on the same side; used to end a search early. Zero is always right.
    ///
    /// `to` is the place of `lba` ([`Positioning::start`]). Locating costs more than the answer, and a search knows the place.
    fn seek_at_least(&self, _from: Self::Place, _to: Self::Place, _lba: Lba) -> Nanos {
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

    fn left_by(&self, extent: Extent, op: Op) -> P::Place {
        (**self).left_by(extent, op)
    }

    fn turn(&self) -> Option<Nanos> {
        (**self).turn()
    }

    fn twin(&self) -> Option<Box<dyn Twin>> {
        (**self).twin()
    }

    fn holds_writes(&self) -> Nanos {
        (**self).holds_writes()
    }

    fn predict(&self, now: Time, from: P::Place, to: P::Place, op: Op) -> Predicted {
        (**self).predict(now, from, to, op)
    }

    fn predict_behind(&self, head: &Head<P::Place>, sent: Time, to: P::Place, op: Op) -> Predicted {
        (**self).predict_behind(head, sent, to, op)
    }

    fn follow(
        &self,
        head: &Head<P::Place>,
        sent: Time,
        extent: Extent,
        op: Op,
    ) -> HeadTime<P::Place> {
        (**self).follow(head, sent, extent, op)
    }

    fn seek(&self, from: P::Place, to: P::Place, op: Op) -> Nanos {
        (**self).seek(from, to, op)
    }

    fn seek_at_least(&self, from: P::Place, to: P::Place, lba: Lba) -> Nanos {
        (**self).seek_at_least(from, to, lba)
    }
}
