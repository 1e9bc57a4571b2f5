//! What questions about the inside of a drive go by.

use headtime_disk::{Layout, Mechanics};
use headtime_sched::Op;
use headtime_units::{Extent, Track};

/// What is known of the drive already.
pub(super) struct Ground<'l> {
    pub layout: &'l Layout,
    pub mechanics: &'l Mechanics,
    /// In nanoseconds.
    pub turn: f64,
    /// What may be written.
    pub scratch: Option<Extent>,
    /// Sectors of the host in one of the medium, or in the largest that there are if it is not known.
    pub unit: u64,
}

impl Ground<'_> {
    /// How long the arm is on its way to a read, in nanoseconds.
    pub fn way(&self, from: Track, to: Track) -> f64 {
        let way = self.mechanics.reposition(from, to, Op::Read).total();
        (way + self.mechanics.set_up(way, Op::Read)).as_nanos() as f64
    }
}
