//! The seam under a real clock: a log made there replays with identical decisions.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a real clock is the point"
)]

use crate::world::{Clock, Timed, ToyDrive, arrival, run};
use headtime_engine::{Command, Config, DriveTag, Engine, Event, Outcome, Stats, log};
use headtime_sched::{
    Deadline, DeadlineConfig, Knowledge, NoPositioning, Noop, Op, Request, Scheduler, ServiceCurve,
    Spec, WorkConserving,
};
use headtime_testkit::{ToyAnticipator, ToyFair};
use headtime_units::{Nanos, Sectors, Time};
use std::sync::Arc;

/// The time of this machine.
struct Real(std::time::Instant);

impl Clock for Real {
    fn wait(&mut self, until: Time) -> Time {
        loop {
            let now = Time::from_nanos(self.0.elapsed().as_nanos() as u64);
            if now >= until {
                return now;
            }
            std::thread::sleep(std::time::Duration::from_nanos((until - now).as_nanos()));
        }
    }
}

/// A sequential reader whose stream others break into: another reader, random reads, a writer.
fn mixed() -> Vec<Timed> {
    let mut all = Vec::new();
    let mut random = 12345_u64;
    let mut stream = 10_000;
    for n in 0..400_u64 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let at = Time::ZERO + Nanos::from_micros(n * 250);
        let new = match n % 8 {
            4 => arrival(n, Op::Read, (random >> 33) % 100_000, 8, 3),
            6 => arrival(n, Op::Write, 50_000 + n, 4, 4),
            7 => arrival(n, Op::Read, 90_000 + n, 8, 2),
            _ => {
                stream += 8;
                arrival(n, Op::Read, stream - 8, 8, 1)
            }
        };
        all.push((at, new));
    }
    all
}

fn replays<S: Scheduler>(new: impl Fn() -> S, depth: u32) -> Stats {
    let config = Config {
        depth,
        ..Config::default()
    };
    let mut clock = Real(std::time::Instant::now());
    let arrivals = mixed();
    let live = run(
        config,
        new(),
        &arrivals,
        ToyDrive::new(Vec::new()),
        &mut clock,
    );
    let engine = Engine::new(config, new()).expect("the same configuration");
    let mut replay = log::Replay::new(engine);
    let replayed = replay.all(&live.log, |_| None).expect("the same decisions");
    assert!(replayed.decisions > 400, "{replayed:?}");
    let stats = *replay.engines()[0].stats();
    assert_eq!(stats.finished, 400);
    stats
}

#[test]
fn a_run_under_a_real_clock_with_noop_replays() {
    replays(|| WorkConserving::new(Noop::new()), 1);
}

#[test]
fn a_run_under_a_real_clock_with_deadline_replays() {
    replays(
        || WorkConserving::new(Deadline::new(DeadlineConfig::default())),
        4,
    );
}

#[test]
fn a_run_under_a_real_clock_with_a_scheduler_that_waits_replays() {
    let stats = replays(|| ToyAnticipator::new(Noop::new()), 1);
    assert!(stats.idled > 10, "it waits: {stats:?}");
}

#[test]
fn a_run_under_a_real_clock_with_a_fair_scheduler_replays() {
    replays(|| WorkConserving::new(ToyFair::new()), 2);
}

/// A log with one decision changed is caught, at its line.
#[test]
fn a_changed_decision_is_caught() {
    let arrivals = mixed();
    let config = Config::default();
    let new = || WorkConserving::new(Noop::new());
    let done = run(
        config,
        new(),
        &arrivals,
        ToyDrive::new(Vec::new()),
        &mut crate::world::Virtual,
    );
    let issue = done
        .log
        .lines()
        .position(|line| line.starts_with("I "))
        .expect("an issue");
    let changed: Vec<String> = done
        .log
        .lines()
        .enumerate()
        .map(|(n, line)| {
            if n == issue {
                line.replace(" R ", " W ")
            } else {
                line.to_owned()
            }
        })
        .collect();
    let engine = Engine::new(config, new()).expect("the same configuration");
    match log::replay(&changed.join("\n"), engine, |_| None) {
        Err(log::ReplayError::Differs { line, .. }) => assert_eq!(line, issue + 1),
        other => panic!("the change went unnoticed: {other:?}"),
    }
    // So is a log that lacks the last decision.
    let cut = done.log.trim_end().rsplit_once('\n').expect("lines").0;
    let engine = Engine::new(config, new()).expect("the same configuration");
    assert!(matches!(
        log::replay(cut, engine, |_| None),
        Err(log::ReplayError::Differs { logged: None, .. })
    ));
}

/// A server that finds out only when it issues a command that this cannot be gives up on it there and
/// then: between two decisions of the same moment.
#[test]
fn a_command_may_be_given_up_in_the_moment_it_is_issued() {
    let config = Config {
        depth: 2,
        merge: false,
        ..Config::default()
    };
    let new = || Engine::new(config, WorkConserving::new(Noop::new())).expect("in range");
    let mut engine = new();
    let mut text = String::new();
    log::write_header(&mut text);
    let handle = |engine: &mut Engine<_>, text: &mut String, ms: u64, event: Event| {
        let now = Time::ZERO + Nanos::from_millis(ms);
        log::write_event(text, now, &event);
        engine.handle(now, event);
        now
    };
    let comes = |id, op, len| Event::Arrived(arrival(id, op, id * 100, len, 0));
    handle(&mut engine, &mut text, 0, comes(0, Op::Flush, 0));
    let now = Time::ZERO;
    let first = engine.poll(now).expect("a flush is issued");
    log::write_decision(&mut text, now, &(&first).into());
    for id in 1..4 {
        let now = handle(&mut engine, &mut text, 1, comes(id, Op::Read, 8));
        assert_eq!(engine.poll(now), None, "it waits for the flush");
    }
    let Command::Issue(request) = first else {
        panic!("{first:?}")
    };
    let done = |tag, outcome| Event::Completed { tag, outcome };
    let now = handle(&mut engine, &mut text, 2, done(request.tag, Outcome::Done));
    let mut failed = 0;
    while let Some(command) = engine.poll(now) {
        log::write_decision(&mut text, now, &(&command).into());
        if let Command::Issue(request) = command {
            failed += 1;
            handle(
                &mut engine,
                &mut text,
                2,
                done(request.tag, Outcome::TimedOut),
            );
        }
    }
    assert_eq!((failed, engine.stats().finished), (3, 4));
    let replayed = log::replay(&text, new(), |_| None).expect("the same decisions");
    assert_eq!((replayed.events, replayed.decisions), (8, 8));
}

/// A request that the disk could be held for would have to wait for the flush.
#[test]
fn nobody_is_waited_for_in_front_of_a_flush() {
    let points = [(0, 1), (100, 1), (1_000, 5), (1_000_000, 10)];
    let points = points.map(|(far, ms)| (Sectors::new(far), Nanos::from_millis(ms)));
    let curve = ServiceCurve::new(points.to_vec(), ServiceCurve::BACKWARD).expect("a curve");
    let curve = Arc::new(curve);
    let new = || {
        let spec: Spec = "stream(noop)".parse().expect("a name");
        let knowledge: Knowledge<NoPositioning> = Knowledge {
            positioning: None,
            curve: Some(Arc::clone(&curve)),
            ..Knowledge::default()
        };
        let scheduler = spec.build(knowledge).expect("it needs a curve");
        Engine::new(Config::default(), scheduler).expect("in range")
    };
    let mut engine = new();
    let mut text = String::new();
    log::write_header(&mut text);
    let mut step = |ms: u64, event: Event| {
        let now = Time::ZERO + Nanos::from_millis(ms);
        log::write_event(&mut text, now, &event);
        engine.handle(now, event);
        let mut issued = None;
        while let Some(command) = engine.poll(now) {
            log::write_decision(&mut text, now, &(&command).into());
            if let Command::Issue(request) = command {
                issued = Some(request);
            }
        }
        (issued, engine.next_wakeup())
    };
    let read = |id, lba| Event::Arrived(arrival(id, Op::Read, lba, 8, 0));
    let done = |request: Option<Request<DriveTag>>| Event::Completed {
        tag: request.expect("it was issued").tag,
        outcome: Outcome::Done,
    };
    let mut ms = 0;
    let mut served = None;
    for id in 0..4 {
        served = step(ms, read(id, 500_000 + 8 * id)).0;
        if id < 3 {
            step(ms + 1, done(served));
        }
        ms += 2;
    }
    assert_eq!(step(ms, read(4, 0)).0, None, "one at a time");
    let (issued, until) = step(ms + 1, done(served));
    assert_eq!(issued, None, "it waits for the fifth");
    assert!(until.is_some());
    let flush = Event::Arrived(arrival(5, Op::Flush, 0, 0, 0));
    let (issued, until) = step(ms + 2, flush);
    assert_eq!(issued.map(|request| request.extent.start.get()), Some(0));
    assert_eq!(until, None);
    // The fifth request comes after the flush, and the flush goes when all earlier requests are done.
    assert_eq!(step(ms + 2, read(6, 500_032)).0, None);
    let (flush, _) = step(ms + 3, done(issued));
    assert_eq!(flush.map(|request| request.op), Some(Op::Flush));
    let (fifth, _) = step(ms + 4, done(flush));
    step(ms + 5, done(fifth));
    let replayed = log::replay(&text, new(), |_| None).expect("the same decisions");
    assert_eq!(replayed.events, 14);
}

/// At the end of a cut log, missing decisions are reported and do not count as differences.
#[test]
fn a_log_that_is_cut_replays_up_to_there() {
    let config = Config::default();
    let new = || Engine::new(config, WorkConserving::new(Noop::new())).expect("in range");
    let arrivals = mixed();
    let scheduler = WorkConserving::new(Noop::new());
    let drive = ToyDrive::new(Vec::new());
    let whole = run(
        config,
        scheduler,
        &arrivals,
        drive,
        &mut crate::world::Virtual,
    )
    .log;
    let mut more = 0;
    for len in (15..whole.len()).step_by(997) {
        let mut reader = log::Reader::new(&whole.as_bytes()[..len]);
        let engine = new();
        let mut replay = log::Replay::new(engine);
        while let Some((line, record)) = reader.next_record().expect("a log") {
            replay
                .record(line, record, |_| None)
                .expect("the same decisions");
        }
        let (done, next) = replay.end_cut();
        let lines = whole[..len].matches('\n').count() as u64;
        assert_eq!(1 + done.events + done.decisions, lines, "{len}");
        assert_eq!(reader.number() as u64, lines, "{len}");
        if let Some(next) = next {
            // The whole log has the same decision there.
            let mut line = String::new();
            log::write_decision(&mut line, done.until, &next);
            assert_eq!(whole.lines().nth(lines as usize), Some(line.trim_end()));
            more += 1;
        }
    }
    assert!(more > 3, "{more}");
}
