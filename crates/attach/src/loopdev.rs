//! Loop devices: a file as a block device, for file systems and other users.
//!
//! Linux schedules a loop device's requests like other block devices' requests. Linux reads ahead and splits large requests. [`attach`] sets
//! the device up so that the server sees the requests of the programs:
//!
//! | setting | value | why |
//! |---|---|---|
//! | direct I/O | on | no second page cache, and as many requests in flight as there are |
//! | logical block | the disk's sector | |
//! | `scheduler` | `none` | there is one below |
//! | `max_sectors_kb` | 1024 | the largest request of FUSE, which would else be split further down |
//! | `nr_requests` | 128 | what the device has; an earlier, lower value outlives the file |
//! | `rotational` | 1 | file systems and schedulers lay out and order for a disk with an arm |
//! | `read_ahead_kb` | as asked | the kernel derives up to 2560 on its own, see below |
//!
//! If a program reads a file sequentially through the page cache, its requests are as large as the read-ahead. A disk under Linux has a
//! read-ahead of 128 KiB by default.
//!
//! Settings of a loop device outlive its file. [`LoopDevice::reset`] undoes them. `discard_max_bytes` is left alone, since it takes no
//! other value once it is 0 (seen with Linux 6.18). The file itself says if its disk can discard.

mod ioctl;

use headtime_linux::mounts;
use headtime_linux::shown::{PathShown as _, one_line};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings of a loop device.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of the logical block: 512 to 4096, a power of two.
    pub block_bytes: u32,
    /// True if the device is read-only.
    pub read_only: bool,
    /// Read-ahead of the kernel in bytes, rounded up to whole KiB. 0 turns read-ahead off.
    pub read_ahead_bytes: u64,
    /// Bytes of the largest request.
    pub max_request_bytes: u32,
}

/// Reason why a loop device cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot {what}: {error}")]
pub struct LoopError {
    pub path: PathBuf,
    /// The step that failed.
    pub what: String,
    pub error: io::Error,
}

/// Loop device of this machine, with the file that the device had when it was found or attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    number: u32,
    /// The kernel's count of media changes, from `/sys/block/loopN/diskseq`. The count grows with each file
    /// that a loop device is given. `None` before Linux 5.15.
    sequence: Option<u64>,
}

/// Use of a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum User {
    /// A file system on the device is mounted here.
    Mounted(PathBuf),
    /// The kernel swaps to the device.
    Swap,
    /// Another block device uses the device.
    Holder(String),
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A mounting user chooses the name, so it may have any characters.
            User::Mounted(at) => write!(f, "mounted on {}", one_line(&at.to_string_lossy())),
            User::Swap => write!(f, "in use for swapping"),
            User::Holder(name) => write!(f, "part of {name}"),
        }
    }
}

/// Attempts to get a free device, since another process may take the same one first.
const TRIES_MAX: u32 = 16;

/// Longest wait until a device has lost its file, in steps of [`CLEARING_STEP`]. The device keeps the file as long as any process has the
/// device open.
const CLEARING_MAX: Duration = Duration::from_secs(2);
const CLEARING_STEP: Duration = Duration::from_millis(10);

/// Makes a block device of a file.
///
/// # Errors
///
/// If the machine has no loop devices, does not permit their use (which needs root), or refuses a setting. The device is then detached
/// again.
pub fn attach(file: &Path, settings: &Settings) -> Result<LoopDevice, LoopError> {
    let failed = |path: &Path, what: &str| {
        let (path, what) = (path.to_owned(), what.to_owned());
        move |error| LoopError { path, what, error }
    };
    let open = |path: &Path| {
        OpenOptions::new()
            .read(true)
            .write(!settings.read_only)
            .open(path)
            .map_err(failed(path, "open"))
    };
    let backing = open(file)?;
    let control = Path::new("/dev/loop-control");
    let control = File::open(control).map_err(failed(control, "open"))?;
    let mut tries = 0;
    let device = loop {
        let number = ioctl::free(control.as_fd()).map_err(failed(
            Path::new("/dev/loop-control"),
            "get a free loop device",
        ))?;
        let mut device = LoopDevice {
            number,
            sequence: None,
        };
        let node = open(&device.path())?;
        tries += 1;
        match ioctl::configure(
            node.as_fd(),
            backing.as_fd(),
            settings.block_bytes,
            settings.read_only,
            file.as_os_str().as_bytes(),
        ) {
            Ok(()) => {
                device.sequence = device.current_sequence();
                break device;
            }
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && tries < TRIES_MAX => {}
            Err(error) => return Err(failed(&device.path(), "give it a file")(error)),
        }
    };
    if let Err(error) = device.set_up(settings) {
        // The first error is the one to report.
        let _ = device.detach();
        return Err(error);
    }
    Ok(device)
}

/// Loop devices whose files lie at or below a path, even if the files cannot be read any more.
///
/// # Errors
///
/// If `/sys` cannot be read.
pub fn backed_by(path: &Path) -> io::Result<Vec<LoopDevice>> {
    let mut devices = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("loop"));
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            continue;
        };
        let mut device = LoopDevice {
            number,
            sequence: None,
        };
        device.sequence = device.current_sequence();
        if device.file().is_some_and(|file| mounts::below(&file, path)) {
            devices.push(device);
        }
    }
    devices.sort_unstable_by_key(|device| device.number);
    Ok(devices)
}

impl LoopDevice {
    /// `/dev/loopN`
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/loop{}", self.number))
    }

    fn sysfs(&self) -> PathBuf {
        PathBuf::from(format!("/sys/block/loop{}", self.number))
    }

    fn current_sequence(&self) -> Option<u64> {
        let text = fs::read_to_string(self.sysfs().join("diskseq")).ok()?;
        text.trim().parse().ok()
    }

    /// The device's file. `None` if the device has no file any more, or another user's file.
    pub fn file(&self) -> Option<PathBuf> {
        if self.current_sequence() != self.sequence {
            return None;
        }
        let text = fs::read(self.sysfs().join("loop/backing_file")).ok()?;
        Some(mounts::unescape(text.strip_suffix(b"\n").unwrap_or(&text)))
    }

    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.sysfs().join("queue").join(name), value)
    }

    fn get(&self, name: &str) -> io::Result<u64> {
        let text = fs::read_to_string(self.sysfs().join("queue").join(name))?;
        text.trim().parse().map_err(io::Error::other)
    }

    fn set_up(&self, settings: &Settings) -> Result<(), LoopError> {
        let set = |name: &str, value: &str| {
            self.set(name, value).map_err(|error| LoopError {
                path: self.path(),
                what: format!("set {name} to {value}"),
                error,
            })
        };
        let direct = fs::read_to_string(self.sysfs().join("loop/dio"));
        if direct.is_ok_and(|direct| direct.trim() == "0") {
            return Err(LoopError {
                path: self.path(),
                what: "read and write its file directly".to_owned(),
                error: io::Error::other("the file does not allow it"),
            });
        }
        set("scheduler", "none")?;
        self.reset_depth();
        let most = self.get("max_hw_sectors_kb").unwrap_or(u64::MAX);
        let asked = u64::from(settings.max_request_bytes / 1024);
        set("max_sectors_kb", &asked.min(most).to_string())?;
        set("rotational", "1")?;
        // Read-ahead comes last, since the kernel resets it with each change of a limit.
        let read_ahead = settings.read_ahead_bytes.div_ceil(1024);
        set("read_ahead_kb", &read_ahead.to_string())
    }

    /// Uses of the device, as far as this process sees them. Another mount namespace may have the device mounted, too.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn users(&self) -> io::Result<Vec<User>> {
        let mut users = Vec::new();
        let mut names = vec![format!("loop{}", self.number)];
        // The directories of the partitions lie in the device's, and have its name as a prefix.
        for entry in fs::read_dir(self.sysfs())?.flatten() {
            if let Some(name) = entry.file_name().to_str()
                && name.starts_with(&names[0])
            {
                names.push(name.to_owned());
            }
        }
        let mounts = mounts::all()?;
        let swaps = fs::read("/proc/swaps").unwrap_or_default();
        let swaps: Vec<PathBuf> = swaps
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.split(|byte| *byte == b' ').next())
            .map(mounts::unescape)
            .collect();
        for name in names {
            let sysfs = Path::new("/sys/class/block").join(&name);
            let path = Path::new("/dev").join(&name);
            let number = fs::read_to_string(sysfs.join("dev")).unwrap_or_default();
            for mount in &mounts {
                let (major, minor) = mount.device;
                // Mounts are compared by name too, since btrfs gives its mounts numbers of its own.
                if format!("{major}:{minor}") == number.trim() || mount.source == path {
                    users.push(User::Mounted(mount.mountpoint.clone()));
                }
            }
            if swaps.contains(&path) {
                users.push(User::Swap);
            }
            for holder in fs::read_dir(sysfs.join("holders")).into_iter().flatten() {
                let name = holder?.file_name();
                users.push(User::Holder(name.to_string_lossy().into_owned()));
            }
        }
        Ok(users)
    }

    /// Undoes the settings of [`attach`] and others that outlive the device's file, for the next
    /// user of the device. A setting that the kernel refuses stays. A device that has another user's
    /// file stays as it is.
    pub fn reset(&self) {
        if self.file().is_none() {
            return;
        }
        let try_set = |name: &str, value: &str| {
            if let Err(error) = self.set(name, value) {
                tracing::debug!("{}: {name} stays: {error}", self.path().shown());
            }
        };
        try_set("scheduler", "none");
        self.reset_depth();
        // Zero stands for the kernel's default.
        try_set("max_sectors_kb", "0");
        try_set("rotational", "0");
    }

    /// Resets the number of requests to the device's own. The kernel ignores a change to the value that it shows, even if the true value
    /// differs. So the value is changed twice.
    fn reset_depth(&self) {
        for requests in ["127", "128"] {
            if let Err(error) = self.set("nr_requests", requests) {
                tracing::debug!("{}: nr_requests stays: {error}", self.path().shown());
            }
        }
    }

    /// Writes the kernel's cache of the device back.
    ///
    /// # Errors
    ///
    /// If a write fails.
    pub fn flush(&self) -> io::Result<()> {
        File::open(self.path())?.sync_all()
    }

    /// Detaches the device's file. Returns false while any process has the device open: the kernel detaches the file when the device is
    /// closed. Another user's file stays attached.
    ///
    /// # Errors
    ///
    /// If the kernel refuses. No error if the device has no file.
    #[allow(
        clippy::disallowed_methods,
        reason = "the kernel tells nobody when it is done"
    )]
    pub fn detach(&self) -> io::Result<bool> {
        let node = File::open(self.path())?;
        // While the device is open here, no process can give the device another file.
        if self.file().is_none() {
            return Ok(true);
        }
        match ioctl::clear(node.as_fd()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(true),
            Err(error) => return Err(error),
        }
        drop(node);
        let mut waited = Duration::ZERO;
        while self.file().is_some() {
            if waited >= CLEARING_MAX {
                return Ok(false);
            }
            std::thread::sleep(CLEARING_STEP);
            waited += CLEARING_STEP;
        }
        Ok(true)
    }
}
