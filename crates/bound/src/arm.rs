//! The least time in which an arm can bring sectors under its head.
//!
//! The arm is on one track at a time, and a sector passes under the head only while the arm is on its track. So every
//! order takes at least the following sum, with any waits and detours:
//!
//! ```text
//! what the wanted sectors take to pass
//!   + on each track, for each gap between wanted sectors but the longest, what it takes to pass,
//!     or one more movement if that is less
//!   + the shortest movements that join all these tracks
//! ```
//!
//! A head that stays on a track passes over the gaps. A head that leaves and comes back makes one more movement. The
//! sum contains no wait for the first sector of a track. Between consecutive tracks the sum contains the movement
//! alone, without the skew. The reason: a head that lands in the middle of a track and reads the whole track is at the
//! same place one turn later.

use crate::moves::Moves;
use crate::spans::Spans;
use crate::tour::Tour;
use headtime_disk::profile::Profile;
use headtime_disk::{Layout, Mechanics, Run};
use headtime_units::{Nanos, Track};

/// Limits on the wanted sectors that need not pass under the head, since the buffer still has them at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Largest number of sectors.
    pub sectors: u64,
    /// Largest number of contiguous stretches.
    pub stretches: u64,
}

/// A run of adjacent wanted sectors on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    /// Phase of the run's start in a turn, in nanoseconds.
    from: u32,
    /// Time in which the run passes, in nanoseconds.
    takes: u32,
}

/// A track with wanted sectors.
#[derive(Clone, Copy, Debug)]
struct Circle {
    track: Track,
    slots: u32,
    /// True if each slot of the track has an address.
    whole: bool,
}

/// Arm and platters of a drive at their quickest.
pub(crate) struct Arm<'a> {
    profile: &'a Profile,
    layout: &'a Layout,
    mechanics: Mechanics,
    moves: Moves,
    /// Rounding error of a piece's time in nanoseconds, if units turn at different speeds.
    rounding: u64,
}

impl<'a> Arm<'a> {
    pub fn new(profile: &'a Profile, layout: &'a Layout) -> Arm<'a> {
        let turn = profile.rotation.turn().as_nanos();
        let ppm = u64::from(profile.noise.speed_ppm);
        let quickest = match ppm {
            0 => turn,
            // A unit's turn is rounded to a nanosecond.
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

    /// Returns the time of the shortest movement.
    pub fn least_move(&self) -> u64 {
        self.moves.least(0)
    }

    /// Returns the least time of a movement between two sets of tracks; zero if their cylinder ranges overlap.
    pub fn way_between(&self, one: &Spans, other: &Spans) -> u64 {
        let ends = |spans: &Spans| {
            let mut ends = (u32::MAX, 0);
            self.each_track(spans, |circle, _| {
                let at = circle.track.cylinder.0;
                ends = (ends.0.min(at), ends.1.max(at));
            });
            ends
        };
        let (one, other) = (ends(one), ends(other));
        let between = match (other.0.checked_sub(one.1), one.0.checked_sub(other.1)) {
            (Some(gap), _) | (_, Some(gap)) if gap > 0 => gap,
            _ => return 0,
        };
        self.moves.least(between)
    }

    /// Returns the least time for all sectors of `wanted` except the hidden ones. With `from_rest`, the time includes
    /// the movement from the arm's home track.
    pub fn least(&self, wanted: &Spans, from_rest: bool, hidden: Hidden) -> Nanos {
        let hides = hidden.sectors > 0;
        let mut tour = Tour::new(self.profile.geometry.cylinders);
        let (mut total, mut extremes) = (0, Extremes::default());
        self.each_track(wanted, |circle, pieces| {
            tour.add(circle.track);
            total += self.on_track(circle, pieces);
            if hides {
                extremes.pieces += pieces.len();
                extremes.slots = extremes.slots.min(u64::from(circle.slots));
                extremes.shortest = extremes.shortest.min(self.addresses(circle));
            }
        });
        if tour.is_empty() {
            return Nanos::ZERO;
        }
        if from_rest {
            tour.begin(self.layout.home());
        }
        total += tour.ways(&self.moves).sum::<u64>() + tour.switches() * self.least_move();
        if hides {
            total = total.saturating_sub(self.saved(&tour, &extremes, hidden));
        }
        Nanos::from_nanos(total)
    }

    /// Returns the number of addresses of a track, at least one.
    fn addresses(&self, circle: &Circle) -> u64 {
        if circle.whole {
            return u64::from(circle.slots);
        }
        let here = self.layout.track_extent(circle.track);
        here.map_or(1, |extent| extent.len.get()).max(1)
    }

    /// Returns the time in which the sectors of `wanted` pass under the head, without gaps and movements.
    pub fn passing(&self, wanted: &Spans) -> Nanos {
        let mut sum = 0;
        self.each_track(wanted, |circle, pieces| {
            let passing: u64 = pieces.iter().map(|piece| u64::from(piece.takes)).sum();
            let passing = passing.saturating_sub(self.rounding * pieces.len() as u64);
            sum += self.without_free_sectors(passing, circle);
        });
        Nanos::from_nanos(sum)
    }

    /// Returns the least time on one track.
    fn on_track(&self, circle: &Circle, pieces: &[Piece]) -> u64 {
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
        self.without_free_sectors(least, circle)
    }

    /// Returns true if the buffer takes sectors in front of a request as they pass under the head.
    fn keeps_free_sectors(&self) -> bool {
        self.profile.cache.enabled && self.profile.cache.read_free_sectors
    }

    /// Returns `least` minus the time of sectors that the buffer may hold without their having passed under the head. A
    /// drive that takes sectors in front of a request counts one sector for each slot that passes, and also counts bad
    /// slots.
    fn without_free_sectors(&self, least: u64, circle: &Circle) -> u64 {
        if circle.whole || !self.keeps_free_sectors() {
            return least;
        }
        let Some(here) = self.layout.track_extent(circle.track) else {
            return 0;
        };
        let per_track = u64::from(circle.slots);
        let bad = per_track.saturating_sub(here.len.get());
        least.saturating_sub(bad * self.turn().div_ceil(per_track))
    }

    /// Returns an upper bound on the time that hidden sectors save.
    ///
    /// A hidden sector saves its passing time. A track whose sectors are all hidden saves one movement, since the
    /// movement that replaces two is no shorter than the longer of the two. A track with sectors left may save one gap.
    fn saved(&self, tour: &Tour, extremes: &Extremes, hidden: Hidden) -> u64 {
        let slot = self.turn().div_ceil(extremes.slots) + 1;
        // A stretch covers parts of at most two tracks, and all of its other tracks.
        let stretches = hidden.stretches.min(hidden.sectors);
        let places = match self.layout.has_remaps() {
            // Each remapped sector may be on a track of its own.
            true => hidden.sectors,
            false => (2 * stretches + hidden.sectors / extremes.shortest).min(hidden.sectors),
        };
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        let mut ways: Vec<u64> = tour.ways(&self.moves).collect();
        let switches = tour.switches();
        let count = ways.len() + switches as usize;
        // A movement within a cylinder is no longer than a movement to another cylinder.
        let far = places.min(ways.len());
        if far < ways.len() {
            ways.select_nth_unstable_by(far, |one, other| other.cmp(one));
        }
        let moved: u64 = ways[..far].iter().sum();
        let moved = moved + ((places - far) as u64).min(switches) * self.least_move();
        let rest = places.saturating_sub(count).min(extremes.pieces) as u64;
        hidden.sectors * slot + moved + rest * self.least_move()
    }

    /// Calls `give` for each track with wanted sectors. The pieces are in the order in which they pass.
    fn each_track(&self, wanted: &Spans, mut give: impl FnMut(&Circle, &[Piece])) {
        if self.layout.has_remaps() {
            self.each_track_out_of_order(wanted, give);
            return;
        }
        // The addresses of a track are contiguous.
        let mut pieces: Vec<Piece> = Vec::new();
        let mut give = |circle: &Circle, pieces: &mut Vec<Piece>| {
            if !pieces.is_sorted() {
                pieces.sort_unstable();
            }
            give(circle, pieces);
            pieces.clear();
        };
        let mut here: Option<Circle> = None;
        let mut whole: Option<Run> = None;
        for extent in wanted.extents() {
            let (mut next, end) = (extent.start, extent.end());
            while next < end {
                if whole.is_none_or(|run| run.end() <= next) {
                    whole = self.layout.whole_track(next);
                }
                let run = match whole {
                    Some(run) => run.skipped((next - run.start).get() as u32),
                    None => self.layout.run(next),
                };
                let run = run.truncated((end - next).get());
                match &here {
                    Some(circle) if circle.track == run.track => {}
                    _ => {
                        if let Some(circle) = here.take() {
                            give(&circle, &mut pieces);
                        }
                        here = Some(Circle {
                            track: run.track,
                            slots: run.sectors_per_track,
                            whole: whole.is_some(),
                        });
                    }
                }
                pieces.push(self.piece(&run));
                next = run.end();
            }
        }
        if let Some(circle) = here {
            give(&circle, &mut pieces);
        }
    }

    /// As [`Arm::each_track`], if remapping scatters the addresses of a track.
    fn each_track_out_of_order(&self, wanted: &Spans, mut give: impl FnMut(&Circle, &[Piece])) {
        let mut all: Vec<(Track, Piece)> = Vec::with_capacity(wanted.count());
        // A drive that takes free sectors counts remapped sectors with their original track.
        let keeps = self.keeps_free_sectors();
        let elsewhere = |track, lba| {
            let here = self.layout.track_extent(track);
            keeps && !here.is_some_and(|extent| extent.contains(lba))
        };
        for extent in wanted.extents() {
            let (mut next, end) = (extent.start, extent.end());
            while next < end {
                let run = self.layout.run(next).truncated((end - next).get());
                next = run.end();
                if !elsewhere(run.track, run.start) {
                    all.push((run.track, self.piece(&run)));
                }
            }
        }
        // Most inputs are in this order already.
        if !all.is_sorted() {
            all.sort_unstable();
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for on_track in all.chunk_by(|(one, _), (next, _)| one == next) {
            let track = on_track[0].0;
            let circle = Circle {
                track,
                slots: self.layout.sectors_per_track(track).unwrap_or(1),
                whole: false,
            };
            pieces.clear();
            pieces.extend(on_track.iter().map(|(_, piece)| *piece));
            give(&circle, &pieces);
        }
    }

    /// Returns the phase and the passing time of a run of sectors.
    fn piece(&self, run: &Run) -> Piece {
        let from = self.mechanics.phase(run.angle(0));
        let takes = match run.len == run.sectors_per_track {
            true => self.mechanics.turn(),
            false => self
                .mechanics
                .wait(from, self.mechanics.phase(run.angle(run.len))),
        };
        Piece {
            from: from.as_nanos() as u32,
            takes: takes.as_nanos() as u32,
        }
    }
}

/// Extremes over all tracks with wanted sectors.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    pieces: usize,
    /// Smallest number of slots, and smallest number of addresses.
    slots: u64,
    shortest: u64,
}

impl Default for Extremes {
    fn default() -> Extremes {
        Extremes {
            pieces: 0,
            slots: u64::MAX,
            shortest: u64::MAX,
        }
    }
}
