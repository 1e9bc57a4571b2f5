//! Levels: lanes by class, the most urgent first.

use super::floors::Floors;
use super::{Lane, Lanes};
use crate::names::DriveTag;
use headtime_sched::{Class, Counts, OptionInfo, Options};
use headtime_units::Time;

/// Option: share of the head time that lower levels get.
pub(super) const FLOOR: OptionInfo = OptionInfo::percent(
    "floor",
    5,
    50,
    "share of the head time that each level but the most urgent has while it waits; higher takes more from those more \
     urgent. 0: none, and urgent requests can keep the others out for good",
);

/// Option: whether levels have lanes.
pub(super) const QUEUE: OptionInfo = OptionInfo::choice(
    "queue",
    &["lanes", "single"],
    "lanes: a request that may not go blocks none of a more urgent level; single: all wait in one queue",
);

/// Queues in which requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// A lane for each level.
    Lanes,
    /// One lane for all levels.
    Single,
}

impl Queueing {
    pub(super) fn of(options: Options<'_>) -> Queueing {
        match options.choice("queue") {
            "single" => Queueing::Single,
            _ => Queueing::Lanes,
        }
    }
}

/// A level: 0 is the most urgent. The paper's priorities count the other way.
pub(super) type Level = usize;

/// Levels of requests and of commands in the drive.
///
/// Invariant: `in_drive[l]` is the number of tags in the drive with `by_tag[tag] = l`, for `l < count`.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    count: usize,
    by_tag: [u8; DriveTag::DEPTH_MAX as usize],
    in_drive: [u32; Counts::MAX],
    floors: Floors,
}

impl Levels {
    /// Creates levels; each but the most urgent gets `floor` percent of the head time while it waits.
    pub fn new(count: usize, floor: u64) -> Levels {
        Levels {
            count,
            by_tag: [0; DriveTag::DEPTH_MAX as usize],
            in_drive: [0; Counts::MAX],
            floors: Floors::new(floor),
        }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the level of a class. Classes beyond the last level have the last.
    pub fn of(&self, class: Class) -> Level {
        usize::from(class.0).min(self.count - 1)
    }

    /// Returns all levels as lanes, the most urgent first.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        (0..=u8::MAX).map(Lane).take(self.count)
    }

    /// Notes the levels for which `waits` is true: they have a request for the drive.
    pub fn note_waiting(&mut self, waits: impl Fn(Level) -> bool) {
        if self.floors.is_on() {
            for level in 0..self.count {
                self.floors.waits(level, waits(level));
            }
        }
    }

    /// Returns the first lane whose prefix is in the drive.
    pub fn behind_prefix(&self, lanes: &dyn Lanes) -> Option<Lane> {
        self.lanes().find(|lane| lanes.is_behind_prefix(*lane))
    }

    /// Returns true if the floor gives a level the next command. The floor admits one command of a level at a time.
    pub fn is_due(&self, level: Level) -> bool {
        self.in_drive[level] == 0 && self.floors.is_due(level)
    }

    /// Returns the first lane that the floor gives the next command.
    pub fn due(&self) -> Option<Lane> {
        self.lanes().find(|lane| self.is_due(lane.index()))
    }

    /// Returns true if commands of a level are in the drive.
    pub fn is_in_drive(&self, level: Level) -> bool {
        self.in_drive[level] > 0
    }

    pub fn taken(&mut self, now: Time, tag: DriveTag, level: Level) {
        self.floors.taken(now);
        self.by_tag[tag.index()] = level as u8;
        self.in_drive[level] += 1;
    }

    /// Notes that the drive is done with a command. `idle` is true if the drive has no other command.
    pub fn returned(&mut self, now: Time, tag: DriveTag, idle: bool) {
        let level = usize::from(self.by_tag[tag.index()]);
        self.floors.returned(now, level, idle);
        self.in_drive[level] -= 1;
    }
}
