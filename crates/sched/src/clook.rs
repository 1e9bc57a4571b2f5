//! The circular elevator: upward sweeps, then back to the lowest request.
//!
//! # Rule
//!
//! The request with the lowest start at or after the head goes next. If none exists, the lowest of all
//! goes. If two start at the same address, the one inserted first goes. `batch=N` closes a sweep once it
//! has admitted N requests. Later requests wait until all N are served, then the oldest N are admitted.
//! Within a batch the rule is the same.
//!
//! # Bound
//!
//! With `batch=0` the bound is useless: a request that arrives just ahead of the head joins the sweep,
//! and the sweep ends only at the end of the disk. With `batch=N` the later requests of its own batch
//! overtake a request, at most N − 1. A request that was held back before its insertion may find up to N
//! later arrivals admitted already. So the bound is 2·N − 1.
//!
//! # Tunables
//!
//! - `batch` (requests; default 0): number of requests that are served before later ones may join.
//!   Higher makes sweeps longer and seeks shorter. Lower bounds waiting more tightly. 1 is first come,
//!   first served. 0 admits every request at once.
//!
//! # Source
//!
//! Worthington, Ganger and Patt, "Scheduling Algorithms for Modern Disk Drives", SIGMETRICS 1994, for
//! C-LOOK. Closing the batch is the N-step scan of Teorey and Pinkerton, "A comparative analysis of
//! disk scheduling policies", CACM 1972.
//!
//! # When not to use it
//!
//! If a steady writer runs ahead of the head while a client waits for a request farther back: set
//! `batch`, or use `deadline`. If rotation matters more than seeks (short seeks, deep queues): use
//! `sptf`.

use crate::policy::{Built, OptionInfo, Parts, PolicyInfo};
use crate::sorted::Sorted;
use crate::{Candidate, Elevator, HeadState, ListId, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Lba, Time};

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "clook",
    aliases: &["c-look"],
    idea: "upward sweeps, back to the lowest",
    bound: "overtaken at most 2·batch − 1 times; none with batch=0",
    source: "Worthington, Ganger, Patt, SIGMETRICS 1994; Teorey, Pinkerton, CACM 1972",
    avoid: "requests keep arriving just ahead of the head and others must not wait",
    options: &[OptionInfo::count(
        "batch",
        0,
        (0, 1_000_000),
        "requests that are served before later ones may join the sweep; higher saves more seeking, \
         lower bounds waiting more tightly, 1 is first come first served; 0 lets everybody join at \
         once",
    )],
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(parts: Parts<'_, P>) -> Built {
    Built::elevator(Clook::new(parts.options.count("batch") as usize))
}

/// List of the batch that is being served.
const ADMITTED: ListId = ListId(0);
/// List of later requests.
const WAITING: ListId = ListId(1);

/// The circular elevator; see the [module](self).
#[derive(Clone, Debug)]
pub struct Clook {
    batch: usize,
    sorted: Sorted,
    /// Number of requests that the running batch has admitted, including served ones.
    admitted: usize,
}

impl Clook {
    /// Builds an elevator without requests. `batch` requests are served before later ones may join; 0
    /// for no limit.
    pub fn new(batch: usize) -> Clook {
        Clook {
            batch,
            sorted: Sorted::new(2),
            admitted: 0,
        }
    }

    fn next(&self, head: Lba) -> Option<Tag> {
        let admitted = self.sorted.by_lba(ADMITTED);
        let next = admitted
            .first_at_or_after(head)
            .or_else(|| admitted.first())?;
        Some(next.tag)
    }

    fn has_room(&self) -> bool {
        self.batch == 0 || self.admitted < self.batch
    }

    /// Begins the next batch if the running one is served.
    fn turn_over(&mut self) {
        if !self.sorted.by_lba(ADMITTED).is_empty() {
            return;
        }
        self.admitted = 0;
        while self.has_room()
            && let Some(oldest) = self.sorted.requests().oldest(WAITING)
        {
            self.sorted.move_to(oldest.tag, ADMITTED);
            self.admitted += 1;
        }
    }
}

impl Elevator for Clook {
    fn insert(&mut self, _: Time, request: Request) {
        if self.has_room() {
            self.sorted.insert(ADMITTED, request);
            self.admitted += 1;
        } else {
            self.sorted.insert(WAITING, request);
        }
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
        let request = self.sorted.remove(self.next(head.lba)?);
        self.turn_over();
        Some(request)
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        let request = self.sorted.remove(tag);
        self.turn_over();
        request
    }

    fn merged(&mut self, grown: &Request) {
        self.sorted.merged(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.sorted.fused(kept, gone);
        // `gone` may have been the whole batch, and `kept` may be waiting for a later batch.
        self.turn_over();
    }

    fn overtake_max(&self) -> Option<usize> {
        (self.batch > 0).then(|| 2 * self.batch - 1)
    }

    fn queued(&self) -> usize {
        self.sorted.requests().len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.admitted = 0;
        self.sorted.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, grown, order, read};

    #[test]
    fn arrivals_ahead_join_an_open_sweep_and_wait_for_a_closed_batch() {
        // The closed batch of 150 and 20 begins where any sweep would: nothing lies above 300.
        for (batch, after) in [(0, [150, 300, 20]), (2, [300, 20, 150])] {
            let mut sched = Clook::new(batch);
            sched.insert(at(0), read(0, 100, 0));
            sched.insert(at(0), read(1, 300, 0));
            let first = sched.take(at(0), &HeadState::START).unwrap();
            assert_eq!(first.tag, Tag(0));
            sched.insert(at(1), read(2, 150, 1));
            sched.insert(at(1), read(3, 20, 1));
            let mut served = Vec::new();
            let mut head = HeadState::behind(&first);
            while let Some(request) = sched.take(at(1), &head) {
                head = HeadState::behind(&request);
                served.push(request.extent.start.get());
            }
            assert_eq!(served, after, "batch={batch}");
        }
    }

    #[test]
    fn a_batch_that_is_fused_away_makes_room() {
        let mut sched = Clook::new(1);
        sched.insert(at(9), read(0, 100, 9));
        // Held back, so that it waits for the batch although it is the older one.
        sched.insert(at(9), read(1, 108, 5));
        sched.fused(Tag(1), Tag(0));
        sched.merged(&grown(read(1, 108, 5), 100, 16));
        assert_eq!(order(&mut sched, at(9)), [100]);
    }

    #[test]
    fn a_drained_batch_is_over() {
        let mut sched = Clook::new(2);
        sched.insert(at(0), read(0, 100, 0));
        sched.insert(at(0), read(1, 200, 0));
        assert_eq!(sched.drain().len(), 2);
        sched.insert(at(0), read(0, 300, 0));
        sched.insert(at(0), read(1, 200, 0));
        assert_eq!(order(&mut sched, at(0)), [200, 300]);
    }
}
