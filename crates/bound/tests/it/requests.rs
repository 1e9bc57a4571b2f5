//! Replays and synthetic processes.

use crate::draw::{Random, SEEDS, World, array, extents, world};
use headtime_sched::{Flags, Op};
use headtime_units::{Bytes, Extent, Nanos, Time};
use headtime_workload::{
    ClosedPerProcess, ClosedReplay, Fit, Fitter, OpenReplay, Pacing, ProcessSpec, Script,
    SizeDistribution, Source, Speed, Start, Synthetic, SyntheticSpec, TimeDistribution, Trace,
    TraceRequest,
};
use std::sync::Arc;

enum Kind {
    Open,
    Closed(u32),
    PerProcess,
}

fn script(random: &mut Random, world: &World, count: u64) -> Arc<Script> {
    let geometry = &world.profile.geometry;
    let capacity = geometry.capacity.get();
    let writes = *random.pick(&[0, 0, 30, 100]);
    let gap_us = *random.pick(&[1, 500, 20_000]);
    let mut now = Time::ZERO;
    let requests = extents(random, capacity, count)
        .into_iter()
        .map(|extent| {
            now += Nanos::from_micros(random.below(gap_us));
            let mut flags = Flags::NONE;
            let op = match random.below(100) {
                share if share < writes => {
                    for (flag, percent) in
                        [(Flags::FUA, 10), (Flags::PREFLUSH, 3), (Flags::SYNC, 30)]
                    {
                        if random.chance(percent) {
                            flags = flags.with(flag);
                        }
                    }
                    Op::Write
                }
                98 if writes > 0 => Op::Flush,
                99 if writes > 0 => Op::Discard,
                _ => Op::Read,
            };
            TraceRequest {
                arrival: Some(now),
                completion: Some(now + Nanos::from_micros(random.below(2 * gap_us))),
                device: 0,
                op,
                extent: if op == Op::Flush {
                    Extent::default()
                } else {
                    extent
                },
                process: Some(random.below(3) as u32 + 1),
                flags,
            }
        })
        .collect();
    let fitter = Fitter::new(geometry.capacity, geometry.sector_bytes, Fit::Refuse);
    Arc::new(Script::new(&Trace::new(requests), &[], &fitter).expect("it fits"))
}

fn replay(script: &Arc<Script>, kind: &Kind) -> Box<dyn Source> {
    let script = Arc::clone(script);
    match kind {
        Kind::Open => {
            let replay = OpenReplay::new(script, Speed::default(), Start::AtOnce);
            Box::new(replay.expect("it has arrivals"))
        }
        Kind::Closed(outstanding) => Box::new(ClosedReplay::new(script, *outstanding)),
        Kind::PerProcess => Box::new(ClosedPerProcess::new(script).expect("it has processes")),
    }
}

fn replays(seed: u64, of: fn(&mut Random) -> World) {
    let mut random = Random::new(seed);
    let world = of(&mut random);
    let count = 1 + random.below(60);
    let script = script(&mut random, &world, count);
    let kind = match random.below(3) {
        0 => Kind::Open,
        1 => Kind::Closed(*random.pick(&[1, 2, 8, 100])),
        _ => Kind::PerProcess,
    };
    let bound = world
        .machine()
        .source(replay(&script, &kind).as_mut())
        .expect("few");
    let report = world.run(replay(&script, &kind).as_mut());
    assert!(
        bound.time() <= report.simulated,
        "seed {seed}: {:?} binds at {}, the run took {}: {}, {count} requests",
        bound.binds(),
        bound.time(),
        report.simulated,
        world.told,
    );
}

#[test]
fn no_replay_is_shorter_than_its_bound() {
    for seed in 0..SEEDS {
        replays(seed, world);
    }
}

#[test]
fn no_replay_on_an_array_is_shorter_than_its_bound() {
    for seed in 0..SEEDS / 3 {
        replays(seed, array);
    }
}

#[test]
#[ignore = "minutes; .ci/nightly"]
fn no_replay_is_shorter_than_its_bound_whatever_the_seed() {
    for seed in 0..20_000 {
        replays(1_000_000 + seed, world);
        replays(1_000_000 + seed, array);
    }
}

fn processes(random: &mut Random, world: &World) -> SyntheticSpec {
    let geometry = &world.profile.geometry;
    let sector = u64::from(geometry.sector_bytes);
    let bytes = geometry.capacity.bytes(geometry.sector_bytes);
    let width = (*random.pick(&[1 << 20, 100 << 20, bytes])).min(bytes) / 4096 * 4096;
    let from = random.below(bytes - width + 1) / 4096 * 4096;
    let kinds = 1 + random.below(4);
    let processes = (0..kinds)
        .map(|_| ProcessSpec {
            pacing: match random.chance(80) {
                true => Pacing::Closed {
                    think: *random.pick(&[
                        TimeDistribution::Constant(Nanos::ZERO),
                        TimeDistribution::Exponential(Nanos::from_millis(3)),
                    ]),
                    outstanding: 1 + random.below(4) as u32,
                },
                false => Pacing::Open {
                    gap: TimeDistribution::Exponential(Nanos::from_millis(4)),
                    outstanding: None,
                },
            },
            count: Some(1 + random.below(30)),
            read_share: *random.pick(&[0.0, 0.7, 1.0]),
            sequential_share: *random.pick(&[0.0, 0.5, 1.0]),
            size: SizeDistribution::Constant(Bytes(*random.pick(&[8, 64, 512]) * sector)),
            size_step: Bytes(sector),
            range: Some((Bytes(from), Bytes(from + width))),
            ..ProcessSpec::default()
        })
        .collect();
    SyntheticSpec {
        seed: random.below(1000),
        count: None,
        processes,
    }
}

#[test]
fn no_run_of_made_up_processes_is_shorter_than_its_bound() {
    (0..SEEDS).for_each(|seed| made_up(seed, world));
}

#[test]
fn no_run_of_made_up_processes_on_an_array_is_shorter_than_its_bound() {
    (0..SEEDS / 3).for_each(|seed| made_up(seed, array));
}

fn made_up(seed: u64, of: fn(&mut Random) -> World) {
    let mut random = Random::new(seed ^ 0x5eed);
    let world = of(&mut random);
    let spec = processes(&mut random, &world);
    let geometry = &world.profile.geometry;
    let source =
        || Synthetic::new(&spec, geometry.capacity, geometry.sector_bytes).expect("it fits");
    let bound = world.machine().source(&mut source()).expect("few");
    let report = world.run(&mut source());
    assert!(
        bound.time() <= report.simulated,
        "seed {seed}: {:?} binds at {}, the run took {}: {}, {spec:?}",
        bound.binds(),
        bound.time(),
        report.simulated,
        world.told,
    );
}

/// A drive that starts a write at once accepts the next command while it writes, even a command that is longer than the
/// buffer. This command completes with more unwritten sectors than the buffer holds.
#[test]
fn a_write_longer_than_the_buffer_behind_another_is_no_shorter_than_its_bound() {
    for (name, lens) in [
        ("atlas10k", [100, 3_000]),
        ("cheetah9lp", [8, 5_000]),
        ("barracuda-st32171w", [280, 281]),
    ] {
        let shipped = headtime_disk::profile::by_name(name).expect("shipped");
        let quick = shipped.with(|spec| {
            spec.noise = Default::default();
            spec.bus.interface_sector = Nanos::from_nanos(500);
        });
        let mut random = Random::new(1);
        let mut world = world(&mut random);
        world.profile = quick.expect("in range");
        world.layout = Arc::new(headtime_disk::Layout::new(&world.profile));
        (world.config.depth, world.config.merge) = (1, false);
        world.scheduler = "noop".parse().expect("registered");
        let geometry = &world.profile.geometry;
        let mut at = 1_000;
        let requests = lens.iter().map(|len| {
            at += len;
            TraceRequest {
                arrival: None,
                completion: None,
                device: 0,
                op: Op::Write,
                extent: Extent::at(at - len, *len),
                process: None,
                flags: Flags::NONE,
            }
        });
        let fitter = Fitter::new(geometry.capacity, geometry.sector_bytes, Fit::Refuse);
        let trace = Trace::new(requests.collect());
        let script = Arc::new(Script::new(&trace, &[], &fitter).expect("it fits"));
        let kind = Kind::Closed(1);
        let bound = world
            .machine()
            .source(replay(&script, &kind).as_mut())
            .expect("few");
        let report = world.run(replay(&script, &kind).as_mut());
        println!("{name}: {} of {}", bound.time(), report.simulated);
        assert!(
            bound.time() <= report.simulated,
            "{name}: {:?} binds at {}, the run took {}",
            bound.binds(),
            bound.time(),
            report.simulated
        );
    }
}
