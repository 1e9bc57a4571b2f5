//! From a path to an open file that is safe to be a disk.

use super::Options;
use super::error::OpenError;
use super::safety::{Machine, Use};
use crate::buffer::Pool;
use crate::device::{Geometry, remove_made};
use headtime_units::Sectors;
use rustix::event::{Timespec, poll};
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat, StatxFlags,
    fallocate, flock, fstat, ftruncate, ioctl_blksszget, open, seek, statx,
};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// A file that may be used.
pub(super) struct Opened {
    pub file: OwnedFd,
    pub geometry: Geometry,
    pub is_block_device: bool,
    /// Whether it was not there before.
    pub made: bool,
}

/// The largest depth, the engine's.
const DEPTH_MAX: u32 = 256;

/// Opens, having looked at what it is. A file that was made for this does not stay if it cannot be
/// used.
pub(super) fn open_checked(options: &Options, machine: &Machine) -> Result<Opened, OpenError> {
    let mut made = false;
    let opened = open_or_make(options, machine, &mut made);
    if made && opened.is_err() {
        remove_made(std::slice::from_ref(&options.path));
    }
    opened
}

fn open_or_make(
    options: &Options,
    machine: &Machine,
    made: &mut bool,
) -> Result<Opened, OpenError> {
    let path = options.path.as_path();
    if !(1..=DEPTH_MAX).contains(&options.depth) {
        return Err(OpenError::Depth(options.depth));
    }
    // To look at it without doing anything to it, such as waiting for the other end of a pipe. From
    // here on the file is named by this descriptor, whatever happens to the path.
    let handle = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) if options.create_size.is_some() && !options.read_only => {
            let file = create(path, options.create_size.unwrap_or_default())?;
            *made = true;
            file
        }
        handle => handle.map_err(|error| failed(path, "opening it", error))?,
    };
    let stat = fstat(&handle).map_err(|error| failed(path, "looking at it", error))?;
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
    flags |= match options.read_only {
        true => OFlags::RDONLY,
        false => OFlags::RDWR,
    };
    if options.direct {
        flags |= OFlags::DIRECT;
    }
    if is_block_device && !options.read_only && !options.force {
        // Nobody else may mount it, or build on it, from now on.
        flags |= OFlags::EXCL;
    }
    let by_handle = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let open = || open(by_handle.as_str(), flags, Mode::empty());
    let file = until_free(Errno::BUSY, open).map_err(|error| match error {
        Errno::INVAL if options.direct => OpenError::NoDirect {
            path: path.to_owned(),
        },
        Errno::BUSY => in_use(path, Use::Claimed),
        error => failed(path, "opening it", error),
    })?;
    if !is_block_device {
        lock(options, &file)?;
    }
    let geometry = geometry(options, machine, &file, &stat, is_block_device)?;
    Ok(Opened {
        file,
        geometry,
        is_block_device,
        made: *made,
    })
}

/// Tries again for a while: a server that was killed holds its files until the kernel has taken
/// its ring apart, which is some time after it is gone.
fn until_free<T>(busy: Errno, try_it: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    for _ in 0..15 {
        match try_it() {
            Err(error) if error == busy => {
                // If it is interrupted, it is tried sooner.
                let _ = poll(&mut [], Some(&pause));
            }
            result => return result,
        }
    }
    try_it()
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

/// Makes a file of holes, and sees to it that it stays.
fn create(path: &Path, bytes: u64) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = open(path, flags, mode).map_err(|error| failed(path, "creating it", error))?;
    let made = ftruncate(&file, bytes)
        .and_then(|()| rustix::fs::fsync(&file))
        .and_then(|()| {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let parent = open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
            rustix::fs::fsync(parent)
        });
    made.map_err(|error| {
        // Nobody has seen it yet.
        let _ = fs::remove_file(path);
        failed(path, "making it as large as asked", error)
    })?;
    Ok(file)
}

/// Whether it is in use, seen without opening it; what is not there is not.
pub(super) fn refuse_if_used(options: &Options, machine: &Machine) -> Result<(), OpenError> {
    let path = options.path.as_path();
    let handle = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        handle => handle.map_err(|error| failed(path, "opening it", error))?,
    };
    let stat = fstat(&handle).map_err(|error| failed(path, "looking at it", error))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => refuse_used(options, machine, &stat, false),
        FileType::BlockDevice => refuse_used(options, machine, &stat, true),
        // Opening it says what is wrong.
        _ => Ok(()),
    }
}

fn refuse_used(
    options: &Options,
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
            tracing::warn!("{} is used all the same: {what}", path.display());
            Ok(())
        }
        Ok(Some(what)) => Err(in_use(path, what)),
        Err(error) if options.force => {
            let path = path.display();
            tracing::warn!("{path}: whether it is in use cannot be found out: {error}");
            Ok(())
        }
        Err(error) => Err(OpenError::Unknown {
            path: path.to_owned(),
            error,
        }),
    }
}

/// Keeps other servers from the file.
fn lock(options: &Options, file: &OwnedFd) -> Result<(), OpenError> {
    let operation = match options.read_only {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    match until_free(Errno::WOULDBLOCK, || flock(file, operation)) {
        Ok(()) => Ok(()),
        Err(error) if options.force => {
            tracing::warn!("{} is used without a lock: {error}", options.path.display());
            Ok(())
        }
        Err(Errno::WOULDBLOCK) => Err(in_use(&options.path, Use::Claimed)),
        Err(error) => Err(failed(&options.path, "locking it", error)),
    }
}

fn geometry(
    options: &Options,
    machine: &Machine,
    file: &OwnedFd,
    stat: &Stat,
    is_block_device: bool,
) -> Result<Geometry, OpenError> {
    let path = options.path.as_path();
    let measure = |error| failed(path, "measuring it", error);
    let (bytes, sector_bytes, discards) = if is_block_device {
        let bytes = seek(file, SeekFrom::End(0)).map_err(measure)?;
        let sector = ioctl_blksszget(file).map_err(measure)?;
        let discards = !options.read_only && device_discards(machine, stat.st_rdev);
        (bytes, sector, discards)
    } else {
        let bytes = fstat(file).map_err(measure)?.st_size as u64;
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
    if bytes == 0 || !bytes.is_multiple_of(u64::from(sector_bytes)) {
        return Err(OpenError::Size {
            path: path.to_owned(),
            bytes,
            sector_bytes,
        });
    }
    if let Some(asked) = options.create_size
        && asked != bytes
    {
        return Err(OpenError::OtherSize {
            path: path.to_owned(),
            bytes,
            asked,
        });
    }
    Ok(Geometry {
        capacity: Sectors::new(bytes / u64::from(sector_bytes)),
        sector_bytes,
        depth: options.depth,
        read_only: options.read_only,
        discards,
    })
}

/// What addresses and lengths of direct I/O to a regular file must be multiples of.
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
    // Many file systems do not tell, but they refuse.
    let mut buffer = Pool::keeping(0).take(512);
    match rustix::io::pread(file, &mut buffer[..], 512) {
        Ok(_) => Ok(512),
        Err(Errno::INVAL) => Ok(4096),
        Err(error) => Err(failed(path, "reading from it", error)),
    }
}

/// Whether the file system can give back what lies in the middle of a file: it is asked to do so
/// behind the end, where there is nothing.
fn can_punch(file: &OwnedFd, bytes: u64) -> bool {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, mode, bytes, 4096).is_ok()
}

/// Whether a block device forgets what it is told to.
fn device_discards(machine: &Machine, device: u64) -> bool {
    let most = |dir: &Path| fs::read_to_string(dir.join("queue/discard_max_bytes"));
    let text = machine.directory(device).and_then(|dir| match most(&dir) {
        // A partition has its disk's queue.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            dir.parent().map_or(Err(error), most)
        }
        text => text,
    });
    text.is_ok_and(|text| text.trim().parse().is_ok_and(|most: u64| most > 0))
}

/// Opens a path anew, without any of what the disk's own descriptor has: for asking what is
/// allocated.
pub(super) fn again(file: &OwnedFd) -> io::Result<OwnedFd> {
    let by_handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(open(by_handle, flags, Mode::empty())?)
}
