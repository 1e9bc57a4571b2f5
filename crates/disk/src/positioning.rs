//! A drive as a position-aware policy believes it to be: predicts positioning times.

use crate::drive::bus::{Link, Sending, Start};
use crate::layout::{Layout, Run};
use crate::mechanics::{Mechanics, Step, Walk};
use crate::profile::{FirmwarePolicy, Preseek, Profile, ReadAhead, WriteBack};
use headtime_sched::{Head, HeadTime, Op, Positioning, Predicted};
use headtime_units::{Cylinder, Extent, Lba, Nanos, Sectors, Time, Track};
use std::sync::Arc;

/// Predicts positioning times from the layout, mechanics and overheads of a profile.
///
/// [`Positioning::predict`] answers for a command that is sent at `now` to an idle drive. The arm
/// leaves when the drive has processed the command. A read takes its least positioning time
/// ([`Mechanics::set_up`]). A write waits for its data. [`Predicted::rotation`] contains all of
/// this but the movement, and so may be longer than a turn.
///
/// [`Positioning::follow`] predicts a whole request behind another, whose end the arm may leave by the drive's
/// [`Preseek`]: seeks, skews, transfer, and when the drive tells of its end.
///
/// Processing depends on the command before, which [`Positioning::left_by`] names. A policy that knows
/// only where the head is ([`Positioning::end`]) gets the slower of the two: a missed sector costs
/// a turn, a wait for one only the difference. For the same reason a read on the track where the
/// head may still be reading ahead counts as setting out anew. Writes are those with which the arm
/// sets out at once. Their processing is that of a write that completes in the buffer for
/// [`WriteBack::Appending`](crate::profile::WriteBack) and `Flushed`, else that of a write that
/// completes on the medium (with `Full`: forced unit access).
///
/// It does not predict buffer hits, a drive that is still busy, noise, and (512e) the read before a
/// write of parts of a sector.
///
/// Its platter is at angle zero at time zero. A live scheduler shifts its clock accordingly.
/// Predictions follow the profile, not the drive: give a policy a profile of its own.
#[derive(Clone, Debug)]
pub struct Model {
    profile: Profile,
    layout: Arc<Layout>,
    mechanics: Arc<Mechanics>,
    /// By [`Before`].
    reads: [Nanos; 3],
    writes: [WriteLead; 3],
    /// The same of writes that wait in the drive.
    waiting: [WriteLead; 3],
    /// See [`OverheadSpec`](crate::profile::OverheadSpec).
    minimum_seek_delay: Nanos,
    /// A sector of a write over the bus.
    sector: Nanos,
    /// No track takes a write's sectors faster than the bus brings them.
    bus_keeps_up: bool,
    /// Whether writes end in the buffer.
    buffers_writes: bool,
    /// Sectors of waiting writes that the drive fetches before their turn.
    fetches: u64,
    /// Sectors that it reads on behind a read before the arm leaves.
    reads_on: u64,
    /// No less than how long that takes.
    pub(crate) lingers: Nanos,
    /// What each sector of a read keeps the arm busy at the least, beside that.
    pub(crate) pace: Nanos,
    /// No longer than a sector takes to pass.
    pub(crate) sector_passes: Nanos,
}

/// The last operation of the drive, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Read,
    Write,
    Unknown,
}

impl From<Op> for Before {
    fn from(op: Op) -> Before {
        match op {
            Op::Read => Before::Read,
            Op::Write => Before::Write,
            _ => Before::Unknown,
        }
    }
}

/// The delays of a write between its submission and the time at which the arm can write.
#[derive(Clone, Copy, Debug)]
struct WriteLead {
    /// Until the arm may leave.
    arm: Nanos,
    /// Until the bus begins to bring data.
    data: Nanos,
    /// From the end of its data until it is off the bus.
    disconnect: Nanos,
    /// From the end on the medium until it has the bus again.
    reselect: Nanos,
}

impl WriteLead {
    /// The longer of each.
    fn max(self, other: WriteLead) -> WriteLead {
        WriteLead {
            arm: self.arm.max(other.arm),
            data: self.data.max(other.data),
            disconnect: self.disconnect.max(other.disconnect),
            reselect: self.reselect.max(other.reselect),
        }
    }
}

/// A track and a point of the turn, of a request or of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelPlace {
    /// The track.
    pub track: Track,
    /// When in a turn the sector begins (or, for where a head is left, ends).
    pub phase: Nanos,
    /// If the request writes: how long its data must have been coming for the head to begin.
    supply: Nanos,
    /// If it is where a head is left: after what.
    before: Before,
    /// And for how long the bus is busy from when the arm is free.
    sends: Nanos,
}

impl Model {
    /// The model of a profile.
    pub fn new(profile: &Profile) -> Model {
        let spec = &profile.overhead;
        let (read, write) = (spec.read_miss_after_read, spec.read_miss_after_write);
        let reads = [read, write, read.max(write)].map(|time| spec.per_command + time);
        let (after_read, after_write) = if profile.cache.write_back.sets_out() {
            (spec.write_hit_after_read, spec.write_hit_after_write)
        } else {
            (spec.write_miss_after_read, spec.write_miss_after_write)
        };
        let arbitration = profile.bus.arbitration;
        let lead = |processed: Nanos| WriteLead {
            arm: spec.per_command + processed,
            data: spec.per_command + processed + spec.data_preparation,
            disconnect: spec.write_disconnect,
            reselect: spec.first_reselect + arbitration,
        };
        let (after_read, after_write) = (lead(after_read), lead(after_write));
        let first_after_write = match spec.early_write_disconnect {
            // The drive does so for a write after another write.
            Some(early) if !profile.bus.never_disconnect => WriteLead {
                arm: spec.per_command + early.command + early.seek_delay,
                data: spec.per_command
                    + early.command
                    + early.first_disconnect
                    + early.between
                    + spec.first_reselect
                    + spec.data_preparation
                    + arbitration,
                disconnect: early.second_disconnect,
                reselect: spec.other_reselect + arbitration,
            },
            _ => after_write,
        };
        let leads = |after_write: WriteLead| [after_read, after_write, after_read.max(after_write)];
        let (layout, mechanics) = (Layout::new(profile), Mechanics::new(profile));
        let sector = profile.bus.sector(false);
        let [_, longest] = profile.layout.sectors_per_track();
        let spares = profile.layout.map.iter().flat_map(|map| &map.spare_tracks);
        let longest = spares.fold(longest, |longest, spare| {
            longest.max(spare.sectors_per_track)
        });
        let reads_on = match &profile.cache {
            cache if !cache.enabled || cache.read_ahead == ReadAhead::Off => 0,
            cache if cache.stop_read_ahead_in_sector => u64::from(cache.read_ahead_min),
            cache => u64::from(cache.read_ahead_min).max(1),
        };
        // Slots differ by a nanosecond, and with some drives nothing is read on over the end of a track.
        let sector_passes =
            (mechanics.turn() / u64::from(longest.max(1))).saturating_sub(Nanos::from_nanos(1));
        let lingers = match (profile.queue.preseek, profile.cache.read_ahead) {
            (Preseek::AtMediaEnd, ReadAhead::SegmentFull | ReadAhead::NextTrack) => {
                sector_passes * reads_on
            }
            (Preseek::AtMediaEnd, _) => Nanos::ZERO,
            (Preseek::AtCompletion, _) => sector_passes.min(profile.bus.sector(true)),
            (Preseek::Off, _) => sector_passes.min(profile.bus.sector(true)) + spec.read_completion,
        };
        let pace = match profile.queue.preseek {
            Preseek::AtMediaEnd => Nanos::ZERO,
            Preseek::AtCompletion | Preseek::Off => profile.bus.sector(true),
        };
        Model {
            lingers,
            pace,
            sector_passes,
            bus_keeps_up: sector <= mechanics.turn() / u64::from(longest.max(1)),
            layout: Arc::new(layout),
            mechanics: Arc::new(mechanics),
            reads,
            writes: leads(first_after_write),
            waiting: leads(after_write),
            minimum_seek_delay: spec.minimum_seek_delay,
            sector,
            fetches: match &profile.cache {
                cache if cache.write_prebuffering => u64::MAX,
                cache if profile.queue.policy != FirmwarePolicy::Fifo => {
                    u64::from(cache.write_segments) * u64::from(cache.segment_sectors)
                }
                _ => 0,
            },
            buffers_writes: profile.cache.enabled && profile.cache.write_back != WriteBack::Off,
            reads_on,
            profile: profile.clone(),
        }
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Its layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its mechanics.
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// The longest that the drive processes a read.
    pub(crate) fn reads_processed(&self) -> Nanos {
        self.reads[Before::Unknown as usize]
    }

    /// The place of a request of `len` sectors that begins with a run; a write's will do for any operation.
    fn start_of(&self, run: &Run, len: u64, op: Op) -> ModelPlace {
        ModelPlace {
            track: run.track,
            phase: self.mechanics.phase(run.angle(0)),
            supply: match op.is_read() {
                true => Nanos::ZERO,
                false => self.supply(run, len),
            },
            before: Before::Unknown,
            sends: Nanos::ZERO,
        }
    }

    fn clamp(&self, lba: Lba) -> Lba {
        lba.min(Lba::ZERO + self.layout.capacity() - Sectors::new(1))
    }

    /// How long data must have been coming for the head to begin to write `len` sectors, of which
    /// `run` is what lies on the first track, and not to run out of them there.
    ///
    /// Where the bus is so slow that it would take a whole turn's start, the head begins, and waits
    /// for turns in between.
    fn supply(&self, run: &Run, len: u64) -> Nanos {
        let lead = self.profile.overhead.write_lead(len);
        let first = self.sector * lead.max(1);
        let behind = match self.bus_keeps_up {
            true => Nanos::ZERO,
            false => {
                let here = len.min(u64::from(run.len)).max(1);
                let slot = self.mechanics.turn() / u64::from(run.sectors_per_track);
                self.sector.saturating_sub(slot) * (here - 1)
            }
        };
        if behind < self.mechanics.turn() {
            first.max(self.sector + behind)
        } else {
            first
        }
    }

    /// Returns true if a command that is sent then comes to a drive that takes it up at once.
    fn is_idle(head: &Head<ModelPlace>, sent: Time) -> bool {
        head.free + head.place.sends <= sent
    }

    /// The delays of a write.
    fn lead(&self, head: &Head<ModelPlace>, sent: Time) -> &WriteLead {
        let leads = match Model::is_idle(head, sent) {
            true => &self.writes,
            false => &self.waiting,
        };
        &leads[head.place.before as usize]
    }

    /// When the data of a write of `len` sectors begin to come. Those of a write that waits come when the arm is free, unless
    /// the drive fetches them before.
    fn data(&self, head: &Head<ModelPlace>, sent: Time, len: u64) -> Time {
        let lead = self.lead(head, sent);
        let data = sent + lead.data;
        if Model::is_idle(head, sent) || len <= self.fetches {
            return data;
        }
        let spec = &self.profile.overhead;
        let off_bus = match self.profile.cache.write_back.sets_out() {
            true => sent + lead.arm + spec.write_disconnect,
            false => sent + lead.arm,
        };
        let reconnect = spec.first_reselect + spec.data_preparation + self.profile.bus.arbitration;
        (off_bus.max(head.free) + reconnect).max(head.free + head.place.sends)
    }

    /// When the arm leaves for a command, to which it moves for `way`.
    fn departs(&self, head: &Head<ModelPlace>, sent: Time, way: Nanos, op: Op) -> Time {
        if op.is_read() {
            return head.free.max(sent + self.reads[head.place.before as usize]);
        }
        let processed = sent + self.lead(head, sent).arm;
        head.free.max(processed) + self.minimum_seek_delay.saturating_sub(way)
    }

    /// When it could begin with a command of `len` sectors if it were over its first sector.
    fn ready(
        &self,
        head: &Head<ModelPlace>,
        sent: Time,
        to: &ModelPlace,
        way: Nanos,
        op: Op,
        len: u64,
    ) -> Time {
        let there = self.departs(head, sent, way, op) + way;
        match op.is_read() {
            true => there + self.mechanics.set_up(way, op),
            false => there.max(self.data(head, sent, len) + to.supply),
        }
    }

    /// The same for any sector of a track; a write takes one sector over the bus before.
    pub(crate) fn ready_at(
        &self,
        head: &Head<ModelPlace>,
        sent: Time,
        track: Track,
        way: Nanos,
        op: Op,
    ) -> Time {
        let to = ModelPlace {
            track,
            phase: Nanos::ZERO,
            supply: self.sector,
            before: Before::Unknown,
            sends: Nanos::ZERO,
        };
        self.ready(head, sent, &to, way, op, 1)
    }

    /// Until when the head may be busy with a read, so that it is ready [as above](Model::ready_at) by `by`.
    pub(crate) fn busy_until(&self, sent: Time, way: Nanos, by: Time, op: Op) -> Option<Time> {
        let before = Before::Read as usize;
        let (arm, way) = if op.is_read() {
            (self.reads[before], way + self.mechanics.set_up(way, op))
        } else {
            let lead = &self.waiting[before];
            if sent + lead.data + self.sector > by {
                return None;
            }
            let data = match self.fetches {
                0 => lead.data - lead.arm + lead.reselect + self.sector,
                _ => Nanos::ZERO,
            };
            (lead.arm, way.max(self.minimum_seek_delay).max(data))
        };
        let leaves = Time::from_nanos(by.as_nanos().checked_sub(way.as_nanos())?);
        (sent + arm <= leaves).then_some(leaves)
    }

    /// The extent, or as much of it as the model's disk has: at least its last sector.
    fn within(&self, extent: Extent) -> Extent {
        let start = self.clamp(extent.start);
        let most = Lba::ZERO + self.layout.capacity() - start;
        Extent::new(start, extent.len.clamp(Sectors::new(1), most))
    }

    /// Returns true if the drive reads some sectors behind each read before it does anything else.
    fn must_read_on(&self) -> bool {
        self.reads_on > 0 && self.profile.cache.read_ahead_min > 0
    }

    /// Where a drive that reads on behind a read, which ends at `end`, leaves the head, and when, if what it reads is not all directly
    /// behind that: at the end of a track it is on the way to the next one, and goes there first.
    fn reads_on_over(&self, next: Lba, place: ModelPlace, end: Time) -> (ModelPlace, Time) {
        let capacity = Lba::ZERO + self.layout.capacity();
        let last = next - Sectors::new(1);
        let stop = match self.profile.cache.read_ahead {
            ReadAhead::Off => next,
            ReadAhead::TrackEnd => self.layout.track_extent_of(last).end(),
            ReadAhead::CylinderEnd => self.layout.cylinder_end(last),
            ReadAhead::SegmentFull | ReadAhead::NextTrack => capacity,
        };
        let least = u64::from(self.profile.cache.read_ahead_min);
        let extent = Extent::new(next, (stop - next).min(Sectors::new(self.reads_on)));
        let steps = self
            .mechanics
            .walk(&self.layout, place.track, end, extent, Op::Read, false);
        let (mut track, mut free) = (place.track, end);
        for step in steps {
            // Of what it need not read it finishes the movement alone.
            let moves = step.seek + step.switch;
            free = match least == 0 && track != step.run.track {
                true => step.begin + moves,
                false => step.end(),
            };
            track = step.run.track;
        }
        (ModelPlace { track, ..place }, free)
    }
}

/// What the steps of a request come to.
#[derive(Debug)]
struct Passed {
    seek: Nanos,
    transfer: Nanos,
    /// When the last step has ended.
    end: Time,
    /// If it is a read, how long the sectors behind the last one take that the drive must read too.
    behind: Nanos,
    /// Whether the last sector was taken before others.
    wrapped: bool,
}

impl Model {
    /// A request that is one step.
    #[inline(always)]
    fn passed_one(&self, step: &Step, sending: Option<&mut Sending>) -> Passed {
        let mut passed = Passed {
            seek: step.seek + step.switch,
            transfer: step.transfer,
            end: step.end(),
            behind: Nanos::ZERO,
            wrapped: false,
        };
        if let Some(sending) = sending {
            sending.take(step);
            passed.behind = self.behind(step);
        }
        passed
    }

    /// A request of several steps, from when it `begin`s.
    #[inline(never)]
    fn passed(
        &self,
        steps: Walk<'_>,
        extent: Extent,
        begin: Time,
        mut sending: Option<&mut Sending>,
    ) -> Passed {
        let mut passed = Passed {
            seek: Nanos::ZERO,
            transfer: Nanos::ZERO,
            end: begin,
            behind: Nanos::ZERO,
            wrapped: false,
        };
        for step in steps {
            passed.seek += step.seek + step.switch;
            passed.transfer += step.transfer;
            passed.end = step.end();
            // A zero-latency access may take the last sector before others.
            passed.wrapped = step.extent().end() != extent.end();
            if let Some(sending) = &mut sending {
                sending.take(&step);
                passed.behind = match passed.wrapped {
                    true => Nanos::ZERO,
                    false => self.behind(&step),
                };
            }
        }
        passed
    }

    /// A read on its way to the host, nothing of which the buffer has.
    fn sending(&self, head: &Head<ModelPlace>, sent: Time, extent: Extent) -> Sending {
        let spec = &self.profile.overhead;
        let (read, write) = (
            spec.read_disconnect_after_read,
            spec.read_disconnect_after_write,
        );
        let disconnect = match head.place.before {
            Before::Read => read,
            Before::Write => write,
            Before::Unknown => read.max(write),
        };
        let link = Link::new(&self.profile, extent.len.get(), disconnect);
        let processed = sent + self.reads[head.place.before as usize];
        let start = match Model::is_idle(head, sent) {
            true if self.profile.bus.never_disconnect => {
                Start::Connected(processed + spec.data_preparation)
            }
            true => Start::Disconnected(processed + disconnect),
            false => Start::Disconnected(head.free.max(processed + disconnect)),
        };
        Sending::new(link, extent, 0, start, head.free + head.place.sends)
    }

    /// How long the sectors behind a step take that the drive must read too.
    #[inline(always)]
    fn behind(&self, step: &Step) -> Nanos {
        (step.end() - step.sectors_end(step.run.len - 1)) * self.reads_on
    }
}

impl Positioning for Model {
    type Place = ModelPlace;

    fn start(&self, extent: Extent) -> ModelPlace {
        let run = self.layout.run(self.clamp(extent.start));
        self.start_of(&run, extent.len.get(), Op::Write)
    }

    fn end(&self, extent: Extent) -> ModelPlace {
        let last = extent.end().max(extent.start + Sectors::new(1)) - Sectors::new(1);
        let run = self.layout.run(self.clamp(last));
        ModelPlace {
            track: run.track,
            phase: self.mechanics.phase(run.angle(1)),
            supply: Nanos::ZERO,
            before: Before::Unknown,
            sends: Nanos::ZERO,
        }
    }

    fn left_by(&self, extent: Extent, op: Op) -> ModelPlace {
        ModelPlace {
            before: Before::from(op),
            ..self.end(extent)
        }
    }

    fn holds_writes(&self) -> Nanos {
        self.profile.cache.holds_writes()
    }

    fn turn(&self) -> Option<Nanos> {
        Some(self.mechanics.turn())
    }

    fn predict(&self, now: Time, from: ModelPlace, to: ModelPlace, op: Op) -> Predicted {
        let head = Head {
            place: from,
            free: now,
        };
        self.predict_behind(&head, now, to, op)
    }

    fn predict_behind(
        &self,
        head: &Head<ModelPlace>,
        sent: Time,
        to: ModelPlace,
        op: Op,
    ) -> Predicted {
        let seek = self.seek(head.place, to, op);
        let ready = self.ready(head, sent, &to, seek, op, 1);
        let wait = self
            .mechanics
            .wait(self.mechanics.phase_at(ready), to.phase);
        Predicted {
            seek,
            rotation: ready - head.free.max(sent) - seek + wait,
        }
    }

    fn follow(
        &self,
        head: &Head<ModelPlace>,
        sent: Time,
        extent: Extent,
        op: Op,
    ) -> HeadTime<ModelPlace> {
        let extent = self.within(extent);
        let run = self.layout.run(extent.start);
        let len = extent.len.get();
        let to = self.start_of(&run, len, op);
        let way = self.mechanics.reposition(head.place.track, to.track, op);
        let ready = self.ready(head, sent, &to, way.total(), op, len);
        let (spec, bus) = (&self.profile.overhead, &self.profile.bus);
        let mut sending = op.is_read().then(|| self.sending(head, sent, extent));
        let written = self.data(head, sent, len) + self.sector * len.max(spec.write_lead(len));
        // A write's sectors are taken as they come if all data are there when the arm leaves.
        let zero_latency = self.mechanics.zero_latency(op)
            && (op.is_read() || written <= self.departs(head, sent, way.total(), op));
        let leaves = ready - way.total();
        let begin = head.free.max(sent);
        // Most requests are one run, for which a walk is a long way round.
        let one = u64::from(run.len) >= len;
        let mut behind_on_track = u64::from(run.len).saturating_sub(len);
        let run = run.truncated(len);
        let one = one.then(|| self.mechanics.one_step(run, leaves, way, zero_latency));
        let (passed, mut place) = match one.flatten() {
            Some(step) => {
                let place = ModelPlace {
                    track: run.track,
                    phase: self.mechanics.phase(run.angle(run.len)),
                    supply: Nanos::ZERO,
                    before: Before::from(op),
                    sends: Nanos::ZERO,
                };
                (self.passed_one(&step, sending.as_mut()), place)
            }
            None => {
                let (layout, from) = (&self.layout, head.place.track);
                let walk = self
                    .mechanics
                    .walk(layout, from, leaves, extent, op, zero_latency);
                let last = extent.end() - Sectors::new(1);
                behind_on_track = u64::from(layout.run(last).len) - 1;
                let passed = self.passed(walk, extent, begin, sending.as_mut());
                (passed, self.left_by(extent, op))
            }
        };
        let Passed {
            seek,
            transfer,
            end,
            behind,
            wrapped,
        } = passed;
        let size = u64::from(self.profile.cache.segment_sectors);
        let (bus_ends, told, completion, free) = match sending {
            Some(sending) => {
                let (_, over_bus) = sending.end();
                // What must be read behind a request whose last sector came first comes when the rest of it has passed again.
                let over = behind_on_track < self.reads_on || wrapped && self.must_read_on();
                let mut free = end + behind;
                if over {
                    (place, free) = self.reads_on_over(extent.end(), place, end);
                }
                // What does not fit into the segment is read when the bus has made room.
                let room = match len > size {
                    true => over_bus.saturating_sub(bus.sector(true) * size),
                    false => end,
                };
                (
                    over_bus,
                    over_bus.max(end),
                    spec.read_completion,
                    free.max(room),
                )
            }
            None => {
                let lead = self.lead(head, sent);
                // More than the buffer holds comes when the rest is on the medium.
                let over_bus = match len > size {
                    true => written.max(end),
                    false => written,
                };
                let told = match bus.never_disconnect {
                    true => over_bus.max(end),
                    false => (over_bus + lead.disconnect).max(end) + lead.reselect,
                };
                (over_bus, told, spec.write_completion, end)
            }
        };
        let done = told + completion;
        let free = match self.profile.queue.preseek {
            // A drive that reads on has begun with the next sectors, and finishes what it must read.
            Preseek::AtMediaEnd => free,
            Preseek::AtCompletion => told,
            Preseek::Off => done,
        };
        let free = free.max(end);
        place.sends = bus_ends.saturating_since(free);
        let on_medium = op.is_read() || !self.buffers_writes;
        // A drive that destages when it sees fit leaves the arm where it is.
        let stays = !on_medium && !self.profile.cache.write_back.sets_out();
        let buffered = stays.then(|| {
            let data = sent + self.writes[head.place.before as usize].data;
            data + self.sector * len + spec.write_completion
        });
        HeadTime {
            seek,
            rotation: (end - begin).saturating_sub(seek + transfer),
            transfer,
            head: Head { place, free },
            done,
            on_medium,
            buffered,
        }
    }

    fn seek(&self, from: ModelPlace, to: ModelPlace, op: Op) -> Nanos {
        self.mechanics.reposition(from.track, to.track, op).total()
    }

    fn seek_at_least(&self, from: ModelPlace, lba: Lba) -> Nanos {
        let run = self.layout.run(self.clamp(lba));
        self.seek_at_least_to(from, self.start_of(&run, 1, Op::Read), lba)
    }

    #[inline]
    fn seek_at_least_to(&self, from: ModelPlace, to: ModelPlace, _: Lba) -> Nanos {
        let (here, there) = (from.track.cylinder, to.track.cylinder);
        // Within a group of cylinders, a higher address may be on a lower cylinder.
        let slack = self.layout.group_cylinders() - 1;
        let mut distance = here.distance(there).saturating_sub(slack);
        let strays = self.layout.strays();
        if !strays.is_empty() {
            // A far address may have been moved to a near cylinder. And the address of a sector there says nothing
            // of where it is.
            let at = strays.partition_point(|&stray| stray < here.0);
            if strays.get(at) == Some(&here.0) || strays.binary_search(&there.0).is_ok() {
                return Nanos::ZERO;
            }
            let around = strays[at.saturating_sub(1)..].iter().take(2);
            let nearest = around.map(|&stray| here.distance(Cylinder(stray))).min();
            distance = distance.min(nearest.unwrap_or(0));
        }
        self.mechanics.seek_at_least(distance)
    }
}
