//! A map that tries volumes. Not for use.

use headtime_engine::{Map, Member};
use headtime_units::{Extent, Sectors};

/// Stripes of sectors on each member in turn.
#[derive(Clone, Copy, Debug)]
pub struct Striped {
    /// How many members there are.
    pub members: u16,
    /// Sectors of a stripe.
    pub stripe: u64,
    /// Stripes of each member.
    pub stripes: u64,
}

impl Striped {
    /// Returns true if sectors of the volume's `extent` are among `there` on `member`.
    pub fn touches(&self, extent: Extent, member: Member, there: Extent) -> bool {
        (extent.start.get()..extent.end().get()).any(|sector| {
            let (on, at) = self.first(Extent::at(sector, 1));
            on == member && at.overlaps(there)
        })
    }
}

impl Map for Striped {
    fn members(&self) -> u16 {
        self.members
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(self.stripe * self.stripes * u64::from(self.members))
    }

    fn first(&self, extent: Extent) -> (Member, Extent) {
        let start = extent.start.get();
        let (stripe, within) = (start / self.stripe, start % self.stripe);
        let members = u64::from(self.members);
        let len = extent.len.get().min(self.stripe - within);
        let there = Extent::at(stripe / members * self.stripe + within, len);
        (Member((stripe % members) as u16), there)
    }
}
