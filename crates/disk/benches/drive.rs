//! Commands through a drive: submission, events in between, completion.
//!
//! The addresses and sizes come from a random workload of 4 to 32 KiB, two thirds reads. The drive is the validated
//! Atlas 10K, at the depth and with the firmware policy of each case.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use headtime_disk::profile::{FirmwarePolicy, by_name};
use headtime_disk::{Command, Drive, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

/// Commands in one measurement.
const COMMANDS: u32 = 2_000;

fn commands() -> Vec<Command> {
    let mut random = 42_u64;
    let mut next = move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    (0..COMMANDS)
        .map(|tag| Command {
            tag,
            op: if next() % 3 > 0 { Op::Read } else { Op::Write },
            extent: Extent::at(next() % 17_900_000, 8 * (1 + next() % 8)),
            fua: false,
            high: false,
        })
        .collect()
}

/// Runs the commands at `depth`, with `pause` before each submission.
fn run(mut drive: Drive, commands: &[Command], depth: usize, pause: Nanos) -> Time {
    let mut now = Time::ZERO;
    let mut waiting = commands.iter();
    for command in waiting.by_ref().take(depth) {
        drive.submit(now, *command);
    }
    while let Some(next) = drive.next_event() {
        if let Some(completion) = drive.poll(next) {
            now = completion.at;
            if let Some(command) = waiting.next() {
                drive.submit(now + pause, *command);
            }
        }
    }
    now
}

fn drive(c: &mut Criterion) {
    let commands = commands();
    let atlas = by_name("atlas10k").expect("a shipped profile");
    let queued = |policy| {
        let change = atlas.with(|spec| {
            spec.queue.depth = 32;
            spec.queue.policy = policy;
        });
        change.expect("a valid profile")
    };
    let sptf = FirmwarePolicy::Sptf {
        margin: Nanos::ZERO,
        age_cap: None,
    };
    let cases: [(&str, Profile, usize, Nanos); 4] = [
        ("depth 1", atlas.clone(), 1, Nanos::ZERO),
        (
            "depth 1, idle between",
            atlas.clone(),
            1,
            Nanos::from_millis(40),
        ),
        (
            "depth 32, fifo",
            queued(FirmwarePolicy::Fifo),
            32,
            Nanos::ZERO,
        ),
        ("depth 32, sptf", queued(sptf), 32, Nanos::ZERO),
    ];
    let mut group = c.benchmark_group("drive");
    group.throughput(Throughput::Elements(u64::from(COMMANDS)));
    for (name, profile, depth, pause) in cases {
        let fresh = Drive::new(&profile, 1);
        group.bench_function(name, |b| {
            b.iter_batched(
                || fresh.clone(),
                |drive| run(drive, &commands, depth, pause),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, drive);
criterion_main!(benches);
