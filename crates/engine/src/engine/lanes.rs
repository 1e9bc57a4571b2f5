//! Moves between lanes: inheritance of rank, and swaps of schedulers and gates.

use super::Engine;
use crate::gate::{AnyGate, FixedDepth, Gate, Lane};
use crate::lane::{Following, Queue};
use crate::names::DriveTag;
use crate::slots::{Slots, Stage};
use headtime_sched::{Class, Origin, Scheduler, Tag};
use headtime_units::Time;

impl<S: Scheduler> Engine<S> {
    /// Moves the requests for which `tag` must wait to the lane of `tag`, if that lane outranks theirs. Continues with
    /// the requests for which these wait.
    ///
    /// Each raised request costs a pass over all live requests. With a single lane there is nothing to raise.
    pub(super) fn raise_those_before(&mut self, now: Time, tag: Tag) {
        if self.lanes.only().is_some() {
            return;
        }
        let lane = self.shared.slots[tag].lane;
        let mut raised = core::mem::take(&mut self.to_raise);
        raised.push(tag);
        while let Some(waits) = raised.pop() {
            let begin = raised.len();
            raised.extend(self.order.before(waits));
            let mut at = begin;
            while let Some(&earlier) = raised.get(at) {
                let whole = self.shared.slots.whole(earlier);
                let from = self.shared.slots[whole].lane;
                if self.gate.outranks(lane, from) {
                    self.shared.stats.raised += 1;
                    self.move_to(now, whole, lane);
                    at += 1;
                } else {
                    // The requests for which it waits have its rank already.
                    raised.swap_remove(at);
                }
            }
        }
        self.to_raise = raised;
    }

    /// Passes rank on again from all waiting requests, after requests have changed lanes.
    fn raise_all(&mut self, now: Time) {
        let slots = self.shared.slots.live();
        let held = slots.filter(|slot| slot.stage == Stage::Held);
        let held = held.map(|slot| slot.own.tag);
        let held = held.filter(|tag| !self.behind_flush.contains(tag));
        let held: Vec<Tag> = held.collect();
        // The requests are in no particular order, and a raised request may wait for an already processed one. So
        // repeat until nothing changes.
        let mut raised = None;
        while raised != Some(self.shared.stats.raised) {
            raised = Some(self.shared.stats.raised);
            for tag in &held {
                self.raise_those_before(now, *tag);
            }
        }
    }

    /// Moves a request with its parts to another lane, whether queued, staged or held.
    fn move_to(&mut self, now: Time, tag: Tag, lane: Lane) {
        let (from, stage) = (self.shared.slots[tag].lane, self.shared.slots[tag].stage);
        self.shared.slots.set_lane(tag, lane);
        match stage {
            Stage::Queued => {
                self.lanes[from.index()].withdraw(tag, &mut self.shared);
                self.lanes[lane.index()].insert(now, tag, &mut self.shared);
            }
            Stage::Staged => {
                self.lanes[from.index()]
                    .staged
                    .retain(|other| *other != tag);
                self.lanes[lane.index()].staged.push_back(tag);
            }
            Stage::Held | Stage::Part | Stage::InFlight | Stage::Free => {}
        }
    }

    /// Returns true if requests after a waiting flush can pass on their rank. This needs several lanes, and a flush
    /// that waits for live requests.
    #[inline]
    pub(crate) fn may_lend(&self) -> bool {
        self.lanes.only().is_none() && !self.behind_flush.is_empty() && self.live > 0
    }

    /// Returns true if a request of this origin and class would outrank all requests that are known to wait for the
    /// flush here.
    pub(crate) fn lends(&self, origin: Origin, class: Class) -> bool {
        let lane = self.gate.lane(origin, class);
        self.may_lend() && lane != self.flush_lane && self.gate.outranks(lane, self.flush_lane)
    }

    /// Notes a request that waits outside the engine for the flush that waits here.
    pub(super) fn waits_behind(&mut self, origin: Origin, class: Class) {
        if self.lends(origin, class) {
            self.flush_lane = self.gate.lane(origin, class);
        }
    }

    /// Returns the lane that waits for a flush, and the first ready lane of lower rank. The requests that the flush
    /// waits for go by the flush's rank. Returns `None` if the flush's own lane is ready.
    #[inline]
    pub(super) fn lender(&self) -> Option<(Lane, Lane)> {
        match self.lanes.only().is_some() || self.behind_flush.is_empty() {
            true => None,
            false => self.lender_to_flush(),
        }
    }

    fn lender_to_flush(&self) -> Option<(Lane, Lane)> {
        let flush = self.flush_lane;
        if self.lanes[flush.index()].is_ready() {
            return None;
        }
        let lower = (0..=u8::MAX).map(Lane).zip(&self.lanes);
        let mut lower = lower.filter(|(lane, _)| self.gate.outranks(flush, *lane));
        let (from, _) = lower.find(|(_, queue)| queue.is_ready() && queue.has_any())?;
        Some((flush, from))
    }

    /// Wraps the gate, unless it is the default gate.
    pub(crate) fn wrap_gate(&mut self, wrap: impl FnOnce(Box<dyn Gate>) -> Box<dyn Gate>) {
        let usual = AnyGate::Fixed(FixedDepth::new(&self.shared.config));
        self.gate = match core::mem::replace(&mut self.gate, usual) {
            AnyGate::Other(gate) => AnyGate::Other(wrap(gate)),
            usual => usual,
        };
    }

    /// Returns true if `lane` outranks `other` by the gate's rule.
    pub(crate) fn outranks(&self, lane: Lane, other: Lane) -> bool {
        self.gate.outranks(lane, other)
    }

    /// Returns the lane of a request of this origin and class.
    pub fn lane_of(&self, origin: Origin, class: Class) -> Lane {
        self.gate.lane(origin, class)
    }

    /// Returns the lanes of the requests that a command carries.
    pub(crate) fn lanes_of(&self, tag: DriveTag) -> impl Iterator<Item = Lane> {
        let holder = self.tags.holder(tag).into_iter();
        let slots = holder.flat_map(|tag| self.shared.slots.chain(tag));
        slots.map(|slot| slot.lane)
    }

    /// Returns the table of requests.
    pub(crate) fn slots(&self) -> &Slots {
        &self.shared.slots
    }

    /// Swaps the scheduler of a lane in flight. The queued requests move to the new scheduler in order of arrival.
    ///
    /// Returns the old scheduler, empty. Call [`Engine::poll`] afterwards.
    ///
    /// # Panics
    ///
    /// If the new scheduler is not empty, or if there is no such lane.
    pub fn replace_scheduler(&mut self, now: Time, lane: Lane, scheduler: S) -> S {
        let old = self.lanes[lane.index()].replace_scheduler(now, scheduler, &self.shared);
        self.follow();
        self.propose_depth(now, None);
        old
    }

    /// Takes the trackers of new schedulers. The present tracker stays, unless it is for a job alone. In that case a
    /// scheduler's tracker replaces it, since a replay has no job and begins with the scheduler's tracker.
    pub(super) fn follow(&mut self) {
        let new = Following::of(self.lanes.iter_mut().map(|lane| &mut lane.scheduler));
        let old = self.shared.following.take();
        let old = old.filter(|old| !old.for_job || new.is_none());
        self.shared.following = old.or(new);
    }

    /// Moves queued and staged requests of a lane to another lane. Afterwards, requests inherit rank again from waiting
    /// requests of a higher rank.
    #[cold]
    pub(super) fn drain_lane(&mut self, now: Time, from: Lane, to: Lane) {
        for lane in [from, to] {
            assert!(lane.index() < self.lanes.count(), "there is no {lane:?}");
        }
        if from != to {
            self.move_all(now, from, to);
            self.raise_all(now);
        }
    }

    /// Returns the waiting requests that are in the lane that the gate assigns, with that lane.
    #[cold]
    pub(super) fn lanes_by_gate(&self) -> Vec<(Tag, Lane)> {
        let slots = self.shared.slots.live();
        let waits = |stage| matches!(stage, Stage::Queued | Stage::Staged | Stage::Held);
        let waiting = slots.filter(|slot| waits(slot.stage));
        let lanes =
            waiting.map(|slot| (slot.own.tag, slot.lane, (slot.own.origin, slot.own.class)));
        lanes
            .filter(|(_, lane, (origin, class))| self.gate.lane(*origin, *class) == *lane)
            .map(|(tag, lane, _)| (tag, lane))
            .collect()
    }

    /// Moves requests to the lane that the gate assigns, if the lane has changed.
    #[inline]
    pub(super) fn reassign(&mut self, now: Time, before: Vec<(Tag, Lane)>) {
        let any = !before.is_empty();
        for (tag, lane) in before {
            let own = self.shared.slots[tag].own;
            let assigned = self.gate.lane(own.origin, own.class);
            if assigned != lane {
                self.move_to(now, tag, assigned);
            }
        }
        if any {
            self.raise_all(now);
        }
    }

    /// Moves all queued and staged requests of a lane to another lane, without regard to waiting requests.
    fn move_all(&mut self, now: Time, from: Lane, to: Lane) {
        let staged = core::mem::take(&mut self.lanes[from.index()].staged);
        for tag in &staged {
            self.shared.slots.set_lane(*tag, to);
        }
        self.lanes[to.index()].staged.extend(staged);
        for tag in self.lanes[from.index()].drain(&mut self.shared) {
            self.shared.slots.set_lane(tag, to);
            self.lanes[to.index()].insert(now, tag, &mut self.shared);
        }
    }

    /// Swaps the gate in flight, and with it the lanes. Each request moves to the lane that the new gate assigns. A
    /// merged request moves to the highest lane of its parts. The new gate is notified of the commands in the drive as
    /// if they went there now, in the original order. Orders that the old gate obeys stay in force, and so does an
    /// ordered depth.
    ///
    /// Returns the old schedulers, empty. Call [`Engine::poll`] afterwards.
    ///
    /// # Panics
    ///
    /// If there is not one empty scheduler for each lane.
    pub fn replace_gate(&mut self, now: Time, gate: Box<dyn Gate>, schedulers: Vec<S>) -> Vec<S> {
        let mut gate = AnyGate::Other(gate);
        self.gate.in_force(&mut |order| gate.obey(now, order));
        let mut old = core::mem::replace(&mut self.lanes, Queue::of_lanes(&gate, schedulers));
        self.follow();
        self.hold = None;
        let slots = &mut self.shared.slots;
        let wholes = slots.live().filter(|slot| slot.whole == slot.own.tag);
        let wholes: Vec<Tag> = wholes.map(|slot| slot.own.tag).collect();
        for tag in wholes {
            let parts = slots.chain(tag);
            let lanes = parts.map(|slot| gate.lane(slot.own.origin, slot.own.class));
            let lane = lanes.reduce(|one, other| gate.first_of(one, other));
            let lane = lane.expect("it is its own first part");
            slots.set_lane(tag, lane);
            let slot = &mut slots[tag];
            slot.chosen_by = slot.chosen_by.map(|_| lane);
        }
        let tags = (0..DriveTag::DEPTH_MAX).map(DriveTag);
        let slots = &self.shared.slots;
        let in_drive = tags.filter_map(|tag| Some((tag, &slots[self.tags.holder(tag)?])));
        let mut in_drive: Vec<_> = in_drive.collect();
        in_drive.sort_by_key(|(_, slot)| slot.issue);
        for (tag, slot) in in_drive {
            gate.taken(now, &slot.command(tag), slot.lane);
        }
        self.gate = gate;
        self.account.changed();
        for queue in &mut old {
            for tag in core::mem::take(&mut queue.staged) {
                let lane = self.shared.slots[tag].lane;
                self.lanes[lane.index()].staged.push_back(tag);
            }
        }
        let mut queued: Vec<Tag> = Vec::new();
        for queue in &mut old {
            queued.extend(queue.drain(&mut self.shared));
        }
        queued.sort_by_key(|tag| self.shared.slots[*tag].merged.arrival);
        for tag in queued {
            let lane = self.shared.slots[tag].lane;
            self.lanes[lane.index()].insert(now, tag, &mut self.shared);
        }
        self.rank_flush();
        self.raise_all(now);
        // The new gate knows the depth of the configuration alone.
        self.depth = self.shared.config.depth;
        self.propose_depth(now, None);
        old.into_iter().map(|queue| queue.scheduler).collect()
    }
}

#[cfg(test)]
mod tests;
