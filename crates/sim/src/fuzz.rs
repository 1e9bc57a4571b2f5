//! A swarm of random runs under an audit.
//!
//! Each seed draws a drive, its firmware, requests, settings and faults. Then arrivals stop, and the queue must drain: nothing lost,
//! nothing served twice, nothing out of order, every instant of the arm accounted for. The shares of the seeds are:
//!
//! - A half has a gate, which changes while the run goes on. No command may be overtaken in the drive more often than the gate promises.
//! - A third draws at the ends of the ranges: times of nothing, of a nanosecond and of ten years, and a beginning hundreds of years after
//!   the start.
//! - In a fifth an adapter holds completions back.
//! - A third has a scan in the background, which delivers each block once.
//!
//! The run is made twice, and its log must come out the same byte for byte. Then the log is replayed, and the engine must decide the same.

mod load;
mod overtaken;
mod random;
mod scan;

use crate::{Coalesce, Report, Setup, run};
use headtime_disk::drive::{Drive, Fault};
use headtime_disk::profile::{CacheSpec, FirmwarePolicy, Profile, QueueSpec};
use headtime_disk::{Model, profile};
use headtime_engine::log;
use headtime_engine::{
    Config, Engine, EngineSpec, GateOrder, GateSpec, Gated, Lane, Member, Order, Plug, Seen,
};
use headtime_sched::{Knowledge, Scheduler, ServiceCurve, Spec, Value, policies};
use headtime_units::{Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source};
use load::{Crowd, begin_late, requests};
use overtaken::Overtaken;
use random::Random;
use scan::ScanPlan;
use std::fmt::Write as _;
use std::sync::Arc;

/// Draws of one seed, and results of its run.
#[derive(Debug)]
pub struct Fuzzed {
    /// Description of the draws, for people: one line.
    pub drawn: String,
    /// Number of requests.
    pub requests: u64,
    /// Results of the run.
    pub report: Report,
    /// The log of the run.
    pub log: String,
}

/// Parts of a run's engine, for the settings of its log.
#[derive(Debug)]
pub struct Stack<'a> {
    /// The scheduler.
    pub scheduler: &'a Spec,
    /// The engine.
    pub engine: EngineSpec,
    /// Profile of the drive. Schedulers with predictions compute positions with this profile.
    pub profile: &'a Profile,
    /// Service times for schedulers that use a curve.
    pub curve: ServiceCurve,
}

/// Fault that a run has shown.
#[derive(Debug, thiserror::Error)]
#[error("seed {seed}: {problem}\n  drawn: {drawn}")]
pub struct Failure {
    /// Seed that makes the same run again.
    pub seed: u64,
    /// Description of the draws.
    pub drawn: String,
    /// Description of the fault.
    pub problem: String,
}

/// Change during a run.
enum Change {
    Scheduler(Spec),
    Gate(GateSpec),
    Order(GateOrder),
    /// Drains one lane into another, if both exist at that time.
    Drain(Lane, Lane),
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Scheduler(spec) => spec.fmt(f),
            Change::Gate(gate) => gate.fmt(f),
            Change::Order(order) => write!(f, "{order:?}"),
            Change::Drain(from, to) => write!(f, "drain {} {}", from.0, to.0),
        }
    }
}

/// Drive, scheduler, requests and faults that were drawn for a run.
///
/// Invariants:
///
/// - `1 ≤ config.depth ≤ profile.queue.depth ≤ 32`.
/// - Times of `changes`, `requests` and `faults` never descend.
/// - A fault `LoseNext` ⇒ `timeout.is_some()`.
/// - The last request arrives within `drains_within`.
struct RandomRun {
    profile: Profile,
    config: Config,
    scheduler: Spec,
    gate: GateSpec,
    changes: Vec<(Time, Change)>,
    requests: Vec<(Time, NewRequest)>,
    faults: Vec<(Time, Fault)>,
    timeout: Option<Nanos>,
    coalesce: Option<Coalesce>,
    scan: Option<ScanPlan>,
    /// Latest time at which all requests must be over.
    drains_within: Nanos,
    drive_seed: u64,
    drawn: String,
}

/// Makes the run of one seed. `settings` returns the settings of its stack for the log.
///
/// # Errors
///
/// If the run shows a fault. The failure names the seed and the draws.
pub fn one(
    seed: u64,
    settings: impl Fn(&Stack<'_>) -> Vec<(String, String)>,
) -> Result<Fuzzed, Failure> {
    let plan = draw(seed);
    let settings = settings(&plan.stack());
    let fail = |problem: String| Failure {
        seed,
        drawn: plan.drawn.clone(),
        problem,
    };
    let mut overtaken = Overtaken::new(&plan.gate, plan.config.depth);
    let run = execute(&plan, &settings, &mut overtaken);
    let (report, log) = run.map_err(&fail)?;
    let mut again = Overtaken::new(&plan.gate, plan.config.depth);
    let run = execute(&plan, &settings, &mut again);
    let (_, again) = run.map_err(&fail)?;
    if log != again {
        let line = log
            .lines()
            .zip(again.lines())
            .take_while(|(one, other)| one == other)
            .count();
        return Err(fail(format!(
            "the same seed gave another log from line {} on",
            line + 1
        )));
    }
    let scheduler = build(&plan.scheduler, &plan);
    let engine = Engine::behind(plan.config, scheduler, gated(&plan));
    let engine = engine.map_err(|error| fail(error.to_string()))?;
    let rebuild = |text: &str| text.parse().ok().map(|spec: Spec| build(&spec, &plan));
    log::replay(&log, engine, rebuild).map_err(|error| fail(format!("replay: {error}")))?;
    if let Some(problem) = overtaken.found {
        return Err(fail(problem));
    }
    let accounted = report.head_time.total();
    if accounted != report.simulated {
        return Err(fail(format!(
            "the arm accounts for {accounted} of {}",
            report.simulated
        )));
    }
    if report.measured.requests != plan.requests.len() as u64 {
        let (finished, made) = (report.measured.requests, plan.requests.len());
        return Err(fail(format!("{finished} of {made} requests finished")));
    }
    if plan.faults.is_empty() && report.measured.failed > 0 {
        return Err(fail(format!(
            "{} requests failed without a fault",
            report.measured.failed
        )));
    }
    Ok(Fuzzed {
        drawn: plan.drawn,
        requests: plan.requests.len() as u64,
        report,
        log,
    })
}

impl RandomRun {
    fn stack(&self) -> Stack<'_> {
        let sector_bytes = self.profile.geometry.sector_bytes;
        let engine = EngineSpec::of(&self.config, self.gate.clone(), sector_bytes);
        Stack {
            scheduler: &self.scheduler,
            engine,
            profile: &self.profile,
            curve: curve(&self.profile),
        }
    }
}

fn build(spec: &Spec, plan: &RandomRun) -> Box<dyn Scheduler> {
    let knowledge = Knowledge {
        positioning: Some(Arc::new(Model::new(&plan.profile))),
        curve: Some(Arc::new(curve(&plan.profile))),
        handed_out_max: Some(plan.config.handed_out_max()),
    };
    spec.build(knowledge)
        .expect("a registered policy with default options can be built")
}

/// Returns the gate, and the schedulers of its lanes after the first.
fn gated(plan: &RandomRun) -> Option<Gated> {
    let gate = plan.gate.build(&plan.config);
    let gate = gate.expect("it was drawn for this depth")?;
    let others = (1..gate.lanes()).map(|_| build(&plan.scheduler, plan));
    let others = others.collect();
    Some((gate, others))
}

/// Returns the orders of a run. A change of scheduler is an order for each lane that exists at that time.
fn orders(plan: &RandomRun) -> Vec<(Time, Order)> {
    let member = Member::default();
    let mut lanes = gated(plan).map_or(1, |(gate, _)| gate.lanes());
    let mut scheduler = &plan.scheduler;
    let mut orders = Vec::new();
    for (at, change) in &plan.changes {
        match change {
            Change::Scheduler(spec) => {
                scheduler = spec;
                orders.extend((0..lanes as u8).map(Lane).map(|lane| {
                    let order = Order::Swap {
                        member,
                        lane,
                        text: spec.to_string(),
                        scheduler: build(spec, plan),
                    };
                    (*at, order)
                }));
            }
            Change::Gate(spec) => {
                let gate = spec.build_in_flight(&plan.config);
                let gate = gate.expect("it was drawn for this depth");
                lanes = gate.lanes();
                let schedulers =
                    (0..lanes).map(|_| (scheduler.to_string(), build(scheduler, plan)));
                let order = Order::SwapGate {
                    member,
                    text: spec.to_string(),
                    schedulers: schedulers.collect(),
                    gate,
                };
                orders.push((*at, order));
            }
            Change::Order(order) => orders.push((*at, Order::Gate(member, *order))),
            Change::Drain(from, to) => {
                if from.index().max(to.index()) < lanes {
                    let (from, to) = (*from, *to);
                    orders.push((*at, Order::Drain { member, from, to }));
                }
            }
        }
    }
    orders
}

/// Returns service times of a made-up drive: a turn, and up to another turn for the longest distance.
fn curve(profile: &Profile) -> ServiceCurve {
    let capacity = profile.geometry.capacity;
    let points = vec![
        (Sectors::ZERO, Nanos::from_micros(500)),
        (
            Sectors::new(1 + capacity.get() / 1000),
            Nanos::from_millis(8),
        ),
        (Sectors::new(2 + capacity.get()), Nanos::from_millis(16)),
    ];
    ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve")
}

fn execute(
    plan: &RandomRun,
    settings: &[(String, String)],
    overtaken: &mut Overtaken,
) -> Result<(Report, String), String> {
    let mut source = Scripted {
        requests: &plan.requests,
        next: 0,
        unfinished: 0,
    };
    let mut text = String::new();
    let mut sink = |piece: &str| text.push_str(piece);
    let mut setup = Setup::new(
        Drive::new(&plan.profile, plan.drive_seed),
        plan.config,
        build(&plan.scheduler, plan),
        &mut source,
    );
    setup.stations[0].faults = plan.faults.clone();
    setup.timeout = plan.timeout;
    setup.stations[0].gate = gated(plan);
    setup.orders = orders(plan);
    setup.audit = true;
    setup.limit = Some(plan.drains_within);
    setup.stations[0].coalesce = plan.coalesce;
    let model = Arc::new(Model::new(&plan.profile));
    let capacity = plan.profile.geometry.capacity;
    let scan = plan.scan.and_then(|scan| scan.build(model, capacity));
    let found = scan.map(|(scan, found)| {
        setup.stations[0].background = Some(Box::new(scan));
        found
    });
    setup.log_settings = settings.to_vec();
    setup.log = Some(&mut sink);
    let mut observe = |now: Time, _: Member, seen: Seen<'_>| overtaken.see(now, seen);
    setup.observer = Some(&mut observe);
    let report = run(setup).map_err(|error| error.to_string())?;
    match found.and_then(|found| found.lock().take()) {
        Some(problem) => Err(problem),
        None => Ok((report, text)),
    }
}

fn draw(seed: u64) -> RandomRun {
    let mut random = Random::new(seed);
    let shipped = random.pick(profile::shipped());
    let name = shipped.name;
    let ends = random.chance(33);
    let sptf = random.chance(40);
    let drive_depth = 1 + random.below(32) as u32;
    let (cache, noise) = (random.chance(80), random.chance(30));
    let profile = shipped
        .profile()
        .with(|spec| {
            spec.queue.depth = drive_depth;
            spec.queue.policy = if sptf {
                FirmwarePolicy::Sptf {
                    margin: Nanos::ZERO,
                    age_cap: None,
                }
            } else {
                FirmwarePolicy::Fifo
            };
            if sptf {
                draw_firmware(&mut random, &mut spec.queue);
            }
            if !cache {
                spec.cache = CacheSpec::default();
            }
            if noise {
                spec.noise.seek_sd = Nanos::from_micros(20);
                spec.noise.overhead_sd = Nanos::from_micros(30);
                spec.noise.speed_ppm = 1000;
            }
        })
        .expect("in range");
    let depth = 1 + random.below(u64::from(drive_depth)) as u32;
    let merging = Config {
        merge: random.chance(70),
        merge_sectors_max: Sectors::new(*random.pick(&[1, 8, 64, 256, 1024])),
        ..Config::default()
    };
    let mut config = Config {
        depth,
        commit_ahead: random.chance(30),
        plug: random.chance(30).then_some(Plug::LINUX_2_6),
        hide_origins: random.chance(30),
        ..merging
    };
    let names: Vec<&str> = policies().map(|policy| policy.name).collect();
    let spec = |random: &mut Random| -> Spec {
        let name = *random.pick(&names);
        let text = if name == "sptf-sw" { "sptf-sw60" } else { name };
        text.parse().expect("a registered name")
    };
    let mut scheduler = spec(&mut random);
    if scheduler.info().among.is_some() {
        scheduler = among(&mut random, scheduler, &names);
    }
    let capacity = profile.geometry.capacity.get();
    let crowd = random.chance(10).then(|| Crowd::draw(&mut random));
    let mut requests = match &crowd {
        Some(crowd) => crowd.requests(&mut random, capacity),
        None => requests(&mut random, capacity),
    };
    if ends {
        scheduler = with_options(&mut random, &scheduler);
        config.plug = plug_at_an_end(&mut random, &mut requests, crowd.is_some());
        begin_late(&mut random, &mut requests);
    }
    let end = requests.last().map_or(Time::ZERO, |(at, _)| *at);
    let within = |random: &mut Random| Time::from_nanos(random.below(end.as_nanos() + 1));
    let mut changes = Vec::new();
    if random.chance(25) {
        for _ in 0..=random.below(4) {
            let at = within(&mut random);
            changes.push((at, Change::Scheduler(spec(&mut random))));
        }
    }
    let mut gate = GateSpec::default();
    if random.chance(50) {
        gate = draw_gate(&mut random, config.depth);
        for _ in 0..*random.pick(&[0, 0, 1, 4, 12]) {
            let at = within(&mut random);
            let change = match random.below(15) {
                0..5 => Change::Gate(draw_gate(&mut random, config.depth)),
                5..9 => Change::Order(GateOrder::Age(*random.pick(&AGE_TH))),
                9..14 => Change::Order(draw_order(&mut random, at)),
                _ => Change::Order(GateOrder::Depth(1 + random.below(32) as u32)),
            };
            changes.push((at, change));
        }
        for _ in 0..*random.pick(&[0, 0, 1, 10]) {
            let mut lane = || Lane(random.below(4) as u8);
            let drain = Change::Drain(lane(), lane());
            changes.push((within(&mut random), drain));
        }
    }
    changes.sort_by_key(|(at, _)| *at);
    let mut faults = Vec::new();
    let mut timeout = None;
    if random.chance(40) {
        for _ in 0..=random.below(4) {
            let fault = match random.below(3) {
                0 => {
                    let extent = requests[random.below(requests.len() as u64) as usize]
                        .1
                        .extent;
                    Fault::Unreadable {
                        extent,
                        retries: random.below(4) as u32,
                    }
                }
                1 => Fault::Stall(Nanos::from_millis(random.below(2_000))),
                _ => {
                    // A drive that loses a command needs a host that gives up on the command.
                    // With a timeout of a day, schedulers that wait for the command check again every second.
                    let long = ends && random.chance(50);
                    let span = Nanos::from_secs(if long { 86_400 } else { 10 });
                    timeout = timeout.or(Some(span));
                    Fault::LoseNext
                }
            };
            faults.push((within(&mut random), fault));
        }
        faults.sort_by_key(|(at, _)| *at);
    }
    if ends && timeout.is_none() && random.chance(50) {
        timeout = Some(*random.pick(&[Nanos::from_secs(3600), Nanos::LONGEST, Nanos::MAX]));
    }
    let coalesce = random.chance(20).then(|| Coalesce {
        commands: 2 + random.below(31) as u32,
        timeout: Nanos::from_micros(*random.pick(&[1, 100, 5_000, 100_000])),
    });
    let scans = crowd.is_none() && random.chance(33);
    let scan = scans.then(|| ScanPlan::draw(&mut random, &requests, capacity, config.plug));
    let scan = scan.flatten();
    let mut drawn = format!(
        "{name}, drive depth {drive_depth} {}, cache {}, noise {}, {config:?}, {scheduler}, gate {gate}",
        if sptf { "sptf" } else { "fifo" },
        if cache { "on" } else { "off" },
        if noise { "on" } else { "off" },
    );
    if sptf {
        let queue = &profile.queue;
        for (what, drawn_so) in [
            ("stream hold", !queue.stream_hold.is_zero()),
            ("oldest", queue.oldest_every > 0),
            ("NCQ priority", queue.ncq_prio),
        ] {
            if drawn_so {
                let _ = write!(drawn, ", {what}");
            }
        }
    }
    if let Some(coalesce) = &coalesce {
        let _ = write!(drawn, ", {coalesce:?}");
    }
    if let Some(crowd) = &crowd {
        let _ = write!(drawn, ", {crowd:?}");
    }
    if let Some(scan) = &scan {
        let _ = write!(drawn, ", {scan:?}");
    }
    for (at, change) in &changes {
        let _ = write!(drawn, ", {change} at {at}");
    }
    for (at, fault) in &faults {
        let _ = write!(drawn, ", {fault:?} at {at}");
    }
    // No access takes 200 ms, retries of a bad sector included. A lost command takes its timeout.
    let slowest = Nanos::from_millis(200) * requests.len() as u64 * 2;
    let lost = timeout
        .unwrap_or(Nanos::ZERO)
        .saturating_mul(2 * faults.len() as u64);
    let stalls = Nanos::from_secs(2) * faults.len() as u64;
    // The last requests, requests after a flush and retries may wait for the timer of the plug.
    let plugged = config
        .plug
        .map_or(Nanos::ZERO, |plug| plug.timeout)
        .saturating_mul(2 * requests.len() as u64);
    // A scheduler may wait after each request for as long as its options say.
    let held = scheduler
        .longest_option()
        .saturating_mul(2 * requests.len() as u64);
    let kept = coalesce
        .map_or(Nanos::ZERO, |coalesce| coalesce.timeout)
        .saturating_mul(2 * requests.len() as u64);
    let scanned = scan.as_ref().map_or(Nanos::ZERO, |scan| {
        scan.takes_at_most(Nanos::from_millis(200), requests.len() as u64)
    });
    let drains_within = [slowest, stalls, lost, plugged, held, kept, scanned]
        .into_iter()
        .fold(end - Time::ZERO, Nanos::saturating_add);
    RandomRun {
        profile,
        config,
        scheduler,
        gate,
        changes,
        requests,
        faults,
        timeout,
        coalesce,
        scan,
        drains_within,
        drive_seed: seed,
        drawn,
    }
}

/// Draws the firmware's rules besides shortest positioning time first. A third of the draws has no such rules.
fn draw_firmware(random: &mut Random, queue: &mut QueueSpec) {
    if random.chance(30) {
        queue.stream_cap = Nanos::from_millis(random.below(4_000));
        queue.stream_hold = Nanos::from_micros(random.below(2_000));
    }
    if random.chance(30) {
        queue.oldest_every = 1 + random.below(20) as u32;
        queue.oldest_age = Nanos::from_millis(random.below(200));
    }
    queue.ncq_prio = random.chance(30);
}

/// Values for age thresholds.
const AGE_TH: [u64; 6] = [0, 1, 5, 30, 90, 1000];

/// Draws an order near a time.
fn draw_order(random: &mut Random, at: Time) -> GateOrder {
    let lane = Lane(random.below(5) as u8);
    match random.below(3) {
        0 => GateOrder::Window {
            lane,
            from: at + Nanos::from_millis(random.below(100)),
            span: Nanos::from_millis(random.below(200)),
        },
        1 => GateOrder::Assign {
            of: random.below(4) as u16,
            lane,
        },
        _ => GateOrder::Rate {
            lane,
            rate: random.below(100_000),
        },
    }
}

/// Draws a gate that fits an engine of this depth.
fn draw_gate(random: &mut Random, depth: u32) -> GateSpec {
    let age_th = *random.pick(&AGE_TH);
    let text = match random.below(10) {
        9 => format!(
            "mclock:lanes={}:iops={}:reservations=0/{}",
            1 + random.below(4),
            1 + random.below(1000),
            random.below(101)
        ),
        8 => "head-time".to_owned(),
        7 => format!("average:lanes={}", 1 + random.below(4)),
        6 => {
            let inner = random.pick(&[
                "depth=2",
                "depth",
                "rsd:age_th=5",
                "rsd-priority:queue=single:ranks=0",
            ]);
            let [lanes, guard, period] = [4, 30, 900].map(|most| 1 + random.below(most));
            format!("windows({inner}):lanes={lanes}:guard={guard}ms:period={period}ms")
        }
        5 => {
            let mut target = || *random.pick(&["0s", "1ms", "20ms", "500ms"]);
            let [best_effort, idle] = [target(), target()];
            let requests = random.pick(&[1, 16, 64, 65_536]);
            format!(
                "iolatency:real_time=5ms:best_effort={best_effort}:idle={idle}:requests={requests}"
            )
        }
        0 => format!("depth={}", 1 + random.below(32)),
        1 => format!("rsd:age_th={age_th}"),
        _ => {
            let count = 1 + random.below(4);
            let mut ranks: Vec<u64> = (0..count).map(|_| random.below(u64::from(depth))).collect();
            ranks.sort_unstable();
            let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
            let queue = random.pick(&["lanes", "single"]);
            let ranks = ranks.join("/");
            let floor = random.pick(&["0", "5%", "40%"]);
            format!("rsd-priority:age_th={age_th}:ranks={ranks}:queue={queue}:floor={floor}")
        }
    };
    text.parse().expect("in range")
}

/// Draws the schedulers of a policy that chooses among schedulers: the policy's defaults, or two drawn schedulers.
fn among(random: &mut Random, policy: Spec, names: &[&str]) -> Spec {
    if random.chance(50) {
        return policy;
    }
    let mut one = || {
        let others = names.iter().filter(|name| **name != policy.info().name);
        let others: Vec<&&str> = others.collect();
        let number = |name: &str| if name == "sptf-sw" { "60" } else { "" };
        let name = *random.pick(&others);
        let depth = *random.pick(&["", "", "@1", "@2", "@31"]);
        format!("{name}{}{depth}", number(name))
    };
    let (first, second) = (one(), one());
    let text = format!("{policy}({first},{second})");
    text.parse().expect("registered names")
}

/// Draws options at the ends of their ranges, or just inside.
fn with_options(random: &mut Random, scheduler: &Spec) -> Spec {
    let mut text = scheduler.to_string();
    for (option, default) in scheduler.options() {
        let (low, high) = option.range;
        let value = match random.below(4) {
            0 => low,
            1 => high,
            2 => match default {
                Value::Duration(_) => Value::Duration(Nanos::from_nanos(1)),
                Value::Choice(_) => {
                    Value::Choice(option.words[random.below(option.words.len() as u64) as usize])
                }
                other => other,
            },
            _ => continue,
        };
        let _ = write!(text, ":{}={value}", option.key);
    }
    text.parse().expect("in range")
}

/// Draws a plug with a timeout at an end of its range, or no plug. With the longest timeout only five requests
/// remain, so that all requests and their retries can wait for the timeout within the length of a run. A crowd never
/// gets the longest timeout.
fn plug_at_an_end(
    random: &mut Random,
    requests: &mut Vec<(Time, NewRequest)>,
    is_crowd: bool,
) -> Option<Plug> {
    let timeout = match random.below(5) {
        0 => return None,
        1 | 2 => Nanos::from_nanos(1),
        3 => Nanos::from_secs(86_400),
        _ if is_crowd => Nanos::from_secs(86_400),
        _ => {
            requests.truncate(5);
            Nanos::LONGEST
        }
    };
    let requests = *random.pick(&[1, 4, 65_535]);
    Some(Plug { requests, timeout })
}

/// Source that makes requests at the planned times.
struct Scripted<'a> {
    requests: &'a [(Time, NewRequest)],
    next: usize,
    unfinished: u64,
}

impl Source for Scripted<'_> {
    fn next_arrival(&self) -> Option<Time> {
        self.requests.get(self.next).map(|(at, _)| *at)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        let (at, request) = self.requests.get(self.next)?;
        if *at > now {
            return None;
        }
        self.next += 1;
        self.unfinished += 1;
        Some(*request)
    }

    fn completed(&mut self, _now: Time, _cookie: u64) {
        self.unfinished -= 1;
    }

    fn done(&self) -> bool {
        self.next == self.requests.len() && self.unfinished == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(seed: u64) -> Result<Fuzzed, Failure> {
        one(seed, |_| Vec::new())
    }

    #[test]
    fn the_first_seeds_hold() {
        for seed in 0..60 {
            if let Err(failure) = plain(seed) {
                panic!("{failure}");
            }
        }
    }

    /// Thousands of requests are open at a time, under as many schedulers as there are seeds.
    #[test]
    fn seeds_with_a_crowd_hold() {
        let crowded = (2_000..).filter(|seed| draw(*seed).drawn.contains("Crowd"));
        for seed in crowded.take(12) {
            let run = plain(seed).unwrap_or_else(|failure| panic!("{failure}"));
            assert!(run.requests >= 200, "{}", run.drawn);
        }
    }

    /// Each outcome of a gate shows in the logs of the first seeds with a gate that changes.
    #[test]
    fn seeds_with_a_gate_that_changes_hold() {
        let gated = (3_000..).filter(|seed| {
            let plan = draw(*seed);
            let changes = |change: &(Time, Change)| !matches!(change.1, Change::Scheduler(_));
            plan.gate.age_th().is_some() && plan.changes.iter().any(changes)
        });
        let (mut swaps, mut orders, mut late) = (0, 0, 0);
        for seed in gated.take(30) {
            let run = plain(seed).unwrap_or_else(|failure| panic!("{failure}"));
            let of = |start: &str| {
                run.log
                    .lines()
                    .filter(|line| line.starts_with(start))
                    .count()
            };
            swaps += of("G ");
            orders += of("O ");
            let mut strict = Overtaken::new(&"rsd:age_th=0".parse().unwrap(), 1);
            execute(&draw(seed), &[], &mut strict).unwrap();
            late += u64::from(strict.found.is_some());
        }
        assert!(
            swaps > 20 && orders > 20 && late > 0,
            "{swaps} {orders} {late}"
        );
    }

    #[test]
    fn runs_whose_gate_has_several_lanes_drain_them() {
        let mut drained = 0;
        for seed in (0..200).filter(|seed| draw(*seed).drawn.contains("drain ")) {
            let run = plain(seed).unwrap_or_else(|failure| panic!("{failure}"));
            drained += run
                .log
                .lines()
                .filter(|line| line.starts_with("D "))
                .count();
        }
        assert!(drained > 20, "{drained}");
    }

    /// The first seeds with a scan show requests before a client's request, alone, queued and at foreground priority. Blocks in a client's
    /// command are rare among so few requests; `tests/freeblock` covers them.
    #[test]
    fn seeds_with_a_scan_hold() {
        let scanned = (6_000..).filter(|seed| draw(*seed).scan.is_some());
        let mut joined = [0; 4];
        for seed in scanned.take(50) {
            let run = plain(seed).unwrap_or_else(|failure| panic!("{failure}"));
            for line in run.log.lines().filter(|line| line.starts_with("J ")) {
                let ways = ["before", "alone", "queued", "outright"];
                if let Some(way) = ways.iter().position(|way| line.contains(way)) {
                    joined[way] += 1;
                }
            }
        }
        assert!(joined.iter().all(|count| *count > 10), "{joined:?}");
    }

    #[test]
    fn one_seed_in_ten_has_a_crowd() {
        let crowded = (0..400).filter(|seed| draw(*seed).drawn.contains("Crowd"));
        assert!((20..60).contains(&crowded.count()));
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let one = draw(1).drawn;
        assert_eq!(one, draw(1).drawn);
        assert_ne!(one, draw(2).drawn);
    }
}
