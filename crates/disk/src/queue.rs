//! Commands in the drive, and which of those that wait is next.
//!
//! The policies are those of the profile: in order of arrival, or the shortest positioning time
//! among the commands that were waiting when the arm became free. A margin can be added to each
//! estimated seek, so that an arrival that is too tight is not tried (it may still succeed), and a
//! command that has waited for longer than a cap goes first. The position of a command is computed
//! once, when it comes.

use crate::layout::Layout;
use crate::mechanics::Mechanics;
use crate::profile::FirmwarePolicy;
use headtime_sched::Op;
use headtime_units::{Lba, Nanos, Time, Track};

/// Where the arm has to be for a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The circle.
    pub track: Track,
    /// When in a turn the sector begins.
    pub phase: Nanos,
    /// What for.
    pub op: Op,
}

impl Target {
    /// The position of a sector.
    pub fn new(layout: &Layout, mechanics: &Mechanics, lba: Lba, op: Op) -> Target {
        let place = layout.locate(lba);
        Target {
            track: place.track,
            phase: mechanics.phase(place.angle),
            op,
        }
    }
}

/// A command that waits for the arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Its slot in the drive.
    pub slot: u16,
    /// What it does.
    pub op: Op,
    /// When it came.
    pub arrived: Time,
    /// Its first sector; `None` if it needs none.
    pub target: Option<Target>,
}

/// The commands that wait, in order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    policy: FirmwarePolicy,
    /// The least positioning time of a read.
    least: Nanos,
    waiting: Vec<Waiting>,
}

impl Queue {
    /// An empty queue with room for `depth` commands.
    pub fn new(policy: FirmwarePolicy, depth: u32, least: Nanos) -> Queue {
        Queue {
            policy,
            least,
            waiting: Vec::with_capacity(depth as usize),
        }
    }

    /// The least positioning time of a read.
    pub fn least_positioning(&self) -> Nanos {
        self.least
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a command.
    pub fn push(&mut self, command: Waiting) {
        self.waiting.push(command);
    }

    /// The commands in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> + '_ {
        self.waiting.iter()
    }

    /// Takes out the command at a place that [`Queue::choose`] gave.
    pub fn take(&mut self, place: usize) -> Waiting {
        self.waiting.remove(place)
    }

    /// Puts a command back where it was taken out.
    pub fn put_back(&mut self, place: usize, command: Waiting) {
        self.waiting.insert(place, command);
    }

    /// Takes out the command of a slot, if it waits.
    pub fn cancel(&mut self, slot: u16) -> Option<Waiting> {
        let place = self
            .waiting
            .iter()
            .position(|waiting| waiting.slot == slot)?;
        Some(self.take(place))
    }

    /// Whether the arm's next destination depends on where it is.
    pub fn is_by_position(&self) -> bool {
        matches!(self.policy, FirmwarePolicy::Sptf { .. })
    }

    /// The place of the command to serve next among those that `may` accepts, for an arm on `from`
    /// that is free at `now`, with its estimated positioning time (zero in order of arrival).
    pub fn choose(
        &self,
        mechanics: &Mechanics,
        from: Track,
        now: Time,
        mut may: impl FnMut(&Waiting) -> bool,
    ) -> Option<(usize, Nanos)> {
        let (margin, age_cap) = match self.policy {
            FirmwarePolicy::Fifo => {
                return self
                    .waiting
                    .iter()
                    .position(may)
                    .map(|place| (place, Nanos::ZERO));
            }
            FirmwarePolicy::Sptf { margin, age_cap } => (margin, age_cap),
        };
        let mut best: Option<(usize, Nanos)> = None;
        for (place, waiting) in self.waiting.iter().enumerate() {
            if !may(waiting) {
                continue;
            }
            let old = age_cap.is_some_and(|cap| now.saturating_since(waiting.arrived) >= cap);
            let Some(target) = waiting.target.filter(|_| !old) else {
                return Some((place, Nanos::ZERO));
            };
            let limit = best.map_or(Nanos::MAX, |(_, time)| time);
            let time = self.positioning(mechanics, from, now, target, margin, limit);
            if time < limit {
                best = Some((place, time));
            }
        }
        best
    }

    /// Estimated positioning time of a destage that begins at `target`, as [`Queue::choose`]
    /// estimates it for a command; for comparison with one. If it is `best` or more, it may be too
    /// low.
    pub fn estimate(
        &self,
        mechanics: &Mechanics,
        from: Track,
        now: Time,
        target: Target,
        best: Nanos,
    ) -> Nanos {
        let margin = match self.policy {
            FirmwarePolicy::Fifo => Nanos::ZERO,
            FirmwarePolicy::Sptf { margin, .. } => margin,
        };
        self.positioning(mechanics, from, now, target, margin, best)
    }

    /// Estimated time to the first sector of `target` for an arm free to leave `from` at `now`; of
    /// the seek alone if that is `best` already.
    fn positioning(
        &self,
        mechanics: &Mechanics,
        from: Track,
        now: Time,
        target: Target,
        margin: Nanos,
        best: Nanos,
    ) -> Nanos {
        let way = mechanics.reposition(from, target.track, target.op).total();
        let seek = if target.op.is_read() {
            way.max(self.least)
        } else {
            way
        } + margin;
        if seek >= best {
            return seek;
        }
        seek + mechanics.wait(mechanics.phase_at(now + seek), target.phase)
    }
}
