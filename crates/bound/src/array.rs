//! Distribution of work over the members of an array.

use headtime_units::{Extent, Nanos, Sectors};
use std::fmt;
use std::num::NonZero;

/// Equal drives behind one address space.
pub struct Array {
    members: u16,
    first: Box<First>,
    bus: Option<NonZero<u64>>,
}

/// Returns the place of the first sectors of an extent: the number of the member, and 1 or more sectors there.
type First = dyn Fn(Extent) -> (u16, Extent);

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut array = f.debug_struct("Array");
        array
            .field("members", &self.members)
            .field("bus", &self.bus);
        array.finish_non_exhaustive()
    }
}

impl Array {
    /// Creates an array of `members` drives. `first` returns the place of the first sectors of an extent: the number of
    /// the member, and 1 or more sectors there. A page of 4 KiB must lie on at most two members. If `bus` is given, all
    /// drives share a link of `bus` bytes a second.
    pub fn new(
        members: u16,
        bus: Option<NonZero<u64>>,
        first: impl Fn(Extent) -> (u16, Extent) + 'static,
    ) -> Array {
        let first = Box::new(first);
        Array {
            members,
            first,
            bus,
        }
    }

    fn each_part(&self, mut rest: Extent, mut take: impl FnMut(usize, Extent)) {
        while !rest.is_empty() {
            let (member, part) = (self.first)(rest);
            take(usize::from(member), part);
            let next = rest.start + part.len;
            rest = Extent::new(next, rest.end() - next);
        }
    }

    /// Returns the least time of the shared link for this number of bytes.
    pub(crate) fn on_bus(&self, bytes: u128) -> Nanos {
        let time = self.bus.map_or(0, |bus| {
            bytes.saturating_mul(1_000_000_000) / u128::from(bus.get())
        });
        Nanos::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

/// Splits extents into parts by member. Without an array, returns the extents.
pub(crate) fn split(array: Option<&Array>, extents: Vec<Extent>) -> Vec<Vec<Extent>> {
    let Some(array) = array else {
        return vec![extents];
    };
    let mut parts = vec![Vec::new(); array.members.into()];
    for extent in extents {
        array.each_part(extent, |member, part| parts[member].push(part));
    }
    parts
}

/// Returns the largest number of sectors of some extents on one drive.
pub(crate) fn largest_share(array: Option<&Array>, extents: &[Extent]) -> Sectors {
    let Some(array) = array else {
        let all = extents.iter().fold(0, |all, extent| all + extent.len.get());
        return Sectors::new(all);
    };
    let mut shares = vec![Sectors::ZERO; array.members.into()];
    for extent in extents {
        array.each_part(*extent, |member, part| shares[member] += part.len);
    }
    shares.into_iter().max().unwrap_or_default()
}
