//! The commands in the drive by age.

use crate::names::DriveTag;

const MAX: usize = DriveTag::DEPTH_MAX as usize;

/// Drive tags in the order in which they were inserted, without memory of its own.
///
/// Removal costs a move and a pass over bytes, a few nanoseconds at depth 32, and no loop over the commands in the
/// drive.
#[derive(Clone, Debug)]
pub(crate) struct InDrive {
    /// Tags in order of insertion. A tag fits in a byte, and so does a place.
    tags: [u8; MAX],
    /// By tag: its place in `tags`, if it is in the drive.
    places: [u8; MAX],
    len: usize,
    /// Exclusive upper bound of all tags that were ever inserted.
    end: usize,
}

impl Default for InDrive {
    fn default() -> InDrive {
        InDrive::EMPTY
    }
}

impl InDrive {
    pub const EMPTY: InDrive = InDrive {
        tags: [0; MAX],
        places: [0; MAX],
        len: 0,
        end: 0,
    };

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of present tags that were inserted before `tag`; `None` if `tag` is not present.
    #[inline]
    fn place(&self, tag: DriveTag) -> Option<usize> {
        let place = usize::from(self.places[tag.index()]);
        let is_here = place < self.len && usize::from(self.tags[place]) == tag.index();
        is_here.then_some(place)
    }

    pub fn has(&self, tag: DriveTag) -> bool {
        self.place(tag).is_some()
    }

    /// Inserts a tag that is not present.
    #[inline]
    pub fn insert(&mut self, tag: DriveTag) {
        debug_assert!(!self.has(tag), "{tag:?} is in the drive");
        self.tags[self.len] = tag.index() as u8;
        self.places[tag.index()] = self.len as u8;
        self.len += 1;
        self.end = self.end.max(tag.index() + 1);
    }

    /// Removes a tag. Returns the number of present tags that were inserted before; `None` if the tag is not present.
    #[inline]
    pub fn remove(&mut self, tag: DriveTag) -> Option<usize> {
        let place = self.place(tag)?;
        self.tags.copy_within(place + 1..self.len, place);
        self.len -= 1;
        for other in &mut self.places[..self.end] {
            *other -= u8::from(usize::from(*other) > place);
        }
        Some(place)
    }

    /// Returns the tag that was inserted first.
    #[inline]
    pub fn first(&self) -> Option<DriveTag> {
        self.nth(0)
    }

    /// Returns the present tag with `place` earlier insertions.
    #[inline]
    pub fn nth(&self, place: usize) -> Option<DriveTag> {
        let tag = self.tags[..self.len].get(place);
        tag.map(|tag| DriveTag(u32::from(*tag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a vector, for all tags and for few.
        #[test]
        fn tags_stay_in_order_whichever_is_removed(
            most in prop::sample::select(vec![1_u32, 3, 32, 256]),
            steps in prop::collection::vec((any::<bool>(), any::<u16>()), 0..1200),
        ) {
            let (mut set, mut plain) = (InDrive::EMPTY, Vec::new());
            for (insert, draw) in steps {
                let tag = DriveTag(u32::from(draw) % most);
                let there = plain.iter().position(|other| *other == tag);
                if insert && there.is_none() {
                    set.insert(tag);
                    plain.push(tag);
                } else if !insert {
                    prop_assert_eq!(set.remove(tag), there);
                    there.map(|place| plain.remove(place));
                }
                prop_assert_eq!((set.len(), set.first()), (plain.len(), plain.first().copied()));
                let all: Vec<DriveTag> = (0..plain.len() + 1).map_while(|place| set.nth(place)).collect();
                prop_assert_eq!(&all, &plain);
                for tag in (0..DriveTag::DEPTH_MAX).map(DriveTag) {
                    prop_assert_eq!(set.has(tag), plain.contains(&tag));
                }
            }
        }
    }
}
