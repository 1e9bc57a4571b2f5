//! A simulated drive beside a real drive.

use crate::{Flags, Op, Request};
use core::fmt;
use headtime_units::{Extent, Time};

/// A command for the drive, as a tracker sees the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedCommand {
    /// The operation.
    pub op: Op,
    /// The sectors. A command without sectors moves nothing.
    pub extent: Extent,
    /// True if a write ends only on the medium (FUA).
    pub forced: bool,
}

impl TrackedCommand {
    /// The command of a request.
    pub fn of<T>(request: &Request<T>) -> TrackedCommand {
        TrackedCommand {
            op: request.op,
            extent: request.extent,
            forced: request.flags.has(Flags::FUA),
        }
    }
}

/// A simulated drive that receives the commands of a real drive. Contents of the buffer, reading ahead and writing back depend on all
/// commands before. A prediction from one [`HeadAfter`](crate::HeadAfter) does not know these commands.
///
/// Times are by the clock of the model. A time before the last one counts as the last one.
pub trait Twin: fmt::Debug + Send {
    /// Sends a command to the simulated drive. A drive that is full, or too small, ignores the command.
    fn issued(&mut self, now: Time, tag: u32, what: TrackedCommand);

    /// End of a command. `None` if the simulated drive has not begun with the command by `now`.
    fn ends(&mut self, now: Time, tag: u32) -> Option<Ending>;

    /// End of a command that the real drive has finished. The tag is free afterwards.
    fn ended(&mut self, now: Time, tag: u32) -> Option<Ending>;
}

/// The end of a command in a [`Twin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Time of the completion.
    pub done: Time,
    /// True if the buffer serves all sectors of a read.
    pub is_hit: bool,
}
