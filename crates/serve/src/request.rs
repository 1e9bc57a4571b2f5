//! What passes between front ends and a disk.

use crate::buffer::Buffer;
use headtime_engine::Outcome;
use headtime_sched::{Class, Flags, Op, Origin};
use headtime_units::{Extent, Lba, Time};
use std::sync::Arc;

/// The data of a request. They move with it: the front end gives them away at submission and gets
/// them back with the completion.
#[derive(Debug, Default)]
pub enum Data {
    /// A flush or a discard.
    #[default]
    None,
    /// Data to write, or room for data that are read; as long as the extent. Bytes within the [`Cut`] of a write have no
    /// meaning.
    Buffer(Buffer),
    /// A write of zeroes.
    Zeroes {
        /// Whether the device may forget the sectors instead, as long as they read as zeroes.
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

/// Bytes at both ends of a write or a discard that belong to others. The disk keeps them as they are.
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
    /// The front end's name for it, returned in [`Completion`].
    pub cookie: u64,
    /// What to do.
    pub op: Op,
    /// To which sectors of [`Disk::sector_bytes`](crate::disk::Disk::sector_bytes); empty for a
    /// flush, and only for it.
    pub extent: Extent,
    /// Bytes of these sectors that a write or a discard keeps. Empty for reads and flushes.
    pub cut: Cut,
    pub flags: Flags,
    /// Who asks: at least the number of the export.
    pub origin: Origin,
    /// Its rank: the export's.
    pub class: Class,
    /// When it came, by [`Disk::now`](crate::disk::Disk::now).
    pub arrived: Time,
    pub data: Data,
    /// Whom to tell.
    pub to: Arc<dyn Completer>,
}

/// A request is over.
#[derive(Debug)]
pub struct Completion {
    /// The front end's name for it.
    pub cookie: u64,
    /// How it ended. A write that failed may have been done in part; whole sectors, though.
    pub result: Result<(), Failure>,
    /// The buffer that came with it. [`Data::None`] if the device still holds it, having been given
    /// up on ([`Kind::TimedOut`]).
    pub data: Data,
}

/// Receives a disk's completions. The disk calls it on its own thread, or on the submitting thread
/// if its own has just ended. So it must return soon and never wait: a front end's queue has room
/// for a completion of every request that it has submitted.
pub trait Completer: Send + Sync + std::fmt::Debug {
    /// Takes note of a completion.
    fn complete(&self, completion: Completion);

    /// No more completions come for now: wakes the task that handles them.
    fn wake(&self) {}
}

/// What kind of failure a request met with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The medium could not be read or written.
    Medium,
    /// The device did not answer in time. A write may still happen.
    TimedOut,
    /// The device, or the path to it, failed.
    Device,
    /// There is no space left to store what was written.
    NoSpace,
    /// Something failed before, and nobody has cleared that; or the disk is read-only.
    ReadOnly,
    /// The device has no power.
    Offline,
    /// The device holds less than it acknowledged.
    Lost,
    /// The server ends.
    ShuttingDown,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.text())]
pub struct Failure {
    pub kind: Kind,
    /// The first sector that is known to be bad.
    pub at: Option<Lba>,
    /// The kernel's number of the error, if it came from there.
    pub errno: Option<i32>,
}

impl Failure {
    /// A failure of which no more is known.
    pub const fn new(kind: Kind) -> Failure {
        Failure {
            kind,
            at: None,
            errno: None,
        }
    }

    /// The outcome that the engine is told.
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
