//! How fast traces are read, and requests are made.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headtime_units::{Bytes, Nanos, Sectors, Time};
use headtime_workload::{
    ClosedReplay, Fit, Fitter, Pacing, ProcessSpec, ReadOptions, Script, SizeDistribution, Source,
    Synthetic, SyntheticSpec, TimeDistribution, Trace,
};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

const REQUESTS: usize = 100_000;

/// Made-up processes that ask for anything.
fn spec() -> SyntheticSpec {
    SyntheticSpec::alike(
        1,
        14,
        &ProcessSpec {
            pacing: Pacing::Open {
                gap: TimeDistribution::Exponential(Nanos::from_millis(200)),
            },
            read_share: 0.8,
            size: SizeDistribution::Exponential(Bytes(8192)),
            ..ProcessSpec::default()
        },
    )
}

/// Lines in DiskSim's format like those of the trace that ships with it.
fn disksim() -> String {
    let mut source = Synthetic::new(&spec(), Sectors::new(2_400_000), 512).expect("it fits");
    let mut text = String::new();
    for _ in 0..REQUESTS {
        let now = source.next_arrival().expect("an open source goes on");
        let request = source.poll(now).expect("one is due");
        let nanos = now.as_nanos();
        writeln!(
            text,
            "{}.{:06}\t{}\t{}\t{}\t{}",
            nanos / 1_000_000,
            nanos % 1_000_000,
            request.origin.process,
            request.extent.start,
            request.extent.len,
            u8::from(request.op.is_read()),
        )
        .expect("strings take all");
    }
    text
}

fn read(c: &mut Criterion) {
    let options = ReadOptions::default();
    let mut group = c.benchmark_group("read");
    let text = disksim();
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("disksim", |b| {
        b.iter(|| Trace::read("t", black_box(text.as_bytes()), &options).expect("well-formed"));
    });
    group.finish();
}

fn sources(c: &mut Criterion) {
    let mut group = c.benchmark_group("source");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    let trace =
        Trace::read("t", disksim().as_bytes(), &ReadOptions::default()).expect("well-formed");
    let fitter = Fitter::new(Sectors::new(1_000_000), 512, Fit::Wrap);
    group.bench_function("script", |b| {
        b.iter(|| Script::new(black_box(&trace), &[], &fitter).expect("wrapped"));
    });
    let script = Arc::new(Script::new(&trace, &[], &fitter).expect("wrapped"));
    group.bench_function("closed", |b| {
        b.iter(|| drain(&mut ClosedReplay::new(script.clone(), 1), REQUESTS));
    });
    group.bench_function("synthetic", |b| {
        b.iter(|| {
            let mut source =
                Synthetic::new(&spec(), Sectors::new(2_400_000), 512).expect("it fits");
            drain(&mut source, REQUESTS)
        });
    });
    group.finish();
}

/// Serves requests in no time, one after another.
fn drain(source: &mut dyn Source, requests: usize) -> u64 {
    let (mut now, mut sum) = (Time::ZERO, 0_u64);
    for _ in 0..requests {
        now = now.max(source.next_arrival().expect("more is due"));
        let request = source.poll(now).expect("one is due");
        sum = sum.wrapping_add(request.extent.start.get());
        source.completed(now, request.cookie);
    }
    sum
}

criterion_group!(benches, read, sources);
criterion_main!(benches);
