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
    /// How many extents of each length there are, by the power of two that the length does not
    /// exceed: says how far back a search must look.
    lengths: Lengths,
}

impl Overlaps {
    pub fn insert(&mut self, request: &Request) {
        self.by_start.insert(request.extent.start, request.tag);
        self.changing += usize::from(request.op.changes());
        self.lengths.add(request.extent.len);
    }

    pub fn remove(&mut self, request: &Request) {
        let was_there = self.by_start.remove(request.extent.start, request.tag);
        assert!(was_there, "request {} is not live", request.tag.0);
        self.changing -= usize::from(request.op.changes());
        self.lengths.remove(request.extent.len);
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
                .saturating_sub(self.lengths.longest()),
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

/// Counts of lengths by power of two.
#[derive(Debug)]
struct Lengths {
    counts: [usize; 65],
    /// A bit for each count that is not zero.
    present: u128,
}

impl Default for Lengths {
    fn default() -> Lengths {
        Lengths {
            counts: [0; 65],
            present: 0,
        }
    }
}

impl Lengths {
    /// The exponent of the least power of two that is not less than `len`.
    fn class(len: Sectors) -> usize {
        (u64::BITS - len.get().saturating_sub(1).leading_zeros()) as usize
    }

    fn add(&mut self, len: Sectors) {
        let class = Lengths::class(len);
        self.counts[class] += 1;
        self.present |= 1 << class;
    }

    fn remove(&mut self, len: Sectors) {
        let class = Lengths::class(len);
        self.counts[class] -= 1;
        if self.counts[class] == 0 {
            self.present &= !(1 << class);
        }
    }

    /// At least the greatest length, and less than twice that.
    fn longest(&self) -> u64 {
        match u128::BITS - self.present.leading_zeros() {
            0 => 0,
            bits => 1_u64.checked_shl(bits - 1).unwrap_or(u64::MAX),
        }
    }
}

/// Whether two requests that share a sector must keep their order.
pub(crate) fn conflict(one: &Request, other: &Request) -> bool {
    (one.op.changes() || other.op.changes()) && one.extent.overlaps(other.extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_forget_what_is_gone() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.longest(), 0);
        for (len, longest) in [
            (1, 1),
            (8, 8),
            (9, 16),
            (1 << 40, 1 << 40),
            (u64::MAX, u64::MAX),
        ] {
            lengths.add(Sectors::new(len));
            assert_eq!(lengths.longest(), longest);
        }
        for (len, longest) in [(u64::MAX, 1 << 40), (1 << 40, 16), (9, 8), (8, 1), (1, 0)] {
            lengths.remove(Sectors::new(len));
            assert_eq!(lengths.longest(), longest);
        }
    }
}
