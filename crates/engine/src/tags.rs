//! Sets of drive tags.

use crate::names::DriveTag;

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

    pub fn has(&self, tag: DriveTag) -> bool {
        let (word, bit) = TagSet::place(tag);
        self.0[word] & bit != 0
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The tags in it, lowest first.
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
