//! `head-time`: nobody waits for longer than with one command at a time.
//!
//! # Problem
//!
//! A drive with a queue serves what is soonest done, and leaves other commands for long. [`Rsd`](super::Rsd) counts the commands
//! that overtook one. But a command takes 30 us of the arm or 30 ms, and a drive that destages is busy without any. So no
//! threshold is right for two loads.
//!
//! # How it works
//!
//! The gate tells requests apart by kind: who asks, reads or writes, and which size. A *trial* sends one command at a time. It
//! measures how long a request of each kind takes then, from its arrival on, so that the head time of others is included, and
//! destaging. Between trials commands go up to the depth. If a command in the drive has waited for longer than its kind does in a
//! trial, by [`MORE`], then the gate closes. So the drive has ever fewer commands to prefer.
//!
//! If a kind was late, its next commands are protected earlier. If it was early, they are protected later. So
//! the mean is as promised, although the drive takes time to come to a command when the gate has closed.
//!
//! A sixteenth of the time is for trials. A trial waits for each kind that was seen since the one before.
//!
//! # Bound
//!
//! In the mean, responses of each kind are no longer than at depth 1, by [`MORE`], if they are so in the trials.
//! A command for which nothing was measured yet closes no gate.

use super::registration::Registration;
use super::{FixedDepth, Gate, GateOrder, Lane, Lanes, Next};
use crate::config::Config;
use crate::in_drive::InDrive;
use crate::names::DriveTag;
use headtime_sched::{Class, Origin, PolicyInfo, Request};
use headtime_units::{Nanos, Time};

pub(super) const ENTRY: Registration = Registration {
    info: &INFO,
    check: |_, _| Ok(()),
    build: |_, config, _| Some(Box::new(HeadTime::new(config))),
};

const INFO: PolicyInfo = PolicyInfo {
    name: "head-time",
    idea: "keeps responses as at depth 1",
    bound: "the mean response of each kind of request is no longer than at depth 1, by 9 %",
    source: "this project: 2026-11-28-head-time",
    avoid: "throughput alone counts, or the drive has one command at a time",
    ..PolicyInfo::PLAIN
};

/// By how many percent more than in a trial a response may take.
const MORE: i64 = 9;
/// The first requests of a trial, which wait for what went before.
const SETTLING: u32 = 16;
/// The requests of a trial that count, at least.
const COUNTED: u32 = 32;
/// A trial that is this long does not wait for kinds of which no request has come.
const PATIENCE: Nanos = Nanos::from_millis(500);
/// Between trials, so many times their length passes; fewer times at first.
const APART: u64 = 15;
/// Over so many requests a response in trials is averaged.
const AVERAGED: i64 = 256;
/// Over so many requests what a kind was late is made good.
const REPAID: i64 = 64;

/// Kinds of requests, by hash. Two that share a place share a promise.
const KINDS: usize = 256;

/// Responses of a kind of requests.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    /// Its mean response in trials, nanoseconds, and of how many.
    alone: i64,
    count: i64,
    /// By how much its last requests were early, less by how much they were late.
    early: i64,
    /// When one last went to the drive.
    seen: Time,
    /// Whether one counted in this trial.
    tried: bool,
}

impl Kind {
    /// How long its next command may take.
    fn allowed(&self) -> i64 {
        self.promised() + self.early
    }

    fn promised(&self) -> i64 {
        self.alone + self.alone / 100 * MORE
    }

    /// Notes a response in a trial.
    fn measure(&mut self, response: i64) {
        self.count = (self.count + 1).min(AVERAGED);
        self.alone += (response - self.alone) / self.count;
        self.tried = true;
    }

    /// Notes a response between trials.
    fn compare(&mut self, response: i64) {
        if self.count > 0 {
            let early = self.early - self.early / REPAID + self.promised() - response;
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
    /// One command at a time, since then; so many requests that came since are done.
    Trial { since: Time, done: u32 },
    /// Up to the depth, until then.
    Usual { until: Time },
}

/// Admits commands up to a depth while none waits for longer than at depth 1.
#[derive(Clone, Debug)]
pub struct HeadTime {
    room: FixedDepth,
    in_drive: InDrive,
    /// By tag.
    commands: [InIt; DriveTag::DEPTH_MAX as usize],
    kinds: [Kind; KINDS],
    phase: Phase,
    /// When the trial before ended, and how many there were.
    tried: Time,
    trials: u64,
}

impl HeadTime {
    /// A gate for an engine of this configuration. It begins with a trial.
    pub fn new(config: &Config) -> HeadTime {
        let nothing = InIt {
            kind: 0,
            arrival: Time::ZERO,
        };
        HeadTime {
            room: FixedDepth::new(config),
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

    /// Begins a trial or ends one, if it is time.
    fn turn(&mut self, now: Time) {
        match self.phase {
            Phase::Trial { since, done } if self.is_over(now, since, done) => {
                self.trials += 1;
                let length = now.saturating_since(since);
                let apart = length.saturating_mul(self.trials.min(APART));
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
        let waits = || now.saturating_since(since) < PATIENCE && self.kinds.iter().any(misses);
        done >= SETTLING + COUNTED && !waits()
    }

    /// True if a command in the drive has waited for as long as it may.
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

    /// The kind of a command: a place among [`KINDS`].
    fn kind(command: &Request<DriveTag>) -> u8 {
        let size = command.extent.len.get().max(1).ilog2();
        let bits = size << 1 | u32::from(command.op.is_read());
        let Origin {
            process,
            program,
            export,
        } = command.origin;
        let who = process ^ u32::from(program) << 12 ^ u32::from(export) << 22;
        // The high bits of a product by an odd number depend on all bits of both.
        let hash = (who ^ bits << 26).wrapping_mul(0x9E37_79B1);
        (hash >> 24) as u8
    }
}

fn nanos(now: Time, since: Time) -> i64 {
    now.saturating_since(since).as_nanos() as i64
}

impl Gate for HeadTime {
    fn next(&mut self, now: Time, _: &dyn Lanes) -> Next {
        self.turn(now);
        match self.room.has_room() && !self.is_closed(now) {
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
        let command = self.commands[tag.index()];
        let kind = &mut self.kinds[usize::from(command.kind)];
        let response = nanos(now, command.arrival);
        match &mut self.phase {
            Phase::Trial { since, done } if command.arrival >= *since => {
                *done += 1;
                if *done > SETTLING {
                    kind.measure(response);
                }
            }
            Phase::Trial { .. } => {}
            Phase::Usual { .. } => kind.compare(response),
        }
    }

    fn told(&mut self, now: Time, order: &GateOrder) {
        self.room.told(now, order);
    }
}
