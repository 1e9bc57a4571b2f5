//! The requests of all queues, by tag. A queued request is in its queue's list by age. A request that
//! was handed out stays here until it comes back.
//!
//! Like [`Requests`](crate::Requests), but with any number of lists, which the queues hold. Each request has an owner of
//! type `O`: its queue, and what else the scheduler wants to know.

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

#[derive(Clone, Debug)]
struct PoolSlot<O> {
    state: State,
    request: Request,
    owner: O,
    node: Node,
}

impl<O> Linked for PoolSlot<O> {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pool<O> {
    /// Slots of queued requests, indexed by request tag. The slot of an unused tag has the state of a free slot, and other fields
    /// without a meaning: a copy of another slot's.
    slots: Vec<PoolSlot<O>>,
    inserted: u64,
    queued: usize,
}

impl<O> Default for Pool<O> {
    fn default() -> Pool<O> {
        Pool {
            slots: Vec::new(),
            inserted: 0,
            queued: 0,
        }
    }
}

impl<O: Copy> Pool<O> {
    /// Returns the number of queued requests.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Adds a request to the list of its queue, behind all requests that arrived no later.
    ///
    /// # Panics
    ///
    /// If the tag is in use.
    pub fn insert(&mut self, fifo: &mut AgeList, request: Request, owner: O) {
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

    /// Removes a queued request from the list of its queue, for the drive.
    pub fn hand_out(&mut self, fifo: &mut AgeList, tag: Tag) -> Request {
        self.leave(fifo, tag, State::HandedOut)
    }

    /// Removes a queued request from the list of its queue and from the pool.
    pub fn withdraw(&mut self, fifo: &mut AgeList, tag: Tag) -> Request {
        self.leave(fifo, tag, State::Free)
    }

    /// Notes that a request came back from the drive, and returns its owner. `None` if the request was
    /// not handed out from here.
    pub fn finish(&mut self, tag: Tag) -> Option<O> {
        let slot = self.slots.get_mut(tag.index())?;
        if slot.state != State::HandedOut {
            return None;
        }
        slot.state = State::Free;
        Some(slot.owner)
    }

    /// Returns a queued request.
    ///
    /// # Panics
    ///
    /// If the request is not queued.
    pub fn get(&self, tag: Tag) -> &Request {
        &self.slot(tag).request
    }

    /// Returns the owner of a queued request.
    ///
    /// # Panics
    ///
    /// If the request is not queued.
    pub fn owner(&self, tag: Tag) -> O {
        self.slot(tag).owner
    }

    /// Returns the owner of a request, or `None` if the request is not queued.
    pub fn find(&self, tag: Tag) -> Option<O> {
        let slot = self.slots.get(tag.index())?;
        (slot.state == State::Queued).then_some(slot.owner)
    }

    /// Notes that a queued request has grown to `grown`, and returns its previous extent. If the new
    /// part arrived earlier, the request moves to the place of that arrival in the list of its queue.
    ///
    /// # Panics
    ///
    /// If the request is not queued.
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

    /// Removes `gone`, which became part of `kept` of the same queue, and returns it. `kept` gets the
    /// older place of the two.
    ///
    /// # Panics
    ///
    /// If either request is not queued.
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

    /// Removes all queued requests and returns them, oldest first. The pool forgets the requests in
    /// the drive.
    pub fn drain(&mut self) -> Vec<Request> {
        let slots = core::mem::take(&mut self.slots);
        self.queued = 0;
        let queued = slots.iter().filter(|slot| slot.state == State::Queued);
        let mut all: Vec<(Age, Request)> =
            queued.map(|slot| (slot.node.age, slot.request)).collect();
        all.sort_unstable_by_key(|(age, _)| *age);
        all.into_iter().map(|(_, request)| request).collect()
    }

    fn slot(&self, tag: Tag) -> &PoolSlot<O> {
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
