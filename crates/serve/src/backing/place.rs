//! Finds the folder in which a file is made.

use super::error::MakeError;
use headtime_linux::shown::PathShown as _;
use rustix::fs::{
    Access, AtFlags, FsWord, Mode, OFlags, PROC_SUPER_MAGIC, accessat, fstat, fstatfs, fsync, open,
    readlink, readlinkat, stat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folders under which no file is made. Otherwise a mistyped device name would create a file there.
const FORBIDDEN: [&str; 3] = ["/dev", "/proc", "/sys"];

/// linux/magic.h, which rustix does not have.
const SYSFS_MAGIC: FsWord = 0x6265_6572;
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// A folder in which a file may be made, and the file's name in the folder. The value refers to the same folder even if
/// the folder's path changes.
pub(crate) struct Place {
    pub path: PathBuf,
    pub name: OsString,
    /// Handle of the folder (`O_PATH`), for looking up names but not for listing them.
    pub folder: OwnedFd,
    folder_path: PathBuf,
}

impl Place {
    /// Returns the place in which a file would be made.
    ///
    /// # Errors
    ///
    /// If no file can or may be made there.
    pub fn of(path: &Path) -> Result<Place, MakeError> {
        let (folder_path, name) = split(path).ok_or_else(|| MakeError::Name {
            path: path.to_owned(),
        })?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            open(folder_path, flags, Mode::empty()).map_err(|errno| MakeError::Folder {
                folder: folder_path.to_owned(),
                error: errno.into(),
            })?;
        let place = Place {
            path: path.to_owned(),
            name: name.to_owned(),
            folder,
            folder_path: folder_path.to_owned(),
        };
        place.refuse_forbidden()?;
        match readlinkat(&place.folder, &place.name, Vec::new()) {
            Ok(to) => Err(MakeError::Link {
                path: path.to_owned(),
                to: PathBuf::from(OsStr::from_bytes(to.as_bytes())),
            }),
            Err(_) => Ok(place),
        }
    }

    fn refuse_forbidden(&self) -> Result<(), MakeError> {
        let real = self.real_folder();
        let Some(root) = forbidden(&real, &self.folder) else {
            return Ok(());
        };
        Err(MakeError::Forbidden {
            path: self.path.clone(),
            root,
            folder: (real != self.folder_path).then_some(real),
        })
    }

    /// Returns the path of the folder without symbolic links.
    fn real_folder(&self) -> PathBuf {
        let link = format!("/proc/self/fd/{}", self.folder.as_raw_fd());
        match readlink(link, Vec::new()) {
            Ok(real) => PathBuf::from(OsStr::from_bytes(real.as_bytes())),
            Err(_) => {
                let path = &self.folder_path;
                fs::canonicalize(path).unwrap_or_else(|_| path.clone())
            }
        }
    }

    /// Checks that permissions let this process make files in the folder.
    ///
    /// # Errors
    ///
    /// If permissions deny it.
    pub fn may_write(&self) -> Result<(), MakeError> {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        accessat(&self.folder, ".", access, AtFlags::EACCESS).map_err(|errno| MakeError::Folder {
            folder: self.folder_path.clone(),
            error: errno.into(),
        })
    }
}

/// Syncs the name of a new file, so that the file still has the name after a crash of the machine.
///
/// # Errors
///
/// If the folder cannot be opened or synced.
pub(crate) fn keep_name(path: &Path) -> Result<(), MakeError> {
    let (folder, _) = split(path).ok_or_else(|| MakeError::Name {
        path: path.to_owned(),
    })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let synced = open(folder, flags, Mode::empty()).and_then(fsync);
    synced.map_err(|errno| MakeError::Folder {
        folder: folder.to_owned(),
        error: errno.into(),
    })
}

/// Syncs the name of an existing file, like [`keep_name`]. A server may have made the file and been killed before it
/// could sync the name. A failure is logged and does not stop the server.
pub(crate) fn keep_found_name(path: &Path) {
    let real = fs::canonicalize(path);
    if let Err(error) = keep_name(real.as_deref().unwrap_or(path)) {
        let path = path.shown();
        tracing::warn!("{path}: may lose its name if the machine crashes: {error}");
    }
}

/// Checks that a missing file may be made which the user surely wants, such as a log. Unlike a disk's file, the file
/// may be the target of symbolic links.
///
/// # Errors
///
/// If the file would be under `/dev`, `/proc` or `/sys`, or if its folder cannot be opened.
pub fn may_make(path: &Path) -> Result<(), MakeError> {
    let mut path = path.to_owned();
    // The kernel follows at most 40 links.
    for _ in 0..40 {
        let to = match Place::of(&path) {
            Err(MakeError::Link { to, .. }) => to,
            other => return other.map(drop),
        };
        let folder = split(&path).map_or(Path::new("."), |(folder, _)| folder);
        path = folder.join(to);
    }
    Err(MakeError::Io {
        path,
        doing: "following links",
        error: Errno::LOOP.into(),
    })
}

/// Splits a path into folder and file name as the kernel does. `Path` would ignore a last `/` or `.`, which make the
/// path a folder's.
fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    let bytes = path.as_os_str().as_bytes();
    let (folder, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&b"/"[..], &bytes[1..]),
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (&b"."[..], bytes),
    };
    let is_name = !matches!(name, b"" | b"." | b"..");
    is_name.then(|| {
        (
            Path::new(OsStr::from_bytes(folder)),
            OsStr::from_bytes(name),
        )
    })
}

/// Returns the forbidden folder that contains `folder`, if there is one.
fn forbidden(real: &Path, folder: &OwnedFd) -> Option<&'static str> {
    let root = FORBIDDEN.into_iter().find(|root| real.starts_with(root));
    if root.is_some() {
        return root;
    }
    // The forbidden file systems may be mounted at other places as well.
    match fstatfs(folder).ok()?.f_type {
        PROC_SUPER_MAGIC => Some("/proc"),
        SYSFS_MAGIC => Some("/sys"),
        // The kernel reports devtmpfs as tmpfs.
        TMPFS_MAGIC => {
            let device = fstat(folder).ok()?.st_dev;
            let is_dev = stat("/dev").is_ok_and(|dev| dev.st_dev == device);
            let is_root = stat("/").is_ok_and(|root| root.st_dev == device);
            (is_dev && !is_root).then_some("/dev")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_splits_as_the_kernel_splits_it() {
        for (path, parts) in [
            ("a", Some((".", "a"))),
            ("/a", Some(("/", "a"))),
            ("a/b.c", Some(("a", "b.c"))),
            ("/a//b", Some(("/a/", "b"))),
            ("../a", Some(("..", "a"))),
            ("a/", None),
            ("a/.", None),
            ("a/..", None),
            ("..", None),
            ("/", None),
            ("", None),
        ] {
            let parts = parts.map(|(folder, name)| (Path::new(folder), OsStr::new(name)));
            assert_eq!(split(Path::new(path)), parts, "{path:?}");
        }
    }
}
