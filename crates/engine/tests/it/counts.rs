//! Counters of the engine: waiting requests with the reasons, idleness, and sums.

use crate::world::{arrival, poll, read};
use headtime_engine::{Command, Config, DriveTag, Engine, Event, Outcome, Plug};
use headtime_sched::{Backlog, Noop, Op, Scheduler, Sstf, WorkConserving};
use headtime_testkit::ToyAnticipator;
use headtime_units::{Nanos, Time};

fn noop(config: Config) -> Engine<WorkConserving<Noop>> {
    Engine::new(config, WorkConserving::new(Noop::new())).expect("in range")
}

fn depth(depth: u32) -> Config {
    Config {
        depth,
        ..Config::default()
    }
}

fn complete<S: Scheduler>(engine: &mut Engine<S>, now: Time, outcome: Outcome) -> Vec<u64> {
    let tag = DriveTag(0);
    engine.handle(now, Event::Completed { tag, outcome });
    poll(engine, now)
}

fn says<S: Scheduler>(engine: &Engine<S>) -> (usize, Backlog, bool) {
    (engine.waiting(), engine.backlog(), engine.is_idle())
}

#[test]
fn requests_that_find_the_drive_full_wait_for_it() {
    let (mut engine, now) = (noop(depth(2)), Time::ZERO);
    assert_eq!(says(&engine), (0, Backlog::Nothing, true));
    for (id, waiting) in [(0, 0), (1, 0), (2, 1), (3, 2)] {
        read(&mut engine, now, id, 1000 * id);
        let backlog = match waiting {
            0 => Backlog::Nothing,
            _ => Backlog::Busy,
        };
        assert_eq!(says(&engine), (waiting, backlog, false));
    }
    assert_eq!(engine.schedulers().count(), 1);
}

#[test]
fn requests_held_by_order_are_counted_with_those_behind_a_flush() {
    let (mut engine, now) = (noop(depth(8)), Time::ZERO);
    read(&mut engine, now, 0, 0);
    engine.handle(now, Event::Arrived(arrival(1, Op::Write, 0, 8, 0)));
    assert_eq!(poll(&mut engine, now), [0; 0]);
    assert_eq!(says(&engine), (1, Backlog::Held, false));
    engine.handle(now, Event::Arrived(arrival(2, Op::Flush, 0, 0, 0)));
    for id in 3..6 {
        assert_eq!(read(&mut engine, now, id, 1000 * id), [0; 0]);
    }
    assert_eq!(says(&engine), (5, Backlog::Held, false));
}

#[test]
fn an_engine_with_only_a_flush_or_an_answer_is_not_idle() {
    let (mut engine, now) = (noop(depth(1)), Time::ZERO);
    engine.handle(now, Event::Arrived(arrival(0, Op::Flush, 0, 0, 0)));
    poll(&mut engine, now);
    assert!(!engine.is_idle(), "the flush is in the drive");
    let (tag, outcome) = (DriveTag(0), Outcome::Done);
    engine.handle(now, Event::Completed { tag, outcome });
    assert!(!engine.is_idle(), "nobody has been told");
    poll(&mut engine, now);
    assert!(engine.is_idle());
    read(&mut engine, now, 1, 0);
    assert!(!engine.is_idle(), "a read is in the drive");
}

#[test]
fn a_plug_opens_when_its_time_has_come_and_no_earlier() {
    let plug = Some(Plug {
        requests: 4,
        timeout: Nanos::from_millis(4),
    });
    let mut engine = noop(Config { plug, ..depth(2) });
    assert_eq!(read(&mut engine, Time::ZERO, 0, 0), [0; 0]);
    assert_eq!(says(&engine), (1, Backlog::Held, false));
    let end = engine.next_wakeup().expect("the plug has an end");
    assert_eq!(end, Time::ZERO + Nanos::from_millis(4));
    let early = end - Nanos::from_nanos(1);
    engine.handle(early, Event::Woke);
    assert_eq!(poll(&mut engine, early), [0; 0]);
    engine.handle(end, Event::Woke);
    assert_eq!(poll(&mut engine, end), [0]);
}

#[test]
fn a_scheduler_that_waits_with_room_in_the_drive_has_chosen_to() {
    let scheduler = ToyAnticipator::new(Sstf::new());
    let (mut engine, now) = (Engine::new(depth(1), scheduler).unwrap(), Time::ZERO);
    assert_eq!(read(&mut engine, now, 0, 0), [0]);
    assert_eq!(complete(&mut engine, now, Outcome::Done), [0; 0]);
    assert_eq!(read(&mut engine, now, 1, 8), [8]);
    assert_eq!(read(&mut engine, now, 2, 5000), [0; 0]);
    assert_eq!(says(&engine), (1, Backlog::Busy, false));
    assert_eq!(complete(&mut engine, now, Outcome::Done), [0; 0]);
    assert_eq!(says(&engine), (1, Backlog::Chosen, false));
    assert_eq!(engine.stats().idled, 1);
    assert_eq!(read(&mut engine, now, 3, 16), [16]);
    assert_eq!(says(&engine), (1, Backlog::Busy, false));
}

#[test]
fn choices_and_overtaking_are_counted() {
    let scheduler = WorkConserving::new(Sstf::new());
    let (mut engine, mut now) = (Engine::new(depth(1), scheduler).unwrap(), Time::ZERO);
    for (id, start) in [(0, 0), (1, 90_000), (2, 50_000), (3, 1_000), (4, 70_000)] {
        now += Nanos::from_nanos(1);
        read(&mut engine, now, id, start);
    }
    let mut order = Vec::new();
    while !engine.is_idle() {
        order.extend(complete(&mut engine, now, Outcome::Done));
    }
    assert_eq!(order, [1_000, 50_000, 70_000, 90_000]);
    let stats = engine.stats();
    assert_eq!(stats.chosen, 3, "the first and the last were alone");
    assert_eq!(
        stats.overtaken, 2,
        "the two that had come before one that went earlier"
    );
    assert_eq!(stats.queued_max, 4);
}

#[test]
fn requests_that_fuse_count_as_one_that_is_queued() {
    let (mut engine, now) = (noop(depth(1)), Time::ZERO);
    for (id, start) in [(0, 9_000), (1, 0), (2, 16), (3, 8)] {
        read(&mut engine, now, id, start);
    }
    assert_eq!((engine.stats().merged_back, engine.stats().fused), (1, 1));
    for (id, start) in [(4, 2_000), (5, 3_000)] {
        read(&mut engine, now, id, start);
    }
    assert_eq!(engine.stats().queued_max, 3);
    assert_eq!(engine.waiting(), 3);
}

#[test]
fn requests_that_came_at_the_same_time_do_not_overtake_each_other() {
    let scheduler = WorkConserving::new(Sstf::new());
    let (mut engine, now) = (Engine::new(depth(1), scheduler).unwrap(), Time::ZERO);
    for (id, start) in [(0, 0), (1, 90_000), (2, 50_000), (3, 1_000)] {
        read(&mut engine, now, id, start);
    }
    while !engine.is_idle() {
        complete(&mut engine, now, Outcome::Done);
    }
    assert_eq!(engine.stats().overtaken, 0);
}

#[test]
fn a_part_that_goes_again_alone_still_hides_its_process() {
    let config = Config {
        hide_origins: true,
        ..depth(1)
    };
    let (mut engine, now) = (noop(config), Time::ZERO);
    for (id, start) in [(0, 9_000), (1, 8), (2, 16)] {
        let hidden = arrival(id, Op::Read, start, 8, 7);
        engine.handle(now, Event::Arrived(hidden));
    }
    let mut seen = Vec::new();
    let mut outcomes = [Outcome::Done, Outcome::MediumError].into_iter();
    loop {
        while let Some(command) = engine.poll(now) {
            if let Command::Issue(request) = command {
                seen.push((request.extent.start.get(), request.origin.process));
            }
        }
        if engine.is_idle() {
            break;
        }
        let (tag, outcome) = (DriveTag(0), outcomes.next().unwrap_or(Outcome::Done));
        engine.handle(now, Event::Completed { tag, outcome });
    }
    assert_eq!(seen, [(9_000, 0), (8, 0), (8, 0), (16, 0)]);
}

#[test]
fn a_part_that_goes_again_alone_is_not_merged_into_a_neighbour() {
    let (mut engine, now) = (noop(depth(1)), Time::ZERO);
    read(&mut engine, now, 0, 9_000);
    for (id, start) in [(1, 8), (2, 16)] {
        read(&mut engine, now, id, start);
    }
    assert_eq!(complete(&mut engine, now, Outcome::Done), [8]);
    read(&mut engine, now, 3, 24);
    let mut order = complete(&mut engine, now, Outcome::MediumError);
    while !engine.is_idle() {
        order.extend(complete(&mut engine, now, Outcome::Done));
    }
    order.sort_unstable();
    assert_eq!(order, [8, 16, 24]);
}
