//! Operations that take several requests to a disk: writes that begin or end within a sector, and
//! zeroes.
//!
//! A write of part of a sector reads the sector, changes it and writes it. Another write to that
//! sector in between would be lost, so:
//!
//! - All such operations of a mount are done one after the other, on a thread of their own, in the
//!   order in which they came.
//! - From when one comes until it is done its sectors are *claimed*. A write that touches claimed
//!   sectors is queued behind it. Claims are made and looked at by one thread only, the one that
//!   reads requests from the kernel, so there is no gap between looking and acting.
//! - Writes that were submitted before are with the disk already, which keeps overlapping requests
//!   in order: the sector is read with their data.
//!
//! So operations on the files of one mount have the same effect as one at a time, to the byte. This
//! does not hold against a client that writes the same sectors through another front end (NBD):
//! between front ends the unit is the sector.

use super::submit::submit;
use super::table::{Answer, lock};
use headtime_sched::{Flags, Op, Origin};
use headtime_serve::buffer::Buffer;
use headtime_serve::disk::Export;
use headtime_serve::request::{Completer, Completion, Data, Failure, Kind, Submission};
use headtime_units::{Extent, Lba, Sectors};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Operations that may wait for the thread; the next one makes the reading thread wait.
const QUEUE: usize = 64;

/// Zeroes go to the disk in requests of at most this many bytes, so that others get their turn.
const ZEROES_BYTES: u64 = 1 << 20;

/// What is to be done.
#[derive(Debug)]
pub(super) enum Work {
    /// Write these bytes.
    Write {
        /// As long as `extent`; what is not to be written is undefined.
        buffer: Buffer,
        /// The bytes of the buffer to be written.
        head: usize,
        len: usize,
    },
    /// Make bytes `offset` to `offset + len` zero.
    Zero {
        offset: u64,
        len: u64,
        /// How whole sectors are to be made so.
        how: Zeroing,
    },
}

/// How whole sectors become zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zeroing {
    /// They are discarded: the disk reads as zeroes what it has forgotten.
    Discard,
    /// Zeroes are written.
    Write { may_punch: bool },
}

/// An operation.
#[derive(Debug)]
pub(super) struct Job {
    pub export: Arc<Export>,
    /// The sectors it touches.
    pub extent: Extent,
    pub flags: Flags,
    pub origin: Origin,
    pub work: Work,
    pub answer: Answer,
}

/// Sectors of operations that are not done.
#[derive(Debug, Default)]
struct Claims(Mutex<Vec<(Arc<Export>, Extent)>>);

/// The thread that does them, and its queue.
#[derive(Debug)]
pub(super) struct Slow {
    queue: Option<SyncSender<Job>>,
    claims: Arc<Claims>,
    thread: Option<JoinHandle<()>>,
}

impl Slow {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the machine has none.
    pub(super) fn start() -> io::Result<Slow> {
        let (queue, jobs) = sync_channel(QUEUE);
        let claims = Arc::new(Claims::default());
        let held = Arc::clone(&claims);
        let thread = std::thread::Builder::new()
            .name("fuse-slow".to_owned())
            .spawn(move || work(&jobs, &held))?;
        Ok(Slow {
            queue: Some(queue),
            claims,
            thread: Some(thread),
        })
    }

    /// Returns true if some of these sectors of the export's disk are claimed.
    pub(super) fn claims(&self, export: &Export, extent: Extent) -> bool {
        // Disks of one server have different names; were two alike, requests would wait in vain
        // but nothing would be wrong.
        lock(&self.claims.0).iter().any(|(other, claimed)| {
            other.disk.name() == export.disk.name() && claimed.overlaps(extent)
        })
    }

    /// Queues an operation and claims its sectors. Waits while the queue is full.
    pub(super) fn push(&self, job: Job) {
        lock(&self.claims.0).push((Arc::clone(&job.export), job.extent));
        let queue = self.queue.as_ref().expect("it is there until the end");
        if let Err(back) = queue.send(job) {
            back.0.answer.fail(fuser::Errno::EIO);
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // It has nobody else to tell of a panic.
            let _ = thread.join();
        }
    }
}

fn work(jobs: &Receiver<Job>, claims: &Claims) {
    let post = Arc::new(Post::default());
    while let Ok(job) = jobs.recv() {
        let Job {
            export,
            extent,
            flags,
            origin,
            work,
            answer,
        } = job;
        let to = Patient {
            export: &export,
            flags,
            origin,
            post: &post,
        };
        let result = match work {
            Work::Write { buffer, head, len } => to.write(extent, buffer, head, len),
            Work::Zero { offset, len, how } => to.zero(offset, len, how),
        };
        // First, so that a program that has its answer finds nothing claimed by it.
        let mut claims = lock(&claims.0);
        let mine = claims
            .iter()
            .position(|(other, claimed)| Arc::ptr_eq(other, &export) && *claimed == extent);
        claims.swap_remove(mine.expect("it was claimed when it was queued"));
        drop(claims);
        answer.give(result, Data::None);
    }
}

/// Does one request at a time and waits for it.
struct Patient<'a> {
    export: &'a Export,
    flags: Flags,
    origin: Origin,
    post: &'a Arc<Post>,
}

impl Patient<'_> {
    /// Writes `len` bytes of a buffer from `head` on, and leaves the rest of its sectors as it is.
    fn write(
        &self,
        extent: Extent,
        mut buffer: Buffer,
        head: usize,
        len: usize,
    ) -> Result<(), Failure> {
        let sector = self.export.disk.sector_bytes() as usize;
        let tail = head + len;
        let first = extent.start;
        let last = Lba::new(extent.end().get() - 1);
        let mut known = None;
        if head > 0 {
            let old = self.read(first)?;
            buffer[..head].copy_from_slice(&old[..head]);
            known = Some(old);
        }
        if tail < buffer.len() {
            let old = match known {
                Some(old) if first == last => old,
                _ => self.read(last)?,
            };
            let kept = tail % sector;
            buffer[tail..].copy_from_slice(&old[kept..]);
        }
        self.request(Op::Write, extent, self.flags, Data::Buffer(buffer))?;
        Ok(())
    }

    /// Makes bytes zero.
    fn zero(&self, offset: u64, len: u64, how: Zeroing) -> Result<(), Failure> {
        let sector = u64::from(self.export.disk.sector_bytes());
        let end = offset + len;
        let (first, last) = (offset.div_ceil(sector), end / sector);
        if first > last {
            // Within one sector.
            return self.part(last, offset % sector, end % sector);
        }
        if !offset.is_multiple_of(sector) {
            self.part(first - 1, offset % sector, sector)?;
        }
        let mut at = first;
        while at < last {
            let (sectors, op, data) = match how {
                Zeroing::Discard => (last - at, Op::Discard, Data::None),
                Zeroing::Write { may_punch } => (
                    (last - at).min(ZEROES_BYTES / sector),
                    Op::Write,
                    Data::Zeroes { may_punch },
                ),
            };
            let extent = Extent::new(Lba::new(at), Sectors::new(sectors));
            let flags = match how {
                Zeroing::Discard => Flags::NONE,
                Zeroing::Write { .. } => self.flags,
            };
            self.request(op, extent, flags, data)?;
            at += sectors;
        }
        if !end.is_multiple_of(sector) {
            self.part(last, 0, end % sector)?;
        }
        Ok(())
    }

    /// Makes bytes `from` to `to` of one sector zero.
    fn part(&self, lba: u64, from: u64, to: u64) -> Result<(), Failure> {
        let lba = Lba::new(lba);
        let mut buffer = self.read(lba)?;
        buffer[from as usize..to as usize].fill(0);
        let extent = Extent::new(lba, Sectors::new(1));
        self.request(Op::Write, extent, self.flags, Data::Buffer(buffer))?;
        Ok(())
    }

    fn read(&self, lba: Lba) -> Result<Buffer, Failure> {
        let disk = &self.export.disk;
        let buffer = disk.pool().take(disk.sector_bytes() as usize);
        let extent = Extent::new(lba, Sectors::new(1));
        let data = self.request(Op::Read, extent, Flags::NONE, Data::Buffer(buffer))?;
        data.into_buffer().ok_or(Failure::new(Kind::Device))
    }

    fn request(&self, op: Op, extent: Extent, flags: Flags, data: Data) -> Result<Data, Failure> {
        let disk = &self.export.disk;
        let submission = Submission {
            cookie: 0,
            op,
            extent,
            flags,
            origin: self.origin,
            class: self.export.class,
            arrived: disk.now(),
            data,
            to: Arc::clone(self.post) as Arc<dyn Completer>,
        };
        if submit(disk, submission).is_err() {
            return Err(Failure::new(Kind::ShuttingDown));
        }
        let completion = self.post.wait();
        completion.result.map(|()| completion.data)
    }
}

/// Where the thread finds the end of its request.
#[derive(Debug, Default)]
struct Post {
    completion: Mutex<Option<Completion>>,
    came: Condvar,
}

impl Post {
    fn wait(&self) -> Completion {
        let mut completion = lock(&self.completion);
        loop {
            if let Some(completion) = completion.take() {
                return completion;
            }
            completion = self
                .came
                .wait(completion)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Completer for Post {
    fn complete(&self, completion: Completion) {
        *lock(&self.completion) = Some(completion);
        self.came.notify_one();
    }
}
