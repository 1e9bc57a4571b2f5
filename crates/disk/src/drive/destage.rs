//! Destages: chooses which dirty data the arm writes when no command waits for them, and in which
//! order.
//!
//! Firmware that keeps dirty data in runs (`Destage::Sweep`) sweeps over the disk. A run that
//! begins where the arm has just written comes first, at no cost, also if it came meanwhile.
//! Otherwise the run that is soonest under the head is next, among the runs ahead and the runs just
//! behind. A run that has waited for longer than [`CacheSpec::destage_age`] goes first, and the
//! sweep continues from there.
//!
//! Reads go before runs. Runs are written in three cases:
//!
//! - While no command waits: after the idle delay, or after a turn without a read if the room for dirty data is more
//!   than half full.
//! - For a waiting command: a write that waits for room, a flush, or a read that cannot be served before. Reads that
//!   came earlier go first.
//! - For their age.
//!
//! Sequential reads may keep writes, or runs of that age, waiting up to the cap. An eighth of the
//! cap then belongs to the runs.
//!
//! A run may cover only part of the medium's sectors at its ends. If the buffer does not have the
//! rest, the drive reads it when the head is soonest there. The run is then complete. The arm does
//! not wait for its sectors to come round again.
//!
//! [`CacheSpec::destage_age`]: crate::profile::CacheSpec::destage_age

use super::Drive;
use super::arm::{Source, Writing};
use crate::cache::SegmentId;
use crate::dirty::DirtyRun;
use crate::ledger::Part;
use crate::profile::FirmwarePolicy;
use crate::queue::Target;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Time, Track};

/// Most runs ahead that are compared. Behind, half as many are.
const COMPARED_RUNS_MAX: usize = 64;

/// Divisor of the age: runs go first for their age once in each such part of the age, at most.
const AGED_PART: u64 = 16;

/// Divisor of the cap on a stream: when runs go before reads, they do for such a part of the cap.
const TURN_PART: u64 = 8;

/// Dirty data to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The dirty sectors of a segment.
    Segment(SegmentId),
    /// Sectors from the beginning of the run that begins at this sector.
    Run(u64),
}

/// The run that is soonest under the head, among the runs considered so far.
struct Soonest {
    /// Positions of the arm and the platter.
    from: Track,
    phase: Nanos,
    /// Slack in cylinders, since a run that is farther on by address may be nearer.
    slack: u32,
    /// Margin that is added to each movement.
    margin: Nanos,
    time: Nanos,
    start: Option<u64>,
}

impl Drive {
    /// The destage that goes before the chosen command, if a command waits for a destage. `choice` is the chosen
    /// command with its estimated time.
    pub(super) fn destage_first(&self, choice: Option<(usize, Nanos)>, now: Time) -> Option<What> {
        let blocked = self.queue.iter().find(|waiting| !waiting.needs_arm)?;
        let Some((place, time)) = choice else {
            return self.next_destage(now);
        };
        if self.cache.spec().keeps_runs() {
            let first = self.queue.iter().find(|waiting| waiting.needs_arm)?;
            // A command that the arm reaches by going on waits only when the cap is reached.
            let goes_on = self.queue.is_by_position() && time.is_zero();
            let before = !goes_on && blocked.arrived < first.arrived;
            return before.then(|| self.next_destage(now)).flatten();
        }
        let what = self.next_destage(now)?;
        let before = if self.queue.is_by_position() {
            let target = self.destage_target(what);
            self.queue
                .estimate(&self.mechanics, self.arm_track(), now, target, time)
                < time
        } else {
            blocked.arrived < self.queue.get(place).arrived
        };
        before.then_some(what)
    }

    /// The time at which an idle drive begins to destage if that is by `until`, else some later
    /// time.
    pub(super) fn quiet_from(&mut self, until: Time) -> Time {
        let delay = self.cache.spec().destage_delay;
        let quiet = self.idle_since.saturating_add(delay);
        let runs = self.cache.runs();
        let Some(oldest) = runs.oldest_since() else {
            return quiet;
        };
        if self.now < self.going.destage_until {
            return self.now;
        }
        let quiet = quiet.min(self.turn_of_runs(oldest));
        if !runs.is_half_full() {
            return quiet;
        }
        // With the room more than half full, a turn without a read is enough. The drive first
        // completes its read-ahead.
        let unread = self.read_last.0.saturating_add(self.turn());
        if unread >= quiet || unread > until || self.ahead.is_none_or(|ahead| ahead.reached) {
            return quiet.min(unread);
        }
        quiet.min(unread.max(self.ahead_ends(self.now)))
    }

    /// Start of the time in which runs go before reads, because the oldest run, which came at `oldest`, is old. Runs do
    /// so for an eighth of the cap on a stream, once in each cap.
    fn turn_of_runs(&self, oldest: Time) -> Time {
        let cap = self.profile.queue.stream_cap;
        let last = self.going.destage_until;
        let again = last.saturating_add(cap - cap / TURN_PART);
        let aged = oldest.saturating_add(self.cache.spec().destage_age);
        aged.max(if last == Time::ZERO { last } else { again })
    }

    /// The destage that goes before reads, if it is the runs' turn.
    pub(super) fn destage_due(&mut self, now: Time) -> Option<What> {
        let oldest = self.cache.runs().oldest_since()?;
        if now < self.going.destage_until {
            return self.next_destage(now);
        }
        let due = self.turn_of_runs(oldest) <= now;
        due.then(|| self.destage_overdue(now)).flatten()
    }

    fn destage_target(&self, what: What) -> Target {
        let start = match what {
            What::Segment(id) => self.cache.get(id).dirty().start,
            What::Run(start) => Lba::new(start),
        };
        Target::new(&self.layout, &self.mechanics, start, Op::Write)
    }

    /// Chooses what to destage next. Among segments, firmware that chooses by position takes the
    /// nearest, other firmware the least recently used.
    pub(super) fn next_destage(&self, now: Time) -> Option<What> {
        if self.cache.spec().keeps_runs() {
            let start = self.next_run(now)?.start;
            return Some(What::Run(start));
        }
        if let FirmwarePolicy::Fifo = self.profile.queue.policy {
            return self.cache.oldest_dirty().map(What::Segment);
        }
        let mut best = (Nanos::MAX, None);
        for (segment, _) in self.cache.to_destage() {
            let target = self.destage_target(What::Segment(segment));
            let time = self
                .queue
                .estimate(&self.mechanics, self.arm_track(), now, target, best.0);
            if time < best.0 {
                best = (time, Some(What::Segment(segment)));
            }
        }
        best.1
    }

    /// The destage for a command that a stream has kept waiting. Runs then go before reads for a
    /// part of the cap.
    pub(super) fn destage_overdue(&mut self, now: Time) -> Option<What> {
        let what = self.next_destage(now)?;
        if self.cache.spec().keeps_runs() && self.going.destage_until <= now {
            let span = self.profile.queue.stream_cap / TURN_PART;
            self.going.destage_until = now + span;
        }
        Some(what)
    }

    /// The run to write next.
    fn next_run(&self, now: Time) -> Option<DirtyRun> {
        let runs = self.cache.runs();
        if self.is_aged(runs.oldest_since()?, now) {
            return runs.oldest();
        }
        let (at, next) = self.write_last;
        if at == now
            && let Some(run) = runs.get(next.get())
            && !self.needs_rest(&run)
        {
            return Some(run);
        }
        let from = self.sweep_from();
        if let FirmwarePolicy::Fifo = self.profile.queue.policy {
            let next = runs.begins_at_or_behind(from);
            return next.or_else(|| runs.begins_at_or_behind(0));
        }
        self.soonest_run(from, now)
    }

    /// Returns true if a run that came at `since` goes first for its age.
    fn is_aged(&self, since: Time, now: Time) -> bool {
        let age = self.cache.spec().destage_age;
        now >= since.saturating_add(age) && now >= self.aged.saturating_add(age / AGED_PART)
    }

    /// The arm's position as an address.
    fn sweep_from(&self) -> u64 {
        match self.ahead {
            Some(ahead) => ahead.next.get(),
            None => self.write_last.max(self.read_last).1.get(),
        }
    }

    /// The run that is soonest under the head, among the runs ahead of `from` and the nearest runs
    /// behind.
    fn soonest_run(&self, from: u64, now: Time) -> Option<DirtyRun> {
        let mut soonest = Soonest {
            from: self.arm_track(),
            phase: self.mechanics.phase_at(now),
            // Addresses within a group run back and forth.
            slack: self.layout.group_cylinders(),
            margin: self.queue.margin(),
            time: Nanos::MAX,
            start: None,
        };
        let (down, up) = self.cache.runs().around(from);
        for (start, target) in up.take(COMPARED_RUNS_MAX) {
            if !self.consider(start, &target, &mut soonest) {
                break;
            }
        }
        for (start, target) in down.take(COMPARED_RUNS_MAX / 2) {
            if !self.consider(start, &target, &mut soonest) {
                break;
            }
        }
        self.cache.runs().get(soonest.start?)
    }

    /// Takes a run if the head reaches it sooner than the best run so far. Returns false if the seek alone, to this run
    /// and to any farther run, takes as long as the best run.
    fn consider(&self, start: u64, target: &Target, soonest: &mut Soonest) -> bool {
        let from = soonest.from;
        let distance = from.cylinder.distance(target.track.cylinder);
        let distance = distance.saturating_sub(soonest.slack);
        if distance > 0 {
            let least = self.mechanics.seek_at_least(distance) + soonest.margin;
            if least >= soonest.time {
                return false;
            }
        }
        let time = if target.track == from {
            // Without a movement no margin for a late arrival is needed.
            self.mechanics.wait(soonest.phase, target.phase)
        } else {
            self.queue
                .estimate_from(&self.mechanics, from, soonest.phase, *target, soonest.time)
        };
        if time < soonest.time {
            (soonest.time, soonest.start) = (time, Some(start));
        }
        true
    }

    /// Returns true if the rest of one of the medium's sectors has to be read before the run can be
    /// written. For a long run only its first sector counts. The sectors behind its last whole
    /// sector can wait.
    fn needs_rest(&self, run: &DirtyRun) -> bool {
        if !self.cache.runs().is_ragged(run) {
            return false;
        }
        let whole = self.physical(run.extent());
        let (start, end) = (Lba::new(run.start), Lba::new(run.end));
        if !self
            .cache
            .has_all(Extent::new(whole.start, start - whole.start))
        {
            return true;
        }
        // A long run is written as far as it is complete.
        let per = u64::from(self.profile.geometry.sectors_per_physical());
        run.end / per * per <= run.start && !self.cache.has_all(Extent::new(end, whole.end() - end))
    }

    /// The arm, free at `now`, sets out to write dirty data.
    pub(super) fn destage(&mut self, what: What, now: Time) {
        debug_assert!(self.writing.is_none());
        // The arm no longer waits for a stream's next read.
        self.going.alone = false;
        self.replan(now);
        let depart = self
            .end_ahead(now, now)
            .at
            .max(self.faults.after_stall(now));
        let (source, extent, media) = match what {
            What::Segment(id) => {
                let extent = self.cache.get(id).dirty();
                self.cache.begin_destage(id);
                (Source::Segment(id), extent, extent)
            }
            What::Run(start) => match self.begin_run(start, depart, now) {
                Some((extent, media)) => (Source::Runs, extent, media),
                None => return,
            },
        };
        self.ledger.plan(depart, extent.start, Part::Overhead);
        self.begin_passing();
        let motion = self.write_media(self.track, depart, media, None, true);
        self.track = motion.track;
        self.arm_free = motion.end;
        if source == Source::Runs {
            self.write_last = (motion.end, extent.end());
        }
        self.writing = Some(Writing {
            source,
            extent,
            until: motion.end,
        });
    }

    /// The sectors of a run to write, and the sectors that the arm writes for them on the medium.
    /// Returns `None` if the rest of a sector has to be read first. The arm has then set out to
    /// read it.
    fn begin_run(&mut self, start: u64, depart: Time, now: Time) -> Option<(Extent, Extent)> {
        let size = u64::from(self.cache.spec().segment_sectors);
        let run = self.cache.runs().get(start).expect("a run begins there");
        if self.is_aged(run.since, now) {
            self.aged = now;
        }
        if self.needs_rest(&run) {
            let few = run.end - run.start <= size;
            let until = if few { run.end } else { start + 1 };
            let lacking = Extent::at(start, until - start);
            self.ledger.plan(depart, lacking.start, Part::Overhead);
            let motion = self.read_rest(self.track, depart, lacking);
            self.track = motion.track;
            self.arm_free = motion.end;
            self.write_last = (motion.end, self.physical(lacking).end());
            self.cache.runs_mut().complete(start);
            return None;
        }
        let whole = self.physical(run.extent());
        let end = Lba::new(run.end);
        let all = self.cache.has_all(Extent::new(end, whole.end() - end));
        let (layout, mechanics) = (&self.layout, &self.mechanics);
        let target = |lba| Target::new(layout, mechanics, Lba::new(lba), Op::Write);
        let (extent, completed) = self.cache.runs_mut().begin(start, size, all, now, target);
        let media = if completed {
            self.physical(extent)
        } else {
            extent
        };
        Some((extent, media))
    }

    /// Puts the data of a write into the runs. Returns false if there is no room for them, or if
    /// the arm is writing older data of their sectors.
    pub(super) fn keep_in_runs(&mut self, extent: Extent, now: Time) -> bool {
        let runs = self.cache.runs();
        if runs.is_writing(extent) || !runs.has_room(extent) {
            return false;
        }
        if self.cache.dirty_overlap(extent).is_some() {
            return false;
        }
        for _ in 0..self.cache.lacks(extent) {
            let Some(id) = self.cache.find_lender() else {
                return false;
            };
            if self.ahead.is_some_and(|ahead| ahead.segment == id) {
                self.replan_ahead(now);
            }
            self.cache.lend(id);
        }
        self.overwrite(extent, None);
        let (layout, mechanics) = (&self.layout, &self.mechanics);
        let target = |lba| Target::new(layout, mechanics, Lba::new(lba), Op::Write);
        self.cache.runs_mut().insert(extent, now, target);
        true
    }
}
