//! Reads: from the buffer, from the medium, or from both.

use super::ahead::Ahead;
use super::bus::{Link, Start, send};
use super::{Breakdown, Drive, Hit, Slot};
use crate::cache::{ReadLookup, SegmentId};
use crate::ledger::Part;
use crate::profile::{Preseek, ReadAhead};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

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

    /// What a command has to go through before it can wait off the bus: processing, and giving up
    /// the bus.
    pub(super) fn waiting_overheads(&mut self, slot: &Slot) -> (Nanos, Nanos) {
        if slot.command.op.is_read() {
            (self.read_overhead(false), self.read_disconnect())
        } else {
            self.write_waiting_overheads(slot)
        }
    }

    /// Sectors that must be in the buffer before a read of `len` asks for the bus.
    fn high_water(&self, len: u64) -> u64 {
        let spec = self.cache.spec();
        let size = u64::from(spec.segment_sectors);
        let mark = if spec.water_by_request {
            size.min(len) as f64 * spec.read_high_water
        } else {
            size as f64 * spec.read_high_water + 0.999_999_999_9
        };
        (mark as u64).max(1)
    }

    fn link(&self, len: u64) -> Link {
        let overhead = &self.profile.overhead;
        let bus = &self.profile.bus;
        Link {
            sector: bus.sector(true),
            hold: bus.hold_for_read || bus.never_disconnect,
            disconnect: self.read_disconnect(),
            reconnect: overhead.first_reselect + overhead.data_preparation + bus.arbitration,
            water: self.high_water(len),
        }
    }

    /// Looks for the data of a read, as of the last time that reading ahead was brought up to date.
    fn find_read(&self, slot: &Slot) -> ReadLookup {
        let extent = slot.command.extent;
        let found = self.cache.find_read(extent);
        if !slot.command.fua {
            return found;
        }
        // What is on the medium counts: dirty data must get there first, clean data do not serve.
        if let Some(id) = self.cache.dirty_overlap(extent) {
            return ReadLookup::Blocked(id);
        }
        match found {
            ReadLookup::Whole(id) | ReadLookup::Partial(id) => {
                let unused = self.cache.get(id).users == 0;
                let ahead = self.ahead.is_some_and(|ahead| ahead.segment == id);
                ReadLookup::Miss((unused && !ahead).then_some(id))
            }
            other => other,
        }
    }

    /// Serves a read from the buffer alone while the arm does something else, if the drive can do
    /// that and the data are all there.
    pub(super) fn serve_hit(&mut self, index: u16, now: Time) -> bool {
        let spec = *self.cache.spec();
        let allowed = spec.sneaky_full_read_hits || spec.sneaky_intermediate_read_hits;
        let slot = self.slots[usize::from(index)];
        if !allowed || slot.command.fua {
            return false;
        }
        self.bring_ahead(now);
        let extent = slot.command.extent;
        let ReadLookup::Whole(id) = self.cache.find_read(extent) else {
            return false;
        };
        if self.is_being_filled(id, now) {
            return false;
        }
        let overhead = self.read_overhead(true) + self.profile.overhead.data_preparation;
        let length = self.profile.bus.sector(true) * extent.len.get();
        let begin = self.bus.squeeze(now + overhead, length);
        let end = begin + length;
        let at = end + self.profile.overhead.read_completion;
        self.last_was_read = true;
        self.use_segment(index, id);
        self.extend_ahead(id, extent);
        let slot = self.slot(index);
        slot.hit = Hit::Full;
        slot.breakdown = Breakdown {
            overhead: now + overhead - slot.submitted,
            bus: at - (now + overhead),
            ..Breakdown::default()
        };
        self.complete(index, at);
        true
    }

    /// Whether a command is reading into the segment and not done with it.
    fn is_being_filled(&self, id: SegmentId, now: Time) -> bool {
        self.ahead
            .is_some_and(|ahead| ahead.segment == id && ahead.at > now)
    }

    fn use_segment(&mut self, index: u16, id: SegmentId) {
        self.cache.touch(id, false);
        self.cache.get_mut(id).users += 1;
        self.slot(index).segment = Some(id);
    }

    fn extend_ahead(&mut self, id: SegmentId, extent: Extent) {
        let layout = &self.layout;
        self.cache.extend_ahead(id, extent, |lba| {
            let track = layout.track_extent_of(lba);
            let sectors = layout.zone_of(extent.start).sectors_per_track;
            (track.start.get(), track.end().get(), u64::from(sectors))
        });
    }

    /// Serves a read with an arm that is free at `now`. If it is `connected`, it has just come and
    /// still has the bus. False if dirty data must reach the medium first; the arm has then set out
    /// to write them.
    pub(super) fn serve_read(&mut self, index: u16, now: Time, connected: bool) -> bool {
        let slot = self.slots[usize::from(index)];
        let extent = slot.command.extent;
        let (start, end) = (extent.start.get(), extent.end().get());
        self.bring_ahead(now);
        let found = self.find_read(&slot);
        if let ReadLookup::Blocked(id) = found {
            self.destage(id, now);
            return false;
        }
        self.replan(now);
        let len = extent.len.get();
        let link = self.link(len);
        let overhead = self.profile.overhead;

        // The data that are there, and whether they can be sent at once.
        let (hit, segment, ready) = match found {
            ReadLookup::Whole(id) => (Hit::Full, Some(id), len),
            ReadLookup::Partial(id) => (
                Hit::Partial,
                Some(id),
                self.cache.get(id).end.max(start) - start,
            ),
            ReadLookup::Miss(id) => (Hit::Miss, id, 0),
            ReadLookup::Blocked(_) => unreachable!("handled above"),
        };
        let at_once = match hit {
            Hit::Full => true,
            Hit::Partial => {
                self.cache.spec().send_partial_hit_at_once || ready >= link.water.min(len)
            }
            _ => false,
        };
        let (arm_ready, send_start) = if connected {
            let miss = self.read_overhead(false);
            let hold = self.profile.bus.never_disconnect;
            let start = if at_once {
                Start::Connected(
                    slot.arrived + self.read_overhead(true) + overhead.data_preparation,
                )
            } else if hold {
                Start::Connected(slot.arrived + miss + overhead.data_preparation)
            } else {
                Start::Disconnected(slot.arrived + miss + link.disconnect)
            };
            (slot.arrived + miss, start)
        } else {
            (slot.ready, Start::Disconnected(slot.disconnected.max(now)))
        };

        // The arm.
        let continues = self
            .ahead
            .filter(|ahead| segment == Some(ahead.segment) && hit != Hit::Miss);
        let leave = if continues.is_some() {
            now
        } else {
            self.end_ahead(now)
        };
        let depart = arm_ready.max(leave).max(now);
        self.pieces.clear();
        let mut motion = None;
        if hit == Hit::Miss {
            if let Some(id) = segment {
                self.cache.begin_read(id, start);
                self.use_segment(index, id);
                self.extend_ahead(id, extent);
            }
            self.ledger.plan(depart, extent.start, Part::Overhead);
            motion = Some(self.read_media(self.track, depart, extent, extent.start, true));
        } else if let Some(id) = segment {
            self.use_segment(index, id);
            self.extend_ahead(id, extent);
            if hit == Hit::Partial {
                let have = Lba::new(self.cache.get(id).end.max(start));
                motion = Some(match continues {
                    Some(ahead) => {
                        let rest = Extent::new(ahead.next, extent.end() - ahead.next);
                        self.read_media(ahead.track, ahead.at, rest, have, false)
                    }
                    None => {
                        self.ledger.plan(depart, have, Part::Overhead);
                        let rest = Extent::new(have, extent.end() - have);
                        self.read_media(self.track, depart, rest, have, true)
                    }
                });
            }
        }
        let mut media_end = now;
        if let Some(motion) = &motion {
            media_end = motion.end;
            self.track = motion.track;
            if let Some(id) = segment {
                if hit == Hit::Miss {
                    self.keep_free_sectors(id, extent.start, motion);
                }
                let segment = self.cache.get_mut(id);
                segment.state = crate::cache::State::Reading;
                self.cache.read_to(id, end);
            }
        }

        // A sector that cannot be read.
        let bad = motion.and_then(|_| self.faults.unreadable(extent));
        if let Some((error, retries)) = bad {
            media_end += self.mechanics.turn() * u64::from(retries);
            self.ledger.plan(media_end, error.lba, Part::Rotation);
            self.slot(index).result = Err(error);
        }

        // The bus.
        let (sent_from, sent) = if bad.is_some() {
            (media_end, media_end)
        } else {
            let times = send(&link, &self.pieces, ready, len, send_start, self.bus.free());
            self.bus.plan(times.0, times.1);
            times
        };
        let at = sent + overhead.read_completion;
        self.ledger.plan(at, extent.start, Part::Overhead);
        self.last_was_read = true;

        let slot = self.slot(index);
        slot.hit = hit;
        slot.breakdown = match &motion {
            Some(motion) => {
                let retried = media_end - motion.end;
                let queue = now.saturating_since(slot.arrived);
                // What the arm did before the command came, it did for nobody.
                let since = slot.submitted + queue;
                let arm = motion.seek + motion.switch + motion.rotation + motion.transfer;
                let before = since.max(motion.end - arm.min(motion.end - Time::ZERO));
                let mut left = motion.end.saturating_since(since);
                let mut take = |span: Nanos| {
                    let part = span.min(left);
                    left -= part;
                    part
                };
                let transfer = take(motion.transfer);
                let rotation = take(motion.rotation) + retried;
                let switch = take(motion.switch);
                let seek = take(motion.seek);
                let _ = before;
                Breakdown {
                    queue,
                    overhead: left,
                    seek,
                    switch,
                    rotation,
                    transfer,
                    bus: at.saturating_since(media_end.max(since)),
                }
            }
            None => {
                let queue = now.saturating_since(slot.arrived);
                let overhead = sent_from - slot.submitted - queue;
                Breakdown {
                    queue,
                    overhead,
                    bus: at - sent_from,
                    ..Breakdown::default()
                }
            }
        };
        self.complete(index, at);

        // What the arm does next.
        let arm_end = media_end.max(now);
        self.arm_free = match self.profile.queue.preseek {
            Preseek::Off => at.max(arm_end),
            Preseek::AtCompletion => sent.max(arm_end),
            Preseek::AtMediaEnd if motion.is_some() => arm_end,
            Preseek::AtMediaEnd => self.arm_free.max(now),
        };
        self.idle_since = self.arm_free.max(at);
        if let Some(id) = segment {
            self.read_on(
                id,
                extent,
                hit,
                continues,
                motion.is_some(),
                depart,
                media_end,
            );
            if bad.is_some() {
                self.ahead = None;
                let segment = self.cache.get_mut(id);
                segment.start = segment.end;
                self.cache.end_read(id);
            }
        }
        true
    }

    /// Sectors in front of the first one wanted that pass under the head while it waits belong to
    /// the segment, if the drive keeps such.
    fn keep_free_sectors(&mut self, id: SegmentId, start: Lba, motion: &super::media::Motion) {
        if !self.cache.spec().read_free_sectors {
            return;
        }
        let track = self.layout.track_extent_of(start);
        let turn = self.mechanics.turn().as_nanos();
        let passed = motion.waited.as_nanos() * u64::from(motion.sectors_per_track) / turn;
        let front = passed.min((start - track.start).get());
        let size = u64::from(self.cache.spec().segment_sectors);
        let segment = self.cache.get_mut(id);
        segment.start = start.get() - front.min(size);
    }

    /// Begins, or goes on, to read ahead behind a request.
    #[allow(clippy::too_many_arguments)]
    fn read_on(
        &mut self,
        id: SegmentId,
        extent: Extent,
        hit: Hit,
        continues: Option<Ahead>,
        read: bool,
        depart: Time,
        media_end: Time,
    ) {
        let spec = *self.cache.spec();
        let last = extent.end() - Sectors::new(1);
        if read {
            self.ahead = None;
            let stop = self.ahead_stop(last);
            let limit = Lba::new(self.cache.get(id).ahead_max).min(stop);
            if spec.read_ahead != ReadAhead::Off && extent.end() < limit {
                self.ahead = Some(Ahead {
                    segment: id,
                    track: self.track,
                    at: media_end,
                    next: extent.end(),
                    stop,
                });
            } else {
                self.cache.end_read(id);
            }
        } else if hit == Hit::Full && continues.is_none() && spec.read_ahead_on_idle_hit {
            let next = Lba::new(self.cache.get(id).end);
            let limit = Lba::new(self.cache.get(id).ahead_max);
            let clean = self.cache.get(id).state == crate::cache::State::Clean;
            if clean && next < limit {
                let there = self.layout.run(next).track;
                let stop = match spec.read_ahead {
                    ReadAhead::TrackEnd if there != self.track => next,
                    ReadAhead::CylinderEnd if there.cylinder != self.track.cylinder => next,
                    _ => self.ahead_stop(next),
                };
                if next < stop {
                    self.cache.get_mut(id).state = crate::cache::State::Reading;
                    self.ahead = Some(Ahead {
                        segment: id,
                        track: self.track,
                        at: depart,
                        next,
                        stop,
                    });
                }
            }
        }
    }
}
