//! The io_uring of a file: the only module that shares memory with the kernel.
//!
//! A slot of the ring owns the data of one command from the submission to the kernel until the completion. Only then
//! does the slot return the data. The code above this module therefore needs no unsafe code.

#![allow(
    unsafe_code,
    reason = "the kernel reads and writes memory that is named by address"
)]

use crate::buffer::{Buffer, Pool};
use crate::device::Parts;
use crate::request::Data;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, fstat, fstatfs};
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Largest number of pieces of memory that the kernel takes in one call (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

/// Size of the buffer of zero bytes for writes. Longer runs of zeroes name the buffer several times.
const ZEROES: usize = 1 << 20;

/// Most bytes of a round of submissions that the thread reads itself from a file in memory. Other processors copy the rest.
const READ_AT_ONCE: usize = 64 << 10;

/// Number of times that a dropped ring waits for the kernel, and the length of each wait.
const LAST_LOOKS: u32 = 20;
const LAST_LOOK: Duration = Duration::from_millis(50);

/// Pause before the next submission if the kernel has no memory for more commands.
const SHORT_OF_MEMORY: Duration = Duration::from_millis(1);

/// Marks the completion of a cancellation, which is ignored because the cancelled command has its own completion.
const CANCELLATION: u64 = u64::MAX;

/// Call that the kernel makes for a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum RingAction {
    /// Read into the buffers, from byte `skip` of the buffers on.
    Read {
        offset: u64,
        skip: u64,
        /// Class and level in the form of `ioprio_set(2)`. 0: those of the thread.
        priority: u16,
    },
    /// Write the buffers, or zeroes for parts of zeroes, from byte `skip` on.
    Write {
        offset: u64,
        skip: u64,
        /// Bytes at the end that the file has no room for.
        missing: u64,
        priority: u16,
        /// True if the write completes only when its data are on stable storage.
        durable: bool,
    },
    /// Change the allocation by a mode of `fallocate`.
    Allocate { mode: i32, offset: u64, len: u64 },
    /// Bring all data to stable storage.
    Sync,
}

/// Piece of memory, as the kernel gets it.
#[repr(transparent)]
struct Piece(libc::iovec);

// SAFETY: a piece names memory of a buffer of its slot, or of the ring's zeroes. Both move with the ring, and stay at
// their address.
unsafe impl Send for Piece {}

/// The data of one command.
struct Transfer {
    parts: Parts,
    /// Memory of the parts.
    pieces: Vec<Piece>,
    /// Identifier of the call that the kernel is making; `None` if there is no such call.
    name: Option<u64>,
}

/// A ring for calls on one file.
pub(super) struct Ring {
    ring: IoUring,
    slots: Vec<Transfer>,
    zeroes: Buffer,
    /// Number of calls that the kernel has not completed.
    out: usize,
    serial: u64,
    /// True if calls wait to be handed to the kernel.
    collected: bool,
    /// True if the file is in memory (tmpfs). Reads from such a file wait for nothing, but the kernel hands them to another
    /// thread if they come through the ring. Short reads are therefore made at once.
    in_memory: bool,
    /// Bytes that are read at once before the next [`Ring::submit`].
    at_once: usize,
    /// Results of reads that were made at once.
    results: VecDeque<(u16, i32)>,
    sector_bytes: u64,
    file: Arc<OwnedFd>,
    /// Keeps the file open without direct I/O, for writes of less than a sector.
    _part: Option<OwnedFd>,
}

impl Ring {
    /// Makes a ring of `slots` slots. `part` is a second descriptor of the file without direct I/O, if writes of less
    /// than a sector need one.
    pub fn new(
        file: Arc<OwnedFd>,
        part: Option<OwnedFd>,
        slots: u16,
        sector_bytes: u32,
    ) -> io::Result<Ring> {
        // Each slot may have two completions that have not been read: of its call, and of the cancellation.
        let completions = (2 * u32::from(slots)).next_power_of_two();
        let ring = IoUring::builder()
            .setup_cqsize(completions)
            .build((completions / 2).min(256))?;
        let second = part.as_ref().unwrap_or(&file);
        let files = [file.as_raw_fd(), second.as_raw_fd()];
        ring.submitter().register_files(&files)?;
        let in_memory = is_in_memory(&file);
        let slot = || Transfer {
            parts: Parts::new(),
            pieces: Vec::with_capacity(16),
            name: None,
        };
        Ok(Ring {
            ring,
            slots: (0..slots).map(|_| slot()).collect(),
            // The buffers of a new pool contain zeroes.
            zeroes: Pool::keeping(0).take(ZEROES),
            out: 0,
            serial: 0,
            collected: false,
            in_memory,
            at_once: 0,
            results: VecDeque::new(),
            sector_bytes: u64::from(sector_bytes),
            file,
            _part: part,
        })
    }

    /// File descriptor that becomes readable when [`Ring::next`] has a completion to return.
    pub fn ready(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the ring, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Puts the data of a command into a free slot.
    pub fn put(&mut self, slot: u16, parts: Parts) {
        let slot = &mut self.slots[usize::from(slot)];
        assert!(
            slot.name.is_none() && slot.parts.is_empty(),
            "a slot is used by one command at a time"
        );
        slot.parts = parts;
    }

    /// Takes the data of a command that the kernel is done with.
    pub fn take(&mut self, slot: u16) -> Parts {
        let slot = &mut self.slots[usize::from(slot)];
        assert!(slot.name.is_none(), "the kernel has these data");
        std::mem::take(&mut slot.parts)
    }

    /// Collects a call for a slot. [`Ring::submit`] hands the call to the kernel.
    pub fn start(&mut self, index: u16, action: RingAction) {
        self.serial += 1;
        let name = self.serial << 16 | u64::from(index);
        let slot = &mut self.slots[usize::from(index)];
        assert!(slot.name.is_none(), "one thing at a time for a slot");
        let file = types::Fixed(0);
        let entry = match action {
            RingAction::Read {
                offset,
                skip,
                priority,
            } => {
                slot.fill(skip, self.sector_bytes, None);
                if slot.bytes() <= self.at_once {
                    self.at_once -= slot.bytes();
                    let result = slot.read(&self.file, offset);
                    return self.results.push_back((index, result));
                }
                opcode::Readv::new(file, slot.pieces.as_ptr().cast(), slot.pieces.len() as u32)
                    .offset(offset)
                    .ioprio(priority)
                    .build()
            }
            RingAction::Write {
                offset,
                skip,
                missing,
                priority,
                durable,
            } => {
                slot.fill(skip, self.sector_bytes, Some(&self.zeroes));
                let file = match missing > 0 && slot.leave_out(skip, missing, self.sector_bytes) {
                    true => types::Fixed(1),
                    false => file,
                };
                let flags = if durable { libc::RWF_DSYNC } else { 0 };
                opcode::Writev::new(file, slot.pieces.as_ptr().cast(), slot.pieces.len() as u32)
                    .offset(offset)
                    .ioprio(priority)
                    .rw_flags(flags)
                    .build()
            }
            RingAction::Allocate { mode, offset, len } => opcode::Fallocate::new(file, len)
                .offset(offset)
                .mode(mode)
                .build(),
            RingAction::Sync => opcode::Fsync::new(file)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
        };
        slot.name = Some(name);
        self.out += 1;
        self.push(&entry.user_data(name));
    }

    /// Asks the kernel to cancel the call of a slot. The completion of the call shows the outcome.
    pub fn cancel(&mut self, slot: u16) {
        if let Some(name) = self.slots[usize::from(slot)].name {
            let entry = opcode::AsyncCancel::new(name).build();
            self.push(&entry.user_data(CANCELLATION));
        }
    }

    /// Returns the next slot whose call the kernel has completed, with the call's result: the number of bytes, or the
    /// negative number of an error.
    pub fn next(&mut self) -> Option<(u16, i32)> {
        if let Some(result) = self.results.pop_front() {
            return Some(result);
        }
        loop {
            let entry = self.ring.completion().next()?;
            let name = entry.user_data();
            if name == CANCELLATION {
                continue;
            }
            let index = (name & 0xffff) as u16;
            let slot = &mut self.slots[usize::from(index)];
            assert_eq!(
                slot.name.take(),
                Some(name),
                "the kernel ends what was begun"
            );
            self.out -= 1;
            return Some((index, entry.result()));
        }
    }

    /// Submits the collected entries to the kernel.
    pub fn submit(&mut self) {
        self.at_once = if self.in_memory { READ_AT_ONCE } else { 0 };
        if !std::mem::take(&mut self.collected) {
            return;
        }
        let mut waits = 0u32;
        loop {
            match self.ring.submit() {
                Ok(_) if self.ring.submission().is_empty() => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel is short of memory. Calls in the ring cannot be taken back, so the thread has to wait.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                    if waits == 0 {
                        tracing::warn!("the kernel takes no commands for now: {error}");
                    }
                    waits = waits.saturating_add(1);
                    wait(&mut [], SHORT_OF_MEMORY);
                }
                Err(error) => panic!("the ring is broken: {error}"),
            }
        }
    }

    fn push(&mut self, entry: &squeue::Entry) {
        self.collected = true;
        // SAFETY: all memory and files that the entry names are valid until the kernel has completed the entry. The
        // ring owns the file and the zeroes. The slot owns the pieces and the buffers that they name. The slot's `name`
        // is set until the completion is seen, and until then neither pieces nor buffers are changed. If the ring is
        // dropped before that, slots and zeroes are leaked.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The submission queue is full.
            self.submit();
            self.collected = true;
        }
    }
}

/// Returns true for a regular file on tmpfs. The nodes of devices may be on tmpfs, too.
fn is_in_memory(file: &OwnedFd) -> bool {
    let is_regular = fstat(file).is_ok_and(|of| FileType::from_raw_mode(of.st_mode).is_file());
    is_regular && fstatfs(file).is_ok_and(|of| of.f_type == libc::TMPFS_MAGIC)
}

/// Waits until one of the descriptors is readable, at most for `span`.
fn wait(fds: &mut [PollFd<'_>], span: Duration) {
    let span = Timespec::try_from(span).ok();
    // Callers check the completions again even after an interrupted wait, so the error is ignored.
    let _ = rustix::event::poll(fds, span.as_ref());
}

impl Transfer {
    /// Bytes of the pieces.
    fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.0.iov_len).sum()
    }

    /// Reads into the pieces. Returns the number of bytes, or the negative number of an error.
    fn read(&mut self, file: &OwnedFd, offset: u64) -> i32 {
        let (pieces, count) = (self.pieces.as_ptr().cast(), self.pieces.len() as i32);
        // SAFETY: the slot owns the buffers that the pieces name. The call ends before this function.
        let result = unsafe { libc::preadv64(file.as_raw_fd(), pieces, count, offset as i64) };
        match result {
            0.. => result as i32,
            _ => -io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO),
        }
    }

    /// Leaves the last `missing` bytes of the parts out of `pieces`, which begin at byte `skip`. Returns false if the
    /// pieces do not reach the end of the parts.
    fn leave_out(&mut self, skip: u64, missing: u64, sector_bytes: u64) -> bool {
        let parts = self.parts.iter();
        let all: u64 = parts
            .map(|part| part.extent.len.bytes(sector_bytes as u32))
            .sum();
        let ends = skip + self.bytes() as u64 == all;
        if ends && let Some(last) = self.pieces.last_mut() {
            last.0.iov_len -= missing as usize;
        }
        ends
    }

    /// Fills `pieces` with the memory of the parts from byte `skip` on, up to the number that the kernel takes in one
    /// call.
    fn fill(&mut self, mut skip: u64, sector_bytes: u64, zeroes: Option<&Buffer>) {
        self.pieces.clear();
        for part in &mut self.parts {
            let len = part.extent.len.get() * sector_bytes;
            if skip >= len {
                skip -= len;
                continue;
            }
            let from = std::mem::take(&mut skip) as usize;
            match (&mut part.data, zeroes) {
                (Data::Buffer(buffer), _) => {
                    assert_eq!(buffer.len() as u64, len, "the buffer is of the part's size");
                    let memory = &mut buffer[from..];
                    self.pieces.push(Piece(libc::iovec {
                        iov_base: memory.as_mut_ptr().cast(),
                        iov_len: memory.len(),
                    }));
                }
                (Data::Zeroes { .. }, Some(zeroes)) => {
                    let mut left = len as usize - from;
                    while left > 0 && self.pieces.len() < PIECES_MAX {
                        let piece = left.min(zeroes.len());
                        self.pieces.push(Piece(libc::iovec {
                            // The kernel only reads the memory of a write.
                            iov_base: zeroes.as_ptr().cast_mut().cast(),
                            iov_len: piece,
                        }));
                        left -= piece;
                    }
                }
                (data, _) => panic!("nothing to transfer: {data:?}"),
            }
            if self.pieces.len() >= PIECES_MAX {
                break;
            }
        }
        assert!(!self.pieces.is_empty(), "something is left to transfer");
    }
}

impl Drop for Ring {
    /// Waits for a limited time until the kernel has released the data. Data that the kernel still has are leaked and
    /// never used again.
    fn drop(&mut self) {
        for slot in 0..self.slots.len() {
            self.cancel(slot as u16);
        }
        self.submit();
        for _ in 0..LAST_LOOKS {
            while self.next().is_some() {}
            if self.out == 0 {
                // The kernel frees a ring some time after it was closed, and would keep the file open until then. If
                // unregistering fails, the file only stays open that long.
                let _ = self.ring.submitter().unregister_files();
                return;
            }
            let ready = PollFd::from_borrowed_fd(self.ready(), PollFlags::IN);
            wait(&mut [ready], LAST_LOOK);
        }
        while self.next().is_some() {}
        if self.out > 0 {
            tracing::error!("{} commands stay with the kernel, and their data", self.out);
            let zeroes = Pool::keeping(0).take(0);
            std::mem::forget(std::mem::replace(&mut self.zeroes, zeroes));
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Part;
    use headtime_engine::RequestId;
    use headtime_testkit::Folder;
    use headtime_units::Extent;

    /// The kernel's answer to a read or a write with this priority.
    fn answer(writes: bool, priority: u16) -> i32 {
        let folder = Folder::new();
        let path = folder.join("file");
        std::fs::write(&path, [0; 4096]).expect("writes");
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path);
        let file = Arc::new(OwnedFd::from(file.expect("opens")));
        let mut ring = Ring::new(file, None, 1, 512).expect("a ring");
        let part = Part {
            id: RequestId::Client(0),
            extent: Extent::at(0, 8),
            data: Data::Buffer(Pool::new().take(4096)),
        };
        ring.put(0, vec![part]);
        let (offset, skip) = (0, 0);
        let action = match writes {
            false => RingAction::Read {
                offset,
                skip,
                priority,
            },
            true => RingAction::Write {
                offset,
                skip,
                missing: 0,
                priority,
                durable: false,
            },
        };
        ring.start(0, action);
        ring.submit();
        loop {
            if let Some((0, result)) = ring.next() {
                ring.take(0);
                return result;
            }
            let ready = PollFd::from_borrowed_fd(ring.ready(), PollFlags::IN);
            wait(&mut [ready], LAST_LOOK);
        }
    }

    #[test]
    fn only_a_regular_file_is_in_memory() {
        let opened = |path: &str| OwnedFd::from(std::fs::File::open(path).expect("opens"));
        // Nodes of devices are on a file system in memory.
        assert!(!is_in_memory(&opened("/dev/zero")));
        assert!(!is_in_memory(&opened("/dev")));
        assert!(!is_in_memory(&opened("/proc/self/status")));
        let path = format!("/dev/shm/headtime-in-memory-{}", std::process::id());
        if std::fs::write(&path, [0]).is_ok() {
            let is = is_in_memory(&opened(&path));
            std::fs::remove_file(path).expect("is there");
            assert!(is, "/dev/shm is on tmpfs");
        }
    }

    #[test]
    fn the_kernel_gets_the_priority_of_reads_and_writes() {
        for writes in [false, true] {
            // The priorities are: none, best effort, idle.
            for priority in [0, 2 << 13 | 4, 3 << 13 | 4] {
                assert_eq!(answer(writes, priority), 4096);
            }
            // There is no such class.
            assert_eq!(answer(writes, 7 << 13), -libc::EINVAL);
        }
    }
}
