//! `rsd`: no command in the drive is overtaken without end.
//!
//! # Problem
//!
//! A drive with a queue serves the quickest command first. A command far from all others can wait for seconds, while
//! later commands are served. The host cannot influence the drive's choice. A lower depth helps, but costs throughput.
//!
//! # How it works
//!
//! For each command in the drive, the gate counts the later commands that overtook it ([`Ages`]). While a command was
//! overtaken more than `age_th` times, no other command goes to the drive. The drive then has ever fewer commands to
//! prefer, and serves the starving one.
//!
//! # Bound
//!
//! No command is overtaken more than `age_th` + depth - 1 times. The reason: when the gate closes, at most depth - 2
//! other commands are in the drive. A new threshold holds from the change on.
//!
//! # Source
//!
//! Yu, Shin, Eom, Yeom, NCQ vs. I/O Scheduler: Preventing Unexpected Misbehaviors (ACM TOS 6(1), 2010), section 5.2,
//! Algorithm 2.

use super::ages::Ages;
use super::registration::Registration;
use super::{FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::names::DriveTag;
use headtime_sched::{Class, OptionInfo, Options, PolicyInfo, Request};
use headtime_units::Time;

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |_, _| Ok(()),
    build: |options, config, _| Some(Box::new(Rsd::new(config, age_th(options)))),
};

const INFO: PolicyInfo = PolicyInfo {
    name: "rsd",
    idea: "closes while a command starves",
    bound: "a command in the drive is overtaken at most age_th + depth - 1 times",
    source: "NCQ vs. I/O Scheduler (ACM TOS 2010), 5.2",
    avoid: "throughput alone counts, or the drive has one command at a time",
    options: &[AGE_TH],
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
}

impl Rsd {
    /// Creates a gate for an engine of this configuration. A command starves when it was overtaken more than `age_th`
    /// times.
    pub fn new(config: &Config, age_th: u64) -> Rsd {
        Rsd {
            room: FixedDepth::new(config),
            ages: Ages::new(age_th),
        }
    }
}

impl Gate for Rsd {
    fn next(&mut self, _: Time, _: &dyn Lanes) -> Next {
        match self.room.has_room() && !self.ages.any_starves() {
            true => Next::Take(Lane(0)),
            false => Next::Hold(None),
        }
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        self.room.ahead(lanes)
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        self.room.follows(lane, class)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        self.room.taken(now, command, lane);
        self.ages.assign(command.tag);
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.room.returned(now, tag);
        self.ages.free(tag);
    }

    fn starved(&self, nth: usize) -> Option<DriveTag> {
        self.ages.starved(nth)
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        match order {
            GateOrder::Age(threshold) => self.ages.set_threshold(*threshold),
            other => self.room.obey(now, other),
        }
    }
}
