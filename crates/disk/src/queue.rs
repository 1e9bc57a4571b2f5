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
    waiting: Vec<Waiting>,
}

impl Queue {
    /// An empty queue with room for `depth` commands.
    pub fn new(policy: FirmwarePolicy, depth: u32) -> Queue {
        Queue {
            policy,
            waiting: Vec::with_capacity(depth as usize),
        }
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
        let seek = way + mechanics.set_up(way, target.op) + margin;
        if seek >= best {
            return seek;
        }
        seek + mechanics.wait(mechanics.phase_at(now + seek), target.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::by_name;

    fn nanos(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    /// The tags in the order in which commands at these addresses, all there from the start but for
    /// their times of arrival, are served one a millisecond.
    fn order(policy: FirmwarePolicy, commands: &[(u64, u64)]) -> Vec<u16> {
        let profile = by_name("cheetah9lp").unwrap();
        let layout = Layout::new(&profile);
        let mechanics = Mechanics::new(&profile);
        let mut queue = Queue::new(policy, 32);
        for (slot, &(lba, arrived_ms)) in (0..).zip(commands) {
            queue.push(Waiting {
                slot,
                op: Op::Read,
                arrived: Time::ZERO + Nanos::from_millis(arrived_ms),
                target: Some(Target::new(&layout, &mechanics, Lba::new(lba), Op::Read)),
            });
        }
        let mut from = layout.home();
        let mut now = Time::ZERO + Nanos::from_millis(200);
        let mut order = Vec::new();
        while let Some((place, _)) = queue.choose(&mechanics, from, now, |_| true) {
            let waiting = queue.take(place);
            order.push(waiting.slot);
            from = waiting.target.unwrap().track;
            now += nanos(1000);
        }
        order
    }

    #[test]
    fn in_order_of_arrival() {
        let commands = [(9_000_000, 0), (10, 1), (17_000_000, 2)];
        assert_eq!(order(FirmwarePolicy::Fifo, &commands), [0, 1, 2]);
    }

    #[test]
    fn by_position_unless_one_is_too_old() {
        let sptf = |age_cap| FirmwarePolicy::Sptf {
            margin: Nanos::ZERO,
            age_cap,
        };
        let commands = [
            (17_000_000, 50),
            (9_000_000, 60),
            (100_000, 190),
            (3_000_000, 195),
        ];
        assert_eq!(order(sptf(None), &commands)[3], 0);
        assert_eq!(order(sptf(Some(Nanos::from_millis(149))), &commands)[0], 0);
    }

    #[test]
    fn a_margin_lets_tight_arrivals_go() {
        let profile = by_name("cheetah9lp").unwrap();
        let mechanics = Mechanics::new(&profile);
        let layout = Layout::new(&profile);
        let (from, now) = (layout.home(), Time::ZERO);
        let target = |after: Nanos, cylinder| {
            let track = Track {
                cylinder: headtime_units::Cylinder(cylinder),
                ..from
            };
            let arrival = now + mechanics.reposition(from, track, Op::Read).total();
            Target {
                track,
                phase: mechanics.phase_at(arrival + after),
                op: Op::Read,
            }
        };
        let first = |margin| {
            let policy = FirmwarePolicy::Sptf {
                margin,
                age_cap: None,
            };
            let mut queue = Queue::new(policy, 2);
            // The one is reached with 100 us to spare, the other in a millisecond and more.
            for (slot, target) in [(0, target(nanos(100), 50)), (1, target(nanos(1500), 60))] {
                queue.push(Waiting {
                    slot,
                    op: Op::Read,
                    arrived: now,
                    target: Some(target),
                });
            }
            queue.choose(&mechanics, from, now, |_| true).unwrap().0
        };
        assert_eq!(first(Nanos::ZERO), 0);
        assert_eq!(first(nanos(300)), 1);
    }
}
