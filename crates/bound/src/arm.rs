//! The least time in which an arm can have brought sectors under its head.
//!
//! The arm is on one track at a time, and a sector passes under the head only while it is there. So
//! of all orders, with every wait and every detour, none takes less than
//!
//! ```text
//! what the wanted sectors take to pass
//!   + on each track, for each gap between wanted sectors but the longest, what it takes to pass,
//!     or one more movement if that is less
//!   + the shortest movements that join all these tracks
//! ```
//!
//! since a head that stays on a track passes over the gaps, and one that leaves and comes back has
//! moved once more. Waiting for the first sector of a track costs nothing here, and tracks that
//! follow each other are joined by the movement alone, not by the skew: a head that lands in the
//! middle of a track that is wanted as a whole is at the same place one turn later.

use crate::moves::Moves;
use crate::spans::Spans;
use headtime_disk::profile::{Profile, ReadAhead};
use headtime_disk::{Layout, Mechanics};
use headtime_units::{Cylinder, Head, Lba, Nanos, Track};

/// What of the wanted sectors need not pass under the head after all, since the buffer still has it at
/// the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// So many sectors at most.
    pub sectors: u64,
    /// In so many stretches at most.
    pub stretches: u64,
}

/// Wanted sectors that pass one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    /// Cylinder and head of the track.
    track: u64,
    /// When in a turn the first begins.
    from: u32,
    /// How long all take.
    takes: u32,
}

const HEAD_BITS: u32 = 16;

fn cylinder(track: u64) -> u32 {
    (track >> HEAD_BITS) as u32
}

fn track(track: u64) -> Track {
    Track {
        cylinder: Cylinder(cylinder(track)),
        head: Head((track & ((1 << HEAD_BITS) - 1)) as u16),
    }
}

fn number(track: Track) -> u64 {
    u64::from(track.cylinder.0) << HEAD_BITS | u64::from(track.head.0)
}

/// The arm and the platters of a drive at their quickest.
pub(crate) struct Arm<'a> {
    profile: &'a Profile,
    layout: &'a Layout,
    mechanics: Mechanics,
    moves: Moves,
    /// What rounding can make of the time of a piece where units turn at different speeds.
    rounding: u64,
}

impl<'a> Arm<'a> {
    pub fn new(profile: &'a Profile, layout: &'a Layout) -> Arm<'a> {
        let turn = profile.rotation.turn().as_nanos();
        let ppm = u64::from(profile.noise.speed_ppm);
        let quickest = match ppm {
            0 => turn,
            // Rounded to a nanosecond when it is drawn.
            _ => turn * 1_000_000 / (1_000_000 + ppm) - 1,
        };
        let mechanics = Mechanics::new(profile).with_turn(Nanos::from_nanos(quickest));
        Arm {
            profile,
            layout,
            moves: Moves::new(profile, &mechanics),
            mechanics,
            rounding: u64::from(ppm > 0),
        }
    }

    fn turn(&self) -> u64 {
        self.mechanics.turn().as_nanos()
    }

    /// The least movement there is.
    pub fn least_move(&self) -> u64 {
        self.moves.least(0)
    }

    /// The least way between the tracks of two sets that do not share cylinders; zero if they do.
    pub fn way_between(&self, one: &Spans, other: &Spans) -> u64 {
        let ends = |spans: &Spans| {
            let mut ends = (u32::MAX, 0);
            for piece in self.pieces(spans) {
                let at = cylinder(piece.track);
                ends = (ends.0.min(at), ends.1.max(at));
            }
            ends
        };
        let (one, other) = (ends(one), ends(other));
        let between = match (other.0.checked_sub(one.1), one.0.checked_sub(other.1)) {
            (Some(gap), _) | (_, Some(gap)) if gap > 0 => gap,
            _ => return 0,
        };
        self.moves.least(between)
    }

    /// The least time for all sectors of `wanted`, but for what is hidden; with the way from where
    /// the arm rests at first if it begins there.
    pub fn least(&self, wanted: &Spans, from_rest: bool, hidden: Hidden) -> Nanos {
        let pieces = self.pieces(wanted);
        if pieces.is_empty() {
            return Nanos::ZERO;
        }
        let mut total = 0;
        let mut ways: Vec<u64> = Vec::new();
        let mut at = from_rest.then(|| number(self.layout.home()));
        for on_track in pieces.chunk_by(|one, next| one.track == next.track) {
            let track = on_track[0].track;
            if let Some(before) = at
                && before != track
            {
                let way = cylinder(track).abs_diff(cylinder(before));
                let way = self.moves.least(way);
                total += way;
                if hidden.sectors > 0 {
                    ways.push(way);
                }
            }
            at = Some(track);
            total += self.on_track(on_track);
        }
        if hidden.sectors > 0 {
            ways.sort_unstable_by(|one, other| other.cmp(one));
            total = total.saturating_sub(self.saved(&pieces, &ways, hidden));
        }
        Nanos::from_nanos(total)
    }

    /// What the sectors of `wanted` take to pass, and nothing else.
    pub fn passing(&self, wanted: &Spans) -> Nanos {
        let pieces = self.pieces(wanted);
        let of_track = |pieces: &[Piece]| {
            let passing: u64 = pieces.iter().map(|piece| u64::from(piece.takes)).sum();
            let passing = passing.saturating_sub(self.rounding * pieces.len() as u64);
            self.without_free_sectors(passing, pieces[0].track)
        };
        let by_track = pieces.chunk_by(|one, next| one.track == next.track);
        Nanos::from_nanos(by_track.map(of_track).sum())
    }

    /// The least time on one track.
    fn on_track(&self, pieces: &[Piece]) -> u64 {
        let turn = self.turn();
        let (mut passing, mut gaps, mut longest) = (0, 0, 0);
        for (number, piece) in pieces.iter().enumerate() {
            let end = u64::from(piece.from) + u64::from(piece.takes);
            let next = match pieces.get(number + 1) {
                Some(next) => u64::from(next.from),
                None => u64::from(pieces[0].from) + turn,
            };
            let gap = next.saturating_sub(end);
            let skipped = gap.min(self.least_move());
            passing += u64::from(piece.takes);
            gaps += skipped;
            longest = longest.max(skipped);
        }
        let least = passing + gaps - longest;
        let least = least.saturating_sub(self.rounding * 2 * pieces.len() as u64);
        self.without_free_sectors(least, pieces[0].track)
    }

    /// Whether sectors in front of a request are kept as they pass under the head.
    fn keeps_free_sectors(&self) -> bool {
        self.profile.cache.enabled && self.profile.cache.read_free_sectors
    }

    /// `least` on a track, less what the buffer may have of it though it never passed.
    ///
    /// A drive that keeps the sectors in front of a request counts as many as slots have passed, bad
    /// ones too. One that also takes sectors in any order counts the whole track as read once a turn
    /// has passed since the head landed, though the head may have gone on to the next track in that
    /// turn. So in a turn as much may come in as a segment holds, or two tracks if that is less.
    fn without_free_sectors(&self, least: u64, track: u64) -> u64 {
        if !self.keeps_free_sectors() {
            return least;
        }
        let track = self::track(track);
        let cylinder = track.cylinder;
        let here = self.layout.track_extent(track);
        let per_track = self.layout.sectors_per_track(track);
        let (Some(here), Some(per_track)) = (here, per_track) else {
            return 0;
        };
        let (turn, per_track) = (self.turn(), u64::from(per_track));
        let slot = turn.div_ceil(per_track);
        let bad = per_track.saturating_sub(here.len.get());
        let least = least.saturating_sub(bad * slot);
        let cache = &self.profile.cache;
        let whole = self.profile.access.zero_latency_read && cache.read_ahead != ReadAhead::Off;
        if !whole || here.end() >= Lba::ZERO + self.layout.capacity() {
            return least;
        }
        // The head goes on to the next track, and in less than a turn no further unless that is
        // shorter by more than the way to it makes up for.
        let next = self.layout.run(here.end()).track;
        let of_next = self.layout.track_extent_of(here.end()).len.get();
        let slots_of_next = self.layout.sectors_per_track(next);
        let slots_of_next = slots_of_next.map_or(per_track, u64::from);
        let lacking = slots_of_next.saturating_sub(of_next) * turn.div_ceil(slots_of_next);
        let mut moved = self.moves.least(cylinder.distance(next.cylinder));
        if lacking > self.least_move() {
            if self.profile.layout.map.is_some() {
                // Any number of short tracks may follow.
                return 0;
            }
            moved += self.moves.least(self.layout.group_cylinders()) * 2;
        }
        let segment = u64::from(cache.segment_sectors);
        let slots = per_track.min(slots_of_next);
        let left = u128::from(turn.saturating_sub(moved) * slots);
        let needed = u128::from(turn * segment.min(2 * slots));
        if needed <= left {
            least
        } else {
            (u128::from(least) * left / needed) as u64
        }
    }

    /// The most that is saved by what is hidden, given the movements, the longest first.
    ///
    /// Sectors save what they take to pass. A track of which nothing is left saves one movement,
    /// since the one that replaces two is no shorter than the longer of them; a track of which
    /// something is left may save one gap.
    fn saved(&self, pieces: &[Piece], ways: &[u64], hidden: Hidden) -> u64 {
        let (mut slots, mut shortest) = (u64::MAX, u64::MAX);
        for on_track in pieces.chunk_by(|one, next| one.track == next.track) {
            let track = track(on_track[0].track);
            let here = self.layout.track_extent(track);
            let per_track = self.layout.sectors_per_track(track);
            slots = slots.min(per_track.map_or(1, u64::from));
            shortest = shortest.min(here.map_or(1, |extent| extent.len.get()).max(1));
        }
        let slot = self.turn().div_ceil(slots) + 1;
        // A stretch has a part of at most two tracks, and all of the others that it is on.
        let stretches = hidden.stretches.min(hidden.sectors);
        let places = match self.layout.has_remaps() {
            // Sectors that were moved elsewhere are on tracks of their own.
            true => hidden.sectors,
            false => (2 * stretches + hidden.sectors / shortest).min(hidden.sectors),
        };
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        let moved: u64 = ways.iter().take(places).sum();
        let rest = places.saturating_sub(ways.len()).min(pieces.len()) as u64;
        hidden.sectors * slot + moved + rest * self.least_move()
    }

    /// Where sectors are, in order of tracks and of passing.
    fn pieces(&self, wanted: &Spans) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(wanted.count());
        // Sectors that were moved count as kept with the track that they belong to.
        let moved = self.layout.has_remaps() && self.keeps_free_sectors();
        let elsewhere = |track, lba| {
            let here = self.layout.track_extent(track);
            moved && !here.is_some_and(|extent| extent.contains(lba))
        };
        for extent in wanted.extents() {
            let (mut next, end) = (extent.start, extent.end());
            while next < end {
                let run = self.layout.run(next).truncated((end - next).get());
                let from = self.mechanics.phase(run.angle(0));
                let to = self.mechanics.phase(run.angle(run.len));
                let takes = match run.len == run.sectors_per_track {
                    true => self.mechanics.turn(),
                    false => self.mechanics.wait(from, to),
                };
                let kept_elsewhere = elsewhere(run.track, run.start);
                next = Lba::new(next.get() + u64::from(run.len));
                if kept_elsewhere {
                    continue;
                }
                pieces.push(Piece {
                    track: number(run.track),
                    from: from.as_nanos() as u32,
                    takes: takes.as_nanos() as u32,
                });
            }
        }
        // Addresses mostly come in this order already.
        if !pieces.is_sorted() {
            pieces.sort_unstable();
        }
        pieces
    }
}
