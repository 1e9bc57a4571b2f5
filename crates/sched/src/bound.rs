//! Bounds on waiting that are stated in time.

use crate::Request;
use headtime_units::Nanos;

/// The longest that a request is queued: a time, and so many of the slowest accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitBound {
    /// The time by itself, such as an expiry.
    pub expire: Nanos,
    /// How many further accesses of the disk may pass, each as slow as the slowest.
    pub accesses: u64,
}

impl WaitBound {
    /// The bound as a time, on a disk whose slowest access takes `slowest`.
    pub fn time(self, slowest: Nanos) -> Nanos {
        let accesses = slowest.as_nanos().saturating_mul(self.accesses);
        self.expire.saturating_add(Nanos::from_nanos(accesses))
    }
}

/// A policy that bounds waiting in time rather than in how often a request is overtaken.
pub trait BoundsWaits {
    /// Returns the longest that `request` is queued, from its arrival until it is handed out. `ahead`
    /// requests of its direction were queued when it came. All requests are of one class, and the policy
    /// is asked whenever an access ends. `None` if there is no bound.
    fn wait_max(&self, request: &Request, ahead: usize) -> Option<WaitBound>;
}
