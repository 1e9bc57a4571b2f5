//! The thread of a disk: the loop of the live world.
//!
//! It is the simulator's: whatever is due next is handled at the time at which it was due. For a
//! device in model time that is what keeps lateness from adding up, as the next command starts when
//! the one before ended and not when this thread noticed.

mod bug;
mod latch;
mod orders;
mod start;
mod timeouts;

use super::log::Log;
use super::{Cause, Options, Shared, StartError};
use crate::device::{Device, Part, Parts};
use crate::estimate::HeadTimeEstimate;
use crate::metrics::Metrics;
use crate::request::{Completer, Completion, Data, Failure, Kind, Submission};
use headtime_engine::{
    Arrival, Command, DriveTag, Engine, Event, Finished, Outcome, RequestId, log,
};
use headtime_linux::clock::{Clock, timespec};
use headtime_sched::{Class, Flags, Op, Origin, Request, WaitStats};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use latch::{Latch, Mark};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use timeouts::Deadline;

/// How long before a precise wake the thread stops sleeping and spins, with and without being ahead
/// of ordinary threads: a sleeper that has to compete is woken later.
const SPIN_REAL_TIME: Nanos = Nanos::from_micros(150);
const SPIN: Nanos = Nanos::from_micros(300);

/// Completions of one round after which whoever gets them is woken, so that the first need not wait
/// for the last.
const ROUND: u32 = 32;

/// After so many events it is looked for orders, though there may be more events.
const ORDERS_EVERY: u32 = 1024;

/// The log reaches its file at least so often, if anything happens.
const LOG_EVERY: Nanos = Nanos::from_secs(1);

/// A request that is not finished.
struct Pending {
    cookie: u64,
    to: Arc<dyn Completer>,
    /// Here unless the device has them.
    data: Option<Data>,
    /// Why it failed, the last time it was tried.
    failure: Option<Failure>,
    /// What had failed when it came.
    mark: Mark,
}

pub(super) fn main<E>(
    options: Options,
    open: impl FnOnce() -> Result<Box<dyn Device>, E>,
    doorbell: OwnedFd,
    started: &Sender<Result<Arc<Shared>, StartError>>,
) -> io::Result<()>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Thread::start(options, open, doorbell) {
        Ok(mut thread) => {
            let shared = Arc::clone(&thread.shared);
            // Whoever started it waits for it.
            let _ = started.send(Ok(Arc::clone(&shared)));
            let _closing = Closing(shared);
            thread.run_to_the_end()
        }
        Err(error) => {
            let _ = started.send(Err(error));
            Ok(())
        }
    }
}

/// Sees to it that nobody waits for a thread that has ended, however it did.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Thread {
    shared: Arc<Shared>,
    clock: Clock,
    engine: Engine,
    scheduler: String,
    device: Box<dyn Device>,
    timeout: Option<Nanos>,
    /// Commands in the device by when to give up on them; one that is done stays until those before
    /// it are.
    deadlines: VecDeque<Deadline>,
    /// By tag: which command has it, and whether that is in the device.
    commands: Vec<(u64, bool)>,
    /// By tag: the command that the device was given last.
    given: Vec<Option<Request<DriveTag>>>,
    issued: u64,
    /// By the engine's name for it.
    pending: Vec<Option<Pending>>,
    free: Vec<u32>,
    unfinished_max: usize,
    /// Commands that failed before they reached the device.
    unissued: VecDeque<(DriveTag, Parts, Failure)>,
    /// To be used again.
    spare_parts: Vec<Parts>,
    /// A request that has been taken and is not due yet.
    next: Option<Submission>,
    /// Time of the last event.
    now: Time,
    metrics: Metrics,
    estimate: Option<Box<HeadTimeEstimate>>,
    /// Those of schedulers that were swapped out.
    waits_before: WaitStats,
    log: Option<Log>,
    log_flushed: Time,
    /// Whom to wake at the end of the round.
    to_wake: Vec<Arc<dyn Completer>>,
    completed: u32,
    steps: u32,
    spin: Nanos,
    stopping: bool,
    latch: Latch,
    /// The file under the device has another name, or cannot be looked at; that has been said.
    astray: bool,
    /// The last flush, and how it ended.
    last_flush: Option<Result<(), Failure>>,
}

/// Who asks for the flush that ends a disk: no front end.
#[derive(Debug)]
struct Nobody;

impl Completer for Nobody {
    fn complete(&self, _: Completion) {}
}

impl Thread {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let real = self.clock.now();
            self.steps = self.steps.wrapping_add(1);
            // Whoever keeps the thread busy must not keep it from being told to stop.
            let due = !self.steps.is_multiple_of(ORDERS_EVERY) && self.step(real);
            if due {
                if self.completed >= ROUND {
                    self.wake_front_ends();
                }
                continue;
            }
            self.device.kick();
            self.wake_front_ends();
            if self.shared.ordered.swap(false, Ordering::SeqCst) {
                self.obey(real);
                continue;
            }
            if self.step(real) {
                continue;
            }
            if self.stopping && self.engine.is_idle() && self.next.is_none() {
                match self.last_flush {
                    None if self.shared.queue.is_empty() => {
                        self.flush_at_the_end(real);
                        continue;
                    }
                    None => continue,
                    Some(result) => return self.end(result),
                }
            }
            self.rest(real);
        }
    }

    /// Handles the next thing that is due by `real`; whether there was one.
    fn step(&mut self, real: Time) -> bool {
        if let Some((tag, parts, failure)) = self.unissued.pop_front() {
            self.completed(tag, self.now, Err(failure), parts);
            return true;
        }
        if self.next.is_none() && self.has_room() {
            self.next = self.shared.queue.pop();
            if self.next.is_some() && self.shared.was_full.swap(false, Ordering::SeqCst) {
                self.shared.room.notify_waiters();
            }
        }
        // Of things due at the same time the device's come first, as in simulation.
        let arrival = self.next.as_ref().map(|next| next.arrived.max(self.now));
        let wake = self.engine.next_wakeup();
        let deadline = self.deadlines.front().map(|first| first.at);
        let others = [deadline, arrival, wake]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Time::NEVER);
        let device = match self.device.in_model_time() {
            true => self.device.next_event().unwrap_or(Time::NEVER),
            // A device in real time is asked always, and first.
            false => self.now,
        };
        if device <= real && device <= others.max(self.now) {
            let at = match self.device.in_model_time() {
                true => device.max(self.now),
                false => real.max(self.now),
            };
            if let Some(done) = self.device.poll(at) {
                if self.device.in_model_time() {
                    let lateness = self.clock.now().saturating_since(done.at);
                    self.metrics.delivered(lateness);
                }
                if let Err(failure) = &done.result {
                    self.broken_promise(done.tag, failure);
                }
                self.completed(done.tag, done.at.max(self.now), done.result, done.parts);
                return true;
            }
            if self.device.in_model_time() {
                // It was busy with itself, and what it does next may still come before the others.
                // A request that came before this and is seen only now cannot go back behind it.
                self.now = at;
                return true;
            }
        }
        if others > real {
            return false;
        }
        let at = others.max(self.now);
        if deadline.is_some_and(|deadline| deadline <= others) {
            self.give_up(at);
        } else if arrival.is_some_and(|arrival| arrival <= others) {
            if let Some(submission) = self.next.take() {
                self.arrived(at, submission);
            }
        } else {
            self.handle(at, Event::Woke);
            self.commands(at);
        }
        true
    }

    /// Whether another request may come in.
    fn has_room(&self) -> bool {
        self.pending.len() - self.free.len() < self.unfinished_max
    }

    /// Whether there is a request that may come in.
    fn has_next(&self) -> bool {
        !self.shared.queue.is_empty() && self.has_room()
    }

    fn handle(&mut self, at: Time, event: Event) {
        self.now = at;
        if let Some(log) = &mut self.log {
            log::write_event(&mut log.text, at, &event);
        }
        self.engine.handle(at, event);
    }

    fn arrived(&mut self, at: Time, submission: Submission) {
        let Submission {
            cookie,
            op,
            extent,
            flags,
            origin,
            class,
            arrived: _,
            data,
            to,
        } = submission;
        let read_only =
            self.shared.geometry.read_only || self.shared.failed.load(Ordering::Relaxed);
        let refused = match op {
            Op::Write | Op::Discard if read_only => Some(Failure::new(Kind::ReadOnly)),
            Op::Flush => self.latch.flush_failure(),
            _ => None,
        };
        if let Some(failure) = refused {
            self.metrics.exports[usize::from(origin.export)].refused += 1;
            self.reply(
                &to,
                Completion {
                    cookie,
                    result: Err(failure),
                    data,
                },
            );
            return;
        }
        let pending = Pending {
            cookie,
            to,
            data: Some(data),
            failure: None,
            mark: self.latch.mark(),
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.pending[id as usize] = Some(pending);
                id
            }
            None => {
                self.pending.push(Some(pending));
                (self.pending.len() - 1) as u32
            }
        };
        self.metrics.exports[usize::from(origin.export)].unfinished += 1;
        self.handle(
            at,
            Event::Arrived(Arrival {
                id: RequestId::Client(u64::from(id)),
                op,
                extent,
                flags,
                origin,
                class,
            }),
        );
        self.commands(at);
    }

    fn commands(&mut self, at: Time) {
        while let Some(command) = self.engine.poll(at) {
            if let Some(log) = &mut self.log {
                log::write_decision(&mut log.text, at, &(&command).into());
            }
            match command {
                Command::Issue(request) => self.issue(at, &request),
                Command::Finish(done) => self.finish(at, &done),
                Command::Background(_) => unreachable!("nothing runs in the background"),
            }
        }
        let backlog = self.engine.backlog();
        self.device.note_pending(at, backlog);
        if let Some(estimate) = &mut self.estimate {
            estimate.pending(at, backlog);
        }
        if let Some(log) = &mut self.log {
            log.flush_if_full();
        }
    }

    fn issue(&mut self, at: Time, request: &Request<DriveTag>) {
        // A write at the end of a file that was cut short makes it as long as before.
        if request.op == Op::Write
            && request.extent.end() == Lba::ZERO + self.shared.geometry.capacity
        {
            self.check_backing();
        }
        let mut parts = self.spare_parts.pop().unwrap_or_default();
        let mut whole = true;
        for (id, extent) in self.engine.parts(request.tag) {
            let place = place(id);
            let data = self.pending[place]
                .as_mut()
                .and_then(|pending| pending.data.take());
            whole &= data.is_some();
            parts.push(Part {
                id: place as u64,
                extent,
                data: data.unwrap_or_default(),
            });
        }
        // Merging appends.
        parts.sort_unstable_by_key(|part| part.extent.start);
        let index = request.tag.index();
        let refused = if !whole {
            // Part of a merged command that was given up on, tried again alone: the device still
            // has its data.
            Some(Kind::TimedOut)
        } else {
            self.refused_late(request)
        };
        if let Some(kind) = refused {
            self.commands[index] = (0, true);
            let failure = Failure::new(kind);
            self.unissued.push_back((request.tag, parts, failure));
            return;
        }
        self.issued += 1;
        self.commands[index] = (self.issued, true);
        self.given[index] = Some(*request);
        if let Some(timeout) = self.timeout {
            self.deadlines.push_back(Deadline {
                at: at.saturating_add(timeout),
                tag: request.tag,
                serial: self.issued,
                promises: 0,
            });
        }
        if let Some(estimate) = &mut self.estimate {
            estimate.issue(at, request);
        }
        self.device.submit(at, request, parts);
    }

    /// The device is done with a command.
    fn completed(
        &mut self,
        tag: DriveTag,
        at: Time,
        result: Result<(), Failure>,
        mut parts: Parts,
    ) {
        self.commands[tag.index()].1 = false;
        if let Some(estimate) = &mut self.estimate {
            estimate.completed(at, tag);
        }
        for part in parts.drain(..) {
            if let Some(pending) = &mut self.pending[part.id as usize] {
                pending.data = Some(part.data);
                pending.failure = result.err();
            }
        }
        self.spare_parts.push(parts);
        self.end_of_command(tag, at, result);
    }

    fn end_of_command(&mut self, tag: DriveTag, at: Time, result: Result<(), Failure>) {
        let outcome = match &result {
            Ok(()) => Outcome::Done,
            Err(failure) => failure.outcome(),
        };
        self.metrics.errors += u64::from(result.is_err());
        while let Some(first) = self.deadlines.front()
            && self.commands[first.tag.index()] != (first.serial, true)
        {
            // It would stay for the whole of the timeout, and so would millions of others.
            self.deadlines.pop_front();
        }
        self.handle(at, Event::Completed { tag, outcome });
        self.commands(at);
    }

    fn finish(&mut self, at: Time, done: &Finished) {
        let id = done.id as usize;
        let pending = self.pending[id].take().expect("the request is unfinished");
        self.free.push(done.id as u32);
        let result = match done.outcome {
            // If it is not confirmed, an earlier failure is why, which is known.
            Outcome::Done => self.confirmed(&done.request, pending.mark),
            _ => {
                let failure = pending.failure.unwrap_or(Failure::new(Kind::Device));
                self.failed(&done.request, &failure);
                Err(failure)
            }
        };
        self.metrics
            .finished(&done.request, done.issued, at, result.is_ok());
        self.reply(
            &pending.to,
            Completion {
                cookie: pending.cookie,
                result,
                data: pending.data.unwrap_or_default(),
            },
        );
        if self.last_flush.is_none() && self.stopping && pending.cookie == LAST_FLUSH {
            self.last_flush = Some(result);
        }
    }

    /// Why a request that came before a failure may no longer go to the device.
    fn refused_late(&self, request: &Request<DriveTag>) -> Option<Kind> {
        self.latch.cause()?;
        let lost = self.latch.has_lost();
        match request.op {
            Op::Read => None,
            Op::Flush => lost.then_some(Kind::Lost),
            // What was given up on may still be written, over this.
            Op::Write | Op::Discard => {
                (lost || self.device.abandoned() > 0).then_some(Kind::ReadOnly)
            }
        }
    }

    /// A request that the device has done: whether its client may be told so.
    fn confirmed(&mut self, request: &Request<()>, mark: Mark) -> Result<(), Failure> {
        let durable = is_durable(request);
        if durable {
            // Before it promises that everything is there.
            self.check_backing();
        }
        if request.op != Op::Read && self.latch.lost_since(mark) {
            return Err(Failure::new(Kind::Lost));
        }
        // The device was asked after it had told of the loss, and has nothing more to tell.
        match durable && self.latch.flush_failed_since(mark) {
            true => Err(Failure::new(Kind::Device)),
            false => Ok(()),
        }
    }

    /// The device failed a command that was to be durable. A kernel tells once of what it could not
    /// write back; if the command is one of several requests, each is tried again alone, and may
    /// succeed.
    fn broken_promise(&mut self, tag: DriveTag, failure: &Failure) {
        let given = self.given[tag.index()];
        let Some(request) = given.filter(is_durable) else {
            return;
        };
        let (extent, failure) = (request.extent, *failure);
        self.latch(match request.op {
            Op::Flush => Cause::Flush { failure },
            _ => Cause::Write {
                extent,
                failure,
                durable: true,
            },
        });
    }

    /// A request that failed. After a write or a flush, nobody can say what is on the medium.
    fn failed(&mut self, request: &Request<()>, failure: &Failure) {
        tracing::warn!(
            disk = self.shared.name,
            op = ?request.op,
            sectors = %request.extent,
            "{failure}"
        );
        let (extent, failure) = (request.extent, *failure);
        match request.op {
            // Refused because of an earlier failure; nothing new has happened.
            _ if matches!(failure.kind, Kind::ReadOnly | Kind::Lost) => {}
            Op::Read => {}
            Op::Write => self.latch(Cause::Write {
                extent,
                failure,
                durable: is_durable(request),
            }),
            Op::Flush => self.latch(Cause::Flush { failure }),
            // One that the device refuses changes nothing; it is only advice.
            Op::Discard if failure.kind == Kind::TimedOut => {
                self.latch(Cause::Discard { extent });
            }
            Op::Discard => {}
        }
        if matches!(failure.kind, Kind::Device | Kind::Medium) {
            // A file that was cut off fails like a bad device.
            self.check_backing();
        }
    }

    /// Takes no more writes, because of `cause`.
    fn latch(&mut self, cause: Cause) {
        let text = cause.to_string();
        if self.latch.set(cause) {
            tracing::error!(
                disk = self.shared.name,
                "takes no more writes until the failure is cleared: {text}"
            );
        }
        self.shared.failed.store(true, Ordering::SeqCst);
    }

    /// Looks whether the file under the device is still what it was. If not, acknowledged writes are
    /// lost, whatever the device says.
    fn check_backing(&mut self) {
        if self.shared.given_up.load(Ordering::SeqCst) {
            // The server itself has removed it.
            return;
        }
        match self.device.check_backing() {
            Ok(()) => self.astray = false,
            Err(lost) if lost.is_loss() => {
                if !self.latch.has_lost() {
                    self.latch(Cause::Backing(lost));
                }
            }
            Err(moved) => {
                if !std::mem::replace(&mut self.astray, true) {
                    tracing::warn!(disk = self.shared.name, "{moved}");
                }
            }
        }
    }

    fn reply(&mut self, to: &Arc<dyn Completer>, completion: Completion) {
        to.complete(completion);
        self.completed += 1;
        if !self.to_wake.iter().any(|other| Arc::ptr_eq(other, to)) {
            self.to_wake.push(Arc::clone(to));
        }
    }

    fn wake_front_ends(&mut self) {
        self.completed = 0;
        for to in self.to_wake.drain(..) {
            to.wake();
        }
    }

    fn flush_at_the_end(&mut self, real: Time) {
        if self.shared.geometry.read_only {
            self.last_flush = Some(Ok(()));
            return;
        }
        if let Some(failure) = self.latch.flush_failure() {
            self.last_flush = Some(Err(failure));
            return;
        }
        let at = real.max(self.now);
        self.arrived(
            at,
            Submission {
                cookie: LAST_FLUSH,
                op: Op::Flush,
                extent: Extent::new(Lba::ZERO, Sectors::ZERO),
                flags: Flags::NONE,
                origin: Origin::default(),
                class: Class::default(),
                arrived: at,
                data: Data::None,
                to: Arc::new(Nobody),
            },
        );
    }

    fn end(&mut self, flushed: Result<(), Failure>) -> io::Result<()> {
        // Data that are lost matter more than a log that is.
        let log = self.log.take().map_or(Ok(()), Log::finish);
        flushed.map_err(io::Error::other)?;
        log.map_err(|error| io::Error::new(error.kind(), format!("the log: {error}")))
    }

    /// Waits for the next thing.
    fn rest(&mut self, real: Time) {
        let mut log_due = None;
        if let Some(log) = &mut self.log
            && log.has_news()
        {
            let due = self.log_flushed + LOG_EVERY;
            if due <= real {
                log.flush();
                self.log_flushed = real;
            } else {
                log_due = Some(due);
            }
        }
        let precise = self.device.next_event().unwrap_or(Time::NEVER);
        let mut until = precise;
        for at in [
            self.engine.next_wakeup(),
            self.deadlines.front().map(|first| first.at),
            // It may have come after the clock was read, and nobody rings for it again.
            self.next.as_ref().map(|next| next.arrived),
            log_due,
        ] {
            until = until.min(at.unwrap_or(Time::NEVER));
        }
        if until != Time::NEVER && until <= real + self.spin {
            // Near enough to watch the clock, and the queue.
            while self.clock.now() < until && !self.has_next() {
                std::hint::spin_loop();
            }
            return;
        }
        let shared = &*self.shared;
        let mut rings = false;
        shared.asleep.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
        if !self.has_next() && !shared.ordered.load(Ordering::SeqCst) {
            let timeout = (until != Time::NEVER).then(|| timespec(until - real - self.spin));
            let doorbell = PollFd::new(&shared.doorbell, PollFlags::IN);
            // Interrupted or not, what is due is looked for.
            rings = match self.device.ready_fd() {
                Some(device) => {
                    let mut fds = [doorbell, PollFd::from_borrowed_fd(device, PollFlags::IN)];
                    let _ = rustix::event::poll(&mut fds, timeout.as_ref());
                    !fds[0].revents().is_empty()
                }
                None => {
                    let mut fds = [doorbell];
                    let _ = rustix::event::poll(&mut fds, timeout.as_ref());
                    !fds[0].revents().is_empty()
                }
            };
        }
        // Whoever has to ring does so after having said it: the sound may come late, and a doorbell
        // that is not read lets nobody sleep.
        rings |= !shared.asleep.swap(false, Ordering::SeqCst);
        if rings {
            let mut rung = [0; 8];
            let _ = rustix::io::read(&shared.doorbell, &mut rung);
        }
    }
}

/// Where the request is in `pending`.
fn place(id: RequestId) -> usize {
    match id {
        RequestId::Client(place) => place as usize,
        RequestId::Background(_) => unreachable!("nothing runs in the background"),
    }
}

/// Whether the success of a request says that something is on the medium.
fn is_durable<T>(request: &Request<T>) -> bool {
    let durable = Flags::FUA.bits() | Flags::PREFLUSH.bits();
    let writes = request.op == Op::Write && request.flags.bits() & durable != 0;
    request.op == Op::Flush || writes
}

/// The cookie of the flush that ends a disk; front ends number theirs from 0.
const LAST_FLUSH: u64 = u64::MAX;
