//! Time at which the arm leaves for the next command.
//!
//! A seek that ends before the first sector of its command comes round ends in waiting. Firmware begins such a seek
//! later, so that the seek ends just in time. Until then the drive reads ahead on the head's track (US 6,339,811,
//! "Rotationally optimized seek initiation", Seagate; US 6,965,966, the abort window of a read-ahead, Western Digital).
//! No command is served later for this. The next sequential read is in the buffer although other commands waited.

use super::Drive;
use crate::profile::Preseek;
use crate::queue::Waiting;
use headtime_units::{Nanos, Time};

// Commands that arrive meanwhile do not change the choice, unless the buffer or the head has reached their sectors. The
// reason: a Barracuda 7200.10 reaches the rates, by depth, of a choice among the commands that wait when the arm is
// free (table V of the NCQ study).

impl Drive {
    /// Returns true if the arm may have to read on and leave later for a command that has just come.
    pub(super) fn may_leave_later(&self) -> bool {
        self.profile.queue.preseek == Preseek::JustInTime && self.ahead.is_some()
    }

    /// The command for which the arm stays, with its estimated positioning time.
    pub(super) fn chosen(&mut self, now: Time) -> Option<(usize, Nanos)> {
        let slot = self.going.next.take()?;
        let place = self.queue.iter().position(|waiting| waiting.slot == slot)?;
        let target = self.queue.get(place).target?;
        let from = self.arm_track();
        let time = self
            .queue
            .estimate(&self.mechanics, from, now, target, Nanos::MAX);
        Some((place, time))
    }

    /// Time until which the arm, free at `now`, reads ahead and then leaves for a waiting command. `None` if the arm
    /// leaves at once.
    ///
    /// The arm leaves early by the largest variation of a seek, and by a sector, which the arm has to finish. The arm
    /// does not read ahead on another track, since the movement from there would take another time.
    pub(super) fn leaves_at(&self, waiting: &Waiting, now: Time) -> Option<Time> {
        if !self.may_leave_later() {
            return None;
        }
        let ahead = self
            .ahead
            .filter(|ahead| !ahead.reached && ahead.at <= now)?;
        let target = waiting.target?;
        let (_, step) = ahead
            .known
            .step
            .filter(|(_, step)| step.transfer_begin() <= now)?;
        let (read, start) = (self.cache.get(ahead.segment), waiting.extent.start);
        // The following sectors may be in the buffer already, as for a client that reads backward.
        let useless = self.cache.has_elsewhere(ahead.segment);
        if useless || (read.start..read.end).contains(&start.get()) {
            return None;
        }
        let passes_next = step.extent().contains(start);
        if target.track == ahead.over && !passes_next {
            // If the head stays on the track, the drive takes the sectors that pass in front of the command.
            return None;
        }
        let depart = self.slots[usize::from(waiting.slot)].ready.max(now);
        let way = self
            .mechanics
            .reposition(ahead.over, target.track, target.op)
            .total();
        let early = self.noise.seek_at_most(way);
        let seek = way + self.mechanics.set_up(way, target.op) + early;
        let wait = self
            .mechanics
            .wait(self.mechanics.phase_at(depart + seek), target.phase);
        if self.mechanics.zero_latency(target.op) {
            // An arm that comes in the middle of the extent begins there.
            let run = self.layout.run(start);
            let len = waiting.extent.len.get().min(u64::from(run.len));
            let passes = self.mechanics.turn() * len / u64::from(run.sectors_per_track);
            if wait + early + passes > self.mechanics.turn() {
                return None;
            }
        }
        let sector = step.sectors_end(1) - step.transfer_begin() + Nanos::from_nanos(1);
        let mut until = (depart + wait).min(step.end());
        if passes_next {
            // The arm reaches the first sector by reading on.
            until = until.min(step.sectors_end((start - step.run.start).get() as u32 + 1) + sector);
        }
        let until = until.saturating_sub(sector);
        (until > now).then_some(until)
    }
}
