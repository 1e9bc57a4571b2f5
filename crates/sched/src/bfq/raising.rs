//! More weight for queues that are new, or were idle for long: they may belong to a user who waits.

use super::Bfq;
use super::id::{BfqQueueId, since};
use super::raise::Raise;
use crate::level::Level;
use headtime_units::{Nanos, Time};

/// Sectors after which raising ends.
const SERVED_MAX: u64 = 120_000;

/// Time without requests after which a queue counts as interactive.
pub(super) const INTERACTIVE_QUIET: Nanos = Nanos::from_secs(2);

/// Time without requests after which a queue no longer belongs to its burst.
const QUIET_AFTER_BURST: Nanos = Nanos::from_secs(10);

/// Longest time between the creations of two queues of a burst.
pub(super) const BURST_GAP: Nanos = Nanos::from_millis(180);

/// Number of queues of a large burst.
const LARGE_BURST: usize = 8;

impl Bfq {
    /// Adds a new queue to the burst under way, or begins a burst with the queue. A burst begins only while no queue is
    /// busy (bfq_handle_burst).
    pub(super) fn note_burst(&mut self, now: Time, id: BfqQueueId) {
        let begins = self.busy_queues() == 0;
        let burst = &mut self.burst;
        if since(now, burst.last) > BURST_GAP {
            burst.queues.clear();
        }
        if burst.queues.is_empty() && !begins {
            return;
        }
        burst.last = now;
        burst.queues.push((id, now));
        if burst.queues.len() == LARGE_BURST {
            for name in &burst.queues {
                if let Some(id) = self.queues.named(*name) {
                    self.queues[id].in_large_burst = true;
                }
            }
            // The next queue of this burst completes the number again.
            burst.queues.pop();
        }
    }

    /// Begins, renews or ends raising of a queue that gets a request while not busy
    /// (bfq_update_bfqq_wr_on_rq_arrival). `own` is the own queue of the process.
    pub(super) fn raise(&mut self, now: Time, id: BfqQueueId, own: BfqQueueId) {
        let for_good = self.queues[own].merged_for_good;
        let until = now.saturating_add(self.drive.raising());
        let queue = &mut self.queues[id];
        let quiet = queue.quiet_since.map(|quiet| since(now, quiet));
        let quiet_for = |least| queue.in_drive == 0 && quiet.is_none_or(|quiet| quiet > least);
        let in_burst = queue.in_large_burst;
        let interactive = quiet_for(INTERACTIVE_QUIET) && !in_burst && queue.level != Level::Idle;
        queue.in_large_burst &= !queue.is_known || !quiet_for(QUIET_AFTER_BURST);
        queue.is_known = true;
        let just_split = queue
            .split_at
            .is_some_and(|at| since(now, at) <= INTERACTIVE_QUIET);
        if !self.config.low_latency || just_split {
            return;
        }
        let may_begin = queue.is_sync() && (queue.sharers == 0 || for_good);
        if interactive && (may_begin || queue.raise.is_on) {
            queue.raise = Raise {
                is_on: true,
                until,
                served: 0,
            };
        } else if in_burst {
            queue.raise = Raise::default();
        }
    }

    /// Ends raising of the queue in service if the time or the sectors are used up, or if the queue turned out to be
    /// one of a large burst (bfq_update_wr_data).
    pub(super) fn end_raise(&mut self, now: Time, id: BfqQueueId) {
        let queue = &self.queues[id];
        let raise = queue.raise;
        if queue.in_large_burst || now > raise.until || raise.served > SERVED_MAX {
            self.set_raise(id, Raise::default());
        }
        self.queues.weigh(id);
    }

    /// Sets the raising of a queue, which may be busy. The weight in the order of queues follows with the next slot.
    pub(super) fn set_raise(&mut self, id: BfqQueueId, raise: Raise) {
        let queue = &mut self.queues[id];
        let before = core::mem::replace(&mut queue.raise, raise).is_on;
        if queue.busy {
            self.raised_busy = self.raised_busy - u64::from(before) + u64::from(raise.is_on);
        }
    }
}
