//! Makes the file of a disk.

use super::error::MakeError;
use super::place::Place;
use super::same_file;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, fsync, ftruncate, linkat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// How a file gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is made without one (`O_TMPFILE`) and linked to it when it is whole: nobody ever sees it empty or
    /// unlocked, and a process that is killed before leaves nothing.
    #[default]
    Unnamed,
    /// It has it from the beginning, and is empty until it is locked. Also where a file system's links lead
    /// to files of their own, as those of many file systems in user space do.
    Named,
}

/// A file that was just made, for its owner alone, open for reading and writing. It is removed
/// unless it is published.
pub(crate) struct New<'place> {
    place: &'place Place,
    file: Arc<OwnedFd>,
    way: Way,
    is_published: bool,
    /// Whether it is locked, for this process alone; not every file system has locks.
    pub locked: Result<(), Errno>,
}

impl<'place> New<'place> {
    /// An empty file. `None` if there is something of its name. What cannot be had in one way is tried in
    /// the other.
    ///
    /// # Errors
    ///
    /// If there is no file to be had in the folder.
    pub fn file_in(place: &'place Place, way: &mut Way) -> Result<Option<New<'place>>, MakeError> {
        let made = |file: OwnedFd, way: Way| New {
            place,
            locked: flock(&file, FlockOperation::NonBlockingLockExclusive),
            file: Arc::new(file),
            way,
            is_published: false,
        };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        let mode = Mode::RUSR | Mode::WUSR;
        if *way == Way::Unnamed {
            match openat(&place.folder, ".", flags | OFlags::TMPFILE, mode) {
                Ok(file) => return Ok(Some(made(file, *way))),
                // Kernels and file systems say in various ways that they cannot. If it was something
                // else, the other way fails by it too, and says so.
                Err(_) => *way = Way::Named,
            }
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL;
        match openat(&place.folder, &place.name, flags, mode) {
            Ok(file) => {
                let new = made(file, *way);
                // Somebody else may have been quicker to lock it, and has it then.
                let is_ours = new.locked != Err(Errno::WOULDBLOCK) && new.has_its_name();
                Ok(is_ours.then_some(new))
            }
            Err(Errno::EXIST | Errno::INTR) => Ok(None),
            Err(errno) => Err(failed(&place.path, "creating it", errno)),
        }
    }

    pub fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    fn has_its_name(&self) -> bool {
        let Place { folder, name, .. } = self.place;
        let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        matches!((found, fstat(&self.file)), (Ok(found), Ok(ours)) if same_file(&found, &ours))
    }

    /// Gives the file its name, if it does not have it. `false` if there is something of that name, or if it
    /// takes another `way`: then everything has to be looked at again.
    pub fn publish(mut self, way: &mut Way) -> bool {
        self.is_published = self.way == Way::Named || self.link(way);
        self.is_published
    }

    fn link(&self, way: &mut Way) -> bool {
        let Place { folder, name, .. } = self.place;
        let by_handle = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let linked = linkat(CWD, by_handle, folder, name, AtFlags::SYMLINK_FOLLOW);
        let linked = match linked {
            // Without /proc there is a way that old kernels have for root alone.
            Err(Errno::NOENT) => linkat(&self.file, "", folder, name, AtFlags::EMPTY_PATH),
            linked => linked,
        };
        match linked {
            // A server of files that was asked twice has done it the first time.
            Ok(()) | Err(Errno::EXIST) if self.has_its_name() => true,
            Err(Errno::EXIST) => false,
            // What is there now, if anything, is whole, and whoever locks it has it.
            Ok(()) | Err(_) => {
                *way = Way::Named;
                false
            }
        }
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        let is_left = self.way == Way::Named && !self.is_published && self.locked.is_ok();
        let holds_nothing = || fstat(&self.file).is_ok_and(|ours| ours.st_blocks == 0);
        if is_left && self.has_its_name() && holds_nothing() {
            // Nothing is lost if it stays.
            let _ = unlinkat(&self.place.folder, &self.place.name, AtFlags::empty());
        }
    }
}

/// Sets the size of a file, with holes, and syncs it.
///
/// # Errors
///
/// If it cannot be so large.
pub(crate) fn set_size(path: &Path, file: &OwnedFd, bytes: u64) -> Result<(), MakeError> {
    may_have_size(path, bytes)?;
    match ftruncate(file, bytes).and_then(|()| fsync(file)) {
        Ok(()) => Ok(()),
        Err(Errno::FBIG | Errno::INVAL) => Err(MakeError::TooLarge {
            path: path.to_owned(),
            wanted: bytes,
        }),
        Err(errno) => Err(failed(path, "making it as large as asked", errno)),
    }
}

/// Checks that this process may make so large a file. Beyond its limit the kernel does not refuse:
/// it ends the process.
///
/// # Errors
///
/// If not.
pub(crate) fn may_have_size(path: &Path, bytes: u64) -> Result<(), MakeError> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < bytes => Err(MakeError::Limit {
            path: path.to_owned(),
            wanted: bytes,
            limit,
        }),
        _ => Ok(()),
    }
}

fn failed(path: &Path, doing: &'static str, errno: Errno) -> MakeError {
    MakeError::Io {
        path: path.to_owned(),
        doing,
        error: errno.into(),
    }
}
