//! The devices and clients of a disk, as the world of the engine's loop.

use super::super::cause::Cause;
use super::super::shared::Shared;
use super::admission::Admission;
use super::latch::{Latch, Mark};
use super::steps::Steps;
use crate::device::{Aborted, Device, Part, Parts};
use crate::estimate::HeadTimeEstimate;
use crate::goals::feed::Feed;
use crate::metrics::{Metrics, op_name};
use crate::request::{Completer, Completion, Data, Failure, Kind, Submission};
use headtime_engine::shares::ShareOf;
use headtime_engine::{
    Arrival, Asked, Background, Broken, DelayCounts, Done, DriveTag, Engine, Finished, GaveUp,
    Late, Member, Outcome, Part as MemberPart, RequestId, World, earliest,
};
use headtime_linux::clock::Clock;
use headtime_sched::{Backlog, Class, Flags, Op, Request};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A request that is not finished.
pub(super) struct Pending {
    op: Op,
    start: Lba,
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
    /// Commands that had changed the device when the request arrived.
    changes: u64,
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
    pub steps: Steps,
    pub metrics: Metrics,
    pub latch: Latch,
    /// Commands that have changed a device and came back.
    changes: u64,
    /// `changes` at the arrival of the last flush that succeeded.
    flushed: Option<u64>,
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
        let steps = Steps::new(shared.geometry.sector_bytes, shared.pool.clone());
        Live {
            clock: shared.clock,
            metrics: Metrics::new(usize::from(shared.exports)),
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
            admission: None,
            steps,
            latch: Latch::default(),
            changes: 0,
            flushed: None,
            feed,
            to_wake: Vec::new(),
            completions: 0,
            stopping: false,
            last_flush: None,
        }
    }

    /// With shares of the exports' clients, if there are any.
    pub fn sharing(mut self) -> Live {
        let depth = self.shared.config.depth * self.stations.len() as u32;
        let exports = self.shared.shares.clone();
        self.admission = (!exports.is_empty()).then(|| Box::new(Admission::new(exports, depth)));
        self
    }

    /// Takes the next request from the queue, if there is room for another request.
    pub fn fetch(&mut self, now: Time) {
        if self.next.is_some() || !self.has_room() {
            return;
        }
        if !self.steps.is_idle() {
            while let Some((to, completion)) = self.steps.ended() {
                self.reply(&to, completion);
            }
            self.next = self.steps.next();
        }
        while self.next.is_none()
            && self.steps.has_room()
            && let Some((submission, share)) = self.take(now)
        {
            if submission.to.is_gone() {
                self.give_share_back(share);
                self.refuse(submission, Kind::ShuttingDown);
            } else if self.steps.passes(&submission) {
                (self.next, self.next_share) = (Some(submission), share);
            } else {
                // Requests of several steps are rare, and do not count.
                self.give_share_back(share);
                self.next = self.steps.admit(submission);
            }
        }
    }

    /// Takes a request from the queue, or the next one whose client's turn it is.
    fn take(&mut self, now: Time) -> Option<(Submission, Option<ShareOf>)> {
        let Some(admission) = &mut self.admission else {
            return self.shared.take().map(|submission| (submission, None));
        };
        while admission.has_room_to_wait()
            && let Some(submission) = self.shared.take()
        {
            admission.push(submission);
        }
        admission.pop(now)
    }

    /// Notes that a request that counted for a share does not go to the engine.
    fn give_share_back(&mut self, share: Option<ShareOf>) {
        if let (Some(share), Some(admission)) = (share, &mut self.admission) {
            admission.passed_over(share);
        }
    }

    /// Answers a request that does not go to the engine.
    fn refuse(&mut self, submission: Submission, kind: Kind) {
        let Submission {
            cookie, data, to, ..
        } = submission;
        let result = Err(Failure::new(kind));
        self.reply(
            &to,
            Completion {
                cookie,
                result,
                data,
            },
        );
    }

    /// Returns true if another request may come in.
    fn has_room(&self) -> bool {
        self.pending.len() - self.free.len() < self.unfinished_max
    }

    /// Returns true if a request is ready and may come in.
    pub fn has_next(&self) -> bool {
        let comes = || match &self.admission {
            None => !self.shared.queue.is_empty(),
            Some(admission) => {
                admission.has_next()
                    || admission.has_room_to_wait() && !self.shared.queue.is_empty()
            }
        };
        self.has_room() && (self.steps.has_ready() || self.steps.has_room() && comes())
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
            self.changes += u64::from(given.op.changes());
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
        self.stations[member.index()].errors += u64::from(result.is_err());
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

    /// Notes the result of the flush that ends the disk.
    fn note_last_flush(&mut self, cookie: u64, result: Result<(), Failure>) {
        if self.last_flush.is_none() && self.stopping && cookie == LAST_FLUSH {
            self.last_flush = Some(result);
        }
    }

    /// Returns true if all changes that have come back are on the medium, so that a flush has nothing to do.
    fn is_clean(&mut self) -> bool {
        // A flush of a volume concerns some members alone.
        let covered = self.stations.len() == 1 && self.flushed == Some(self.changes);
        if covered {
            // Success promises that all data are on the medium, so the file is checked.
            self.check_backing();
        }
        covered && self.latch.cause().is_none()
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
        let durable = is_durable(request);
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
                durable: is_durable(request),
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

    fn reply(&mut self, to: &Arc<dyn Completer>, completion: Completion) {
        to.complete(completion);
        self.completions += 1;
        if !self.to_wake.iter().any(|other| Arc::ptr_eq(other, to)) {
            self.to_wake.push(Arc::clone(to));
        }
    }

    pub fn wake_front_ends(&mut self) {
        self.completions = 0;
        for to in self.to_wake.drain(..) {
            to.wake();
        }
    }
}

impl World for Live {
    type Error = Broken;

    fn next_device(&self) -> Time {
        if !self.unissued.is_empty() {
            return Time::ZERO;
        }
        // Devices in real time are left out here. They are polled in every step, before this.
        earliest(&self.stations, |station| {
            let in_model_time = Some(station).filter(|station| station.in_model_time);
            in_model_time?.device.next_event()
        })
    }

    fn completed(&mut self, now: Time) -> Option<Done> {
        if let Some((member, tag, parts, failure)) = self.unissued.pop_front() {
            return Some(self.back(member, tag, now, Err(failure), parts));
        }
        let stations = self.stations.iter().zip(0..);
        let in_model_time = stations.filter(|(station, _)| station.in_model_time);
        let next = in_model_time
            .filter_map(|(station, index)| Some((station.device.next_event()?, index)));
        let (_, index) = next.min()?;
        self.poll(now, index)
    }

    fn next_arrival(&self) -> Option<Time> {
        self.next.as_ref().map(|next| next.arrived)
    }

    fn arrived(&mut self, now: Time) -> Result<Option<Asked>, Broken> {
        let Some(submission) = self.next.take() else {
            return Ok(None);
        };
        let Submission {
            cookie,
            op,
            extent,
            flags,
            origin,
            class,
            cut: _,
            arrived: _,
            data,
            to,
        } = submission;
        let share = self.next_share.take();
        let refused = match op {
            Op::Write | Op::Discard if self.takes_no_writes() => Some(Failure::new(Kind::ReadOnly)),
            Op::Flush => self.latch.flush_failure(),
            _ => None,
        };
        if op == Op::Flush && refused.is_none() && self.is_clean() {
            self.give_share_back(share);
            let result = Ok(());
            self.note_last_flush(cookie, result);
            self.metrics.exports[usize::from(origin.export)].unfinished += 1;
            let request = Request {
                origin,
                class,
                ..Request::new((), op, extent, now)
            };
            self.metrics.finished(&request, now, now, true);
            self.reply(
                &to,
                Completion {
                    cookie,
                    result,
                    data,
                },
            );
            return Ok(None);
        }
        if let Some(failure) = refused {
            self.give_share_back(share);
            self.metrics.exports[usize::from(origin.export)].refused += 1;
            let result = Err(failure);
            self.reply(
                &to,
                Completion {
                    cookie,
                    result,
                    data,
                },
            );
            return Ok(None);
        }
        let sector_bytes = self.shared.geometry.sector_bytes;
        // Real-time requests have no window, so the feed is not notified of them.
        let feed = self.feed.as_mut().filter(|_| class != Class::REAL_TIME);
        let is_noted =
            feed.is_some_and(|feed| feed.asked(now, origin.program, op, extent, sector_bytes));
        let pending = Some(Pending {
            op,
            start: extent.start,
            cookie,
            to,
            data: Some(data),
            failure: None,
            failed_on: None,
            mark: self.latch.mark(),
            is_noted,
            share,
            changes: self.changes,
        });
        let id = match self.free.pop() {
            Some(id) => {
                self.pending[id as usize] = pending;
                id
            }
            None => {
                self.pending.push(pending);
                (self.pending.len() - 1) as u32
            }
        };
        self.metrics.exports[usize::from(origin.export)].unfinished += 1;
        Ok(Some(Asked::Request(Arrival {
            id: RequestId::Client(u64::from(id)),
            op,
            extent,
            flags,
            origin,
            class,
        })))
    }

    fn submit(
        &mut self,
        now: Time,
        member: Member,
        request: &Request<DriveTag>,
        engine: &Engine,
    ) -> bool {
        // A write at the end of a truncated file makes the file as long as before, and so hides the truncation.
        let capacity = self.stations[member.index()].capacity;
        if request.op == Op::Write && request.extent.end() == Lba::ZERO + capacity {
            self.check_backing();
        }
        let mut parts = self.spare_parts.pop().unwrap_or_default();
        let (mut whole, mut for_a_job) = (true, false);
        for (id, extent) in engine.parts(request.tag) {
            let data = self.held(member, id).and_then(|(data, _)| data.take());
            whole &= data.is_some();
            for_a_job |= matches!(id, RequestId::Background(_));
            parts.push(Part {
                id,
                extent,
                data: data.unwrap_or_default(),
            });
        }
        // Merging appends parts, in any order of address.
        parts.sort_unstable_by_key(|part| part.extent.start);
        let refused = match whole {
            // A client's write is refused when it arrives. A job's write can only be refused here.
            true if for_a_job && request.op.changes() && self.takes_no_writes() => {
                Some(Kind::ReadOnly)
            }
            true => self.refused_late(request),
            // This request was part of a merged command that was given up on. The engine tries the request again alone,
            // but the device still holds the data.
            false => Some(Kind::TimedOut),
        };
        if let Some(kind) = refused {
            let failure = Failure::new(kind);
            self.unissued
                .push_back((member, request.tag, parts, failure));
            return false;
        }
        let station = &mut self.stations[member.index()];
        let index = request.tag.index();
        if station.given.len() <= index {
            station.given.resize(index + 1, None);
        }
        station.given[index] = Some(*request);
        station.delays.issued(request.tag);
        if let Some(estimate) = &mut station.estimate {
            estimate.issue(now, request);
        }
        station.device.submit(now, request, parts);
        true
    }

    fn give_up(&mut self, now: Time, late: &Late<'_>) -> GaveUp {
        let failure = Failure::new(Kind::TimedOut);
        match self.stations[late.member.index()]
            .device
            .abort(now, late.tag)
        {
            Aborted::Undone(mut parts) => self.keep(late.member, &mut parts, Some(failure)),
            Aborted::Abandoned => {
                for (id, _) in late.engine.parts(late.tag) {
                    if let Some((_, failed)) = self.held(late.member, id) {
                        *failed = Some(failure);
                    }
                }
            }
            Aborted::No => {
                // The device has kept the command although it promised before to complete it. The warning is logged
                // once. The command stays with the device and ends when the device completes it.
                if late.promises == 1
                    && let Some(timeout) = late.timeout
                {
                    self.stations[late.member.index()].timeouts += 1;
                    tracing::warn!(
                        disk = self.shared.name,
                        member = self.number(late.member),
                        "the device works on a command for longer than twice {timeout}, and does not let go of it"
                    );
                }
                return GaveUp::AskAgain;
            }
        }
        self.left(late.member, late.tag);
        let station = &mut self.stations[late.member.index()];
        station.timeouts += 1;
        station.errors += 1;
        tracing::warn!(
            disk = self.shared.name,
            member = self.number(late.member),
            "the device did not answer within {}; gave up on a command",
            late.timeout.unwrap_or(Nanos::ZERO)
        );
        if let Some(estimate) = &mut self.stations[late.member.index()].estimate {
            estimate.gave_up(now, late.tag);
        }
        GaveUp::Yes
    }

    fn finished(&mut self, now: Time, done: &Finished) -> Result<(), Broken> {
        let id = done.id as usize;
        let pending = self.pending[id].take().expect("the request is unfinished");
        self.free.push(done.id as u32);
        if let (Some(share), Some(admission)) = (pending.share, &mut self.admission) {
            admission.done(share, now);
        }
        let result = self.result(done, pending.mark, pending.failure, pending.failed_on);
        if pending.op == Op::Flush && result.is_ok() {
            self.flushed = self.flushed.max(Some(pending.changes));
        }
        self.metrics
            .finished(&done.request, done.issued, now, result.is_ok());
        if let Some(feed) = self.feed.as_mut().filter(|_| pending.is_noted) {
            let moves = result.is_ok() && matches!(done.request.op, Op::Read | Op::Write);
            let bytes = (done.request.extent.len).bytes(self.shared.geometry.sector_bytes);
            feed.done(
                now,
                done.request.origin.program,
                if moves { bytes } else { 0 },
            );
        }
        self.reply(
            &pending.to,
            Completion {
                cookie: pending.cookie,
                result,
                data: pending.data.unwrap_or_default(),
            },
        );
        self.note_last_flush(pending.cookie, result);
        Ok(())
    }

    fn part(&mut self, member: Member, part: &MemberPart) {
        let of = part.of as usize;
        let Some(pending) = &mut self.pending[of] else {
            return;
        };
        let sector_bytes = self.shared.geometry.sector_bytes;
        let offset = part.offset.bytes(sector_bytes) as usize;
        let bytes = part.extent.len.bytes(sector_bytes) as usize;
        let mut is_whole = false;
        let data = match &pending.data {
            Some(Data::Buffer(buffer)) if bytes == buffer.len() => {
                is_whole = true;
                pending.data.take()
            }
            Some(Data::Buffer(buffer)) if bytes > 0 => {
                let mut copy = self.shared.pool.take(bytes);
                if pending.op == Op::Write {
                    copy.copy_from_slice(&buffer[offset..offset + bytes]);
                }
                Some(Data::Buffer(copy))
            }
            Some(Data::Zeroes { may_punch }) if bytes > 0 => {
                let may_punch = *may_punch;
                Some(Data::Zeroes { may_punch })
            }
            _ => Some(Data::None),
        };
        let place = part.id as usize;
        if self.pieces.len() <= place {
            self.pieces.resize_with(place + 1, || None);
        }
        self.pieces[place] = Some(MemberPiece {
            member,
            of,
            offset,
            is_whole,
            data,
            failure: None,
        });
    }

    fn part_finished(&mut self, _: Time, done: &Finished) {
        // A volume of one member has no pieces.
        let pieces = self.pieces.get_mut(done.id as usize);
        let Some(piece) = pieces.and_then(Option::take) else {
            return;
        };
        let sector_bytes = u64::from(self.shared.geometry.sector_bytes);
        let Some(pending) = &mut self.pending[piece.of] else {
            return;
        };
        if piece.is_whole {
            pending.data = piece.data;
        } else if pending.op == Op::Read
            && done.outcome == Outcome::Done
            && let (Some(Data::Buffer(all)), Some(Data::Buffer(part))) =
                (&mut pending.data, &piece.data)
        {
            all[piece.offset..piece.offset + part.len()].copy_from_slice(part);
        }
        // A command that was given up on may still be executed. This is worse than any other failure.
        let is_worst = |failure: &Failure| failure.kind == Kind::TimedOut;
        if done.outcome != Outcome::Done && !pending.failure.as_ref().is_some_and(is_worst) {
            let failure = piece.failure.map(|failure| Failure {
                at: failure.at.and_then(|at| {
                    let Extent { start, .. } = done.request.extent;
                    let of_piece = (start..done.request.extent.end()).contains(&at);
                    let before = Sectors::new(piece.offset as u64 / sector_bytes);
                    of_piece.then(|| pending.start + before + (at - start))
                }),
                ..failure
            });
            (pending.failure, pending.failed_on) = (failure, Some(piece.member));
        }
    }

    fn joined(&mut self, member: Member, arrival: &Arrival, job: &mut dyn Background) {
        let RequestId::Background(id) = arrival.id else {
            return;
        };
        let station = &mut self.stations[member.index()];
        let (extent, capacity) = (arrival.extent, station.capacity);
        assert!(
            extent.end() <= Lba::ZERO + capacity,
            "b{id}: sectors {extent} of {capacity}"
        );
        let bytes = extent.len.bytes(self.shared.geometry.sector_bytes) as usize;
        let data = match arrival.op {
            Op::Read => Data::Buffer(self.shared.pool.take(bytes)),
            Op::Write => {
                let mut buffer = self.shared.pool.take(bytes);
                job.fill(id, &mut buffer);
                Data::Buffer(buffer)
            }
            Op::Flush | Op::Discard => Data::None,
        };
        station.errands.push(Errand {
            id,
            data: Some(data),
            failure: None,
            mark: self.latch.mark(),
        });
    }

    fn background(&mut self, now: Time, member: Member, done: &Finished, job: &mut dyn Background) {
        let errands = &mut self.stations[member.index()].errands;
        let place = errands.iter().position(|errand| errand.id == done.id);
        let errand = errands.swap_remove(place.expect("it has joined"));
        let result = self.result(done, errand.mark, errand.failure, Some(member));
        let outcome = match result {
            // The engine counts the request as done, but the data were lost afterwards.
            Err(failure) if done.outcome == Outcome::Done => failure.outcome(),
            _ => done.outcome,
        };
        let read = match &errand.data {
            Some(Data::Buffer(buffer))
                if done.request.op == Op::Read && outcome == Outcome::Done =>
            {
                Some(&buffer[..])
            }
            _ => None,
        };
        job.finished(now, &Finished { outcome, ..*done }, read);
    }

    #[inline(always)]
    fn backlog(&mut self, now: Time, member: Member, backlog: Backlog) {
        let station = &mut self.stations[member.index()];
        station.device.note_pending(now, backlog);
        if let Some(estimate) = &mut station.estimate {
            estimate.pending(now, backlog);
        }
    }
}

/// Returns true if the success of a request promises that data are on the medium.
fn is_durable<T>(request: &Request<T>) -> bool {
    let durable = Flags::FUA.bits() | Flags::PREFLUSH.bits();
    let writes = request.op == Op::Write && request.flags.bits() & durable != 0;
    request.op == Op::Flush || writes
}

/// Cookie of the flush that ends a disk. Front ends number their requests from 0.
pub(super) const LAST_FLUSH: u64 = u64::MAX;
