//! Reasons why a drive cannot be emulated.

use crate::backing::MakeError;
use headtime_linux::shown::PathShown as _;
use std::io;
use std::path::PathBuf;

/// Reasons why a drive cannot be emulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulateError {
    /// The size is 0 or not a multiple of the sector size.
    #[error("a size of {size} bytes is not a whole number of sectors of {sector_bytes} bytes")]
    Size {
        size: u64,
        /// The drive's.
        sector_bytes: u32,
    },
    /// The drive is smaller than the size.
    #[error("a size of {size} bytes is more than the {capacity} bytes of drive {drive}")]
    Capacity {
        size: u64,
        /// The drive's.
        capacity: u64,
        drive: String,
    },
    /// The kernel refuses memory for the store.
    #[error("no memory for a store: {0}")]
    Memory(io::Error),
    /// A file of the store cannot be opened.
    #[error("{}: {error}", path.shown())]
    File { path: PathBuf, error: io::Error },
    /// The path leads to something other than a regular file.
    #[error("{} is not a regular file", path.shown())]
    NotAFile { path: PathBuf },
    /// Another server has the file open.
    #[error("{} is in use by another server", path.shown())]
    Locked { path: PathBuf },
    /// The file has another use, such as a loop device or a mount.
    #[error("{} is in use: {what}", path.shown())]
    InUse {
        path: PathBuf,
        what: crate::file::Use,
    },
    /// The file was made for a store of another size.
    #[error("{} is a store of {found} bytes, not of {wanted}", path.shown())]
    OtherSize {
        path: PathBuf,
        /// Size of the file in bytes.
        found: u64,
        /// Size that the file should have, in bytes.
        wanted: u64,
    },
    /// There are more files than the size needs.
    #[error("{} belongs to a larger store; this one ends before it", path.shown())]
    Beyond { path: PathBuf },
    /// Some files of the store exist, but not all.
    #[error(
        "{} is there, but {}, which belongs to it, is not", holds.shown(), missing.shown()
    )]
    InPart {
        /// A file that exists.
        holds: PathBuf,
        /// A file that is missing or empty.
        missing: PathBuf,
    },
    /// The files of the store are missing and cannot be made.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// The file system has no locks.
    #[error(
        "{}: its file system has no locks, without which another server could write to it too: {error}",
        path.shown()
    )]
    NoLock {
        path: PathBuf,
        /// Error of locking the file.
        error: io::Error,
    },
    /// The kernel refuses a thread.
    #[error("no thread for a store: {0}")]
    Thread(io::Error),
}
