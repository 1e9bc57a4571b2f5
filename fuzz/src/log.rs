//! Checks on the reader of event logs, and on replaying one.

use crate::schedulers::knowledge;
use headtime_engine::log::{
    self, Decision, LogError, Record, Replay, write_decision, write_event, write_gate_swap,
    write_header, write_record, write_swap,
};
use headtime_engine::{Command, Config, DriveTag, Engine, Event, Outcome, Plug, RequestId};
use headtime_sched::{Scheduler, Spec};
use headtime_testkit::ToyGate;
use headtime_units::{Sectors, Time};

/// Reads `bytes` as a log, replays it, and lets an engine decide anew on its events.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let lines: Vec<Result<(usize, Record), LogError>> = log::read(text).collect();
    let records: Vec<&Record> = lines.iter().flatten().map(|(_, record)| record).collect();
    if lines.iter().all(Result::is_ok) {
        written_is_read(&records);
    }
    let (config, spec) = settings(&records);
    let engine = || Engine::new(config, build(&spec)).expect("settings in range");
    let swapped = |text: &str| Some(build(&text.parse().ok()?));
    // Most logs are wrong somewhere, which is an error; twice the same one.
    let replayed = |text: &str| {
        Replay::new(engine())
            .with_gates(ToyGate::named)
            .all(text, swapped)
    };
    let done = replayed(text);
    assert_eq!(replayed(text), done);

    // The events alone make a log that holds.
    let made = record(&records, crowd(&records), &mut engine());
    if let Err(error) = replayed(&made) {
        panic!("{error}\n{made}");
    }
}

fn build(spec: &Spec) -> Box<dyn Scheduler> {
    spec.build(knowledge()).expect("nothing is missing")
}

fn written_is_read(records: &[&Record]) {
    let mut text = String::new();
    write_header(&mut text);
    for record in records {
        write_record(&mut text, record);
    }
    let again: Result<Vec<(usize, Record)>, LogError> = log::read(&text).collect();
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = again.iter().map(|(_, record)| record);
    assert!(again.eq(records.iter().copied()), "{text}");
}

/// How the engine is to be built: the first setting of each kind that makes sense.
fn settings(records: &[&Record]) -> (Config, Spec) {
    let value = |name: &str| {
        records.iter().find_map(|record| match record {
            Record::Setting { key, value } if key == name => Some(value.as_str()),
            _ => None,
        })
    };
    let mut config = Config::default();
    if let Some(depth) = value("depth").and_then(|depth| depth.parse().ok()) {
        config.depth = u32::clamp(depth, 1, 256);
    }
    if let Some(most) = value("merge").and_then(|most| most.parse().ok()) {
        config.merge = most > 0;
        config.merge_sectors_max = Sectors::new(most);
    }
    config.commit_ahead = value("commit_ahead") == Some("true");
    config.plug = value("plug").and_then(|plug| {
        let (requests, timeout) = plug.split_once(' ')?;
        Some(Plug {
            requests: requests.parse().ok()?,
            timeout: timeout.parse().ok()?,
        })
    });
    let spec = value("scheduler").and_then(|text| text.parse().ok());
    let noop = || "noop".parse().expect("a scheduler");
    (config, spec.unwrap_or_else(noop))
}

/// As how many each arrival counts: `# crowd 500` makes one line a crowd at one place. Of all together
/// there are no more than a few thousand.
fn crowd(records: &[&Record]) -> u64 {
    const MOST: u64 = 4_000;
    let wanted = records.iter().find_map(|record| match record {
        Record::Setting { key, value } if key == "crowd" => value.parse::<u64>().ok(),
        _ => None,
    });
    let arrives = |record: &&&Record| matches!(record, Record::Event(_, Event::Arrived(_)));
    let arrivals = records.iter().filter(arrives).count() as u64;
    wanted.unwrap_or(1).min(MOST / arrivals.max(1)).max(1)
}

/// Feeds the events to an engine, but for completions that cannot be, and logs what it decides. Then
/// the drive ends what it has, until nothing is left.
fn record(records: &[&Record], crowd: u64, engine: &mut Engine<Box<dyn Scheduler>>) -> String {
    let mut text = String::new();
    let mut last = Time::ZERO;
    write_header(&mut text);
    let mut in_drive: Vec<(DriveTag, Time)> = Vec::new();
    // It comes between the end of a request and the next decision, and only there.
    let mut foretold = None;
    for record in records {
        let (now, mut event) = match record {
            Record::Event(now, event) => (now, *event),
            Record::Swapped(now, lane, scheduler) if lane.index() < engine.schedulers().count() => {
                let Ok(spec) = scheduler.parse() else {
                    continue;
                };
                write_swap(&mut text, *now, *lane, scheduler);
                engine.replace_scheduler(*now, *lane, build(&spec));
                last = *now;
                decide(*now, engine, &mut in_drive, &mut foretold, &mut text);
                continue;
            }
            Record::GateSwapped(now, gate, schedulers) => {
                let specs = schedulers.iter().map(|text| text.parse());
                let (Some(swapped), Ok(specs)) = (
                    ToyGate::named(gate, &Config::default()),
                    specs.collect::<Result<Vec<_>, _>>(),
                ) else {
                    continue;
                };
                if specs.len() != swapped.lanes() {
                    continue;
                }
                write_gate_swap(&mut text, *now, gate, schedulers);
                engine.replace_gate(*now, swapped, specs.iter().map(build).collect());
                last = *now;
                decide(*now, engine, &mut in_drive, &mut foretold, &mut text);
                continue;
            }
            // Another member's: there is one engine.
            Record::Setting { .. }
            | Record::Decision(..)
            | Record::OfMember(..)
            | Record::Swapped(..) => continue,
        };
        if let Event::Foretold(_) = event {
            foretold = Some(event);
            continue;
        }
        if let Event::Completed { tag, outcome } = &mut event {
            // Any tag stands for one of those in the drive.
            let Some(at) = tag.index().checked_rem(in_drive.len()) else {
                continue;
            };
            // Whoever gives up on a command in the moment it is issued does so before the next
            // decision, and here all have been made.
            if *outcome == Outcome::TimedOut && in_drive[at].1 == *now {
                continue;
            }
            (*tag, _) = in_drive.swap_remove(at);
        }
        if let Event::Joined {
            arrival,
            lane,
            join,
        } = &event
            && !engine.may_join(arrival, *lane, *join)
        {
            continue;
        }
        if let Event::Drained { from, to } = event
            && from.index().max(to.index()) >= engine.schedulers().count()
        {
            continue;
        }
        last = *now;
        let times = match event {
            Event::Arrived(_) => crowd,
            _ => 1,
        };
        for time in 0..times {
            if let Event::Arrived(new) = &mut event {
                new.id = next_id(new.id, time);
            }
            write_event(&mut text, last, &event);
            engine.handle(last, event);
            decide(last, engine, &mut in_drive, &mut foretold, &mut text);
        }
    }
    while !engine.is_idle() {
        let event = match in_drive.pop() {
            Some((tag, _)) => Event::Completed {
                tag,
                outcome: Outcome::Done,
            },
            None => {
                let wakes = engine.next_wakeup().expect("it waits for a time");
                if wakes > Time::LATEST {
                    // No log goes so far.
                    return text;
                }
                last = last.max(wakes);
                Event::Woke
            }
        };
        write_event(&mut text, last, &event);
        engine.handle(last, event);
        decide(last, engine, &mut in_drive, &mut foretold, &mut text);
    }
    assert_eq!(engine.stats().finished, engine.stats().arrived);
    text
}

fn next_id(id: RequestId, by: u64) -> RequestId {
    match id {
        RequestId::Client(id) => RequestId::Client(id.wrapping_add(by)),
        RequestId::Background(id) => RequestId::Background(id.wrapping_add(by)),
    }
}

fn decide(
    now: Time,
    engine: &mut Engine<Box<dyn Scheduler>>,
    in_drive: &mut Vec<(DriveTag, Time)>,
    foretold: &mut Option<Event>,
    text: &mut String,
) {
    while let Some(command) = engine.poll(now) {
        write_decision(text, now, &Decision::from(&command));
        if let Command::Finish(_) | Command::Background(_) = command
            && let Some(event) = foretold.take()
        {
            write_event(text, now, &event);
            engine.handle(now, event);
        }
        if let Command::Issue(request) = command {
            assert!(in_drive.iter().all(|(tag, _)| *tag != request.tag));
            in_drive.push((request.tag, now));
            assert!(in_drive.len() <= engine.config().depth as usize);
        }
    }
}
