//! From a configuration to disks that run.

use super::arrays;
use super::config::{
    ArrayConfig, Backend, Config, DEVICE_DEPTH, DiskConfig, Emulated, ExportConfig,
};
use super::known::{build, error_at, known};
use super::log_file::{self, LogFile, OpenedLog};
use headtime_disk::profile::{Profile, Reference};
use headtime_engine::EngineSpec;
use headtime_host::HostSpec;
use headtime_lab::fault::Fault;
use headtime_linux::clock::Clock;
use headtime_linux::shown::PathShown as _;
use headtime_sched::Spec;
use headtime_serve::device::Device;
use headtime_serve::disk::{self, Disk, Export, MemberOptions, Options, StartError};
use headtime_serve::emulated::{self, StoreSpec};
use headtime_serve::faulty::Faulty;
use headtime_serve::file;
use headtime_serve::header::Header;
use headtime_serve::null::Null;
use headtime_serve::scrub::Scrubs;
use headtime_stack::{Known, LogSettings, changed, drives, with_firmware};
use headtime_units::{Bytes, Sectors};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A disk with everything read that its configuration names.
#[derive(Debug)]
pub struct PreparedDisk {
    /// Its configuration.
    pub config: DiskConfig,
    /// What its schedulers know of it.
    pub known: Arc<Known>,
    /// The drive that is emulated.
    pub profile: Option<Profile>,
    /// What its engine may do.
    pub engine: EngineSpec,
}

/// A disk or an array that can be started: all files that its configuration names are read.
#[derive(Debug)]
pub struct Prepared {
    /// The array, if there is one.
    pub array: Option<ArrayConfig>,
    /// The one disk, or all disks of the array in their order.
    pub members: Vec<PreparedDisk>,
}

/// A disk or an array that runs.
#[derive(Debug)]
pub struct Running {
    /// The disk.
    pub disk: Disk,
    /// Under which names it is seen.
    pub exports: Vec<Export>,
    /// What it was started from.
    pub prepared: Prepared,
    log: Option<OpenedLog>,
}

/// How disks are started.
#[derive(Clone, Debug)]
pub struct Starting {
    /// The time, the same for all.
    pub clock: Clock,
    /// Whether devices in use are taken nevertheless.
    pub force: bool,
    /// Where events and decisions go; with several disks, one file for each, `FILE.NAME`.
    pub log: Option<PathBuf>,
}

/// Bytes of a null device's sector.
const NULL_SECTOR_BYTES: u64 = 512;

/// Reads what the disks of a configuration name.
///
/// # Errors
///
/// If a file cannot be read, is wrong, or does not fit the others.
pub fn prepare(config: &Config) -> Result<Vec<Prepared>, Fault> {
    let mut disks = Vec::with_capacity(config.disks.len());
    for disk in &config.disks {
        disks.push(Some(prepare_one(disk)?));
    }
    let arrays = config.arrays.iter().map(|array| {
        let members = array.members.iter().filter_map(|disk| disks[*disk].take());
        let members: Vec<PreparedDisk> = members.collect();
        arrays::alike(array, &members)?;
        Ok(Prepared {
            array: Some(array.clone()),
            members,
        })
    });
    let arrays: Vec<Prepared> = arrays.collect::<Result<_, Fault>>()?;
    let alone = disks.into_iter().flatten().map(|disk| Prepared {
        array: None,
        members: vec![disk],
    });
    Ok(alone.chain(arrays).collect())
}

fn prepare_one(config: &DiskConfig) -> Result<PreparedDisk, Fault> {
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
    let known = known(config, profile.as_ref())?;
    let engine = EngineSpec {
        depth,
        ..config.stack.engine.clone()
    };
    // What is wrong shows before anything is opened. The depth may have been the device's, of which the reader of
    // the file does not know.
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

/// The drive that is emulated.
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

impl PreparedDisk {
    /// What is behind the disk, in words.
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

    /// Looks at what would be opened or made, without opening it for writing; its size in bytes. With
    /// `force` it may be in use.
    ///
    /// # Errors
    ///
    /// If it cannot be what it should.
    pub fn look(&self, force: bool) -> Result<u64, Fault> {
        match &self.config.backend {
            Backend::Null { size } => Ok(size.0),
            Backend::Emulated(emulated) => emulated::look(&self.drive_options(emulated))
                .map_err(|error| self.config.error("store", error.to_string())),
            Backend::Device { .. } => {
                let options = self.file_options(force).expect("it is a device");
                file::look(&options).map_err(|error| self.config.error("device", error.to_string()))
            }
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

    /// Bytes of a sector of an emulated drive or the null device.
    pub(super) fn sector_bytes(&self) -> u32 {
        let profile = self.profile.as_ref();
        profile.map_or(NULL_SECTOR_BYTES as u32, |profile| {
            profile.geometry.sector_bytes
        })
    }

    pub(super) fn file_options(&self, forced: bool) -> Option<file::FileOptions> {
        match &self.config.backend {
            Backend::Device {
                path,
                direct,
                force,
                size,
            } => {
                let mut options = file::FileOptions::new(path);
                options.read_only = self.config.read_only;
                options.direct = *direct;
                options.force = *force || forced;
                options.size = size.map(|size| size.0);
                options.create = self.config.create;
                options.depth = self.engine.depth;
                options.member = self.config.is_member();
                Some(options)
            }
            _ => None,
        }
    }

    /// The scheduler, and the drive to estimate by: a device that knows where its arm is does not need that.
    fn member_options(&self) -> Result<MemberOptions, Fault> {
        let scheduler = &self.config.stack.scheduler;
        let build = self.build(scheduler);
        let build = build.map_err(|problem| self.config.error("scheduler", problem))?;
        Ok(MemberOptions {
            scheduler: (scheduler.to_string(), build),
            estimate: self.known.belief().cloned(),
        })
    }

    /// What a log says of its engine, so that it can be made again, also with the schedulers that
    /// may still come; and where it is from.
    fn log_settings(&self) -> Vec<(String, String)> {
        let scheduler = self.config.stack.scheduler.to_string();
        // The device's sectors are known to its thread.
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
    fn opener(&self, how: &Starting) -> Opener {
        match &self.config.backend {
            Backend::Null { size } => {
                let sectors = Sectors::new(size.0 / NULL_SECTOR_BYTES);
                let depth = self.engine.depth;
                Box::new(move || Ok(Opened::of(Null::new(sectors, depth))))
            }
            Backend::Device { .. } => {
                let file = self.file_options(how.force).expect("it is a device");
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
}

/// A device, and the header of an array's disk if it has one.
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
pub(super) type Opener = Box<dyn FnOnce() -> Result<Opened, Unopened> + Send>;

/// Why there is no device.
pub(super) type Unopened = Box<dyn std::error::Error + Send + Sync>;

impl Prepared {
    /// The name of the disk or of the array.
    pub fn name(&self) -> &str {
        let one = &self.members[0].config.name;
        self.array.as_ref().map_or(one, |array| &array.name)
    }

    /// Under which names it is seen.
    pub fn exports(&self) -> &[ExportConfig] {
        let one = &self.members[0].config.exports;
        self.array.as_ref().map_or(one, |array| &array.exports)
    }

    /// The device, or the layout of the array, in words.
    pub fn backend(&self) -> String {
        match &self.array {
            None => self.members[0].backend(),
            Some(array) => arrays::backend(array),
        }
    }

    /// Default read-ahead of Linux on a loop device: 128 KiB, as on any disk. An array has at least two stripes.
    pub fn read_ahead(&self) -> Bytes {
        let usual = Bytes(128 << 10);
        let stripes = self.array.as_ref().map(|array| array.spec.read_ahead());
        stripes.map_or(usual, |stripes| {
            stripes.clamp(usual, HostSpec::READ_AHEAD_MAX)
        })
    }

    /// As [`PreparedDisk::look`], for the disk or all disks of the array.
    ///
    /// # Errors
    ///
    /// As [`PreparedDisk::look`], and if the disks do not make up the array.
    pub fn look(&self, force: bool) -> Result<u64, Fault> {
        match &self.array {
            None => self.members[0].look(force),
            Some(array) => arrays::look(array, &self.members, force),
        }
    }

    /// The scrubs of the disk that was started from it. An array has none, which they say.
    pub fn scrubs(&self, disk: &Disk) -> Scrubs {
        let first = &self.members[0];
        let belief = first.known.belief().cloned();
        Scrubs::new(
            disk.clone(),
            &self.backend(),
            belief,
            first.config.scrub.as_deref(),
        )
        .with_sole_writer(first.config.sole_writer)
    }

    fn options(&self, how: &Starting, log: Option<LogFile>) -> Result<Options, Fault> {
        let first = &self.members[0];
        let MemberOptions {
            scheduler,
            estimate,
        } = first.member_options()?;
        let mut options = Options::new(self.name(), how.clock, scheduler);
        options.engine = first.engine.clone();
        options.timeout = first.config.timeout;
        options.estimate = estimate;
        options.exports = u16::try_from(self.exports().len()).expect("there are not so many");
        if log.is_some() {
            let of_members = self.members.iter().map(PreparedDisk::log_settings);
            options.log_settings = LogSettings::of_members(&of_members.collect::<Vec<_>>());
            if let Some(array) = &self.array {
                let settings = arrays::log_settings(array);
                options.log_settings.splice(0..0, settings);
            }
        }
        options.log = log.map(|file| Box::new(file) as Box<dyn Write + Send>);
        Ok(options)
    }

    fn start(&self, how: &Starting, log: Option<LogFile>) -> Result<Disk, Fault> {
        let options = self.options(how, log)?;
        let openers = self.members.iter().map(|member| member.opener(how));
        let mut openers: Vec<Opener> = openers.collect();
        let Some(array) = &self.array else {
            let open = openers.remove(0);
            let started = Disk::start(options, move || open().map(|opened| opened.device));
            return started.map_err(|error| match error {
                StartError::Device { error, .. } => {
                    let disk = &self.members[0];
                    disk.config.error(disk.device_key(), error.to_string())
                }
                other => Fault::input(other),
            });
        };
        let others = self.members[1..].iter().map(PreparedDisk::member_options);
        let others = others.collect::<Result<_, Fault>>()?;
        let layout = array.clone();
        let started = Disk::start_volume(options, others, move || arrays::open(&layout, openers));
        started.map_err(|error| arrays::fault(array, &self.members, error))
    }

    fn running_exports(&self, disk: &Disk) -> Vec<Export> {
        let exports = self.exports().iter().enumerate();
        let exports = exports.map(|(number, export)| Export {
            name: export.name.clone(),
            number: number as u16,
            class: export.class,
            read_only: export.read_only || disk.geometry().read_only,
            disk: disk.clone(),
        });
        exports.collect()
    }
}

/// Starts disks, all or none.
///
/// # Errors
///
/// Of the first that cannot be started; those before it have been stopped then.
pub fn start(prepared: Vec<Prepared>, how: &Starting) -> Result<Vec<Running>, Fault> {
    let several = prepared.len() > 1;
    let mut running: Vec<Running> = Vec::with_capacity(prepared.len());
    for prepared in prepared {
        let started = log_path(how.log.as_deref(), prepared.name(), several)
            .map(|path| LogFile::open(&path))
            .transpose()
            .and_then(|log| {
                let (file, log) = log.unzip();
                // What its device has made it takes away itself.
                let disk = prepared.start(how, file);
                let disk = disk.inspect_err(|_| log.iter().for_each(OpenedLog::undo));
                Ok((disk?, log))
            });
        match started {
            Ok((disk, log)) => running.push(Running {
                exports: prepared.running_exports(&disk),
                disk,
                prepared,
                log,
            }),
            Err(fault) => {
                give_up(&running);
                return Err(fault);
            }
        }
    }
    Ok(running)
}

/// Refuses logs that could not be written, as far as that shows without opening them.
///
/// # Errors
///
/// Of the first.
pub fn look_at_logs(prepared: &[Prepared], log: Option<&Path>) -> Result<(), Fault> {
    let paths = prepared
        .iter()
        .filter_map(|disk| log_path(log, disk.name(), prepared.len() > 1));
    paths.into_iter().try_for_each(|path| log_file::look(&path))
}

/// Where a disk's events and decisions go.
fn log_path(log: Option<&Path>, name: &str, several: bool) -> Option<PathBuf> {
    let path = log?;
    if !several {
        return Some(path.to_owned());
    }
    let mut file = path.to_owned().into_os_string();
    file.push(format!(".{name}"));
    Some(PathBuf::from(file))
}

/// Stops disks that have only been started, and takes away what that has made.
pub fn give_up(running: &[Running]) {
    for running in running {
        running.log.iter().for_each(OpenedLog::undo);
        running.disk.remove_made();
        // There is a first fault, which is the one to report.
        let _ = running.disk.stop();
    }
}

/// Stops disks, all at the same time.
///
/// # Errors
///
/// Of every disk whose last flush or log failed. All have stopped nevertheless.
pub fn stop(running: &[Running]) -> Result<(), Fault> {
    let failed = Disk::stop_all(running.iter().map(|running| &running.disk)).into_iter();
    let failed: Vec<String> = failed
        .map(|(name, error)| format!("disk {name}: {error}"))
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Fault::File(failed.join("; "))),
    }
}

impl PreparedDisk {
    /// How another scheduler of the disk is made.
    ///
    /// # Errors
    ///
    /// If it needs to know the drive and does not.
    pub fn build(&self, scheduler: &Spec) -> Result<disk::BuildScheduler, String> {
        build(&self.known, scheduler, &self.engine)
    }

    /// What builds its schedulers from their texts while it runs.
    pub fn parser(&self) -> Arc<headtime_serve::http::ParseScheduler> {
        let (known, engine) = (Arc::clone(&self.known), self.engine.clone());
        Arc::new(move |text: &str| {
            let spec = super::config::scheduler(text)?;
            let build: disk::BuildScheduler = build(&known, &spec, &engine)?;
            Ok((spec.to_string(), build))
        })
    }
}
