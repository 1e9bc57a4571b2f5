//! Which scheduler serves most, found by trying.
//!
//! The size of requests tells streams from random requests only where streams come as large requests, and it does not tell
//! what either scheduler makes of them. So what each of them serves in a time is measured. All but one cost something
//! while they are tried. So they are tried in short turns, and the more one loses, the more rarely.
//!
//! # Loads
//!
//! What is best depends on the load, and a load that comes back is known at once. Three kinds are told apart by what does not
//! depend on who has the say, and each has a choice of its own:
//!
//! - *Random* and *sequential* by the share of synchronous requests that begin where an earlier one ended: sequential from
//!   5/8 on, random from 3/8 down, in between as before.
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
//! What a trial lost is measured too, from its beginning to the end of the next turn of what is kept, since streams that
//! were torn apart take time to mend. A choice is tried again when all that was lost, and what its last trial lost once more,
//! is within the share of the time that trials may cost. If what is kept suddenly serves half of what it did, the others are
//! tried once whatever that costs: a burst of write-back is over before it is paid for.

use crate::{Op, Request};
use alloc::vec::Vec;
use headtime_units::{Nanos, Time};

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
/// The first trial under a load comes after so many turns of it: 6 s unless told otherwise, the paper's shortest time between
/// two decisions. A load that ends sooner is not worth one.
const FIRST: u64 = 12;
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

/// What was served, in what time, of one kind of requests.
#[derive(Clone, Copy, Debug, Default)]
struct NiseSpan {
    sectors: u64,
    nanos: u64,
    completions: u32,
}

impl NiseSpan {
    fn add(&mut self, sectors: u64) {
        self.sectors += sectors;
        self.completions += 1;
    }

    /// This turn and those before, of which the last weighs as much as all before.
    fn with(self, before: Option<NiseSpan>) -> NiseSpan {
        let before = before.unwrap_or_default();
        NiseSpan {
            sectors: self.sectors + before.sectors / 2,
            nanos: self.nanos + before.nanos / 2,
            completions: self.completions,
        }
    }

    /// The time in which the other would have served the same, short of the time that this took.
    fn lost_to(&self, other: &NiseSpan) -> u64 {
        let (sectors, nanos) = (u128::from(self.sectors), u128::from(other.nanos));
        let needed = sectors * nanos / u128::from(other.sectors.max(1));
        let needed = u64::try_from(needed).unwrap_or(u64::MAX);
        self.nanos.saturating_sub(needed)
    }

    fn is_whole(&self, turn: u64) -> bool {
        let enough = self.completions >= COMPLETIONS && self.nanos >= turn;
        enough || self.nanos >= turn.saturating_mul(LONGEST)
    }

    /// What it served in the time of the other, with what that served.
    fn beside(&self, other: &NiseSpan) -> (u128, u128) {
        let rate =
            |span: &NiseSpan, time: &NiseSpan| u128::from(span.sectors) * u128::from(time.nanos);
        (rate(self, other), rate(other, self))
    }

    /// What part of what the other serves this serves in the same time.
    fn share_of(&self, other: &NiseSpan) -> u64 {
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
enum NisePhase {
    /// What is kept is measured.
    Kept,
    /// This one is tried.
    Tried(usize),
    /// What is kept is measured for what the trial of this one lost.
    After(usize),
}

/// A request that is queued here or in the drive.
#[derive(Clone, Copy, Debug, Default)]
struct NiseRequest {
    sync: bool,
    /// The turn in which it was handed out; 0 if it is not in the drive.
    turn: u32,
}

/// Chooses among so many; see the [module](self).
#[derive(Clone, Debug)]
pub(super) struct NiseTrials {
    turn: u64,
    /// Trials may cost one part of so many.
    cost: u64,
    now: Time,
    /// Time in which there was anything to do.
    clock: u64,
    slots: Vec<NiseRequest>,
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
    phase: NisePhase,
    active: usize,
    /// Of this turn.
    span: NiseSpan,
    /// What is kept, in its last turns; the last weighs as much as all before.
    kept: Option<NiseSpan>,
    /// Since the trial began.
    since: NiseSpan,
    /// All that trials lost so far, in nanoseconds.
    lost: u64,
    /// By the clock: until then all may be tried, and from then on that can be the case again.
    free_until: u64,
    falls_from: u64,
}

impl NiseTrials {
    /// Among `count`, in the order of how much of the load is sequential.
    pub fn new(count: usize, turn: Nanos, cost: u64) -> NiseTrials {
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
        NiseTrials {
            turn: turn.as_nanos().max(1),
            cost,
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
            phase: NisePhase::Kept,
            active: count - 1,
            span: NiseSpan::default(),
            kept: None,
            since: NiseSpan::default(),
            lost: 0,
            free_until: 0,
            falls_from: 0,
        }
    }

    pub fn arrived(&mut self, now: Time, request: &Request) {
        self.pass(now);
        let at = request.tag.index();
        if self.slots.len() <= at {
            self.slots.resize(at + 1, NiseRequest::default());
        }
        let sync = request.is_sync();
        self.slots[at] = NiseRequest { sync, turn: 0 };
        self.here[usize::from(sync)] += 1;
        if sync && matches!(request.op, Op::Read | Op::Write) {
            let goes_on = self.remembered(request.extent.start.get());
            self.counted(goes_on, request.extent.end().get());
        }
    }

    /// A queued request has grown by another, which touches it.
    pub fn grown(&mut self, request: &Request) {
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

    pub fn fused(&mut self, gone: crate::Tag) {
        self.left(gone);
    }

    pub fn withdrawn(&mut self, tag: crate::Tag) {
        self.left(tag);
    }

    fn left(&mut self, tag: crate::Tag) {
        let sync = self.slots[tag.index()].sync;
        self.here[usize::from(sync)] -= 1;
    }

    /// A request was handed out.
    pub fn handed_out(&mut self, tag: crate::Tag) {
        self.slots[tag.index()].turn = self.number;
        self.in_drive += 1;
    }

    pub fn completed(&mut self, now: Time, request: &Request) {
        self.pass(now);
        let Some(slot) = self.slots.get_mut(request.tag.index()) else {
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
            self.since.add(request.extent.len.get());
        }
        if turn != self.number {
            self.before -= 1;
            if self.before == 0 {
                self.span = NiseSpan::default();
            }
        } else if counts {
            self.span.add(request.extent.len.get());
        }
    }

    /// All that is queued goes to another scheduler.
    pub fn cleared(&mut self) {
        *self = NiseTrials {
            now: self.now,
            clock: self.clock,
            known: self.known.clone(),
            ..NiseTrials::new(
                self.known[0].of.len(),
                Nanos::from_nanos(self.turn),
                self.cost,
            )
        };
    }

    fn pass(&mut self, now: Time) {
        let passed = now.saturating_since(self.now).as_nanos();
        self.now = self.now.max(now);
        let [writes, sync] = self.here;
        if writes + sync > 0 {
            self.clock = self.clock.saturating_add(passed);
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
            self.begin(NisePhase::Kept);
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

    fn begin(&mut self, phase: NisePhase) {
        let next = match phase {
            NisePhase::Tried(other) => other,
            NisePhase::Kept | NisePhase::After(_) => self.known[self.load as usize].kept,
        };
        if next != self.active {
            self.number = self.number.wrapping_add(1).max(1);
            self.before = self.in_drive;
            self.active = next;
        }
        self.phase = phase;
        self.span = NiseSpan::default();
    }

    fn judge(&mut self) {
        let whole = self.span.is_whole(self.turn);
        match self.phase {
            NisePhase::Kept if whole => {
                self.fell();
                self.kept = Some(self.span.with(self.kept));
                let next = self.due();
                self.begin(next);
                self.since = NiseSpan::default();
            }
            NisePhase::Tried(other) => {
                let kept = self.kept.expect("it was measured before the trial");
                let (own, others) = self.span.beside(&kept);
                let hopeless = HOPELESS.iter().any(|(part, percent)| {
                    self.span.nanos >= self.turn / part && own * 100 < others * percent
                });
                if hopeless || whole {
                    self.tried(other, self.span.share_of(&kept));
                }
            }
            NisePhase::After(other) if whole => {
                let kept = self.kept.expect("it was measured before the trial");
                let lost = self.since.lost_to(&kept);
                self.lost = self.lost.saturating_add(lost);
                self.known[self.load as usize].of[other].lost = lost;
                self.kept = Some(self.span.with(self.kept));
                self.begin(NisePhase::Kept);
            }
            NisePhase::Kept | NisePhase::After(_) => {}
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
    fn due(&self) -> NisePhase {
        let Choices { kept, of, time } = &self.known[self.load as usize];
        let others = of.iter().enumerate().filter(|(at, _)| at != kept);
        let due = others.filter(|(_, known)| {
            let lost = self.lost.saturating_add(known.lost);
            let paid = match known.trials {
                0 => *time >= self.turn.saturating_mul(FIRST),
                _ => lost.saturating_mul(self.cost) <= self.clock,
            };
            // While it is free, each once.
            let free = known.again == 0 && self.clock < self.free_until;
            known.again <= self.clock && (paid || free)
        });
        let next = due.min_by_key(|(at, known)| (known.again, *at));
        next.map_or(NisePhase::Kept, |(at, _)| NisePhase::Tried(at))
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
            self.begin(NisePhase::After(other));
            return;
        }
        if !sure {
            // Once more, soon.
            known.again = self.clock;
            known.lost = 0;
            self.begin(NisePhase::Kept);
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
        self.begin(NisePhase::Kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Tag};
    use headtime_units::Extent;

    const TURN: Nanos = Nanos::from_millis(100);

    /// A drive that serves one request of 8 sectors after the other.
    struct World {
        trials: NiseTrials,
        now: Time,
        lba: u64,
        /// How long each choice had the say.
        had: Vec<Nanos>,
    }

    impl World {
        fn new(count: usize, cost: u64) -> World {
            World {
                trials: NiseTrials::new(count, TURN, cost),
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
                self.trials.arrived(self.now, &request);
                let active = self.trials.choose(self.now);
                self.trials.handed_out(request.tag);
                let took = Nanos::from_micros(takes[active]);
                self.now += took;
                self.had[active] += took;
                self.trials.completed(self.now, &request);
                served += 1;
            }
            served
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
            let mut world = World::new(3, 100);
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
        let mut world = World::new(2, 100);
        world.serve(20, Load::Random, &[1_000, 1_500]);
        assert_eq!(world.kept(), 0);
        world.serve(60, Load::Random, &[1_000, 800]);
        assert_eq!(world.kept(), 1);
    }

    #[test]
    fn a_sudden_fall_is_followed_by_a_trial_at_once() {
        // Trials cost half of the time each, and nothing is paid for.
        let mut world = World::new(2, u64::MAX);
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
        let mut world = World::new(2, 1);
        world.serve(1, Load::Sequential, &[1_000, 1_000]);
        assert_eq!(world.had[0], Nanos::ZERO);
        world.serve(1, Load::Sequential, &[1_000, 1_000]);
        assert!(world.had[0] > Nanos::ZERO);
    }

    #[test]
    fn a_load_that_comes_back_is_known_at_once() {
        let mut world = World::new(2, 100);
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
        let mut world = World::new(2, 100);
        world.serve(10, Load::Random, &[1_000, 2_000]);
        world.serve(10, Load::Writes, &[2_000, 1_000]);
        assert_eq!((world.trials.load, world.kept()), (Load::Writes, 1));
        // The first read ends it.
        world.serve(1, Load::Random, &[1_000, 2_000]);
        assert_eq!((world.trials.load, world.kept()), (Load::Random, 0));
    }

    #[test]
    fn a_turn_begins_when_the_commands_of_the_choice_before_are_out_of_the_drive() {
        let mut world = World::new(2, 100);
        world.serve(1, Load::Random, &[1_000, 2_000]);
        let held = world.request(1, Load::Random);
        world.trials.arrived(world.now, &held);
        world.trials.handed_out(held.tag);
        // With a command of another turn in the drive nothing is measured, so nothing ends a turn.
        world.trials.begin(NisePhase::Tried(1));
        world.trials.since = NiseSpan::default();
        world.serve(5, Load::Random, &[1_000, 2_000]);
        assert_eq!(world.trials.phase, NisePhase::Tried(1));
        world.trials.completed(world.now, &held);
        world.serve(1, Load::Random, &[1_000, 2_000]);
        assert_ne!(world.trials.phase, NisePhase::Tried(1));
    }

    #[test]
    fn counts_of_what_is_there_follow_merges_withdrawals_swaps_and_foreign_commands() {
        let mut world = World::new(2, 100);
        for tag in 0..4 {
            let request = world.request(tag, Load::Random);
            world.trials.arrived(world.now, &request);
        }
        let write = Request {
            flags: Flags::NONE,
            ..world.request(4, Load::Writes)
        };
        world.trials.arrived(world.now, &write);
        assert_eq!(world.trials.here, [1, 4]);
        world.trials.fused(Tag(0));
        world.trials.withdrawn(Tag(1));
        world.trials.withdrawn(write.tag);
        assert_eq!(world.trials.here, [0, 2]);
        world.trials.handed_out(Tag(2));
        world.trials.cleared();
        assert_eq!((world.trials.here, world.trials.in_drive), ([0, 0], 0));
        // It was handed out before the swap, and the other by somebody else.
        let request = world.request(2, Load::Random);
        world.trials.completed(world.now, &request);
        let request = world.request(900, Load::Random);
        world.trials.completed(world.now, &request);
        assert_eq!((world.trials.here, world.trials.in_drive), ([0, 0], 0));
    }
}
