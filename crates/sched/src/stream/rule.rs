//! The inequality of section 2.1, and the service times that it compares.

use crate::ServiceCurve;
use alloc::sync::Arc;
use headtime_units::{Lba, Millionths, Nanos};

/// The rule that makes a request the child of an earlier one, and a stream established:
///
/// ```text
/// wait + service(end of the parent, child) < limit = service(end of the parent, pending)
/// ```
#[derive(Clone, Debug)]
pub struct StreamRule {
    curve: Arc<ServiceCurve>,
    /// Disks over which addresses are striped; 1 for the addresses of a disk.
    disks: u64,
    least: Nanos,
    mean: Nanos,
    near: Nanos,
    threshold: u64,
    tolerance: Millionths,
}

impl StreamRule {
    /// The rule of a disk with these service times.
    pub fn new(curve: Arc<ServiceCurve>, threshold: u64, tolerance: Millionths) -> StreamRule {
        StreamRule {
            disks: 1,
            least: curve.least(),
            mean: curve.mean(),
            near: curve.near(),
            threshold,
            tolerance,
            curve,
        }
    }

    /// The rule of a virtual disk with addresses striped over `disks` disks. The threshold is multiplied by `disks`
    /// (section 2.2). Service times are those of a single disk, for [places](StreamRule::place).
    #[must_use]
    pub fn striped(self, disks: u64) -> StreamRule {
        StreamRule {
            disks,
            threshold: self.threshold.saturating_mul(disks),
            ..self
        }
    }

    /// Least number of requests of an established stream.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// The shortest service time of all.
    pub fn least(&self) -> Nanos {
        self.least
    }

    /// The longest service time of all.
    pub fn longest(&self) -> Nanos {
        self.curve.service(Lba::new(u64::MAX >> 1), Lba::ZERO)
    }

    /// Place of an address on each of the disks.
    pub fn place(&self, address: Lba) -> Lba {
        Lba::new(address.get() / self.disks)
    }

    /// Service time of a request at the place `to` with the head at `from`.
    #[inline]
    pub fn service(&self, from: Lba, to: Lba) -> Nanos {
        self.curve.service(from, to)
    }

    /// Returns the limit behind a completed request that ends at `from`, if the elevator would serve a request at
    /// `pending`.
    pub fn limit(&self, from: Lba, pending: Option<Lba>) -> Nanos {
        pending.map_or(self.mean, |to| self.service(from, to))
    }

    /// Returns the limit behind a request in the drive, if the elevator would serve a request at `pending`.
    ///
    /// If nothing is pending, the next request belongs either to the stream or to another client. The scheduler cannot
    /// wait any more for the nearer of the two. So the limit admits only a request that can hardly be near by chance.
    pub fn limit_in_flight(&self, from: Lba, pending: Option<Lba>) -> Nanos {
        pending.map_or(self.near, |to| self.service(from, to))
    }

    /// Returns true if a request of the stream can have a service time below `limit`. Otherwise waiting for the stream cannot pay.
    pub fn leaves_room(&self, limit: Nanos) -> bool {
        limit > self.least
    }

    /// Returns true if a stream of this size is established.
    pub fn is_established(&self, size: u64) -> bool {
        size >= self.threshold
    }

    /// Returns the longer limit of a second chance. A stream needs `1 + tolerance` times the threshold in size.
    pub fn second_chance(&self, size: u64, limit: Nanos) -> Option<Nanos> {
        const ONE: u128 = 1_000_000;
        let more = ONE + u128::from(self.tolerance.0);
        let enough = u128::from(size) * ONE >= u128::from(self.threshold) * more;
        if !enough || more == ONE || !self.leaves_room(limit) {
            return None;
        }
        let longer = u128::from(limit.as_nanos()) * more / ONE;
        Some(Nanos::from_nanos(u64::try_from(longer).unwrap_or(u64::MAX)))
    }
}
