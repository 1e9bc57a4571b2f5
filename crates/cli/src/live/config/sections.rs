//! The sections of a configuration, after their checks.

use super::access::AccessConfig;
use headtime_config::Placed;
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use headtime_qos::Goal;
use headtime_sched::Class;
use headtime_serve::disk::{Addresses, ExportLimits, ExportShare};
use headtime_serve::nbd::tls::TlsFiles;
use headtime_stack::{ArraySpec, Simulated, Stack, entries};
use headtime_units::{Bytes, Nanos, ParseUnitError, Rate, serde_as_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Default number of commands that a file or a block device gets at a time: the depth of a SATA drive's queue.
pub const DEVICE_DEPTH: u32 = 32;

/// A disk.
///
/// Invariants:
///
/// - `exports.is_empty()` ⇔ an array has the disk.
/// - `depth = Some(d)` ⇒ `d = stack.engine.depth`.
/// - `read_only` ⇒ each of `exports` is read-only.
/// - `create` ⇒ `!read_only`, and `backend` is an emulated drive with a file, or a path with a size.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Name of the disk.
    pub name: String,
    /// Device behind the disk.
    pub backend: Backend,
    /// Scheduler, engine and assumed drive between the clients and the device.
    pub stack: Stack,
    /// Largest number of commands in the device at a time. `None` means the device's own limit.
    pub depth: Option<u32>,
    /// Time after which a command counts as failed. `None` sets no limit.
    pub timeout: Option<Nanos>,
    /// Age at which a request fails that the device has not been given. `None` sets no limit.
    pub queue_timeout: Option<Nanos>,
    /// True if the disk refuses writes.
    pub read_only: bool,
    /// True if a missing file is made. A running disk ignores this key.
    pub create: bool,
    /// True if faults may be injected.
    pub faults: bool,
    /// Directory for the progress of the disk's scrubs.
    pub scrub: Option<PathBuf>,
    /// True if all writes come through a server with these scrubs, even while no such server runs.
    pub sole_writer: bool,
    /// Names under which clients see the disk, at least one; empty for a disk of an array.
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
    /// Layout if clients make the array of the disks. Clients then see the exports of the disks.
    pub geometry: Option<GeometryConfig>,
    /// Indices of the disks in [`Config::disks`](super::Config::disks), in the order of the array.
    pub members: Vec<usize>,
    /// Names under which clients see the array, at least one; none if clients make the array.
    pub exports: Vec<ExportConfig>,
    pub(super) at: Placed<()>,
}

/// Layout of an array that clients make of the disks, such as md's in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeometryConfig {
    /// For each disk, the place at which the array's data begin.
    pub offsets: Vec<Bytes>,
    /// For each disk, the bytes that the array has. `None` means the rest of the disk.
    pub sizes: Option<Vec<Bytes>>,
    /// Order of the chunks.
    pub layout: Layout,
}

impl fmt::Display for GeometryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |sizes: &[Bytes]| {
            let mut texts: Vec<String> = sizes.iter().map(Bytes::to_string).collect();
            texts.dedup();
            texts.join("/")
        };
        write!(f, "data from {}", each(&self.offsets))?;
        if let Some(sizes) = &self.sizes {
            write!(f, " of {}", each(sizes))?;
        }
        match self.layout {
            Layout::Original => f.write_str(", layout original"),
            Layout::Alternate | Layout::LeftSymmetric => Ok(()),
        }
    }
}

/// Order of an array's chunks on its disks, by md's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each zone of a RAID 0 begins on its first disk.
    Alternate,
    /// Zones of a RAID 0 go on in turn.
    Original,
    /// Data of a RAID 5 begin behind the parity.
    LeftSymmetric,
}

impl ArrayConfig {
    /// An error about one of the array's keys.
    pub fn error(&self, key: &'static str, problem: impl Into<String>) -> Fault {
        Fault::input(self.at.error_at(key, problem))
    }
}

/// Device behind a disk.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// A modelled drive in real time.
    Emulated(Emulated),
    /// A file or a block device.
    Device {
        /// Path of the file or the device.
        path: PathBuf,
        /// True if the page cache is bypassed.
        direct: bool,
        /// True if a device in use is accepted nevertheless.
        force: bool,
        /// Required size, and the size of a file that is made.
        size: Option<Bytes>,
        /// True if the kernel gets the class of each request; `None` if the drive decides.
        io_priority: Option<bool>,
    },
    /// Answers at once and stores nothing.
    Null {
        /// Size of the disk.
        size: Bytes,
    },
}

/// An emulated drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulated {
    /// Profile of the drive, by name or file.
    pub profile: String,
    /// Changes to the profile.
    pub simulated: Simulated,
    /// Seed of the drive's noise.
    pub seed: u64,
    /// File with the drive's data. `None` means memory.
    pub store: Option<PathBuf>,
    /// Size of the drive. `None` means the profile's capacity.
    pub size: Option<Bytes>,
}

/// A name under which clients see a disk or a part of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportConfig {
    /// The name.
    pub name: String,
    /// Class of the export's requests.
    pub class: Class,
    /// True if the export refuses writes.
    pub read_only: bool,
    /// Bytes of the disk that clients see. `None` means all.
    pub range: Option<Placed<ExportRange>>,
    /// Number of the program that has the export, counted from 1. 0 if no program has the export.
    pub program: u16,
    /// Share of the head's time.
    pub share: ExportShare,
    /// Limit on the data that are read and written in a second.
    pub rate: Option<Rate>,
    /// Limits on what its clients have in flight.
    pub limits: ExportLimits,
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
    /// File of the profile; required with a goal.
    pub profile: Option<PathBuf>,
    /// File of a trained tree. `None` lets the server train a tree.
    pub tree: Option<PathBuf>,
    /// Time within which 99 % of the requests must finish. `None` with a goal.
    pub p99: Option<Nanos>,
    pub(super) at: Placed<()>,
}

impl ProgramConfig {
    /// An error about one of the program's keys.
    pub fn error(&self, key: &'static str, problem: impl Into<String>) -> Fault {
        Fault::input(self.at.error_at(key, problem))
    }
}

/// Bytes of a disk from `start` up to `end`, at least one. As text, the range is two sizes: `0B..100GiB`.
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
    /// If the disk does not have these bytes, or if they are not whole sectors.
    pub fn addresses(&self, disk: Addresses) -> Result<Addresses, Fault> {
        let Some(range) = &self.range else {
            return Ok(disk);
        };
        let part = disk.part(range.start, range.end);
        part.map_err(|problem| Fault::input(range.error(format!("{}: {problem}", **range))))
    }
}

/// Sockets of clients, of the control and of the metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenConfig {
    /// Sockets for NBD clients.
    pub nbd: Vec<Socket>,
    /// Permissions of the unix sockets among these.
    pub access: AccessConfig,
    /// True if NBD clients may connect over loopback TCP.
    pub tcp: bool,
    /// Certificates for NBD over TCP. `None` means no TLS.
    pub tls: Option<Placed<TlsFiles>>,
    /// True if other machines may connect without certificates.
    pub trusted_network: bool,
    /// Largest number of bytes in flight, over the requests of all NBD clients.
    pub max_bytes: Option<usize>,
    /// Address that serves `/metrics` and `/status`.
    pub metrics: Option<SocketAddr>,
    /// Path of the control socket.
    pub control: Option<PathBuf>,
    /// Permissions of the control socket.
    pub control_access: AccessConfig,
}

impl ListenConfig {
    /// True if each client at an address needs a certificate.
    pub fn needs_client_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(|files| files.ca.is_some())
    }

    /// Keys in which another configuration differs and that a running server cannot change.
    pub fn fixed_differences(&self, other: &ListenConfig) -> Vec<&'static str> {
        [
            ("nbd", self.nbd != other.nbd),
            ("mode or group", self.access != other.access),
            ("tcp", self.tcp != other.tcp),
            ("tls_certificate, tls_key or tls_ca", self.tls != other.tls),
            (
                "trusted_network",
                self.trusted_network != other.trusted_network,
            ),
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
    /// Path of a unix socket.
    Unix(PathBuf),
    /// Address of this machine.
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

/// Messages and log of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogConfig {
    /// Selection of messages, in the form of `HEADTIME_LOG`.
    pub level: Option<String>,
    /// Format of messages, if given.
    pub format: Option<LogFormat>,
    /// File for events and decisions.
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
    /// An error about one of the disk's keys.
    pub fn error(&self, key: &'static str, problem: impl Into<String>) -> Fault {
        Fault::input(self.at.error_at(key, problem))
    }

    /// Returns true if an array has the disk.
    pub fn is_member(&self) -> bool {
        self.exports.is_empty()
    }

    /// Keys that differ in another configuration of the same disk, and that cannot change while the disk runs.
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
        ];
        let both = self.exports.iter().chain(&other.exports);
        let exports = both.filter(|of| !self.exports.contains(of) || !other.exports.contains(of));
        let own = own
            .into_iter()
            .filter_map(|(key, differs)| differs.then_some(key));
        // A scheduler and a gate can be swapped. The depth is the given one, or else the device's.
        let mut keys = differing_keys(&self.stack, &other.stack);
        keys.retain(|key| !["scheduler", "gate", "depth"].contains(&key.as_str()));
        keys.extend(own.map(str::to_owned));
        keys.extend(exports.map(|export| format!("export {}", export.name)));
        keys.into_iter().collect()
    }
}

/// Keys with different values in two descriptions. A key may be missing in one description.
pub fn differing_keys<T: Serialize>(one: &T, two: &T) -> BTreeSet<String> {
    let (one, two) = (entries(one), entries(two));
    let both = one.iter().chain(&two);
    let differing = both.filter(|entry| !(one.contains(entry) && two.contains(entry)));
    differing.map(|(key, _)| key.clone()).collect()
}
