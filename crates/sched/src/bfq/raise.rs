//! State of weight raising.

use super::id::Name;
use alloc::vec::Vec;
use headtime_units::Time;

/// Factor of the weight of a raised queue.
const RAISED_FACTOR: u64 = 30;

/// Weight raising of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Raise {
    pub is_on: bool,
    pub until: Time,
    /// Sectors served while raised.
    pub served: u64,
}

impl Raise {
    /// Factor of the weight.
    pub fn factor(self) -> u64 {
        if self.is_on { RAISED_FACTOR } else { 1 }
    }
}

/// Queues that were created shortly after each other, up to a large burst.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    pub queues: Vec<Name>,
    pub last: Time,
}
