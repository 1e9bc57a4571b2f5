//! The gates of the drive's own queue, in an engine: swaps, orders, and schedulers that propose a depth.

use crate::rig::{at, config};
use crate::world::arrival;
use headtime_engine::{
    Arrival, Command, Config, DriveTag, Engine, Event, GateOrder, GateSpec, Gating, Join, Lane,
    Outcome, RequestId,
};
use headtime_sched::{Backlog, Class, Knowledge, NoPositioning, Op, Scheduler, ServiceCurve, Spec};
use headtime_units::{Nanos, Sectors, Time};
use std::sync::Arc;

/// An engine behind a gate, and the requests that it sent, by drive tag.
pub struct Rig {
    pub engine: Engine,
    pub now: Time,
    in_drive: Vec<(DriveTag, u64)>,
    asked: u64,
}

fn schedulers(text: &str, count: usize) -> Vec<Box<dyn Scheduler>> {
    let spec: Spec = text.parse().unwrap();
    let ms = Nanos::from_millis;
    let points = vec![(Sectors::ZERO, ms(1)), (Sectors::new(1_000_000), ms(9))];
    let curve = ServiceCurve::new(points, ServiceCurve::BACKWARD).expect("a curve");
    let build = || {
        let knowledge = Knowledge::<NoPositioning> {
            curve: Some(Arc::new(curve.clone())),
            ..Knowledge::default()
        };
        spec.build(knowledge).unwrap()
    };
    std::iter::repeat_with(build).take(count).collect()
}

impl Rig {
    pub fn new(config: Config, gate: &str, scheduler: &str) -> Rig {
        let gate: GateSpec = gate.parse().unwrap();
        let engine = match gate.build(&config).unwrap() {
            Some(gate) => {
                let schedulers = schedulers(scheduler, gate.lanes());
                Engine::with_gate(config, gate, schedulers).unwrap()
            }
            None => Engine::new(config, schedulers(scheduler, 1).remove(0)).unwrap(),
        };
        Rig {
            engine,
            now: Time::ZERO,
            in_drive: Vec::new(),
            asked: 0,
        }
    }

    pub fn event(&mut self, event: Event) {
        self.engine.handle(self.now, event);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(command) = self.engine.poll(self.now) {
            if let Command::Issue(request) = command {
                let (id, _) = self.engine.parts(request.tag).next().expect("a part");
                let id = match id {
                    RequestId::Client(id) => id,
                    RequestId::Background(id) => 1_000_000 + id,
                };
                self.in_drive.push((request.tag, id));
            }
        }
    }

    /// Reads a number of sectors. Returns the number of the request.
    fn read(&mut self, class: Class, sectors: u64) -> u64 {
        self.read_by(0, class, sectors)
    }

    /// Reads a number of sectors for a program. Returns the number of the request.
    pub fn read_by(&mut self, program: u16, class: Class, sectors: u64) -> u64 {
        let id = self.asked;
        self.asked += 1;
        let mut new = Arrival {
            class,
            ..arrival(id, Op::Read, 10_000 * id, sectors, 0)
        };
        new.origin.program = program;
        self.event(Event::Arrived(new));
        id
    }

    pub fn complete(&mut self, id: u64) {
        let place = self.in_drive.iter().position(|(_, other)| *other == id);
        let (tag, _) = self.in_drive.remove(place.expect("it is in the drive"));
        let outcome = Outcome::Done;
        self.event(Event::Completed { tag, outcome });
    }

    pub fn order(&mut self, order: GateOrder) {
        self.event(Event::Ordered(order));
    }

    pub fn swap(&mut self, gate: &str, scheduler: &str) {
        let gate: GateSpec = gate.parse().unwrap();
        let gate = gate.build(self.engine.config()).unwrap().expect("a gate");
        let schedulers = schedulers(scheduler, gate.lanes());
        self.engine.replace_gate(self.now, gate, schedulers);
        self.poll();
    }

    pub fn sent(&self) -> Vec<u64> {
        self.in_drive.iter().map(|(_, id)| *id).collect()
    }
}

const USUAL: Class = Class::BEST_EFFORT;

#[test]
fn a_gate_that_is_swapped_in_knows_in_which_order_commands_went_to_the_drive() {
    let mut rig = Rig::new(config(3), "rsd:age_th=1000", "noop");
    (0..3).for_each(|_| _ = rig.read(USUAL, 8));
    rig.complete(0);
    // The newest has the lowest tag.
    let newest = rig.read(USUAL, 8);
    rig.swap("rsd:age_th=0", "noop");
    // The oldest completes: nobody was overtaken.
    rig.complete(1);
    let next = rig.read(USUAL, 8);
    assert_eq!(rig.sent(), [2, newest, next]);
}

#[test]
fn a_depth_that_was_ordered_outlives_a_swap_of_gates() {
    let mut rig = Rig::new(config(4), "rsd", "noop");
    rig.order(GateOrder::Depth(1));
    (0..3).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!(rig.sent().len(), 1);
    rig.swap("rsd", "noop");
    assert_eq!(rig.sent().len(), 1);
    rig.order(GateOrder::Depth(99));
    assert_eq!(rig.sent().len(), 3, "the depth of the engine is the most");
}

/// Reads a number of sectors again and again until this time.
fn read_until(rig: &mut Rig, class: Class, sectors: u64, until: Time) {
    while rig.now < until {
        let id = rig.read(class, sectors);
        // It goes at the latest when its scheduler has waited for long enough.
        while !rig.sent().contains(&id) {
            rig.now = rig.engine.next_wakeup().expect("it waits");
            rig.event(Event::Woke);
        }
        rig.complete(id);
        rig.now += Nanos::from_millis(5);
    }
}

#[test]
fn nise_closes_the_drive_for_large_requests_and_opens_it_for_small_ones() {
    let mut rig = Rig::new(config(31), "depth", "nise");
    read_until(&mut rig, USUAL, 256, at(6_100));
    (0..10).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!(rig.sent().len(), 1, "sequential");
    while let Some((_, id)) = rig.in_drive.first().copied() {
        rig.complete(id);
        rig.now += Nanos::from_millis(1);
    }
    read_until(&mut rig, USUAL, 8, at(12_300));
    (0..40).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!(rig.sent().len(), 31, "random");
}

#[test]
fn a_lane_that_is_silent_proposes_no_depth() {
    let mut rig = Rig::new(config(31), "rsd-priority:ranks=0/0", "nise");
    read_until(&mut rig, Class::REAL_TIME, 256, at(7_000));
    rig.now = at(20_000);
    (0..40).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!(rig.sent().len(), 31);
}

#[test]
fn with_one_queue_a_scheduler_that_waits_is_not_taken_for_a_gate_that_holds() {
    for gate in [
        "rsd-priority:ranks=1/2:queue=single",
        "rsd-priority:ranks=1/2",
        "rsd",
    ] {
        let mut rig = Rig::new(config(4), gate, "anticipatory");
        let first = rig.read(USUAL, 8);
        rig.complete(first);
        let far = Arrival {
            origin: headtime_sched::Origin {
                process: 2,
                ..headtime_sched::Origin::default()
            },
            ..arrival(9, Op::Read, 900_000_000, 8, 0)
        };
        rig.event(Event::Arrived(far));
        assert_eq!(
            (rig.sent().len(), rig.engine.backlog()),
            (0, Backlog::Chosen),
            "{gate}"
        );
    }
}

#[test]
fn at_a_lowered_depth_a_full_drive_is_busy_and_nobody_waits_by_choice() {
    let mut rig = Rig::new(config(31), "depth", "noop");
    rig.order(GateOrder::Depth(1));
    (0..2).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!((rig.sent().len(), rig.engine.backlog()), (1, Backlog::Busy));
}

#[test]
fn what_joins_a_request_goes_by_the_class_of_that_request() {
    let mut rig = Rig::new(config(4), "rsd-priority:ranks=1/1/3:queue=single", "noop");
    (0..4).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!(rig.sent().len(), 3);
    let job = Arrival {
        id: RequestId::Background(1),
        class: Class::IDLE,
        ..arrival(0, Op::Read, 5_000, 8, 0)
    };
    rig.event(Event::Joined {
        arrival: job,
        lane: Lane(0),
        join: Join::Before,
    });
    rig.complete(0);
    assert_eq!(
        rig.sent().last(),
        Some(&1_000_001),
        "a class that is idle would wait for three"
    );
}

/// Four requests, with the first in the drive, and a job's read before the next.
fn with_a_prefix(join: Join) -> Rig {
    let mut rig = Rig::new(config(2), "rsd-priority:ranks=0/1:queue=single", "noop");
    (0..4).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!(rig.sent().len(), 1, "the other tag stays free");
    rig.event(Event::Joined {
        arrival: Arrival {
            id: RequestId::Background(1),
            class: Class::IDLE,
            ..arrival(0, Op::Read, 5_000, 8, 0)
        },
        lane: Lane(0),
        join,
    });
    rig.complete(0);
    rig
}

#[test]
fn a_request_goes_with_what_is_read_before_it_into_a_tag_that_is_free_for_others() {
    let mut rig = with_a_prefix(Join::Before);
    assert_eq!(rig.sent(), [1_000_001, 1], "the prefix and its request");
    rig.complete(1_000_001);
    assert_eq!(rig.sent(), [1], "nothing goes with that alone");
}

#[test]
fn nothing_but_its_request_goes_with_a_prefix() {
    let mut rig = with_a_prefix(Join::Before);
    // The drive takes the request first.
    rig.complete(1);
    assert_eq!(rig.sent(), [1_000_001]);
}

#[test]
fn what_is_read_at_the_cost_of_a_request_takes_no_other_tag() {
    let mut rig = with_a_prefix(Join::Outright);
    assert_eq!(rig.sent(), [1_000_001]);
    rig.complete(1_000_001);
    assert_eq!(rig.sent(), [1]);
}

#[test]
fn nothing_joins_an_urgent_request() {
    for (class, may) in [
        (Class::REAL_TIME, false),
        (USUAL, true),
        (Class::IDLE, true),
    ] {
        let mut rig = Rig::new(config(4), "rsd-priority:ranks=1/1/1:queue=single", "noop");
        (0..4).for_each(|_| _ = rig.read(class, 8));
        let (_, staged) = rig.engine.joinable(Lane(0)).expect("the last one");
        for (join, start) in [
            (Join::Before, 5_000),
            (Join::With, staged.extent.end().get()),
        ] {
            let arrival = Arrival {
                id: RequestId::Background(1),
                class: Class::IDLE,
                ..arrival(0, Op::Read, start, 8, 0)
            };
            assert_eq!(
                rig.engine.may_join(&arrival, Lane(0), join),
                may,
                "{class:?} {join:?}"
            );
        }
    }
}

/// Numbers of classes: real-time, best-effort, idle.
fn ms(times: [u64; 3]) -> [Nanos; 3] {
    times.map(Nanos::from_millis)
}

#[test]
fn what_a_gate_refuses_and_what_starves_is_accounted_by_time_and_class() {
    let mut rig = Rig::new(config(3), "rsd:age_th=0", "noop");
    let old = rig.read(Class::IDLE, 8);
    let [middle, newest] = [(); 2].map(|()| rig.read(USUAL, 8));
    // The drive is full, so it is not the gate that these two wait for.
    rig.read(Class::REAL_TIME, 8);
    rig.read(USUAL, 8);
    rig.now = at(10);
    assert_eq!(rig.engine.gating(rig.now), Gating::default());
    // Overtaken once, the oldest starves.
    rig.complete(newest);
    rig.now = at(30);
    let until_then = Gating {
        plugged: Nanos::from_millis(20),
        starved: [0, 0, 1],
        starved_for: ms([0, 0, 20]),
        ..Gating::default()
    };
    assert_eq!(rig.engine.gating(rig.now), until_then);
    rig.complete(middle);
    rig.now = at(60);
    rig.complete(old);
    assert_eq!(rig.in_drive.len(), 2);
    rig.now = at(90);
    // The first waiting request was refused, and the other waited for it.
    let in_the_end = Gating {
        plugged: Nanos::from_millis(50),
        refused: [1, 0, 0],
        starved: [0, 0, 1],
        starved_for: ms([0, 0, 50]),
    };
    assert_eq!(rig.engine.gating(rig.now), in_the_end);
}

#[test]
fn a_request_that_goes_past_one_that_is_refused_is_not_refused() {
    let mut rig = Rig::new(config(4), "rsd-priority:ranks=0/0", "noop");
    let urgent = rig.read(Class::REAL_TIME, 8);
    rig.read(USUAL, 8);
    rig.now = at(5);
    let other = rig.read(Class::REAL_TIME, 8);
    assert_eq!(rig.sent(), [urgent, other]);
    rig.now = at(7);
    rig.complete(urgent);
    rig.complete(other);
    let expected = Gating {
        plugged: Nanos::from_millis(7),
        refused: [0, 1, 0],
        ..Gating::default()
    };
    assert_eq!(rig.engine.gating(at(9)), expected);
}

#[test]
fn a_command_starves_once_however_long_it_does_and_again_under_another_gate() {
    let mut rig = Rig::new(config(3), "rsd:age_th=0", "noop");
    let old = rig.read(USUAL, 8);
    let second = rig.read(USUAL, 8);
    let third = rig.read(USUAL, 8);
    rig.complete(third);
    rig.complete(second);
    assert_eq!(rig.engine.gating(at(0)).starved, [0, 1, 0]);
    rig.order(GateOrder::Age(100));
    rig.now = at(10);
    let young = rig.read(USUAL, 8);
    rig.swap("rsd-priority:age_th=0:ranks=0", "noop");
    assert_eq!(rig.engine.gating(at(20)).starved_for, ms([0, 0, 0]));
    rig.complete(young);
    rig.now = at(30);
    rig.complete(old);
    let gating = rig.engine.gating(at(50));
    assert_eq!(
        (gating.starved, gating.starved_for),
        ([0, 2, 0], ms([0, 20, 0]))
    );
}

/// The depth alone counts for no gate, also if the scheduler lowered it.
#[test]
fn the_usual_gate_and_a_scheduler_that_proposes_a_depth_keep_nothing_from_the_drive() {
    for scheduler in ["noop", "nise"] {
        let mut rig = Rig::new(config(2), "depth", scheduler);
        (0..5).for_each(|_| _ = rig.read(USUAL, 8));
        rig.now = at(10);
        let [(_, first), ..] = rig.in_drive[..] else {
            panic!("nothing was sent")
        };
        rig.complete(first);
        assert_eq!(rig.engine.gating(at(20)), Gating::default(), "{scheduler}");
    }
    // A gate that admits fewer commands than the engine.
    let mut rig = Rig::new(config(2), "depth=1", "noop");
    (0..2).for_each(|_| _ = rig.read(USUAL, 8));
    assert_eq!(rig.engine.gating(at(20)).plugged, Nanos::from_millis(20));
}

/// Classes without a target come down to one command each. Waiting requests go as these complete, and all at once
/// when the limits end.
#[test]
fn behind_iolatency_others_come_down_to_one_command_while_a_target_is_missed_and_then_are_free() {
    let mut rig = Rig::new(config(32), "iolatency:real_time=20ms:requests=8", "noop");
    let serve = |rig: &mut Rig, millis: u64| {
        let id = rig.read(Class::REAL_TIME, 8);
        rig.now += Nanos::from_millis(millis);
        rig.complete(id);
    };
    let idle = |rig: &mut Rig| rig.read(Class::IDLE, 8);
    let all: Vec<u64> = (0..16).map(|_| idle(&mut rig)).collect();
    assert_eq!(rig.sent(), all, "nothing is limited yet");
    for _ in 0..8 {
        serve(&mut rig, 600);
        idle(&mut rig);
    }
    assert_eq!(rig.sent(), all, "all that wait are over the limit");
    for id in all {
        rig.complete(id);
    }
    assert_eq!(rig.sent(), [17], "the first that waits");
    rig.complete(17);
    assert_eq!(rig.sent().len(), 1);
    // Good windows of 320 ms free them in the end, one step after the other.
    for _ in 0..100 {
        for _ in 0..7 {
            serve(&mut rig, 10);
        }
        rig.now += Nanos::from_millis(600);
    }
    let one = rig.sent()[0];
    rig.complete(one);
    assert_eq!(rig.sent().len(), 6);
    (0..20).for_each(|_| _ = idle(&mut rig));
    assert_eq!(rig.sent().len(), 26);
}
