//! Bursts: queued requests that continue each other.
//!
//! A host that reads ahead asks for the next window while the last window is queued. If the two may
//! not merge (the sum is too large, or merging is off), they are a *burst*: requests of one reader,
//! each of which begins at the end of the preceding one.

use crate::{LbaTable, Op, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Extent, Lba};

/// A queued request and its neighbours in a burst.
#[derive(Clone, Copy, Debug)]
struct InBurst {
    op: Op,
    /// End of the request.
    end: Lba,
    before: Option<Tag>,
    next: Option<Tag>,
}

/// The queued requests of a scheduler, linked into bursts.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    /// Queued requests by tag; `None` for other tags.
    members: Vec<Option<InBurst>>,
    /// Requests without a queued successor, by their ends. There is a table for each operation, since
    /// a request only continues requests of its own operation.
    ends: [LbaTable; 4],
}

impl Bursts {
    /// Returns the queued request that `new` continues, if no queued request continues it yet.
    pub fn continued_by(&self, new: &Request) -> Option<Tag> {
        let start = new.extent.start;
        self.ends[new.op as usize].first_at(start)
    }

    /// Adds a request that is queued now. It continues `before`.
    pub fn insert(&mut self, request: &Request, before: Option<Tag>) {
        let at = request.tag.index();
        if at >= self.members.len() {
            self.members.resize(at + 1, None);
        }
        self.members[at] = Some(InBurst {
            op: request.op,
            end: request.extent.end(),
            before,
            next: None,
        });
        let ends = &mut self.ends[request.op as usize];
        ends.insert(request.extent.end(), request.tag);
        if let Some(before) = before
            && let Some(member) = self.members[before.index()].as_mut()
        {
            member.next = Some(request.tag);
            ends.remove(member.end, before);
        }
    }

    /// Removes a request that is no longer queued. Returns the request that continues the removed one.
    pub fn remove(&mut self, tag: Tag) -> Option<Tag> {
        let member = self.members.get_mut(tag.index())?.take()?;
        match member
            .next
            .and_then(|next| self.members[next.index()].as_mut())
        {
            Some(next) => next.before = None,
            None => {
                self.ends[member.op as usize].remove(member.end, tag);
            }
        }
        self.unlink_next(member.before);
        member.next
    }

    /// Notes that a queued request has grown, alone or by another queued request.
    pub fn grown(&mut self, tag: Tag, extent: Extent) {
        let Some(member) = self.members.get_mut(tag.index()).and_then(Option::as_mut) else {
            return;
        };
        let (before, old, end) = (member.before.take(), member.end, extent.end());
        member.end = end;
        let ends = &mut self.ends[member.op as usize];
        // If the request has grown at its front, it no longer begins at the end of its predecessor.
        // The check below restores the link if it still holds.
        if old != end {
            match member.next.take() {
                Some(next) => {
                    if let Some(next) = self.members[next.index()].as_mut() {
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
            let before = self.member(*before);
            before.is_some_and(|before| before.end == extent.start)
        });
        match goes_on {
            Some(_) => {
                if let Some(member) = self.members[tag.index()].as_mut() {
                    member.before = goes_on;
                }
            }
            None => self.unlink_next(before),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.members.clear();
        self.ends.iter_mut().for_each(LbaTable::clear);
    }

    fn member(&self, tag: Tag) -> Option<&InBurst> {
        self.members.get(tag.index())?.as_ref()
    }

    /// Notes that no request continues `tag` any more.
    fn unlink_next(&mut self, tag: Option<Tag>) {
        if let Some(tag) = tag
            && let Some(member) = self.members[tag.index()].as_mut()
            && member.next.take().is_some()
        {
            let (op, end) = (member.op, member.end);
            self.ends[op as usize].insert(end, tag);
        }
    }
}
