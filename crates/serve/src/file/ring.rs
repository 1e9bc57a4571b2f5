//! The io_uring of a file: the only module that shares memory with the kernel.
//!
//! A slot of the ring owns the data of one command from submission to the kernel until its
//! completion, and returns them only then. So the code above needs no unsafe of its own.

#![allow(
    unsafe_code,
    reason = "the kernel reads and writes memory that is named by address"
)]

use crate::buffer::{Buffer, Pool};
use crate::device::Parts;
use crate::request::Data;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Pieces of memory in one call; the kernel takes no more (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

/// So many zero bytes are there to be written; longer runs name them several times.
const ZEROES: usize = 1 << 20;

/// How often a ring that is dropped looks whether the kernel is done, and for how long each time.
const LAST_LOOKS: u32 = 20;
const LAST_LOOK: Duration = Duration::from_millis(50);

/// When the kernel has no memory for more commands, it is asked again after so long.
const SHORT_OF_MEMORY: Duration = Duration::from_millis(1);

/// Marks the end of a cancellation, of which nothing is to be learnt: the command ends on its own.
const CANCELLATION: u64 = u64::MAX;

/// What the kernel is to do for a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum RingAction {
    /// Read into the buffers from byte `skip` of them on.
    Read { offset: u64, skip: u64 },
    /// Write the buffers, or zeroes where a part has them, from byte `skip` on.
    Write {
        offset: u64,
        skip: u64,
        /// Bytes at the end that the file has no room for.
        missing: u64,
        /// Complete only when it is on stable storage.
        durable: bool,
    },
    /// Change what is allocated: a mode of `fallocate`.
    Allocate { mode: i32, offset: u64, len: u64 },
    /// Bring everything to stable storage.
    Sync,
}

/// The data of one command.
struct Transfer {
    parts: Parts,
    /// What the kernel is given of them.
    pieces: Vec<libc::iovec>,
    /// The kernel's name for what is under way, if anything is.
    name: Option<u64>,
}

/// A ring before one file.
pub(super) struct Ring {
    ring: IoUring,
    slots: Vec<Transfer>,
    zeroes: Buffer,
    /// Commands with the kernel.
    out: usize,
    serial: u64,
    /// Whether anything waits to be handed to the kernel.
    collected: bool,
    sector_bytes: u64,
    /// Open as long as the ring is.
    _file: Arc<OwnedFd>,
    /// Keeps the file open without direct I/O, for writes of less than a sector.
    _part: Option<OwnedFd>,
}

impl Ring {
    /// Makes a ring of `slots` slots. `part` is the file again, if less than a sector can be written that way only.
    pub fn new(
        file: Arc<OwnedFd>,
        part: Option<OwnedFd>,
        slots: u16,
        sector_bytes: u32,
    ) -> io::Result<Ring> {
        // Each slot may end and be cancelled before anybody looks.
        let completions = (2 * u32::from(slots)).next_power_of_two();
        let ring = IoUring::builder()
            .setup_cqsize(completions)
            .build((completions / 2).min(256))?;
        let second = part.as_ref().unwrap_or(&file);
        let files = [file.as_raw_fd(), second.as_raw_fd()];
        ring.submitter().register_files(&files)?;
        let slot = || Transfer {
            parts: Parts::new(),
            pieces: Vec::with_capacity(16),
            name: None,
        };
        Ok(Ring {
            ring,
            slots: (0..slots).map(|_| slot()).collect(),
            // Nobody wrote to what a new pool hands out.
            zeroes: Pool::keeping(0).take(ZEROES),
            out: 0,
            serial: 0,
            collected: false,
            sector_bytes: u64::from(sector_bytes),
            _file: file,
            _part: part,
        })
    }

    /// Readable when [`Ring::next`] has something to return.
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

    /// Collects something to be done for a slot; [`Ring::submit`] hands it over.
    pub fn start(&mut self, index: u16, action: RingAction) {
        self.serial += 1;
        let name = self.serial << 16 | u64::from(index);
        let slot = &mut self.slots[usize::from(index)];
        assert!(slot.name.is_none(), "one thing at a time for a slot");
        let file = types::Fixed(0);
        let entry = match action {
            RingAction::Read { offset, skip } => {
                slot.fill(skip, self.sector_bytes, None);
                opcode::Readv::new(file, slot.pieces.as_ptr(), slot.pieces.len() as u32)
                    .offset(offset)
                    .build()
            }
            RingAction::Write {
                offset,
                skip,
                missing,
                durable,
            } => {
                slot.fill(skip, self.sector_bytes, Some(&self.zeroes));
                let file = match missing > 0 && slot.leave_out(skip, missing, self.sector_bytes) {
                    true => types::Fixed(1),
                    false => file,
                };
                let flags = if durable { libc::RWF_DSYNC } else { 0 };
                opcode::Writev::new(file, slot.pieces.as_ptr(), slot.pieces.len() as u32)
                    .offset(offset)
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

    /// Asks the kernel to cancel its work for a slot. The completion of the slot shows whether it
    /// has.
    pub fn cancel(&mut self, slot: u16) {
        if let Some(name) = self.slots[usize::from(slot)].name {
            let entry = opcode::AsyncCancel::new(name).build();
            self.push(&entry.user_data(CANCELLATION));
        }
    }

    /// The next slot that the kernel has completed, and its result: bytes, or the negative of an
    /// error's number.
    pub fn next(&mut self) -> Option<(u16, i32)> {
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
        if !std::mem::take(&mut self.collected) {
            return;
        }
        let mut waits = 0u32;
        loop {
            match self.ring.submit() {
                Ok(_) if self.ring.submission().is_empty() => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel is short of memory. What it was not given cannot be taken back either.
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
        // SAFETY: what the entry names is valid until the kernel is done with it. The file is owned
        // by the ring. The pieces and the buffers that they name are owned by the slot, whose
        // `name` is set until its completion is seen, and nothing is done to either meanwhile; the
        // zeroes are owned by the ring. When the ring is dropped before that, they are leaked.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // No room left to collect.
            self.submit();
            self.collected = true;
        }
    }
}

/// Waits until one of these is readable, or so much time has passed.
fn wait(fds: &mut [PollFd<'_>], span: Duration) {
    let span = Timespec::try_from(span).ok();
    // Interrupted or not, whoever waits looks again.
    let _ = rustix::event::poll(fds, span.as_ref());
}

impl Transfer {
    /// Leaves bytes at the end of the parts out of the memory that is named from byte `skip` on. Returns false if the
    /// end is not among them.
    fn leave_out(&mut self, skip: u64, missing: u64, sector_bytes: u64) -> bool {
        let parts = self.parts.iter();
        let all: u64 = parts
            .map(|part| part.extent.len.bytes(sector_bytes as u32))
            .sum();
        let named: usize = self.pieces.iter().map(|piece| piece.iov_len).sum();
        let ends = skip + named as u64 == all;
        if ends && let Some(last) = self.pieces.last_mut() {
            last.iov_len -= missing as usize;
        }
        ends
    }

    /// Names the memory of the parts from byte `skip` on, as much as the kernel takes in one call.
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
                    self.pieces.push(libc::iovec {
                        iov_base: memory.as_mut_ptr().cast(),
                        iov_len: memory.len(),
                    });
                }
                (Data::Zeroes { .. }, Some(zeroes)) => {
                    let mut left = len as usize - from;
                    while left > 0 && self.pieces.len() < PIECES_MAX {
                        let piece = left.min(zeroes.len());
                        self.pieces.push(libc::iovec {
                            // The kernel only reads what is written.
                            iov_base: zeroes.as_ptr().cast_mut().cast(),
                            iov_len: piece,
                        });
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
    /// Waits for the kernel to let go of the data, but not for ever: what it then still has is
    /// never used again.
    fn drop(&mut self) {
        for slot in 0..self.slots.len() {
            self.cancel(slot as u16);
        }
        self.submit();
        for _ in 0..LAST_LOOKS {
            while self.next().is_some() {}
            if self.out == 0 {
                // A ring ends some time after it was closed, and would keep the file open until
                // then. If this fails, that is all.
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
