//! `head-time`: keeps mean response times as with one command at a time.
//!
//! # Problem
//!
//! A drive with a queue serves the quickest command first, and leaves other commands for long. [`Rsd`](super::Rsd)
//! counts the commands that overtook a command. But a command takes 30 us of the arm or 30 ms, and a drive that
//! destages is busy without any command. So no threshold is right for two loads.
//!
//! # How it works
//!
//! The gate distinguishes kinds of requests: by client, by direction and by size. A *trial* sends one command at a
//! time. The trial measures the response time of each kind from the arrival on. This time includes the head time of
//! other requests, and destaging. Between trials commands go up to the depth. If a command in the drive has waited
//! [`RESPONSE_EXCESS_PERCENT`] percent longer than its kind does in a trial, the gate closes. The drive then has ever fewer commands to
//! prefer.
//!
//! If the requests of a kind were late, the gate closes earlier for the kind's next commands. If they were early, the
//! gate closes later. So the mean is as promised, although the drive takes time to reach a command after the gate has
//! closed.
//!
//! A sixteenth of the time is for trials. A trial waits for each kind that was seen since the previous trial.
//!
//! Each class of requests has a lane, and the most urgent class goes first. Lower classes get the share `floor` of the
//! head time while they wait. With `queue=single` all classes share one lane, and the scheduler alone decides.
//!
//! # Bound
//!
//! The mean response of each kind is at most [`RESPONSE_EXCESS_PERCENT`] percent longer than at depth 1, if the trials are typical. A
//! command of a kind that no trial has measured yet does not close the gate.

use super::levels::{FLOOR, Levels, QUEUE, Queueing};
use super::registration::Registration;
use super::{CLASSES, FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::in_drive::InDrive;
use crate::names::DriveTag;
use headtime_sched::{Class, Origin, PolicyInfo, Request};
use headtime_units::{Nanos, Time};

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |_, _| Ok(()),
    build: |options, config, _| {
        let levels = match Queueing::of(options) {
            Queueing::Lanes => CLASSES,
            Queueing::Single => 1,
        };
        let levels = Levels::new(levels, options.percent("floor"));
        Some(Box::new(HeadTime::new(config, levels)))
    },
};

const INFO: PolicyInfo = PolicyInfo {
    name: "head-time",
    idea: "keeps responses as at depth 1",
    bound: "the mean response of each kind of request is no longer than at depth 1, by 9 %",
    source: "this project: 2026-11-28-head-time",
    avoid: "throughput alone counts, or the drive has one command at a time",
    options: &[FLOOR, QUEUE],
    ..PolicyInfo::PLAIN
};

/// Percentage by which a response may exceed the response in a trial. This and the values below are choices of this project
/// (`docs/design/2026-11-28-head-time.md`).
const RESPONSE_EXCESS_PERCENT: i64 = 9;
/// Number of requests at the start of a trial that do not count, since earlier commands delay them.
const SETTLING_REQUESTS: u32 = 16;
/// Least number of requests that count in a trial.
const COUNTED_REQUESTS_MIN: u32 = 32;
/// Length of a trial after which the trial no longer waits for kinds without a request.
const TRIAL_PATIENCE: Nanos = Nanos::from_millis(500);
/// Time between trials, in lengths of the last trial. The first trials follow sooner.
const TRIAL_LENGTHS_BETWEEN: u64 = 15;
/// Number of requests over which the response in trials is averaged.
const AVERAGED_REQUESTS: i64 = 256;
/// Number of requests over which a kind makes up for its lateness.
const REPAID_OVER_REQUESTS: i64 = 64;

/// Number of places for kinds of requests, by hash. Kinds that share a place share a promise.
const KINDS: usize = 256;

/// Responses of a kind of requests.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    /// Mean response in trials in nanoseconds, and the number of requests in the mean (at most [`AVERAGED_REQUESTS`]).
    alone: i64,
    count: i64,
    /// Balance of earliness and lateness of the last requests, in nanoseconds; at most half of `alone`.
    early: i64,
    /// Time when a request of this kind last went to the drive.
    seen: Time,
    /// True if a request of this kind counted in the current trial.
    tried: bool,
}

impl Kind {
    /// Longest response of the next command before the gate closes, in nanoseconds.
    fn allowed(&self) -> i64 {
        self.promised() + self.early
    }

    fn promised(&self) -> i64 {
        self.alone + self.alone / 100 * RESPONSE_EXCESS_PERCENT
    }

    /// Notes a response in a trial.
    fn measure(&mut self, response: i64) {
        self.count = (self.count + 1).min(AVERAGED_REQUESTS);
        self.alone += (response - self.alone) / self.count;
        self.tried = true;
    }

    /// Notes a response between trials.
    fn compare(&mut self, response: i64) {
        if self.count > 0 {
            let early = self.early - self.early / REPAID_OVER_REQUESTS + self.promised() - response;
            self.early = early.min(self.alone / 2);
        }
    }
}

/// A command in the drive.
#[derive(Clone, Copy, Debug)]
struct InIt {
    kind: u8,
    arrival: Time,
}

/// Trial, or time between trials.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// One command at a time since `since`. `done` is the number of completed requests that arrived since `since`.
    Trial { since: Time, done: u32 },
    /// Commands up to the depth until `until`.
    Usual { until: Time },
}

/// Admits commands up to a depth while no command waits for longer than at depth 1.
#[derive(Clone, Debug)]
pub(super) struct HeadTime {
    room: FixedDepth,
    levels: Levels,
    in_drive: InDrive,
    /// Commands in the drive, by tag.
    commands: [InIt; DriveTag::DEPTH_MAX as usize],
    kinds: [Kind; KINDS],
    phase: Phase,
    /// End of the last trial, and number of trials so far.
    tried: Time,
    trials: u64,
}

impl HeadTime {
    /// Creates a gate for an engine of this configuration. The gate begins with a trial.
    pub(super) fn new(config: &Config, levels: Levels) -> HeadTime {
        let nothing = InIt {
            kind: 0,
            arrival: Time::ZERO,
        };
        HeadTime {
            room: FixedDepth::new(config),
            levels,
            in_drive: InDrive::EMPTY,
            commands: [nothing; DriveTag::DEPTH_MAX as usize],
            kinds: [Kind::default(); KINDS],
            phase: Phase::Usual { until: Time::ZERO },
            tried: Time::ZERO,
            trials: 0,
        }
    }

    fn tags(&self) -> impl Iterator<Item = DriveTag> {
        (0..self.in_drive.len()).filter_map(|nth| self.in_drive.nth(nth))
    }

    /// Begins or ends a trial, if it is time.
    fn turn(&mut self, now: Time) {
        match self.phase {
            Phase::Trial { since, done } if self.is_over(now, since, done) => {
                self.trials += 1;
                let length = now.saturating_since(since);
                let apart = length.saturating_mul(self.trials.min(TRIAL_LENGTHS_BETWEEN));
                let until = now.saturating_add(apart);
                self.phase = Phase::Usual { until };
                self.tried = now;
            }
            Phase::Usual { until } if now >= until => {
                self.phase = Phase::Trial {
                    since: now,
                    done: 0,
                };
                self.kinds.iter_mut().for_each(|kind| kind.tried = false);
            }
            _ => {}
        }
    }

    fn is_over(&self, now: Time, since: Time, done: u32) -> bool {
        let misses = |kind: &Kind| kind.seen > self.tried && !kind.tried;
        let waits =
            || now.saturating_since(since) < TRIAL_PATIENCE && self.kinds.iter().any(misses);
        done >= SETTLING_REQUESTS + COUNTED_REQUESTS_MIN && !waits()
    }

    /// Returns true if a command in the drive has waited for longer than its kind may.
    fn starves(&self, now: Time, tag: DriveTag) -> bool {
        let command = &self.commands[tag.index()];
        let kind = &self.kinds[usize::from(command.kind)];
        kind.count > 0 && nanos(now, command.arrival) > kind.allowed()
    }

    fn is_closed(&self, now: Time) -> bool {
        match self.phase {
            Phase::Trial { .. } => self.in_drive.len() > 0,
            Phase::Usual { .. } => self.tags().any(|tag| self.starves(now, tag)),
        }
    }

    /// Returns the kind of a command: an index below [`KINDS`].
    fn kind(command: &Request<DriveTag>) -> u8 {
        let size = command.extent.len.get().max(1).ilog2();
        let bits = size << 1 | u32::from(command.op.is_read());
        let Origin {
            process,
            program,
            export,
        } = command.origin;
        let who = process ^ u32::from(program) << 12 ^ u32::from(export) << 22;
        // The high bits of a product with an odd number depend on all bits of both factors.
        let hash = (who ^ bits << 26).wrapping_mul(0x9E37_79B1);
        (hash >> 24) as u8
    }
}

fn nanos(now: Time, since: Time) -> i64 {
    now.saturating_since(since).as_nanos() as i64
}

impl Gate for HeadTime {
    fn lanes(&self) -> usize {
        self.levels.count()
    }

    fn lane(&self, _: Origin, class: Class) -> Lane {
        Lane(self.levels.of(class) as u8)
    }

    fn outranks(&self, lane: Lane, other: Lane) -> bool {
        lane < other
    }

    fn next(&mut self, now: Time, lanes: &dyn Lanes) -> Next {
        self.turn(now);
        let ready = |lane: &Lane| lanes.is_ready(*lane);
        self.levels.note_waiting(|level| ready(&Lane(level as u8)));
        if !self.room.has_room() || self.is_closed(now) {
            return Next::Hold(None);
        }
        let first = || self.levels.lanes().find(ready);
        let next = self
            .levels
            .behind_prefix(lanes)
            .or_else(|| self.levels.due());
        next.or_else(first).map_or(Next::Hold(None), Next::Take)
    }

    fn ahead(&self, lanes: &dyn Lanes) -> Option<Lane> {
        self.room.ahead_of(self.levels.lanes(), lanes)
    }

    fn follows(&self, lane: Lane, class: Class) -> bool {
        self.room.follows(lane, class)
    }

    fn taken(&mut self, now: Time, command: &Request<DriveTag>, lane: Lane) {
        self.room.taken(now, command, lane);
        self.levels.taken(now, command.tag, lane.index());
        let kind = HeadTime::kind(command);
        self.kinds[usize::from(kind)].seen = now;
        self.commands[command.tag.index()] = InIt {
            kind,
            arrival: command.arrival,
        };
        self.in_drive.insert(command.tag);
    }

    fn returned(&mut self, now: Time, tag: DriveTag) {
        self.room.returned(now, tag);
        self.in_drive.remove(tag);
        self.levels.returned(now, tag, self.in_drive.len() == 0);
        let command = self.commands[tag.index()];
        let kind = &mut self.kinds[usize::from(command.kind)];
        let response = nanos(now, command.arrival);
        match &mut self.phase {
            Phase::Trial { since, done } if command.arrival >= *since => {
                *done += 1;
                if *done > SETTLING_REQUESTS {
                    kind.measure(response);
                }
            }
            Phase::Trial { .. } => {}
            Phase::Usual { .. } => kind.compare(response),
        }
    }

    fn obey(&mut self, now: Time, order: &GateOrder) {
        self.room.obey(now, order);
    }
}
