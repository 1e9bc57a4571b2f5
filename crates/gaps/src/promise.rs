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

use headtime_engine::{Finished, Outcome};
use headtime_sched::{Class, Origin};
use headtime_units::{Extent, Lba, Nanos, Time};
use narrow::{Chosen, Narrow};
pub(super) use plan::Sweeping;
use plan::{Bound, Did, Goal, Plan, Ways};
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
/// As long as so many outright reads wait in the drive is in reserve, too.
const RESERVE_READS: f64 = 32.0;
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
/// Blocks that are wanted again say nothing before this share of all has been read, and have half of their weight after this share of the time looked at.
const READ_LEAST: f64 = 0.01;
const AGAIN_OF: f64 = 0.2;
/// How long outright reads are in the drive before they are served is known by so many.
const LAG_OF: f64 = 16.0;
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
    /// Blocks that clients have written to and that are wanted again for it, and as many a second as would be if all had been read.
    wanted_again: u64,
    again: f64,
    /// Clients' requests before which something may be read outright.
    yielding: u64,
    /// Whether a client has asked for anything, and whether it is too early to plan.
    is_asked: bool,
    learns: bool,
    /// How long clients' requests took since the last look.
    tail: Tail,
    /// When all will have been read at that price.
    ends: Option<Time>,
    /// How long the last outright read took, and when it ended.
    last_outright: (Nanos, Time),
    /// How long an outright read is in the drive before the arm is its own, in seconds, by those that were made.
    lag: f64,
    /// All has been read.
    is_over: bool,
    verdict: Verdict,
    /// What the last looks said, and how many of them.
    said: (Verdict, u32),
    changes: Vec<(Time, Verdict)>,
}

/// How many commands the drive has, or would have if nothing else were asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueLength {
    /// Two at the most.
    Short,
    /// More, whatever is promised.
    Deep,
    /// More, or two if that is better for a promise.
    DeepOrNot,
}

/// Sums since the scan began.
#[derive(Clone, Copy, Debug, Default)]
struct Looked {
    busy: Nanos,
    clients: u64,
    yielding: u64,
    free: u64,
    in_idle: Nanos,
    wanted_again: u64,
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
            shadow: Shadow::new(drive.map_or(Nanos::ZERO, |(turn, _)| turn)),
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
            wanted_again: 0,
            again: 0.0,
            yielding: 0,
            is_asked: false,
            learns: true,
            tail: Tail::default(),
            ends: None,
            last_outright: (Nanos::ZERO, Time::ZERO),
            lag: 0.0,
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
        if promised.p99 != self.promised.p99 {
            self.plan.forget_allowed(self.bound);
        }
        (self.binds, self.is_over) = (false, false);
        (self.heard, self.ends) = (None, None);
        (self.next_look, self.promised) = (Time::ZERO, promised);
    }

    /// Returns true if idle time is used now: also while it only learns, as long as there is nobody from whom it could learn.
    pub(super) fn uses_idle(&self) -> bool {
        self.ways.idle && !(self.learns && self.is_asked)
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
        self.is_asked = true;
        self.shadow.arrives(now, origin);
    }

    /// A client's request is over.
    pub(super) fn seen(&mut self, now: Time, done: &Finished) {
        self.is_asked = true;
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
        let took = self.swept_besides(now, done, idle);
        // How long a drive tries again says nothing of how fast it reads.
        if done.outcome == Outcome::Done {
            self.sweep.read(done.request.extent, took);
        }
    }

    /// A read is over that was made in idle time or outright, and need not be one of a sweep. Returns how long it took.
    pub(super) fn swept_besides(&mut self, now: Time, done: &Finished, idle: bool) -> Nanos {
        let took = self.shadow.own(now, done);
        match idle {
            true => self.in_idle = self.in_idle.saturating_add(took),
            false => {
                self.last_outright = (took, now);
                let lag = now
                    .saturating_since(done.request.arrival)
                    .saturating_sub(took);
                self.lag += (lag.as_secs_f64() - self.lag) / LAG_OF;
            }
        }
        took
    }

    /// Clients have written to blocks that had been read, and are wanted again.
    pub(super) fn beside_writes(&mut self, blocks: u64) {
        self.wanted_again += blocks;
    }

    /// What is ahead of a sweep, from what comes behind some places side by side: pieces, and the blocks that each has. Each place stands for as much
    /// of the disk as the others.
    pub(super) fn ahead<T: Iterator<Item = (u64, Extent)>>(
        &self,
        places: impl Iterator<Item = (Lba, T)>,
    ) -> Option<Sweeping> {
        // For each sector of the disk.
        let (mut reads, mut blocks, mut takes) = (0.0, 0.0, 0.0);
        for (place, pieces) in places {
            let (mut at, mut pieces_here, mut blocks_here, mut takes_here) = (place, 0.0, 0.0, 0.0);
            for (wanted, extent) in pieces {
                pieces_here += 1.0;
                blocks_here += wanted as f64;
                takes_here += self.sweep.takes(at, extent);
                at = extent.end();
            }
            // A place where less is wanted has its pieces farther apart.
            let sectors = at.get().saturating_sub(place.get()).max(1) as f64;
            reads += pieces_here / sectors;
            blocks += blocks_here / sectors;
            takes += takes_here / sectors;
        }
        let takes = takes * self.sweep.factor();
        (reads > 0.0).then(|| Sweeping {
            blocks: blocks / takes,
            least: 1.0 / (self.sweep.factor() * 1.5 * self.sweep.turn),
            each: takes / reads,
        })
    }

    /// When all is to have been read, if that is still to come and anybody waits for it.
    pub(super) fn due(&self) -> Option<Time> {
        let is_known = self.verdict.is_late() || self.is_over || self.heard.is_none();
        (!is_known && self.due < Time::NEVER).then(|| self.due.saturating_add(Nanos::from_nanos(1)))
    }

    /// Says that the date has passed, if it has and that was not said. Returns true if it was said now.
    pub(super) fn overdue(&mut self, now: Time) -> bool {
        let is_news = self.due().is_some_and(|due| now >= due);
        if is_news {
            self.set_verdict(now, self.verdict.and_late());
        }
        is_news
    }

    /// All has been read, so that what became of its promises is known. No look is taken after that.
    pub(super) fn end(&mut self, now: Time) {
        if self.began.is_none() || self.is_over {
            return;
        }
        self.is_over = true;
        self.ends = Some(now);
        let verdict = Verdict::of(now > self.due, self.bound_price());
        self.set_verdict(now, verdict);
    }

    /// Says this from now on.
    fn set_verdict(&mut self, now: Time, verdict: Verdict) {
        self.said = (verdict, AGREE.1);
        if verdict != self.verdict {
            self.verdict = verdict;
            self.changes.push((now, verdict));
        }
    }

    /// Looks at what was done. `free` blocks were read for nothing, and `left` blocks of `all` are wanted or on their way. A scan that `rests` reads
    /// nothing at present; its forecast is that of one that goes on.
    pub(super) fn look(
        &mut self,
        now: Time,
        rests: bool,
        queue: QueueLength,
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
        self.overdue(now);
        // Who hears late of a date learns for no longer than a part of what is left.
        let learns = part(LEARNS, LEARNS_MOST);
        let to_go = self.due.saturating_since(began).as_nanos() / LEARNS;
        let learns = learns.min(Nanos::from_nanos(to_go));
        self.learns = now < began.saturating_add(learns);
        if self.learns {
            self.ways = Ways {
                idle: !self.is_asked,
                ..Ways::default()
            };
            return;
        }
        // What clients wait for at night says nothing of their day.
        let half = self.promised.finish_within.map(|within| {
            let half = (within / 2).saturating_sub(self.promised.passed);
            heard.saturating_add(half)
        });
        let half = half.unwrap_or(Time::NEVER);
        let whole = now >= half.min(began.saturating_add(self.promised.cycle));
        let slow = self.bound_price() && whole;
        let lag = match queue == QueueLength::Short || self.narrow.is_narrow() {
            true => 0.0,
            false => self.lag,
        };
        let mut goal = Goal {
            now,
            left,
            all,
            sweeping,
            bound: Bound::Now(self.bound),
            outright: true,
            lag,
            again: self.again,
        };
        let seconds = self.due.saturating_since(now).as_secs_f64();
        let reserve = match self.promised.finish_within {
            Some(within) => (within.as_secs_f64() * RESERVE_OF_ALL).min(seconds / 2.0),
            None => 0.0,
        };
        // So that the last of them are not on their way when the time is over.
        let reserve = reserve.max(seconds * RESERVE) + RESERVE_READS * lag;
        // What clients would wait for without it nobody can say who has seen them with another queue.
        let may_narrow = queue == QueueLength::DeepOrNot
            && self.has_gaps
            && self.promised.finish_within.is_some()
            && self.promised.p99.is_none();
        let narrow = &mut self.narrow;
        let chosen = narrow.choose(&goal, &mut self.plan, may_narrow, seconds - reserve, learns);
        // A drive with many commands serves whom it likes: how much it would read at the cost of others nobody knows. Where the queue stays as
        // it is, it shows.
        goal.outright = !may_narrow || narrow.is_narrow();
        if chosen == Chosen::Learns {
            return;
        }
        // By noon the p99 allows less than by night, so that what it allows now says little of the hours to come.
        let bound = match self.binds && whole {
            true => Bound::AsBefore,
            false => Bound::Now(f64::INFINITY),
        };
        let bounded = Goal { bound, ..goal };
        let (price, late) = match self.promised.finish_within {
            None => (PRICE_MOST, false),
            Some(_) => {
                // What it allows now is what may be paid now, whatever comes later.
                let price = self.plan.price(&goal, seconds - reserve);
                // What nobody knows of a drive a few reads show, and the sooner the better.
                let price = price.filter(|_| self.sweep.is_known());
                let price = price.unwrap_or(PRICE_MOST);
                // Who has to go without the reserve is not late yet. Who was has to have some of it again.
                let was = self.verdict.is_late();
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
        self.price = price;
        // Before a few reads of a drive of which nothing is known nobody can say when it ends.
        if !self.sweep.is_known() {
            self.ends = None;
            return;
        }
        self.ends = self.forecast(&bounded, price);
        let verdict = match (late, whole || self.promised.p99.is_none()) {
            (false, false) => Verdict::Unknown,
            _ => Verdict::of(late, slow),
        };
        self.say(now, verdict);
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
            wanted_again: self.wanted_again,
        };
        let before = std::mem::replace(&mut self.seen, seen);
        let tail = std::mem::take(&mut self.tail);
        // Who rests finds nothing in gaps, which says nothing of them.
        if rests {
            return;
        }
        self.note_again(now, since, seen.wanted_again - before.wanted_again, left);
        let busy = seen.busy.saturating_sub(before.busy);
        let did = Did {
            span: since,
            busy,
            clients: seen.clients - before.clients,
            yielding: seen.yielding - before.yielding,
            // What failed is given back.
            free: seen.free.saturating_sub(before.free),
            allowed: self.bound,
            tail,
        };
        self.plan.saw(now, &did, left);
        let rest = since.saturating_sub(busy).as_secs_f64();
        if self.uses_idle() && self.ways.share == 0.0 && rest > 0.0 {
            let read = seen.in_idle.saturating_sub(before.in_idle);
            self.plan.swept_idle(now, read.as_secs_f64() / rest);
        }
    }

    /// Notes how many blocks were wanted again in a span that ends now, where a share of all is left. What was seen long ago counts for less.
    fn note_again(&mut self, now: Time, span: Nanos, blocks: u64, left: f64) {
        let looked = self
            .began
            .map_or(Nanos::ZERO, |began| now.saturating_since(began));
        let (span, looked) = (span.as_secs_f64(), looked.as_secs_f64());
        // With little read there is little to be wanted again.
        let read = 1.0 - left;
        if span <= 0.0 || read < READ_LEAST {
            return;
        }
        let rate = blocks as f64 / span / read;
        self.again += (rate - self.again) * span / (span + looked * AGAIN_OF);
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
        if self.said.1 >= agree {
            let said = self.said;
            self.set_verdict(now, verdict);
            self.said = said;
        }
    }
}

#[cfg(test)]
mod tests;
