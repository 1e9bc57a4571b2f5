//! Processes that read one file together share a queue, so that the sweep serves their requests in order.

use super::Bfq;
use super::id::{BfqQueueId, Name, since};
use super::raising::BURST_GAP;
use crate::level::Level;
use headtime_units::{Lba, Nanos, Time};

/// Largest distance in sectors at which two requests are close (`BFQQ_CLOSE_THR`).
const CLOSE_SECTORS: u64 = 8_192;

/// Time from the first hand-out of a busy queue in which the queue may merge (`bfq_merge_time_limit`).
const EARLY_MERGE_WITHIN: Nanos = Nanos::from_millis(100);

/// Age at which a queue may merge for good (`bfq_late_stable_merging`).
const LATE_MERGE_AGE: Nanos = Nanos::from_millis(600);

/// Time for which a new queue is the elder of later queues (`bfq_activation_stable_merging`).
const ELDER_FOR: Nanos = Nanos::from_millis(600);

impl Bfq {
    /// Notes a new queue. A queue that comes shortly after its elder, and has the same level, may merge into the elder.
    pub(super) fn note_elder(&mut self, now: Time, id: BfqQueueId) {
        let is_elder = |(elder, created): &Name| {
            since(now, *created) <= ELDER_FOR && self.queues[*elder].level == self.queues[id].level
        };
        match self.elder.filter(is_elder) {
            Some(name) if since(now, name.1) <= BURST_GAP => self.queues[id].elder = Some(name),
            Some(_) => {}
            None => self.elder = Some((id, now)),
        }
    }

    /// Returns the queue that a queue should merge into, before the queue gets a request at `start`. `own` is the own
    /// queue of the process.
    pub(super) fn partner(
        &mut self,
        now: Time,
        id: BfqQueueId,
        own: BfqQueueId,
        start: Lba,
    ) -> Option<BfqQueueId> {
        let queue = &mut self.queues[id];
        let is_old = |at: Time| since(now, at) > LATE_MERGE_AGE;
        if id == own
            && queue.is_known
            && is_old(queue.created)
            && queue.split_at.is_none_or(is_old)
            && let Some(elder) = queue.elder.take()
        {
            let elder = self.queues.named(elder)?;
            let into = self.queues.target(elder);
            if into == id || self.boosts(id) {
                return None;
            }
            self.queues[id].merged_for_good = true;
            self.queues[elder].merged_for_good = true;
            return Some(into);
        }
        if self.is_late(now, id) || self.busy_queues() == 1 {
            return None;
        }
        let positions = &self.sweeps.positions;
        let (up, down) = (
            positions.first_at_or_after(start),
            positions.last_before(start),
        );
        let waiting = [up, down].into_iter().flatten();
        let waiting = waiting.map(|entry| (entry.lba, BfqQueueId(entry.tag.0)));
        let waiting = waiting.min_by_key(|(lba, _)| lba.distance(start));
        let in_service = self.slot.map(|slot| (slot.last, slot.queue));
        let both = in_service.into_iter().chain(waiting);
        let mut close = both.filter(|(lba, _)| lba.distance(start).get() <= CLOSE_SECTORS);
        let (_, other) = close.find(|(_, other)| self.may_share(now, id, *other))?;
        let into = self.queues.target(other);
        (into != id).then_some(into)
    }

    /// Returns true if two queues may be of processes that read together.
    fn may_share(&self, now: Time, id: BfqQueueId, other: BfqQueueId) -> bool {
        let (one, two) = (&self.queues[id], &self.queues[other]);
        id != other
            && one.level == two.level
            && one.level != Level::Idle
            && one.is_sync()
            && two.is_sync()
            && !one.history.is_seeky()
            && !two.history.is_seeky()
            && !self.is_late(now, other)
    }

    /// Returns true if a queue has been served for too long to merge.
    fn is_late(&self, now: Time, id: BfqQueueId) -> bool {
        let first = self.queues[id].first_io;
        first.is_some_and(|first| since(now, first) > EARLY_MERGE_WITHIN)
    }

    /// Merges a queue into another. Requests that are queued stay where they are.
    pub(super) fn merge(&mut self, from: BfqQueueId, into: BfqQueueId) {
        self.queues[from].merged_into = Some(into);
        self.queues[into].sharers += 1;
        let raise = self.queues[from].raise;
        if raise.is_on && !self.queues[into].raise.is_on {
            self.set_raise(into, raise);
        }
    }

    /// Gives a process its own queue back, if the queue that it shares has turned seeky (bfq_split_bfqq).
    pub(super) fn split(&mut self, now: Time, own: BfqQueueId) {
        let shared = self.queues.target(own);
        if shared != own && self.queues[shared].splits && !self.queues[own].merged_for_good {
            let into = self.queues[own].merged_into.take();
            self.queues.leave(into.expect("the process shares a queue"));
            self.queues[own].split_at = Some(now);
        }
    }
}
