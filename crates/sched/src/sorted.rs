//! Queued requests by tag and by address: the state of every seek-reducing policy.

use crate::{LbaIndex, ListId, Request, Requests, Tag};
use alloc::vec::Vec;

/// Requests in lists by arrival, and in one index by start address per list.
///
/// Both structures change together for each request that enters, grows, moves or
/// leaves.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    requests: Requests,
    by_lba: Vec<LbaIndex>,
}

impl Sorted {
    pub fn new(lists: u8) -> Sorted {
        Sorted {
            requests: Requests::new(lists),
            by_lba: alloc::vec![LbaIndex::new(); usize::from(lists)],
        }
    }

    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The requests of a list by start address.
    pub fn by_lba(&self, list: ListId) -> &LbaIndex {
        &self.by_lba[usize::from(list.0)]
    }

    pub fn insert(&mut self, list: ListId, request: Request) {
        self.requests.insert(list, request);
        self.by_lba[usize::from(list.0)].insert(request.extent.start, request.tag);
    }

    pub fn remove(&mut self, tag: Tag) -> Request {
        let list = self.requests.list_of(tag);
        let request = self.requests.remove(tag);
        self.unsort(list, &request);
        request
    }

    pub fn move_to(&mut self, tag: Tag, list: ListId) {
        let request = *self.requests.get(tag);
        self.unsort(self.requests.list_of(tag), &request);
        self.requests.move_to(tag, list);
        self.by_lba[usize::from(list.0)].insert(request.extent.start, tag);
    }

    /// As [`Requests::grow`].
    pub fn merged(&mut self, grown: &Request) {
        let old = self.requests.grow(grown);
        let (tag, start) = (grown.tag, grown.extent.start);
        if old.start != start {
            let index = &mut self.by_lba[usize::from(self.requests.list_of(tag).0)];
            index.remove(old.start, tag);
            index.insert(start, tag);
        }
    }

    /// As [`Requests::fuse`].
    pub fn fused(&mut self, kept: Tag, gone: Tag) {
        let (from, gone_from) = (self.requests.list_of(kept), self.requests.list_of(gone));
        let gone = self.requests.fuse(kept, gone);
        self.unsort(gone_from, &gone);
        let to = self.requests.list_of(kept);
        if to != from {
            let kept = *self.requests.get(kept);
            self.unsort(from, &kept);
            self.by_lba[usize::from(to.0)].insert(kept.extent.start, kept.tag);
        }
    }

    pub fn drain(&mut self) -> Vec<Request> {
        for index in &mut self.by_lba {
            index.clear();
        }
        self.requests.drain()
    }

    fn unsort(&mut self, list: ListId, request: &Request) {
        let there = self.by_lba[usize::from(list.0)].remove(request.extent.start, request.tag);
        assert!(there, "the index lost request {}", request.tag.0);
    }
}
