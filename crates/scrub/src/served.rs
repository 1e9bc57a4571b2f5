//! Interface to the served disk.

use headtime_engine::Background;
use headtime_units::Sectors;
use std::fmt::Debug;

/// Makes a job. Called on the disk's thread, on which the job runs.
pub type MakeJob = Box<dyn FnOnce() -> Box<dyn Background> + Send>;

/// Served disk, as its scrubs use it.
///
/// A scrub reads through its job. The job is notified of each read's end ([`Background::finished`]), and of each write before the write
/// starts ([`Background::arrives`]).
pub trait Served: Debug + Send + Sync {
    /// Name of the disk.
    fn name(&self) -> &str;

    /// Sectors of the disk.
    fn capacity(&self) -> Sectors;

    /// Bytes of a sector.
    fn sector_bytes(&self) -> u32;

    /// Number of devices of the disk.
    fn members(&self) -> usize;

    /// Most commands that the drive gets at a time.
    fn depth(&self) -> u32;

    /// Returns true if writes are refused because of a failure.
    fn has_failed(&self) -> bool;

    /// Returns true if the disk takes no more requests.
    fn is_stopped(&self) -> bool;

    /// Starts a job in place of the present one, whose reads must be over. A read of the job has at most
    /// [`READ_BYTES_MAX`](crate::READ_BYTES_MAX).
    fn run_job(&self, job: MakeJob);

    /// Ends the job, whose reads must be over.
    fn end_job(&self);

    /// Asks the job again for reads, since something has changed for it.
    fn ask_job(&self);
}
