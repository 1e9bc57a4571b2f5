//! Gate `windows` against a naive model of the rules in the design note on run-time goals, on random runs.

use crate::rig::schedulers;
use crate::world::arrival;
use headtime_engine::audit::Audit;
use headtime_engine::{
    Command, Config, DriveTag, Engine, Event, GateOrder, GateSpec, Lane, Outcome, RequestId, log,
};
use headtime_sched::{Class, Op, Scheduler};
use headtime_units::{Nanos, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MS: u64 = 1_000_000;
/// Defaults of the gate.
const GUARD: u64 = 15 * MS;
const LEND: u64 = 10 * MS;
/// Length of a plan in these runs.
const PERIOD: u64 = 200 * MS;
const LANES: u8 = 4;
/// Lane of urgent requests, and the program that makes them.
const URGENT: (u8, u16) = (LANES, 5);
const REPEATS: u64 = 3;

#[derive(Clone, Debug)]
enum Move {
    /// A program asks.
    Ask(u16, bool),
    Flush(u16),
    /// A command in the drive ends.
    Complete(prop::sample::Index),
    /// Microseconds that pass.
    Pass(u64),
    Assign(u16, u8),
    /// Milliseconds until the plan starts, then lanes and their parts of a period.
    Plan(u64, Vec<(u8, u64)>),
    Swap,
}

fn moves(flushes: u32, swaps: u32) -> impl Strategy<Value = Vec<Move>> {
    let parts = prop::collection::vec((0..LANES, 1..10_u64), 1..5);
    // An urgent request hands its rank on to those before a flush.
    let programs = if flushes == 0 { 6_u16 } else { 5 };
    let step = prop_oneof![
        24 => (0..programs, any::<bool>()).prop_map(|(of, write)| Move::Ask(of, write)),
        16 => any::<prop::sample::Index>().prop_map(Move::Complete),
        20 => (0..12_000_u64).prop_map(Move::Pass),
        2 => (20_000..400_000_u64).prop_map(Move::Pass),
        2 => (0..5_u16, 0..LANES).prop_map(|(of, lane)| Move::Assign(of, lane)),
        2 => (0..120_u64, parts).prop_map(|(from, parts)| Move::Plan(from, parts)),
        // Last: a failure shrinks to moves that come earlier, also if their weight is 0.
        flushes => (0..5_u16).prop_map(Move::Flush),
        swaps => Just(Move::Swap),
    ];
    prop::collection::vec(step, 20..200)
}

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct InDrive {
    tag: DriveTag,
    lane: u8,
}

/// The rules, with all windows in a list.
#[derive(Clone, Debug, Default)]
struct Model {
    lanes: BTreeMap<u16, u8>,
    /// Lane, start, end.
    windows: Vec<(u8, u64, u64)>,
    in_drive: Vec<InDrive>,
    /// Time at which a command of the lane was last in the drive.
    last: BTreeMap<u8, u64>,
    /// Mean and mean deviation of the lane's services.
    mean: BTreeMap<u8, (f64, f64)>,
    /// Start of the service of the command that returns next: the drive was empty before, or the last one returned.
    served_from: u64,
    /// Client's number: program.
    waiting: BTreeMap<u64, u16>,
    /// Flushes that have not ended; what came later waits for them.
    flushes: BTreeSet<u64>,
}

impl Model {
    fn lane(&self, program: u16) -> u8 {
        if program == URGENT.1 {
            return URGENT.0;
        }
        self.lanes.get(&program).copied().unwrap_or(0)
    }

    /// A window replaces all that begins at its start or after, and ends what runs then.
    fn window(&mut self, lane: u8, from: u64, span: u64) {
        self.windows.retain(|(_, start, _)| *start < from);
        if let Some((.., end)) = self.windows.last_mut() {
            *end = from.min(*end);
        }
        self.windows.push((lane, from, from + span));
    }

    /// The windows with the repetitions of the last period; neighbours of one lane in a period are one.
    fn turns(&self) -> Vec<(u8, u64, u64)> {
        let mut joined: Vec<(u8, u64, u64)> = Vec::new();
        for window in &self.windows {
            match joined.last_mut() {
                Some((lane, _, end)) if *lane == window.0 && *end == window.1 => *end = window.2,
                _ => joined.push(*window),
            }
        }
        let Some((.., end)) = joined.last().copied() else {
            return joined;
        };
        let begin = end.saturating_sub(PERIOD);
        let last = joined.iter().filter(|(.., to)| *to > begin);
        let last: Vec<(u8, u64, u64)> = last.copied().collect();
        for shift in (1..=REPEATS).map(|repeat| repeat * PERIOD) {
            let again =
                |(lane, from, to): &(u8, u64, u64)| (*lane, *from.max(&begin) + shift, to + shift);
            joined.extend(last.iter().map(again));
        }
        joined
    }

    /// Lane that has the drive, with the start and the end of its turn; no lane if all share.
    fn turn(&self, now: u64) -> (Option<u8>, u64, Option<u64>) {
        let turns = self.turns();
        if let Some((lane, from, to)) = turns
            .iter()
            .find(|(_, from, to)| (*from..*to).contains(&now))
        {
            return (Some(*lane), *from, Some(*to));
        }
        let next = turns
            .iter()
            .map(|(_, from, _)| *from)
            .find(|from| *from > now);
        (None, 0, next)
    }

    /// True if the drive can end all its commands, and another command of the lane, by `end`. `slack` decides on a tie.
    fn in_time(&self, now: u64, lane: u8, end: Option<u64>, slack: f64) -> bool {
        let (owner, from, _) = self.turn(now);
        let before = self.last.get(&lane).is_none_or(|last| *last < from);
        if owner == Some(lane) && self.in_drive.is_empty() && before {
            return end.is_none_or(|end| now + GUARD <= end);
        }
        let (mean, deviation) = self.mean.get(&lane).copied().unwrap_or_default();
        let count = (self.in_drive.len() + 1) as f64;
        let needed = (GUARD as f64).max(mean * count + 3.0 * deviation * count.sqrt());
        end.is_none_or(|end| now as f64 + needed <= end as f64 + slack)
    }

    /// True if a request of the lane waits for the gate, and for no flush.
    fn waits(&self, lane: u8) -> bool {
        let flush = self.flushes.first().copied().unwrap_or(u64::MAX);
        let mut ready = self.waiting.range(..flush);
        ready.any(|(_, of)| self.lane(*of) == lane)
    }

    /// True if the drive has a command of a lane beside this one and the urgent one.
    fn others_in_drive(&self, lane: u8) -> bool {
        let mut lanes = self.in_drive.iter().map(|sent| sent.lane);
        lanes.any(|of| of != lane && of != URGENT.0)
    }

    /// Says why a command of this lane must not go now.
    fn forbids(&self, now: u64, lane: u8) -> Option<String> {
        if lane == URGENT.0 {
            return None;
        }
        if self.waits(URGENT.0) {
            return Some("an urgent request waits".to_owned());
        }
        let (owner, from, end) = self.turn(now);
        let Some(owner) = owner else {
            return (!self.in_time(now, lane, end, 2e3))
                .then(|| format!("shared until {end:?}: late"));
        };
        if !self.in_time(now, lane, end, 2e3) {
            return Some(format!(
                "window of {owner} ends at {end:?}: late, mean {:?}",
                self.mean
            ));
        }
        if owner == lane {
            let others = self.others_in_drive(lane);
            return others.then(|| format!("commands of others in the window of {owner}"));
        }
        let idle = now - from.max(self.last.get(&owner).copied().unwrap_or(0));
        let asks = self.waits(owner);
        (idle < LEND || asks || !self.in_drive.is_empty())
            .then(|| format!("window of {owner}, idle for {idle}, asks: {asks}"))
    }

    /// A lane that waits though the rules let a command of the lane go.
    fn neglects(&self, now: u64, depth: usize) -> Option<u8> {
        let (owner, _, end) = self.turn(now);
        let waits = |lane: u8| self.waits(lane);
        let free = self.in_drive.len() < depth;
        if waits(URGENT.0) {
            return free.then_some(URGENT.0);
        }
        let may = |lane: &u8| {
            let others = self.others_in_drive(*lane);
            let own = owner.is_none() || owner == Some(*lane) && !others;
            own && free && self.in_time(now, *lane, end, -2e3)
        };
        let mut waiting = (0..LANES).filter(|lane| waits(*lane));
        match owner {
            Some(owner) => waiting.find(|lane| *lane == owner).filter(may),
            // Lanes go in turn: a lane that must wait keeps the others back.
            None => waiting
                .clone()
                .all(|lane| may(&lane))
                .then(|| waiting.next())?,
        }
    }

    fn sent(&mut self, now: u64, tag: DriveTag, lane: u8) {
        if self.in_drive.is_empty() {
            self.served_from = now;
        }
        self.in_drive.push(InDrive { tag, lane });
    }

    fn completed(&mut self, now: u64, at: usize) -> DriveTag {
        let done = self.in_drive.remove(at);
        self.last.insert(done.lane, now);
        let service = (now - self.served_from) as f64;
        self.served_from = now;
        match self.mean.get_mut(&done.lane) {
            None => _ = self.mean.insert(done.lane, (service, service / 2.0)),
            Some((mean, deviation)) => {
                *deviation += ((service - *mean).abs() - *deviation) / 4.0;
                *mean += (service - *mean) / 8.0;
            }
        }
        done.tag
    }
}

/// An engine beside the model.
struct Pair {
    engine: Engine,
    config: Config,
    gate: String,
    audit: Audit,
    text: String,
    now: u64,
    model: Model,
    asked: u64,
    ended: u64,
    /// True while the model knows all that the gate knows.
    exact: bool,
}

impl Pair {
    fn new(gate: &str) -> Pair {
        let config = Config {
            depth: 4,
            merge: false,
            ..Config::default()
        };
        let engine = Pair::engine(config, gate);
        let mut pair = Pair {
            engine,
            config,
            gate: gate.to_owned(),
            audit: Audit::new(),
            text: String::new(),
            now: 0,
            model: Model::default(),
            asked: 0,
            ended: 0,
            exact: true,
        };
        log::write_header(&mut pair.text);
        pair.audit.watch(&mut pair.engine);
        pair
    }

    fn engine(config: Config, gate: &str) -> Engine {
        let spec: GateSpec = gate.parse().expect("a gate");
        let gate = spec
            .build(&config)
            .expect("it fits")
            .expect("not the usual one");
        let lanes = gate.lanes();
        Engine::with_gate(config, gate, schedulers(lanes)).expect("in range")
    }

    fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    fn event(&mut self, event: Event) -> Result<(), TestCaseError> {
        let now = self.time();
        log::write_event(&mut self.text, now, &event);
        self.audit.event(&event).expect("an event that can be");
        self.engine.handle(now, event);
        self.commands()
    }

    fn commands(&mut self) -> Result<(), TestCaseError> {
        let now = self.time();
        while let Some(command) = self.engine.poll(now) {
            let kept = self.audit.command(&self.engine, &command);
            kept.expect("the engine's promises");
            log::write_decision(&mut self.text, now, &(&command).into());
            match command {
                Command::Issue(request) => {
                    let lane = self.model.lane(request.origin.program);
                    let flush = request.op == Op::Flush;
                    if let Some(why) = self.model.forbids(self.now, lane)
                        && !flush
                        && self.exact
                    {
                        let text = format!("{} lane {lane}: {why}\n{}", self.now, self.text);
                        return Err(TestCaseError::fail(text));
                    }
                    for (id, _) in self.engine.parts(request.tag) {
                        if let RequestId::Client(id) = id {
                            self.model.waiting.remove(&id);
                        }
                    }
                    self.model.sent(self.now, request.tag, lane);
                }
                Command::Finish(done) | Command::Background(done) => {
                    self.model.flushes.remove(&done.id);
                    self.ended += 1;
                }
            }
        }
        self.audit.at_rest(&self.engine, []).expect("ranks");
        Ok(())
    }

    fn ask(&mut self, program: u16, op: Op) -> Result<(), TestCaseError> {
        let id = self.asked;
        self.asked += 1;
        let len = if op == Op::Flush { 0 } else { 8 };
        let mut new = arrival(id, op, 1000 * id, len, 0);
        new.origin.program = program;
        if program == URGENT.1 {
            new.class = Class::REAL_TIME;
        }
        match op {
            Op::Flush => _ = self.model.flushes.insert(id),
            _ => _ = self.model.waiting.insert(id, program),
        }
        self.event(Event::Arrived(new))
    }

    /// Lets time pass, with the wake-ups that the engine asks for.
    fn pass(&mut self, span: u64, exact: bool) -> Result<(), TestCaseError> {
        let until = self.now + span;
        while let Some(wake) = self.engine.next_wakeup().map(Time::as_nanos)
            && wake <= until
        {
            prop_assert!(
                wake >= self.now,
                "{wake} is before {}\n{}",
                self.now,
                self.text
            );
            let again = self.now == wake;
            self.now = wake;
            self.event(Event::Woke)?;
            let next = self.engine.next_wakeup().map(Time::as_nanos);
            prop_assert!(!again || next != Some(wake), "{wake} again\n{}", self.text);
        }
        self.now = until;
        if exact {
            // The engine has not been asked at this time: it would have said so.
            self.neglects()?;
        }
        Ok(())
    }

    fn neglects(&self) -> Result<(), TestCaseError> {
        let depth = self.config.depth as usize;
        let neglected = self.model.neglects(self.now, depth);
        prop_assert!(
            neglected.is_none(),
            "lane {neglected:?} may go at {}, {:?}, {:?}, {:?}\n{}",
            self.now,
            self.model.turn(self.now),
            self.model.in_drive,
            self.model.mean,
            self.text
        );
        Ok(())
    }

    fn complete(&mut self, at: usize) -> Result<(), TestCaseError> {
        let tag = self.model.completed(self.now, at);
        let outcome = Outcome::Done;
        self.event(Event::Completed { tag, outcome })
    }

    fn swap(&mut self) -> Result<(), TestCaseError> {
        let spec: GateSpec = self.gate.parse().expect("a gate");
        let gate = spec.build(&self.config).expect("it fits").expect("a gate");
        let lanes = gate.lanes();
        let names: Vec<String> = (0..lanes).map(|_| "noop".to_owned()).collect();
        let now = self.time();
        log::write_gate_swap(&mut self.text, now, &self.gate, &names);
        self.engine
            .replace_gate(self.time(), gate, schedulers(lanes));
        self.audit.watch(&mut self.engine);
        // The new gate knows the commands in the drive, lanes and plan, but no mean.
        self.exact = false;
        self.commands()
    }

    /// Runs the moves; `exact`: a lane that may go does.
    fn run(&mut self, moves: Vec<Move>, exact: bool) -> Result<(), TestCaseError> {
        for step in moves {
            match step {
                Move::Ask(program, write) => {
                    let op = if write { Op::Write } else { Op::Read };
                    self.ask(program, op)?;
                }
                Move::Flush(program) => self.ask(program, Op::Flush)?,
                Move::Complete(_) if self.model.in_drive.is_empty() => {}
                Move::Complete(which) => {
                    // No service takes no time.
                    self.pass(1000, exact)?;
                    self.complete(which.index(self.model.in_drive.len()))?;
                }
                Move::Pass(micros) => self.pass(micros * 1000, exact)?,
                Move::Assign(of, lane) => {
                    self.model.lanes.insert(of, lane);
                    let lane = Lane(lane);
                    self.event(Event::Ordered(GateOrder::Assign { of, lane }))?;
                }
                Move::Plan(ahead, parts) => {
                    let total: u64 = parts.iter().map(|(_, part)| part).sum();
                    let (start, mut done) = (self.now + ahead * MS, 0);
                    for (lane, part) in parts {
                        let from = start + PERIOD * done / total;
                        done += part;
                        let span = start + PERIOD * done / total - from;
                        self.model.window(lane, from, span);
                        let (lane, from) = (Lane(lane), Time::from_nanos(from));
                        let span = Nanos::from_nanos(span);
                        self.event(Event::Ordered(GateOrder::Window { lane, from, span }))?;
                    }
                }
                Move::Swap => self.swap()?,
            }
        }
        self.finish()
    }

    /// Every request ends, and the log replays.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        let mut steps = 0;
        while !self.engine.is_idle() {
            steps += 1;
            prop_assert!(steps < 20_000, "requests that never end\n{}", self.text);
            if self.model.in_drive.is_empty() {
                let wake = self.engine.next_wakeup().map(Time::as_nanos);
                prop_assert!(wake.is_some(), "nothing will happen\n{}", self.text);
                let span = wake.unwrap().saturating_sub(self.now);
                self.pass(span, false)?;
            } else {
                self.pass(MS, false)?;
                self.complete(0)?;
            }
        }
        prop_assert_eq!(self.ended, self.asked);
        prop_assert_eq!(self.audit.unfinished(), 0);
        let again = Pair::engine(self.config, &self.gate);
        let noop = |_: &str| Some(schedulers(1).remove(0)) as Option<Box<dyn Scheduler>>;
        if let Err(error) = log::replay(&self.text, again, noop) {
            return Err(TestCaseError::fail(format!("{error}\n{}", self.text)));
        }
        Ok(())
    }
}

const PLAIN: &str = "windows:lanes=4:period=200ms";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whoever_may_send_does_and_nobody_else(moves in moves(0, 0)) {
        Pair::new(PLAIN).run(moves, true)?;
    }

    #[test]
    fn flushes_and_a_gate_inside_open_no_other_window(moves in moves(1, 0), inside in any::<bool>()) {
        let gate = if inside { "windows(rsd:age_th=5):lanes=4:period=200ms" } else { PLAIN };
        Pair::new(gate).run(moves, false)?;
    }

    #[test]
    fn a_swap_in_flight_loses_no_request(moves in moves(1, 3)) {
        Pair::new("windows(rsd:age_th=5):lanes=4:period=200ms").run(moves, false)?;
    }

    /// The logs are equal to the byte.
    #[test]
    fn without_orders_a_program_is_served_as_behind_the_usual_gate(moves in moves(1, 0)) {
        let alone: Vec<Move> = moves
            .into_iter()
            .filter_map(|step| match step {
                Move::Ask(_, write) => Some(Move::Ask(0, write)),
                Move::Flush(_) => Some(Move::Flush(0)),
                Move::Assign(..) | Move::Plan(..) => None,
                step => Some(step),
            })
            .collect();
        let [mut usual, mut windows] = ["depth=3", "windows(depth=3)"].map(Pair::new);
        usual.run(alone.clone(), false)?;
        windows.run(alone, false)?;
        prop_assert_eq!(usual.text, windows.text);
    }
}
