//! Thousands of queued requests that touch, and the number of questions to the scheduler.

use crate::world::arrival;
use headtime_engine::{Arrival, Config, Engine, Event};
use headtime_sched::{
    Cfq, Clook, Deadline, DeadlineConfig, Noop, Op, Scheduler, ServiceCurve, Stream, StreamConfig,
    WorkConserving,
};
use headtime_testkit::Counted;
use headtime_units::{Nanos, Sectors, Time};
use std::sync::Arc;

/// Average number of questions to a scheduler about each request, and the number of queued requests at the end.
fn asked<S: Scheduler>(scheduler: S, many: u64, new: impl Fn(u64) -> Arrival) -> (u64, usize) {
    let mut engine = Engine::new(Config::default(), Counted::new(scheduler)).expect("valid");
    for id in 0..many {
        engine.handle(Time::from_nanos(id), Event::Arrived(new(id)));
    }
    let scheduler = engine.scheduler();
    (scheduler.asked() / many, scheduler.queued())
}

/// Reads of three blocks in a row: all of the first, all of the last, and then of the one between.
fn gaps(many: u64) -> impl Fn(u64) -> Arrival {
    move |id| {
        let block = [0, 2, 1, 1][(4 * id / many) as usize];
        arrival(id, Op::Read, 32 * block, 32, 0)
    }
}

#[test]
fn of_many_neighbours_noop_is_asked_about_those_next_in_order_of_arrival() {
    // A request that joins a first block touches all last blocks. It may fuse only with the next one in order of
    // arrival.
    let (asked, queued) = asked(WorkConserving::new(Noop::new()), 3_000, gaps(3_000));
    assert!(asked < 5, "asked {asked} times a request");
    assert_eq!(queued, 1_500, "two by two, and one of three");
}

#[test]
fn of_many_neighbours_an_elevator_is_asked_about_the_first() {
    let (asked, queued) = asked(WorkConserving::new(Clook::new(0)), 3_000, gaps(3_000));
    assert!(asked < 5, "asked {asked} times a request");
    assert_eq!(queued, 1_500, "three by three, and then two by two");
}

#[test]
fn without_front_merges_deadline_is_asked_about_one_of_many_that_follow() {
    let config = DeadlineConfig {
        front_merges: false,
        ..DeadlineConfig::DEFAULT
    };
    let follow = |id: u64| arrival(id, Op::Read, if id < 1_500 { 8 } else { 0 }, 8, 0);
    let (asked, queued) = asked(WorkConserving::new(Deadline::new(config)), 3_000, follow);
    assert!(asked < 5, "asked {asked} times a request");
    assert_eq!(queued, 3_000);
}

#[test]
fn of_many_processes_at_one_place_cfq_is_asked_about_one_process() {
    let of_process = |id: u64| arrival(id, Op::Read, 8 * (id % 2), 8, id as u32);
    let (asked, queued) = asked(Cfq::default(), 3_000, of_process);
    assert!(asked < 5, "asked {asked} times a request");
    assert_eq!(queued, 3_000, "none is of the process of another");
}

#[test]
fn of_many_neighbours_stream_is_asked_about_the_first() {
    let points = vec![
        (Sectors::ZERO, Nanos::from_micros(500)),
        (Sectors::new(1_000_000), Nanos::from_millis(15)),
    ];
    let curve = ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve");
    let noop = Stream::new(Noop::new(), StreamConfig::DEFAULT, Arc::new(curve));
    let (asked, queued) = asked(noop, 3_000, gaps(3_000));
    assert!(asked < 5, "asked {asked} times a request");
    assert_eq!(queued, 1_500, "three by three, and then two by two");
}

#[test]
fn of_many_that_are_too_large_none_is_asked_about() {
    let large = |id: u64| arrival(id, Op::Read, 1_000 * (id % 3), 1_000, 0);
    let (asked, queued) = asked(WorkConserving::new(Noop::new()), 3_000, large);
    assert_eq!((asked, queued), (0, 3_000));
}
