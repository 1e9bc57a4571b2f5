//! How often each command in the drive was overtaken, as the host can tell.

use crate::names::DriveTag;
use crate::tags::TagSet;

/// The ages of the commands in the drive, and which of them starve: Algorithm 2 of the NCQ paper (Yu et al.,
/// ACM TOS 6(1), 2010, section 5.2), whose names and lines are cited.
///
/// The age of a command is how many others have completed since it went to the drive, less those that went there
/// before it and have completed or have yet to. It is the number of later commands that overtook it, its *delay count*
/// (section 4.2), less the earlier ones that are still in the drive.
#[derive(Clone, Debug)]
pub(super) struct Ages {
    /// `age_th`.
    threshold: i64,
    /// `ageValue`, by tag.
    ages: [i64; DriveTag::DEPTH_MAX as usize],
    /// `actReqCounter`.
    active: u32,
    /// `Tag_Table`.
    taken: TagSet,
    /// `wait_tag`.
    starved: TagSet,
}

impl Ages {
    pub fn new(threshold: u64) -> Ages {
        Ages {
            threshold: i64::try_from(threshold).unwrap_or(i64::MAX),
            ages: [0; DriveTag::DEPTH_MAX as usize],
            active: 0,
            taken: TagSet::default(),
            starved: TagSet::default(),
        }
    }

    /// Commands in the drive.
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Returns true if any command starves, so that no other may go (line 1).
    pub fn any_starves(&self) -> bool {
        !self.starved.is_empty()
    }

    /// The commands that starve.
    #[cfg(test)]
    pub fn starved(&self) -> impl Iterator<Item = DriveTag> {
        self.starved.iter()
    }

    /// The age of a command in the drive.
    #[cfg(test)]
    pub fn age(&self, tag: DriveTag) -> Option<i64> {
        self.taken.has(tag).then(|| self.ages[tag.index()])
    }

    /// Notes that a command goes to the drive (lines 6 and 7).
    pub fn assign(&mut self, tag: DriveTag) {
        debug_assert!(!self.taken.has(tag), "{tag:?} is taken");
        self.ages[tag.index()] = -i64::from(self.active);
        self.taken.insert(tag);
        self.active += 1;
    }

    /// Notes that the drive is done with a command (lines 9 to 22).
    pub fn free(&mut self, tag: DriveTag) {
        debug_assert!(self.taken.has(tag), "{tag:?} is free");
        self.starved.remove(tag);
        self.ages[tag.index()] = 0;
        self.taken.remove(tag);
        for other in self.taken.iter() {
            let age = &mut self.ages[other.index()];
            *age += 1;
            if *age > self.threshold {
                self.starved.insert(other);
            }
        }
        self.active -= 1;
    }

    /// Changes the threshold. It counts for the commands in the drive at once, of which the paper says nothing.
    pub fn set_threshold(&mut self, threshold: u64) {
        self.threshold = i64::try_from(threshold).unwrap_or(i64::MAX);
        self.starved = TagSet::default();
        for tag in self.taken.iter() {
            if self.ages[tag.index()] > self.threshold {
                self.starved.insert(tag);
            }
        }
    }
}
