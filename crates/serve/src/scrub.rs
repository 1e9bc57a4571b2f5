//! Scrubs of a disk, which `headtime-scrub` has: reads of the whole disk while clients use it.

use crate::buffer::BUFFER_BYTES_MAX;
use crate::disk::Disk;
use headtime_engine::Member;
use headtime_units::Sectors;

pub use headtime_scrub::*;

/// Each read of a scrub fits a buffer.
const _: () = assert!(READ_BYTES_MAX <= BUFFER_BYTES_MAX as u64);

/// Member with the job. Only disks of a single device are scrubbed.
const ONLY: Member = Member(0);

impl Served for Disk {
    fn name(&self) -> &str {
        Disk::name(self)
    }

    fn capacity(&self) -> Sectors {
        self.geometry().capacity
    }

    fn sector_bytes(&self) -> u32 {
        Disk::sector_bytes(self)
    }

    fn members(&self) -> usize {
        Disk::members(self)
    }

    fn depth(&self) -> u32 {
        self.engine_config().depth
    }

    fn has_failed(&self) -> bool {
        Disk::has_failed(self)
    }

    fn is_stopped(&self) -> bool {
        Disk::is_stopped(self)
    }

    fn run_job(&self, job: MakeJob) {
        self.run_in_background(ONLY, job);
    }

    fn end_job(&self) {
        self.end_background(ONLY);
    }

    fn ask_job(&self) {
        self.ask_jobs();
    }
}
