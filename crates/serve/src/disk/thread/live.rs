//! The devices and clients of a disk, as the loop around its engine sees them.

use super::super::cause::Cause;
use super::super::shared::Shared;
use super::latch::{Latch, Mark};
use super::steps::Steps;
use crate::device::{Aborted, Device, Part, Parts};
use crate::estimate::HeadTimeEstimate;
use crate::goals::feed::Feed;
use crate::metrics::{Metrics, op_name};
use crate::request::{Completer, Completion, Data, Failure, Kind, Submission};
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
    /// Here unless the device has them.
    pub data: Option<Data>,
    /// Why it failed, the last time it was tried.
    failure: Option<Failure>,
    /// On which of several members.
    failed_on: Option<Member>,
    /// What had failed when it came.
    mark: Mark,
    /// True if the feed knows the request.
    is_noted: bool,
}

/// A part that a request has on a member of a volume of several.
struct MemberPiece {
    member: Member,
    /// Where the request is in `pending`.
    of: usize,
    /// Where the piece lies in the request's buffer.
    offset: usize,
    /// The piece has all of the request's data, and no copy.
    is_whole: bool,
    /// Here unless the device has them.
    data: Option<Data>,
    /// Why it failed, the last time it was tried.
    failure: Option<Failure>,
}

/// A request of a member's job in the background.
struct Errand {
    /// The job's name for it.
    id: u64,
    /// Here unless the device has them.
    data: Option<Data>,
    /// Why it failed, the last time it was tried.
    failure: Option<Failure>,
    /// What had failed when it came.
    mark: Mark,
}

/// The device of a member, and what is kept of the commands in it.
pub(super) struct Station {
    pub device: Box<dyn Device>,
    /// It says when things happen, and the thread takes care not to be late.
    pub in_model_time: bool,
    /// Sectors of the device.
    capacity: Sectors,
    pub estimate: Option<Box<HeadTimeEstimate>>,
    /// By tag: the command that the device was given last.
    given: Vec<Option<Request<DriveTag>>>,
    /// How often commands are overtaken in the device.
    delays: DelayCounts,
    /// In no order; few at a time.
    errands: Vec<Errand>,
    /// Commands that were given up on.
    pub timeouts: u64,
    /// Commands that failed.
    pub errors: u64,
    /// The file under the device has another name, or cannot be looked at; that has been said.
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

/// What a disk's thread has beside its engine.
pub(super) struct Live {
    pub shared: Arc<Shared>,
    pub clock: Clock,
    /// By member.
    pub stations: Vec<Station>,
    /// By the engine's name for it, or the volume's if that has several members.
    pub pending: Vec<Option<Pending>>,
    /// By the engine's name for it, in a volume of several members.
    pieces: Vec<Option<MemberPiece>>,
    free: Vec<u32>,
    unfinished_max: usize,
    /// Commands that failed before they reached the device.
    unissued: VecDeque<(Member, DriveTag, Parts, Failure)>,
    /// To be used again.
    spare_parts: Vec<Parts>,
    /// A request that has been taken and is not due yet.
    pub next: Option<Submission>,
    pub steps: Steps,
    pub metrics: Metrics,
    pub latch: Latch,
    /// Receives a note of each request.
    feed: Option<Feed>,
    /// Whom to wake at the end of the round.
    pub to_wake: Vec<Arc<dyn Completer>>,
    /// Completions of this round.
    pub completions: u32,
    pub stopping: bool,
    /// The last flush, and how it ended.
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
            steps,
            latch: Latch::default(),
            feed,
            to_wake: Vec::new(),
            completions: 0,
            stopping: false,
            last_flush: None,
        }
    }

    /// Takes the next request from the queue, if there is room for it.
    pub fn fetch(&mut self) {
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
            && let Some(submission) = self.shared.queue.pop()
        {
            if self.shared.was_full.swap(false, Ordering::SeqCst) {
                self.shared.room.notify_waiters();
            }
            self.next = self.steps.admit(submission);
        }
    }

    /// Whether another request may come in.
    fn has_room(&self) -> bool {
        self.pending.len() - self.free.len() < self.unfinished_max
    }

    /// Whether there is a request that may come in.
    pub fn has_next(&self) -> bool {
        let queued = || !self.shared.queue.is_empty() && self.steps.has_room();
        self.has_room() && (self.steps.has_ready() || queued())
    }

    /// A command that a device in real time is done with.
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

    /// Counts by how many others a command was overtaken that the device has no longer.
    #[inline]
    fn left(&mut self, member: Member, tag: DriveTag) {
        let station = &mut self.stations[member.index()];
        let overtaken = station.delays.completed(tag);
        if let Some(given) = &station.given[tag.index()]
            && given.op != Op::Flush
        {
            self.metrics.overtaken(given.class, overtaken);
        }
    }

    /// Takes a command and its data back.
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

    /// Keeps the data of a command's parts, and why they failed.
    #[inline(always)]
    fn keep(&mut self, member: Member, parts: &mut Parts, failure: Option<Failure>) {
        for part in parts.drain(..) {
            if let Some((data, failed)) = self.held(member, part.id) {
                *data = Some(part.data);
                *failed = failure;
            }
        }
    }

    /// The data of a request at an engine, unless the device has them, and why it failed.
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

    /// Returns true if the disk takes no new writes.
    fn takes_no_writes(&self) -> bool {
        self.shared.geometry.read_only || self.shared.failed.load(Ordering::Relaxed)
    }

    /// Why a request that came before a failure may no longer go to the device.
    fn refused_late(&self, request: &Request<DriveTag>) -> Option<Kind> {
        self.latch.cause()?;
        let lost = self.latch.has_lost();
        match request.op {
            Op::Read => None,
            Op::Flush => lost.then_some(Kind::Lost),
            // What was given up on may still be written, over this.
            Op::Write | Op::Discard => (lost || self.abandoned() > 0).then_some(Kind::ReadOnly),
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

    /// How a request ended for who asked.
    fn result(
        &mut self,
        done: &Finished,
        mark: Mark,
        failure: Option<Failure>,
        member: Option<Member>,
    ) -> Result<(), Failure> {
        if done.outcome == Outcome::Done {
            // If it is not confirmed, an earlier failure is why, which is known.
            return self.confirmed(&done.request, mark);
        }
        let failure = failure.unwrap_or(Failure::new(Kind::Device));
        self.failed(&done.request, &failure, member);
        Err(failure)
    }

    /// A request that failed. After a write or a flush, the state of the medium is unknown.
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

    /// Looks whether the file under the device is still what it was. If not, acknowledged writes are
    /// lost, whatever the device says.
    pub fn check_backing(&mut self) {
        if self.shared.given_up.load(Ordering::SeqCst) {
            // The server itself has removed it.
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

    /// The number of a member, for messages, if there are several.
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
        // Those in real time are asked always, and first.
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
        let refused = match op {
            Op::Write | Op::Discard if self.takes_no_writes() => Some(Failure::new(Kind::ReadOnly)),
            Op::Flush => self.latch.flush_failure(),
            _ => None,
        };
        if let Some(failure) = refused {
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
        // Urgent requests have no window.
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
        // A write at the end of a file that was cut short makes it as long as before.
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
        // Merging appends.
        parts.sort_unstable_by_key(|part| part.extent.start);
        let refused = match whole {
            // A client's write is refused when it comes; a job's cannot be.
            true if for_a_job && request.op.changes() && self.takes_no_writes() => {
                Some(Kind::ReadOnly)
            }
            true => self.refused_late(request),
            // Part of a merged command that was given up on, tried again alone: the device still
            // has its data.
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
                // It should have been completed since the device said so the first time. That is said once: the
                // command is the device's, and ends when that ends it.
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
        let result = self.result(done, pending.mark, pending.failure, pending.failed_on);
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
        if self.last_flush.is_none() && self.stopping && pending.cookie == LAST_FLUSH {
            self.last_flush = Some(result);
        }
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
        // In a volume of one there are none.
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
        // What was given up on may still happen, which is worse than any other failure.
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
            // It may be less than the engine knows: what the device has done was lost since.
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

/// Whether the success of a request says that something is on the medium.
fn is_durable<T>(request: &Request<T>) -> bool {
    let durable = Flags::FUA.bits() | Flags::PREFLUSH.bits();
    let writes = request.op == Op::Write && request.flags.bits() & durable != 0;
    request.op == Op::Flush || writes
}

/// The cookie of the flush that ends a disk; front ends number theirs from 0.
pub(super) const LAST_FLUSH: u64 = u64::MAX;
