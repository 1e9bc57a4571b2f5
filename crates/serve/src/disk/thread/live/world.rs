//! The world of the engine's loop: commands to the devices, and requests of the clients.

use super::{Errand, Live, MemberPiece, Pending, RequestStage, expiry};
use crate::device::{Aborted, Part};
use crate::request::{Data, Failure, Kind, Submission};
use headtime_engine::{
    Arrival, Asked, Background, Broken, Done, DriveTag, Engine, Finished, GaveUp, Late, Member,
    Outcome, Part as MemberPart, RequestId, World, earliest,
};
use headtime_sched::{Backlog, Class, Op, Request};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

impl Live {
    /// Notes the result of the flush that ends the disk.
    fn note_last_flush(&mut self, cookie: u64, result: Result<(), Failure>) {
        if self.last_flush.is_none() && self.stopping && cookie == super::LAST_FLUSH {
            self.last_flush = Some(result);
        }
    }

    /// Returns true if a flush has nothing to do. Checks the file first, since success promises that all data are on the medium.
    fn is_clean(&mut self) -> bool {
        // A flush of a volume concerns some members alone.
        if self.stations.len() > 1 || !self.unflushed.is_none() {
            return false;
        }
        self.check_backing();
        self.latch.cause().is_none()
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
            arrived,
            data,
            to,
        } = submission;
        let share = self.next_share.take();
        let refused = match op {
            Op::Write | Op::Discard if self.takes_no_writes() => Some(Failure::new(Kind::ReadOnly)),
            Op::Flush => self.latch.flush_failure(),
            _ => None,
        };
        if let Some(failure) = refused {
            self.give_share_back(share);
            let refused = &mut self.metrics.exports[usize::from(origin.export)].refused;
            *refused += u64::from(self.steps.refuses(&to, cookie));
            self.answer(&to, cookie, Err(failure), data);
            return Ok(None);
        }
        if op == Op::Flush && self.is_clean() {
            self.give_share_back(share);
            self.note_last_flush(cookie, Ok(()));
            if !self.steps.note_times(&to, cookie, now, now) {
                self.metrics.exports[usize::from(origin.export)].unfinished += 1;
                let request = Request {
                    origin,
                    class,
                    ..Request::new((), op, extent, arrived)
                };
                self.metrics.finished(&request, now, now, true);
            }
            self.answer(&to, cookie, Ok(()), data);
            return Ok(None);
        }
        self.expires = self.expires.min(expiry::of(self.queue_timeout, arrived));
        self.unflushed.note(op);
        let sector_bytes = self.shared.geometry.sector_bytes;
        // Real-time requests have no window, so the feed is not notified of them.
        let feed = self.feed.as_mut().filter(|_| class != Class::REAL_TIME);
        let is_noted =
            feed.is_some_and(|feed| feed.asked(now, origin.program, op, extent, sector_bytes));
        let counts = self.steps.counts(&to, cookie);
        let pending = Some(Pending {
            op,
            start: extent.start,
            origin,
            arrived,
            stage: RequestStage::Waits,
            cookie,
            to,
            data: Some(data),
            failure: None,
            failed_on: None,
            mark: self.latch.mark(),
            is_noted,
            share,
            changes: self.unflushed.changes(),
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
        self.metrics.exports[usize::from(origin.export)].unfinished += u64::from(counts);
        Ok(Some(Asked::Request(Arrival {
            id: RequestId::Client(u64::from(id)),
            op,
            extent,
            flags,
            origin,
            class,
            since: (arrived < now).then_some(arrived),
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
        let (mut whole, mut for_a_job, mut expired) = (true, false, false);
        for (id, extent) in engine.parts(request.tag) {
            expired |= self.stage(id) == Some(&mut RequestStage::Expired);
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
            // The engine tries the other requests of the command again, each alone.
            _ if expired => Some(Kind::NotBegun),
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
        for part in &parts {
            if let Some(stage) = self.stage(part.id) {
                *stage = RequestStage::Begun;
            }
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
        if pending.stage == RequestStage::Expired {
            // The client has its answer, and no device has had the request.
            self.give_share_back(pending.share);
            return Ok(());
        }
        if let (Some(share), Some(admission)) = (pending.share, &mut self.admission) {
            admission.done(share, now);
        }
        let result = self.result(done, pending.mark, pending.failure, pending.failed_on);
        if pending.op == Op::Flush && result.is_ok() {
            self.unflushed.flushed(pending.changes);
        }
        let (to, cookie) = (&pending.to, pending.cookie);
        if !self.steps.note_times(to, cookie, done.issued, now) {
            let request = Request {
                arrival: pending.arrived,
                ..done.request
            };
            self.metrics
                .finished(&request, done.issued, now, result.is_ok());
        }
        if let Some(feed) = self.feed.as_mut().filter(|_| pending.is_noted) {
            let moves = result.is_ok() && matches!(done.request.op, Op::Read | Op::Write);
            let bytes = (done.request.extent.len).bytes(self.shared.geometry.sector_bytes);
            feed.done(
                now,
                done.request.origin.program,
                if moves { bytes } else { 0 },
            );
        }
        let data = pending.data.unwrap_or_default();
        self.answer(&pending.to, pending.cookie, result, data);
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
