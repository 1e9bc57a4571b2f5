//! Many requests in each other's way. All come at once, and the engine serves them to the last one.
//!
//! The benchmark measures the engine. The drive takes 32 commands and completes the oldest after 100 us of its own
//! time. The time for each request (of `n` per run) should grow with the logarithm of `n` and with cache misses of
//! the processor, not with `n`.
//!
//! The second group varies the scheduler. Overwrites of two blocks wait for each other, and go before as many later
//! reads elsewhere. In the third group as many processes as requests read one block.

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use headtime_engine::{Arrival, Command, Config, DriveTag, Engine, Event, Outcome, RequestId};
use headtime_sched::{Class, Flags, Knowledge, Op, Origin, Scheduler, ServiceCurve, Spec};
use headtime_testkit::ToyMechanics;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;

const DEPTH: u32 = 32;

/// Operation, first sector and number of sectors.
type Asked = (Op, u64, u64);

/// Name, and a function from a request's number and the number of requests.
type Shape = (&'static str, fn(u64, u64) -> Asked);

const SHAPES: &[Shape] = &[
    ("overwrites of a block", |_, _| (Op::Write, 64, 8)),
    ("overwrites of two blocks", |i, _| {
        (Op::Write, 64 + i % 2 * 800, 8)
    }),
    ("reads of a block", |_, _| (Op::Read, 64, 8)),
    ("reads of three blocks in a row", |i, _| {
        (Op::Read, 64 + i * 7 % 3 * 512, 512)
    }),
    ("reads of a block behind a write", |i, _| match i {
        0 => (Op::Write, 64, 8),
        _ => (Op::Read, 64, 8),
    }),
    ("each overlaps its neighbours", |i, _| {
        (Op::Write, 5 * i, 13)
    }),
    ("a large write over small ones", |i, n| {
        if i + 1 == n {
            (Op::Write, 3, 16 * n)
        } else {
            (Op::Write, 16 * i, 8)
        }
    }),
    ("small writes over a large one", |i, n| match i {
        0 => (Op::Write, 3, 16 * n),
        _ => (Op::Write, 16 * i, 8),
    }),
    ("large reads over small writes", |i, n| {
        if i < n / 2 {
            (Op::Write, 16 * i, 8)
        } else {
            (Op::Read, i % 64, 8 * n)
        }
    }),
    ("writes, and a flush", |i, n| {
        if i + 1 == n {
            (Op::Flush, 0, 0)
        } else {
            (Op::Write, 16 * i, 8)
        }
    }),
    ("a flush, and writes", |i, _| match i {
        0 => (Op::Write, 0, 8),
        1 => (Op::Flush, 0, 0),
        _ => (Op::Write, 16 * i, 8),
    }),
    ("flushes and overwrites in turn", |i, _| match i % 2 {
        0 => (Op::Flush, 0, 0),
        _ => (Op::Write, 64, 8),
    }),
    ("discards among writes and reads", |i, n| match i % 8 {
        0 => (Op::Discard, i * 7919 % n * 8, 1024),
        1..4 => (Op::Read, i * 7907 % n * 8, 64),
        _ => (Op::Write, i * 7901 % n * 8, 8),
    }),
    ("writes that overlap nothing", |i, n| {
        (Op::Write, i * 7919 % n * 16, 8)
    }),
];

/// Sends the requests, serves them, and returns the number of commands.
fn serve(scheduler: Box<dyn Scheduler>, processes: u32, asked: impl Iterator<Item = Asked>) -> u64 {
    let config = Config {
        depth: DEPTH,
        ..Config::default()
    };
    let mut engine = Engine::new(config, scheduler).expect("in range");
    let mut in_drive = VecDeque::with_capacity(DEPTH as usize);
    let mut now = Time::ZERO;
    for (id, (op, start, len)) in (0..).zip(asked) {
        now += Nanos::from_nanos(1);
        let arrival = Arrival {
            id: RequestId::Client(id),
            op,
            extent: Extent::at(start, len),
            flags: Flags::NONE,
            origin: Origin {
                process: id as u32 % processes,
                ..Origin::default()
            },
            class: Class::default(),
            since: None,
        };
        engine.handle(now, Event::Arrived(arrival));
        poll(&mut engine, now, &mut in_drive);
    }
    while !engine.is_idle() {
        let event = match in_drive.pop_front() {
            Some(tag) => {
                now += Nanos::from_micros(100);
                let outcome = Outcome::Done;
                Event::Completed { tag, outcome }
            }
            None => {
                now = now.max(engine.next_wakeup().expect("it waits for something"));
                Event::Woke
            }
        };
        engine.handle(now, event);
        poll(&mut engine, now, &mut in_drive);
    }
    assert_eq!(engine.stats().finished, engine.stats().arrived);
    engine.stats().issued
}

fn poll(engine: &mut Engine, now: Time, in_drive: &mut VecDeque<DriveTag>) {
    while let Some(command) = engine.poll(now) {
        if let Command::Issue(request) = command {
            in_drive.push_back(request.tag);
        }
    }
}

/// Model and curve of the disk for schedulers that use them.
fn knowledge() -> Knowledge<Arc<ToyMechanics>> {
    let time = |octave: u64| Nanos::from_micros(500 + 500 * octave);
    let points = (0..28).map(|octave| (Sectors::new((1 << octave) - 1), time(octave)));
    let curve = ServiceCurve::new(points.collect(), ServiceCurve::BACKWARD);
    Knowledge {
        positioning: Some(Arc::new(ToyMechanics::new())),
        curve: Some(Arc::new(curve.expect("a curve"))),
        ..Knowledge::default()
    }
}

fn scheduler(text: &str) -> Box<dyn Scheduler> {
    let spec: Spec = text.parse().expect("a scheduler");
    spec.build(knowledge()).expect("nothing is missing")
}

fn shapes(c: &mut Criterion) {
    for (name, shape) in SHAPES {
        let mut group = c.benchmark_group(*name);
        group.sampling_mode(SamplingMode::Flat).sample_size(10);
        for n in [1_000, 10_000, 100_000, 1_000_000] {
            group.throughput(Throughput::Elements(n));
            group.bench_function(BenchmarkId::from_parameter(n), |b| {
                b.iter(|| black_box(serve(scheduler("noop"), 4, (0..n).map(|i| shape(i, n)))));
            });
        }
        group.finish();
    }
}

fn schedulers(c: &mut Criterion) {
    let mut group = c.benchmark_group("overwrites released in front of reads");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for text in [
        "noop",
        "deadline",
        "mq-deadline",
        "clook:batch=16",
        "sstf",
        "anticipatory",
        "cfq",
        "bfq",
        "stream",
        "sptf",
    ] {
        // Each read elsewhere has a place of its own, and each decision of SPTF looks at the places that could be
        // nearest.
        let sizes: &[u64] = match text {
            "sptf" => &[1_000, 10_000],
            _ => &[1_000, 10_000, 100_000],
        };
        for &n in sizes {
            group.throughput(Throughput::Elements(n));
            group.bench_function(BenchmarkId::new(text, n), |b| {
                let asked = move |i: u64| match i {
                    i if i < n / 2 => (Op::Write, 64 + i % 2 * 800, 8),
                    i => (Op::Read, 100_000 + i * 7919 % n * 16, 8),
                };
                b.iter(|| black_box(serve(scheduler(text), 4, (0..n).map(asked))));
            });
        }
    }
    group.finish();
}

fn processes(c: &mut Criterion) {
    let mut group = c.benchmark_group("reads of a block by as many processes");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for text in ["anticipatory", "cfq"] {
        for n in [1_000, 10_000, 100_000] {
            group.throughput(Throughput::Elements(n));
            group.bench_function(BenchmarkId::new(text, n), |b| {
                let asked = |_| (Op::Read, 64, 8);
                b.iter(|| black_box(serve(scheduler(text), n as u32, (0..n).map(asked))));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, shapes, schedulers, processes);
criterion_main!(benches);
