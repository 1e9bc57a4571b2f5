//! `average`: each lane is served at a constant rate.
//!
//! # Problem
//!
//! Servers keep a promise of throughput by a constant rate: the program's bytes divided by its time limit. This gate
//! shows the cost of such a promise compared with windows.
//!
//! # How it works
//!
//! An order gives a lane a [rate](GateOrder::Rate). Among lanes with requests, the lane that is furthest behind its
//! rate, in seconds, goes first. A lane is at most a second behind, so a lane without requests loses its share. If no
//! lane is behind, lanes without a rate go. Lanes that are ahead go last. So the drive is never idle while there are
//! requests.
//!
//! # Bound
//!
//! No bound: a lane with requests far apart on the disk can demand more than the disk's whole time.
//!
//! # Source
//!
//! The competitor of U-Shape (SC'11), sections 2 and 4: a system that maintains average throughput. The paper names no
//! mechanism.

use super::assignment::{Assignment, BY, LANES};
use super::registration::Registration;
use super::{FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::names::DriveTag;
use headtime_sched::{Class, Options, Origin, PolicyInfo, Request};
use headtime_units::{Nanos, Time};

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |_, _| Ok(()),
    build: |options, config, _| Some(Box::new(Average::new(options, config))),
};

const INFO: PolicyInfo = PolicyInfo {
    name: "average",
    idea: "serves each program at a constant rate",
    bound: "none",
    source: "the rival in U-Shape (SC'11), 2",
    avoid: "requests of a program are close together at times, and far apart at others",
    options: &[BY, LANES],
    ..PolicyInfo::PLAIN
};

/// Longest time of its rate that a lane can be behind. Choice of this project: the time over which users look at rates.
const BEHIND_MAX: Nanos = Nanos::from_millis(1000);

/// Account of a lane with a rate.
#[derive(Clone, Copy, Debug, Default)]
struct Rated {
    /// Sectors a second; 0: no rate.
    rate: u64,
    /// Time up to which the lane has received its rate. It is later than now if the lane is ahead.
    paid: Time,
}

/// Serves lanes at constant rates, the lane furthest behind first.
#[derive(Clone, Debug)]
struct Average {
    assignment: Assignment,
    room: FixedDepth,
    /// Accounts by lane.
    rates: Vec<Rated>,
    /// Lane that was served last.
    serves: Lane,
}

impl Average {
    /// Creates a gate without rates for an engine of this configuration.
    fn new(options: Options<'_>, config: &Config) -> Average {
        let assignment = Assignment::of(options);
        Average {
            rates: vec![Rated::default(); assignment.lanes()],
            assignment,
            room: FixedDepth::new(config),
            serves: Lane(0),
        }
    }

    /// Returns the rank of a lane, lowest first: 0 behind its rate, 1 without a rate, 2 ahead of its rate. Equal ranks
    /// are ordered by the time up to which the lane has received its rate, then by turn.
    fn rank(&self, now: Time, lane: Lane) -> (u8, Time, usize) {
        let count = self.rates.len();
        let turn = (lane.index() + count - self.serves.index() - 1) % count;
        let Rated { rate, paid } = self.rates[lane.index()];
        match rate {
            0 => (1, Time::ZERO, turn),
            _ if paid < now => (0, paid.max(now.saturating_sub(BEHIND_MAX)), turn),
            _ => (2, paid, turn),
        }
    }
}

impl Gate for Average {
    fn lanes(&self) -> usize {
        self.assignment.lanes()
    }

    fn lane(&self, origin: Origin, _: Class) -> Lane {
        self.assignment.lane(origin)
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        if !self.room.has_room() {
            return Next::Hold(None);
        }
        let ready = self.assignment.all().filter(|lane| lanes.is_ready(*lane));
        let first = ready.min_by_key(|lane| self.rank(now, *lane));
        first.map_or(Next::Hold(None), Next::Take)
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        self.room.ahead_of(self.assignment.all(), lanes)
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        self.room.follows(lane, class)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        self.room.taken(now, command, lane);
        self.serves = lane;
        let rated = &mut self.rates[lane.index()];
        if rated.rate > 0 {
            let sectors = u128::from(command.extent.len.get());
            let time = sectors * 1_000_000_000 / u128::from(rated.rate);
            let time = Nanos::from_nanos(u64::try_from(time).unwrap_or(u64::MAX));
            rated.paid = rated.paid.max(now.saturating_sub(BEHIND_MAX)) + time;
        }
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.room.returned(now, tag);
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        match *order {
            GateOrder::Assign { .. } => self.assignment.obey(order),
            GateOrder::Rate { lane, rate } => {
                if let Some(rated) = self.rates.get_mut(lane.index()) {
                    *rated = Rated { rate, paid: now };
                }
            }
            _ => self.room.obey(now, order),
        }
    }

    fn in_force(&self, tell: &mut dyn FnMut(&GateOrder)) {
        self.assignment.in_force(tell);
        for (lane, rated) in self.assignment.all().zip(&self.rates) {
            let rate = rated.rate;
            tell(&GateOrder::Rate { lane, rate });
        }
    }
}
