//! Ages: the number of times that each command in the drive was overtaken, as far as the host can tell.

use crate::in_drive::InDrive;
use crate::names::DriveTag;

/// Ages of the commands in the drive, and the commands that starve. This is Algorithm 2 of the NCQ paper (Yu et al.,
/// ACM TOS 6(1), 2010, section 5.2). Comments cite the names and lines of Algorithm 2.
///
/// The age of a command has two terms: the number of completions since the command went to the drive, less the number
/// of commands that were in the drive then. In other words, the age is the command's *delay count* (section 4.2) less
/// the number of earlier commands that are still in the drive. The delay count is the number of later commands that
/// overtook the command.
///
/// A command starts at minus the number of commands in the drive (line 6). Each completion adds one to all ages (lines
/// 12 to 14). So an age is the number of all completions, less the number of commands that went to the drive earlier.
/// This struct stores these two numbers in place of the ages. An earlier command has a higher age, so the earliest
/// commands starve first.
#[derive(Clone, Debug)]
pub(super) struct Ages {
    /// `age_th`.
    threshold: u64,
    /// Number of commands that went to the drive, and number of completed commands. The difference is `actReqCounter`.
    assigned: u64,
    freed: u64,
    /// By tag: number of commands that had gone to the drive earlier. `freed` less this number is `ageValue`.
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

    /// Returns the starving command with exactly `nth` earlier commands in the drive. All earlier commands starve, too.
    pub fn starved(&self, nth: usize) -> Option<DriveTag> {
        self.taken.nth(nth).filter(|tag| self.starves(*tag))
    }

    /// Returns true if a command starves: its age exceeds the threshold. The paper keeps the tags of such commands in `wait_tag` (line 15).
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

    /// Changes the threshold. The new threshold holds for commands in the drive at once. The paper says nothing about a
    /// change.
    pub fn set_threshold(&mut self, threshold: u64) {
        self.threshold = threshold;
    }
}
