//! Lanes that are drained, schedulers and gates that are swapped.

use crate::rig::{Rig, config, schedulers};
use crate::world::arrival;
use headtime_engine::log::{self, ReplayError};
use headtime_engine::{Arrival, Command, Config, DriveTag, Engine, Event, Gate, Lane, Outcome};
use headtime_sched::{Class, Op, Origin, Sstf, WorkConserving};
use headtime_testkit::{AgedRanks, Windows};
use headtime_units::{Nanos, Time};
use proptest::prelude::*;

fn low(id: u64, start: u64) -> Arrival {
    arrival(id, Op::Read, start, 8, 0)
}

fn high(id: u64, start: u64) -> Arrival {
    Arrival {
        class: Class::REAL_TIME,
        ..low(id, start)
    }
}

#[derive(Clone, Debug)]
enum Move {
    Arrive(Op, u64, u64, bool),
    Complete(prop::sample::Index),
    /// Drains the first lane into the second if true, else the second into the first.
    Drain(bool),
    /// Swaps to a gate with ranks if true, else to a gate with windows.
    Gate(bool),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let op = prop_oneof![6 => Just(Op::Read), 6 => Just(Op::Write), 1 => Just(Op::Flush)];
    let step = prop_oneof![
        10 => (op, 0..60_u64, 1..12_u64, any::<bool>())
            .prop_map(|(op, start, len, high)| Move::Arrive(op, start, len, high)),
        6 => any::<prop::sample::Index>().prop_map(Move::Complete),
        1 => any::<bool>().prop_map(Move::Drain),
        1 => any::<bool>().prop_map(Move::Gate),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Under the audit, parts stay in one lane, and requests that a higher rank waits for have that rank.
    #[test]
    fn lanes_that_are_drained_and_gates_that_are_swapped_break_no_promise(
        moves in moves(),
        merge in any::<bool>(),
    ) {
        let config = Config { merge, ..config(4) };
        let mut rig = Rig::new(config, AgedRanks::new(3, 4));
        for (id, step) in (0..).zip(moves) {
            rig.now += Nanos::from_micros(1);
            match step {
                Move::Arrive(op, start, len, high) => {
                    let len = if op == Op::Flush { 0 } else { len };
                    let mut new = arrival(id, op, start, len, 0);
                    new.class = if high { Class::REAL_TIME } else { Class::IDLE };
                    new.origin.program = (id % 2) as u16;
                    rig.arrive(new);
                }
                Move::Complete(_) if rig.in_drive.is_empty() => {}
                Move::Complete(which) => {
                    rig.complete(which.index(rig.in_drive.len()), Outcome::Done);
                }
                Move::Drain(down) => {
                    let (from, to) = if down { (Lane(0), Lane(1)) } else { (Lane(1), Lane(0)) };
                    rig.event(Event::Drained { from, to });
                }
                Move::Gate(ranks) => {
                    let gate: Box<dyn Gate> = match ranks {
                        true => Box::new(AgedRanks::new(3, 4)),
                        false => Box::new(Windows::new(3, Nanos::from_micros(7))),
                    };
                    rig.engine.replace_gate(rig.now, gate, schedulers(2));
                    rig.audit.watch(&mut rig.engine);
                    rig.commands();
                }
            }
        }
        while !rig.engine.is_idle() {
            if rig.in_drive.is_empty() {
                rig.now = rig.engine.next_wakeup().expect("it waits for a time");
                rig.event(Event::Woke);
            } else {
                rig.complete(0, Outcome::Done);
            }
        }
        prop_assert_eq!(rig.audit.unfinished(), 0);
    }
}

fn starts(engine: &mut Engine, now: Time, in_drive: &mut Vec<DriveTag>) -> Vec<u64> {
    let commands = std::iter::from_fn(|| engine.poll(now));
    let starts = commands.filter_map(|command| match command {
        Command::Issue(request) => {
            in_drive.push(request.tag);
            Some(request.extent.start.get())
        }
        _ => None,
    });
    starts.collect()
}

/// After all of [`busy`].
const LATER: Time = Time::from_nanos(9);

/// An engine of two ranks with a command in the drive and waiting requests.
fn busy() -> (Engine, Vec<DriveTag>) {
    let gate = Box::new(AgedRanks::new(2, 100));
    let mut engine = Engine::with_gate(config(2), gate, schedulers(2)).unwrap();
    let (mut in_drive, mut now) = (Vec::new(), Time::ZERO);
    for new in [
        low(0, 5000),
        low(1, 300),
        high(2, 4000),
        high(3, 400),
        low(4, 100),
    ] {
        now += Nanos::from_nanos(1);
        engine.handle(now, Event::Arrived(new));
        starts(&mut engine, now, &mut in_drive);
    }
    assert_eq!((in_drive.len(), engine.waiting()), (2, 3));
    (engine, in_drive)
}

fn drain(engine: &mut Engine, from: Lane, to: Lane) {
    engine.handle(LATER, Event::Drained { from, to });
}

/// Completes everything, and says where what goes then begins.
fn rest(mut engine: Engine, mut in_drive: Vec<DriveTag>) -> Vec<u64> {
    let mut all = starts(&mut engine, LATER, &mut in_drive);
    while !in_drive.is_empty() {
        let (tag, outcome) = (in_drive.remove(0), Outcome::Done);
        engine.handle(LATER, Event::Completed { tag, outcome });
        all.extend(starts(&mut engine, LATER, &mut in_drive));
    }
    assert!(engine.is_idle());
    assert_eq!(engine.stats().finished, engine.stats().arrived);
    all
}

#[test]
fn without_a_change_the_ranks_go_in_their_order() {
    let (engine, in_drive) = busy();
    assert_eq!(rest(engine, in_drive), [400, 300, 100]);
}

#[test]
fn a_lane_is_drained_into_another() {
    let (mut engine, in_drive) = busy();
    drain(&mut engine, AgedRanks::LOW, AgedRanks::LOW);
    drain(&mut engine, AgedRanks::HIGH, AgedRanks::LOW);
    assert_eq!(engine.waiting(), 3);
    assert_eq!(rest(engine, in_drive), [300, 400, 100]);
}

#[test]
fn a_drained_lane_is_in_the_log_which_does_not_replay_without_it() {
    let mut rig = Rig::new(config(2), AgedRanks::new(2, 100));
    for new in [low(0, 5000), low(1, 300), high(2, 4000), high(3, 400)] {
        rig.arrive(new);
    }
    rig.event(Event::Drained {
        from: AgedRanks::HIGH,
        to: AgedRanks::LOW,
    });
    while !rig.in_drive.is_empty() {
        rig.complete(0, Outcome::Done);
    }
    let starts = rig.sent.iter().map(|sent| sent.request.extent.start.get());
    assert_eq!(starts.collect::<Vec<_>>(), [5000, 4000, 300, 400]);
    let replayed = |text: &str| {
        let gate = Box::new(AgedRanks::new(2, 100));
        let again = Engine::with_gate(config(2), gate, schedulers(2)).unwrap();
        log::replay(text, again, |_| Some(schedulers(1).remove(0)))
    };
    assert_eq!(replayed(&rig.text).unwrap().drains, 1);
    let without = rig.text.replace("D 0 0 1\n", "");
    let error = replayed(&without).unwrap_err();
    assert!(matches!(error, ReplayError::Differs { .. }), "{error}");
    for (line, lane) in [
        ("D 0 2 0", 2),
        ("D 0 0 2", 2),
        ("D 0 255 255", 255),
        ("S 0 noop 2", 2),
    ] {
        let error = replayed(&format!("headtime-log 3\n{line}\n")).unwrap_err();
        let lane = Lane(lane);
        assert_eq!(error, ReplayError::NoLane { line: 2, lane });
    }
}

#[test]
fn a_lane_gets_another_scheduler_and_the_others_keep_theirs() {
    let (mut engine, in_drive) = busy();
    let sstf = Box::new(WorkConserving::new(Sstf::new()));
    let old = engine.replace_scheduler(LATER, AgedRanks::LOW, sstf);
    assert_eq!(old.queued(), 0);
    assert_eq!(rest(engine, in_drive), [400, 100, 300]);
}

/// The new gate has the even and the odd programs in lanes, for all ranks.
#[test]
fn a_gate_takes_over_with_everything_that_waits() {
    let (mut engine, in_drive) = busy();
    let gate = Box::new(Windows::new(2, Nanos::from_millis(100)));
    let old = engine.replace_gate(LATER, gate, schedulers(2));
    assert!(old.iter().all(|old| old.queued() == 0));
    assert_eq!(engine.waiting(), 3);
    assert_eq!(engine.poll(LATER), None, "it knows that the drive is full");
    // All are of program 0, whose window it is, and go in order of arrival.
    assert_eq!(rest(engine, in_drive), [300, 400, 100]);
}

#[test]
fn what_is_staged_moves_with_its_lane() {
    let config = Config {
        commit_ahead: true,
        ..config(1)
    };
    let mut engine = Engine::new(config, schedulers(1).remove(0)).unwrap();
    let mut in_drive = Vec::new();
    for new in [low(0, 5000), low(1, 300), low(2, 100)] {
        engine.handle(Time::ZERO, Event::Arrived(new));
        starts(&mut engine, Time::ZERO, &mut in_drive);
    }
    assert_eq!(engine.staged(Lane(0)).count(), 1);
    engine.replace_gate(Time::ZERO, Box::new(AgedRanks::new(2, 100)), schedulers(2));
    assert_eq!(engine.staged(AgedRanks::LOW).count(), 1);
    engine.handle(
        Time::ZERO,
        Event::Drained {
            from: AgedRanks::LOW,
            to: AgedRanks::HIGH,
        },
    );
    assert_eq!(engine.staged(AgedRanks::HIGH).count(), 1);
    let origin = Origin::default();
    assert_eq!(
        engine
            .unfinished()
            .filter(|(_, one)| one.origin == origin)
            .count(),
        3
    );
    // The low rank may have one tag of two, the high one both; but the drive takes one.
    let (tag, outcome) = (in_drive.remove(0), Outcome::Done);
    engine.handle(Time::ZERO, Event::Completed { tag, outcome });
    let first = engine.poll(Time::ZERO);
    assert!(matches!(first, Some(Command::Finish(_))), "{first:?}");
    let Some(Command::Issue(next)) = engine.poll(Time::ZERO) else {
        panic!("the staged one goes")
    };
    assert_eq!(next.extent.start.get(), 300);
}
