//! Shortest seek time first, by distance in addresses.
//!
//! # Rule
//!
//! The request that starts nearest to the head goes next. If two are at the same distance, the higher
//! address goes. If two are at the same address, the one inserted first goes. The distance in
//! addresses stands for the seek time, since a scheduler without a geometry has no better measure. The
//! two grow together, except across zones and at the ends of tracks.
//!
//! # Bound
//!
//! Unbounded: a steady stream near the head starves everything else.
//!
//! # Tunables
//!
//! None.
//!
//! # Source
//!
//! Denning, "Effects of scheduling on file memory operations", AFIPS 1967. Lumb, Schindler and Ganger,
//! "Freeblock Scheduling Outside of Disk Firmware", FAST 2002, take it as representative of the
//! seek-reducing schedulers of hosts.
//!
//! # When not to use it
//!
//! Wherever a client waits for a request, unless a layer above bounds waiting. SSTF leaves much
//! rotational latency, which is useful for freeblock scheduling.

use crate::policy::{Built, Parts, PolicyInfo};
use crate::sorted::Sorted;
use crate::{Candidate, Elevator, HeadState, ListId, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Lba, Time};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "sstf",
    idea: "the nearest address goes next",
    bound: "none: can starve",
    source: "Denning, AFIPS 1967; Lumb et al., FAST 2002",
    avoid: "anybody waits for requests far from where the others are",
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(_: Parts<'_, P>) -> Built {
    Built::elevator(Sstf::new())
}

const ALL: ListId = ListId(0);

/// Shortest seek first, by distance in addresses; see the [module](self).
#[derive(Clone, Debug)]
pub struct Sstf {
    sorted: Sorted,
}

impl Sstf {
    /// Without requests.
    pub fn new() -> Sstf {
        Sstf {
            sorted: Sorted::new(1),
        }
    }

    fn next(&self, head: Lba) -> Option<Tag> {
        let index = self.sorted.by_lba(ALL);
        let (above, below) = (index.first_at_or_after(head), index.last_before(head));
        let nearest = match (above, below) {
            (Some(above), Some(below)) if head.distance(below.lba) < head.distance(above.lba) => {
                below
            }
            (above, below) => above.or(below)?,
        };
        // Seen from above, the last of several at one address comes first.
        Some(index.first_at_or_after(nearest.lba)?.tag)
    }
}

impl Default for Sstf {
    fn default() -> Sstf {
        Sstf::new()
    }
}

impl Elevator for Sstf {
    fn insert(&mut self, _: Time, request: Request) {
        self.sorted.insert(ALL, request);
    }

    fn peek(&self, _: Time, head: &HeadState) -> Option<Candidate> {
        let request = *self.sorted.requests().get(self.next(head.lba)?);
        Some(Candidate {
            request,
            urgent: false,
        })
    }

    fn expires(&self, _: Time) -> Option<Time> {
        None
    }

    fn take(&mut self, _: Time, head: &HeadState) -> Option<Request> {
        let tag = self.next(head.lba)?;
        Some(self.sorted.remove(tag))
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.sorted.remove(tag)
    }

    fn merged(&mut self, grown: &Request) {
        self.sorted.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.sorted.fused(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        None
    }

    fn queued(&self) -> usize {
        self.sorted.requests().len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.sorted.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, read};

    fn first(head: u64, lbas: [u64; 3]) -> (u64, u32) {
        let mut sched = Sstf::new();
        for (tag, lba) in (0..).zip(lbas) {
            sched.insert(at(0), read(tag, lba, 0));
        }
        let request = sched.take(at(0), &HeadState::at(Lba::new(head))).unwrap();
        (request.extent.start.get(), request.tag.0)
    }

    #[test]
    fn the_nearest_the_higher_the_first() {
        assert_eq!(first(50, [10, 95, 80]).0, 80);
        assert_eq!(first(50, [10, 30, 80]).0, 30);
        assert_eq!(
            first(50, [30, 70, 90]).0,
            70,
            "the higher of two equally near"
        );
        assert_eq!(
            first(50, [30, 30, 90]),
            (30, 0),
            "the first of two at one address, below"
        );
        assert_eq!(
            first(50, [60, 60, 0]),
            (60, 0),
            "the first of two at one address, above"
        );
        assert_eq!(first(50, [50, 49, 51]).0, 50);
    }
}
