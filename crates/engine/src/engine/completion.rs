//! Handling of completed commands.

use super::Engine;
use crate::event::{Command, Finished, Outcome};
use crate::gate::Gate;
use crate::names::{DriveTag, RequestId};
use crate::slots::Stage;
use headtime_sched::{Op, Request, Scheduler, Surprise, Tag};
use headtime_units::Time;

/// Time when a command went to the drive, and the end of the command compared with the prediction.
type CommandEnd = (Time, Option<Surprise>);

impl<S: Scheduler> Engine<S> {
    pub(super) fn completed(&mut self, now: Time, drive_tag: DriveTag, outcome: Outcome) {
        let Some(tag) = self.tags.give_back(drive_tag) else {
            panic!("tag {} completed and is not in the drive", drive_tag.0)
        };
        self.gate.returned(now, drive_tag);
        self.account.returned(now, drive_tag);
        self.in_flight -= 1;
        let following = self.shared.following.as_mut();
        let surprise = following
            .and_then(|following| following.completed(now, drive_tag, outcome == Outcome::Done));
        self.lanes.change(|lane| {
            lane.ask = true;
            lane.plugged_until = None;
        });
        let slot = &self.shared.slots[tag];
        let merged = slot.merged;
        let issued = slot.issued;
        if merged.op == Op::Flush {
            self.flushed(now, tag, outcome);
            return;
        }
        if let Some(chosen_by) = slot.chosen_by {
            let queue = &mut self.lanes[chosen_by.index()];
            queue.scheduler.completed(now, &merged);
        } else {
            let prefix = &mut self.lanes[slot.lane.index()].prefix;
            *prefix = prefix.filter(|(prefix, _)| *prefix != tag);
        }
        if outcome != Outcome::Done && slot.next.is_some() {
            self.split(now, tag);
            return;
        }
        let mut part = Some(tag);
        while let Some(tag) = part {
            part = self.shared.slots[tag].next.take();
            self.finish(now, tag, outcome, (issued, surprise));
        }
    }

    /// Retries the parts of a command, each alone. If requests of a job had joined the command, the other parts go
    /// first and bypass the scheduler.
    fn split(&mut self, now: Time, whole: Tag) {
        self.shared.stats.split += 1;
        let slots = &self.shared.slots;
        let lane = slots[whole].lane;
        let mut parts = core::iter::successors(Some(whole), |tag| slots[*tag].next);
        let was_joined = parts.any(|tag| slots[tag].joined);
        let (mut part, mut first) = (Some(whole), 0);
        while let Some(tag) = part {
            let slot = &mut self.shared.slots[tag];
            part = slot.next.take();
            let joined = slot.joined;
            slot.unmerge();
            (slot.alone, slot.lane) = (true, lane);
            if was_joined && !joined {
                slot.stage = Stage::Staged;
                self.lanes[lane.index()].staged.insert(first, tag);
                first += 1;
            } else {
                self.enqueue(now, tag);
            }
        }
    }

    fn flushed(&mut self, now: Time, tag: Tag, outcome: Outcome) {
        let slot = &mut self.shared.slots[tag];
        if slot.own.op == Op::Flush || outcome != Outcome::Done {
            // A write whose flush failed must not count as durable, so the write fails with its flush.
            let (id, own, issued) = (slot.id, slot.own, slot.issued);
            self.behind_flush.pop_front();
            self.shared.slots.remove(tag);
            self.report(id, own, outcome, (issued, None));
        } else {
            slot.unmerge();
            slot.stage = Stage::Held;
            slot.preflush = Some(outcome);
        }
        self.advance_flush(now);
    }

    fn finish(&mut self, now: Time, tag: Tag, outcome: Outcome, command: CommandEnd) {
        let slot = &self.shared.slots[tag];
        let id = slot.id;
        let own = slot.own;
        self.order.finish(tag);
        self.shared.slots.remove(tag);
        self.live -= 1;
        self.report(id, own, outcome, command);
        while let Some(freed) = self.order.next_freed() {
            self.enqueue(now, freed);
        }
        if self.live == 0 {
            self.advance_flush(now);
        }
    }

    #[inline]
    fn report(&mut self, id: RequestId, own: Request, outcome: Outcome, command: CommandEnd) {
        let (issued, surprise) = command;
        self.shared.stats.finished += 1;
        let finished = |id| Finished {
            id,
            outcome,
            request: own.tagged(()),
            issued,
            surprise,
        };
        self.outbox.push_back(match id {
            RequestId::Client(id) => Command::Finish(finished(id)),
            RequestId::Background(id) => Command::Background(finished(id)),
        });
    }
}
