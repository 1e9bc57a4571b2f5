//! What a model must know for a search of what to read in a gap: tracks, the ways between them, and what passes on them.

use crate::{Head, Op, Positioning};
use headtime_units::{Extent, Nanos, Time, Track};

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

    /// How long the head takes from one track to another until it can read or write there.
    fn way(&self, from: Track, to: Track, op: Op) -> Nanos;

    /// When the head can begin to read or write on a track, for a command that is sent at `sent` and comes behind `head`.
    fn arrives(&self, head: &Head<Self::Place>, sent: Time, track: Track, op: Op) -> Time;

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

    fn way(&self, from: Track, to: Track, op: Op) -> Nanos {
        (**self).way(from, to, op)
    }

    fn arrives(&self, head: &Head<P::Place>, sent: Time, track: Track, op: Op) -> Time {
        (**self).arrives(head, sent, track, op)
    }

    fn way_at_least(&self, cylinders: u32) -> Nanos {
        (**self).way_at_least(cylinders)
    }

    fn passing(&self, track: Track, from: Time, span: Nanos, each: &mut dyn FnMut(Pass)) {
        (**self).passing(track, from, span, each);
    }
}
