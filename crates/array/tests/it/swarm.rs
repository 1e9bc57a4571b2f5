//! Random volumes under the coordinator with failing disks and swaps in flight, under the audit, to the end, with logs that
//! replay without a conductor.

use crate::clients::Draw;
use crate::volume::Volume;
use headtime_array::Coordinator;
use headtime_disk::drive::Fault;
use headtime_engine::conduct::Conductor as _;
use headtime_engine::{Engine, Event, Lane, Member, Order, Seen, log};
use headtime_engine::{ReadFrom, SharedCell};
use headtime_sched::{Directive, Noop, Scheduler};
use headtime_sim::run;
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::Source;
use std::sync::Arc;

const REQUESTS: u64 = 30;

/// Results of a run.
#[derive(Default)]
struct Ran {
    log: String,
    slices: u64,
    broken: u64,
    timeouts: u64,
    failed: u64,
    swaps: u64,
    marks: u64,
}

/// The scheduler of a text in a log.
fn scheduler(volume: &Volume, text: &str) -> Box<dyn Scheduler> {
    match text {
        "own" => volume.scheduler(),
        _ => Box::new(headtime_sched::WorkConserving::new(Noop::default())),
    }
}

fn faults(draw: &mut Draw, volume: &Volume) -> Vec<(Time, Fault)> {
    let sectors = volume.map.stripe * volume.map.stripes;
    let fault = |_| {
        let at = Time::ZERO + Nanos::from_millis(draw.below(300));
        let fault = match draw.below(3) {
            0 => Fault::LoseNext,
            1 => Fault::Stall(Nanos::from_millis(draw.below(900))),
            _ => Fault::Unreadable {
                extent: Extent::at(0, 1 + sectors / (1 + draw.below(4))),
                retries: draw.below(2) as u32,
            },
        };
        (at, fault)
    };
    let mut faults: Vec<_> = (0..draw_count(volume.seed)).map(fault).collect();
    faults.sort_by_key(|(at, _)| *at);
    faults
}

/// Swaps of schedulers in flight, in order of time.
fn swaps(draw: &mut Draw, volume: &Volume) -> Vec<(Time, Order)> {
    let count = draw.below(4);
    let swap = |_| {
        let at = Time::ZERO + Nanos::from_millis(draw.below(400));
        let text = ["own", "own", "noop"][draw.below(3) as usize];
        let swap = Order::Swap {
            member: Member(draw.below(volume.map.members.into()) as u16),
            lane: Lane(0),
            text: text.to_owned(),
            scheduler: scheduler(volume, text),
        };
        (at, swap)
    };
    let mut swaps: Vec<_> = (0..count).map(swap).collect();
    swaps.sort_by_key(|(at, _)| *at);
    swaps
}

/// Every third volume has no fault.
fn draw_count(seed: u64) -> u64 {
    seed % 3
}

fn ran(seed: u64) -> Ran {
    let mut volume = Volume::drawn(seed, REQUESTS);
    volume.map.parity = volume.map.members > 2 && seed.is_multiple_of(2);
    let mut draw = Draw::of(seed + 1_000_000);
    let members = volume.map.members;
    let slice = volume.stream.slice;
    let curve = Arc::clone(&volume.curve);
    let coordinator = Coordinator::new(members, &volume.stream, curve);
    let coordinator = SharedCell::new(coordinator);
    let (mut source, mut log) = (volume.clients(), String::new());
    let mut ran = Ran::default();
    // By member, the time at which a dedication began, and its end.
    let mut dedicated: Vec<Option<(Time, Time)>> = vec![None; members.into()];
    let mut observe = |now: Time, member: Member, seen: Seen<'_>| {
        let Seen::Event(Event::Directed(directive)) = seen else {
            return;
        };
        let dedicated = &mut dedicated[member.index()];
        match *directive {
            Directive::Mark(_) => ran.marks += 1,
            Directive::Release => *dedicated = None,
            Directive::Dedicate { until } => {
                let running = dedicated.filter(|(_, end)| *end > now);
                let began = running.map_or(now, |(began, _)| began);
                let span = until.saturating_since(began);
                assert!(span <= slice, "seed {seed}: {member:?} for {span:?}");
                *dedicated = Some((began, until));
            }
        }
    };
    let mut write = |piece: &str| log.push_str(piece);
    let mut setup = volume.setup(&mut source, Box::new(coordinator.clone()));
    let last = setup.stations.last_mut().expect("a volume has members");
    last.faults = faults(&mut draw, &volume);
    setup.orders = swaps(&mut draw, &volume);
    setup.timeout = Some(Nanos::from_millis(500));
    setup.audit = true;
    setup.log = Some(&mut write);
    setup.observer = Some(&mut observe);
    let report = run(setup).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(source.done(), "seed {seed}");
    assert_eq!(report.measured.requests, source.asked(), "seed {seed}");
    let stats = coordinator.lock().conducted().expect("it counts");
    (ran.slices, ran.broken) = (stats.slices, stats.broken);
    ran.failed = report.measured.failed;
    ran.timeouts = log.matches(" timeout\n").count() as u64;

    let engine = |_| Engine::new(volume.engine, volume.scheduler()).expect("in range");
    let engines: Vec<Engine> = (0..members).map(engine).collect();
    let again = log::replay_volume(&log, engines, |text| Some(scheduler(&volume, text)));
    let again = again.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    ran.swaps = again.swaps;
    ran.log = log;
    ran
}

#[test]
fn failing_disks_and_swaps_leave_no_request_behind_and_no_disk_dedicated_beyond_a_slice() {
    let mut all = Ran::default();
    for seed in 0..80 {
        let one = ran(seed);
        if seed % 20 < 2 {
            assert_eq!(one.log, ran(seed).log, "seed {seed}: another log");
        }
        all.slices += one.slices;
        all.broken += one.broken;
        all.timeouts += one.timeouts;
        all.failed += one.failed;
        all.swaps += one.swaps;
        all.marks += one.marks;
    }
    // Or the draw is of no use.
    assert!(all.slices > 100, "{}", all.slices);
    assert!(all.broken > 20, "{}", all.broken);
    assert!(all.timeouts > 10, "{}", all.timeouts);
    assert!(all.failed > 20, "{}", all.failed);
    assert!(all.swaps > 50, "{}", all.swaps);
    assert!(all.marks > 1_000, "{}", all.marks);
}

/// A mirror of a seed, with faults and swaps, under the audit. Returns the report's failed requests and the log.
fn mirror(seed: u64) -> (u64, String) {
    let volume = Volume::drawn(seed, REQUESTS);
    let mut draw = Draw::of(seed + 2_000_000);
    let members = volume.map.members;
    let sizes = vec![Sectors::new(volume.map.capacity()); members.into()];
    let reads = [ReadFrom::Nearest, ReadFrom::Alternate][draw.below(2) as usize];
    let map = headtime_engine::Striped::mirrored(reads, &sizes).expect("a mirror");
    let (mut source, mut log) = (volume.clients(), String::new());
    let mut write = |piece: &str| log.push_str(piece);
    let curve = Arc::clone(&volume.curve);
    let coordinator = Coordinator::new(members, &volume.stream, curve);
    let mut setup = volume.setup(&mut source, Box::new(coordinator));
    setup.conductor = None;
    setup.map = Some(Box::new(map));
    for station in &mut setup.stations {
        station.faults = faults(&mut draw, &volume);
    }
    setup.orders = swaps(&mut draw, &volume);
    setup.timeout = Some(Nanos::from_millis(500));
    setup.audit = true;
    setup.log = Some(&mut write);
    let report = run(setup).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(source.done(), "seed {seed}");
    assert_eq!(report.measured.requests, source.asked(), "seed {seed}");
    let engine = |_| Engine::new(volume.engine, volume.scheduler()).expect("in range");
    let engines: Vec<Engine> = (0..members).map(engine).collect();
    let again = log::replay_volume(&log, engines, |text| Some(scheduler(&volume, text)));
    again.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    (report.measured.failed, log)
}

#[test]
fn mirrors_with_failing_disks_answer_every_request() {
    let mut failed = 0;
    for seed in 0..60 {
        let (one, log) = mirror(seed);
        if seed % 20 < 2 {
            assert_eq!(log, mirror(seed).1, "seed {seed}: another log");
        }
        failed += one;
    }
    // Or the draw is of no use.
    assert!(failed > 20, "{failed}");
}
