//! The devices and clients of a disk, as the world of the engine's loop.

mod expiry;
mod incoming;
mod world;

use super::super::cause::Cause;
use super::super::shared::Shared;
use super::admission::Admission;
use super::latch::{Latch, Mark};
use super::steps::Steps;
use super::unflushed::{Changes, Unflushed};
use crate::device::{Device, Parts};
use crate::estimate::HeadTimeEstimate;
use crate::goals::feed::Feed;
use crate::metrics::{Metrics, op_name};
use crate::request::{Completer, Completion, Data, Failure, Kind, Submission, is_durable};
use headtime_engine::shares::ShareOf;
use headtime_engine::{DelayCounts, Done, DriveTag, Finished, Member, Outcome, RequestId};
use headtime_linux::clock::Clock;
use headtime_sched::{Op, Origin, Request};
use headtime_units::{Lba, Nanos, Sectors, Time};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A request that is not finished.
///
/// Invariants:
///
/// - `stage = Expired` ⇒ `!is_noted` and `cookie ≠ LAST_FLUSH`.
/// - The disk has one device ⇒ `failed_on.is_none()`.
/// - The disk has several devices and `failure.is_some()` ⇒ `failed_on.is_some()`.
/// - `share.is_some()` ⇒ the disk has an [`Admission`].
pub(super) struct Pending {
    op: Op,
    start: Lba,
    origin: Origin,
    /// Time at which the front end received the request.
    arrived: Time,
    stage: RequestStage,
    pub cookie: u64,
    pub to: Arc<dyn Completer>,
    /// Data of the request; `None` while the device or a whole [`MemberPiece`] holds them.
    pub data: Option<Data>,
    /// Failure of the last attempt, if the attempt failed.
    failure: Option<Failure>,
    /// Member on which the attempt failed, in a volume of several members.
    failed_on: Option<Member>,
    /// Failures counted when the request arrived.
    mark: Mark,
    /// True if the feed was notified of the request and has to be notified of its end.
    is_noted: bool,
    /// Share that the request counts for.
    share: Option<ShareOf>,
    /// Changes when the request arrived.
    changes: Changes,
}

/// Stage of a request between its arrival and the end of its last command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestStage {
    /// No device has been given any part of the request.
    Waits,
    Begun,
    /// The request was answered since it had waited for too long. The request ends without a command when its turn comes.
    Expired,
}

/// Part of a request on one member of a volume of several members.
struct MemberPiece {
    member: Member,
    /// Index of the request in `pending`.
    of: usize,
    /// Byte at which the piece begins in the request's buffer.
    offset: usize,
    /// True if the piece covers the whole request and uses the request's buffer instead of a copy.
    is_whole: bool,
    /// Data of the request; `None` while the device holds them.
    data: Option<Data>,
    /// Failure of the last attempt, if the attempt failed.
    failure: Option<Failure>,
}

/// Request of a member's background job.
struct Errand {
    /// Identifier that the job gave the request.
    id: u64,
    /// Data of the request; `None` while the device holds them.
    data: Option<Data>,
    /// Failure of the last attempt, if the attempt failed.
    failure: Option<Failure>,
    /// Failures counted when the request arrived.
    mark: Mark,
}

/// Device of a member, with the state of the device's commands.
pub(super) struct Station {
    pub device: Box<dyn Device>,
    /// True if the device lives in model time. The device then names the times of its events, and the thread handles
    /// each event at the named time.
    pub in_model_time: bool,
    /// Sectors of the device.
    capacity: Sectors,
    pub estimate: Option<Box<HeadTimeEstimate>>,
    /// Last command that the device was given under each tag.
    given: Vec<Option<Request<DriveTag>>>,
    /// Counts of how often commands are overtaken in the device.
    delays: DelayCounts,
    /// Unfinished requests of the background job, in no order and few at a time.
    errands: Vec<Errand>,
    /// Commands that were given up on.
    pub timeouts: u64,
    /// Commands that failed.
    pub errors: u64,
    /// True if the file under the device was moved or cannot be examined, and a warning about this was logged.
    astray: bool,
}

impl Station {
    pub fn new(device: Box<dyn Device>, estimate: Option<Box<HeadTimeEstimate>>) -> Station {
        Station {
            in_model_time: device.in_model_time(),
            capacity: device.geometry().capacity,
            device,
            estimate,
            given: Vec::new(),
            delays: DelayCounts::default(),
            errands: Vec::new(),
            timeouts: 0,
            errors: 0,
            astray: false,
        }
    }
}

/// State of a disk's thread, apart from its engine.
///
/// Invariants, until a bug ends the thread:
///
/// - `free` has the indices of the empty places of `pending`: `free.len() + pending.iter().flatten().count() = pending.len()`.
/// - `pending.len() - free.len() ≤ unfinished_max`.
/// - `stations.len() = 1` ⇒ `pieces` is empty.
/// - `next_share.is_some()` ⇒ `next.is_some()` and `admission.is_some()`.
/// - `queue_timeout.is_some()` ⇒ `admission.is_some()`; `queue_timeout.is_none()` ⇒ `expires = NEVER`.
/// - `completions = 0` ⇔ `to_wake` is empty.
/// - `last_flush.is_some()` ⇒ `stopping`.
pub(super) struct Live {
    pub shared: Arc<Shared>,
    pub clock: Clock,
    /// Devices, by member.
    pub stations: Vec<Station>,
    /// Unfinished requests, by the engine's identifier; in a volume of several members, by the volume's identifier.
    pub pending: Vec<Option<Pending>>,
    /// Unfinished parts of requests, by the engine's identifier. Empty unless the volume has several members.
    pieces: Vec<Option<MemberPiece>>,
    free: Vec<u32>,
    unfinished_max: usize,
    /// Commands that failed before they reached the device.
    unissued: VecDeque<(Member, DriveTag, Parts, Failure)>,
    /// Empty vectors to be reused.
    spare_parts: Vec<Parts>,
    /// Request that was taken from the queue and has not arrived at the engine yet.
    pub next: Option<Submission>,
    /// Share that `next` counts for.
    next_share: Option<ShareOf>,
    /// Requests that wait for their client's turn. `None` if requests go to the engine as they come.
    pub admission: Option<Box<Admission>>,
    /// Age at which a request that no device has been given fails.
    queue_timeout: Option<Nanos>,
    /// Time at which to look for such requests. A request that comes moves the time forward if none waits.
    expires: Time,
    pub steps: Steps,
    pub metrics: Metrics,
    pub latch: Latch,
    unflushed: Unflushed,
    /// Feed that is notified of requests, except for real-time requests.
    feed: Option<Feed>,
    /// Front ends to wake at the end of the round.
    pub to_wake: Vec<Arc<dyn Completer>>,
    /// Completions since front ends were last woken.
    pub completions: u32,
    pub stopping: bool,
    /// Result of the flush that ends the disk; `None` while that flush is not over.
    pub last_flush: Option<Result<(), Failure>>,
}

impl Live {
    pub fn new(
        shared: Arc<Shared>,
        stations: Vec<Station>,
        unfinished_max: usize,
        feed: Option<Feed>,
    ) -> Live {
        let steps = Steps::new(
            shared.geometry.sector_bytes,
            shared.discards_to_zeroes,
            shared.flush_at(),
            shared.pool.clone(),
        );
        let depth = shared.config.depth * stations.len() as u32;
        let waits = !shared.shares.is_empty() || !shared.rates.is_empty();
        let admission = || Box::new(Admission::new(&shared.shares, &shared.rates, depth));
        let admission = waits.then(admission);
        let mut metrics = Metrics::new(usize::from(shared.exports));
        for (export, rate) in metrics.exports.iter_mut().zip(&shared.rates) {
            export.rate = *rate;
        }
        Live {
            clock: shared.clock,
            metrics,
            shared,
            stations,
            pending: Vec::new(),
            pieces: Vec::new(),
            free: Vec::new(),
            unfinished_max: unfinished_max.max(1),
            unissued: VecDeque::new(),
            spare_parts: Vec::new(),
            next: None,
            next_share: None,
            admission,
            queue_timeout: None,
            expires: Time::NEVER,
            steps,
            latch: Latch::default(),
            unflushed: Unflushed::default(),
            feed,
            to_wake: Vec::new(),
            completions: 0,
            stopping: false,
            last_flush: None,
        }
    }

    /// Returns a command that a device in real time has completed.
    pub fn poll_real_time(&mut self, now: Time) -> Option<Done> {
        if !self.unissued.is_empty() {
            return None;
        }
        for index in 0..self.stations.len() {
            if !self.stations[index].in_model_time
                && let Some(done) = self.poll(now, index)
            {
                return Some(done);
            }
        }
        None
    }

    #[inline(always)]
    fn poll(&mut self, now: Time, index: usize) -> Option<Done> {
        let station = &mut self.stations[index];
        let mut done = station.device.poll(now)?;
        let real = self.clock.now();
        match station.in_model_time {
            true => self.metrics.delivered(real.saturating_since(done.at)),
            // `now` may be an old reading of the clock.
            false => done.at = real.max(now),
        }
        let member = Member(index as u16);
        if let Err(failure) = &done.result {
            self.broken_promise(member, done.tag, failure);
        }
        self.left(member, done.tag);
        Some(self.back(member, done.tag, done.at, done.result, done.parts))
    }

    /// Counts how many other commands overtook a command that has left the device.
    #[inline]
    fn left(&mut self, member: Member, tag: DriveTag) {
        let station = &mut self.stations[member.index()];
        let overtaken = station.delays.completed(tag);
        if let Some(given) = &station.given[tag.index()]
            && given.op != Op::Flush
        {
            self.unflushed.note(given.op);
            self.metrics.overtaken(given.class, overtaken);
        }
    }

    /// Takes a command with its data back from the device.
    #[inline(always)]
    fn back(
        &mut self,
        member: Member,
        tag: DriveTag,
        at: Time,
        result: Result<(), Failure>,
        mut parts: Parts,
    ) -> Done {
        if let Some(estimate) = &mut self.stations[member.index()].estimate {
            estimate.completed(at, tag);
        }
        self.keep(member, &mut parts, result.err());
        self.spare_parts.push(parts);
        let has_failed = result.is_err_and(|failure| failure.kind != Kind::NotBegun);
        self.stations[member.index()].errors += u64::from(has_failed);
        Done {
            member,
            tag,
            at,
            outcome: match &result {
                Ok(()) => Outcome::Done,
                Err(failure) => failure.outcome(),
            },
        }
    }

    /// Gives the data of a command's parts back to their requests, with the failure if there was one.
    #[inline(always)]
    fn keep(&mut self, member: Member, parts: &mut Parts, failure: Option<Failure>) {
        for part in parts.drain(..) {
            if let Some((data, failed)) = self.held(member, part.id) {
                *data = Some(part.data);
                *failed = failure;
            }
        }
    }

    /// Returns a request's places for its data and for its failure.
    #[inline(always)]
    fn held(
        &mut self,
        member: Member,
        id: RequestId,
    ) -> Option<(&mut Option<Data>, &mut Option<Failure>)> {
        match id {
            RequestId::Background(id) => {
                let errands = &mut self.stations[member.index()].errands;
                let errand = errands.iter_mut().find(|errand| errand.id == id)?;
                Some((&mut errand.data, &mut errand.failure))
            }
            RequestId::Client(place) if self.stations.len() == 1 => {
                let pending = self.pending.get_mut(place as usize)?.as_mut()?;
                Some((&mut pending.data, &mut pending.failure))
            }
            RequestId::Client(place) => {
                let piece = self.pieces.get_mut(place as usize)?.as_mut()?;
                Some((&mut piece.data, &mut piece.failure))
            }
        }
    }

    /// Returns the index of the unfinished client's request that a command carries.
    #[inline(always)]
    fn request_of(&self, id: RequestId) -> Option<usize> {
        match id {
            RequestId::Background(_) => None,
            RequestId::Client(place) if self.stations.len() == 1 => Some(place as usize),
            RequestId::Client(place) => Some(self.pieces.get(place as usize)?.as_ref()?.of),
        }
    }

    /// Returns the stage of the client's request that a command carries.
    #[inline(always)]
    fn stage(&mut self, id: RequestId) -> Option<&mut RequestStage> {
        let place = self.request_of(id)?;
        let pending = self.pending.get_mut(place)?;
        Some(&mut pending.as_mut()?.stage)
    }

    /// Returns true if the disk takes no new writes.
    fn takes_no_writes(&self) -> bool {
        self.shared.geometry.read_only || self.shared.failed.load(Ordering::Relaxed)
    }

    /// Returns the reason why a request that arrived before a failure may no longer go to the device.
    fn refused_late(&self, request: &Request<DriveTag>) -> Option<Kind> {
        self.latch.cause()?;
        let lost = self.latch.has_lost();
        match request.op {
            Op::Read => None,
            Op::Flush => lost.then_some(Kind::Lost),
            // A command that was given up on may still be executed, and overwrite this write.
            Op::Write | Op::Discard => (lost || self.abandoned() > 0).then_some(Kind::ReadOnly),
        }
    }

    /// Decides whether a client may be told that the device has done its request.
    fn confirmed(&mut self, request: &Request<()>, mark: Mark) -> Result<(), Failure> {
        let durable = is_durable(request.op, request.flags);
        if durable {
            // Success promises that all data are on the medium, so the files are checked first.
            self.check_backing();
        }
        if request.op != Op::Read && self.latch.lost_since(mark) {
            return Err(Failure::new(Kind::Lost));
        }
        // The device got this request after it had reported the loss. It reports a loss only once, so its success here
        // proves nothing.
        match durable && self.latch.flush_failed_since(mark) {
            true => Err(Failure::new(Kind::Device)),
            false => Ok(()),
        }
    }

    /// Latches the failure of a command that was to be durable. A kernel reports only once that it could not write data
    /// back. If the command consists of several requests, the engine tries each again alone. Those attempts may succeed
    /// although data are lost.
    fn broken_promise(&mut self, member: Member, tag: DriveTag, failure: &Failure) {
        let given = self.stations[member.index()].given[tag.index()];
        let Some(request) = given.filter(|given| is_durable(given.op, given.flags)) else {
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

    /// Returns the result that the client gets.
    fn result(
        &mut self,
        done: &Finished,
        mark: Mark,
        failure: Option<Failure>,
        member: Option<Member>,
    ) -> Result<(), Failure> {
        if done.outcome == Outcome::Done {
            // If the request is not confirmed, the reason is an earlier failure, which has been logged.
            return self.confirmed(&done.request, mark);
        }
        let failure = failure.unwrap_or(Failure::new(Kind::Device));
        self.failed(&done.request, &failure, member);
        Err(failure)
    }

    /// Logs the failure of a request. Latches the failure of a write or a flush, because the state of the medium is
    /// then unknown. Also latches a discard that was given up on.
    fn failed(&mut self, request: &Request<()>, failure: &Failure, member: Option<Member>) {
        tracing::warn!(
            disk = self.shared.name,
            member = member.and_then(|member| self.number(member)),
            op = op_name(request.op),
            sectors = %request.extent,
            "{failure}"
        );
        let (extent, failure) = (request.extent, *failure);
        match request.op {
            // The request was refused because of an earlier failure. Nothing new has happened.
            _ if matches!(failure.kind, Kind::ReadOnly | Kind::Lost) => {}
            Op::Read => {}
            Op::Write => self.latch(Cause::Write {
                extent,
                failure,
                durable: is_durable(request.op, request.flags),
            }),
            Op::Flush => self.latch(Cause::Flush { failure }),
            // A discard is only advice. If the device refuses a discard, nothing has changed.
            Op::Discard if failure.kind == Kind::TimedOut => {
                self.latch(Cause::Discard { extent });
            }
            Op::Discard => {}
        }
        if matches!(failure.kind, Kind::Device | Kind::Medium) {
            // A truncated file causes the same failures as a bad device.
            self.check_backing();
        }
    }

    /// Stops taking writes, because of `cause`.
    pub fn latch(&mut self, cause: Cause) {
        let text = cause.to_string();
        if self.latch.set(cause) {
            tracing::error!(
                disk = self.shared.name,
                "takes no more writes until the failure is cleared: {text}"
            );
        }
        self.shared.failed.store(true, Ordering::SeqCst);
    }

    /// Checks that the file under each device is still the same file and as long as before. If another program has
    /// replaced or truncated the file, acknowledged writes are lost, even if the device reports success.
    pub fn check_backing(&mut self) {
        if self.shared.given_up.load(Ordering::SeqCst) {
            // The server itself has removed the files.
            return;
        }
        for index in 0..self.stations.len() {
            let station = &mut self.stations[index];
            match station.device.check_backing() {
                Ok(()) => station.astray = false,
                Err(lost) if lost.is_loss() => {
                    if !self.latch.has_lost() {
                        self.latch(Cause::Backing(lost));
                    }
                }
                Err(moved) => {
                    if !std::mem::replace(&mut station.astray, true) {
                        tracing::warn!(disk = self.shared.name, "{moved}");
                    }
                }
            }
        }
    }

    /// Returns the number of a member, for messages; `None` if there is only one member.
    fn number(&self, member: Member) -> Option<u16> {
        (self.stations.len() > 1).then_some(member.0)
    }

    /// Commands given up on whose data the devices still hold.
    pub fn abandoned(&self) -> usize {
        let devices = self.stations.iter().map(|station| &station.device);
        devices.map(|device| device.abandoned()).sum()
    }

    /// Answers a request of a front end.
    fn answer(
        &mut self,
        to: &Arc<dyn Completer>,
        cookie: u64,
        result: Result<(), Failure>,
        data: Data,
    ) {
        self.reply(
            to,
            Completion {
                cookie,
                result,
                data,
            },
        );
    }

    fn reply(&mut self, to: &Arc<dyn Completer>, completion: Completion) {
        to.complete(completion);
        self.completions += 1;
        if !self.to_wake.iter().any(|other| Arc::ptr_eq(other, to)) {
            self.to_wake.push(Arc::clone(to));
        }
    }

    /// Hands the collected commands to the devices, and wakes the front ends.
    pub fn kick(&mut self) {
        for station in &mut self.stations {
            station.device.kick();
        }
        self.wake_front_ends();
    }

    pub fn wake_front_ends(&mut self) {
        self.completions = 0;
        for to in self.to_wake.drain(..) {
            to.wake();
        }
    }
}

/// Cookie of the flush that ends a disk. Front ends number their requests from 0.
pub(super) const LAST_FLUSH: u64 = u64::MAX;
