//! Simulated requests per second of wall clock: engine, scheduler, drive and measurement together.
//!
//! The workload is random 4 KiB reads, closed, on `atlas10k`, of 10,000 requests a run.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headtime_disk::profile::{self, FirmwarePolicy};
use headtime_disk::{Layout, Model, drive::Drive};
use headtime_engine::Config;
use headtime_sched::Spec;
use headtime_sim::{Setup, run};
use headtime_units::Nanos;
use headtime_workload::{Pacing, ProcessSpec, Synthetic, SyntheticSpec, TimeDistribution};
use std::hint::black_box;
use std::sync::Arc;

const REQUESTS: u64 = 10_000;

fn simulate(c: &mut Criterion) {
    let mut group = c.benchmark_group("sim");
    group.throughput(Throughput::Elements(REQUESTS));
    let sptf = FirmwarePolicy::Sptf {
        margin: Nanos::ZERO,
        age_cap: None,
    };
    for (name, scheduler, queued, depth, firmware) in [
        ("noop, depth 1", "noop", 1, 1, FirmwarePolicy::Fifo),
        ("noop, depth 32 fifo", "noop", 32, 32, FirmwarePolicy::Fifo),
        ("noop, depth 32 sptf firmware", "noop", 32, 32, sptf),
        (
            "deadline, 32 queued, depth 1",
            "deadline",
            32,
            1,
            FirmwarePolicy::Fifo,
        ),
        (
            "sptf, 32 queued, depth 1",
            "sptf",
            32,
            1,
            FirmwarePolicy::Fifo,
        ),
    ] {
        let profile = profile::by_name("atlas10k")
            .expect("shipped")
            .with(|spec| {
                spec.queue.depth = 32;
                spec.queue.policy = firmware;
            })
            .expect("in range");
        let layout = Arc::new(Layout::new(&profile));
        let model = Arc::new(Model::new(&profile));
        let spec: Spec = scheduler.parse().expect("registered");
        let process = ProcessSpec {
            pacing: Pacing::Closed {
                think: TimeDistribution::Constant(Nanos::ZERO),
                outstanding: queued,
            },
            ..ProcessSpec::default()
        };
        let workload = SyntheticSpec {
            count: Some(REQUESTS),
            ..SyntheticSpec::alike(1, 1, &process)
        };
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut source = Synthetic::new(
                    &workload,
                    profile.geometry.capacity,
                    profile.geometry.sector_bytes,
                )
                .expect("in range");
                let setup = Setup::new(
                    Drive::with_layout(&profile, layout.clone(), 1),
                    Config {
                        depth,
                        ..Config::default()
                    },
                    spec.build(Some(model.clone())).expect("built"),
                    &mut source,
                );
                black_box(run(setup).expect("runs"))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, simulate);
criterion_main!(benches);
