//! The steps of an access.

use super::{Mechanics, Reposition};
use crate::layout::{Layout, Run};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// One run of sectors, and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sectors, and where they are.
    pub run: Run,
    /// When the arm leaves for it.
    pub begin: Time,
    /// Arm movement, settled.
    pub seek: Nanos,
    /// Head switch, and the wait after going on to this track within an access.
    pub switch: Nanos,
    /// Every other wait for the first of the sectors.
    pub rotation: Nanos,
    /// From the first sector to the last.
    pub transfer: Nanos,
    turn: Nanos,
}

impl Step {
    /// When the head is over the first sector.
    pub fn transfer_begin(&self) -> Time {
        self.begin + self.seek + self.switch + self.rotation
    }

    /// When the last sector has passed.
    pub fn end(&self) -> Time {
        self.transfer_begin() + self.transfer
    }

    /// The sectors.
    pub fn extent(&self) -> Extent {
        Extent::new(self.run.start, Sectors::new(u64::from(self.run.len)))
    }

    /// When the first `sectors` sectors of the run have passed; `transfer_begin` for none.
    ///
    /// # Panics
    ///
    /// In debug builds, if the run has fewer.
    #[inline(always)]
    pub fn sectors_end(&self, sectors: u32) -> Time {
        self.transfer_begin() + passing(&self.run, sectors, self.turn)
    }
}

/// How long the first `sectors` sectors of a run take to pass, exactly from slot to slot.
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
    /// Every other wait for a sector.
    pub rotation: Nanos,
    /// Sectors under the head.
    pub transfer: Nanos,
    /// Where the heads are left.
    pub track: Track,
}

impl Access {
    /// All of it.
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
    /// What is left of a track that a zero-latency access takes as it comes: first what the head
    /// reaches, then what it left out at the start.
    part: Extent,
    left_out: Extent,
    /// The same if all of it is one run, which is the rule.
    left_out_run: Option<Run>,
    first: bool,
    /// The run at `next`, if it has been looked up.
    known: Option<Run>,
    /// The way from `track` to another one, if it has been worked out.
    known_way: Option<(Track, Reposition)>,
    seek_error: i64,
}

impl Mechanics {
    /// How an access goes: the steps from `from` at `at` until the last sector of `extent` has
    /// passed.
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

    /// Goes to `run` by `way`, waits for its first sector, and takes all.
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

    /// The only step of an access that is one run; `None` if a zero-latency access takes it in two parts.
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
    /// The same access with a first movement that takes `nanos` longer (or shorter, but never less
    /// than zero). Without a movement there is no error.
    pub fn with_seek_error(mut self, nanos: i64) -> Walk<'a> {
        self.seek_error = nanos;
        self
    }

    /// The same access, whose first run may have been looked up.
    pub(crate) fn with_first(mut self, run: Option<Run>) -> Walk<'a> {
        debug_assert!(run.is_none_or(|run| run == self.layout.run(self.next)));
        self.known = run;
        self
    }

    /// The same access, the first way of which, to a track, may have been worked out.
    pub(crate) fn with_first_way(mut self, way: Option<(Track, Reposition)>) -> Walk<'a> {
        debug_assert!(
            way.is_none_or(|(to, way)| way == self.mechanics.reposition(self.track, to, self.op))
        );
        self.known_way = way;
        self
    }

    /// The way to a track.
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

    /// How long before the head reaches `run`'s track, after the arm leaves, the first sector of the
    /// run began to pass: less than a turn.
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

    /// Takes a run as it comes: gives the part that the head reaches first and keeps the rest.
    /// Sectors that have begun when the head lands are left for the end of the turn, unless that is
    /// all but the last.
    fn divide_run(&mut self, run: Run) -> Run {
        let turn = self.mechanics.turn;
        let landed = self.landed(&run);
        let origin = phase(&run, 0, turn);
        let begin = |sector| self.mechanics.wait(origin, phase(&run, sector, turn));
        if landed.is_zero() || landed >= begin(run.len - 1) {
            return run;
        }
        // Nearly the sector that passes when the head lands; then the first that begins after it.
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

    /// The same for the addresses from `start` to `end`, which belong to the track of `run` but are
    /// not all in one run.
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
            // Remapped sectors are elsewhere and have no part in the order.
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
            // A run that goes up to the end of the track needs no look at the rest of it.
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
