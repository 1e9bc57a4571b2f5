//! First come, first served.
//!
//! # Rule
//!
//! The oldest request goes first: by arrival, then by insertion. Requests merge as usual. Two queued
//! requests fuse only if they are neighbours in the order of arrival, as in Linux's noop, which knows no
//! other neighbours.
//!
//! # Bound
//!
//! No request is overtaken. A request that merges into an older request goes with it, and overtakes
//! nothing as a request of its own.
//!
//! # Tunables
//!
//! None.
//!
//! # Source
//!
//! Linux 2.6, `block/noop-iosched.c`.
//!
//! # When not to use it
//!
//! In front of a single arm with more than one request pending: every other policy here moves the arm
//! less. Use it where a lower layer orders better, such as a drive's own queue or a remote array, and as
//! the baseline of comparisons.

use crate::policy::{Built, Parts, PolicyInfo};
use crate::{Candidate, Elevator, HeadState, ListId, Partners, Request, Requests, Tag};
use alloc::vec::Vec;
use headtime_units::Time;

pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "noop",
    aliases: &["fcfs", "fifo", "none"],
    idea: "first come, first served",
    bound: "never overtaken",
    source: "Linux 2.6 block/noop-iosched.c",
    avoid: "a disk that orders nothing itself has several requests pending",
    ..PolicyInfo::PLAIN
};

pub(crate) fn build<P>(_: Parts<'_, P>) -> Built {
    Built::elevator(Noop::new())
}

const ALL: ListId = ListId(0);

/// First come, first served; see the [module](self).
#[derive(Clone, Debug)]
pub struct Noop {
    requests: Requests,
    /// Any two queued requests may fuse.
    fuses_any: bool,
}

impl Noop {
    /// Without requests.
    pub fn new() -> Noop {
        Noop {
            requests: Requests::new(1),
            fuses_any: false,
        }
    }

    /// Beside a scheduler that decides what fuses.
    pub(crate) fn beside_another() -> Noop {
        Noop {
            fuses_any: true,
            ..Noop::new()
        }
    }
}

impl Default for Noop {
    fn default() -> Noop {
        Noop::new()
    }
}

impl Elevator for Noop {
    fn insert(&mut self, _: Time, request: Request) {
        self.requests.insert(ALL, request);
    }

    fn peek(&self, _: Time, _: &HeadState) -> Option<Candidate> {
        let request = *self.requests.oldest(ALL)?;
        Some(Candidate {
            request,
            urgent: false,
        })
    }

    fn expires(&self, _: Time) -> Option<Time> {
        None
    }

    fn take(&mut self, _: Time, _: &HeadState) -> Option<Request> {
        let tag = self.requests.oldest(ALL)?.tag;
        Some(self.requests.remove(tag))
    }

    fn may_merge(&self, queued: Tag, new: &Request) -> bool {
        self.partners(new, false).include(queued)
    }

    fn partners(&self, request: &Request, _: bool) -> Partners {
        if self.fuses_any || !self.requests.contains(request.tag) {
            return Partners::Any;
        }
        let (before, after) = self.requests.neighbours(request.tag);
        Partners::Only([before, after].map(|near| near.map(|near| near.tag)))
    }

    fn withdraw(&mut self, tag: Tag) -> Request {
        self.requests.remove(tag)
    }

    fn merged(&mut self, grown: &Request) {
        self.requests.grow(grown);
    }

    fn fused(&mut self, kept: Tag, gone: Tag) {
        self.requests.fuse(kept, gone);
    }

    fn overtake_max(&self) -> Option<usize> {
        Some(0)
    }

    fn queued(&self) -> usize {
        self.requests.len()
    }

    fn drain(&mut self) -> Vec<Request> {
        self.requests.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, grown, read};

    #[test]
    fn only_neighbours_in_the_order_of_arrival_fuse() {
        let mut sched = Noop::new();
        for (tag, lba) in [(0, 100), (1, 116), (2, 500)] {
            sched.insert(at(0), read(tag, lba, 0));
        }
        sched.merged(&grown(read(0, 100, 0), 100, 16));
        assert!(sched.may_merge(Tag(0), &read(1, 116, 0)));
        assert!(sched.may_merge(Tag(1), &read(0, 100, 0)));
        assert!(!sched.may_merge(Tag(0), &read(2, 500, 0)));
        assert!(
            sched.may_merge(Tag(0), &read(3, 116, 0)),
            "a new request joins anything"
        );
    }

    #[test]
    fn what_was_held_back_is_served_by_its_arrival() {
        let mut sched = Noop::new();
        for (tag, ms) in [(0, 5), (1, 7), (2, 6)] {
            sched.insert(at(7), read(tag, 0, ms));
        }
        let served = [(); 3].map(|()| sched.take(at(7), &HeadState::START).unwrap().tag.0);
        assert_eq!(served, [0, 2, 1]);
    }
}
