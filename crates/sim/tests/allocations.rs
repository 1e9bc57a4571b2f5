//! Nothing is allocated per request in steady state: a run three times as long allocates no more
//! often, but for what grows with the logarithm of a span (histograms) or with a new record length
//! of a queue.

use headtime_disk::profile::{self, FirmwarePolicy};
use headtime_disk::{Model, drive::Drive};
use headtime_engine::Config;
use headtime_sched::Spec;
use headtime_sim::{Setup, run};
use headtime_units::Nanos;
use headtime_workload::{Pacing, ProcessSpec, Synthetic, SyntheticSpec, TimeDistribution};
use std::sync::Arc;

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// Allocations of a run of so many requests.
fn allocations(scheduler: &str, depth: u32, requests: u64) -> u64 {
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
    let workload = SyntheticSpec {
        count: Some(requests),
        ..SyntheticSpec::alike(1, 2, &process)
    };
    let spec: Spec = scheduler.parse().expect("registered");
    let scheduler = spec
        .build(Some(Arc::new(Model::new(&profile))))
        .expect("built");
    let config = Config {
        depth,
        ..Config::default()
    };
    let drive = Drive::new(&profile, 1);
    let mut source = Synthetic::new(&workload, profile.geometry.capacity, 512).expect("in range");
    let before = dhat::HeapStats::get().total_blocks;
    let report = run(Setup::new(drive, config, scheduler, &mut source)).expect("runs");
    assert_eq!(report.measured.requests, requests);
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
            let short = allocations(scheduler, depth, 10_000);
            let long = allocations(scheduler, depth, 30_000);
            assert!(
                long <= short + 10,
                "{scheduler} at depth {depth}: {short} allocations for 10,000 requests, {long} for 30,000"
            );
        }
    }
}
