//! Faults that a caller injects.

use headtime_units::{Extent, Lba, Nanos, Time};
use std::collections::BTreeMap;

/// A fault of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Sectors that cannot be read from the medium, nor be read ahead, until they are written. A read of any such
    /// sector fails after the drive has tried for `retries` more turns. The read succeeds if the buffer has all its
    /// sectors from a write. If a sector has two faults, the later fault counts.
    Unreadable {
        /// The sectors.
        extent: Extent,
        /// Turns spent on trying.
        retries: u32,
    },
    /// The drive begins nothing before this time has passed. It ends the work that has begun.
    Stall(Nanos),
    /// The next command never completes. The command stays in the drive until [`Drive::abort`](super::Drive::abort).
    LoseNext,
}

/// A sector could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sector {lba} cannot be read")]
#[non_exhaustive]
pub struct MediumError {
    /// The first unreadable sector.
    pub lba: Lba,
}

/// Sectors that cannot be read.
#[derive(Clone, Copy, Debug)]
struct Bad {
    end: Lba,
    retries: u32,
}

/// The faults of a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// By their first sector; they do not overlap. A fault can be as large as the disk, and every write into a fault
    /// can split it in two.
    unreadable: BTreeMap<Lba, Bad>,
    pub stalled_until: Time,
    pub lose: u32,
}

impl Faults {
    /// The first time from `now` on at which something can begin.
    pub fn after_stall(&self, now: Time) -> Time {
        now.max(self.stalled_until)
    }

    /// Returns true if this command is lost.
    pub fn loses_next(&mut self) -> bool {
        let lost = self.lose > 0;
        self.lose -= u32::from(lost);
        lost
    }

    /// Ends the faults of the firmware. Faults of the medium stay.
    pub fn power_cycle(&mut self) {
        self.stalled_until = Time::ZERO;
        self.lose = 0;
    }

    /// The first sector of `extent` that cannot be read, and the number of turns for which the
    /// drive tries.
    pub fn unreadable(&self, extent: Extent) -> Option<(MediumError, u32)> {
        if self.unreadable.is_empty() {
            return None;
        }
        let (start, end) = (extent.start, extent.end());
        let before = self.unreadable.range(..=start).next_back();
        let before = before.filter(|(_, bad)| start < bad.end);
        let (first, bad) = before.or_else(|| self.unreadable.range(start..end).next())?;
        let lba = start.max(*first);
        (lba < end).then_some((MediumError { lba }, bad.retries))
    }

    /// The first sector of `extent` that cannot be read, or the end of `extent`.
    pub fn readable_until(&self, extent: Extent) -> Lba {
        self.unreadable(extent)
            .map_or(extent.end(), |(error, _)| error.lba)
    }

    /// The start of the readable sectors at the end of `extent`.
    pub fn readable_from(&self, extent: Extent) -> Lba {
        if self.unreadable.is_empty() {
            return extent.start;
        }
        let last = self.unreadable.range(..extent.end()).next_back();
        last.map_or(extent.start, |(_, bad)| {
            bad.end.clamp(extent.start, extent.end())
        })
    }

    /// Makes sectors unreadable.
    pub fn spoil(&mut self, extent: Extent, retries: u32) {
        self.written(extent);
        let end = extent.end();
        self.unreadable.insert(extent.start, Bad { end, retries });
    }

    /// Writing makes sectors readable again.
    pub fn written(&mut self, extent: Extent) {
        while let Some((error, retries)) = self.unreadable(extent) {
            let Some((start, Bad { end, .. })) = self.take(error.lba) else {
                return;
            };
            if start < extent.start {
                let end = extent.start;
                self.unreadable.insert(start, Bad { end, retries });
            }
            if extent.end() < end {
                self.unreadable.insert(extent.end(), Bad { end, retries });
            }
        }
    }

    /// Takes out the stretch that a sector is in.
    fn take(&mut self, lba: Lba) -> Option<(Lba, Bad)> {
        let start = *self.unreadable.range(..=lba).next_back()?.0;
        self.unreadable.remove_entry(&start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The last operation on a sector decides its fault.
        #[test]
        fn faults_are_what_was_done_to_each_sector(
            done in prop::collection::vec((0_u64..100, 1_u64..40, prop::option::of(0_u32..5)), 0..30),
            asked in (0_u64..140, 0_u64..60),
        ) {
            let mut faults = Faults::default();
            let mut sectors = [None; 200];
            for (start, len, retries) in done {
                let extent = Extent::at(start, len);
                match retries {
                    Some(retries) => faults.spoil(extent, retries),
                    None => faults.written(extent),
                }
                sectors[start as usize..(start + len) as usize].fill(retries);
                let whole: u64 = faults.unreadable.iter().map(|(start, bad)| (bad.end - *start).get()).sum();
                prop_assert_eq!(whole, sectors.iter().flatten().count() as u64);
            }
            let (start, len) = asked;
            let asked = Extent::at(start, len);
            let range = start as usize..(start + len) as usize;
            let first = range.clone().find_map(|lba| Some((lba as u64, sectors[lba]?)));
            let found = faults.unreadable(asked).map(|(error, retries)| (error.lba.get(), retries));
            prop_assert_eq!(found, first);
            let until = first.map_or(start + len, |(lba, _)| lba);
            prop_assert_eq!(faults.readable_until(asked).get(), until);
            let from = range.rev().find(|lba| sectors[*lba].is_some());
            let from = from.map_or(start, |lba| lba as u64 + 1);
            prop_assert_eq!(faults.readable_from(asked).get(), from);
        }
    }
}
