//! Knowledge of a model for a search of gap reads: tracks, arm movements between tracks, and sectors that pass under
//! the head.

use crate::{HeadAfter, Op, Positioning};
use headtime_units::{Angle, Extent, Nanos, Sectors, Time, Track};

/// Sectors of one track that pass under the head one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Consecutive addresses of the sectors.
    pub extent: Extent,
    /// From the beginning of the window until the beginning of the first sector.
    pub begin: Nanos,
    /// From the beginning of the window until the end of the last sector.
    pub end: Nanos,
}

impl Pass {
    /// From the beginning of the window until the end of the first `sectors` sectors. Equal to [`Pass::begin`] for zero
    /// sectors.
    ///
    /// # Panics
    ///
    /// In debug builds, if the pass has fewer sectors.
    pub fn ended(&self, sectors: u64) -> Nanos {
        debug_assert!(sectors <= self.extent.len.get());
        let all = u128::from((self.end - self.begin).as_nanos());
        let part = all * u128::from(sectors) / u128::from(self.extent.len.get().max(1));
        self.begin + Nanos::from_nanos(part as u64)
    }
}

/// Addresses in consecutive slots of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackPart {
    /// Consecutive addresses.
    pub extent: Extent,
    /// Angle at which the first address begins.
    pub begin: Angle,
    /// From one slot to the next, in 2^64ths of a turn, rounded down; 0 for a track of one slot.
    pub step: u64,
}

impl TrackPart {
    /// Angle at which the slot of the address `sectors` behind the first begins. Exact to a few 2^32nds of a turn.
    pub fn angle(&self, sectors: u64) -> Angle {
        self.begin + Angle::from_bits((self.step.wrapping_mul(sectors) >> 32) as u32)
    }
}

/// The way in which a drive caches the sectors that it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// Largest number of address ranges that the drive caches. The drive evicts the least recently used range.
    pub segments: u32,
    /// Largest number of sectors that the drive reads ahead behind a request. Zero if the drive does not read ahead.
    pub ahead: Sectors,
    /// Shortest time in which a sector passes.
    pub sector: Nanos,
    /// Time for which the drive goes on reading ahead after a command is sent: until it has processed the command.
    pub processing: Nanos,
    /// Longest further time for which the drive reads ahead after it has processed a command: until the arm has to
    /// leave.
    pub stays: Nanos,
    /// From the end of a read's last sector until the drive reports completion: the time for one sector, and the time
    /// for each further sector.
    pub telling: [Nanos; 2],
    /// True if the drive caches the sectors that pass in front of a read while the head waits for the read on its
    /// track.
    pub front: bool,
}

/// A [`Positioning`] that knows tracks.
///
/// While the head waits for a sector, it can read what passes on another track, if the arm is back in time. This is
/// freeblock scheduling (Lumb, Schindler and Ganger, FAST 2002, section 4.3). A search for such work asks for the
/// tracks, the times of arm movements, and the sectors that pass in the remaining time.
pub trait Passing: Positioning {
    /// Number of cylinders, at least 1.
    fn cylinders(&self) -> u32;

    /// Number of surfaces, at least 1.
    fn heads(&self) -> u16;

    /// The track of a place.
    fn track(&self, place: Self::Place) -> Track;

    /// Consecutive addresses on a track. Empty if the track does not exist. Some of the addresses may be elsewhere, if
    /// the disk has remapped sectors.
    fn addresses(&self, track: Track) -> Extent;

    /// Calls `each` with the places of a track's addresses. Remapped addresses are left out.
    fn parts(&self, track: Track, each: &mut dyn FnMut(TrackPart));

    /// Angle under the heads at a time, by the clock of the model, to a nanosecond.
    fn angle_at(&self, now: Time) -> Angle;

    /// Time of the head's movement from one track to another, until the head can read or write there.
    fn way(&self, from: Track, to: Track, op: Op) -> Nanos;

    /// Time at which the head can begin to read or write on a track, for a command that is sent at `sent` and comes
    /// behind `head`. On every cylinder except the head's own, the earliest arrival is at the track of the head's
    /// surface.
    fn arrives(&self, head: &HeadAfter<Self::Place>, sent: Time, track: Track, op: Op) -> Time;

    /// Latest time until which a read on `from` may keep the head busy, so that the head [arrives](Passing::arrives) at
    /// `to` by `by`, for a command that is sent at `sent`. `None` if the head would be late however soon it is free. On
    /// every cylinder except that of `to`, the latest time is for the track on the surface of `to`.
    fn leaves(&self, from: Track, sent: Time, to: Track, by: Time, op: Op) -> Option<Time>;

    /// Lower bound of the time for which the head stays busy after the last sector of a read. The sectors of the read
    /// pass one after the other, and the read does not end at the end of the disk. Zero is always a valid bound.
    fn lingers(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Lower bound of the time for which each sector of a read keeps the head busy, counted from the beginning of the
    /// first sector. [`Passing::lingers`] is added to the sum. If the arm waits until all data has been sent, this is a
    /// sector's time on the bus. Zero is always a valid bound.
    fn pace(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Returns the way in which the drive caches sectors for later commands. `None` if the drive does not, or if the
    /// behaviour is unknown.
    fn buffering(&self) -> Option<Buffering> {
        None
    }

    /// A lower bound of [`Passing::way`] for all arm movements over this many cylinders or more.
    fn way_at_least(&self, cylinders: u32) -> Nanos;

    /// Calls `each` with the sectors that pass completely under a head over a track, from `from` on by the clock of the
    /// model, for `span`, at most a turn. Each address is reported once. The track's first address and skipped slots
    /// split the sectors into pieces. The pieces come in no particular order. Nothing is reported if the track does not
    /// exist.
    fn passing(&self, track: Track, from: Time, span: Nanos, each: &mut dyn FnMut(Pass));
}

impl<P: Passing + ?Sized> Passing for alloc::sync::Arc<P> {
    fn cylinders(&self) -> u32 {
        (**self).cylinders()
    }

    fn heads(&self) -> u16 {
        (**self).heads()
    }

    fn track(&self, place: P::Place) -> Track {
        (**self).track(place)
    }

    fn addresses(&self, track: Track) -> Extent {
        (**self).addresses(track)
    }

    fn parts(&self, track: Track, each: &mut dyn FnMut(TrackPart)) {
        (**self).parts(track, each);
    }

    fn angle_at(&self, now: Time) -> Angle {
        (**self).angle_at(now)
    }

    fn way(&self, from: Track, to: Track, op: Op) -> Nanos {
        (**self).way(from, to, op)
    }

    fn arrives(&self, head: &HeadAfter<P::Place>, sent: Time, track: Track, op: Op) -> Time {
        (**self).arrives(head, sent, track, op)
    }

    fn leaves(&self, from: Track, sent: Time, to: Track, by: Time, op: Op) -> Option<Time> {
        (**self).leaves(from, sent, to, by, op)
    }

    fn lingers(&self) -> Nanos {
        (**self).lingers()
    }

    fn pace(&self) -> Nanos {
        (**self).pace()
    }

    fn buffering(&self) -> Option<Buffering> {
        (**self).buffering()
    }

    fn way_at_least(&self, cylinders: u32) -> Nanos {
        (**self).way_at_least(cylinders)
    }

    fn passing(&self, track: Track, from: Time, span: Nanos, each: &mut dyn FnMut(Pass)) {
        (**self).passing(track, from, span, each);
    }
}
