//! Random worlds from seeds: gates with holds and reserves, windows, orders to gates, a background job, drained
//! lanes, and volumes with a failing member. All runs are audited to the end, and their logs replay.

mod scripted;

use headtime_disk::drive::{Drive, Fault};
use headtime_disk::profile::{self, Profile};
use headtime_disk::{Layout, Model};
use headtime_engine::{Config, Engine, GateOrder, Gated, Lane, Member, Order, Plug, log};
use headtime_sched::{Class, Flags, Op, Origin, Scheduler, Spec};
use headtime_sim::{Coalesce, Setup, Station, run};
use headtime_testkit::{Scrub, ShownScrub, Striped, ToyGate};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use scripted::Scripted;
use std::sync::{Arc, LazyLock};

static DRIVE: LazyLock<Profile> =
    LazyLock::new(|| profile::by_name("wd5000aaks").expect("shipped").clone());
static LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| Arc::new(Layout::new(&DRIVE)));
static MODEL: LazyLock<Arc<Model>> = LazyLock::new(|| Arc::new(Model::new(&DRIVE)));

const REQUESTS: u64 = 150;

struct Draw(Pcg64Mcg);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    fn one_in(&mut self, several: u64) -> bool {
        self.below(several) == 0
    }
}

/// Exchange in flight, on each member.
#[derive(Clone, Copy)]
enum Swap {
    /// Drains the first lane into the second.
    Drain(Lane, Lane),
    Scheduler(Lane, &'static str),
    Gate(ToyGate, &'static str),
}

impl Swap {
    fn order(self, member: u16, config: &Config) -> Order {
        let member = Member(member);
        match self {
            Swap::Drain(from, to) => Order::Drain { member, from, to },
            Swap::Scheduler(lane, text) => Order::Swap {
                member,
                lane,
                text: text.to_owned(),
                scheduler: build(text),
            },
            Swap::Gate(gate, text) => Order::SwapGate {
                member,
                text: gate.text(config.depth),
                gate: gate.build(config.depth),
                schedulers: ["noop", text]
                    .map(|text| (text.to_owned(), build(text)))
                    .into(),
            },
        }
    }
}

/// A world that is drawn.
struct Drawn {
    config: Config,
    gate: Option<ToyGate>,
    orders: Vec<(Time, GateOrder)>,
    swaps: Vec<(Time, Swap)>,
    scrub: bool,
    /// In every fourth.
    coalesce: Option<Coalesce>,
    scheduler: &'static str,
    map: Striped,
    /// Faults of the last member, with their times.
    faults: Vec<(Time, Fault)>,
    requests: Vec<NewRequest>,
}

fn drawn(seed: u64) -> Drawn {
    const SCHEDULERS: [&str; 9] = [
        "noop",
        "deadline",
        "cfq",
        "sptf",
        "anticipatory",
        "clook",
        "mq-deadline",
        "sstf",
        "bfq",
    ];
    let mut draw = Draw(Pcg64Mcg::seed_from_u64(seed));
    let gate = match seed % 3 {
        0 => Some(ToyGate::Ranks(draw.below(12))),
        1 => Some(ToyGate::Windows(Nanos::from_millis(1 + draw.below(100)))),
        _ => None,
    };
    let depth = 2 + draw.below(30) as u32;
    let config = Config {
        depth: if gate.is_none() { 1 + depth / 8 } else { depth },
        merge: !draw.one_in(4),
        commit_ahead: true,
        plug: draw.one_in(4).then_some(Plug::LINUX_2_6),
        ..Config::default()
    };
    let members = 1 + draw.below(3) as u16;
    let map = Striped {
        members,
        stripe: 8 + draw.below(100),
        stripes: 200,
        parity: members == 3 && seed.is_multiple_of(2),
    };
    let mut orders = Vec::new();
    let mut now = Time::ZERO;
    for _ in 0..draw.below(5) {
        now += Nanos::from_millis(draw.below(300));
        let order = match draw.below(3) {
            0 => GateOrder::Depth(2 + draw.below(u64::from(config.depth - 1).max(1)) as u32),
            1 => GateOrder::Age(draw.below(20)),
            _ => GateOrder::Window {
                lane: Lane(draw.below(2) as u8),
                from: now + Nanos::from_micros(draw.below(100_000)),
                span: Nanos::from_micros(500 + draw.below(50_000)),
            },
        };
        orders.push((now, order));
    }
    let mut faults = Vec::new();
    if draw.one_in(2) {
        let at = Time::ZERO + Nanos::from_millis(draw.below(400));
        faults.push((
            at,
            match draw.below(3) {
                0 => Fault::LoseNext,
                1 => Fault::Stall(Nanos::from_millis(draw.below(900))),
                _ => Fault::Unreadable {
                    extent: Extent::at(draw.below(1000), 1 + draw.below(500)),
                    retries: draw.below(3) as u32,
                },
            },
        ));
    }
    let requests = requests(&mut draw, map);
    let scheduler = SCHEDULERS[draw.below(8) as usize];
    let mut swaps = Vec::new();
    let mut now = Time::ZERO;
    // A gate of two ranks needs two tags.
    for _ in 0..draw.below(6) * u64::from(config.depth > 1) {
        now += Nanos::from_micros(draw.below(200_000));
        let text = SCHEDULERS[draw.below(8) as usize];
        let gated = swaps.iter().any(|(_, swap)| matches!(swap, Swap::Gate(..)));
        let has_lanes = gate.is_some() || gated;
        let swap = match draw.below(5) {
            0 => Swap::Gate(ToyGate::Ranks(draw.below(12)), text),
            1 => Swap::Gate(
                ToyGate::Windows(Nanos::from_millis(1 + draw.below(40))),
                text,
            ),
            // Where there is one.
            2 if has_lanes => Swap::Scheduler(Lane(1), text),
            3 if has_lanes => match draw.one_in(2) {
                true => Swap::Drain(Lane(0), Lane(1)),
                false => Swap::Drain(Lane(1), Lane(0)),
            },
            _ => Swap::Scheduler(Lane(0), text),
        };
        swaps.push((now, swap));
    }
    Drawn {
        config,
        orders: gate.map(|_| orders).unwrap_or_default(),
        scrub: gate.is_none(),
        coalesce: seed.is_multiple_of(4).then(|| Coalesce {
            commands: 2 + (seed / 4 % 7) as u32,
            timeout: Nanos::from_millis(seed % 50),
        }),
        gate,
        scheduler,
        swaps,
        map,
        faults,
        requests,
    }
}

fn requests(draw: &mut Draw, map: Striped) -> Vec<NewRequest> {
    let capacity = map.capacity();
    let (spread, pause) = (capacity - 300, 1 + draw.below(8_000));
    let (writes, flushes) = (draw.below(60), draw.below(5));
    let mut now = Time::ZERO;
    let one = |cookie| {
        now += Nanos::from_micros(draw.below(pause));
        let op = match draw.below(100) {
            percent if percent < flushes => Op::Flush,
            percent if percent < flushes + writes => Op::Write,
            _ => Op::Read,
        };
        let flags = match (op, draw.below(12)) {
            (Op::Write, 0) if flushes > 0 => Flags::PREFLUSH.with(Flags::FUA),
            (Op::Write, 1) => Flags::FUA,
            _ => Flags::NONE,
        };
        let start = match draw.below(2) {
            // Adjacent requests, so that some merge.
            0 => 8 * draw.below(40),
            _ => draw.below(spread),
        };
        let len = if draw.one_in(2) {
            8
        } else {
            1 + draw.below(300)
        };
        NewRequest {
            cookie,
            arrival: now,
            op,
            extent: match op {
                Op::Flush => Extent::default(),
                _ => Extent::at(start, len),
            },
            flags,
            origin: Origin {
                process: cookie as u32 % 7,
                program: draw.below(4) as u16,
                ..Origin::default()
            },
            class: [Class::REAL_TIME, Class::BEST_EFFORT, Class::IDLE][draw.below(3) as usize],
        }
    };
    (0..REQUESTS).map(one).collect()
}

fn build(scheduler: &str) -> Box<dyn Scheduler> {
    let spec: Spec = scheduler.parse().expect("registered");
    spec.build(Some(Arc::clone(&MODEL))).expect("built")
}

/// Gates of toys have two lanes.
fn gated(world: &Drawn) -> Option<Gated> {
    world.gate.map(|gate| {
        let others = (1..ToyGate::LANES).map(|_| build(world.scheduler));
        (gate.build(world.config.depth), others.collect())
    })
}

/// Replays a log with engines as in the world.
fn replayed(world: &Drawn, log: &str) -> Result<log::Replayed, log::ReplayError> {
    let engine = |_| {
        let engine = Engine::behind(world.config, build(world.scheduler), gated(world));
        engine.expect("in range")
    };
    let engines: Vec<Engine> = (0..world.map.members).map(engine).collect();
    let mut again = log::Replay::of_volume(engines).with_gates(ToyGate::named);
    again.all(log, |text| Some(build(text)))
}

/// Results of a world: its log, and counts of the cases that it tried.
#[derive(Default)]
struct Ran {
    log: String,
    raised: u64,
    joined: u64,
    failed: u64,
    /// Completions that came with another one\'s interrupt.
    together: u64,
    orders: usize,
    swaps: usize,
    gives_up: bool,
}

fn ran(seed: u64) -> Ran {
    let world = drawn(seed);
    let members = world.map.members;
    let size = Sectors::new(world.map.stripe * world.map.stripes);
    let scrubs: Vec<ShownScrub> = (0..members)
        .map(|_| {
            let scrub = Scrub::new(size, Sectors::new(8), 60);
            ShownScrub::new(match seed.is_multiple_of(2) {
                true => scrub,
                false => scrub.offered(),
            })
        })
        .collect();
    let station = |number: u16| {
        let drive = Drive::with_layout(&DRIVE, Arc::clone(&LAYOUT), u64::from(number));
        let scrub = &scrubs[usize::from(number)];
        let is_last = number + 1 == members;
        Station {
            gate: gated(&world),
            background: world.scrub.then(|| Box::new(scrub.clone()) as _),
            faults: match is_last {
                true => world.faults.clone(),
                false => Vec::new(),
            },
            coalesce: world.coalesce,
            ..Station::new(drive, world.config, build(world.scheduler))
        }
    };
    let mut source = Scripted::new(&world.requests);
    let mut log = String::new();
    let mut write = |piece: &str| log.push_str(piece);
    let drive = Drive::with_layout(&DRIVE, Arc::clone(&LAYOUT), 0);
    let mut setup = Setup::new(drive, world.config, build("noop"), &mut source);
    setup.stations = (0..members).map(station).collect();
    setup.map = (members > 1).then(|| Box::new(world.map.map()) as _);
    setup.timeout = Some(Nanos::from_millis(1500));
    for member in 0..members {
        let told = world.orders.iter();
        let told = told.map(|(at, order)| (*at, Order::Gate(Member(member), *order)));
        let swaps = world.swaps.iter();
        let swaps = swaps.map(|(at, swap)| (*at, swap.order(member, &world.config)));
        setup.orders.extend(told.chain(swaps));
    }
    setup.orders.sort_by_key(|(at, _)| *at);
    setup.audit = true;
    setup.log = Some(&mut write);
    let report = run(setup).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(report.measured.requests, REQUESTS, "seed {seed}");
    assert!(source.done());
    let mut finished = 0;
    for scrub in &scrubs {
        assert!(scrub.waits_for_nothing(), "seed {seed}: {scrub:?}");
        finished += scrub.finished();
    }
    assert_eq!(finished, report.engine.joined);

    let again = replayed(&world, &log);
    let again = again.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(
        again.swaps + again.gate_swaps + again.drains,
        (world.swaps.len() * usize::from(members)) as u64
    );
    assert!(again.decisions >= REQUESTS, "seed {seed}: {again:?}");
    Ran {
        gives_up: log.contains(" timeout\n"),
        orders: world.orders.len() * usize::from(members),
        swaps: world.swaps.len() * usize::from(members),
        raised: report.engine.raised,
        joined: report.engine.joined,
        failed: report.measured.failed,
        together: match world.coalesce {
            Some(_) => (report.commands.completed).saturating_sub(report.commands.interrupts),
            None => 0,
        },
        log,
    }
}

#[test]
fn whatever_stands_before_drives_keeps_the_engines_promises_and_its_logs_replay() {
    let (mut all, mut behind, mut drains) = (Ran::default(), 0, 0);
    for seed in 0..200 {
        let one = ran(seed);
        if seed % 20 < 3 {
            assert_eq!(one.log, ran(seed).log, "seed {seed}: another log");
        }
        let count = |kind: &str| {
            let lines = one.log.lines();
            let kinds = lines
                .map(|line| line.trim_start_matches(|sign: char| "@0123456789 ".contains(sign)));
            kinds.filter(|line| line.starts_with(kind)).count()
        };
        assert_eq!(count("O "), one.orders, "seed {seed}");
        drains += count("D ");
        behind += count("B ");
        all.raised += one.raised;
        all.joined += one.joined;
        all.failed += one.failed;
        all.together += one.together;
        all.orders += one.orders;
        all.swaps += one.swaps;
        all.gives_up |= one.gives_up;
    }
    // Or the draw is of no use.
    assert!(all.raised > 100, "{}", all.raised);
    assert!(all.joined > 1000, "{}", all.joined);
    assert!(all.failed > 100, "{}", all.failed);
    assert!(all.together > 100, "{}", all.together);
    assert!(all.orders > 100, "{}", all.orders);
    assert!(all.swaps > 100, "{}", all.swaps);
    assert!(all.gives_up);
    assert!(behind > 100, "{behind}");
    assert!(drains > 100, "{drains}");
}

#[test]
fn a_log_does_not_replay_without_what_was_drained() {
    let mut differ = 0;
    for seed in 0..40 {
        let world = drawn(seed);
        let log = ran(seed).log;
        let drains = |line: &&str| line.split(' ').any(|word| word == "D");
        let without: Vec<&str> = log.lines().filter(|line| !drains(line)).collect();
        if without.len() == log.lines().count() {
            continue;
        }
        let again = replayed(&world, &(without.join("\n") + "\n"));
        differ += u64::from(again.is_err());
    }
    // Some lanes are empty.
    assert!(differ > 5, "{differ}");
}

#[test]
fn a_log_does_not_replay_with_another_gate() {
    for seed in [0, 1, 3, 4] {
        let world = drawn(seed);
        let log = ran(seed).log;
        let engine = |_| Engine::new(world.config, build(world.scheduler)).expect("in range");
        let engines: Vec<Engine> = (0..world.map.members).map(engine).collect();
        let again = log::replay_volume(&log, engines, |text| Some(build(text)));
        assert!(again.is_err(), "seed {seed}");
    }
}
