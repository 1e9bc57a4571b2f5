//! The requests of all queues, by tag: those that are queued, each in the list of its queue by age,
//! and those that were handed out, until they come back.
//!
//! As [`Requests`](crate::Requests), but with any number of lists. A slot per tag; nothing is
//! allocated once the highest tag was seen.

use super::process::ContextId;
use super::queue::QueueId;
use crate::{Age, Request, Tag};
use alloc::vec::Vec;
use headtime_units::Extent;

/// No slot: the end of a list.
const NIL: u32 = u32::MAX;

/// The requests of one queue by age; the links are in the [`Pool`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    head: u32,
    tail: u32,
    len: usize,
}

impl Fifo {
    pub const EMPTY: Fifo = Fifo {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    pub fn len(&self) -> usize {
        self.len
    }

    /// The oldest request.
    pub fn oldest(&self) -> Option<Tag> {
        (self.head != NIL).then_some(Tag(self.head))
    }
}

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
    pub context: ContextId,
}

#[derive(Clone, Debug)]
struct Slot {
    state: State,
    request: Request,
    owner: Owner,
    turn: u64,
    prev: u32,
    next: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// By tag; slots that no request had yet are free copies of the first.
    slots: Vec<Slot>,
    inserted: u64,
    queued: usize,
}

impl Pool {
    /// How many requests are queued.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Adds a request to the list of its queue, behind all that arrived no later.
    ///
    /// # Panics
    ///
    /// If its tag is in use.
    pub fn insert(&mut self, fifo: &mut Fifo, request: Request, owner: Owner) {
        let at = request.tag.index();
        let fresh = Slot {
            state: State::Free,
            request,
            owner,
            turn: self.inserted,
            prev: NIL,
            next: NIL,
        };
        if at >= self.slots.len() {
            self.slots.resize(at + 1, fresh.clone());
        }
        assert!(
            self.slots[at].state == State::Free,
            "tag {} is in use already",
            request.tag.0
        );
        self.slots[at] = Slot {
            state: State::Queued,
            ..fresh
        };
        self.inserted += 1;
        self.queued += 1;
        self.link(fifo, request.tag.0);
    }

    /// Takes a queued request out of the list of its queue, to the drive.
    pub fn hand_out(&mut self, fifo: &mut Fifo, tag: Tag) -> Request {
        self.leave(fifo, tag, State::HandedOut)
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

    /// Changes what a queued request asks for, and returns what it asked for before.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn set_extent(&mut self, tag: Tag, extent: Extent) -> Extent {
        self.slot(tag);
        core::mem::replace(&mut self.slots[tag.index()].request.extent, extent)
    }

    /// Removes `gone`, which became part of `kept` of the same queue, and returns it. The older of
    /// their places is that of `kept`.
    ///
    /// # Panics
    ///
    /// If either is not queued.
    pub fn fuse(&mut self, fifo: &mut Fifo, kept: Tag, gone: Tag) -> Request {
        let (place, of_kept) = (self.age(gone.0), self.age(kept.0));
        let gone = self.leave(fifo, gone, State::Free);
        if place < of_kept {
            self.unlink(fifo, kept.0);
            let slot = &mut self.slots[kept.index()];
            slot.request.arrival = place.arrival;
            slot.turn = place.turn;
            self.link(fifo, kept.0);
        }
        gone
    }

    /// All queued requests, oldest first; nothing is left, and what is in the drive is forgotten.
    pub fn drain(&mut self) -> Vec<Request> {
        let slots = core::mem::take(&mut self.slots);
        self.queued = 0;
        let queued = slots.iter().filter(|slot| slot.state == State::Queued);
        let mut all: Vec<(Age, Request)> = queued
            .map(|slot| {
                let arrival = slot.request.arrival;
                let turn = slot.turn;
                (Age { arrival, turn }, slot.request)
            })
            .collect();
        all.sort_unstable_by_key(|(age, _)| *age);
        all.into_iter().map(|(_, request)| request).collect()
    }

    fn slot(&self, tag: Tag) -> &Slot {
        let slot = self.slots.get(tag.index());
        slot.filter(|slot| slot.state == State::Queued)
            .unwrap_or_else(|| panic!("tag {} is not queued", tag.0))
    }

    fn age(&self, at: u32) -> Age {
        let slot = self.slot(Tag(at));
        Age {
            arrival: slot.request.arrival,
            turn: slot.turn,
        }
    }

    fn leave(&mut self, fifo: &mut Fifo, tag: Tag, to: State) -> Request {
        let request = *self.get(tag);
        self.unlink(fifo, tag.0);
        self.slots[tag.index()].state = to;
        self.queued -= 1;
        request
    }

    fn link(&mut self, fifo: &mut Fifo, at: u32) {
        let age = self.age(at);
        let mut prev = fifo.tail;
        while prev != NIL && self.age(prev) > age {
            prev = self.slots[prev as usize].prev;
        }
        let next = match prev {
            NIL => fifo.head,
            prev => self.slots[prev as usize].next,
        };
        self.join(fifo, prev, at);
        self.join(fifo, at, next);
        fifo.len += 1;
    }

    fn unlink(&mut self, fifo: &mut Fifo, at: u32) {
        let slot = &self.slots[at as usize];
        self.join(fifo, slot.prev, slot.next);
        fifo.len -= 1;
    }

    /// Makes two slots neighbours; either may be the end of the list.
    fn join(&mut self, fifo: &mut Fifo, prev: u32, next: u32) {
        match prev {
            NIL => fifo.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NIL => fifo.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
    }
}
