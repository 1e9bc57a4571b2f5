//! Assumed model of a drive for a position-aware policy: predicts positioning times.

use crate::drive::bus::{Fed, Feed, Link, Sending, Start};
use crate::layout::{Layout, Run};
use crate::mechanics::{Access, Mechanics};
use crate::profile::{FirmwarePolicy, Preseek, Profile, ReadAhead, WriteBack};
use crate::twin::DriveTwin;
use headtime_sched::{HeadAfter, HeadTime, Op, Positioning, Predicted, Twin};
use headtime_units::{Cylinder, Extent, Lba, Nanos, Sectors, Time, Track};
use std::sync::Arc;

/// Predicts positioning times from the layout, mechanics and overheads of a profile.
///
/// [`Positioning::predict`] answers for a command that is sent at `now` to an idle drive. The arm
/// leaves when the drive has processed the command. A read takes its least positioning time
/// ([`Mechanics::set_up`]). A write waits for its data. [`Predicted::rotation`] contains all of
/// this but the movement, and so may be longer than a turn.
///
/// [`Positioning::follow`] predicts a whole request behind another: seeks, skews, transfer, and the time at which the
/// drive reports the end. The drive's [`Preseek`] says when the arm may leave the earlier request.
///
/// Processing depends on the command before, which [`Positioning::left_by`] names. A policy that knows only the head's
/// position ([`Positioning::end`]) gets the slower of the two. The reason is that a missed sector costs a turn, and a
/// wait for a sector only the difference. For the same reason a read on the track where the head may still be reading
/// ahead counts as setting out anew. Writes are modelled as if the arm left at once. With
/// [`WriteBack::Appending`](crate::profile::WriteBack) and `Flushed`, a write has the processing of a write that
/// completes in the buffer. Otherwise a write has the processing of a write that completes on the medium (with `Full`:
/// forced unit access).
///
/// A model predicts neither noise nor (512e) the read before a write of parts of a sector. The [`Twin`] predicts buffer hits,
/// reading ahead between commands, and writing back.
///
/// The model's platter is at angle zero at time zero. A live scheduler shifts its clock
/// accordingly. Predictions follow the profile, not the drive: give a policy a profile of its own.
///
/// Invariant: the last value of `reads`, `writes`, `waiting` and `buffered`, for an unknown last operation, is at
/// least each of the others.
#[derive(Clone, Debug)]
pub struct Model {
    profile: Profile,
    layout: Arc<Layout>,
    mechanics: Arc<Mechanics>,
    /// Processing of reads, by [`Before`]. The last is the longest.
    pub(crate) reads: [Nanos; 3],
    writes: [WriteLead; 3],
    /// Delays of writes that wait in the drive.
    waiting: [WriteLead; 3],
    /// Processing of writes that end in the buffer without the arm.
    buffered: [Nanos; 3],
    /// A sector of a write over the bus.
    sector: Nanos,
    /// No track takes a write's sectors faster than the bus brings them.
    bus_keeps_up: bool,
    /// Sectors of waiting writes that the drive fetches before their turn.
    fetches: u64,
    /// Sectors that the drive reads on behind a read before the arm leaves.
    reads_on: u64,
    /// Upper bound of the time for which the drive so reads on.
    pub(crate) lingers: Nanos,
    /// Least time for which each sector of a read keeps the arm busy, beside `lingers`.
    pub(crate) pace: Nanos,
    /// Lower bound of the time in which a sector passes.
    pub(crate) sector_passes: Nanos,
}

/// The last operation of the drive, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    Read,
    Write,
    #[default]
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
    /// Delay until the arm may leave.
    arm: Nanos,
    /// Delay until the bus begins to bring data.
    data: Nanos,
    /// Giving up the bus behind the data.
    disconnect: Nanos,
    /// Getting the bus again to tell the end.
    reselect: Nanos,
}

impl WriteLead {
    /// The longer delay of each kind.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelPlace {
    /// The track.
    pub track: Track,
    /// Point of the turn at which the sector begins. For the position where a head is left: at
    /// which it ends.
    pub phase: Nanos,
    /// For a write: time for which its data must have been coming before the head begins.
    supply: Nanos,
    /// For the position where a head is left: the last operation.
    before: Before,
    /// Time between the moment at which the drive takes up a command and the moment at which the arm is free.
    early: Nanos,
    /// Time for which the bus is busy once the arm is free.
    sends: Nanos,
}

impl Model {
    /// The model of a profile.
    pub fn new(profile: &Profile) -> Model {
        let spec = &profile.overhead;
        let either = |after_read: Nanos, after_write: Nanos| {
            let unknown = after_read.max(after_write);
            [after_read, after_write, unknown].map(|time| spec.per_command + time)
        };
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
        // Only a write to the segment used last disconnects early.
        let same_segment = profile.cache.dedicated_write_segment || profile.cache.segments == 1;
        let first_after_write = match spec.early_write_disconnect {
            // The drive does so for a write after another write.
            Some(early) if !profile.bus.never_disconnect && same_segment => WriteLead {
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
            // One more sector is under the head when the drive looks for a command.
            cache => u64::from(cache.read_ahead_min) + 1,
        };
        // Slots differ by a nanosecond. Some drives do not read on over the end of a track.
        let sector_passes =
            (mechanics.turn() / u64::from(longest.max(1))).saturating_sub(Nanos::from_nanos(1));
        let lingers = match (profile.queue.preseek, profile.cache.read_ahead) {
            (
                Preseek::AtMediaEnd | Preseek::JustInTime,
                ReadAhead::SegmentFull | ReadAhead::NextTrack,
            ) => sector_passes * reads_on,
            (Preseek::AtMediaEnd | Preseek::JustInTime, _) => Nanos::ZERO,
            (Preseek::AtCompletion, _) => sector_passes.min(profile.bus.sector(true)),
            (Preseek::Off, _) => sector_passes.min(profile.bus.sector(true)) + spec.read_completion,
        };
        let pace = match profile.queue.preseek {
            Preseek::AtMediaEnd | Preseek::JustInTime => Nanos::ZERO,
            Preseek::AtCompletion | Preseek::Off => profile.bus.sector(true),
        };
        Model {
            lingers,
            pace,
            sector_passes,
            bus_keeps_up: sector <= mechanics.turn() / u64::from(longest.max(1)),
            layout: Arc::new(layout),
            mechanics: Arc::new(mechanics),
            reads: either(spec.read_miss_after_read, spec.read_miss_after_write),
            buffered: either(spec.write_hit_after_read, spec.write_hit_after_write),
            writes: leads(first_after_write),
            waiting: leads(after_write),
            sector,
            fetches: match &profile.cache {
                cache if cache.write_prebuffering => u64::MAX,
                cache if profile.queue.policy != FirmwarePolicy::Fifo => {
                    u64::from(cache.write_segments) * u64::from(cache.segment_sectors)
                }
                _ => 0,
            },
            reads_on,
            profile: profile.clone(),
        }
    }

    /// A copy whose reads are zero-latency accesses, or not.
    pub fn with_zero_latency_reads(&self, taken: bool) -> Model {
        let mut other = self.clone();
        other.profile = (self.profile)
            .with(|spec| spec.access.zero_latency_read = taken)
            .expect("fits any drive");
        other.mechanics = Arc::new(Mechanics::new(&other.profile));
        other
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Layout of the model.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Mechanics of the model.
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
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
            ..ModelPlace::default()
        }
    }

    fn clamp(&self, lba: Lba) -> Lba {
        lba.min(Lba::ZERO + self.layout.capacity() - Sectors::new(1))
    }

    /// Time for which data must have been coming before the head begins to write `len` sectors, so
    /// that the head does not run out of data on the first track. `run` has the sectors on the
    /// first track.
    ///
    /// If the bus is so slow that this time would be a whole turn, the head begins sooner and waits
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

    /// Time at which a drive that has sent all data takes up a command.
    fn takes_up(head: &HeadAfter<ModelPlace>) -> Time {
        head.free.saturating_sub(head.place.early)
    }

    /// Returns true if the drive takes up a command at once.
    fn is_idle(head: &HeadAfter<ModelPlace>, sent: Time) -> bool {
        let sends = head.place.sends;
        Model::takes_up(head) <= sent && (sends.is_zero() || head.free + sends <= sent)
    }

    /// The delays of a write.
    fn lead(&self, head: &HeadAfter<ModelPlace>, sent: Time) -> &WriteLead {
        let leads = match Model::is_idle(head, sent) {
            true => &self.writes,
            false => &self.waiting,
        };
        &leads[head.place.before as usize]
    }

    /// Time at which the data of a write of `len` sectors begin to come. A waiting write gets its data when the arm is free, unless
    /// the drive prefetches written data.
    fn data(&self, head: &HeadAfter<ModelPlace>, sent: Time, len: u64) -> Time {
        let lead = self.lead(head, sent);
        if Model::is_idle(head, sent) || len <= self.fetches {
            return sent + lead.data;
        }
        let spec = &self.profile.overhead;
        let off_bus = match self.profile.cache.write_back.sets_out() {
            true => sent + lead.arm + spec.write_disconnect,
            false => sent + lead.arm,
        };
        let reconnect = spec.first_reselect + spec.data_preparation + self.profile.bus.arbitration;
        (off_bus.max(Model::takes_up(head)) + reconnect).max(head.free + head.place.sends)
    }

    /// Time at which the arm leaves for a command. The movement takes `way`.
    fn departs(&self, head: &HeadAfter<ModelPlace>, sent: Time, way: Nanos, op: Op) -> Time {
        if op.is_read() {
            return head.free.max(sent + self.reads[head.place.before as usize]);
        }
        let processed = sent + self.lead(head, sent).arm;
        head.free.max(processed) + self.profile.overhead.minimum_seek_delay.saturating_sub(way)
    }

    /// Earliest time at which the drive could transfer the first of `len` sectors, without rotation.
    fn ready(
        &self,
        head: &HeadAfter<ModelPlace>,
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

    /// As [`Model::ready`], for any sector of a track. A write first takes one sector over the bus.
    pub(crate) fn ready_at(
        &self,
        head: &HeadAfter<ModelPlace>,
        sent: Time,
        track: Track,
        way: Nanos,
        op: Op,
    ) -> Time {
        let to = ModelPlace {
            track,
            supply: self.sector,
            ..ModelPlace::default()
        };
        self.ready(head, sent, &to, way, op, 1)
    }

    /// Latest time until which the head may be busy with a read and still be ready ([`Model::ready_at`]) by `by`.
    /// `None` if there is none.
    pub(crate) fn busy_until(&self, sent: Time, way: Nanos, by: Time, op: Op) -> Option<Time> {
        let before = Before::Read as usize;
        let (arm, way) = if op.is_read() {
            (self.reads[before], way + self.mechanics.set_up(way, op))
        } else {
            let lead = &self.waiting[before];
            if sent + lead.data + self.sector > by {
                return None;
            }
            let spec = &self.profile.overhead;
            let reconnect =
                spec.first_reselect + spec.data_preparation + self.profile.bus.arbitration;
            let data = match self.fetches {
                0 => reconnect + self.sector,
                _ => Nanos::ZERO,
            };
            (
                lead.arm,
                way.max(self.profile.overhead.minimum_seek_delay).max(data),
            )
        };
        let leaves = Time::from_nanos(by.as_nanos().checked_sub(way.as_nanos())?);
        (sent + arm <= leaves).then_some(leaves)
    }

    /// The part of the extent that is on the model's disk. At least the disk's last sector.
    fn within(&self, extent: Extent) -> Extent {
        let start = self.clamp(extent.start);
        let most = Lba::ZERO + self.layout.capacity() - start;
        Extent::new(start, extent.len.clamp(Sectors::new(1), most))
    }

    /// Reading ahead behind a read that ends at `end`, `taken` sectors into `run`. Returns when the drive has read the minimum, and
    /// when the arm may leave. Sets `track` to the track where the arm is then.
    ///
    /// The drive finishes the sector under the head. At the end of a track the arm is on the way to the next track.
    fn reads_on(
        &self,
        run: &Run,
        taken: u32,
        end: Time,
        wrapped: bool,
        track: &mut Track,
    ) -> [Time; 2] {
        let least = u64::from(self.profile.cache.read_ahead_min).min(self.reads_on);
        if self.reads_on == 0 || wrapped && least == 0 {
            return [end; 2];
        }
        if !wrapped && u64::from(run.len - taken) >= self.reads_on {
            let phase = |sectors| self.mechanics.phase(run.angle(taken + sectors as u32));
            let ends = |sectors| end + self.mechanics.wait(phase(0), phase(sectors));
            return [ends(least), ends(self.reads_on)];
        }
        let capacity = Lba::ZERO + self.layout.capacity();
        let next = run.start + Sectors::new(u64::from(taken));
        let last = next - Sectors::new(1);
        let stop = match self.profile.cache.read_ahead {
            ReadAhead::Off => next,
            ReadAhead::TrackEnd => self.layout.track_extent_of(last).end(),
            ReadAhead::CylinderEnd => self.layout.cylinder_end(last),
            ReadAhead::SegmentFull | ReadAhead::NextTrack => capacity,
        };
        let extent = Extent::new(next, (stop - next).min(Sectors::new(self.reads_on)));
        let (layout, from) = (&self.layout, *track);
        let steps = (self.mechanics).walk(layout, from, end, extent, Op::Read, false);
        let (mut bound, mut free) = (end, end);
        for step in steps {
            // If the drive need not read on this track, the arm finishes only the movement.
            let must = least.saturating_sub((step.run.start - next).get());
            if must > 0 {
                bound = step.sectors_end(step.run.len.min(must as u32));
            }
            free = match must > 0 || *track == step.run.track {
                true => step.end(),
                false => step.begin + step.seek + step.switch,
            };
            *track = step.run.track;
        }
        [bound, free]
    }
}

impl Model {
    /// The bus transfer of a read that misses the buffer.
    fn sending(&self, head: &HeadAfter<ModelPlace>, sent: Time, extent: Extent) -> Sending {
        let spec = &self.profile.overhead;
        let read = spec.read_disconnect_after_read;
        let write = spec.read_disconnect_after_write;
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
            false => Start::Disconnected(Model::takes_up(head).max(processed + disconnect)),
        };
        Sending::new(link, extent, 0, start, head.free + head.place.sends)
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
            ..ModelPlace::default()
        }
    }

    fn left_by(&self, extent: Extent, op: Op) -> ModelPlace {
        ModelPlace {
            before: Before::from(op),
            ..self.end(extent)
        }
    }

    fn twin(&self) -> Option<Box<dyn Twin>> {
        Some(Box::new(DriveTwin::new(&self.profile, &self.layout)))
    }

    fn holds_writes(&self) -> Nanos {
        self.profile.cache.holds_writes()
    }

    fn serves_runs(&self, op: Op) -> bool {
        let cache = &self.profile.cache;
        match op {
            Op::Read => cache.read_ahead != ReadAhead::Off,
            Op::Write => cache.write_back != WriteBack::Off,
            Op::Flush | Op::Discard => false,
        }
    }

    fn turn(&self) -> Option<Nanos> {
        Some(self.mechanics.turn())
    }

    fn predict(&self, now: Time, from: ModelPlace, to: ModelPlace, op: Op) -> Predicted {
        let head = HeadAfter {
            place: from,
            free: now,
        };
        self.predict_behind(&head, now, to, op)
    }

    fn predict_behind(
        &self,
        head: &HeadAfter<ModelPlace>,
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
        head: &HeadAfter<ModelPlace>,
        sent: Time,
        extent: Extent,
        op: Op,
    ) -> HeadTime<ModelPlace> {
        let extent = self.within(extent);
        let run = self.layout.run(extent.start);
        let len = extent.len.get();
        let way = self.mechanics.reposition(head.place.track, run.track, op);
        let leaves = self.departs(head, sent, way.total(), op);
        let (spec, bus) = (&self.profile.overhead, &self.profile.bus);
        let begin = head.free.max(sent);
        let (mut access, mut end, mut wrapped) = (Access::default(), begin, false);
        let mut sending = None;
        // The run of the last sector, and the number of its sectors up to that.
        let (mut last_run, mut taken) = (run, len as u32);
        let one = u64::from(run.len) >= len;
        let first = run.truncated(len);
        let data = self.data(head, sent, len);
        if op.is_read() {
            let mut over_bus = self.sending(head, sent, extent);
            let zero_latency = self.mechanics.zero_latency(op);
            let leaves = leaves + self.mechanics.set_up(way.total(), op);
            // Most requests are one run. A walk would cost more.
            let one = one.then(|| (self.mechanics).one_step(first, leaves, way, zero_latency));
            if let Some(step) = one.flatten() {
                access.add(&step);
                end = step.end();
                over_bus.take(&step);
            } else {
                let (layout, from) = (&self.layout, head.place.track);
                let walk = (self.mechanics).walk(layout, from, leaves, extent, op, zero_latency);
                for step in walk.with_first(Some(run)) {
                    access.add(&step);
                    end = step.end();
                    // A zero-latency access may take the last sector before others.
                    wrapped = step.extent().end() != extent.end();
                    over_bus.take(&step);
                }
            }
            sending = Some(over_bus);
        } else {
            let feed = Feed {
                first: data + self.sector,
                sector: self.sector,
                lead: spec.write_lead(len),
            };
            let (mechanics, layout) = (&self.mechanics, &self.layout);
            let from = head.place.track;
            let walk = Fed::new(mechanics, layout, from, leaves, extent, Some(feed));
            for step in walk.with_first(run, 0) {
                access.add(&step);
                end = step.end();
            }
        }
        if !one {
            (last_run, taken) = (self.layout.run(extent.end() - Sectors::new(1)), 1);
        }
        let mut place = ModelPlace {
            track: last_run.track,
            phase: self.mechanics.phase(last_run.angle(taken)),
            supply: Nanos::ZERO,
            before: Before::from(op),
            ..ModelPlace::default()
        };
        let size = u64::from(self.profile.cache.segment_sectors);
        let ([arm_end, bound, free], bus_ends, told, completion) = match sending {
            Some(sending) => {
                let (_, over_bus) = sending.end();
                let [bound, free] = self.reads_on(&last_run, taken, end, wrapped, &mut place.track);
                // A read longer than a segment continues when the bus has made room.
                let arm_end = match len > size {
                    true => end.max(over_bus.saturating_sub(bus.sector(true) * size)),
                    false => end,
                };
                let told = over_bus.max(end);
                ([arm_end, bound, free], over_bus, told, spec.read_completion)
            }
            None => {
                let lead = self.lead(head, sent);
                let written = data + self.sector * len;
                // A write longer than a segment gets its last data when the rest is on the medium.
                let over_bus = match len > size {
                    true => written.max(end),
                    false => written,
                };
                let told = match bus.never_disconnect {
                    true => over_bus.max(end),
                    false => (over_bus + lead.disconnect).max(end) + lead.reselect,
                };
                ([end; 3], over_bus, told, spec.write_completion)
            }
        };
        let done = told + completion;
        let arm_free = match self.profile.queue.preseek {
            Preseek::AtMediaEnd | Preseek::JustInTime => arm_end,
            Preseek::AtCompletion => told,
            Preseek::Off => done,
        };
        // A drive that must read on has one more sector under the head.
        let free = if bound >= arm_free { free } else { arm_free };
        place.early = free - bound.max(arm_free);
        place.sends = bus_ends.saturating_since(free);
        let cache = &self.profile.cache;
        // A drive that destages when it sees fit leaves the arm where it is.
        let stays = !op.is_read() && cache.buffers(len);
        let on_medium = op.is_read() || !stays && !cache.write_back.sets_out();
        let buffered = stays.then(|| {
            let processed = sent + self.buffered[head.place.before as usize];
            processed + spec.data_preparation + self.sector * len + spec.write_completion
        });
        HeadTime {
            seek: access.seek + access.switch,
            rotation: (end - begin).saturating_sub(access.total() - access.rotation),
            transfer: access.transfer,
            head: HeadAfter { place, free },
            done,
            on_medium,
            buffered,
        }
    }

    fn seek(&self, from: ModelPlace, to: ModelPlace, op: Op) -> Nanos {
        self.mechanics.reposition(from.track, to.track, op).total()
    }

    #[inline]
    fn seek_at_least(&self, from: ModelPlace, to: ModelPlace, _: Lba) -> Nanos {
        let (here, there) = (from.track.cylinder, to.track.cylinder);
        // Within a group of cylinders, a higher address may be on a lower cylinder.
        let slack = self.layout.group_cylinders() - 1;
        let mut distance = here.distance(there).saturating_sub(slack);
        let strays = self.layout.strays();
        if !strays.is_empty() {
            // A far address may have been moved to a near cylinder. The address of a moved sector does not tell its
            // cylinder.
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
