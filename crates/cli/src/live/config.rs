//! The configuration of a server, as `docs/serve.md` explains it.

use crate::fault::Fault;
use crate::scenario::Firmware;
use crate::scenario::tree::{Place, Section, Table, TreeError};
use headtime_sched::{Class, Spec};
use headtime_units::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A unix socket's path is at most so long: 108 bytes with the zero that ends it (unix(7)).
pub const SOCKET_PATH_MAX: usize = 107;

/// Commands that a file or a block device is given at a time if nothing else is said: as many as a
/// SATA drive's queue takes.
pub const DEVICE_DEPTH: u32 = 32;

/// Linux's for SCSI and ATA disks.
const TIMEOUT: Nanos = Nanos::from_secs(30);

/// Exports of one disk, and disks.
const EXPORTS_MAX: usize = 1024;
const DISKS_MAX: usize = 256;

/// What a server is to do, checked as far as that is possible without its files.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file that it was read from.
    pub file: PathBuf,
    /// The disks, at least one, in the order of the file.
    pub disks: Vec<DiskConfig>,
    /// Where clients and watchers come in.
    pub listen: ListenConfig,
    /// What is written of the run.
    pub log: LogConfig,
}

/// A disk.
#[derive(Clone, Debug)]
pub struct DiskConfig {
    /// Its name.
    pub name: String,
    /// What is behind it.
    pub backend: Backend,
    /// What orders its requests.
    pub scheduler: Spec,
    /// The drive that the scheduler believes to have, by name or file.
    pub belief: Option<String>,
    /// The file of the service-time curve that the scheduler is given if it needs one.
    pub curve: Option<String>,
    /// Commands in the device at a time; as many as it takes if absent.
    pub depth: Option<u32>,
    /// Whether requests that touch become one.
    pub merge: bool,
    /// The most that a merged request may ask for.
    pub merge_max: Bytes,
    /// Whether the scheduler is not told which process asks, where a front end knows.
    pub hide_processes: bool,
    /// When to give up on a command; never if absent.
    pub timeout: Option<Nanos>,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// Whether faults may be injected.
    pub faults: bool,
    /// Under which names it is seen, at least one.
    pub exports: Vec<ExportConfig>,
    at: Places,
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
        /// A file that does not exist is made so large.
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
    /// In what order it serves the commands it holds.
    pub firmware: Firmware,
    /// Keys of the profile that are replaced.
    pub overrides: toml::Table,
    /// Whether the noise of the profile is on.
    pub noise: bool,
    /// Fixes what the noise draws.
    pub seed: u64,
    /// The file that holds its data; memory if absent.
    pub store: Option<PathBuf>,
    /// How large it is; the profile's capacity if absent.
    pub size: Option<Bytes>,
}

/// A name under which clients see a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportConfig {
    /// The name.
    pub name: String,
    /// The rank of its requests.
    pub class: Class,
    /// Whether it takes no writes.
    pub read_only: bool,
}

/// Where clients and watchers come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenConfig {
    /// NBD clients.
    pub nbd: Vec<Socket>,
    /// Whether NBD clients may come over loopback TCP.
    pub tcp: bool,
    /// Who reads `/metrics` and `/status`.
    pub metrics: Option<SocketAddr>,
    /// Who may change something.
    pub control: Option<PathBuf>,
}

/// A socket to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// A unix socket's path.
    Unix(PathBuf),
    /// An address of this machine that no other reaches.
    Tcp(SocketAddr),
}

impl std::fmt::Display for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Socket::Unix(path) => write!(f, "unix:{}", path.display()),
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// An object for machines.
    Json,
}

/// Where the keys of a disk stand, for errors that show only later.
#[derive(Clone, Debug)]
struct Places {
    path: String,
    table: Place,
    keys: BTreeMap<&'static str, Place>,
}

impl DiskConfig {
    /// An error about one of its keys.
    pub fn error(&self, key: &'static str, problem: impl Into<String>) -> Fault {
        Fault::input(TreeError {
            place: self.at.keys.get(key).unwrap_or(&self.at.table).clone(),
            key: format!("{}.{key}", self.at.path),
            problem: problem.into(),
        })
    }

    /// The keys in which another configuration of the same disk differs, and that cannot change
    /// while it runs.
    pub fn fixed_differences(&self, other: &DiskConfig) -> Vec<&'static str> {
        [
            (
                "emulate, device, store or size",
                self.backend != other.backend,
            ),
            ("belief", self.belief != other.belief),
            ("curve", self.curve != other.curve),
            ("depth", self.depth != other.depth),
            ("merge", self.merge != other.merge),
            ("merge_max", self.merge_max != other.merge_max),
            (
                "hide_processes",
                self.hide_processes != other.hide_processes,
            ),
            ("read_only", self.read_only != other.read_only),
            ("faults", self.faults != other.faults),
            ("export", self.exports != other.exports),
        ]
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
    }
}

impl Config {
    /// Reads a configuration file. Paths in it are relative to the working directory.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or says what does not fit together: with file, line and key.
    pub fn open(path: &Path) -> Result<Config, Fault> {
        let file = path.display().to_string();
        let content = fs::read(path).map_err(|error| Fault::reading(path, &error))?;
        let text = String::from_utf8(content).map_err(|_| {
            Fault::Input(format!(
                "{file}: is not text in UTF-8; a configuration is TOML"
            ))
        })?;
        Config::parse(&file, &text).map_err(Fault::input)
    }

    /// Reads the text of a configuration; `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// If it says what does not fit together.
    pub fn parse(file: &str, text: &str) -> Result<Config, TreeError> {
        let table = Table::parse(file, text)?;
        let mut top = Section::new(&table, Place::Line(Arc::from(file), 1));
        let Some(sections) = top.sections("disk")? else {
            let problem = "missing; give at least one [[disk]]";
            return Err(top.error("disk", problem));
        };
        if sections.len() > DISKS_MAX {
            let problem = format!("{} disks; allowed are {DISKS_MAX}", sections.len());
            return Err(top.error("disk", problem));
        }
        let mut seen = Seen::default();
        let disks = sections
            .into_iter()
            .map(|section| disk(section, &mut seen))
            .collect::<Result<Vec<_>, _>>()?;
        let listen = match top.section("listen")? {
            Some(section) => listen(section, &mut seen)?,
            None => ListenConfig::default(),
        };
        let log = match top.section("log")? {
            Some(section) => log(section)?,
            None => LogConfig::default(),
        };
        top.finish()?;
        Ok(Config {
            file: PathBuf::from(file),
            disks,
            listen,
            log,
        })
    }

    /// The disk of a name.
    pub fn disk(&self, name: &str) -> Option<&DiskConfig> {
        self.disks.iter().find(|disk| disk.name == name)
    }
}

/// What must not be there twice, and where it is.
#[derive(Default)]
struct Seen {
    disks: BTreeMap<String, Place>,
    exports: BTreeMap<String, Place>,
    files: BTreeMap<PathBuf, Place>,
}

/// Notes that something is there.
fn once<K: Ord>(
    seen: &mut BTreeMap<K, Place>,
    key: K,
    section: &Section<'_>,
    of: &str,
    what: &str,
) -> Result<(), TreeError> {
    let error = section.error(of, "");
    match seen.insert(key, error.place.clone()) {
        None => Ok(()),
        Some(before) => Err(TreeError {
            problem: format!("{what}, at {before}"),
            ..error
        }),
    }
}

/// The same file under all its names, if it is there.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| {
            let parent = path.parent().filter(|parent| *parent != Path::new(""));
            let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
            Ok::<_, std::io::Error>(parent.join(path.file_name().unwrap_or_default()))
        })
        .unwrap_or_else(|_| path.to_owned())
}

fn disk(mut section: Section<'_>, seen: &mut Seen) -> Result<DiskConfig, TreeError> {
    let name = section
        .text("name")?
        .ok_or_else(|| section.error("name", "missing; give for example \"disk0\""))?
        .to_owned();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) || name.starts_with('.') {
        let problem = format!(
            "\"{name}\": allowed are 1 to 64 letters, digits, `-`, `_` and `.`, which is not the first"
        );
        return Err(section.error("name", problem));
    }
    once(
        &mut seen.disks,
        name.clone(),
        &section,
        "name",
        &format!("there is a disk \"{name}\" already"),
    )?;
    let read_only = section.flag("read_only")?.unwrap_or(false);
    let backend = backend(&mut section, seen)?;
    let scheduler = section
        .parse("scheduler", "the text of a scheduler", scheduler)?
        .ok_or_else(|| {
            section.error(
                "scheduler",
                "missing; give for example \"stream(deadline)\"",
            )
        })?;
    let belief = section.text("belief")?.map(str::to_owned);
    let curve = section.text("curve")?.map(str::to_owned);
    let depth = section.integer("depth", 1..=256)?.map(|depth| depth as u32);
    let merge = section.flag("merge")?.unwrap_or(true);
    let merge_max = section.size("merge_max")?.unwrap_or(Bytes(512 << 10));
    if merge_max.0 == 0 || !merge_max.0.is_multiple_of(512) || merge_max.0 > 1 << 30 {
        let problem = "allowed is a multiple of 512B, up to 1GiB";
        return Err(section.error("merge_max", problem));
    }
    let hide_processes = section.flag("hide_processes")?.unwrap_or(false);
    let timeout = section
        .parse("timeout", "a duration, or \"off\"", timeout)?
        .unwrap_or(Some(TIMEOUT));
    let faults = section.flag("faults")?.unwrap_or(false);
    let exports = match section.sections("export")? {
        Some(sections) if sections.len() > EXPORTS_MAX => {
            let problem = format!("{} exports; allowed are {EXPORTS_MAX}", sections.len());
            return Err(section.error("export", problem));
        }
        Some(sections) => sections
            .into_iter()
            .map(|section| export(section, seen, read_only))
            .collect::<Result<_, _>>()?,
        None => {
            once(
                &mut seen.exports,
                name.clone(),
                &section,
                "name",
                "is that of an export, and would be this disk's too, as it has none",
            )?;
            vec![ExportConfig {
                name: name.clone(),
                class: Class::default(),
                read_only,
            }]
        }
    };
    let keys = KEYS
        .into_iter()
        .filter(|key| section.has(key))
        .map(|key| (key, section.error(key, "").place));
    let at = Places {
        path: section.path().to_owned(),
        table: section.place().clone(),
        keys: keys.collect(),
    };
    section.finish()?;
    Ok(DiskConfig {
        name,
        backend,
        scheduler,
        belief,
        curve,
        depth,
        merge,
        merge_max,
        hide_processes,
        timeout,
        read_only,
        faults,
        exports,
        at,
    })
}

/// Keys of a disk that something can be wrong with that shows only when its files are read.
const KEYS: [&str; 11] = [
    "emulate",
    "device",
    "store",
    "size",
    "scheduler",
    "belief",
    "curve",
    "depth",
    "merge_max",
    "override",
    "firmware",
];

/// The policy that is told of requests before they come.
const FORETOLD: &str = "clairvoyant";

/// Reads a scheduler that can be had live.
pub fn scheduler(text: &str) -> Result<Spec, String> {
    let spec: Spec = text.parse().map_err(|error| format!("{error}"))?;
    if spec.info().name == FORETOLD {
        return Err("is told of requests before they come, which only a simulation can".to_owned());
    }
    Ok(spec)
}

/// `None` for never.
fn timeout(text: &str) -> Result<Option<Nanos>, String> {
    if text == "off" {
        return Ok(None);
    }
    let span: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if span < Nanos::from_millis(100) {
        return Err("allowed is 100ms and more, or \"off\"".to_owned());
    }
    Ok(Some(span))
}

fn backend(section: &mut Section<'_>, seen: &mut Seen) -> Result<Backend, TreeError> {
    let emulate = section.text("emulate")?.map(str::to_owned);
    let device = section.text("device")?.map(str::to_owned);
    let size = section.size("size")?;
    if size.is_some_and(|size| size.0 == 0 || !size.0.is_multiple_of(512)) {
        return Err(section.error("size", "allowed is a multiple of 512B, from 512B on"));
    }
    let only = |section: &Section<'_>, keys: &[&str], what: &str| match keys
        .iter()
        .find(|key| section.has(key))
    {
        Some(key) => Err(section.error(key, format!("is for {what} only"))),
        None => Ok(()),
    };
    const OF_EMULATED: [&str; 5] = ["store", "firmware", "override", "noise", "seed"];
    const OF_DEVICE: [&str; 2] = ["direct", "force"];
    match (emulate, device) {
        (Some(profile), None) => {
            only(section, &OF_DEVICE, "device = \"PATH\"")?;
            let store = section.text("store")?.ok_or_else(|| {
                section.error("store", "missing; give \"memory\" or the path of a file")
            })?;
            let store = match store {
                "" => return Err(section.error("store", "is empty; give \"memory\" or a path")),
                "memory" => None,
                path => Some(PathBuf::from(path)),
            };
            if let Some(path) = &store {
                in_use_once(seen, path, section, "store")?;
            }
            let firmware = section
                .parse("firmware", "\"profile\", \"fifo\" or \"sptf\"", str::parse)?
                .unwrap_or(Firmware::Profile);
            let noise = section.flag("noise")?.unwrap_or(true);
            let seed = section.integer("seed", 0..=i64::MAX as u64)?.unwrap_or(1);
            let overrides = section
                .any_table("override")?
                .map(Table::to_toml)
                .unwrap_or_default();
            Ok(Backend::Emulated(Emulated {
                profile,
                firmware,
                overrides,
                noise,
                seed,
                store,
                size,
            }))
        }
        (None, Some(device)) if device == "null" => {
            only(section, &OF_EMULATED, "emulate = \"DRIVE\"")?;
            only(section, &OF_DEVICE, "device = \"PATH\"")?;
            let size = size.ok_or_else(|| {
                section.error("size", "missing; the null device is as large as this says")
            })?;
            Ok(Backend::Null { size })
        }
        (None, Some(device)) => {
            only(section, &OF_EMULATED, "emulate = \"DRIVE\"")?;
            if device.is_empty() {
                return Err(section.error("device", "is empty; give a path or \"null\""));
            }
            let path = PathBuf::from(device);
            in_use_once(seen, &path, section, "device")?;
            let direct = section.flag("direct")?.unwrap_or(true);
            let force = section.flag("force")?.unwrap_or(false);
            Ok(Backend::Device {
                path,
                direct,
                force,
                size,
            })
        }
        (Some(_), Some(_)) => {
            let problem = "allowed is one of emulate and device";
            Err(section.error("device", problem))
        }
        (None, None) => Err(section.error(
            "emulate",
            "missing; give emulate = \"wd5000aaks\" or the like, or device = \"PATH\"",
        )),
    }
}

fn in_use_once(
    seen: &mut Seen,
    path: &Path,
    section: &Section<'_>,
    key: &str,
) -> Result<(), TreeError> {
    let what = format!("{} is in use already", path.display());
    once(&mut seen.files, canonical(path), section, key, &what)
}

fn export(
    mut section: Section<'_>,
    seen: &mut Seen,
    disk_read_only: bool,
) -> Result<ExportConfig, TreeError> {
    let name = section
        .text("name")?
        .ok_or_else(|| section.error("name", "missing; give what clients ask for"))?
        .to_owned();
    // A file of this name stands for it where a disk is attached.
    let is_file_name = !name.is_empty()
        && name.len() <= 255
        && name != "."
        && name != ".."
        && !name.contains('/')
        && !name.contains(char::is_control);
    if !is_file_name {
        let problem = "allowed are 1 to 255 bytes without `/` and control characters";
        return Err(section.error("name", problem));
    }
    let what = format!("there is an export \"{name}\" already");
    once(&mut seen.exports, name.clone(), &section, "name", &what)?;
    let class = section
        .parse("class", "a class", crate::scenario::class)?
        .unwrap_or_default();
    let read_only = section.flag("read_only")?.unwrap_or(disk_read_only);
    if disk_read_only && !read_only {
        return Err(section.error("read_only", "is false, but the disk is read-only"));
    }
    section.finish()?;
    Ok(ExportConfig {
        name,
        class,
        read_only,
    })
}

fn listen(mut section: Section<'_>, seen: &mut Seen) -> Result<ListenConfig, TreeError> {
    let expected = "a socket, such as \"unix:headtime.sock\"";
    let nbd = section
        .parse_list("nbd", expected, socket)?
        .unwrap_or_default();
    let tcp = section.flag("tcp")?.unwrap_or(false);
    let metrics = section.parse(
        "metrics",
        "an address, such as \"127.0.0.1:9104\"",
        loopback,
    )?;
    let control = section.parse("control", expected, |text| match socket(text)? {
        Socket::Unix(path) => Ok(path),
        Socket::Tcp(_) => Err("allowed is a unix socket only, unix:PATH".to_owned()),
    })?;
    let mut sockets: Vec<(&str, &Path)> = Vec::new();
    sockets.extend(nbd.iter().filter_map(|socket| match socket {
        Socket::Unix(path) => Some(("nbd", path.as_path())),
        Socket::Tcp(_) => None,
    }));
    sockets.extend(control.as_deref().map(|path| ("control", path)));
    for (key, path) in sockets {
        in_use_once(seen, path, &section, key)?;
    }
    let mut addresses: BTreeMap<SocketAddr, Place> = BTreeMap::new();
    let tcp_sockets = nbd.iter().filter_map(|socket| match socket {
        Socket::Tcp(address) => Some(("nbd", *address)),
        Socket::Unix(_) => None,
    });
    for (key, address) in tcp_sockets.chain(metrics.map(|address| ("metrics", address))) {
        // Port 0 is another one each time.
        if address.port() != 0 {
            let what = format!("{address} is in use already");
            once(&mut addresses, address, &section, key, &what)?;
        }
    }
    section.finish()?;
    Ok(ListenConfig {
        nbd,
        tcp,
        metrics,
        control,
    })
}

/// Reads `unix:PATH` or `tcp:ADDRESS:PORT`.
fn socket(text: &str) -> Result<Socket, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.len() {
            0 => Err("the path is missing; write unix:PATH".to_owned()),
            len if len > SOCKET_PATH_MAX => Err(format!(
                "the path has {len} bytes; a unix socket's has at most {SOCKET_PATH_MAX}"
            )),
            _ => Ok(Socket::Unix(PathBuf::from(path))),
        };
    }
    if let Some(address) = text.strip_prefix("tcp:") {
        return loopback(address).map(Socket::Tcp);
    }
    Err(format!("`{text}`: write unix:PATH, or tcp:127.0.0.1:10809"))
}

/// Reads an address that only this machine reaches.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let literal = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    let address: SocketAddr = literal
        .parse()
        .map_err(|_| "write address and port, such as 127.0.0.1:9104 or [::1]:9104".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "other machines could reach that address; allowed are 127.0.0.1 and [::1] only"
                .to_owned(),
        ),
    }
}

fn log(mut section: Section<'_>) -> Result<LogConfig, TreeError> {
    let level = section.text("level")?.map(str::to_owned);
    let format = section.parse("format", "\"text\" or \"json\"", |text| match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("allowed are text, json".to_owned()),
    })?;
    let events = section.text("events")?.map(PathBuf::from);
    section.finish()?;
    Ok(LogConfig {
        level,
        format,
        events,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every key there is.
    const FULL: &str = "\
[[disk]]
name = \"disk0\"
emulate = \"wd5000aaks\"
store = \"store.img\"
size = \"4GiB\"
scheduler = \"stream(deadline)\"
firmware = \"sptf\"
override.cache.enabled = false
noise = false
seed = 7
belief = \"atlas10k\"
curve = \"curve.toml\"
depth = 8
merge = false
merge_max = \"64KiB\"
hide_processes = true
timeout = \"off\"
read_only = false
faults = true
[[disk.export]]
name = \"vm\"
class = \"real-time\"
[[disk.export]]
name = \"backup\"
class = \"idle\"
read_only = true
[[disk]]
name = \"disk1\"
device = \"/dev/null-or-so\"
direct = false
force = true
scheduler = \"noop\"
[[disk]]
name = \"nothing\"
device = \"null\"
size = \"1TiB\"
scheduler = \"noop\"
[listen]
nbd = [\"unix:nbd.sock\", \"tcp:localhost:10809\"]
tcp = true
metrics = \"[::1]:9104\"
control = \"unix:control.sock\"
[log]
level = \"debug\"
format = \"json\"
events = \"events.log\"
";

    #[test]
    fn everything_at_once() {
        let config = Config::parse("c.toml", FULL).unwrap();
        let [disk0, disk1, nothing] = &config.disks[..] else {
            panic!("{config:?}");
        };
        assert_eq!(disk0.scheduler.to_string(), "stream(deadline)");
        assert_eq!((disk0.depth, disk0.timeout), (Some(8), None));
        assert!(disk0.hide_processes && disk0.faults && !disk0.merge);
        assert_eq!(disk0.exports[0].class, Class::REAL_TIME);
        assert!(disk0.exports[1].read_only && !disk0.exports[0].read_only);
        let Backend::Emulated(emulated) = &disk0.backend else {
            panic!("{disk0:?}");
        };
        assert_eq!((emulated.seed, emulated.noise), (7, false));
        assert_eq!(emulated.store.as_deref(), Some(Path::new("store.img")));
        assert_eq!(disk1.timeout, Some(Nanos::from_secs(30)));
        assert_eq!((disk1.exports.len(), &*disk1.exports[0].name), (1, "disk1"));
        let device = Backend::Device {
            path: PathBuf::from("/dev/null-or-so"),
            direct: false,
            force: true,
            size: None,
        };
        assert_eq!(disk1.backend, device);
        let null = Backend::Null {
            size: Bytes(1 << 40),
        };
        assert_eq!(nothing.backend, null);
        let tcp = Socket::Tcp("127.0.0.1:10809".parse().unwrap());
        assert_eq!(config.listen.nbd[1], tcp);
        assert_eq!(config.log.format, Some(LogFormat::Json));
    }

    /// Changes of the above, and what is said about them.
    #[test]
    fn what_does_not_fit() {
        let long = format!("unix:{}", "x".repeat(108));
        for (from, to, error) in [
            (
                "depth = 8",
                "deph = 8",
                "c.toml:13: disk[0].deph: unknown key; did you mean `depth`?",
            ),
            (
                "[log]",
                "[logs]",
                "c.toml:43: logs: unknown key; did you mean `log`?",
            ),
            (
                "name = \"disk1\"",
                "name = \"disk0\"",
                "c.toml:28: disk[1].name: there is a disk \"disk0\" already, at c.toml:2",
            ),
            (
                "name = \"backup\"",
                "name = \"vm\"",
                "c.toml:24: disk[0].export[1].name: there is an export \"vm\" already, at c.toml:21",
            ),
            (
                "name = \"backup\"",
                "name = \"disk1\"",
                "c.toml:28: disk[1].name: is that of an export, and would be this disk's too, as it has none, at c.toml:24",
            ),
            (
                "name = \"vm\"",
                "name = \"a/b\"",
                "disk[0].export[0].name: allowed are 1 to 255 bytes",
            ),
            (
                "name = \"disk1\"",
                "name = \"../x\"",
                "disk[1].name: \"../x\": allowed are 1 to 64",
            ),
            (
                "device = \"/dev/null-or-so\"",
                "device = \"store.img\"",
                "c.toml:29: disk[1].device: store.img is in use already, at c.toml:4",
            ),
            (
                "device = \"/dev/null-or-so\"",
                "device = \"x\"\nemulate = \"atlas10k\"",
                "disk[1].device: allowed is one of emulate and device",
            ),
            (
                "device = \"/dev/null-or-so\"",
                "size = \"1GiB\"",
                "disk[1].emulate: missing; give emulate",
            ),
            (
                "store = \"store.img\"\n",
                "",
                "disk[0].store: missing; give \"memory\"",
            ),
            (
                "direct = false",
                "store = \"memory\"",
                "disk[1].store: is for emulate = \"DRIVE\" only",
            ),
            (
                "noise = false",
                "direct = true",
                "disk[0].direct: is for device = \"PATH\" only",
            ),
            (
                "size = \"1TiB\"\n",
                "",
                "disk[2].size: missing; the null device",
            ),
            (
                "size = \"4GiB\"",
                "size = \"1000B\"",
                "disk[0].size: allowed is a multiple of 512B",
            ),
            (
                "size = \"4GiB\"",
                "size = 4",
                "disk[0].size: is the number 4, but should be a size",
            ),
            (
                "scheduler = \"stream(deadline)\"",
                "scheduler = \"sream\"",
                "disk[0].scheduler: \"sream\": ",
            ),
            (
                "scheduler = \"stream(deadline)\"",
                "scheduler = \"clairvoyant\"",
                "disk[0].scheduler: \"clairvoyant\": is told of requests before they come",
            ),
            (
                "timeout = \"off\"",
                "timeout = \"1ms\"",
                "disk[0].timeout: \"1ms\": allowed is 100ms and more, or \"off\"",
            ),
            (
                "depth = 8",
                "depth = 0",
                "disk[0].depth: 0 is out of range; allowed is 1 to 256",
            ),
            (
                "merge_max = \"64KiB\"",
                "merge_max = \"2GiB\"",
                "disk[0].merge_max: allowed is a multiple of 512B",
            ),
            (
                "class = \"idle\"",
                "class = \"best\"",
                "disk[0].export[1].class: \"best\": allowed are real-time",
            ),
            ("read_only = false", "read_only = true", ""),
            (
                "tcp:localhost:10809",
                "tcp:10.0.0.1:10809",
                "listen.nbd: other machines could reach that address",
            ),
            (
                "tcp:localhost:10809",
                "udp:x",
                "listen.nbd: `udp:x`: write unix:PATH",
            ),
            (
                "tcp:localhost:10809",
                "tcp:[::1]:9104",
                "listen.metrics: [::1]:9104 is in use already, at c.toml:39",
            ),
            (
                "[::1]:9104",
                "0.0.0.0:9104",
                "listen.metrics: \"0.0.0.0:9104\": other machines",
            ),
            (
                "[::1]:9104",
                "9104",
                "listen.metrics: \"9104\": write address and port",
            ),
            (
                "unix:control.sock",
                "unix:nbd.sock",
                "c.toml:42: listen.control: nbd.sock is in use already, at c.toml:39",
            ),
            (
                "unix:control.sock",
                "unix:store.img",
                "listen.control: store.img is in use already, at c.toml:4",
            ),
            (
                "unix:control.sock",
                "tcp:127.0.0.1:1",
                "listen.control: \"tcp:127.0.0.1:1\": allowed is a unix socket",
            ),
            (
                "unix:control.sock",
                &long,
                "the path has 108 bytes; a unix socket's has at most 107",
            ),
            ("unix:control.sock", "unix:", "the path is missing"),
            (
                "format = \"json\"",
                "format = \"xml\"",
                "log.format: \"xml\": allowed are text, json",
            ),
        ] {
            let changed = FULL.replacen(from, to, 1);
            assert_ne!(changed, FULL, "{from}");
            match Config::parse("c.toml", &changed) {
                Ok(_) => assert_eq!(error, "", "{to} is taken"),
                Err(found) => {
                    let found = found.to_string();
                    assert!(!error.is_empty() && found.contains(error), "{found}");
                }
            }
        }
        for (text, error) in [
            ("", "c.toml:1: disk: missing; give at least one [[disk]]"),
            ("disk = []", "c.toml:1: disk: is an empty list"),
            ("[[disk]]\n", "c.toml:1: disk[0].name: missing"),
        ] {
            let found = Config::parse("c.toml", text).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
        // A read-only disk has no export that takes writes.
        let text = FULL.replacen("read_only = false", "read_only = true", 1);
        let text = text.replacen("class = \"idle\"\nread_only = true", "read_only = false", 1);
        let found = Config::parse("c.toml", &text).unwrap_err().to_string();
        assert!(
            found.contains("read_only: is false, but the disk is read-only"),
            "{found}"
        );
    }

    #[test]
    fn what_takes_a_restart() {
        let config = Config::parse("c.toml", FULL).unwrap();
        let other = |from: &str, to: &str| {
            let other = Config::parse("c.toml", &FULL.replacen(from, to, 1)).unwrap();
            config.disks[0].fixed_differences(&other.disks[0])
        };
        assert_eq!(
            other("scheduler = \"stream", "scheduler = \"stream"),
            [""; 0]
        );
        assert_eq!(other("timeout = \"off\"", "timeout = \"1s\""), [""; 0]);
        assert_eq!(other("depth = 8", "depth = 9"), ["depth"]);
        assert_eq!(
            other("seed = 7", "seed = 8"),
            ["emulate, device, store or size"]
        );
        assert_eq!(
            other("class = \"idle\"", "class = \"real-time\""),
            ["export"]
        );
    }

    proptest! {
        /// The configuration with a piece replaced by another: mostly still TOML, so that it gets far.
        #[test]
        fn no_damage_makes_it_panic(
            start in 0.0..1.0_f64,
            len in 0_usize..12,
            piece in "[\"\\[\\]{}=,.a-z0-9 \n:-]{0,12}",
        ) {
            let start = (start * FULL.len() as f64) as usize;
            let end = (start + len).min(FULL.len());
            let _ = Config::parse("c", &format!("{}{piece}{}", &FULL[..start], &FULL[end..]));
        }
    }
}
