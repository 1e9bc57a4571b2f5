//! Requests that take several steps: writes and discards of parts of sectors, and zeroes longer than a command.
//!
//! A write of part of a sector reads the sector, changes the read bytes and writes the sector. Another write to that
//! sector in between would be lost. The disk's thread takes the requests of all front ends in one order, so:
//!
//! - From a request's first step to its last, its sectors are *claimed*.
//! - A request that overlaps claimed sectors waits. A flush waits for earlier requests of several steps.
//! - The engine keeps earlier requests and the steps in order where they overlap.
//!
//! Requests of all front ends therefore have the same effect as one request at a time, to the byte. While no sectors
//! are claimed, a request of whole sectors costs only a comparison here.

use crate::buffer::{Buffer, Pool};
use crate::disk::shared::lock;
use crate::request::{Completer, Completion, Cut, Data, Failure, Submission};
use headtime_engine::shares::take_out;
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Lba, Sectors};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Zeroes go to the engine in steps of at most this many bytes, so that others get their turn.
const ZEROES_BYTES_MAX: u64 = 32 << 20;

/// Largest number of requests that wait for claimed sectors. The queue is not read beyond this number, because each
/// completion examines all waiting requests.
const WAITING_MAX: usize = 256;

/// A request and its present step.
#[derive(Debug)]
struct Job {
    /// Number of the request in order of arrival.
    number: u64,
    /// The request, with its data until the last step takes them.
    asked: Submission,
    /// The first sector that has not been handed to the engine.
    next: Lba,
    /// Sector that the present step reads; `None` if the step does not read.
    reads: Option<Lba>,
    /// Steps so far.
    steps: u64,
}

/// Receives the completions of steps, for the disk's thread.
#[derive(Debug, Default)]
struct Ends(Mutex<Vec<Completion>>);

impl Completer for Ends {
    fn complete(&self, completion: Completion) {
        lock(&self.0).push(completion);
    }
}

/// The requests of a disk that take several steps, and the requests that wait for them.
#[derive(Debug)]
pub(super) struct Steps {
    sector_bytes: u32,
    pool: Pool,
    /// Jobs, by the cookie of their steps.
    jobs: Vec<Option<Job>>,
    running: usize,
    /// Waiting requests in order of arrival, each with its number.
    waiting: VecDeque<(u64, Submission)>,
    /// Steps and requests that go to the engine before the queue's requests.
    ready: VecDeque<Submission>,
    ends: Arc<Ends>,
    arrivals: u64,
}

impl Steps {
    pub fn new(sector_bytes: u32, pool: Pool) -> Steps {
        Steps {
            sector_bytes,
            pool,
            jobs: Vec::new(),
            running: 0,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            ends: Arc::default(),
            arrivals: 0,
        }
    }

    /// Returns true if another request of the queue may come in.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Returns true if there is a step for the engine.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns true if no sectors are claimed and nothing is ready.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.running == 0 && self.ready.is_empty()
    }

    /// Takes a request that comes in. Returns the next request for the engine, which is the same request if it takes
    /// one step and does not have to wait.
    #[inline]
    pub fn admit(&mut self, submission: Submission) -> Option<Submission> {
        match self.passes(&submission) {
            true => Some(submission),
            false => self.admit_late(submission),
        }
    }

    /// Returns true if a request takes one step and does not have to wait.
    #[inline]
    pub fn passes(&self, submission: &Submission) -> bool {
        self.is_idle() && !self.takes_steps(submission)
    }

    #[cold]
    fn admit_late(&mut self, submission: Submission) -> Option<Submission> {
        self.arrivals += 1;
        if self.has_to_wait(self.arrivals, &submission, self.waiting.len()) {
            self.waiting.push_back((self.arrivals, submission));
        } else {
            self.go(self.arrivals, submission);
        }
        self.ready.pop_front()
    }

    /// Returns the next step, or the next request that no longer has to wait.
    pub fn next(&mut self) -> Option<Submission> {
        self.ready.pop_front()
    }

    /// Continues the jobs whose steps have ended. Returns a request that is over, if there is one.
    pub fn ended(&mut self) -> Option<(Arc<dyn Completer>, Completion)> {
        loop {
            let end = lock(&self.ends.0).pop()?;
            if let Some(over) = self.go_on(end) {
                return Some(over);
            }
        }
    }

    /// Takes the waiting requests out that are over.
    pub fn take_out(
        &mut self,
        is_over: &mut impl FnMut(&Submission) -> bool,
        out: &mut Vec<Submission>,
    ) {
        let mut waiting = Vec::new();
        take_out(
            &mut self.waiting,
            &mut |(_, submission)| is_over(submission),
            &mut waiting,
        );
        if !waiting.is_empty() {
            out.extend(waiting.into_iter().map(|(_, submission)| submission));
            self.release();
        }
    }

    /// Returns true if a request that goes to the engine is a later step of a request that has begun.
    pub fn continues(&self, to: &Arc<dyn Completer>, cookie: u64) -> bool {
        let is_step = Arc::as_ptr(to).cast::<()>() == Arc::as_ptr(&self.ends).cast::<()>();
        let job = || self.jobs.get(cookie as usize)?.as_ref();
        is_step && job().is_some_and(|job| job.steps > 1)
    }

    /// Returns all unanswered requests. Called when a bug ends the thread.
    pub fn abandon(&mut self) -> impl Iterator<Item = Submission> {
        self.running = 0;
        let jobs = std::mem::take(&mut self.jobs).into_iter().flatten();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let ready = std::mem::take(&mut self.ready);
        jobs.map(|job| job.asked)
            .chain(waiting.map(|(_, submission)| submission))
            .chain(ready)
    }

    fn takes_steps(&self, submission: &Submission) -> bool {
        let is_long = || {
            matches!(submission.data, Data::Zeroes { .. })
                && submission.extent.len.bytes(self.sector_bytes) > ZEROES_BYTES_MAX
        };
        match submission.op {
            Op::Read | Op::Flush => false,
            Op::Write | Op::Discard => submission.cut != Cut::NONE || is_long(),
        }
    }

    /// Returns true if a request conflicts with claimed sectors, or with one of the first `before` waiting requests.
    fn has_to_wait(&self, number: u64, submission: &Submission, before: usize) -> bool {
        let is_flush = submission.op == Op::Flush;
        let conflicts = |other: u64, asked: &Submission| match is_flush {
            true => other < number && asked.op.changes(),
            false => asked.extent.overlaps(submission.extent),
        };
        let waiting = self.waiting.iter().take(before);
        self.jobs
            .iter()
            .flatten()
            .any(|job| conflicts(job.number, &job.asked))
            || waiting
                .into_iter()
                .any(|(other, asked)| conflicts(*other, asked))
    }

    /// Makes a request ready for the engine; of a request that takes several steps, the first step.
    fn go(&mut self, number: u64, asked: Submission) {
        if !self.takes_steps(&asked) {
            self.ready.push_back(asked);
            return;
        }
        let job = Job {
            number,
            next: asked.extent.start,
            asked,
            reads: None,
            steps: 0,
        };
        self.running += 1;
        let place = match self.jobs.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                self.jobs.push(None);
                self.jobs.len() - 1
            }
        };
        self.jobs[place] = Some(job);
        self.step(place, None);
    }

    /// Continues the job whose step has ended. Returns the request if that step was the last one.
    fn go_on(&mut self, end: Completion) -> Option<(Arc<dyn Completer>, Completion)> {
        let place = end.cookie as usize;
        let old = end.data.into_buffer();
        if end.result.is_ok() && self.step(place, old) {
            return None;
        }
        let job = self.jobs[place].take()?;
        self.running -= 1;
        self.release();
        let Submission {
            cookie, data, to, ..
        } = job.asked;
        let result: Result<(), Failure> = end.result;
        let completion = Completion {
            cookie,
            result,
            data,
        };
        Some((to, completion))
    }

    /// Starts the requests that waited for sectors that are no longer claimed.
    fn release(&mut self) {
        let mut at = 0;
        while let Some((number, submission)) = self.waiting.get(at) {
            if self.has_to_wait(*number, submission, at) {
                at += 1;
            } else if let Some((number, submission)) = self.waiting.remove(at) {
                self.go(number, submission);
            }
        }
    }

    /// Makes the next step of a job ready. Returns false if there is none. `old` has the data of the last step if that was a read.
    fn step(&mut self, place: usize, old: Option<Buffer>) -> bool {
        let Some(job) = &mut self.jobs[place] else {
            return false;
        };
        let Some((op, extent, data)) = job.step(old, &self.pool, self.sector_bytes) else {
            return false;
        };
        job.steps += 1;
        self.ready.push_back(Submission {
            cookie: place as u64,
            op,
            extent,
            cut: Cut::NONE,
            flags: match op {
                Op::Read => Flags::NONE,
                _ => job.asked.flags,
            },
            origin: job.asked.origin,
            class: job.asked.class,
            arrived: job.asked.arrived,
            data,
            to: Arc::clone(&self.ends) as _,
        });
        true
    }
}

impl Job {
    fn step(
        &mut self,
        old: Option<Buffer>,
        pool: &Pool,
        sector_bytes: u32,
    ) -> Option<(Op, Extent, Data)> {
        let (extent, Cut { head, tail }) = (self.asked.extent, self.asked.cut);
        let (head, tail, sector) = (head as usize, tail as usize, sector_bytes as usize);
        let last = Lba::new(extent.end().get() - 1);
        let read = self.reads.take().zip(old);
        let edge = |lba: Lba| (lba == extent.start && head > 0) || (lba == last && tail > 0);
        if let Data::Buffer(buffer) = &mut self.asked.data {
            let mut next = extent.start;
            if let Some((lba, old)) = read {
                if lba == extent.start {
                    buffer[..head].copy_from_slice(&old[..head]);
                }
                if lba == last {
                    let kept = buffer.len() - tail;
                    buffer[kept..].copy_from_slice(&old[sector - tail..]);
                }
                next = Lba::new(lba.get() + 1);
            }
            // Both edges first, then the write.
            let unread = [extent.start, last].into_iter();
            let unread = unread.filter(|lba| *lba >= next && edge(*lba)).min();
            if let Some(lba) = unread {
                return Some(self.read(lba, pool, sector));
            }
            let data = std::mem::take(&mut self.asked.data);
            self.next = extent.end();
            return Some((Op::Write, extent, data));
        }
        if let Some((lba, mut old)) = read {
            let from = if lba == extent.start { head } else { 0 };
            let to = sector - if lba == last { tail } else { 0 };
            old[from..to].fill(0);
            return Some((
                Op::Write,
                Extent::new(lba, Sectors::new(1)),
                Data::Buffer(old),
            ));
        }
        if self.next >= extent.end() {
            return None;
        }
        let at = self.next;
        if edge(at) {
            self.next = Lba::new(at.get() + 1);
            return Some(self.read(at, pool, sector));
        }
        let end = if tail > 0 { last } else { extent.end() };
        let mut len = end - at;
        let data = match self.asked.data {
            Data::Zeroes { may_punch } => {
                len = len.min(Sectors::new(ZEROES_BYTES_MAX / u64::from(sector_bytes)));
                Data::Zeroes { may_punch }
            }
            _ => Data::None,
        };
        self.next = at + len;
        Some((self.asked.op, Extent::new(at, len), data))
    }

    fn read(&mut self, lba: Lba, pool: &Pool, sector: usize) -> (Op, Extent, Data) {
        self.reads = Some(lba);
        let data = Data::Buffer(pool.take(sector));
        (Op::Read, Extent::new(lba, Sectors::new(1)), data)
    }
}
