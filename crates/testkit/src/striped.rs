//! Small striped volumes for tests.

use headtime_engine::{self as engine, Map, Member};
use headtime_units::{Extent, Sectors};

/// Members of equal size, and the chunks that each has.
#[derive(Clone, Copy, Debug)]
pub struct Striped {
    /// Number of members.
    pub members: u16,
    /// Sectors of a chunk.
    pub stripe: u64,
    /// Chunks of each member.
    pub stripes: u64,
    /// True if each row has a chunk of parity.
    pub parity: bool,
}

impl Striped {
    /// The map of the volume.
    ///
    /// # Panics
    ///
    /// If the volume cannot be.
    pub fn map(&self) -> engine::Striped {
        let sizes = vec![Sectors::new(self.stripe * self.stripes); usize::from(self.members)];
        let striped = match self.parity {
            false => engine::Striped::new,
            true => engine::Striped::with_parity,
        };
        striped(Sectors::new(self.stripe), &sizes).expect("a test's volume can be")
    }

    /// Sectors of the volume.
    pub fn capacity(&self) -> u64 {
        self.stripe * self.stripes * (u64::from(self.members) - u64::from(self.parity))
    }

    /// Returns true if sectors of the volume's `extent` are among `there` on `member`.
    pub fn touches(&self, extent: Extent, member: Member, there: Extent) -> bool {
        let map = self.map();
        (extent.start.get()..extent.end().get()).any(|sector| {
            let (on, at) = map.first(Extent::at(sector, 1));
            on == member && at.overlaps(there)
        })
    }
}
