//! Bounds on waiting that are stated in time.

use crate::Request;
use headtime_units::Nanos;

/// Upper bound of a request's time in the queue: a time, and a number of the slowest accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitBound {
    /// Fixed part of the bound, such as an expiry.
    pub expire: Nanos,
    /// Number of further accesses of the disk that may pass, each as slow as the slowest.
    pub accesses: u64,
}

impl WaitBound {
    /// The bound as a time, on a disk whose slowest access takes `slowest`.
    pub fn time(self, slowest: Nanos) -> Nanos {
        let accesses = slowest.as_nanos().saturating_mul(self.accesses);
        self.expire.saturating_add(Nanos::from_nanos(accesses))
    }
}

/// A policy that bounds waiting in time rather than by the number of overtaking requests.
pub trait BoundsWaits {
    /// Returns the longest time for which `request` is queued, from its arrival until it is handed out.
    /// `ahead` requests of its direction were queued at its arrival. All requests must be of one class,
    /// and the policy must be asked whenever an access ends. `None` if the policy has no such bound.
    fn wait_max(&self, request: &Request, ahead: usize) -> Option<WaitBound>;
}
