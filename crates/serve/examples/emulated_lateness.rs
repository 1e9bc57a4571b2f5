//! Lateness with which this machine delivers completions of an emulated drive: random reads, one at a time.
//!
//! ```text
//! cargo run --release --example emulated_lateness -- [--drive wd5000aaks] [--reads 2000]
//!     [--depth 1] [--sectors 8] [--real-time true]
//! ```

use crossbeam_queue::ArrayQueue;
use headtime_disk::profile::by_name;
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Flags, Noop, Op, Origin, WorkConserving};
use headtime_serve::disk::{Disk, Options};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::metrics::LATE;
use headtime_serve::request::{Completer, Completion, Cut, Data, Submission};
use headtime_units::{Extent, Time};
use headtime_workload::Random;
use std::error::Error;
use std::sync::Arc;
use std::thread::{Thread, current, park};

/// Keeps completions and wakes the waiting thread.
#[derive(Debug)]
struct Inbox {
    completions: ArrayQueue<Completion>,
    waits: Thread,
}

impl Completer for Inbox {
    fn complete(&self, completion: Completion) {
        self.completions
            .push(completion)
            .expect("room for what was submitted");
    }

    fn wake(&self) {
        self.waits.unpark();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut drive, mut reads, mut depth, mut sectors) = ("wd5000aaks".to_owned(), 2000, 1, 8);
    let mut real_time = true;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or("an option without a value")?;
        match argument.as_str() {
            "--drive" => drive = value,
            "--reads" => reads = value.parse()?,
            "--depth" => depth = value.parse()?,
            "--sectors" => sectors = value.parse()?,
            "--real-time" => real_time = value.parse()?,
            _ => return Err(format!("unknown option {argument}").into()),
        }
    }
    let profile = by_name(&drive).ok_or("no such drive")?;
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new("drive", Clock::start(), ("noop".into(), Box::new(build)));
    options.engine.depth = depth;
    options.real_time = real_time;
    let disk = Disk::start(options, move || {
        let options = emulated::EmulatedOptions::new(profile, StoreSpec::Memory);
        emulated::open(options).map(|device| Box::new(device) as Box<_>)
    })?;
    let inbox = Arc::new(Inbox {
        completions: ArrayQueue::new(depth as usize),
        waits: current(),
    });
    let mut random = Random::new(1, 0, 0);
    let room = disk.geometry().capacity.get() - sectors;
    let mut submit = |cookie| -> Result<(), Box<dyn Error>> {
        let bytes = sectors as usize * disk.sector_bytes() as usize;
        disk.submit(Submission {
            cookie,
            op: Op::Read,
            extent: Extent::at(random.below(room / sectors) * sectors, sectors),
            cut: Cut::NONE,
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::default(),
            arrived: disk.now(),
            data: Data::Buffer(disk.pool().take(bytes)),
            to: Arc::clone(&inbox) as Arc<_>,
        })
        .map_err(|_| "the disk does not take the request".into())
    };
    for cookie in 0..u64::from(depth) {
        submit(cookie)?;
    }
    let (mut submitted, mut done) = (u64::from(depth), 0);
    while done < reads {
        let Some(completion) = inbox.completions.pop() else {
            park();
            continue;
        };
        completion.result?;
        done += 1;
        if submitted < reads {
            submit(submitted)?;
            submitted += 1;
        }
    }
    let snapshot = tokio::runtime::Builder::new_current_thread()
        .build()?
        .block_on(disk.snapshot())?;
    disk.stop()?;
    let metrics = &snapshot.metrics;
    let lateness = metrics.lateness.read();
    println!(
        "{reads} reads of {sectors} sectors, depth {depth}, real time {real_time}: {}",
        snapshot.now - Time::ZERO
    );
    println!(
        "lateness: p50 {}, p99 {}, p99.9 {}, max {}; {} above {LATE}",
        lateness.quantile(0.5),
        lateness.quantile(0.99),
        lateness.quantile(0.999),
        lateness.max(),
        metrics.late,
    );
    let device = metrics.exports[0].device.read();
    println!(
        "in the model: mean {}, p50 {}, p95 {}, max {}",
        device.mean(),
        device.quantile(0.5),
        device.quantile(0.95),
        device.max(),
    );
    Ok(())
}
