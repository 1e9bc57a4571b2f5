//! The files behind disks: makes, locks, watches and removes them.
//!
//! # One server for a file
//!
//! A server locks the file that it serves (`flock`), whatever name it opened it by. The lock
//! belongs to the file and not to its name. Another server may meanwhile have removed the name or
//! given it to another file. So after it has locked the file, a server checks that the name still
//! leads to it, and starts again if not.
//!
//! # How a file is made
//!
//! At first the file has no name. The server sets its size, locks and syncs it, and only then links
//! it to its name. The link fails if the name exists. Of several servers that start at the same
//! time one makes the file, and the others find it locked. A server that is killed before the link
//! leaves nothing behind.
//!
//! Not every file system supports files without a name. On others the file is empty at first, under
//! its name. An empty file is therefore nobody's disk: a server that locks it and may create one
//! sets its size.
//!
//! # How it is removed
//!
//! If a server cannot start after all, it removes a file that it has made, provided that it still
//! holds the lock, that the name still leads to the file, and that nothing was written to it
//! ([`Made::remove`]). Only a program that ignores the lock could interfere between the check and
//! the removal.

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

/// How often a file is looked for anew that is made, removed or replaced meanwhile.
pub(crate) const TRIES_MAX: u32 = 32;

/// A file or block device that a disk has open, with the name under which it was found or made.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    /// As the disk has it open: the lock is this description's.
    file: Arc<OwnedFd>,
    /// What is served of it.
    bytes: u64,
    /// It was not there before, and is locked.
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

    /// A claim on a file that this process has made. Without a lock another server may have it by
    /// now, so it is never removed.
    pub fn made(path: &Path, file: Arc<OwnedFd>, bytes: u64, locked: bool) -> Claim {
        Claim {
            made: locked,
            ..Claim::found(path, file, bytes)
        }
    }

    pub fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// Returns true if it was not there before.
    pub fn is_made(&self) -> bool {
        self.made
    }

    /// Checks that the file still has its name and size.
    ///
    /// # Errors
    ///
    /// If it does not, or if the kernel does not report the open file. A name that cannot be looked
    /// up, for example for lack of permission, is no error.
    pub fn check(&self) -> Result<(), Lost> {
        let path = || self.path.clone();
        let unknown = |errno: Errno| match errno {
            // A file system of another machine, where it has been removed.
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
            // The name of a device goes when it is pulled out; what is asked of it then fails.
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
            // Whoever reads and writes says where.
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

    /// Removes the file if it was made here, is still what its name leads to, and holds nothing.
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

/// The files that opening a device has made, for the caller that has to undo it.
///
/// They are removed only while the device has them open, and so locked. This value does not keep
/// them open.
#[derive(Clone, Debug, Default)]
pub struct Made(Vec<Weak<Claim>>);

impl Made {
    /// The claims among these that are on files which were made.
    pub(crate) fn among<'a>(claims: impl IntoIterator<Item = &'a Arc<Claim>>) -> Made {
        let made = claims.into_iter().filter(|claim| claim.made);
        Made(made.map(Arc::downgrade).collect())
    }

    /// Removes the files that still have their names and hold nothing. Files with data stay, and so
    /// do files that other programs have put there.
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

/// Checks that a name leads to an open file. Call it after locking the file: until then the file
/// may have lost its name to another.
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

/// Takes a lock that others may be about to release: for this process alone, or shared with others.
pub(crate) fn lock(file: &OwnedFd, alone: bool) -> Result<(), Errno> {
    const SHARED: FlockOperation = FlockOperation::NonBlockingLockShared;
    let locked = until_free(Errno::WOULDBLOCK, || match alone {
        true => flock(file, FlockOperation::NonBlockingLockExclusive),
        false => flock(file, SHARED),
    });
    match locked {
        // To one who only looks, NFS gives no other.
        Err(Errno::BADF) if alone => until_free(Errno::WOULDBLOCK, || flock(file, SHARED)),
        locked => locked,
    }
}

/// Pauses of 20 ms before a file counts as in use. The kernel frees the files of a killed server when it has taken the server's
/// ring apart, which is after the process has ended. On a busy machine that took more than 300 ms.
const TRIES: u32 = 100;

/// Tries again for two seconds.
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
                // If it is interrupted, it is tried sooner.
                let _ = poll(&mut [], Some(&pause));
            }
            result => return result,
        }
    }
    try_it()
}

#[cfg(test)]
mod tests;
