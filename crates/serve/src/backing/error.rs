//! Errors of making a file, and what may happen to a served file.

use headtime_linux::shown::PathShown as _;
use headtime_units::Bytes;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a missing or empty file is not made into a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MakeError {
    /// Nobody has asked for it.
    #[error("{} is not there{hint}", path.shown())]
    Missing {
        path: PathBuf,
        /// What would make it.
        hint: Hint,
    },
    /// It is there, and nothing is in it: a file that is about to be made, or was left so.
    #[error("{} is empty; with create = true it becomes a file of {wanted}", path.shown())]
    Empty {
        path: PathBuf,
        /// Its size then.
        wanted: Bytes,
    },
    /// It would be where the kernel and its helpers have theirs.
    #[error("{} is not there, and no file is made under {root}{}", path.shown(), within(folder))]
    Forbidden {
        path: PathBuf,
        /// Which of those places it is.
        root: &'static str,
        /// The folder's own name, if the path leads there by another.
        folder: Option<PathBuf>,
    },
    /// It would be made behind a symbolic link, where nobody has asked for it.
    #[error(
        "{} is a link to {}, which is not there; no file is made behind a link",
        path.shown(), to.shown()
    )]
    Link {
        path: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// The path ends like that of a folder.
    #[error("{} is no name for a file", path.shown())]
    Name { path: PathBuf },
    /// The folder that it would be in is not to be had.
    #[error("{}: {error}", folder.shown())]
    Folder { folder: PathBuf, error: io::Error },
    /// The process may not have files so large.
    #[error(
        "{} would have {wanted} bytes, more than the {limit} that this process may write to a file (ulimit -f)",
        path.shown()
    )]
    Limit {
        path: PathBuf,
        /// Bytes that it would have.
        wanted: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The file system has no files so large.
    #[error("{} would have {wanted} bytes, more than its file system allows", path.shown())]
    TooLarge {
        path: PathBuf,
        /// Bytes that it would have.
        wanted: u64,
    },
    /// Others make and remove it all the time.
    #[error("{} is replaced or removed again and again by somebody else", path.shown())]
    Unsteady { path: PathBuf },
    /// The kernel refuses something else.
    #[error("{}: {doing}: {error}", path.shown())]
    Io {
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        error: io::Error,
    },
}

/// What the user can do so that a missing file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// To ask for it; so large it would be.
    Create(Bytes),
    /// To ask for it and to say how large.
    SizeAndCreate,
    /// Nothing: it would only be read.
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

/// What other programs have done to a disk's file.
///
/// Later writes cannot be reached by opening the path, unless the file was [moved](Lost::Moved) and
/// is found again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// It has no name any more, and is gone when the disk stops.
    #[error("{} was deleted", path.shown())]
    Deleted { path: PathBuf },
    /// The name now leads to another file or device.
    #[error("{} is another file now", path.shown())]
    Replaced {
        /// The file or device.
        path: PathBuf,
    },
    /// Its name leads nowhere, but it has another.
    #[error("{} was moved: the file that is served has another name", path.shown())]
    Moved { path: PathBuf },
    /// Somebody has made it shorter; a block device without its medium has no bytes.
    #[error("{} has {found} bytes, {served} were served", path.shown())]
    Truncated {
        /// The file or device.
        path: PathBuf,
        /// Its bytes now.
        found: u64,
        /// The bytes that the disk was started with.
        served: u64,
    },
    /// The kernel does not tell.
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
    /// Returns true if acknowledged data are gone, or will not be found at the path.
    pub fn is_loss(&self) -> bool {
        match self {
            Lost::Deleted { .. } | Lost::Replaced { .. } | Lost::Truncated { .. } => true,
            Lost::Moved { .. } | Lost::Unknown { .. } => false,
        }
    }
}
