//! Prepares the device of a disk from the disk's configuration.

use super::assumed_drive::{assumed, build, error_at, known};
use super::config::{Backend, DEVICE_DEPTH, DiskConfig, Emulated};
use headtime_disk::profile::{Profile, Reference};
use headtime_engine::EngineSpec;
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_sched::{Slices, Spec};
use headtime_serve::device::Device;
use headtime_serve::disk::{self, Addresses, MemberOptions};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::faulty::Faulty;
use headtime_serve::file;
use headtime_serve::header::Header;
use headtime_serve::null::Null;
use headtime_stack::{Known, LogSettings, changed, drives, with_firmware};
use headtime_units::{Bytes, Sectors};
use std::sync::Arc;

/// A disk, with all files read that its configuration names.
#[derive(Debug)]
pub struct PreparedDisk {
    /// Configuration of the disk.
    pub config: DiskConfig,
    /// Knowledge of the drive for schedulers.
    pub known: Arc<Known>,
    /// Profile of the emulated drive, if there is one.
    pub profile: Option<Profile>,
    /// Options of the engine.
    pub engine: EngineSpec,
}

/// Size of a null device's sector, in bytes.
const NULL_SECTOR_BYTES: u64 = 512;

/// Reads the files that the configuration of a disk names.
///
/// # Errors
///
/// If a file cannot be read, is wrong, or does not fit the others.
pub(super) fn prepare(config: &DiskConfig) -> Result<PreparedDisk, Fault> {
    let profile = match &config.backend {
        Backend::Emulated(emulated) => Some(drive(config, emulated)?),
        Backend::Device { .. } | Backend::Null { .. } => None,
    };
    let most = profile.as_ref().map_or(256, |profile| profile.queue.depth);
    let depth = config.depth.unwrap_or(match &profile {
        Some(_) => most,
        None => DEVICE_DEPTH,
    });
    if depth > most {
        let problem = format!("{depth}: allowed is 1 to {most}, as many as the drive takes");
        return Err(config.error("depth", problem));
    }
    let mut known = known(config, profile.as_ref())?;
    let believed = &config.stack.believed;
    if profile.is_none() && believed.belief.is_none() && believed.curve.is_none() {
        known = known.assuming(assumed(device_bytes(config)));
    }
    let engine = EngineSpec {
        depth,
        ..config.stack.engine.clone()
    };
    // Errors are reported before a device is opened. The reader of the file does not know a depth that is the device's own.
    (engine.gate.build(&engine.config(512)))
        .map_err(|error| config.error("gate", error.problem.to_string()))?;
    let _ = build(&known, &config.stack.scheduler, &engine)
        .map_err(|problem| config.error("scheduler", problem))?;
    Ok(PreparedDisk {
        config: config.clone(),
        known: Arc::new(known),
        profile,
        engine,
    })
}

/// Size of a device or of the null device, in bytes. 0 if the device cannot be opened.
fn device_bytes(config: &DiskConfig) -> u64 {
    match &config.backend {
        Backend::Null { size } => size.0,
        Backend::Device { path, size, .. } => {
            let mut options = file::FileOptions::new(path);
            (options.read_only, options.force) = (true, true);
            let found = || file::look(&options).map(|addresses| addresses.bytes());
            size.map_or_else(|| found().unwrap_or_default(), |size| size.0)
        }
        Backend::Emulated(_) => 0,
    }
}

/// Profile of the emulated drive.
fn drive(config: &DiskConfig, emulated: &Emulated) -> Result<Profile, Fault> {
    let (name, simulated) = (&emulated.profile, &emulated.simulated);
    let profile = drives::open(name).map_err(|fault| error_at(config, "emulate", fault))?;
    let profile = changed(&profile, &simulated.overrides, simulated.noise, name)
        .map_err(|fault| error_at(config, "override", fault))?;
    let profile = with_firmware(&profile, simulated.firmware)
        .map_err(|fault| error_at(config, "firmware", fault))?;
    let sector_bytes = profile.geometry.sector_bytes;
    if sector_bytes < 512 {
        let problem =
            format!("{name} has sectors of {sector_bytes}B, and a served disk 512B or more");
        return Err(config.error("emulate", problem));
    }
    let capacity = profile.geometry.capacity.bytes(sector_bytes);
    if let Some(Bytes(size)) = emulated.size {
        if size > capacity {
            let problem = format!(
                "{} is more than the {} of {name}",
                Bytes(size),
                Bytes(capacity)
            );
            return Err(config.error("size", problem));
        }
        if !size.is_multiple_of(u64::from(sector_bytes)) {
            let problem = format!("allowed is a multiple of {name}'s sectors of {sector_bytes}B");
            return Err(config.error("size", problem));
        }
    }
    Ok(profile)
}

/// True if a disk cannot be opened since another server has the file.
pub(super) fn is_locked(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(file::OpenError::Locked { .. }))
        || matches!(
            error.downcast_ref(),
            Some(emulated::EmulateError::Locked { .. })
        )
}

impl PreparedDisk {
    /// Describes the device in words.
    pub fn backend(&self) -> String {
        match &self.config.backend {
            Backend::Emulated(emulated) => match &emulated.store {
                None => format!("{} in memory", emulated.profile),
                Some(path) => format!("{} in {}", emulated.profile, path.shown()),
            },
            Backend::Device { path, .. } => path.shown().to_string(),
            Backend::Null { .. } => "null".to_owned(),
        }
    }

    /// Warnings for people: an assumed curve, and settings that work against each other.
    pub fn warnings(&self) -> Vec<String> {
        let (name, scheduler) = (&self.config.name, &self.config.stack.scheduler);
        let (gate, depth) = (&self.engine.gate, self.engine.depth);
        let hidden = self.engine.hide_processes;
        let by_processes = matches!(scheduler.info().slices, Slices::ToProcesses(_));
        let assumed = self.known.assumed().filter(|_| scheduler.needs().curve);
        let assumed = assumed.map(|drive| {
            format!(
                "{scheduler} goes by the seeks of {}, assumed by the size of the disk; \
                 `headtime drive curve` learns those of this disk, for curve = \"FILE\"",
                drive.name
            )
        });
        // Other gates order classes and programs at any depth.
        let is_idle = depth == 1 && matches!(gate.info().name, "rsd" | "head-time");
        let gate = is_idle.then(|| {
            format!("gate {gate} has nothing to hold back at depth 1; give a larger depth, or leave the gate out")
        });
        let unordered = (depth == 1 && scheduler.info().name == "noop").then(|| {
            "noop at depth 1 keeps the order of arrival: neither the scheduler nor the drive \
             orders; give a larger depth, or another scheduler"
                .to_owned()
        });
        let processes = (by_processes && hidden).then(|| {
            format!(
                "{scheduler} goes by processes, and hide_processes hides them; leave the key out"
            )
        });
        let predicts = (depth > 2 && scheduler.needs().positioning).then(|| {
            format!(
                "{scheduler} predicts where the head is, and at depth {depth} the drive orders the commands itself, so the \
                 disk serves about as with noop; give depth = 1 or 2"
            )
        });
        let all = [assumed, gate, unordered, processes, predicts];
        let all = all.into_iter().flatten();
        all.map(|warning| format!("disk {name}: {warning}"))
            .collect()
    }

    /// Returns all bytes of the device that would be opened or made. Opens nothing for writing. With `force` the device may be in use.
    ///
    /// # Errors
    ///
    /// If the device is not as the configuration requires.
    pub fn look(&self, force: bool) -> Result<Addresses, Fault> {
        let whole = |bytes| Addresses::whole(bytes, self.sector_bytes());
        match &self.config.backend {
            Backend::Null { size } => Ok(whole(size.0)),
            Backend::Emulated(emulated) => emulated::look(&self.drive_options(emulated))
                .map(whole)
                .map_err(|error| self.refused(error.to_string(), is_locked(&error))),
            Backend::Device { .. } => {
                let options = self.file_options(force).expect("it is a device");
                file::look(&options)
                    .map_err(|error| self.refused(error.to_string(), is_locked(&error)))
            }
        }
    }

    /// Fault for a file that cannot be opened. `is_locked`: another server has the file.
    pub(super) fn refused(&self, problem: String, is_locked: bool) -> Fault {
        let fault = self.config.error(self.device_key(), problem);
        match is_locked {
            true => Fault::InUse(fault.to_string()),
            false => fault,
        }
    }

    fn drive_options(&self, emulated: &Emulated) -> emulated::EmulatedOptions {
        let profile = self.profile.clone().expect("an emulated drive has one");
        let store = match &emulated.store {
            None => StoreSpec::Memory,
            Some(path) => StoreSpec::File(path.clone()),
        };
        let mut options = emulated::EmulatedOptions::new(profile, store);
        options.size = emulated.size.map(|size| size.0);
        options.create = self.config.create;
        options.seed = emulated.seed;
        options
    }

    /// Size in bytes of a sector of an emulated drive or the null device.
    fn sector_bytes(&self) -> u32 {
        let profile = self.profile.as_ref();
        profile.map_or(NULL_SECTOR_BYTES as u32, |profile| {
            profile.geometry.sector_bytes
        })
    }

    /// Options of the disk's file, if the disk is a file or a block device. `forced`: the file is taken even if it is in use.
    pub fn file_options(&self, forced: bool) -> Option<file::FileOptions> {
        match &self.config.backend {
            Backend::Device {
                path,
                direct,
                force,
                size,
                io_priority,
            } => {
                let mut options = file::FileOptions::new(path);
                options.read_only = self.config.read_only;
                options.direct = *direct;
                options.force = *force || forced;
                options.size = size.map(|size| size.0);
                options.create = self.config.create;
                options.depth = self.engine.depth;
                options.io_priority = *io_priority;
                options.member = self.config.is_member();
                Some(options)
            }
            _ => None,
        }
    }

    /// Scheduler of the member, and the drive to estimate by. A device that knows its arm's position needs no estimate.
    pub(super) fn member_options(&self) -> Result<MemberOptions, Fault> {
        let scheduler = &self.config.stack.scheduler;
        let build = self.build(scheduler);
        let build = build.map_err(|problem| self.config.error("scheduler", problem))?;
        Ok(MemberOptions {
            scheduler: (scheduler.to_string(), build),
            estimate: self.known.belief().cloned(),
        })
    }

    /// Settings of a log, for rebuilding the engine in a replay. The settings also serve schedulers that are swapped in.
    pub(super) fn log_settings(&self) -> Vec<(String, String)> {
        let scheduler = self.config.stack.scheduler.to_string();
        // Only the device's thread knows the device's sectors.
        let mut settings = LogSettings::new(&scheduler, self.engine.clone(), 512);
        settings.curve = self.known.curve().as_deref().cloned();
        settings.belief = self
            .known
            .belief()
            .map(|belief| Reference::of(belief).to_string());
        let mut others = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("disk", self.config.name.clone()),
            ("drive", self.backend()),
        ];
        if let Backend::Emulated(emulated) = &self.config.backend {
            others.push(("seed", emulated.seed.to_string()));
            others.push(("noise", emulated.simulated.noise.to_string()));
            others.push(("firmware", emulated.simulated.firmware.name().to_owned()));
        }
        let others = others.into_iter();
        settings.others = others.map(|(key, value)| (key.to_owned(), value)).collect();
        settings.to_settings()
    }

    /// Returns a function that opens the device. The disk's thread calls it.
    pub(super) fn opener(&self, force: bool) -> Opener {
        match &self.config.backend {
            Backend::Null { size } => {
                let sectors = Sectors::new(size.0 / NULL_SECTOR_BYTES);
                let depth = self.engine.depth;
                Box::new(move || Ok(Opened::of(Null::new(sectors, depth))))
            }
            Backend::Device { .. } => {
                let file = self.file_options(force).expect("it is a device");
                let faults = self.config.faults;
                Box::new(move || {
                    let file = file::open(&file)?;
                    let header = file.header().cloned();
                    let device = match faults {
                        true => Opened::of(Faulty::new(file, Arc::default())),
                        false => Opened::of(file),
                    };
                    Ok(Opened { header, ..device })
                })
            }
            Backend::Emulated(emulated) => {
                let drive = self.drive_options(emulated);
                Box::new(move || Ok(Opened::of(emulated::open(drive)?)))
            }
        }
    }

    /// Key of the configuration that names the device.
    pub(super) fn device_key(&self) -> &'static str {
        match &self.config.backend {
            Backend::Emulated(_) => "store",
            Backend::Device { .. } | Backend::Null { .. } => "device",
        }
    }

    /// Returns a function that builds another scheduler of the disk.
    ///
    /// # Errors
    ///
    /// If the scheduler needs to know the drive and the drive is unknown.
    pub fn build(&self, scheduler: &Spec) -> Result<disk::BuildScheduler, String> {
        build(&self.known, scheduler, &self.engine)
    }

    /// Returns a function that builds schedulers from texts while the disk runs.
    pub fn parser(&self) -> Arc<headtime_serve::http::ParseScheduler> {
        let (known, engine) = (Arc::clone(&self.known), self.engine.clone());
        Arc::new(move |text: &str| {
            let spec = super::config::scheduler(text)?;
            let build: disk::BuildScheduler = build(&known, &spec, &engine)?;
            Ok((spec.to_string(), build))
        })
    }
}

/// A device, and the header of an array's disk if the device has one.
pub(super) struct Opened {
    pub device: Box<dyn Device>,
    pub header: Option<Header>,
}

impl Opened {
    fn of(device: impl Device + 'static) -> Opened {
        Opened {
            device: Box::new(device),
            header: None,
        }
    }
}

/// Opens a device.
pub(super) type Opener = Box<dyn FnOnce() -> Result<Opened, OpenFailure> + Send>;

/// Error of opening a device.
pub(super) type OpenFailure = Box<dyn std::error::Error + Send + Sync>;
