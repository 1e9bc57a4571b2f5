//! Offers of the lanes to demanding gates: the lane of a waiting flush, and requests chosen ahead.

use crate::rig::{Rig, config};
use crate::world::arrival;
use headtime_engine::{
    Arrival, Config, DriveTag, Gate, Lane, Lanes, Next, Outcome, Plug, RequestId, SharedCell,
};
use headtime_sched::{Class, Flags, Op, Origin, Request};
use headtime_testkit::AgedRanks;
use headtime_units::{Nanos, Time};

fn of_class(id: u64, op: Op, class: Class) -> Arrival {
    let len = if op == Op::Flush { 0 } else { 8 };
    Arrival {
        class,
        ..arrival(id, op, id * 100, len, 0)
    }
}

fn in_drive<G>(rig: &Rig<G>) -> Vec<RequestId> {
    rig.in_drive.iter().map(|sent| sent.parts[0]).collect()
}

/// A lane for each class. Only the first lane may go, and it outranks the others.
#[derive(Clone, Debug)]
struct FirstAlone;

impl Gate for FirstAlone {
    fn lanes(&self) -> usize {
        3
    }

    fn lane(&self, _: Origin, class: Class) -> Lane {
        match class {
            Class::REAL_TIME => Lane(0),
            Class::BEST_EFFORT => Lane(1),
            _ => Lane(2),
        }
    }

    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        lane < other
    }

    fn next(&mut self, _: Time, lanes: &dyn Lanes) -> Next {
        match lanes.state(Lane(0)).ready {
            true => Next::Take(Lane(0)),
            false => Next::Hold(None),
        }
    }

    fn taken(&mut self, _: Time, _: &Request<DriveTag>, _: Lane) {}

    fn returned(&mut self, _: Time, _: DriveTag) {}
}

#[test]
fn a_flush_lends_its_lane_to_a_lane_that_is_ready_past_one_that_is_plugged() {
    let plug = Some(Plug {
        requests: 8,
        timeout: Nanos::from_millis(4),
    });
    let mut rig = Rig::new(Config { plug, ..config(4) }, FirstAlone);
    rig.arrive(of_class(0, Op::Read, Class::BEST_EFFORT));
    rig.arrive(Arrival {
        flags: Flags::SYNC,
        ..of_class(1, Op::Read, Class::IDLE)
    });
    assert_eq!(in_drive(&rig), [], "the gate refuses both");
    rig.arrive(of_class(2, Op::Flush, Class::REAL_TIME));
    assert_eq!(in_drive(&rig), [1].map(RequestId::Client));
    assert_eq!(rig.finish().len(), 3);
}

#[test]
fn a_flush_of_the_low_rank_behind_one_of_the_high_rank_lends_nothing() {
    let mut rig = Rig::new(config(3), AgedRanks::new(3, 100));
    rig.arrive(of_class(0, Op::Flush, Class::REAL_TIME));
    for id in 1..4 {
        rig.arrive(of_class(id, Op::Read, Class::BEST_EFFORT));
    }
    rig.arrive(of_class(4, Op::Flush, Class::BEST_EFFORT));
    rig.complete(0, Outcome::Done);
    // The third tag is reserved for the high rank, which has no waiting request any more.
    assert_eq!(in_drive(&rig), [1, 2].map(RequestId::Client));
    rig.finish();
}

/// Lets one command through, and always wants another request chosen ahead.
#[derive(Clone, Debug)]
struct Eager {
    taken: u32,
    staged_max: SharedCell<usize>,
}

impl Gate for Eager {
    fn lanes(&self) -> usize {
        1
    }

    fn lane(&self, _: Origin, _: Class) -> Lane {
        Lane(0)
    }

    fn next(&mut self, _: Time, lanes: &dyn Lanes) -> Next {
        let staged = lanes.state(Lane(0)).staged;
        let mut most = self.staged_max.lock();
        *most = (*most).max(staged);
        match self.taken {
            0 => Next::Take(Lane(0)),
            _ => Next::Hold(None),
        }
    }

    fn ahead(&self, _: &dyn Lanes) -> Option<Lane> {
        Some(Lane(0))
    }

    fn taken(&mut self, _: Time, _: &Request<DriveTag>, _: Lane) {
        self.taken += 1;
    }

    fn returned(&mut self, _: Time, _: DriveTag) {
        self.taken -= 1;
    }
}

#[test]
fn at_most_two_requests_are_staged_however_many_a_gate_wants() {
    let staged_max = SharedCell::new(0);
    let gate = Eager {
        taken: 0,
        staged_max: staged_max.clone(),
    };
    let mut rig = Rig::new(config(1), gate);
    for id in 0..6 {
        rig.arrive(of_class(id, Op::Read, Class::BEST_EFFORT));
        assert_eq!(in_drive(&rig), [RequestId::Client(0)]);
    }
    assert_eq!(rig.engine.waiting(), 5);
    assert_eq!(rig.finish().len(), 6);
    assert_eq!(*staged_max.lock(), 2);
}
