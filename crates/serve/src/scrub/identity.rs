//! Of which disk a file of a scrub is, and what may be wrong with it.

use crate::probed::disk_and_names;
use headtime_linux::shown::PathShown as _;
use headtime_units::Sectors;
use std::io;
use std::path::{Path, PathBuf};

/// Which disk it is, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What is behind it: a serial number, or the path of a device or a store.
    pub device: String,
    /// Its sectors.
    pub capacity: Sectors,
    /// Bytes of a sector.
    pub sector_bytes: u32,
}

impl Identity {
    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.capacity.bytes(self.sector_bytes)
    }

    /// In what a disk differs from this one, if it does.
    fn differs(&self, disk: &Identity) -> Option<String> {
        let (then, now) = (self, disk);
        if then.device != now.device {
            return Some(format!("it was {}, and is {}", then.device, now.device));
        }
        if then.sector_bytes != now.sector_bytes {
            let (then, now) = (then.sector_bytes, now.sector_bytes);
            return Some(format!("its sectors had {then} bytes, and have {now}"));
        }
        let how = match then.capacity.cmp(&now.capacity) {
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Greater => "shrunk",
            std::cmp::Ordering::Less => "grown",
        };
        let (then, now) = (then.bytes(), now.bytes());
        Some(format!("it has {how} from {then} bytes to {now}"))
    }
}

/// Why a file of a scrub cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.shown())]
    Io {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        error: io::Error,
    },
    /// Somebody has it.
    #[error("{}: in use by {by}", path.shown())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The owner of the lock.
        by: &'static str,
    },
    /// It is something else.
    #[error("{}: not {what}: {problem}; it is left as it is: move it away to begin anew", path.shown())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it is to be.
        what: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// It is of blocks of another size.
    #[error(
        "{}: of blocks of {has}, and {asked} are asked for; give --block {has}, or another file",
        path.shown()
    )]
    OtherBlocks {
        /// The file.
        path: PathBuf,
        /// The size of its blocks.
        has: String,
        /// What was asked for.
        asked: String,
    },
    /// It is of another disk.
    #[error("{}: of another disk: {problem}; move it away, or scrub that disk", path.shown())]
    OtherDisk {
        /// The file.
        path: PathBuf,
        /// In what they differ.
        problem: String,
    },
}

/// Whether a file is of this disk.
pub(super) fn same_disk(
    path: &Path,
    then: &Identity,
    disk: &Identity,
) -> Result<(), ProgressError> {
    match then.differs(disk) {
        Some(problem) => Err(ProgressError::OtherDisk {
            path: path.to_owned(),
            problem,
        }),
        None => Ok(()),
    }
}

/// What a block device calls itself, which its path does not: that may be another one's after the next start.
pub(super) fn serial_of(device: &str) -> Option<String> {
    use std::os::linux::fs::MetadataExt;
    use std::os::unix::fs::FileTypeExt;
    let metadata = std::fs::metadata(device).ok()?;
    if !metadata.file_type().is_block_device() {
        return None;
    }
    let number = metadata.st_rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    disk_and_names(Path::new("/sys"), &format!("{major}:{minor}")).1
}
