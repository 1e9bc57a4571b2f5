//! What moves between lanes: rank that order hands on, and everything, when schedulers or gates change.

use super::Engine;
use crate::gate::{AnyGate, Gate, Lane};
use crate::lane::Queue;
use crate::names::DriveTag;
use crate::slots::Stage;
use headtime_sched::{Scheduler, Tag};
use headtime_units::Time;

impl<S: Scheduler> Engine<S> {
    /// Gives the requests for which `tag` must wait its lane, if it outranks theirs, and so on with those for
    /// which they wait.
    ///
    /// Looks through all live requests for each that is raised. With a single lane there is nothing to raise.
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
                    // Those for which it waits have its rank already.
                    raised.swap_remove(at);
                }
            }
        }
        self.to_raise = raised;
    }

    /// Moves a request to another lane, wherever it is in its own.
    fn move_to(&mut self, now: Time, tag: Tag, lane: Lane) {
        let slot = &mut self.shared.slots[tag];
        let from = core::mem::replace(&mut slot.lane, lane);
        match slot.stage {
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

    /// The lane that waits for a flush, and the first of the lanes of lower rank that is ready: what the flush
    /// waits for goes by its rank. None if the flush's own lane is ready.
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

    /// Swaps the scheduler of a lane in flight: what is queued moves to the new one in order of arrival.
    ///
    /// Returns the old one, empty. [`Engine::poll`] is to be called afterwards.
    ///
    /// # Panics
    ///
    /// If the new one is not empty, or if there is no such lane.
    pub fn replace_scheduler(&mut self, now: Time, lane: Lane, scheduler: S) -> S {
        self.lanes[lane.index()].replace_scheduler(now, scheduler, &self.shared)
    }

    /// Moves what is queued and staged in a lane to another one, in flight. [`Engine::poll`] is to be called
    /// afterwards.
    ///
    /// # Panics
    ///
    /// If there is no such lane.
    pub fn drain_lane(&mut self, now: Time, from: Lane, to: Lane) {
        assert!(to.index() < self.lanes.count(), "there is no {to:?}");
        if from == to {
            return;
        }
        let staged = core::mem::take(&mut self.lanes[from.index()].staged);
        for tag in &staged {
            self.shared.slots[*tag].lane = to;
        }
        self.lanes[to.index()].staged.extend(staged);
        for tag in self.lanes[from.index()].drain(&mut self.shared) {
            self.lanes[to.index()].insert(now, tag, &mut self.shared);
        }
    }

    /// Swaps the gate in flight, and with it the lanes: every request moves to the lane that the new gate says.
    /// The new gate is told of the commands in the drive as if they went there now.
    ///
    /// Returns the old schedulers, empty. [`Engine::poll`] is to be called afterwards.
    ///
    /// # Panics
    ///
    /// If there is not one scheduler, empty, for each lane.
    pub fn replace_gate(&mut self, now: Time, gate: Box<dyn Gate>, schedulers: Vec<S>) -> Vec<S> {
        let mut gate = AnyGate::Other(gate);
        let mut old = core::mem::replace(&mut self.lanes, Queue::of_lanes(&gate, schedulers));
        self.hold = None;
        for slot in self.shared.slots.live_mut() {
            slot.lane = gate.lane(slot.own.origin, slot.own.class);
            if slot.chosen_by.is_some() {
                slot.chosen_by = Some(slot.lane);
            }
        }
        for tag in (0..DriveTag::DEPTH_MAX).map(DriveTag) {
            if let Some(holder) = self.tags.holder(tag) {
                gate.taken(now, tag, self.shared.slots[holder].lane);
            }
        }
        self.gate = gate;
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
        old.into_iter().map(|queue| queue.scheduler).collect()
    }
}
