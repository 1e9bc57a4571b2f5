//! A scan that ends by a date, and beside which clients wait no longer than they were promised.
//!
//! Gaps first, then idle time, then as much of the clients' time as the date needs, at the hours at which that delays least. Pure: it is told of
//! what has ended, and says which ways are open. See docs/design/2026-11-23-two-promises.md.

mod latencies;
mod plan;
mod shadow;

use crate::Finished;
use headtime_sched::Origin;
use headtime_units::{Extent, Lba, Nanos, Time};
pub(super) use plan::Sweeping;
use plan::{Goal, Plan, Ways};
use shadow::Shadow;

/// What is promised of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promised {
    /// All is read so long after the scan began.
    pub finish_within: Option<Nanos>,
    /// The 99th percentile of the clients' latencies is longer by this share of it at most, such as 0.05.
    pub p99: Option<f64>,
    /// After so long the load repeats.
    pub cycle: Nanos,
    /// Idle time is used when nobody has waited for anything for so long.
    pub patience: Nanos,
}

/// Whether a scan can keep what was promised of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody knows yet.
    #[default]
    Unknown,
    /// All that was promised.
    Holds,
    /// It will not have read all by the date, unless it delays clients by more than was promised.
    Late,
    /// Clients wait longer than was promised.
    Slow,
    /// Neither.
    Neither,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Unknown => "not known yet",
            Verdict::Holds => "holds",
            Verdict::Late => "the date cannot hold",
            Verdict::Slow => "the p99 cannot hold",
            Verdict::Neither => "neither can hold",
        }
    }
}

/// What clients wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientWaits {
    /// Requests since the scan began.
    pub requests: u64,
    /// What 99 % of them have not exceeded.
    pub p99: Nanos,
    /// The same without the scan, estimated.
    pub p99_without: Nanos,
}

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
/// No price is lower, so that it can rise again; the highest is none at all.
const PRICE_LEAST: f64 = 1e-4;
const PRICE_MOST: f64 = 1e6;
/// What was seen of so many of its own reads says how long others take.
const OWN_READS: u64 = 512;

/// How long reads of a sweep take: a turn where they do not follow the last one, and the turns that they cover. What was seen of them
/// corrects that.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// Seconds.
    turn: f64,
    /// Sectors, in the mean.
    track: f64,
    reads: u64,
    /// How long they took, and would have taken.
    took: f64,
    would: f64,
    /// Where the last one ended.
    end: Lba,
}

impl Sweep {
    fn takes(&self, at: Lba, extent: Extent) -> f64 {
        let away = extent.start.get().abs_diff(at.get()) as f64;
        // What passes under the head until then takes its time, too.
        let until = (away / self.track).min(1.0);
        // A track and the skew to the next one.
        (until + 1.1 * extent.len.get() as f64 / self.track) * self.turn
    }

    fn read(&mut self, extent: Extent, took: Nanos) {
        if self.reads == OWN_READS {
            (self.reads, self.took, self.would) =
                (OWN_READS / 2, self.took / 2.0, self.would / 2.0);
        }
        self.reads += 1;
        self.took += took.as_secs_f64();
        self.would += self.takes(self.end, extent);
        self.end = extent.end();
    }

    fn factor(&self) -> f64 {
        match self.reads >= 16 {
            true => (self.took / self.would).clamp(0.5, 4.0),
            false => 1.0,
        }
    }
}

/// Keeps the promises of a scan.
pub(super) struct Promise {
    promised: Promised,
    shadow: Shadow,
    plan: Plan,
    /// When it began; with the first event.
    began: Option<Time>,
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
    /// For how long the arm has read in idle time.
    in_idle: Nanos,
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
    free: u64,
    in_idle: Nanos,
}

impl Promise {
    /// Of a drive that turns in so long, with so many sectors on a track in the mean.
    pub(super) fn new(promised: Promised, turn: Nanos, track: f64) -> Promise {
        Promise {
            shadow: Shadow::default(),
            plan: Plan::new(promised.cycle),
            began: None,
            next_look: Time::ZERO,
            last_look: Time::ZERO,
            seen: Looked::default(),
            sweep: Sweep {
                turn: turn.as_secs_f64(),
                track: track.max(1.0),
                reads: 0,
                took: 0.0,
                would: 0.0,
                end: Lba::ZERO,
            },
            // Quiet hours are harmless; what else is, is to be seen.
            bound: match promised.p99 {
                Some(_) => BOUND_FIRST,
                None => f64::INFINITY,
            },
            binds: false,
            price: PRICE_MOST,
            ways: Ways::default(),
            in_idle: Nanos::ZERO,
            verdict: Verdict::Unknown,
            said: (Verdict::Unknown, 0),
            changes: Vec::new(),
            promised,
        }
    }

    /// Returns true if idle time is used now.
    pub(super) fn uses_idle(&self) -> bool {
        self.ways.idle
    }

    /// The share of the time that outright reads may take now.
    pub(super) fn share(&self) -> f64 {
        self.ways.share
    }

    /// When it has to look again.
    pub(super) fn next_look(&self) -> Time {
        self.next_look
    }

    /// When the verdict changed, and to what.
    pub(super) fn changes(&self) -> &[(Time, Verdict)] {
        &self.changes
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
    }

    /// A pick in a gap is over.
    pub(super) fn pick(&mut self, done: &Finished) {
        self.shadow.pick(done);
    }

    /// A read in idle time or an outright one is over. Returns for how long the arm worked for it.
    pub(super) fn swept(&mut self, now: Time, done: &Finished, idle: bool) -> Nanos {
        let took = self.shadow.own(now, done);
        self.sweep.read(done.request.extent, took);
        if idle {
            self.in_idle = self.in_idle.saturating_add(took);
        }
        took
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

    /// Looks at what was done. `free` blocks were read for nothing, and `left` blocks of `all` are wanted or on their way.
    pub(super) fn look(
        &mut self,
        now: Time,
        free: u64,
        sweeping: Sweeping,
        (left, all): (u64, u64),
    ) {
        let span = self.promised.finish_within.unwrap_or(self.promised.cycle);
        let part = |of: u64, most: Nanos| Nanos::from_nanos(span.as_nanos() / of).min(most);
        let every = part(LOOKS, LOOK_MOST).max(Nanos::from_millis(10));
        self.next_look = now.saturating_add(every);
        let Some(began) = self.began else {
            self.began = Some(now);
            self.last_look = now;
            self.changes.push((now, Verdict::Unknown));
            return;
        };
        let since = now.saturating_since(self.last_look);
        self.note(now, since, free, left as f64 / all.max(1) as f64);
        self.last_look = now;
        if now < began.saturating_add(part(LEARNS, LEARNS_MOST)) {
            return;
        }
        // What clients wait for at night says nothing of their day.
        let half = Nanos::from_nanos(span.as_nanos() / 2);
        let whole = now >= began.saturating_add(self.promised.cycle.min(half));
        let slow = self.bound_price() && whole;
        let goal = Goal {
            now,
            left,
            all,
            sweeping,
        };
        let (price, late) = match self.promised.finish_within {
            None => (self.bound.min(PRICE_MOST), false),
            Some(within) => {
                let end = began.saturating_add(within);
                let seconds = end.saturating_since(now).as_secs_f64();
                let reserve = (within.as_secs_f64() * RESERVE_OF_ALL).min(seconds / 2.0);
                let reserve = reserve.max(seconds * RESERVE);
                let price = self.plan.price(&goal, seconds - reserve);
                let price = price.unwrap_or(PRICE_MOST);
                let most = match self.binds && whole {
                    true => self.bound.min(PRICE_MOST),
                    false => PRICE_MOST,
                };
                // Who has to go without the reserve is not late yet. Who was has to have some of it again.
                let was = matches!(self.verdict, Verdict::Late | Verdict::Neither);
                let seconds = if was {
                    seconds - reserve / 2.0
                } else {
                    seconds
                };
                let late = left > 0 && !self.plan.suffices(&goal, most, seconds);
                (price.min(self.bound), late)
            }
        };
        self.ways = self.plan.ways(now, price, &sweeping);
        self.say(
            now,
            match (late, slow) {
                (false, false) => Verdict::Holds,
                (true, false) => Verdict::Late,
                (false, true) => Verdict::Slow,
                (true, true) => Verdict::Neither,
            },
        );
        self.price = price;
    }

    /// Notes what happened since the last look.
    fn note(&mut self, now: Time, since: Nanos, free: u64, left: f64) {
        let seen = Looked {
            busy: self.shadow.busy,
            clients: self.shadow.with.count(),
            free,
            in_idle: self.in_idle,
        };
        let busy = seen.busy.saturating_sub(self.seen.busy);
        let clients = seen.clients - self.seen.clients;
        // What failed is given back.
        let free = seen.free.saturating_sub(self.seen.free);
        self.plan.saw(now, since, busy, clients, free, left);
        let rest = since.saturating_sub(busy).as_secs_f64();
        if self.ways.idle && self.ways.share == 0.0 && rest > 0.0 {
            let read = seen.in_idle.saturating_sub(self.seen.in_idle);
            self.plan.swept_idle(read.as_secs_f64() / rest);
        }
        self.seen = seen;
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
        let (p99, without) = (waits.p99.as_secs_f64(), waits.p99_without.as_secs_f64());
        let part = (p99 - without) / (more * without).max(1e-9);
        self.binds = part >= BOUNDED.1;
        if part > BOUNDED.0 {
            let from = self.bound.min(self.price);
            self.bound = (from * STEPS.0).max(PRICE_LEAST);
        } else if part < BOUNDED.1 && self.bound < f64::INFINITY {
            self.bound *= STEPS.1;
            if self.bound > PRICE_MOST {
                self.bound = f64::INFINITY;
            }
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
            (Verdict::Unknown, _) => 1,
            (Verdict::Holds, _) | (_, Verdict::Neither) => AGREE.0,
            _ => AGREE.1,
        };
        if verdict != self.verdict && self.said.1 >= agree {
            self.verdict = verdict;
            self.changes.push((now, verdict));
        }
    }
}
