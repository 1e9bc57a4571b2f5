//! Requests and completions between front ends and a disk.

use crate::buffer::Buffer;
use headtime_engine::Outcome;
use headtime_sched::{Class, Flags, Op, Origin};
use headtime_units::{Extent, Lba, Time};
use std::sync::Arc;

/// Data of a request. They move with the request: the front end gives them away at submission and gets them back with the completion.
#[derive(Debug, Default)]
pub enum Data {
    /// No data, as for a flush or a discard.
    #[default]
    None,
    /// Data to write, or room for data that are read, as long as the extent. Bytes within the [`Cut`] of a write have no meaning.
    Buffer(Buffer),
    /// A write of zeroes.
    Zeroes {
        /// True if the device may discard the sectors instead, as long as they read as zeroes.
        may_punch: bool,
    },
}

impl Data {
    /// The buffer, if there is one.
    pub fn into_buffer(self) -> Option<Buffer> {
        match self {
            Data::Buffer(buffer) => Some(buffer),
            Data::None | Data::Zeroes { .. } => None,
        }
    }
}

/// Bytes at both ends of a write or a discard that do not belong to the request. The disk retains them as they are.
///
/// A cut of a discard or of a write of zeroes makes the other bytes of these two sectors zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of the first sector before the request; fewer than a sector has.
    pub head: u32,
    /// Bytes of the last sector behind the request; fewer than a sector has.
    pub tail: u32,
}

impl Cut {
    /// Whole sectors.
    pub const NONE: Cut = Cut { head: 0, tail: 0 };
}

/// A request for a disk.
#[derive(Debug)]
pub struct Submission {
    /// The front end's name for the request, returned in [`Completion`].
    pub cookie: u64,
    /// Operation.
    pub op: Op,
    /// Sectors of the request, of [`Disk::sector_bytes`](crate::disk::Disk::sector_bytes); empty for a flush, and only for a flush.
    pub extent: Extent,
    /// Bytes of these sectors that a write or a discard keeps. Empty for reads and flushes.
    pub cut: Cut,
    pub flags: Flags,
    /// Origin of the request, which names at least the export.
    pub origin: Origin,
    /// Priority class of the export.
    pub class: Class,
    /// Time of arrival, by [`Disk::now`](crate::disk::Disk::now).
    pub arrived: Time,
    pub data: Data,
    /// Receiver of the completion.
    pub to: Arc<dyn Completer>,
}

/// Notice that a request is over.
#[derive(Debug)]
pub struct Completion {
    /// The front end's name for the request.
    pub cookie: u64,
    /// Outcome. A write that failed may have been done in part, though only in whole sectors.
    pub result: Result<(), Failure>,
    /// Buffer of the request. [`Data::None`] if the device still has the buffer, since the disk has stopped waiting for it
    /// ([`Kind::TimedOut`]).
    pub data: Data,
}

/// Receiver of a disk's completions. The disk calls it on the disk's thread, or on the submitting thread if the disk's own has just ended.
/// The receiver must return soon and never wait. So a front end's queue needs room for a completion of every request that it has submitted.
pub trait Completer: Send + Sync + std::fmt::Debug {
    /// Takes a completion.
    fn complete(&self, completion: Completion);

    /// True if nobody waits for completions any longer, as after a client has disconnected. Requests that have not gone to the
    /// device yet are then dropped.
    fn is_gone(&self) -> bool {
        false
    }

    /// Wakes the task that handles completions. The disk calls this after the last completion for now.
    fn wake(&self) {}
}

/// Returns true if the success of a request promises that data are on the medium.
pub(crate) fn is_durable(op: Op, flags: Flags) -> bool {
    let is_forced = flags.has(Flags::FUA) || flags.has(Flags::PREFLUSH);
    op == Op::Flush || op == Op::Write && is_forced
}

/// Kind of a failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The medium could not be read or written.
    Medium,
    /// The device did not answer in time. A write may still happen.
    TimedOut,
    /// The request waited for the device for too long, and has not been given to the device.
    NotBegun,
    /// The device, or the path to it, failed.
    Device,
    /// There is no space left to store the data of a write.
    NoSpace,
    /// A request failed before and the failure has not been cleared, or the disk is read-only.
    ReadOnly,
    /// The device has no power.
    Offline,
    /// The device has lost writes that it had acknowledged.
    Lost,
    /// The server ends.
    ShuttingDown,
}

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.text())]
pub struct Failure {
    pub kind: Kind,
    /// The first sector that is known to be bad.
    pub at: Option<Lba>,
    /// The kernel's error number, if the kernel reported the error.
    pub errno: Option<i32>,
}

impl Failure {
    /// Makes a failure with no further details.
    pub const fn new(kind: Kind) -> Failure {
        Failure {
            kind,
            at: None,
            errno: None,
        }
    }

    /// Outcome for the engine.
    pub fn outcome(&self) -> Outcome {
        match self.kind {
            Kind::Medium => Outcome::MediumError,
            Kind::TimedOut => Outcome::TimedOut,
            _ => Outcome::DeviceError,
        }
    }

    fn text(&self) -> String {
        let kind = match self.kind {
            Kind::Medium => "the medium could not be read or written",
            Kind::TimedOut => "the device did not answer in time",
            Kind::NotBegun => "the device was busy for too long; the request was not begun",
            Kind::Device => "the device failed",
            Kind::NoSpace => "no space is left to store what was written",
            Kind::ReadOnly => "the disk is read-only",
            Kind::Offline => "the device has no power",
            Kind::Lost => "the device has lost acknowledged writes",
            Kind::ShuttingDown => "the server ends",
        };
        let mut text = String::from(kind);
        if let Some(lba) = self.at {
            text += &format!(", sector {lba}");
        }
        if let Some(errno) = self.errno {
            text += &format!(": {}", std::io::Error::from_raw_os_error(errno));
        }
        text
    }
}
