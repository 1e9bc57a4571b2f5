//! How often each command in the drive was overtaken, as the host can tell.

use crate::in_drive::InDrive;
use crate::names::DriveTag;

/// The ages of the commands in the drive, and which of them starve: Algorithm 2 of the NCQ paper (Yu et al.,
/// ACM TOS 6(1), 2010, section 5.2), whose names and lines are cited.
///
/// The age of a command is how many others have completed since it went to the drive, less those that went there
/// before it and have completed or have yet to. It is the number of later commands that overtook it, its *delay count*
/// (section 4.2), less the earlier ones that are still in the drive.
///
/// A command starts at less the number of those in the drive (line 6), and each completion adds one to all ages (lines
/// 12 to 14). So an age is the number of completions so far less that of the commands which had gone to the drive before;
/// both are kept in place of the ages. An earlier command has a higher age, and those that starve are the earliest ones.
#[derive(Clone, Debug)]
pub(super) struct Ages {
    /// `age_th`.
    threshold: u64,
    /// Commands that went to the drive, and those that it is done with; the difference is `actReqCounter`.
    assigned: u64,
    freed: u64,
    /// By tag: how many commands had gone to the drive before. With `freed` this makes `ageValue`.
    before: [u64; DriveTag::DEPTH_MAX as usize],
    /// `Tag_Table`.
    taken: InDrive,
}

impl Ages {
    pub fn new(threshold: u64) -> Ages {
        Ages {
            threshold,
            assigned: 0,
            freed: 0,
            before: [0; DriveTag::DEPTH_MAX as usize],
            taken: InDrive::EMPTY,
        }
    }

    /// Commands in the drive.
    #[inline]
    pub fn active(&self) -> u32 {
        self.taken.len() as u32
    }

    /// Returns true if any command starves, so that no other may go (line 1).
    #[inline]
    pub fn any_starves(&self) -> bool {
        self.taken.first().is_some_and(|tag| self.starves(tag))
    }

    /// The command that starves before which so many others do that went to the drive earlier.
    pub fn starved(&self, nth: usize) -> Option<DriveTag> {
        self.taken.nth(nth).filter(|tag| self.starves(*tag))
    }

    /// Whether the tag is one of `wait_tag` (line 15).
    #[inline]
    fn starves(&self, tag: DriveTag) -> bool {
        self.freed > self.before[tag.index()].saturating_add(self.threshold)
    }

    /// The age of a command in the drive.
    #[cfg(test)]
    pub fn age(&self, tag: DriveTag) -> Option<i64> {
        let age = self.freed as i64 - self.before[tag.index()] as i64;
        self.taken.has(tag).then_some(age)
    }

    /// Notes that a command goes to the drive (lines 6 and 7).
    #[inline]
    pub fn assign(&mut self, tag: DriveTag) {
        self.before[tag.index()] = self.assigned;
        self.taken.insert(tag);
        self.assigned += 1;
    }

    /// Notes that the drive is done with a command (lines 9 to 22).
    #[inline]
    pub fn free(&mut self, tag: DriveTag) {
        let freed = self.taken.remove(tag);
        debug_assert!(freed.is_some(), "{tag:?} is free");
        self.freed += 1;
    }

    /// Changes the threshold. It counts for the commands in the drive at once, of which the paper says nothing.
    pub fn set_threshold(&mut self, threshold: u64) {
        self.threshold = threshold;
    }
}
