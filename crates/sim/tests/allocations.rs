//! The simulation allocates nothing per request in steady state. A run three times as long has almost the same number
//! of allocations. Only histograms, which grow with the logarithm of a span, and new record lengths of queues may add
//! some.

use headtime_disk::Model;
use headtime_disk::drive::{Command, Drive};
use headtime_disk::profile::{self, FirmwarePolicy};
use headtime_engine::{Config, GateSpec};
use headtime_sched::{Class, Flags, Op, Spec};
use headtime_sim::{Setup, run};
use headtime_units::{Bytes, Extent, Nanos, Time};
use headtime_workload::{Pacing, Places, ProcessSpec, Synthetic, SyntheticSpec, TimeDistribution};
use std::sync::Arc;

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// Kind of requests.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Reads and writes anywhere.
    Anywhere,
    /// Requests in a few places, so that many wait for an overlapping request.
    Overlapping,
    /// Hundreds of requests anywhere in 16 KiB.
    Crowded,
    /// Each write is a flush and a forced write, and everything waits for flushes.
    Flushing,
    /// As a fio job can ask: sizes by table, some places more often than others, a sync now and then.
    Job,
}

impl Load {
    fn of(self, process: ProcessSpec) -> ProcessSpec {
        match self {
            Load::Anywhere => process,
            Load::Overlapping => ProcessSpec {
                range: Some((Bytes(0), Bytes(64 << 10))),
                ..process
            },
            Load::Crowded => ProcessSpec {
                pacing: Pacing::Closed {
                    think: TimeDistribution::Constant(Nanos::ZERO),
                    outstanding: 200,
                },
                range: Some((Bytes(0), Bytes(16 << 10))),
                align: Bytes(512),
                ..process
            },
            Load::Flushing => ProcessSpec {
                read_share: 0.9,
                write_flags: Flags::PREFLUSH.with(Flags::FUA),
                ..process
            },
            Load::Job => ProcessSpec {
                size: "4KiB/70:64KiB/30".parse().expect("a table"),
                places: Places::Zipf(1.1),
                fsync: Some(20),
                ..process
            },
        }
    }
}

/// Number of allocations of a run with this number of requests. With a gate each process has a class of its own.
fn allocations(scheduler: &str, gate: &str, depth: u32, requests: u64, load: Load) -> u64 {
    let profile = profile::by_name("atlas10k")
        .expect("shipped")
        .with(|spec| {
            spec.queue.depth = 32;
            spec.queue.policy = FirmwarePolicy::Sptf {
                margin: Nanos::ZERO,
                age_cap: None,
            };
        })
        .expect("in range");
    let process = ProcessSpec {
        pacing: Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding: 32,
        },
        read_share: 0.7,
        sequential_share: 0.3,
        ..ProcessSpec::default()
    };
    let mut workload = SyntheticSpec {
        count: Some(requests),
        ..SyntheticSpec::alike(1, 2, &load.of(process))
    };
    if gate != "depth" {
        for (class, process) in (0..).zip(&mut workload.processes) {
            process.class = Class(class);
        }
    }
    let spec: Spec = scheduler.parse().expect("registered");
    let build = || {
        spec.build(Some(Arc::new(Model::new(&profile))))
            .expect("built")
    };
    let config = Config {
        depth,
        ..Config::default()
    };
    let gate: GateSpec = gate.parse().expect("a gate");
    let gate = gate.build(&config).expect("it fits");
    let gate = gate.map(|gate| {
        let others = (1..gate.lanes()).map(|_| build()).collect();
        (gate, others)
    });
    let drive = Drive::new(&profile, 1);
    let mut source = Synthetic::new(&workload, profile.geometry.capacity, 512).expect("in range");
    let before = dhat::HeapStats::get().total_blocks;
    let mut setup = Setup::new(drive, config, build(), &mut source);
    setup.stations[0].gate = gate;
    let report = run(setup).expect("runs");
    // Flushes come on top.
    let made = report.measured.origins.iter().map(|of| {
        let reads = of.reads.as_ref().map_or(0, |got| got.requests);
        reads + of.writes.as_ref().map_or(0, |got| got.requests)
    });
    assert_eq!(made.sum::<u64>(), requests);
    dhat::HeapStats::get().total_blocks - before
}

#[test]
fn a_longer_run_allocates_no_more_often() {
    let _profiler = dhat::Profiler::builder().testing().build();
    for scheduler in [
        "noop",
        "deadline",
        "mq-deadline",
        "clook",
        "sstf",
        "sptf",
        "sptf-sw60",
    ] {
        for depth in [1, 32] {
            grows_no_more(scheduler, "depth", depth, Load::Anywhere);
        }
    }
    for scheduler in ["noop", "deadline", "cfq", "bfq"] {
        for load in [Load::Overlapping, Load::Flushing, Load::Job] {
            grows_no_more(scheduler, "depth", 8, load);
        }
    }
    for scheduler in [
        "noop",
        "deadline",
        "mq-deadline",
        "sptf",
        "anticipatory",
        "cfq",
        "bfq",
    ] {
        grows_no_more(scheduler, "depth", 8, Load::Crowded);
    }
    for gate in [
        "depth=20",
        "rsd:age_th=20",
        "head-time",
        "mclock:reservations=50",
        "rsd-priority:age_th=20:ranks=1/2/3",
        "rsd-priority:age_th=20:ranks=1/2/3:queue=single",
    ] {
        grows_no_more("deadline", gate, 32, Load::Anywhere);
    }
    grows_no_more("noop", "rsd-priority:age_th=5", 8, Load::Flushing);
    recording_what_is_written_allocates_nothing();
}

fn grows_no_more(scheduler: &str, gate: &str, depth: u32, load: Load) {
    let short = allocations(scheduler, gate, depth, 10_000, load);
    let long = allocations(scheduler, gate, depth, 30_000, load);
    assert!(
        long <= short + 10,
        "{scheduler} behind {gate} at depth {depth}, {load:?}: {short} allocations for 10,000 requests, {long} for \
         30,000"
    );
}

/// A server asks its drive after each event for the sectors that were written to the medium.
fn recording_what_is_written_allocates_nothing() {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    let mut drive = Drive::new(&profile, 1);
    drive.record_written(Time::ZERO, true);
    let (mut now, mut before, mut written) = (Time::ZERO, 0, 0);
    for turn in 0..20_000_u32 {
        if turn == 5_000 {
            (before, written) = (dhat::HeapStats::get().total_blocks, 0);
        }
        let extent = Extent::at(u64::from(turn.wrapping_mul(2_654_435_761)) % 900_000_000, 8);
        drive.submit(
            now,
            Command {
                tag: turn,
                op: Op::Write,
                extent,
                fua: turn % 5 == 0,
                high: false,
            },
        );
        loop {
            now = drive.next_event().expect("a write completes");
            written += drive.take_written(now).count();
            if drive.poll(now).is_some() {
                break;
            }
        }
    }
    assert!(written > 10_000, "{written}");
    let more = dhat::HeapStats::get().total_blocks - before;
    assert!(more <= 2, "{more} allocations for 15,000 writes");
}
