//! The emulated drive behind its disk's thread, in real time: however late the thread is, times are
//! the model's.

mod common;

use common::{Inbox, submission};
use headtime_disk::profile::by_name;
use headtime_disk::{Command, Drive, Hit};
use headtime_engine::log::{self, Decision, Record};
use headtime_engine::{DriveTag, Event, Outcome};
use headtime_linux::clock::Clock;
use headtime_sched::{Noop, Op, Request, WorkConserving};
use headtime_serve::device::{Aborted, Device, Done, Geometry, Parts};
use headtime_serve::disk::{Disk, Options};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::null::Null;
use headtime_serve::request::{Data, Submission};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::Random;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A log in memory. Clones share the bytes.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn request(disk: &Disk, cookie: u64, op: Op, extent: Extent, to: &Arc<Inbox>) -> Submission {
    let data = match op {
        Op::Read | Op::Write => Data::Buffer(disk.pool().take(extent.len.get() as usize * 512)),
        Op::Flush | Op::Discard => Data::None,
    };
    submission(disk, cookie, op, extent, data, Arc::clone(to) as Arc<_>)
}

/// Serves `requests` at `depth` and returns the log.
fn serve(depth: u32, requests: u64, store: StoreSpec) -> Vec<u8> {
    let sink = Sink::default();
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let mut options = Options::new("test", Clock::start(), ("noop".into(), Box::new(build)));
    options.engine.depth = depth;
    options.log = Some(Box::new(sink.clone()));
    let profile = by_name("wd5000aaks").expect("it is shipped");
    let disk = Disk::start(options, move || {
        let mut options = emulated::EmulatedOptions::new(profile, store);
        options.create = true;
        emulated::open(options).map(|device| Box::new(device) as Box<_>)
    })
    .expect("starts");
    let inbox = Inbox::new(64);
    let mut random = Random::new(3, 0, 0);
    let sectors = disk.geometry().capacity.get();
    let (mut under_way, mut has_changed) = (0, false);
    for cookie in 0..requests {
        let (op, extent) = match random.below(20) {
            // Other flushes do not go to the drive.
            0 if has_changed => (Op::Flush, Extent::at(0, 0)),
            1..4 => (Op::Write, Extent::at(random.below(sectors - 8), 8)),
            _ => (Op::Read, Extent::at(random.below(sectors - 8), 8)),
        };
        while under_way >= depth {
            assert_eq!(inbox.wait().result, Ok(()));
            under_way -= 1;
        }
        has_changed = op == Op::Write || has_changed && op != Op::Flush;
        let request = request(&disk, cookie, op, extent, &inbox);
        disk.submit(request).expect("there is room");
        under_way += 1;
    }
    for _ in 0..under_way {
        assert_eq!(inbox.wait().result, Ok(()));
    }
    disk.stop().expect("stops");
    let mut log = sink.0.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut log)
}

/// Gives a drive the commands of a log at their times. Returns the number of commands.
/// Flushes may come later, if the store had to be synced.
fn compare(log: &[u8], syncs: bool) -> u32 {
    let profile = by_name("wd5000aaks").expect("it is shipped");
    let mut drive = Drive::new(&profile, 1);
    let text = std::str::from_utf8(log).expect("a log is text");
    let mut same = 0;
    let mut last = Time::ZERO;
    for record in log::read(text) {
        match record.expect("the log can be read").1 {
            Record::Decision(at, Decision::Issue { tag, op, extent }) => drive.submit(
                at,
                Command {
                    tag: tag.0,
                    op,
                    extent,
                    fua: false,
                    high: false,
                },
            ),
            Record::Event(at, Event::Completed { tag, outcome }) => {
                assert_eq!(outcome, Outcome::Done);
                let completion = drive.poll(at).expect("it is done there too");
                assert_eq!(completion.tag, tag.0);
                match syncs && completion.hit == Hit::NoData {
                    true => assert!(at >= completion.at),
                    false => assert_eq!(completion.at, at),
                }
                assert!(at >= last);
                (same, last) = (same + 1, at);
            }
            _ => {}
        }
    }
    same
}

#[test]
fn the_log_has_the_times_of_the_model() {
    for depth in [1, 8] {
        let log = serve(depth, 100, StoreSpec::Memory);
        // And the flush at the end, which something has changed before.
        assert_eq!(compare(&log, false), 101);
    }
}

#[test]
fn syncing_a_file_delays_only_the_flush() {
    let name = format!("headtime-emulated-live-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let log = serve(8, 100, StoreSpec::File(path.clone()));
    std::fs::remove_file(path).expect("it was made");
    assert_eq!(compare(&log, true), 101);
}

/// A device in model time that is busy with itself every millisecond, and takes a command when it comes.
struct Restless {
    null: Null,
    now: Time,
    /// The command came at a time that had passed for it.
    early: Arc<AtomicBool>,
    done: Option<Done>,
}

impl Device for Restless {
    fn geometry(&self) -> Geometry {
        self.null.geometry()
    }

    fn in_model_time(&self) -> bool {
        true
    }

    fn next_event(&self) -> Option<Time> {
        let done = self.done.as_ref().map(|done| done.at);
        Some(done.unwrap_or(self.now + Nanos::from_millis(1)))
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        self.early.fetch_or(now < self.now, Ordering::SeqCst);
        self.now = self.now.max(now);
        self.done = Some(Done {
            tag: command.tag,
            at: self.now,
            result: Ok(()),
            parts,
        });
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        self.now = self.now.max(now);
        self.done.take()
    }

    fn abort(&mut self, _: Time, _: DriveTag) -> Aborted {
        Aborted::No
    }
}

/// Else the log would say that it went to the device at a time at which the device had come further.
#[test]
fn a_request_that_is_seen_late_comes_after_what_the_device_has_done_meanwhile() {
    let early = Arc::new(AtomicBool::new(false));
    let device = Restless {
        null: Null::new(Sectors::new(1 << 20), 1),
        now: Time::ZERO,
        early: Arc::clone(&early),
        done: None,
    };
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    let options = Options::new("test", Clock::start(), ("noop".to_owned(), Box::new(build)));
    let disk = Disk::start(options, move || {
        Ok::<_, Infallible>(Box::new(device) as Box<dyn Device>)
    })
    .expect("starts");
    let inbox = Inbox::new(1);
    let request = request(&disk, 0, Op::Read, Extent::at(0, 8), &inbox);
    let seen = disk.now() + Nanos::from_millis(50);
    while disk.now() < seen {
        std::thread::yield_now();
    }
    disk.submit(request).expect("there is room");
    assert_eq!(inbox.wait().result, Ok(()));
    disk.stop().expect("stops");
    assert!(!early.load(Ordering::SeqCst), "it went back in time");
}
