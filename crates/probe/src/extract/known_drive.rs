//! Layout, mechanics and timing of a drive, on which measurements of its electronics build.

use headtime_disk::profile::OverheadSpec;
use headtime_disk::{Layout, Mechanics};
use headtime_sched::Op;
use headtime_units::{Extent, Track};

/// Layout, mechanics and timing that have been learned already.
pub(super) struct KnownDrive<'l> {
    pub layout: &'l Layout,
    pub mechanics: &'l Mechanics,
    /// Rotation time in nanoseconds.
    pub turn: f64,
    /// Time from sending a read to an idle drive until its arm leaves, in nanoseconds.
    pub processing: f64,
    /// Extent that may be written.
    pub scratch: Option<Extent>,
    /// Sectors per physical sector; the largest possible number if unknown.
    pub unit: u64,
}

impl KnownDrive<'_> {
    /// Processing time of a read before the arm leaves, in nanoseconds.
    pub fn processing(overhead: &OverheadSpec) -> f64 {
        (overhead.per_command + overhead.read_miss_after_read).as_nanos() as f64
    }

    /// Time of the arm movement to a read, in nanoseconds.
    pub fn way(&self, from: Track, to: Track) -> f64 {
        let way = self.mechanics.reposition(from, to, Op::Read).total();
        (way + self.mechanics.set_up(way, Op::Read)).as_nanos() as f64
    }
}
