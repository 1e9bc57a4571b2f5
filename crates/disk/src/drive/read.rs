//! Reads: from the buffer, from the medium, or from both.

use super::arm::{Ahead, CachedProgress, Leave};
use super::bus::{Link, Sending, Start};
use super::destage::What;
use super::media::Motion;
use super::{Breakdown, Command, Drive, Hit, InFlight};
use crate::cache::{ReadLookup, SegmentId, State};
use crate::ledger::Part;
use crate::mechanics::Reposition;
use crate::profile::{Preseek, ReadAhead};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};

/// State of a read when the drive serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The command has just come and still has the bus.
    Connected,
    /// The command has waited.
    Queued {
        /// The arm reads on through the sectors in front of the command.
        through: bool,
    },
}

impl Drive {
    /// Processing of a read that finds its data, or does not.
    fn read_overhead(&mut self, hit: bool) -> Nanos {
        let spec = &self.profile.overhead;
        let overhead = match (hit, self.last_was_read) {
            (true, true) => spec.read_hit_after_read,
            (true, false) => spec.read_hit_after_write,
            (false, true) => spec.read_miss_after_read,
            (false, false) => spec.read_miss_after_write,
        };
        self.noise.overhead(overhead)
    }

    fn read_disconnect(&self) -> Nanos {
        let spec = &self.profile.overhead;
        if self.last_was_read {
            spec.read_disconnect_after_read
        } else {
            spec.read_disconnect_after_write
        }
    }

    /// The overheads of a command that must pass until the command can wait off the bus:
    /// processing, and releasing the bus.
    pub(super) fn waiting_overheads(&mut self, command: &Command) -> (Nanos, Nanos) {
        if command.op.is_read() {
            (self.read_overhead(false), self.read_disconnect())
        } else {
            self.write_waiting_overheads(command)
        }
    }

    /// Looks for the data of a read, as of the last time that reading ahead was brought up to date.
    fn find_read(&self, command: &Command) -> ReadLookup {
        let extent = command.extent;
        let found = self.cache.find_read(extent);
        let runs = self.cache.runs();
        if let Some(run) = runs.overlapping(extent) {
            let serves = !command.fua && self.cache.runs_serve(extent);
            let overlays = !command.fua
                && self.cache.overlays()
                // If sectors are bad on the medium, the buffer may have the only copy.
                && self.faults.unreadable(extent).is_none();
            if serves {
                return ReadLookup::Dirty;
            } else if !overlays {
                return ReadLookup::BlockedByRun(run.start);
            }
        }
        if !command.fua {
            return found;
        }
        // With `fua` the read comes from the medium: dirty data must get there first, and clean
        // data do not serve.
        if let Some(id) = self.cache.dirty_overlap(extent) {
            return ReadLookup::Blocked(id);
        }
        match found {
            ReadLookup::Whole(id) | ReadLookup::Partial(id) => {
                let segment = self.cache.get(id);
                // Other sectors there may be dirty.
                let unused = segment.users == 0 && !segment.is_dirty();
                let ahead = self.ahead.is_some_and(|ahead| ahead.segment == id);
                ReadLookup::Miss((unused && !ahead).then_some(id))
            }
            other => other,
        }
    }

    /// Returns true if the buffer may have some of a read, or comes to it next.
    pub(super) fn may_have(&self, command: &Command) -> bool {
        let extent = command.extent;
        let serves = command.op.is_read() && !command.fua;
        serves && (self.cache.may_serve(extent) || self.cache.runs().overlaps(extent))
    }

    /// Serves a read from the buffer alone while the arm does something else, if the drive can do
    /// that and has all the data.
    pub(super) fn serve_hit(&mut self, index: u16, now: Time) -> bool {
        let spec = *self.cache.spec();
        let allowed = spec.sneaky_full_read_hits || spec.sneaky_intermediate_read_hits;
        let command = self.slots[usize::from(index)].command;
        if !allowed || command.fua {
            return false;
        }
        self.bring_ahead(now);
        let extent = command.extent;
        if !self.may_have(&command) {
            return false;
        }
        let id = match self.find_read(&command) {
            ReadLookup::Dirty => None,
            ReadLookup::Whole(id) if !self.is_being_filled(id, now) => Some(id),
            _ => return false,
        };
        let overhead = self.read_overhead(true) + self.profile.overhead.data_preparation;
        let length = self.profile.bus.sector(true) * extent.len.get();
        let begin = self.bus.squeeze(now + overhead, length);
        let end = begin + length;
        let at = end + self.profile.overhead.read_completion;
        self.last_was_read = true;
        if let Some(id) = id {
            self.use_segment(index, id);
            self.extend_ahead(id, extent);
        }
        let slot = self.slot(index);
        slot.hit = Hit::Full;
        slot.data = (begin, end);
        slot.breakdown = Breakdown {
            overhead: now + overhead - slot.submitted,
            bus: at - (now + overhead),
            ..Breakdown::default()
        };
        self.complete(index, at);
        self.note_stream(index, now, at, false);
        true
    }

    /// Returns true if a command is reading into the segment and not done with it.
    fn is_being_filled(&self, id: SegmentId, now: Time) -> bool {
        self.ahead
            .is_some_and(|ahead| ahead.segment == id && ahead.at > now)
    }

    fn use_segment(&mut self, index: u16, id: SegmentId) {
        self.cache.touch(id, false);
        self.cache.add_user(id);
        self.slot(index).segment = Some(id);
    }

    fn extend_ahead(&mut self, id: SegmentId, extent: Extent) {
        let (layout, last_track) = (&self.layout, &mut self.last_track);
        self.cache.extend_ahead(id, extent, |lba| {
            let track = last_track.of(layout, lba);
            let sectors = layout.zone_of(extent.start).sectors_per_track;
            (track.start.get(), track.end().get(), u64::from(sectors))
        });
        // A head that now reads on behind the track does not come all around it.
        if let Some(mut ahead) = self.ahead.filter(|ahead| ahead.segment == id)
            && let Some((_, first)) = ahead.around
            && self.ahead_limit(&ahead) > self.last_track.of(&self.layout, first).end()
        {
            (ahead.around, ahead.reached) = (None, false);
            self.ahead = Some(ahead);
        }
    }

    /// Some firmware takes two reads on a track for the beginning of a sequence. The drive then reads on there and
    /// serves other commands later (Lumb, Schindler and Ganger, FAST 2002, sections 3.2 and 4.3).
    fn note_read_track(&mut self, id: Option<SegmentId>, extent: Extent) {
        let least = Sectors::new(u64::from(self.cache.spec().second_read_ahead_min));
        if least == Sectors::ZERO {
            return;
        }
        let last = extent.end() - Sectors::new(1);
        let track = self.last_track.of(&self.layout, last);
        let is_second = self.read_track == track;
        self.read_track = track;
        if let Some(id) = id.filter(|_| is_second) {
            let until = (extent.end() + least).min(track.end());
            self.cache.bind_ahead(id, extent, until);
        }
    }

    /// Serves a read with an arm that is free at `now`. Returns false if dirty data must reach the
    /// medium first; the arm has then set out to write them.
    pub(super) fn serve_read(&mut self, index: u16, now: Time, taken: Taken) -> bool {
        let connected = taken == Taken::Connected;
        let through = taken == Taken::Queued { through: true };
        let command = self.slots[usize::from(index)].command;
        let extent = command.extent;
        let len = extent.len.get();
        self.bring_ahead(now);
        let lookup = self.find_read(&command);
        let mut found = match lookup {
            ReadLookup::Blocked(id) => {
                self.destage(What::Segment(id), now);
                return false;
            }
            ReadLookup::BlockedByRun(start) => {
                self.destage(What::Run(start), now);
                return false;
            }
            ReadLookup::Dirty => Found {
                hit: Hit::Full,
                segment: None,
                ready: len,
            },
            ReadLookup::Whole(id) => Found {
                hit: Hit::Full,
                segment: Some(id),
                ready: len,
            },
            ReadLookup::Partial(id) => Found {
                hit: Hit::Partial,
                segment: Some(id),
                ready: self.cache.get(id).end.saturating_sub(extent.start.get()),
            },
            ReadLookup::Miss(segment) => Found {
                hit: Hit::Miss,
                segment,
                ready: 0,
            },
        };
        self.replan(now);
        self.going.alone = false;
        let link = Link::new(&self.profile, len, self.read_disconnect());
        let (processed, start) = self.read_start(index, &found, &link, now, connected);
        let coming = match found.hit {
            Hit::Miss => self.on_the_way(extent, processed.max(now), through),
            _ => None,
        };
        found.segment = coming.or(found.segment);
        let goes_on = coming.is_some() || self.goes_on(&found, now);
        // The arm goes on with reading ahead if that serves the read. The arm also goes on if another segment has all
        // data and the drive can do both. Otherwise reading ahead ends when the read has been processed.
        let can = self.cache.spec().sneaky_full_read_hits || self.is_choosing();
        let aside = found.hit == Hit::Full && can;
        let leave = if goes_on || aside {
            Leave {
                at: now,
                reads: true,
            }
        } else {
            self.end_ahead(now, processed.max(now))
        };
        let depart = processed.max(leave.at).max(now);
        if let Some(id) = found.segment {
            if found.hit == Hit::Miss && !goes_on {
                self.cache.begin_read(id, extent.start.get());
            }
            self.use_segment(index, id);
            self.extend_ahead(id, extent);
        }
        self.note_read_track(found.segment, extent);
        let anew = !goes_on && self.read_last != (depart, extent.start);
        let mut sending = Sending::new(link, extent, found.ready, start, self.bus.free());
        let motion = self.move_for_read(&found, extent, depart, leave, &mut sending);
        if anew && motion.is_some() {
            self.going.since = now;
        }
        let mut media_end = motion.map_or(now, |motion| motion.end);

        // A sector that cannot be read is tried again and again.
        let bad = motion.and_then(|_| self.faults.unreadable(extent));
        if let Some((error, retries)) = bad {
            media_end += self.mechanics.turn() * u64::from(retries);
            self.ledger.plan(media_end, error.lba, Part::Rotation);
            self.slot(index).result = Err(error);
        }
        let (sent_from, sent) = if bad.is_some() {
            (media_end, media_end)
        } else {
            let late = motion.map_or(Nanos::ZERO, |motion| motion.late);
            let (begin, end) = sending.end();
            let times = (begin + late, end + late);
            self.bus.plan(times.0, times.1);
            times
        };
        let at = sent + self.profile.overhead.read_completion;
        self.ledger.plan(at, extent.start, Part::Overhead);
        self.last_was_read = true;
        let overlaid = found.hit == Hit::Miss && self.cache.runs().overlaps(extent);
        let slot = self.slot(index);
        slot.hit = if overlaid { Hit::Partial } else { found.hit };
        slot.data = (sent_from, sent);
        slot.breakdown = match &motion {
            Some(motion) => read_breakdown(slot, motion, now, media_end, at),
            None => {
                let queue = now.saturating_since(slot.arrived);
                Breakdown {
                    queue,
                    overhead: sent_from - slot.submitted - queue,
                    bus: at - sent_from,
                    ..Breakdown::default()
                }
            }
        };
        self.complete(index, at);
        self.note_stream(index, now, at, motion.is_some() || goes_on);

        // Sectors that do not fit into the segment are read when the bus has made room.
        let size = u64::from(self.cache.spec().segment_sectors);
        let room = match len > size {
            true => sent.saturating_sub(link.sector * size),
            false => now,
        };
        let arm_end = media_end.max(room).max(now);
        self.arm_free = match self.profile.queue.preseek {
            Preseek::Off => at.max(arm_end),
            Preseek::AtCompletion => sent.max(arm_end),
            Preseek::AtMediaEnd | Preseek::JustInTime if motion.is_some() => arm_end,
            Preseek::AtMediaEnd | Preseek::JustInTime => self.arm_free.max(now),
        };
        self.idle_since = self.arm_free.max(at);
        if let Some(id) = found.segment {
            if bad.is_some() {
                self.ahead = None;
                self.cache.drop_all(id);
            } else if let Some(motion) = &motion {
                self.read_on(id, extent, &found, motion);
            } else if self.ahead.is_none() {
                self.read_on_idle(id, depart);
            }
        }
        true
    }

    /// Returns true if the arm goes on reading ahead, since that serves a read from the buffer.
    fn goes_on(&mut self, found: &Found, now: Time) -> bool {
        let Some(ahead) = self.ahead.as_mut() else {
            return false;
        };
        if found.segment != Some(ahead.segment) {
            return false;
        }
        match found.hit {
            Hit::Full => {
                // With a new limit the arm may have more to read.
                if ahead.reached {
                    ahead.at = now;
                    ahead.reached = false;
                    ahead.known = CachedProgress::default();
                }
                true
            }
            Hit::Partial => !ahead.reached,
            _ => false,
        }
    }

    /// The segment into which the arm reads ahead, if the arm reads the first sector of a read by `processed` or as the
    /// next sector. The read is processed at `processed`. Such a read is no hit, but the arm does not have to come
    /// back.
    ///
    /// If the arm reads on `through` the sectors in front, the first sector may be any sector
    /// within the read-ahead.
    fn on_the_way(&self, extent: Extent, processed: Time, through: bool) -> Option<SegmentId> {
        let ahead = self.ahead.filter(|ahead| !ahead.reached)?;
        let from = self.cache.get(ahead.segment).end;
        let wanted = extent.start.get();
        if !self.cache.spec().enabled || wanted < from {
            return None;
        }
        let comes = wanted == from
            || through && wanted < self.ahead_limit(&ahead).get()
            || wanted <= self.ahead_comes_to(processed).get();
        comes.then_some(ahead.segment)
    }

    /// Time at which a read has been processed far enough for the arm to move, and the state in
    /// which it begins to send.
    fn read_start(
        &mut self,
        index: u16,
        found: &Found,
        link: &Link,
        now: Time,
        connected: bool,
    ) -> (Time, Start) {
        let slot = &self.slots[usize::from(index)];
        let (arrived, ready, mut disconnected) = (slot.arrived, slot.ready, slot.disconnected);
        let len = slot.command.extent.len.get();
        if !connected {
            if found.hit == Hit::Full && self.is_choosing() {
                // A hit has the processing of hits, not of reads for which the arm sets out.
                let processed = arrived + self.read_overhead(true) + link.disconnect;
                disconnected = disconnected.min(processed);
            }
            return (ready, Start::Disconnected(disconnected.max(now)));
        }
        let at_once = match found.hit {
            Hit::Full => true,
            Hit::Partial => {
                let enough = link.water.min(len);
                self.cache.spec().send_partial_hit_at_once || found.ready >= enough
            }
            _ => false,
        };
        let prepare = self.profile.overhead.data_preparation;
        let processed = arrived + self.read_overhead(false);
        let start = if at_once {
            Start::Connected(arrived + self.read_overhead(true) + prepare)
        } else if self.profile.bus.never_disconnect {
            Start::Connected(processed + prepare)
        } else {
            Start::Disconnected(processed + link.disconnect)
        };
        (processed, start)
    }

    /// Moves the arm for the sectors that are not in the buffer, if any.
    fn move_for_read(
        &mut self,
        found: &Found,
        extent: Extent,
        depart: Time,
        leave: Leave,
        sending: &mut Sending,
    ) -> Option<Motion> {
        if found.ready == extent.len.get() {
            return None;
        }
        let have = extent.start + Sectors::new(found.ready);
        let sets_out = self.ahead.is_none() && self.read_last != (depart, have);
        let mut motion = if let Some(ahead) = self.ahead {
            // The arm is on its way already.
            let rest = Extent::new(ahead.next, extent.end() - ahead.next);
            self.read_media(ahead.track, ahead.at, rest, sending, None)
        } else {
            let rest = Extent::new(have, extent.end() - have);
            let first = self.layout.run(have);
            let way = (self.mechanics).reposition(self.track, first.track, Op::Read);
            let depart = depart + self.set_up(have, first.track, way, leave);
            self.ledger.plan(depart, have, Part::Overhead);
            self.read_media(self.track, depart, rest, sending, Some((first, way)))
        };
        // An arm that goes on is in the middle of its track already.
        let late = match sets_out {
            true => self.noise.recovery(self.mechanics.turn(), have, depart),
            false => Nanos::ZERO,
        };
        if !late.is_zero() {
            motion.rotation += late;
            motion.end += late;
            self.ledger.plan(motion.end, have, Part::Rotation);
            motion.late = late;
        }
        self.track = motion.track;
        self.read_last = (motion.end, extent.end());
        Some(motion)
    }

    /// Extra time of a read at `lba`, on track `to`, beyond its arm movement `way`:
    /// [`Mechanics::set_up`](crate::Mechanics).
    ///
    /// Zero if the head still reads on the track, or has just read the sector before.
    fn set_up(&self, lba: Lba, to: Track, way: Reposition, leave: Leave) -> Nanos {
        let goes_on = leave.reads && to == self.track || self.read_last == (leave.at, lba);
        if goes_on {
            return Nanos::ZERO;
        }
        self.mechanics.set_up(way.total(), Op::Read)
    }

    /// Adds sectors in front of the first wanted sector to the segment, if they pass under the head
    /// while it waits and the drive stores such sectors.
    ///
    /// With zero-latency reads, the drive takes the whole track if reading ahead ends there, at `limit`. Returns the
    /// time at which the head has been all around the track, and the track's first readable sector.
    fn keep_free_sectors(
        &mut self,
        id: SegmentId,
        extent: Extent,
        motion: &Motion,
        limit: Lba,
    ) -> Option<(Time, Lba)> {
        if !self.cache.spec().read_free_sectors {
            return None;
        }
        let track = self.last_track.of(&self.layout, extent.start);
        let turn = self.mechanics.turn();
        let per_track = u64::from(motion.sectors_per_track);
        let passed = motion.waited.as_nanos() * per_track / turn.as_nanos();
        let before = Extent::new(track.start, extent.start - track.start);
        let front = passed.min(before.len.get());
        let first = self.faults.readable_from(before);
        self.cache
            .read_before(id, first.get().max(extent.start.get() - front));
        let whole = self.mechanics.zero_latency(Op::Read) && limit <= track.end();
        whole.then_some((motion.landed + turn, first))
    }

    /// Begins to read ahead behind a request that took the arm to the medium.
    fn read_on(&mut self, id: SegmentId, extent: Extent, found: &Found, motion: &Motion) {
        self.cache.resume_read(id);
        self.cache.read_to(id, extent.end().get(), 0);
        self.ahead = None;
        let stop = self.ahead_stop(extent.end() - Sectors::new(1));
        let stop = self.readable_until(extent.end(), stop);
        let limit = Lba::new(self.cache.get(id).ahead_max).min(stop);
        let around = match found.hit {
            Hit::Miss => self.keep_free_sectors(id, extent, motion, limit),
            _ => None,
        };
        let on = self.cache.spec().read_ahead != ReadAhead::Off;
        if on && (extent.end() < limit || around.is_some()) {
            self.ahead = Some(Ahead {
                segment: id,
                track: motion.track,
                over: motion.track,
                at: motion.end,
                next: extent.end(),
                stop,
                around,
                reached: false,
                known: CachedProgress::default(),
            });
        } else {
            self.end_read(id);
        }
    }

    /// Begins to read ahead behind a full hit, from `depart` on, if the profile says so.
    fn read_on_idle(&mut self, id: SegmentId, depart: Time) {
        let spec = self.cache.spec();
        let (on, kind) = (spec.read_ahead_on_idle_hit, spec.read_ahead);
        let segment = *self.cache.get(id);
        let next = Lba::new(segment.end);
        if !on || segment.state != State::Clean || next >= Lba::new(segment.ahead_max) {
            return;
        }
        let there = self.layout.run(next).track;
        let stop = match kind {
            ReadAhead::TrackEnd if there != self.track => next,
            ReadAhead::CylinderEnd if there.cylinder != self.track.cylinder => next,
            _ => {
                let stop = self.ahead_stop(next);
                self.readable_until(next, stop)
            }
        };
        if next < stop {
            self.cache.resume_read(id);
            self.ahead = Some(Ahead {
                segment: id,
                track: self.track,
                over: self.track,
                at: depart,
                next,
                stop,
                around: None,
                reached: false,
                known: CachedProgress::default(),
            });
        }
    }
}

/// Place where a read finds its data.
#[derive(Clone, Copy, Debug)]
struct Found {
    hit: Hit,
    /// The segment that has the data, or into which they are read.
    segment: Option<SegmentId>,
    /// Sectors that are in the buffer.
    ready: u64,
}

/// Division of the time of a read from the medium. The arm served the read from `now` on and left
/// at `media_end`, with everything read or given up on. The read completed at `at`.
fn read_breakdown(
    slot: &InFlight,
    motion: &Motion,
    now: Time,
    media_end: Time,
    at: Time,
) -> Breakdown {
    let queue = now.saturating_since(slot.arrived);
    // The arm's work before the command came belongs to no command.
    let since = slot.submitted + queue;
    let mut left = motion.end.saturating_since(since);
    let mut take = |span: Nanos| {
        let part = span.min(left);
        left -= part;
        part
    };
    let transfer = take(motion.transfer);
    let rotation = take(motion.rotation) + (media_end - motion.end);
    let switch = take(motion.switch);
    let seek = take(motion.seek);
    Breakdown {
        queue,
        overhead: left,
        seek,
        switch,
        rotation,
        transfer,
        bus: at - media_end.max(since),
    }
}
