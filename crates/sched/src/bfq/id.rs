//! Names of queues, and times between events.

use crate::level::Level;
use headtime_units::{Nanos, Time};

/// Identifier of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BfqQueueId(pub u32);

impl BfqQueueId {
    /// Returns the queue of all asynchronous requests of a class.
    pub const fn shared(level: Level) -> BfqQueueId {
        BfqQueueId(level as u32)
    }
}

/// A queue and the time of its creation. A forgotten queue's identifier is used again, but not with its time.
pub(super) type Name = (BfqQueueId, Time);

/// Time from `earlier` to `now`.
pub(super) fn since(now: Time, earlier: Time) -> Nanos {
    now.saturating_since(earlier)
}
