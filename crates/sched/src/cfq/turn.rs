//! The turn of the active queue, and what is in the drive meanwhile.

use super::process::CfqContextId;
use super::queue::QueueId;
use crate::jiffies::Jiffies;
use headtime_units::Time;

/// How many requests, queued or in the drive, it takes to tell whether the drive queues; and how many
/// in it at once say so (CFQ_HW_QUEUE_MIN).
const DEPTH_THAT_TELLS: u64 = 5;

/// How many completions are looked at for that, less one.
const DEPTH_SAMPLES: u64 = 50;

/// The turn of the active queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub queue: QueueId,
    /// When it ends; there once a request of the queue completed.
    pub end: Option<Jiffies>,
    /// Requests handed out in it.
    pub handed_out: u64,
    /// True if the oldest request was looked at.
    pub fifo_tested: bool,
    /// Whose requests it is for: who asked for the first one.
    pub context: Option<CfqContextId>,
    /// True if the disk is kept free for the queue, or was until the wait ended.
    pub waiting: bool,
    /// When the wait ends.
    pub timer: Option<Time>,
    /// True if its request came during the wait and may not be left behind.
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

/// What is in the drive, and whether it seems to queue by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Requests handed out that have not come back.
    pub holds: u64,
    /// Of these, how many somebody waits for.
    pub sync: u64,
    /// True if the drive is believed to queue.
    pub queues: bool,
    samples: u64,
    peak: u64,
}

impl Drive {
    /// Nothing is in it.
    pub const fn new(queues: bool) -> Drive {
        Drive {
            holds: 0,
            sync: 0,
            queues,
            samples: 0,
            peak: 0,
        }
    }

    /// Returns true if samples say that a drive with so many requests at once queues.
    pub const fn seems_to_queue(peak: u64) -> bool {
        peak >= DEPTH_THAT_TELLS
    }

    /// Looks at a completion, with the request still counted (cfq_update_hw_tag).
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
