//! Random requests with overlaps, flushes and bad sectors: the engine keeps its promises.

use crate::world::{Timed, ToyDrive, Virtual, arrival, run};
use headtime_engine::{Command, Config, DriveTag, Engine, Event, Outcome, Plug, Stats, log};
use headtime_sched::{
    Deadline, DeadlineConfig, Flags, Noop, Op, Request, Scheduler, WorkConserving,
};
use headtime_testkit::{ToyAnticipator, ToyFair};
use headtime_units::{Nanos, Sectors, Time};
use proptest::prelude::*;

fn arrivals() -> impl Strategy<Value = Vec<Timed>> {
    let one = (0_u64..200, 0_u8..20, 0_u64..64, 1_u64..9, 0_u32..3, 0_u8..6);
    proptest::collection::vec(one, 1..80).prop_map(|ones| {
        let mut now = Time::ZERO;
        let mut sequential = 1000;
        let mut all = Vec::new();
        for (id, (gap, kind, start, len, process, flags)) in ones.into_iter().enumerate() {
            now += Nanos::from_micros(gap.saturating_sub(60));
            let id = id as u64;
            let mut new = match kind {
                0 => arrival(id, Op::Flush, 0, 0, process),
                1 => arrival(id, Op::Discard, start, len, process),
                2..=7 => arrival(id, Op::Write, start, len, process),
                8..=13 => arrival(id, Op::Read, start, len, process),
                _ => {
                    sequential += len;
                    arrival(id, Op::Read, sequential - len, len, process)
                }
            };
            if new.op == Op::Write {
                new.flags = match flags {
                    0 => Flags::FUA,
                    1 => Flags::PREFLUSH,
                    2 => Flags::PREFLUSH.with(Flags::FUA),
                    _ => Flags::NONE,
                };
            }
            all.push((now, new));
        }
        all
    })
}

fn config() -> impl Strategy<Value = Config> {
    let timeout = prop_oneof![
        4 => (1_u64..5000).prop_map(Nanos::from_micros),
        1 => prop::sample::select(vec![Nanos::ZERO, Nanos::from_nanos(1), Nanos::LONGEST]),
    ];
    let plug = (1_u32..6, timeout).prop_map(|(requests, timeout)| Plug { requests, timeout });
    let plug = proptest::option::of(plug);
    (
        1_u32..8,
        any::<bool>(),
        1_u64..40,
        any::<bool>(),
        plug,
        any::<bool>(),
    )
        .prop_map(
            |(depth, merge, most, commit_ahead, plug, hide_origins)| Config {
                depth,
                merge,
                merge_sectors_max: Sectors::new(most),
                commit_ahead,
                plug,
                ..Config {
                    hide_origins,
                    ..Config::default()
                }
            },
        )
}

fn keeps_promises<S: Scheduler>(
    new: impl Fn() -> S,
    config: Config,
    arrivals: &[Timed],
    bad: &[u64],
) -> Stats {
    let done = run(
        config,
        new(),
        arrivals,
        ToyDrive::new(bad.to_vec()),
        &mut Virtual,
    );
    let engine = Engine::new(config, new()).expect("the same configuration");
    let mut replay = log::Replay::new(engine);
    let replayed = replay.all(&done.log, |_| None).expect("the same decisions");
    assert!(replayed.events >= arrivals.len() as u64);
    *replay.engines()[0].stats()
}

/// A change to a log.
#[derive(Clone, Debug)]
enum Spoil {
    /// A field becomes this.
    Field(prop::sample::Index, prop::sample::Index, &'static str),
    /// A line goes.
    Gone(prop::sample::Index),
    /// A line comes twice.
    Twice(prop::sample::Index),
    /// A line comes somewhere else.
    Moved(prop::sample::Index, prop::sample::Index),
    /// The scheduler is swapped for another.
    Swap(prop::sample::Index),
}

fn spoil() -> impl Strategy<Value = Spoil> {
    let at = any::<prop::sample::Index>;
    let words = vec![
        "0",
        "1",
        "2",
        "63",
        "4294967295",
        "9223372036854775807",
        "18446744073709551615",
        "ok",
        "medium",
        "R",
        "W",
        "D",
    ];
    prop_oneof![
        4 => (at(), at(), prop::sample::select(words))
            .prop_map(|(line, field, word)| Spoil::Field(line, field, word)),
        1 => at().prop_map(Spoil::Gone),
        1 => at().prop_map(Spoil::Twice),
        1 => (at(), at()).prop_map(|(from, to)| Spoil::Moved(from, to)),
        1 => at().prop_map(Spoil::Swap),
    ]
}

impl Spoil {
    fn apply(&self, lines: &mut Vec<String>) {
        // The header stays.
        let len = lines.len() - 1;
        match self {
            Spoil::Field(line, field, word) => {
                let line = &mut lines[1 + line.index(len)];
                let mut fields: Vec<&str> = line.split(' ').collect();
                let field = field.index(fields.len());
                fields[field] = word;
                *line = fields.join(" ");
            }
            Spoil::Gone(line) if len > 1 => {
                lines.remove(1 + line.index(len));
            }
            Spoil::Gone(_) => {}
            Spoil::Twice(line) => {
                let line = 1 + line.index(len);
                lines.insert(line, lines[line].clone());
            }
            Spoil::Moved(from, to) => {
                let line = lines.remove(1 + from.index(len));
                lines.insert(1 + to.index(len), line);
            }
            Spoil::Swap(line) => {
                let line = 1 + line.index(len);
                let time = lines[line].split(' ').nth(1).unwrap_or("0").to_owned();
                lines.insert(line, format!("S {time} deadline"));
            }
        }
    }
}

proptest! {
    #[test]
    fn an_engine_over_noop_keeps_its_promises(arrivals in arrivals(), config in config(), bad in proptest::option::of(0_u64..64)) {
        let bad: Vec<u64> = bad.into_iter().collect();
        keeps_promises(|| WorkConserving::new(Noop::new()), config, &arrivals, &bad);
    }

    #[test]
    fn an_engine_over_a_scheduler_that_waits_keeps_its_promises(arrivals in arrivals(), config in config()) {
        keeps_promises(|| ToyAnticipator::new(Noop::new()), config, &arrivals, &[]);
    }

    #[test]
    fn an_engine_over_a_fair_scheduler_keeps_its_promises(arrivals in arrivals(), config in config()) {
        keeps_promises(|| WorkConserving::new(ToyFair::new()), config, &arrivals, &[]);
    }

    /// A log that something has happened to is refused, or is another log: nobody panics over it.
    #[test]
    fn a_spoiled_log_is_no_bug(
        arrivals in arrivals(),
        config in config(),
        spoils in proptest::collection::vec(spoil(), 1..4),
    ) {
        let noop = || WorkConserving::new(Noop::new());
        let drive = ToyDrive::new(vec![3]);
        let log = run(config, noop(), &arrivals, drive, &mut Virtual).log;
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        for spoil in spoils {
            spoil.apply(&mut lines);
        }
        let spoiled = lines.join("\n");
        let deadline = || WorkConserving::new(Deadline::new(DeadlineConfig::default()));
        let engine = Engine::new(config, noop()).expect("the same configuration");
        let _ = log::replay(&spoiled, engine, |_| None);
        let engine = Engine::new(config, deadline()).expect("the same configuration");
        let _ = log::replay(&spoiled, engine, |_| Some(deadline()));
    }

    #[test]
    fn log_reader_takes_anything(text in ".*") {
        let _ = log::read(&format!("headtime-log 1\n{text}")).count();
    }
}

/// A discard of most of a disk waits for overlapping requests, and later requests wait for the discard. The cost
/// depends on the waiting requests, not on the discard's length.
#[test]
fn a_discard_of_terabytes_is_one_request() {
    let config = Config {
        depth: 32,
        ..Config::default()
    };
    let mut engine = Engine::new(config, WorkConserving::new(Noop::new())).expect("in range");
    let now = Time::ZERO;
    let all = 40_000_000_000_u64;
    let mut issued = Vec::new();
    let mut finished = Vec::new();
    let mut ask = |engine: &mut Engine<_>, new, issued: &mut Vec<_>| {
        engine.handle(now, Event::Arrived(new));
        poll(engine, now, issued, &mut finished);
    };
    for id in 0..20 {
        let read = arrival(id, Op::Read, id * 1_000_000_000, 8, 0);
        ask(&mut engine, read, &mut issued);
    }
    ask(
        &mut engine,
        arrival(20, Op::Discard, 8, all - 8, 0),
        &mut issued,
    );
    assert_eq!(issued.len(), 20, "it waits for what it overlaps");
    for id in 21..40 {
        let read = arrival(id, Op::Read, (id - 20) * 1_000_000_000, 8, 0);
        ask(&mut engine, read, &mut issued);
    }
    ask(&mut engine, arrival(40, Op::Write, 0, 8, 0), &mut issued);
    // The read of sector 0 is in the drive, and the write waits for it; the others wait for the
    // discard.
    assert_eq!(issued.len(), 20);
    let first = std::mem::take(&mut issued);
    for request in first {
        done(&mut engine, now, request, &mut issued, &mut finished);
    }
    let ops: Vec<Op> = issued.iter().map(|request| request.op).collect();
    assert_eq!(ops, [Op::Write, Op::Discard]);
    while !issued.is_empty() {
        let request = issued.remove(0);
        done(&mut engine, now, request, &mut issued, &mut finished);
    }
    assert!(engine.is_idle());
    assert_eq!(finished.len(), 41);
    assert_eq!(engine.stats().held_overlap, 21);
}

fn poll(
    engine: &mut Engine<WorkConserving<Noop>>,
    now: Time,
    issued: &mut Vec<Request<DriveTag>>,
    finished: &mut Vec<u64>,
) {
    while let Some(command) = engine.poll(now) {
        match command {
            Command::Issue(request) => issued.push(request),
            Command::Finish(done) | Command::Background(done) => finished.push(done.id),
        }
    }
}

fn done(
    engine: &mut Engine<WorkConserving<Noop>>,
    now: Time,
    request: Request<DriveTag>,
    issued: &mut Vec<Request<DriveTag>>,
    finished: &mut Vec<u64>,
) {
    let (tag, outcome) = (request.tag, Outcome::Done);
    engine.handle(now, Event::Completed { tag, outcome });
    poll(engine, now, issued, finished);
}
