//! Files that a start makes: taken away again if nothing comes of it.

use super::config::Backend;
use super::disks::Prepared;
use crate::fault::Fault;
use headtime_serve::emulated::FILE_BYTES_MAX;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of a disk that were not there before it was started.
#[derive(Debug)]
pub(super) struct Made {
    data: Vec<PathBuf>,
    log: Option<PathBuf>,
}

impl Made {
    /// What starting a disk will make: what it names and is not there. To be asked before.
    pub fn by(prepared: &Prepared, log: Option<&Path>) -> Made {
        let mut data = match &prepared.config.backend {
            Backend::Emulated(emulated) => match &emulated.store {
                Some(path) => pieces(path, prepared.bytes()),
                None => Vec::new(),
            },
            Backend::Device {
                path,
                size: Some(_),
                ..
            } => vec![path.clone()],
            Backend::Device { .. } | Backend::Null { .. } => Vec::new(),
        };
        data.retain(|path| is_absent(path));
        let log = log.filter(|path| is_absent(path)).map(Path::to_owned);
        Made { data, log }
    }

    /// Takes them away. To be called when the disk has stopped.
    pub fn remove(&self) {
        self.remove_log();
        for path in &self.data {
            // A client may have been quicker than what went wrong. What was written has blocks; a
            // file that was only made has none.
            let is_hole = |found: &fs::Metadata| found.is_file() && found.blocks() == 0;
            if fs::symlink_metadata(path).is_ok_and(|found| is_hole(&found)) {
                remove(path);
            }
        }
    }

    /// Takes only the log away: it tells of nothing that was done.
    pub fn remove_log(&self) {
        if let Some(path) = &self.log {
            remove(path);
        }
    }
}

fn is_absent(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("{}: is left behind: {error}", path.display());
        }
        _ => {}
    }
}

/// The files of a store of so many bytes, as [`headtime_serve::emulated::StoreSpec`] names them.
fn pieces(path: &Path, bytes: u64) -> Vec<PathBuf> {
    let further = (1..bytes.div_ceil(FILE_BYTES_MAX)).map(|number| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    });
    std::iter::once(path.to_owned()).chain(further).collect()
}

/// The file of a disk's events and decisions. What is written is there at once: a server that is
/// killed leaves what it did.
///
/// It is locked, so that two servers do not write to one; and what an earlier run has left in it
/// goes when the first of this one comes, not when a server is started that cannot have its disks.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    is_new: bool,
}

impl LogFile {
    /// Opens the file, and makes it if it is not there.
    pub fn open(path: &Path) -> Result<LogFile, Fault> {
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).open(path);
        let failed = |error: io::Error| Fault::writing(path, &error);
        let file = opened.map_err(failed)?;
        if file.metadata().map_err(failed)?.is_file() {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let path = path.display();
                    let problem = format!("{path}: another server writes its log there");
                    return Err(Fault::File(problem));
                }
                // Not every file system has locks.
                Err(error) => tracing::debug!("{}: cannot lock: {error}", path.display()),
            }
        }
        Ok(LogFile { file, is_new: true })
    }
}

impl Write for LogFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.is_new {
            // A pipe, or /dev/stdout, has nothing to be rid of.
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
            self.is_new = false;
        }
        self.file.write(piece)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
