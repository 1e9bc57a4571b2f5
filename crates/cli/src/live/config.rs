//! The configuration of a server, as `docs/serve.md` explains it.

mod access;
mod array;
mod disk;
mod listen;
mod program;
mod sections;
mod seen;

pub use access::{AccessConfig, GroupConfig, group_error};
pub use array::coordinates;
pub use disk::scheduler;
pub use listen::SOCKET_PATH_MAX;
pub use sections::{
    ArrayConfig, Backend, DEVICE_DEPTH, DiskConfig, Emulated, ExportConfig, ExportRange,
    GeometryConfig, Layout, ListenConfig, LogConfig, LogFormat, ProgramConfig, Socket,
    differing_keys,
};

use headtime_config::{Error, OneOrList, Place, Placed, Table};
use headtime_lab::fault::Fault;
use headtime_linux::shown::PathShown as _;
use seen::Seen;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Most disks of one server.
const DISKS_MAX: usize = 256;

/// Configuration of a server, checked as far as possible without opening the files that it names.
#[derive(Clone, Debug)]
pub struct Config {
    /// File of the configuration.
    pub file: PathBuf,
    /// Disks in the order of the file, at least one.
    pub disks: Vec<DiskConfig>,
    /// Arrays of these disks, in the order of the file.
    pub arrays: Vec<ArrayConfig>,
    /// Programs that share disks, in the order of their numbers from 1 on.
    pub programs: Vec<ProgramConfig>,
    /// Sockets of clients, of the control and of the metrics.
    pub listen: ListenConfig,
    /// Messages and log of the run.
    pub log: LogConfig,
}

/// Sections of the file.
#[derive(Deserialize)]
struct ConfigKeys {
    disk: Option<OneOrList<Placed<disk::DiskKeys>>>,
    array: Option<OneOrList<Placed<array::ArrayKeys>>>,
    qos: Option<Placed<program::QosKeys>>,
    listen: Option<Placed<listen::ListenKeys>>,
    log: Option<listen::LogKeys>,
}

impl Config {
    /// Reads a configuration file. Paths in it are relative to the working directory.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or if its keys do not fit together. The error has file, line and key.
    pub fn open(path: &Path) -> Result<Config, Fault> {
        let (file, text) = text(path)?;
        Config::parse(&file, &text).map_err(Fault::input)
    }

    /// Reads the text of a configuration; `file` is the name that errors give.
    ///
    /// # Errors
    ///
    /// If the keys do not fit together.
    pub fn parse(file: &str, text: &str) -> Result<Config, Error> {
        let table = Table::parse(file, text)?;
        let top = Place::line(file, 1);
        let wrong = |problem: String| {
            let place = table.place("disk").unwrap_or(&top);
            Err(Error::new(place.clone(), "disk", problem))
        };
        let read: ConfigKeys = headtime_config::read(&table, &top)?;
        let Some(OneOrList(disks)) = read.disk else {
            return wrong("missing; give at least one [[disk]]".to_owned());
        };
        match disks.len() {
            0 => return wrong("is an empty list; give at least one".to_owned()),
            count if count > DISKS_MAX => {
                return wrong(format!("{count} disks; allowed are {DISKS_MAX}"));
            }
            _ => {}
        }
        let arrays = read.array.map_or(Vec::new(), |OneOrList(arrays)| arrays);
        let of_arrays = arrays
            .iter()
            .flat_map(|array| array.members().iter().cloned());
        let of_arrays = of_arrays.collect();
        let mut seen = Seen::default();
        let mut disks = disks
            .into_iter()
            .map(|keys| disk::disk(keys, &mut seen, &of_arrays))
            .collect::<Result<Vec<_>, _>>()?;
        let mut arrays = arrays
            .into_iter()
            .map(|keys| array::array(keys, &disks, &mut seen))
            .collect::<Result<Vec<_>, _>>()?;
        let programs = match &read.qos {
            Some(keys) => program::programs(keys, &mut disks, &mut arrays)?,
            None => Vec::new(),
        };
        let listen = match &read.listen {
            Some(keys) => listen::listen(keys, &mut seen)?,
            None => ListenConfig::default(),
        };
        let log = read.log.map(LogConfig::from).unwrap_or_default();
        Ok(Config {
            file: PathBuf::from(file),
            disks,
            arrays,
            programs,
            listen,
            log,
        })
    }

    /// Finds the disk of a name.
    pub fn disk(&self, name: &str) -> Option<&DiskConfig> {
        self.disks.iter().find(|disk| disk.name == name)
    }
}

/// Returns the name and the text of a file.
fn text(path: &Path) -> Result<(String, String), Fault> {
    let file = path.shown().to_string();
    let content = fs::read(path).map_err(|error| Fault::reading(path, &error))?;
    match String::from_utf8(content) {
        Ok(text) => Ok((file, text)),
        Err(_) => Err(Fault::Input(format!(
            "{file}: is not text in UTF-8; a configuration is TOML"
        ))),
    }
}

/// The file of a coordinator of several servers.
#[derive(Deserialize)]
struct CoordinatorKeys {
    qos: Placed<program::QosKeys>,
}

/// Reads the programs of a coordinator. The servers name the exports.
///
/// # Errors
///
/// If the file cannot be read, or if its keys do not fit together. The error has file, line and key.
pub fn programs(path: &Path) -> Result<Vec<ProgramConfig>, Fault> {
    let (file, text) = text(path)?;
    let read = || {
        let table = Table::parse(&file, &text)?;
        let keys: CoordinatorKeys = headtime_config::read(&table, &Place::line(&file, 1))?;
        program::listed(&keys.qos, None)
    };
    read().map_err(Fault::input)
}

#[cfg(test)]
mod tests;
