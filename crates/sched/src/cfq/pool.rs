//! The requests of all queues, by tag: those that are queued, each in the list of its queue by age,
//! and those that were handed out, until they come back.
//!
//! As [`Requests`](crate::Requests), but with any number of lists, which are with the queues.

use super::process::CfqContextId;
use super::queue::QueueId;
use crate::ages::{AgeList, Linked, Node};
use crate::{Age, Request, Tag};
use alloc::vec::Vec;
use headtime_units::Extent;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Queued,
    HandedOut,
}

/// Whose a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub queue: QueueId,
    pub context: CfqContextId,
}

#[derive(Clone, Debug)]
struct PoolSlot {
    state: State,
    request: Request,
    owner: Owner,
    node: Node,
}

impl Linked for PoolSlot {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// By tag; slots that no request had yet are free copies of the first.
    slots: Vec<PoolSlot>,
    inserted: u64,
    queued: usize,
}

impl Pool {
    /// Returns the number of queued requests.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Adds a request to the list of its queue, behind all that arrived no later.
    ///
    /// # Panics
    ///
    /// If its tag is in use.
    pub fn insert(&mut self, fifo: &mut AgeList, request: Request, owner: Owner) {
        let at = request.tag.index();
        let fresh = PoolSlot {
            state: State::Free,
            request,
            owner,
            node: Node::new(request.arrival, self.inserted),
        };
        if at >= self.slots.len() {
            self.slots.resize(at + 1, fresh.clone());
        }
        assert!(
            self.slots[at].state == State::Free,
            "tag {} is in use already",
            request.tag.0
        );
        self.slots[at] = PoolSlot {
            state: State::Queued,
            ..fresh
        };
        self.inserted += 1;
        self.queued += 1;
        fifo.link(&mut self.slots, request.tag);
    }

    /// Takes a queued request out of the list of its queue, to the drive.
    pub fn hand_out(&mut self, fifo: &mut AgeList, tag: Tag) -> Request {
        self.leave(fifo, tag, State::HandedOut)
    }

    /// Takes a queued request out of the list of its queue, and forgets it.
    pub fn withdraw(&mut self, fifo: &mut AgeList, tag: Tag) -> Request {
        self.leave(fifo, tag, State::Free)
    }

    /// Notes that a request came back from the drive, and says whose it was; `None` if it was not
    /// handed out from here.
    pub fn finish(&mut self, tag: Tag) -> Option<Owner> {
        let slot = self.slots.get_mut(tag.index())?;
        if slot.state != State::HandedOut {
            return None;
        }
        slot.state = State::Free;
        Some(slot.owner)
    }

    /// A queued request.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn get(&self, tag: Tag) -> &Request {
        &self.slot(tag).request
    }

    /// Whose a queued request is.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn owner(&self, tag: Tag) -> Owner {
        self.slot(tag).owner
    }

    /// A queued request has grown to `grown`. Returns its extent before. If its new part came earlier,
    /// the request takes the place in the list of its queue that this arrival gives it.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn grow(&mut self, fifo: &mut AgeList, grown: &Request) -> Extent {
        let (tag, arrival) = (grown.tag, grown.arrival);
        self.slot(tag);
        let request = &mut self.slots[tag.index()].request;
        let old = core::mem::replace(&mut request.extent, grown.extent);
        if arrival < request.arrival {
            request.arrival = arrival;
            fifo.unlink(&mut self.slots, tag);
            self.slots[tag.index()].node.age.arrival = arrival;
            fifo.link(&mut self.slots, tag);
        }
        old
    }

    /// Removes `gone`, which became part of `kept` of the same queue, and returns it. The older of
    /// their places is that of `kept`.
    ///
    /// # Panics
    ///
    /// If either is not queued.
    pub fn fuse(&mut self, fifo: &mut AgeList, kept: Tag, gone: Tag) -> Request {
        let (place, of_kept) = (self.age(gone), self.age(kept));
        let gone = self.leave(fifo, gone, State::Free);
        if place < of_kept {
            fifo.unlink(&mut self.slots, kept);
            let slot = &mut self.slots[kept.index()];
            slot.request.arrival = place.arrival;
            slot.node.age = place;
            fifo.link(&mut self.slots, kept);
        }
        gone
    }

    /// All queued requests, oldest first; nothing is left, and what is in the drive is forgotten.
    pub fn drain(&mut self) -> Vec<Request> {
        let slots = core::mem::take(&mut self.slots);
        self.queued = 0;
        let queued = slots.iter().filter(|slot| slot.state == State::Queued);
        let mut all: Vec<(Age, Request)> =
            queued.map(|slot| (slot.node.age, slot.request)).collect();
        all.sort_unstable_by_key(|(age, _)| *age);
        all.into_iter().map(|(_, request)| request).collect()
    }

    fn slot(&self, tag: Tag) -> &PoolSlot {
        let slot = self.slots.get(tag.index());
        slot.filter(|slot| slot.state == State::Queued)
            .unwrap_or_else(|| panic!("tag {} is not queued", tag.0))
    }

    fn age(&self, tag: Tag) -> Age {
        self.slot(tag).node.age
    }

    fn leave(&mut self, fifo: &mut AgeList, tag: Tag, to: State) -> Request {
        let request = *self.get(tag);
        fifo.unlink(&mut self.slots, tag);
        self.slots[tag.index()].state = to;
        self.queued -= 1;
        request
    }
}
