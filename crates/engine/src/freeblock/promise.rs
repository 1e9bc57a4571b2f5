//! A scan that ends by a date, and beside which clients wait no longer than they were promised.
//!
//! Gaps first, then idle time, then as much of the clients' time as the date needs, at the hours at which that delays least. Pure: it is told of
//! what has ended, and says which ways are open. See docs/design/2026-11-23-two-promises.md.

mod latencies;
mod narrow;
mod plan;
mod shadow;
mod spec;
mod sweep;
mod tail;

use crate::Finished;
use headtime_sched::{Class, Origin};
use headtime_units::{Extent, Lba, Nanos, Time};
use narrow::{Chosen, Narrow};
pub(super) use plan::Sweeping;
use plan::{Did, Goal, Plan, Ways};
use shadow::Shadow;
pub use spec::{ClientWaits, Outlook, Promised, Verdict};
use sweep::Sweep;
use tail::Tail;

/// A look is taken so often in the time promised, and every minute at the least.
const LOOKS: u64 = 10_000;
const LOOK_MOST: Nanos = Nanos::from_secs(60);
/// The time for which it only learns is this part of that promised, and no longer than a quarter of an hour.
const LEARNS: u64 = 100;
const LEARNS_MOST: Nanos = Nanos::from_secs(900);
/// The share of the time left that a forecast leaves over, and that of all the time, as long as that is no more than half of what is left.
const RESERVE: f64 = 0.1;
const RESERVE_OF_ALL: f64 = 0.03;
/// A verdict changes for the worse when so many looks agree, and for the better when so many do.
const AGREE: (u32, u32) = (5, 60);
/// Fewer requests have no 99th percentile.
const REQUESTS_LEAST: u64 = 1_000;
/// The price is bounded above the first of these parts of the promised p99, and released below the second.
const BOUNDED: (f64, f64) = (0.9, 0.7);
/// What the price is multiplied with at each look then.
const STEPS: (f64, f64) = (0.7, 1.1);
/// The bound before anything is known.
const BOUND_FIRST: f64 = 0.1;
/// No forecast looks further.
const FORECAST_MOST: Nanos = Nanos::LONGEST;
/// No price is lower, so that it can rise again; the highest is none at all.
const PRICE_LEAST: f64 = 1e-4;
const PRICE_MOST: f64 = 1e6;
/// Keeps the promises of a scan.
pub(super) struct Promise {
    promised: Promised,
    shadow: Shadow,
    plan: Plan,
    /// When it began; with the first look.
    began: Option<Time>,
    /// When what is promised now was heard of; with the next look.
    heard: Option<Time>,
    /// When all is to have been read.
    due: Time,
    next_look: Time,
    last_look: Time,
    /// What had been seen at the last look.
    seen: Looked,
    sweep: Sweep,
    /// The price that the p99 allows.
    bound: f64,
    /// Whether clients wait for nearly as long as was promised, so that the price may not rise.
    binds: bool,
    /// The price at which it reads.
    price: f64,
    ways: Ways,
    narrow: Narrow,
    /// Whether there could be gaps at all.
    has_gaps: bool,
    /// For how long the arm has read in idle time.
    in_idle: Nanos,
    /// Clients' requests before which something may be read outright.
    yielding: u64,
    /// How long clients' requests took since the last look.
    tail: Tail,
    /// When all will have been read at that price.
    ends: Option<Time>,
    /// How long the last outright read took, and when it ended.
    last_outright: (Nanos, Time),
    /// All has been read.
    is_over: bool,
    verdict: Verdict,
    /// What the last looks said, and how many of them.
    said: (Verdict, u32),
    changes: Vec<(Time, Verdict)>,
}

/// Sums since the scan began.
#[derive(Clone, Copy, Debug, Default)]
struct Looked {
    busy: Nanos,
    clients: u64,
    yielding: u64,
    free: u64,
    in_idle: Nanos,
}

/// The price that the p99 allows before anything is known.
fn bound_of(promised: &Promised) -> f64 {
    // Quiet hours are harmless; what else is, is to be seen.
    match promised.p99 {
        Some(_) => BOUND_FIRST,
        None => f64::INFINITY,
    }
}

impl Promise {
    /// Of a drive that turns in so long, with so many sectors on a track in the mean; `None` if nobody knows.
    pub(super) fn new(promised: Promised, drive: Option<(Nanos, f64)>) -> Promise {
        Promise {
            shadow: Shadow::default(),
            plan: Plan::new(promised.cycle),
            began: None,
            heard: None,
            due: Time::NEVER,
            next_look: Time::ZERO,
            last_look: Time::ZERO,
            seen: Looked::default(),
            sweep: Sweep::new(drive),
            bound: bound_of(&promised),
            binds: false,
            price: PRICE_MOST,
            ways: Ways::default(),
            narrow: Narrow::default(),
            has_gaps: drive.is_some(),
            in_idle: Nanos::ZERO,
            yielding: 0,
            tail: Tail::default(),
            ends: None,
            last_outright: (Nanos::ZERO, Time::ZERO),
            is_over: false,
            verdict: Verdict::Unknown,
            said: (Verdict::Unknown, 0),
            changes: Vec::new(),
            promised,
        }
    }

    /// From now on something else is promised. What was seen of clients and the drive counts on.
    pub(super) fn change(&mut self, promised: Promised) {
        if promised.cycle != self.promised.cycle {
            self.plan.set_cycle(promised.cycle);
            self.narrow.forget();
        }
        self.bound = bound_of(&promised);
        (self.binds, self.is_over) = (false, false);
        (self.heard, self.ends) = (None, None);
        (self.next_look, self.promised) = (Time::ZERO, promised);
    }

    /// Returns true if idle time is used now.
    pub(super) fn uses_idle(&self) -> bool {
        self.ways.idle
    }

    /// Returns true if an outright read may be asked for: they take no more than their share of the time, which is that of the last look also
    /// for what was read before it.
    pub(super) fn is_due(&self, now: Time) -> bool {
        let (took, ended) = self.last_outright;
        let share = self.ways.share;
        let rest = Nanos::from_millis_f64(took.as_millis_f64() * (1.0 - share) / share.max(1e-9));
        share > 0.0 && now >= ended.saturating_add(rest)
    }

    /// Returns true if the drive is to keep few commands, so that there are gaps.
    pub(super) fn is_narrow(&self) -> bool {
        self.narrow.is_narrow()
    }

    /// When it has to look again.
    pub(super) fn next_look(&self) -> Time {
        self.next_look
    }

    /// When the verdict changed, and to what.
    pub(super) fn changes(&self) -> &[(Time, Verdict)] {
        &self.changes
    }

    /// What there is to be told.
    pub(super) fn outlook(&self) -> Outlook {
        Outlook {
            verdict: self.verdict,
            since: self.changes.last().map_or(Time::ZERO, |(at, _)| *at),
            ends: self.ends,
            waits: self.waits(),
            is_narrow: self.is_narrow() && !self.is_over,
        }
    }

    pub(super) fn waits(&self) -> ClientWaits {
        ClientWaits {
            requests: self.shadow.with.count(),
            p99: self.shadow.with.at(0.99),
            p99_without: self.shadow.without.at(0.99),
        }
    }

    /// A client asks.
    pub(super) fn arrives(&mut self, now: Time, origin: Origin) {
        self.shadow.arrives(now, origin);
    }

    /// A client's request is over.
    pub(super) fn seen(&mut self, now: Time, done: &Finished) {
        self.shadow.seen(now, done);
        // Nothing goes before an urgent one.
        self.yielding += u64::from(done.request.class >= Class::BEST_EFFORT);
        self.tail.add(now.saturating_since(done.request.arrival));
    }

    /// A pick in a gap is over.
    pub(super) fn pick(&mut self, done: &Finished) {
        self.shadow.pick(done);
    }

    /// A read in idle time or an outright one is over.
    pub(super) fn swept(&mut self, now: Time, done: &Finished, idle: bool) {
        let took = self.shadow.own(now, done);
        self.sweep.read(done.request.extent, took);
        match idle {
            true => self.in_idle = self.in_idle.saturating_add(took),
            false => self.last_outright = (took, now),
        }
    }

    /// What is ahead of a sweep that is at a sector, from the pieces that come there and the blocks that each has.
    pub(super) fn ahead(
        &self,
        at: Lba,
        pieces: impl Iterator<Item = (u64, Extent)>,
    ) -> Option<Sweeping> {
        let (mut at, mut reads, mut blocks, mut takes) = (at, 0_u32, 0, 0.0);
        for (here, extent) in pieces {
            takes += self.sweep.takes(at, extent);
            (at, reads, blocks) = (extent.end(), reads + 1, blocks + here);
        }
        let takes = takes * self.sweep.factor();
        (reads > 0).then(|| Sweeping {
            blocks: blocks as f64 / takes,
            least: 1.0 / (self.sweep.factor() * 1.5 * self.sweep.turn),
            each: takes / f64::from(reads),
        })
    }

    /// All has been read, so that what became of its promises is known. No look is taken after that.
    pub(super) fn end(&mut self, now: Time) {
        if self.began.is_none() || self.is_over {
            return;
        }
        self.is_over = true;
        self.ends = Some(now);
        let verdict = Verdict::of(now > self.due, self.bound_price());
        self.said = (verdict, AGREE.1);
        self.say(now, verdict);
    }

    /// Looks at what was done. `free` blocks were read for nothing, and `left` blocks of `all` are wanted or on their way. A scan that `rests` reads
    /// nothing at present; its forecast is that of one that goes on. `may_narrow` says that the drive has many commands, or would have, and may have few.
    pub(super) fn look(
        &mut self,
        now: Time,
        (rests, may_narrow): (bool, bool),
        free: u64,
        sweeping: Sweeping,
        (left, all): (u64, u64),
    ) {
        let span = self.promised.finish_within.unwrap_or(self.promised.cycle);
        let part = |of: u64, most: Nanos| Nanos::from_nanos(span.as_nanos() / of).min(most);
        let every = part(LOOKS, LOOK_MOST).max(Nanos::from_millis(10));
        self.next_look = now.saturating_add(every);
        self.is_over = false;
        let heard = match self.heard {
            Some(heard) => heard,
            None => self.hear(now),
        };
        let Some(began) = self.began else {
            (self.began, self.last_look) = (Some(now), now);
            return;
        };
        self.note(now, rests, free, left as f64 / all.max(1) as f64);
        self.last_look = now;
        // Who hears late of a date learns for no longer than a part of what is left.
        let learns = part(LEARNS, LEARNS_MOST);
        let to_go = self.due.saturating_since(began).as_nanos() / LEARNS;
        let learns = learns.min(Nanos::from_nanos(to_go));
        if now < began.saturating_add(learns) {
            return;
        }
        // What clients wait for at night says nothing of their day.
        let half = self.promised.finish_within.map(|within| within / 2);
        let half = half.map_or(Time::NEVER, |half| heard.saturating_add(half));
        let whole = now >= half.min(began.saturating_add(self.promised.cycle));
        let slow = self.bound_price() && whole;
        let mut goal = Goal {
            now,
            left,
            all,
            sweeping,
            bound: self.bound,
            outright: true,
        };
        let seconds = self.due.saturating_since(now).as_secs_f64();
        let reserve = match self.promised.finish_within {
            Some(within) => (within.as_secs_f64() * RESERVE_OF_ALL).min(seconds / 2.0),
            None => 0.0,
        };
        let reserve = reserve.max(seconds * RESERVE);
        // What clients would wait for without it nobody can say who has seen them with another queue.
        let may_narrow = may_narrow
            && self.has_gaps
            && self.promised.finish_within.is_some()
            && self.promised.p99.is_none();
        let narrow = &mut self.narrow;
        let chosen = narrow.choose(&goal, &mut self.plan, may_narrow, seconds - reserve, learns);
        // A drive with many commands serves whom it likes: how much it would read at the cost of others nobody knows.
        goal.outright = !may_narrow || narrow.is_narrow();
        if chosen == Chosen::Learns {
            return;
        }
        let (price, late) = match self.promised.finish_within {
            None => (PRICE_MOST, false),
            Some(_) => {
                let price = self.plan.price(&goal, seconds - reserve);
                // What nobody knows of a drive a few reads show, and the sooner the better.
                let price = price.filter(|_| self.sweep.is_known());
                let price = price.unwrap_or(PRICE_MOST);
                let bound = match self.binds && whole {
                    true => self.bound,
                    false => f64::INFINITY,
                };
                let bounded = Goal { bound, ..goal };
                // Who has to go without the reserve is not late yet. Who was has to have some of it again.
                let was = matches!(self.verdict, Verdict::Late | Verdict::Neither);
                let seconds = if was {
                    seconds - reserve / 2.0
                } else {
                    seconds
                };
                let late = left > 0 && !self.plan.suffices(&bounded, PRICE_MOST, seconds);
                (price, late)
            }
        };
        self.ways = self.plan.ways(&goal, price);
        self.ends = self.forecast(&goal, price);
        let verdict = match (late, whole || self.promised.p99.is_none()) {
            (false, false) => Verdict::Unknown,
            _ => Verdict::of(late, slow),
        };
        self.say(now, verdict);
        self.price = price;
    }

    /// Something is promised from now on.
    fn hear(&mut self, now: Time) -> Time {
        let Promised {
            finish_within,
            passed,
            ..
        } = self.promised;
        self.heard = Some(now);
        self.due = finish_within.map_or(Time::NEVER, |within| {
            now.saturating_add(within.saturating_sub(passed))
        });
        (self.verdict, self.said) = (Verdict::Unknown, (Verdict::Unknown, 0));
        self.changes.push((now, Verdict::Unknown));
        now
    }

    /// When all has been read at a price, as far as one can look.
    fn forecast(&self, goal: &Goal, price: f64) -> Option<Time> {
        let most = FORECAST_MOST.as_secs_f64();
        let takes = self.plan.takes(goal, price, most);
        let after = || Nanos::from_millis_f64(takes * 1e3);
        (takes < most).then(|| goal.now.saturating_add(after()))
    }

    /// Notes what happened since the last look.
    fn note(&mut self, now: Time, rests: bool, free: u64, left: f64) {
        let since = now.saturating_since(self.last_look);
        let seen = Looked {
            busy: self.shadow.busy,
            clients: self.shadow.with.count(),
            yielding: self.yielding,
            free,
            in_idle: self.in_idle,
        };
        let before = std::mem::replace(&mut self.seen, seen);
        let tail = std::mem::take(&mut self.tail);
        // Who rests finds nothing in gaps, which says nothing of them.
        if rests {
            return;
        }
        let busy = seen.busy.saturating_sub(before.busy);
        let did = Did {
            span: since,
            busy,
            clients: seen.clients - before.clients,
            yielding: seen.yielding - before.yielding,
            // What failed is given back.
            free: seen.free.saturating_sub(before.free),
            tail,
        };
        self.plan.saw(now, &did, left);
        let rest = since.saturating_sub(busy).as_secs_f64();
        if self.ways.idle && self.ways.share == 0.0 && rest > 0.0 {
            let read = seen.in_idle.saturating_sub(before.in_idle);
            self.plan.swept_idle(now, read.as_secs_f64() / rest);
        }
    }

    /// Bounds the price by what clients wait for. Returns true if they wait longer than was promised.
    fn bound_price(&mut self) -> bool {
        let Some(more) = self.promised.p99 else {
            return false;
        };
        let waits = self.waits();
        if waits.requests < REQUESTS_LEAST {
            return false;
        }
        self.plan.set_limit(waits.p99_without);
        let (p99, without) = (waits.p99.as_secs_f64(), waits.p99_without.as_secs_f64());
        let part = (p99 - without) / (more * without).max(1e-9);
        self.binds = part >= BOUNDED.1;
        if part > BOUNDED.0 {
            let from = self.bound.min(self.price);
            self.bound = (from * STEPS.0).max(PRICE_LEAST);
        } else if part < BOUNDED.1 && self.price >= self.bound {
            // Only while it binds: a bound that rises by night when nobody needs it is none when the day begins.
            self.bound = (self.bound * STEPS.1).min(PRICE_MOST);
        }
        part > 1.0
    }

    /// Says a verdict, if that is a change on which looks agree.
    fn say(&mut self, now: Time, verdict: Verdict) {
        let (said, times) = self.said;
        self.said = match said == verdict {
            true => (verdict, times.saturating_add(1)),
            false => (verdict, 1),
        };
        let agree = match (self.verdict, verdict) {
            // The first one is said at once.
            (Verdict::Unknown, _) if times == 0 => 1,
            (Verdict::Unknown, Verdict::Holds) => 1,
            (Verdict::Unknown | Verdict::Holds, _) | (_, Verdict::Neither) => AGREE.0,
            _ => AGREE.1,
        };
        if verdict != self.verdict && self.said.1 >= agree {
            self.verdict = verdict;
            self.changes.push((now, verdict));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn promise() -> Promise {
        let promised = Promised {
            finish_within: Some(SECOND.saturating_mul(100)),
            passed: Nanos::ZERO,
            p99: None,
            cycle: SECOND.saturating_mul(86_400),
            patience: Nanos::from_millis(2),
        };
        Promise::new(promised, Some((Nanos::from_millis(8), 1000.0)))
    }

    #[test]
    fn a_pause_between_outright_reads_is_that_of_the_share_of_the_last_look() {
        let mut promise = promise();
        let ended = Time::ZERO + SECOND;
        let at = |millis| ended + Nanos::from_millis(millis);
        promise.last_outright = (Nanos::from_millis(10), ended);
        assert!(!promise.is_due(at(1_000_000)), "they have no share");
        promise.ways.share = 0.5;
        assert!(!promise.is_due(at(9)) && promise.is_due(at(10)));
        promise.ways.share = 0.1;
        assert!(!promise.is_due(at(89)) && promise.is_due(at(90)));
    }

    #[test]
    fn the_bound_of_the_price_rises_only_while_it_binds() {
        let mut promise = promise();
        promise.promised.p99 = Some(0.05);
        (promise.bound, promise.price) = (0.1, 0.0);
        for _ in 0..REQUESTS_LEAST {
            promise.shadow.with.add(SECOND);
            promise.shadow.without.add(SECOND);
        }
        let mut bound = |price| {
            promise.price = price;
            promise.bound_price();
            promise.bound
        };
        assert_eq!(
            [bound(0.0), bound(0.09)],
            [0.1, 0.1],
            "nobody asks for more"
        );
        assert!(bound(0.1) > 0.1);
        for _ in 0..100_000 {
            bound(f64::INFINITY);
        }
        assert_eq!(bound(f64::INFINITY), PRICE_MOST);
    }

    #[test]
    fn what_became_of_a_date_is_said_when_all_has_been_read_and_once() {
        for (seconds, verdict) in [(99, Verdict::Holds), (101, Verdict::Late)] {
            let mut promise = promise();
            promise.look(Time::ZERO, (false, false), 0, Sweeping::default(), (10, 10));
            promise.end(Time::ZERO + SECOND.saturating_mul(seconds));
            // Somebody reads again what could not be read.
            promise.end(Time::ZERO + SECOND.saturating_mul(200));
            let last = promise.changes().last().map(|(_, verdict)| *verdict);
            assert_eq!((promise.changes().len(), last), (2, Some(verdict)));
        }
    }

    fn sweeping() -> Sweeping {
        Sweeping {
            blocks: 100.0,
            least: 50.0,
            each: 0.01,
        }
    }

    /// Looks once a second, from a second to another one, at a disk that nobody uses.
    fn looks(promise: &mut Promise, seconds: std::ops::Range<u64>, left: u64) {
        for second in seconds {
            let now = Time::ZERO + SECOND.saturating_mul(second);
            promise.look(now, (false, false), 0, sweeping(), (left, 100));
        }
    }

    fn said(promise: &Promise) -> Vec<(u64, Verdict)> {
        let changes = promise.changes().iter();
        let changes = changes.map(|(at, verdict)| (at.as_nanos() / 1_000_000_000, *verdict));
        changes.collect()
    }

    #[test]
    fn what_clients_wait_for_is_not_known_before_a_cycle_or_half_of_the_time() {
        for (cycle, knows) in [(20, 20), (80, 50)] {
            let mut promise = promise();
            promise.change(Promised {
                p99: Some(0.05),
                cycle: SECOND.saturating_mul(cycle),
                ..promise.promised
            });
            looks(&mut promise, 0..60, 10);
            let expected = [(0, Verdict::Unknown), (knows, Verdict::Holds)];
            assert_eq!(said(&promise), expected);
        }
        // That the date cannot hold is known before.
        let mut promise = promise();
        promise.change(Promised {
            p99: Some(0.05),
            ..promise.promised
        });
        looks(&mut promise, 0..4, 100_000);
        assert_eq!(said(&promise), [(0, Verdict::Unknown), (1, Verdict::Late)]);
        // Alone it takes a whole cycle.
        promise.change(Promised {
            finish_within: None,
            p99: Some(0.05),
            cycle: SECOND.saturating_mul(20),
            ..promise.promised
        });
        looks(&mut promise, 4..60, 10);
        let last = [(4, Verdict::Unknown), (20, Verdict::Holds)];
        assert_eq!(said(&promise)[2..], last);
    }

    #[test]
    fn a_date_of_which_a_part_is_over_is_as_near_as_that() {
        let mut promise = promise();
        promise.change(Promised {
            passed: SECOND.saturating_mul(70),
            ..promise.promised
        });
        looks(&mut promise, 0..2, 10);
        assert_eq!(promise.due, Time::ZERO + SECOND.saturating_mul(30));
        // Of thirty seconds it learns for a third of one.
        assert_eq!(said(&promise)[1], (1, Verdict::Holds));
        promise.end(Time::ZERO + SECOND.saturating_mul(31));
        assert_eq!(said(&promise)[2], (31, Verdict::Late));
        // One that is over is late at once, and so it stays.
        let mut promise = self::promise();
        promise.change(Promised {
            passed: SECOND.saturating_mul(1_000),
            ..promise.promised
        });
        looks(&mut promise, 0..100, 10);
        assert_eq!(said(&promise), [(0, Verdict::Unknown), (1, Verdict::Late)]);
        assert!(promise.outlook().ends.is_some());
    }

    #[test]
    fn other_promises_are_known_nothing_of_until_the_next_look_and_what_was_seen_counts() {
        let mut promise = promise();
        looks(&mut promise, 0..10, 1_000);
        assert_eq!(said(&promise), [(0, Verdict::Unknown), (1, Verdict::Holds)]);
        let before = promise.plan.clone();
        promise.change(Promised {
            finish_within: Some(SECOND.saturating_mul(5)),
            ..promise.promised
        });
        assert_eq!(promise.plan, before);
        looks(&mut promise, 10..12, 1_000);
        let now = [(10, Verdict::Unknown), (10, Verdict::Late)];
        assert_eq!(said(&promise)[2..], now);
        // The time is gone, and there are still some to be read.
        assert_eq!(promise.due, Time::ZERO + SECOND.saturating_mul(15));
        let outlook = promise.outlook();
        assert_eq!(outlook.verdict, Verdict::Late);
        assert!(outlook.ends.is_some_and(|ends| ends > promise.due));
    }

    #[test]
    fn while_it_rests_nothing_is_learned_and_the_time_goes_on() {
        let mut promise = promise();
        looks(&mut promise, 0..10, 1_000);
        let before = promise.plan.clone();
        for second in 10..95 {
            let now = Time::ZERO + SECOND.saturating_mul(second);
            promise.look(now, (true, false), 0, sweeping(), (1_000, 1_000));
        }
        assert_eq!(promise.plan, before);
        let last = promise.changes().last().map(|(_, verdict)| *verdict);
        assert_eq!(last, Some(Verdict::Late));
    }
}
