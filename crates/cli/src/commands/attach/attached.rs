//! Exports of disks as files and as loop devices, from the mount to the unmount.

use crate::args::Attach;
use crate::live::disks::Running;
use crate::live::front::Front;
use headtime_attach::fuse::{self, Mounted};
use headtime_attach::loopdev::{self, LoopDevice, Settings};
use headtime_lab::fault::Fault;
use headtime_linux::mounts;
use headtime_linux::shown::PathShown as _;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two checks of devices in use.
const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// A mount, and the loop devices on its files.
pub(super) struct Attached {
    mounted: Mounted,
    files: Vec<(String, PathBuf, Option<LoopDevice>)>,
}

/// Refuses a directory that is not empty, since a mount would hide its content.
///
/// # Errors
///
/// If the directory is not empty or cannot be read. An existing mount is accepted here, since its content belongs to another file
/// system. [`fuse::mount`] refuses the mount.
pub(super) fn hides_nothing(mountpoint: &Path) -> Result<(), Fault> {
    let at = mountpoint.shown();
    let failed = |error: io::Error| Fault::File(format!("{at}: cannot mount: {error}"));
    let whole = mounts::canonical(mountpoint).map_err(failed)?;
    if mounts::at(&whole).map_err(failed)?.is_some() {
        return Ok(());
    }
    let Some(first) = fs::read_dir(&whole).map_err(failed)?.next() else {
        return Ok(());
    };
    let first = first.map_err(failed)?.file_name();
    Err(Fault::File(format!(
        "{at}: is not empty: `{}` and whatever else is there could not be seen while the disks are; \
         give an empty directory",
        Path::new(&first).shown()
    )))
}

impl Attached {
    /// Mounts the exports, and sets up loop devices if `args` ask for them.
    ///
    /// # Errors
    ///
    /// If something cannot be set up. Everything set up before is undone.
    pub fn begin(args: &Attach, running: &[Running]) -> Result<Attached, Fault> {
        // A store that was just made may lie in the directory, which is then not empty.
        hides_nothing(&args.mountpoint)?;
        let exports = running.iter().flat_map(|disk| {
            let read_ahead = args.read_ahead.unwrap_or(disk.prepared.read_ahead());
            let exports = disk.exports.clone().into_iter();
            exports.map(move |export| (export, read_ahead))
        });
        let (exports, read_ahead): (Vec<_>, Vec<_>) = exports.unzip();
        let options = fuse::Options {
            processes: !args.loop_devices,
            allow_other: args.allow_other,
            ..fuse::Options::default()
        };
        let mounted = fuse::mount(&args.mountpoint, exports.clone(), &options)
            .map_err(|error| Fault::File(error.to_string()))?;
        let mut attached = Attached {
            mounted,
            files: Vec::new(),
        };
        for (export, read_ahead) in exports.iter().zip(read_ahead) {
            let file = attached.mounted.file(&export.name);
            let device = match args.loop_devices {
                false => None,
                true => {
                    let geometry = export.disk.geometry();
                    let settings = Settings {
                        block_bytes: geometry.sector_bytes,
                        read_only: export.read_only || geometry.read_only,
                        read_ahead_bytes: read_ahead.0,
                        max_request_bytes: fuse::MAX_REQUEST_BYTES,
                    };
                    match loopdev::attach(&file, &settings) {
                        Ok(device) => Some(device),
                        Err(error) => {
                            attached.abandon_begun();
                            return Err(Fault::File(error.to_string()));
                        }
                    }
                }
            };
            attached.files.push((export.name.clone(), file, device));
        }
        Ok(attached)
    }

    /// Ends a mount that has only started and has no users.
    fn abandon_begun(self) {
        let devices = self.files.iter().filter_map(|(_, _, device)| *device);
        release(&devices.collect::<Vec<_>>());
        self.mounted.end();
    }

    /// Returns a line for each export: its name, its file, its loop device.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, file, device) in &self.files {
            let _ = write!(text, "{name} {}", file.shown());
            if let Some(device) = device {
                let _ = write!(text, " {}", device.path().shown());
            }
            text.push('\n');
        }
        text
    }

    /// Returns the front end for the server.
    pub fn front(self) -> Front {
        let devices: Vec<_> = self
            .files
            .iter()
            .filter_map(|(_, _, device)| *device)
            .collect();
        let mountpoint = self.mounted.mountpoint().to_owned();
        let gone = self.mounted.gone();
        let abandoned = devices.clone();
        // `abandon` must not wait for the thread in `end`, which holds this lock.
        let mounted = Arc::new(Mutex::new(self.mounted));
        Front {
            gone: Box::pin(gone),
            end: Box::new(move || end(&devices, &mounted)),
            abandon: Arc::new(move || {
                release(&abandoned);
                if let Err(error) = mounts::unmount(&mountpoint, true)
                    // This error means that nothing is mounted there any more.
                    && error.kind() != io::ErrorKind::InvalidInput
                {
                    tracing::warn!("{}: cannot unmount: {error}", mountpoint.shown());
                }
            }),
        }
    }
}

/// Undoes settings of loop devices, and detaches their files. A device in use is detached when its last user closes the device.
fn release(devices: &[LoopDevice]) {
    for device in devices {
        device.reset();
        if let Err(error) = device.detach() {
            tracing::warn!(
                "{}: cannot take its file away: {error}",
                device.path().shown()
            );
        }
    }
}

/// Waits until the devices and the mount are not in use, and then removes them.
fn end(devices: &[LoopDevice], mounted: &Mutex<Mounted>) -> Result<(), Fault> {
    let failed = |device: &LoopDevice| {
        let path = device.path();
        move |error: io::Error| Fault::File(format!("{}: {error}", path.shown()))
    };
    let mut worst = Ok(());
    for device in devices {
        let mut said = Vec::new();
        loop {
            let users = device.users().map_err(failed(device))?;
            if users.is_empty() {
                break;
            }
            if users != said {
                for user in &users {
                    tracing::warn!("waiting: {} is {user}", device.path().shown());
                }
                said = users;
            }
            pause();
        }
        // A failed flush is reported at the end. All other steps are done nevertheless.
        worst = worst.and(device.flush().map_err(failed(device)));
        device.reset();
        let mut said = false;
        while !device.detach().map_err(failed(device))? {
            if !said {
                tracing::warn!("waiting: {} is open", device.path().shown());
                said = true;
            }
            pause();
        }
    }
    let mut said = false;
    loop {
        let mut mounted = mounted.lock().unwrap_or_else(PoisonError::into_inner);
        match mounted.unmount() {
            Ok(()) => return worst,
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                if !said {
                    tracing::warn!(
                        "waiting: something is open in {}",
                        mounted.mountpoint().shown()
                    );
                    said = true;
                }
            }
            Err(error) => {
                let path = mounted.mountpoint().shown();
                return worst.and(Err(Fault::File(format!("{path}: cannot unmount: {error}"))));
            }
        }
        drop(mounted);
        pause();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the kernel tells nobody when a device or a file is closed"
)]
fn pause() {
    std::thread::sleep(CHECK_PERIOD);
}
