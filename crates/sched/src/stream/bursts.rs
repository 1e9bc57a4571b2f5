//! Which queued requests continue each other.
//!
//! A host that reads ahead asks for the next window while the last one is queued. Where the two may not
//! become one request (they are too large together, or nothing merges), they are a *burst*: requests
//! of one reader, each of which begins where the one before it ends.

use crate::{LbaTable, Op, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Extent, Lba};

/// A queued request and its neighbours in a burst.
#[derive(Clone, Copy, Debug)]
struct Link {
    op: Op,
    /// Behind its last sector.
    end: Lba,
    before: Option<Tag>,
    next: Option<Tag>,
}

/// The queued requests of a scheduler, linked into bursts.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    /// By tag; `None` for those that are not queued.
    links: Vec<Option<Link>>,
    /// Requests that no queued one continues, by their ends; a table for each kind, as one continues
    /// only its like.
    ends: [LbaTable; 4],
}

impl Bursts {
    /// The queued request that `new` continues, if none does yet.
    pub fn continued_by(&self, new: &Request) -> Option<Tag> {
        let start = new.extent.start;
        self.ends[new.op as usize].first_at(start)
    }

    /// Adds a request that is queued now, and continues `before`.
    pub fn insert(&mut self, request: &Request, before: Option<Tag>) {
        let at = request.tag.index();
        if at >= self.links.len() {
            self.links.resize(at + 1, None);
        }
        self.links[at] = Some(Link {
            op: request.op,
            end: request.extent.end(),
            before,
            next: None,
        });
        let ends = &mut self.ends[request.op as usize];
        ends.insert(request.extent.end(), request.tag);
        if let Some(before) = before
            && let Some(link) = self.links[before.index()].as_mut()
        {
            link.next = Some(request.tag);
            ends.remove(link.end, before);
        }
    }

    /// Removes a request that is no longer queued. Returns the one that continues it.
    pub fn remove(&mut self, tag: Tag) -> Option<Tag> {
        let link = self.links.get_mut(tag.index())?.take()?;
        match link.next.and_then(|next| self.links[next.index()].as_mut()) {
            Some(next) => next.before = None,
            None => {
                self.ends[link.op as usize].remove(link.end, tag);
            }
        }
        self.unlink_next(link.before);
        link.next
    }

    /// A queued request has grown, or has taken another into itself.
    pub fn grown(&mut self, tag: Tag, extent: Extent) {
        let Some(link) = self.links.get_mut(tag.index()).and_then(Option::as_mut) else {
            return;
        };
        let (before, old, end) = (link.before.take(), link.end, extent.end());
        link.end = end;
        let ends = &mut self.ends[link.op as usize];
        // What it continued ends elsewhere if it has grown at its front; if not, it is found again.
        if old != end {
            match link.next.take() {
                Some(next) => {
                    if let Some(next) = self.links[next.index()].as_mut() {
                        next.before = None;
                    }
                }
                None => {
                    ends.remove(old, tag);
                }
            }
            ends.insert(end, tag);
        }
        let goes_on = before.filter(|before| {
            let before = self.link(*before);
            before.is_some_and(|before| before.end == extent.start)
        });
        match goes_on {
            Some(_) => {
                if let Some(link) = self.links[tag.index()].as_mut() {
                    link.before = goes_on;
                }
            }
            None => self.unlink_next(before),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.links.clear();
        self.ends.iter_mut().for_each(LbaTable::clear);
    }

    fn link(&self, tag: Tag) -> Option<&Link> {
        self.links.get(tag.index())?.as_ref()
    }

    /// Nothing continues `tag` any more.
    fn unlink_next(&mut self, tag: Option<Tag>) {
        if let Some(tag) = tag
            && let Some(link) = self.links[tag.index()].as_mut()
            && link.next.take().is_some()
        {
            let (op, end) = (link.op, link.end);
            self.ends[op as usize].insert(end, tag);
        }
    }
}
