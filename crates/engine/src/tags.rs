//! Sets of drive tags, and the holders of tags.

use crate::names::DriveTag;
use headtime_sched::Tag;

const WORDS: usize = DriveTag::DEPTH_MAX.div_ceil(u64::BITS) as usize;

/// A set of drive tags, without memory of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagSet([u64; WORDS]);

impl TagSet {
    pub const EMPTY: TagSet = TagSet([0; WORDS]);

    const fn place(tag: DriveTag) -> (usize, u64) {
        (tag.index() / 64, 1 << (tag.index() % 64))
    }

    pub fn insert(&mut self, tag: DriveTag) {
        let (word, bit) = TagSet::place(tag);
        self.0[word] |= bit;
    }

    pub fn remove(&mut self, tag: DriveTag) {
        let (word, bit) = TagSet::place(tag);
        self.0[word] &= !bit;
    }

    /// Returns true if the set has `tag`, which may be any number.
    pub fn has(&self, tag: DriveTag) -> bool {
        let (word, bit) = TagSet::place(tag);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Returns the lowest tag that is not in the set.
    #[inline(always)]
    pub fn lowest_absent(&self) -> Option<DriveTag> {
        let word = self.0.iter().position(|word| *word != u64::MAX)?;
        let bit = self.0[word].trailing_ones();
        Some(DriveTag(word as u32 * u64::BITS + bit))
    }

    /// Returns the tags in the set, lowest first.
    pub fn iter(self) -> impl Iterator<Item = DriveTag> {
        (0..).zip(self.0).flat_map(|(word, mut bits)| {
            core::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(DriveTag(word * u64::BITS + bit))
            })
        })
    }
}

/// The drive tags that are taken, each with the request that holds it.
#[derive(Debug, Default)]
pub(crate) struct DriveTags {
    taken: TagSet,
    holders: Vec<Tag>,
}

impl DriveTags {
    /// Gives `holder` the lowest free tag; `None` if all [`DriveTag::DEPTH_MAX`] tags are taken.
    #[inline(always)]
    pub fn take(&mut self, holder: Tag) -> Option<DriveTag> {
        let tag = self.taken.lowest_absent()?;
        self.taken.insert(tag);
        match self.holders.get_mut(tag.index()) {
            Some(place) => *place = holder,
            None => self.holders.push(holder),
        }
        Some(tag)
    }

    /// Frees a tag and returns its holder; `None` if the tag was free.
    #[inline]
    pub fn give_back(&mut self, tag: DriveTag) -> Option<Tag> {
        let holder = self.holder(tag)?;
        self.taken.remove(tag);
        Some(holder)
    }

    /// Returns the holder of a tag, if it is taken.
    #[inline]
    pub fn holder(&self, tag: DriveTag) -> Option<Tag> {
        self.taken.has(tag).then(|| self.holders[tag.index()])
    }

    /// The tag that `holder` has, if it has one.
    pub fn held_by(&self, holder: Tag) -> Option<DriveTag> {
        let mut taken = self.taken.iter();
        taken.find(|tag| self.holders[tag.index()] == holder)
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
