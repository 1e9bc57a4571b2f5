//! The drive's queue: chooses which waiting command is next.
//!
//! The profile names the policy: order of arrival, or the shortest positioning time among the
//! commands that were waiting when the arm became free. A margin can be added to each estimated
//! seek, so that the drive does not try an arrival that is too tight (it might have succeeded). A
//! command that has waited for longer than a cap goes first. The position of a command is computed
//! once, when it comes.
//!
//! High priority goes before normal priority. While a command of high priority waits for the arm, only the age of the
//! other commands counts.
//!
//! Commands whose data are in the buffer, or get there by reading on, are not rated by position:
//! the arm does not set out for them ([`Reach`]). The drive decides how long that may go on while
//! others wait.

use crate::layout::Layout;
use crate::mechanics::Mechanics;
use crate::profile::FirmwarePolicy;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// The position of a sector that the arm has to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The circle.
    pub track: Track,
    /// Point of the turn at which the sector begins.
    pub phase: Nanos,
    /// Operation of the arm at the sector.
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
    /// Slot of the command in the drive.
    pub slot: u16,
    /// Operation of the command.
    pub op: Op,
    /// Sectors of the command.
    pub extent: Extent,
    /// True if a read must come from the medium, even if the buffer has the data.
    pub fua: bool,
    /// True for high priority: the command goes before commands of normal priority.
    pub high: bool,
    /// True if the arm serves the command. If false, the command waits for room in the buffer, or
    /// for dirty data to reach the medium.
    pub needs_arm: bool,
    /// True for a read whose data the buffer had when the read came, or later. The data may be gone
    /// since.
    pub held: bool,
    /// Arrival time.
    pub arrived: Time,
    /// Position of the first sector; `None` if the command needs no position.
    pub target: Option<Target>,
}

/// The sectors that the arm reaches without setting out for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The operation that goes on.
    pub op: Op,
    /// The first sector that is in the buffer.
    pub start: Lba,
    /// The sector that comes next. The buffer has the sectors from `start` to here.
    pub next: Lba,
    /// The arm goes on up to here.
    pub limit: Lba,
    /// Sectors from here to `start` are in the buffer once the head has been all around the track.
    /// Equals `start` if there are none.
    pub around: Lba,
}

impl Waiting {
    /// Returns true if the command's priority keeps the arm from other commands.
    fn is_high(&self) -> bool {
        self.high && self.needs_arm
    }

    /// Returns true if the command begins where another ends.
    fn follows(&self, other: &Waiting) -> bool {
        self.extent.start == other.extent.end()
            && self.op == other.op
            && self.high == other.high
            && self.needs_arm
            && other.needs_arm
    }
}

impl Reach {
    /// The first sector at which a command within reach can begin, and how many can follow.
    fn bounds(&self) -> (u64, u64) {
        let low = self.around.min(self.start).get();
        (low, self.limit.max(self.next).get().saturating_sub(low))
    }

    /// Returns true if the data of a command are all in the buffer.
    fn has(&self, waiting: &Waiting) -> bool {
        let extent = waiting.extent;
        !waiting.fua
            && waiting.op == Op::Read
            && self.op == Op::Read
            && self.start <= extent.start
            && extent.end() <= self.next
    }

    /// Returns true if the buffer has all data of a command once the head has been around the
    /// track.
    fn takes_up(&self, waiting: &Waiting) -> bool {
        let extent = waiting.extent;
        !waiting.fua
            && waiting.op == Op::Read
            && self.around <= extent.start
            && extent.start < self.start
            && extent.end() <= self.next
    }

    /// Returns true if the arm reaches the first sector of a command that is not in the buffer.
    fn comes_to(&self, waiting: &Waiting) -> bool {
        let start = waiting.extent.start;
        let from = if waiting.fua { self.next } else { self.start };
        waiting.op == self.op && from <= start && start < self.limit
    }
}

/// The arm as it becomes free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    /// Track of the arm.
    pub from: Track,
    /// Time at which the arm is free.
    pub now: Time,
    /// Sectors that the arm reaches without setting out.
    pub reach: Option<Reach>,
}

/// The commands that wait, as [`Queue::rate`] sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rated {
    /// The first that has waited for longer than the cap on its age.
    pub old: Option<usize>,
    /// The first whose data the buffer has.
    pub hit: Option<usize>,
    /// The command that the arm reaches first, among the commands that it reaches without setting
    /// out.
    pub coming: Option<usize>,
    /// The first command whose data the buffer has once the head has been around the track.
    pub around: Option<usize>,
    /// The next of the remaining commands that the arm may serve, with its estimated positioning
    /// time (zero in order of arrival).
    pub other: Option<(usize, Nanos)>,
    /// The oldest of the remaining commands, even if the arm may not serve it.
    pub oldest: Option<usize>,
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

    /// Returns true if no command waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a command.
    pub fn push(&mut self, command: Waiting) {
        self.waiting.push(command);
    }

    /// The commands in order of arrival.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Waiting> + '_ {
        self.waiting.iter()
    }

    /// The command at a place.
    pub fn get(&self, place: usize) -> &Waiting {
        &self.waiting[place]
    }

    /// Notes that the buffer has received sectors. Waiting reads find their data there.
    pub fn note_held(&mut self, extent: Extent) {
        for waiting in &mut self.waiting {
            let within =
                extent.start <= waiting.extent.start && waiting.extent.end() <= extent.end();
            waiting.held |= within && waiting.op == Op::Read && !waiting.fua;
        }
    }

    /// Takes out the command at a place that [`Queue::rate`] gave.
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

    /// Returns true if a command of high priority waits for the arm.
    pub fn has_high(&self) -> bool {
        self.waiting.iter().any(Waiting::is_high)
    }

    /// Returns true if the arm's next destination depends on where it is.
    pub fn is_by_position(&self) -> bool {
        matches!(self.policy, FirmwarePolicy::Sptf { .. })
    }

    /// Rates the commands that have come by `until`.
    ///
    /// `has` says whether the buffer still has the data of a read that it had once.
    pub fn rate(
        &self,
        mechanics: &Mechanics,
        arm: &Arm,
        until: Time,
        has: impl Fn(&Waiting) -> bool,
    ) -> Rated {
        let &Arm { from, now, reach } = arm;
        let mut rated = Rated::default();
        let FirmwarePolicy::Sptf { margin, age_cap } = self.policy else {
            rated.other = self
                .waiting
                .iter()
                .position(|waiting| waiting.needs_arm)
                .map(|place| (place, Nanos::ZERO));
            return rated;
        };
        let phase = mechanics.phase_at(now);
        let mut first = Lba::ZERO;
        // Most commands are out of reach.
        let (low, span) = reach.map_or((0, 0), |reach| reach.bounds());
        // Commands that came before this time are too old.
        let old = age_cap.map_or(Time::ZERO, |cap| {
            Time::ZERO
                + (now.saturating_since(Time::ZERO) + Nanos::from_nanos(1)).saturating_sub(cap)
        });
        let high = self.has_high();
        let mut best = (usize::MAX, Nanos::MAX);
        for (place, waiting) in self.waiting.iter().enumerate() {
            if waiting.arrived > until {
                continue;
            }
            if !waiting.needs_arm {
                if !high {
                    rated.oldest.get_or_insert(place);
                }
                continue;
            }
            if waiting.arrived < old {
                rated.old = Some(place);
                break;
            }
            if high && !waiting.high {
                continue;
            }
            if waiting.held && has(waiting) {
                rated.hit.get_or_insert(place);
                continue;
            }
            if waiting.extent.start.get().wrapping_sub(low) < span
                && let Some(reach) = reach
            {
                if reach.has(waiting) {
                    rated.hit.get_or_insert(place);
                    continue;
                }
                if reach.comes_to(waiting) {
                    if rated.coming.is_none() || waiting.extent.start < first {
                        rated.coming = Some(place);
                        first = waiting.extent.start;
                    }
                    continue;
                }
                if reach.takes_up(waiting) {
                    rated.around.get_or_insert(place);
                    continue;
                }
            }
            if rated.oldest.is_none() {
                rated.oldest = Some(place);
            }
            let Some(target) = waiting.target else {
                best = (place, Nanos::ZERO);
                break;
            };
            let time = self.positioning(mechanics, from, phase, target, margin, best.1);
            if time < best.1 {
                best = (place, time);
            }
        }
        if best.0 != usize::MAX {
            let place = self.first_of_run(best.0);
            if let Some(target) = self.waiting[place].target.filter(|_| place != best.0) {
                let time = self.positioning(mechanics, from, phase, target, margin, Nanos::MAX);
                best = (place, time);
            }
            rated.other = Some(best);
        }
        rated
    }

    /// The first command that came by `by` and does not belong to the present stream of the arm. Commands within
    /// `reach` belong to the stream. So do commands that follow each other from `coming` on, with no hole longer than
    /// the command behind the hole.
    pub fn first_apart(
        &self,
        reach: &Reach,
        coming: usize,
        by: Time,
        has: impl Fn(&Waiting) -> bool,
    ) -> Option<usize> {
        let high = self.has_high();
        let start = self.waiting[coming].extent.start;
        let mut end = self.waiting[coming].extent.end();
        let along = |waiting: &Waiting, end: Lba| {
            let hole = match reach.op {
                Op::Read => waiting.extent.len,
                _ => Sectors::ZERO,
            };
            waiting.op == reach.op && start <= waiting.extent.start && {
                let first = waiting.extent.start.get();
                first <= end.get() + hole.get()
            }
        };
        // Commands mostly arrive in the order of addresses, so that few rounds are enough.
        loop {
            let before = end;
            for waiting in &self.waiting {
                if waiting.needs_arm && along(waiting, end) {
                    end = end.max(waiting.extent.end());
                }
            }
            if end == before {
                break;
            }
        }
        self.waiting.iter().position(|waiting| {
            let comes = || {
                along(waiting, end)
                    || waiting.held && has(waiting)
                    || reach.has(waiting)
                    || reach.comes_to(waiting)
                    || reach.takes_up(waiting)
            };
            waiting.arrived <= by && (waiting.is_high() || !high) && !(waiting.needs_arm && comes())
        })
    }

    /// The first of the consecutive commands that end with the one at `place`.
    pub fn first_of_run(&self, mut place: usize) -> usize {
        loop {
            let last = &self.waiting[place];
            match self.waiting.iter().position(|other| last.follows(other)) {
                Some(before) => place = before,
                None => return place,
            }
        }
    }

    /// Estimates the positioning time of a destage that begins at `target`. Compares with the
    /// estimates of [`Queue::rate`] for commands. A result of `best` or more may be too low.
    pub fn estimate(
        &self,
        mechanics: &Mechanics,
        from: Track,
        now: Time,
        target: Target,
        best: Nanos,
    ) -> Nanos {
        self.estimate_from(mechanics, from, mechanics.phase_at(now), target, best)
    }

    /// Like [`Queue::estimate`], with the platter at `phase`.
    pub fn estimate_from(
        &self,
        mechanics: &Mechanics,
        from: Track,
        phase: Nanos,
        target: Target,
        best: Nanos,
    ) -> Nanos {
        self.positioning(mechanics, from, phase, target, self.margin(), best)
    }

    /// The margin that is added to each estimated movement.
    pub fn margin(&self) -> Nanos {
        match self.policy {
            FirmwarePolicy::Fifo => Nanos::ZERO,
            FirmwarePolicy::Sptf { margin, .. } => margin,
        }
    }

    /// Estimates the time to the first sector of `target` for an arm that may leave `from` when the
    /// platter is at `phase`. Returns the seek alone if that is `best` already.
    #[inline]
    fn positioning(
        &self,
        mechanics: &Mechanics,
        from: Track,
        phase: Nanos,
        target: Target,
        margin: Nanos,
        best: Nanos,
    ) -> Nanos {
        let way = mechanics.reposition(from, target.track, target.op).total();
        let seek = way + mechanics.set_up(way, target.op) + margin;
        if seek >= best {
            return seek;
        }
        seek + mechanics.wait(mechanics.phase_after(phase, seek), target.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::by_name;

    fn nanos(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    /// The place in the queue of the command that an arm with nothing within its reach serves next.
    fn next(queue: &Queue, mechanics: &Mechanics, from: Track, now: Time) -> Option<usize> {
        let arm = Arm {
            from,
            now,
            reach: None,
        };
        let rated = queue.rate(mechanics, &arm, Time::NEVER, |_| false);
        rated.old.or(rated.other.map(|(place, _)| place))
    }

    /// The tags of commands in the order of service, one command a millisecond. `commands` has
    /// their addresses and times of arrival, and all are in the queue from the start.
    fn order(policy: FirmwarePolicy, commands: &[(u64, u64)]) -> Vec<u16> {
        let profile = by_name("cheetah9lp").unwrap();
        let layout = Layout::new(&profile);
        let mechanics = Mechanics::new(&profile);
        let mut queue = Queue::new(policy, 32);
        for (slot, &(lba, arrived_ms)) in (0..).zip(commands) {
            queue.push(Waiting {
                slot,
                op: Op::Read,
                extent: Extent::at(lba, 8),
                fua: false,
                high: false,
                needs_arm: true,
                held: false,
                arrived: Time::ZERO + Nanos::from_millis(arrived_ms),
                target: Some(Target::new(&layout, &mechanics, Lba::new(lba), Op::Read)),
            });
        }
        let mut from = layout.home();
        let mut now = Time::ZERO + Nanos::from_millis(200);
        let mut order = Vec::new();
        while let Some(place) = next(&queue, &mechanics, from, now) {
            let waiting = queue.take(place);
            order.push(waiting.slot);
            from = waiting.target.unwrap().track;
            now += nanos(1000);
        }
        order
    }

    #[test]
    fn commands_are_served_in_order_of_arrival() {
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

    proptest::proptest! {
        /// While a command of high priority waits for the arm, other commands are rated by their age alone.
        #[test]
        fn what_has_no_priority_is_not_looked_at_while_others_have_it(
            commands in proptest::collection::vec(
                (0..17_000_000_u64, 0..200_u64, proptest::bool::weighted(0.2), proptest::bool::weighted(0.8)),
                1..32,
            ),
            cap in proptest::option::of(1..200_u64),
            from in 0..17_000_000_u64,
        ) {
            let profile = by_name("cheetah9lp").unwrap();
            let layout = Layout::new(&profile);
            let mechanics = Mechanics::new(&profile);
            let target = |lba| Target::new(&layout, &mechanics, Lba::new(lba), Op::Read);
            let age_cap = cap.map(Nanos::from_millis);
            let mut queue = Queue::new(FirmwarePolicy::Sptf { margin: Nanos::ZERO, age_cap }, 32);
            let mut commands = commands;
            commands.sort_by_key(|command| command.1);
            for (slot, (lba, arrived_ms, high, needs_arm)) in (0..).zip(commands) {
                queue.push(Waiting {
                    slot,
                    op: Op::Read,
                    extent: Extent::at(lba, 8),
                    fua: false,
                    high,
                    needs_arm,
                    held: slot % 5 == 0,
                    arrived: Time::ZERO + Nanos::from_millis(arrived_ms),
                    target: Some(target(lba)),
                });
            }
            let arm = Arm {
                from: target(from).track,
                now: Time::ZERO + Nanos::from_millis(200),
                reach: Some(Reach {
                    op: Op::Read,
                    start: Lba::new(from),
                    next: Lba::new(from + 100),
                    limit: Lba::new(from + 1_000_000),
                    around: Lba::new(from.saturating_sub(1_000)),
                }),
            };
            let rated = queue.rate(&mechanics, &arm, Time::NEVER, |_| true);
            let other = rated.other.map(|(place, _)| place);
            let chosen = [rated.hit, rated.coming, rated.around, other, rated.oldest];
            let high = queue.iter().any(|waiting| waiting.high && waiting.needs_arm);
            for place in chosen.into_iter().flatten() {
                let waiting = queue.get(place);
                proptest::prop_assert!(!high || waiting.high && waiting.needs_arm);
            }
            let any = queue.iter().any(|waiting| waiting.needs_arm);
            let found = chosen.into_iter().chain([rated.old]).any(|place| place.is_some());
            proptest::prop_assert!(found || !any);
        }
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
            // The arm reaches the first target with 100 us to spare, the second with more than a
            // millisecond.
            for (slot, target) in [(0, target(nanos(100), 50)), (1, target(nanos(1500), 60))] {
                queue.push(Waiting {
                    slot,
                    op: Op::Read,
                    extent: Extent::at(0, 8),
                    fua: false,
                    high: false,
                    needs_arm: true,
                    held: false,
                    arrived: now,
                    target: Some(target),
                });
            }
            next(&queue, &mechanics, from, now).unwrap()
        };
        assert_eq!(first(Nanos::ZERO), 0);
        assert_eq!(first(nanos(300)), 1);
    }
}
