//! Random reads of 4 KiB from a file through a disk, without a front end. The result shows the library's own speed.
//! Compare it with fio's on the same file:
//!
//! ```text
//! cargo run --release -p headtime-serve --example file_reads -- FILE DEPTH REQUESTS [direct]
//! fio --name=r --filename=FILE --rw=randread --bs=4k --ioengine=io_uring --iodepth=DEPTH --runtime=5 --time_based
//! ```

use crossbeam_queue::ArrayQueue;
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Flags, Noop, Op, Origin, WorkConserving};
use headtime_serve::device::Device;
use headtime_serve::disk::{Disk, Options};
use headtime_serve::file;
use headtime_serve::request::{Completer, Completion, Cut, Data, Submission};
use headtime_units::{Extent, Lba, Sectors};
use std::sync::Arc;
use std::thread::{self, Thread};

/// Wakes the waiting thread, once a round.
#[derive(Debug)]
struct Inbox {
    done: ArrayQueue<Completion>,
    reader: Thread,
}

impl Completer for Inbox {
    fn complete(&self, completion: Completion) {
        // There is room for all that are submitted.
        let _ = self.done.push(completion);
    }

    fn wake(&self) {
        self.reader.unpark();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, depth, requests, rest @ ..] = &arguments[..] else {
        return Err("FILE DEPTH REQUESTS [direct]".into());
    };
    let (depth, requests): (u32, u64) = (depth.parse()?, requests.parse()?);
    let mut opened = file::FileOptions::new(path);
    opened.read_only = true;
    opened.direct = rest.iter().any(|word| word == "direct");
    opened.depth = depth;
    let clock = Clock::start();
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new("file", clock, ("noop".to_owned(), Box::new(build)));
    options.engine.depth = depth;
    let disk = Disk::start(options, move || {
        file::open(&opened).map(|file| Box::new(file) as Box<dyn Device>)
    })?;
    let inbox = Arc::new(Inbox {
        done: ArrayQueue::new(depth as usize),
        reader: thread::current(),
    });
    let sectors = 4096 / u64::from(disk.sector_bytes());
    let places = disk.geometry().capacity.get() / sectors;
    let mut place = 0u64;
    let (mut submitted, mut back) = (0, 0);
    let mut total = 0u64;
    let began = clock.now();
    while back < requests {
        while submitted < requests && submitted - back < u64::from(depth) {
            // A full-period generator modulo a power of two (Knuth, TAOCP 2, 3.3.4, MMIX).
            place = place
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let now = disk.now();
            let submission = Submission {
                cookie: now.as_nanos(),
                op: Op::Read,
                extent: Extent::new(
                    Lba::new((place >> 20) % places * sectors),
                    Sectors::new(sectors),
                ),
                cut: Cut::NONE,
                flags: Flags::NONE,
                origin: Origin::default(),
                class: Class::default(),
                arrived: now,
                data: Data::Buffer(disk.pool().take(4096)),
                to: Arc::clone(&inbox) as Arc<_>,
            };
            disk.submit(submission)
                .map_err(|_| "the queue has room for all")?;
            submitted += 1;
        }
        match inbox.done.pop() {
            Some(done) => {
                done.result?;
                total += disk.now().as_nanos() - done.cookie;
                back += 1;
            }
            None => thread::park(),
        }
    }
    let took = clock.now() - began;
    println!(
        "depth {depth}: {:.0} requests/s, mean {:.1} us",
        requests as f64 * 1e9 / took.as_nanos() as f64,
        total as f64 / requests as f64 / 1e3
    );
    disk.stop()?;
    Ok(())
}
