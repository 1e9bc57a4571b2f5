//! Reports of runs: starvation shows, and a limit that is not reached changes nothing.

use headtime_disk::Part;
use headtime_disk::profile::{self, Profile};
use headtime_disk::{Model, drive::Drive};
use headtime_engine::log::{self, Decision, Record};
use headtime_engine::{Config, Lane, Member, Order, Plug, Seen};
use headtime_sched::{Flags, Scheduler, Spec, WaitStats};
use headtime_sim::{Report, RunError, Setup, run};
use headtime_units::{Bytes, Nanos, Time};
use headtime_workload::{
    Pacing, ProcessSpec, SizeDistribution, Synthetic, SyntheticSpec, TimeDistribution,
};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

fn drive() -> Profile {
    let quiet = |spec: &mut profile::Spec| spec.noise = Default::default();
    profile::by_name("wd5000aaks")
        .expect("shipped")
        .with(quiet)
        .expect("in range")
}

fn build(scheduler: &str) -> Box<dyn Scheduler> {
    let spec: Spec = scheduler.parse().expect("registered");
    spec.build(Some(Arc::new(Model::new(&drive()))))
        .expect("built")
}

fn swap(scheduler: &str) -> Order {
    Order::Swap {
        member: Member::default(),
        lane: Lane(0),
        text: scheduler.to_owned(),
        scheduler: build(scheduler),
    }
}

fn simulate(scheduler: &str, workload: &SyntheticSpec, change: impl FnOnce(&mut Setup)) -> Report {
    let profile = drive();
    let scheduler = build(scheduler);
    let mut source = Synthetic::new(workload, profile.geometry.capacity, 512).expect("in range");
    let drive = Drive::new(&profile, 1);
    let mut setup = Setup::new(drive, Config::default(), scheduler, &mut source);
    change(&mut setup);
    run(setup).expect("runs")
}

fn reader(outstanding: u32, range: (u64, u64)) -> ProcessSpec {
    ProcessSpec {
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding,
        },
        range: Some((
            Bytes(range.0 * 1_000_000_000),
            Bytes(range.1 * 1_000_000_000),
        )),
        ..ProcessSpec::default()
    }
}

/// Sixteen requests near each other starve one reader far away under SSTF, and the report says so.
#[test]
fn who_starves_is_seen() {
    let mut workload = SyntheticSpec::alike(1, 2, &reader(16, (0, 1)));
    workload.processes[1] = ProcessSpec {
        origin: workload.processes[1].origin,
        ..reader(16, (400, 410))
    };
    let limit = Nanos::from_secs(60);
    let starving = simulate("sstf", &workload, |setup| setup.limit = Some(limit)).measured;
    let fair = simulate("noop", &workload, |setup| setup.limit = Some(limit)).measured;
    assert_eq!(starving.origins.len(), 2, "both are reported");
    let [served, starved] = &starving.origins[..] else {
        unreachable!()
    };
    assert!(served.all().requests > 1000, "{}", served.all().requests);
    assert_eq!((starved.all().requests, starved.unfinished), (0, 16));
    assert!(served.writes.is_none() && starved.reads.is_none());
    assert_eq!(starved.oldest_unfinished, limit);
    assert_eq!(starved.throughput_mb_s(), 0.0);
    assert!(
        (starving.fairness() - 0.5).abs() < 1e-9,
        "{}",
        starving.fairness()
    );
    assert_eq!(starving.oldest_unfinished, limit);
    assert!(fair.fairness() > 0.99, "{}", fair.fairness());
    assert_eq!(fair.unfinished, 32);
}

/// A run whose work ends early ends with it.
#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let workload = SyntheticSpec {
        count: Some(100),
        ..SyntheticSpec::alike(1, 4, &ProcessSpec::default())
    };
    let free = simulate("noop", &workload, |_| {});
    let limited = simulate("noop", &workload, |setup| {
        setup.limit = Some(Nanos::from_secs(3600))
    });
    assert_eq!(free.simulated, limited.simulated);
    assert_eq!(free.head_time, limited.head_time);
    assert_eq!(free.measured.iops(), limited.measured.iops());
    assert_eq!(limited.measured.unfinished, 0);
    assert_eq!(limited.head_time.total(), limited.simulated);
}

/// Warm-up and measurement divide the time of the arm.
#[test]
fn the_warm_up_is_left_out() {
    let workload = SyntheticSpec {
        count: Some(400),
        ..SyntheticSpec::alike(1, 4, &ProcessSpec::default())
    };
    let warm = Nanos::from_secs(2);
    let whole = simulate("noop", &workload, |_| {});
    let part = simulate("noop", &workload, |setup| setup.warm_up = warm);
    assert_eq!(part.simulated, whole.simulated);
    assert_eq!(part.head_time.total() + warm, whole.head_time.total());
    assert!(part.measured.requests < whole.measured.requests);
    assert_eq!(part.engine.finished, 400);
}

/// A scheduler that waits reports its waits and their outcome, also if another scheduler replaces it.
#[test]
fn waits_are_reported_of_all_schedulers_of_a_run() {
    let mut workload = SyntheticSpec::alike(2, 3, &reader(1, (0, 1)));
    for (process, from) in workload.processes.iter_mut().zip([0, 300]) {
        *process = ProcessSpec {
            origin: process.origin,
            sequential_share: 1.0,
            ..reader(1, (from, from + 1))
        };
    }
    let limit = Nanos::from_secs(2);
    let waits = |scheduler: &str, swaps: &[(u64, &str)]| {
        let report = simulate(scheduler, &workload, |setup| {
            setup.limit = Some(limit);
            for (ms, text) in swaps {
                let at = Time::ZERO + Nanos::from_millis(*ms);
                setup.orders.push((at, swap(text)));
            }
        });
        report.waits
    };
    assert_eq!(waits("deadline", &[]), WaitStats::default());
    let cfq = waits("cfq", &[]);
    assert!(cfq.waits > 100 && cfq.waits_won > cfq.waits_lost, "{cfq:?}");
    let half = waits("cfq", &[(1_000, "noop")]);
    assert!(
        half.waits > 30 && half.waits < cfq.waits * 3 / 4,
        "{half:?}"
    );
    assert_eq!(half.waits, half.waits_won + half.waits_lost);
}

/// The run has no end of its own and no limit, so only the watcher can end it.
#[test]
fn a_run_that_is_watched_ends_when_the_watcher_says_so() {
    let workload = SyntheticSpec::alike(1, 2, &reader(4, (0, 1)));
    let profile = drive();
    let mut source = Synthetic::new(&workload, profile.geometry.capacity, 512).expect("in range");
    let mut seen = Vec::new();
    let mut watch = |now: Time, finished: u64| {
        seen.push((now, finished));
        match seen.len() {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let drive = Drive::new(&profile, 1);
    let mut setup = Setup::new(drive, Config::default(), build("noop"), &mut source);
    setup.progress = Some(&mut watch);
    let error = run(setup).expect_err("broken off");
    assert!(seen.is_sorted() && seen[0].1 > 0, "{seen:?}");
    assert_eq!(error, RunError::BrokenOff { at: seen[2].0 });
}

/// The observer of a run and its log see the same, in the same order.
#[test]
fn an_observer_sees_each_event_command_and_swap_that_the_log_has() {
    let process = ProcessSpec {
        read_share: 0.5,
        count: Some(200),
        ..reader(4, (0, 1))
    };
    let workload = SyntheticSpec::alike(1, 3, &process);
    let profile = drive();
    let mut source = Synthetic::new(&workload, profile.geometry.capacity, 512).expect("in range");
    let (mut text, mut seen) = (String::new(), Vec::new());
    let mut write = |piece: &str| text.push_str(piece);
    let mut observe = |now: Time, _: Member, what: Seen<'_>| {
        seen.push(match what {
            Seen::Event(event) => Record::Event(now, *event),
            Seen::Command(command) => Record::Decision(now, command.into()),
            Seen::Swapped(lane, text) => Record::Swapped(now, lane, text.to_owned()),
            Seen::GateSwapped(gate, schedulers) => {
                Record::GateSwapped(now, gate.to_owned(), schedulers.to_vec())
            }
        });
    };
    let drive = Drive::new(&profile, 1);
    let mut setup = Setup::new(drive, Config::default(), build("deadline"), &mut source);
    setup.log = Some(&mut write);
    setup.observer = Some(&mut observe);
    setup
        .orders
        .push((Time::ZERO + Nanos::from_secs(1), swap("cfq")));
    run(setup).expect("runs");
    let logged: Vec<Record> = log::read(&text)
        .map(|record| record.expect("reads back").1)
        .filter(|record| !matches!(record, Record::Setting { .. }))
        .collect();
    let finished = logged
        .iter()
        .filter(|record| matches!(record, Record::Decision(_, Decision::Finish { .. })));
    assert_eq!(finished.count(), 600);
    assert!(
        logged
            .iter()
            .any(|record| matches!(record, Record::Swapped(..)))
    );
    assert_eq!(seen, logged);
}

/// Reads, writes and other requests of an origin add up to the origin's total. The totals of all origins add up to
/// the run's total.
#[test]
fn kinds_of_requests_add_up_to_all() {
    let workload = SyntheticSpec {
        count: Some(600),
        ..SyntheticSpec::alike(
            5,
            3,
            &ProcessSpec {
                read_share: 0.7,
                ..ProcessSpec::default()
            },
        )
    };
    let measured = simulate("noop", &workload, |_| {}).measured;
    let (mut requests, mut bytes, mut reads) = (0, 0, 0);
    for origin in &measured.origins {
        let all = origin.all();
        let (read, written) = (
            origin.reads.as_ref().unwrap(),
            origin.writes.as_ref().unwrap(),
        );
        assert!(read.requests > written.requests && written.requests > 20);
        assert_eq!(all.requests, read.requests + written.requests);
        assert_eq!(all.requests, all.response.count());
        assert_eq!(
            all.response.max(),
            read.response.max().max(written.response.max())
        );
        let mean = |got: &headtime_sim::Got| got.response.mean_ms() * got.requests as f64;
        assert!((mean(&all) - mean(read) - mean(written)).abs() < 1e-6 * mean(&all));
        (requests, bytes) = (requests + all.requests, bytes + all.bytes);
        reads += read.requests;
    }
    assert_eq!((requests, bytes), (measured.requests, measured.bytes));
    assert_eq!(reads, measured.reads);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A scheduler that never waits has no time of waiting, also if other parts hold requests back. Every instant of
    /// the arm belongs to one part.
    #[test]
    fn only_who_chooses_to_wait_waits(
        scheduler in prop::sample::select(vec!["noop", "deadline", "clook", "sstf"]),
        name in prop::sample::select(vec!["wd5000aaks", "exos-x18", "atlas10k"]),
        depth in 1..4_u32,
        (plug, ahead) in any::<(bool, bool)>(),
        read_share in 0.0..1.0,
        preflush in any::<bool>(),
        outstanding in 1..4_u32,
        think in 0..20_u64,
        spread in 1..200_u64,
        seed in any::<u64>(),
    ) {
        let process = ProcessSpec {
            pacing: Pacing::Closed {
                think: TimeDistribution::Uniform(Nanos::ZERO, Nanos::from_millis(think)),
                outstanding,
            },
            read_share,
            write_flags: if preflush { Flags::PREFLUSH } else { Flags::NONE },
            // Near each other, so that some overlap.
            range: Some((Bytes(0), Bytes(spread * 65_536))),
            size: "uniform(4KiB..64KiB)".parse().expect("a distribution"),
            ..ProcessSpec::default()
        };
        let workload = SyntheticSpec {
            count: Some(150),
            ..SyntheticSpec::alike(seed, 3, &process)
        };
        let profile = profile::by_name(name).expect("shipped");
        let profile = profile.with(|spec| spec.queue.depth = spec.queue.depth.max(4)).expect("in range");
        let sector = profile.geometry.sector_bytes;
        let mut source = Synthetic::new(&workload, profile.geometry.capacity, sector).expect("in range");
        let config = Config {
            depth,
            commit_ahead: ahead,
            plug: plug.then_some(Plug::LINUX_2_6),
            ..Config::default()
        };
        let setup = Setup::new(Drive::new(&profile, seed), config, build(scheduler), &mut source);
        let report = run(setup).expect("runs");
        prop_assert_eq!(report.head_time.total(), report.simulated);
        prop_assert_eq!(report.head_time.get(Part::Waiting), Nanos::ZERO);
        if !plug && !preflush && read_share == 1.0 {
            prop_assert_eq!(report.head_time.get(Part::Held), Nanos::ZERO);
        }
    }
}

/// While barriers hold requests, the arm idles, and the scheduler has no time of waiting. A scheduler that waits has
/// some.
#[test]
fn time_behind_barriers_is_held() {
    let workload = |flags| {
        let process = ProcessSpec {
            read_share: 0.5,
            write_flags: flags,
            ..ProcessSpec::default()
        };
        SyntheticSpec {
            count: Some(300),
            ..SyntheticSpec::alike(3, 8, &process)
        }
    };
    let parts = |scheduler, flags| {
        let head_time = simulate(scheduler, &workload(flags), |_| {}).head_time;
        [Part::Waiting, Part::Held].map(|part| head_time.get(part))
    };
    let [waiting, held] = parts("noop", Flags::PREFLUSH);
    assert_eq!(waiting, Nanos::ZERO);
    assert!(held > Nanos::from_millis(5), "{held}");
    assert_eq!(parts("noop", Flags::NONE), [Nanos::ZERO; 2]);
    let readers = ProcessSpec {
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::from_micros(500)),
            outstanding: 1,
        },
        sequential_share: 1.0,
        ..ProcessSpec::default()
    };
    let readers = SyntheticSpec {
        count: Some(300),
        ..SyntheticSpec::alike(3, 2, &readers)
    };
    let head_time = simulate("anticipatory", &readers, |_| {}).head_time;
    let [waiting, held] = [Part::Waiting, Part::Held].map(|part| head_time.get(part));
    assert!(waiting > Nanos::from_millis(5), "{waiting}");
    assert_eq!(held, Nanos::ZERO);
}

/// Four clients that read on, each with 32 requests queued. The drive's buffer has the sectors that continue a request.
#[test]
fn sptf_reads_on_from_the_buffer() {
    let process = ProcessSpec {
        sequential_share: 1.0,
        size: SizeDistribution::Constant(Bytes(64 << 10)),
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding: 32,
        },
        ..ProcessSpec::default()
    };
    let workload = SyntheticSpec::alike(1, 4, &process);
    let [runs, position] = ["sptf", "sptf:runs=false"].map(|scheduler| {
        let limit = |setup: &mut Setup| setup.limit = Some(Nanos::from_secs(5));
        simulate(scheduler, &workload, limit).measured.requests
    });
    assert!(runs > position * 23 / 20, "{runs} {position}");
}
