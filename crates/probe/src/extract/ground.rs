//! What questions about the inside of a drive go by.

use headtime_disk::profile::OverheadSpec;
use headtime_disk::{Layout, Mechanics};
use headtime_sched::Op;
use headtime_units::{Extent, Track};

/// What is known of the drive already.
pub(super) struct Ground<'l> {
    pub layout: &'l Layout,
    pub mechanics: &'l Mechanics,
    /// In nanoseconds.
    pub turn: f64,
    /// From when a read is sent to a drive at rest until its arm leaves, in nanoseconds.
    pub processing: f64,
    /// What may be written.
    pub scratch: Option<Extent>,
    /// Sectors of the host in one of the medium, or in the largest that there are if it is not known.
    pub unit: u64,
}

impl Ground<'_> {
    /// What a read takes of a drive before its arm leaves, in nanoseconds.
    pub fn processing(overhead: &OverheadSpec) -> f64 {
        (overhead.per_command + overhead.read_miss_after_read).as_nanos() as f64
    }

    /// How long the arm is on its way to a read, in nanoseconds.
    pub fn way(&self, from: Track, to: Track) -> f64 {
        let way = self.mechanics.reposition(from, to, Op::Read).total();
        (way + self.mechanics.set_up(way, Op::Read)).as_nanos() as f64
    }
}
