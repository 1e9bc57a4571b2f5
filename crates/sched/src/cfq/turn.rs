//! The turn of the active queue, and the requests in the drive during the turn.

use super::process::CfqContextId;
use super::queue::QueueId;
use crate::jiffies::Jiffies;
use headtime_units::Time;

/// Threshold for the detection of a queueing drive. A completion counts as a sample if more requests
/// than this are queued or in the drive. The drive queues if at least this number was in it at once
/// (CFQ_HW_QUEUE_MIN).
const DEPTH_THAT_TELLS: u64 = 5;

/// Number of samples per decision, less one.
const DEPTH_SAMPLES: u64 = 50;

/// The turn of the active queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub queue: QueueId,
    /// End of the slice. `None` until a request of the queue has completed.
    pub end: Option<Jiffies>,
    /// Requests handed out in this turn.
    pub handed_out: u64,
    /// True if the age of the oldest request has been checked.
    pub fifo_tested: bool,
    /// Process of the first request in this turn.
    pub context: Option<CfqContextId>,
    /// True if the disk is kept free for the queue, or was until the wait ended.
    pub waiting: bool,
    /// End of the wait.
    pub timer: Option<Time>,
    /// True if a request came during the wait. The turn must not end before this request is handed
    /// out.
    pub must_dispatch: bool,
}

impl Slice {
    pub fn new(queue: QueueId) -> Slice {
        Slice {
            queue,
            end: None,
            handed_out: 0,
            fifo_tested: false,
            context: None,
            waiting: false,
            timer: None,
            must_dispatch: false,
        }
    }

    /// Returns true if the slice is over (cfq_slice_used).
    pub fn is_used(&self, now: Jiffies) -> bool {
        self.end.is_some_and(|end| now >= end)
    }
}

/// Requests in the drive, and the assumption if the drive queues by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Requests handed out that have not come back.
    pub holds: u64,
    /// Synchronous requests among these.
    pub sync: u64,
    /// True if the drive is assumed to queue.
    pub queues: bool,
    samples: u64,
    peak: u64,
}

impl Drive {
    /// Builds the state of an empty drive.
    pub const fn new(queues: bool) -> Drive {
        Drive {
            holds: 0,
            sync: 0,
            queues,
            samples: 0,
            peak: 0,
        }
    }

    /// Returns true if a drive that holds `peak` requests at once queues.
    pub const fn seems_to_queue(peak: u64) -> bool {
        peak >= DEPTH_THAT_TELLS
    }

    /// Samples a completion. The completed request still counts (cfq_update_hw_tag).
    pub fn sample(&mut self, queued: usize) {
        self.peak = self.peak.max(self.holds);
        if queued as u64 <= DEPTH_THAT_TELLS && self.holds <= DEPTH_THAT_TELLS {
            return;
        }
        self.samples += 1;
        if self.samples > DEPTH_SAMPLES {
            self.queues = Drive::seems_to_queue(self.peak);
            (self.samples, self.peak) = (0, 0);
        }
    }
}
