//! Commands and completions of a drive.

use super::fault::MediumError;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

/// The most commands that a drive takes at a time.
pub const TAGS_MAX: u32 = 256;

/// A command for a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The host's name for the command; no other command in the drive may have the same.
    pub tag: u32,
    /// The operation.
    pub op: Op,
    /// The sectors; ignored by a flush. A read or write has at most
    /// [`REQUEST_MAX`](headtime_units::Sectors::REQUEST_MAX). With more sectors the times of a slow drive's commands
    /// could exceed 64 bits.
    pub extent: Extent,
    /// Force unit access: a write completes when it is on the medium, a read comes from there.
    pub fua: bool,
    /// True for high priority. A drive that knows no priorities ignores this.
    pub high: bool,
}

/// How the buffer served a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hit {
    /// Read from the medium.
    Miss,
    /// Read partly from the buffer.
    Partial,
    /// Read from the buffer.
    Full,
    /// Written into the buffer.
    Buffered,
    /// Written to the medium.
    Through,
    /// A command without data.
    NoData,
}

/// Division of the time between submission and completion into parts, whose sum it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Waiting in the drive for other commands or destaging.
    pub queue: Nanos,
    /// Command processing before the arm moves or data are sent, as far as it is not hidden.
    pub overhead: Nanos,
    /// Arm movement, settled.
    pub seek: Nanos,
    /// Head switches and the skew that hides them.
    pub switch: Nanos,
    /// Waiting for sectors.
    pub rotation: Nanos,
    /// Sectors pass under the head.
    pub transfer: Nanos,
    /// The bus, as far as it is not hidden behind the arm, and the completion.
    pub bus: Nanos,
}

impl Breakdown {
    /// The sum: the response time.
    pub fn total(&self) -> Nanos {
        self.queue
            + self.overhead
            + self.seek
            + self.switch
            + self.rotation
            + self.transfer
            + self.bus
    }
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The host's name for the command.
    pub tag: u32,
    /// Time of the completion.
    pub at: Time,
    /// Result of the command.
    pub result: Result<(), MediumError>,
    /// Start and end of its data on the drive's interface. A command without data, or whose data could not be read,
    /// has two equal times.
    pub data: (Time, Time),
    /// Division of the response time, by the drive's own time. This time differs from the host's if the spindle
    /// wanders.
    pub breakdown: Breakdown,
    /// How the buffer served the command.
    pub hit: Hit,
}
