//! Errors of opening a file as a disk.

use super::safety::Use;
use crate::backing::MakeError;
use crate::header::{HeaderError, SetId};
use headtime_linux::shown::PathShown as _;
use std::io;
use std::path::PathBuf;

/// Reason why a file or a block device cannot be opened as a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A system call failed.
    #[error("{}: {doing}: {error}", .path.shown())]
    Io {
        path: PathBuf,
        /// Action that failed.
        doing: &'static str,
        error: io::Error,
    },
    /// The file is missing and cannot be made.
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
        /// Error of locking the file.
        error: io::Error,
    },
    /// The path leads to neither a regular file nor a block device.
    #[error("{} is {is}; allowed is a regular file or a block device", .path.shown())]
    Kind { path: PathBuf, is: &'static str },
    /// The file system does not support direct I/O.
    #[error(
        "{}: its file system does no direct I/O; with `direct = false` the data go through the page cache",
        .path.shown()
    )]
    NoDirect { path: PathBuf },
    /// Another program, most likely a server, has locked the file, and both would write to it.
    #[error("{} is in use: another program has locked it", .path.shown())]
    Locked { path: PathBuf },
    /// The file or device has another use, and writing would do damage.
    #[error("{} is in use: {what}; `force` opens it all the same", .path.shown())]
    InUse {
        /// The file or device.
        path: PathBuf,
        what: Use,
    },
    /// The kernel does not report whether the file or device has another use.
    #[error(
        "{}: whether it is in use cannot be found out: {error}; `force` opens it all the same",
        .path.shown()
    )]
    Unknown {
        /// The file or device.
        path: PathBuf,
        error: io::Error,
    },
    /// The file or device is empty.
    #[error("{} has 0 bytes; a disk has at least 1", .path.shown())]
    Nothing { path: PathBuf },
    /// The file exists and has another size than asked for.
    #[error("{} exists and has {bytes} bytes, not {asked}", .path.shown())]
    OtherSize {
        path: PathBuf,
        bytes: u64,
        /// The size that was asked for.
        asked: u64,
    },
    /// The sector size is not a power of two from 512 to 4096 bytes.
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
    /// The file is a disk of an array, which writing to this disk alone would spoil.
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
    /// The file is no disk of an array.
    #[error("{}: {error}", .path.shown())]
    Header { path: PathBuf, error: HeaderError },
    #[error(
        "the kernel gives no io_uring, which may be switched off (kernel.io_uring_disabled): {0}"
    )]
    Ring(io::Error),
}
