//! Accesses of the arm to the medium, and their entries in the account.

use super::Drive;
use super::arm::Passing;
use super::bus::{Fed, Feed, Sending};
use crate::layout::Run;
use crate::ledger::{Ledger, Part};
use crate::mechanics::{Reposition, Step};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time, Track};

/// The duration of an access to the medium, and the position in which it left the arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Motion {
    pub seek: Nanos,
    pub switch: Nanos,
    pub rotation: Nanos,
    pub transfer: Nanos,
    pub track: Track,
    pub end: Time,
    /// The part of the rotation that is due to a read that does not succeed at once.
    pub late: Nanos,
    /// Time for which the head waited for the first sector of the extent, at any point of the
    /// access; and the number of sectors on that track.
    pub waited: Nanos,
    pub sectors_per_track: u32,
    /// Time at which the head was on the first track.
    pub landed: Time,
}

impl Motion {
    fn new(track: Track, begin: Time) -> Motion {
        Motion {
            seek: Nanos::ZERO,
            switch: Nanos::ZERO,
            rotation: Nanos::ZERO,
            transfer: Nanos::ZERO,
            track,
            end: begin,
            late: Nanos::ZERO,
            waited: Nanos::ZERO,
            sectors_per_track: 1,
            landed: begin,
        }
    }

    fn add(&mut self, step: &Step) {
        self.seek += step.seek;
        self.switch += step.switch;
        self.rotation += step.rotation;
        self.transfer += step.transfer;
        self.track = step.run.track;
        self.end = step.end();
    }
}

impl Drive {
    /// The noise of the first movement, `way`: its difference from the mechanics.
    fn seek_error(&mut self, way: Reposition) -> i64 {
        match self.noise.seeks_vary() {
            true => self.noise.seek(way.total()),
            false => 0,
        }
    }

    /// Reads `extent` and notes each step in `sending`.
    ///
    /// `first` is the first run and the arm movement to it, if the arm sets out for the read. `None` if the arm is in
    /// the middle of the read.
    pub(super) fn read_media(
        &mut self,
        from: Track,
        begin: Time,
        extent: Extent,
        sending: &mut Sending,
        first: Option<(Run, Reposition)>,
    ) -> Motion {
        let zero_latency = first.is_some() && self.mechanics.zero_latency(Op::Read);
        let error = first.map_or(0, |(_, way)| self.seek_error(way));
        let mut motion = Motion::new(from, begin);
        let walk = self
            .mechanics
            .walk(&self.layout, from, begin, extent, Op::Read, zero_latency)
            .with_first(first.map(|(run, _)| run))
            .with_first_way(first.map(|(run, way)| (run.track, way)))
            .with_seek_error(error);
        for step in walk {
            if motion.end == begin {
                motion.landed = step.transfer_begin() - step.rotation;
            }
            if step.run.start == extent.start {
                motion.waited = step.rotation;
                motion.sectors_per_track = step.run.sectors_per_track;
            }
            motion.add(&step);
            enter(&mut self.ledger, &step, false, Spare::Nothing);
            sending.take(&step);
        }
        motion
    }

    /// Writes `extent`; `destage` if no command waits for it.
    ///
    /// The extent may cover a sector of the medium only in part. The rest of that sector is then
    /// read first, which takes another turn, unless the buffer has the rest.
    pub(super) fn write_media(
        &mut self,
        from: Track,
        begin: Time,
        extent: Extent,
        feed: Option<Feed>,
        destage: bool,
    ) -> Motion {
        let whole = self.physical(extent);
        let mut motion = Motion::new(from, begin);
        let first = self.layout.run(whole.start);
        let way = self.mechanics.reposition(from, first.track, Op::Write);
        let mut error = self.seek_error(way);
        let reads = whole != extent && !self.has_rest(extent);
        if reads {
            // The arm stays where it has read; the write of the same sectors comes a turn later.
            let error = std::mem::take(&mut error);
            self.read_whole(&mut motion, whole, (first, error), destage, true);
        }
        self.write_fed(&mut motion, whole, feed, (first, error), destage, reads);
        motion
    }

    /// Reads whole sectors of the medium before a write of parts. If the arm `sets_out`, the ledger charges the
    /// movement to the write.
    fn read_whole(
        &mut self,
        motion: &mut Motion,
        whole: Extent,
        (first, error): (Run, i64),
        destage: bool,
        mut sets_out: bool,
    ) {
        let (from, begin) = (motion.track, motion.end);
        let walk = (self.mechanics).walk(&self.layout, from, begin, whole, Op::Read, false);
        for step in walk.with_first(Some(first)).with_seek_error(error) {
            motion.add(&step);
            let spare = match std::mem::take(&mut sets_out) {
                true => Spare::Sectors,
                false => Spare::All,
            };
            enter(&mut self.ledger, &step, destage, spare);
        }
    }

    /// Returns true if the buffer has the parts outside of `extent` of the medium's sectors that `extent` touches.
    pub(super) fn has_rest(&self, extent: Extent) -> bool {
        let whole = self.physical(extent);
        self.cache
            .has_all(Extent::new(whole.start, extent.start - whole.start))
            && self
                .cache
                .has_all(Extent::new(extent.end(), whole.end() - extent.end()))
    }

    /// The sectors of the medium that `extent` touches.
    pub(super) fn physical(&self, extent: Extent) -> Extent {
        let per = u64::from(self.profile.geometry.sectors_per_physical());
        if per == 1 {
            return extent;
        }
        let start = extent.start.get() / per * per;
        let end = extent.end().get().div_ceil(per) * per;
        Extent::at(start, end.min(self.layout.capacity().get()) - start)
    }

    /// Reads the sectors of the medium that `extent` touches, for data that are to be written there when
    /// the arm comes by again.
    pub(super) fn read_rest(&mut self, from: Track, begin: Time, extent: Extent) -> Motion {
        let whole = self.physical(extent);
        let first = self.layout.run(whole.start);
        let error = self.seek_error(self.mechanics.reposition(from, first.track, Op::Read));
        let mut motion = Motion::new(from, begin);
        self.read_whole(&mut motion, whole, (first, error), true, false);
        motion
    }

    /// Writes from where `motion` has come to, each sector when it has come over the bus; `first` is the first run,
    /// with the noise of the movement to the run. `again` is true if the head has just read these sectors.
    fn write_fed(
        &mut self,
        motion: &mut Motion,
        extent: Extent,
        feed: Option<Feed>,
        (first, error): (Run, i64),
        destage: bool,
        mut again: bool,
    ) {
        let (from, begin) = (motion.track, motion.end);
        let walk = Fed::new(&self.mechanics, &self.layout, from, begin, extent, feed);
        for step in walk.with_first(first, error) {
            motion.add(&step);
            let spare = match std::mem::take(&mut again) {
                true => Spare::Way,
                false => Spare::Nothing,
            };
            enter(&mut self.ledger, &step, destage, spare);
            self.written.passing(Passing {
                extent: step.extent(),
                from: step.transfer_begin(),
                takes: step.transfer,
            });
        }
    }
}

/// Part of a media access that a read-modify-write adds, since a write covers physical sectors only in part.
#[derive(Clone, Copy, Debug)]
enum Spare {
    Nothing,
    /// Movement and rotation to the sectors.
    Way,
    /// Transfer of the sectors.
    Sectors,
    All,
}

/// Plans a step in the account. `spare` names the part that only partial writes cause.
fn enter(ledger: &mut Ledger, step: &Step, destage: bool, spare: Spare) {
    let of = |spared: bool, part| match (spared, destage) {
        (true, _) => Part::ReadModifyWrite,
        (false, true) => Part::Destage,
        (false, false) => part,
    };
    let way = matches!(spare, Spare::Way | Spare::All);
    let sectors = matches!(spare, Spare::Sectors | Spare::All);
    let (lba, seek) = (step.run.start, step.begin + step.seek);
    ledger.plan(seek, lba, of(way, Part::Seek));
    ledger.plan(seek + step.switch, lba, of(way, Part::Switch));
    ledger.plan(step.transfer_begin(), lba, of(way, Part::Rotation));
    ledger.plan(step.end(), lba, of(sectors, Part::Transfer));
}
