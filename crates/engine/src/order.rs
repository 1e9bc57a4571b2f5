//! Which live requests overlap.

use headtime_sched::{Entry, LbaIndex, Request, Tag};
use headtime_units::{Lba, Sectors};

/// The extents of all live requests, as they arrived.
///
/// Two requests conflict when they share a sector and at least one of them changes it. Of two that
/// conflict, the later waits until the earlier is complete.
#[derive(Debug, Default)]
pub(crate) struct Overlaps {
    by_start: LbaIndex,
    /// How many of them change sectors. While there are none, a read conflicts with nothing.
    changing: usize,
    /// The longest extent since the index was last empty: how far back a search must look.
    longest: Sectors,
}

impl Overlaps {
    pub fn insert(&mut self, request: &Request) {
        if self.by_start.is_empty() {
            self.longest = Sectors::ZERO;
        }
        self.by_start.insert(request.extent.start, request.tag);
        self.changing += usize::from(request.op.changes());
        self.longest = self.longest.max(request.extent.len);
    }

    pub fn remove(&mut self, request: &Request) {
        let was_there = self.by_start.remove(request.extent.start, request.tag);
        assert!(was_there, "request {} is not live", request.tag.0);
        self.changing -= usize::from(request.op.changes());
    }

    /// Calls `found` with every live request that shares a sector with `request`; with none at once
    /// if nothing changes any sector.
    ///
    /// `other` gives the request of a tag.
    pub fn each_overlapping(
        &self,
        request: &Request,
        other: impl Fn(Tag) -> Request,
        mut found: impl FnMut(&Request),
    ) {
        if self.changing == 0 && !request.op.changes() {
            return;
        }
        let from = Lba::new(
            request
                .extent
                .start
                .get()
                .saturating_sub(self.longest.get()),
        );
        for Entry { lba: start, tag } in self.by_start.upward(from) {
            if start >= request.extent.end() {
                break;
            }
            let other = other(tag);
            if other.extent.overlaps(request.extent) {
                found(&other);
            }
        }
    }
}

/// Whether two requests that share a sector must keep their order.
pub(crate) fn conflict(one: &Request, other: &Request) -> bool {
    (one.op.changes() || other.op.changes()) && one.extent.overlaps(other.extent)
}
