//! The engine follows the head for a scheduler that asks where it is.

use crate::world::{arrival, poll, read};
use headtime_engine::{Config, DriveTag, Engine, Event, GateSpec, Issue, Outcome};
use headtime_sched::{Nise, NiseConfig, Op, Scheduler, Spec, Sptf, WithTracker, WorkConserving};
use headtime_testkit::ToyMechanics;
use headtime_units::{Nanos, Time};
use std::sync::Arc;

fn sptf() -> Box<dyn Scheduler> {
    let sptf = Sptf::new(Arc::new(ToyMechanics::new())).tracked();
    Box::new(WorkConserving::new(sptf))
}

fn engine(config: Config) -> Engine<Box<dyn Scheduler>> {
    Engine::new(config, sptf()).expect("in range")
}

fn two(issue: Issue) -> Config {
    Config {
        depth: 2,
        issue,
        ..Config::default()
    }
}

#[test]
fn the_second_command_is_chosen_by_where_the_first_will_leave_the_head() {
    let nise = Nise::among(vec![(sptf(), None), (sptf(), None)], NiseConfig::default());
    for scheduler in [sptf(), Box::new(nise)] {
        let engine = Engine::new(two(Issue::AtOnce), scheduler);
        chooses_behind_the_first(engine.expect("in range"));
    }
}

fn chooses_behind_the_first(mut engine: Engine<Box<dyn Scheduler>>) {
    assert_eq!(read(&mut engine, Time::ZERO, 0, 60_000_000), [60_000_000]);
    assert_eq!(read(&mut engine, Time::ZERO, 1, 119_000_000), [119_000_000]);
    // Now the drive is full. One waits near where the head is still on its way to, one near where it was.
    assert_eq!(read(&mut engine, Time::ZERO, 2, 8_000), [0_u64; 0]);
    assert_eq!(read(&mut engine, Time::ZERO, 3, 118_000_000), [0_u64; 0]);
    let now = Time::ZERO + Nanos::from_millis(20);
    let (tag, outcome) = (DriveTag(0), Outcome::Done);
    engine.handle(now, Event::Completed { tag, outcome });
    assert_eq!(poll(&mut engine, now), [118_000_000]);
    assert_eq!(
        engine.predictions().map(|all| all.counts().commands),
        Some(1)
    );
}

#[test]
fn a_late_second_command_waits_until_just_before_the_arm_is_free_and_sees_who_came() {
    let mut engine = engine(two(Issue::Late));
    assert_eq!(read(&mut engine, Time::ZERO, 0, 60_000_000), [60_000_000]);
    assert_eq!(read(&mut engine, Time::ZERO, 1, 8_000), [0_u64; 0]);
    let woken = engine.next_wakeup().expect("it waits for the arm");
    assert!(woken > Time::ZERO);
    // It came in time, and is nearer.
    assert_eq!(read(&mut engine, Time::ZERO, 2, 60_500_000), [0_u64; 0]);
    assert_eq!(engine.next_wakeup(), Some(woken));
    engine.handle(woken, Event::Woke);
    assert_eq!(poll(&mut engine, woken), [60_500_000]);
    assert_eq!(engine.next_wakeup(), None);
}

#[test]
fn a_late_second_command_goes_at_once_when_the_first_is_done_sooner() {
    let mut engine = engine(two(Issue::Late));
    read(&mut engine, Time::ZERO, 0, 60_000_000);
    assert_eq!(read(&mut engine, Time::ZERO, 1, 8_000), [0_u64; 0]);
    let now = Time::ZERO + Nanos::from_micros(200);
    let (tag, outcome) = (DriveTag(0), Outcome::Done);
    engine.handle(now, Event::Completed { tag, outcome });
    assert_eq!(poll(&mut engine, now), [8_000]);
    assert_eq!(engine.next_wakeup(), None);
}

#[test]
fn a_scheduler_that_does_not_predict_is_late_by_the_tracker_beside_it_and_decides_as_alone() {
    let tracker = sptf().tracker().expect("one that predicts has one");
    let sstf: Spec = "sstf".parse().expect("known");
    let sstf = sstf.build(None::<headtime_sched::NoPositioning>);
    let beside = WithTracker::new(sstf.expect("complete"), tracker);
    let beside: Box<dyn Scheduler> = Box::new(beside);
    let mut engine = Engine::new(two(Issue::Late), beside).expect("in range");
    assert_eq!(read(&mut engine, Time::ZERO, 0, 60_000_000), [60_000_000]);
    assert_eq!(read(&mut engine, Time::ZERO, 1, 8_000), [0_u64; 0]);
    let woken = engine.next_wakeup().expect("it waits for the arm");
    assert!(woken > Time::ZERO);
    assert_eq!(read(&mut engine, Time::ZERO, 2, 60_500_000), [0_u64; 0]);
    engine.handle(woken, Event::Woke);
    assert_eq!(poll(&mut engine, woken), [60_500_000]);
}

#[test]
fn behind_a_gate_the_second_command_is_late_too_and_the_gate_says_whose_it_is() {
    use headtime_sched::Class;
    let config = Config {
        depth: 3,
        ..two(Issue::Late)
    };
    let gate: GateSpec = "rsd-priority:ranks=1/2".parse().expect("known");
    let gate = gate.build(&config).expect("complete").expect("a gate");
    let schedulers = (0..gate.lanes()).map(|_| sptf()).collect();
    let mut engine = Engine::with_gate(config, gate, schedulers).expect("in range");
    let classed = |engine: &mut Engine<Box<dyn Scheduler>>, id, start, class| {
        let mut asked = arrival(id, Op::Read, start, 8, 0);
        asked.class = class;
        engine.handle(Time::ZERO, Event::Arrived(asked));
        poll(engine, Time::ZERO)
    };
    let usual = Class::BEST_EFFORT;
    assert_eq!(classed(&mut engine, 0, 60_000_000, usual), [60_000_000_u64]);
    assert_eq!(classed(&mut engine, 1, 60_500_000, usual), [0_u64; 0]);
    let woken = engine.next_wakeup().expect("it waits for the arm");
    assert!(woken > Time::ZERO);
    // A request of a higher class that comes meanwhile goes first, though it is further away.
    assert_eq!(classed(&mut engine, 2, 8_000, Class::REAL_TIME), [0_u64; 0]);
    assert_eq!(engine.next_wakeup(), Some(woken));
    engine.handle(woken, Event::Woke);
    assert_eq!(poll(&mut engine, woken), [8_000]);
}

#[test]
fn a_scheduler_that_is_swapped_in_while_a_command_is_late_chooses_it() {
    let noop: Spec = "noop".parse().expect("known");
    for tracked in [true, false] {
        let mut engine = engine(two(Issue::Late));
        assert_eq!(read(&mut engine, Time::ZERO, 0, 60_000_000), [60_000_000]);
        assert_eq!(read(&mut engine, Time::ZERO, 1, 8_000), [0_u64; 0]);
        assert_eq!(read(&mut engine, Time::ZERO, 2, 60_500_000), [0_u64; 0]);
        let woken = engine.next_wakeup().expect("it waits for the arm");
        let next = noop.build(None::<headtime_sched::NoPositioning>);
        let mut next: Box<dyn Scheduler> = next.expect("complete");
        if tracked {
            let tracker = sptf().tracker().expect("one that predicts has one");
            next = Box::new(WithTracker::new(next, tracker));
        }
        // The knowledge of the head stays, with or without a tracker of the next scheduler.
        engine.replace_scheduler(Time::ZERO, headtime_engine::Lane(0), next);
        assert_eq!(poll(&mut engine, Time::ZERO), [0_u64; 0], "{tracked}");
        assert_eq!(engine.next_wakeup(), Some(woken), "{tracked}");
        engine.handle(woken, Event::Woke);
        assert_eq!(poll(&mut engine, woken), [8_000], "{tracked}");
    }
}

#[test]
fn without_a_tracker_nothing_is_late() {
    let spec: Spec = "sstf".parse().expect("known");
    let scheduler = spec.build(None::<headtime_sched::NoPositioning>);
    let mut engine = Engine::new(two(Issue::Late), scheduler.expect("complete")).expect("in range");
    let mut read = |id, start| {
        engine.handle(
            Time::ZERO,
            Event::Arrived(arrival(id, Op::Read, start, 8, 0)),
        );
        poll(&mut engine, Time::ZERO)
    };
    assert_eq!(
        (read(0, 60_000), read(1, 8_000)),
        (vec![60_000], vec![8_000])
    );
    assert!(engine.predictions().is_none());
}

#[test]
fn a_tracker_goes_on_when_schedulers_are_swapped() {
    let mut engine = engine(two(Issue::AtOnce));
    read(&mut engine, Time::ZERO, 0, 60_000_000);
    engine.replace_scheduler(Time::ZERO, headtime_engine::Lane(0), sptf());
    let now = Time::ZERO + Nanos::from_millis(20);
    let (tag, outcome) = (DriveTag(0), Outcome::Done);
    engine.handle(now, Event::Completed { tag, outcome });
    poll(&mut engine, now);
    assert_eq!(
        engine.predictions().map(|all| all.counts().commands),
        Some(1)
    );
}
