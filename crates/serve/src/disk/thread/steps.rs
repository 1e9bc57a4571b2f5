//! Requests that take several steps: writes and discards of parts of sectors, and requests longer than a command.
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
use headtime_sched::{Flags, Op, Request};
use headtime_units::{Extent, Lba, Sectors, Time};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Reads and writes go to the engine in steps of at most this many bytes, so that others get their turn.
const STEP_BYTES_MAX: u64 = 1 << 20;

/// Steps of a long request in flight. On a fast disk, two lose a fifth of the throughput. On a hard disk, a reader of another
/// export waits for them: 58 ms beside four, 105 ms beside eight (`wd5000aaks`, steps written at random places).
const IN_FLIGHT_MAX: u32 = 4;

/// Longest step of zeroes that the device may discard. Discarding takes no head time.
const PUNCH_BYTES_MAX: u64 = 32 << 20;

/// Largest number of requests that wait for claimed sectors. The queue is not read beyond this number, because each
/// completion examines all waiting requests.
const WAITING_MAX: usize = 256;

/// A request and its present steps.
///
/// Invariants:
///
/// - `in_flight ≤ IN_FLIGHT_MAX`; `in_flight ≤ steps`.
/// - `reads.is_some()` ⇒ `in_flight > 0`.
/// - `times.is_some()` ⇒ `is_counted`.
#[derive(Debug)]
struct Job {
    /// Number of the request in order of arrival.
    number: u64,
    /// The request, with the data that no step has had.
    asked: Submission,
    /// Data that steps have returned, by number of the step.
    back: Vec<(u64, Buffer)>,
    /// Length of the longest step.
    longest: Sectors,
    /// The first sector that has not been handed to the engine.
    next: Lba,
    /// Step that reads a sector for a change of some bytes, and the sector. No step follows before the end of this step.
    reads: Option<(u64, Lba)>,
    /// Number of all steps so far.
    steps: u64,
    /// Number of steps that have not ended.
    in_flight: u32,
    /// True if a flush follows the steps: for a long forced write, in place of many short ones.
    flushes: bool,
    /// True if the device was given a step.
    has_started: bool,
    /// True if the request counts as unfinished, because a step has gone to the engine.
    is_counted: bool,
    /// True if a step was refused because the disk takes no writes.
    is_refused: bool,
    /// Time at which the device was given the first step, and time of the end of the last step.
    times: Option<(Time, Time)>,
    /// Failure of the step at the lowest place, of the steps that have failed.
    failure: Option<Failure>,
}

/// A request of several steps that is over.
pub(super) struct EndedJob {
    /// The request, with the sectors of its steps.
    pub request: Request<()>,
    /// True if the request counts as unfinished.
    pub is_counted: bool,
    pub is_refused: bool,
    /// Time at which the device was given the first step, and time of the end of the last step.
    pub times: Option<(Time, Time)>,
    pub to: Arc<dyn Completer>,
    pub completion: Completion,
}

/// Receives the completions of steps, for the disk's thread.
#[derive(Debug, Default)]
struct Ends(Mutex<VecDeque<Completion>>);

impl Completer for Ends {
    fn complete(&self, completion: Completion) {
        lock(&self.0).push_back(completion);
    }
}

/// The requests of a disk that take several steps, and the requests that wait for them.
#[derive(Debug)]
pub(super) struct Steps {
    sector_bytes: u32,
    /// True if the device discards sectors in place of a write of zeroes, if that is allowed.
    punches: bool,
    /// Place of a flush of all members.
    flush_at: Lba,
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
    pub fn new(sector_bytes: u32, punches: bool, flush_at: Lba, pool: Pool) -> Steps {
        Steps {
            sector_bytes,
            punches,
            flush_at,
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
        match self.is_idle() && !self.takes_steps(&submission) {
            true => Some(submission),
            false => self.admit_late(submission),
        }
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

    /// Returns the next step.
    pub fn next_step(&mut self) -> Option<Submission> {
        let place = self
            .ready
            .iter()
            .position(|ready| self.is_step(&ready.to))?;
        self.ready.remove(place)
    }

    /// Returns true if a request that goes to the engine is a step.
    pub fn is_step(&self, to: &Arc<dyn Completer>) -> bool {
        Arc::as_ptr(to).cast::<()>() == Arc::as_ptr(&self.ends).cast::<()>()
    }

    /// Returns false while a long request has to wait for another one of its client. Steps of several at a time would
    /// move the head to and fro.
    pub fn may_begin(&self, submission: &Submission) -> bool {
        let is_like = |job: &Job| job.asked.origin == submission.origin && self.is_long(&job.asked);
        self.running == 0 || !self.is_long(submission) || !self.jobs.iter().flatten().any(is_like)
    }

    /// Notes that a request was refused. Returns true if this is the first refusal of a client's request.
    pub fn refuses(&mut self, to: &Arc<dyn Completer>, cookie: u64) -> bool {
        let job = self.job_of(to, cookie);
        job.is_none_or(|job| !std::mem::replace(&mut job.is_refused, true))
    }

    /// Notes that a request has gone to the engine. Returns true if a client's request counts as unfinished from now on.
    pub fn counts(&mut self, to: &Arc<dyn Completer>, cookie: u64) -> bool {
        let job = self.job_of(to, cookie);
        job.is_none_or(|job| !std::mem::replace(&mut job.is_counted, true))
    }

    /// Notes the times of a step that has ended. Returns false if the request is no step.
    #[inline]
    pub fn note_times(
        &mut self,
        to: &Arc<dyn Completer>,
        cookie: u64,
        issued: Time,
        ended: Time,
    ) -> bool {
        if !self.is_step(to) {
            return false;
        }
        if let Some(job) = self.job_of(to, cookie) {
            let (first, last) = job.times.unwrap_or((issued, ended));
            job.times = Some((first.min(issued), last.max(ended)));
        }
        true
    }

    /// Continues the jobs whose steps have ended. Returns a request that is over, if there is one.
    pub fn ended(&mut self) -> Option<EndedJob> {
        loop {
            let end = lock(&self.ends.0).pop_front()?;
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
        let mut ready = std::mem::take(&mut self.ready);
        let mut ends =
            |ready: &Submission| !self.continues(&ready.to, ready.cookie) && is_over(ready);
        take_out(&mut ready, &mut ends, out);
        self.ready = ready;
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

    /// Returns true if a request that goes to the engine is a step of a request that has started.
    pub fn continues(&self, to: &Arc<dyn Completer>, cookie: u64) -> bool {
        let job = || self.jobs.get(place(cookie))?.as_ref();
        self.is_step(to) && job().is_some_and(|job| job.has_started)
    }

    /// Notes that the device was given a request.
    pub fn started(&mut self, to: &Arc<dyn Completer>, cookie: u64) {
        if let Some(job) = self.job_of(to, cookie) {
            job.has_started = true;
        }
    }

    /// Returns the job of a step.
    fn job_of(&mut self, to: &Arc<dyn Completer>, cookie: u64) -> Option<&mut Job> {
        let is_step = self.is_step(to);
        let jobs = is_step.then_some(&mut self.jobs)?;
        jobs.get_mut(place(cookie))?.as_mut()
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
        submission.cut != Cut::NONE || self.is_long(submission)
    }

    /// Returns true if a request is longer than a step.
    fn is_long(&self, submission: &Submission) -> bool {
        let is_short = submission.extent.len.bytes(self.sector_bytes) <= STEP_BYTES_MAX;
        !is_short && submission.extent.len > self.longest(submission)
    }

    /// Returns the length of the longest step of a request.
    fn longest(&self, submission: &Submission) -> Sectors {
        let bytes = match submission.data {
            Data::Zeroes { may_punch: true } if self.punches => PUNCH_BYTES_MAX,
            _ if submission.op == Op::Discard => return submission.extent.len,
            _ => STEP_BYTES_MAX,
        };
        Sectors::new(bytes / u64::from(self.sector_bytes))
    }

    /// Returns true if a request conflicts with claimed sectors, or with one of the first `before` waiting requests.
    fn has_to_wait(&self, number: u64, submission: &Submission, before: usize) -> bool {
        let is_flush = submission.op == Op::Flush;
        let conflicts = |other: u64, asked: &Submission| match is_flush {
            true => other < number && asked.op.changes(),
            false => {
                (asked.op.changes() || submission.op.changes())
                    && asked.extent.overlaps(submission.extent)
            }
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

    /// Makes a request ready for the engine; of a request that takes several steps, the first ones.
    fn go(&mut self, number: u64, mut asked: Submission) {
        if !self.takes_steps(&asked) {
            self.ready.push_back(asked);
            return;
        }
        let flushes = asked.flags.has(Flags::FUA) && self.is_long(&asked);
        if flushes {
            let other = asked.flags.bits() & !Flags::FUA.bits();
            asked.flags = Flags::from_bits(other).unwrap_or(Flags::NONE);
        }
        let job = Job {
            number,
            flushes,
            longest: self.longest(&asked),
            next: asked.extent.start,
            asked,
            back: Vec::new(),
            reads: None,
            steps: 0,
            in_flight: 0,
            has_started: false,
            is_counted: false,
            is_refused: false,
            times: None,
            failure: None,
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
    fn go_on(&mut self, end: Completion) -> Option<EndedJob> {
        let (place, number) = (place(end.cookie), end.cookie >> 32);
        let job = self.jobs[place].as_mut()?;
        job.in_flight -= 1;
        job.has_started |= end.result.is_ok();
        let failures = [job.failure.take(), end.result.err()];
        let place_of = |failure: &Failure| failure.at.unwrap_or(Lba::new(u64::MAX));
        job.failure = failures.into_iter().flatten().min_by_key(place_of);
        let read = job.reads.take_if(|(step, _)| *step == number);
        let old = match (read, end.data.into_buffer()) {
            (Some((_, lba)), Some(old)) => Some((lba, old)),
            (None, Some(data)) if matches!(job.asked.data, Data::Buffer(_)) => {
                job.back.push((number, data));
                None
            }
            _ => None,
        };
        self.step(place, old);
        let job = self.jobs[place].take_if(|job| job.in_flight == 0)?;
        self.running -= 1;
        self.release();
        let result = job.failure.map_or(Ok(()), Err);
        let (asked, start) = (&job.asked, job.asked.extent.start);
        // If the client has gone, some steps are missing.
        let extent = Extent::new(start, job.next - start);
        let request = Request {
            origin: asked.origin,
            class: asked.class,
            ..Request::new((), asked.op, extent, asked.arrived)
        };
        let (is_counted, is_refused, times) = (job.is_counted, job.is_refused, job.times);
        let (cookie, data, to) = job.end(self.sector_bytes);
        Some(EndedJob {
            request,
            is_counted,
            is_refused,
            times,
            to,
            completion: Completion {
                cookie,
                result,
                data,
            },
        })
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

    /// Makes the next steps of a job ready. A job that has failed, or whose client has gone, gets no further ones. `old` has the sector
    /// that the last step has read, with its data.
    fn step(&mut self, place: usize, mut old: Option<(Lba, Buffer)>) {
        let Some(job) = &mut self.jobs[place] else {
            return;
        };
        while job.failure.is_none()
            && (job.steps == 0 || !job.asked.to.is_gone())
            && job.in_flight < IN_FLIGHT_MAX
            && job.reads.is_none()
            && let Some((op, extent, data)) = job
                .step(old.take(), &self.pool, self.sector_bytes)
                .or_else(|| job.flush(self.flush_at))
        {
            self.ready.push_back(Submission {
                cookie: job.steps << 32 | place as u64,
                op,
                extent,
                cut: Cut::NONE,
                flags: match op {
                    Op::Read if job.asked.op != Op::Read => Flags::NONE,
                    _ => job.asked.flags,
                },
                origin: job.asked.origin,
                class: job.asked.class,
                arrived: job.asked.arrived,
                data,
                to: Arc::clone(&self.ends) as _,
            });
            job.steps += 1;
            job.in_flight += 1;
        }
    }
}

/// Returns the place of the job that a step belongs to.
fn place(cookie: u64) -> usize {
    cookie as u32 as usize
}

impl Job {
    /// Returns cookie, data and receiver of the request, without data if the device keeps some.
    fn end(mut self, sector_bytes: u32) -> (u64, Data, Arc<dyn Completer>) {
        let Submission {
            cookie,
            extent,
            data,
            to,
            ..
        } = self.asked;
        let Data::Buffer(rest) = data else {
            return (cookie, data, to);
        };
        self.back.sort_unstable_by_key(|(number, _)| *number);
        let back = self.back.into_iter().map(|(_, data)| data);
        let all = back.chain([rest]).reduce(|mut all, next| {
            all.join(next);
            all
        });
        let is_all = |all: &Buffer| all.len() as u64 == extent.len.bytes(sector_bytes);
        let data = all.filter(is_all).map(Buffer::into_whole);
        let data = data.map_or(Data::None, Data::Buffer);
        (cookie, data, to)
    }

    /// Returns the flush that ends a long forced write.
    fn flush(&mut self, at: Lba) -> Option<(Op, Extent, Data)> {
        let is_due = self.in_flight == 0 && std::mem::take(&mut self.flushes);
        is_due.then(|| (Op::Flush, Extent::new(at, Sectors::ZERO), Data::None))
    }

    /// Returns the next step, if there is one.
    fn step(
        &mut self,
        read: Option<(Lba, Buffer)>,
        pool: &Pool,
        sector_bytes: u32,
    ) -> Option<(Op, Extent, Data)> {
        let (extent, Cut { head, tail }) = (self.asked.extent, self.asked.cut);
        let (head, tail, sector) = (head as usize, tail as usize, sector_bytes as usize);
        let last = Lba::new(extent.end().get() - 1);
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
            if self.next == extent.start
                && let Some(lba) = unread
            {
                return Some(self.read(lba, pool, sector));
            }
            let at = self.next;
            let len = self.longest.min(extent.end() - at);
            if len == Sectors::ZERO {
                return None;
            }
            self.next = at + len;
            let data = Data::Buffer(buffer.split_to(len.bytes(sector_bytes) as usize));
            return Some((self.asked.op, Extent::new(at, len), data));
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
        let len = self.longest.min(end - at);
        let data = match self.asked.data {
            Data::Zeroes { may_punch } => Data::Zeroes { may_punch },
            _ => Data::None,
        };
        self.next = at + len;
        Some((self.asked.op, Extent::new(at, len), data))
    }

    fn read(&mut self, lba: Lba, pool: &Pool, sector: usize) -> (Op, Extent, Data) {
        self.reads = Some((self.steps, lba));
        let data = Data::Buffer(pool.take(sector));
        (Op::Read, Extent::new(lba, Sectors::new(1)), data)
    }
}
