//! Identity of the disk that a file of a scrub is for, and errors of such files.

use headtime_linux::names::disk_and_names;
use headtime_linux::shown::PathShown as _;
use headtime_units::Sectors;
use std::io;
use std::path::{Path, PathBuf};

/// Identity of a disk, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Serial number, or path of the device or store.
    pub device: String,
    /// Sectors of the disk.
    pub capacity: Sectors,
    /// Bytes of a sector.
    pub sector_bytes: u32,
}

impl Identity {
    /// Bytes of the disk.
    pub fn bytes(&self) -> u64 {
        self.capacity.bytes(self.sector_bytes)
    }

    /// Difference between `disk` and this disk, if there is any.
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

/// Reason why a file of a scrub cannot be used.
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
    /// The file is in use.
    #[error("{}: in use by {by}", path.shown())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The owner of the lock.
        by: &'static str,
    },
    /// The file has another format, or is damaged.
    #[error("{}: not {what}: {problem}; it is left as it is: move it away to begin anew", path.shown())]
    Format {
        /// The file.
        path: PathBuf,
        /// The expected kind of file.
        what: &'static str,
        /// The problem.
        problem: String,
    },
    /// The file is for blocks of another size.
    #[error(
        "{}: of blocks of {has}, and {asked} are asked for; give --block {has}, or another file",
        path.shown()
    )]
    OtherBlocks {
        /// The file.
        path: PathBuf,
        /// The size of the file's blocks.
        has: String,
        /// The requested size.
        asked: String,
    },
    /// The file is for another disk.
    #[error("{}: of another disk: {problem}; move it away, or scrub that disk", path.shown())]
    OtherDisk {
        /// The file.
        path: PathBuf,
        /// The difference.
        problem: String,
    },
}

/// Checks that a file is for this disk.
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

/// Serial number of a block device. A path does not identify a device, since another one may have the path after the next boot.
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
