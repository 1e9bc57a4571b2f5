//! Trials of several ways to serve: the way that serves more is put in force.
//!
//! `nise:by=trial` tries schedulers. `stream` tries its elevator alone against waiting for streams. The counts of won
//! and lost waits do not show the worth of waiting. While the disk waits, a drive with a queue has nothing to order.
//! While the disk serves elsewhere, a reader's next window grows.
//!
//! All ways but one cost something while they are tried. So trials are short turns, and a way that loses more is tried
//! more rarely. A [`Budget`] bounds the loss of trials.
//!
//! # Waits
//!
//! Two more budgets are a share of the time each:
//!
//! - A lost wait takes its length from the first budget. A won wait adds twice the time of the other request. While the budget is
//!   empty, the disk is not held. So waits that never win stop, and start again at the pace of the budget.
//! - All time in which the disk or a drive with room is held takes from the second budget. While that budget lasts, no trial is made,
//!   since waits cost no more than their time. Then waiting is tried against the elevator.
//!
//! # Loads
//!
//! The best way depends on the load, and a load that comes back is recognised at once. Each of three loads has a choice
//! of its own. The loads are distinguished by properties that no choice changes:
//!
//! - *Random* and *sequential* by the share of synchronous requests that begin at the end of an earlier request. The
//!   load is sequential from 5/8 on, random from 3/8 down, and unchanged in between. Waiting changes that share, so
//!   `stream` does not count it.
//! - *Writes*: asynchronous requests, if no other request was there for 200 ms.
//!
//! # Measure
//!
//! The throughput is the number of sectors of synchronous requests per time with such requests, queued or in the drive.
//! Under writes alone, writes count instead. So a choice that lets readers wait behind writes counts as slow. A turn
//! begins when all commands of the preceding choice are out of the drive.
//!
//! # Trials
//!
//! A trial is a turn of another choice between turns of the choice in force. The other choice is put in force if it serves more by
//! [`MARGIN_PERCENT`] in the mean of two trials, or half as much again in one. A choice that serves much less loses its turn early.
//!
//! The loss of a trial is measured too, from its start to the end of the next turn of the choice in force: broken streams take
//! time to form again. A choice is tried again when the loss of all trials and of one more is within the share of the time for
//! trials. If the throughput of the choice in force suddenly falls by half, each other choice is tried once at any cost. A burst of
//! write-back is over before the budget has grown.

mod budget;
mod span;

use self::budget::Budget;
use self::span::{Span, THROUGHPUT_IN_FORCE, THROUGHPUT_MAX, TURN_LENGTHS_MAX};
use crate::Request;
use alloc::vec::Vec;
use headtime_units::{Millionths, Nanos, Sectors, Time};

/// Kinds of load. For each kind, trials choose a scheduler separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Random,
    Sequential,
    Writes,
}

/// Number of loads.
const LOADS: usize = 3;
/// Weight of a request in the share of continuing requests: 1 of 2 to this power.
const SHARE_SHIFT: u32 = 5;
/// The whole of that share.
const SHARE_WHOLE: u32 = 1 << 16;
/// Ends of requests that are remembered; a power of 2. With more streams, some continuations are missed.
const ENDS_REMEMBERED: usize = 1024;
/// Time without a synchronous request after which the load is writes.
const WRITES_FOR: Nanos = Nanos::from_millis(200);
/// Parts of a turn, and the percentage of the throughput in force below which a trial ends after such a part.
const HOPELESS_PARTS: [(u64, u128); 2] = [(4, 40), (2, 70)];
/// Least advantage of another choice, in percent.
const MARGIN_PERCENT: u64 = 2;
/// Turns of a load before the first trial of a scheduler: 6 s by default, the paper's shortest time between two decisions.
const FIRST_TRIAL_TURNS: u64 = 12;
/// Length of a turn of waiting. Of 150, 200, 300 and 500 ms it has the fewest points of the grid that lose (the design note).
const WAIT_TURN: Nanos = Nanos::from_millis(300);
/// Share of the time that trials of waiting may cost.
const WAIT_COST: Millionths = Millionths(10_000);
/// Span whose share the budget of those trials holds or owes at most, in ns.
const WAIT_HORIZON: i64 = 60_000_000_000;
/// Lost time that a won wait pays for, in multiples of the time that the wait saves. A won wait pays twice, since waits of which half
/// are lost can double the throughput (`docs/design/2026-11-28-waits.md`).
const WON_FACTOR: u64 = 2;
/// Span whose share a budget of waits holds at most, and at the start, in ns.
const BUDGET_SPAN_NS: i64 = 4_000_000_000;
/// Index of waiting among the two ways of [`Trials::of_waits`]. The other way is the elevator.
const WAITING: usize = 1;
/// Least turns between two trials of a choice.
const PAUSE_TURNS: u64 = 2;
/// Part of its throughput that the choice in force must fall to for free trials, and turns between two such falls.
const FALL_PART: u64 = 2;
const FALL_PAUSE_TURNS: u64 = 40;
/// Throughput of a trial that needs no second trial.
const CLEAR_THROUGHPUT: u64 = THROUGHPUT_IN_FORCE + THROUGHPUT_IN_FORCE / 2;
/// Trials after which a new one weighs no less.
const TRIALS_WEIGHED: u64 = 4;

/// Trials of a choice under a load.
#[derive(Clone, Copy, Debug)]
struct ChoiceResults {
    /// Throughput as a share of the choice in force; a mean of the trials.
    share: u64,
    trials: u64,
    /// Loss of the last trial, in ns.
    lost: u64,
    /// Time of the next trial at the earliest, by the clock.
    again: u64,
}

/// Choices under a load.
#[derive(Clone, Debug)]
struct Choices {
    kept: usize,
    of: Vec<ChoiceResults>,
    /// Time for which the load was there, in ns.
    time: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The choice in force is measured.
    Kept,
    /// Another choice is tried.
    Tried(usize),
    /// The choice in force is measured after a trial, whose loss counts until now.
    After(usize),
}

/// A request that is queued here or in the drive.
#[derive(Clone, Copy, Debug, Default)]
struct Contender {
    sync: bool,
    /// The turn in which it was handed out; 0 if it is not in the drive.
    turn: u32,
}

/// Chooses among several ways to serve; see the head of this file.
///
/// Invariants: `before <= in_drive <= here[0] + here[1]`; `number >= 1`; `share <= SHARE_WHOLE`; `ends.len() = ENDS_REMEMBERED`;
/// `active < known[i].of.len()`.
#[derive(Clone, Debug)]
pub struct Trials {
    turn: u64,
    /// Time of a load before the first trial, in ns.
    first: u64,
    /// Time that trials may lose.
    budget: Budget,
    /// Time for which the disk may be held, and time that lost waits may take, if waiting is tried.
    waits: Option<[Budget; 2]>,
    /// True while the disk is held.
    held: bool,
    /// Start of a wait behind a request that is done, and the time of the other request.
    wait: Option<(Time, Nanos)>,
    now: Time,
    /// Time in which requests were there, in ns.
    clock: u64,
    slots: Vec<Contender>,
    /// Requests queued or in the drive: asynchronous, synchronous.
    here: [u64; 2],
    in_drive: u64,
    /// Commands in the drive that were handed out before this turn.
    before: u64,
    number: u32,
    share: u32,
    ends: Vec<u64>,
    last_sync: Time,
    load: Load,
    known: [Choices; LOADS],
    phase: Phase,
    active: usize,
    /// Service of this turn.
    span: Span,
    /// Last turns of the choice in force. The last turn weighs as much as all before.
    kept: Option<Span>,
    /// Service since the start of the trial.
    since: Span,
    /// Time until which each choice may be tried at no cost, by the clock.
    free_until: u64,
    /// Time from which another fall counts, by the clock.
    falls_from: u64,
}

impl Trials {
    /// Builds trials of `count` choices, ordered by the sequential share of the load. Trials may cost this share of the
    /// time.
    pub(crate) fn new(count: usize, turn: Nanos, cost: Millionths) -> Trials {
        let unknown = ChoiceResults {
            share: THROUGHPUT_IN_FORCE,
            trials: 0,
            lost: 0,
            again: 0,
        };
        let from = |kept: usize| Choices {
            kept,
            of: alloc::vec![unknown; count],
            time: 0,
        };
        let turn = turn.as_nanos().max(1);
        Trials {
            turn,
            first: turn.saturating_mul(FIRST_TRIAL_TURNS),
            budget: Budget::new(cost),
            waits: None,
            held: false,
            wait: None,
            now: Time::ZERO,
            clock: 0,
            slots: Vec::new(),
            here: [0; 2],
            in_drive: 0,
            before: 0,
            number: 1,
            share: SHARE_WHOLE / 2,
            ends: alloc::vec![u64::MAX; ENDS_REMEMBERED],
            last_sync: Time::ZERO,
            load: Load::Sequential,
            known: [from(0), from(count - 1), from(0)],
            phase: Phase::Kept,
            active: count - 1,
            span: Span::default(),
            kept: None,
            since: Span::default(),
            free_until: 0,
            falls_from: 0,
        }
    }

    /// Trials of waiting against the elevator, with waiting in force at the start. Waits may take `share` of the time untried.
    pub fn of_waits(share: Millionths) -> Trials {
        let mut trials = Trials::new(2, WAIT_TURN, WAIT_COST);
        trials.known.iter_mut().for_each(|load| load.kept = WAITING);
        trials.first = 0;
        // Bounds the budget, since losses and gains by chance cancel out.
        trials.budget = trials.budget.within(WAIT_HORIZON);
        trials.budget.left = 0;
        trials.waits = Some([Budget::new(share).within(BUDGET_SPAN_NS); 2]);
        trials
    }

    /// Returns true if the disk may be held now.
    pub fn waits(&self) -> bool {
        let left = |[_, lost]: [Budget; 2]| lost.affords(0);
        self.active == WAITING && self.waits.is_some_and(left)
    }

    /// Notes that the disk is held until a request is handed out. `instead` is the service time of a request that could
    /// go. It is given if the preceding request is done.
    pub fn held(&mut self, now: Time, instead: Option<Nanos>) {
        self.pass(now);
        self.held = true;
        self.wait = self.wait.or(instead.map(|instead| (now, instead)));
    }

    /// Ends the wait. `won` is true if the awaited request goes.
    pub fn waited(&mut self, now: Time, won: bool) {
        let ended = self.wait.take().zip(self.waits.as_mut());
        match ended {
            Some(((_, instead), [_, lost])) if won => lost.gain(WON_FACTOR * instead.as_nanos()),
            Some(((from, _), [_, lost])) => lost.lose(now.saturating_since(from).as_nanos()),
            None => {}
        }
    }

    /// Notes a request that arrives. The request has the number `at` until it is done. `sync` is true if a client waits
    /// for it.
    pub fn arrived(&mut self, now: Time, at: usize, sync: bool) {
        self.pass(now);
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Contender::default());
        }
        self.slots[at] = Contender { sync, turn: 0 };
        self.here[usize::from(sync)] += 1;
    }

    /// Notes the start and the end of a synchronous request that moves data.
    pub(crate) fn seen(&mut self, request: &Request) {
        let goes_on = self.remembered(request.extent.start.get());
        self.counted(goes_on, request.extent.end().get());
    }

    /// Notes that a queued request has grown by another request that touches it.
    pub(crate) fn grown(&mut self, request: &Request) {
        if request.is_sync() {
            self.counted(true, request.extent.end().get());
        }
    }

    fn place(lba: u64) -> usize {
        (lba.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENDS_REMEMBERED.ilog2())) as usize
    }

    /// Returns true if a request ended here, and forgets it.
    fn remembered(&mut self, lba: u64) -> bool {
        let end = &mut self.ends[Self::place(lba)];
        let there = *end == lba;
        if there {
            *end = u64::MAX;
        }
        there
    }

    fn counted(&mut self, goes_on: bool, end: u64) {
        let part = if goes_on {
            SHARE_WHOLE >> SHARE_SHIFT
        } else {
            0
        };
        self.share = self.share - (self.share >> SHARE_SHIFT) + part;
        self.ends[Self::place(end)] = end;
    }

    /// Notes that a queued request goes elsewhere, or became part of another request.
    pub fn withdrawn(&mut self, at: usize) {
        let sync = self.slots[at].sync;
        self.here[usize::from(sync)] -= 1;
    }

    /// Notes that a request was handed out.
    pub fn handed_out(&mut self, now: Time, at: usize) {
        self.pass(now);
        self.held = false;
        self.slots[at].turn = self.number;
        self.in_drive += 1;
    }

    /// Notes that a request that was handed out is done.
    pub fn completed(&mut self, now: Time, at: usize, sectors: Sectors) {
        self.pass(now);
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        // A command of the scheduler before this one does not count.
        let turn = core::mem::take(&mut slot.turn);
        if turn == 0 {
            return;
        }
        let sync = slot.sync;
        self.here[usize::from(sync)] -= 1;
        self.in_drive -= 1;
        let counts = sync == (self.load != Load::Writes);
        if counts {
            self.since.add(sectors.get());
        }
        if turn != self.number {
            self.before -= 1;
            if self.before == 0 {
                self.span = Span::default();
            }
        } else if counts {
            self.span.add(sectors.get());
        }
    }

    /// Forgets all requests, which go to another scheduler. The results of trials stay.
    pub fn cleared(&mut self) {
        self.slots.clear();
        (self.here, self.in_drive, self.before) = ([0; 2], 0, 0);
        (self.held, self.wait, self.kept) = (false, None, None);
        self.begin(Phase::Kept);
    }

    fn pass(&mut self, now: Time) {
        let passed = now.saturating_since(self.now).as_nanos();
        self.now = self.now.max(now);
        let [writes, sync] = self.here;
        if writes + sync > 0 {
            self.clock = self.clock.saturating_add(passed);
            self.budget.pass(passed);
            if let Some([held, lost]) = &mut self.waits {
                held.pass(passed);
                lost.pass(passed);
                held.lose(if self.held { passed } else { 0 });
            }
        }
        if sync > 0 {
            self.last_sync = self.now;
        }
        let counts = match self.load {
            Load::Writes => writes > 0,
            _ => sync > 0,
        };
        if counts {
            let time = &mut self.known[self.load as usize].time;
            *time = time.saturating_add(passed);
            self.since.nanos = self.since.nanos.saturating_add(passed);
            if self.before == 0 {
                self.span.nanos = self.span.nanos.saturating_add(passed);
            }
        }
    }

    /// Returns the choice for now.
    pub fn choose(&mut self, now: Time) -> usize {
        self.pass(now);
        let load = self.load_now();
        if load != self.load {
            self.load = load;
            self.kept = None;
            self.begin(Phase::Kept);
        } else if self.before == 0 {
            self.judge();
        }
        self.active
    }

    fn load_now(&self) -> Load {
        if self.here[1] == 0
            && self.here[0] > 0
            && self.now.saturating_since(self.last_sync) >= WRITES_FOR
        {
            return Load::Writes;
        }
        match self.share {
            share if share >= SHARE_WHOLE / 8 * 5 => Load::Sequential,
            share if share <= SHARE_WHOLE / 8 * 3 => Load::Random,
            // After writes, in between counts as random.
            _ if self.load == Load::Writes => Load::Random,
            _ => self.load,
        }
    }

    fn begin(&mut self, phase: Phase) {
        let next = match phase {
            Phase::Tried(other) => other,
            Phase::Kept | Phase::After(_) => self.known[self.load as usize].kept,
        };
        if next != self.active {
            self.number = self.number.wrapping_add(1).max(1);
            self.before = self.in_drive;
            self.active = next;
        }
        self.phase = phase;
        self.span = Span::default();
    }

    fn judge(&mut self) {
        let whole = self.span.is_whole(self.turn);
        match self.phase {
            Phase::Kept if whole => {
                self.fell();
                self.kept = Some(self.span.with(self.kept));
                let next = self.due();
                self.begin(next);
                self.since = Span::default();
            }
            Phase::Tried(other) => {
                let kept = self.kept.expect("it was measured before the trial");
                let (own, others) = self.span.beside(&kept);
                let hopeless = HOPELESS_PARTS.iter().any(|(part, percent)| {
                    self.span.nanos >= self.turn / part && own * 100 < others * percent
                });
                if hopeless || whole {
                    self.tried(other, self.span.share_of(&kept));
                }
            }
            Phase::After(other) if whole => {
                let kept = self.kept.expect("it was measured before the trial");
                let lost = self.since.lost_to(&kept);
                self.budget.lose(lost);
                match self.waits {
                    Some(_) => self.budget.gain(self.since.gained_on(&kept)),
                    None => self.known[self.load as usize].of[other].lost = lost,
                }
                self.kept = Some(self.span.with(self.kept));
                self.begin(Phase::Kept);
            }
            Phase::Kept | Phase::After(_) => {}
        }
    }

    /// Notes if the choice in force served much less in this turn than before.
    fn fell(&mut self) {
        let Some(kept) = self.kept else {
            return;
        };
        let (own, others) = self.span.beside(&kept);
        if self.falls_from <= self.clock && own * u128::from(FALL_PART) < others {
            self.falls_from = self.clock + self.turn.saturating_mul(FALL_PAUSE_TURNS);
            // Long enough for one trial of each choice and the turns between.
            let trials = 2 * TURN_LENGTHS_MAX * self.known[0].of.len() as u64;
            self.free_until = self.clock + self.turn.saturating_mul(trials);
            let known = &mut self.known[self.load as usize].of;
            known.iter_mut().for_each(|known| known.again = 0);
            // The trials compare with the service after the fall.
            self.kept = None;
        }
    }

    /// Next phase: the trial that is due for longest, if any.
    fn due(&self) -> Phase {
        let Choices { kept, of, time } = &self.known[self.load as usize];
        if *kept == WAITING && self.waits.is_some_and(|[held, _]| held.affords(0)) {
            return Phase::Kept;
        }
        let others = of.iter().enumerate().filter(|(at, _)| at != kept);
        let due = others.filter(|(_, known)| {
            let paid = match known.trials {
                0 => *time >= self.first,
                _ => self.budget.affords(known.lost),
            };
            // While trials are free, each choice is tried once.
            let free = known.again == 0 && self.clock < self.free_until;
            known.again <= self.clock && (paid || free)
        });
        let next = due.min_by_key(|(at, known)| (known.again, *at));
        next.map_or(Phase::Kept, |(at, _)| Phase::Tried(at))
    }

    /// Ends a trial.
    fn tried(&mut self, other: usize, share: u64) {
        let again = self
            .clock
            .saturating_add(self.turn.saturating_mul(PAUSE_TURNS));
        let Choices { kept, of, .. } = &mut self.known[self.load as usize];
        let known = &mut of[other];
        known.trials = (known.trials + 1).min(TRIALS_WEIGHED);
        known.share = (known.share * (known.trials - 1) + share) / known.trials;
        known.again = again;
        let (mean, sure) = (known.share, known.trials > 1 || share >= CLEAR_THROUGHPUT);
        if mean <= THROUGHPUT_IN_FORCE + THROUGHPUT_IN_FORCE * MARGIN_PERCENT / 100 {
            self.begin(Phase::After(other));
            return;
        }
        if !sure {
            // Another trial follows soon.
            known.again = self.clock;
            known.lost = 0;
            self.begin(Phase::Kept);
            return;
        }
        // The shares are relative to the choice in force, which changes.
        of.iter_mut().for_each(|known| {
            known.share = (known.share * THROUGHPUT_IN_FORCE / mean).min(THROUGHPUT_MAX)
        });
        let former = &mut of[*kept];
        former.share = THROUGHPUT_IN_FORCE * THROUGHPUT_IN_FORCE / mean;
        former.trials = former.trials.max(1);
        former.again = again;
        *kept = other;
        of[other].share = THROUGHPUT_IN_FORCE;
        self.kept = None;
        self.begin(Phase::Kept);
    }
}

#[cfg(test)]
mod tests;
