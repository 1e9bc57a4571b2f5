//! Layouts of a volume's sectors over its members.

use headtime_sched::Op;
use headtime_units::{Extent, Lba, Sectors};
use std::ops::Range;

mod concat;
mod striped;

pub use concat::Concat;
pub use striped::Striped;

/// Largest number of members of a volume. This limit is our choice, since Linux arrays seldom have more disks.
pub const MEMBERS_MAX: usize = 64;

/// A disk of a volume, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u16);

impl Member {
    /// The number as an index.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// An access that a layout adds to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Read or write.
    pub op: Op,
    /// The member.
    pub member: Member,
    /// Sectors on the member.
    pub extent: Extent,
}

/// Choice of the member for a read of a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum ReadFrom {
    /// The last member for a read in sequence; else an idle member, or the one with the nearest outstanding accesses.
    #[default]
    Nearest,
    /// The members in turn.
    Alternate,
}

/// Layout of a volume's sectors over its members.
pub trait Map: Send {
    /// Returns the number of members.
    fn members(&self) -> u16;

    /// Returns the number of sectors of the volume.
    fn capacity(&self) -> Sectors;

    /// Returns the place of the first sectors of `extent`: the member, and one or more sectors there. At most, these
    /// are all sectors of `extent`.
    fn first(&self, extent: Extent) -> (Member, Extent);

    /// Adds the accesses that a write of `extent` needs besides its own sectors: reads that come before the write, and
    /// writes of parity. A layout without parity needs none.
    fn add_to_write(&self, _extent: Extent, _added: &mut Vec<Added>) {}

    /// Returns the choice of the member for a read if each member has all sectors. A write then goes to all members.
    fn mirror(&self) -> Option<ReadFrom> {
        None
    }

    /// Returns the members that a flush or the end of a burst concerns. The sender's part of the volume begins at
    /// `place`. All members, unless the layout keeps consecutive sectors on one member.
    fn concerned(&self, _place: Lba) -> Range<u16> {
        0..self.members()
    }
}

/// Error of an invalid volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// The number of members is not allowed.
    #[error("{0} members; allowed are 2 to {most}", most = MEMBERS_MAX)]
    Members(usize),
    /// Parity needs a third member.
    #[error("{0} members; allowed are 3 to {most} with parity", most = MEMBERS_MAX)]
    Parity(usize),
    /// A chunk has no sectors.
    #[error("a chunk of no sectors; allowed is 1 sector and more")]
    Chunk,
    /// A member has no sectors.
    #[error("member {0} has no sectors")]
    Empty(usize),
    /// A member has no whole chunk.
    #[error("member {0} has {1}, less than a chunk of {2}")]
    Small(usize, Sectors, Sectors),
    /// The sectors of all members are more than a volume can have.
    #[error("the members have more sectors than a volume can have")]
    Large,
}

impl MapError {
    /// Returns the number of members, if it is allowed.
    fn check_members(sizes: &[Sectors]) -> Result<u16, MapError> {
        match (2..=MEMBERS_MAX).contains(&sizes.len()) {
            true => Ok(sizes.len() as u16),
            false => Err(MapError::Members(sizes.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    pub(super) fn sectors(sizes: &[u64]) -> Vec<Sectors> {
        sizes.iter().map(|size| Sectors::new(*size)).collect()
    }

    /// Checks that every sector of the volume lies within its member, and that no two sectors share a place.
    pub(super) fn is_one_to_one(map: &dyn Map, sizes: &[u64]) {
        let mut places = BTreeSet::new();
        for sector in 0..map.capacity().get() {
            let (member, there) = map.first(Extent::at(sector, 1));
            assert_eq!(there.len, Sectors::new(1));
            assert!(there.end().get() <= sizes[member.index()], "{sector}");
            assert!(places.insert((member, there.start)), "{sector}");
        }
    }
}
