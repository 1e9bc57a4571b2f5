//! How a disk is to be run, and why it cannot be started.

use crate::device::Device;
use crate::goals::feed::Feed;
use headtime_disk::profile::Profile;
use headtime_engine::conduct::Conductor;
use headtime_engine::{Background, ConfigError, EngineSpec, GateError, Gated, Map, Member};
use headtime_linux::clock::Clock;
use headtime_sched::Scheduler;
use headtime_units::Nanos;
use std::fmt;
use std::io;

/// Makes a scheduler for each lane, on the thread that they will live on.
pub type BuildScheduler = Box<dyn FnMut() -> Box<dyn Scheduler> + Send>;

/// Makes the gate of a member and the schedulers of its lanes after the first, on the thread that they will live on.
pub type BuildGate = Box<dyn FnMut(Member) -> Gated + Send>;

/// Makes the job in the background of a member, if it has one, on the thread that the job will live on.
pub type BuildJob = Box<dyn FnMut(Member) -> Option<Box<dyn Background>> + Send>;

/// Makes a job in the background, on the thread that it will live on.
pub type MakeJob = Box<dyn FnOnce() -> Box<dyn Background> + Send>;

/// The devices of a volume, one for each member, and where its sectors lie.
pub type Volume = (Vec<Box<dyn Device>>, Box<dyn Map>);

/// The devices of a disk, and where its sectors lie if it has several.
pub(super) type Devices = (Vec<Box<dyn Device>>, Option<Box<dyn Map>>);

/// How a disk is to be run.
pub struct Options {
    /// Its name, for messages.
    pub name: String,
    /// The time, the same for all disks of a server.
    pub clock: Clock,
    /// Depth and merging, in bytes: whoever does not open the device does not know its sectors.
    pub engine: EngineSpec,
    /// The text of the scheduler, and how it is made.
    pub scheduler: (String, BuildScheduler),
    /// The gate of each member in place of the one that `engine` names.
    pub gate: Option<BuildGate>,
    /// Who asks for what goes with staged requests, for each member. A request of such a job is at most as large as a
    /// buffer ([`BUFFER_BYTES_MAX`](crate::buffer::BUFFER_BYTES_MAX)).
    pub background: Option<BuildJob>,
    /// Coordinator of the members of a volume; none if `None`.
    pub conductor: Option<Box<dyn Conductor + Send>>,
    /// Receives a note of each request and of its end; none if `None`.
    pub feed: Option<Feed>,
    /// When to give up on a command; never if `None`.
    pub timeout: Option<Nanos>,
    /// How many exports there are, 1 or more: origins of requests are numbered below this, which
    /// [`Disk::submit`](super::Disk::submit) asserts.
    pub exports: u16,
    /// Receives the log of events and decisions.
    pub log: Option<Box<dyn io::Write + Send>>,
    /// What the log says of the run before it begins. A setting `sector_bytes` becomes the device's.
    pub log_settings: Vec<(String, String)>,
    /// Requests that front ends may hand over before the disk's thread has taken them.
    pub queue: usize,
    /// Requests that may be unfinished before no more are taken from the queue, 1 or more.
    pub unfinished: usize,
    /// Whether the thread asks to be put ahead of ordinary ones, if its device lives in model time.
    pub real_time: bool,
    /// Assumed drive, to estimate where the arm's time goes. For a volume it is the first member's drive. There is no
    /// estimate if `None`, or if the device itself knows.
    pub estimate: Option<Profile>,
    /// Whether to check the promises of the engines all along; slow, and a broken one ends the thread.
    pub audit: bool,
}

impl Options {
    /// A queue of 1024 before 4096 unfinished requests, one export, nothing in the background,
    /// no timeout, no log, no estimate.
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
            exports: 1,
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

/// How a member of a volume is to be run, after the first.
pub struct MemberOptions {
    /// The text of the scheduler, and how it is made.
    pub scheduler: (String, BuildScheduler),
    /// As [`Options::estimate`], for the member's device.
    pub estimate: Option<Profile>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Options({}, {:?})", self.name, self.engine)
    }
}

/// Why a disk cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The engine refuses its configuration.
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
        /// The engine's.
        depth: u32,
        /// The device's.
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
    /// The devices of a volume differ in what all of them must have alike.
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
