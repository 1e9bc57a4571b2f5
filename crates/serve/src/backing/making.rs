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

/// Method by which a file gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// The file is made without a name (`O_TMPFILE`) and linked to its name when it is complete. No process ever sees
    /// an empty or unlocked file under the name, and a process that is killed before the link leaves nothing.
    #[default]
    Unnamed,
    /// The file has its name from the beginning, and is empty until it is locked. Used where `O_TMPFILE` is not
    /// supported, and where a link leads to a file of its own, as in many file systems in user space.
    Named,
}

/// A new file, accessible to its owner alone and open for reading and writing. The file is removed unless it is
/// published.
pub(crate) struct New<'place> {
    place: &'place Place,
    file: Arc<OwnedFd>,
    way: Way,
    is_published: bool,
    /// Result of locking the file exclusively. Not every file system has locks.
    pub locked: Result<(), Errno>,
}

impl<'place> New<'place> {
    /// Makes an empty file. Returns `None` if the name exists. If a file cannot be made without a name, `way` changes
    /// and the file is made under its name.
    ///
    /// # Errors
    ///
    /// If no file can be made in the folder.
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
                // Kernels and file systems report a lack of support by various errors. If the error had another cause,
                // the second way fails by the same cause and reports it.
                Err(_) => *way = Way::Named,
            }
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL;
        match openat(&place.folder, &place.name, flags, mode) {
            Ok(file) => {
                let new = made(file, *way);
                // Another server may have locked the file first, and serves it then.
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

    /// Gives the file its name, if it does not have it yet. Returns false if the name exists, or if the file has to be
    /// made by another `way`. The caller then has to examine everything again.
    pub fn publish(mut self, way: &mut Way) -> bool {
        self.is_published = self.way == Way::Named || self.link(way);
        self.is_published
    }

    fn link(&self, way: &mut Way) -> bool {
        let Place { folder, name, .. } = self.place;
        let by_handle = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let linked = linkat(CWD, by_handle, folder, name, AtFlags::SYMLINK_FOLLOW);
        let linked = match linked {
            // Without /proc, the file can be linked by its descriptor, which old kernels allow only to root.
            Err(Errno::NOENT) => linkat(&self.file, "", folder, name, AtFlags::EMPTY_PATH),
            linked => linked,
        };
        match linked {
            // A file server that got the request twice has made the link the first time.
            Ok(()) | Err(Errno::EXIST) if self.has_its_name() => true,
            Err(Errno::EXIST) => false,
            // If a file has the name now, the file is complete, and the server that locks it first serves it.
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
            // A failure is harmless, as the file is empty.
            let _ = unlinkat(&self.place.folder, &self.place.name, AtFlags::empty());
        }
    }
}

/// Sets the size of a file, without allocating blocks, and syncs the file.
///
/// # Errors
///
/// If the file cannot have this size.
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

/// Checks that this process may make a file of this size. Beyond the limit the kernel ends the process instead of
/// returning an error.
///
/// # Errors
///
/// If the size is above the process's limit.
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
