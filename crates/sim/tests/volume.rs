//! A volume of three members that splits requests by address, under the audit. Errors reach exactly the requests that
//! touch them, and a silent member does not stop the others. No part passes a flush, and logs replay.

mod scripted;

use headtime_disk::Model;
use headtime_disk::drive::{Drive, Fault};
use headtime_disk::profile::{self, Profile};
use headtime_engine::{Config, Engine, Event, Member, Outcome, Seen, log};
use headtime_sched::{Class, Flags, Op, Origin, Scheduler, Spec};
use headtime_sim::{Report, Setup, Station, run};
use headtime_testkit::{FlushLook, Striped};
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::NewRequest;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use scripted::Scripted;
use std::sync::Arc;

const MEMBERS: u16 = 3;
const STRIPE: u64 = 64;
const CAPACITY: u64 = STRIPE * 3 * 1000;

const STRIPED: Striped = Striped {
    members: MEMBERS,
    stripe: STRIPE,
    stripes: 1000,
    parity: false,
};

fn drive() -> Profile {
    profile::by_name("wd5000aaks").expect("shipped").clone()
}

fn build(scheduler: &str) -> Box<dyn Scheduler> {
    let spec: Spec = scheduler.parse().expect("registered");
    let positioning = Some(Arc::new(Model::new(&drive())));
    spec.build(positioning).expect("built")
}

/// Fault of member 1 at time zero, and the timeout in seconds.
type Wrong = (Fault, u64);

struct Ran {
    report: Report,
    log: String,
    done: Vec<u64>,
    /// Times and outcomes of each member's commands.
    ended: Vec<Vec<(Time, Outcome)>>,
}

fn volume(scheduler: &str, config: Config, requests: &[NewRequest], wrong: Option<Wrong>) -> Ran {
    let station = |number: u16| {
        let drive = Drive::new(&drive(), u64::from(number));
        let faults = wrong.iter().filter(|_| number == 1);
        Station {
            faults: faults.map(|(fault, _)| (Time::ZERO, *fault)).collect(),
            ..Station::new(drive, config, build(scheduler))
        }
    };
    let mut source = Scripted::new(requests);
    let (mut log, mut ended) = (String::new(), vec![Vec::new(); MEMBERS.into()]);
    let mut write = |piece: &str| log.push_str(piece);
    let mut look = FlushLook::new(MEMBERS);
    let mut observe = |now: Time, member: Member, seen: Seen<'_>| {
        look.see(member, seen).expect("nothing passes a flush");
        if let Seen::Event(Event::Completed { outcome, .. }) = seen {
            ended[member.index()].push((now, *outcome));
        }
    };
    let mut setup = Setup::new(
        Drive::new(&drive(), 0),
        config,
        build(scheduler),
        &mut source,
    );
    setup.stations = (0..MEMBERS).map(station).collect();
    setup.map = Some(Box::new(STRIPED.map()));
    setup.timeout = wrong.map(|(_, seconds)| Nanos::from_secs(seconds));
    setup.audit = true;
    setup.log = Some(&mut write);
    setup.observer = Some(&mut observe);
    let report = run(setup).unwrap_or_else(|error| panic!("{scheduler}, {config:?}: {error}"));
    let engines: Vec<Engine> = (0..MEMBERS)
        .map(|_| Engine::new(config, build(scheduler)).expect("in range"))
        .collect();
    let again = log::replay_volume(&log, engines, |text| Some(build(text)));
    again.unwrap_or_else(|error| panic!("{scheduler}, {config:?}: {error}"));
    let done = source.ended;
    assert_eq!(report.measured.requests, requests.len() as u64);
    Ran {
        report,
        log,
        done,
        ended,
    }
}

/// Requests of 1 to 300 sectors in a quarter of the volume, each of a process of its own, from a seed.
fn requests(seed: u64, writes: u64, flushes: u64) -> Vec<NewRequest> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut below = |end: u64| ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64;
    let mut now = Time::ZERO;
    let one = |cookie| {
        now += Nanos::from_micros(below(6_000));
        let op = match below(100) {
            percent if percent < flushes => Op::Flush,
            percent if percent < flushes + writes => Op::Write,
            _ => Op::Read,
        };
        let flags = match (op, below(10)) {
            (Op::Write, 0) if flushes > 0 => Flags::PREFLUSH.with(Flags::FUA),
            _ => Flags::NONE,
        };
        let extent = match op {
            Op::Flush => Extent::default(),
            _ => Extent::at(below(CAPACITY / 4), 1 + below(300)),
        };
        NewRequest {
            cookie,
            arrival: now,
            op,
            extent,
            flags,
            origin: Origin {
                process: cookie as u32 + 1,
                ..Origin::default()
            },
            class: Class::BEST_EFFORT,
        }
    };
    (0..200).map(one).collect()
}

/// Requests that failed. A failed request's process has moved no bytes.
fn failed(report: &Report) -> Vec<u64> {
    let origins = report.measured.origins.iter();
    let failed = origins.filter(|origin| origin.all().bytes == 0);
    failed
        .map(|origin| u64::from(origin.origin.process) - 1)
        .collect()
}

#[test]
fn sectors_of_one_member_that_cannot_be_read_fail_exactly_the_requests_that_touch_them() {
    let extent = Extent::at(20 * STRIPE + 3, 3000);
    for seed in 0..6 {
        let requests = requests(seed, 0, 0);
        let config = Config {
            depth: 4,
            ..Config::default()
        };
        let fault = Fault::Unreadable { extent, retries: 1 };
        let ran = volume("deadline", config, &requests, Some((fault, 10)));
        let expected: Vec<u64> = requests
            .iter()
            .filter(|request| STRIPED.touches(request.extent, Member(1), extent))
            .map(|request| request.cookie)
            .collect();
        assert!((10..150).contains(&expected.len()), "{expected:?}");
        assert_eq!(failed(&ran.report), expected);
        assert_eq!(ran.report.measured.failed, expected.len() as u64);
    }
}

#[test]
fn a_member_that_does_not_answer_times_out_and_the_others_go_on() {
    let requests = requests(7, 0, 0);
    let config = Config {
        merge: false,
        ..Config::default()
    };
    let ran = volume("noop", config, &requests, Some((Fault::LoseNext, 1)));
    let (first, outcome) = ran.ended[1][0];
    assert_eq!(outcome, Outcome::TimedOut);
    assert!(
        ran.ended[1][1..]
            .iter()
            .all(|(_, end)| *end == Outcome::Done)
    );
    for member in [0, 2] {
        let meanwhile = ran.ended[member].iter().filter(|(at, _)| *at < first);
        assert!(meanwhile.count() > 20, "member {member}");
    }
    let failed = failed(&ran.report);
    assert_eq!(failed.len(), 1);
    let whole = Extent::at(0, CAPACITY);
    assert!(STRIPED.touches(requests[failed[0] as usize].extent, Member(1), whole));
}

#[test]
fn nothing_passes_a_flush_on_any_member_and_the_same_seed_gives_the_same_log() {
    let schedulers = [
        "noop",
        "deadline",
        "cfq",
        "sptf",
        "anticipatory",
        "clook",
        "bfq",
    ];
    for seed in 0..48_u64 {
        let requests = requests(100 + seed, 40, 4);
        let config = Config {
            depth: [1, 4, 31][seed as usize % 3],
            merge: seed % 4 != 0,
            commit_ahead: seed % 5 == 0,
            ..Config::default()
        };
        let wrong = match seed % 4 {
            1 => Some((Fault::LoseNext, 2)),
            2 => Some((Fault::Stall(Nanos::from_millis(700)), 1)),
            _ => None,
        };
        let scheduler = schedulers[seed as usize % schedulers.len()];
        let ran = volume(scheduler, config, &requests, wrong);
        assert_eq!(ran.log, volume(scheduler, config, &requests, wrong).log);
        let place = |cookie: u64| ran.done.iter().position(|done| *done == cookie);
        for flush in requests.iter().filter(|request| request.op == Op::Flush) {
            let ended = place(flush.cookie);
            for other in &requests {
                let before = place(other.cookie) < ended;
                let same = other.cookie == flush.cookie;
                assert!(
                    same || before == (other.cookie < flush.cookie),
                    "seed {seed}"
                );
            }
        }
    }
}
