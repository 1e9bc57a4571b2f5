//! A file or a block device through io_uring.
//!
//! [`submit`](Device::submit) collects commands. [`kick`](Device::kick) hands the collected commands to the kernel
//! together. [`poll`](Device::poll) reads completions from memory that is shared with the kernel, without a system
//! call. The data of a command are not copied: a merged command is one vectored call over the buffers of its parts.
//!
//! # What the operations become
//!
//! | operation | call |
//! |---|---|
//! | read, write | `readv`, `writev`, as often as it takes |
//! | write of zeroes alone | `fallocate`: hole punched if that is allowed, else range zeroed; written where that is not possible |
//! | write with FUA | with `RWF_DSYNC`, or a flush behind a `fallocate` |
//! | flush | `fdatasync` |
//! | discard | `fallocate` that punches a hole |
//!
//! Without direct I/O a write completes when its data are in the page cache, as in the volatile cache of a drive.
//! Flushes and FUA promise the same as with direct I/O.
//!
//! The data of a disk of an array begin after the disk's [header](crate::header). This module only reads the header.
//!
//! # Files that change behind the disk's back
//!
//! The lock keeps other servers out, but not programs that ignore the lock. If such a program truncates the file, a
//! read beyond the new end fails. A write beyond the new end extends the file again, and the bytes in between read as
//! zeroes. [`Device::check_backing`] detects such changes when it is called.

pub(crate) mod allocation;
mod error;
pub(crate) mod opening;
mod ring;
pub(crate) mod safety;

pub use error::OpenError;
pub use opening::FileOptions;
pub use safety::{Priorities, Use};

use crate::backing::{Claim, Lost, Made};
use crate::device::{Aborted, Allocation, Device, Done, Geometry, Parts};
use crate::disk::Addresses;
use crate::header::{Header, HeaderError};
use crate::metrics::op_name;
use crate::request::{Data, Failure, Kind};
use headtime_engine::DriveTag;
use headtime_linux::shown::PathShown as _;
use headtime_sched::{Class, Flags, Op, Request};
use headtime_units::{Bytes, Extent, Lba, Sectors, Time};
use opening::Opening;
use ring::{Ring, RingAction};
use rustix::fs::{OFlags, Stat};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest number of commands that were given up on and whose data the kernel still has. At this number, new commands
/// fail at once.
pub const ABANDONED_MAX: usize = 256;

/// Largest number of times that a call is repeated at the kernel's request without progress.
const TRIES_MAX: u32 = 1000;

/// Opens a file or a block device.
///
/// # Errors
///
/// If the path leads to neither, has unusable sectors, cannot be opened as asked, or has another use that writing would
/// damage. See [`OpenError`].
pub fn open(options: &FileOptions) -> Result<File, OpenError> {
    let opening = Opening {
        machine: &safety::Machine::default(),
        for_writing: !options.read_only,
    };
    open_on(options, &opening)
}

/// Returns the addresses of the file or device that would be opened or made. Opens nothing for writing. A file that is
/// still to be made counts as having sectors of 512 bytes.
///
/// # Errors
///
/// As [`open`], as far as the errors show without writing.
pub fn look(options: &FileOptions) -> Result<Addresses, OpenError> {
    if let Some(bytes) = opening::could_make(options)? {
        return Ok(Addresses::whole(bytes, 512));
    }
    let file = look_at(options)?;
    let sector_bytes = file.geometry().sector_bytes;
    Ok(Addresses::whole(file.bytes(), sector_bytes))
}

/// Opens a file or a block device for reading only, after the checks of [`open`].
///
/// # Errors
///
/// As [`open`], as far as the errors show without writing.
pub fn look_at(options: &FileOptions) -> Result<File, OpenError> {
    let looking = Opening {
        machine: &safety::Machine::default(),
        for_writing: false,
    };
    open_on(options, &looking)
}

/// Returns another use of a regular file, if there is one.
///
/// # Errors
///
/// If the kernel does not report the uses.
pub(crate) fn use_of_file(path: &Path, file: &Stat) -> io::Result<Option<Use>> {
    safety::Machine::default().use_of_file(path, file)
}

fn open_on(options: &FileOptions, opening: &Opening<'_>) -> Result<File, OpenError> {
    let opening::Opened {
        claim,
        mut geometry,
        mut bytes,
        is_block_device,
        priorities,
    } = opening::open_checked(options, opening)?;
    let header = options.member.then(|| header_of(&claim, bytes)).transpose();
    let header = header.map_err(|error| OpenError::Header {
        path: options.path.clone(),
        error,
    })?;
    if !options.member && !options.read_only {
        refuse_member(options, &claim).inspect_err(|_| claim.remove())?;
    }
    if let Some(header) = &header {
        bytes = header.bytes;
        geometry.capacity = Sectors::new(bytes / u64::from(geometry.sector_bytes));
    }
    // A block device does not report its allocation, and an array does not ask its disks.
    let allocation = match is_block_device || options.member {
        true => None,
        false => opening::again(claim.file(), OFlags::RDONLY)
            .ok()
            .map(|file| {
                let holes = allocation::Holes { file };
                Arc::new(holes) as Arc<dyn Allocation>
            }),
    };
    // The kernel has at most this number of commands at a time: `depth`, and the commands that were given up on.
    let slots = (geometry.depth as usize + ABANDONED_MAX) as u16;
    let file = Arc::clone(claim.file());
    let missing = geometry.capacity.bytes(geometry.sector_bytes) - bytes;
    let part = match missing > 0 && options.direct && opening.for_writing && !options.read_only {
        true => Some(opening::again(&file, OFlags::RDWR)),
        false => None,
    };
    let part = part.transpose().inspect_err(|_| claim.remove());
    let part = part.map_err(|error| OpenError::Io {
        path: options.path.clone(),
        doing: "opening it again to write less than a sector at its end",
        error,
    })?;
    let ring = Ring::new(file, part, slots, geometry.sector_bytes).map_err(|error| {
        claim.remove();
        OpenError::Ring(error)
    })?;
    Ok(File {
        geometry,
        header,
        missing,
        is_block_device,
        priorities,
        sends_classes: options.io_priority.unwrap_or(priorities == Priorities::On),
        path: options.path.clone(),
        ring,
        slots: (0..slots).map(|_| None).collect(),
        free: (0..slots).rev().collect(),
        by_tag: Vec::new(),
        done: VecDeque::new(),
        again: false,
        abandoned: 0,
        can_punch: true,
        can_zero: true,
        allocation,
        claim: Arc::new(claim),
    })
}

/// Reads the header of a disk of an array. A disk with fewer bytes than its header says is refused.
fn header_of(claim: &Claim, bytes: u64) -> Result<Header, HeaderError> {
    let file = opening::again(claim.file(), OFlags::RDONLY)?;
    let header = Header::read(&file.into())?.ok_or(HeaderError::None)?;
    match bytes.checked_sub(Header::DATA) {
        Some(found) if found >= header.bytes => Ok(header),
        found => Err(HeaderError::Small {
            found: Bytes(found.unwrap_or(0)),
            bytes: Bytes(header.bytes),
        }),
    }
}

/// Refuses to write to a disk of an array alone, which would spoil the array.
fn refuse_member(options: &FileOptions, claim: &Claim) -> Result<(), OpenError> {
    let file = opening::again(claim.file(), OFlags::RDONLY).map_err(HeaderError::Io);
    let header = file.and_then(|file| Header::read(&file.into()));
    match header {
        // A disk whose header cannot be read belongs to no array.
        Ok(None) | Err(_) => Ok(()),
        Ok(Some(header)) if options.force => {
            let (path, set) = (options.path.shown(), header.set);
            tracing::warn!("{path} is used all the same: it is a disk of the array {set}");
            Ok(())
        }
        Ok(Some(header)) => Err(OpenError::Member {
            path: options.path.clone(),
            index: header.index,
            set: header.set,
        }),
    }
}

/// Priority of a class for the kernel, by `ioprio_set(2)`: the class in the upper three bits, and the middle one of its
/// eight levels.
fn priority_of(class: Class) -> u16 {
    let class = match class {
        Class::REAL_TIME => 1,
        Class::BEST_EFFORT => 2,
        _ => 3,
    };
    class << 13 | 4
}

/// An open file or block device.
///
/// Invariants: `free` has the indices of the empty `slots`; `abandoned` is the number of calls in `slots` that were
/// given up on.
pub struct File {
    geometry: Geometry,
    /// The header, if the file is a disk of an array. The data begin after the header.
    header: Option<Header>,
    /// Bytes that the last sector lacks.
    missing: u64,
    is_block_device: bool,
    priorities: Priorities,
    /// True if the kernel gets the class of each read and write.
    sends_classes: bool,
    path: PathBuf,
    ring: Ring,
    slots: Vec<Option<Call>>,
    free: Vec<u16>,
    /// Slots of the commands that were not given up on, by tag.
    by_tag: Vec<Option<u16>>,
    /// Completions to be returned by the next polls.
    done: VecDeque<Done>,
    /// True if a call was repeated since the last kick, so that the next poll has to submit it.
    again: bool,
    abandoned: usize,
    can_punch: bool,
    can_zero: bool,
    allocation: Option<Arc<dyn Allocation>>,
    claim: Arc<Claim>,
}

/// Present step of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Read or write the parts.
    Transfer,
    /// Make the range read as zeroes.
    Zero { punch: bool },
    /// Forget the range.
    Discard,
    /// Bring everything to stable storage.
    Sync,
}

/// A command with the kernel.
#[derive(Clone, Copy, Debug)]
struct Call {
    tag: DriveTag,
    op: Op,
    class: Class,
    extent: Extent,
    durable: bool,
    step: Stage,
    /// Bytes transferred so far.
    progress: u64,
    /// Number of repetitions without progress.
    tries: u32,
    abandoned: bool,
}

/// Consequence of a kernel's completion for the command.
enum Next {
    /// The command needs another call.
    Again,
    Ended(Result<(), Failure>),
}

impl File {
    /// Path by which the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Header of the file, if it is a disk of an array.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Use that the drive makes of priorities.
    pub fn priorities(&self) -> Priorities {
        self.priorities
    }

    /// True if the kernel gets the class of each read and write.
    pub fn sends_classes(&self) -> bool {
        self.sends_classes
    }

    fn start(&mut self, index: u16, slot: Call) {
        let bytes = u64::from(self.geometry.sector_bytes);
        let skipped = self.header.as_ref().map_or(0, |_| Header::DATA);
        let offset = skipped + slot.extent.start.get() * bytes;
        let len = slot.extent.len.get() * bytes;
        let mut mode = libc::FALLOC_FL_KEEP_SIZE;
        let priority = if self.sends_classes {
            priority_of(slot.class)
        } else {
            0
        };
        let action = match slot.step {
            Stage::Transfer if slot.op == Op::Read => RingAction::Read {
                offset: offset + slot.progress,
                skip: slot.progress,
                priority,
            },
            Stage::Transfer => RingAction::Write {
                offset: offset + slot.progress,
                skip: slot.progress,
                missing: self.missing_of(slot.extent),
                priority,
                durable: slot.durable,
            },
            Stage::Zero { punch } => {
                mode |= match punch {
                    true => libc::FALLOC_FL_PUNCH_HOLE,
                    false => libc::FALLOC_FL_ZERO_RANGE,
                };
                RingAction::Allocate { mode, offset, len }
            }
            Stage::Discard => {
                mode |= libc::FALLOC_FL_PUNCH_HOLE;
                RingAction::Allocate { mode, offset, len }
            }
            Stage::Sync => RingAction::Sync,
        };
        self.slots[usize::from(index)] = Some(slot);
        self.ring.start(index, action);
    }

    /// Bytes that the last sector of an extent lacks.
    fn missing_of(&self, extent: Extent) -> u64 {
        match extent.end() == Lba::ZERO + self.geometry.capacity {
            true => self.missing,
            false => 0,
        }
    }

    /// Returns the step that carries out a write of nothing but zeroes.
    fn zero_step(&self, punch: bool) -> Stage {
        match (punch && self.can_punch, self.can_zero) {
            (true, _) => Stage::Zero { punch: true },
            (false, true) => Stage::Zero { punch: false },
            (false, false) => Stage::Transfer,
        }
    }

    /// Handles a completion of the kernel for a slot. Returns the command if the command has ended and was not aborted.
    fn handle_completion(&mut self, index: u16, result: i32, now: Time) -> Option<Done> {
        let mut slot = self.slots[usize::from(index)].expect("the slot is in use");
        if slot.abandoned {
            tracing::warn!(
                path = %self.path.shown(),
                op = op_name(slot.op),
                sectors = %slot.extent,
                result,
                "a command that was given up on has ended"
            );
            self.abandoned -= 1;
            drop(self.release(index));
            return None;
        }
        let next = match result {
            0.. => self.advanced(&mut slot, result as u64),
            error => self.refused(&mut slot, -error),
        };
        match next {
            Next::Again => {
                self.start(index, slot);
                self.again = true;
                None
            }
            Next::Ended(result) => {
                self.by_tag[slot.tag.index()] = None;
                Some(Done {
                    tag: slot.tag,
                    at: now,
                    result,
                    parts: self.whole(&slot, index),
                })
            }
        }
    }

    /// Takes the data of a command back from its slot. Missing bytes of the last sector read as zeroes.
    fn whole(&mut self, slot: &Call, index: u16) -> Parts {
        let mut parts = self.release(index);
        let missing = self.missing_of(slot.extent) as usize;
        if missing > 0
            && slot.op == Op::Read
            && let Some(Data::Buffer(buffer)) = parts.last_mut().map(|part| &mut part.data)
        {
            let there = buffer.len() - missing;
            buffer[there..].fill(0);
        }
        parts
    }

    fn release(&mut self, index: u16) -> Parts {
        self.slots[usize::from(index)] = None;
        self.free.push(index);
        self.ring.take(index)
    }

    /// Continues a command after a call that succeeded.
    fn advanced(&self, slot: &mut Call, bytes: u64) -> Next {
        match slot.step {
            Stage::Transfer => {
                let sector = u64::from(self.geometry.sector_bytes);
                let total = slot.extent.len.get() * sector - self.missing_of(slot.extent);
                if slot.progress + bytes >= total {
                    return Next::Ended(Ok(()));
                }
                // Direct I/O can only continue at a whole sector.
                let got = bytes - bytes % sector;
                slot.progress += got;
                if got == 0 {
                    let at = slot.extent.start + Sectors::new(slot.progress / sector);
                    tracing::error!(
                        path = %self.path.shown(),
                        "the file ends before sector {at}, or takes no more"
                    );
                    return Next::Ended(Err(Failure {
                        kind: Kind::Device,
                        at: Some(at),
                        errno: None,
                    }));
                }
                slot.tries = 0;
                Next::Again
            }
            Stage::Zero { .. } if slot.durable => {
                slot.step = Stage::Sync;
                slot.tries = 0;
                Next::Again
            }
            Stage::Zero { .. } | Stage::Discard | Stage::Sync => Next::Ended(Ok(())),
        }
    }

    /// Continues a command after a call that failed.
    fn refused(&mut self, slot: &mut Call, errno: i32) -> Next {
        let unsupported = matches!(errno, libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOTTY);
        match (errno, slot.step) {
            (libc::EINTR | libc::EAGAIN, _) if slot.tries < TRIES_MAX => {
                slot.tries += 1;
                Next::Again
            }
            // The kernel refuses the class real-time of a server that lacks CAP_SYS_NICE.
            (libc::EPERM, Stage::Transfer) if self.sends_classes => {
                self.sends_classes = false;
                tracing::warn!(
                    path = %self.path.shown(),
                    "the kernel takes no classes of requests, which need CAP_SYS_NICE; they are no longer sent"
                );
                Next::Again
            }
            (_, Stage::Zero { punch }) if unsupported => {
                match punch {
                    true => self.can_punch = false,
                    false => self.can_zero = false,
                }
                slot.step = self.zero_step(punch);
                Next::Again
            }
            // The device can discard, but not so that zeroes are left. A discard is only advice, so nothing is done.
            (_, Stage::Discard) if unsupported && self.is_block_device => Next::Ended(Ok(())),
            _ => Next::Ended(Err(self.failure(slot, errno))),
        }
    }

    fn failure(&self, slot: &Call, errno: i32) -> Failure {
        let kind = match errno {
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Kind::NoSpace,
            libc::ENODATA | libc::EILSEQ => Kind::Medium,
            libc::EIO if slot.op == Op::Read => Kind::Medium,
            _ => Kind::Device,
        };
        // If several sectors are left, the kernel does not report which one failed.
        let done = Sectors::new(slot.progress / u64::from(self.geometry.sector_bytes));
        let one_left = slot.step == Stage::Transfer && slot.extent.len - done == Sectors::new(1);
        Failure {
            kind,
            at: one_left.then_some(slot.extent.start + done),
            errno: Some(errno),
        }
    }

    /// Moves all completions of the kernel to the list that `poll` takes from.
    fn hear_all(&mut self, now: Time) {
        while let Some((index, result)) = self.ring.next() {
            if let Some(done) = self.handle_completion(index, result, now) {
                self.done.push_back(done);
            }
        }
    }
}

impl Device for File {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn bytes(&self) -> u64 {
        self.geometry.capacity.bytes(self.geometry.sector_bytes) - self.missing
    }

    fn submit(&mut self, now: Time, command: &Request<DriveTag>, parts: Parts) {
        let tag = command.tag;
        if self.abandoned >= ABANDONED_MAX {
            self.done.push_back(Done {
                tag,
                at: now,
                result: Err(Failure::new(Kind::TimedOut)),
                parts,
            });
            return;
        }
        let zeroes = parts.iter().try_fold(true, |all, part| match part.data {
            Data::Zeroes { may_punch } => Some(all && may_punch),
            _ => None,
        });
        let step = match (command.op, zeroes) {
            (Op::Flush, _) => Stage::Sync,
            (Op::Discard, _) => Stage::Discard,
            (Op::Write, Some(may_punch)) => self.zero_step(may_punch),
            (Op::Read | Op::Write, _) => Stage::Transfer,
        };
        let index = self.free.pop().expect("as many slots as commands");
        if self.by_tag.len() <= tag.index() {
            self.by_tag.resize(tag.index() + 1, None);
        }
        self.by_tag[tag.index()] = Some(index);
        self.ring.put(index, parts);
        let slot = Call {
            tag,
            op: command.op,
            extent: command.extent,
            durable: command.op == Op::Write && command.flags.has(Flags::FUA),
            class: command.class,
            step,
            progress: 0,
            tries: 0,
            abandoned: false,
        };
        self.start(index, slot);
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        if let Some(done) = self.done.pop_front() {
            return Some(done);
        }
        while let Some((index, result)) = self.ring.next() {
            let done = self.handle_completion(index, result, now);
            if done.is_some() {
                return done;
            }
        }
        if std::mem::take(&mut self.again) {
            self.ring.submit();
        }
        None
    }

    fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.ready())
    }

    fn kick(&mut self) {
        self.again = false;
        self.ring.submit();
    }

    fn abort(&mut self, now: Time, tag: DriveTag) -> Aborted {
        self.hear_all(now);
        let under_way = |file: &File| file.by_tag.get(tag.index()).copied().flatten();
        let Some(index) = under_way(self) else {
            return Aborted::No;
        };
        self.ring.cancel(index);
        self.ring.submit();
        // A call that the kernel had not started ends at once.
        while let Some((other, result)) = self.ring.next() {
            let slot = self.slots[usize::from(other)];
            if other == index
                && result == -libc::ECANCELED
                && slot.is_some_and(|slot| slot.progress == 0 && slot.step != Stage::Sync)
            {
                self.by_tag[tag.index()] = None;
                let parts = self.release(index);
                self.hear_all(now);
                return Aborted::Undone(parts);
            }
            if let Some(done) = self.handle_completion(other, result, now) {
                self.done.push_back(done);
            }
        }
        if under_way(self).is_none() {
            return Aborted::No;
        }
        self.by_tag[tag.index()] = None;
        if let Some(slot) = &mut self.slots[usize::from(index)] {
            slot.abandoned = true;
        }
        self.abandoned += 1;
        Aborted::Abandoned
    }

    fn discards_to_zeroes(&self) -> bool {
        // A block device does not promise that discarded sectors read as zeroes.
        self.geometry.discards && !self.is_block_device
    }

    fn abandoned(&self) -> usize {
        self.abandoned
    }

    fn allocation(&self) -> Option<Arc<dyn Allocation>> {
        self.allocation.clone()
    }

    fn made(&self) -> Made {
        Made::among([&self.claim])
    }

    fn check_backing(&self) -> Result<(), Lost> {
        self.claim.check()
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({}, {:?})", self.path.display(), self.geometry)
    }
}
