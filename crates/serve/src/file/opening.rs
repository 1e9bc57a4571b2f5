//! Opens a path as a file that is safe to use as a disk.

use super::error::OpenError;
use super::safety::{Machine, Priorities, Use};
use crate::backing::{
    Claim, Hint, MakeError, New, Place, TRIES_MAX, Way, keep_found_name, keep_name, lock,
    may_have_size, may_write, set_size, still_named, until_free,
};
use crate::buffer::Pool;
use crate::device::Geometry;
use headtime_linux::shown::PathShown as _;
use headtime_units::{Bytes, Sectors};
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Mode, OFlags, SeekFrom, Stat, StatxFlags, fallocate,
    fcntl_getfl, fcntl_setfl, fstat, ioctl_blksszget, open, seek, statx,
};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of opening a file.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The file or block device. Symbolic links are followed.
    pub path: PathBuf,
    /// True if the file is only read. Other programs may then use the file.
    pub read_only: bool,
    /// True if the data bypass the page cache (direct I/O).
    pub direct: bool,
    /// True if the file is opened even if it is in use, see [`Use`].
    pub force: bool,
    /// Size in bytes that the file must have.
    pub size: Option<u64>,
    /// True if a missing file is made, without allocated blocks, with [`FileOptions::size`] bytes. No file is made
    /// under `/dev`, `/proc` or `/sys`, or if the file is only read.
    pub create: bool,
    /// Number of commands that the kernel gets at a time, 1 to 256.
    pub depth: u32,
    /// True if the kernel gets the class of each read and write. `None`: if the drive says that it uses priorities.
    pub io_priority: Option<bool>,
    /// True for a disk of an array. The file begins with a [`Header`](crate::header::Header), and the disk follows.
    pub member: bool,
}

impl FileOptions {
    /// Options of a file for writing by direct I/O, with depth 32 and without `force` and `create`.
    pub fn new(path: impl Into<PathBuf>) -> FileOptions {
        FileOptions {
            path: path.into(),
            read_only: false,
            direct: true,
            force: false,
            size: None,
            create: false,
            depth: 32,
            io_priority: None,
            member: false,
        }
    }
}

/// Circumstances of opening a file.
pub(crate) struct Opening<'a> {
    /// Source of information on other uses of the file.
    pub machine: &'a Machine,
    /// True if the file is opened for writing. A check before writing opens the file for reading only and makes no
    /// file. The check fails wherever opening for writing would fail.
    pub for_writing: bool,
}

impl Opening<'_> {
    /// Returns true if this is only a check before writing.
    fn looks(&self, options: &FileOptions) -> bool {
        !self.for_writing && !options.read_only
    }
}

/// An open file that may be used.
pub(crate) struct Opened {
    pub claim: Claim,
    pub geometry: Geometry,
    /// Bytes of the file; fewer than the sectors hold if the last sector is not whole.
    pub bytes: u64,
    pub is_block_device: bool,
    pub priorities: Priorities,
}

/// The largest depth, the engine's.
const DEPTH_MAX: u32 = 256;

/// Opens a file after checking its kind and uses, or makes the file. Removes a file that was made and cannot be used.
pub(crate) fn open_checked(
    options: &FileOptions,
    opening: &Opening<'_>,
) -> Result<Opened, OpenError> {
    open_by(options, opening, Way::default())
}

fn open_by(
    options: &FileOptions,
    opening: &Opening<'_>,
    mut way: Way,
) -> Result<Opened, OpenError> {
    if !(1..=DEPTH_MAX).contains(&options.depth) {
        return Err(OpenError::Depth(options.depth));
    }
    for _ in 0..TRIES_MAX {
        let opened = match handle(&options.path)? {
            Some(handle) => open_found(options, opening, &handle)?,
            // The file existed a moment ago.
            None if opening.looks(options) => {
                place(options)?;
                break;
            }
            None => make(options, opening.machine, &mut way)?,
        };
        if let Some(opened) = opened {
            return Ok(opened);
        }
    }
    let path = options.path.clone();
    Err(MakeError::Unsteady { path }.into())
}

/// Opens a path only to examine it, which does not wait for the other end of a pipe, for example. Returns `None` if the
/// path does not exist. From here on the descriptor names the file, even if the path changes.
fn handle(path: &Path) -> Result<Option<OwnedFd>, OpenError> {
    match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(failed(path, "opening it", error)),
    }
}

/// Opens a file that exists. Returns `None` if the file has meanwhile lost its name.
fn open_found(
    options: &FileOptions,
    opening: &Opening<'_>,
    handle: &OwnedFd,
) -> Result<Option<Opened>, OpenError> {
    let machine = opening.machine;
    let path = options.path.as_path();
    let looking = |error| failed(path, "looking at it", error);
    let stat = fstat(handle).map_err(looking)?;
    let is_block_device = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => false,
        FileType::BlockDevice => true,
        other => {
            return Err(OpenError::Kind {
                path: path.to_owned(),
                is: kind(other),
            });
        }
    };
    if !options.read_only {
        refuse_used(options, machine, &stat, is_block_device)?;
    }
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= match opening.for_writing {
        true => OFlags::RDWR,
        false => OFlags::RDONLY,
    };
    if options.direct {
        flags |= OFlags::DIRECT;
    }
    if is_block_device && !options.read_only && !options.force {
        // From now on no other program may mount the device or build on it.
        flags |= OFlags::EXCL;
    }
    let by_handle = format!("/proc/self/fd/{}", handle.as_raw_fd());
    if opening.looks(options) {
        may_write(Path::new(&by_handle)).map_err(|error| failed(path, "opening it", error))?;
    }
    let open = || open(by_handle.as_str(), flags, Mode::empty());
    let file = until_free(Errno::BUSY, open).map_err(|error| match error {
        Errno::INVAL if options.direct => no_direct(path),
        Errno::BUSY => in_use(path, Use::Claimed),
        error => failed(path, "opening it", error),
    })?;
    let mut locked = Ok(());
    if !is_block_device {
        locked = lock(&file, !options.read_only);
        may_be_unlocked(options, locked)?;
        if !still_named(path, &file).map_err(looking)? {
            return Ok(None);
        }
    }
    let (geometry, bytes) = geometry(options, machine, &file, &stat, is_block_device)?;
    if options.create && !options.read_only && !is_block_device {
        let is_empty = fstat(&file).map_err(looking)?.st_size == 0;
        match (is_empty, opening.for_writing) {
            (true, true) => {
                // Another server may be making the file.
                locked.map_err(|error| unlocked(path, error))?;
                set_size(path, &file, bytes)?;
                keep_name(path)?;
            }
            (true, false) => may_have_size(path, bytes)?,
            (false, true) => keep_found_name(path),
            (false, false) => {}
        }
    }
    Ok(Some(Opened {
        claim: Claim::found(path, Arc::new(file), bytes),
        geometry,
        bytes,
        is_block_device,
        priorities: match is_block_device {
            true => machine.priorities(stat.st_rdev),
            false => Priorities::Absent,
        },
    }))
}

/// Makes a file without allocated blocks and syncs its name. Returns `None` if another program was faster.
fn make(
    options: &FileOptions,
    machine: &Machine,
    way: &mut Way,
) -> Result<Option<Opened>, OpenError> {
    let path = options.path.as_path();
    let (place, bytes) = place(options)?;
    let Some(new) = New::file_in(&place, way)? else {
        return Ok(None);
    };
    let file = Arc::clone(new.file());
    may_be_unlocked(options, new.locked)?;
    let locked = new.locked.is_ok();
    let told = |error| failed(path, "looking at it", error);
    if options.direct {
        let flags = fcntl_getfl(&file).map_err(told)?;
        fcntl_setfl(&file, flags | OFlags::DIRECT).map_err(|error| match error {
            Errno::INVAL => no_direct(path),
            error => failed(path, "opening it", error),
        })?;
    }
    let stat = fstat(&file).map_err(told)?;
    // Errors have to show before the file gets its name.
    let (geometry, _) = geometry(options, machine, &file, &stat, false)?;
    set_size(path, &file, bytes)?;
    if !new.publish(way) {
        return Ok(None);
    }
    let claim = Claim::made(path, file, bytes, locked);
    keep_name(path).inspect_err(|_| claim.remove())?;
    Ok(Some(Opened {
        claim,
        geometry,
        bytes,
        is_block_device: false,
        priorities: Priorities::Absent,
    }))
}

/// Returns the place and the size of a file to be made, if a file may be made.
fn place(options: &FileOptions) -> Result<(Place, u64), OpenError> {
    // If the place itself is unusable, its error helps the user more than the hint how to make a file there.
    let place = Place::of(&options.path)?;
    let hint = match (options.read_only, options.size) {
        _ if options.member => Hint::None,
        (true, _) => Hint::None,
        (false, None) => Hint::SizeAndCreate,
        (false, Some(bytes)) if options.create => return Ok((place, bytes)),
        (false, Some(bytes)) => Hint::Create(Bytes(bytes)),
    };
    let path = options.path.clone();
    Err(MakeError::Missing { path, hint }.into())
}

/// Checks that a missing file could be made, as far as possible without making it. Returns the size of the file, or
/// `None` if the file exists.
pub(super) fn could_make(options: &FileOptions) -> Result<Option<u64>, OpenError> {
    if handle(&options.path)?.is_some() {
        return Ok(None);
    }
    let (place, bytes) = place(options)?;
    place.may_write()?;
    may_have_size(&options.path, bytes)?;
    Ok(Some(bytes))
}

fn no_direct(path: &Path) -> OpenError {
    OpenError::NoDirect {
        path: path.to_owned(),
    }
}

fn failed(path: &Path, doing: &'static str, error: Errno) -> OpenError {
    OpenError::Io {
        path: path.to_owned(),
        doing,
        error: error.into(),
    }
}

fn in_use(path: &Path, what: Use) -> OpenError {
    OpenError::InUse {
        path: path.to_owned(),
        what,
    }
}

fn kind(other: FileType) -> &'static str {
    match other {
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::Symlink => "a symbolic link",
        _ => "something unknown",
    }
}

fn refuse_used(
    options: &FileOptions,
    machine: &Machine,
    stat: &Stat,
    is_block_device: bool,
) -> Result<(), OpenError> {
    let path = options.path.as_path();
    let used = match is_block_device {
        true => machine.use_of_device(stat.st_rdev),
        false => machine.use_of_file(path, stat),
    };
    match used {
        Ok(None) => Ok(()),
        Ok(Some(what)) if options.force => {
            tracing::warn!("{} is used all the same: {what}", path.shown());
            Ok(())
        }
        Ok(Some(what)) => Err(in_use(path, what)),
        Err(error) if options.force => {
            let path = path.shown();
            tracing::warn!("{path}: whether it is in use cannot be found out: {error}");
            Ok(())
        }
        Err(error) => Err(OpenError::Unknown {
            path: path.to_owned(),
            error,
        }),
    }
}

/// Checks that the file may be used without a lock, which only `force` allows. If another server holds the lock,
/// `force` allows only reading, because two servers would write to the file otherwise.
fn may_be_unlocked(options: &FileOptions, locked: Result<(), Errno>) -> Result<(), OpenError> {
    let path = &options.path;
    match locked {
        Err(error) if options.force && (options.read_only || error != Errno::WOULDBLOCK) => {
            tracing::warn!("{} is used without a lock: {error}", path.shown());
            Ok(())
        }
        locked => locked.map_err(|error| unlocked(path, error)),
    }
}

fn unlocked(path: &Path, error: Errno) -> OpenError {
    match error {
        Errno::WOULDBLOCK => OpenError::Locked {
            path: path.to_owned(),
        },
        error => OpenError::NoLock {
            path: path.to_owned(),
            error: error.into(),
        },
    }
}

fn geometry(
    options: &FileOptions,
    machine: &Machine,
    file: &OwnedFd,
    stat: &Stat,
    is_block_device: bool,
) -> Result<(Geometry, u64), OpenError> {
    let path = options.path.as_path();
    let measure = |error| failed(path, "measuring it", error);
    let (bytes, sector_bytes, discards) = if is_block_device {
        let bytes = seek(file, SeekFrom::End(0)).map_err(measure)?;
        let sector = ioctl_blksszget(file).map_err(measure)?;
        let discards = !options.read_only && device_discards(machine, stat.st_rdev);
        (bytes, sector, discards)
    } else {
        let bytes = match (fstat(file).map_err(measure)?.st_size, options.size) {
            // The empty file is to become a disk.
            (0, Some(bytes)) if options.create && !options.read_only => bytes,
            (0, Some(bytes)) if !options.read_only => {
                let (path, wanted) = (path.to_owned(), Bytes(bytes));
                return Err(MakeError::Empty { path, wanted }.into());
            }
            (bytes, _) => bytes as u64,
        };
        let sector = match options.direct {
            true => direct_alignment(path, file)?,
            false => 512,
        };
        (bytes, sector, !options.read_only && can_punch(file, bytes))
    };
    if !(512..=4096).contains(&sector_bytes) || !sector_bytes.is_power_of_two() {
        return Err(OpenError::Sector {
            path: path.to_owned(),
            bytes: sector_bytes,
        });
    }
    if bytes == 0 {
        return Err(OpenError::Nothing {
            path: path.to_owned(),
        });
    }
    if let Some(asked) = options.size
        && asked != bytes
    {
        return Err(OpenError::OtherSize {
            path: path.to_owned(),
            bytes,
            asked,
        });
    }
    let geometry = Geometry {
        capacity: Sectors::new(bytes.div_ceil(u64::from(sector_bytes))),
        sector_bytes,
        depth: options.depth,
        read_only: options.read_only,
        discards,
    };
    Ok((geometry, bytes))
}

/// Returns the alignment of offsets and lengths of direct I/O to a regular file.
fn direct_alignment(path: &Path, file: &OwnedFd) -> Result<u32, OpenError> {
    let asked = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    if let Ok(told) = asked
        && told.stx_mask & StatxFlags::DIOALIGN.bits() != 0
    {
        return match told.stx_dio_offset_align {
            0 => Err(OpenError::NoDirect {
                path: path.to_owned(),
            }),
            align => Ok(align.max(512)),
        };
    }
    // Many file systems do not report the alignment, but refuse an unaligned read.
    let mut buffer = Pool::keeping(0).take(512);
    match rustix::io::pread(file, &mut buffer[..], 512) {
        Ok(_) => Ok(512),
        Err(Errno::INVAL) => Ok(4096),
        Err(error) => Err(failed(path, "reading from it", error)),
    }
}

/// Returns true if the file system can punch holes in a file. Tries this beyond the file's end, where there are no
/// data.
fn can_punch(file: &OwnedFd, bytes: u64) -> bool {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, mode, bytes, 4096).is_ok()
}

/// Returns true if a block device supports discards.
fn device_discards(machine: &Machine, device: u64) -> bool {
    let most = |dir: &Path| fs::read_to_string(dir.join("queue/discard_max_bytes"));
    let text = machine.directory(device).and_then(|dir| match most(&dir) {
        // A partition has no queue of its own, but uses the disk's queue.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            dir.parent().map_or(Err(error), most)
        }
        text => text,
    });
    text.is_ok_and(|text| text.trim().parse().is_ok_and(|most: u64| most > 0))
}

/// Opens a file again without direct I/O, for queries of the allocation and for writes of less than a sector.
pub(super) fn again(file: &OwnedFd, how: OFlags) -> io::Result<OwnedFd> {
    let by_handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = how | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(open(by_handle, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::Folder;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Barrier;

    const BYTES: u64 = 1 << 20;
    const SERVERS: usize = 4;

    fn options(path: &Path) -> FileOptions {
        FileOptions {
            size: Some(BYTES),
            create: true,
            direct: false,
            ..FileOptions::new(path)
        }
    }

    fn open_named(options: &FileOptions) -> Result<Opened, OpenError> {
        let machine = Machine::default();
        let opening = Opening {
            machine: &machine,
            for_writing: true,
        };
        open_by(options, &opening, Way::Named)
    }

    /// Tests a file system on which a file cannot be made without its name. Other tests make files the other way.
    #[test]
    fn of_servers_that_start_at_once_one_has_the_file_that_is_empty_at_first() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..4).for_each(|_| race()));
            }
        });
    }

    fn race() {
        let folder = Folder::new();
        let asked = options(&folder.join("disk"));
        let barrier = Barrier::new(SERVERS);
        let results: Vec<_> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                open_named(&asked)
            };
            let threads: Vec<_> = (0..SERVERS).map(|_| scope.spawn(start)).collect();
            let results = threads.into_iter().map(|thread| thread.join());
            results.map(|result| result.expect("no panic")).collect()
        });
        let mut winners = Vec::new();
        for result in results {
            match result {
                Ok(opened) => winners.push(opened),
                Err(OpenError::Locked { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let [winner] = &winners[..] else {
            panic!("{} have it", winners.len());
        };
        assert_eq!(winner.claim.check(), Ok(()));
        let found = fs::metadata(&asked.path).expect("is there");
        let ours = fstat(winner.claim.file()).expect("is open");
        assert_eq!((found.dev(), found.ino()), (ours.st_dev, ours.st_ino));
        assert_eq!(found.len(), BYTES);
        assert_eq!(fs::read_dir(&*folder).expect("is there").count(), 1);
    }

    #[test]
    fn an_empty_file_that_somebody_is_making_is_not_had_by_force() {
        let folder = Folder::new();
        let path = folder.join("disk");
        let other = fs::File::create(&path).expect("is made");
        let asked = FileOptions {
            force: true,
            ..options(&path)
        };
        let locked = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&other, locked).expect("nobody has it");
        let error = open_named(&asked).err().expect("another makes it");
        assert!(matches!(error, OpenError::Locked { .. }), "{error}");
        assert_eq!(other.metadata().expect("is open").len(), 0);
        // A complete file is refused as well, unless it is only read.
        other.set_len(BYTES).expect("grows");
        let error = open_named(&asked).err().expect("another writes it");
        assert!(matches!(error, OpenError::Locked { .. }), "{error}");
        let reading = FileOptions {
            read_only: true,
            create: false,
            ..asked
        };
        assert!(open_named(&reading).is_ok());
    }

    #[test]
    fn a_file_that_is_no_disk_after_all_does_not_stay_under_its_name() {
        let folder = Folder::new();
        let asked = options(&folder.join("disk"));
        let odd = FileOptions {
            size: Some(0),
            ..asked.clone()
        };
        let error = open_named(&odd).err().expect("it has no bytes");
        assert!(matches!(error, OpenError::Nothing { .. }), "{error}");
        assert!(!asked.path.exists());
        // A file that existed before stays as it was.
        fs::write(&asked.path, "").expect("writes");
        open_named(&odd).err().expect("it has no bytes");
        assert_eq!(fs::metadata(&asked.path).expect("is there").len(), 0);
        let opened = open_named(&asked).expect("becomes a disk");
        assert!(!opened.claim.is_made(), "it was there");
        assert_eq!(fs::metadata(&asked.path).expect("is there").len(), BYTES);
    }
}
