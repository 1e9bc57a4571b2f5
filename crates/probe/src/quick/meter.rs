//! A probe that counts commands and reports progress.

use super::found::{Obstacle, Progress, READ_BYTES};
use crate::{Answer, Layer, Probe, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

/// Fewest stalls that cannot be an accident.
const STALLS_MIN: u64 = 3;

/// Divisor of the reads: more stalls than this part are no exceptions.
const STALLS_PART: u64 = 5;

/// A probe with a time limit.
pub(super) struct Meter<'a> {
    probe: &'a mut dyn Probe,
    watch: &'a mut dyn FnMut(Progress),
    part: &'static str,
    begun: Time,
    time: Nanos,
    in_drive: u64,
    reads: u64,
    /// Number of small reads that were alone in the drive, and number of stalls among them.
    alone: u64,
    stalls: u64,
    longest: Nanos,
    /// True if the last command was a small read alone in the drive.
    is_alone: bool,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        probe: &'a mut dyn Probe,
        time: Nanos,
        watch: &'a mut dyn FnMut(Progress),
    ) -> Meter<'a> {
        Meter {
            begun: probe.now(),
            probe,
            watch,
            part: "",
            time,
            in_drive: 0,
            reads: 0,
            alone: 0,
            stalls: 0,
            longest: Nanos::ZERO,
            is_alone: true,
        }
    }

    pub(super) fn begin(&mut self, part: &'static str) {
        self.part = part;
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads
    }

    pub(super) fn elapsed(&mut self) -> Nanos {
        self.probe.now() - self.begun
    }

    /// Time left of the total.
    pub(super) fn left(&mut self) -> Nanos {
        self.time.saturating_sub(self.elapsed())
    }

    /// Fails with an obstacle if reads that were alone in the drive stalled occasionally.
    pub(super) fn check_stalls(&self) -> Result<(), Obstacle> {
        if self.stalls < STALLS_MIN || self.stalls > self.alone / STALLS_PART {
            return Ok(());
        }
        Err(Obstacle::Stalls {
            count: self.stalls,
            reads: self.alone,
            longest: self.longest,
        })
    }
}

impl Layer for Meter<'_> {
    fn under(&self) -> &dyn Probe {
        self.probe
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        self.probe
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        self.probe.send(tag, op, extent)?;
        let bytes = extent.len.bytes(self.sector_bytes());
        self.is_alone = self.in_drive == 0 && bytes <= READ_BYTES;
        self.in_drive += 1;
        self.reads += 1;
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let answer = self.probe.answer()?;
        self.in_drive -= 1;
        let took = answer.at - answer.sent;
        if self.is_alone && self.in_drive == 0 {
            self.alone += 1;
            if took >= Obstacle::STALL_MIN {
                self.stalls += 1;
                self.longest = self.longest.max(took);
            }
        }
        let elapsed = answer.at.saturating_since(self.begun).as_secs_f64();
        (self.watch)(Progress {
            part: self.part,
            done: (elapsed / self.time.as_secs_f64()).min(1.0),
        });
        Ok(answer)
    }
}
