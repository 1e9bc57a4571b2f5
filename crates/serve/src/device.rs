//! The interface between a disk and the device that executes the disk's commands.

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
    /// Identifier that the disk gave the request.
    pub id: RequestId,
    pub extent: Extent,
    pub data: Data,
}

impl Part {
    /// Returns true if the part has a buffer. A write without a buffer writes zeroes.
    pub(crate) fn has_bytes(&self) -> bool {
        matches!(self.data, Data::Buffer(_))
    }
}

/// The requests of a command, in order of address and without gaps between them. A flush has one part without sectors.
pub type Parts = Vec<Part>;

/// A command that is done.
#[derive(Debug)]
pub struct Done {
    pub tag: DriveTag,
    /// Time of the end. A device in model time ([`Device::next_event`]) gives the model time, any other device the
    /// `now` of [`Device::poll`].
    pub at: Time,
    /// Result of the command.
    pub result: Result<(), Failure>,
    /// The parts that were submitted. If a read succeeded, its parts are filled.
    pub parts: Parts,
}

/// The result of aborting a command.
#[derive(Debug)]
pub enum Aborted {
    /// The command did not happen and will not happen.
    Undone(Parts),
    /// The command may still happen. The device holds the data as long as necessary.
    Abandoned,
    /// The command goes on: the device is about to complete the command, or works on it in model time.
    No,
}

/// The geometry and abilities of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of sectors. Addresses begin at 0.
    pub capacity: Sectors,
    /// Bytes of a sector: 512 to 4096, a power of two.
    pub sector_bytes: u32,
    /// Number of commands that the device takes at a time.
    pub depth: u32,
    /// True if the device takes no writes.
    pub read_only: bool,
    /// True if the device can discard sectors.
    pub discards: bool,
}

/// Executes the commands of a disk. Lives on the disk's thread.
///
/// A device owns the data of a command from [`Device::submit`] until [`Device::poll`] returns them. The device may
/// execute commands in any order, because the engine never hands over two commands at a time whose order matters.
pub trait Device: Send {
    /// The geometry of the device; a constant.
    fn geometry(&self) -> Geometry;

    /// Bytes of the device; a constant. The last sector may have fewer bytes than the others. Its missing bytes read as
    /// zeroes and are never written.
    fn bytes(&self) -> u64 {
        let geometry = self.geometry();
        geometry.capacity.bytes(geometry.sector_bytes)
    }

    /// Takes a command. The device has fewer than [`Geometry::depth`] commands at this time.
    ///
    /// A write with [`Flags::FUA`](headtime_sched::Flags::FUA) completes when its data are on stable storage. A flush
    /// completes when the data of all writes that completed before it are on stable storage.
    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts);

    /// Returns the next command that has completed by `now`, the earliest first.
    fn poll(&mut self, now: Time) -> Option<Done>;

    /// Returns true if the device lives in model time. The device then names the times of its events
    /// ([`Device::next_event`]), and the disk's thread takes care not to be late.
    fn in_model_time(&self) -> bool {
        false
    }

    /// Time of the next event in a device that lives in model time. The disk's thread wakes precisely then. Even if the
    /// thread is late, it takes this time as the time of the event.
    fn next_event(&self) -> Option<Time> {
        None
    }

    /// File descriptor that becomes readable when [`Device::poll`] has a command to return.
    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Hands the commands that [`Device::submit`] has collected to the kernel. Called after a round of submissions.
    /// Does nothing in a device that does not collect commands.
    fn kick(&mut self) {}

    /// Aborts a command. Unless the result is [`Aborted::No`], `poll` does not return the command any more.
    fn abort(&mut self, now: Time, tag: DriveTag) -> Aborted;

    /// Number of commands that were given up on and whose data the device still holds. While this is above 0, a write
    /// that timed out may still happen.
    fn abandoned(&self) -> usize {
        0
    }

    /// Account of the arm's time since time zero, if the device has such an account.
    fn head_time(&mut self, _now: Time) -> Option<HeadTime> {
        None
    }

    /// Notes why requests wait, for the account of the time in which the arm is idle.
    fn note_pending(&mut self, _now: Time, _backlog: Backlog) {}

    /// Carries out an order. Returns the number of sectors of completed writes that are lost because they had not
    /// reached the medium. The number is 0 unless the power was cut.
    ///
    /// # Errors
    ///
    /// If the device cannot carry out the order, or has nothing to do.
    fn control(&mut self, _now: Time, _what: &Control) -> Result<Sectors, ControlError> {
        Err(ControlError::Unsupported)
    }

    /// Returns true if discarded sectors read as zeroes, so that a discard may replace a write of zeroes. The result is
    /// constant.
    fn discards_to_zeroes(&self) -> bool {
        false
    }

    /// Source of the allocation status of sectors, for programs that copy the device. Usable from other threads.
    fn allocation(&self) -> Option<Arc<dyn Allocation>> {
        None
    }

    /// Files that opening the device has made. If the disk does not start after all, they are removed. The result is
    /// constant.
    fn made(&self) -> Made {
        Made::default()
    }

    /// Checks that the names of the files behind the device still lead to these files, and that the files are as long
    /// as before. Writes to a deleted file are acknowledged, and lost when the server ends. The check takes two system
    /// calls for each file.
    ///
    /// # Errors
    ///
    /// If a name leads elsewhere or a file is too short. The error ends when the administrator repairs the file.
    fn check_backing(&self) -> Result<(), Lost> {
        Ok(())
    }
}

/// Reason why a device does not carry out an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The device is a real one.
    #[error("only an emulated drive can do that")]
    Unsupported,
    /// The power is to be switched on, but is on already.
    #[error("the power is on")]
    PowerIsOn,
    /// The power is to be cut, but is off already.
    #[error("the power is off")]
    PowerIsOff,
    /// The order names sectors that the device does not have.
    #[error("sectors {extent} are not on a disk of {capacity}")]
    Outside {
        /// The sectors.
        extent: Extent,
        capacity: Sectors,
    },
    /// The writes that a power cut loses could not be undone in the store. Holds the kernel's number of the error. The
    /// power is off nevertheless.
    #[error(
        "what the drive had not written could not be taken back: {}",
        std::io::Error::from_raw_os_error(*.0)
    )]
    Store(i32),
}

/// An order to an emulated drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The power fails. Data that are only in the drive's cache are lost, and every command fails until the power is
    /// back.
    PowerCut,
    /// The power is back.
    PowerOn,
    /// A fault occurs in the drive.
    Fault(Fault),
}

/// Source of the allocation status of a device's sectors.
pub trait Allocation: Send + Sync + std::fmt::Debug {
    /// Returns true if the byte at `offset` is allocated, with the number of bytes from `offset` on, at most `len`, of
    /// the same status. Sectors that are not allocated read as zeroes.
    ///
    /// # Errors
    ///
    /// If the kernel does not report the status.
    fn status(&self, offset: u64, len: u64) -> std::io::Result<(bool, u64)>;
}
