//! A scan with a date, and with a bound on the waits of clients: a feedback controller.
//!
//! The pace is what is left over the time left. Gap reads and idle time count first. The controller asks for the rest as a share of the drive's
//! time, and reads that share before clients' requests. Measured waits of clients bound the share. The controller is pure: callers report what
//! has ended. See docs/design/2026-11-23-two-promises.md.

mod latencies;
mod queue;
mod rates;
mod said;
mod shadow;
mod spec;

use headtime_engine::{Finished, Outcome};
use headtime_sched::{Class, Origin};
use headtime_units::{Nanos, Sectors, Time};
pub(super) use queue::QueueLength;
use queue::{AGREE, Queue};
pub(super) use rates::Blocks;
use rates::{Rates, Sums};
use shadow::Shadow;
pub use spec::{ClientWaits, Outlook, Promised, Verdict};

/// Looks in the promised time. Two looks are between these spans apart.
const LOOKS: u64 = 10_000;
const LOOK: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(60));
/// In this part of the promised time, and for a quarter of an hour at most, the controller only measures.
const LEARNS: u64 = 100;
const LEARNS_MOST: Nanos = Nanos::from_secs(900);
/// The pace is that of a date which is earlier by this share of the promised time.
const RESERVE: f64 = 0.03;
/// Rates are means over this share of the time left, and over a cycle of the load at most.
const MEAN_OVER: f64 = 0.1;
/// The largest share of the drive's time that reads take from clients.
const SHARE_MAX: f64 = 0.9;
/// Reads are assumed to get at least this part of the share that the controller asks for.
const REACH_LEAST: f64 = 0.25;
/// Most units before one request.
const UNITS_MOST: f64 = 4.0;
/// Assumed seconds of the first unit, and reads of which the length is a mean.
const UNIT: (f64, f64) = (0.1, 64.0);
/// Reads of which the speed is a mean, and reads that an assumed profile counts as. Without a profile, fewer reads say nothing.
const READS: (f64, f64) = (512.0, 16.0);
/// Fewer requests have no 99th percentile.
const REQUESTS_LEAST: u64 = 1_000;
/// The level sinks above the first of these parts of the promised p99, and rises below the second, by these factors every so many requests.
const BOUNDED: (f64, f64) = (0.9, 0.7);
const STEPS: (f64, f64) = (0.7, 1.1);
const STEP_REQUESTS: u64 = 64;
/// The first level, and the least. Below the first, fewer gap reads are made.
const LEVELS: (f64, f64) = (0.1, 1e-3);
/// In calm times a smaller share of so many requests takes as long as the p99 without the scan. A hundredth may, so they leave room.
const CALM: (f64, f64) = (0.005, 500.0);
/// Idle time costs nothing where no client has asked for anything for so long.
const QUIET: Nanos = Nanos::from_secs(1);

/// Keeps the promises of a scan.
pub(super) struct Promise {
    promised: Promised,
    shadow: Shadow,
    /// The first look, and the first look since this was promised.
    began: Option<Time>,
    heard: Option<Time>,
    due: Time,
    last_look: Time,
    next_look: Time,
    sums: Sums,
    seen: Sums,
    /// Means from the time beside them.
    rates: Rates,
    rates_from: Time,
    looked: Nanos,
    /// Blocks in a second of the drive's time, and how many reads have measured that.
    speed: f64,
    reads: f64,
    has_gaps: bool,
    /// The share of the time asked for now, and seconds that are asked for and not taken yet, at the time beside them.
    share: f64,
    owed: (f64, Time),
    /// How long a unit takes, in seconds.
    unit: f64,
    uses_idle: bool,
    uses_gaps: bool,
    /// When a client has asked for anything.
    asked: Option<Time>,
    learns: bool,
    /// The share of the time that the p99 allows, and the requests at its last step.
    level: f64,
    stepped: u64,
    /// True if the p99 has lowered the level.
    binds: bool,
    /// Parts of a look for which gaps and idle time are due under the level.
    phases: [f64; 2],
    /// The p99 without the scan, and the share of the last requests that took as long.
    limit: Nanos,
    long: f64,
    queue: Queue,
    ends: Option<Time>,
    is_over: bool,
    verdict: Verdict,
    said: (Verdict, u32),
    changes: Vec<(Time, Verdict)>,
}

impl Promise {
    /// Builds the controller. `drive` has the length of a turn and the blocks read in a second; `None` without an assumed profile.
    pub(super) fn new(promised: Promised, drive: Option<(Nanos, f64)>) -> Promise {
        Promise {
            shadow: Shadow::new(drive.map_or(Nanos::ZERO, |(turn, _)| turn)),
            began: None,
            heard: None,
            due: Time::NEVER,
            last_look: Time::ZERO,
            next_look: Time::ZERO,
            sums: Sums::default(),
            seen: Sums::default(),
            rates: Rates::default(),
            rates_from: Time::ZERO,
            looked: Nanos::ZERO,
            speed: drive.map_or(0.0, |(_, speed)| speed),
            reads: drive.map_or(0.0, |_| READS.1),
            has_gaps: drive.is_some(),
            share: 0.0,
            owed: (0.0, Time::ZERO),
            unit: UNIT.0,
            uses_idle: promised.p99.is_none(),
            uses_gaps: true,
            asked: None,
            learns: true,
            level: LEVELS.0,
            stepped: 0,
            binds: false,
            phases: [0.0; 2],
            limit: Nanos::LONGEST,
            long: 0.0,
            queue: Queue::default(),
            ends: None,
            is_over: false,
            verdict: Verdict::Unknown,
            said: (Verdict::Unknown, 0),
            changes: Vec::new(),
            promised,
        }
    }

    /// Changes what is promised. Measured rates and waits count on.
    pub(super) fn change(&mut self, promised: Promised) {
        if promised.p99 != self.promised.p99 {
            (self.level, self.rates.level) = (LEVELS.0, LEVELS.0);
        }
        (self.is_over, self.heard, self.ends) = (false, None, None);
        (self.next_look, self.promised) = (Time::ZERO, promised);
    }

    /// How many sectors may be read in a row before the next request: none until their share of the time is due.
    pub(super) fn sectors_due(&self, now: Time) -> Sectors {
        let owed = self.owed_at(now);
        if self.share == 0.0 || owed < 0.0 {
            return Sectors::ZERO;
        }
        let units = (owed / self.unit.max(1e-9)).clamp(1.0, UNITS_MOST) as u64;
        Sectors::new(self.promised.unit.get() * units)
    }

    fn owed_at(&self, now: Time) -> f64 {
        let (owed, at) = self.owed;
        owed + self.share * now.saturating_since(at).as_secs_f64()
    }

    /// Brings the account up to date. Time for more units than may go before a request is lost.
    fn account(&mut self, now: Time) -> f64 {
        let (owed, most) = (self.owed_at(now), UNITS_MOST * self.unit);
        self.sums.asked += owed - self.owed.0;
        self.sums.lost += (owed - most).max(0.0);
        self.owed = (owed.min(most), now);
        self.owed.0
    }

    /// A client's request arrives.
    pub(super) fn arrives(&mut self, now: Time, origin: Origin) {
        self.asked = Some(now);
        self.shadow.arrives(now, origin);
    }

    /// A client's request has ended.
    pub(super) fn seen(&mut self, now: Time, done: &Finished) {
        self.asked = self.asked.or(Some(now));
        self.shadow.seen(now, done);
        // Nothing goes before an urgent one.
        self.sums.yielding += u64::from(done.request.class >= Class::BEST_EFFORT);
        let is_long = now.saturating_since(done.request.arrival) >= self.limit;
        self.long += (f64::from(u8::from(is_long)) - self.long) / CALM.1;
    }

    /// A gap read has ended.
    pub(super) fn gap_read(&mut self, done: &Finished) {
        self.shadow.pick(done);
    }

    /// A read in idle time or at clients' cost has ended that was to bring so many blocks.
    pub(super) fn has_read(&mut self, now: Time, done: &Finished, idle: bool, blocks: usize) {
        let took = self.shadow.own(now, done);
        let (owed, seconds) = (self.account(now), took.as_secs_f64());
        self.owed = match idle {
            // Idle time counts first.
            true => (owed.min((owed - seconds).max(0.0)), now),
            false => (owed - seconds, now),
        };
        if !idle {
            self.sums.taken = self.sums.taken.saturating_add(took);
        }
        // How long a drive tries again says nothing of its speed.
        if done.outcome != Outcome::Done || blocks == 0 {
            return;
        }
        self.reads += 1.0;
        let weight = 1.0 / READS.0.min(self.reads);
        let takes = seconds.max(1e-9) / blocks as f64;
        let mean = 1.0 / self.speed.max(1e-9);
        self.speed = 1.0 / (mean + (takes - mean) * weight);
        if !idle {
            let len = done.request.extent.len.get().max(1);
            let unit = seconds * (self.promised.unit.get() as f64 / len as f64).max(1.0);
            self.unit += (unit - self.unit) / UNIT.1;
        }
    }

    /// Clients have written so many blocks that were read, and are wanted again.
    pub(super) fn beside_writes(&mut self, blocks: u64) {
        self.sums.again += blocks;
    }

    /// Measures, and sets the share of the time for the next looks. While a scan `is_suspended` the time goes on, and nothing is measured.
    pub(super) fn look(
        &mut self,
        now: Time,
        is_suspended: bool,
        queue: QueueLength,
        blocks: Blocks,
    ) {
        let within = self.promised.finish_within;
        let span = within.unwrap_or(self.promised.cycle).as_nanos();
        let every = Nanos::from_nanos(span / LOOKS);
        self.next_look = now.saturating_add(every.clamp(LOOK.0, LOOK.1));
        self.is_over = false;
        self.sums.blocks = blocks;
        let heard = self.heard.unwrap_or_else(|| self.hear(now));
        let Some(began) = self.began else {
            (self.began, self.last_look, self.rates_from) = (Some(now), now, now);
            self.seen = self.sums;
            return;
        };
        self.measure(now, is_suspended);
        self.overdue(now);
        // A date that was given late has a shorter time of learning.
        let learns = span.min(self.due.saturating_since(began).as_nanos()) / LEARNS;
        let learns = Nanos::from_nanos(learns).min(LEARNS_MOST);
        self.learns = now < self.rates_from.saturating_add(learns);
        self.step();
        let seconds = self.due.saturating_since(now).as_secs_f64();
        let needs = |seconds: f64| blocks.left as f64 / seconds.max(1e-6) + self.rates.again;
        let pace = within.map_or(f64::INFINITY, |within| {
            let reserve = within.as_secs_f64() * RESERVE;
            needs(seconds - reserve)
        });
        // Nobody has to have the reserve, but who was late has to have half of it again.
        let least = match self.verdict.is_late() {
            true => needs(seconds * (1.0 - RESERVE / 2.0)),
            false => needs(seconds),
        };
        let speed = match blocks.each {
            Some(each) => 1.0 / each.as_secs_f64().max(1e-6),
            None => self.speed,
        };
        let may = queue == QueueLength::DeepOrNot && self.has_gaps;
        let may = may && within.is_some() && self.promised.p99.is_none();
        let reach = self.rates.reach(self.asked.is_some());
        let brings = self.rates.gaps + self.rates.idle + SHARE_MAX * reach * speed;
        let learns = self.learns || self.reads < READS.1;
        if self.queue.turns(may, learns, pace, brings) {
            (self.rates, self.rates_from, self.learns) = (Rates::default(), now, true);
        }
        self.choose_ways(now, (pace, speed), reach);
        if self.learns || self.reads < READS.1 {
            self.ends = None;
            return;
        }
        let reach = self.rates.reach(self.asked.is_some());
        let goes = match pace.is_finite() {
            true => pace * self.in_gaps(pace, 1.0),
            false => self.rates.gaps,
        };
        let goes = goes + self.rates.idle + self.share * reach * speed - self.rates.again;
        let takes = Nanos::from_millis_f64(1e3 * blocks.left as f64 / goes.max(1e-12));
        // What clients wait for at night says nothing of their day.
        let is_bounded = self.promised.p99.is_some();
        let half =
            |within: Nanos| heard.saturating_add((within / 2).saturating_sub(self.promised.passed));
        let whole = began.saturating_add(self.promised.cycle);
        let whole = now >= within.map_or(whole, |within| whole.min(half(within)));
        let most = match is_bounded && (whole || self.binds) {
            true => self.rates.level.max(self.rates.asked).min(SHARE_MAX),
            false => SHARE_MAX,
        };
        // A larger share leaves fewer gaps.
        let fewer = ((1.0 - most) / (1.0 - self.rates.asked).max(0.1)).min(1.0);
        let late = within.is_some() && self.needed(least, fewer, speed) > most * reach;
        self.ends = (takes < Nanos::LONGEST).then(|| now.saturating_add(takes));
        let verdict = match late || whole || !is_bounded {
            true => Verdict::of(late, whole && self.used() > 1.0),
            false => Verdict::Unknown,
        };
        self.say(now, verdict);
    }

    /// The part of a pace that gaps bring, if they are used for `fewer` of the requests. Gaps bring less where less is left, by the root of that.
    fn in_gaps(&self, pace: f64, fewer: f64) -> f64 {
        let now = self.rates.gaps * fewer / pace.max(1e-12);
        if now < 2.0 {
            now - now * now / 4.0
        } else {
            1.0
        }
    }

    /// The share of the time that a pace needs besides gaps and idle time. What gaps bring leaves fewer wanted blocks where reads go.
    fn needed(&self, pace: f64, fewer: f64, speed: f64) -> f64 {
        let gaps = self.in_gaps(pace, fewer);
        (pace * (1.0 - gaps) - self.rates.idle) / (speed * (1.0 - gaps / 2.0)).max(1e-12)
    }

    /// Updates the rates by what happened since the last look.
    fn measure(&mut self, now: Time, is_suspended: bool) {
        let span = now.saturating_since(self.last_look);
        let seconds = span.as_secs_f64();
        if is_suspended {
            self.owed.1 = now;
        }
        self.account(now);
        self.last_look = now;
        let before = std::mem::replace(&mut self.seen, self.sums);
        if is_suspended || span.is_zero() {
            return;
        }
        self.looked = self.looked.saturating_add(span);
        let left = self.due.saturating_since(now).as_secs_f64() * MEAN_OVER;
        // At first it is the mean of all that was measured.
        let measured = now.saturating_since(self.rates_from).as_secs_f64();
        let over = left.min(self.promised.cycle.as_secs_f64()).min(measured);
        let weight = seconds / over.max(seconds);
        self.rates
            .add((seconds, weight), &before, &self.sums, self.level);
    }

    /// The part of what the p99 allows that clients wait for.
    fn used(&self) -> f64 {
        let waits = self.waits();
        let more = self
            .promised
            .p99
            .filter(|_| waits.requests >= REQUESTS_LEAST);
        let (p99, without) = (waits.p99.as_secs_f64(), waits.p99_without.as_secs_f64());
        more.map_or(0.0, |more| (p99 - without) / (more * without).max(1e-9))
    }

    /// Moves the level by what clients wait for. A level that rises in calm times is none when the day starts.
    fn step(&mut self) {
        let requests = self.shadow.with.count();
        let is_due = requests >= REQUESTS_LEAST.max(self.stepped + STEP_REQUESTS);
        if self.promised.p99.is_none() || !is_due {
            return;
        }
        (self.stepped, self.limit) = (requests, self.shadow.without.at(0.99));
        let used = self.used();
        self.binds |= used > BOUNDED.0 && !self.is_calm();
        self.level = match () {
            () if self.is_calm() => self.level,
            () if used > BOUNDED.0 => (self.level * STEPS.0).max(LEVELS.1),
            () if used < BOUNDED.1 => (self.level * STEPS.1).min(SHARE_MAX),
            () => self.level,
        };
    }

    fn is_calm(&self) -> bool {
        self.limit < Nanos::LONGEST && self.long < CALM.0
    }

    /// Sets which reads are made until the next look.
    fn choose_ways(&mut self, now: Time, (pace, speed): (f64, f64), reach: f64) {
        let (is_bounded, is_calm) = (self.promised.p99.is_some(), self.is_calm());
        let mut phase = |at: usize, share: f64| {
            let phase = self.phases[at] + share;
            self.phases[at] = phase.fract();
            is_calm || phase >= 1.0
        };
        let in_gaps = phase(0, (self.level / LEVELS.0).min(1.0));
        let in_idle = phase(1, self.level);
        let asked = self.asked.or(self.began);
        let is_quiet = asked.is_some_and(|at| now >= at.saturating_add(QUIET));
        let rest = pace * (1.0 - self.in_gaps(pace, 1.0));
        let is_needed = rest > if is_calm { 0.0 } else { self.rates.idle };
        self.uses_gaps = !is_bounded || in_gaps;
        self.uses_idle = !is_bounded || is_quiet || (is_needed && in_idle);
        let most = if is_bounded { self.level } else { SHARE_MAX };
        self.share = match () {
            () if self.learns => 0.0,
            // A few reads show the speed of a drive without an assumed profile.
            () if self.reads < READS.1 || pace.is_infinite() => most,
            () => (self.needed(pace, 1.0, speed) / reach.max(REACH_LEAST)).clamp(0.0, most),
        };
        if self.share == 0.0 {
            self.owed.0 = self.owed.0.min(0.0);
        }
    }
}

#[cfg(test)]
mod tests;
