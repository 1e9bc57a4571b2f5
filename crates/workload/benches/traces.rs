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
                outstanding: None,
            },
            read_share: 0.8,
            size: SizeDistribution::Exponential(Bytes(8192)),
            ..ProcessSpec::default()
        },
    )
}

/// Lines in DiskSim's format, like the lines of DiskSim's own trace.
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

/// The requests as MSR Cambridge lines.
fn msr(trace: &Trace) -> Vec<u8> {
    let mut text = String::new();
    for request in &trace.requests {
        let arrival = request.arrival.expect("recorded").as_nanos() / 100;
        let op = if request.op.is_read() {
            "Read"
        } else {
            "Write"
        };
        let (start, len) = (request.extent.start.get(), request.extent.len.get());
        writeln!(
            text,
            "{},src1,{},{op},{},{},{}",
            128_166_372_000_000_000 + arrival,
            request.device,
            start * 512,
            len * 512,
            arrival % 100_000,
        )
        .expect("strings take all");
    }
    text.into_bytes()
}

/// The requests as blkparse events, each complete after 5 ms.
fn blkparse(trace: &Trace) -> Vec<u8> {
    let mut text = String::new();
    for (number, request) in trace.requests.iter().enumerate() {
        let arrival = request.arrival.expect("recorded");
        let op = if request.op.is_read() { "R" } else { "WS" };
        let (start, len) = (request.extent.start, request.extent.len);
        for (action, delay) in [("Q", 0), ("G", 1), ("D", 3), ("C", 5_000)] {
            let at = arrival + Nanos::from_micros(delay);
            writeln!(
                text,
                "  8,{:<3}  1 {number:8} {:5}.{:09} {:5}  {action} {op:>3} {start} + {len} [x]",
                request.device * 16,
                at.as_nanos() / 1_000_000_000,
                at.as_nanos() % 1_000_000_000,
                100 + number % 7,
            )
            .expect("strings take all");
        }
    }
    text.into_bytes()
}

fn read(c: &mut Criterion) {
    let plain = ReadOptions::default();
    let trace = Trace::read("t", disksim().as_bytes(), &plain).expect("well-formed");
    let mut csv = Vec::new();
    trace.write_csv(&mut csv).expect("a vector takes all");
    let events = blkparse(&trace);
    let named = Trace::read("t", &events[..], &plain).expect("well-formed");
    let mut csv_with_names = Vec::new();
    let written = named.write_csv(&mut csv_with_names);
    written.expect("a vector takes all");
    let mut group = c.benchmark_group("read");
    for (name, text) in [
        ("disksim", disksim().into_bytes()),
        ("msr", msr(&trace)),
        ("blkparse", events),
        ("csv", csv.clone()),
        ("csv with names", csv_with_names),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| Trace::read("t", black_box(&text[..]), &plain).expect("well-formed"));
        });
    }
    group.throughput(Throughput::Bytes(csv.len() as u64));
    group.bench_function("write csv", |b| {
        b.iter(|| {
            let mut out = Vec::with_capacity(csv.len());
            black_box(&trace)
                .write_csv(&mut out)
                .expect("a vector takes all")
        });
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
