//! Reading ahead. The progress is computed when a caller asks for it.

use super::Drive;
use super::arm::{Ahead, Leave, Progress};
use crate::cache::SegmentId;
use crate::ledger::Part;
use crate::profile::ReadAhead;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Time};

impl Drive {
    /// The sector at which reading on behind `last`, the last sector of a request, has to stop
    /// because of its position.
    pub(super) fn ahead_stop(&mut self, last: Lba) -> Lba {
        match self.cache.spec().read_ahead {
            ReadAhead::TrackEnd => self.last_track.of(&self.layout, last).end(),
            ReadAhead::CylinderEnd => self.layout.cylinder_end(last),
            ReadAhead::Off | ReadAhead::SegmentFull | ReadAhead::NextTrack => {
                Lba::ZERO + self.layout.capacity()
            }
        }
    }

    /// The sector at which reading ahead ends.
    pub(super) fn ahead_limit(&self, ahead: &Ahead) -> Lba {
        Lba::new(self.cache.get(ahead.segment).ahead_max).min(ahead.stop)
    }

    /// Updates the buffer with the sectors that were read ahead by `now`.
    ///
    /// Closes reading ahead that has reached its end: the segment is then clean.
    pub(super) fn bring_ahead(&mut self, now: Time) -> Option<Progress> {
        let progress = self.follow_ahead(now)?;
        if let Progress::Finished(at) = progress {
            self.ledger.settle(at);
            self.ledger.rest(at, Part::ReadAhead);
            self.close_ahead();
            return None;
        }
        Some(progress)
    }

    /// Follows the arm up to `now` and puts the sectors that it has read into the buffer.
    fn follow_ahead(&mut self, now: Time) -> Option<Progress> {
        let limit = self.ahead_limit(self.ahead.as_ref()?);
        let ahead = self.ahead.as_mut()?;
        if now < ahead.at {
            // The arm still reads for the command behind which reading ahead begins.
            return Some(Progress::Reading(ahead.at));
        }
        if let Some((at, until, progress)) = ahead.known.at
            && (at, until) == (now, limit)
        {
            return Some(progress);
        }
        let from = ahead.over;
        let (mut progress, read) = ahead.follow(&self.mechanics, &self.layout, limit, now);
        let moved = ahead.over != from && read < limit && self.mechanics.zero_latency(Op::Read);
        let end = moved.then(|| self.last_track.of(&self.layout, read).end());
        // With zero latency the sectors up to the end of the track may pass first, so they need
        // their places at once.
        let taken = end.filter(|end| *end <= limit).unwrap_or(read);
        self.cache.read_to(ahead.segment, read.get(), taken.get());
        if let Some((at, first)) = ahead.around {
            if now >= at {
                self.cache.read_before(ahead.segment, first.get());
                ahead.around = None;
            }
            if let Progress::Finished(end) = progress {
                let end = end.max(at);
                ahead.reached = true;
                progress = if now >= end {
                    Progress::Finished(end)
                } else {
                    Progress::Rotating(end)
                };
            }
        }
        ahead.known.at = Some((now, limit, progress));
        Some(progress)
    }

    /// Time at which reading ahead ends by itself.
    pub(super) fn ahead_ends(&mut self, now: Time) -> Time {
        let Some(ahead) = &self.ahead else { return now };
        let limit = self.ahead_limit(ahead);
        if ahead.next >= limit {
            return now;
        }
        if let Some((until, ends)) = ahead.known.ends
            && until == limit
        {
            return ends;
        }
        let rest = Extent::new(ahead.next, limit - ahead.next);
        let ends = self
            .mechanics
            .walk(&self.layout, ahead.track, ahead.at, rest, Op::Read, false)
            .last()
            .map_or(now, |step| step.end());
        if let Some(ahead) = &mut self.ahead {
            ahead.known.ends = Some((limit, ends));
        }
        ends
    }

    /// The first sector that reading ahead has not read by `until`.
    pub(super) fn ahead_comes_to(&self, until: Time) -> Lba {
        match self.ahead {
            Some(mut ahead) if ahead.at <= until => {
                let limit = self.ahead_limit(&ahead);
                ahead.follow(&self.mechanics, &self.layout, limit, until).1
            }
            Some(ahead) => ahead.next,
            None => Lba::ZERO,
        }
    }

    /// Drops clean copies of sectors.
    pub(super) fn drop_copies(&mut self, extent: Extent) {
        self.bring_ahead(self.now);
        self.cache.invalidate(extent, None);
        self.drop_around(extent);
    }

    /// Drops copies that a write of `extent` into `writer` makes stale, unless the write changes
    /// the copies.
    pub(super) fn overwrite(&mut self, extent: Extent, writer: Option<SegmentId>) {
        if self.cache.overwrite(extent, writer) {
            self.drop_around(extent);
        }
    }

    /// Excludes the sectors up to the end of `extent` from the sectors that a read of a whole track adds in front.
    fn drop_around(&mut self, extent: Extent) {
        let Some(ahead) = &mut self.ahead else { return };
        let end = Lba::new(self.cache.get(ahead.segment).end);
        if let Some((_, first)) = &mut ahead.around
            && *first < extent.end()
            && extent.start < end
        {
            *first = (*first).max(extent.end()).min(end);
        }
    }

    /// Reading ahead stops before sectors that cannot be read.
    pub(super) fn keep_ahead_readable(&mut self) {
        let Some(mut ahead) = self.ahead else { return };
        let from = Lba::new(self.cache.get(ahead.segment).end);
        ahead.stop = self.readable_until(from, ahead.stop);
        self.ahead = Some(ahead);
    }

    /// End of the sectors from `from` on that can be read, at most `stop`.
    pub(super) fn readable_until(&self, from: Lba, stop: Lba) -> Lba {
        if stop <= from {
            return stop;
        }
        self.faults.readable_until(Extent::new(from, stop - from))
    }

    /// Ends reading into a segment. Waiting reads whose data the segment has need not wait for the arm.
    pub(super) fn end_read(&mut self, id: SegmentId) {
        if self.is_choosing() {
            let segment = self.cache.get(id);
            let held = Extent::at(segment.start, segment.end - segment.start);
            self.queue.note_held(held);
        }
        self.cache.end_read(id);
    }

    /// Stops reading ahead. The segment stays as it is, and the arm where it is.
    fn close_ahead(&mut self) {
        self.going.alone = false;
        let Some(ahead) = self.ahead.take() else {
            return;
        };
        self.end_read(ahead.segment);
        self.track = ahead.over;
    }

    /// The time at which reading ahead reaches the least that it must read, if that is after `now`.
    pub(super) fn ahead_bound_until(&mut self, now: Time) -> Option<Time> {
        let ahead = self.ahead.as_ref()?;
        let limit = self.ahead_limit(ahead);
        let least = Lba::new(self.cache.get(ahead.segment).ahead_min).min(limit);
        if ahead.next >= least {
            return None;
        }
        if let Some((until, step)) = &ahead.known.step
            && *until == limit
            && least <= step.run.end()
        {
            let end = step.sectors_end((least - ahead.next).get() as u32);
            return (end > now).then_some(end);
        }
        let extent = Extent::new(ahead.next, least - ahead.next);
        let walk =
            self.mechanics
                .walk(&self.layout, ahead.track, ahead.at, extent, Op::Read, false);
        let end = walk.last().map(|step| step.end())?;
        (end > now).then_some(end)
    }

    /// Ends reading ahead for a command that came at `now` and needs the arm at `until`.
    ///
    /// The arm finishes the sector or movement that it is in the middle of at `now`. After that it
    /// begins none that it cannot finish by `until`. The sectors that come in between are in the
    /// buffer at once. These sectors are early by less than the processing of the command, and the
    /// command's own lookup came before.
    pub(super) fn end_ahead(&mut self, now: Time, until: Time) -> Leave {
        debug_assert!(until >= now);
        let Some(progress) = self.bring_ahead(now) else {
            return Leave {
                at: now,
                reads: false,
            };
        };
        let in_sector = self.cache.spec().stop_read_ahead_in_sector;
        match progress {
            Progress::Moving(end) if end >= until => {
                // The arm ends up where it was going.
                let next = self.ahead.map(|ahead| ahead.next);
                self.close_ahead();
                self.track = next.map_or(self.track, |next| self.layout.run(next).track);
                return Leave {
                    at: end,
                    reads: false,
                };
            }
            Progress::Reading(end) if end >= until && !in_sector => {
                self.close_ahead();
                return Leave {
                    at: end,
                    reads: true,
                };
            }
            _ => {}
        }
        // The ledger charges the arm's work during the processing of a command to the command.
        let progress = self.follow_ahead(until);
        self.close_ahead();
        Leave {
            at: until,
            reads: !matches!(progress, Some(Progress::Finished(_))),
        }
    }
}
