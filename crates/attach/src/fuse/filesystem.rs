//! File system that answers the kernel's requests.

use super::submit::submit;
use super::table::{Answer, Table};
use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use headtime_sched::{Flags, Op, Origin};
use headtime_serve::buffer::Buffer;
use headtime_serve::disk::Export;
use headtime_serve::request::{Completer, Completion, Cut, Data, Failure, Kind, Submission};
use headtime_units::Extent;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::Notify;

/// Bytes of the largest request. This is the kernel's limit of 256 pages at a time.
pub const MAX_REQUEST_BYTES: u32 = 1 << 20;

/// Most requests at a time for which no system call waits. The kernel's default of 12 would not fill a queue of 32. No disk has a deeper
/// queue than this number.
pub const MAX_BACKGROUND: u16 = 128;

/// Notice that the mount has ended.
#[derive(Debug, Default)]
pub(super) struct Gone {
    pub is: AtomicBool,
    pub notify: Notify,
}

impl Gone {
    pub fn set(&self) {
        self.is.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }
}

/// Time for which the kernel may cache names, sizes and permissions, which do not change while mounted.
const TTL: Duration = Duration::from_secs(86400);

/// Bytes of a block for `stat` and `statfs`: a page.
const BLOCK: u32 = 4096;

/// Inode number of the first file, after the directory's.
const FIRST_FILE: u64 = INodeNo::ROOT.0 + 1;

/// Directory with a file for each export.
#[derive(Debug)]
pub(super) struct Files {
    pub exports: Vec<Arc<Export>>,
    pub table: Arc<Table>,
    /// True if requests name their process to the disk.
    pub processes: bool,
    pub owner: (u32, u32),
    /// Time of mounting, since 1970.
    pub made: Duration,
    pub gone: Arc<Gone>,
}

impl Files {
    fn export(&self, ino: INodeNo) -> Option<&Arc<Export>> {
        let index = ino.0.checked_sub(FIRST_FILE)?;
        self.exports.get(usize::try_from(index).ok()?)
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let time = UNIX_EPOCH + self.made;
        let directory = FileAttr {
            ino,
            size: 0,
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: FileType::Directory,
            // The options of the mount decide which users may enter.
            perm: 0o555,
            nlink: 2,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        };
        if ino == INodeNo::ROOT {
            return Some(directory);
        }
        let export = self.export(ino)?;
        Some(FileAttr {
            size: export.addresses.bytes(),
            blocks: export.addresses.bytes() / 512,
            kind: FileType::RegularFile,
            perm: if read_only(export) { 0o400 } else { 0o600 },
            nlink: 1,
            ..directory
        })
    }

    fn origin(&self, request: &Request, export: &Export) -> Origin {
        Origin {
            process: if self.processes { request.pid() } else { 0 },
            program: export.program,
            export: export.number,
        }
    }

    /// Hands a request to the export's disk.
    fn submit(
        &self,
        export: &Export,
        origin: Origin,
        (op, (extent, cut), flags): (Op, (Extent, Cut), Flags),
        data: Data,
        answer: Answer,
    ) {
        let submission = Submission {
            cookie: self.table.put(answer),
            op,
            extent,
            cut,
            flags,
            origin,
            class: export.class,
            arrived: export.disk.now(),
            data,
            to: Arc::clone(&self.table) as Arc<dyn Completer>,
        };
        if let Err(back) = submit(&export.disk, submission) {
            self.table.complete(Completion {
                cookie: back.cookie,
                result: Err(Failure::new(Kind::ShuttingDown)),
                data: back.data,
            });
        }
    }
}

fn read_only(export: &Export) -> bool {
    export.read_only || export.disk.geometry().read_only
}

fn buffer(export: &Export, extent: Extent) -> Buffer {
    let bytes = extent.len.bytes(export.disk.sector_bytes());
    export.disk.pool().take(bytes as usize)
}

/// Flags of a program's write for the disk: the same as Linux would give the write on a block device. There the page cache takes a write
/// that is neither direct nor synchronous, and writes it back later while no program waits.
fn write_flags(flags: OpenFlags) -> Flags {
    // O_SYNC includes the bit of O_DSYNC.
    let durable = flags.0 & libc::O_DSYNC != 0;
    let waited = durable || flags.0 & libc::O_DIRECT != 0;
    let with = |flag, is| if is { flag } else { Flags::NONE };
    with(Flags::FUA, durable).with(with(Flags::SYNC, waited))
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // With this capability a direct read or write sends all its requests at once.
        if config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).is_err() {
            tracing::warn!("the kernel's FUSE has no asynchronous direct I/O");
        }
        let refused = |nearest| io::Error::other(format!("FUSE allows {nearest}"));
        config.set_max_write(MAX_REQUEST_BYTES).map_err(refused)?;
        config
            .set_max_background(MAX_BACKGROUND)
            .and_then(|_| config.set_congestion_threshold(MAX_BACKGROUND))
            .map_err(|nearest| refused(u32::from(nearest)))?;
        Ok(())
    }

    fn destroy(&mut self) {
        self.gone.set();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = (parent == INodeNo::ROOT)
            .then(|| self.exports.iter().position(|export| name == &*export.name))
            .flatten()
            .and_then(|index| self.attributes(INodeNo(FIRST_FILE + index as u64)));
        match found {
            Some(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    #[allow(clippy::disallowed_types, reason = "so the trait has it")]
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        fh: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(attributes) = self.attributes(ino) else {
            return reply.error(Errno::ENOENT);
        };
        if mode.is_some() || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        // Opening with O_TRUNC names no handle, and has no effect, as with a block device. So `cp image file` and `dd of=file` work as on a
        // block device. `ftruncate` cannot work.
        if fh.is_some() && size.is_some_and(|size| size != attributes.size) {
            return reply.error(Errno::EINVAL);
        }
        reply.attr(&TTL, &attributes);
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if ino != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let dots = [".", ".."].map(|dot| (INodeNo::ROOT, FileType::Directory, dot));
        let files = (FIRST_FILE..)
            .zip(&self.exports)
            .map(|(ino, export)| (INodeNo(ino), FileType::RegularFile, &*export.name));
        let all = dots.into_iter().chain(files);
        for (next, (ino, kind, name)) in (1..).zip(all).skip(offset as usize) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let Some(export) = self.export(ino) else {
            return reply.error(Errno::EISDIR);
        };
        if flags.acc_mode() != OpenAccMode::O_RDONLY && read_only(export) {
            return reply.error(Errno::EROFS);
        }
        // Requests bypass the page cache, so that each reaches the disk. Writes may run in parallel, since the engine orders writes that
        // overlap. The kernel does not report a close, which does not concern the disk.
        let how = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), how);
    }

    fn read(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(export) = self.export(ino) else {
            return reply.error(Errno::EISDIR);
        };
        let left = export.addresses.bytes().saturating_sub(offset);
        let len = u64::from(size.min(MAX_REQUEST_BYTES)).min(left);
        if len == 0 {
            return reply.data(&[]);
        }
        let (extent, cut) = export.addresses.span(offset, len);
        let answer = Answer::Data {
            reply,
            head: cut.head as usize,
            len: len as usize,
        };
        let data = Data::Buffer(buffer(export, extent));
        let origin = self.origin(request, export);
        let what = (Op::Read, (extent, Cut::NONE), Flags::NONE);
        self.submit(export, origin, what, data, answer);
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(export) = self.export(ino) else {
            return reply.error(Errno::EISDIR);
        };
        if read_only(export) {
            return reply.error(Errno::EROFS);
        }
        if data.is_empty() {
            return reply.written(0);
        }
        // As with a block device, bytes up to the end are written, and none beyond.
        let left = export.addresses.bytes().saturating_sub(offset);
        let len = (data.len() as u64).min(left) as usize;
        if len == 0 {
            return reply.error(Errno::ENOSPC);
        }
        let (extent, cut) = export.addresses.span(offset, len as u64);
        let mut buffer = buffer(export, extent);
        let head = cut.head as usize;
        buffer[head..head + len].copy_from_slice(&data[..len]);
        let answer = Answer::Written {
            reply,
            len: len as u32,
        };
        let flags = write_flags(flags);
        let origin = self.origin(request, export);
        let data = Data::Buffer(buffer);
        let what = (Op::Write, (extent, cut), flags);
        self.submit(export, origin, what, data, answer);
    }

    fn fsync(&self, request: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let Some(export) = self.export(ino) else {
            return reply.ok();
        };
        if read_only(export) {
            return reply.ok();
        }
        let (origin, answer) = (self.origin(request, export), Answer::Empty(reply));
        let what = (Op::Flush, export.addresses.flush(), Flags::NONE);
        self.submit(export, origin, what, Data::None, answer);
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    /// Called at each `close`, without an effect.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(export) = self.export(ino) else {
            return reply.error(Errno::EISDIR);
        };
        if read_only(export) {
            return reply.error(Errno::EROFS);
        }
        let geometry = export.disk.geometry();
        let zeroes = |may_punch| (Op::Write, Data::Zeroes { may_punch });
        let (op, data) = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            // Loop devices send this request to discard, and `mkfs` discards the whole device. To write zeroes instead would take a drive
            // hours. Loop devices also send this request to write zeroes. If the answer is that it is not supported, the kernel writes
            // pages of zeroes.
            libc::FALLOC_FL_PUNCH_HOLE if !geometry.discards => {
                return reply.error(Errno::EOPNOTSUPP);
            }
            // Loop devices rely on a hole to read as zeroes.
            libc::FALLOC_FL_PUNCH_HOLE if export.disk.discards_to_zeroes() => {
                (Op::Discard, Data::None)
            }
            libc::FALLOC_FL_PUNCH_HOLE => zeroes(true),
            libc::FALLOC_FL_ZERO_RANGE => zeroes(false),
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let bytes = export.addresses.bytes();
        if offset >= bytes || length == 0 {
            // Beyond the end there is nothing to change.
            return match mode & libc::FALLOC_FL_KEEP_SIZE {
                0 => reply.error(Errno::ENOSPC),
                _ => reply.ok(),
            };
        }
        let len = length.min(bytes - offset);
        let span = export.addresses.span(offset, len);
        let (origin, answer) = (self.origin(request, export), Answer::Empty(reply));
        self.submit(export, origin, (op, span, Flags::NONE), data, answer);
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let Some(export) = self.export(ino) else {
            return reply.error(Errno::EISDIR);
        };
        let data = match whence {
            libc::SEEK_DATA => true,
            libc::SEEK_HOLE => false,
            _ => return reply.error(Errno::EINVAL),
        };
        match seek(export, offset, data) {
            Ok(found) => reply.offset(found as i64),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks: u64 = self
            .exports
            .iter()
            .map(|export| export.addresses.bytes() / u64::from(BLOCK))
            .sum();
        let files = self.exports.len() as u64;
        reply.statfs(blocks, 0, 0, files, 0, BLOCK, 255, BLOCK);
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn getxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, reply: ReplyXattr) {
        reply.error(Errno::ENOSYS);
    }

    fn setxattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn listxattr(&self, _: &Request, _: INodeNo, _: u32, reply: ReplyXattr) {
        reply.error(Errno::ENOSYS);
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EPERM);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }
}

/// Next byte from `offset` on that is data (`data` is true) or in a hole.
fn seek(export: &Export, offset: i64, data: bool) -> Result<u64, Errno> {
    let end = export.addresses.bytes();
    let mut at = u64::try_from(offset)
        .ok()
        .filter(|at| *at < end)
        .ok_or(Errno::ENXIO)?;
    let Some(allocation) = export.disk.allocation() else {
        // All bytes count as data, and a hole begins behind the end.
        return Ok(if data { at } else { end });
    };
    while at < end {
        let (allocated, alike) = allocation
            .status(export.addresses.on_disk(at), end - at)
            .map_err(|error| Errno::from_i32(error.raw_os_error().unwrap_or(libc::EIO)))?;
        if allocated == data {
            return Ok(at);
        }
        at += alike.max(1);
    }
    if data { Err(Errno::ENXIO) } else { Ok(end) }
}
