//! Files of a probe: the state, for resuming, and the record of switches that must be put back.
//!
//! Each file starts with a line that has its kind and a hash of the rest. The rest is TOML. Each file is written under a temporary
//! name, synced and renamed, so that a whole file always exists. The state is locked while a probe runs. This lock also protects the
//! record.

use headtime_config::{Place, Table, read, to_text};
use headtime_lab::fault::{Fault, name};
use headtime_lab::files::{lock, sync_directory};
use headtime_lab::hash::hash_of;
use headtime_linux::shown::one_line;
use headtime_probe::Switch;
use headtime_probe::extract::Extraction;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Start of the first line.
const STATE: &str = "# What a headtime drive probe knows ";
const SWITCHES: &str = "# What a headtime drive probe is to put back ";

/// Content of a state.
#[derive(Deserialize, Serialize)]
struct KeptState {
    version: String,
    /// Identity of the disk.
    disk: String,
    extraction: Extraction,
}

/// Content of a record of switches.
#[derive(Deserialize, Serialize)]
struct Turned {
    disk: String,
    #[serde(default)]
    look_ahead: Option<bool>,
    #[serde(default)]
    write_cache: Option<bool>,
}

/// File of a state, locked by this process.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    disk: String,
    /// Open file that holds the lock.
    _file: File,
}

impl StateFile {
    /// Locks the file for the probe of a disk, and reads the file's content, if there is any.
    ///
    /// # Errors
    ///
    /// If another process has locked the file. If the file cannot be read, is damaged, or is of another disk or version.
    pub fn open(path: &Path, disk: &str) -> Result<(StateFile, Option<Extraction>), Fault> {
        // Each write replaces the file. A device or a pipe would be lost.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let name = name(path);
            return Err(Fault::Usage(format!(
                "--state {name}: is there and no regular file"
            )));
        }
        let mut file = lock(path, "another probe is writing it; give another --state")?;
        let mut content = String::new();
        file.read_to_string(&mut content)
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => damaged(path, STATE),
                _ => Fault::reading(path, &error),
            })?;
        let state = StateFile {
            path: path.to_owned(),
            disk: disk.to_owned(),
            _file: file,
        };
        // An earlier probe was killed before anything was written.
        if content.is_empty() {
            return Ok((state, None));
        }
        let found: KeptState = parsed(path, STATE, &content, "another --state")?;
        if found.version != VERSION {
            return Err(Fault::Input(format!(
                "{}: was written by headtime {}; this is {VERSION}, which may learn otherwise. Go on with that one, or begin \
                 with another --state",
                name(path),
                one_line(&found.version)
            )));
        }
        if found.disk != disk {
            return Err(Fault::Input(format!(
                "{}: is of another disk: {}; this is {disk}. Begin with another --state",
                name(path),
                one_line(&found.disk)
            )));
        }
        Ok((state, Some(found.extraction)))
    }

    /// Writes the present knowledge.
    ///
    /// # Errors
    ///
    /// If the file cannot be written. The old content remains.
    pub fn write(&mut self, extraction: &Extraction) -> Result<(), Fault> {
        let state = KeptState {
            version: VERSION.to_owned(),
            disk: self.disk.clone(),
            extraction: extraction.clone(),
        };
        self._file = replace(&self.path, STATE, &to_text(&state))
            .map_err(|error| Fault::writing(&self.path, &error))?;
        Ok(())
    }

    /// Returns the record of switches that the probe has changed.
    pub fn record(&self) -> SwitchRecord {
        SwitchRecord::beside(&self.path, &self.disk)
    }
}

/// File with the switches of a disk to be put back. The file exists only while switches are changed.
#[derive(Clone, Debug)]
pub(super) struct SwitchRecord {
    path: PathBuf,
    disk: String,
}

/// Path of the record of switches next to a state.
pub(super) fn record_beside(state: &Path) -> PathBuf {
    beside(state, "", ".switches")
}

impl SwitchRecord {
    /// Creates the record of a disk next to its state, without writing a file.
    pub fn beside(state: &Path, disk: &str) -> SwitchRecord {
        SwitchRecord {
            path: record_beside(state),
            disk: disk.to_owned(),
        }
    }

    /// Returns switches that a killed probe has left changed, with their former states.
    ///
    /// # Errors
    ///
    /// If the record cannot be read, is damaged, or is of another disk.
    pub fn left(&self) -> Result<Vec<(Switch, bool)>, Fault> {
        let path = &self.path;
        let content = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(damaged(path, SWITCHES));
            }
            content => content.map_err(|error| Fault::reading(path, &error))?,
        };
        let turned: Turned = parsed(path, SWITCHES, &content, "what it says")?;
        if turned.disk != self.disk {
            return Err(Fault::Input(format!(
                "{}: is of another disk, whose switches a killed probe has left turned: {}; probe that one with this --state first",
                name(path),
                one_line(&turned.disk)
            )));
        }
        let both = [
            (Switch::LookAhead, turned.look_ahead),
            (Switch::WriteCache, turned.write_cache),
        ];
        Ok(both
            .into_iter()
            .filter_map(|(which, on)| Some((which, on?)))
            .collect())
    }

    /// Writes the switches to be put back. Removes the record if there are none.
    ///
    /// # Errors
    ///
    /// If the record cannot be written or removed.
    pub fn note(&self, turned: &[(Switch, bool)]) -> io::Result<()> {
        if turned.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
                Ok(()) => sync_directory(&self.path),
            };
        }
        let of = |which: Switch| {
            let found = turned.iter().find(|(turned, _)| *turned == which);
            found.map(|(_, on)| *on)
        };
        let content = Turned {
            disk: self.disk.clone(),
            look_ahead: of(Switch::LookAhead),
            write_cache: of(Switch::WriteCache),
        };
        replace(&self.path, SWITCHES, &to_text(&content)).map(|_| ())
    }
}

/// Path next to a file, with text before and after the file's name.
fn beside(path: &Path, before: &str, behind: &str) -> PathBuf {
    let mut name = OsString::from(before);
    name.push(path.file_name().unwrap_or_default());
    name.push(behind);
    path.with_file_name(name)
}

/// Replaces a file by a new one. Before the new file gets the name, it is synced and locked.
fn replace(path: &Path, what: &str, text: &str) -> io::Result<File> {
    // Only the holder of the lock writes this file.
    let part = beside(path, ".", ".part");
    let mut file = File::create(&part)?;
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    let written = file
        .write_all(format!("{what}{}\n{text}", hash_of(text)).as_bytes())
        .and_then(|()| file.sync_data())
        .and_then(|()| fs::rename(&part, path))
        .and_then(|()| sync_directory(path));
    if written.is_err() {
        // A failure to remove the temporary file is ignored.
        let _ = fs::remove_file(&part);
    }
    written.map(|()| file)
}

/// Reads the content of a file whose first line is `what` and a hash.
fn parsed<T: serde::de::DeserializeOwned>(
    path: &Path,
    what: &str,
    content: &str,
    otherwise: &str,
) -> Result<T, Fault> {
    let Some(rest) = content.strip_prefix(what) else {
        // Content that is cut off within the first line means a damaged file of this kind.
        if what.starts_with(content) {
            return Err(damaged(path, what));
        }
        return Err(Fault::Input(format!(
            "{}: is no file of a probe; give {otherwise}",
            name(path)
        )));
    };
    let whole = rest
        .split_once('\n')
        .filter(|(hash, text)| *hash == hash_of(text));
    let (_, text) = whole.ok_or_else(|| damaged(path, what))?;
    let name = name(path);
    // Line numbers in errors count from the start of the file.
    let table = Table::parse(&name, &format!("\n{text}"));
    let value = table.and_then(|table| read(&table, &Place::line(&name, 2)));
    value.map_err(|error| {
        Fault::Input(format!(
            "{error}; another version of headtime has written this"
        ))
    })
}

fn damaged(path: &Path, what: &str) -> Fault {
    let name = name(path);
    Fault::Input(match what {
        SWITCHES => format!(
            "{name}: is damaged or cut off; it says which switches of the disk a killed probe has left turned. See whether its \
             write cache and look-ahead are on (hdparm -W -A, sdparm --get WCE), and remove it"
        ),
        _ => format!(
            "{name}: is damaged or cut off, so that nothing can be gone on with; remove it, or begin with another --state"
        ),
    })
}
