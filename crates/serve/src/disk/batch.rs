//! Requests of a front end that run together.

use super::shared::Shared;
use crate::request::{Submission, is_durable};
use headtime_units::Lba;

/// Requests of a full batch.
const BATCH: u32 = 16;

/// Most bytes of requests that run on a front end's thread. The kernel copies cached data meanwhile, at about 10 GB/s. More
/// bytes are copied while the front end sends others: with 256 KiB, a file lost a quarter of its reads at depth 32.
const GUEST_BYTES: u64 = 64 << 10;

/// Requests that were submitted and not run yet, see [`Disk::run`](super::Disk::run).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batch {
    pub(super) requests: u32,
    /// Bytes of the requests.
    bytes: u64,
    /// True if a thread that runs the requests may have to wait for the file system.
    may_wait: bool,
}

impl Batch {
    /// True if the batch is to be run before more requests are submitted, so that the first have their replies soon.
    pub(crate) fn is_full(&self) -> bool {
        self.requests >= BATCH
    }

    /// True if a front end may run the requests itself.
    pub(super) fn is_short(&self) -> bool {
        !self.may_wait && (1..=GUEST_BYTES).contains(&self.bytes)
    }

    /// The batch with another request.
    pub(super) fn with(self, submission: &Submission, shared: &Shared) -> Batch {
        let (geometry, extent) = (shared.geometry, submission.extent);
        // Before these requests, the disk asks the file system for the file's length. Each member has a last sector.
        let is_last = shared.members.len() > 1 || extent.end() == Lba::ZERO + geometry.capacity;
        let may_wait =
            is_durable(submission.op, submission.flags) || submission.op.changes() && is_last;
        Batch {
            requests: self.requests + 1,
            bytes: self.bytes + extent.len.bytes(geometry.sector_bytes),
            may_wait: self.may_wait || may_wait,
        }
    }
}
