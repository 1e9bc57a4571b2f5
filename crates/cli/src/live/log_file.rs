//! The file of a disk's events and decisions.

use headtime_lab::fault::{Fault, name};
use headtime_linux::shown::PathShown as _;
use headtime_serve::backing::{MakeError, may_make};
use rustix::fs::{FlockOperation, OFlags, fcntl_setfl, flock};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// File of a log. Each write goes to the file at once, so that a killed server leaves the log of its work.
///
/// The first write of a run removes the content of an earlier run.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    is_new: bool,
    void: Arc<AtomicBool>,
}

/// An opened log, which can be undone. The file stays locked until this value is dropped, so that two servers do not write to one file.
#[derive(Debug)]
pub(super) struct OpenedLog {
    /// Path of the file, if the file is new.
    made: Option<PathBuf>,
    void: Arc<AtomicBool>,
    lock: File,
}

/// Largest number of attempts to open a log that other servers make and remove meanwhile.
const TRIES_MAX: u32 = 32;

impl LogFile {
    /// Opens the file, and makes the file if it is missing. A pipe is accepted if it has a reader. If that reader stops reading, the
    /// disk does not wait.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, another server has the file, or the file is a disk.
    pub fn open(path: &Path) -> Result<(LogFile, OpenedLog), Fault> {
        let failed = |error: io::Error| Fault::writing(path, &error);
        for _ in 0..TRIES_MAX {
            let (file, made) = match open_or_make(path) {
                Ok(opened) => opened,
                // Another process has made or removed the file since.
                Err(Unopened::Changed) => continue,
                Err(Unopened::Fault(fault)) => return Err(fault),
            };
            if file.metadata().map_err(failed)?.is_file() {
                match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => {}
                    Err(Errno::WOULDBLOCK) => {
                        return Err(refused(path, "another server writes its log there"));
                    }
                    // Not every file system has locks.
                    Err(error) => tracing::debug!("{}: cannot lock: {error}", path.shown()),
                }
                if !is(fs::metadata(path), &file) {
                    continue;
                }
            }
            let void = Arc::new(AtomicBool::new(false));
            let opened = OpenedLog {
                made: made.then(|| path.to_owned()),
                void: Arc::clone(&void),
                lock: file.try_clone().map_err(failed)?,
            };
            let log = LogFile {
                file,
                is_new: true,
                void,
            };
            return Ok((log, opened));
        }
        Err(refused(
            path,
            "is replaced or removed again and again by somebody else",
        ))
    }
}

/// Refuses a log that cannot be written, as far as that is visible without opening the file.
///
/// # Errors
///
/// If the file is a disk, or if the file is missing and may not be made there.
pub(super) fn look(path: &Path) -> Result<(), Fault> {
    match fs::metadata(path) {
        Ok(found) => refuse_disk(path, &found),
        Err(error) if error.kind() == ErrorKind::NotFound => may_be_made(path),
        Err(error) => Err(Fault::writing(path, &error)),
    }
}

fn refused(path: &Path, why: &str) -> Fault {
    Fault::File(format!("{}: {why}", name(path)))
}

enum Unopened {
    Changed,
    Fault(Fault),
}

/// Opens or makes the file. Also returns true if the file is new.
fn open_or_make(path: &Path) -> Result<(File, bool), Unopened> {
    let failed = |error: io::Error| Unopened::Fault(Fault::writing(path, &error));
    let mut options = OpenOptions::new();
    // A pipe without a reader is refused rather than waited for.
    options
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    if let Ok(found) = fs::metadata(path) {
        refuse_disk(path, &found).map_err(Unopened::Fault)?;
    }
    match options.open(path) {
        Ok(file) => {
            // From here on the log's own thread waits for the reader.
            fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(error.into()))?;
            return Ok((file, false));
        }
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            let why = "is a pipe that nobody reads, or a socket";
            return Err(Unopened::Fault(refused(path, why)));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    may_be_made(path).map_err(Unopened::Fault)?;
    // A link to a missing file stays when the log is removed.
    let is_link = fs::symlink_metadata(path).is_ok();
    match options.create(is_link).create_new(!is_link).open(path) {
        Ok(file) => Ok((file, !is_link)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Unopened::Changed),
        Err(error) => Err(failed(error)),
    }
}

fn refuse_disk(path: &Path, found: &Metadata) -> Result<(), Fault> {
    if found.file_type().is_block_device() {
        let why = "is a block device, and the log would overwrite its data";
        return Err(refused(path, why));
    }
    Ok(())
}

/// Refuses a forbidden place. Opening the file shows other problems.
fn may_be_made(path: &Path) -> Result<(), Fault> {
    match may_make(path) {
        Err(error @ MakeError::Forbidden { .. }) => Err(Fault::File(error.to_string())),
        _ => Ok(()),
    }
}

/// True if the file found under a name is this open file.
fn is(found: io::Result<Metadata>, file: &File) -> bool {
    let number = |found: io::Result<Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    let ours = number(file.metadata());
    ours.is_some() && number(found) == ours
}

impl OpenedLog {
    /// Undoes the log of a disk that has served nothing: an old file keeps its content, and a new file is removed. The caller must call
    /// this before stopping the disk.
    pub fn undo(&self) {
        self.void.store(true, Ordering::SeqCst);
        if let Some(path) = &self.made
            && is(fs::symlink_metadata(path), &self.lock)
            && let Err(error) = fs::remove_file(path)
        {
            tracing::warn!("{}: is left behind: {error}", path.shown());
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.void.load(Ordering::SeqCst) {
            return Ok(piece.len());
        }
        if self.is_new {
            // A pipe, or /dev/stdout, has no content to remove.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder that is removed at the end of a test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("headtime-log-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn refused(path: &Path) -> String {
        let looked = look(path).unwrap_err().to_string();
        assert_eq!(LogFile::open(path).unwrap_err().to_string(), looked);
        looked
    }

    #[test]
    fn a_log_that_was_made_in_vain_goes_unless_it_is_anothers_by_now() {
        let folder = Folder::new("undo");
        let path = folder.path("log");
        let (_, opened) = LogFile::open(&path).unwrap();
        opened.undo();
        assert!(!path.exists());
        let (_, opened) = LogFile::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let (mut log, _other) = LogFile::open(&path).unwrap();
        log.write_all(b"another's").unwrap();
        opened.undo();
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }

    #[test]
    fn a_log_is_written_where_a_link_leads() {
        let folder = Folder::new("link");
        let (path, to) = (folder.path("log"), folder.path("to"));
        symlink("to", &path).unwrap();
        look(&path).unwrap();
        let (mut log, opened) = LogFile::open(&path).unwrap();
        log.write_all(b"events").unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"events");
        opened.undo();
        assert!(path.exists(), "the link is not ours");
    }

    #[test]
    fn no_log_is_made_in_dev() {
        let folder = Folder::new("dev");
        let path = folder.path("log");
        symlink("/dev/headtime-sdz", &path).unwrap();
        let expected = "/dev/headtime-sdz is not there, and no file is made under /dev";
        assert_eq!(refused(&path), expected);
        assert_eq!(refused(Path::new("/dev/headtime-sdz")), expected);
        assert!(!Path::new("/dev/headtime-sdz").exists());
        // An existing file there takes the log.
        look(Path::new("/dev/null")).unwrap();
        LogFile::open(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn a_disk_is_no_log() {
        let is_disk =
            |path: &Path| fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
        let mut disks = fs::read_dir("/dev")
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| is_disk(path));
        let Some(disk) = disks.next() else {
            println!("skipped: there is no block device in /dev");
            return;
        };
        // The test does not open the device, which may belong to this machine.
        let error = look(&disk).unwrap_err().to_string();
        let shown = disk.display();
        assert_eq!(
            error,
            format!("{shown}: is a block device, and the log would overwrite its data")
        );
    }
}
