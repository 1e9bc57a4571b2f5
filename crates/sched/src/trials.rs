//! Trials: which of several ways to serve is kept, found by measuring what each serves.
//!
//! `nise:by=trial` tries schedulers. `stream` tries its elevator alone against waiting for streams. An account of waits, won and
//! lost, does not tell what waiting is worth. While the disk waits, a drive with a queue has nothing to order. While it is
//! elsewhere, a reader's next window grows.
//!
//! All ways but one cost something while they are tried. So they are tried in short turns, and the more one loses, the more
//! rarely. A [`Budget`] holds what trials may lose.
//!
//! # Waits
//!
//! Two more budgets are a share of the time each:
//!
//! - Lost waits take from the one, and won waits add what the other request would have taken, twice. The disk is not held while
//!   nothing is left. So waits that never win stop by themselves, and are tried again at that pace.
//! - All time takes from the other in which the disk is held, or a drive with room is. No trial is made while something is
//!   left, since waits cost no more than their time. From then on waiting is tried against the elevator.
//!
//! # Loads
//!
//! What is best depends on the load, and a load that comes back is known at once. Three kinds are told apart by what does not
//! depend on who has the say, and each has a choice of its own:
//!
//! - *Random* and *sequential* by the share of synchronous requests that begin where an earlier one ended: sequential from
//!   5/8 on, random from 3/8 down, in between as before. Waiting changes that share, so `stream` does not count it.
//! - *Writes* that nobody waits for, when for 200 ms there was nothing else.
//!
//! # Measure
//!
//! Sectors of synchronous requests in the time in which there were any, queued or in the drive; of writes alone those of
//! writes. So a choice that lets readers wait behind writes counts as slow. A turn begins when all commands of the choice before
//! are out of the drive.
//!
//! # Trials
//!
//! A turn of the other between turns of what is kept. If the other serves more by [`MARGIN`] in the mean of two trials or
//! more, or half as much again in one, it is kept from then on. What serves much less is given up before its turn is over.
//!
//! The loss of a trial is measured too, from its start to the end of the next turn of the choice in force: broken streams take
//! time to form again. A choice is tried again when the loss of all trials and of one more is within the share of the time for
//! trials. If what is kept suddenly serves half of what it did, the others are
//! tried once whatever that costs: a burst of write-back is over before it is paid for.

use crate::Request;
use alloc::vec::Vec;
use headtime_units::{Millionths, Nanos, Sectors, Time};

/// Loads that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Random,
    Sequential,
    Writes,
}

/// How many loads there are.
const LOADS: usize = 3;
/// Weight of a request in the share of those that go on where another ended: 1 of 2 to this power.
const SHARE_SHIFT: u32 = 5;
/// The whole of that share.
const WHOLE: u32 = 1 << 16;
/// Ends of requests that are remembered; a power of 2. More streams than that are not all seen.
const ENDS: usize = 1024;
/// For how long there is nothing synchronous before the load is writes.
const WRITES_FOR: Nanos = Nanos::from_millis(200);
/// A turn has so many completions, or is so many times as long.
const COMPLETIONS: u32 = 16;
const LONGEST: u64 = 4;
/// What after one part of so many of a turn serves less than so many percent of what is kept is given up.
const HOPELESS: [(u64, u128); 2] = [(4, 40), (2, 70)];
/// By how many percent another must be better.
const MARGIN: u64 = 2;
/// The first trial of a scheduler under a load comes after so many turns of it: 6 s by default, the paper's shortest time
/// between two decisions. A load that ends sooner is not worth one.
const FIRST: u64 = 12;
/// Of trials of waiting: the least length of a turn, and the share of the time that they may cost.
const WAIT_TURN: Nanos = Nanos::from_millis(300);
const WAIT_COST: Millionths = Millionths(10_000);
/// Span whose share the budget of those trials holds or owes at most, in ns.
const WAIT_HORIZON: i64 = 60_000_000_000;
/// Lost time that a won wait pays for, in multiples of the time that the wait saves.
const WON: u64 = 2;
/// Span whose share a budget of waits holds at most, and at the start, in ns.
const HORIZON: i64 = 4_000_000_000;
/// Waiting, of the two that [`Trials::of_waits`] tries; the other is the elevator.
const WAITING: usize = 1;
/// The next trial of the same is at least so many turns later.
const PAUSE: u64 = 2;
/// If what is kept serves less than one part of so many of what it served, all are tried again whatever that costs; once in
/// so many turns.
const FELL: u64 = 2;
const FELL_AGAIN: u64 = 40;
/// Shares of what is kept, in parts.
const ONE: u64 = 1 << 10;
/// The most that is believed of a trial, so that the next ones can still correct it.
const MOST: u64 = 8 * ONE;
/// What is better by so much needs no second trial.
const CLEAR: u64 = ONE + ONE / 2;
/// A trial weighs as much as each before, up to so many of them.
const TRIALS: u64 = 4;

/// Time that may be lost: a share of the time that passes. In millionths of nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Budget {
    share: i64,
    /// The most that is left, and the most that is owed.
    most: i64,
    left: i64,
}

impl Budget {
    /// A budget without bounds, of which nothing is left.
    fn new(share: Millionths) -> Budget {
        Budget {
            share: share.0.cast_signed(),
            most: i64::MAX,
            left: 0,
        }
    }

    /// Holds, and owes, at most its share of so many nanoseconds; now it holds as much.
    fn within(self, horizon: i64) -> Budget {
        let most = self.share.saturating_mul(horizon);
        let left = most;
        Budget { most, left, ..self }
    }

    fn pass(&mut self, nanos: u64) {
        self.add(nanos, self.share);
    }

    fn lose(&mut self, nanos: u64) {
        self.add(nanos, -Millionths::ONE.0.cast_signed());
    }

    fn gain(&mut self, nanos: u64) {
        self.add(nanos, Millionths::ONE.0.cast_signed());
    }

    fn affords(&self, nanos: u64) -> bool {
        let needed = i128::from(nanos) * i128::from(Millionths::ONE.0);
        needed <= i128::from(self.left)
    }

    fn add(&mut self, nanos: u64, parts: i64) {
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        let left = self.left.saturating_add(nanos.saturating_mul(parts));
        self.left = left.clamp(-self.most, self.most);
    }
}

/// What was served, in what time, of one kind of requests.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    sectors: u64,
    nanos: u64,
    completions: u32,
}

impl Span {
    fn add(&mut self, sectors: u64) {
        self.sectors += sectors;
        self.completions += 1;
    }

    /// This turn and those before, of which the last weighs as much as all before.
    fn with(self, before: Option<Span>) -> Span {
        let before = before.unwrap_or_default();
        Span {
            sectors: self.sectors + before.sectors / 2,
            nanos: self.nanos + before.nanos / 2,
            completions: self.completions,
        }
    }

    /// The time in which the other would have served the same.
    fn needed_by(&self, other: &Span) -> u64 {
        let (sectors, nanos) = (u128::from(self.sectors), u128::from(other.nanos));
        let needed = sectors * nanos / u128::from(other.sectors.max(1));
        u64::try_from(needed).unwrap_or(u64::MAX)
    }

    /// The time in which the other would have served the same, short of the time that this took.
    fn lost_to(&self, other: &Span) -> u64 {
        self.nanos.saturating_sub(self.needed_by(other))
    }

    /// By how much the other would have taken longer.
    fn gained_on(&self, other: &Span) -> u64 {
        self.needed_by(other).saturating_sub(self.nanos)
    }

    fn is_whole(&self, turn: u64) -> bool {
        let enough = self.completions >= COMPLETIONS && self.nanos >= turn;
        enough || self.nanos >= turn.saturating_mul(LONGEST)
    }

    /// Sectors of this span and of the other, scaled to the same time.
    fn beside(&self, other: &Span) -> (u128, u128) {
        let rate = |span: &Span, time: &Span| u128::from(span.sectors) * u128::from(time.nanos);
        (rate(self, other), rate(other, self))
    }

    /// Throughput of this span as a share of the other's.
    fn share_of(&self, other: &Span) -> u64 {
        let (own, others) = self.beside(other);
        let share = own * u128::from(ONE) / others.max(1);
        u64::try_from(share).unwrap_or(MOST).min(MOST)
    }
}

/// What is known of a choice under a load.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Of what is kept, what this one serves; a mean of its trials.
    share: u64,
    trials: u64,
    /// What its last trial lost, in nanoseconds.
    lost: u64,
    /// By the clock, when it may be tried again.
    again: u64,
}

/// What is known under a load.
#[derive(Clone, Debug)]
struct Choices {
    kept: usize,
    of: Vec<Known>,
    /// How long it was there.
    time: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What is kept is measured.
    Kept,
    /// This one is tried.
    Tried(usize),
    /// What is kept is measured for what the trial of this one lost.
    After(usize),
}

/// A request that is queued here or in the drive.
#[derive(Clone, Copy, Debug, Default)]
struct Contender {
    sync: bool,
    /// The turn in which it was handed out; 0 if it is not in the drive.
    turn: u32,
}

/// Chooses among so many; see the head of this file.
#[derive(Clone, Debug)]
pub struct Trials {
    turn: u64,
    /// How long a load is there before the first trial.
    first: u64,
    /// What trials may lose.
    budget: Budget,
    /// If waiting is tried: for how long the disk may be held, and what lost waits may take.
    waits: Option<[Budget; 2]>,
    /// True while the disk is held.
    held: bool,
    /// Since when, behind a request that is over, and how long the other request takes.
    wait: Option<(Time, Nanos)>,
    now: Time,
    /// Time in which there was anything to do.
    clock: u64,
    slots: Vec<Contender>,
    /// Queued or in the drive: what nobody waits for, and what somebody does.
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
    /// Of this turn.
    span: Span,
    /// Last turns of the choice in force. The last turn weighs as much as all before.
    kept: Option<Span>,
    /// Since the trial began.
    since: Span,
    /// By the clock: until then all may be tried, and from then on that can be the case again.
    free_until: u64,
    falls_from: u64,
}

impl Trials {
    /// Among `count`, in the order of how much of the load is sequential. Trials may cost this share of the time.
    pub(crate) fn new(count: usize, turn: Nanos, cost: Millionths) -> Trials {
        let unknown = Known {
            share: ONE,
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
            first: turn.saturating_mul(FIRST),
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
            share: WHOLE / 2,
            ends: alloc::vec![u64::MAX; ENDS],
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

    /// Whether to wait, where waits may take this share of the time untried. It begins with waiting.
    pub fn of_waits(share: Millionths) -> Trials {
        let mut trials = Trials::new(2, WAIT_TURN, WAIT_COST);
        trials.known.iter_mut().for_each(|load| load.kept = WAITING);
        trials.first = 0;
        // What chance takes in one trial it gives in another.
        trials.budget = trials.budget.within(WAIT_HORIZON);
        trials.budget.left = 0;
        trials.waits = Some([Budget::new(share).within(HORIZON); 2]);
        trials
    }

    /// Returns true if the disk may be held now.
    pub fn waits(&self) -> bool {
        let left = |[_, lost]: [Budget; 2]| lost.affords(0);
        self.active == WAITING && self.waits.is_some_and(left)
    }

    /// The disk is held for what has not come, until something is handed out. `instead` is how long a request takes that could
    /// go, if the one before is over.
    pub fn held(&mut self, now: Time, instead: Option<Nanos>) {
        self.pass(now);
        self.held = true;
        self.wait = self.wait.or(instead.map(|instead| (now, instead)));
    }

    /// The wait is over. `won` says whether the request goes that the disk was held for.
    pub fn waited(&mut self, now: Time, won: bool) {
        let ended = self.wait.take().zip(self.waits.as_mut());
        match ended {
            Some(((_, instead), [_, lost])) if won => lost.gain(WON * instead.as_nanos()),
            Some(((from, _), [_, lost])) => lost.lose(now.saturating_since(from).as_nanos()),
            None => {}
        }
    }

    /// A request comes, and is known by this number until it is over. `sync` says whether somebody waits for it.
    pub fn arrived(&mut self, now: Time, at: usize, sync: bool) {
        self.pass(now);
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Contender::default());
        }
        self.slots[at] = Contender { sync, turn: 0 };
        self.here[usize::from(sync)] += 1;
    }

    /// A synchronous request that moves data begins here and ends there.
    pub(crate) fn seen(&mut self, request: &Request) {
        let goes_on = self.remembered(request.extent.start.get());
        self.counted(goes_on, request.extent.end().get());
    }

    /// A queued request has grown by another, which touches it.
    pub(crate) fn grown(&mut self, request: &Request) {
        if request.is_sync() {
            self.counted(true, request.extent.end().get());
        }
    }

    fn place(lba: u64) -> usize {
        (lba.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENDS.ilog2())) as usize
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
        let part = if goes_on { WHOLE >> SHARE_SHIFT } else { 0 };
        self.share = self.share - (self.share >> SHARE_SHIFT) + part;
        self.ends[Self::place(end)] = end;
    }

    /// A queued request goes elsewhere, or became part of another.
    pub fn withdrawn(&mut self, at: usize) {
        let sync = self.slots[at].sync;
        self.here[usize::from(sync)] -= 1;
    }

    /// A request was handed out.
    pub fn handed_out(&mut self, now: Time, at: usize) {
        self.pass(now);
        self.held = false;
        self.slots[at].turn = self.number;
        self.in_drive += 1;
    }

    /// A request that was handed out is over.
    pub fn completed(&mut self, now: Time, at: usize, sectors: Sectors) {
        self.pass(now);
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        // What another scheduler handed out, before this one took over, says nothing.
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

    /// All that is queued goes to another scheduler. What trials have shown stays.
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

    /// Who has the say now.
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
            share if share >= WHOLE / 8 * 5 => Load::Sequential,
            share if share <= WHOLE / 8 * 3 => Load::Random,
            // Back from writes, it is what it was mostly.
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
                let hopeless = HOPELESS.iter().any(|(part, percent)| {
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

    /// Notes whether what is kept served much less in this turn than in those before.
    fn fell(&mut self) {
        let Some(kept) = self.kept else {
            return;
        };
        let (own, others) = self.span.beside(&kept);
        if self.falls_from <= self.clock && own * u128::from(FELL) < others {
            self.falls_from = self.clock + self.turn.saturating_mul(FELL_AGAIN);
            // Long enough for one trial of each and the turns between.
            let trials = 2 * LONGEST * self.known[0].of.len() as u64;
            self.free_until = self.clock + self.turn.saturating_mul(trials);
            let known = &mut self.known[self.load as usize].of;
            known.iter_mut().for_each(|known| known.again = 0);
            // They are compared with what it serves now.
            self.kept = None;
        }
    }

    /// The one whose trial is due for longest, if one is.
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
            // While it is free, each once.
            let free = known.again == 0 && self.clock < self.free_until;
            known.again <= self.clock && (paid || free)
        });
        let next = due.min_by_key(|(at, known)| (known.again, *at));
        next.map_or(Phase::Kept, |(at, _)| Phase::Tried(at))
    }

    /// Ends a trial.
    fn tried(&mut self, other: usize, share: u64) {
        let again = self.clock.saturating_add(self.turn.saturating_mul(PAUSE));
        let Choices { kept, of, .. } = &mut self.known[self.load as usize];
        let known = &mut of[other];
        known.trials = (known.trials + 1).min(TRIALS);
        known.share = (known.share * (known.trials - 1) + share) / known.trials;
        known.again = again;
        let (mean, sure) = (known.share, known.trials > 1 || share >= CLEAR);
        if mean <= ONE + ONE * MARGIN / 100 {
            self.begin(Phase::After(other));
            return;
        }
        if !sure {
            // Once more, soon.
            known.again = self.clock;
            known.lost = 0;
            self.begin(Phase::Kept);
            return;
        }
        // The shares are of what is kept.
        of.iter_mut()
            .for_each(|known| known.share = (known.share * ONE / mean).min(MOST));
        let former = &mut of[*kept];
        former.share = ONE * ONE / mean;
        former.trials = former.trials.max(1);
        former.again = again;
        *kept = other;
        of[other].share = ONE;
        self.kept = None;
        self.begin(Phase::Kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Op, Tag};
    use headtime_units::Extent;

    const TURN: Nanos = Nanos::from_millis(100);

    /// A drive that serves one request of 8 sectors after the other.
    struct World {
        trials: Trials,
        now: Time,
        lba: u64,
        /// How long each choice had the say.
        had: Vec<Nanos>,
    }

    impl World {
        fn new(count: usize, cost: u64) -> World {
            World {
                trials: Trials::new(count, TURN, Millionths(cost)),
                now: Time::ZERO,
                lba: 0,
                had: alloc::vec![Nanos::ZERO; count],
            }
        }

        fn request(&mut self, tag: u32, load: Load) -> Request {
            self.lba += if load == Load::Random { 1_000_003 } else { 8 };
            let op = match load {
                Load::Writes => Op::Write,
                _ => Op::Read,
            };
            Request::new(Tag(tag), op, Extent::at(self.lba, 8), self.now)
        }

        /// Serves for so long, where a request takes so many microseconds under each choice. Returns the requests.
        fn serve(&mut self, seconds: u64, load: Load, takes: &[u64]) -> u64 {
            let end = self.now + Nanos::from_secs(seconds);
            let mut served = 0;
            while self.now < end {
                let request = self.request(0, load);
                self.arrived(&request);
                let active = self.trials.choose(self.now);
                self.trials.handed_out(self.now, 0);
                let took = Nanos::from_micros(takes[active]);
                self.now += took;
                self.had[active] += took;
                self.completed(&request);
                served += 1;
            }
            served
        }

        fn arrived(&mut self, request: &Request) {
            let at = request.tag.index();
            self.trials.arrived(self.now, at, request.is_sync());
            if request.is_sync() {
                self.trials.seen(request);
            }
        }

        fn completed(&mut self, request: &Request) {
            let sectors = request.extent.len;
            self.trials
                .completed(self.now, request.tag.index(), sectors);
        }

        fn kept(&mut self) -> usize {
            self.trials.known[self.trials.load as usize].kept
        }
    }

    #[test]
    fn what_serves_most_is_kept_and_trials_cost_no_more_than_they_may() {
        for (takes, best) in [
            ([1_000, 2_000, 4_000], 0),
            ([2_000, 1_000, 4_000], 1),
            ([1_200, 1_100, 1_000], 2),
        ] {
            let mut world = World::new(3, 10_000);
            let served = world.serve(100, Load::Random, &takes);
            assert_eq!(world.kept(), best, "{takes:?}");
            // 1 % for trials, and as much again for the first of each and for the beginning.
            assert!(
                served >= 98_000 * 1_000 / takes[best],
                "{takes:?}: {served}"
            );
        }
    }

    #[test]
    fn a_choice_that_becomes_better_is_found() {
        let mut world = World::new(2, 10_000);
        world.serve(20, Load::Random, &[1_000, 1_500]);
        assert_eq!(world.kept(), 0);
        world.serve(60, Load::Random, &[1_000, 800]);
        assert_eq!(world.kept(), 1);
    }

    #[test]
    fn a_sudden_fall_is_followed_by_a_trial_at_once() {
        // Trials cost half of the time each, and nothing is paid for.
        let mut world = World::new(2, 0);
        world.serve(10, Load::Random, &[1_000, 3_000]);
        assert_eq!(world.kept(), 0);
        world.serve(2, Load::Random, &[8_000, 3_000]);
        assert_eq!(world.kept(), 1);
        // It ends as suddenly: that is no fall, and the way back has to be paid for.
        let served = world.serve(1, Load::Random, &[1_000, 3_000]);
        assert!(served < 500, "{served}");
        // Another one comes too soon, and the next one does not.
        world.serve(1, Load::Random, &[1_000, 20_000]);
        assert_eq!(world.kept(), 1);
        world.serve(6, Load::Random, &[1_000, 3_000]);
        world.serve(2, Load::Random, &[1_000, 20_000]);
        assert_eq!(world.kept(), 0);
    }

    #[test]
    fn the_first_trial_waits_until_a_load_has_lasted() {
        let mut world = World::new(2, 1_000_000);
        world.serve(1, Load::Sequential, &[1_000, 1_000]);
        assert_eq!(world.had[0], Nanos::ZERO);
        world.serve(1, Load::Sequential, &[1_000, 1_000]);
        assert!(world.had[0] > Nanos::ZERO);
    }

    #[test]
    fn a_load_that_comes_back_is_known_at_once() {
        let mut world = World::new(2, 10_000);
        let (random, sequential) = ([1_000, 1_300], [2_000, 1_000]);
        for _ in 0..2 {
            world.serve(20, Load::Random, &random);
            world.serve(20, Load::Sequential, &sequential);
        }
        for (load, takes, best) in [(Load::Random, random, 0), (Load::Sequential, sequential, 1)] {
            world.had.fill(Nanos::ZERO);
            let soon = world.serve(1, load, &takes);
            assert!(world.had[best] > Nanos::from_millis(850), "{:?}", world.had);
            let served = soon + world.serve(19, load, &takes);
            assert!(served > 19_600, "{served}");
        }
    }

    #[test]
    fn writes_that_nobody_waits_for_are_a_load_of_their_own() {
        let mut world = World::new(2, 10_000);
        world.serve(10, Load::Random, &[1_000, 2_000]);
        world.serve(10, Load::Writes, &[2_000, 1_000]);
        assert_eq!((world.trials.load, world.kept()), (Load::Writes, 1));
        // The first read ends it.
        world.serve(1, Load::Random, &[1_000, 2_000]);
        assert_eq!((world.trials.load, world.kept()), (Load::Random, 0));
    }

    #[test]
    fn a_budget_is_a_share_of_the_time_up_to_a_most_and_debts_are_paid() {
        let mut budget = Budget::new(Millionths(30_000));
        assert!(budget.affords(0) && !budget.affords(1));
        budget.pass(2_000);
        assert!(budget.affords(60) && !budget.affords(61));
        budget = budget.within(4_000);
        budget.pass(1_000_000);
        assert!(budget.affords(120) && !budget.affords(121));
        budget.lose(150);
        budget.pass(999);
        assert!(!budget.affords(0));
        budget.pass(1);
        assert!(budget.affords(0));
        budget.lose(u64::MAX);
        budget.pass(4_000);
        assert!(budget.affords(0));
    }

    /// Serves for so long. Where it waits, the disk is held before each request, and this takes as long as the second says.
    fn wait(
        trials: &mut Trials,
        now: &mut Time,
        seconds: u64,
        [serve, held, near]: [u64; 3],
    ) -> [Nanos; 2] {
        let end = *now + Nanos::from_secs(seconds);
        let mut had = [Nanos::ZERO; 2];
        while *now < end {
            trials.arrived(*now, 0, true);
            trials.choose(*now);
            let (from, waits) = (*now, trials.waits());
            if waits {
                trials.held(*now, Some(Nanos::from_micros(serve)));
                *now += Nanos::from_micros(held);
                trials.waited(*now, near < serve);
            }
            trials.handed_out(*now, 0);
            *now += Nanos::from_micros(if waits { near } else { serve });
            trials.completed(*now, 0, Sectors::new(8));
            had[usize::from(waits)] += now.saturating_since(from);
        }
        had
    }

    #[test]
    fn waits_that_lose_stop_and_begin_again_when_they_gain() {
        let (mut trials, mut now) = (Trials::of_waits(Millionths(30_000)), Time::ZERO);
        let had = wait(&mut trials, &mut now, 100, [50, 9_000, 50]);
        assert!(had[1] < Nanos::from_secs(2), "{had:?}");
        assert!(!trials.waits());
        wait(&mut trials, &mut now, 60, [9_000, 1_000, 500]);
        let had = wait(&mut trials, &mut now, 100, [9_000, 1_000, 500]);
        assert!(had[0] < Nanos::from_secs(2), "{had:?}");
    }

    #[test]
    fn waits_within_their_share_are_not_tried_and_those_of_a_whole_share_never() {
        for (share, held) in [(30_000, 25), (1_000_000, 9_000)] {
            let (mut trials, mut now) = (Trials::of_waits(Millionths(share)), Time::ZERO);
            let had = wait(&mut trials, &mut now, 100, [100, held, 1_000]);
            assert_eq!(had[0], Nanos::ZERO, "{share}");
        }
    }

    #[test]
    fn a_turn_begins_when_the_commands_of_the_choice_before_are_out_of_the_drive() {
        let mut world = World::new(2, 10_000);
        world.serve(1, Load::Random, &[1_000, 2_000]);
        let held = world.request(1, Load::Random);
        world.arrived(&held);
        world.trials.handed_out(world.now, 1);
        // With a command of another turn in the drive nothing is measured, so nothing ends a turn.
        world.trials.begin(Phase::Tried(1));
        world.trials.since = Span::default();
        world.serve(5, Load::Random, &[1_000, 2_000]);
        assert_eq!(world.trials.phase, Phase::Tried(1));
        world.completed(&held);
        world.serve(1, Load::Random, &[1_000, 2_000]);
        assert_ne!(world.trials.phase, Phase::Tried(1));
    }

    #[test]
    fn counts_of_what_is_there_follow_merges_withdrawals_swaps_and_foreign_commands() {
        let mut world = World::new(2, 10_000);
        for tag in 0..4 {
            let request = world.request(tag, Load::Random);
            world.arrived(&request);
        }
        let write = Request {
            flags: Flags::NONE,
            ..world.request(4, Load::Writes)
        };
        world.arrived(&write);
        assert_eq!(world.trials.here, [1, 4]);
        world.trials.withdrawn(1);
        world.trials.withdrawn(0);
        world.trials.withdrawn(4);
        assert_eq!(world.trials.here, [0, 2]);
        world.trials.handed_out(world.now, 2);
        world.trials.cleared();
        assert_eq!((world.trials.here, world.trials.in_drive), ([0, 0], 0));
        // It was handed out before the swap, and the other by somebody else.
        let request = world.request(2, Load::Random);
        world.completed(&request);
        let request = world.request(900, Load::Random);
        world.completed(&request);
        assert_eq!((world.trials.here, world.trials.in_drive), ([0, 0], 0));
    }
}
