//! How often a command was overtaken in the drive.

use crate::names::DriveTag;
use crate::tags::TagSet;

/// Counts by how many later ones each command in the drive was overtaken: its *delay count* (Yu et al., NCQ vs. I/O
/// Scheduler, ACM TOS 6(1), 2010, sections 4.1 and 4.2).
///
/// Later is what went to the drive later. A command that was given up counts as completed then.
#[derive(Clone, Debug)]
pub struct DelayCounts {
    issued: u64,
    in_drive: TagSet,
    /// By tag: how many commands had gone to the drive before it, and the count.
    commands: [(u64, u32); DriveTag::DEPTH_MAX as usize],
}

impl Default for DelayCounts {
    fn default() -> DelayCounts {
        DelayCounts {
            issued: 0,
            in_drive: TagSet::default(),
            commands: [(0, 0); DriveTag::DEPTH_MAX as usize],
        }
    }
}

impl DelayCounts {
    /// Notes that a command goes to the drive.
    pub fn issued(&mut self, tag: DriveTag) {
        self.in_drive.insert(tag);
        self.commands[tag.index()] = (self.issued, 0);
        self.issued += 1;
    }

    /// Notes that the drive is done with a command, and returns by how many it was overtaken. Zero for a tag that
    /// is not in the drive.
    pub fn completed(&mut self, tag: DriveTag) -> u32 {
        if !self.in_drive.has(tag) {
            return 0;
        }
        self.in_drive.remove(tag);
        let (place, count) = self.commands[tag.index()];
        for other in self.in_drive.iter() {
            let (earlier, overtaken) = &mut self.commands[other.index()];
            *overtaken += u32::from(*earlier < place);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
