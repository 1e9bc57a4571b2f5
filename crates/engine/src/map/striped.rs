//! Chunks on each member in turn.

use super::{Map, MapError, Member};
use headtime_units::{Extent, Sectors};

/// Chunks of sectors on each member in turn, as RAID 0 of Linux's md lays them.
///
/// Sizes of members are rounded down to chunks. Members of unequal sizes form zones: zone `i` takes the rows of chunks that
/// exist on at least `n_i` members, and stripes over these members. Within a zone, row `r` has chunk `r * n_i + j` on the
/// zone's member `j`, in the order of the members. From the second zone on this is the layout that md calls "alternate".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Striped {
    chunk: u64,
    members: u16,
    /// In ascending order: zone `i` ends where zone `i + 1` begins.
    zones: Vec<Zone>,
    capacity: u64,
}

/// Rows of chunks that the same members have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Zone {
    /// First sector of the volume.
    start: u64,
    /// First sector on each of the members.
    start_on_member: u64,
    members: Vec<Member>,
}

impl Striped {
    /// Stripes chunks of `chunk` sectors over members with `sizes` sectors.
    ///
    /// # Errors
    ///
    /// If the number of members is not 2 to [`MEMBERS_MAX`](super::MEMBERS_MAX), or the sum of the sizes overflows.
    /// Also if the chunk is empty, or a member has no whole chunk.
    pub fn new(chunk: Sectors, sizes: &[Sectors]) -> Result<Striped, MapError> {
        let members = MapError::check_members(sizes)?;
        if chunk == Sectors::ZERO {
            return Err(MapError::Chunk);
        }
        if let Some(small) = sizes.iter().position(|size| *size < chunk) {
            return Err(MapError::Small(small, sizes[small], chunk));
        }
        let whole = |size: &Sectors| size.get() - size.get() % chunk.get();
        let (mut zones, mut capacity, mut on_member) = (Vec::new(), 0_u64, 0);
        while let Some(end) = sizes.iter().map(whole).filter(|end| *end > on_member).min() {
            let has = |(_, size): &(u16, &Sectors)| whole(size) >= end;
            let members: Vec<Member> = (0..)
                .zip(sizes)
                .filter(has)
                .map(|(member, _)| Member(member))
                .collect();
            let sectors = (end - on_member).checked_mul(members.len() as u64);
            let zone = Zone {
                start: capacity,
                start_on_member: on_member,
                members,
            };
            let after = sectors.and_then(|sectors| capacity.checked_add(sectors));
            capacity = after.ok_or(MapError::Large)?;
            zones.push(zone);
            on_member = end;
        }
        Ok(Striped {
            chunk: chunk.get(),
            members,
            zones,
            capacity,
        })
    }
}

impl Map for Striped {
    fn members(&self) -> u16 {
        self.members
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(self.capacity)
    }

    fn first(&self, extent: Extent) -> (Member, Extent) {
        let start = extent.start.get();
        let zone = self.zones.partition_point(|zone| zone.start <= start) - 1;
        let zone = &self.zones[zone];
        let (chunk, within) = (
            (start - zone.start) / self.chunk,
            (start - zone.start) % self.chunk,
        );
        let members = zone.members.len() as u64;
        let (row, column) = (chunk / members, chunk % members);
        let there = zone.start_on_member + row * self.chunk + within;
        let len = extent.len.get().min(self.chunk - within);
        (zone.members[column as usize], Extent::at(there, len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{is_one_to_one, sectors};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sectors_and_places_are_one_to_one(
            sizes in prop::collection::vec(1_u64..40, 2..6),
            chunk in 1_u64..9,
        ) {
            let smallest = *sizes.iter().min().expect("two and more");
            let chunk = chunk.min(smallest);
            let striped = Striped::new(Sectors::new(chunk), &sectors(&sizes)).expect("allowed");
            let whole: u64 = sizes.iter().map(|size| size / chunk * chunk).sum();
            prop_assert_eq!(striped.capacity().get(), whole);
            is_one_to_one(&striped, &sizes);
        }

        /// The place of a run matches the places of its single sectors.
        #[test]
        fn a_run_is_contiguous_on_its_member(start in 0_u64..60, len in 1_u64..30) {
            let sizes = [9, 20, 33];
            let striped = Striped::new(Sectors::new(4), &sectors(&sizes)).expect("allowed");
            let start = start.min(striped.capacity().get() - 1);
            let len = len.min(striped.capacity().get() - start);
            let (member, there) = striped.first(Extent::at(start, len));
            prop_assert!(!there.is_empty() && there.len.get() <= len);
            for sector in 0..there.len.get() {
                let alone = striped.first(Extent::at(start + sector, 1));
                prop_assert_eq!(alone, (member, Extent::at(there.start.get() + sector, 1)));
            }
        }
    }

    #[test]
    fn chunks_lie_as_md_lays_them() {
        // Two zones: four rows of three members, then three rows of the second and the third.
        let striped = Striped::new(Sectors::new(8), &sectors(&[32, 60, 56])).expect("allowed");
        assert_eq!(striped.capacity(), Sectors::new(3 * 32 + 2 * 24));
        let at = |sector| striped.first(Extent::at(sector, 100));
        assert_eq!(at(0), (Member(0), Extent::at(0, 8)));
        assert_eq!(at(11), (Member(1), Extent::at(3, 5)));
        assert_eq!(at(24), (Member(0), Extent::at(8, 8)));
        assert_eq!(at(96), (Member(1), Extent::at(32, 8)));
        assert_eq!(at(104), (Member(2), Extent::at(32, 8)));
        assert_eq!(at(112), (Member(1), Extent::at(40, 8)));
    }

    #[test]
    fn what_cannot_be_a_volume_is_refused() {
        let striped = |chunk, sizes: &[u64]| Striped::new(Sectors::new(chunk), &sectors(sizes));
        assert_eq!(striped(8, &[64]), Err(MapError::Members(1)));
        assert_eq!(striped(8, &[64; 65]), Err(MapError::Members(65)));
        assert_eq!(striped(0, &[64, 64]), Err(MapError::Chunk));
        let (small, chunk) = (Sectors::new(7), Sectors::new(8));
        assert_eq!(striped(8, &[64, 7]), Err(MapError::Small(1, small, chunk)));
        assert_eq!(striped(8, &[u64::MAX - 7; 2]), Err(MapError::Large));
    }
}
