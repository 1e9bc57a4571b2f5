//! Requests that the device has not begun in time end with an error. The device keeps its commands until a test lets them
//! go, so no result depends on the speed of the machine.

mod common;

use common::{Inbox, Tape, now, scheduler, submission, submit};
use headtime_engine::{DriveTag, EngineSpec};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Flags, Op, Origin, Request};
use headtime_serve::device::{Aborted, Device, Done, Geometry, Parts};
use headtime_serve::disk::{Disk, ExportShare, MemberOptions, Options, ShareBy, Volume};
use headtime_serve::metrics::ExportMetrics;
use headtime_serve::null::Null;
use headtime_serve::request::{Completion, Cut, Data, Failure, Kind, Submission};
use headtime_testkit::Striped;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::yield_now;

const SECTORS: u64 = 1 << 16;

const NOT_BEGUN: Result<(), Failure> = Err(Failure::new(Kind::NotBegun));

/// Commands that a device was given, and how many of them the device may complete.
#[derive(Default)]
struct Bench {
    completes: AtomicU64,
    given: Mutex<Vec<(Op, Extent)>>,
}

impl Bench {
    fn given(&self) -> Vec<(Op, Extent)> {
        self.given.lock().expect("no panic").clone()
    }

    /// Waits until the device has been given this number of commands.
    fn has(&self, count: usize) {
        let clock = Clock::start();
        while self.given().len() < count {
            assert!(
                clock.now() < Time::ZERO + Nanos::from_secs(60),
                "no command"
            );
            yield_now();
        }
    }
}

struct Keeping(Null, Arc<Bench>);

impl Device for Keeping {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        let mut given = self.1.given.lock().expect("no panic");
        given.push((command.op, command.extent));
        self.0.submit(now, command, parts);
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        let completes = &self.1.completes;
        if completes.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let done = self.0.poll(now)?;
        completes.fetch_sub(1, Ordering::SeqCst);
        Some(done)
    }

    fn abort(&mut self, _: Time, _: DriveTag) -> Aborted {
        Aborted::No
    }
}

fn options(by: ShareBy) -> Options {
    let build = || scheduler("deadline");
    let mut options = Options::new("test", Clock::start(), ("deadline".into(), Box::new(build)));
    options.engine = EngineSpec {
        depth: 1,
        ..EngineSpec::default()
    };
    options.audit = true;
    options.exports = 2;
    options.shares = match by {
        ShareBy::None => Vec::new(),
        by => vec![ExportShare { weight: 1, by }; 2],
    };
    options
}

/// A disk over a device that keeps its commands.
fn stuck(options: Options) -> (Disk, Arc<Bench>) {
    let bench = Arc::new(Bench::default());
    let its = Arc::clone(&bench);
    let disk = Disk::start(options, move || {
        let null = Null::new(Sectors::new(SECTORS), 32);
        Ok::<_, Infallible>(Box::new(Keeping(null, its)) as Box<dyn Device>)
    });
    (disk.expect("starts"), bench)
}

/// Lets requests wait without a bound, and the device complete its commands.
fn let_go(disk: &Disk, bench: &Bench) {
    bench.completes.store(u64::MAX, Ordering::SeqCst);
    // The order wakes the disk's thread.
    disk.set_queue_timeout(None);
}

fn of(disk: &Disk, export: u16, cookie: u64, op: Op, lba: u64, to: &Arc<Inbox>) -> Submission {
    let lba = if op == Op::Flush { 0 } else { lba };
    let origin = Origin {
        export,
        ..Origin::default()
    };
    Submission {
        origin,
        ..common::request(disk, cookie, op, lba, Arc::clone(to) as Arc<_>)
    }
}

fn ask(disk: &Disk, op: Op, lba: u64) -> Result<(), Failure> {
    let inbox = Inbox::new(1);
    submit(disk, of(disk, 0, 0, op, lba, &inbox));
    inbox.wait().result
}

/// The completions of a number of requests, by cookie. Each request has one.
fn all(inbox: &Inbox, count: u64) -> Vec<Completion> {
    let mut done: Vec<Completion> = (0..count).map(|_| inbox.wait()).collect();
    done.sort_by_key(|done| done.cookie);
    assert!(done.iter().map(|done| done.cookie).eq(0..count));
    done
}

fn exports(disk: &Disk) -> Vec<ExportMetrics> {
    now(disk.snapshot()).expect("runs").metrics.exports
}

/// Two clients ask a device that does not answer.
fn requests_behind_a_stuck_command_end(by: ShareBy) {
    let tape = Tape::default();
    let mut options = options(by);
    options.log = Some(Box::new(tape.clone()));
    let (disk, bench) = stuck(options);
    let first = Inbox::new(1);
    submit(&disk, of(&disk, 0, 0, Op::Write, 800, &first));
    bench.has(1);
    disk.set_queue_timeout(Some(Nanos::from_millis(1)));
    let inbox = Inbox::new(400);
    for cookie in 0..200 {
        let op = [Op::Read, Op::Write, Op::Discard, Op::Flush][cookie as usize % 4];
        // Some overlap the stuck write, some each other, some touch.
        let mut new = of(&disk, cookie as u16 % 2, cookie, op, 780 + cookie, &inbox);
        match cookie % 20 {
            1 => new.flags = Flags::PREFLUSH.with(Flags::FUA),
            5 => new.cut = Cut { head: 3, tail: 5 },
            9 => new.class = Class::REAL_TIME,
            _ => {}
        }
        submit(&disk, new);
    }
    for done in all(&inbox, 200) {
        assert_eq!(done.result, NOT_BEGUN, "{}", done.cookie);
        let moves = done.cookie % 4 < 2;
        assert_eq!(done.data.into_buffer().is_some(), moves, "{}", done.cookie);
    }
    assert!(first.poll().is_none(), "the device has this one");
    assert!(!disk.has_failed(), "nothing has happened to the medium");
    for export in exports(&disk) {
        assert!(export.expired >= 100, "{}", export.expired);
        assert!(export.failed.iter().sum::<u64>() >= 100);
        assert!(export.unfinished <= 1);
    }
    let_go(&disk, &bench);
    assert_eq!(first.wait().result, Ok(()));
    // The same sectors can be written anew, once.
    assert_eq!(ask(&disk, Op::Write, 784), Ok(()));
    assert_eq!(ask(&disk, Op::Flush, 0), Ok(()));
    let at = |lba, sectors| Extent::at(lba, sectors);
    let expected = [
        (Op::Write, at(800, 8)),
        (Op::Write, at(784, 8)),
        (Op::Flush, at(0, 0)),
    ];
    assert_eq!(bench.given(), expected);
    let state = now(disk.snapshot()).expect("runs").whole;
    assert_eq!((state.errors, state.waiting, state.in_flight), (0, 0, 0));
    let unfinished = exports(&disk).iter().map(|of| of.unfinished).sum::<u64>();
    assert_eq!(unfinished, 0);
    disk.stop().expect("stops");
    assert!(first.poll().is_none() && inbox.poll().is_none());
    // A flush that was not begun takes nothing from the next one.
    let flushes = bench
        .given()
        .iter()
        .filter(|(op, _)| *op == Op::Flush)
        .count();
    assert_eq!(flushes, 1, "nothing has changed since");
    let engine = headtime_engine::Engine::new(
        EngineSpec {
            depth: 1,
            ..EngineSpec::default()
        }
        .config(512),
        scheduler("deadline"),
    );
    let replayed = headtime_engine::log::replay(&tape.text(), engine.expect("in range"), |text| {
        Some(scheduler(text))
    });
    assert!(replayed.expect("decides the same").decisions > 0);
}

#[test]
fn requests_of_two_clients_behind_a_stuck_command_end_and_the_command_stays() {
    requests_behind_a_stuck_command_end(ShareBy::Export);
}

#[test]
fn requests_behind_a_stuck_command_end_on_a_disk_without_shares() {
    requests_behind_a_stuck_command_end(ShareBy::None);
}

#[test]
fn requests_wait_without_a_bound_unless_they_are_told() {
    let (disk, bench) = stuck(options(ShareBy::Export));
    let inbox = Inbox::new(4);
    for cookie in 0..4 {
        let mut new = of(&disk, 0, cookie, Op::Read, 100 * cookie, &inbox);
        new.arrived = Time::ZERO;
        submit(&disk, new);
    }
    bench.has(1);
    now(disk.snapshot()).expect("runs");
    assert!(inbox.poll().is_none());
    let_go(&disk, &bench);
    assert!(all(&inbox, 4).iter().all(|done| done.result.is_ok()));
    disk.stop().expect("stops");
}

#[test]
fn the_age_of_a_request_counts_from_its_receipt() {
    let (disk, bench) = stuck(options(ShareBy::Export));
    let (first, second) = (Inbox::new(1), Inbox::new(1));
    submit(&disk, of(&disk, 0, 0, Op::Read, 0, &first));
    bench.has(1);
    let old = Time::ZERO + Nanos::from_millis(20);
    while disk.now() < old {
        std::hint::spin_loop();
    }
    let mut new = of(&disk, 1, 0, Op::Read, 800, &second);
    new.arrived = Time::ZERO;
    submit(&disk, new);
    let_go(&disk, &bench);
    assert_eq!(first.wait().result, Ok(()));
    assert_eq!(second.wait().result, Ok(()));
    let waited = exports(&disk)[1].queue.read().max();
    assert!(waited >= Nanos::from_millis(20), "{waited:?}");
    disk.stop().expect("stops");
}

#[test]
fn a_request_that_merged_with_one_that_ended_is_done_alone() {
    let (disk, bench) = stuck(options(ShareBy::None));
    let (first, ended, merged) = (Inbox::new(1), Inbox::new(1), Inbox::new(1));
    submit(&disk, of(&disk, 0, 0, Op::Write, 0, &first));
    bench.has(1);
    submit(&disk, of(&disk, 0, 0, Op::Write, 800, &ended));
    disk.set_queue_timeout(Some(Nanos::from_millis(1)));
    assert_eq!(ended.wait().result, NOT_BEGUN);
    disk.set_queue_timeout(None);
    now(disk.snapshot()).expect("runs");
    submit(&disk, of(&disk, 0, 0, Op::Write, 808, &merged));
    while now(disk.snapshot()).expect("runs").whole.engine.merged_back == 0 {}
    let_go(&disk, &bench);
    assert_eq!(
        (first.wait().result, merged.wait().result),
        (Ok(()), Ok(()))
    );
    let expected = [
        (Op::Write, Extent::at(0, 8)),
        (Op::Write, Extent::at(808, 8)),
    ];
    assert_eq!(bench.given(), expected);
    disk.stop().expect("stops");
}

#[test]
fn later_steps_of_a_request_that_has_begun_do_not_end() {
    let (disk, bench) = stuck(options(ShareBy::None));
    let inbox = Inbox::new(1);
    let data = Data::Zeroes { may_punch: false };
    let extent = Extent::at(8, 8);
    let zeroes = submission(&disk, 0, Op::Write, extent, data, Arc::clone(&inbox) as _);
    submit(
        &disk,
        Submission {
            cut: Cut { head: 1, tail: 1 },
            ..zeroes
        },
    );
    bench.has(1);
    // A read goes between the first step and the second step.
    let (between, ended) = (Inbox::new(1), Inbox::new(1));
    submit(&disk, of(&disk, 0, 0, Op::Read, 800, &between));
    now(disk.snapshot()).expect("runs");
    bench.completes.store(1, Ordering::SeqCst);
    disk.ask_jobs();
    bench.has(2);
    now(disk.snapshot()).expect("runs");
    disk.set_queue_timeout(Some(Nanos::from_nanos(1)));
    submit(&disk, of(&disk, 0, 0, Op::Read, 900, &ended));
    assert_eq!(ended.wait().result, NOT_BEGUN);
    assert!(inbox.poll().is_none());
    let_go(&disk, &bench);
    assert_eq!(between.wait().result, Ok(()));
    assert_eq!(inbox.wait().result, Ok(()));
    let given = bench.given();
    let writes = given.iter().filter(|(op, _)| *op == Op::Write);
    let sectors = writes.map(|(_, at)| at.len.get()).sum::<u64>();
    assert_eq!(sectors, 8, "two edges and the sectors between them");
    disk.stop().expect("stops");
}

#[test]
fn a_request_of_two_members_of_which_one_has_begun_goes_on() {
    let benches: Vec<Arc<Bench>> = (0..2).map(|_| Arc::default()).collect();
    benches[1].completes.store(u64::MAX, Ordering::SeqCst);
    let its = benches.clone();
    let other = MemberOptions {
        scheduler: ("deadline".to_owned(), Box::new(|| scheduler("deadline"))),
        estimate: None,
    };
    let striped = Striped {
        members: 2,
        stripe: 16,
        stripes: 64,
        parity: false,
    };
    let disk = Disk::start_volume(options(ShareBy::Export), vec![other], move || {
        let device = |bench: &Arc<Bench>| {
            let null = Null::new(Sectors::new(16 * 64), 32);
            Box::new(Keeping(null, Arc::clone(bench))) as Box<dyn Device>
        };
        let volume: Volume = (its.iter().map(device).collect(), Box::new(striped.map()));
        Ok::<_, Infallible>(volume)
    })
    .expect("starts");
    let (first, inbox) = (Inbox::new(1), Inbox::new(8));
    submit(&disk, of(&disk, 0, 0, Op::Write, 0, &first));
    benches[0].has(1);
    // Sectors 12 to 20 lie on both members. The other member begins its part.
    submit(&disk, of(&disk, 0, 0, Op::Write, 12, &inbox));
    benches[1].has(1);
    disk.set_queue_timeout(Some(Nanos::from_millis(1)));
    // The first member alone, whole and in part; a flush of both.
    submit(&disk, of(&disk, 1, 1, Op::Write, 32, &inbox));
    submit(&disk, of(&disk, 1, 2, Op::Read, 40, &inbox));
    let ended = [inbox.wait(), inbox.wait()];
    for done in ended {
        assert_eq!(done.result, NOT_BEGUN, "{}", done.cookie);
        assert!(done.data.into_buffer().is_some(), "{}", done.cookie);
    }
    assert!(inbox.poll().is_none(), "part of it is written");
    assert_eq!(exports(&disk)[1].expired, 2);
    let_go(&disk, &benches[0]);
    assert_eq!(first.wait().result, Ok(()));
    let begun = inbox.wait();
    assert_eq!((begun.cookie, begun.result), (0, Ok(())));
    assert_eq!(begun.data.into_buffer().map(|data| data.len()), Some(4096));
    assert_eq!(benches[0].given().len(), 2);
    disk.stop().expect("stops");
}

/// A read of this many MiB.
fn long(disk: &Disk, cookie: u64, lba: u64, mib: u64, to: &Arc<Inbox>) -> Submission {
    let data = Data::Buffer(disk.pool().take((mib as usize) << 20));
    let extent = Extent::at(lba, mib << 11);
    let to = Arc::clone(to) as Arc<_>;
    common::submission(disk, cookie, Op::Read, extent, data, to)
}

#[test]
fn a_later_step_is_as_old_as_its_request_to_schedulers_that_go_by_age() {
    for text in ["noop", "deadline:fifo_batch=1:read_expire=1ms"] {
        let mut options = options(ShareBy::None);
        options.scheduler = (text.into(), Box::new(move || scheduler(text)));
        let (disk, bench) = stuck(options);
        let inbox = Inbox::new(4);
        submit(&disk, long(&disk, 0, 50_000, 5, &inbox));
        bench.has(1);
        for cookie in 1..4 {
            submit(
                &disk,
                of(&disk, 0, cookie, Op::Read, 10_000 * cookie, &inbox),
            );
        }
        let waiting =
            |count: usize| while now(disk.snapshot()).expect("runs").whole.waiting != count {};
        waiting(6);
        // All have waited for longer than `read_expire`.
        let end = disk.now() + Nanos::from_millis(20);
        while disk.now() < end {
            yield_now();
        }
        bench.completes.store(1, Ordering::SeqCst);
        disk.ask_jobs();
        bench.has(2);
        // The fifth step comes after the requests of 8 sectors.
        waiting(6);
        let_go(&disk, &bench);
        all(&inbox, 4);
        let given = bench.given();
        let starts: Vec<u64> = given.iter().map(|(_, at)| at.start.get()).collect();
        let expected = [
            50_000, 52_048, 54_096, 56_144, 58_192, 10_000, 20_000, 30_000,
        ];
        assert_eq!(starts, expected, "{text}");
        disk.stop().expect("stops");
    }
}

#[test]
fn a_long_request_that_has_not_begun_ends_and_one_that_has_begun_goes_on() {
    for by in [ShareBy::None, ShareBy::Export] {
        let (disk, bench) = stuck(options(by));
        let inbox = Inbox::new(3);
        submit(&disk, long(&disk, 0, 0, 3, &inbox));
        bench.has(1);
        submit(&disk, long(&disk, 1, 8192, 3, &inbox));
        submit(&disk, long(&disk, 2, 0, 3, &inbox));
        disk.set_queue_timeout(Some(Nanos::from_millis(1)));
        for _ in 1..3 {
            let done = inbox.wait();
            assert_eq!(done.result, NOT_BEGUN, "{}", done.cookie);
            let data = done.data.into_buffer().expect("it comes back");
            assert_eq!(data.len(), 3 << 20);
        }
        let clock = Clock::start();
        while clock.now() < Time::ZERO + Nanos::from_millis(50) {
            std::thread::yield_now();
        }
        bench.completes.store(u64::MAX, Ordering::SeqCst);
        disk.ask_jobs();
        let done = inbox.wait();
        assert_eq!((done.cookie, done.result), (0, Ok(())));
        assert_eq!(
            done.data.into_buffer().map(|data| data.len()),
            Some(3 << 20)
        );
        assert_eq!(bench.given().len(), 3);
        disk.stop().expect("stops");
    }
}
