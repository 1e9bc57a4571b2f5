//! Unix sockets whose permissions hold from the first moment on.

use super::address::{BindError, LOCK_AGAIN, LOCK_WITHIN, Listen, UnixSocket};
use headtime_linux::shown::PathShown as _;
use rustix::fs::{AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{CapabilitySet, capabilities};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

impl UnixSocket {
    /// Returns true if the process may give the file to its group, as far as this is known before the file exists. In a
    /// directory that already belongs to the group, only making the file shows the result.
    pub fn may_be_given(&self) -> bool {
        let Some(group) = self.access.group else {
            return true;
        };
        let is_of_group = rustix::fs::stat(self.folder()).map(|found| found.st_gid == group);
        // A missing directory is reported as an error of its own later.
        is_of_group.unwrap_or(true) || may_give_to(Gid::from_raw(group))
    }

    /// The first directory on the path that permitted users other than the owner cannot pass,
    /// according to its permissions. Ignores directories with an access control list.
    pub fn closed_by(&self) -> Option<PathBuf> {
        let folder = std::fs::canonicalize(self.folder()).ok()?;
        let parent = rustix::fs::stat(&folder).ok()?;
        let group = match Mode::from_raw_mode(parent.st_mode).contains(Mode::SGID) {
            true => parent.st_gid,
            false => getegid().as_raw(),
        };
        let group = self.access.group.unwrap_or(group);
        let passes = |found: &Stat| match self.access.mode {
            mode if mode & 0o002 != 0 => found.st_mode & 0o001 != 0,
            mode if mode & 0o020 == 0 => true,
            _ if found.st_gid == group => found.st_mode & 0o010 != 0,
            _ => found.st_mode & 0o001 != 0,
        };
        let has_list = |folder: &Path| {
            let name = c"system.posix_acl_access";
            rustix::fs::getxattr(folder, name, &mut [0_u8; 0]).is_ok_and(|bytes| bytes > 0)
        };
        let mut on_the_way: Vec<&Path> = folder.ancestors().collect();
        on_the_way.reverse();
        let closed = on_the_way.into_iter().find(|folder| {
            rustix::fs::stat(*folder).is_ok_and(|found| !passes(&found)) && !has_list(folder)
        });
        closed.map(Path::to_owned)
    }

    pub(super) fn bind(&self) -> Result<BoundFile, BindError> {
        let failed = |error: io::Error| BindError::Io {
            listen: Listen::Unix(self.clone()),
            error,
        };
        // The lock admits one server at a time, so servers that start together do not interfere.
        let _locked = self.lock_folder()?;
        self.make_way()?;
        // The file does not have its final group yet, so at first the group gets no permissions.
        let first = Mode::from_raw_mode(self.access.mode) & (Mode::RUSR | Mode::WUSR);
        let listener = listen(&self.path, first).map_err(failed)?;
        // If others can write to the directory, another file may have taken the path already. The descriptor refers to
        // one file from here on.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::empty())
            .map_err(|error| failed(error.into()))?;
        let found = rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?;
        let missing = self.missing(&found)?;
        // From here on, an error removes the file.
        let bound = BoundFile {
            listener,
            path: self.path.clone(),
            file: (found.st_dev, found.st_ino),
        };
        if let Some(missing) = missing {
            self.admit(&file, missing)?;
        }
        Ok(bound)
    }

    /// Returns the group and permissions that the file still lacks, if any.
    fn missing(&self, found: &Stat) -> Result<Option<Missing>, BindError> {
        let replaced = || BindError::Replaced(Listen::Unix(self.clone()));
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
            return Err(replaced());
        }
        let mode = Mode::from_raw_mode(self.access.mode);
        let other = self.access.group.filter(|group| *group != found.st_gid);
        if other.is_none() && Mode::from_raw_mode(found.st_mode) == mode {
            return Ok(None);
        }
        if found.st_uid != geteuid().as_raw() {
            return Err(replaced());
        }
        let group = other.map(Gid::from_raw);
        Ok(Some(Missing { group, mode }))
    }

    /// Sets the group of the file first, and then the file's permissions. The file never has more permissions than were
    /// asked for. No other group ever has any of the permissions.
    fn admit(&self, file: &OwnedFd, missing: Missing) -> Result<(), BindError> {
        let failed = |error: Errno| BindError::Io {
            listen: Listen::Unix(self.clone()),
            error: error.into(),
        };
        if let Some(group) = missing.group {
            rustix::fs::chownat(file, c"", None, Some(group), AtFlags::EMPTY_PATH).map_err(
                |error| BindError::Group {
                    listen: Listen::Unix(self.clone()),
                    group: group.as_raw(),
                    error: error.into(),
                },
            )?;
        }
        // Before `fchmodat2` (Linux 6.6) no call changes the permissions by a descriptor that only names the file
        // (`O_PATH`).
        let name = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        rustix::fs::chmod(name, missing.mode).map_err(failed)
    }

    /// The directory of the socket's file.
    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// Locks the directory, until the descriptor is closed.
    fn lock_folder(&self) -> Result<OwnedFd, BindError> {
        let failed = |error: Errno| BindError::Io {
            listen: Listen::Unix(self.clone()),
            error: error.into(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(self.folder(), flags, Mode::empty()).map_err(failed)?;
        let mut tries = LOCK_WITHIN.as_millis() / LOCK_AGAIN.as_millis();
        loop {
            match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(folder),
                Err(Errno::INTR) => {}
                // Another server holds the lock only briefly. A different program may hold it for ever, so the wait has
                // a bound.
                Err(Errno::WOULDBLOCK) if tries > 0 => {
                    tries -= 1;
                    let again = LOCK_AGAIN.try_into().expect("is short");
                    // This poll is only a pause. A signal merely makes the pause shorter.
                    let _ = rustix::event::poll(&mut [], Some(&again));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(BindError::FolderLocked(Listen::Unix(self.clone())));
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Removes the socket of a server that is gone.
    fn make_way(&self) -> Result<(), BindError> {
        let listen = || Listen::Unix(self.clone());
        let failed = |error: io::Error| BindError::Io {
            listen: listen(),
            error,
        };
        let file = match std::fs::symlink_metadata(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if !file.file_type().is_socket() {
            return Err(BindError::NotASocket(listen()));
        }
        match answers(&self.path) {
            Ok(true) => Err(BindError::InUse(listen())),
            Ok(false) => std::fs::remove_file(&self.path).map_err(failed),
            Err(error) => Err(failed(error)),
        }
    }
}

/// A unix socket on which the server listens. Dropping this value removes the socket's file, unless another file has
/// replaced it.
#[derive(Debug)]
pub(super) struct BoundFile {
    pub listener: std::os::unix::net::UnixListener,
    path: PathBuf,
    /// Device and inode number of the socket's file.
    file: (u64, u64),
}

impl Drop for BoundFile {
    fn drop(&mut self) {
        remove(&self.path, self.file);
    }
}

/// Removes a socket's file, given by device and inode number, unless another file has replaced it.
fn remove(path: &Path, file: (u64, u64)) {
    if let Ok(found) = std::fs::symlink_metadata(path)
        && (found.dev(), found.ino()) == file
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!("cannot remove {}: {error}", path.shown());
    }
}

/// Attributes that a socket's file still has to get.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// Group to set; `None` if the file has the right group.
    group: Option<Gid>,
    mode: Mode,
}

/// Returns true if the process may give its own files to a group (chown(2)).
fn may_give_to(group: Gid) -> bool {
    getegid() == group
        || getgroups().is_ok_and(|groups| groups.contains(&group))
        || capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::CHOWN))
}

/// Returns true if a server listens on a socket.
fn answers(path: &Path) -> io::Result<bool> {
    // If the server's queue of waiting clients is full, a blocking connect would wait.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Listens on a unix socket whose file has no more permissions than `mode`.
fn listen(path: &Path, mode: Mode) -> io::Result<std::os::unix::net::UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the permissions of the socket, less the process's mask (unix(7)).
    rustix::fs::fchmod(socket.as_fd(), mode)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests;
