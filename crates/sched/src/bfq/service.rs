//! Service of a queue in its slot: budget, end, and waits.

use super::Bfq;
use super::id::{BfqQueueId, since};
use super::slot::{BUDGET_AT_FIRST, BfqSlot, End, min_budget, next_budget};
use crate::level::Level;
use headtime_units::{Nanos, Time};

/// Number of the first slot that goes by the drive's rate.
const SLOTS_UNTIL_RATE: u64 = 11;

/// Shortest slot that is measured by time.
const MEASURED_SLOT_MIN: Nanos = Nanos::from_millis(1);

/// Time that a shorter slot counts: a seek.
const ONE_SEEK: Nanos = Nanos::from_millis(8);

/// Length above which a slot is slow if it served less than half of the largest budget.
const SLOW_SLOT: Nanos = Nanos::from_millis(20);

/// Longest wait for a seeky queue.
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);

/// Shortest wait for a raised queue.
const RAISED_IDLE: Nanos = Nanos::from_millis(20);

/// Factor of the charge of asynchronous requests.
const ASYNC_CHARGE: u64 = 3;

/// Number of requests of other queues in the drive that a raised queue has to be protected from.
const MANY_OTHERS: u64 = 4;

impl Bfq {
    /// Largest budget, in sectors.
    pub(super) fn max_budget(&self) -> u64 {
        match self.config.max_budget {
            0 if self.slots < SLOTS_UNTIL_RATE => BUDGET_AT_FIRST,
            0 => self.drive.sectors_in(self.config.timeout_sync),
            given => given,
        }
    }

    /// Returns the sectors that the next request of a queue is charged, if the queue has one (bfq_serv_to_charge).
    pub(super) fn next_charge(&self, id: BfqQueueId) -> Option<u64> {
        let queue = &self.queues[id];
        let sectors = self.sweeps.pool.get(queue.sweep.next()?).extent.len.get();
        let plain = queue.is_sync() || queue.raise.is_on || self.is_asymmetric(id);
        Some(sectors.saturating_mul(if plain { 1 } else { ASYNC_CHARGE }))
    }

    /// Returns true if several classes are busy, or if the drive has requests of the idle class, whose weight is lower
    /// than this queue's.
    fn is_asymmetric(&self, id: BfqQueueId) -> bool {
        let classes = self.busy.iter().filter(|busy| **busy > 0).count();
        let idle = Level::Idle;
        classes > 1 || self.queues[id].level != idle && self.drive.by_level[idle.index()] > 0
    }

    /// Returns true if a wait for a queue gives more throughput, and no raised queue pays for the wait.
    pub(super) fn boosts(&self, id: BfqQueueId) -> bool {
        let history = &self.queues[id].history;
        let streams = history.streams(self.config.slice_idle);
        (!self.drive.queues() || streams) && self.raised_busy == 0
    }

    /// Returns true if a queue needs waits to get its share.
    fn needs_guarantee(&self, id: BfqQueueId) -> bool {
        let queue = &self.queues[id];
        let busy = self.busy_queues();
        let others_press = self.raised_busy < busy
            || self.drive.requests() >= queue.in_drive.saturating_add(MANY_OTHERS);
        queue.merged_into.is_none()
            && (queue.raise.is_on && others_press || self.is_asymmetric(id) || busy == 1)
    }

    /// Returns true if a wait for a queue pays.
    pub(super) fn wait_pays(&self, id: BfqQueueId) -> bool {
        let queue = &self.queues[id];
        let may =
            !self.config.slice_idle.is_zero() && queue.is_sync() && queue.level != Level::Idle;
        let pays =
            self.config.strict_guarantees || may && (self.boosts(id) || self.needs_guarantee(id));
        pays && queue.merged_into.is_none()
    }

    /// Returns true if the slot may end for its length.
    pub(super) fn may_time_out(&self, now: Time, slot: &BfqSlot) -> bool {
        let share = &self.queues[slot.queue].share;
        now >= slot.deadline && (slot.timer.is_none() || share.left() >= share.budget / 3)
    }

    /// Chooses the next queue and begins its slot.
    fn begin_slot(&mut self, now: Time) -> Option<BfqQueueId> {
        let id = self.queues.choose(now)?;
        self.slots += 1;
        let queue = &self.queues[id];
        let factor = queue.share.weight / queue.base_weight();
        self.slot = Some(BfqSlot {
            queue: id,
            begin: now,
            deadline: now.saturating_add(self.config.timeout_sync.saturating_mul(factor)),
            timer: None,
            wait_begin: now,
            fifo_tested: false,
            last: self.sweeps.last,
        });
        Some(id)
    }

    /// Returns the queue to serve, or `None` to wait, or if nothing is queued.
    pub(super) fn select(&mut self, now: Time) -> Option<BfqQueueId> {
        if let Some(slot) = self.slot {
            let id = slot.queue;
            let waits = self.queues[id].is_empty() && self.wait_pays(id);
            if self.may_time_out(now, &slot) && !waits {
                self.expire(now, End::Timeout);
            }
        }
        loop {
            let id = match self.slot {
                Some(slot) => slot.queue,
                None => self.begin_slot(now)?,
            };
            let waiting = self.slot.is_some_and(|slot| slot.timer.is_some());
            let queue = &self.queues[id];
            match self.next_charge(id) {
                Some(charge) if charge <= queue.share.left() => return Some(id),
                Some(_) => self.expire(now, End::Exhausted),
                None if !waiting && (queue.in_drive == 0 || !self.wait_pays(id)) => {
                    self.expire(now, End::NoMore);
                }
                None => return None,
            }
        }
    }

    /// Keeps the disk free for the empty queue in service.
    pub(super) fn wait(&mut self, now: Time) {
        let id = self.slot.expect("a slot is under way").queue;
        let queue = &self.queues[id];
        let raised = queue.raise.is_on;
        let mut time = self.config.slice_idle;
        if queue.history.is_seeky() && !raised && !self.is_asymmetric(id) {
            time = time.min(SEEKY_IDLE);
        } else if raised {
            time = time.max(RAISED_IDLE);
        }
        let slot = self.slot.as_mut().expect("looked up above");
        slot.wait_begin = now;
        slot.timer = Some(now.saturating_add(time.max(Nanos::from_nanos(1))));
    }

    /// Ends the wait if its time has come.
    ///
    /// If the wait ends exactly at `now`, other events at `now` precede its end. With `also_now`, no other event is due.
    pub(super) fn run_timer(&mut self, now: Time, also_now: bool) {
        if let Some(slot) = self.slot
            && let Some(fires) = slot.timer
            && (fires < now || fires == now && also_now)
        {
            let late = fires >= slot.deadline;
            let end = if late { End::Timeout } else { End::TooIdle };
            self.end_slot(fires, end, slot.wait_begin);
        }
    }

    /// Ends the slot.
    pub(super) fn expire(&mut self, now: Time, end: End) {
        self.end_slot(now, end, now);
    }

    /// Ends the slot, whose length counts until `used_until` (bfq_bfqq_expire).
    fn end_slot(&mut self, now: Time, end: End, used_until: Time) {
        let slot = self.slot.expect("a slot is under way");
        let id = slot.queue;
        if !self.queues[id].raise.is_on {
            self.charge_time(id, end, since(used_until, slot.begin));
        }
        self.renew_budget(id, end);
        self.slot = None;
        // An empty queue that lost the disk to another keeps its place if it needs a guarantee.
        let stays =
            !self.queues[id].is_empty() || end == End::Preempted && self.needs_guarantee(id);
        if stays {
            self.queues.requeue(id);
        } else {
            self.rest(now, id, true);
        }
        let queue = &mut self.queues[id];
        queue.splits |= queue.sharers > 0 && queue.history.is_seeky();
        if !stays && !matches!(end, End::Timeout | End::Exhausted) {
            queue.ran_dry = true;
        } else {
            queue.share.served = 0;
        }
    }

    /// Charges the queue in service for time in place of sectors, if it was slow (bfq_bfqq_charge_time).
    pub(super) fn charge_time(&mut self, id: BfqQueueId, end: End, length: Nanos) {
        let max = self.max_budget();
        let queue = &mut self.queues[id];
        let share = &mut queue.share;
        let long = length > SLOW_SLOT;
        let slow = long && share.served < max / 2 || !long && queue.history.is_seeky();
        if (!slow || queue.process.is_none())
            && (end != End::Timeout || share.left() < share.budget / 3)
        {
            return;
        }
        let longest = self.config.timeout_sync;
        let short = length < MEASURED_SLOT_MIN;
        let counted = if short { ONE_SEEK } else { length }.min(longest);
        let counted = u128::from(counted.as_nanos());
        let sectors = u128::from(max) * counted / u128::from(longest.as_nanos());
        let more = (sectors as u64).saturating_sub(share.served);
        share.budget = share.budget.max(share.served + more);
        self.queues.serve(id, more);
    }

    /// Sets the budget of the queue's next slot (__bfq_bfqq_recalc_budget).
    fn renew_budget(&mut self, id: BfqQueueId, end: End) {
        let max = self.max_budget();
        let queue = &mut self.queues[id];
        let budget = if !queue.is_sync() {
            max
        } else if queue.raise.is_on {
            2 * min_budget(max)
        } else if end == End::Preempted {
            return;
        } else {
            let served = queue.share.served;
            next_budget(end, queue.max_budget, served, queue.in_drive, max)
        };
        queue.max_budget = budget.min(max);
        if let Some(charge) = self.next_charge(id) {
            let queue = &mut self.queues[id];
            queue.share.budget = queue.max_budget.max(charge);
        }
    }

    /// Notes that a queue without requests is no longer busy.
    pub(super) fn rest(&mut self, now: Time, id: BfqQueueId, in_service: bool) {
        self.queues.retire(id, in_service);
        let queue = &mut self.queues[id];
        queue.busy = false;
        self.busy[queue.level.index()] -= 1;
        self.raised_busy -= u64::from(queue.raise.is_on);
        if queue.in_drive == 0 {
            queue.quiet_since = Some(now);
        }
    }
}
