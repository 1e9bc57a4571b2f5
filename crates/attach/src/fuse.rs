//! Shows a disk as a file through the kernel's FUSE. Any program can use the file, and a loop device can turn the file into a block device.
//! No kernel module is needed.
//!
//! [`mount`] mounts a directory with a file for each export, as long as the export's disk. Reads and writes bypass the page cache. So the
//! disk sees the requests of the program (or of the file system on the loop device), with as many in flight.
//!
//! | system call | request |
//! |---|---|
//! | `read` | read, rounded out to whole sectors; past the end, short |
//! | `write` | write; flagged FUA if `O_SYNC` or `O_DSYNC`; past the end `ENOSPC` |
//! | `write` of part of a sector | write; the disk first reads the sector, as one unit with the write |
//! | `fsync`, `fdatasync` | flush |
//! | `fallocate` with `PUNCH_HOLE` | discard, if discarded sectors read as zeroes; else zeroes are written; `EOPNOTSUPP` without discards |
//! | `fallocate` with `ZERO_RANGE` | zeroes are written |
//! | `lseek` with `SEEK_DATA`, `SEEK_HOLE` | none: answered from the device's allocation |
//! | `close` | none |
//! | opening with `O_TRUNC` | none, as with a block device |
//!
//! Unaligned writes are served, unlike with `O_DIRECT` on a block device. Every program gets direct I/O here, and few programs know it:
//! `cp` into a disk of 4096-byte sectors ends with an unaligned write.
//!
//! The kernel splits requests of more than 1 MiB. The kernel sends at most 128 requests at a time for which no system call waits (asynchronous and
//! read-ahead requests).
//!
//! # Threads
//!
//! One thread reads requests from the kernel and hands them to the disks. Each disk's thread answers. If a disk's queue is full, the
//! reading thread waits. Requests then stay with the kernel, also requests for other disks of the same mount.
//!
//! # The end
//!
//! [`Mounted::unmount`] refuses while files are open. If the server dies, requests in flight fail and the mount is dead (`ENOTCONN`) until
//! a user unmounts it ([`headtime_linux::mounts::unmount`]). Requests are not interrupted: a killed program ends when its request does.

mod filesystem;
mod submit;
mod table;

use filesystem::{Files, Gone};
pub use filesystem::{MAX_BACKGROUND, MAX_REQUEST_BYTES};
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use headtime_linux::mounts;
use headtime_linux::shown::PathShown as _;
use headtime_serve::disk::Export;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use table::Table;

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct Options {
    /// True if requests name their process to the disk. On a loop device this process is a worker of the kernel, which does not tell
    /// programs apart.
    pub processes: bool,
    /// True if other users may see the directory. The files still belong to the mounting user. Needs `user_allow_other` in `fuse.conf`,
    /// unless root mounts.
    pub allow_other: bool,
    /// Most requests with the disks at a time. The next request waits, and all later ones with it. 0 counts as 1.
    pub requests: u32,
}

impl Default for Options {
    /// Processes are named, other users are kept out, and 1024 requests may be with the disks. The kernel sends at most [`MAX_BACKGROUND`]
    /// requests for which no thread waits. Only more threads that each wait for a request could exceed the limit.
    fn default() -> Options {
        Options {
            processes: true,
            allow_other: false,
            requests: 1024,
        }
    }
}

/// Reason why exports cannot be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// A name cannot be a file's.
    #[error(
        "export {0:?} cannot be a file: a name is 1 to 255 bytes, without '/' and NUL, not '.' or '..'"
    )]
    Name(String),
    /// Two exports have one name.
    #[error("two exports are called {0:?}")]
    Twice(String),
    /// The directory is a mount point already.
    #[error("{0} is a mount point already")]
    Mounted(PathBuf),
    /// The directory is a mount point whose server has gone.
    #[error("{0} is a dead mount, whose server has gone; `headtime detach` clears it away")]
    Dead(PathBuf),
    /// The machine refuses.
    #[error("{mountpoint}: cannot mount: {error}")]
    Machine {
        mountpoint: PathBuf,
        error: io::Error,
    },
}

/// Mount of exports. When dropped, unmounts as [`Mounted::end`] does.
#[derive(Debug)]
pub struct Mounted {
    mountpoint: PathBuf,
    session: Option<BackgroundSession>,
    gone: Arc<Gone>,
}

/// Mounts a directory with a file for each export. `mountpoint` is a directory.
///
/// # Errors
///
/// If a name cannot be a file's, the directory is a mount point already, or the machine refuses. Without root, mounting needs
/// `fusermount3`.
pub fn mount(
    mountpoint: &Path,
    exports: Vec<Export>,
    options: &Options,
) -> Result<Mounted, MountError> {
    let mut names = BTreeSet::new();
    for Export { name, .. } in &exports {
        let fits = (1..=255).contains(&name.len()) && !name.contains(['/', '\0']);
        if !fits || name == "." || name == ".." {
            return Err(MountError::Name(name.clone()));
        }
        if !names.insert(name) {
            return Err(MountError::Twice(name.clone()));
        }
    }
    let machine = |error| MountError::Machine {
        mountpoint: mountpoint.to_owned(),
        error,
    };
    let mountpoint = match mountpoint.canonicalize() {
        Ok(path) => path,
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {
            return Err(MountError::Dead(mountpoint.to_owned()));
        }
        Err(error) => return Err(machine(error)),
    };
    match mounts::at(&mountpoint).map_err(machine)? {
        None => {}
        // The kernel may still know the directory of a dead mount.
        Some(mount) if mount.server().is_some_and(|server| !server.lives()) => {
            return Err(MountError::Dead(mountpoint));
        }
        Some(_) => return Err(MountError::Mounted(mountpoint)),
    }
    if !mountpoint.is_dir() {
        return Err(machine(io::Error::from_raw_os_error(libc::ENOTDIR)));
    }
    let since_1970 = clock_gettime(ClockId::Realtime);
    let gone = Arc::new(Gone::default());
    let files = Files {
        exports: exports.into_iter().map(Arc::new).collect(),
        table: Arc::new(Table::new(options.requests.max(1))),
        processes: options.processes,
        owner: (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        ),
        made: Duration::new(
            since_1970.tv_sec.max(0) as u64,
            since_1970.tv_nsec.clamp(0, 999_999_999) as u32,
        ),
        gone: Arc::clone(&gone),
    };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(mounts::source().map_err(machine)?),
        MountOption::Subtype(mounts::SUBTYPE.to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    if options.allow_other {
        config.acl = SessionACL::All;
    }
    let session = Session::new(files, &mountpoint, &config)
        .and_then(Session::spawn)
        .map_err(machine)?;
    Ok(Mounted {
        mountpoint,
        session: Some(session),
        gone,
    })
}

impl Mounted {
    /// Absolute path of the mount point.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Path of an export's file.
    pub fn file(&self, export: &str) -> PathBuf {
        self.mountpoint.join(export)
    }

    /// Returns true if the mount has ended and no file is open any more. Another process may have unmounted the directory.
    pub fn is_gone(&self) -> bool {
        self.gone.is.load(Ordering::SeqCst)
    }

    /// Waits until the mount has ended.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let gone = Arc::clone(&self.gone);
        async move {
            loop {
                let notified = gone.notify.notified();
                tokio::pin!(notified);
                notified.as_mut().enable();
                if gone.is.load(Ordering::SeqCst) {
                    return;
                }
                notified.await;
            }
        }
    }

    /// Unmounts.
    ///
    /// # Errors
    ///
    /// `EBUSY` if a file is open or a process has its working directory there. The directory then stays mounted.
    pub fn unmount(&mut self) -> io::Result<()> {
        if !self.is_gone() {
            mounts::unmount(&self.mountpoint, false)?;
        }
        // No file is open, so the session ends. The session's own handle finds the mount gone.
        let ended = self.session.take().map_or(Ok(()), BackgroundSession::join);
        match ended {
            // The session's last read usually reports that the device is gone. At this moment it may also report that the connection is
            // aborted.
            Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => Ok(()),
            ended => ended,
        }
    }

    /// Unmounts even if files are open. New programs do not find the directory any more. Open files are served as long as the process and
    /// the disks live. Returns true if no file was open.
    pub fn end(mut self) -> bool {
        self.finish()
    }

    fn finish(&mut self) -> bool {
        if self.unmount().is_ok() {
            return true;
        }
        if let Err(error) = mounts::unmount(&self.mountpoint, true) {
            tracing::warn!("{}: cannot unmount: {error}", self.mountpoint.shown());
        }
        // The session's handle would unmount by path again, and the path may be another mount's by then.
        std::mem::forget(self.session.take());
        false
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.session.is_some() {
            self.finish();
        }
    }
}
