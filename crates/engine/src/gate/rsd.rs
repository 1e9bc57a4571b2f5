//! `rsd`: no command in the drive is overtaken without end.
//!
//! # Problem
//!
//! A drive with a queue serves what is soonest done. A command that is far from all others can wait for seconds, while
//! commands that came later are served. The drive takes no word from the host on the matter; a lower
//! depth cures it and costs throughput.
//!
//! # How it works
//!
//! The gate counts for each command in the drive how many later ones overtook it ([`Ages`]). While one was overtaken
//! more than `age_th` times, nothing else goes to the drive. The drive then has ever fewer commands to prefer, and
//! serves the starving one.
//!
//! # Bound
//!
//! No command is overtaken more than `age_th` + depth - 1 times: when the gate closes, at most depth - 2 others are in
//! the drive. A change of the threshold counts from then on.
//!
//! With `bound=200ms` no command is in the drive for longer than that, as long as no command takes longer than
//! `longest` and the drive has no fault: n commands, and one that goes now, are done within n + 1 of the longest
//! service times. So a command goes only if that leaves all in time that are there. A flush has no such promise.
//!
//! # Source
//!
//! Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler: Preventing Unexpected Misbehaviors (ACM TOS 6(1), 2010), section 5.2,
//! Algorithm 2.

use super::ages::Ages;
use super::in_time::{self, InTime};
use super::registration::Registration;
use super::{FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::names::DriveTag;
use headtime_sched::{Class, Op, OptionInfo, Options, Origin, PolicyInfo, Request};
use headtime_units::{Nanos, Time};

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |options, _| in_time::check(options, 1),
    build: |options, config| {
        let gate = Rsd::new(config, age_th(options));
        Some(Box::new(gate.within(InTime::new(options))))
    },
};

const INFO: PolicyInfo = PolicyInfo {
    name: "rsd",
    idea: "closes while a command starves",
    bound: "a command in the drive is overtaken at most age_th + depth - 1 times; with bound, it is there no longer",
    source: "NCQ vs. I/O Scheduler (ACM TOS 2010), 5.2",
    avoid: "throughput alone counts, or the drive has one command at a time",
    options: &[AGE_TH, in_time::BOUND, in_time::LONGEST, in_time::PAUSE],
    ..PolicyInfo::PLAIN
};

/// The option that all gates with ages have.
pub(super) const AGE_TH: OptionInfo = OptionInfo::count(
    "age_th",
    90,
    (0, 1_000_000),
    "how often a command in the drive may be overtaken before nothing else goes there; higher gives the drive \
     more to choose from and lets the slowest wait longer",
);

pub(super) fn age_th(options: Options<'_>) -> u64 {
    options.count("age_th")
}

/// Admits commands up to a depth while none starves: Algorithm 2 of the NCQ paper (ACM TOS 2010, section 5.2).
#[derive(Clone, Debug)]
pub struct Rsd {
    room: FixedDepth,
    ages: Ages,
    in_time: InTime,
}

impl Rsd {
    /// A gate for an engine of this configuration. A command starves when it was overtaken more than `age_th` times.
    pub fn new(config: &Config, age_th: u64) -> Rsd {
        Rsd {
            room: FixedDepth::new(config),
            ages: Ages::new(age_th),
            in_time: InTime::of(Nanos::ZERO, Nanos::ZERO, Nanos::ZERO),
        }
    }

    /// The same with a bound in time.
    pub(super) fn within(self, in_time: InTime) -> Rsd {
        Rsd { in_time, ..self }
    }
}

impl Gate for Rsd {
    fn lanes(&self) -> usize {
        1
    }

    fn lane(&self, _: Origin, _: Class) -> Lane {
        Lane(0)
    }

    fn next(&mut self, now: Time, _: &dyn Lanes) -> Next {
        let has_room = self.room.has_room() && !self.ages.any_starves();
        match has_room && (self.ages.active() == 0 || self.in_time.has_time(now, 1)) {
            true => Next::Take(Lane(0)),
            false => Next::Hold(None),
        }
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        self.room.ahead(lanes)
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        self.room.follows(lane, class) && self.in_time.most(1) > 1
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        self.room.taken(now, command, lane);
        self.ages.assign(command.tag);
        let is_promised = command.op != Op::Flush;
        self.in_time.assign(now, command.tag, is_promised);
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.room.returned(now, tag);
        self.ages.free(tag);
        self.in_time.free(tag);
    }

    fn starved(&self, nth: usize) -> Option<DriveTag> {
        self.ages.starved(nth)
    }

    fn told(&mut self, now: Time, order: &GateOrder) {
        match order {
            GateOrder::Depth(_) => self.room.told(now, order),
            GateOrder::Age(threshold) => self.ages.set_threshold(*threshold),
            GateOrder::Window { .. } => {}
        }
    }
}
