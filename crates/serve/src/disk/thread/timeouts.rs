//! Commands that the device does not answer in time.

use super::{Thread, place};
use crate::device::{Aborted, Parts};
use crate::request::{Failure, Kind};
use headtime_engine::DriveTag;
use headtime_units::{Nanos, Time};

/// When to give up on a command.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Time,
    pub(super) tag: DriveTag,
    /// Which command of this tag.
    pub(super) serial: u64,
    /// How often the device has said that it is about to complete it.
    pub(super) promises: u32,
}

impl Thread {
    /// Gives up on a command whose time is over.
    pub(super) fn give_up(&mut self, at: Time) {
        let Some(deadline) = self.deadlines.pop_front() else {
            return;
        };
        let Deadline { tag, serial, .. } = deadline;
        if self.commands[tag.index()] != (serial, true) {
            // It was done in time.
            return;
        }
        let failure = Failure::new(Kind::TimedOut);
        let parts = match self.device.abort(at, tag) {
            Aborted::Undone(parts) => parts,
            Aborted::Abandoned => {
                for (id, _) in self.engine.parts(tag) {
                    if let Some(pending) = &mut self.pending[place(id)] {
                        pending.failure = Some(failure);
                    }
                }
                Parts::new()
            }
            Aborted::No => {
                self.promised(at, deadline);
                return;
            }
        };
        self.metrics.timeouts += 1;
        tracing::warn!(
            disk = self.shared.name,
            "the device did not answer within {}; gave up on a command",
            self.timeout.unwrap_or(Nanos::ZERO)
        );
        self.commands[tag.index()].1 = false;
        if let Some(estimate) = &mut self.estimate {
            estimate.gave_up(at, tag);
        }
        for part in parts {
            if let Some(pending) = &mut self.pending[part.id as usize] {
                pending.data = Some(part.data);
                pending.failure = Some(failure);
            }
        }
        self.end_of_command(tag, at, Err(failure));
    }

    /// The device completes a command on which it should have been given up. If that is not so in
    /// time either, it is said, once: the command is the device's, and ends when that ends it.
    fn promised(&mut self, at: Time, deadline: Deadline) {
        let Some(timeout) = self.timeout else {
            return;
        };
        let promises = deadline.promises.saturating_add(1);
        if promises == 2 {
            self.metrics.timeouts += 1;
            tracing::warn!(
                disk = self.shared.name,
                "the device works on a command for longer than twice {timeout}, and does not let go of it"
            );
        }
        // It may yet: what follows a stalled arm, the sync of a store, is its own to hang.
        self.deadlines.push_back(Deadline {
            at: at.saturating_add(timeout),
            promises,
            ..deadline
        });
    }

    /// Commands in the device keep their time unless the new one is shorter, or they had none.
    pub(super) fn set_timeout(&mut self, now: Time, timeout: Option<Nanos>) {
        self.timeout = timeout;
        let latest = timeout.map(|timeout| now.saturating_add(timeout));
        for Deadline { at, .. } in &mut self.deadlines {
            *at = (*at).min(latest.unwrap_or(*at));
        }
        let Some(latest) = latest else { return };
        for (index, (serial, there)) in self.commands.iter().enumerate() {
            let timed = self.deadlines.iter().any(|timed| timed.serial == *serial);
            // Number 0 is of those that never reach the device.
            if *there && *serial > 0 && !timed {
                let tag = DriveTag(index as u32);
                self.deadlines.push_back(Deadline {
                    at: latest,
                    tag,
                    serial: *serial,
                    promises: 0,
                });
            }
        }
    }
}
