//! What can go wrong, on request.

use super::Drive;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Something that goes wrong with a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Sectors that cannot be read from the medium until they are written: a read of any of them
    /// fails after the drive has tried for `retries` more turns.
    Unreadable {
        /// The sectors.
        extent: Extent,
        /// Turns spent on trying.
        retries: u32,
    },
    /// The drive begins nothing before so much time has passed; what it has begun, it ends.
    Stall(Nanos),
    /// The next command never completes. It stays in the drive until [`Drive::abort`].
    LoseNext,
}

/// A sector could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sector {lba} cannot be read")]
#[non_exhaustive]
pub struct MediumError {
    /// The first of them.
    pub lba: Lba,
}

/// The faults of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    unreadable: Vec<(Extent, u32)>,
    stalled_until: Time,
    lose: u32,
}

impl Faults {
    /// The first time from `now` on at which something can begin.
    pub fn after_stall(&self, now: Time) -> Time {
        now.max(self.stalled_until)
    }

    /// Whether this command is lost.
    pub fn loses_next(&mut self) -> bool {
        let lost = self.lose > 0;
        self.lose -= u32::from(lost);
        lost
    }

    /// What the medium has stays, what the firmware had is over.
    pub fn power_cycle(&mut self) {
        self.stalled_until = Time::ZERO;
        self.lose = 0;
    }

    /// The first sector of `extent` that cannot be read, and for how many turns that is tried.
    pub fn unreadable(&self, extent: Extent) -> Option<(MediumError, u32)> {
        self.unreadable
            .iter()
            .filter(|(bad, _)| bad.overlaps(extent))
            .map(|(bad, retries)| {
                (
                    MediumError {
                        lba: bad.start.max(extent.start),
                    },
                    *retries,
                )
            })
            .min_by_key(|(error, _)| error.lba)
    }

    /// The first sector of `extent` that cannot be read, or where it ends.
    pub fn readable_until(&self, extent: Extent) -> Lba {
        self.unreadable(extent)
            .map_or(extent.end(), |(error, _)| error.lba)
    }

    /// Where in `extent` sectors begin that can be read up to its end.
    pub fn readable_from(&self, extent: Extent) -> Lba {
        self.unreadable
            .iter()
            .filter(|(bad, _)| bad.overlaps(extent))
            .map(|(bad, _)| bad.end().min(extent.end()))
            .max()
            .unwrap_or(extent.start)
    }

    /// Writing makes sectors readable again.
    pub fn written(&mut self, extent: Extent) {
        if self.unreadable.is_empty() {
            return;
        }
        let mut left = Vec::new();
        for &(bad, retries) in &self.unreadable {
            if !bad.overlaps(extent) {
                left.push((bad, retries));
                continue;
            }
            if bad.start < extent.start {
                left.push((Extent::new(bad.start, extent.start - bad.start), retries));
            }
            if extent.end() < bad.end() {
                left.push((Extent::new(extent.end(), bad.end() - extent.end()), retries));
            }
        }
        self.unreadable = left;
    }
}

impl Drive {
    /// Makes something go wrong from now on.
    ///
    /// # Panics
    ///
    /// If time goes backwards, or sectors are named that the disk does not have.
    pub fn inject(&mut self, now: Time, fault: Fault) {
        self.advance(now);
        match fault {
            Fault::Unreadable { extent, retries } => {
                assert!(extent.end() <= Lba::ZERO + self.layout.capacity());
                if extent.len > Sectors::ZERO {
                    self.faults.unreadable.push((extent, retries));
                    self.drop_copies(extent);
                    self.keep_ahead_readable();
                    self.no_room = false;
                }
            }
            Fault::Stall(span) => {
                let until = now + span;
                self.faults.stalled_until = self.faults.stalled_until.max(until);
                self.arm_free = self.arm_free.max(until);
            }
            Fault::LoseNext => self.faults.lose += 1,
        }
    }

    /// Gives up on a command that waits or was lost; whether there was one. A command that the
    /// drive works on completes.
    ///
    /// # Panics
    ///
    /// If time goes backwards.
    pub fn abort(&mut self, now: Time, tag: u32) -> bool {
        self.advance(now);
        let found = (0..self.slots.len() as u16).find(|index| {
            let slot = &self.slots[usize::from(*index)];
            slot.command.tag == tag && !self.free_slots.contains(index)
        });
        let Some(index) = found else { return false };
        if self.slot(index).lost {
            self.free_slots.push(index);
            return true;
        }
        let Some(waiting) = self.queue.cancel(index) else {
            return false;
        };
        self.flushes -= u32::from(waiting.op == Op::Flush);
        self.free_slots.push(index);
        // It may have been what writes waited for.
        self.no_room = false;
        self.admit(now);
        true
    }
}
