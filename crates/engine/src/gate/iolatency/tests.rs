//! Tests of the kernel's rules one by one, and of invariants.

use super::*;
use crate::gate::{GateSpec, LaneState};
use headtime_sched::Flags;
use headtime_units::{Extent, Lba, Sectors};
use proptest::prelude::*;
use std::collections::BTreeMap;

const URGENT: Class = Class::REAL_TIME;
const USUAL: Class = Class::BEST_EFFORT;
const IDLE: Class = Class::IDLE;

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// Requests that wait for the gate, by lane with their arrivals, and a drive.
struct Rig {
    gate: IoLatency,
    now: Time,
    waiting: [Vec<(Class, Time)>; GROUPS],
    drive: BTreeMap<u32, Lane>,
    taken: u32,
}

struct View<'a>(&'a [Vec<(Class, Time)>; GROUPS]);

impl Lanes for View<'_> {
    fn state(&self, lane: Lane) -> LaneState {
        let waiting = &self.0[lane.index()];
        LaneState {
            behind_prefix: false,
            queued: waiting.len(),
            staged: 0,
            first: None,
            ready: !waiting.is_empty(),
        }
    }
}

impl Rig {
    /// Creates a gate of depth 32 with these targets in ms.
    fn new(targets: [u64; GROUPS]) -> Rig {
        let config = Config {
            depth: 32,
            ..Config::default()
        };
        Rig {
            gate: IoLatency::new(&config, targets.map(ms), 64),
            now: Time::ZERO,
            waiting: Default::default(),
            drive: BTreeMap::new(),
            taken: 0,
        }
    }

    fn ask(&mut self, class: Class) {
        let lane = self.gate.lane(Origin::default(), class);
        self.waiting[lane.index()].push((class, self.now));
        self.send();
    }

    fn send(&mut self) {
        while let Next::Take(lane) = self.gate.next(self.now, &View(&self.waiting)) {
            let (class, arrival) = self.waiting[lane.index()].remove(0);
            let tag = (0..)
                .find(|tag| !self.drive.contains_key(tag))
                .expect("one");
            let command = Request {
                tag: DriveTag(tag),
                op: Op::Read,
                extent: Extent::new(Lba::ZERO, Sectors::new(8)),
                arrival,
                origin: Origin::default(),
                class,
                flags: Flags::NONE,
            };
            self.gate.taken(self.now, &command, lane);
            self.drive.insert(tag, lane);
        }
    }

    fn complete(&mut self, tag: u32) {
        self.drive.remove(&tag).expect("it is in the drive");
        self.gate.returned(self.now, DriveTag(tag));
        self.send();
    }

    /// Sends a single request of this class, and completes it after `millis`.
    fn takes(&mut self, class: Class, millis: u64) {
        self.taken += 1;
        assert!(self.taken < 10_000, "what is waited for does not come");
        let before: Vec<u32> = self.drive.keys().copied().collect();
        self.ask(class);
        let tag = self.drive.keys().find(|tag| !before.contains(tag));
        let tag = *tag.expect("nothing is in its way");
        self.now += ms(millis);
        self.complete(tag);
    }

    /// Returns the depths of the groups.
    fn depths(&self) -> [Option<u32>; GROUPS] {
        [0, 1, 2].map(|group| self.gate.depth_of(group))
    }

    /// Returns the depth of best effort after one of its requests has arrived and completed.
    fn usual(&mut self) -> Option<u32> {
        self.takes(USUAL, 0);
        self.gate.depth_of(1)
    }
}

#[test]
fn while_a_target_is_missed_the_depth_of_others_is_halved_every_half_second_down_to_one() {
    let mut rig = Rig::new([20, 0, 0]);
    let mut depths = Vec::new();
    for _ in 0..8 {
        // A window is 320 ms, so each of these requests ends a window. Every second window ends too soon for a change.
        rig.takes(URGENT, 320);
        rig.takes(URGENT, 320);
        depths.push(rig.usual().unwrap_or(0));
    }
    // The first window ends at 320 ms and misses the target. The next window that may cause a change ends 640 ms later.
    assert_eq!(depths, [32, 16, 8, 4, 2, 1, 1, 1]);
    assert_eq!(
        rig.depths(),
        [None, Some(1), None],
        "idle sent nothing, and did not look"
    );
}

#[test]
fn the_mean_of_a_window_decides_and_not_single_requests() {
    let mut rig = Rig::new([20, 0, 0]);
    for _ in 0..3 {
        rig.takes(URGENT, 100);
        (0..30).for_each(|_| rig.takes(URGENT, 10));
    }
    assert_eq!(rig.usual(), None);
    // The mean is 13 ms until now, and 25 ms from here on.
    for _ in 0..10 {
        rig.takes(URGENT, 40);
        rig.takes(URGENT, 10);
    }
    assert!(rig.usual().is_some());
}

#[test]
fn depth_comes_back_by_a_sixteenth_for_every_half_second_with_five_good_samples() {
    let mut rig = Rig::new([20, 0, 0]);
    rig.takes(URGENT, 400);
    assert_eq!(rig.usual(), Some(32));
    // The cookie goes down by 16 of 64, and up by 4 at a time.
    let mut depths = Vec::new();
    while let Some(depth) = rig.usual() {
        depths.push(depth);
        (0..70).for_each(|_| rig.takes(URGENT, 10));
    }
    depths.dedup();
    assert_eq!(depths, [32, 36, 40, 44]);
}

#[test]
fn too_few_good_samples_change_nothing() {
    let mut rig = Rig::new([20, 0, 0]);
    rig.takes(URGENT, 400);
    assert_eq!(rig.usual(), Some(32));
    for _ in 0..4 {
        rig.now += ms(500);
        rig.takes(URGENT, 10);
    }
    assert_eq!(rig.usual(), Some(32));
    rig.now += ms(500);
    rig.takes(URGENT, 10);
    assert_eq!(rig.usual(), Some(36));
}

#[test]
fn a_ruler_of_whom_nothing_is_heard_is_forgotten_after_five_seconds_and_depth_comes_back_each_second()
 {
    let mut rig = Rig::new([20, 0, 0]);
    rig.takes(URGENT, 400);
    let start = rig.now;
    assert_eq!(rig.usual(), Some(32));
    let mut changes = Vec::new();
    let mut last = Some(32);
    while last.is_some() {
        rig.now += ms(100);
        let depth = rig.usual();
        if depth != last {
            changes.push((rig.now - start).as_nanos() / 1_000_000_000);
            last = depth;
        }
    }
    // The timer fires a second after the first request that finds the timer stopped.
    assert_eq!(changes, [6, 7, 8, 9]);
}

#[test]
fn a_hole_deeper_than_the_queue_is_dug_and_filled_by_one_and_ends_at_twice_the_queue() {
    let mut rig = Rig::new([20, 0, 0]);
    let hole = |rig: &Rig| UNLIMITED_COOKIE - rig.gate.cookie;
    let mut holes = Vec::new();
    for _ in 0..60 {
        rig.takes(URGENT, 600);
        holes.push(hole(&rig));
    }
    assert_eq!(holes[..7], [16, 32, 48, 64, 80, 81, 82]);
    assert_eq!(*holes.last().expect("one"), 128);
    (0..70).for_each(|_| rig.takes(URGENT, 10));
    assert_eq!(hole(&rig), 127);
}

#[test]
fn each_time_that_a_group_was_told_to_go_below_one_is_taken_off_before_it_gets_more() {
    let mut rig = Rig::new([20, 0, 0]);
    for _ in 0..8 {
        rig.takes(URGENT, 600);
        rig.usual();
    }
    assert_eq!((rig.depths()[1], rig.gate.groups[1].delays), (Some(1), 2));
    let mut ups = 0;
    while rig.usual() == Some(1) {
        let before = rig.gate.cookie;
        while rig.gate.cookie == before {
            rig.takes(URGENT, 10);
        }
        ups += 1;
    }
    assert_eq!((ups, rig.usual()), (3, Some(5)));
}

#[test]
fn a_group_that_is_not_limited_stays_so_when_others_get_depth_back() {
    let mut rig = Rig::new([20, 0, 0]);
    (0..3).for_each(|_| rig.takes(URGENT, 600));
    let lowest = rig.gate.cookie;
    (0..70).for_each(|_| rig.takes(URGENT, 10));
    assert!((lowest + 1..UNLIMITED_COOKIE).contains(&rig.gate.cookie));
    assert_eq!(rig.depths()[0], None);
}

#[test]
fn a_group_with_a_target_no_looser_than_the_rulers_keeps_its_depth() {
    let mut rig = Rig::new([20, 20, 50]);
    for _ in 0..10 {
        rig.takes(USUAL, 1);
        rig.takes(IDLE, 1);
        rig.takes(URGENT, 600);
    }
    rig.takes(USUAL, 1);
    rig.takes(IDLE, 1);
    let depths = rig.depths();
    assert_eq!((depths[0], depths[1]), (None, None));
    assert!(depths[2].is_some_and(|depth| depth < 32), "{depths:?}");
}

#[test]
fn a_group_with_a_looser_target_takes_nothing_while_a_tighter_one_rules() {
    let mut rig = Rig::new([20, 0, 50]);
    rig.takes(URGENT, 600);
    rig.usual();
    let before = rig.gate.cookie;
    // The group misses its own target by far.
    (0..3).for_each(|_| rig.takes(IDLE, 900));
    assert_eq!(rig.gate.cookie, before);
    assert_eq!(rig.gate.ruler, Some(0));
}

#[test]
fn a_group_with_a_tighter_target_takes_the_rule_over_and_one_with_the_same_does_not() {
    let mut rig = Rig::new([20, 50, 50]);
    rig.takes(IDLE, 900);
    assert_eq!((rig.gate.ruler, rig.gate.ruling), (Some(2), ms(50)));
    let hole = |rig: &Rig| UNLIMITED_COOKIE - rig.gate.cookie;
    rig.takes(USUAL, 900);
    assert_eq!((rig.gate.ruler, hole(&rig)), (Some(2), 32));
    rig.takes(URGENT, 900);
    assert_eq!((rig.gate.ruler, rig.gate.ruling), (Some(0), ms(20)));
    assert_eq!(hole(&rig), 48);
}

#[test]
fn a_group_with_a_looser_target_and_a_twentieth_of_the_samples_keeps_its_depth_and_with_more_it_does_not()
 {
    // Returns the depth of a group with `samples` of a hundred samples after a look at the lowered cookie.
    let depth = |samples: u64| {
        let mut rig = Rig::new([20, 50, 0]);
        rig.gate.counted = 100;
        rig.gate.groups[1].counted = samples;
        (rig.gate.cookie, rig.gate.ruling, rig.gate.ruler) =
            (UNLIMITED_COOKIE - 16, ms(20), Some(0));
        rig.gate.follow_cookie(1);
        rig.gate.depth_of(1)
    };
    assert_eq!([0, 5, 6, 100].map(depth), [None, None, Some(32), Some(32)]);
}

#[test]
fn a_request_is_chosen_ahead_in_the_first_lane_that_is_ready_if_requests_are_to_be() {
    let waiting = [vec![], vec![(USUAL, Time::ZERO)], vec![(IDLE, Time::ZERO)]];
    let ahead = |commit_ahead| {
        let config = Config {
            commit_ahead,
            ..Config::default()
        };
        IoLatency::new(&config, [20, 0, 0].map(ms), 64).ahead(&View(&waiting))
    };
    assert_eq!([ahead(true), ahead(false)], [Some(Lane(1)), None]);
}

#[test]
fn a_gate_without_a_target_is_refused_with_what_is_allowed() {
    let spec: GateSpec = "iolatency:real_time=0s".parse().unwrap();
    let problem = spec
        .build(&Config::default())
        .map(|_| ())
        .unwrap_err()
        .problem;
    assert_eq!(
        problem.to_string(),
        "there is no target; give one of real_time, best_effort and idle, as in real_time=20ms"
    );
    for (text, wrong) in [
        ("iolatency:requests=0", "1 to 65536"),
        ("iolatency:real_time=2d", "real_time"),
        ("iolatency:target=20ms", "real_time"),
    ] {
        let error = text.parse::<GateSpec>().unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

/// A step of the test.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(u8),
    /// The drive completes one of its commands.
    Complete(u8),
    Wait(u32),
    Depth(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..4_u8).prop_map(Step::Ask),
        6 => any::<u8>().prop_map(Step::Complete),
        3 => prop_oneof![0..50_000_u32, 100_000..3_000_000_u32].prop_map(Step::Wait),
        1 => (1..33_u32).prop_map(Step::Depth),
    ];
    prop::collection::vec(step, 0..600)
}

proptest! {
    /// For any steps: the limit of a group is between one and `requests` commands. A request waits only if its group's
    /// limit or the depth is reached. All waiting requests have gone when the drive has completed its commands.
    #[test]
    fn every_group_may_have_a_command_in_the_drive_and_all_requests_go(
        targets in prop::array::uniform3(prop_oneof![Just(0_u64), 1..200_u64]),
        requests in prop_oneof![1..4_u32, Just(64), Just(65_536)],
        steps in steps(),
    ) {
        let mut rig = Rig::new(targets);
        rig.gate.requests = requests;
        for step in steps {
            match step {
                Step::Ask(class) => rig.ask(Class(class)),
                Step::Complete(at) => {
                    let count = rig.drive.len().max(1);
                    let tag = rig.drive.keys().nth(usize::from(at) % count).copied();
                    tag.into_iter().for_each(|tag| rig.complete(tag));
                }
                Step::Wait(micros) => rig.now += Nanos::from_micros(u64::from(micros)),
                Step::Depth(depth) => {
                    rig.gate.obey(rig.now, &GateOrder::Depth(depth));
                    rig.send();
                }
            }
            let hole = UNLIMITED_COOKIE - rig.gate.cookie;
            prop_assert!(hole <= 2 * u64::from(requests).max(1), "{hole}");
            let counted: u64 = rig.gate.groups.iter().map(|group| group.counted).sum();
            prop_assert_eq!(counted, rig.gate.counted);
            for (group, waiting) in rig.gate.groups.iter().zip(&rig.waiting) {
                prop_assert!(group.depth.is_none_or(|depth| (1..=requests).contains(&depth)));
                // A request waits only for its group's limit or for the depth.
                let full = !rig.gate.room.has_room();
                let limited = group.depth.is_some_and(|depth| group.in_drive >= depth);
                prop_assert!(waiting.is_empty() || full || limited);
            }
        }
        while let Some(tag) = rig.drive.keys().next().copied() {
            rig.now += ms(1);
            rig.complete(tag);
        }
        prop_assert!(rig.waiting.iter().all(Vec::is_empty));
    }
}

#[test]
fn a_request_that_the_depth_of_its_group_holds_asks_to_be_looked_at_when_the_timer_is_due() {
    let mut rig = Rig::new([20, 0, 0]);
    while rig.usual() != Some(1) {
        rig.takes(URGENT, 600);
    }
    rig.ask(USUAL);
    rig.ask(USUAL);
    let timer = rig.gate.timer.expect("the timer runs");
    let next = rig.gate.next(rig.now, &View(&rig.waiting));
    assert_eq!(next, Next::Hold(Some(timer)));
}
