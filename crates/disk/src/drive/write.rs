//! Writes: into the buffer, to the medium, and from the buffer to the medium.

use super::arm::{Source, Writing};
use super::bus::Feed;
use super::destage::What;
use super::{Breakdown, Command, Drive, Hit};
use crate::cache::{State, WriteLookup};
use crate::ledger::Part;
use crate::profile::Preseek;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

/// The data of a write on the bus.
#[derive(Clone, Copy, Debug)]
struct Data {
    /// Time at which the first data come.
    from: Time,
    /// Time at which all data have come.
    sent: Time,
}

impl Drive {
    /// Returns true if a write completes in the buffer, although the arm sets out with it.
    fn is_fast(&self, command: &Command) -> bool {
        !command.fua && self.cache.spec().write_back.sets_out()
    }

    /// Processing of a write that completes in the buffer (`hit`) or on the medium.
    fn write_overhead(&mut self, hit: bool) -> Nanos {
        let spec = &self.profile.overhead;
        let overhead = match (hit, self.last_was_read) {
            (true, true) => spec.write_hit_after_read,
            (true, false) => spec.write_hit_after_write,
            (false, true) => spec.write_miss_after_read,
            (false, false) => spec.write_miss_after_write,
        };
        self.noise.overhead(overhead)
    }

    /// Processing, and giving up the bus, for a write that has to wait.
    pub(super) fn write_waiting_overheads(&mut self, command: &Command) -> (Nanos, Nanos) {
        let buffered = self.is_fast(command) || self.is_buffered(command);
        let overhead = self.write_overhead(buffered);
        // A drive that writes through does not charge for giving up the bus here, since it charges
        // for that after the data.
        let disconnect = if buffered {
            self.profile.overhead.write_disconnect
        } else {
            Nanos::ZERO
        };
        (overhead, disconnect)
    }

    /// Time at which the data of a write that was off the bus from `at` on can be sent.
    fn reconnected(&self, at: Time) -> Time {
        let spec = &self.profile.overhead;
        at + spec.first_reselect + spec.data_preparation + self.profile.bus.arbitration
    }

    fn sector(&self) -> Nanos {
        self.profile.bus.sector(false)
    }

    /// Takes a write into the buffer without the arm. Returns false if there is no room.
    pub(super) fn buffer_write(&mut self, index: u16, now: Time) -> bool {
        let slot = self.slots[usize::from(index)];
        let extent = slot.command.extent;
        self.bring_ahead(now);
        let kept = match self.cache.spec().keeps_runs() {
            true => self.keep_in_runs(extent, now),
            false => self.keep_in_segment(extent, now),
        };
        if !kept {
            return false;
        }
        let overhead = self.profile.overhead;
        // A write that has waited is taken up when the drive can begin something, which a stall
        // delays.
        let taken = self.faults.after_stall(now);
        let waited = taken.saturating_since(slot.arrived);
        let ready = if waited.is_zero() {
            slot.arrived + self.write_overhead(true) + overhead.data_preparation
        } else {
            self.reconnected(slot.disconnected.max(taken))
        };
        let length = self.sector() * extent.len.get();
        let begin = self.bus.squeeze(ready, length);
        let at = begin + length + overhead.write_completion;
        self.last_was_read = false;
        self.idle_since = self.idle_since.max(at);
        let slot = self.slot(index);
        slot.hit = Hit::Buffered;
        slot.data = (begin, begin + length);
        slot.breakdown = Breakdown {
            queue: waited,
            overhead: ready - slot.submitted - waited,
            bus: at - ready,
            ..Breakdown::default()
        };
        self.complete(index, at);
        true
    }

    /// Puts the data of a write into a segment. Returns false if there is no segment for them.
    fn keep_in_segment(&mut self, extent: Extent, now: Time) -> bool {
        let id = match self.cache.find_write(extent) {
            WriteLookup::Fresh(id) => {
                if self.ahead.is_some_and(|ahead| ahead.segment == id) {
                    self.replan_ahead(now);
                }
                self.cache.begin_write(id, extent);
                id
            }
            WriteLookup::Join(id) => {
                let segment = self.cache.get(id);
                let joined = segment.dirty_end.max(extent.end().get())
                    - segment.dirty_start.min(extent.start.get());
                if joined > u64::from(self.cache.spec().segment_sectors) {
                    return false;
                }
                self.cache.join_write(id, extent);
                id
            }
            WriteLookup::Blocked(_) | WriteLookup::Full => return false,
        };
        self.cache.touch(id, true);
        self.overwrite(extent, Some(id));
        true
    }

    /// Ends reading ahead, since the segment that it fills is needed.
    pub(super) fn replan_ahead(&mut self, now: Time) {
        self.settle(now);
        let only_that = self.going.alone;
        let leave = self.end_ahead(now, now).at;
        if only_that {
            self.arm_free = leave;
        }
        self.arm_free = self.arm_free.max(leave);
    }

    /// Fetches the data of a write that has to wait for the arm, if the drive does so, if several
    /// commands wait and while there is room.
    pub(super) fn prebuffer_write(&mut self, index: u16, now: Time) {
        let slot = self.slots[usize::from(index)];
        let can = self.cache.spec().write_prebuffering
            || self.is_choosing() && self.has_room_to_fetch(slot.command.extent.len.get());
        if !can {
            return;
        }
        let length = self.sector() * slot.command.extent.len.get();
        let ready = slot.ready.max(now) + self.profile.overhead.data_preparation;
        let begin = self.bus.squeeze(ready, length);
        self.slot(index).fetched = Some(begin + length);
    }

    /// Returns true if the part of the buffer for written data has room for `len` more sectors.
    fn has_room_to_fetch(&self, len: u64) -> bool {
        let spec = self.cache.spec();
        let room = u64::from(spec.write_segments) * u64::from(spec.segment_sectors);
        let room = room.saturating_sub(self.cache.runs().sectors());
        let taken = self.queue.iter().filter_map(|waiting| {
            let slot = &self.slots[usize::from(waiting.slot)];
            slot.fetched.map(|_| slot.command.extent.len.get())
        });
        taken.sum::<u64>() + len <= room
    }

    /// Fetches the data of waiting writes, since the arm's present write has made room.
    fn prebuffer_more(&mut self, now: Time) {
        if !self.is_choosing() {
            return;
        }
        let waiting = self.queue.iter().len();
        for place in 0..waiting {
            let waiting = *self.queue.get(place);
            let unfetched = self.slots[usize::from(waiting.slot)].fetched.is_none();
            if waiting.op == Op::Write && waiting.needs_arm && unfetched {
                if !self.has_room_to_fetch(waiting.extent.len.get()) {
                    return;
                }
                self.prebuffer_write(waiting.slot, now);
            }
        }
    }

    /// Returns true if the data of a write come as fast as an arm that begins at `now` writes them.
    pub(super) fn is_fetched(&self, index: u16, now: Time) -> bool {
        let slot = &self.slots[usize::from(index)];
        let rest = self.sector() * (slot.command.extent.len.get() - 1);
        slot.fetched
            .is_some_and(|fetched| fetched.saturating_sub(rest) <= now)
    }

    /// Adds a write to the data that the arm is writing. Returns false if the write does not
    /// continue these data or may not complete in the buffer, or if the bus is not free.
    pub(super) fn append_write(&mut self, index: u16, now: Time, waited: bool) -> bool {
        let slot = self.slots[usize::from(index)];
        let extent = slot.command.extent;
        let Some(writing) = self.writing else {
            return false;
        };
        if !self.is_fast(&slot.command) || self.bus.free() > now {
            return false;
        }
        self.bring_ahead(now);
        let Source::Segment(id) = writing.source else {
            return false;
        };
        if self.cache.find_write(extent) != WriteLookup::Join(id) {
            return false;
        }
        let segment = *self.cache.get(id);
        let end = writing.extent.end();
        if segment.state != State::Writing || segment.dirty().end() != end {
            return false;
        }
        let overhead = self.profile.overhead;
        let (processed, begin) = match waited {
            true => (slot.ready, self.reconnected(slot.disconnected.max(now))),
            false => {
                let processed = slot.arrived + self.write_overhead(true);
                (processed, processed + overhead.data_preparation)
            }
        };
        let len = extent.len.get();
        let size = u64::from(self.cache.spec().segment_sectors);
        let mut sent = begin + self.sector() * len;
        if segment.dirty_end - segment.dirty_start + len > size {
            // The rest finds room when the data in front have been written.
            sent = sent.max(writing.until);
        }
        self.cache.join_write(id, extent);
        self.cache.touch(id, true);
        self.overwrite(extent, Some(id));
        let depart = processed.max(writing.until);
        let feed = Feed {
            first: begin + self.sector(),
            sector: self.sector(),
            lead: 1,
        };
        self.ledger.settle(now);
        let motion = self.write_media(self.track, depart, extent, Some(feed), true);
        self.track = motion.track;
        if len > size {
            // The buffer cannot hold all data: the last sectors come when the others are on the
            // medium.
            sent = sent.max(motion.end);
        }
        self.bus.plan(begin, sent);
        self.parts.push_back((writing.until, end));
        let start = writing.extent.start;
        self.writing = Some(Writing {
            source: Source::Segment(id),
            extent: Extent::new(start, extent.end() - start),
            until: motion.end,
        });
        let at = sent + overhead.write_completion;
        self.last_was_read = false;
        self.finish_write(index, now, Data { from: begin, sent }, at, motion.end);
        true
    }

    /// Serves a write with an arm that is free at `now`. If it is `connected`, it has just come and
    /// still has the bus. Returns false if other data must reach the medium first; the arm has then
    /// set out to write them.
    pub(super) fn serve_write(&mut self, index: u16, now: Time, connected: bool) -> bool {
        let slot = self.slots[usize::from(index)];
        let extent = slot.command.extent;
        let len = extent.len.get();
        self.bring_ahead(now);
        if let Some(run) = self.cache.runs().overlapping(extent) {
            self.destage(What::Run(run.start), now);
            return false;
        }
        let segment = match self.cache.find_write(extent) {
            WriteLookup::Fresh(id) => Some(id),
            WriteLookup::Join(id) | WriteLookup::Blocked(id) => {
                self.destage(What::Segment(id), now);
                return false;
            }
            WriteLookup::Full => match self.cache.oldest_dirty() {
                Some(id) if self.cache.dirty() >= self.cache.spec().write_segments => {
                    self.destage(What::Segment(id), now);
                    return false;
                }
                // All segments are in use: the data go past the buffer.
                _ => None,
            },
        };
        self.replan(now);
        // Data that go past the buffer are stored nowhere until they are on the medium.
        let fast = self.is_fast(&slot.command) && segment.is_some();
        let overhead = self.profile.overhead;
        let bus = self.profile.bus;
        let early = overhead.early_write_disconnect.filter(|_| {
            connected
                && !bus.never_disconnect
                && segment.is_some_and(|id| self.cache.follows_other_write(id, extent))
        });
        let (processed, data) = match early {
            Some(early) => {
                let given_up = slot.arrived + early.command + early.first_disconnect;
                (
                    slot.arrived + early.command + early.seek_delay,
                    self.reconnected(given_up + early.between),
                )
            }
            None if connected => {
                let processed = slot.arrived + self.write_overhead(fast);
                (processed, processed + overhead.data_preparation)
            }
            None => (slot.ready, self.reconnected(slot.disconnected.max(now))),
        };
        let sector = self.sector();
        let fetched = slot.fetched.filter(|_| !connected);
        let data = match fetched {
            Some(fetched) => fetched.saturating_sub(sector * len),
            None => data.max(self.bus.free()),
        };
        // A write that comes to an empty queue, while the arm is held for a stream's next read, ends the hold too.
        self.going.alone = false;
        let leave = self.end_ahead(now, processed.max(now)).at;
        if let Some(id) = segment {
            self.cache.begin_write(id, extent);
            self.cache.touch(id, true);
            self.cache.begin_destage(id);
        }
        self.overwrite(extent, segment);

        // The arm.
        let mut depart = processed.max(leave).max(now);
        if !overhead.minimum_seek_delay.is_zero() {
            let to = self.layout.run(extent.start).track;
            let seek = self.mechanics.reposition(self.track, to, Op::Write).total();
            depart += overhead.minimum_seek_delay.saturating_sub(seek);
        }
        let mut sent = data + sector * len;
        let feed = Feed {
            first: data + sector,
            sector,
            lead: overhead.write_lead(len),
        };
        self.ledger.plan(depart, extent.start, Part::Overhead);
        self.begin_passing();
        if self.write_last != (depart, extent.start) {
            self.going.since = now;
        }
        let motion = self.write_media(self.track, depart, extent, Some(feed), fast);
        self.track = motion.track;
        self.write_last = (motion.end, extent.end());
        if len > u64::from(self.cache.spec().segment_sectors) {
            // The buffer cannot hold all data: the last sectors come when the others are on the
            // medium.
            sent = sent.max(motion.end);
        }
        if fetched.is_none() {
            self.bus.plan(data, sent);
        }
        self.writing = Some(Writing {
            source: segment.map_or(Source::Host, Source::Segment),
            extent,
            until: motion.end,
        });
        self.last_was_read = false;
        self.prebuffer_more(now);
        if fast {
            let told = match fetched {
                Some(_) => sent.max(now) + overhead.first_reselect + bus.arbitration,
                None => sent,
            };
            let at = told + overhead.write_completion;
            self.finish_write(index, now, Data { from: data, sent }, at, motion.end);
            return true;
        }
        let on_medium = if bus.never_disconnect {
            sent.max(motion.end)
        } else {
            let (disconnect, reselect) = match early {
                Some(early) => (early.second_disconnect, overhead.other_reselect),
                None => (overhead.write_disconnect, overhead.first_reselect),
            };
            (sent + disconnect).max(motion.end) + reselect + bus.arbitration
        };
        let at = on_medium + overhead.write_completion;
        self.ledger.plan(at, extent.start, Part::Overhead);
        let slot = self.slot(index);
        slot.hit = Hit::Through;
        slot.data = (data, sent);
        let queue = now.saturating_since(slot.arrived);
        let arm = motion.seek + motion.switch + motion.rotation + motion.transfer;
        slot.breakdown = Breakdown {
            queue,
            overhead: motion.end - slot.submitted - queue - arm,
            seek: motion.seek,
            switch: motion.switch,
            rotation: motion.rotation,
            transfer: motion.transfer,
            bus: at - motion.end,
        };
        self.complete(index, at);
        self.arm_free = match self.profile.queue.preseek {
            Preseek::Off => at,
            Preseek::AtCompletion => on_medium,
            Preseek::AtMediaEnd | Preseek::JustInTime => motion.end,
        };
        self.idle_since = self.arm_free.max(at);
        true
    }

    /// A write that was taken up at `now` completes in the buffer, where its data come from, or came.
    fn finish_write(&mut self, index: u16, now: Time, data: Data, at: Time, media_end: Time) {
        let slot = self.slot(index);
        let queue = now.saturating_since(slot.arrived);
        let taken = slot.submitted + queue;
        let from = data.from.max(taken);
        slot.hit = Hit::Buffered;
        slot.data = (data.from, data.sent);
        slot.breakdown = Breakdown {
            queue,
            overhead: from - taken,
            bus: at - from,
            ..Breakdown::default()
        };
        self.complete(index, at);
        self.arm_free = match self.profile.queue.preseek {
            Preseek::Off => media_end.max(at),
            Preseek::AtCompletion => media_end.max(data.sent),
            Preseek::AtMediaEnd | Preseek::JustInTime => media_end,
        };
        self.idle_since = self.arm_free.max(at);
    }
}
