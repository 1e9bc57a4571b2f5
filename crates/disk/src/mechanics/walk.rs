//! The steps of an access.

use super::{Mechanics, Reposition};
use crate::layout::{Layout, Run};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// One run of sectors, and the movement to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sectors and their positions.
    pub run: Run,
    /// Time at which the arm leaves for the run.
    pub begin: Time,
    /// Arm movement, settled.
    pub seek: Nanos,
    /// Head switch, and the wait after going on to this track within an access.
    pub switch: Nanos,
    /// Every other wait for the first of the sectors.
    pub rotation: Nanos,
    /// Time from the first sector to the last.
    pub transfer: Nanos,
    turn: Nanos,
}

impl Step {
    /// Time at which the head is over the first sector.
    pub fn transfer_begin(&self) -> Time {
        self.begin + self.seek + self.switch + self.rotation
    }

    /// Time at which the last sector has passed.
    pub fn end(&self) -> Time {
        self.transfer_begin() + self.transfer
    }

    /// The sectors.
    pub fn extent(&self) -> Extent {
        Extent::new(self.run.start, Sectors::new(u64::from(self.run.len)))
    }

    /// Time at which the first `sectors` sectors of the run have passed; `transfer_begin` for none.
    ///
    /// # Panics
    ///
    /// In debug builds, if the run has fewer.
    #[inline(always)]
    pub fn sectors_end(&self, sectors: u32) -> Time {
        self.transfer_begin() + passing(&self.run, sectors, self.turn)
    }
}

/// Time in which the first `sectors` sectors of a run pass, exactly from slot to slot.
#[inline(always)]
fn passing(run: &Run, sectors: u32, turn: Nanos) -> Nanos {
    if sectors == 0 {
        return Nanos::ZERO;
    }
    between(phase(run, 0, turn), phase(run, sectors, turn), turn)
}

/// The point of a turn at which a slot of the run begins.
#[inline(always)]
fn phase(run: &Run, sector: u32, turn: Nanos) -> Nanos {
    Nanos::from_nanos((u64::from(run.angle(sector).to_bits()) * turn.as_nanos()) >> 32)
}

/// The time from one point to the next time at another; a turn if they are equal, since a whole
/// track ends where it began.
fn between(from: Nanos, to: Nanos, turn: Nanos) -> Nanos {
    if to > from {
        to - from
    } else {
        to + turn - from
    }
}

/// An access as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Arm movement, settled.
    pub seek: Nanos,
    /// Head switches, and the waits after going from one track to the next.
    pub switch: Nanos,
    /// Rotational latency: all waits for a sector that `switch` does not contain.
    pub rotation: Nanos,
    /// Sectors under the head.
    pub transfer: Nanos,
    /// Track where the heads are left.
    pub track: Track,
}

impl Access {
    /// Total time of the access.
    pub fn total(&self) -> Nanos {
        self.seek + self.switch + self.rotation + self.transfer
    }

    /// Adds a step.
    pub fn add(&mut self, step: &Step) {
        self.seek += step.seek;
        self.switch += step.switch;
        self.rotation += step.rotation;
        self.transfer += step.transfer;
        self.track = step.run.track;
    }
}

/// The steps of an access, in the order in which they happen.
///
/// Invariants:
///
/// - `left_out.end() ≤ part.start`; `part.end() ≤ next ≤ end`.
/// - `left_out_run.is_some()` ⇒ `part` and `left_out` are empty.
/// - `!zero_latency` ⇒ `part`, `left_out` and `left_out_run` are empty.
/// - `known = Some(run)` ⇒ `run = layout.run(next)`.
/// - `known_way = Some((to, way))` ⇒ `way = mechanics.reposition(track, to, op)`.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    mechanics: &'a Mechanics,
    layout: &'a Layout,
    op: Op,
    zero_latency: bool,
    track: Track,
    now: Time,
    /// The first address not yet given to a part.
    next: Lba,
    end: Lba,
    /// Rest of a track in a zero-latency access. The access takes `part` first, the sectors that
    /// the head reaches first. Then it takes `left_out`, the sectors that it left out at the start.
    part: Extent,
    left_out: Extent,
    /// Replaces `left_out` if the sectors of the track are one run, which is the rule.
    left_out_run: Option<Run>,
    first: bool,
    /// The run at `next`, if it has been looked up.
    known: Option<Run>,
    /// The movement from `track` to another track, if it has been computed.
    known_way: Option<(Track, Reposition)>,
    seek_error: i64,
}

impl Mechanics {
    /// The steps of an access from `from` at `at` until the last sector of `extent` has passed.
    ///
    /// # Panics
    ///
    /// When the steps are taken, if the extent leaves the disk.
    pub fn walk<'a>(
        &'a self,
        layout: &'a Layout,
        from: Track,
        at: Time,
        extent: Extent,
        op: Op,
        zero_latency: bool,
    ) -> Walk<'a> {
        Walk {
            mechanics: self,
            layout,
            op,
            zero_latency,
            track: from,
            now: at,
            next: extent.start,
            end: extent.end(),
            part: Extent::at(0, 0),
            left_out: Extent::at(0, 0),
            left_out_run: None,
            first: true,
            known: None,
            known_way: None,
            seek_error: 0,
        }
    }

    /// Moves to `run` by `way`, waits for its first sector, and takes all sectors.
    #[inline(always)]
    fn pass(&self, run: Run, begin: Time, way: Reposition) -> Step {
        let from = phase(&run, 0, self.turn);
        let wait = self.wait(self.phase_at(begin + way.total()), from);
        Step {
            run,
            begin,
            seek: way.seek,
            switch: way.switch,
            rotation: wait,
            transfer: between(from, phase(&run, run.len, self.turn), self.turn),
            turn: self.turn,
        }
    }

    /// The only step of an access that is one run; `None` if a zero-latency access takes the run in two parts.
    #[inline(always)]
    pub(crate) fn one_step(
        &self,
        run: Run,
        begin: Time,
        way: Reposition,
        zero_latency: bool,
    ) -> Option<Step> {
        let step = self.pass(run, begin, way);
        let whole = !zero_latency || step.rotation.is_zero() || {
            let (first, last) = (
                phase(&run, 0, self.turn),
                phase(&run, run.len - 1, self.turn),
            );
            self.turn - step.rotation >= self.wait(first, last)
        };
        whole.then_some(step)
    }

    /// An access as a whole: how its time divides, and where the heads are left.
    ///
    /// # Panics
    ///
    /// If the extent leaves the disk.
    pub fn access(
        &self,
        layout: &Layout,
        from: Track,
        at: Time,
        extent: Extent,
        op: Op,
        zero_latency: bool,
    ) -> Access {
        let mut access = Access {
            track: from,
            ..Access::default()
        };
        for step in self.walk(layout, from, at, extent, op, zero_latency) {
            access.add(&step);
        }
        access
    }
}

impl<'a> Walk<'a> {
    /// Makes the first movement longer by `nanos` (shorter if negative, but never less than zero).
    /// Without a movement there is no error.
    pub fn with_seek_error(mut self, nanos: i64) -> Walk<'a> {
        self.seek_error = nanos;
        self
    }

    /// Passes the first run, if the caller has looked it up.
    pub(crate) fn with_first(mut self, run: Option<Run>) -> Walk<'a> {
        debug_assert!(run.is_none_or(|run| run == self.layout.run(self.next)));
        self.known = run;
        self
    }

    /// Passes the first movement and its destination, if the caller has computed them.
    pub(crate) fn with_first_way(mut self, way: Option<(Track, Reposition)>) -> Walk<'a> {
        debug_assert!(
            way.is_none_or(|(to, way)| way == self.mechanics.reposition(self.track, to, self.op))
        );
        self.known_way = way;
        self
    }

    /// The movement to a track.
    #[inline(always)]
    fn way(&mut self, to: Track) -> Reposition {
        match self.known_way {
            Some((known, way)) if known == to => way,
            _ => {
                let way = self.mechanics.reposition(self.track, to, self.op);
                self.known_way = Some((to, way));
                way
            }
        }
    }

    /// Goes to `run` and takes its sectors.
    fn step(&mut self, run: Run) -> Step {
        let mechanics = self.mechanics;
        let begin = self.now;
        let moved = self.track != run.track;
        let mut way = self.way(run.track);
        self.known_way = None;
        if self.seek_error != 0 && moved {
            let part = if way.seek.is_zero() {
                &mut way.switch
            } else {
                &mut way.seek
            };
            *part = Nanos::from_nanos(part.as_nanos().saturating_add_signed(self.seek_error));
            self.seek_error = 0;
        }
        let within = moved && !self.first;
        self.first = false;
        self.track = run.track;
        let mut step = mechanics.pass(run, begin, way);
        if within {
            step.switch += core::mem::take(&mut step.rotation);
        }
        self.now = step.end();
        step
    }

    /// Time from the moment at which the run's first sector last began to pass until the arm has reached the track of
    /// `run`. Less than a turn.
    fn landed(&mut self, run: &Run) -> Nanos {
        let mechanics = self.mechanics;
        let mut way = self.way(run.track).total();
        if self.track != run.track {
            let nanos = way.as_nanos().saturating_add_signed(self.seek_error);
            way = Nanos::from_nanos(nanos);
        }
        let arrival = mechanics.phase_at(self.now + way);
        mechanics.wait(phase(run, 0, mechanics.turn), arrival)
    }

    /// Takes the sectors of a run as they pass: returns the part that the head reaches first and
    /// stores the rest. Sectors that have begun when the head lands are left for the end of the
    /// turn. The run is not divided if even its last sector begins by then.
    fn divide_run(&mut self, run: Run) -> Run {
        let turn = self.mechanics.turn;
        let landed = self.landed(&run);
        let origin = phase(&run, 0, turn);
        let begin = |sector| self.mechanics.wait(origin, phase(&run, sector, turn));
        if landed.is_zero() || landed >= begin(run.len - 1) {
            return run;
        }
        // The estimate is near the sector that passes when the head lands. The loops find the first
        // sector that begins after landing.
        let estimate = landed.as_nanos() * u64::from(run.sectors_per_track) / turn.as_nanos();
        let mut after = (estimate as u32).min(run.len - 1);
        while begin(after) < landed {
            after += 1;
        }
        while after > 1 && begin(after - 1) >= landed {
            after -= 1;
        }
        self.left_out_run = Some(run.truncated(u64::from(after)));
        run.skipped(after)
    }

    /// As [`Walk::divide_run`], for the addresses from `start` to `end`. They belong to the track
    /// of `run`, but are not all in one run.
    fn divide(&mut self, run: Run, start: Lba, end: Lba) {
        self.part = Extent::new(start, end - start);
        self.left_out = Extent::new(start, Sectors::ZERO);
        let turn = self.mechanics.turn;
        let landed = self.landed(&run);
        if landed.is_zero() {
            return;
        }
        let origin = phase(&run, 0, turn);
        let mut address = start;
        let mut last_begin = Nanos::ZERO;
        let mut first_after = None;
        while address < end {
            let piece = self.layout.run(address).truncated((end - address).get());
            // Remapped sectors are on other tracks and have no part in the order.
            if piece.track == run.track {
                let begin = |sector| self.mechanics.wait(origin, phase(&piece, sector, turn));
                last_begin = begin(piece.len - 1);
                if first_after.is_none() && last_begin >= landed {
                    let (mut low, mut high) = (0, piece.len - 1);
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if begin(middle) >= landed {
                            high = middle;
                        } else {
                            low = middle + 1;
                        }
                    }
                    first_after = Some(address + Sectors::new(u64::from(low)));
                }
            }
            address = piece.end();
        }
        if let Some(after) = first_after.filter(|_| landed < last_begin) {
            self.part = Extent::new(after, end - after);
            self.left_out = Extent::new(start, after - start);
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(run) = self.left_out_run.take() {
            return Some(self.step(run));
        }
        if self.part.is_empty() && !self.left_out.is_empty() {
            self.part = self.left_out;
            self.left_out.len = Sectors::ZERO;
        }
        if self.part.is_empty() {
            if self.next >= self.end {
                return None;
            }
            let known = self.known.take();
            let run = known.unwrap_or_else(|| self.layout.run(self.next));
            let wanted = self.end - self.next;
            let whole = run.truncated(wanted.get());
            if !self.zero_latency || wanted == Sectors::new(1) {
                self.next = whole.end();
                return Some(self.step(whole));
            }
            // If the run goes up to the end of the track, the rest of the track needs no lookup.
            let to_end = run.slot + run.len == run.sectors_per_track;
            let start = self.next;
            self.next = if to_end || whole.end() == self.end {
                whole.end()
            } else {
                self.layout.track_extent_of(start).end().min(self.end)
            };
            if self.next == whole.end() {
                let first = self.divide_run(whole);
                return Some(self.step(first));
            }
            self.divide(run, start, self.next);
        }
        let run = self
            .layout
            .run(self.part.start)
            .truncated(self.part.len.get());
        let taken = Sectors::new(u64::from(run.len));
        self.part = Extent::new(self.part.start + taken, self.part.len - taken);
        Some(self.step(run))
    }
}
