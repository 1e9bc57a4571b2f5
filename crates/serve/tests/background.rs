//! Background jobs of a live disk, and their data. Commands time out or fail, the drive loses its power, and the disk
//! stops. All runs are audited, and their logs replay.

mod common;

use common::{Inbox, Tape, now, request, scheduler, submission, submit};
use headtime_disk::drive::Fault;
use headtime_disk::profile::by_name;
use headtime_engine::{
    Approach, Arrival, Background, Engine, EngineSpec, Finished, Join, Lane, Map, Outcome,
    RequestId, log,
};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Flags, Op, Origin};
use headtime_serve::device::{Control, Device};
use headtime_serve::disk::{Disk, MemberOptions, Options, Refused};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::faulty::{Faulty, Switch};
use headtime_serve::null::Null;
use headtime_serve::request::{Data, Failure, Kind};
use headtime_testkit::Striped;
use headtime_units::{Extent, Lba, Nanos, Sectors};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::thread::{self, yield_now};

const SECTORS: u64 = 1 << 13;

/// Request of a job: an operation, its sectors, and its relation to a staged request.
type Want = (Op, Extent, Join);

fn reads(start: u64, join: Join) -> Want {
    (Op::Read, Extent::at(start, 8), join)
}

fn writes(start: u64, join: Join) -> Want {
    (Op::Write, Extent::at(start, 8), join)
}

/// Completions of a job's requests in order: number, outcome, and the data of a read.
type Told = Arc<Mutex<Vec<(u64, Outcome, Option<Vec<u8>>)>>>;

/// A job that makes its requests in order, each as soon as the engine allows it. Writes have the request's number as
/// data.
struct Job {
    wants: VecDeque<Want>,
    asked: u64,
    told: Told,
    /// Panics at the first completion, which ends the disk's thread.
    panics: bool,
}

impl Background for Job {
    fn joins(
        &mut self,
        _: headtime_units::Time,
        engine: &Engine,
        _: Option<&Approach>,
    ) -> Option<(Arrival, Lane, Join)> {
        let (op, extent, join) = *self.wants.front()?;
        let arrival = Arrival {
            id: RequestId::Background(self.asked),
            op,
            extent,
            flags: Flags::NONE,
            origin: Origin::default(),
            class: Class::IDLE,
            since: None,
        };
        if !engine.may_join(&arrival, Lane(0), join) {
            return None;
        }
        self.asked += 1;
        self.wants.pop_front();
        Some((arrival, Lane(0), join))
    }

    fn fill(&mut self, id: u64, data: &mut [u8]) {
        data.fill(id as u8);
    }

    fn finished(&mut self, _: headtime_units::Time, done: &Finished, data: Option<&[u8]>) {
        assert!(!self.panics, "a job with a bug");
        let data = data.map(<[u8]>::to_vec);
        let mut told = self.told.lock().expect("no panic");
        told.push((done.id, done.outcome, data));
    }
}

/// One command in the drive, and one chosen ahead, which a job's request can join.
fn spec() -> EngineSpec {
    EngineSpec {
        depth: 1,
        commit_ahead: true,
        ..EngineSpec::default()
    }
}

fn engine() -> Engine {
    Engine::new(spec().config(512), scheduler("noop")).expect("in range")
}

/// A disk with a job, with handles to observe both.
struct Rig {
    disk: Disk,
    log: Tape,
    told: Told,
    switch: Arc<Switch>,
    inbox: Arc<Inbox>,
}

impl Rig {
    fn options(wants: &[Want], panics: bool) -> (Options, Tape, Told) {
        let (log, told) = (Tape::default(), Told::default());
        let build = Box::new(|| scheduler("noop"));
        let mut options = Options::new("test", Clock::start(), ("noop".to_owned(), build));
        options.engine = spec();
        options.audit = true;
        options.log = Some(Box::new(log.clone()));
        let (wants, shared) = (wants.to_vec(), Arc::clone(&told));
        options.background = Some(Box::new(move |_| {
            Some(Box::new(Job {
                wants: wants.clone().into(),
                asked: 0,
                told: Arc::clone(&shared),
                panics,
            }))
        }));
        (options, log, told)
    }

    /// Before a device that goes wrong when it is told to.
    fn faulty(wants: &[Want], timeout: Option<Nanos>) -> Rig {
        let (mut options, log, told) = Rig::options(wants, false);
        options.timeout = timeout;
        let switch = Arc::new(Switch::default());
        let shared = Arc::clone(&switch);
        let disk = Disk::start(options, move || {
            let device = Faulty::new(Null::new(Sectors::new(SECTORS), 32), shared);
            Ok::<_, Infallible>(Box::new(device) as Box<dyn Device>)
        });
        Rig::around(disk.expect("starts"), log, told, switch)
    }

    fn emulated(wants: &[Want]) -> Rig {
        let (options, log, told) = Rig::options(wants, false);
        let disk = Disk::start(options, || {
            let profile = by_name("wd5000aaks").expect("it is shipped");
            let options = emulated::EmulatedOptions {
                size: Some(SECTORS * 512),
                create: true,
                ..emulated::EmulatedOptions::new(profile, StoreSpec::Memory)
            };
            emulated::open(options).map(|drive| Box::new(drive) as Box<dyn Device>)
        });
        Rig::around(disk.expect("starts"), log, told, Arc::default())
    }

    fn around(disk: Disk, log: Tape, told: Told, switch: Arc<Switch>) -> Rig {
        Rig {
            disk,
            log,
            told,
            switch,
            inbox: Inbox::new(64),
        }
    }

    fn ask(&self, cookie: u64, op: Op, lba: u64) {
        let to = Arc::clone(&self.inbox) as Arc<_>;
        submit(&self.disk, request(&self.disk, cookie, op, lba, to));
    }

    /// Results of a number of requests, by cookie.
    fn results(&self, many: usize) -> Vec<Result<(), Kind>> {
        let mut results = vec![Ok(()); many];
        for _ in 0..many {
            let done = self.inbox.wait();
            let result = done.result.map_err(|failure: Failure| failure.kind);
            results[done.cookie as usize] = result;
        }
        results
    }

    fn inject(&self, fault: Fault) {
        let told = now(self.disk.control(Control::Fault(fault))).expect("runs");
        assert_eq!(told, Ok(Sectors::ZERO));
    }

    /// How the job's requests ended.
    fn ends(&self) -> Vec<(u64, Outcome)> {
        let told = self.told.lock().expect("no panic");
        told.iter()
            .map(|(id, outcome, _)| (*id, *outcome))
            .collect()
    }

    fn waits_for_the_job(&self, many: usize) {
        while self.ends().len() < many {
            yield_now();
        }
    }

    /// Stops the disk; its log must be whole and replay.
    fn stop(&self) -> String {
        self.disk.stop().expect("stops");
        let text = self.log.text();
        assert!(text.ends_with("# end\n"));
        let engine = engine();
        if let Err(error) = log::replay(&text, engine, |text| Some(scheduler(text))) {
            panic!("{error}\n{text}");
        }
        text
    }
}

#[test]
fn a_job_reads_and_writes_with_what_clients_ask_for_and_is_in_nobodys_figures() {
    let wants = [
        reads(992, Join::With),
        writes(2000, Join::Before),
        reads(1008, Join::With),
        reads(2000, Join::Before),
    ];
    let rig = Rig::emulated(&wants);
    let fill = |byte: u8, extent: Extent| {
        let mut buffer = rig.disk.pool().take(extent.len.get() as usize * 512);
        buffer.fill(byte);
        let to = Arc::clone(&rig.inbox) as Arc<_>;
        let data = Data::Buffer(buffer);
        submit(
            &rig.disk,
            submission(&rig.disk, 0, Op::Write, extent, data, to),
        );
        rig.results(1);
    };
    // One at a time, so that nothing is staged that a job could join.
    fill(1, Extent::at(992, 8));
    fill(2, Extent::at(1000, 8));
    fill(3, Extent::at(1008, 8));
    assert_eq!(rig.ends(), []);
    for cookie in 0..12 {
        rig.ask(cookie, Op::Read, if cookie % 2 == 0 { 5000 } else { 1000 });
    }
    for _ in 0..12 {
        let done = rig.inbox.wait();
        assert_eq!(done.result, Ok(()));
        let buffer = done.data.into_buffer().expect("it comes back");
        let byte = if done.cookie.is_multiple_of(2) { 0 } else { 2 };
        assert!(buffer.iter().all(|read| *read == byte), "{}", done.cookie);
    }
    let metrics = now(rig.disk.snapshot()).expect("runs").metrics;
    let counted = metrics.exports[0].total.read().len();
    let text = rig.stop();
    let mut told = rig.told.lock().expect("no panic").clone();
    told.sort_by_key(|(id, ..)| *id);
    let read = |byte: u8| Some(vec![byte; 4096]);
    let data = [read(1), None, read(3), read(1)];
    let expected = (0..).zip(data).map(|(id, data)| (id, Outcome::Done, data));
    assert_eq!(told, expected.collect::<Vec<_>>());
    assert_eq!(counted, 15);
    assert_eq!(text.matches("\nJ ").count(), 4);
    // Without what has joined, the decisions are others.
    let without: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("J "))
        .collect();
    let engine = engine();
    let error = log::replay(&(without.join("\n") + "\n"), engine, |_| None);
    assert!(error.is_err());
}

/// The client's first command is lost. The second one, which a job's read has joined, is lost, too.
fn lost(keeps: bool) -> Rig {
    let rig = Rig::faulty(&[reads(992, Join::With)], None);
    rig.switch.keep_lost(keeps);
    rig.inject(Fault::LoseNext);
    rig.ask(0, Op::Read, 0);
    rig.ask(1, Op::Read, 1000);
    while now(rig.disk.snapshot()).expect("runs").whole.engine.joined == 0 {
        yield_now();
    }
    rig.inject(Fault::LoseNext);
    // The timeout is set only now, after any delay. It applies to commands in the device, too.
    rig.disk.set_timeout(Some(Nanos::from_millis(40)));
    rig
}

#[test]
fn a_command_that_is_undone_when_it_is_given_up_on_is_tried_again_for_the_job_too() {
    let rig = lost(false);
    assert_eq!(rig.results(2), [Err(Kind::TimedOut), Ok(())]);
    rig.waits_for_the_job(1);
    rig.stop();
    assert_eq!(rig.ends(), [(0, Outcome::Done)]);
}

#[test]
fn a_command_whose_data_the_device_keeps_ends_for_the_job_as_for_clients() {
    let rig = lost(true);
    assert_eq!(rig.results(2), [Err(Kind::TimedOut); 2]);
    rig.waits_for_the_job(1);
    assert!(now(rig.disk.snapshot()).expect("runs").whole.abandoned > 0);
    rig.switch.keep_lost(false);
    rig.stop();
    let told = rig.told.lock().expect("no panic").clone();
    assert_eq!(told, [(0, Outcome::TimedOut, None)]);
}

#[test]
fn sectors_that_a_job_cannot_read_fail_the_job_and_not_the_client() {
    let rig = Rig::faulty(&[reads(992, Join::With)], None);
    rig.inject(Fault::Unreadable {
        extent: Extent::at(995, 1),
        retries: 0,
    });
    rig.inject(Fault::Stall(Nanos::from_secs(1)));
    rig.ask(0, Op::Read, 0);
    rig.ask(1, Op::Read, 1000);
    assert_eq!(rig.results(2), [Ok(()); 2]);
    rig.waits_for_the_job(1);
    let text = rig.stop();
    assert_eq!(rig.ends(), [(0, Outcome::MediumError)]);
    assert!(text.contains(" R 992 16\n") && text.contains(" R 992 8\n"));
}

#[test]
fn a_write_of_a_job_that_fails_makes_the_disk_read_only_and_its_next_ones_do_not_reach_the_device()
{
    let wants = [writes(992, Join::Before), writes(3000, Join::Before)];
    let rig = Rig::faulty(&wants, None);
    rig.inject(Fault::Stall(Nanos::from_secs(1)));
    rig.switch.fail_writes(1);
    rig.ask(0, Op::Read, 0);
    rig.ask(1, Op::Read, 1000);
    assert_eq!(rig.results(2), [Ok(()); 2]);
    rig.waits_for_the_job(2);
    assert!(rig.disk.has_failed());
    assert_eq!(rig.ends(), [0, 1].map(|id| (id, Outcome::DeviceError)));
    // Later writes fail, too. Once the failure is cleared, writes go on.
    rig.ask(0, Op::Write, 0);
    assert_eq!(rig.results(1), [Err(Kind::ReadOnly)]);
    now(rig.disk.clear_failure())
        .expect("runs")
        .expect("clears");
    rig.ask(0, Op::Write, 0);
    assert_eq!(rig.results(1), [Ok(())]);
    let whole = now(rig.disk.snapshot()).expect("runs").whole;
    assert_eq!(whole.errors, 2, "both, though only one was the device's");
    rig.stop();
}

#[test]
fn a_drive_that_loses_its_power_fails_what_a_job_has_in_it_and_serves_it_again_afterwards() {
    let wants = [reads(992, Join::With), reads(4108, Join::With)];
    let rig = Rig::emulated(&wants);
    let stall = Control::Fault(Fault::Stall(Nanos::from_secs(2)));
    now(rig.disk.control(stall)).expect("runs").expect("can");
    rig.ask(0, Op::Read, 0);
    rig.ask(1, Op::Read, 1000);
    while now(rig.disk.snapshot()).expect("runs").whole.engine.joined == 0 {
        yield_now();
    }
    let cost = now(rig.disk.control(Control::PowerCut)).expect("runs");
    assert_eq!(cost, Ok(Sectors::ZERO));
    assert_eq!(rig.results(2), [Err(Kind::Offline); 2]);
    rig.waits_for_the_job(1);
    assert_eq!(rig.ends(), [(0, Outcome::DeviceError)]);
    now(rig.disk.control(Control::PowerOn))
        .expect("runs")
        .expect("comes back");
    for cookie in 0..4 {
        rig.ask(cookie, Op::Read, 4000 + 100 * cookie);
    }
    assert_eq!(rig.results(4), [Ok(()); 4]);
    rig.waits_for_the_job(2);
    assert_eq!(rig.ends()[1], (1, Outcome::Done));
    rig.stop();
}

#[test]
fn a_disk_that_stops_does_first_what_a_job_has_in_the_drive_and_in_the_queue() {
    let wants = [reads(992, Join::With), reads(2000, Join::Before)];
    let rig = Rig::faulty(&wants, None);
    rig.inject(Fault::Stall(Nanos::from_secs(1)));
    rig.ask(0, Op::Read, 0);
    rig.ask(1, Op::Read, 1000);
    while now(rig.disk.snapshot()).expect("runs").whole.engine.joined < 2 {
        yield_now();
    }
    assert_eq!(rig.ends(), []);
    thread::scope(|scope| {
        scope.spawn(|| rig.stop());
    });
    assert_eq!(rig.ends().len(), 2);
    assert!(
        rig.ends()
            .iter()
            .all(|(_, outcome)| *outcome == Outcome::Done)
    );
    assert_eq!(rig.results(2), [Ok(()); 2]);
}

/// Clients of a disk whose job panics, or makes a forbidden request.
fn ended_by_a_bug(wants: &[Want], panics: bool) -> String {
    let (options, _, _) = Rig::options(wants, panics);
    let switch = Arc::<Switch>::default();
    let disk = Disk::start(options, move || {
        let device = Faulty::new(Null::new(Sectors::new(SECTORS), 32), switch);
        Ok::<_, Infallible>(Box::new(device) as Box<dyn Device>)
    });
    let disk = disk.expect("starts");
    let stall = Control::Fault(Fault::Stall(Nanos::from_millis(20)));
    now(disk.control(stall)).expect("runs").expect("can");
    let inbox = Inbox::new(8);
    // On a busy machine the disk may have ended before the last requests arrive.
    let mut taken = 0;
    for cookie in 0..8 {
        let to = Arc::clone(&inbox) as Arc<_>;
        let mut next = request(&disk, cookie, Op::Read, 100 * cookie, to);
        taken += loop {
            match disk.submit(next) {
                Ok(()) => break 1,
                Err(Refused::Full(back)) => next = back,
                Err(Refused::Stopped(_)) => break 0,
            }
        };
    }
    let failed = (0..taken).filter(|_| inbox.wait().result.is_err()).count();
    assert!(failed > 0, "they are answered, if with an error");
    disk.stop().expect_err("ended by a bug").to_string()
}

#[test]
fn a_job_with_a_bug_ends_the_disk_and_clients_are_answered() {
    let error = ended_by_a_bug(&[reads(5000, Join::Before)], true);
    assert!(error.contains("a job with a bug"), "{error}");
    let error = ended_by_a_bug(&[reads(SECTORS - 4, Join::Before)], false);
    assert!(error.contains("b0: sectors 8188+8 of 8192"), "{error}");
}

/// Each member has a job, and all jobs number their requests alike.
#[test]
fn the_jobs_of_a_volumes_members_do_not_get_each_others_requests() {
    const STRIPED: Striped = Striped {
        members: 3,
        stripe: 16,
        stripes: 64,
        parity: false,
    };
    let (mut options, log, told) = Rig::options(&[], false);
    let shared = Arc::clone(&told);
    options.background = Some(Box::new(move |member| {
        let wants = (0..5).map(|n| reads(100 * u64::from(member.0) + 8 * n, Join::Before));
        Some(Box::new(Job {
            wants: wants.collect(),
            asked: 0,
            told: Arc::clone(&shared),
            panics: false,
        }))
    }));
    let other = || MemberOptions {
        scheduler: ("noop".to_owned(), Box::new(|| scheduler("noop"))),
        estimate: None,
    };
    let disk = Disk::start_volume(options, vec![other(), other()], || {
        let device = || Box::new(Null::new(Sectors::new(16 * 64), 32)) as Box<dyn Device>;
        let devices = (0..3).map(|_| device()).collect();
        Ok::<_, Infallible>((devices, Box::new(STRIPED.map()) as Box<dyn Map>))
    });
    let disk = disk.expect("starts");
    let inbox = Inbox::new(64);
    while told.lock().expect("no panic").len() < 15 {
        // Over all members, twice each.
        for start in [0, 500, 1000, 2000] {
            let extent = Extent::new(Lba::new(start), Sectors::new(96));
            let data = Data::Buffer(disk.pool().take(96 * 512));
            let to = Arc::clone(&inbox) as Arc<_>;
            submit(&disk, submission(&disk, start, Op::Read, extent, data, to));
        }
        for _ in 0..4 {
            assert_eq!(inbox.wait().result, Ok(()));
        }
    }
    disk.stop().expect("stops");
    let told = told.lock().expect("no panic");
    for id in 0..5 {
        let ends = told.iter().filter(|(other, ..)| *other == id);
        let mut done = ends.map(|(_, outcome, _)| *outcome);
        assert!(done.all(|outcome| outcome == Outcome::Done));
    }
    assert_eq!(told.len(), 15);
    let engines: Vec<Engine> = (0..3).map(|_| engine()).collect();
    let again = log::replay_volume(&log.text(), engines, |text| Some(scheduler(text)));
    again.expect("the same decisions");
}
