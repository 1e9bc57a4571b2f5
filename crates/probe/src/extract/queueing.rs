//! How a drive orders the commands that it has.
//!
//! Several reads are sent at once; the order of the answers shows which it takes first, and when another
//! command is kept waiting by near ones or by a stream, until when. That the key is the positioning time
//! shows as in Lumb, Schindler and Ganger (FAST 2002, section 3.2): its choices are those of a model.

use super::bench::Bench;
use super::error::ExtractError;
use super::ground::Ground;
use super::seeks::Target;
use super::told::Told;
use super::turns::{near, part};
use crate::{Answer, Probe, ProbeError};
use headtime_disk::profile::{FirmwarePolicy, QueueSpec};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Time, Track};
use serde::{Deserialize, Serialize};

/// What was found out about the queue. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queueing {
    pub depth: Option<u16>,
    /// It takes others than the first.
    pub orders: Option<bool>,
    /// The part of its choices that are those with the shortest positioning time, and those with the shortest way.
    pub agree: [f64; 2],
    /// By how much sooner than single commands show the arm is there, if the next command is in the drive already.
    pub sooner: Option<f64>,
    /// Choices are those of the shortest positioning time.
    pub by_position: Option<bool>,
    pub margin: Option<f64>,
    /// None if a command is never too old.
    pub age_cap: Option<f64>,
    pub stream_cap: Option<f64>,
    pub hits_pass: Option<bool>,
}

/// Commands in a batch.
const BATCH: u16 = 16;
const BATCHES: usize = 60;
/// No command is waited for longer.
const PATIENCE: Nanos = Nanos::from_millis(6_500);
/// Trials of how long a command is kept waiting.
const TRIALS: usize = 5;
/// What is served sooner may come by its position.
const EARLY: f64 = 800e6;
/// What is served sooner may come when a track ends.
const SOON: f64 = 30e6;
/// Sectors of the reads of a stream.
const STREAM: u64 = 64;
/// Steps of what is fitted, and the largest margin.
const STEP: f64 = 10e3;
/// An arm that leaves so much later than it could may read on first; where sectors take so long, that differs by place.
const LINGERS: f64 = 350e3;
const SLOW: f64 = 10e3;
/// Pairs of reads that tell when the arm is there.
const SOONER: u32 = 100;
const MOST_MARGIN: f64 = 3e6;

/// The questions in their order.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueueQuestion {
    Sooner,
    Order,
    Age,
    Stream,
    HitsPass,
}

pub(super) const QUESTIONS: [QueueQuestion; 5] = [
    QueueQuestion::Sooner,
    QueueQuestion::Order,
    QueueQuestion::Age,
    QueueQuestion::Stream,
    QueueQuestion::HitsPass,
];

pub(super) const KEYS: [&str; 6] = [
    "queue.depth",
    "queue.policy",
    "queue.margin",
    "queue.age_cap",
    "queue.stream_cap",
    "cache.sneaky_full_read_hits",
];

/// Commands that are in the drive. None is left there, however asking ends.
struct Flight<'b, 'a, P: Probe + ?Sized> {
    bench: &'b mut Bench<'a, P>,
    inside: usize,
}

impl<P: Probe + ?Sized> Flight<'_, '_, P> {
    fn send(&mut self, tag: u16, lba: u64, count: u64) -> Result<Time, ExtractError> {
        let sent = self.bench.probe.now();
        let extent = Extent::at(lba, count);
        self.bench.probe.send(tag, Op::Read, extent)?;
        self.inside += 1;
        self.bench.reads += 1;
        Ok(sent)
    }

    fn answer(&mut self) -> Result<Answer, ExtractError> {
        self.inside -= 1;
        let answer = self.bench.probe.answer()?;
        match answer.failure {
            None => Ok(answer),
            Some(source) => Err(ExtractError::Probe(ProbeError::Failed {
                op: Op::Read,
                extent: Extent::at(0, 0),
                source,
            })),
        }
    }

    fn empty(&mut self) -> Result<(), ExtractError> {
        while self.inside > 0 {
            self.answer()?;
        }
        Ok(())
    }
}

impl<P: Probe + ?Sized> Drop for Flight<'_, '_, P> {
    fn drop(&mut self) {
        while self.inside > 0 {
            self.inside -= 1;
            // What cannot be waited for is not waited for again.
            let _ = self.bench.probe.answer();
        }
    }
}

/// A choice that the drive made.
struct Choice {
    from: Track,
    /// The part of a turn that has passed when the last one was read.
    angle: f64,
    /// Where the commands are that it had, and the part of a turn at which each begins.
    had: Vec<(Track, f64)>,
    taken: usize,
}

impl Choice {
    /// When the head can read a command that takes `way` to get to, after waiting for it.
    fn reach(&self, way: f64, at: f64, turn: f64) -> f64 {
        way + part(at - self.angle - way / turn) * turn
    }
}

/// The time until another command was served although it waited.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// It was not yet too long, and it was.
    low: f64,
    high: f64,
    /// Others that were served meanwhile.
    others: u32,
    /// From one of them to the next, at least and at most.
    gaps: [f64; 2],
}

impl Queueing {
    pub(super) fn ask<P: Probe + ?Sized>(
        &mut self,
        question: QueueQuestion,
        bench: &mut Bench<'_, P>,
        ground: &Ground<'_>,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        let depth = bench.probe.depth();
        if let QueueQuestion::Sooner = question {
            if depth > 1 {
                self.sooner = sooner(bench, ground)?;
            }
            return Ok(());
        }
        if let QueueQuestion::Order = question {
            return self.order(bench, ground, depth, told);
        }
        if let QueueQuestion::HitsPass = question {
            return self.hits_pass(bench, ground, depth, told);
        }
        let key = match question {
            QueueQuestion::Age => "queue.age_cap",
            _ => "queue.stream_cap",
        };
        let why = match (self.orders, depth) {
            (Some(true), 4..) => None,
            (Some(true), _) => Some("so few commands at a time do not keep one waiting"),
            (Some(false), _) => Some("commands are served in their order"),
            (None, _) => Some("it is not known whether the drive orders"),
        };
        if let Some(why) = why {
            told.doubt(key, why);
            return Ok(());
        }
        match question {
            QueueQuestion::Age => self.age(bench, depth, told),
            _ => self.stream(bench, depth, told),
        }
    }

    fn order<P: Probe + ?Sized>(
        &mut self,
        bench: &mut Bench<'_, P>,
        ground: &Ground<'_>,
        depth: u16,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        self.depth = Some(depth);
        // What the host may send, not what the drive would take.
        told.know("queue.depth", 0.6);
        if depth < 3 {
            for key in ["queue.policy", "queue.margin"] {
                told.doubt(
                    key,
                    "with fewer than three commands at a time there is no choice",
                );
            }
            return Ok(());
        }
        let mut choices = Vec::new();
        let mut overtaken = 0;
        for _ in 0..BATCHES {
            overtaken += batch(bench, ground, depth.min(BATCH), &mut choices)?;
        }
        self.orders = Some(overtaken > 0);
        if overtaken == 0 {
            told.know("queue.policy", 0.9);
            told.doubt("queue.margin", "commands are served in their order");
            return Ok(());
        }
        let Some(sooner) = self.sooner else {
            for key in ["queue.policy", "queue.margin"] {
                told.doubt(key, "when the arm comes to a waiting command varies");
            }
            return Ok(());
        };
        self.fit(&choices, ground, sooner);
        let [soonest, nearest] = self.agree;
        if soonest > 0.75 && soonest > nearest + 0.1 {
            self.by_position = Some(true);
            told.know("queue.policy", soonest.min(0.95));
        } else {
            self.by_position = Some(false);
            let why = format!(
                "it serves others than the first, but {:.0} % of its choices are soonest under the head and {:.0} % the nearest",
                100.0 * soonest,
                100.0 * nearest
            );
            told.doubt("queue.policy", why);
        }
        let per_track = ground.layout.run(Lba::ZERO).sectors_per_track;
        let slot = ground.turn / f64::from(per_track);
        let why = match self.margin {
            _ if self.by_position != Some(true) => "its choices follow no positions",
            None => "margins far apart agree with its choices alike",
            Some(_) if sooner < -LINGERS && slot > SLOW => {
                "the arm reads on for a while before it leaves"
            }
            Some(_) => {
                told.know("queue.margin", soonest.min(0.9));
                return Ok(());
            }
        };
        self.margin = None;
        told.doubt("queue.margin", why);
        Ok(())
    }

    /// Finds which margin agrees with choices best.
    fn fit(&mut self, choices: &[Choice], ground: &Ground<'_>, sooner: f64) {
        let turn = ground.turn;
        let way = |from, to| ground.way(from, to);
        let ways: Vec<Vec<f64>> = choices
            .iter()
            .map(|choice| {
                choice
                    .had
                    .iter()
                    .map(|(to, _)| way(choice.from, *to))
                    .collect()
            })
            .collect();
        let agrees = |margin: f64| {
            let agree = choices.iter().zip(&ways).filter(|(choice, ways)| {
                let times = choice.had.iter().zip(ways.iter()).map(|((_, at), way)| {
                    choice.reach((way - sooner + margin).max(0.0), *at, turn)
                });
                least(times) == Some(choice.taken)
            });
            agree.count()
        };
        let (margin, most, width) = best(0.0, MOST_MARGIN, STEP, agrees);
        let all = choices.len().max(1) as f64;
        let nearest = choices
            .iter()
            .zip(&ways)
            .filter(|(choice, ways)| least(ways.iter().copied()) == Some(choice.taken));
        self.agree = [most as f64 / all, nearest.count() as f64 / all];
        self.margin = (width < 500e3).then_some(margin);
    }

    /// How long a command far away is kept waiting, while `near` sends another one for each that is answered. `None` if it
    /// is for longer than anybody waits.
    fn kept<P: Probe + ?Sized>(
        bench: &mut Bench<'_, P>,
        (depth, ahead, far): (u16, usize, u64),
        mut near: impl FnMut(&mut Bench<'_, P>) -> (u64, u64),
    ) -> Result<Option<Kept>, ExtractError> {
        let mut flight = Flight { bench, inside: 0 };
        let (others, last) = (depth - 1, depth - 1);
        for tag in 0..others {
            let (lba, count) = near(flight.bench);
            flight.send(tag, lba, count)?;
        }
        for _ in 0..ahead {
            let tag = flight.answer()?.tag;
            let (lba, count) = near(flight.bench);
            flight.send(tag, lba, count)?;
        }
        let sent = flight.send(last, far, 1)?;
        let (mut before, mut latest) = (sent, sent);
        let mut served = 0;
        let mut gaps = [f64::INFINITY, 0.0];
        loop {
            let answer = flight.answer()?;
            if answer.tag == last {
                flight.empty()?;
                return Ok(Some(Kept {
                    low: (before - sent).as_nanos() as f64,
                    high: (latest - sent).as_nanos() as f64,
                    others: served,
                    gaps,
                }));
            }
            (before, latest) = (latest, answer.at);
            served += 1;
            if served > 1 {
                let gap = (latest - before).as_nanos() as f64;
                gaps = [gaps[0].min(gap), gaps[1].max(gap)];
            }
            if latest > sent + PATIENCE {
                flight.empty()?;
                return Ok(None);
            }
            let (lba, count) = near(flight.bench);
            flight.send(answer.tag, lba, count)?;
        }
    }

    fn age<P: Probe + ?Sized>(
        &mut self,
        bench: &mut Bench<'_, P>,
        depth: u16,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        let key = "queue.age_cap";
        let capacity = bench.capacity();
        let window = (capacity / 200).max(1);
        let mut seen = Vec::new();
        for _ in 0..TRIALS {
            let far = capacity - 1 - bench.random.up_to(window);
            let first = bench.random.up_to(window);
            let kept = Queueing::kept(bench, (depth.min(BATCH), 8, far), |bench| {
                (first + bench.random.up_to(window), 1)
            })?;
            let Some(kept) = kept else {
                // It came by its position before, if it did.
                told.know(key, 0.8);
                return Ok(());
            };
            seen.push(kept);
            seen.sort_by(|one, other| f64::total_cmp(&other.high, &one.high));
            // It may come by its position early, but never late.
            let needed = if seen[0].high < EARLY { 3 } else { 2 };
            if let Some(cap) = seen.get(..needed).and_then(common) {
                self.age_cap = Some(cap);
                told.know(key, 0.9);
                return Ok(());
            }
        }
        told.doubt(key, varied(&seen));
        Ok(())
    }

    fn stream<P: Probe + ?Sized>(
        &mut self,
        bench: &mut Bench<'_, P>,
        depth: u16,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        let key = "queue.stream_cap";
        let capacity = bench.capacity();
        let mut seen = Vec::new();
        for _ in 0..TRIALS {
            let far = capacity - 1 - bench.random.up_to(capacity / 200);
            let mut next = bench.random.up_to(capacity / 8);
            let kept = Queueing::kept(bench, (depth.min(8), 24, far), |_| {
                next += STREAM;
                (next - STREAM, STREAM)
            })?;
            let Some(kept) = kept else {
                told.doubt(
                    key,
                    format!("a stream keeps another command waiting for more than {PATIENCE}"),
                );
                return Ok(());
            };
            seen.push(kept);
        }
        // What a stream sets out for anew begins a new span, so that one may be longer.
        seen.sort_by(|one, other| f64::total_cmp(&one.high, &other.high));
        let agreed = seen.windows(3).find_map(common);
        let limit = self.age_cap.unwrap_or(f64::INFINITY) - 50e6;
        match agreed {
            _ if seen.iter().all(|kept| kept.others <= 3) => {
                self.stream_cap = Some(0.0);
                told.know(key, 0.8);
            }
            // Answers wait for each other there, and not for the arm.
            Some(_) if seen.iter().all(|kept| kept.gaps[1] < 1.05 * kept.gaps[0]) => {
                told.doubt(key, "the way to the host is slower than the medium");
            }
            Some(cap) if cap < SOON || seen[1].others < 3 * u32::from(depth.min(8)) => {
                told.doubt(
                    key,
                    format!(
                        "another command was kept waiting for {:.0} ms, which is too short to tell",
                        cap / 1e6
                    ),
                );
            }
            Some(cap) if cap < limit => {
                self.stream_cap = Some(cap);
                told.know(key, 0.9);
            }
            Some(_) => told.doubt(
                key,
                "a stream keeps another command waiting until that is too old",
            ),
            None => told.doubt(key, varied(&seen)),
        }
        Ok(())
    }

    fn hits_pass<P: Probe + ?Sized>(
        &mut self,
        bench: &mut Bench<'_, P>,
        ground: &Ground<'_>,
        depth: u16,
        told: &mut Told,
    ) -> Result<(), ExtractError> {
        let key = "cache.sneaky_full_read_hits";
        if depth < 2 {
            told.doubt(key, "there is one command at a time");
            return Ok(());
        }
        let capacity = bench.capacity();
        let (mut passed, mut asked) = (0, 0);
        for _ in 0..8 {
            let held = bench.random.up_to(capacity / 4);
            let far = capacity - 1 - bench.random.up_to(capacity / 4);
            bench.read(held, 1)?;
            bench
                .probe
                .pause(Nanos::from_nanos((0.2 * ground.turn) as u64));
            let again = bench.read(held, 1)?;
            let hit = (again.at - again.sent).as_nanos() as f64;
            let mut flight = Flight { bench, inside: 0 };
            flight.send(0, far, 1)?;
            // The arm is on its way.
            flight.bench.probe.pause(Nanos::from_micros(900));
            flight.send(1, held, 1)?;
            let first = flight.answer()?;
            let took = (first.at - first.sent).as_nanos() as f64;
            if first.tag == 1 && took < hit + 300e3 {
                passed += 1;
            }
            asked += 1;
            flight.empty()?;
        }
        match passed {
            0 => self.hits_pass = Some(false),
            _ if passed * 4 >= asked * 3 => self.hits_pass = Some(true),
            _ => {
                told.doubt(
                    key,
                    format!("{passed} of {asked} hits passed a read of the medium"),
                );
                return Ok(());
            }
        }
        told.know(key, 0.9);
        Ok(())
    }

    /// Puts what is known into a profile.
    pub(super) fn apply(&self, queue: &mut QueueSpec) {
        let Some(depth) = self.depth else { return };
        queue.depth = u32::from(depth).clamp(1, 256);
        if self.by_position != Some(true) {
            return;
        }
        let nanos = |time: f64| Nanos::from_nanos(time.max(0.0) as u64);
        queue.policy = FirmwarePolicy::Sptf {
            margin: self.margin.map_or(Nanos::ZERO, nanos),
            age_cap: self.age_cap.map(nanos),
        };
        if let Some(cap) = self.stream_cap {
            queue.stream_cap = nanos(cap);
        }
    }
}

/// Sends reads of random places at once; how many were answered before one that was sent earlier.
fn batch<P: Probe + ?Sized>(
    bench: &mut Bench<'_, P>,
    ground: &Ground<'_>,
    count: u16,
    choices: &mut Vec<Choice>,
) -> Result<u32, ExtractError> {
    let layout = ground.layout;
    let places: Vec<u64> = (0..count)
        .map(|_| bench.random.up_to(bench.capacity() - 1))
        .collect();
    let target = |lba: u64| {
        let place = layout.locate(Lba::new(lba));
        let angle = f64::from(place.angle.to_bits()) / 4_294_967_296.0;
        (place.track, angle)
    };
    let mut flight = Flight { bench, inside: 0 };
    for (tag, lba) in (0..).zip(&places) {
        flight.send(tag, *lba, 1)?;
    }
    let mut waiting: Vec<u16> = (0..count).collect();
    let mut overtaken = 0;
    let mut before: Option<(Track, f64)> = None;
    while !waiting.is_empty() {
        let answer = flight.answer()?;
        let at = waiting.iter().position(|tag| *tag == answer.tag);
        let taken = at.expect("a tag that was sent");
        overtaken += u32::from(taken > 0);
        if let Some((from, angle)) = before {
            choices.push(Choice {
                from,
                angle,
                had: waiting
                    .iter()
                    .map(|tag| target(places[usize::from(*tag)]))
                    .collect(),
                taken,
            });
        }
        let lba = places[usize::from(answer.tag)];
        let (track, begins) = target(lba);
        let per_track = f64::from(layout.run(Lba::new(lba)).sectors_per_track);
        before = Some((track, begins + 1.0 / per_track));
        waiting.remove(taken);
    }
    Ok(overtaken)
}

/// How much sooner than its way says the arm reads a command that was in the drive when the one before was read.
///
/// A sector that passes just late enough is caught as often as not. Where it is and where the first one ends says how
/// long the way was; nothing of its processing is in it.
fn sooner<P: Probe + ?Sized>(
    bench: &mut Bench<'_, P>,
    ground: &Ground<'_>,
) -> Result<Option<f64>, ExtractError> {
    let (layout, turn) = (ground.layout, ground.turn);
    let target = Target {
        layout,
        tail: 0.0,
        cylinders: 0,
        heads: layout.heads(),
        zones: Vec::new(),
    };
    // How much later than said sectors began to pass.
    let mut seen: Vec<f64> = Vec::new();
    let mut at = 0.0;
    for round in 0..SOONER {
        let [first, second] = [(); 2].map(|()| bench.random.up_to(bench.capacity() - 1));
        let run = layout.run(Lba::new(first));
        let to = layout.run(Lba::new(second)).track;
        let begins = f64::from(layout.locate(Lba::new(first)).angle.to_bits()) / 4_294_967_296.0;
        let ends = begins + 1.0 / f64::from(run.sectors_per_track);
        let way = ground.way(run.track, to);
        let Some(aim) = target.aim(to, turn, part(ends + (way + at) / turn)) else {
            continue;
        };
        let begins = aim.answered - aim.lead / turn;
        // Nearly a turn after the way is a little before it.
        let later = near(begins - ends - way / turn) * turn;
        if (later - at).abs() > turn / 8.0 {
            continue;
        }
        // What the drive has to read on by itself must not keep the first one waiting.
        bench.probe.pause(Nanos::from_nanos((0.5 * turn) as u64));
        let mut flight = Flight { bench, inside: 0 };
        flight.send(0, first, 1)?;
        flight.send(1, aim.lba, 1)?;
        let [one, other] = [flight.answer()?, flight.answer()?];
        if (one.tag, other.tag) != (0, 1) {
            continue;
        }
        let took = (other.at - one.at).as_nanos() as f64 - way - later - aim.lead;
        let caught = match took / turn {
            -0.3..0.3 => true,
            0.7..1.3 => false,
            _ => continue,
        };
        seen.push(later);
        let width = 400e3 / libm::sqrt(f64::from(round + 1));
        at += if caught { -width } else { width };
    }
    let third = seen.len() / 3;
    if third * 6 < SOONER as usize {
        return Ok(None);
    }
    // Where half of them are caught (Robbins and Monro), with the way there left out.
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let [middle, end] = [&seen[third..2 * third], &seen[2 * third..]].map(mean);
    let is_steady = (middle - end).abs() < 120e3;
    Ok(is_steady.then_some(-mean(&seen[third..])))
}

/// The place of the least.
fn least(times: impl Iterator<Item = f64>) -> Option<usize> {
    let least = times
        .enumerate()
        .min_by(|(_, one), (_, other)| f64::total_cmp(one, other));
    least.map(|(place, _)| place)
}

/// Where a count is largest between two times, how large, and over what width it is nearly so.
fn best(low: f64, high: f64, each: f64, count: impl Fn(f64) -> usize) -> (f64, usize, f64) {
    let steps = libm::round((high - low) / each) as usize;
    let counts: Vec<usize> = (0..=steps)
        .map(|step| count(low + step as f64 * each))
        .collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let near = |part: f64| {
        let enough = |count: &usize| *count as f64 >= most as f64 * part;
        let first = counts.iter().position(enough).unwrap_or(0);
        let last = counts.iter().rposition(enough).unwrap_or(0);
        [first, last].map(|step| low + step as f64 * each)
    };
    let [first, last] = near(1.0);
    let [from, to] = near(0.97);
    ((first + last) / 2.0, most, to - from)
}

/// The time that all agree on, if they do.
fn common(seen: &[Kept]) -> Option<f64> {
    let low = seen.iter().map(|kept| kept.low).fold(0.0, f64::max);
    let high = seen
        .iter()
        .map(|kept| kept.high)
        .fold(f64::INFINITY, f64::min);
    // Answers come a little after the arm is free.
    (low < high + 3e6 && !seen.is_empty()).then_some((low + high) / 2.0)
}

fn varied(seen: &[Kept]) -> String {
    let least = seen
        .iter()
        .map(|kept| kept.high)
        .fold(f64::INFINITY, f64::min);
    let most = seen.iter().map(|kept| kept.high).fold(0.0, f64::max);
    format!(
        "another command was kept waiting for {:.0} to {:.0} ms",
        least / 1e6,
        most / 1e6
    )
}
