//! What the sections of a configuration say, once they are checked.

use super::access::AccessConfig;
use headtime_config::Placed;
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_qos::Goal;
use headtime_sched::Class;
use headtime_serve::disk::Addresses;
use headtime_stack::{ArraySpec, Simulated, Stack, entries};
use headtime_units::{Bytes, Nanos, ParseUnitError, serde_as_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Commands that a file or a block device is given at a time if nothing else is said: as many as a
/// SATA drive's queue takes.
pub const DEVICE_DEPTH: u32 = 32;

/// A disk.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Its name.
    pub name: String,
    /// What is behind it.
    pub backend: Backend,
    /// What stands between its clients and the device.
    pub stack: Stack,
    /// Commands in the device at a time; as many as it takes if absent.
    pub depth: Option<u32>,
    /// When to give up on a command; never if absent.
    pub timeout: Option<Nanos>,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// Whether its file is made if it is not there. Means nothing to a disk that runs.
    pub create: bool,
    /// Whether faults may be injected.
    pub faults: bool,
    /// The directory in which the progress of its scrubs is kept.
    pub scrub: Option<PathBuf>,
    /// Whether nobody writes to it but through a server with these scrubs, also while none runs.
    pub sole_writer: bool,
    /// Under which names it is seen, at least one; none for a disk of an array.
    pub exports: Vec<ExportConfig>,
    pub(super) at: Placed<()>,
}

/// An array of disks.
#[derive(Clone, Debug)]
pub struct ArrayConfig {
    /// Name of the array.
    pub name: String,
    /// Layout of the array, and the names of its disks.
    pub spec: ArraySpec<Vec<String>>,
    /// Indices of the disks in [`Config::disks`](super::Config::disks), in the order of the array.
    pub members: Vec<usize>,
    /// Under which names it is seen, at least one.
    pub exports: Vec<ExportConfig>,
    pub(super) at: Placed<()>,
}

impl ArrayConfig {
    /// An error about one of its keys.
    pub fn error(&self, key: &'static str, problem: impl Into<String>) -> Fault {
        Fault::input(self.at.error_at(key, problem))
    }
}

/// What is behind a disk.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// A modelled drive in real time.
    Emulated(Emulated),
    /// A file or a block device.
    Device {
        /// Its path.
        path: PathBuf,
        /// Whether the page cache is passed by.
        direct: bool,
        /// Whether a device in use is taken nevertheless.
        force: bool,
        /// How large it must be, and a file that is made.
        size: Option<Bytes>,
    },
    /// Answers at once, keeps nothing.
    Null {
        /// How large it is.
        size: Bytes,
    },
}

/// An emulated drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulated {
    /// Its profile, by name or file.
    pub profile: String,
    /// What is changed of the profile.
    pub simulated: Simulated,
    /// Fixes what the noise draws.
    pub seed: u64,
    /// The file that holds its data; memory if absent.
    pub store: Option<PathBuf>,
    /// How large it is; the profile's capacity if absent.
    pub size: Option<Bytes>,
}

/// A name under which clients see a disk or a part of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportConfig {
    /// The name.
    pub name: String,
    /// The rank of its requests.
    pub class: Class,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// Bytes of the disk that clients see; all if absent.
    pub range: Option<Placed<ExportRange>>,
    /// Number of the program that it is of, counted from 1; 0 if of none.
    pub program: u16,
}

/// A program that shares disks with others.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramConfig {
    /// Name of the program.
    pub name: String,
    /// Names of the program's exports, at least one.
    pub exports: Vec<String>,
    /// Goal of the first run.
    pub goal: Option<Goal>,
    /// File of the profile; there is one if there is a goal.
    pub profile: Option<PathBuf>,
    /// File of a tree that was trained; the server trains one if absent.
    pub tree: Option<PathBuf>,
    /// Time within which 99 % of the requests are to be done beside goals; none if there is a goal.
    pub p99: Option<Nanos>,
    pub(super) at: Placed<()>,
}

impl ProgramConfig {
    /// An error about one of its keys.
    pub fn error(&self, key: &'static str, problem: impl Into<String>) -> Fault {
        Fault::input(self.at.error_at(key, problem))
    }
}

/// Bytes of a disk from `start` up to `end`, at least one. As text two sizes: `0B..100GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportRange {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last one.
    pub end: u64,
}

impl FromStr for ExportRange {
    type Err = String;

    fn from_str(text: &str) -> Result<ExportRange, String> {
        let (start, end) = text
            .split_once("..")
            .ok_or("allowed are two sizes, as in \"0B..100GiB\"")?;
        let size = |text: &str| match text.trim() {
            "0" => Ok(0),
            text => text.parse().map(|Bytes(size)| size),
        };
        let size = |text| size(text).map_err(|error: ParseUnitError| error.to_string());
        let range = ExportRange {
            start: size(start)?,
            end: size(end)?,
        };
        match range.start < range.end {
            true => Ok(range),
            false => Err("is empty: the first size is less than the second".to_owned()),
        }
    }
}

impl fmt::Display for ExportRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", Bytes(self.start), Bytes(self.end))
    }
}

serde_as_text!(ExportRange, "two sizes, such as \"0B..100GiB\"");

impl ExportConfig {
    /// Bytes of a disk that clients see.
    ///
    /// # Errors
    ///
    /// If the disk does not have them, or not as whole sectors.
    pub fn addresses(&self, disk: Addresses) -> Result<Addresses, Fault> {
        let Some(range) = &self.range else {
            return Ok(disk);
        };
        let part = disk.part(range.start, range.end);
        part.map_err(|problem| Fault::input(range.error(format!("{}: {problem}", **range))))
    }
}

/// Where clients and watchers come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenConfig {
    /// NBD clients.
    pub nbd: Vec<Socket>,
    /// Who may connect to the unix sockets among them.
    pub access: AccessConfig,
    /// Whether NBD clients may come over loopback TCP.
    pub tcp: bool,
    /// Bytes of data of all NBD clients' requests in flight, at most.
    pub max_bytes: Option<usize>,
    /// Who reads `/metrics` and `/status`.
    pub metrics: Option<SocketAddr>,
    /// Where something can be changed.
    pub control: Option<PathBuf>,
    /// Who may do so.
    pub control_access: AccessConfig,
}

impl ListenConfig {
    /// The keys in which another configuration differs; none of them can change while a server runs.
    pub fn fixed_differences(&self, other: &ListenConfig) -> Vec<&'static str> {
        [
            ("nbd", self.nbd != other.nbd),
            ("mode or group", self.access != other.access),
            ("tcp", self.tcp != other.tcp),
            ("max_bytes", self.max_bytes != other.max_bytes),
            ("metrics", self.metrics != other.metrics),
            ("control", self.control != other.control),
            (
                "control_mode or control_group",
                self.control_access != other.control_access,
            ),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }
}

/// A socket to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// A unix socket's path.
    Unix(PathBuf),
    /// An address of this machine that no other reaches.
    Tcp(SocketAddr),
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Socket::Unix(path) => write!(f, "unix:{}", path.shown()),
            Socket::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// What is written of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogConfig {
    /// Which messages, as `HEADTIME_LOG` says it.
    pub level: Option<String>,
    /// Whether messages are JSON.
    pub format: Option<LogFormat>,
    /// Where events and decisions go.
    pub events: Option<PathBuf>,
}

/// How messages look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// An object for machines.
    Json,
}

impl DiskConfig {
    /// An error about one of its keys.
    pub fn error(&self, key: &'static str, problem: impl Into<String>) -> Fault {
        Fault::input(self.at.error_at(key, problem))
    }

    /// Returns true if an array has it.
    pub fn is_member(&self) -> bool {
        self.exports.is_empty()
    }

    /// The keys in which another configuration of the same disk differs, and that cannot change
    /// while it runs.
    pub fn fixed_differences(&self, other: &DiskConfig) -> Vec<String> {
        let own = [
            (
                "emulate, device, store or size",
                self.backend != other.backend,
            ),
            ("depth", self.depth != other.depth),
            ("read_only", self.read_only != other.read_only),
            ("faults", self.faults != other.faults),
            ("scrub", self.scrub != other.scrub),
            ("sole_writer", self.sole_writer != other.sole_writer),
            ("export", self.exports != other.exports),
        ];
        let own = own
            .into_iter()
            .filter_map(|(key, differs)| differs.then_some(key));
        // A scheduler and a gate can be swapped. The depth is what was given, or else the device's.
        let mut keys = differing_keys(&self.stack, &other.stack);
        keys.retain(|key| !["scheduler", "gate", "depth"].contains(&key.as_str()));
        keys.extend(own.map(str::to_owned));
        keys.into_iter().collect()
    }
}

/// The keys with different values in two descriptions. A key may be left out in one of them.
pub fn differing_keys<T: Serialize>(one: &T, two: &T) -> BTreeSet<String> {
    let (one, two) = (entries(one), entries(two));
    let both = one.iter().chain(&two);
    let differing = both.filter(|entry| !(one.contains(entry) && two.contains(entry)));
    differing.map(|(key, _)| key.clone()).collect()
}
