//! The gates of the drive's own queue, in an engine: swaps, orders, and schedulers that propose a depth.

use crate::rig::{at, config};
use crate::world::arrival;
use headtime_engine::{
    Arrival, Command, Config, DriveTag, Engine, Event, GateOrder, GateSpec, Join, Lane, Outcome,
    RequestId,
};
use headtime_sched::{Backlog, Class, NoPositioning, Op, Scheduler, Spec};
use headtime_units::{Nanos, Time};

/// An engine behind a gate, and the requests that it sent, by drive tag.
struct Rig {
    engine: Engine,
    now: Time,
    in_drive: Vec<(DriveTag, u64)>,
    asked: u64,
}

fn schedulers(text: &str, count: usize) -> Vec<Box<dyn Scheduler>> {
    let spec: Spec = text.parse().unwrap();
    let build = || spec.build(None::<NoPositioning>).unwrap();
    std::iter::repeat_with(build).take(count).collect()
}

impl Rig {
    fn new(config: Config, gate: &str, scheduler: &str) -> Rig {
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

    fn event(&mut self, event: Event) {
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

    /// Somebody reads so many sectors; returns the number of the request.
    fn read(&mut self, class: Class, sectors: u64) -> u64 {
        let id = self.asked;
        self.asked += 1;
        let new = Arrival {
            class,
            ..arrival(id, Op::Read, 10_000 * id, sectors, 0)
        };
        self.event(Event::Arrived(new));
        id
    }

    fn complete(&mut self, id: u64) {
        let place = self.in_drive.iter().position(|(_, other)| *other == id);
        let (tag, _) = self.in_drive.remove(place.expect("it is in the drive"));
        let outcome = Outcome::Done;
        self.event(Event::Completed { tag, outcome });
    }

    fn order(&mut self, order: GateOrder) {
        self.event(Event::Ordered(order));
    }

    fn swap(&mut self, gate: &str, scheduler: &str) {
        let gate: GateSpec = gate.parse().unwrap();
        let gate = gate.build(self.engine.config()).unwrap().expect("a gate");
        let schedulers = schedulers(scheduler, gate.lanes());
        self.engine.replace_gate(self.now, gate, schedulers);
        self.poll();
    }

    fn sent(&self) -> Vec<u64> {
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

/// Reads so many sectors, one after the other, until this time.
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
    let mut rig = Rig::new(config(4), "rsd-priority:ranks=1/2/3:queue=single", "noop");
    (0..4).for_each(|_| _ = rig.read(Class::REAL_TIME, 8));
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
