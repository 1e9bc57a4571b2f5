//! Delay counts: the number of times that a command was overtaken in the drive.

use crate::in_drive::InDrive;
use crate::names::DriveTag;

/// The *delay count* of each command in the drive: the number of later commands that overtook the command. Source: Yu
/// et al., NCQ vs. I/O Scheduler, ACM TOS 6(1), 2010, sections 4.1 and 4.2.
///
/// "Later" refers to the time at which a command goes to the drive. A command counts as completed when the scheduler
/// gives up on it.
///
/// The delay count is the number of all completions so far, less the completions of earlier commands. The completed
/// earlier commands are all earlier commands, less the earlier commands that are still in the drive.
#[derive(Clone, Debug)]
pub struct DelayCounts {
    issued: u64,
    completed: u64,
    in_drive: InDrive,
    /// By tag: number of commands that had gone to the drive earlier.
    before: [u64; DriveTag::DEPTH_MAX as usize],
}

impl Default for DelayCounts {
    fn default() -> DelayCounts {
        DelayCounts {
            issued: 0,
            completed: 0,
            in_drive: InDrive::EMPTY,
            before: [0; DriveTag::DEPTH_MAX as usize],
        }
    }
}

impl DelayCounts {
    /// Notes that a command goes to the drive.
    #[inline]
    pub fn issued(&mut self, tag: DriveTag) {
        self.in_drive.insert(tag);
        self.before[tag.index()] = self.issued;
        self.issued += 1;
    }

    /// Notes that the drive is done with a command. Returns the command's delay count, zero for a tag that is not in
    /// the drive.
    #[inline]
    pub fn completed(&mut self, tag: DriveTag) -> u32 {
        let Some(earlier_there) = self.in_drive.remove(tag) else {
            return 0;
        };
        let earlier_done = self.before[tag.index()] - earlier_there as u64;
        let overtaken = self.completed - earlier_done;
        self.completed += 1;
        u32::try_from(overtaken).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of Figure 10 of the paper, by the pairs that its text names: r2 is overtaken by r2', r2'' and r3''.
    #[test]
    fn a_command_that_three_later_ones_overtake_counts_three() {
        let (r1, r1a, r1b, r2, r2a, r2b, r3b) = (0, 1, 2, 3, 4, 5, 6);
        let mut counts = DelayCounts::default();
        let mut issue = |tag| counts.issued(DriveTag(tag));
        [r1, r1a, r1b].into_iter().for_each(&mut issue);
        let mut complete = |tag| counts.completed(DriveTag(tag));
        assert_eq!([r1, r1b, r1a].map(&mut complete), [0, 0, 1]);
        [r2, r2a, r2b]
            .into_iter()
            .for_each(|tag| counts.issued(DriveTag(tag)));
        let mut complete = |tag| counts.completed(DriveTag(tag));
        assert_eq!([r2b, r2a].map(&mut complete), [0, 1]);
        counts.issued(DriveTag(r3b));
        let mut complete = |tag| counts.completed(DriveTag(tag));
        assert_eq!([r3b, r2].map(&mut complete), [0, 3]);
    }

    #[test]
    fn what_is_not_in_the_drive_has_a_count_of_zero_and_changes_none() {
        let mut counts = DelayCounts::default();
        counts.issued(DriveTag(3));
        counts.issued(DriveTag(4));
        assert_eq!(counts.completed(DriveTag(5)), 0);
        assert_eq!(counts.completed(DriveTag(4)), 0);
        assert_eq!(counts.completed(DriveTag(4)), 0);
        assert_eq!(counts.completed(DriveTag(3)), 1);
    }

    proptest! {
        /// Compares with the definition: each completion adds one to the count of each earlier command in the drive.
        #[test]
        fn a_count_is_how_many_later_commands_were_completed_before(
            steps in prop::collection::vec((any::<bool>(), 0..40_u32), 0..600),
        ) {
            let (mut counts, mut drive) = (DelayCounts::default(), Vec::<(u32, u32)>::new());
            for (issue, tag) in steps {
                let place = drive.iter().position(|(other, _)| *other == tag);
                if issue && place.is_none() {
                    counts.issued(DriveTag(tag));
                    drive.push((tag, 0));
                } else if !issue {
                    let expected = place.map(|place| {
                        drive[..place].iter_mut().for_each(|(_, count)| *count += 1);
                        drive.remove(place).1
                    });
                    prop_assert_eq!(counts.completed(DriveTag(tag)), expected.unwrap_or(0));
                }
            }
        }
    }
}
