//! The least time in which an arm can bring sectors under its head.
//!
//! The arm is on one track at a time, and a sector passes under the head only while the arm is there.
//! So no order takes less than the following sum, whatever its waits and detours:
//!
//! ```text
//! what the wanted sectors take to pass
//!   + on each track, for each gap between wanted sectors but the longest, what it takes to pass,
//!     or one more movement if that is less
//!   + the shortest movements that join all these tracks
//! ```
//!
//! A head that stays on a track passes over the gaps, and one that leaves and comes back has moved
//! once more. Waiting for the first sector of a track costs nothing here. Tracks that follow each other
//! are joined by the movement alone, not by the skew: a head that lands in the middle of a track that
//! is wanted as a whole is at the same place one turn later.

use crate::moves::Moves;
use crate::spans::Spans;
use crate::tour::Tour;
use headtime_disk::profile::Profile;
use headtime_disk::{Layout, Mechanics, Run};
use headtime_units::{Nanos, Track};

/// The part of the wanted sectors that need not pass under the head, since the buffer still has it
/// at the end.
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
    /// When in a turn the first begins.
    from: u32,
    /// How long all take.
    takes: u32,
}

/// A track of which sectors are wanted.
#[derive(Clone, Copy, Debug)]
struct Circle {
    track: Track,
    slots: u32,
    /// Each of its slots has an address.
    whole: bool,
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

    /// The least time for all sectors of `wanted` but the hidden ones. If the arm begins
    /// `from_rest`, the way from there is part of it.
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

    /// Addresses of a track, at least one.
    fn addresses(&self, circle: &Circle) -> u64 {
        if circle.whole {
            return u64::from(circle.slots);
        }
        let here = self.layout.track_extent(circle.track);
        here.map_or(1, |extent| extent.len.get()).max(1)
    }

    /// What the sectors of `wanted` take to pass, and nothing else.
    pub fn passing(&self, wanted: &Spans) -> Nanos {
        let mut sum = 0;
        self.each_track(wanted, |circle, pieces| {
            let passing: u64 = pieces.iter().map(|piece| u64::from(piece.takes)).sum();
            let passing = passing.saturating_sub(self.rounding * pieces.len() as u64);
            sum += self.without_free_sectors(passing, circle);
        });
        Nanos::from_nanos(sum)
    }

    /// The least time on one track.
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

    /// Returns true if sectors in front of a request are kept as they pass under the head.
    fn keeps_free_sectors(&self) -> bool {
        self.profile.cache.enabled && self.profile.cache.read_free_sectors
    }

    /// `least` on a track, less what the buffer may have of it though it never passed: a drive that keeps the sectors in
    /// front of a request counts as many as slots have passed, bad ones too.
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

    /// The most that is saved by what is hidden.
    ///
    /// A sector saves the time that it takes to pass. A track of which nothing is left saves one
    /// movement: the movement that replaces two is no shorter than the longer of them. A track of
    /// which something is left may save one gap.
    fn saved(&self, tour: &Tour, extremes: &Extremes, hidden: Hidden) -> u64 {
        let slot = self.turn().div_ceil(extremes.slots) + 1;
        // A stretch has a part of at most two tracks, and all of the others that it is on.
        let stretches = hidden.stretches.min(hidden.sectors);
        let places = match self.layout.has_remaps() {
            // Sectors that were moved elsewhere are on tracks of their own.
            true => hidden.sectors,
            false => (2 * stretches + hidden.sectors / extremes.shortest).min(hidden.sectors),
        };
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        let mut ways: Vec<u64> = tour.ways(&self.moves).collect();
        let switches = tour.switches();
        let count = ways.len() + switches as usize;
        // Another track of the same cylinder is no farther than one of another.
        let far = places.min(ways.len());
        if far < ways.len() {
            ways.select_nth_unstable_by(far, |one, other| other.cmp(one));
        }
        let moved: u64 = ways[..far].iter().sum();
        let moved = moved + ((places - far) as u64).min(switches) * self.least_move();
        let rest = places.saturating_sub(count).min(extremes.pieces) as u64;
        hidden.sectors * slot + moved + rest * self.least_move()
    }

    /// Gives each track of which sectors are wanted, with where on it they are in the order in which they
    /// pass.
    fn each_track(&self, wanted: &Spans, mut give: impl FnMut(&Circle, &[Piece])) {
        if self.layout.has_remaps() {
            self.each_track_out_of_order(wanted, give);
            return;
        }
        // All addresses of a track follow each other.
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

    /// The same where addresses of a track may be anywhere.
    fn each_track_out_of_order(&self, wanted: &Spans, mut give: impl FnMut(&Circle, &[Piece])) {
        let mut all: Vec<(Track, Piece)> = Vec::with_capacity(wanted.count());
        // Sectors that were moved count as kept with the track that they belong to.
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
        // Addresses mostly come in this order already.
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

    /// Where on its track a run of sectors is.
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
    /// The fewest slots, and the fewest addresses.
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
