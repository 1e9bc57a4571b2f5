//! `iolatency`: a class that misses its latency target takes queue depth from classes with a looser target or none.
//!
//! # Problem
//!
//! A client with a latency target shares a drive with a client that fills the drive's queue. The right limit on the
//! second client's commands in the drive depends on drive and load, and is not known beforehand.
//!
//! # How it works
//!
//! Each class of requests is a group, with a lane of its own. A group can have a target: a mean latency, from arrival
//! to completion. A group's samples are summed over a window of 16 targets, 100 ms to 1 s, which ends at one of the
//! group's completions. If the mean is above the target, the other groups are scaled down. If the mean is within the
//! target and at least five samples have come, the other groups are scaled up again. The scale changes at most once in
//! 500 ms. The group that scaled down is the ruler until its own windows are good. Only a group with a tighter target
//! takes over.
//!
//! The scale is a *cookie* that all groups see. A group that finds the cookie lower halves its depth, the number of
//! commands that it may have in the drive. The depth goes from `requests` down to 1. A group that finds the cookie
//! higher gets a sixteenth of `requests` more. The cookie goes down by a fourth of `requests` and up by a sixteenth. If
//! the cookie is more than `requests` below the top, it moves by one either way. It is never lower than twice
//! `requests` below the top. At the top nothing is limited. A lower cookie does not limit a group whose own target is
//! no looser than the ruler's. A group with a target and at most 5 % of the samples is not limited either. A timer runs
//! once a second. If the cookie has not changed for five seconds, the timer forgets the ruler. Without a ruler, the
//! timer raises the cookie.
//!
//! A group that has to go down at depth 1 counts a delay. The group pays off its delays before its depth rises. The
//! kernel delays swapping and metadata by that count. This gate does not.
//!
//! # Departures from Linux
//!
//! The kernel counts a group's requests from their submission, before they are merged. This gate counts the group's
//! commands in the drive. Groups are classes. Lanes that may send take turns, while the kernel's groups share a
//! scheduler. A waiting request notices each change of the cookie, while the kernel checks once for each request.
//!
//! # Bound
//!
//! None. A group keeps at least one command in the drive. A drive that prefers such a command can postpone the others
//! without limit.
//!
//! # Source
//!
//! `block/blk-iolatency.c` of Linux 7.1, with the rule for disks that turn; `io.latency` of cgroup v2. The kernel's
//! mean over several windows is always zero, so only the mean of the last window decides. This gate does the same.

use super::registration::{GateProblem, Registration};
use super::{FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::names::DriveTag;
use headtime_sched::{Class, Op, OptionInfo, Options, Origin, PolicyInfo, Request};
use headtime_units::{Nanos, Time};

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |options, _| match targets(options).iter().all(|target| target.is_zero()) {
        true => Err(GateProblem::NoTarget),
        false => Ok(()),
    },
    build: |options, config, _| {
        let requests = u32::try_from(options.count("requests")).expect("the range is smaller");
        Some(Box::new(IoLatency::new(config, targets(options), requests)))
    },
};

const INFO: PolicyInfo = PolicyInfo {
    name: "iolatency",
    idea: "takes depth from others while somebody misses a target of latency",
    bound: "none",
    source: "blk-iolatency of Linux (io.latency of cgroup v2)",
    avoid: "one command of the others in the drive is too many",
    options: &[
        OptionInfo::duration(
            CLASSES[0],
            Nanos::from_millis(20),
            "the mean latency that `real-time` requests are to have; lower takes more from the others. 0s is no target",
        ),
        OptionInfo::duration(
            CLASSES[1],
            Nanos::ZERO,
            "the same for `best-effort` requests",
        ),
        OptionInfo::duration(CLASSES[2], Nanos::ZERO, "the same for `idle` requests"),
        OptionInfo::count(
            "requests",
            64,
            (1, 65_536),
            "as Linux's `nr_requests`, 64 on SATA drives with a scheduler, 32 without: from how many commands a group \
             is halved, and by how much the scale moves; higher takes longer to bite and to recover",
        ),
    ],
    ..PolicyInfo::PLAIN
};

const CLASSES: [&str; GROUPS] = ["real_time", "best_effort", "idle"];
const GROUPS: usize = 3;

fn targets(options: Options<'_>) -> [Nanos; GROUPS] {
    CLASSES.map(|key| options.duration(key))
}

/// `DEFAULT_SCALE_COOKIE`: nothing is limited.
const UNLIMITED_COOKIE: u64 = 1_000_000;
/// `BLKIOLATENCY_MIN_ADJUST_TIME`.
const BETWEEN_CHANGES: Nanos = Nanos::from_millis(500);
/// `BLKIOLATENCY_MIN_WIN_SIZE` and `BLKIOLATENCY_MAX_WIN_SIZE`.
const WINDOW_RANGE: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_secs(1));
/// `BLKIOLATENCY_MIN_GOOD_SAMPLES`.
const GOOD_SAMPLES: u64 = 5;
/// Period of the timer.
const TIMER: Nanos = Nanos::from_secs(1);
const SILENT_FOR: Nanos = Nanos::from_secs(5);

/// A class of requests: `struct iolatency_grp`.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Target latency, zero for none: `min_lat_nsec`.
    target: Nanos,
    window: Nanos,
    window_start: Time,
    /// Number of samples in the window, and their sum.
    samples: u64,
    sum: Nanos,
    /// Samples of all windows since the last decision: `cur_stat`.
    gathered: u64,
    /// The group's share of [`IoLatency::counted`]: `nr_samples`.
    counted: u64,
    /// The cookie as the group last saw it.
    cookie: u64,
    /// The most commands in the drive, `None` without a limit: `max_depth`.
    depth: Option<u32>,
    /// Times that the group had to go down at depth 1, less the times paid off: `use_delay`.
    delays: u64,
    in_drive: u32,
}

/// A command in the drive.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    group: u8,
    /// Arrival of the command's request. `None` for a flush, which is no sample.
    came: Option<Time>,
}

/// Limits each class in the drive while a class with a tighter latency target misses it.
#[derive(Clone, Debug)]
pub struct IoLatency {
    room: FixedDepth,
    groups: [Group; GROUPS],
    sent: Box<[Sent]>,
    /// `nr_requests`.
    requests: u32,
    /// `scale_cookie` of the parent.
    cookie: u64,
    /// `scale_grp` and `scale_lat`: the ruling group, and the target of the last ruler.
    ruler: Option<usize>,
    ruling: Nanos,
    /// `last_scale_event`.
    changed: Option<Time>,
    /// Samples counted by all groups: `nr_samples` of the parent.
    counted: u64,
    /// Time at which the timer is due, if it runs.
    timer: Option<Time>,
    /// Lane that sent the last command.
    last: Lane,
}

impl IoLatency {
    /// Creates a gate for an engine of this configuration, with the targets of real-time, best-effort and idle
    /// requests.
    pub fn new(config: &Config, targets: [Nanos; GROUPS], requests: u32) -> IoLatency {
        let group = |target: Nanos| Group {
            target,
            window: (target * 16).clamp(WINDOW_RANGE.0, WINDOW_RANGE.1),
            window_start: Time::ZERO,
            samples: 0,
            sum: Nanos::ZERO,
            gathered: 0,
            counted: 0,
            cookie: UNLIMITED_COOKIE,
            depth: None,
            delays: 0,
            in_drive: 0,
        };
        IoLatency {
            room: FixedDepth::new(config),
            groups: targets.map(group),
            sent: vec![Sent::default(); DriveTag::DEPTH_MAX as usize].into_boxed_slice(),
            requests,
            cookie: UNLIMITED_COOKIE,
            ruler: None,
            ruling: Nanos::ZERO,
            changed: None,
            counted: 0,
            timer: None,
            last: Lane(GROUPS as u8 - 1),
        }
    }

    /// Returns the most commands that a group may have in the drive; `None` if it is not limited.
    #[cfg(test)]
    fn depth_of(&self, group: usize) -> Option<u32> {
        self.groups[group].depth
    }

    /// `blkiolatency_timer_fn`, if it is due.
    fn run_timer(&mut self, now: Time) {
        let Some(at) = self.timer.filter(|at| *at <= now) else {
            return;
        };
        self.timer = None;
        if self.cookie >= UNLIMITED_COOKIE {
            return;
        }
        match (self.ruler, self.changed) {
            (None, _) => self.change_cookie(true),
            (Some(_), Some(changed)) if at.saturating_since(changed) >= SILENT_FOR => {
                self.ruler = None
            }
            (Some(_), _) => {}
        }
    }

    /// `scale_cookie_change`.
    fn change_cookie(&mut self, up: bool) {
        let requests = u64::from(self.requests);
        let hole = UNLIMITED_COOKIE.saturating_sub(self.cookie);
        if up {
            let step = (requests / 16).max(1);
            self.cookie = match () {
                () if self.cookie + step > UNLIMITED_COOKIE => UNLIMITED_COOKIE,
                () if hole > requests => self.cookie + 1,
                () => self.cookie + step,
            };
        } else if hole <= requests {
            self.cookie -= (requests / 4).max(1);
        } else if hole < requests * 2 {
            self.cookie -= 1;
        }
    }

    /// `check_scale_change`, called when a request of the group asks to go.
    fn follow_cookie(&mut self, index: usize) {
        let group = &mut self.groups[index];
        if group.cookie == self.cookie {
            return;
        }
        let up = self.cookie > group.cookie;
        group.cookie = self.cookie;
        if !up && !group.target.is_zero() {
            // A group with a target as tight as the ruler's is not limited, nor a group with few samples, which cannot
            // be the cause.
            let few = (self.counted * 5 / 100).max(1);
            if self.ruling.is_zero() || group.target <= self.ruling || group.counted <= few {
                return;
            }
        }
        if !up && group.depth == Some(1) {
            group.delays += 1;
            return;
        }
        if self.cookie == UNLIMITED_COOKIE {
            group.delays = 0;
            group.depth = None;
            return;
        }
        let old = group
            .depth
            .map_or(self.requests, |depth| depth.min(self.requests));
        match up {
            true if old == 1 && group.delays > 0 => group.delays -= 1,
            // A group without a limit stays without.
            true if old == self.requests => {}
            true => group.depth = Some((old + (self.requests / 16).max(1)).min(self.requests)),
            false => group.depth = Some((old / 2).max(1)),
        }
    }

    /// `iolatency_check_latencies`, called when the group's window ends.
    fn decide(&mut self, index: usize, now: Time) {
        let group = &mut self.groups[index];
        let mean = Nanos::from_nanos(group.sum.as_nanos() / group.samples.max(1));
        let good = mean <= group.target;
        let samples = core::mem::take(&mut group.samples);
        group.sum = Nanos::ZERO;
        if good && self.cookie == UNLIMITED_COOKIE {
            return;
        }
        group.gathered += samples;
        self.counted = self.counted - group.counted + group.gathered;
        group.counted = group.gathered;
        let (gathered, target) = (group.gathered, group.target);
        let too_soon = |at: Time| at >= now || now.saturating_since(at) < BETWEEN_CHANGES;
        if self.changed.is_some_and(too_soon) {
            return;
        }
        if good {
            if gathered < GOOD_SAMPLES {
                return;
            }
            if self.ruler == Some(index) {
                self.changed = Some(now);
                self.change_cookie(true);
            }
        } else if self.ruling.is_zero() || self.ruling >= target {
            self.changed = Some(now);
            if self.ruler.is_none() || self.ruling > target {
                self.ruling = target;
                self.ruler = Some(index);
            }
            self.change_cookie(false);
        }
        self.groups[index].gathered = 0;
    }

    fn may_send(&self, lane: Lane) -> bool {
        let group = &self.groups[lane.index()];
        group.depth.is_none_or(|depth| group.in_drive < depth)
    }
}

impl Gate for IoLatency {
    fn lanes(&self) -> usize {
        GROUPS
    }

    fn lane(&self, _: Origin, class: Class) -> Lane {
        Lane(class.0.min(GROUPS as u8 - 1))
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        let group = &self.groups[lane.index()];
        self.room.follows(lane, class) && group.depth.is_none_or(|depth| depth > 1)
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        self.run_timer(now);
        let timer = *self.timer.get_or_insert(now.saturating_add(TIMER));
        let mut next = Next::Hold(None);
        for step in (1..=GROUPS as u8).rev() {
            let lane = Lane((self.last.0 + step) % GROUPS as u8);
            if lanes.is_ready(lane) {
                self.follow_cookie(lane.index());
                if !self.room.has_room() {
                    continue;
                }
                match self.may_send(lane) {
                    true => next = Next::Take(lane),
                    // The timer may raise the depth.
                    false if next == Next::Hold(None) => next = Next::Hold(Some(timer)),
                    false => {}
                }
            }
        }
        next
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        let chooses =
            |lane: &Lane| self.room.is_ahead(lanes.staged(*lane)) && lanes.is_ready(*lane);
        (0..GROUPS as u8).map(Lane).find(chooses)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        self.room.taken(now, command, lane);
        self.last = lane;
        self.groups[lane.index()].in_drive += 1;
        self.sent[command.tag.index()] = Sent {
            group: lane.0,
            came: (command.op != Op::Flush).then_some(command.arrival),
        };
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.run_timer(now);
        self.room.returned(now, tag);
        let Sent { group, came } = self.sent[tag.index()];
        let index = usize::from(group);
        let group = &mut self.groups[index];
        group.in_drive -= 1;
        let took = came.map_or(Nanos::ZERO, |came| now.saturating_since(came));
        if group.target.is_zero() {
            return;
        }
        if !took.is_zero() {
            group.samples += 1;
            group.sum += took;
        }
        if now.saturating_since(group.window_start) >= group.window {
            group.window_start = now;
            self.decide(index, now);
        }
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        self.room.obey(now, order);
    }
}

#[cfg(test)]
mod tests;
