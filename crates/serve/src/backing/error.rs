//! Errors of making a file, and what may happen to a served file.

use headtime_linux::shown::PathShown as _;
use headtime_units::Bytes;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Reason why a missing or empty file is not made into a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MakeError {
    /// The file is missing, and the user has not asked for a new one.
    #[error("{} is not there{hint}", path.shown())]
    Missing {
        path: PathBuf,
        /// Hint how the user can have the file made.
        hint: Hint,
    },
    /// The file exists and is empty: another server is making the file, or has left it empty.
    #[error("{} is empty; with create = true it becomes a file of {wanted}", path.shown())]
    Empty {
        path: PathBuf,
        /// Size of the file if it were made.
        wanted: Bytes,
    },
    /// The file would be under a folder of the kernel and its helpers.
    #[error("{} is not there, and no file is made under {root}{}", path.shown(), within(folder))]
    Forbidden {
        path: PathBuf,
        /// The folder: `/dev`, `/proc` or `/sys`.
        root: &'static str,
        /// Real path of the file's folder, if the path leads there by another name.
        folder: Option<PathBuf>,
    },
    /// The name is a symbolic link without a target. No file is made at the target, since the user has not named it.
    #[error(
        "{} is a link to {}, which is not there; no file is made behind a link",
        path.shown(), to.shown()
    )]
    Link {
        path: PathBuf,
        /// Target of the link.
        to: PathBuf,
    },
    /// The path ends like a folder's path.
    #[error("{} is no name for a file", path.shown())]
    Name { path: PathBuf },
    /// The folder of the file cannot be opened.
    #[error("{}: {error}", folder.shown())]
    Folder { folder: PathBuf, error: io::Error },
    /// The file would exceed the process's limit on file sizes.
    #[error(
        "{} would have {wanted} bytes, more than the {limit} that this process may write to a file (ulimit -f)",
        path.shown()
    )]
    Limit {
        path: PathBuf,
        /// Size of the file if it were made.
        wanted: u64,
        /// Limit of the process.
        limit: u64,
    },
    /// The file would exceed the largest file of its file system.
    #[error("{} would have {wanted} bytes, more than its file system allows", path.shown())]
    TooLarge {
        path: PathBuf,
        /// Size of the file if it were made.
        wanted: u64,
    },
    /// Other processes make and remove the file all the time.
    #[error("{} is replaced or removed again and again by somebody else", path.shown())]
    Unsteady { path: PathBuf },
    /// Another system call failed.
    #[error("{}: {doing}: {error}", path.shown())]
    Io {
        path: PathBuf,
        /// Action that failed.
        doing: &'static str,
        error: io::Error,
    },
}

/// Hint how the user can have a missing file made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Ask for the file, which would have this size.
    Create(Bytes),
    /// Ask for the file and give its size.
    SizeAndCreate,
    /// No hint, because the file would only be read.
    None,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Create(bytes) => write!(f, "; with create = true a file of {bytes} is made"),
            Hint::SizeAndCreate => {
                f.write_str("; with size = \"4GiB\" and create = true a file is made")
            }
            Hint::None => Ok(()),
        }
    }
}

fn within(folder: &Option<PathBuf>) -> String {
    match folder {
        Some(folder) => format!(": its folder is {}", folder.shown()),
        None => String::new(),
    }
}

/// Change that other programs have made to a disk's file.
///
/// Later writes do not appear at the path, unless the file was [moved](Lost::Moved) and is moved back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// The file has no name any more, and vanishes when the disk stops.
    #[error("{} was deleted", path.shown())]
    Deleted { path: PathBuf },
    /// The name now leads to another file or device.
    #[error("{} is another file now", path.shown())]
    Replaced {
        /// The file or device.
        path: PathBuf,
    },
    /// The name leads to no file, and the file has another name.
    #[error("{} was moved: the file that is served has another name", path.shown())]
    Moved { path: PathBuf },
    /// Another program has made the file shorter, or the block device has lost its medium and has no bytes.
    #[error("{} has {found} bytes, {served} were served", path.shown())]
    Truncated {
        /// The file or device.
        path: PathBuf,
        /// Present size in bytes.
        found: u64,
        /// The bytes that the disk was started with.
        served: u64,
    },
    /// The kernel does not report the state of the file.
    #[error(
        "{}: whether it is still there cannot be found out: {}",
        path.shown(), io::Error::from_raw_os_error(*errno)
    )]
    Unknown {
        /// The file or device.
        path: PathBuf,
        /// The kernel's number of the error.
        errno: i32,
    },
}

impl Lost {
    /// Returns true if acknowledged data are lost, or will not be found at the path.
    pub fn is_loss(&self) -> bool {
        match self {
            Lost::Deleted { .. } | Lost::Replaced { .. } | Lost::Truncated { .. } => true,
            Lost::Moved { .. } | Lost::Unknown { .. } => false,
        }
    }
}
