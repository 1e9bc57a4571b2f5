//! Files of scrubs, opened without touching other files. The header of each file names the disk.
//!
//! The header ends with a checksum, and has a name that no other file has. All checksums behind the header depend on this name ([`Seal`]).

use super::byte_range::ByteRange;
use super::identity::{Identity, ProgressError};
use super::seal::{BODY, PAGE, Seal};
use headtime_units::Sectors;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the header, and of one page for state that changes.
pub(super) const HEADER: usize = 16 << 10;

/// Bytes of the header alone: the JSON, zeroes and a checksum.
const SEALED: usize = HEADER - PAGE;

/// Sets the length of a file, and reserves room for it where the file system can. A later mark must not fail because other files have
/// filled the file system.
///
/// # Errors
///
/// If there is no room, or the file cannot be that long.
pub(super) fn make_room(file: &File, len: u64) -> io::Result<()> {
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len)) {
        // This file system cannot reserve room.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(len),
        made => Ok(made?),
    }
}

/// File that several threads make durable. The kernel reports a failure to one thread only, and this value reports the failure to all.
#[derive(Debug)]
pub(super) struct DurableFile {
    path: PathBuf,
    file: File,
    /// Held by the thread that calls the kernel.
    one: Mutex<()>,
    has_failed: Mutex<Option<(ErrorKind, String)>>,
}

impl DurableFile {
    pub fn of(file: File, path: PathBuf) -> Arc<DurableFile> {
        Arc::new(DurableFile {
            path,
            file,
            one: Mutex::new(()),
            has_failed: Mutex::default(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes all writes durable.
    ///
    /// # Errors
    ///
    /// If the sync fails, or a sync of any thread has failed since the last [`DurableFile::again`].
    pub fn sync(&self) -> io::Result<()> {
        // The kernel reports a failure once, so each thread waits for the answer of the thread before.
        let one = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        self.problem()?;
        let synced = self.file.sync_all();
        if let Err(error) = &synced {
            *self.failed() = Some((error.kind(), error.to_string()));
        }
        drop(one);
        synced
    }

    fn failed(&self) -> MutexGuard<'_, Option<(ErrorKind, String)>> {
        self.has_failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Error of an earlier sync, if one failed. The call never waits for a sync under way.
    pub fn problem(&self) -> io::Result<()> {
        match &*self.failed() {
            Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
            None => Ok(()),
        }
    }

    /// Forgets a failure. Returns true if there was one, and the caller then has to write everything again.
    pub fn again(&self) -> bool {
        self.failed().take().is_some()
    }
}

/// Identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    pub fn of(file: &File) -> io::Result<FileId> {
        let metadata = file.metadata()?;
        Ok(FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Returns true if the path names this file.
    pub fn is_at(self, path: &Path) -> bool {
        let there = std::fs::symlink_metadata(path);
        there.is_ok_and(|there| (there.dev(), there.ino()) == (self.device, self.inode))
    }
}

/// Error for a file that cannot be opened, read or written.
pub(super) fn failed(path: &Path, error: io::Error) -> ProgressError {
    let error = match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => io::Error::new(
            error.kind(),
            "a symbolic link, which is not followed; name the file itself",
        ),
        _ => error,
    };
    ProgressError::Io {
        path: path.to_owned(),
        error,
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    // A symbolic link must not make the server write elsewhere, and a pipe must not make it wait.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    options
}

/// Opens a file that exists, and locks it.
pub(super) fn open(path: &Path) -> Result<File, ProgressError> {
    let opened = options()
        .open(path)
        .and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(ErrorKind::InvalidInput, "no regular file")),
        });
    let file = opened.map_err(|error| failed(path, error))?;
    lock(&file, path)?;
    Ok(file)
}

/// Opens a file, if it exists, and locks it.
pub(super) fn open_if_there(path: &Path) -> Result<Option<File>, ProgressError> {
    match open(path) {
        Ok(file) => Ok(Some(file)),
        Err(ProgressError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a new file, and locks it.
pub(super) fn create(path: &Path) -> Result<File, ProgressError> {
    let made = options().create_new(true).open(path);
    let file = made.map_err(|error| failed(path, error))?;
    lock(&file, path).inspect_err(|error| {
        // Without locks the file would block the next attempt. A file in use belongs to another scrub.
        if !matches!(error, ProgressError::InUse { .. }) {
            let _ = std::fs::remove_file(path);
        }
    })?;
    Ok(file)
}

/// Makes a file that is to replace one of the server's own files, under another name so far.
pub(super) fn create_beside(path: &Path) -> Result<File, ProgressError> {
    let new = beside(path);
    // An earlier server may have left such a file. A link is removed and not followed.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&new, error)),
        _ => create(&new),
    }
}

fn beside(path: &Path) -> std::path::PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    new.into()
}

/// Removes a replacement that could not be completed, since it may have taken the last room.
pub(super) fn remove_beside(path: &Path) {
    let _ = std::fs::remove_file(beside(path));
}

/// Makes a replacement durable and renames it to `path`.
pub(super) fn put_in_place(file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    std::fs::rename(beside(path), path)?;
    sync_folder(path)
}

/// Makes the name of a file durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Locks a file, so that one server at a time uses it.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), ProgressError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(ProgressError::InUse {
            path: path.to_owned(),
            by: match is_locked_here(file) {
                true => "this server, for another disk or another scrub",
                false => "another server",
            },
        }),
        Err(error) => Err(failed(path, error.into())),
    }
}

/// Returns true if this process has the lock of a file, by the kernel's list of locks.
fn is_locked_here(file: &File) -> bool {
    let (Ok(metadata), Ok(locks)) = (file.metadata(), std::fs::read_to_string("/proc/locks"))
    else {
        return false;
    };
    let (process, inode) = (std::process::id().to_string(), metadata.ino().to_string());
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, owner, place, ..] = words[..] else {
            return false;
        };
        owner == process && place.rsplit(':').next() == Some(inode.as_str())
    })
}

/// Releases the lock of a file, which another thread may still be making durable.
pub(super) fn unlock(file: &File) {
    // An error does no lasting harm: the lock ends with the process, too.
    let _ = rustix::fs::flock(file, FlockOperation::Unlock);
}

/// Error for a file of another format, or a damaged one.
pub(super) fn wrong(path: &Path, what: &'static str, problem: impl Into<String>) -> ProgressError {
    ProgressError::Format {
        path: path.to_owned(),
        what,
        problem: problem.into(),
    }
}

/// Header of a file.
pub(super) fn header(about: &Value) -> io::Result<Vec<u8>> {
    let mut header = about.to_string().into_bytes();
    if header.len() >= SEALED - 8 {
        return Err(ErrorKind::InvalidFilename.into());
    }
    header.resize(SEALED, 0);
    Seal::HEADER.close(0, &mut header);
    Ok(header)
}

/// Reads the header of a file of this format. `what` describes the format in messages. Also returns the seal of the other pages.
pub(super) fn read_header(
    file: &File,
    path: &Path,
    (format, what): (&str, &'static str),
) -> Result<(Value, Seal), ProgressError> {
    let mut header = vec![0; SEALED];
    match file.read_exact_at(&mut header, 0) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Err(wrong(path, what, "it is too short"));
        }
        read => read.map_err(|error| failed(path, error))?,
    }
    let end = header.iter().position(|byte| *byte == 0);
    if end == Some(0) {
        return Err(wrong(path, what, "it begins with zeroes"));
    }
    let text = &header[..end.unwrap_or(header.len())];
    let kind = |format: &str| format.rsplit_once(' ').map(|(kind, _)| kind.to_owned());
    let problem = match serde_json::from_slice::<Value>(text) {
        Err(error) => format!("{DAMAGED}, or it is something else: {error}"),
        Ok(about) => match about["format"].as_str().unwrap_or_default() {
            has if has == format && Seal::HEADER.fits(0, &header) => {
                let seal = Seal::of(about["id"].as_str().unwrap_or_default());
                return Ok((about, seal));
            }
            has if has == format => DAMAGED.to_owned(),
            has if kind(has) == kind(format) => {
                format!("it is \"{has}\", of another version of headtime, which had no checksums")
            }
            _ => format!("its format is not \"{format}\""),
        },
    };
    Err(wrong(path, what, problem))
}

/// Problem of a header whose checksum does not fit.
const DAMAGED: &str = "its beginning, the first 12288 bytes, is damaged";

/// Problem of the page behind the header, if its checksum does not fit.
pub(super) fn damaged_page() -> String {
    let page = HEADER / PAGE;
    format!("its page {page}, from byte {HEADER} on, is damaged")
}

/// Fields of a header that name the format, the file and the disk.
pub(super) fn about(format: &str, disk: &Identity) -> Result<Value, ProgressError> {
    Ok(json!({
        "format": format,
        "id": unique()?,
        "device": disk.device,
        "sectors": disk.capacity.get(),
        "sector_bytes": disk.sector_bytes,
    }))
}

/// Number in a header.
pub(super) fn number(about: &Value, key: &str) -> Result<u64, String> {
    let number = about[key].as_u64();
    number.ok_or_else(|| format!("`{key}` is no number"))
}

/// Adds the bytes of the disk that are copied to a header.
pub(super) fn set_part(about: &mut Value, part: ByteRange) {
    about["copy_bytes"] = json!([part.start, part.end]);
}

/// Bytes that are copied, if the header names some. Fails if they are not within the disk.
pub(super) fn part_of(about: &Value) -> Result<Option<ByteRange>, String> {
    let bytes = &about["copy_bytes"];
    if bytes.is_null() {
        return Ok(None);
    }
    let part =
        (bytes[0].as_u64().zip(bytes[1].as_u64())).map(|(start, end)| ByteRange { start, end });
    let disk = ByteRange::whole(&disk_of(about)?);
    let part = part.filter(|part| part.start < part.end && part.end <= disk.end);
    let part = part.ok_or_else(|| format!("`copy_bytes` is {bytes}, of a disk of {disk}"))?;
    Ok(Some(part))
}

/// Disk that a header names.
pub(super) fn disk_of(about: &Value) -> Result<Identity, String> {
    Ok(Identity {
        device: about["device"].as_str().unwrap_or_default().to_owned(),
        capacity: Sectors::new(number(about, "sectors")?),
        sector_bytes: u32::try_from(number(about, "sector_bytes")?).map_err(|e| e.to_string())?,
    })
}

/// Writes a page of text and zeroes.
pub(super) fn write_text(file: &File, seal: Seal, text: &str, at: u64) -> io::Result<()> {
    let mut page = [0; PAGE];
    let bytes = &text.as_bytes()[..text.len().min(BODY - 1)];
    page[..bytes.len()].copy_from_slice(bytes);
    seal.close(at, &mut page);
    file.write_all_at(&page, at)
}

/// Reads the text of a page; `None` if the checksum does not fit.
pub(super) fn read_text(file: &File, seal: Seal, at: u64) -> io::Result<Option<String>> {
    let Some(page) = seal.read(file, at)? else {
        return Ok(None);
    };
    let end = page.iter().position(|byte| *byte == 0);
    Ok(Some(
        String::from_utf8_lossy(&page[..end.unwrap_or(BODY)]).into_owned(),
    ))
}

/// Id of the machine's boot, if it is known.
pub(super) fn boot() -> Option<String> {
    one_line("/proc/sys/kernel/random/boot_id").ok()
}

/// Name that is unique.
pub(super) fn unique() -> Result<String, ProgressError> {
    let source = "/proc/sys/kernel/random/uuid";
    one_line(source).map_err(|error| failed(Path::new(source), error))
}

fn one_line(path: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.trim().to_owned()).and_then(|text: String| match text.is_empty() {
        true => Err(ErrorKind::UnexpectedEof.into()),
        false => Ok(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_room_before_they_are_written() {
        let folder = headtime_testkit::Folder::new();
        let file = File::create(folder.join("marks")).unwrap();
        make_room(&file, 1 << 20).unwrap();
        let found = file.metadata().unwrap();
        assert_eq!(found.len(), 1 << 20);
        let keeps = fallocate(&file, FallocateFlags::empty(), 0, 1).is_ok();
        assert!(!keeps || found.blocks() * 512 >= 1 << 20);
        // No file can be this long.
        assert!(make_room(&file, i64::MAX as u64).is_err());
    }

    #[test]
    fn the_name_of_a_file_stays_on_the_line_of_an_error() {
        let error = open(Path::new("no\nfile")).expect_err("it is not there");
        let text = error.to_string();
        assert!(text.starts_with("no\\nfile: No such file"), "{text}");
    }

    #[test]
    fn what_is_not_durable_is_told_to_all_until_it_is_written_again() {
        // The kernel refuses to make this one durable.
        let path = Path::new("/dev/null");
        let file = File::open(path).expect("every machine has it");
        let durable = DurableFile::of(file, path.to_owned());
        assert!(durable.problem().is_ok() && !durable.again());
        let other = Arc::clone(&durable);
        let asked = std::thread::spawn(move || other.sync().is_err());
        assert!(asked.join().expect("no panic"));
        assert!(durable.problem().is_err());
        assert!(durable.again() && durable.problem().is_ok());
    }
}
