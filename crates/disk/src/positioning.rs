//! A drive as a position-aware policy believes it to be: predicts positioning times.

use crate::layout::{Layout, Run};
use crate::mechanics::Mechanics;
use crate::profile::Profile;
use headtime_sched::{Op, Positioning, Predicted};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};
use std::sync::Arc;

/// Predicts positioning times from the layout, mechanics and overheads of a profile.
///
/// [`Positioning::predict`] answers for a command that is sent at `now` to an idle drive. The arm
/// leaves when the drive has processed the command. A read takes its least positioning time
/// ([`Mechanics::set_up`]). A write waits for its data. [`Predicted::rotation`] contains all of
/// this but the movement, and so may be longer than a turn.
///
/// Processing depends on the command before, which [`Model::left_by`] names. A policy that knows
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
    /// See [`OverheadSpec`](crate::profile::OverheadSpec).
    minimum_seek_delay: Nanos,
    /// A sector of a write over the bus.
    sector: Nanos,
}

/// The last operation of the drive, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Read,
    Write,
    Unknown,
}

/// The delays of a write between its submission and the time at which the arm can write.
#[derive(Clone, Copy, Debug)]
struct WriteLead {
    /// Until the arm may leave.
    arm: Nanos,
    /// Until the bus begins to bring data.
    data: Nanos,
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
        let lead = |processed: Nanos| WriteLead {
            arm: spec.per_command + processed,
            data: spec.per_command + processed + spec.data_preparation,
        };
        let (after_read, after_write) = match spec.early_write_disconnect {
            // The drive does so for a write after another write.
            Some(early) if !profile.bus.never_disconnect => {
                let data = early.command
                    + early.first_disconnect
                    + early.between
                    + spec.first_reselect
                    + spec.data_preparation
                    + profile.bus.arbitration;
                let early = WriteLead {
                    arm: spec.per_command + early.command + early.seek_delay,
                    data: spec.per_command + data,
                };
                (lead(after_read), early)
            }
            _ => (lead(after_read), lead(after_write)),
        };
        let unknown = WriteLead {
            arm: after_read.arm.max(after_write.arm),
            data: after_read.data.max(after_write.data),
        };
        Model {
            layout: Arc::new(Layout::new(profile)),
            mechanics: Arc::new(Mechanics::new(profile)),
            reads,
            writes: [after_read, after_write, unknown],
            minimum_seek_delay: spec.minimum_seek_delay,
            sector: profile.bus.sector(false),
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

    /// The position in which a read or write of `extent` leaves the head: [`Positioning::end`] with
    /// a known operation. Other operations leave it unknown.
    pub fn left_by(&self, extent: Extent, op: Op) -> ModelPlace {
        let before = match op {
            Op::Read => Before::Read,
            Op::Write => Before::Write,
            _ => Before::Unknown,
        };
        ModelPlace {
            before,
            ..self.end(extent)
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
        let here = len.min(u64::from(run.len)).max(1);
        let slot = self.mechanics.turn() / u64::from(run.sectors_per_track);
        let behind = self.sector.saturating_sub(slot) * (here - 1);
        let lead = self.profile.overhead.write_lead(len);
        let first = self.sector * lead.max(1);
        if behind < self.mechanics.turn() {
            first.max(self.sector + behind)
        } else {
            first
        }
    }

    /// From `now` until the arm could begin with a command if it were over its sector.
    fn ready(&self, from: &ModelPlace, to: &ModelPlace, way: Nanos, op: Op) -> Nanos {
        let before = from.before as usize;
        if op.is_read() {
            return self.reads[before] + way + self.mechanics.set_up(way, op);
        }
        let lead = &self.writes[before];
        (lead.arm + way.max(self.minimum_seek_delay)).max(lead.data + to.supply)
    }
}

impl Positioning for Model {
    type Place = ModelPlace;

    fn start(&self, extent: Extent) -> ModelPlace {
        let run = self.layout.run(self.clamp(extent.start));
        ModelPlace {
            track: run.track,
            phase: self.mechanics.phase(run.angle(0)),
            supply: self.supply(&run, extent.len.get()),
            before: Before::Unknown,
        }
    }

    fn end(&self, extent: Extent) -> ModelPlace {
        let last = extent.end().max(extent.start + Sectors::new(1)) - Sectors::new(1);
        let run = self.layout.run(self.clamp(last));
        ModelPlace {
            track: run.track,
            phase: self.mechanics.phase(run.angle(1)),
            supply: Nanos::ZERO,
            before: Before::Unknown,
        }
    }

    fn predict(&self, now: Time, from: ModelPlace, to: ModelPlace, op: Op) -> Predicted {
        let seek = self.seek(from, to, op);
        let ready = self.ready(&from, &to, seek, op);
        let arrival = self.mechanics.phase_at(now + ready);
        Predicted {
            seek,
            rotation: ready - seek + self.mechanics.wait(arrival, to.phase),
        }
    }

    fn seek(&self, from: ModelPlace, to: ModelPlace, op: Op) -> Nanos {
        self.mechanics.reposition(from.track, to.track, op).total()
    }

    fn seek_at_least(&self, from: ModelPlace, lba: Lba) -> Nanos {
        if self.layout.has_remaps() {
            // The spare that holds a far address may be near.
            return Nanos::ZERO;
        }
        let there = self.layout.locate(self.clamp(lba)).track.cylinder;
        // Within a group of cylinders, a higher address may be on a lower cylinder.
        let slack = self.layout.group_cylinders() - 1;
        let distance = from.track.cylinder.distance(there).saturating_sub(slack);
        self.mechanics.seek_at_least(distance)
    }
}
