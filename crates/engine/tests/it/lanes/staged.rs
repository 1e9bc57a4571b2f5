//! Requests that join staged ones.

use crate::rig::{Rig, Sent, config, schedulers};
use crate::world::arrival;
use headtime_engine::{
    Arrival, Config, Engine, Event, FixedDepth, Join, Lane, Outcome, RequestId, log,
};
use headtime_sched::Op;
use headtime_testkit::Scrub;
use headtime_units::{Extent, Nanos, Sectors};
use proptest::prelude::*;

/// A rig that chooses a request ahead, so that jobs always have a request to join.
fn ahead() -> Rig<FixedDepth> {
    let config = Config {
        commit_ahead: true,
        ..config(1)
    };
    let scheduler = schedulers(1).remove(0);
    let engine = Engine::new(config, scheduler).expect("in range");
    Rig::around(engine, FixedDepth::new(&config))
}

fn background(id: u64, op: Op, start: u64, len: u64) -> Arrival {
    Arrival {
        id: RequestId::Background(id),
        ..arrival(0, op, start, len, 0)
    }
}

fn join(rig: &mut Rig<FixedDepth>, arrival: Arrival, join: Join) {
    let lane = Lane(0);
    rig.event(Event::Joined {
        arrival,
        lane,
        join,
    });
}

fn extents(sent: &[Sent]) -> Vec<String> {
    let text = |sent: &Sent| sent.request.extent.to_string();
    sent.iter().map(text).collect()
}

#[test]
fn a_staged_request_is_preceded_and_widened() {
    let mut rig = ahead();
    rig.arrive(arrival(0, Op::Read, 0, 8, 0));
    rig.arrive(arrival(1, Op::Read, 1000, 8, 0));
    rig.arrive(arrival(2, Op::Read, 2000, 8, 0));
    join(&mut rig, background(0, Op::Read, 984, 16), Join::With);
    join(&mut rig, background(1, Op::Read, 500, 8), Join::Before);
    join(&mut rig, background(2, Op::Read, 600, 8), Join::Before);
    join(&mut rig, background(3, Op::Read, 1008, 4), Join::With);
    assert_eq!(rig.engine.stats().joined, 4);
    assert_eq!(rig.engine.staged(Lane(0)).count(), 3);
    assert_eq!(rig.engine.waiting(), 4);
    let sent = rig.finish();
    assert_eq!(
        extents(&sent),
        ["0+8", "500+8", "600+8", "984+28", "2000+8"]
    );
    let expected = [
        RequestId::Client(1),
        RequestId::Background(0),
        RequestId::Background(3),
    ];
    assert_eq!(sent[3].parts, expected);
}

#[test]
fn a_client_may_join_as_any_part() {
    let mut rig = ahead();
    rig.arrive(arrival(0, Op::Write, 0, 8, 0));
    rig.arrive(arrival(1, Op::Write, 1000, 8, 0));
    join(&mut rig, arrival(2, Op::Write, 992, 8, 0), Join::With);
    rig.complete(0, Outcome::Done);
    rig.complete(0, Outcome::Done);
    let ended: Vec<_> = rig.ended.iter().map(|(id, _)| *id).collect();
    assert_eq!(ended, [0, 1, 2].map(RequestId::Client));
    rig.finish();
}

#[test]
fn a_request_that_may_not_join_is_told_so() {
    let mut rig = ahead();
    let read = |start, len| background(9, Op::Read, start, len);
    let may = |rig: &Rig<FixedDepth>, arrival, join| rig.engine.may_join(&arrival, Lane(0), join);
    assert!(!may(&rig, read(0, 8), Join::Before), "nothing is staged");
    rig.arrive(arrival(0, Op::Write, 0, 8, 0));
    assert!(!may(&rig, read(100, 8), Join::Before), "nothing is staged");
    rig.arrive(arrival(1, Op::Read, 1000, 8, 0));
    rig.arrive(arrival(2, Op::Write, 20_000, 8, 0));
    for (arrival, join, expected) in [
        (read(100, 8), Join::Before, true),
        (read(4, 8), Join::Before, false),
        (read(19_996, 5), Join::Before, false),
        (read(992, 8), Join::With, true),
        (read(1008, 1016), Join::With, true),
        (read(1008, 1017), Join::With, false),
        (read(991, 8), Join::With, false),
        (read(1000, 8), Join::With, false),
        (background(9, Op::Write, 992, 8), Join::With, false),
        (background(9, Op::Write, 992, 8), Join::Before, true),
        (background(9, Op::Write, 1000, 8), Join::Before, false),
        (background(9, Op::Flush, 0, 0), Join::Before, false),
    ] {
        assert_eq!(may(&rig, arrival, join), expected, "{arrival:?} {join:?}");
    }
    assert!(!rig.engine.may_join(&read(100, 8), Lane(1), Join::Before));
    rig.arrive(arrival(3, Op::Flush, 0, 0, 0));
    assert!(!may(&rig, read(100, 8), Join::Before), "a flush waits");
    rig.finish();
}

#[test]
#[should_panic(expected = "b9 may not join")]
fn joining_nothing_is_a_bug() {
    join(&mut ahead(), background(9, Op::Read, 0, 8), Join::Before);
}

#[test]
fn a_log_in_which_a_request_joins_nothing_is_refused() {
    let text = "headtime-log 3\nJ 5 b1 R 0 8 0 0 0 0 1 0 before\n";
    let engine = Engine::new(config(1), schedulers(1).remove(0)).unwrap();
    let error = log::replay(text, engine, |_| None).expect_err("nothing is staged");
    assert_eq!(
        error.to_string(),
        "line 2: request b1 joins a staged one, and there is none that it may join"
    );
}

/// The job's sectors cannot be read. The foreground request must not fail for that.
#[test]
fn after_an_error_the_foreground_goes_again_alone_and_first() {
    let mut rig = ahead();
    rig.arrive(arrival(0, Op::Read, 0, 8, 0));
    rig.arrive(arrival(1, Op::Read, 1000, 8, 0));
    join(&mut rig, background(0, Op::Read, 992, 8), Join::With);
    rig.arrive(arrival(2, Op::Read, 2000, 8, 0));
    rig.complete(0, Outcome::Done);
    assert_eq!(rig.in_drive[0].request.extent, Extent::at(992, 16));
    rig.complete(0, Outcome::MediumError);
    assert_eq!(rig.in_drive[0].request.extent, Extent::at(1000, 8));
    assert_eq!(rig.engine.stats().split, 1);
    rig.complete(0, Outcome::Done);
    assert_eq!(
        rig.ended.last(),
        Some(&(RequestId::Client(1), Outcome::Done))
    );
    let sent = rig.finish();
    assert_eq!(
        extents(&sent),
        ["0+8", "992+16", "1000+8", "2000+8", "992+8"]
    );
}

proptest! {
    /// Commands fail now and then.
    #[test]
    fn a_scrub_that_joins_staged_requests_gets_all_it_asks_for(
        requests in prop::collection::vec((0..400_u64, 1..30_u64, any::<bool>()), 1..60),
        fails in prop::collection::vec(prop::bool::weighted(0.2), 200),
        offered in any::<bool>(),
    ) {
        let mut rig = ahead();
        let scrub = Scrub::new(Sectors::new(400), Sectors::new(8), 50);
        rig.scrub = Some(if offered { scrub.offered() } else { scrub });
        rig.event(Event::Offering(offered));
        let clients = requests.len();
        let mut fails = fails.into_iter();
        for (id, (start, len, write)) in (0..).zip(requests) {
            rig.now += Nanos::from_micros(10);
            let op = if write { Op::Write } else { Op::Read };
            rig.arrive(arrival(id, op, start, len, 0));
            if id % 2 == 0 {
                let outcome = match fails.next() {
                    Some(true) => Outcome::MediumError,
                    _ => Outcome::Done,
                };
                rig.complete(0, outcome);
            }
        }
        while !rig.engine.is_idle() {
            rig.complete(0, Outcome::Done);
        }
        let scrub = rig.scrub.as_ref().unwrap();
        prop_assert!(scrub.waits.is_empty());
        prop_assert_eq!(scrub.finished, rig.engine.stats().joined);
        let background = rig.ended.iter().filter(|(id, _)| matches!(id, RequestId::Background(_)));
        prop_assert_eq!(rig.ended.len() - background.count(), clients);
        rig.finish();
    }
}
