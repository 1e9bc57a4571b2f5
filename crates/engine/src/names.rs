//! Names of requests outside the engine.
//!
//! A request has three names. Policies and the engine use its [`Tag`], an index into the engine's slab that never
//! leaves the engine. The drive uses the [`DriveTag`] of the request's command. The client or job uses a [`RequestId`].

use core::fmt;

/// Names a command in the drive: 0 to depth - 1.
///
/// The engine gives each command the lowest free tag, and the completion returns the tag. Data for each command (an
/// age, a deadline, the device's state) fit in an array with one place for each tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveTag(pub u32);

impl DriveTag {
    /// Largest number of commands in a drive.
    pub const DEPTH_MAX: u32 = 256;

    /// The tag as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names an unfinished request for its sender: a client, or a job in the background.
///
/// Clients and jobs number their requests separately. A request in the background (a scan's read, an update of parity)
/// ends as [`Command::Background`](crate::Command), so it cannot be reported to a client by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// A client's request.
    Client(u64),
    /// A request of a job in the background.
    Background(u64),
}

impl fmt::Display for RequestId {
    /// Writes the number, with the prefix `b` for the background.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Client(id) => write!(f, "{id}"),
            RequestId::Background(id) => write!(f, "b{id}"),
        }
    }
}
