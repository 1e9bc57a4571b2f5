//! The seam between a disk and the device that executes its commands.

use crate::backing::{Lost, Made};
use crate::request::{Data, Failure};
use headtime_disk::drive::Fault;
use headtime_disk::ledger::HeadTime;
use headtime_engine::{DriveTag, RequestId};
use headtime_sched::{Backlog, Request};
use headtime_units::{Extent, Sectors, Time};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// One request's share of a command.
#[derive(Debug)]
pub struct Part {
    /// The disk's name for the request.
    pub id: RequestId,
    pub extent: Extent,
    pub data: Data,
}

impl Part {
    /// Returns true if a write brings data of its own: it does not write zeroes.
    pub(crate) fn has_bytes(&self) -> bool {
        matches!(self.data, Data::Buffer(_))
    }
}

/// The requests of a command, which follow each other without gaps, in order of address. One
/// without sectors for a flush.
pub type Parts = Vec<Part>;

/// A command is done.
#[derive(Debug)]
pub struct Done {
    pub tag: DriveTag,
    /// When: model time for a device that has one ([`Device::next_event`]), else the `now` of
    /// [`Device::poll`].
    pub at: Time,
    /// How it ended.
    pub result: Result<(), Failure>,
    /// The parts that were submitted. Those of a read that succeeded are filled.
    pub parts: Parts,
}

/// The result of aborting a command.
#[derive(Debug)]
pub enum Aborted {
    /// It did not happen, and will not.
    Undone(Parts),
    /// Nobody knows; the device keeps the data as long as it must.
    Abandoned,
    /// The device is about to complete it, or works on it in model time.
    No,
}

/// The geometry and abilities of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Addresses: 0 up to this.
    pub capacity: Sectors,
    /// Bytes of a sector: 512 to 4096, a power of two.
    pub sector_bytes: u32,
    /// Commands that it takes at a time.
    pub depth: u32,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// Whether it can discard.
    pub discards: bool,
}

/// Executes the commands of a disk. Lives on the disk's thread.
///
/// A device owns the data of a command from [`Device::submit`] until [`Device::poll`] returns them.
/// It may execute commands in any order: the engine never hands over two at a time whose order
/// matters.
pub trait Device {
    /// The geometry of the device. It never changes.
    fn geometry(&self) -> Geometry;

    /// Bytes of the device. The last sector may have fewer than the others; missing bytes read as zeroes and are never
    /// written. Never changes.
    fn bytes(&self) -> u64 {
        let geometry = self.geometry();
        geometry.capacity.bytes(geometry.sector_bytes)
    }

    /// Takes a command. Fewer than [`Geometry::depth`] are in it.
    ///
    /// A write with [`Flags::FUA`](headtime_sched::Flags::FUA) completes when it is on stable
    /// storage; a flush, when all that completed before it is.
    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts);

    /// The next command that has completed by `now`, the earliest first.
    fn poll(&mut self, now: Time) -> Option<Done>;

    /// Returns true if it lives in model time: it says when things happen ([`Device::next_event`]), and
    /// the disk's thread takes care not to be late.
    fn in_model_time(&self) -> bool {
        false
    }

    /// For a device that lives in model time: when something next happens in it. The disk's thread
    /// wakes then, precisely, and takes this for the time, however late it is.
    fn next_event(&self) -> Option<Time> {
        None
    }

    /// Becomes readable when [`Device::poll`] has something to return.
    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Hands what [`Device::submit`] has collected to the kernel, if it collects. Called after a
    /// round of submissions.
    fn kick(&mut self) {}

    /// Aborts a command. Unless the result is [`Aborted::No`], `poll` does not return it any more.
    fn abort(&mut self, now: Time, tag: DriveTag) -> Aborted;

    /// Commands given up on whose data the device still holds. While there are any, a write that
    /// timed out may still happen.
    fn abandoned(&self) -> usize {
        0
    }

    /// Where the arm's time went since time zero, if the device knows.
    fn head_time(&mut self, _now: Time) -> Option<HeadTime> {
        None
    }

    /// Why requests wait, for the account of the time in which the arm is at rest.
    fn note_pending(&mut self, _now: Time, _backlog: Backlog) {}

    /// Carries out an order. Returns how many sectors of completed writes are lost because they had
    /// not reached the medium: 0 unless the power was cut.
    ///
    /// # Errors
    ///
    /// If the device cannot do that, or has nothing to do.
    fn control(&mut self, _now: Time, _what: &Control) -> Result<Sectors, ControlError> {
        Err(ControlError::Unsupported)
    }

    /// Returns true if sectors that were discarded read as zeroes, so that discarding may stand for
    /// writing zeroes. Does not change.
    fn discards_to_zeroes(&self) -> bool {
        false
    }

    /// Says what of the device is allocated, for programs that copy it. Other threads may ask.
    fn allocation(&self) -> Option<Arc<dyn Allocation>> {
        None
    }

    /// Files that opening the device has made, which are not to stay if the disk does not start
    /// after all. Does not change.
    fn made(&self) -> Made {
        Made::default()
    }

    /// Checks that the names of the files behind the device still lead to them, and that they are
    /// as long as they were. Writes to a deleted file are acknowledged, and lost when the server
    /// ends. Costs two system calls for each file.
    ///
    /// # Errors
    ///
    /// If they do not, or are not. The error goes away when somebody repairs it.
    fn check_backing(&self) -> Result<(), Lost> {
        Ok(())
    }
}

/// Why a device does not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// It is a real one.
    #[error("only an emulated drive can do that")]
    Unsupported,
    /// The power is to be switched on, and is on.
    #[error("the power is on")]
    PowerIsOn,
    /// The power is to be cut, and is off.
    #[error("the power is off")]
    PowerIsOff,
    /// Sectors are named that it does not have.
    #[error("sectors {extent} are not on a disk of {capacity}")]
    Outside {
        /// The sectors.
        extent: Extent,
        capacity: Sectors,
    },
    /// What a power cut takes back could not be taken back from the store: the kernel's number of the
    /// error. The power is off nevertheless.
    #[error(
        "what the drive had not written could not be taken back: {}",
        std::io::Error::from_raw_os_error(*.0)
    )]
    Store(i32),
}

/// An order to an emulated drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The power fails: what is in the drive is lost, and every command fails until it is back.
    PowerCut,
    /// The power is back.
    PowerOn,
    /// Something goes wrong.
    Fault(Fault),
}

/// Says which sectors of a device are allocated.
pub trait Allocation: Send + Sync + std::fmt::Debug {
    /// Whether the byte at `offset` is allocated, and how many bytes from it on, at most `len`, are
    /// alike. Sectors that are not allocated read as zeroes.
    ///
    /// # Errors
    ///
    /// If the kernel cannot tell.
    fn status(&self, offset: u64, len: u64) -> std::io::Result<(bool, u64)>;
}
