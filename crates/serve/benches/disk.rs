//! Cost of a request between a front end and a device that answers at once: the queue, the engine, and the thread's
//! hand-over both ways.
//!
//! ```text
//! cargo bench -p headtime-serve --bench disk
//! ```

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_queue::ArrayQueue;
use headtime_engine::DriveTag;
use headtime_linux::clock::Clock;
use headtime_sched::{Backlog, Class, Flags, Noop, Op, Origin, Request, WorkConserving};
use headtime_serve::disk::{Disk, Options};
use headtime_serve::estimate::HeadTimeEstimate;
use headtime_serve::null::Null;
use headtime_serve::request::{Completer, Completion, Cut, Data, Submission};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use std::convert::Infallible;
use std::sync::Arc;

#[derive(Debug)]
struct Inbox(ArrayQueue<Completion>);

impl Completer for Inbox {
    fn complete(&self, completion: Completion) {
        // There is room for all that are submitted.
        let _ = self.0.push(completion);
    }
}

fn start() -> Disk {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new(
        "bench",
        Clock::start(),
        ("noop".to_owned(), Box::new(build)),
    );
    options.engine.depth = 32;
    Disk::start(options, || {
        Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(1 << 30), 32)) as Box<_>)
    })
    .expect("starts")
}

fn submit(disk: &Disk, inbox: &Arc<Inbox>, cookie: u64) {
    let submission = Submission {
        cookie,
        op: Op::Read,
        // Far apart, so that nothing merges.
        extent: Extent::new(Lba::new(cookie * 7919 % (1 << 26) * 16), Sectors::new(8)),
        cut: Cut::NONE,
        flags: Flags::NONE,
        origin: Origin::default(),
        class: Class::default(),
        arrived: disk.now(),
        data: Data::Buffer(disk.pool().take(4096)),
        to: Arc::clone(inbox) as Arc<_>,
    };
    disk.submit(submission).expect("there is room");
}

/// Number of requests of a round, with `depth` of them under way.
const REQUESTS: u64 = 4096;

fn round_trips(criterion: &mut Criterion) {
    let disk = start();
    let mut group = criterion.benchmark_group("null");
    group.throughput(Throughput::Elements(REQUESTS));
    group.sample_size(20);
    for depth in [1, 32] {
        let inbox = Arc::new(Inbox(ArrayQueue::new(depth as usize)));
        group.bench_function(format!("depth {depth}"), |bencher| {
            bencher.iter(|| {
                let (mut submitted, mut back) = (0, 0);
                while back < REQUESTS {
                    while submitted < REQUESTS && submitted - back < depth {
                        submit(&disk, &inbox, submitted);
                        submitted += 1;
                    }
                    match inbox.0.pop() {
                        Some(done) => back += u64::from(done.result.is_ok()),
                        None => std::hint::spin_loop(),
                    }
                }
            });
        });
    }
    group.finish();
    disk.stop().expect("stops");
}

/// Cost for a disk's thread of estimating the arm's time: random reads at depth 1, with all notifications of each
/// read.
fn estimate(criterion: &mut Criterion) {
    let profile = headtime_disk::profile::by_name("wd5000aaks").expect("it is shipped");
    let mut estimate = HeadTimeEstimate::new(&profile, 512);
    let mut group = criterion.benchmark_group("estimate");
    let (mut now, mut cookie) = (Time::ZERO, 0_u64);
    for sectors in [8, 1024] {
        group.bench_function(format!("{sectors} sectors"), |bencher| {
            bencher.iter(|| {
                cookie += 1;
                let extent = Extent::at(cookie * 7919 % (1 << 19) * 1024, sectors);
                let request = Request::new(DriveTag(0), Op::Read, extent, now);
                estimate.issue(now, &request);
                estimate.pending(now, Backlog::Nothing);
                now += Nanos::from_millis(12);
                estimate.completed(now, DriveTag(0));
                estimate.pending(now, Backlog::Nothing);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, round_trips, estimate);
criterion_main!(benches);
