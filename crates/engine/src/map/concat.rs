//! Members in sequence.

use super::{Map, MapError, Member};
use headtime_units::{Extent, Lba, Sectors};
use std::ops::Range;

/// Layout of all sectors of a member, then all sectors of the next, as in "linear" of Linux's md.
///
/// A flush and the end of a burst concern the member that contains their place. A place beyond the last sector concerns
/// all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concat {
    /// By member: first sector of the volume after the member.
    ends: Vec<u64>,
}

impl Concat {
    /// Puts members with `sizes` sectors in sequence.
    ///
    /// # Errors
    ///
    /// If the number of members is not 2 to [`MEMBERS_MAX`](super::MEMBERS_MAX), a member is empty, or the sum of the sizes
    /// overflows.
    pub fn new(sizes: &[Sectors]) -> Result<Concat, MapError> {
        MapError::check_members(sizes)?;
        if let Some(empty) = sizes.iter().position(|size| *size == Sectors::ZERO) {
            return Err(MapError::Empty(empty));
        }
        let mut end = 0_u64;
        let mut behind = |size: &Sectors| {
            end = end.checked_add(size.get())?;
            Some(end)
        };
        let ends: Option<Vec<u64>> = sizes.iter().map(&mut behind).collect();
        let ends = ends.ok_or(MapError::Large)?;
        Ok(Concat { ends })
    }

    /// Returns the number of the member that contains a sector of the volume; the number of members if there is no such
    /// sector.
    fn member(&self, sector: Lba) -> usize {
        self.ends.partition_point(|end| *end <= sector.get())
    }
}

impl Map for Concat {
    fn members(&self) -> u16 {
        self.ends.len() as u16
    }

    fn capacity(&self) -> Sectors {
        self.ends
            .last()
            .copied()
            .map(Sectors::new)
            .unwrap_or_default()
    }

    fn first(&self, extent: Extent) -> (Member, Extent) {
        let member = self.member(extent.start);
        let begin = match member {
            0 => 0,
            _ => self.ends[member - 1],
        };
        let start = extent.start.get();
        let len = extent.len.get().min(self.ends[member] - start);
        (Member(member as u16), Extent::at(start - begin, len))
    }

    fn concerned(&self, place: Lba) -> Range<u16> {
        let member = self.member(place) as u16;
        match member < self.members() {
            true => member..member + 1,
            false => 0..self.members(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{is_one_to_one, sectors};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sectors_and_places_are_one_to_one(sizes in prop::collection::vec(1_u64..40, 2..6)) {
            let concat = Concat::new(&sectors(&sizes)).expect("allowed");
            prop_assert_eq!(concat.capacity().get(), sizes.iter().sum::<u64>());
            is_one_to_one(&concat, &sizes);
        }
    }

    #[test]
    fn members_lie_one_behind_the_other() {
        let concat = Concat::new(&sectors(&[10, 5, 20])).expect("allowed");
        let at = |sector| concat.first(Extent::at(sector, 12));
        assert_eq!(at(0), (Member(0), Extent::at(0, 10)));
        assert_eq!(at(9), (Member(0), Extent::at(9, 1)));
        assert_eq!(at(10), (Member(1), Extent::at(0, 5)));
        assert_eq!(at(17), (Member(2), Extent::at(2, 12)));
        let concerned = |place| concat.concerned(Lba::new(place));
        assert_eq!(concerned(0), 0..1);
        assert_eq!(concerned(14), 1..2);
        assert_eq!(concerned(34), 2..3);
        assert_eq!(concerned(35), 0..3, "there is no such member");
    }

    #[test]
    fn what_cannot_be_a_volume_is_refused() {
        let concat = |sizes: &[u64]| Concat::new(&sectors(sizes));
        assert_eq!(concat(&[64]), Err(MapError::Members(1)));
        assert_eq!(concat(&[64; 65]), Err(MapError::Members(65)));
        assert_eq!(concat(&[64, 0]), Err(MapError::Empty(1)));
        assert_eq!(concat(&[u64::MAX, 1]), Err(MapError::Large));
    }
}
