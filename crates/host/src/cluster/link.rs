//! Connections to the switch.

use headtime_units::{Nanos, Time};

/// Links of a node or server to and from the switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    pub up: Link,
    pub down: Link,
}

/// One direction of the connection of a node or server to the switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// End of the last message.
    free: Time,
}

impl Link {
    /// Takes a message of this length at `at`. Returns when the message begins.
    pub fn take(&mut self, at: Time, span: Nanos) -> Time {
        let start = at.max(self.free);
        self.free = start + span;
        start
    }
}
