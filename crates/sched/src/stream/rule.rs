//! The inequality of section 2.1, and the service times that it compares.

use crate::ServiceCurve;
use alloc::sync::Arc;
use headtime_units::{Lba, Millionths, Nanos};

/// The rule by which a request is the child of an earlier one, and a stream is established:
///
/// ```text
/// wait + service(end of the parent, child) < limit = service(end of the parent, what is pending)
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

    /// The rule of the virtual disk whose addresses are striped over `disks` such disks. The threshold is that many times
    /// higher (section 2.2). Service times are those of a disk, for [places](StreamRule::place).
    #[must_use]
    pub fn striped(self, disks: u64) -> StreamRule {
        StreamRule {
            disks,
            threshold: self.threshold.saturating_mul(disks),
            ..self
        }
    }

    /// Requests from which on a stream is established.
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

    /// The limit behind a completed request that ends at `from`, if the elevator would serve what is at `pending`.
    pub fn limit(&self, from: Lba, pending: Option<Lba>) -> Nanos {
        pending.map_or(self.mean, |to| self.service(from, to))
    }

    /// The limit behind a request that is in the drive, if the elevator would serve what is at `pending`.
    ///
    /// If nothing is pending, the next request is either one of the stream or somebody else's, and
    /// the nearer of the two can no longer be waited for. So only a request counts that can hardly
    /// be near by chance.
    pub fn limit_in_flight(&self, from: Lba, pending: Option<Lba>) -> Nanos {
        pending.map_or(self.near, |to| self.service(from, to))
    }

    /// Returns true if a request to come can be nearer than one of this service time.
    pub fn leaves_room(&self, limit: Nanos) -> bool {
        limit > self.least
    }

    /// Returns true if a stream of this size is waited for.
    pub fn is_established(&self, size: u64) -> bool {
        size >= self.threshold
    }

    /// The longer limit that a stream gets once, if it has `1 + tolerance` times as many requests as the threshold.
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
