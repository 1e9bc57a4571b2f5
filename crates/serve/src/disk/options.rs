//! Options of a disk, and the reasons why a disk cannot be started.

use crate::device::Device;
use crate::goals::feed::Feed;
use headtime_disk::profile::Profile;
use headtime_engine::conduct::Conductor;
use headtime_engine::{Background, ConfigError, EngineSpec, GateError, Gated, Map, Member};
use headtime_linux::clock::Clock;
use headtime_sched::Scheduler;
use headtime_units::{Nanos, Rate};
use std::fmt;
use std::io;

/// Makes a scheduler for a lane. Called on the disk's thread, on which the scheduler runs.
pub type BuildScheduler = Box<dyn FnMut() -> Box<dyn Scheduler> + Send>;

/// Makes the gate of a member and the schedulers of the gate's lanes after the first. Called on the disk's thread.
pub type BuildGate = Box<dyn FnMut(Member) -> Gated + Send>;

/// Makes the background job of a member, if the member has one. Called on the disk's thread.
pub type BuildJob = Box<dyn FnMut(Member) -> Option<Box<dyn Background>> + Send>;

/// Makes a background job. Called on the disk's thread.
pub type MakeJob = Box<dyn FnOnce() -> Box<dyn Background> + Send>;

/// The devices of a volume, one for each member, and the map of the volume's sectors.
pub type Volume = (Vec<Box<dyn Device>>, Box<dyn Map>);

/// The devices of a disk, and the map of the disk's sectors if it has several devices.
pub(super) type Devices = (Vec<Box<dyn Device>>, Option<Box<dyn Map>>);

/// Options of a disk.
///
/// Invariants of options with which a disk starts:
///
/// - `engine.depth` is at most the depth of each device.
/// - `shares[e]` and `rates[e]` are of export `e < exports`. Entries beyond `exports` have no effect.
/// - `queue = 0` and `unfinished = 0` count as 1.
/// - The device reports the arm's time ⇒ `estimate` has no effect.
pub struct Options {
    /// Name of the disk, for messages.
    pub name: String,
    /// Clock, the same for all disks of a server.
    pub clock: Clock,
    /// Depth and merging. Lengths are in bytes, because the sector size is known only once the device is open.
    pub engine: EngineSpec,
    /// Text and builder of the scheduler. In a volume, the first member's.
    pub scheduler: (String, BuildScheduler),
    /// Builder of each member's gate. If `None`, each member gets the gate named by `engine`.
    pub gate: Option<BuildGate>,
    /// Builder of each member's background job, whose requests go along with staged requests. A request of the job is
    /// at most as large as a buffer ([`BUFFER_BYTES_MAX`](crate::buffer::BUFFER_BYTES_MAX)).
    pub background: Option<BuildJob>,
    /// Coordinator of the members of a volume.
    pub conductor: Option<Box<dyn Conductor + Send>>,
    /// Feed that is notified of each request, except for real-time requests, and of its end.
    pub feed: Option<Feed>,
    /// Time after which a command is given up on; `None` to wait without a bound.
    pub timeout: Option<Nanos>,
    /// Age at which a request that the device has not been given fails; `None` to let requests wait without a bound.
    pub queue_timeout: Option<Nanos>,
    /// Number of exports, 1 or more. The export number of each request must be lower, which
    /// [`Disk::submit`](super::Disk::submit) asserts.
    pub exports: u16,
    /// Share of the head's time of each export, by number. Empty if requests go to the engine as they come.
    pub shares: Vec<ExportShare>,
    /// Limit on the data that each export reads and writes in a second, by number. Empty if no export has one.
    pub rates: Vec<Option<Rate>>,
    /// Receives the log of events and decisions.
    pub log: Option<Box<dyn io::Write + Send>>,
    /// Settings of the run, for the beginning of the log. The value of `sector_bytes` is replaced by the device's.
    pub log_settings: Vec<(String, String)>,
    /// Length of the queue, in requests that the disk's thread has not taken yet.
    pub queue: usize,
    /// Largest number of unfinished requests, 1 or more. At this number, the thread takes no more requests from the
    /// queue.
    pub unfinished: usize,
    /// True if the thread asks for real-time priority when a device lives in model time.
    pub real_time: bool,
    /// Assumed drive, to estimate how the arm spends its time. For a volume, the first member's drive. There is no
    /// estimate if this is `None`, or if the device itself reports the arm's time.
    pub estimate: Option<Profile>,
    /// True to check the promises of the engines after every event. The check is slow, and a broken promise ends the
    /// thread.
    pub audit: bool,
}

impl Options {
    /// Options with a queue of 1024 requests, 4096 unfinished requests and one export. There is no background job, no
    /// timeout, no log and no estimate.
    pub fn new(name: &str, clock: Clock, scheduler: (String, BuildScheduler)) -> Options {
        Options {
            name: name.to_owned(),
            clock,
            engine: EngineSpec::default(),
            scheduler,
            gate: None,
            background: None,
            conductor: None,
            feed: None,
            timeout: None,
            queue_timeout: None,
            exports: 1,
            shares: Vec::new(),
            rates: Vec::new(),
            log: None,
            log_settings: Vec::new(),
            queue: 1024,
            unfinished: 4096,
            real_time: true,
            estimate: None,
            audit: false,
        }
    }
}

/// Clients that an export's requests are counted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareBy {
    /// The export is one client.
    #[default]
    Export,
    /// Each peer of the export is a client: an address, or a user's process at a unix socket.
    Peer,
    /// No client: requests go to the engine as they come.
    None,
}

/// Share of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportShare {
    /// Weight of each of the export's clients, 1 or more.
    pub weight: u32,
    /// Clients of the export.
    pub by: ShareBy,
}

/// Options of each member of a volume after the first.
pub struct MemberOptions {
    /// Text and builder of the member's scheduler.
    pub scheduler: (String, BuildScheduler),
    /// As [`Options::estimate`], for the member's device.
    pub estimate: Option<Profile>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Options({}, {:?})", self.name, self.engine)
    }
}

/// Reason why a disk cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The engine refuses the configuration.
    #[error("disk {name}: {error}")]
    Config {
        /// The disk.
        name: String,
        /// The engine's reason.
        error: ConfigError,
    },
    /// The gate does not fit the engine.
    #[error("disk {name}: {error}")]
    Gate {
        /// The disk.
        name: String,
        /// The gate's reason.
        error: Box<GateError>,
    },
    /// The engine would send more commands than the device takes.
    #[error(
        "disk {name}: depth {depth} is more than the {device} commands that the device takes at a time"
    )]
    Depth {
        /// The disk.
        name: String,
        /// Depth of the engine.
        depth: u32,
        /// Depth of the device.
        device: u32,
    },
    /// The device cannot be opened.
    #[error("disk {name}: {error}")]
    Device {
        /// The disk.
        name: String,
        /// The device's reason.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The number of devices or of schedulers differs from the number of the map's members, the devices' sector sizes
    /// differ, or a device's last sector is short.
    #[error(
        "disk {name}: a volume of {members} members needs as many devices and schedulers, and devices whose sectors are of one size"
    )]
    Volume {
        /// The disk.
        name: String,
        /// Members of the map.
        members: u16,
    },
    /// The machine refuses a thread or a file descriptor.
    #[error("disk {name}: {error}")]
    Machine {
        /// The disk.
        name: String,
        /// The machine's reason.
        error: io::Error,
    },
}
