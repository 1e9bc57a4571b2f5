//! The slot of the queue in service.

use super::id::BfqQueueId;
use headtime_units::{Lba, Time};

/// Budget in sectors before the drive's rate counts.
pub(super) const BUDGET_AT_FIRST: u64 = 16_384;

/// Cause of the end of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The next request exceeds the budget.
    Exhausted,
    Timeout,
    /// No request came during the wait.
    TooIdle,
    /// The queue is empty and not worth a wait.
    NoMore,
    Preempted,
}

/// The slot of the queue in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct BfqSlot {
    pub queue: BfqQueueId,
    pub begin: Time,
    pub deadline: Time,
    /// End of the wait under way.
    pub timer: Option<Time>,
    /// Begin of the last wait.
    pub wait_begin: Time,
    /// True if the age of the oldest request has been checked.
    pub fifo_tested: bool,
    /// End of the last request in this slot.
    pub last: Lba,
}

/// Returns the budget after a slot of a synchronous queue that is not raised. `budget` is the budget before, `served` the
/// charge of the slot, `in_drive` the requests that the drive still has.
pub(super) fn next_budget(end: End, budget: u64, served: u64, in_drive: u64, max: u64) -> u64 {
    let min = min_budget(max);
    match end {
        End::Exhausted => budget.saturating_mul(4).min(max),
        End::Timeout => budget.saturating_mul(2).min(max),
        End::TooIdle if in_drive > 0 => budget.saturating_mul(2).min(max),
        End::TooIdle => budget.saturating_sub(4 * min).max(min),
        End::NoMore => served.max(min),
        End::Preempted => budget,
    }
}

/// Smallest budget, by the largest.
pub(super) fn min_budget(max: u64) -> u64 {
    (max / 32).max(1)
}
