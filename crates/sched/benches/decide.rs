//! Cost of a decision: one insertion and one removal, with a constant number of pending requests.
//!
//! Addresses are random over the disk. The head moves to each taken request, and 4 ms pass. Positions come from the
//! synthetic disk of `testkit`. A prediction of this disk is a table, a division and two multiplications.
//!
//! For policies that wait for processes the cost is of a request from insertion to completion. Eight processes read
//! sequentially, with one request each.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use headtime_sched::{
    Dispatch, Elevator, HeadState, Knowledge, LbaIndex, NoPositioning, Op, Origin, Request,
    Scheduler, ServiceCurve, Spec, Tag,
};
use headtime_testkit::ToyMechanics;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use std::hint::black_box;
use std::sync::Arc;

const POLICIES: [&str; 9] = [
    "noop",
    "deadline",
    "mq-deadline",
    "clook",
    "clook:batch=16",
    "sstf",
    "sptf",
    "sptf:age_weight=0.03",
    "sptf-sw60",
];

/// Policies that wait, for processes or for streams.
const WAITING: &[&str] = &[
    "anticipatory",
    "anticipatory:hz=1000",
    "cfq",
    "bfq",
    "stream",
    "stream(noop)",
    "stream:lost=1",
    "stream:threshold=1000000",
    "clairvoyant",
];

/// Addresses without end: a linear congruential generator's upper half (Knuth's constants).
struct Addresses(u64, u64);

impl Iterator for Addresses {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some(((self.0 >> 32) * self.1) >> 32)
    }
}

/// A queue that is kept at a constant length.
struct Queue {
    elevator: Box<dyn Elevator>,
    addresses: Addresses,
    now: Time,
    head: HeadState,
}

impl Queue {
    fn new(policy: &str, pending: u32, disk: &Arc<ToyMechanics>) -> Queue {
        let spec: Spec = policy.parse().expect("a policy");
        let elevator = spec
            .build_elevator(Some(disk.clone()))
            .expect("with positions");
        let mut queue = Queue {
            elevator,
            addresses: Addresses(1, disk.sectors() - 8),
            now: Time::ZERO,
            head: HeadState::START,
        };
        for tag in 0..pending {
            queue.insert(Tag(tag));
        }
        queue
    }

    fn insert(&mut self, tag: Tag) {
        let lba = self.addresses.next().expect("there is no end");
        let op = if lba.is_multiple_of(3) {
            Op::Write
        } else {
            Op::Read
        };
        let request = Request::new(tag, op, Extent::at(lba, 8), self.now);
        self.elevator.insert(self.now, request);
    }

    fn step(&mut self) -> Request {
        let request = self
            .elevator
            .take(self.now, &self.head)
            .expect("it is never empty");
        self.head = HeadState::behind(&request);
        self.now += Nanos::from_millis(4);
        self.insert(request.tag);
        request
    }
}

fn decide(c: &mut Criterion) {
    let disk = Arc::new(ToyMechanics::new());
    for pending in [32, 4_096] {
        let mut group = c.benchmark_group(format!("decide/{pending}"));
        for policy in POLICIES {
            let mut queue = Queue::new(policy, pending, &disk);
            // Past the first sweeps, and with chunks and tags at their steady size.
            for _ in 0..4 * pending {
                queue.step();
            }
            group.bench_function(BenchmarkId::from_parameter(policy), |b| {
                b.iter(|| black_box(queue.step()));
            });
        }
        group.finish();
    }
}

/// Service times without positions: a curve of as many points as a learned one has.
fn knowledge() -> Knowledge<NoPositioning> {
    let time = |octave: u64| Nanos::from_micros(500 + 500 * octave);
    let points = (0..28).map(|octave| (Sectors::new((1 << octave) - 1), time(octave)));
    let curve = ServiceCurve::new(points.collect(), ServiceCurve::BACKWARD);
    Knowledge {
        positioning: None,
        curve: Some(Arc::new(curve.expect("a curve"))),
        ..Knowledge::default()
    }
}

/// Processes that read sequentially, each one request at a time, 100 us after the one before.
struct Readers {
    scheduler: Box<dyn Scheduler>,
    /// Next address of each process.
    at: Vec<u64>,
    /// Process that sends the next request.
    thinks: Option<u32>,
    now: Time,
}

impl Readers {
    fn new(policy: &str, processes: u32) -> Readers {
        let spec: Spec = policy.parse().expect("a policy");
        let mut readers = Readers {
            scheduler: spec.build(knowledge()).expect("a curve is enough"),
            at: (0..u64::from(processes))
                .map(|process| process << 24)
                .collect(),
            thinks: None,
            now: Time::ZERO,
        };
        for process in 0..processes {
            readers.ask(process);
        }
        readers
    }

    fn ask(&mut self, process: u32) {
        let at = &mut self.at[process as usize];
        let mut request = Request::new(Tag(process), Op::Read, Extent::at(*at, 256), self.now);
        request.origin = Origin {
            process,
            ..Origin::default()
        };
        *at += 256;
        self.scheduler.insert(self.now, request);
    }

    /// Serves a request in 2 ms. The request's process asks again after the next decision.
    fn step(&mut self) -> Request {
        loop {
            match (self.scheduler.dispatch(self.now), self.thinks.take()) {
                (Dispatch::Request(request), thinks) => {
                    if let Some(process) = thinks {
                        self.now += Nanos::from_micros(100);
                        self.ask(process);
                    }
                    self.now += Nanos::from_millis(2);
                    self.scheduler.completed(self.now, &request);
                    self.thinks = Some(request.origin.process);
                    return request;
                }
                (_, Some(process)) => {
                    self.now += Nanos::from_micros(100);
                    self.ask(process);
                }
                (Dispatch::IdleUntil(until), None) => self.now = until,
                (Dispatch::Empty, None) => unreachable!("eight requests are outstanding"),
            }
        }
    }
}

fn wait(c: &mut Criterion) {
    let mut group = c.benchmark_group("wait/8");
    for &policy in WAITING {
        let mut readers = Readers::new(policy, 8);
        for _ in 0..1_000 {
            readers.step();
        }
        group.bench_function(BenchmarkId::from_parameter(policy), |b| {
            b.iter(|| black_box(readers.step()));
        });
    }
    group.finish();
}

fn index(c: &mut Criterion) {
    let mut group = c.benchmark_group("index");
    for entries in [32, 64, 4_096, 100_000] {
        let mut addresses = Addresses(1, 1 << 32);
        let mut index = LbaIndex::new();
        for tag in 0..entries {
            index.insert(
                Lba::new(addresses.next().expect("there is no end")),
                Tag(tag),
            );
        }
        group.bench_function(BenchmarkId::new("replace", entries), |b| {
            b.iter(|| {
                let at = Lba::new(addresses.next().expect("there is no end"));
                let entry = index
                    .first_at_or_after(at)
                    .or(index.first())
                    .expect("entries");
                index.remove(entry.lba, entry.tag);
                let to = Lba::new(addresses.next().expect("there is no end"));
                index.insert(to, black_box(entry.tag));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decide, wait, index);
criterion_main!(benches);
