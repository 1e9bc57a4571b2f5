//! Merging, committing ahead, errors and swaps, step by step.

use crate::world::arrival;
use headtime_engine::{
    Command, Config, ConfigError, DriveTag, Engine, Event, Lane, Outcome, RequestId,
};
use headtime_sched::{
    Cfq, Deadline, DeadlineConfig, Flags, Noop, Op, Request, Scheduler, Sstf, WorkConserving,
};
use headtime_testkit::ToyFair;
use headtime_units::{Sectors, Time};

const T: Time = Time::from_nanos(1);

/// An engine with one request in the drive, so that what follows is queued.
fn busy(config: Config) -> Engine<WorkConserving<Noop>> {
    let mut engine = Engine::new(config, WorkConserving::new(Noop::new())).expect("valid");
    engine.handle(
        Time::ZERO,
        Event::Arrived(arrival(0, Op::Read, 100_000, 1, 0)),
    );
    assert_eq!(issued(&mut engine, Time::ZERO), ["R 100000+1"]);
    engine
}

fn add<S: Scheduler>(engine: &mut Engine<S>, id: u64, op: Op, start: u64, len: u64) {
    engine.handle(T, Event::Arrived(arrival(id, op, start, len, 0)));
}

/// Commands of the engine as text. An exclamation mark stands for an error.
fn issued<S: Scheduler>(engine: &mut Engine<S>, now: Time) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(command) = engine.poll(now) {
        all.push(match command {
            Command::Issue(Request { op, extent, .. }) => {
                let op = format!("{op:?}");
                format!("{} {extent}", &op[..1])
            }
            Command::Finish(done) if done.outcome == Outcome::Done => format!("done {}", done.id),
            Command::Finish(done) => format!("done {}!", done.id),
            Command::Background(done) => panic!("nobody asked for {done:?}"),
        });
    }
    all
}

fn complete<S: Scheduler>(engine: &mut Engine<S>, outcome: Outcome) -> Vec<String> {
    engine.handle(
        T,
        Event::Completed {
            tag: DriveTag(0),
            outcome,
        },
    );
    issued(engine, T)
}

#[test]
fn back_front_and_fusion() {
    let mut engine = busy(Config::default());
    add(&mut engine, 1, Op::Read, 8, 8);
    add(&mut engine, 2, Op::Read, 16, 8); // Back of 1.
    add(&mut engine, 3, Op::Read, 0, 8); // Front of 1.
    add(&mut engine, 4, Op::Read, 32, 8); // Touches nothing.
    add(&mut engine, 5, Op::Read, 24, 8); // Back of 1, and now 1 and 4 touch.
    let stats = engine.stats();
    assert_eq!(
        (stats.merged_back, stats.merged_front, stats.fused),
        (2, 1, 1)
    );
    assert_eq!(engine.waiting(), 1);
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 0", "R 0+40"]);
    let parts: Vec<RequestId> = engine.parts(DriveTag(0)).map(|(id, _)| id).collect();
    assert_eq!(parts, [1, 2, 3, 5, 4].map(RequestId::Client));
    let done = ["done 1", "done 2", "done 3", "done 5", "done 4"];
    assert_eq!(complete(&mut engine, Outcome::Done), done);
    assert!(engine.is_idle());
}

#[test]
fn only_what_is_alike_merges() {
    let mut engine = busy(Config {
        merge_sectors_max: Sectors::new(16),
        ..Config::default()
    });
    add(&mut engine, 1, Op::Read, 0, 8);
    add(&mut engine, 2, Op::Write, 8, 8); // Another direction.
    add(&mut engine, 3, Op::Discard, 16, 8); // Discards do not merge.
    add(&mut engine, 4, Op::Discard, 24, 8);
    let mut fua = arrival(5, Op::Write, 32, 8, 0);
    fua.flags = Flags::FUA;
    engine.handle(T, Event::Arrived(fua));
    add(&mut engine, 6, Op::Write, 40, 8); // Without FUA.
    add(&mut engine, 7, Op::Write, 48, 8); // Fills 6.
    add(&mut engine, 8, Op::Write, 56, 8); // Would be too large.
    assert_eq!(engine.waiting(), 7);
    assert_eq!(engine.stats().merged_back, 1);
}

#[test]
fn hidden_processes_are_one_to_the_policy_and_reported_as_they_are() {
    let config = Config {
        hide_origins: true,
        ..Config::default()
    };
    let fair = WorkConserving::new(ToyFair::new());
    let mut engine = Engine::new(config, fair).expect("valid");
    for (id, start) in [(0, 900), (1, 100), (2, 108)] {
        let process = 7 + id as u32;
        let new = arrival(id, Op::Read, start, 8, process);
        engine.handle(Time::ZERO, Event::Arrived(new));
        assert!(id > 0 || engine.poll(Time::ZERO).is_some());
    }
    // A policy that knew the processes would refuse.
    assert_eq!(engine.stats().merged_back, 1);
    let (tag, outcome) = (DriveTag(0), Outcome::Done);
    engine.handle(T, Event::Completed { tag, outcome });
    let Some(Command::Finish(done)) = engine.poll(T) else {
        panic!("finished")
    };
    assert_eq!(done.request.origin.process, 7);
    let Some(Command::Issue(request)) = engine.poll(T) else {
        panic!("issued")
    };
    assert_eq!(request.origin.process, 0);
}

#[test]
fn requests_that_the_policy_keeps_apart_do_not_merge() {
    let mut engine =
        Engine::new(Config::default(), WorkConserving::new(ToyFair::new())).expect("valid");
    for (id, start, process) in [(1, 0, 1), (2, 8, 2), (3, 16, 2), (4, 24, 1)] {
        engine.handle(T, Event::Arrived(arrival(id, Op::Read, start, 8, process)));
    }
    assert_eq!(engine.stats().merged_back, 1);
    assert_eq!(issued(&mut engine, T), ["R 0+8"]);
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 1", "R 8+16"]);
}

/// Of several that end at one address, all but the first are indexed by process, which CFQ keeps apart.
#[test]
fn requests_that_were_queued_before_a_swap_merge_by_the_new_scheduler() {
    let noop = Box::new(WorkConserving::new(Noop::new())) as Box<dyn Scheduler>;
    let mut engine = Engine::new(Config::default(), noop).expect("valid");
    let read = |id, start, len, process| Event::Arrived(arrival(id, Op::Read, start, len, process));
    engine.handle(T, read(0, 100_000, 8, 3));
    assert_eq!(issued(&mut engine, T), ["R 100000+8"]);
    engine.handle(T, read(1, 0, 8, 1));
    engine.handle(T, read(2, 4, 4, 2));
    engine.replace_scheduler(T, Lane(0), Box::new(Cfq::default()));
    engine.handle(T, read(3, 8, 8, 2));
    assert_eq!(engine.stats().merged_back, 1);
}

/// A read is held for 6 s behind a write of its sectors, and then joins what came 0.1 s ago: at its
/// back, at its front, or between two.
#[test]
fn a_merged_request_counts_from_its_oldest_part_in_every_direction() {
    let (early, late) = (
        Time::from_nanos(5_900_000_000),
        Time::from_nanos(6_000_000_000),
    );
    for (fresh, grown) in [
        (&[992][..], "992+16"),
        (&[1_008], "1000+16"),
        (&[992, 1_008], "992+24"),
    ] {
        let config = Config {
            depth: 2,
            commit_ahead: false,
            ..Config::default()
        };
        let deadline = Deadline::new(DeadlineConfig {
            fifo_batch: 1,
            ..DeadlineConfig::DEFAULT
        });
        let mut engine = Engine::new(config, WorkConserving::new(deadline)).expect("valid");
        let mut id = 0;
        let mut add = |engine: &mut Engine<_>, now, op, start| {
            engine.handle(now, Event::Arrived(arrival(id, op, start, 8, 0)));
            id += 1;
        };
        add(&mut engine, Time::ZERO, Op::Write, 1_000);
        add(&mut engine, Time::ZERO, Op::Read, 1_000);
        assert_eq!(issued(&mut engine, Time::ZERO), ["W 1000+8"]);
        for start in [100, 500].iter().chain(fresh) {
            add(&mut engine, early, Op::Read, *start);
        }
        // The sweep goes on at 500, unless something has expired.
        assert_eq!(issued(&mut engine, early), ["R 100+8"]);
        let (tag, outcome) = (DriveTag(0), Outcome::Done);
        engine.handle(late, Event::Completed { tag, outcome });
        let Some(Command::Finish(_)) = engine.poll(late) else {
            panic!("the write is done")
        };
        let Some(Command::Issue(first)) = engine.poll(late) else {
            panic!("there is room")
        };
        assert_eq!(first.extent.to_string(), grown);
        assert_eq!(first.arrival, Time::ZERO);
    }
}

#[test]
fn no_merging_when_off() {
    let mut engine = busy(Config {
        merge: false,
        ..Config::default()
    });
    add(&mut engine, 1, Op::Read, 0, 8);
    add(&mut engine, 2, Op::Read, 8, 8);
    assert_eq!(engine.waiting(), 2);
}

#[test]
fn a_request_in_the_drive_is_not_merged_with() {
    let mut engine = busy(Config::default());
    add(&mut engine, 1, Op::Read, 100_001, 8);
    assert_eq!(engine.waiting(), 1);
    assert_eq!(engine.stats().merged_back, 0);
}

#[test]
fn an_overlapping_write_waits_and_then_goes() {
    let mut engine = busy(Config {
        depth: 4,
        ..Config::default()
    });
    add(&mut engine, 1, Op::Write, 100_000, 4);
    add(&mut engine, 2, Op::Read, 100_002, 1);
    add(&mut engine, 3, Op::Read, 7, 1);
    assert_eq!(issued(&mut engine, T), ["R 7+1"]);
    assert_eq!(
        complete(&mut engine, Outcome::Done),
        ["done 0", "W 100000+4"]
    );
    assert_eq!(
        complete(&mut engine, Outcome::Done),
        ["done 1", "R 100002+1"]
    );
    assert_eq!(engine.stats().held_overlap, 2);
}

#[test]
fn nothing_passes_a_flush() {
    let mut engine = busy(Config {
        depth: 4,
        ..Config::default()
    });
    add(&mut engine, 1, Op::Flush, 0, 0);
    add(&mut engine, 2, Op::Read, 7, 1);
    assert_eq!(issued(&mut engine, T), [""; 0]);
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 0", "F 0+0"]);
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 1", "R 7+1"]);
}

#[test]
fn a_write_with_preflush_fails_with_its_flush() {
    let mut engine = busy(Config::default());
    let mut write = arrival(1, Op::Write, 8, 8, 0);
    write.flags = Flags::PREFLUSH;
    engine.handle(T, Event::Arrived(write));
    let again = headtime_engine::Arrival {
        id: RequestId::Client(2),
        ..write
    };
    engine.handle(T, Event::Arrived(again));
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 0", "F 8+0"]);
    assert_eq!(
        complete(&mut engine, Outcome::DeviceError),
        ["done 1!", "F 8+0"]
    );
    assert_eq!(complete(&mut engine, Outcome::Done), ["W 8+8"]);
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 2"]);
}

#[test]
fn an_error_reaches_only_its_own_request() {
    let mut engine = busy(Config::default());
    add(&mut engine, 1, Op::Read, 0, 8);
    add(&mut engine, 2, Op::Read, 8, 8);
    add(&mut engine, 3, Op::Read, 16, 8);
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 0", "R 0+24"]);
    assert_eq!(complete(&mut engine, Outcome::MediumError), ["R 0+8"]);
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 1", "R 8+8"]);
    assert_eq!(
        complete(&mut engine, Outcome::MediumError),
        ["done 2!", "R 16+8"]
    );
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 3"]);
    assert_eq!(engine.stats().split, 1);
}

/// Linux 2.6 asks for the successor while the drive is full; a later and better one comes too late.
#[test]
fn committing_ahead_leaves_the_scheduler_early() {
    for (commit_ahead, second) in [(true, "R 5000+1"), (false, "R 120+1")] {
        let config = Config {
            commit_ahead,
            merge: false,
            ..Config::default()
        };
        let mut engine = Engine::new(config, WorkConserving::new(Sstf::new())).expect("valid");
        engine.handle(T, Event::Arrived(arrival(0, Op::Read, 100, 1, 0)));
        assert_eq!(issued(&mut engine, T), ["R 100+1"]);
        add(&mut engine, 1, Op::Read, 5000, 1);
        assert_eq!(issued(&mut engine, T), [""; 0]);
        add(&mut engine, 2, Op::Read, 120, 1);
        assert_eq!(issued(&mut engine, T), [""; 0]);
        assert_eq!(complete(&mut engine, Outcome::Done), ["done 0", second]);
    }
}

#[test]
fn schedulers_swap_in_flight() {
    let scheduler: Box<dyn Scheduler> = Box::new(WorkConserving::new(Noop::new()));
    let config = Config {
        merge: false,
        ..Config::default()
    };
    let mut engine = Engine::new(config, scheduler).expect("valid");
    for (id, start) in [(0, 50), (1, 90), (2, 10), (3, 60)] {
        engine.handle(T, Event::Arrived(arrival(id, Op::Read, start, 1, 0)));
    }
    assert_eq!(issued(&mut engine, T), ["R 50+1"]);
    let deadline = Deadline::new(DeadlineConfig::default());
    let old = engine.replace_scheduler(T, Lane(0), Box::new(WorkConserving::new(deadline)));
    assert_eq!(old.queued(), 0);
    assert_eq!(engine.waiting(), 3);
    // Deadline begins with the oldest and goes up from there.
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 0", "R 90+1"]);
}

#[test]
fn bad_configurations_are_refused() {
    let new = |config| Engine::new(config, WorkConserving::new(Noop::new())).map(|_| ());
    for depth in [0, 257] {
        let config = Config {
            depth,
            ..Config::default()
        };
        assert_eq!(new(config), Err(ConfigError::Depth(depth)));
    }
    let config = Config {
        merge_sectors_max: Sectors::ZERO,
        ..Config::default()
    };
    assert_eq!(new(config), Err(ConfigError::MergeSectorsMax));
}

#[test]
#[should_panic(expected = "is not in the drive")]
fn a_completion_out_of_nowhere_is_a_bug() {
    let mut engine = busy(Config::default());
    assert_eq!(complete(&mut engine, Outcome::Done), ["done 0"]);
    complete(&mut engine, Outcome::Done);
}
