//! Choice of the next command for the drive.

use super::{Engine, Hold};
use crate::config::Issue;
use crate::event::Command;
use crate::gate::{AnyGate, Gate, GateOrder, Lane, Next};
use crate::lane::{Queue, View};
use crate::slots::Stage;
use headtime_sched::{Scheduler, Tag, TrackedCommand};
use headtime_units::Time;

/// Largest number of requests that are chosen in a lane before the gate takes one.
const STAGED_MAX: usize = 2;

impl<S: Scheduler> Engine<S> {
    /// Returns the next command, or `None` when there is nothing to do at `now`.
    #[inline(always)]
    pub fn poll(&mut self, now: Time) -> Option<Command> {
        if let Some(command) = self.outbox.pop_front() {
            return Some(command);
        }
        if self.shared.config.issue == Issue::Late && self.is_early(now) {
            // The gate is asked again when the arm is nearly free. The gate's hold may end before.
            self.hold = None;
            return None;
        }
        // The usual case needs no view of the lanes. A view would cost more than the rest of this function.
        let (Some(queue), AnyGate::Fixed(gate)) = (self.lanes.only(), &self.gate) else {
            let command = self.next_of(now);
            if command.is_none() && self.unoffered().is_none() {
                self.settle(now);
            }
            return command;
        };
        let room = gate.has_room();
        let may_choose = queue.may_choose() && (room || gate.is_ahead(queue.staged.len()));
        match may_choose || (room && !queue.staged.is_empty()) {
            true => self.next(now, room),
            false => None,
        }
    }

    /// Returns true if a request may be chosen, but the arm will not be free for a while.
    #[cold]
    fn is_early(&mut self, now: Time) -> bool {
        let following = self.shared.following.as_mut();
        let following = following.filter(|following| !following.for_job);
        let due = following.and_then(|following| following.tracker.due(now));
        let from = due.map(|due| due.saturating_sub(Issue::LEAD));
        let room = (1..self.depth).contains(&self.in_flight);
        let waits = room && self.lanes.iter().any(Queue::has_any);
        self.late_until = from.filter(|from| *from > now && waits);
        self.late_until.is_some()
    }

    /// Returns the next command of the only lane. The lane has a staged request or may choose one.
    fn next(&mut self, now: Time, mut room: bool) -> Option<Command> {
        let forced = !self.behind_flush.is_empty();
        let queue = &mut self.lanes[0];
        let tag = match queue.staged.front() {
            Some(tag) if room => {
                if self.offering && self.shared.slots[*tag].waits_for_offer() {
                    return None;
                }
                queue.ask = true;
                queue.staged.pop_front()?
            }
            _ => {
                let tag = queue.choose(now, forced, &mut self.shared)?;
                if queue.proposes && self.propose_depth(now, Some(Lane(0))) {
                    // The chosen request may have to wait until fewer commands are in the drive.
                    room = matches!(&self.gate, AnyGate::Fixed(gate) if gate.has_room());
                }
                tag
            }
        };
        if room && !(self.offering && self.shared.slots[tag].waits_for_offer()) {
            return Some(self.issue(now, tag, Lane(0)));
        }
        self.lanes[0].staged.push_back(tag);
        None
    }

    /// Returns the next command of the lane that the gate takes.
    fn next_of(&mut self, now: Time) -> Option<Command> {
        self.hold = None;
        while self.lanes.iter().any(Queue::is_ready) {
            let lender = self.lender();
            let view = View {
                flush: lender.map(|(flush, _)| flush),
                lanes: &self.lanes,
                slots: &self.shared.slots,
            };
            let full = self.in_flight >= self.shared.config.depth;
            match self.gate.next(now, &view) {
                // A gate may assume a larger depth than the drive's.
                Next::Take(lane) if !full => {
                    let from = match lender {
                        Some((flush, from)) if flush == lane => from,
                        _ => lane,
                    };
                    let queue = &mut self.lanes[from.index()];
                    if !queue.is_ready() {
                        return None;
                    }
                    let tag = match queue.staged.pop_front() {
                        Some(tag) => {
                            queue.ask = true;
                            tag
                        }
                        None => match self.choose(now, from) {
                            Some(tag) => tag,
                            None => continue,
                        },
                    };
                    if self.offering && self.shared.slots[tag].waits_for_offer() {
                        self.lanes[from.index()].staged.push_front(tag);
                        return None;
                    }
                    if core::mem::take(&mut self.lanes[from.index()].refused) {
                        self.account.refused(self.shared.slots[tag].merged.class);
                    }
                    return Some(self.issue(now, tag, lane));
                }
                next => {
                    let until = match next {
                        Next::Hold(until) => until,
                        Next::Take(_) => None,
                    };
                    let ahead = self.gate.ahead(&view);
                    self.hold(now, until);
                    self.choose_ahead(now, ahead?)?;
                }
            }
        }
        // No lane is ready, so the gate is not the cause.
        self.hold = None;
        None
    }

    /// Returns the first lane with a request that waits for [`Event::Offered`](crate::Event::Offered), once
    /// [`Engine::poll`] has returned `None`.
    pub fn unoffered(&self) -> Option<Lane> {
        if !self.offering {
            return None;
        }
        let waits = |lane: &Lane| {
            let target = self.target(*lane);
            target.is_some_and(|(_, tag)| self.shared.slots[tag].waits_for_offer())
        };
        let mut lanes = (0..=u8::MAX).map(Lane).take(self.lanes.count());
        lanes.find(waits)
    }

    /// Returns true if each chosen request waits until it has been offered to jobs.
    pub fn is_offering(&self) -> bool {
        self.offering
    }

    pub(super) fn offered(&mut self, lane: Lane) {
        if let Some((_, tag)) = self.target(lane) {
            self.shared.slots[tag].offered = true;
        }
    }

    /// Notes the state of the gate until the next event. If a lane is ready now, the gate has refused its request.
    #[inline]
    fn settle(&mut self, now: Time) {
        let mut plugged = false;
        if self.in_flight < self.depth {
            for lane in &mut self.lanes {
                let refuses = lane.is_ready() && lane.has_any();
                lane.refused |= refuses;
                plugged |= refuses;
            }
        }
        let starved = |nth| {
            let tag = self.gate.starved(nth)?;
            let holder = self.tags.holder(tag)?;
            Some((tag, self.shared.slots[holder].merged.class))
        };
        self.account.settle(now, plugged, starved);
    }

    fn hold(&mut self, now: Time, until: Option<Time>) {
        assert!(
            until.is_none_or(|until| until > now),
            "a gate may not hold for the past"
        );
        self.hold = Some(Hold { until });
    }

    /// Stages a request that the scheduler of a lane chooses. Returns `None` if the scheduler is not to be asked now.
    fn choose_ahead(&mut self, now: Time, lane: Lane) -> Option<()> {
        let queue = &self.lanes[lane.index()];
        if !queue.may_choose() || queue.staged.len() >= STAGED_MAX {
            return None;
        }
        if let Some(tag) = self.choose(now, lane) {
            self.lanes[lane.index()].staged.push_back(tag);
        }
        Some(())
    }

    /// Asks the scheduler of a lane to choose a request. If the depth changed with the choice, the request is staged,
    /// and the result is `None`. The gate has to be asked again then.
    #[inline]
    fn choose(&mut self, now: Time, lane: Lane) -> Option<Tag> {
        let forced = !self.behind_flush.is_empty();
        let queue = &mut self.lanes[lane.index()];
        let tag = queue.choose(now, forced, &mut self.shared)?;
        if queue.proposes && self.propose_depth(now, Some(lane)) {
            self.lanes[lane.index()].staged.push_back(tag);
            return None;
        }
        Some(tag)
    }

    /// Notifies the gate of the lowest depth that schedulers propose, at most the ordered depth. Returns true if the
    /// depth changed. Schedulers of lanes without requests are ignored, except for the scheduler of the lane `chose`,
    /// which has just chosen.
    pub(super) fn propose_depth(&mut self, now: Time, chose: Option<Lane>) -> bool {
        let lanes = (0..=u8::MAX).map(Lane).zip(self.lanes.iter());
        let asking = lanes.filter(|(lane, queue)| queue.has_any() || chose == Some(*lane));
        let proposed = asking.filter_map(|(_, queue)| queue.scheduler.depth());
        let depth = proposed.fold(self.depth_ordered, u32::min);
        let changed = depth != self.depth;
        if changed {
            self.depth = depth;
            self.gate.obey(now, &GateOrder::Depth(depth));
        }
        changed
    }

    #[inline(always)]
    pub(super) fn issue(&mut self, now: Time, tag: Tag, lane: Lane) -> Command {
        let slot = &mut self.shared.slots[tag];
        slot.stage = Stage::InFlight;
        slot.issued = now;
        slot.issue = self.shared.stats.issued;
        let request = slot.merged;
        self.in_flight += 1;
        self.shared.stats.issued += 1;
        if let Some(chosen_by) = slot.chosen_by {
            let queue = &mut self.lanes[chosen_by.index()];
            queue.scheduler.dispatched(now, &request);
        } else if let Some(request) = slot.prefix_of {
            self.lanes[slot.lane.index()].prefix = Some((tag, request));
        }
        let drive_tag = self.tags.take(tag).expect("the depth is in range");
        assert!(
            self.in_flight <= self.shared.config.depth,
            "more commands than the drive takes"
        );
        if let Some(following) = &mut self.shared.following {
            following
                .tracker
                .issued(now, drive_tag.0, TrackedCommand::of(&request));
        }
        let command = self.shared.slots[tag].command(drive_tag);
        self.gate.taken(now, &command, lane);
        Command::Issue(command)
    }
}
