//! `rsd-priority`: `rsd` with priorities, so that less urgent commands cannot keep urgent commands waiting in the
//! drive.
//!
//! # Problem
//!
//! The drive knows nothing of priorities. An urgent command that the drive prefers not to serve is overtaken by later
//! commands. An urgent command that comes while all tags are taken cannot be sent.
//!
//! # How it works
//!
//! Each class of requests has a level, the most urgent first, and each level a rank. A request goes to the drive under
//! three conditions. No command starves ([`Rsd`](super::Rsd)). No command in the drive is of a more urgent level (the
//! *ceiling*). More tags are free than the level's rank, so that some tags stay free for more urgent levels. By default
//! each level has a lane of its own, and the most urgent request that may go does so. With `queue=single` all requests
//! wait in one queue, as in the paper. A request that may not go then blocks the requests after it.
//!
//! A more urgent class that always has a command in the drive would keep the others out for good. So each lower level
//! that waits gets the share `floor` of the head time. When a level is owed more than its last command took, its next
//! request goes first ([`Floors`]).
//!
//! # Departures from the paper
//!
//! The paper has no floor, and one queue. `floor=0:queue=single` does the same.
//!
//! Taken literally, Algorithm 3 can hang. First, a rank of the depth or more is never less than the number of free
//! tags. Here an empty drive admits any request. Second, a tag that is freed while its level is below the ceiling keeps
//! its level. The ceiling can then fall to a level that has no command in the drive. Here each freed tag is cleared.
//!
//! # Bound
//!
//! The bound of `rsd` holds. While an urgent command is in the drive, no less urgent command follows, except by the
//! floor. At most depth - 1 less urgent commands that are in the drive already can be served first. The ceiling depends
//! on classes alone. If an urgent request has to wait for a less urgent command in the drive to keep the order, this
//! command raises no ceiling.
//!
//! # Source
//!
//! Yu et al. (ACM TOS 6(1), 2010), section 5.3, Algorithm 3. `rank()` is lower for a higher priority; one sentence of
//! 5.3, with levels of Windows Vista, has the opposite order.

use super::ages::Ages;
use super::levels::{FLOOR, Level, Levels, QUEUE, Queueing};
use super::registration::{GateProblem, Registration};
use super::rsd::{AGE_TH, age_th};
use super::{FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::names::DriveTag;
use headtime_sched::{Class, Counts, OptionInfo, Origin, PolicyInfo, Request};
use headtime_units::Time;

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |options, config| check(options.counts("ranks"), config.depth),
    build: |options, config, _| {
        let ranks = options.counts("ranks");
        let gate = RsdPriority::new(config, age_th(options), ranks, Queueing::of(options));
        Some(Box::new(gate.with_floor(options.percent("floor"))))
    },
};

const INFO: PolicyInfo = PolicyInfo {
    name: "rsd-priority",
    idea: "reserves tags for urgent commands",
    bound: "as rsd; never overtaken by a less urgent command, beyond the floor",
    source: "NCQ vs. I/O Scheduler (ACM TOS 2010), 5.3",
    avoid: "all requests are of one class",
    options: &[
        AGE_TH,
        OptionInfo::counts(
            "ranks",
            Counts::new(&[1, 2, 3]),
            (0, 255),
            "for each level, the most urgent first, how many tags stay free when one of its requests goes; higher \
             numbers leave more tags to those more urgent. Classes beyond the last level have the last",
        ),
        FLOOR,
        QUEUE,
    ],
    ..PolicyInfo::PLAIN
};

fn check(ranks: Counts, depth: u32) -> Result<(), GateProblem> {
    let falls = ranks.as_slice().windows(2).any(|two| two[0] > two[1]);
    let highest = *ranks.as_slice().last().expect("there is a rank");
    if falls {
        return Err(GateProblem::RanksFall(ranks));
    }
    // At depth 1 each command goes to an empty drive, which admits anything.
    match depth == 1 || u32::from(highest) < depth {
        true => Ok(()),
        false => Err(GateProblem::RankOfDepth { ranks, depth }),
    }
}

/// Admits by age, ceiling, and free tags: Algorithm 3 of the NCQ paper (ACM TOS 2010, section 5.3).
#[derive(Clone, Debug)]
pub struct RsdPriority {
    room: FixedDepth,
    ages: Ages,
    ranks: Counts,
    queueing: Queueing,
    /// `reqPrio` of the commands in the drive. `prio_ceiling` is the first level with a command in the drive.
    levels: Levels,
}

impl RsdPriority {
    /// Creates a gate for an engine of this configuration, without a floor. `ranks` has the rank of each level.
    pub fn new(config: &Config, age_th: u64, ranks: Counts, queueing: Queueing) -> RsdPriority {
        RsdPriority {
            room: FixedDepth::new(config),
            ages: Ages::new(age_th),
            ranks,
            queueing,
            levels: Levels::new(ranks.as_slice().len(), 0),
        }
    }

    /// Adds a floor: each lower level that waits gets `percent` of the head time.
    pub fn with_floor(self, percent: u64) -> RsdPriority {
        RsdPriority {
            levels: Levels::new(self.levels.count(), percent),
            ..self
        }
    }

    /// Returns true if no command starves and a tag is free (line 1 of Algorithm 3), or if the drive is empty.
    #[inline]
    fn admits_any(&self) -> bool {
        let has_room = || self.room.has_room() && !self.ages.any_starves();
        self.ages.active() == 0 || has_room()
    }

    /// Returns true if enough tags are free for a request of this level, or if the drive is empty (Algorithm 3).
    /// Callers check [`RsdPriority::admits_any`] and the ceiling.
    #[inline]
    fn admits(&self, level: Level) -> bool {
        self.ages.active() == 0 || !self.is_reserved(level)
    }

    /// Returns true if a request of this level may follow its prefix. Callers check [`RsdPriority::admits_any`]. Prefix
    /// and request take the drive no longer than the request alone. So neither an urgent request nor a reserved tag
    /// separates the two if nothing else is in the drive.
    fn follows_prefix(&self, level: Level) -> bool {
        self.ages.active() == 1 || self.is_below_ceiling(level) && self.admits(level)
    }

    /// Returns true if no command of a more urgent level is in the drive.
    fn is_below_ceiling(&self, level: Level) -> bool {
        !(0..level).any(|above| self.levels.is_in_drive(above))
    }

    fn is_reserved(&self, level: Level) -> bool {
        u32::from(self.ranks.as_slice()[level]) >= self.room.free()
    }

    /// Returns the lane of the most urgent level that may go.
    #[inline]
    fn next_lane(&self, lanes: &dyn Lanes) -> Option<Lane> {
        if let Some(lane) = self.levels.behind_prefix(lanes)
            && self.follows_prefix(lane.index())
        {
            return Some(lane);
        }
        if let Some(lane) = self.levels.due() {
            return Some(lane);
        }
        for lane in self.levels.lanes() {
            let level = lane.index();
            if lanes.is_ready(lane) && self.admits(level) {
                return Some(lane);
            }
            // The level is the ceiling, so less urgent levels may not go.
            if self.levels.is_in_drive(level) {
                return None;
            }
        }
        None
    }

    /// Notes the levels that have a request for the drive.
    fn note_waiting(&mut self, lanes: &dyn Lanes) {
        match self.queueing {
            Queueing::Lanes => self
                .levels
                .note_waiting(|level| lanes.is_ready(Lane(level as u8))),
            Queueing::Single => {
                let first = lanes
                    .state(Lane(0))
                    .first
                    .map(|class| self.levels.of(class));
                self.levels.note_waiting(|level| first == Some(level));
            }
        }
    }
}

impl Gate for RsdPriority {
    fn lanes(&self) -> usize {
        match self.queueing {
            Queueing::Lanes => self.levels.count(),
            Queueing::Single => 1,
        }
    }

    fn lane(&self, _: Origin, class: Class) -> Lane {
        match self.queueing {
            Queueing::Lanes => Lane(self.levels.of(class) as u8),
            Queueing::Single => Lane(0),
        }
    }

    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        lane < other
    }

    fn next(&mut self, _: Time, lanes: &dyn Lanes) -> Next {
        self.note_waiting(lanes);
        if !self.admits_any() {
            return Next::Hold(None);
        }
        let may = match self.queueing {
            Queueing::Lanes => self.next_lane(lanes),
            Queueing::Single => {
                let state = lanes.state(Lane(0));
                let may = state.first.is_some_and(|class| {
                    let level = self.levels.of(class);
                    let follows = || state.behind_prefix && self.follows_prefix(level);
                    let usual = self.is_below_ceiling(level) && (self.admits(level) || follows());
                    usual || self.levels.is_due(level)
                });
                may.then_some(Lane(0))
            }
        };
        may.map_or(Next::Hold(None), Next::Take)
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        // In a single queue the level of a request is known only once the scheduler has chosen the request.
        if self.queueing != Queueing::Single && !self.room.commits_ahead() {
            return None;
        }
        let chooses = |lane: &Lane| lanes.staged(*lane) == 0 && lanes.is_ready(*lane);
        self.levels.lanes().take(self.lanes()).find(chooses)
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        self.room.follows(lane, class)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        let level = match self.queueing {
            Queueing::Lanes => lane.index(),
            Queueing::Single => self.levels.of(command.class),
        };
        self.room.taken(now, command, lane);
        self.ages.assign(command.tag);
        self.levels.taken(now, command.tag, level);
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.room.returned(now, tag);
        self.ages.free(tag);
        self.levels.returned(now, tag, self.ages.active() == 0);
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
