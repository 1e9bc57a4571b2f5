//! Loop devices: a file as a block device, for file systems and whatever else wants one.
//!
//! Linux schedules a loop device's requests like those of any block device. It reads ahead and
//! splits large requests. [`attach`] sets the device up so that the server sees the requests of the
//! programs:
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
//! Read-ahead is the size of the requests of a program that reads a file from its beginning to its
//! end through the page cache: 128 KiB on a disk as Linux ships.
//!
//! Settings of a loop device outlive its file. [`LoopDevice::reset`] undoes them.
//! `discard_max_bytes` is left alone, since it takes no other value once it is 0 (seen with Linux
//! 6.18). The file itself says whether its disk can discard.

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

/// How a loop device is to be set up.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Its logical block: 512 to 4096 bytes, a power of two.
    pub block_bytes: u32,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// How far the kernel reads ahead, in bytes; rounded up to whole KiB. 0: not at all.
    pub read_ahead_bytes: u64,
    /// The largest request, in bytes.
    pub max_request_bytes: u32,
}

/// Why there is no loop device.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot {what}: {error}")]
pub struct LoopError {
    pub path: PathBuf,
    /// What did not succeed.
    pub what: String,
    pub error: io::Error,
}

/// A loop device of this machine, with the file that it had when it was found or attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    number: u32,
    /// The kernel's count of media changes, from `/sys/block/loopN/diskseq`. It grows with each file
    /// that a loop device is given. `None` before Linux 5.15.
    sequence: Option<u64>,
}

/// What a block device is in use for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum User {
    /// A file system on it is mounted here.
    Mounted(PathBuf),
    /// The kernel swaps to it.
    Swap,
    /// Another block device is made of it.
    Holder(String),
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Who mounts chooses the name.
            User::Mounted(at) => write!(f, "mounted on {}", one_line(&at.to_string_lossy())),
            User::Swap => write!(f, "in use for swapping"),
            User::Holder(name) => write!(f, "part of {name}"),
        }
    }
}

/// Others may take the same free device first; so often that is tried.
const TRIES: u32 = 16;

/// A device whose file was taken away keeps it for as long as somebody has it open; so long that is
/// waited for, in steps.
const CLEARING: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(10);

/// Makes a block device of a file.
///
/// # Errors
///
/// If the machine has no loop devices, does not permit it (it takes root), or refuses a setting;
/// nothing is left behind then.
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
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && tries < TRIES => {}
            Err(error) => return Err(failed(&device.path(), "give it a file")(error)),
        }
    };
    if let Err(error) = device.set_up(settings) {
        // What failed first counts.
        let _ = device.detach();
        return Err(error);
    }
    Ok(device)
}

/// The loop devices whose files lie at or below a path, whether or not these can still be read.
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
        // Last: the kernel sets it anew whenever it changes a limit.
        let read_ahead = settings.read_ahead_bytes.div_ceil(1024);
        set("read_ahead_kb", &read_ahead.to_string())
    }

    /// What it is in use for, as far as this process sees: another mount namespace may have it
    /// mounted too.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn users(&self) -> io::Result<Vec<User>> {
        let mut users = Vec::new();
        let mut names = vec![format!("loop{}", self.number)];
        // Its partitions are below it, named after it.
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
                // By name too: btrfs numbers its mounts itself.
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
        // Zero stands for what the kernel takes by itself.
        try_set("max_sectors_kb", "0");
        try_set("rotational", "0");
    }

    /// Resets the number of requests to that of the device. The kernel ignores a change to the
    /// value that it shows, even if the true value differs; hence two changes.
    fn reset_depth(&self) {
        for requests in ["127", "128"] {
            if let Err(error) = self.set("nr_requests", requests) {
                tracing::debug!("{}: nr_requests stays: {error}", self.path().shown());
            }
        }
    }

    /// Writes back what the kernel has cached of the device.
    ///
    /// # Errors
    ///
    /// If a write fails.
    pub fn flush(&self) -> io::Result<()> {
        File::open(self.path())?.sync_all()
    }

    /// Detaches the device's file. Returns false while somebody has the device open: the kernel
    /// detaches the file when the device is closed. Another user's file stays attached.
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
        // While the device is open here, nobody can give the device another file.
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
            if waited >= CLEARING {
                return Ok(false);
            }
            std::thread::sleep(STEP);
            waited += STEP;
        }
        Ok(true)
    }
}
