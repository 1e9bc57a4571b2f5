//! Makes, locks, watches and removes the files behind disks.
//!
//! # One server for a file
//!
//! A server locks the file that it serves (`flock`). The lock belongs to the file and not to the file's name. Another
//! server may meanwhile have removed the name or given it to another file. A server therefore checks, after it has
//! locked the file, that the name still leads to the file. Otherwise the server starts again.
//!
//! # How a file is made
//!
//! At first the file has no name. The server sets the file's size, locks the file and syncs it. Only then does the
//! server link the file to its name. The link fails if the name exists. Of several servers that start at the same time,
//! one makes the file, and the others find the file locked. A server that is killed before the link leaves nothing.
//!
//! Not every file system supports files without a name. On other file systems the file is empty at first, under its
//! name. An empty file therefore belongs to no disk. A server that locks an empty file, and may create one, sets its
//! size.
//!
//! # How it is removed
//!
//! A server that cannot start after all removes the file that it has made ([`Made::remove`]). Three conditions must
//! hold for this. The server still holds the lock, the name still leads to the file, and the file holds no data. Only a
//! program that ignores the lock could interfere between the check and the removal.

mod error;
mod making;
mod place;

pub use error::{Hint, Lost, MakeError};
pub use place::may_make;

pub(crate) use making::{New, Way, may_have_size, set_size};
pub(crate) use place::{Place, keep_found_name, keep_name};

use headtime_linux::shown::PathShown as _;
use rustix::event::{Timespec, poll};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, FlockOperation, SeekFrom, Stat, accessat, flock, fstat, lstat,
    seek, stat,
};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Largest number of attempts to open a file that other programs make, remove or replace meanwhile.
pub(crate) const TRIES_MAX: u32 = 32;

/// A file or block device that a disk has open, with the name by which the file was found or made.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    /// The file as the disk has it open. The lock belongs to this open file description.
    file: Arc<OwnedFd>,
    /// Bytes of the file that are served.
    bytes: u64,
    /// True if this process has made the file and locked it.
    made: bool,
}

impl Claim {
    pub fn found(path: &Path, file: Arc<OwnedFd>, bytes: u64) -> Claim {
        Claim {
            path: path.to_owned(),
            file,
            bytes,
            made: false,
        }
    }

    /// A claim on a file that this process has made. A file without a lock is never removed, because another server may
    /// serve it by now.
    pub fn made(path: &Path, file: Arc<OwnedFd>, bytes: u64, locked: bool) -> Claim {
        Claim {
            made: locked,
            ..Claim::found(path, file, bytes)
        }
    }

    pub fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// Returns true if this process has made the file and locked it.
    pub fn is_made(&self) -> bool {
        self.made
    }

    /// Checks that the file still has its name and size.
    ///
    /// # Errors
    ///
    /// If the file has lost its name or size, or if the kernel does not report the open file. A name that cannot be
    /// looked up, for example for lack of permission, is no error.
    pub fn check(&self) -> Result<(), Lost> {
        let path = || self.path.clone();
        let unknown = |errno: Errno| match errno {
            // The file is on another machine's file system, and has been removed there.
            Errno::STALE => Lost::Deleted { path: path() },
            errno => Lost::Unknown {
                path: path(),
                errno: errno.raw_os_error(),
            },
        };
        let ours = fstat(&self.file).map_err(unknown)?;
        let is_block_device = FileType::from_raw_mode(ours.st_mode) == FileType::BlockDevice;
        match (stat(&self.path), is_block_device) {
            (Ok(found), true) if !same_device(&found, &ours) => {
                return Err(Lost::Replaced { path: path() });
            }
            // The name of a device vanishes when the device is pulled out. Requests then fail without this check.
            (_, true) => {}
            (Ok(found), false) if !same_file(&found, &ours) => {
                return Err(Lost::Replaced { path: path() });
            }
            (Ok(_), false) => {}
            (Err(_), false) if ours.st_nlink == 0 => return Err(Lost::Deleted { path: path() }),
            (Err(Errno::NOENT | Errno::NOTDIR), false) => {
                return Err(Lost::Moved { path: path() });
            }
            (Err(_), false) => {}
        }
        let found = match is_block_device {
            // The seek is harmless, because every read and write names its own offset.
            true => seek(&self.file, SeekFrom::End(0)).map_err(unknown)?,
            false => ours.st_size as u64,
        };
        match found < self.bytes {
            true => Err(Lost::Truncated {
                path: path(),
                found,
                served: self.bytes,
            }),
            false => Ok(()),
        }
    }

    /// Removes the file if this process made it, its name still leads to it, and it holds no data.
    pub fn remove(&self) {
        let removed = match self.may_go() {
            Ok(true) => std::fs::remove_file(&self.path),
            Ok(false) => return,
            Err(errno) => Err(errno.into()),
        };
        if let Err(error) = removed {
            let path = self.path.shown();
            tracing::warn!("{path}, which was made in vain, stays: {error}");
        }
    }

    fn may_go(&self) -> Result<bool, Errno> {
        if !self.made {
            return Ok(false);
        }
        let ours = fstat(&self.file)?;
        match lstat(&self.path) {
            Ok(found) => Ok(same_file(&found, &ours) && ours.st_blocks == 0),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// The files that opening a device has made, for a caller that has to remove them again.
///
/// The files can be removed only while the device has them open and so locked. This value does not keep them open.
#[derive(Clone, Debug, Default)]
pub struct Made(Vec<Weak<Claim>>);

impl Made {
    /// Selects the claims on files that this process has made.
    pub(crate) fn among<'a>(claims: impl IntoIterator<Item = &'a Arc<Claim>>) -> Made {
        let made = claims.into_iter().filter(|claim| claim.made);
        Made(made.map(Arc::downgrade).collect())
    }

    /// Removes the files that still have their names and hold no data. Files with data stay. Files that other programs
    /// have put in their place stay, too.
    pub fn remove(&self) {
        for claim in self.0.iter().filter_map(Weak::upgrade) {
            claim.remove();
        }
    }
}

fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn same_device(found: &Stat, ours: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice && found.st_rdev == ours.st_rdev
}

/// Checks that a name leads to an open file. Callers lock the file first, because the name may be given to another file
/// before the lock.
pub(crate) fn still_named(path: &Path, file: &OwnedFd) -> Result<bool, Errno> {
    let ours = fstat(file)?;
    match stat(path) {
        Ok(found) => Ok(ours.st_nlink > 0 && same_file(&found, &ours)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Checks that permissions let this process open a file for reading and writing.
pub(crate) fn may_write(path: &Path) -> Result<(), Errno> {
    let access = Access::READ_OK | Access::WRITE_OK;
    accessat(CWD, path, access, AtFlags::EACCESS)
}

/// Locks a file, exclusively if `alone`, otherwise shared. Waits up to two seconds for others to release their lock.
pub(crate) fn lock(file: &OwnedFd, alone: bool) -> Result<(), Errno> {
    const SHARED: FlockOperation = FlockOperation::NonBlockingLockShared;
    let locked = until_free(Errno::WOULDBLOCK, || match alone {
        true => flock(file, FlockOperation::NonBlockingLockExclusive),
        false => flock(file, SHARED),
    });
    match locked {
        // NFS gives only a shared lock to a process that has the file open for reading only.
        Err(Errno::BADF) if alone => until_free(Errno::WOULDBLOCK, || flock(file, SHARED)),
        locked => locked,
    }
}

/// Number of pauses of 20 ms before a file counts as in use. The kernel closes the files of a killed server only after
/// it has freed the server's ring, which is after the process has ended. On a busy machine that took more than 300 ms.
const TRIES: u32 = 100;

/// Repeats `try_it` for up to two seconds while the result is `busy`.
pub(crate) fn until_free<T>(
    busy: Errno,
    try_it: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    for _ in 0..TRIES {
        match try_it() {
            Err(error) if error == busy || error == Errno::INTR => {
                // An interrupted pause only means that the next attempt comes sooner.
                let _ = poll(&mut [], Some(&pause));
            }
            result => return result,
        }
    }
    try_it()
}

#[cfg(test)]
mod tests;
