//! A recorded request.

use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Time};

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Time at which the request was made. The zero is the trace's own: see [`Notes::base`](crate::Notes::base).
    pub arrival: Option<Time>,
    /// Time at which the request was finished, on the same clock.
    pub completion: Option<Time>,
    /// Number of the disk. Some formats name disks by text, which [`Trace::device_name`](crate::Trace::device_name) returns.
    pub device: u32,
    /// Operation of the request.
    pub op: Op,
    /// Sectors of 512 bytes that the request covers. Empty for a flush alone.
    pub extent: Extent,
    /// Process that made the request.
    pub process: Option<u32>,
    pub flags: Flags,
}
