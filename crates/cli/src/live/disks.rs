//! Starts disks from a configuration, and stops them.

use super::arrays;
use super::config::{ArrayConfig, Config, ExportConfig};
use super::disk::{self, Opener, PreparedDisk, is_locked};
use super::log_file::{self, LogFile, OpenedLog};
use headtime_engine::Member;
use headtime_host::HostSpec;
use headtime_lab::fault::Fault;
use headtime_linux::clock::Clock;
use headtime_serve::disk::{
    Addresses, Disk, Export, ExportShare, MemberOptions, Options, ShareBy, StartError,
};
use headtime_serve::goals::feed::{Feed, Notes, feed};
use headtime_serve::scrub::Scrubs;
use headtime_stack::LogSettings;
use headtime_units::{Bytes, Sectors};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A disk or an array that is ready to start: all files that its configuration names have been read.
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
    /// Names under which clients see the disk.
    pub exports: Vec<Export>,
    /// Prepared form of this disk.
    pub prepared: Prepared,
    log: Option<OpenedLog>,
    /// Notes of requests, if programs share the disk.
    pub notes: Option<Notes>,
}

/// Options for starting disks.
#[derive(Clone, Debug)]
pub struct Starting {
    /// Clock that all disks share.
    pub clock: Clock,
    /// True if devices in use are accepted nevertheless.
    pub force: bool,
    /// File for events and decisions. With several disks, each disk has its own file, `FILE.NAME`.
    pub log: Option<PathBuf>,
}

/// Reads the files that the disks of a configuration name.
///
/// # Errors
///
/// If a file cannot be read, is wrong, or does not fit the others.
pub fn prepare(config: &Config) -> Result<Vec<Prepared>, Fault> {
    let mut disks = Vec::with_capacity(config.disks.len());
    for disk in &config.disks {
        disks.push(Some(disk::prepare(disk)?));
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

impl Prepared {
    /// The name of the disk or of the array.
    pub fn name(&self) -> &str {
        let one = &self.members[0].config.name;
        self.array.as_ref().map_or(one, |array| &array.name)
    }

    /// Returns true if clients make an array of the disks, and see each disk.
    fn by_clients(&self) -> bool {
        self.array
            .as_ref()
            .is_some_and(|array| array.geometry.is_some())
    }

    /// Names under which clients see the disk, the array or each disk of an array, with the number of the disk. The number of
    /// an array is 0.
    fn numbered_exports(&self) -> impl Iterator<Item = (usize, &ExportConfig)> {
        let of_disks = self.members.iter().map(|disk| &disk.config.exports);
        let of_array = self.array.iter().map(|array| (0, &array.exports));
        let all = of_array.chain(of_disks.enumerate());
        all.flat_map(|(number, exports)| exports.iter().map(move |export| (number, export)))
    }

    /// Names under which clients see the disk or the array, or each disk if clients make the array.
    pub fn exports(&self) -> impl Iterator<Item = &ExportConfig> {
        self.numbered_exports().map(|(_, export)| export)
    }

    /// Bytes of each export. `size_of` gives the size of each disk if clients make an array.
    fn addresses(
        &self,
        all: Addresses,
        size_of: impl Fn(usize) -> Sectors,
    ) -> Result<Vec<Addresses>, Fault> {
        let of = |(number, export): (usize, &ExportConfig)| {
            if !self.by_clients() {
                return export.addresses(all);
            }
            let end = |disks: usize| {
                let sectors = (0..disks).map(|disk| size_of(disk).get()).sum();
                Sectors::new(sectors).bytes(all.sector_bytes())
            };
            let disk = all.part(end(number), end(number + 1));
            export.addresses(disk.expect("the volume has its disks"))
        };
        self.numbered_exports().map(of).collect()
    }

    /// True if programs share the disk or the array.
    pub fn has_programs(&self) -> bool {
        self.exports().any(|export| export.program > 0)
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
        // If clients make the array, each device is one disk.
        let array = self.array.as_ref().filter(|_| !self.by_clients());
        let stripes = array.map(|array| array.spec.read_ahead());
        stripes.map_or(usual, |stripes| {
            stripes.clamp(usual, HostSpec::READ_AHEAD_MAX)
        })
    }

    /// As [`PreparedDisk::look`], for the disk or all disks of the array.
    ///
    /// # Errors
    ///
    /// As [`PreparedDisk::look`], and if the disks do not form the array, or if an export does not fit.
    pub fn look(&self, force: bool) -> Result<Addresses, Fault> {
        let (disk, found) = match &self.array {
            None => (self.members[0].look(force)?, Vec::new()),
            Some(array) => arrays::look(array, &self.members, force)?,
        };
        self.addresses(disk, |member| found[member].sectors)?;
        Ok(disk)
    }

    /// Creates the scrubs of the started disk. Scrubs of an array are refused, with the reason.
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

    /// Shares of the exports. Empty if all requests are one client's, or if programs have windows of time on the disk. Clients
    /// that make an array of the disks ask all disks at once, and have no shares either.
    fn shares(&self) -> Vec<ExportShare> {
        let exports: Vec<_> = self.exports().map(|export| export.share).collect();
        let is_one = exports.len() < 2 && exports.iter().all(|share| share.by != ShareBy::Peer);
        let is_made_by_clients = self
            .array
            .as_ref()
            .is_some_and(|array| array.geometry.is_some());
        match is_one || self.has_programs() || is_made_by_clients {
            true => Vec::new(),
            false => exports,
        }
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
        options.queue_timeout = first.config.queue_timeout;
        options.estimate = estimate;
        options.exports = u16::try_from(self.exports().count()).expect("there are not so many");
        options.shares = self.shares();
        let rates: Vec<_> = self.exports().map(|export| export.rate).collect();
        if rates.iter().any(Option::is_some) {
            options.rates = rates;
        }
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

    fn start(
        &self,
        how: &Starting,
        log: Option<LogFile>,
        feed: Option<Feed>,
    ) -> Result<Disk, Fault> {
        let mut options = self.options(how, log)?;
        options.feed = feed;
        let openers = self.members.iter().map(|member| member.opener(how.force));
        let mut openers: Vec<Opener> = openers.collect();
        let Some(array) = &self.array else {
            let open = openers.remove(0);
            let started = Disk::start(options, move || open().map(|opened| opened.device));
            return started.map_err(|error| match error {
                StartError::Device { error, .. } => {
                    let disk = &self.members[0];
                    disk.refused(error.to_string(), is_locked(&*error))
                }
                other => Fault::input(other),
            });
        };
        let others = self.members[1..].iter().map(PreparedDisk::member_options);
        let others = others.collect::<Result<_, Fault>>()?;
        let layout = array.clone();
        options.conductor = arrays::conductor(array, &self.members, how.force)?;
        let started = Disk::start_volume(options, others, move || arrays::open(&layout, openers));
        started.map_err(|error| arrays::fault(array, &self.members, error))
    }

    fn running_exports(&self, disk: &Disk) -> Result<Vec<Export>, Fault> {
        let size_of = |member| disk.sectors_of(Member(member as u16));
        let addresses = self.addresses(disk.addresses(), size_of)?;
        let exports = self.exports().zip(addresses).enumerate();
        let exports = exports.map(|(number, (export, addresses))| {
            Ok(Export {
                name: export.name.clone(),
                number: number as u16,
                class: export.class,
                read_only: export.read_only || disk.geometry().read_only,
                addresses,
                program: export.program,
                limits: export.limits,
                disk: disk.clone(),
            })
        });
        exports.collect()
    }
}

/// Starts all disks. If one fails, none stays started.
///
/// # Errors
///
/// Error of the first disk that cannot be started. The disks that were started before it are stopped.
pub fn start(prepared: Vec<Prepared>, how: &Starting) -> Result<Vec<Running>, Fault> {
    let several = prepared.len() > 1;
    let mut running: Vec<Running> = Vec::with_capacity(prepared.len());
    for prepared in prepared {
        let (feed, notes) = prepared.has_programs().then(feed).unzip();
        let started = log_path(how.log.as_deref(), prepared.name(), several)
            .map(|path| LogFile::open(&path))
            .transpose()
            .and_then(|log| {
                let (file, log) = log.unzip();
                // The device removes the files that it made.
                let disk = prepared.start(how, file, feed);
                let disk = disk.inspect_err(|_| log.iter().for_each(OpenedLog::undo));
                Ok((disk?, log))
            });
        let started = started.and_then(|(disk, log)| {
            let exports = prepared.running_exports(&disk);
            running.push(Running {
                exports: Vec::new(),
                disk,
                prepared,
                log,
                notes,
            });
            exports
        });
        match started {
            Ok(exports) => running.last_mut().expect("it has just started").exports = exports,
            Err(fault) => {
                give_up(&running);
                return Err(fault);
            }
        }
    }
    Ok(running)
}

/// Refuses logs that cannot be written, as far as that is visible without opening the files.
///
/// # Errors
///
/// For the first such log.
pub fn look_at_logs(prepared: &[Prepared], log: Option<&Path>) -> Result<(), Fault> {
    let paths = prepared
        .iter()
        .filter_map(|disk| log_path(log, disk.name(), prepared.len() > 1));
    paths.into_iter().try_for_each(|path| log_file::look(&path))
}

/// File for a disk's events and decisions.
fn log_path(log: Option<&Path>, name: &str, several: bool) -> Option<PathBuf> {
    let path = log?;
    if !several {
        return Some(path.to_owned());
    }
    let mut file = path.to_owned().into_os_string();
    file.push(format!(".{name}"));
    Some(PathBuf::from(file))
}

/// Stops disks that have served nothing yet, and removes the files that starting made.
pub fn give_up(running: &[Running]) {
    for running in running {
        running.log.iter().for_each(OpenedLog::undo);
        running.disk.remove_made();
        // An earlier fault is reported, so a fault of stopping is not.
        let _ = running.disk.stop();
    }
}

/// Stops disks, all at the same time.
///
/// # Errors
///
/// For every disk whose last flush or log failed. All disks have stopped nevertheless.
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
