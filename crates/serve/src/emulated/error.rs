//! Why a drive cannot be emulated.

use crate::backing::MakeError;
use headtime_linux::shown::PathShown as _;
use std::io;
use std::path::PathBuf;

/// Why a drive cannot be emulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulateError {
    /// The size is not that of whole sectors, or none.
    #[error("a size of {size} bytes is not a whole number of sectors of {sector_bytes} bytes")]
    Size {
        size: u64,
        /// The drive's.
        sector_bytes: u32,
    },
    /// The drive is smaller.
    #[error("a size of {size} bytes is more than the {capacity} bytes of drive {drive}")]
    Capacity {
        size: u64,
        /// The drive's.
        capacity: u64,
        drive: String,
    },
    /// The kernel gives no memory.
    #[error("no memory for a store: {0}")]
    Memory(io::Error),
    /// A file of the store cannot be opened.
    #[error("{}: {error}", path.shown())]
    File { path: PathBuf, error: io::Error },
    /// It is something else.
    #[error("{} is not a regular file", path.shown())]
    NotAFile { path: PathBuf },
    /// Somebody else has it open as a store.
    #[error("{} is in use by another server", path.shown())]
    Locked { path: PathBuf },
    /// It is used for something else beside.
    #[error("{} is in use: {what}", path.shown())]
    InUse {
        path: PathBuf,
        what: crate::file::Use,
    },
    /// It was made for another size.
    #[error("{} is a store of {found} bytes, not of {wanted}", path.shown())]
    OtherSize {
        path: PathBuf,
        /// Its size, bytes.
        found: u64,
        /// What it would have, bytes.
        wanted: u64,
    },
    /// There is one file more than the size needs.
    #[error("{} belongs to a larger store; this one ends before it", path.shown())]
    Beyond { path: PathBuf },
    /// Some of its files are there, and not all.
    #[error(
        "{} is there, but {}, which belongs to it, is not", holds.shown(), missing.shown()
    )]
    InPart {
        /// One that is there.
        holds: PathBuf,
        /// One that is not, or is empty.
        missing: PathBuf,
    },
    /// Its files are not there, and are not made.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// The file system has no locks.
    #[error(
        "{}: its file system has no locks, without which another server could write to it too: {error}",
        path.shown()
    )]
    NoLock {
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
    /// There is no thread to be had.
    #[error("no thread for a store: {0}")]
    Thread(io::Error),
}
