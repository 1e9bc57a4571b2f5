//! Why a file cannot be a disk.

use super::safety::Use;
use crate::backing::MakeError;
use crate::header::{HeaderError, SetId};
use headtime_linux::shown::PathShown as _;
use std::io;
use std::path::PathBuf;

/// Why a file or a block device cannot be opened as a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The kernel refuses something.
    #[error("{}: {doing}: {error}", .path.shown())]
    Io {
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        error: io::Error,
    },
    /// It is not there, and is not made.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// The file system has no locks.
    #[error(
        "{}: its file system has no locks, without which another server could write to it too: {error}; \
         `force` opens it all the same",
        .path.shown()
    )]
    NoLock {
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
    /// It is not something that a disk can be made of.
    #[error("{} is {is}; allowed is a regular file or a block device", .path.shown())]
    Kind { path: PathBuf, is: &'static str },
    /// The file system does no direct I/O.
    #[error(
        "{}: its file system does no direct I/O; with `direct = false` the data go through the page cache",
        .path.shown()
    )]
    NoDirect { path: PathBuf },
    /// Another program has it locked, a server most likely, and both would write it.
    #[error("{} is in use: another program has locked it", .path.shown())]
    Locked { path: PathBuf },
    /// It is used for something else, and writing to it would do damage.
    #[error("{} is in use: {what}; `force` opens it all the same", .path.shown())]
    InUse {
        /// The file or device.
        path: PathBuf,
        what: Use,
    },
    /// The kernel does not tell whether it is used for something else.
    #[error(
        "{}: whether it is in use cannot be found out: {error}; `force` opens it all the same",
        .path.shown()
    )]
    Unknown {
        /// The file or device.
        path: PathBuf,
        error: io::Error,
    },
    /// It is empty.
    #[error("{} has 0 bytes; a disk has at least 1", .path.shown())]
    Nothing { path: PathBuf },
    /// It exists, and is not as large as it should be.
    #[error("{} exists and has {bytes} bytes, not {asked}", .path.shown())]
    OtherSize {
        path: PathBuf,
        bytes: u64,
        /// The size that was asked for.
        asked: u64,
    },
    /// Its sectors are of a size that disks do not have.
    #[error("{} has sectors of {bytes} bytes; allowed is 512 to 4096", .path.shown())]
    Sector {
        /// The file or device.
        path: PathBuf,
        /// Bytes of a sector.
        bytes: u32,
    },
    /// The depth is out of range.
    #[error("depth {0} is out of range; allowed is 1 to 256")]
    Depth(u32),
    /// It is a disk of an array, which writing to it alone would spoil.
    #[error(
        "{} is disk {index} of the array {set}: serve the array, or this disk with `read_only`; `force` opens it all the same",
        .path.shown()
    )]
    Member {
        path: PathBuf,
        /// Place of the disk, from 0.
        index: u32,
        set: SetId,
    },
    /// It is no disk of an array.
    #[error("{}: {error}", .path.shown())]
    Header { path: PathBuf, error: HeaderError },
    #[error(
        "the kernel gives no io_uring, which may be switched off (kernel.io_uring_disabled): {0}"
    )]
    Ring(io::Error),
}
