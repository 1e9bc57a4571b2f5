//! Engines and gates that break a promise about lanes, one promise each. The audit must find the promise.

use super::*;
use crate::audit::Audit;
use crate::{Arrival, Command, Config, Event, GateOrder, Lanes, Next, Outcome, RequestId};
use headtime_sched::{Class, Flags, Noop, Op, Origin, Request, WorkConserving};
use headtime_units::Extent;

const HIGH: Lane = Lane(0);
const LOW: Lane = Lane(1);

/// A gate with two ranks that admits `low_max` commands of the low rank.
#[derive(Debug)]
struct Ranks {
    low_max: usize,
    low: Vec<DriveTag>,
    /// True if a request of the high rank outranks a request of the low rank. A gate must not change this. This gate
    /// does so on any order.
    outranks: bool,
}

impl Gate for Ranks {
    fn lanes(&self) -> usize {
        2
    }

    fn lane(&self, _: Origin, class: Class) -> Lane {
        match class {
            Class::REAL_TIME => HIGH,
            _ => LOW,
        }
    }

    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        self.outranks && lane < other
    }

    fn next(&mut self, _: Time, lanes: &dyn Lanes) -> Next {
        match lanes.state(HIGH).ready {
            true => Next::Take(HIGH),
            false if self.low.len() < self.low_max => Next::Take(LOW),
            false => Next::Hold(None),
        }
    }

    fn taken(&mut self, _: Time, command: &Request<DriveTag>, lane: Lane) {
        if lane == LOW {
            self.low.push(command.tag);
        }
    }

    fn returned(&mut self, _: Time, tag: DriveTag) {
        self.low.retain(|other| *other != tag);
    }

    fn obey(&mut self, _: Time, _: &GateOrder) {
        self.outranks = true;
    }
}

type Fifo = WorkConserving<Noop>;

struct Rig {
    engine: Engine<Fifo>,
    audit: Audit,
    ids: u64,
}

impl Rig {
    fn new(outranks: bool) -> Rig {
        let gate = Ranks {
            low_max: 1,
            low: Vec::new(),
            outranks,
        };
        let schedulers = (0..2).map(|_| WorkConserving::new(Noop::new()));
        let config = Config {
            depth: 4,
            ..Config::default()
        };
        let mut engine = Engine::with_gate(config, Box::new(gate), schedulers.collect()).unwrap();
        let mut audit = Audit::new();
        audit.watch(&mut engine);
        Rig {
            engine,
            audit,
            ids: 0,
        }
    }

    /// Returns the audit's verdict on an event and the commands that follow.
    fn event(&mut self, event: Event) -> Result<(), String> {
        let broken = |violation: crate::audit::Violation| violation.to_string();
        self.audit.event(&event).map_err(broken)?;
        self.engine.handle(Time::ZERO, event);
        while let Some(command) = self.engine.poll(Time::ZERO) {
            self.sees(&command)?;
        }
        self.rests([])
    }

    fn rests<const N: usize>(&self, outside: [Class; N]) -> Result<(), String> {
        let outside = outside.map(|class| (Origin::default(), class));
        let rests = self.audit.at_rest(&self.engine, outside);
        rests.map_err(|violation| violation.to_string())
    }

    fn sees(&mut self, command: &Command) -> Result<(), String> {
        let seen = self.audit.command(&self.engine, command);
        seen.map_err(|violation| violation.to_string())
    }

    fn arrive(&mut self, op: Op, start: u64, class: Class) -> Result<(), String> {
        let id = RequestId::Client(self.ids);
        self.ids += 1;
        self.event(Event::Arrived(Arrival {
            id,
            op,
            extent: match op {
                Op::Flush => Extent::default(),
                _ => Extent::at(start, 8),
            },
            flags: Flags::NONE,
            origin: Origin::default(),
            class,
            since: None,
        }))
    }

    /// Creates a rig with a command of the low rank in the drive, and two queued requests that were merged.
    fn busy() -> Rig {
        let mut rig = Rig::new(true);
        for start in [1000, 0, 8] {
            rig.arrive(Op::Read, start, Class::BEST_EFFORT).unwrap();
        }
        assert_eq!((rig.engine.in_flight(), rig.engine.waiting()), (1, 1));
        rig
    }

    fn complete(&mut self, tag: u32) -> Result<(), String> {
        self.event(Event::Completed {
            tag: DriveTag(tag),
            outcome: Outcome::Done,
        })
    }

    /// Issues a queued request of the low lane as a command of `lane`, without asking the gate.
    fn issue(&mut self, lane: Lane) -> Result<(), String> {
        let queue = &mut self.engine.lanes[LOW.index()];
        let tag = queue.choose(Time::ZERO, false, &mut self.engine.shared);
        let command = self.engine.issue(Time::ZERO, tag.expect("queued"), lane);
        self.sees(&command)
    }

    fn names(&mut self, lane: Lane) {
        struct Ready;
        impl Lanes for Ready {
            fn state(&self, _: Lane) -> crate::LaneState {
                crate::LaneState {
                    ready: true,
                    ..Default::default()
                }
            }
        }
        assert_eq!(self.engine.gate.next(Time::ZERO, &Ready), Next::Take(lane));
    }
}

#[test]
fn an_engine_that_keeps_to_its_gate_has_nothing_to_fear() {
    let mut rig = Rig::busy();
    rig.arrive(Op::Write, 4, Class::REAL_TIME).unwrap();
    assert_eq!(rig.engine.stats().raised, 1, "with both of its parts");
    assert_eq!(rig.engine.in_flight(), 2);
    rig.complete(1).unwrap();
    rig.complete(0).unwrap();
    rig.complete(1).unwrap();
    assert!(rig.engine.is_idle());
}

#[test]
fn a_command_with_parts_of_several_lanes_is_found() {
    let mut rig = Rig::busy();
    let part = rig.engine.shared.slots.live();
    let part = part.filter(|slot| slot.stage == Stage::Part);
    let part = part.map(|slot| slot.own.tag).next().unwrap();
    rig.engine.shared.slots[part].lane = HIGH;
    let error = rig.complete(0).unwrap_err();
    assert!(error.ends_with("are of several lanes"), "{error}");
}

#[test]
fn a_command_that_the_gate_refuses_is_found() {
    let mut rig = Rig::busy();
    assert_eq!(rig.engine.poll(Time::ZERO), None, "the gate holds");
    let error = rig.issue(LOW).unwrap_err();
    assert!(error.starts_with("the gate did not let"), "{error}");
    // The gate's decision is for one lane only.
    let mut rig = Rig::busy();
    rig.names(HIGH);
    let error = rig.issue(LOW).unwrap_err();
    assert!(error.starts_with("the gate did not let"), "{error}");
}

#[test]
fn a_command_that_goes_by_the_word_for_another_lane_is_found() {
    let mut rig = Rig::busy();
    rig.names(HIGH);
    let error = rig.issue(HIGH).unwrap_err();
    assert!(
        error.ends_with("of Lane(1) goes as one of Lane(0)"),
        "{error}"
    );
}

#[test]
fn a_gate_that_is_not_told_of_a_command_is_found() {
    let mut rig = Rig::busy();
    // A gate that the audit does not watch.
    rig.engine.wrap_gate(|_| {
        Box::new(Ranks {
            low_max: 4,
            low: Vec::new(),
            outranks: true,
        })
    });
    let error = rig.arrive(Op::Read, 3000, Class::REAL_TIME).unwrap_err();
    assert!(error.starts_with("the gate is not told of"), "{error}");
}

#[test]
fn a_gate_that_is_told_of_what_is_not_in_the_drive_is_found() {
    let mut rig = Rig::busy();
    let command = Request::new(Tag(0), Op::Read, Extent::at(0, 8), Time::ZERO);
    let command = command.tagged(DriveTag(3));
    rig.engine.gate.taken(Time::ZERO, &command, LOW);
    let error = rig.arrive(Op::Read, 3000, Class::REAL_TIME).unwrap_err();
    assert!(error.starts_with("the gate knows of"), "{error}");
}

#[test]
fn a_request_that_waits_for_one_which_did_not_inherit_its_rank_is_found() {
    let mut rig = Rig::new(false);
    for (op, start, class) in [
        (Op::Read, 1000, Class::BEST_EFFORT),
        (Op::Read, 0, Class::BEST_EFFORT),
        (Op::Write, 4, Class::REAL_TIME),
        (Op::Read, 5000, Class::REAL_TIME),
    ] {
        rig.arrive(op, start, class).unwrap();
    }
    assert_eq!(rig.engine.stats().raised, 0, "nobody outranks anybody");
    rig.event(Event::Ordered(GateOrder::Age(0))).unwrap();
    let error = rig.arrive(Op::Read, 6000, Class::REAL_TIME).unwrap_err();
    let expected = "2 of Lane(0) waits for 1, which is still of Lane(1)";
    assert_eq!(error, expected);
}

#[test]
fn a_gate_that_takes_over_puts_the_parts_of_a_command_into_one_lane_and_hands_on_rank() {
    let mut rig = Rig::new(false);
    for (op, start, class) in [
        (Op::Read, 1000, Class::BEST_EFFORT),
        (Op::Read, 0, Class::BEST_EFFORT),
        (Op::Read, 8, Class::BEST_EFFORT),
        (Op::Write, 4, Class::REAL_TIME),
    ] {
        rig.arrive(op, start, class).unwrap();
    }
    let gate = Ranks {
        low_max: 1,
        low: Vec::new(),
        outranks: true,
    };
    let schedulers = (0..2).map(|_| WorkConserving::new(Noop::new())).collect();
    rig.engine
        .replace_gate(Time::ZERO, Box::new(gate), schedulers);
    rig.audit.watch(&mut rig.engine);
    assert_eq!(rig.engine.stats().raised, 1);
    // The request does not lose the rank when its lane is drained.
    rig.event(Event::Drained {
        from: HIGH,
        to: LOW,
    })
    .unwrap();
    assert_eq!(rig.engine.stats().raised, 2);
    assert_eq!(
        rig.engine.in_flight(),
        2,
        "what the high rank waits for goes"
    );
}

/// Notifies the audit that a lane is drained, and calls `drain` to drain it.
fn drained(rig: &mut Rig, from: Lane, to: Lane, drain: impl FnOnce(&mut Engine<Fifo>)) {
    rig.audit.event(&Event::Drained { from, to }).unwrap();
    drain(&mut rig.engine);
}

#[test]
fn a_lane_that_is_not_empty_after_it_was_drained_is_found() {
    let mut rig = Rig::busy();
    drained(&mut rig, LOW, HIGH, |_| {});
    let error = rig.rests([]).unwrap_err();
    assert_eq!(error, "1 is left in Lane(1), which was drained");
    // The check holds until the next event.
    rig.event(Event::Unplugged).unwrap();
    // A staged request that is left is found, too.
    let mut rig = Rig::busy();
    let queue = &mut rig.engine.lanes[LOW.index()];
    let tag = queue.choose(Time::ZERO, false, &mut rig.engine.shared);
    queue.staged.extend(tag);
    drained(&mut rig, LOW, HIGH, |_| {});
    assert!(rig.rests([]).is_err());
    drained(&mut rig, LOW, HIGH, |engine| {
        engine.drain_lane(Time::ZERO, LOW, HIGH)
    });
    rig.rests([]).unwrap();
    // A lane that was drained into itself need not be empty.
    let mut rig = Rig::busy();
    rig.event(Event::Drained { from: LOW, to: LOW }).unwrap();
    assert_eq!(rig.engine.waiting(), 1);
}

#[test]
fn a_rank_that_is_lost_when_a_lane_is_drained_is_found() {
    let waits_in_the_high_lane = || {
        let mut rig = Rig::new(true);
        for (op, start, class) in [
            (Op::Read, 1000, Class::BEST_EFFORT),
            (Op::Read, 0, Class::BEST_EFFORT),
            (Op::Write, 4, Class::BEST_EFFORT),
        ] {
            rig.arrive(op, start, class).unwrap();
        }
        // The write waits for the read, and both are of the low rank until the write gets the high one.
        let slots = &mut rig.engine.shared.slots;
        let held = slots.live().find(|slot| slot.stage == Stage::Held);
        let held = held.expect("it overlaps").own.tag;
        slots.set_lane(held, HIGH);
        rig
    };
    let mut rig = waits_in_the_high_lane();
    drained(&mut rig, HIGH, LOW, |engine| {
        engine.move_all(Time::ZERO, HIGH, LOW);
    });
    let error = rig.arrive(Op::Read, 3000, Class::REAL_TIME).unwrap_err();
    assert_eq!(error, "2 of Lane(0) waits for 1, which is still of Lane(1)");
    let mut rig = waits_in_the_high_lane();
    drained(&mut rig, HIGH, LOW, |engine| {
        engine.drain_lane(Time::ZERO, HIGH, LOW);
    });
    rig.arrive(Op::Read, 3000, Class::REAL_TIME).unwrap();
}

#[test]
fn what_a_flush_waits_for_and_the_gate_refuses_by_a_lower_rank_than_that_behind_it_is_found() {
    let expected =
        "one of Lane(0) waits for a flush, and the gate refuses what that waits for as of Lane(1)";
    let mut rig = Rig::busy();
    rig.arrive(Op::Flush, 0, Class::BEST_EFFORT).unwrap();
    rig.rests([Class::IDLE]).unwrap();
    // A request waits outside the engine, and the engine was not notified.
    let error = rig.rests([Class::REAL_TIME]).unwrap_err();
    assert_eq!(error, expected);
    let behind = Event::Behind {
        origin: Origin::default(),
        class: Class::REAL_TIME,
    };
    rig.event(behind).unwrap();
    assert_eq!(rig.engine.in_flight(), 2);
    rig.rests([Class::REAL_TIME]).unwrap();
    // A request waits inside an engine that loses its rank.
    let mut rig = Rig::new(true);
    for start in [1000, 0, 3000] {
        rig.arrive(Op::Read, start, Class::BEST_EFFORT).unwrap();
    }
    rig.arrive(Op::Flush, 0, Class::BEST_EFFORT).unwrap();
    let tag = rig.engine.behind_flush[0];
    rig.engine.shared.slots[tag].lane = HIGH;
    let error = rig.event(Event::Woke).unwrap_err();
    assert_eq!(error, expected);
    rig.engine.rank_flush();
    rig.event(Event::Woke).unwrap();
    assert_eq!(rig.engine.in_flight(), 3);
}
