//! Shares of queues in the disk: virtual times, weights, budgets.

use super::id::BfqQueueId;
use alloc::vec::Vec;

/// Sectors per unit of weight, in units of 2⁻²² sectors.
pub(super) type Virtual = u128;

/// Virtual times and budget of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub start: Virtual,
    pub finish: Virtual,
    /// Share of the queue in the weights of its class; 0 for a queue without requests whose finish has passed.
    pub weight: u64,
    /// Sectors that the queue may be served in a slot.
    pub budget: u64,
    /// Sectors charged in this slot. The number stays after a slot that ended for lack of requests.
    pub served: u64,
}

impl Share {
    /// Returns the rest of the budget.
    pub fn left(&self) -> u64 {
        self.budget.saturating_sub(self.served)
    }
}

/// The queues of one class that wait or rest.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassShares {
    pub now: Virtual,
    /// Sum of the weights of the queues that wait, rest or are in service.
    pub weights: u64,
    /// Queues that wait for their turn, in order of insertion.
    pub waiting: Vec<BfqQueueId>,
    /// Queues without requests whose finish is to come.
    pub resting: Vec<BfqQueueId>,
}
