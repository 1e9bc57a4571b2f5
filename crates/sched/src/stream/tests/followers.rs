//! Requests that continue other queued requests.

use super::*;

/// Pairs of requests that continue each other, which come while another reader's request is served.
const PAIRS: [(u32, u64, u64); 11] = [
    (1, 0, 0),
    (10, 500_000, 0),
    (11, 500_008, 0),
    (2, 1_900_000, 5),
    (12, 500_016, 13),
    (13, 500_024, 13),
    (3, 1_200_000, 20),
    (14, 500_032, 39),
    (15, 500_040, 39),
    (4, 1_700_000, 50),
    (16, 500_048, 66),
];

#[test]
fn requests_that_continue_a_queued_one_are_one_step_with_it() {
    let steps = |burst| {
        let config = StreamConfig {
            threshold: 3,
            tolerance: Millionths::ZERO,
            burst,
            ..StreamConfig::DEFAULT
        };
        noop(config).through(&PAIRS)
    };
    // The third pair is the third step, and the disk waits behind it.
    assert_eq!(
        steps(true),
        "1@0 10@1 11@11 2@12 12@22 13@37 3@38 14@48 15@63 64-66 16@66 67-76 4@76"
    );
    // As printed, the second of each pair finds its parent queued, and starts a new stream.
    assert_eq!(
        steps(false),
        "1@0 10@1 11@11 2@12 12@22 13@37 3@38 14@48 15@63 4@64 16@74"
    );
}

#[test]
fn an_established_burst_goes_together() {
    let steps = |burst| {
        let config = StreamConfig {
            threshold: 1,
            burst,
            ..StreamConfig::DEFAULT
        };
        // Request 1 keeps the drive busy. In order of arrival, another request lies between the two that continue each
        // other.
        noop(config).through(&[
            (1, 0, 0),
            (10, 500_000, 0),
            (2, 900_000, 0),
            (11, 500_008, 0),
        ])
    };
    assert_eq!(steps(true), "1@0 1-10 10@10 11@20 21-30 2@30");
    assert_eq!(steps(false), "1@0 1-10 10@10 20-29 2@29 39-53 11@53");
}

/// Request 11 continues 10, and request 12 is near. Request 12 comes while 10 is in the drive and is its child, at
/// another place than 11.
const CHILD_BESIDE_A_FOLLOWER: [(u32, u64, u64); 5] = [
    (1, 0, 0),
    (10, 500_000, 0),
    (2, 900_000, 0),
    (11, 500_008, 0),
    (12, 500_050, 15),
];

#[test]
fn a_child_that_came_beside_a_follower_goes_right_behind_it() {
    let steps = |arrivals: &[(u32, u64, u64)]| {
        let config = StreamConfig {
            threshold: 1,
            tolerance: Millionths::ZERO,
            ..StreamConfig::DEFAULT
        };
        noop(config).through(arrivals)
    };
    assert_eq!(
        steps(&CHILD_BESIDE_A_FOLLOWER),
        "1@0 1-10 10@10 11@20 12@21 22-31 2@31"
    );
    // With nothing else pending, the child is not held back either.
    let alone: Vec<_> = CHILD_BESIDE_A_FOLLOWER
        .into_iter()
        .filter(|(tag, _, _)| *tag != 2)
        .collect();
    assert_eq!(steps(&alone), "1@0 1-10 10@10 11@20 12@21");
}

/// Returns the steps when `last` comes while request 10 is in the drive. Request 11 waits behind 2, which is far.
fn beside(eleven: Request, last: Request) -> String {
    let config = StreamConfig {
        threshold: 1,
        tolerance: Millionths::ZERO,
        ..StreamConfig::DEFAULT
    };
    let mut world = noop(config);
    let queued = [read(10, 500_000, 0), read(2, 900_000, 0), eleven];
    world.arrive(at(0), &[read(1, 0, 0)]);
    world.arrive(at(0), &queued);
    world.arrive(at(15), &[last]);
    world.run(at(100_000));
    world.steps
}

#[test]
fn a_request_that_continues_another_stream_joins_that_and_the_tail_waits_on() {
    assert_eq!(
        beside(read(11, 500_050, 0), read(12, 500_058, 15)),
        "1@0 1-10 10@10 20-29 2@29 39-53 11@53 12@68"
    );
}

#[test]
fn a_request_that_continues_the_tail_and_a_queued_request_is_the_child_of_the_tail() {
    let ends_there_too = grown(read(11, 500_004, 0), 500_004, 4);
    assert_eq!(
        beside(ends_there_too, read(12, 500_008, 15)),
        "1@0 1-10 10@10 12@20 21-30 2@30 40-54 11@54"
    );
}

#[test]
fn a_follower_that_the_elevator_would_choose_goes_before_a_child_that_came() {
    // A curve on which a continuing request costs a turn, so that a child at a small distance can be nearer.
    let points = vec![
        (Sectors::new(0), Nanos::from_millis(6)),
        (Sectors::new(16), Nanos::from_millis(1)),
        (Sectors::new(2_000_000), Nanos::from_millis(10)),
    ];
    let curve = ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve");
    let config = StreamConfig {
        threshold: 1,
        ..StreamConfig::DEFAULT
    };
    let mut sched = Stream::new(Noop::new(), config, Arc::new(curve));
    let (first, follower, child) = (
        read(0, 500_000, 0),
        read(1, 500_008, 0),
        read(2, 500_030, 1),
    );
    sched.insert(at(0), first);
    sched.insert(at(0), follower);
    assert_eq!(sched.dispatch(at(0)), Dispatch::Request(first));
    sched.insert(at(1), child);
    assert_eq!(sched.dispatch(at(1)), Dispatch::Request(follower));
    assert_eq!(sched.dispatch(at(1)), Dispatch::Request(child));
}
