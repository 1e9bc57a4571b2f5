//! Names of requests outside the engine.
//!
//! A request has three names. Policies and the engine know it by its [`Tag`], an index into the
//! engine's slab that never leaves the engine. The drive knows the command that carries it by a
//! [`DriveTag`]. Whoever asked knows it by a [`RequestId`].

use core::fmt;
use headtime_sched::Tag;

/// Names a command in the drive: 0 to depth - 1.
///
/// The engine gives each command the lowest tag that is free, and the completion returns it. Whatever
/// is kept for each command (an age, a deadline, the device's state) can be an array of as many places
/// as the drive takes commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveTag(pub u32);

impl DriveTag {
    /// No drive takes more commands at once.
    pub const DEPTH_MAX: u32 = 256;

    /// The tag as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names an unfinished request for whoever asked: a client, or a job in the background.
///
/// The two count apart. A request in the background (a scrub's read, an update of parity) ends as
/// [`Command::Background`](crate::Command), so it cannot be reported to a client by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// A client's request.
    Client(u64),
    /// A request of a job in the background.
    Background(u64),
}

impl fmt::Display for RequestId {
    /// Writes the number, with a `b` before it for the background.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Client(id) => write!(f, "{id}"),
            RequestId::Background(id) => write!(f, "b{id}"),
        }
    }
}

const WORDS: usize = DriveTag::DEPTH_MAX.div_ceil(u64::BITS) as usize;

/// The drive tags that are taken, and by which request each.
#[derive(Debug, Default)]
pub(crate) struct DriveTags {
    taken: [u64; WORDS],
    holders: Vec<Tag>,
}

impl DriveTags {
    /// Gives `holder` the lowest free tag; none if all [`DriveTag::DEPTH_MAX`] are taken.
    #[inline(always)]
    pub fn take(&mut self, holder: Tag) -> Option<DriveTag> {
        let word = self.taken.iter().position(|word| *word != u64::MAX)?;
        let bit = self.taken[word].trailing_ones();
        self.taken[word] |= 1 << bit;
        let tag = DriveTag(word as u32 * u64::BITS + bit);
        match self.holders.get_mut(tag.index()) {
            Some(place) => *place = holder,
            None => self.holders.push(holder),
        }
        Some(tag)
    }

    /// Frees a tag and returns who held it; none if it was free.
    #[inline]
    pub fn give_back(&mut self, tag: DriveTag) -> Option<Tag> {
        let holder = self.holder(tag)?;
        self.taken[tag.index() / 64] &= !(1 << (tag.0 % u64::BITS));
        Some(holder)
    }

    /// Who holds a tag, if it is taken.
    #[inline]
    pub fn holder(&self, tag: DriveTag) -> Option<Tag> {
        let word = self.taken.get(tag.index() / 64)?;
        let taken = word >> (tag.0 % u64::BITS) & 1 == 1;
        taken.then(|| self.holders[tag.index()])
    }

    /// The tag that `holder` has, if it has one.
    pub fn held_by(&self, holder: Tag) -> Option<DriveTag> {
        let tags = (0..self.holders.len() as u32).map(DriveTag);
        tags.into_iter()
            .find(|tag| self.holder(*tag) == Some(holder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn tags_run_out_at_the_largest_depth() {
        let mut tags = DriveTags::default();
        for tag in 0..DriveTag::DEPTH_MAX {
            assert_eq!(tags.take(Tag(1000 + tag)), Some(DriveTag(tag)));
        }
        assert_eq!(tags.take(Tag(7)), None);
        assert_eq!(tags.give_back(DriveTag(200)), Some(Tag(1200)));
        assert_eq!(tags.take(Tag(7)), Some(DriveTag(200)));
        assert_eq!(tags.held_by(Tag(7)), Some(DriveTag(200)));
        assert_eq!(tags.holder(DriveTag(u32::MAX)), None);
        assert_eq!(tags.give_back(DriveTag(256)), None);
    }

    proptest! {
        #[test]
        fn the_lowest_free_tag_is_taken_first(
            steps in prop::collection::vec((any::<bool>(), 0..300_u32), 0..900),
        ) {
            let (mut tags, mut plain) = (DriveTags::default(), BTreeMap::new());
            for (number, (take, tag)) in (0..).zip(steps) {
                if take || plain.is_empty() {
                    let lowest = (0..DriveTag::DEPTH_MAX).find(|tag| !plain.contains_key(tag));
                    prop_assert_eq!(tags.take(Tag(number)), lowest.map(DriveTag));
                    lowest.map(|lowest| plain.insert(lowest, Tag(number)));
                } else {
                    prop_assert_eq!(tags.give_back(DriveTag(tag)), plain.remove(&tag));
                }
                for (tag, holder) in &plain {
                    prop_assert_eq!(tags.holder(DriveTag(*tag)), Some(*holder));
                    prop_assert_eq!(tags.held_by(*holder), Some(DriveTag(*tag)));
                }
            }
        }
    }
}
