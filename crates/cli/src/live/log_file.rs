//! The file of a disk's events and decisions.

use crate::fault::{Fault, name};
use rustix::fs::{FlockOperation, OFlags, fcntl_setfl, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a log goes. What is written is there at once: a server that is killed leaves what it did.
///
/// What an earlier run has left in it goes when the first of this one comes.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    is_new: bool,
    void: Arc<AtomicBool>,
}

/// A log that has been opened, which can be undone. It is locked until this is dropped, so that two
/// servers do not write to one.
#[derive(Debug)]
pub(super) struct OpenedLog {
    /// Of a file that was not there before.
    made: Option<PathBuf>,
    void: Arc<AtomicBool>,
    _lock: File,
}

impl LogFile {
    /// Opens the file, and makes it if it is not there. A pipe may be one, if somebody reads it; the disk
    /// does not wait for who stops reading.
    ///
    /// # Errors
    ///
    /// If it cannot be written, another server has it, or it is a disk.
    pub fn open(path: &Path) -> Result<(LogFile, OpenedLog), Fault> {
        let failed = |error: io::Error| Fault::writing(path, &error);
        let refused = |why: &str| Err(Fault::File(format!("{}: {why}", name(path))));
        if fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device()) {
            return refused("is a block device, and the log would overwrite its data");
        }
        let mut options = OpenOptions::new();
        let (file, made) = match options.write(true).create_new(true).open(path) {
            Ok(file) => (file, Some(path.to_owned())),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // Or a link to what is not there.
                let mut options = OpenOptions::new();
                let options = options.write(true).create(true).truncate(false);
                // A pipe that nobody reads is refused rather than waited for.
                let options = options.custom_flags(OFlags::NONBLOCK.bits() as i32);
                match options.open(path) {
                    Ok(file) => (file, None),
                    Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                        return refused("is a pipe that nobody reads, or a socket");
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
            Err(error) => return Err(failed(error)),
        };
        if made.is_none() {
            // From here on it is waited for, by the log's own thread.
            fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(error.into()))?;
        }
        if file.metadata().map_err(failed)?.is_file() {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return refused("another server writes its log there"),
                // Not every file system has locks.
                Err(error) => tracing::debug!("{}: cannot lock: {error}", path.display()),
            }
        }
        let void = Arc::new(AtomicBool::new(false));
        let opened = OpenedLog {
            made,
            void: Arc::clone(&void),
            _lock: file.try_clone().map_err(failed)?,
        };
        let log = LogFile {
            file,
            is_new: true,
            void,
        };
        Ok((log, opened))
    }
}

impl OpenedLog {
    /// The disk has done nothing, and the log is to tell nothing: what was there before stays, and
    /// what was not goes. To be called before the disk stops.
    pub fn undo(&self) {
        self.void.store(true, Ordering::SeqCst);
        if let Some(path) = &self.made
            && let Err(error) = fs::remove_file(path)
        {
            tracing::warn!("{}: is left behind: {error}", path.display());
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.void.load(Ordering::SeqCst) {
            return Ok(piece.len());
        }
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
