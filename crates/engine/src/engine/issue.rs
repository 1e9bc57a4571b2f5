//! What goes to the drive next.

use super::{Engine, Hold};
use crate::event::Command;
use crate::gate::{Gate, Lane, Next};
use crate::lane::{Queue, View};
use crate::slots::Stage;
use headtime_sched::{Scheduler, Tag};
use headtime_units::Time;

/// The most requests that are chosen in a lane before the gate takes one.
const STAGED_MAX: usize = 2;

impl<S: Scheduler> Engine<S> {
    /// The next command, or `None` when there is nothing to do at `now`.
    pub fn poll(&mut self, now: Time) -> Option<Command> {
        if let Some(command) = self.outbox.pop_front() {
            return Some(command);
        }
        self.hold = None;
        while self.lanes.iter().any(Queue::is_ready) {
            let view = View {
                flush: self.lender().map(|(flush, _)| flush),
                lanes: &self.lanes,
            };
            match self.gate.next(now, &view) {
                Next::Take(lane) => {
                    let from = match self.lender() {
                        Some((flush, from)) if flush == lane => from,
                        _ => lane,
                    };
                    let queue = &mut self.lanes[from.index()];
                    if !queue.is_ready() {
                        return None;
                    }
                    if let Some(tag) = queue.staged.pop_front() {
                        queue.ask = true;
                        return Some(self.issue(now, tag, lane));
                    }
                    if let Some(tag) = self.choose(now, from) {
                        return Some(self.issue(now, tag, lane));
                    }
                }
                Next::Hold(until) => {
                    assert!(
                        until.is_none_or(|until| until > now),
                        "a gate may not hold for the past"
                    );
                    self.hold = Some(Hold { until });
                    let lane = self.gate.ahead(&view)?;
                    let queue = &self.lanes[lane.index()];
                    if !queue.may_choose() || queue.staged.len() >= STAGED_MAX {
                        return None;
                    }
                    if let Some(tag) = self.choose(now, lane) {
                        self.lanes[lane.index()].staged.push_back(tag);
                    }
                }
            }
        }
        None
    }

    fn choose(&mut self, now: Time, lane: Lane) -> Option<Tag> {
        let forced = !self.behind_flush.is_empty();
        self.lanes[lane.index()].choose(now, forced, &mut self.shared)
    }

    pub(super) fn issue(&mut self, now: Time, tag: Tag, lane: Lane) -> Command {
        let slot = &mut self.shared.slots[tag];
        slot.stage = Stage::InFlight;
        slot.issued = now;
        let request = slot.merged;
        self.in_flight += 1;
        self.shared.stats.issued += 1;
        if let Some(chosen_by) = slot.chosen_by {
            let queue = &mut self.lanes[chosen_by.index()];
            queue.scheduler.dispatched(now, &request);
        }
        let drive_tag = self.tags.take(tag).expect("the depth is in range");
        assert!(
            self.in_flight <= self.shared.config.depth,
            "the gate lets through more than the drive takes"
        );
        self.gate.taken(now, drive_tag, lane);
        Command::Issue(request.tagged(drive_tag))
    }
}
