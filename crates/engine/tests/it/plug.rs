//! Holding requests back so that others can join them.

use crate::world::arrival;
use headtime_engine::{Command, Config, DriveTag, Engine, Event, Outcome, Plug};
use headtime_sched::{Flags, Noop, Op, Scheduler, WorkConserving};
use headtime_units::{Nanos, Time};

fn plugged() -> Engine<WorkConserving<Noop>> {
    let config = Config {
        plug: Some(Plug::LINUX_2_6),
        depth: 2,
        ..Config::default()
    };
    Engine::new(config, WorkConserving::new(Noop::new())).expect("valid")
}

fn read(id: u64, start: u64) -> Event {
    Event::Arrived(arrival(id, Op::Read, start, 8, 0))
}

/// The first sectors of the commands that go out now.
fn issued<S: Scheduler>(engine: &mut Engine<S>, now: Time) -> Vec<u64> {
    std::iter::from_fn(|| engine.poll(now))
        .filter_map(|command| match command {
            Command::Issue(request) => Some(request.extent.start.get()),
            Command::Finish(_) | Command::Background(_) => None,
        })
        .collect()
}

fn at(us: u64) -> Time {
    Time::ZERO + Nanos::from_micros(us)
}

#[test]
fn a_lone_request_waits_for_the_timer() {
    let mut engine = plugged();
    engine.handle(at(0), read(0, 100));
    assert_eq!(issued(&mut engine, at(0)), []);
    assert_eq!(engine.next_wakeup(), Some(at(4000)));
    engine.handle(at(3999), Event::Woke);
    assert_eq!(issued(&mut engine, at(3999)), []);
    engine.handle(at(4000), Event::Woke);
    assert_eq!(issued(&mut engine, at(4000)), [100]);
    assert_eq!(engine.next_wakeup(), None);
}

/// The end of this wait lies past the latest time.
#[test]
fn a_plug_that_no_timer_ends_is_opened_by_the_next_request_that_somebody_waits_for() {
    let config = Config {
        plug: Some(Plug {
            requests: 4,
            timeout: Nanos::MAX,
        }),
        ..Config::default()
    };
    let mut engine = Engine::new(config, WorkConserving::new(Noop::new())).expect("valid");
    let late = Time::LATEST;
    engine.handle(late, read(0, 100));
    assert_eq!(issued(&mut engine, late), []);
    assert_eq!(engine.next_wakeup(), Some(Time::NEVER));
    engine.handle(late, Event::Woke);
    assert_eq!(issued(&mut engine, late), []);
    let mut waited_for = arrival(1, Op::Read, 900, 8, 0);
    waited_for.flags = Flags::SYNC;
    engine.handle(late, Event::Arrived(waited_for));
    assert_eq!(issued(&mut engine, late), [100]);
    assert_eq!(engine.next_wakeup(), None);
}

#[test]
fn what_comes_meanwhile_is_merged() {
    let mut engine = plugged();
    for id in 0..3 {
        engine.handle(at(id), read(id, 100 + 8 * id));
        assert_eq!(issued(&mut engine, at(id)), []);
    }
    engine.handle(at(3), Event::Unplugged);
    assert_eq!(issued(&mut engine, at(3)), [100]);
    assert_eq!((engine.stats().merged_back, engine.stats().issued), (2, 1));
}

#[test]
fn four_queued_requests_open_the_queue() {
    let mut engine = plugged();
    for id in 0..3 {
        engine.handle(at(0), read(id, 100 * id));
        assert_eq!(issued(&mut engine, at(0)), []);
    }
    engine.handle(at(0), read(3, 300));
    assert_eq!(issued(&mut engine, at(0)), [0, 100]);
}

#[test]
fn a_sync_request_goes_at_once() {
    let mut engine = plugged();
    engine.handle(at(0), read(0, 100));
    let mut urgent = arrival(1, Op::Read, 500, 8, 0);
    urgent.flags = Flags::SYNC;
    engine.handle(at(1), Event::Arrived(urgent));
    assert_eq!(issued(&mut engine, at(1)), [100, 500]);
}

#[test]
fn a_completion_opens_the_queue() {
    let mut engine = plugged();
    engine.handle(at(0), read(0, 100));
    engine.handle(at(0), Event::Unplugged);
    assert_eq!(issued(&mut engine, at(0)), [100]);
    engine.handle(at(1), read(1, 900));
    assert_eq!(issued(&mut engine, at(1)), []);
    let (tag, outcome) = (DriveTag(0), Outcome::Done);
    engine.handle(at(2), Event::Completed { tag, outcome });
    assert_eq!(issued(&mut engine, at(2)), [900]);
}

#[test]
fn a_queue_that_is_not_empty_is_not_plugged() {
    let mut engine = plugged();
    engine.handle(at(0), read(0, 100));
    engine.handle(at(0), Event::Unplugged);
    // Nobody asked for commands yet: it is queued still.
    engine.handle(at(0), read(1, 900));
    assert_eq!(issued(&mut engine, at(0)), [100, 900]);
}
