//! A volume of three emulated drives that splits requests by address, on one thread, under the audit. Data come back,
//! and errors reach exactly the requests that touch them. A silent member does not stop the others, and the log
//! replays.

mod common;

use common::{Inbox, Tape, now, scheduler, submit};
use headtime_disk::drive::Fault;
use headtime_disk::profile::by_name;
use headtime_engine::log::{self, Record};
use headtime_engine::{Engine, EngineSpec, Event, Map, Member, Outcome};
use headtime_linux::clock::Clock;
use headtime_sched::{Class, Flags, Op, Origin};
use headtime_serve::device::{Control, Device};
use headtime_serve::disk::{BuildScheduler, Disk, MemberOptions, Options, StartError, Volume};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::null::Null;
use headtime_serve::request::{Cut, Data, Failure, Kind, Submission};
use headtime_testkit::Striped;
use headtime_units::{Extent, Nanos, Sectors, Time};
use std::convert::Infallible;
use std::sync::Arc;

const MEMBERS: u16 = 3;
const STRIPE: u64 = 16;
const CAPACITY: u64 = STRIPE * 3 * 64;

const STRIPED: Striped = Striped {
    members: MEMBERS,
    stripe: STRIPE,
    stripes: 64,
    parity: false,
};

fn build() -> BuildScheduler {
    Box::new(|| scheduler("deadline"))
}

fn others() -> Vec<MemberOptions> {
    let other = || MemberOptions {
        scheduler: ("deadline".to_owned(), build()),
        estimate: None,
    };
    vec![other(), other()]
}

fn config(merge: bool) -> EngineSpec {
    EngineSpec {
        depth: 4,
        merge,
        ..EngineSpec::default()
    }
}

fn options(config: EngineSpec, log: &Tape) -> Options {
    let mut options = Options::new("test", Clock::start(), ("deadline".to_owned(), build()));
    options.engine = config;
    options.audit = true;
    options.timeout = Some(Nanos::from_millis(400));
    options.log = Some(Box::new(log.clone()));
    options
}

fn start(config: EngineSpec, log: &Tape) -> Disk {
    let open = || -> Result<Volume, emulated::EmulateError> {
        let profile = by_name("wd5000aaks").expect("it is shipped");
        let drive = |_| {
            let drive = emulated::open(emulated::EmulatedOptions {
                size: Some(CAPACITY / 3 * 512),
                create: true,
                ..emulated::EmulatedOptions::new(profile.clone(), StoreSpec::Memory)
            })?;
            Ok::<_, emulated::EmulateError>(Box::new(drive) as Box<dyn Device>)
        };
        let drives = (0..MEMBERS).map(drive).collect::<Result<_, _>>()?;
        Ok((drives, Box::new(STRIPED.map())))
    };
    Disk::start_volume(options(config, log), others(), open).expect("starts")
}

/// Stops the disk; its log must replay.
fn stop(disk: &Disk, config: &EngineSpec, log: &Tape) {
    disk.stop().expect("stops");
    let text = log.text();
    let text = &text[..];
    let engines: Vec<Engine> = (0..MEMBERS)
        .map(|_| Engine::new(config.config(512), scheduler("deadline")).expect("in range"))
        .collect();
    let replayed = log::replay_volume(text, engines, |text| Some(scheduler(text)));
    let replayed = replayed.expect("the same decisions");
    assert!(replayed.decisions > 100, "{replayed:?}");
    assert!(text.contains("\n@1 ") && text.contains("\n@2 "));
}

/// The requests of a round: their places and lengths differ, and together they cover the volume.
fn extents() -> Vec<Extent> {
    let mut extents = Vec::new();
    let mut next = 0;
    while next < CAPACITY {
        let len = (1 + extents.len() as u64 * 7 % 70).min(CAPACITY - next);
        extents.push(Extent::at(next, len));
        next += len;
    }
    extents
}

fn byte(position: u64) -> u8 {
    (position / 512 % 251) as u8
}

/// Asks for all extents at once. Returns what came of each.
fn round(disk: &Disk, op: Op, extents: &[Extent]) -> Vec<Result<(), Failure>> {
    let inbox = Inbox::new(extents.len());
    for (cookie, extent) in (0..).zip(extents) {
        let start = extent.start.get() * 512;
        let mut buffer = disk.pool().take(extent.len.get() as usize * 512);
        for (place, at) in buffer.iter_mut().zip(start..) {
            *place = if op == Op::Write { byte(at) } else { 255 };
        }
        let flags = match op {
            Op::Write if cookie % 9 == 0 => Flags::PREFLUSH.with(Flags::FUA),
            Op::Write => Flags::FUA,
            _ => Flags::NONE,
        };
        let submission = Submission {
            cookie,
            op,
            extent: *extent,
            cut: Cut::NONE,
            flags,
            origin: Origin::default(),
            class: Class::default(),
            arrived: disk.now(),
            data: Data::Buffer(buffer),
            to: Arc::clone(&inbox) as Arc<_>,
        };
        submit(disk, submission);
    }
    let mut results = vec![Ok(()); extents.len()];
    for _ in extents {
        let done = inbox.wait();
        let extent = extents[done.cookie as usize];
        results[done.cookie as usize] = done.result;
        let buffer = done.data.into_buffer();
        if op == Op::Read && done.result.is_ok() {
            let buffer = buffer.expect("it comes back");
            let start = extent.start.get() * 512;
            let right = buffer
                .iter()
                .zip(start..)
                .all(|(read, at)| *read == byte(at));
            assert!(right, "sectors {extent}");
        }
    }
    results
}

#[test]
fn what_is_written_is_read_and_sectors_that_cannot_be_fail_exactly_the_requests_that_touch_them() {
    let (log, config) = (Tape::default(), config(true));
    let disk = start(config.clone(), &log);
    let extents = extents();
    assert!(round(&disk, Op::Write, &extents).iter().all(Result::is_ok));
    assert!(round(&disk, Op::Read, &extents).iter().all(Result::is_ok));
    let bad = Extent::at(100, 3);
    let fault = Control::Fault(Fault::Unreadable {
        extent: bad,
        retries: 0,
    });
    // Data in the drive's buffer are readable, so a power cut empties the buffer.
    for control in [Control::PowerCut, Control::PowerOn, fault] {
        let cost = now(disk.control_of(Member(1), control)).expect("runs");
        assert_eq!(cost, Ok(Sectors::ZERO));
    }
    let mut told = 0;
    for (extent, result) in extents.iter().zip(round(&disk, Op::Read, &extents)) {
        let expected = STRIPED.touches(*extent, Member(1), bad);
        assert_eq!(result.is_err(), expected, "{extent}: {result:?}");
        let Err(failure) = result else { continue };
        assert_eq!(failure.kind, Kind::Medium);
        // The sector is the volume's, not the member's.
        if let Some(at) = failure.at {
            let (member, there) = STRIPED.map().first(Extent::new(at, Sectors::new(1)));
            assert!(member == Member(1) && bad.overlaps(there), "{at}");
            assert!(
                (extent.start..extent.end()).contains(&at),
                "{at} of {extent}"
            );
            told += 1;
        }
    }
    assert!(told > 0);
    // The power of all members at once.
    let controlled = |control| now(disk.control(control)).expect("runs").expect("can");
    controlled(Control::PowerCut);
    let off = round(&disk, Op::Read, &extents);
    assert!(off.iter().all(Result::is_err));
    controlled(Control::PowerOn);
    assert!(round(&disk, Op::Read, &extents[..1])[0].is_ok());
    stop(&disk, &config, &log);
}

/// When the commands of a member ended, and how, from the log.
fn ended(text: &str, of: Member) -> Vec<(Time, Outcome)> {
    let records = log::read(text).map(|record| record.expect("a log").1);
    let ended = records.filter_map(|record| {
        let (member, record) = match record {
            Record::OfMember(member, record) => (member, *record),
            record => (Member(0), record),
        };
        match record {
            Record::Event(at, Event::Completed { outcome, .. }) if member == of => {
                Some((at, outcome))
            }
            _ => None,
        }
    });
    ended.collect()
}

#[test]
fn a_member_that_does_not_answer_times_out_and_the_others_go_on() {
    let (log, config) = (Tape::default(), config(false));
    let disk = start(config.clone(), &log);
    let extents = extents();
    assert!(round(&disk, Op::Write, &extents).iter().all(Result::is_ok));
    let lose = Control::Fault(Fault::LoseNext);
    let told = now(disk.control_of(Member(1), lose)).expect("runs");
    told.expect("the drive can");
    disk.swap_scheduler_of(Member(2), "noop", Box::new(|| scheduler("noop")));
    let begun = disk.now();
    let results = round(&disk, Op::Read, &extents);
    let failed = extents
        .iter()
        .zip(results)
        .filter(|(_, result)| result.is_err());
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let (extent, failure) = failed[0];
    assert_eq!(failure.map_err(|failure| failure.kind), Err(Kind::TimedOut));
    assert!(STRIPED.touches(*extent, Member(1), Extent::at(0, CAPACITY)));
    stop(&disk, &config, &log);
    let text = log.text();
    let text = &text[..];
    let gave_up = |(_, outcome): &&(Time, Outcome)| *outcome == Outcome::TimedOut;
    let late = ended(text, Member(1));
    let (late, _) = late.iter().find(gave_up).expect("one is given up on");
    assert!(*late >= begun + Nanos::from_millis(400));
    for member in [0, 2] {
        let ends = ended(text, Member(member));
        let meanwhile = ends.iter().filter(|(at, _)| (begun..*late).contains(at));
        assert!(meanwhile.count() > 10, "member {member}");
    }
}

#[test]
fn devices_that_do_not_fit_the_map_are_refused() {
    let options = options(config(true), &Tape::default());
    let open = || {
        let null = Null::new(Sectors::new(CAPACITY), 32);
        let map = Box::new(STRIPED.map()) as Box<dyn Map>;
        Ok::<_, Infallible>((vec![Box::new(null) as Box<dyn Device>], map))
    };
    let refused = Disk::start_volume(options, others(), open);
    assert!(matches!(
        refused,
        Err(StartError::Volume { members: 3, .. })
    ));
}
