//! Feedback controller of a scan with a promised date, and with a bound on clients' waits.
//!
//! The pace is the number of blocks left over the time left. Gap reads and idle time count first. The controller asks for the rest as a
//! share of the drive's time, and reads in that share before clients' requests. Measured waits of clients bound the share. The controller
//! is pure: callers report the end of each request. See docs/design/2026-11-23-two-promises.md.

mod latencies;
mod queue;
mod rates;
mod shadow;
mod spec;
mod verdicts;

use headtime_engine::{Finished, Outcome};
use headtime_sched::{Class, Origin};
use headtime_units::{Nanos, Sectors, Time};
pub(super) use queue::QueueLength;
use queue::{CHECKS_IN_ROW, Queue};
pub(super) use rates::Blocks;
use rates::{Rates, Sums};
use shadow::Shadow;
pub use spec::{ClientWaits, Outlook, Promised, Verdict};

/// Number of checks in the promised time, and the least and greatest time between two checks.
const CHECKS: u64 = 10_000;
const CHECK_PERIOD: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(60));
/// The controller only measures in this part of the promised time, and for a quarter of an hour at most.
const LEARNING_PART: u64 = 100;
const LEARNING_MAX: Nanos = Nanos::from_secs(900);
/// The pace aims at an earlier date, by this share of the promised time.
const RESERVE_SHARE: f64 = 0.03;
/// Rates are means over this share of the time left, and over one cycle of the load at most.
const MEAN_OVER: f64 = 0.1;
/// Largest share of the drive's time that the scan takes from clients.
const SHARE_MAX: f64 = 0.9;
/// Reads are assumed to get at least this part of the share that the controller asks for.
const REACH_LEAST: f64 = 0.25;
/// Most units before one request.
const UNITS_MOST: f64 = 4.0;
/// Assumed seconds of the first unit, and the number of reads over which the time of a unit is averaged.
const UNIT_TIME: (f64, f64) = (0.1, 64.0);
/// Number of reads over which the speed is averaged, and the number of reads that an assumed profile counts as. Without a profile, fewer
/// reads show no speed.
const SPEED_READS: (f64, f64) = (512.0, 16.0);
/// Least number of requests for a 99th percentile.
const REQUESTS_LEAST: u64 = 1_000;
/// Parts of the promised p99. If more than the first part is used, the level sinks. If less than the second part is used, the level rises.
/// [`LEVEL_FACTORS`] has the factors, [`STEP_REQUESTS`] the number of requests between two steps.
const P99_SHARES: (f64, f64) = (0.9, 0.7);
const LEVEL_FACTORS: (f64, f64) = (0.7, 1.1);
const STEP_REQUESTS: u64 = 64;
/// First level, and least level. Below the first level, fewer gap reads are made.
const LEVELS: (f64, f64) = (0.1, 1e-3);
/// In calm times, less than this share of this number of requests takes as long as the p99 without the scan. A hundredth is the expected
/// share, so calm times leave room.
const CALM_REQUESTS: (f64, f64) = (0.005, 500.0);
/// Time without a client's request after which the use of idle time costs clients nothing.
const QUIET_FOR: Nanos = Nanos::from_secs(1);

/// Controller that keeps the promises of a scan.
///
/// Invariants: `level` is in `LEVELS.1..=SHARE_MAX`; `share` is in `0.0..=SHARE_MAX`; `phases` are below 1.
pub(super) struct Promise {
    promised: Promised,
    shadow: Shadow,
    /// Time of the first check, and of the first check since the promises were set.
    began: Option<Time>,
    heard: Option<Time>,
    due: Time,
    last_look: Time,
    next_look: Time,
    sums: Sums,
    seen: Sums,
    /// Means of the rates, and the start of their measurement.
    rates: Rates,
    rates_from: Time,
    looked: Nanos,
    /// Blocks per second of the drive's time, and the number of reads that have measured this speed.
    speed: f64,
    reads: f64,
    has_gaps: bool,
    /// Share of the drive's time that is asked for now. Then seconds that are asked for and not taken, and the time of that account.
    share: f64,
    owed: (f64, Time),
    /// Time of a unit in seconds.
    unit: f64,
    uses_idle: bool,
    uses_gaps: bool,
    /// Time of the last request of a client.
    asked: Option<Time>,
    learns: bool,
    /// Share of the time that the p99 allows, and the number of requests at the last step of the level.
    level: f64,
    stepped: u64,
    /// True if the p99 has lowered the level.
    binds: bool,
    /// Fractions of a check that are carried over under the level, for gap reads and for idle time.
    phases: [f64; 2],
    /// The p99 without the scan, and the share of the last requests that took at least as long.
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
    /// Returns a controller. `drive` has the length of a turn and the blocks read in a second; `None` without an assumed profile.
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
            reads: drive.map_or(0.0, |_| SPEED_READS.1),
            has_gaps: drive.is_some(),
            share: 0.0,
            owed: (0.0, Time::ZERO),
            unit: UNIT_TIME.0,
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

    /// Changes the promises. Measured rates and waits stay valid.
    pub(super) fn change(&mut self, promised: Promised) {
        if promised.p99 != self.promised.p99 {
            (self.level, self.rates.level, self.binds) = (LEVELS.0, LEVELS.0, false);
        }
        (self.is_over, self.heard, self.ends) = (false, None, None);
        (self.next_look, self.promised) = (Time::ZERO, promised);
    }

    /// Returns the number of sectors that may be read in a row before the next request. The number is zero until the share of the time is
    /// due.
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

    /// Brings the account up to date, and returns the seconds owed. Time beyond the units that may go before one request is lost.
    fn account(&mut self, now: Time) -> f64 {
        let (owed, most) = (self.owed_at(now), UNITS_MOST * self.unit);
        self.sums.asked += owed - self.owed.0;
        self.sums.lost += (owed - most).max(0.0);
        self.owed = (owed.min(most), now);
        self.owed.0
    }

    /// Notes the arrival of a client's request.
    pub(super) fn arrives(&mut self, now: Time, origin: Origin) {
        self.asked = Some(now);
        self.shadow.arrives(now, origin);
    }

    /// Notes the end of a client's request.
    pub(super) fn seen(&mut self, now: Time, done: &Finished) {
        self.asked = self.asked.or(Some(now));
        self.shadow.seen(now, done);
        // No read goes before an urgent request.
        self.sums.yielding += u64::from(done.request.class >= Class::BEST_EFFORT);
        let is_long = now.saturating_since(done.request.arrival) >= self.limit;
        self.long += (f64::from(u8::from(is_long)) - self.long) / CALM_REQUESTS.1;
    }

    /// Notes the end of a gap read.
    pub(super) fn gap_read(&mut self, done: &Finished) {
        self.shadow.pick(done);
    }

    /// Notes the end of a read in idle time or at clients' cost, which was to bring `blocks` blocks.
    pub(super) fn has_read(&mut self, now: Time, done: &Finished, idle: bool, blocks: usize) {
        let took = self.shadow.own(now, done);
        let (owed, seconds) = (self.account(now), took.as_secs_f64());
        self.owed = match idle {
            // A read in idle time reduces the time owed, down to zero.
            true => (owed.min((owed - seconds).max(0.0)), now),
            false => (owed - seconds, now),
        };
        if !idle {
            self.sums.taken = self.sums.taken.saturating_add(took);
        }
        // The time of retries says nothing of the drive's speed.
        if done.outcome != Outcome::Done || blocks == 0 {
            return;
        }
        self.reads += 1.0;
        let weight = 1.0 / SPEED_READS.0.min(self.reads);
        let takes = seconds.max(1e-9) / blocks as f64;
        let mean = 1.0 / self.speed.max(1e-9);
        self.speed = 1.0 / (mean + (takes - mean) * weight);
        if !idle {
            let len = done.request.extent.len.get().max(1);
            let unit = seconds * (self.promised.unit.get() as f64 / len as f64).max(1.0);
            self.unit += (unit - self.unit) / UNIT_TIME.1;
        }
    }

    /// Notes that clients have written to `blocks` blocks that had been read and are wanted again.
    pub(super) fn beside_writes(&mut self, blocks: u64) {
        self.sums.again += blocks;
    }

    /// Measures, and sets the share of the time until the next check. While a scan `is_suspended`, the time goes on, but nothing is
    /// measured.
    pub(super) fn look(
        &mut self,
        now: Time,
        is_suspended: bool,
        queue: QueueLength,
        blocks: Blocks,
    ) {
        let within = self.promised.finish_within;
        let span = within.unwrap_or(self.promised.cycle).as_nanos();
        let every = Nanos::from_nanos(span / CHECKS);
        self.next_look = now.saturating_add(every.clamp(CHECK_PERIOD.0, CHECK_PERIOD.1));
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
        // If a part of the promised time had passed before, the controller learns for a shorter time.
        let learns = span.min(self.due.saturating_since(began).as_nanos()) / LEARNING_PART;
        let learns = Nanos::from_nanos(learns).min(LEARNING_MAX);
        self.learns = now < self.rates_from.saturating_add(learns);
        self.step();
        let seconds = self.due.saturating_since(now).as_secs_f64();
        let needs = |seconds: f64| blocks.left as f64 / seconds.max(1e-6) + self.rates.again;
        let pace = within.map_or(f64::INFINITY, |within| {
            let reserve = within.as_secs_f64() * RESERVE_SHARE;
            needs(seconds - reserve)
        });
        // A scan that has used up its time reserve is not late yet. A scan that was late stays late until it has half of the reserve back.
        let least = match self.verdict.is_late() {
            true => needs(seconds * (1.0 - RESERVE_SHARE / 2.0)),
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
        let learns = self.learns || self.reads < SPEED_READS.1;
        if self.queue.turns(may, learns, pace, brings) {
            (self.rates, self.rates_from, self.learns) = (Rates::default(), now, true);
        }
        self.choose_ways(now, (pace, speed), reach);
        if self.learns || learns {
            self.ends = None;
            return;
        }
        let goes = match pace.is_finite() {
            true => pace * self.in_gaps(pace, 1.0),
            false => self.rates.gaps,
        };
        let goes = goes + self.rates.idle + self.share * reach * speed - self.rates.again;
        let takes = Nanos::from_millis_f64(1e3 * blocks.left as f64 / goes.max(1e-12));
        // Clients' waits in a quiet night do not predict their waits in the day, so a verdict on the p99 needs a whole cycle.
        let is_bounded = self.promised.p99.is_some();
        let half =
            |within: Nanos| heard.saturating_add((within / 2).saturating_sub(self.promised.passed));
        let whole = began.saturating_add(self.promised.cycle);
        let whole = now >= within.map_or(whole, |within| whole.min(half(within)));
        let most = match is_bounded && (whole || self.binds) {
            true => self.rates.level.max(self.rates.asked).min(SHARE_MAX),
            false => SHARE_MAX,
        };
        // A larger share of the time leaves fewer gaps.
        let fewer = ((1.0 - most) / (1.0 - self.rates.asked).max(0.1)).min(1.0);
        let late = within.is_some() && self.needed(least, fewer, speed) > most * reach;
        self.ends = (takes < Nanos::LONGEST).then(|| now.saturating_add(takes));
        let verdict = match late || whole || !is_bounded {
            true => Verdict::of(late, whole && self.used() > 1.0),
            false => Verdict::Unknown,
        };
        self.say(now, verdict);
    }

    /// Returns the part of a pace that gap reads bring, if `fewer` of the requests have gaps. Gap reads bring less when fewer blocks are
    /// left, by the square root.
    fn in_gaps(&self, pace: f64, fewer: f64) -> f64 {
        let now = self.rates.gaps * fewer / pace.max(1e-12);
        if now < 2.0 {
            now - now * now / 4.0
        } else {
            1.0
        }
    }

    /// Returns the share of the time that a pace needs besides gaps and idle time. Gap reads leave fewer wanted blocks for the other reads.
    fn needed(&self, pace: f64, fewer: f64, speed: f64) -> f64 {
        let gaps = self.in_gaps(pace, fewer);
        (pace * (1.0 - gaps) - self.rates.idle) / (speed * (1.0 - gaps / 2.0)).max(1e-12)
    }

    /// Updates the rates with the sums since the last check.
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
        // At first, the mean covers all measurements.
        let measured = now.saturating_since(self.rates_from).as_secs_f64();
        let over = left.min(self.promised.cycle.as_secs_f64()).min(measured);
        let weight = seconds / over.max(seconds);
        self.rates
            .add((seconds, weight), &before, &self.sums, self.level);
    }

    /// Returns the increase of clients' p99 by the scan, as a part of the promised increase.
    fn used(&self) -> f64 {
        let waits = self.waits();
        let more = self
            .promised
            .p99
            .filter(|_| waits.requests >= REQUESTS_LEAST);
        let (p99, without) = (waits.p99.as_secs_f64(), waits.p99_without.as_secs_f64());
        more.map_or(0.0, |more| (p99 - without) / (more * without).max(1e-9))
    }

    /// Moves the level by clients' waits. The level does not change in calm times: a level that rises at night is too high when the day
    /// starts.
    fn step(&mut self) {
        let requests = self.shadow.with.count();
        let is_due = requests >= REQUESTS_LEAST.max(self.stepped + STEP_REQUESTS);
        if self.promised.p99.is_none() || !is_due {
            return;
        }
        (self.stepped, self.limit) = (requests, self.shadow.without.at(0.99));
        let used = self.used();
        self.binds |= used > P99_SHARES.0 && !self.is_calm();
        self.level = match () {
            () if self.is_calm() => self.level,
            () if used > P99_SHARES.0 => (self.level * LEVEL_FACTORS.0).max(LEVELS.1),
            () if used < P99_SHARES.1 => (self.level * LEVEL_FACTORS.1).min(SHARE_MAX),
            () => self.level,
        };
    }

    fn is_calm(&self) -> bool {
        self.limit < Nanos::LONGEST && self.long < CALM_REQUESTS.0
    }

    /// Chooses the kinds of reads until the next check.
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
        let is_quiet = asked.is_some_and(|at| now >= at.saturating_add(QUIET_FOR));
        let rest = pace * (1.0 - self.in_gaps(pace, 1.0));
        let is_needed = rest > if is_calm { 0.0 } else { self.rates.idle };
        self.uses_gaps = !is_bounded || in_gaps;
        self.uses_idle = !is_bounded || is_quiet || (is_needed && in_idle);
        let most = if is_bounded { self.level } else { SHARE_MAX };
        self.share = match () {
            () if self.learns => 0.0,
            // A few reads show the speed of a drive without an assumed profile.
            () if self.reads < SPEED_READS.1 || pace.is_infinite() => most,
            () => (self.needed(pace, 1.0, speed) / reach.max(REACH_LEAST)).clamp(0.0, most),
        };
        if self.share == 0.0 {
            self.owed.0 = self.owed.0.min(0.0);
        }
    }
}

#[cfg(test)]
mod tests;
