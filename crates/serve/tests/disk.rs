//! A disk as front ends see it: over a device that answers at once, and over a faulty device.

mod common;

use common::{Inbox, now, submit};
use headtime_disk::drive::Fault;
use headtime_disk::profile::by_name;
use headtime_engine::{DriveTag, Engine, EngineSpec, log};
use headtime_linux::clock::Clock;
use headtime_sched::{Flags, NoPositioning, Noop, Op, Request, Scheduler, Spec, WorkConserving};
use headtime_serve::device::{Aborted, Control, Device, Done, Geometry, Parts};
use headtime_serve::disk::{
    BuildScheduler, Disk, NotCleared, Options, Refused, StartError, Stopped,
};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::faulty::{Faulty, Switch};
use headtime_serve::file;
use headtime_serve::null::Null;
use headtime_serve::request::{Completer, Completion, Data, Failure, Kind, Submission};
use headtime_testkit::Folder;
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, yield_now};

const SECTORS: u64 = 1 << 20;

fn options(clock: Clock) -> Options {
    let build = || Box::new(WorkConserving::new(Noop::new())) as Box<_>;
    Options::new("test", clock, ("noop".to_owned(), Box::new(build)))
}

fn null(options: Options, depth: u32) -> Result<Disk, StartError> {
    Disk::start(options, move || {
        Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(SECTORS), depth)) as Box<_>)
    })
}

/// Before a device that goes wrong when it is told to.
fn faulty(options: Options) -> (Disk, Arc<Switch>) {
    let switch = Arc::new(Switch::default());
    let shared = Arc::clone(&switch);
    let disk = Disk::start(options, move || {
        let device = Faulty::new(Null::new(Sectors::new(SECTORS), 32), shared);
        Ok::<_, Infallible>(Box::new(device) as Box<dyn Device>)
    });
    (disk.expect("starts"), switch)
}

fn inject(disk: &Disk, fault: Fault) {
    now(disk.control(Control::Fault(fault)))
        .expect("runs")
        .expect("can go wrong");
}

fn request(disk: &Disk, cookie: u64, op: Op, lba: u64, to: &Arc<Inbox>) -> Submission {
    common::request(disk, cookie, op, lba, Arc::clone(to) as Arc<_>)
}

fn read(disk: &Disk, cookie: u64, lba: u64, to: &Arc<Inbox>) -> Submission {
    request(disk, cookie, Op::Read, lba, to)
}

/// One request on its own.
fn ask(disk: &Disk, op: Op, lba: u64) -> Result<(), Failure> {
    let inbox = Inbox::new(1);
    let lba = if op == Op::Flush { 0 } else { lba };
    submit(disk, request(disk, 0, op, lba, &inbox));
    inbox.wait().result
}

fn kind(result: Result<(), Failure>) -> Option<Kind> {
    result.err().map(|failure| failure.kind)
}

fn spec(text: &str) -> Box<dyn Scheduler> {
    let spec: Spec = text.parse().expect("a scheduler");
    spec.build(None::<NoPositioning>).expect("needs nothing")
}

fn build(text: &'static str) -> BuildScheduler {
    Box::new(move || spec(text))
}

/// A log that stays in memory.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("whole").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    /// Replays the log with an engine that is built as the disk's engine was.
    fn replay(&self, config: &EngineSpec, scheduler: &str) -> log::Replayed {
        let bytes = self.0.lock().expect("whole");
        let text = std::str::from_utf8(&bytes).expect("is text");
        let engine = Engine::new(config.config(512), spec(scheduler)).expect("is in range");
        log::replay(text, engine, |text| Some(spec(text))).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Sink {
    /// Flushes that went to the device.
    fn flushes(&self) -> usize {
        let bytes = self.0.lock().expect("whole");
        let text = std::str::from_utf8(&bytes).expect("is text");
        let records = log::read(text).map(|record| record.expect("can be read").1);
        let flushes = records.filter(|record| {
            matches!(
                record,
                log::Record::Decision(_, log::Decision::Issue { op: Op::Flush, .. })
            )
        });
        flushes.count()
    }
}

#[test]
fn a_flush_goes_to_the_device_if_something_has_changed_since_the_last_one() {
    let sink = Sink::default();
    let mut options = options(Clock::start());
    options.log = Some(Box::new(sink.clone()));
    let (disk, switch) = faulty(options);
    let flush = || assert_eq!(ask(&disk, Op::Flush, 0), Ok(()));
    // An earlier server may have left changes.
    (0..3).for_each(|_| flush());
    let mut expected = 1;
    for op in [Op::Write, Op::Read, Op::Discard, Op::Read, Op::Write] {
        assert_eq!(ask(&disk, op, 800), Ok(()));
        (0..3).for_each(|_| flush());
        expected += usize::from(op != Op::Read);
    }
    // A write that is on its way when the flush comes: this flush goes, and so does the next one.
    inject(&disk, Fault::Stall(Nanos::from_millis(50)));
    let inbox = Inbox::new(2);
    submit(&disk, request(&disk, 0, Op::Write, 800, &inbox));
    submit(&disk, request(&disk, 1, Op::Flush, 0, &inbox));
    (0..2).for_each(|_| assert_eq!(inbox.wait().result, Ok(())));
    (0..3).for_each(|_| flush());
    expected += 2;
    // A write that failed may have changed something.
    switch.fail_writes(1);
    assert!(ask(&disk, Op::Write, 800).is_err());
    flush();
    switch.fail_writes(0);
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    (0..3).for_each(|_| flush());
    expected += 1;
    let metrics = now(disk.snapshot()).expect("runs");
    assert_eq!(
        metrics.metrics.exports[0].requests[Op::Flush as usize],
        3 + 5 * 3 + 1 + 3 + 1 + 3
    );
    disk.stop().expect("stops");
    // Nothing is left for the flush at the end.
    assert_eq!(sink.flushes(), expected);
}

#[test]
fn gigabytes_of_zeroes_go_in_steps_and_of_discards_in_one() {
    const SECTORS: u64 = 6 << 21;
    let disk = Disk::start(options(Clock::start()), || {
        Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(SECTORS), 32)) as Box<_>)
    });
    let disk = disk.expect("starts");
    let inbox = Inbox::new(3);
    for (cookie, op, data) in [
        (0, Op::Write, Data::Zeroes { may_punch: false }),
        (1, Op::Write, Data::Zeroes { may_punch: true }),
        (2, Op::Discard, Data::None),
    ] {
        let to = Arc::clone(&inbox) as Arc<_>;
        let extent = Extent::at(0, SECTORS);
        submit(
            &disk,
            common::submission(&disk, cookie, op, extent, data, to),
        );
        let done = inbox.wait();
        assert_eq!((done.cookie, done.result), (cookie, Ok(())));
    }
    let snapshot = now(disk.snapshot()).expect("runs");
    assert_eq!(snapshot.whole.engine.issued, 6 << 10 | 6 << 5 | 1);
    // A client's request counts once.
    let of = |op: Op| snapshot.metrics.exports[0].requests[op as usize];
    assert_eq!((of(Op::Write), of(Op::Discard)), (2, 1));
    assert_eq!(snapshot.metrics.exports[0].unfinished, 0);
    disk.stop().expect("stops");
}

#[test]
fn every_request_comes_back_once() {
    let disk = null(options(Clock::start()), 32).expect("starts");
    let inbox = Inbox::new(64);
    let (mut submitted, mut back) = (0, vec![0; 10_000]);
    for cookie in 0..back.len() as u64 {
        let mut request = read(&disk, cookie, cookie * 8 % (1 << 19), &inbox);
        submitted += 1;
        while let Err(Refused::Full(full)) = disk.submit(request) {
            request = full;
            yield_now();
        }
        if submitted >= 64 {
            let done = inbox.wait();
            assert_eq!(done.result, Ok(()));
            assert_eq!(
                done.data.into_buffer().map(|buffer| buffer.len()),
                Some(4096)
            );
            back[done.cookie as usize] += 1;
            submitted -= 1;
        }
    }
    for _ in 0..submitted {
        back[inbox.wait().cookie as usize] += 1;
    }
    assert!(back.iter().all(|times| *times == 1));
    disk.stop().expect("stops");
    assert!(matches!(
        disk.submit(read(&disk, 0, 0, &inbox)),
        Err(Refused::Stopped(_))
    ));
}

#[test]
fn a_depth_that_the_device_does_not_take() {
    let mut options = options(Clock::start());
    options.engine.depth = 33;
    let error = null(options, 32).expect_err("too deep");
    assert_eq!(
        error.to_string(),
        "disk test: depth 33 is more than the 32 commands that the device takes at a time"
    );
}

#[test]
fn threads_share_a_disk() {
    let mut options = options(Clock::start());
    options.queue = 16;
    let disk = null(options, 32).expect("starts");
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let disk = &disk;
            scope.spawn(move || {
                let inbox = Inbox::new(32);
                let mut back = vec![0; 5000];
                for cookie in 0..5000 {
                    if cookie >= 32 {
                        back[inbox.wait().cookie as usize] += 1;
                    }
                    let lba = (cookie * 4 + thread) * 8 % SECTORS;
                    submit(disk, read(disk, cookie, lba, &inbox));
                }
                for _ in 0..32 {
                    back[inbox.wait().cookie as usize] += 1;
                }
                assert!(back.iter().all(|times| *times == 1));
            });
        }
    });
    let snapshot = now(disk.snapshot()).expect("runs");
    assert_eq!(snapshot.whole.engine.finished, 20_000);
    disk.stop().expect("stops");
}

#[test]
fn one_request_at_a_time_is_never_left_behind() {
    // Each finds the thread at another point on its way to sleep.
    let disk = null(options(Clock::start()), 1).expect("starts");
    let inbox = Inbox::new(1);
    for cookie in 0..30_000u64 {
        submit(&disk, read(&disk, cookie, 0, &inbox));
        assert_eq!(inbox.wait().cookie, cookie);
        for _ in 0..cookie % 64 {
            std::hint::spin_loop();
        }
    }
    disk.stop().expect("stops");
}

#[test]
fn a_full_disk_pushes_back() {
    let mut options = options(Clock::start());
    options.queue = 4;
    options.unfinished = 4;
    let (disk, _) = faulty(options);
    inject(&disk, Fault::Stall(Nanos::from_secs(1)));
    let inbox = Inbox::new(64);
    for cookie in 0..8 {
        submit(&disk, read(&disk, cookie, cookie * 100, &inbox));
    }
    // Four are unfinished and four in the queue, as long as the stall lasts.
    let refused = disk.submit(read(&disk, 99, 0, &inbox));
    assert!(matches!(
        refused,
        Err(Refused::Full(Submission { cookie: 99, .. }))
    ));
    let waiting = now(disk.snapshot()).expect("runs").whole.waiting;
    assert!(waiting <= 4, "{waiting} wait");
    now(async {
        for cookie in 8..64 {
            let late = read(&disk, cookie, cookie * 100, &inbox);
            disk.submit_when_room(late).await.expect("there comes room");
        }
    });
    let mut back: Vec<u64> = (0..64).map(|_| inbox.wait().cookie).collect();
    back.sort_unstable();
    assert!(back.into_iter().eq(0..64));
    disk.stop().expect("stops");
}

#[test]
fn what_happens_is_in_the_log_in_time_though_the_disk_goes_on() {
    let sink = Sink::default();
    let mut options = Options::new("log", Clock::start(), ("noop".into(), build("noop")));
    options.log = Some(Box::new(sink.clone()));
    let disk = Disk::start(options, || {
        Ok::<_, Infallible>(Box::new(Null::new(Sectors::new(1 << 13), 1)) as Box<dyn Device>)
    });
    let disk = disk.expect("starts");
    assert_eq!(ask(&disk, Op::Read, 8), Ok(()));
    let has = |line: &str| String::from_utf8_lossy(&sink.0.lock().expect("whole")).contains(line);
    let clock = Clock::start();
    // A killed server would lose it.
    while !has("\nF ") {
        assert!(
            clock.now() < Time::ZERO + Nanos::from_millis(500),
            "not in half a second"
        );
        yield_now();
    }
    disk.stop().expect("stops");
}

#[test]
fn schedulers_swap_under_load_and_the_log_replays() {
    let config = EngineSpec {
        depth: 4,
        ..EngineSpec::default()
    };
    let sink = Sink::default();
    let mut options = options(Clock::start());
    options.engine = config.clone();
    options.log = Some(Box::new(sink.clone()));
    let (disk, switch) = faulty(options);
    disk.set_timeout(Some(Nanos::from_millis(20)));
    let sent = 12_000u64;
    thread::scope(|scope| {
        scope.spawn(|| {
            let inbox = Inbox::new(48);
            for cookie in 0..sent {
                if cookie >= 48 {
                    inbox.wait();
                }
                let op = match cookie % 16 {
                    0..9 => Op::Read,
                    9..14 => Op::Write,
                    14 => Op::Discard,
                    _ => Op::Flush,
                };
                // Some follow each other, some overlap.
                let lba = if op == Op::Flush {
                    0
                } else {
                    cookie * 37 % 2000 * 4
                };
                let mut new = request(&disk, cookie, op, lba, &inbox);
                if op == Op::Write && cookie % 3 == 0 {
                    new.flags = Flags::FUA.with(Flags::PREFLUSH);
                }
                submit(&disk, new);
            }
            for _ in 0..48 {
                inbox.wait();
            }
        });
        let texts = [
            "deadline",
            "clook",
            "cfq",
            "anticipatory",
            "sstf",
            "bfq",
            "noop",
        ];
        for round in 0..120 {
            let text = texts[round % texts.len()];
            disk.swap_scheduler(text, build(text));
            match round % 12 {
                3 => inject(&disk, Fault::LoseNext),
                6 => switch.fail_writes(1),
                9 => assert_ne!(now(disk.clear_failure()), Err(Stopped)),
                _ => {}
            }
            // Until it has come to that.
            now(disk.snapshot()).expect("runs");
            for _ in 0..200 {
                yield_now();
            }
        }
    });
    let snapshot = now(disk.snapshot()).expect("runs");
    assert_eq!(snapshot.whole.waiting, 0);
    // Pending faults take effect now.
    switch.fail_writes(0);
    while ask(&disk, Op::Read, 0).is_err() {}
    let cleared = now(disk.clear_failure()).expect("runs");
    assert!(matches!(cleared, Ok(()) | Err(NotCleared::NotFailed)));
    disk.stop().expect("stops");
    let replayed = sink.replay(&config, "noop");
    assert!(
        replayed.events > sent && replayed.decisions > sent,
        "{replayed:?}"
    );
}

#[test]
fn a_command_without_an_answer_is_given_up_on() {
    let mut options = options(Clock::start());
    options.timeout = Some(Nanos::from_millis(10));
    let (disk, switch) = faulty(options);
    inject(&disk, Fault::LoseNext);
    assert_eq!(kind(ask(&disk, Op::Read, 0)), Some(Kind::TimedOut));
    assert!(!disk.has_failed(), "a read changes nothing");
    assert_eq!(ask(&disk, Op::Read, 0), Ok(()));

    // A command that the device has not started comes back with its data. On a busy machine a short stall may end
    // before the command has come and timed out. The test then tries a longer stall.
    let inbox = Inbox::new(1);
    let stalled = [15, 150, 1_500, 15_000].into_iter().map(|ms| {
        inject(&disk, Fault::Stall(Nanos::from_millis(ms)));
        submit(&disk, read(&disk, 0, 0, &inbox));
        inbox.wait()
    });
    let mut late = stalled.skip_while(|done| done.result.is_ok());
    let done = late.next().expect("no stall outlasts the timeout");
    assert_eq!(kind(done.result), Some(Kind::TimedOut));
    assert!(done.data.into_buffer().is_some());
    while ask(&disk, Op::Read, 0).is_err() {}
    let timeouts = now(disk.snapshot()).expect("runs").whole.timeouts;

    switch.keep_lost(true);
    inject(&disk, Fault::LoseNext);
    submit(&disk, request(&disk, 1, Op::Write, 0, &inbox));
    let done = inbox.wait();
    assert_eq!(kind(done.result), Some(Kind::TimedOut));
    assert!(done.data.into_buffer().is_none(), "the device has it");
    assert!(disk.has_failed());
    assert_eq!(kind(ask(&disk, Op::Write, 800)), Some(Kind::ReadOnly));
    assert_eq!(now(disk.clear_failure()), Ok(Err(NotCleared::Abandoned(1))));
    switch.keep_lost(false);
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    assert_eq!(ask(&disk, Op::Write, 800), Ok(()));
    let all = now(disk.snapshot()).expect("runs").whole.timeouts;
    assert_eq!(all, timeouts + 1);
    disk.stop().expect("stops");
}

/// A device that reports a completion as imminent, and keeps it back.
struct Promises(Null, Arc<AtomicBool>);

impl Device for Promises {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        self.0.submit(now, command, parts);
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        match self.1.load(Ordering::SeqCst) {
            true => None,
            false => self.0.poll(now),
        }
    }

    fn abort(&mut self, _: Time, _: DriveTag) -> Aborted {
        Aborted::No
    }
}

#[test]
fn a_device_that_does_not_let_go_is_reported_once() {
    let mut options = options(Clock::start());
    options.timeout = Some(Nanos::from_millis(10));
    let keeps = Arc::new(AtomicBool::new(true));
    let its = Arc::clone(&keeps);
    let disk = Disk::start(options, move || {
        let null = Null::new(Sectors::new(SECTORS), 32);
        Ok::<_, Infallible>(Box::new(Promises(null, its)) as Box<dyn Device>)
    })
    .expect("starts");
    let inbox = Inbox::new(1);
    submit(&disk, read(&disk, 0, 0, &inbox));
    let timeouts = || now(disk.snapshot()).expect("runs").whole.timeouts;
    while timeouts() == 0 {
        yield_now();
    }
    let later = disk.now() + Nanos::from_millis(100);
    while disk.now() < later {
        yield_now();
    }
    assert_eq!(timeouts(), 1);
    assert!(inbox.poll().is_none(), "nobody knows how it ends");
    keeps.store(false, Ordering::SeqCst);
    disk.set_timeout(None);
    assert_eq!(inbox.wait().result, Ok(()));
    disk.stop().expect("stops");
}

#[test]
#[should_panic(expected = "export 3 of a disk of 3")]
fn a_request_of_an_export_that_there_is_not() {
    let mut options = options(Clock::start());
    options.exports = 3;
    let disk = null(options, 32).expect("starts");
    let mut new = read(&disk, 0, 0, &Inbox::new(1));
    new.origin.export = 3;
    let _ = disk.submit(new);
}

#[test]
fn a_start_that_fails_leaves_no_file_that_it_made() {
    let folder = Folder::new();
    let opened = |name: &str| file::FileOptions {
        size: Some(1 << 20),
        create: true,
        direct: false,
        depth: 4,
        ..file::FileOptions::new(folder.join(name))
    };
    let start = |name: &str, depth: u32| {
        let opened = opened(name);
        let mut options = options(Clock::start());
        options.engine.depth = depth;
        Disk::start(options, move || {
            file::open(&opened).map(|file| Box::new(file) as Box<dyn Device>)
        })
    };
    start("file", 5).expect_err("too deep");
    assert!(!folder.join("file").exists());
    start("file", 4).expect("starts").stop().expect("stops");
    start("file", 5).expect_err("too deep");
    assert!(folder.join("file").exists(), "it was there before");
    // Of no bytes.
    let mut odd = opened("odd");
    odd.size = Some(0);
    file::open(&odd).expect_err("refused");
    assert!(!folder.join("odd").exists());

    let emulate = |depth: u32| {
        let profile = by_name("wd5000aaks").expect("it is shipped");
        let store = StoreSpec::File(folder.join("store"));
        let mut options = options(Clock::start());
        options.engine.depth = depth;
        Disk::start(options, move || {
            let mut options = emulated::EmulatedOptions::new(profile, store);
            options.create = true;
            emulated::open(options).map(|drive| Box::new(drive) as Box<dyn Device>)
        })
    };
    emulate(1000).expect_err("too deep");
    assert!(!folder.join("store").exists());
    // Something else of the server cannot be started, or can.
    let start_and_end = |all: bool| {
        let disk = emulate(1).expect("starts");
        assert!(folder.join("store").exists());
        if !all {
            disk.remove_made();
        }
        disk.stop().expect("stops");
    };
    start_and_end(false);
    assert!(!folder.join("store").exists());
    start_and_end(true);
    start_and_end(false);
    assert!(folder.join("store").exists(), "it was there before");
}

#[test]
fn a_timeout_that_comes_later_counts_for_what_is_there() {
    let (disk, _) = faulty(options(Clock::start()));
    inject(&disk, Fault::LoseNext);
    let inbox = Inbox::new(1);
    submit(&disk, read(&disk, 0, 0, &inbox));
    // It has gone to the device, and nothing was said of how long it may take.
    while now(disk.snapshot()).expect("runs").whole.in_flight == 0 {}
    disk.set_timeout(Some(Nanos::from_millis(5)));
    assert_eq!(kind(inbox.wait().result), Some(Kind::TimedOut));
    disk.stop().expect("stops");
}

/// The deadline lies behind all times, and to work it out ended the thread of the disk.
#[test]
fn a_timeout_longer_than_time_goes_is_none() {
    let mut options = options(Clock::start());
    options.timeout = Some(Nanos::MAX);
    let (disk, _) = faulty(options);
    assert_eq!(ask(&disk, Op::Read, 0), Ok(()));
    inject(&disk, Fault::Stall(Nanos::MAX));
    let inbox = Inbox::new(1);
    submit(&disk, read(&disk, 0, 0, &inbox));
    while now(disk.snapshot()).expect("runs").whole.in_flight == 0 {}
    disk.set_timeout(Some(Nanos::MAX));
    disk.set_timeout(Some(Nanos::LONGEST));
    now(disk.snapshot()).expect("runs");
    assert!(inbox.poll().is_none(), "nobody has given up on it");
    disk.set_timeout(Some(Nanos::from_millis(1)));
    assert_eq!(kind(inbox.wait().result), Some(Kind::TimedOut));
    disk.stop().expect_err("nor is the last flush answered");
}

#[test]
fn what_waits_behind_a_lost_write_is_not_overtaken_by_it() {
    let mut options = options(Clock::start());
    options.timeout = Some(Nanos::from_millis(10));
    let (disk, switch) = faulty(options);
    switch.keep_lost(true);
    inject(&disk, Fault::LoseNext);
    let inbox = Inbox::new(3);
    // The second waits for the first, which may still happen when it was given up on.
    submit(&disk, request(&disk, 1, Op::Write, 0, &inbox));
    submit(&disk, request(&disk, 2, Op::Write, 4, &inbox));
    submit(&disk, request(&disk, 3, Op::Read, 0, &inbox));
    let mut ends = [1, 2, 3].map(|_| {
        let done = inbox.wait();
        (done.cookie, kind(done.result))
    });
    ends.sort_unstable_by_key(|(cookie, _)| *cookie);
    let kinds = ends.map(|(_, kind)| kind);
    assert_eq!(kinds, [Some(Kind::TimedOut), Some(Kind::ReadOnly), None]);
    disk.stop().expect("stops");
}

#[test]
fn all_parts_of_a_lost_command_end() {
    let mut options = options(Clock::start());
    options.timeout = Some(Nanos::from_millis(200));
    options.engine.merge_max = Bytes(1 << 25);
    let (disk, switch) = faulty(options);
    switch.keep_lost(true);
    inject(&disk, Fault::LoseNext);
    inject(&disk, Fault::LoseNext);
    let inbox = Inbox::new(2048);
    // The first is lost alone, and keeps the device busy until the others are one.
    for cookie in 0..2000 {
        let mut new = request(&disk, cookie, Op::Write, 10_000 + cookie, &inbox);
        new.extent.len = Sectors::new(1);
        new.data = Data::Buffer(disk.pool().take(512));
        if cookie == 0 {
            new.op = Op::Read;
            new.extent.start = Lba::ZERO;
        }
        submit(&disk, new);
    }
    for _ in 0..2000 {
        // A machine that is slow enough hands over some only after the others were given up on.
        let kind = kind(inbox.wait().result);
        assert!(
            matches!(kind, Some(Kind::TimedOut | Kind::ReadOnly)),
            "{kind:?}"
        );
    }
    assert!(now(disk.snapshot()).expect("runs").whole.engine.split > 0);
    assert_eq!(ask(&disk, Op::Read, 0), Ok(()));
    disk.stop().expect("stops");
}

#[test]
fn a_failed_write_makes_the_disk_read_only() {
    let (disk, switch) = faulty(options(Clock::start()));
    switch.fail_writes(1);
    let failure = ask(&disk, Op::Write, 0).expect_err("fails");
    assert_eq!((failure.kind, failure.errno), (Kind::Device, Some(5)));
    assert!(disk.has_failed());
    assert_eq!(kind(ask(&disk, Op::Write, 0)), Some(Kind::ReadOnly));
    assert_eq!(kind(ask(&disk, Op::Discard, 0)), Some(Kind::ReadOnly));
    assert_eq!(ask(&disk, Op::Read, 0), Ok(()));
    assert_eq!(ask(&disk, Op::Flush, 0), Ok(()), "of what was written");
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    assert_eq!(ask(&disk, Op::Write, 0), Ok(()));

    // After a flush that failed, none succeeds.
    switch.fail_flushes(1);
    assert_eq!(kind(ask(&disk, Op::Flush, 0)), Some(Kind::Device));
    assert_eq!(kind(ask(&disk, Op::Flush, 0)), Some(Kind::Device));
    assert_eq!(kind(ask(&disk, Op::Write, 0)), Some(Kind::ReadOnly));
    assert!(disk.stop().is_err(), "and not all is safe at the end");
}

/// A kernel tells once that it could not write something back.
#[test]
fn after_a_flush_that_failed_none_succeeds_that_was_asked_for_before() {
    let (disk, switch) = faulty(options(Clock::start()));
    inject(&disk, Fault::Stall(Nanos::from_millis(500)));
    switch.fail_flushes(1);
    let inbox = Inbox::new(4);
    for cookie in 0..2 {
        submit(&disk, request(&disk, cookie, Op::Flush, 0, &inbox));
    }
    let mut forced = request(&disk, 2, Op::Write, 0, &inbox);
    forced.flags = Flags::FUA;
    submit(&disk, forced);
    submit(&disk, request(&disk, 3, Op::Write, 800, &inbox));
    let mut kinds = [None; 4];
    for _ in 0..4 {
        let done = inbox.wait();
        kinds[done.cookie as usize] = kind(done.result);
    }
    let lost = Some(Kind::Device);
    assert_eq!(kinds, [lost, lost, lost, None]);
    assert!(disk.has_failed());

    // Clearing the failure does not make earlier writes durable.
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    inject(&disk, Fault::Stall(Nanos::from_millis(500)));
    switch.fail_flushes(1);
    let inbox = Inbox::new(3);
    for (cookie, op) in [(0, Op::Flush), (1, Op::Read), (2, Op::Flush)] {
        submit(&disk, request(&disk, cookie, op, 0, &inbox));
    }
    let first = inbox.wait();
    assert_eq!((first.cookie, kind(first.result)), (0, lost));
    assert_eq!(now(disk.clear_failure()), Ok(Ok(())));
    let mut left = [inbox.wait(), inbox.wait()];
    left.sort_by_key(|done| done.cookie);
    assert_eq!(left.map(|done| kind(done.result)), [None, lost]);
    assert_eq!(ask(&disk, Op::Flush, 0), Ok(()), "asked for after");
}

#[test]
fn an_error_reaches_the_request_it_belongs_to() {
    let (disk, _) = faulty(options(Clock::start()));
    let extent = Extent::at(1004, 2);
    inject(&disk, Fault::Unreadable { extent, retries: 3 });
    inject(&disk, Fault::Stall(Nanos::from_millis(500)));
    let inbox = Inbox::new(64);
    // The first request is in the device, and the others become a command after it.
    for cookie in 0..64 {
        submit(&disk, read(&disk, cookie, 800 + cookie * 8, &inbox));
    }
    for _ in 0..64 {
        let done = inbox.wait();
        match done.result {
            Ok(()) => assert_ne!(done.cookie, 25),
            Err(failure) => {
                assert_eq!(done.cookie, 25);
                assert_eq!(failure.kind, Kind::Medium);
                assert_eq!(failure.at, Some(Lba::new(1004)));
            }
        }
    }
    assert!(now(disk.snapshot()).expect("runs").whole.engine.split > 0);
    assert_eq!(ask(&disk, Op::Write, 1000), Ok(()));
    assert_eq!(ask(&disk, Op::Read, 1000), Ok(()), "written anew");
    disk.stop().expect("stops");
}

#[test]
fn what_was_taken_is_done_before_the_end() {
    let (disk, _) = faulty(options(Clock::start()));
    inject(&disk, Fault::Stall(Nanos::from_millis(30)));
    let inbox = Inbox::new(100);
    for cookie in 0..100 {
        submit(
            &disk,
            request(&disk, cookie, Op::Write, cookie * 64, &inbox),
        );
    }
    disk.stop().expect("stops");
    for _ in 0..100 {
        assert_eq!(inbox.wait().result, Ok(()));
    }
    assert_eq!(now(disk.clear_failure()), Err(Stopped));
    assert!(now(disk.snapshot()).is_err());
}

/// Counts, and forgets.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Completer for Counter {
    fn complete(&self, _: Completion) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn every_request_is_answered_however_the_disk_ends() {
    for round in 0..30 {
        let disk = null(options(Clock::start()), 8).expect("starts");
        let counter = Arc::new(Counter::default());
        let taken = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let dummy = Inbox::new(1);
                    loop {
                        let mut new = read(&disk, 0, 0, &dummy);
                        new.to = Arc::clone(&counter) as Arc<_>;
                        match disk.submit(new) {
                            Ok(()) => taken.fetch_add(1, Ordering::SeqCst),
                            Err(Refused::Full(_)) => continue,
                            Err(Refused::Stopped(_)) => return,
                        };
                    }
                });
            }
            while taken.load(Ordering::SeqCst) < 100 * round {
                yield_now();
            }
            disk.stop().expect("stops");
        });
        assert_eq!(
            counter.0.load(Ordering::SeqCst),
            taken.load(Ordering::SeqCst)
        );
    }
}
