//! Accesses of the arm to the medium, and their entries in the account.

use super::Drive;
use super::arm::Passing;
use super::bus::{Fed, Feed, Sending};
use crate::layout::Run;
use crate::ledger::{Ledger, Part};
use crate::mechanics::{Reposition, Step};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Time, Track};

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
    /// How long the head waited for the first sector of the extent, wherever that came in the
    /// course of the access, and how many sectors are on that track.
    pub waited: Nanos,
    pub sectors_per_track: u32,
    /// When the head was on the first track.
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

    fn add(&mut self, step: &StepTimes) {
        self.seek += step.seek;
        self.switch += step.switch;
        self.rotation += step.rotation;
        self.transfer += step.transfer;
        self.track = step.track;
        self.end = step.begin + step.seek + step.switch + step.rotation + step.transfer;
    }
}

impl Drive {
    /// The noise of the first movement, of `way`: its difference from the mechanics.
    fn seek_error(&mut self, way: Reposition) -> i64 {
        match self.noise.seeks_vary() {
            true => self.noise.seek(way.total()),
            false => 0,
        }
    }

    /// Reads `extent`, whose sectors go to `sending` as they come.
    ///
    /// `first` is the run that it begins with, and the way there, if the arm sets out for it; else it is in the middle of it.
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
            motion.add(&StepTimes::of(&step));
            StepTimes::of(&step).enter(&mut self.ledger, false);
            sending.take(&step);
        }
        motion
    }

    /// Writes `extent`; `destage` if no command waits for it.
    ///
    /// Where the medium has larger sectors than the host and the extent does not cover them, the
    /// rest of them is read first, which takes another turn, unless the buffer has it.
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
        let error = self.seek_error(way);
        if whole != extent && !self.has_rest(extent) {
            // The arm stays where it has read; the write of the same sectors comes a turn later.
            let mut sets_out = true;
            let walk = self
                .mechanics
                .walk(&self.layout, from, begin, whole, Op::Read, false)
                .with_first(Some(first));
            for step in walk.with_seek_error(error) {
                motion.add(&StepTimes::of(&step));
                // To get there is what the write would cost too.
                let spare = if sets_out { Spare::Sectors } else { Spare::All };
                StepTimes::of(&step).enter_spare(&mut self.ledger, destage, spare);
                sets_out = false;
            }
            let from = motion.track;
            self.write_fed(&mut motion, from, whole, feed, (first, 0), destage, true);
        } else {
            self.write_fed(
                &mut motion,
                from,
                whole,
                feed,
                (first, error),
                destage,
                false,
            );
        }
        motion
    }

    /// Returns true if the buffer has what `extent` does not have of the sectors of the medium that it
    /// touches.
    pub(super) fn has_rest(&self, extent: Extent) -> bool {
        let whole = self.physical(extent);
        self.cache
            .holds(Extent::new(whole.start, extent.start - whole.start))
            && self
                .cache
                .holds(Extent::new(extent.end(), whole.end() - extent.end()))
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
        let walk = self
            .mechanics
            .walk(&self.layout, from, begin, whole, Op::Read, false)
            .with_first(Some(first));
        for step in walk.with_seek_error(error) {
            motion.add(&StepTimes::of(&step));
            StepTimes::of(&step).enter_spare(&mut self.ledger, true, Spare::All);
        }
        motion
    }

    /// Writes from where `motion` has come to, each sector when it has come over the bus; `first` is the
    /// first run, with the noise of the way there. `again` if the head has just been there to read them.
    #[expect(clippy::too_many_arguments, reason = "what a write is, taken apart")]
    fn write_fed(
        &mut self,
        motion: &mut Motion,
        from: Track,
        extent: Extent,
        feed: Option<Feed>,
        (first, error): (Run, i64),
        destage: bool,
        mut again: bool,
    ) {
        let walk = Fed::new(
            &self.mechanics,
            &self.layout,
            from,
            motion.end,
            extent,
            feed,
        );
        for part in walk.with_first(first, error) {
            let taken = StepTimes {
                rotation: part.step.rotation + part.wait,
                transfer: part.transfer(),
                ..StepTimes::of(&part.step)
            };
            motion.add(&taken);
            taken.enter_written(&mut self.ledger, destage, &mut again);
            self.written.passing(Passing {
                extent: part.extent(),
                from: part.step.transfer_begin() + part.wait,
                takes: taken.transfer,
            });
        }
    }
}

/// The part of a step that is due to sectors of the medium that are written in part.
#[derive(Clone, Copy, Debug)]
enum Spare {
    Nothing,
    /// Coming to its sectors.
    Way,
    /// Its sectors passing under the head.
    Sectors,
    All,
}

/// The times of a step, as they were.
#[derive(Clone, Copy, Debug)]
struct StepTimes {
    lba: Lba,
    track: Track,
    begin: Time,
    seek: Nanos,
    switch: Nanos,
    rotation: Nanos,
    transfer: Nanos,
}

impl StepTimes {
    fn of(step: &Step) -> StepTimes {
        StepTimes {
            lba: step.run.start,
            track: step.run.track,
            begin: step.begin,
            seek: step.seek,
            switch: step.switch,
            rotation: step.rotation,
            transfer: step.transfer,
        }
    }

    /// Plans it in the account.
    fn enter(&self, ledger: &mut Ledger, destage: bool) {
        self.enter_spare(ledger, destage, Spare::Nothing);
    }

    /// Plans a step of a write in the account; if the head was there to read, the first one's way back
    /// is for that.
    fn enter_written(&self, ledger: &mut Ledger, destage: bool, again: &mut bool) {
        let spare = match std::mem::take(again) {
            true => Spare::Way,
            false => Spare::Nothing,
        };
        self.enter_spare(ledger, destage, spare);
    }

    /// Plans a step in the account; `spare` is the part that is due to sectors that are written in
    /// part.
    fn enter_spare(&self, ledger: &mut Ledger, destage: bool, spare: Spare) {
        let of = |spared: bool, part| match (spared, destage) {
            (true, _) => Part::ReadModifyWrite,
            (false, true) => Part::Destage,
            (false, false) => part,
        };
        let way = matches!(spare, Spare::Way | Spare::All);
        let sectors = matches!(spare, Spare::Sectors | Spare::All);
        let seek = self.begin + self.seek;
        let switch = seek + self.switch;
        let rotation = switch + self.rotation;
        ledger.plan(seek, self.lba, of(way, Part::Seek));
        ledger.plan(switch, self.lba, of(way, Part::Switch));
        ledger.plan(rotation, self.lba, of(way, Part::Rotation));
        ledger.plan(
            rotation + self.transfer,
            self.lba,
            of(sectors, Part::Transfer),
        );
    }
}
