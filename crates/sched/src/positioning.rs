//! The assumed profile of the disk, as position-aware policies use it.

use crate::{Op, Twin};
use alloc::boxed::Box;
use headtime_units::{Extent, Lba, Nanos, Time};

/// A prediction of the time until the head is over the first sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// Movement of the arm, including settling, and head switches.
    pub seek: Nanos,
    /// The rest of the time until the first sector comes: rotational wait after the seek, and processing that delays
    /// the arm. More than a turn only if the processing alone is.
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
pub struct HeadAfter<Place> {
    /// Place at which the request leaves the head.
    pub place: Place,
    /// Time from which on the arm may leave for another request, by the clock of the model.
    pub free: Time,
}

/// A prediction of a whole request: the time for which the request has the head, and the resulting state.
///
/// Head time is seek, rotational latency and transfer. Lumb, Schindler and Ganger (FAST 2002, section 4.2 and figure 6)
/// count it from the end of one request to the end of the next, while commands and bus are hidden behind the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadTime<Place> {
    /// Movement of the arm, including settling, and head switches, also to further tracks within the request.
    pub seek: Nanos,
    /// All waits for sectors, and processing that delays the arm.
    pub rotation: Nanos,
    /// Time of the sectors under the head.
    pub transfer: Nanos,
    /// The head behind the request.
    pub head: HeadAfter<Place>,
    /// Time at which the drive reports completion, by the clock of the model.
    pub done: Time,
    /// True if the drive reports completion when the medium has served the request. The end of a write in the drive's
    /// buffer says nothing about the head, unless the write is forced to the medium (FUA).
    pub on_medium: bool,
    /// Time at which the drive reports that it has the data of a write in its buffer. The arm need not leave for such a
    /// write, since the drive writes the data later at a time of its choice. `head` and `done` are the values for a
    /// write that is forced to the medium.
    pub buffered: Option<Time>,
}

impl<Place: Copy> HeadTime<Place> {
    /// Returns the prediction behind `head` for a request that is `forced` to the medium or not. If a buffered write is
    /// not forced, the arm stays at `head`.
    pub fn buffered_unless(self, forced: bool, head: &HeadAfter<Place>) -> HeadTime<Place> {
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
pub trait Positioning: Send + Sync {
    /// A physical position, in the model's own terms.
    type Place: Copy + Send;

    /// Returns the place of the first sector of `extent`.
    ///
    /// Sectors past the end of the model's disk count as its last sector: the model may be wrong about the capacity,
    /// and a policy cannot fail.
    fn start(&self, extent: Extent) -> Self::Place;

    /// Returns the place at which an access of `extent` leaves the head.
    fn end(&self, extent: Extent) -> Self::Place;

    /// Returns the place at which an access of `extent` leaves the head, if its operation is known.
    fn left_by(&self, extent: Extent, _op: Op) -> Self::Place {
        self.end(extent)
    }

    /// Time of a revolution. `None` if the model does not know the phase of the platter.
    fn turn(&self) -> Option<Nanos> {
        None
    }

    /// A simulated drive at rest, if the model has one.
    fn twin(&self) -> Option<Box<dyn Twin>> {
        None
    }

    /// Longest time for which a drive may hold a write in its buffer after it has reported completion. [`Nanos::MAX`]
    /// if the time is unknown. The value is not used for a drive whose writes end on the medium.
    fn holds_writes(&self) -> Nanos {
        Nanos::MAX
    }

    /// Returns true if the drive's buffer serves a request of this operation that continues the request before. A read then has its sectors
    /// from the read-ahead, and a write joins the write before.
    fn serves_runs(&self, _op: Op) -> bool {
        false
    }

    /// Predicts the time from the dispatch of a command at `now`, to a drive whose head rests at `from`, until the
    /// first sector of `to` is under the head.
    fn predict(&self, now: Time, from: Self::Place, to: Self::Place, op: Op) -> Predicted;

    /// Like [`Positioning::predict`], for a command that is sent at `sent` to a drive whose head may still be busy.
    /// Counts from the later of two times: when the head is free, and when the command is sent.
    fn predict_behind(
        &self,
        head: &HeadAfter<Self::Place>,
        sent: Time,
        to: Self::Place,
        op: Op,
    ) -> Predicted {
        self.predict(head.free.max(sent), head.place, to, op)
    }

    /// Predicts a whole request that is sent at `sent` and comes behind `head`. The end of one request is the beginning
    /// of the next.
    fn follow(
        &self,
        head: &HeadAfter<Self::Place>,
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
            head: HeadAfter {
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

    /// A lower bound of [`Positioning::seek`] for any request that starts at least as far from `from` as `lba`, on the
    /// same side. A search ends early by this bound. Zero is always a valid bound.
    ///
    /// `to` is the place of `lba` ([`Positioning::start`]). The search already knows this place, and locating costs
    /// more than the bound.
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

    fn serves_runs(&self, op: Op) -> bool {
        (**self).serves_runs(op)
    }

    fn holds_writes(&self) -> Nanos {
        (**self).holds_writes()
    }

    fn predict(&self, now: Time, from: P::Place, to: P::Place, op: Op) -> Predicted {
        (**self).predict(now, from, to, op)
    }

    fn predict_behind(
        &self,
        head: &HeadAfter<P::Place>,
        sent: Time,
        to: P::Place,
        op: Op,
    ) -> Predicted {
        (**self).predict_behind(head, sent, to, op)
    }

    fn follow(
        &self,
        head: &HeadAfter<P::Place>,
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
