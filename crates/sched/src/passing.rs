//! What a model must know for a search of what to read in a gap: tracks, the ways between them, and what passes on them.

use crate::{Head, Op, Positioning};
use headtime_units::{Angle, Extent, Nanos, Sectors, Time, Track};

/// Sectors of one track that pass under the head one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Their addresses, which follow each other.
    pub extent: Extent,
    /// From the beginning of the window until the first of them begins.
    pub begin: Nanos,
    /// From the beginning of the window until the last of them ends.
    pub end: Nanos,
}

impl Pass {
    /// From the beginning of the window until the first `sectors` of them have ended; the same as
    /// [`Pass::begin`] for none.
    ///
    /// # Panics
    ///
    /// In debug builds, if there are fewer.
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
    /// The addresses, which follow each other.
    pub extent: Extent,
    /// Where the first of them begins.
    pub begin: Angle,
    /// From one slot to the next, in 2^64ths of a turn, rounded down; 0 for a track of one slot.
    pub step: u64,
}

impl TrackPart {
    /// Where the slot of an address begins, as many behind the first; within a few 2^32nds of a turn.
    pub fn angle(&self, sectors: u64) -> Angle {
        self.begin + Angle::from_bits((self.step.wrapping_mul(sectors) >> 32) as u32)
    }
}

/// How a drive keeps in its buffer what it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// How many stretches of addresses it keeps at most; those that were used last.
    pub segments: u32,
    /// How far it reads ahead at most, behind what was asked for; zero if it does not.
    pub ahead: Sectors,
    /// How long a sector passes at least.
    pub sector: Nanos,
    /// How long it goes on reading ahead after a command is sent: until it has processed that.
    pub processing: Nanos,
    /// Longest time for which it reads ahead besides, although a command is processed: until the arm has to leave.
    pub stays: Nanos,
    /// From the end of a read's last sector until the drive tells of its end: of one sector, and for each more.
    pub telling: [Nanos; 2],
    /// Whether it keeps what passes in front of a read while the head waits for it on its track.
    pub front: bool,
}

/// A [`Positioning`] that knows tracks.
///
/// While the head waits for a sector, it can be over another track and read what passes there, if the arm is back in time:
/// freeblock scheduling (Lumb, Schindler and Ganger, FAST 2002, section 4.3). Whoever looks for such work asks which tracks
/// there are, how long the ways take, and what passes in the time that is left.
pub trait Passing: Positioning {
    /// How many cylinders there are, at least 1.
    fn cylinders(&self) -> u32;

    /// How many surfaces there are, at least 1.
    fn heads(&self) -> u16;

    /// The track of a place.
    fn track(&self, place: Self::Place) -> Track;

    /// The addresses on a track, one after the other; none if there is no such track. Some of them may be
    /// elsewhere, if the disk has remapped sectors.
    fn addresses(&self, track: Track) -> Extent;

    /// Tells where the addresses on a track are, but for those that are elsewhere.
    fn parts(&self, track: Track, each: &mut dyn FnMut(TrackPart));

    /// The angle under the heads at a time, by the clock of the model, to a nanosecond.
    fn angle_at(&self, now: Time) -> Angle;

    /// How long the head takes from one track to another until it can read or write there.
    fn way(&self, from: Track, to: Track, op: Op) -> Nanos;

    /// When the head can begin to read or write on a track, for a command that is sent at `sent` and comes behind `head`. On
    /// a cylinder where the head is not, it arrives at no track sooner than at that of the same surface.
    fn arrives(&self, head: &Head<Self::Place>, sent: Time, track: Track, op: Op) -> Time;

    /// The latest time until which the head may be busy with a read on `from`, so that it [arrives](Passing::arrives) at `to` by `by`, for a
    /// command that is sent at `sent`; `None` if it does not, however soon it is free. It may be busy until no later on
    /// the other tracks of a cylinder where `to` is not than on that of the same surface.
    fn leaves(&self, from: Track, sent: Time, to: Track, by: Time, op: Op) -> Option<Time>;

    /// A lower bound of how long the head is busy behind the end of the last sector of a read whose sectors pass one after the other,
    /// and which does not end where the disk does. Zero is always right.
    fn lingers(&self) -> Nanos {
        Nanos::ZERO
    }

    /// For so long each sector of a read keeps the head busy at the least, from when the first one begins, and [`Passing::lingers`] comes
    /// besides: where the arm waits until all has been sent, a sector's time on the bus. Zero is always right.
    fn pace(&self) -> Nanos {
        Nanos::ZERO
    }

    /// How the drive keeps what it has read for later commands; `None` if it does not, or nobody knows.
    fn buffering(&self) -> Option<Buffering> {
        None
    }

    /// A lower bound of [`Passing::way`] for all ways over this many cylinders or more.
    fn way_at_least(&self, cylinders: u32) -> Nanos;

    /// Tells what passes whole under a head that is over a track from `from` on, by the clock of the model, for `span`,
    /// at most a turn. Each address once; pieces that the track's first address or a skipped place part come
    /// one by one, in no particular order. Nothing if there is no such track.
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

    fn arrives(&self, head: &Head<P::Place>, sent: Time, track: Track, op: Op) -> Time {
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
