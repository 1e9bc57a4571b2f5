//! Tests of gates with a drive that takes time and serves one client first.

use super::head_time::HeadTime;
use super::levels::{Levels, Queueing};
use super::ranked::RsdPriority;
use super::*;
use headtime_sched::{Counts, Flags, Op};
use headtime_units::{Extent, Lba, Sectors};

/// A client with a constant number of outstanding requests.
#[derive(Clone, Copy)]
struct Client {
    class: Class,
    outstanding: usize,
    /// True if the client's requests follow each other on the medium, so that the drive serves them first.
    favourite: bool,
}

const NEAR: Nanos = Nanos::from_millis(1);
const FAR: Nanos = Nanos::from_millis(10);

/// A client's request: the client's number, and the arrival.
#[derive(Clone, Copy)]
struct Asked {
    client: usize,
    class: Class,
    arrival: Time,
}

struct Queues<'a>(&'a [Vec<Asked>]);

impl Lanes for Queues<'_> {
    fn state(&self, lane: Lane) -> LaneState {
        let waiting = &self.0[lane.index()];
        LaneState {
            staged: waiting.len(),
            first: waiting.first().map(|asked| asked.class),
            ready: !waiting.is_empty(),
            ..LaneState::default()
        }
    }
}

/// Returns the number of each client's requests that are done within `seconds`.
fn served(mut gate: impl Gate, clients: &[Client], seconds: u64) -> Vec<u64> {
    let mut done = vec![0; clients.len()];
    let mut lanes = vec![Vec::new(); gate.lanes()];
    let mut drive: Vec<(DriveTag, Asked)> = Vec::new();
    let mut now = Time::ZERO;
    let lane = |gate: &dyn Gate, client: usize| {
        gate.lane(Origin::default(), clients[client].class).index()
    };
    for (client, spec) in clients.iter().enumerate() {
        let (class, arrival) = (spec.class, now);
        let asked = Asked {
            client,
            class,
            arrival,
        };
        lanes[lane(&gate, client)].extend([asked].repeat(spec.outstanding));
    }
    let (mut last, mut sent) = (usize::MAX, vec![0; clients.len()]);
    while now < Time::from_nanos(seconds * 1_000_000_000) {
        while lanes.iter().any(|lane| !lane.is_empty()) {
            let Next::Take(from) = gate.next(now, &Queues(&lanes)) else {
                break;
            };
            let asked = lanes[from.index()].remove(0);
            let free = |tag: &DriveTag| drive.iter().all(|(taken, _)| taken != tag);
            let tag = (0..).map(DriveTag).find(free).expect("there are many");
            let client = asked.client;
            sent[client] += if clients[client].favourite { 8 } else { 8_000 };
            let start = Lba::new(1_000_000_000 * (client as u64 + 1) + sent[client]);
            let origin = Origin {
                process: client as u32,
                ..Origin::default()
            };
            let command = Request {
                tag,
                op: Op::Read,
                extent: Extent::new(start, Sectors::new(8)),
                arrival: asked.arrival,
                origin,
                class: asked.class,
                flags: Flags::NONE,
            };
            gate.taken(now, &command, from);
            drive.push((tag, asked));
        }
        assert!(!drive.is_empty(), "requests wait for an empty drive");
        let favourite = |(_, asked): &(DriveTag, Asked)| clients[asked.client].favourite;
        let at = drive.iter().position(favourite).unwrap_or(0);
        let (tag, asked) = drive.remove(at);
        let near = clients[asked.client].favourite && last == asked.client;
        now += if near { NEAR } else { FAR };
        gate.returned(now, tag);
        last = asked.client;
        done[last] += 1;
        let next = Asked {
            arrival: now,
            ..asked
        };
        lanes[lane(&gate, last)].push(next);
    }
    done
}

const USUAL: Class = Class::BEST_EFFORT;

fn depth(depth: u32) -> Config {
    Config {
        depth,
        ..Config::default()
    }
}

#[test]
fn head_time_keeps_the_rate_of_depth_1_for_whom_the_drive_would_leave_and_serves_the_others_more() {
    for outstanding in [1, 2, 8] {
        let bulk = Client {
            class: USUAL,
            outstanding,
            favourite: true,
        };
        let reader = Client {
            outstanding: 1,
            favourite: false,
            ..bulk
        };
        let clients = [bulk, reader];
        let alone = served(FixedDepth::new(&depth(1)), &clients, 200);
        let left = served(FixedDepth::new(&depth(32)), &clients, 200);
        let kept = served(HeadTime::new(&depth(32), Levels::new(1, 0)), &clients, 200);
        assert_eq!(left[1], 0, "the drive leaves it");
        let share = |client: usize| kept[client] as f64 / alone[client] as f64;
        assert!(
            share(1) > 0.9 && share(1) < 1.0,
            "{} of {outstanding}",
            share(1)
        );
        assert!(share(0) > 1.05, "{} of {outstanding}", share(0));
    }
}

#[test]
fn head_time_leaves_the_drive_its_choice_where_nobody_is_late() {
    let client = Client {
        class: USUAL,
        outstanding: 4,
        favourite: true,
    };
    let free = served(FixedDepth::new(&depth(32)), &[client], 200);
    let kept = served(HeadTime::new(&depth(32), Levels::new(1, 0)), &[client], 200);
    assert!(kept[0] as f64 > 0.99 * free[0] as f64, "{kept:?} {free:?}");
}

#[test]
fn a_floor_gives_a_lower_level_its_share_of_the_head_time_and_no_floor_gives_it_nothing() {
    let urgent = Client {
        class: Class::REAL_TIME,
        outstanding: 1,
        favourite: false,
    };
    let scrub = Client {
        class: Class::IDLE,
        outstanding: 2,
        favourite: true,
    };
    let clients = [urgent, urgent, scrub];
    for queueing in [Queueing::Lanes, Queueing::Single] {
        for percent in [0, 5, 20] {
            let ranks = Counts::new(&[0, 0, 0]);
            let gate = RsdPriority::new(&depth(32), 1_000_000, ranks, queueing);
            let done = served(gate.with_floor(percent), &clients, 200);
            let share = (done[2] * FAR.as_nanos()) as f64 / 200e9;
            let due = percent as f64 / 100.0;
            // In a single queue a request of a lower level keeps the requests after it waiting.
            let most = if queueing == Queueing::Single {
                1.0
            } else {
                due * 1.02
            };
            assert!(
                share <= most && share >= due * 0.9,
                "{share} with {percent} in {queueing:?}"
            );
        }
    }
}

#[test]
fn head_time_serves_the_urgent_first_and_the_others_by_their_floor() {
    let urgent = Client {
        class: Class::REAL_TIME,
        outstanding: 1,
        favourite: false,
    };
    let bulk = Client {
        class: USUAL,
        outstanding: 64,
        favourite: true,
    };
    let one_queue = Levels::new(1, 0);
    let behind = served(HeadTime::new(&depth(32), one_queue), &[urgent, bulk], 100);
    let first = served(
        HeadTime::new(&depth(32), Levels::new(3, 5)),
        &[urgent, bulk],
        100,
    );
    assert!(first[0] > 5 * behind[0], "{first:?} {behind:?}");
    let eager = Client {
        outstanding: 64,
        ..urgent
    };
    let scrub = Client {
        class: Class::IDLE,
        favourite: false,
        ..bulk
    };
    for percent in [0, 5, 20] {
        let gate = HeadTime::new(&depth(32), Levels::new(3, percent));
        let done = served(gate, &[eager, scrub], 100);
        let share = done[1] as f64 * 100.0 / (done[0] + done[1]) as f64;
        let due = percent as f64;
        assert!(
            share <= due * 1.05 && share >= due * 0.9,
            "{share} with {percent}"
        );
    }
}

#[test]
fn head_time_decides_the_same_for_one_class_in_lanes_and_in_one_queue() {
    for class in [Class::REAL_TIME, USUAL, Class::IDLE] {
        let client = |outstanding, favourite| Client {
            class,
            outstanding,
            favourite,
        };
        let clients = [client(8, true), client(1, false), client(3, false)];
        let lanes = served(HeadTime::new(&depth(32), Levels::new(3, 5)), &clients, 100);
        let single = served(HeadTime::new(&depth(32), Levels::new(1, 5)), &clients, 100);
        assert_eq!(lanes, single);
    }
}
