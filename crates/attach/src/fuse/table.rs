//! Table of the kernel's requests that disks are serving, with the answer to each.

use crossbeam_queue::ArrayQueue;
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use headtime_serve::request::{Completer, Completion, Data, Failure, Kind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Kind of answer to a request once the disk is done with it.
#[derive(Debug)]
pub(super) enum Answer {
    /// Answer with `len` of the bytes that were read, from `head` on. Reads are rounded out to whole sectors.
    Data {
        reply: ReplyData,
        head: usize,
        len: usize,
    },
    /// Answer with the number of bytes written.
    Written { reply: ReplyWrite, len: u32 },
    /// Answer with success.
    Empty(ReplyEmpty),
}

impl Answer {
    /// Sends the answer. `data` are the bytes that were read.
    pub(super) fn give(self, result: Result<(), Failure>, data: Data) {
        match (self, result) {
            (Answer::Data { reply, head, len }, Ok(())) => match data {
                Data::Buffer(buffer) => reply.data(&buffer[head..head + len]),
                Data::None | Data::Zeroes { .. } => reply.error(Errno::EIO),
            },
            (Answer::Written { reply, len }, Ok(())) => reply.written(len),
            (Answer::Empty(reply), Ok(())) => reply.ok(),
            (answer, Err(failure)) => answer.fail(errno(&failure)),
        }
    }

    /// Sends an error as the answer.
    pub(super) fn fail(self, error: Errno) {
        match self {
            Answer::Data { reply, .. } => reply.error(error),
            Answer::Written { reply, .. } => reply.error(error),
            Answer::Empty(reply) => reply.error(error),
        }
    }
}

/// Error number of a failure.
fn errno(failure: &Failure) -> Errno {
    match failure.kind {
        Kind::NoSpace => Errno::ENOSPC,
        Kind::ReadOnly => Errno::EROFS,
        Kind::TimedOut | Kind::NotBegun => Errno::ETIMEDOUT,
        // For programs, all other failures of a device are I/O errors.
        _ => Errno::EIO,
    }
}

/// The requests that disks are serving. The thread that reads requests from the kernel inserts
/// them. The disks' threads answer and remove them.
#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[Mutex<Option<Answer>>]>,
    free: ArrayQueue<u32>,
    /// True while the reading thread waits for a free slot.
    wanted: AtomicBool,
    waiting: Mutex<()>,
    freed: Condvar,
}

impl Table {
    /// Makes a table for this number of requests at a time.
    pub(super) fn new(size: u32) -> Table {
        let free = ArrayQueue::new(size as usize);
        for slot in 0..size {
            free.push(slot).expect("there is room for all of them");
        }
        Table {
            slots: (0..size).map(|_| Mutex::new(None)).collect(),
            free,
            wanted: AtomicBool::new(false),
            waiting: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    /// Inserts a request and returns its cookie. Waits while the table is full.
    pub(super) fn put(&self, answer: Answer) -> u64 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.wait(),
        };
        *lock(&self.slots[slot as usize]) = Some(answer);
        u64::from(slot)
    }

    fn wait(&self) -> u32 {
        let mut waiting = lock(&self.waiting);
        loop {
            // The flag is set before the check. A thread that frees a slot after the check sees the flag.
            self.wanted.store(true, Ordering::SeqCst);
            if let Some(slot) = self.free.pop() {
                self.wanted.store(false, Ordering::SeqCst);
                return slot;
            }
            waiting = self
                .freed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Completer for Table {
    fn complete(&self, completion: Completion) {
        let slot = completion.cookie as u32;
        let answer = lock(&self.slots[slot as usize])
            .take()
            .expect("a request completes once");
        answer.give(completion.result, completion.data);
        self.free.push(slot).expect("a slot is given back once");
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.wanted.load(Ordering::SeqCst) {
            // The lock delays the notice until a thread that has checked is waiting.
            drop(lock(&self.waiting));
            self.freed.notify_one();
        }
    }
}

/// Locks a mutex, also after a panic of another thread: every statement leaves the data consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
