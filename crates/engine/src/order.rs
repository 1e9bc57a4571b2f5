//! The order of requests that overlap: which live request must wait for which.
//!
//! Two requests conflict when they share a sector and at least one of them changes it. Of two that
//! conflict, the later waits until the earlier is complete.
//!
//! Any number of requests may be live and overlap, so nobody waits for each of them by name: what a
//! request costs here does not depend on how many others there are, but for the depth of what is
//! searched. Most requests overlap none at all, and stay in an index by address. Those that do are in a
//! [`Crowd`], which lets go of whoever waits for nobody any more.

mod crowd;
#[cfg(test)]
pub(crate) mod tests;
mod tree;

use core::cmp::Reverse;
use crowd::{Crowd, Crowded};
use headtime_sched::{Request, SortedMap, Tag};
use headtime_units::{Extent, Lba};

/// No request: the end of a list.
const NIL: u32 = u32::MAX;

/// Where a request is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nowhere: it is not live.
    Gone,
    /// With the reads that nobody looked at.
    Read,
    /// With those that overlap none other of these.
    Apart,
    /// In the crowd.
    Crowd,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    extent: Extent,
    /// How many came before it.
    sequence: u64,
    changes: bool,
    place: Standing,
    /// Its neighbours among the reads that nobody looked at.
    prev: u32,
    next: u32,
}

impl Live {
    const GONE: Live = Live {
        extent: Extent::at(0, 0),
        sequence: 0,
        changes: false,
        place: Standing::Gone,
        prev: NIL,
        next: NIL,
    };
}

/// The live requests, and which of them wait for others.
#[derive(Debug)]
pub(crate) struct Precedence {
    /// By tag.
    members: Vec<Live>,
    came: u64,
    /// How many of them change sectors.
    changing: usize,
    /// Reads that came while nothing changed any sector: they conflict with nothing, and are looked
    /// at when something comes that does.
    first_read: u32,
    last_read: u32,
    /// Requests by start, none of which overlaps another.
    apart: SortedMap<Lba, Tag>,
    crowd: Crowd,
    /// Whoever may start now, the last one first.
    freed: Vec<Tag>,
    /// In some tests, the rule as it is written, which must come to the same.
    #[cfg(test)]
    plain: Option<tests::Plain>,
}

impl Default for Precedence {
    fn default() -> Precedence {
        Precedence {
            members: Vec::new(),
            came: 0,
            changing: 0,
            first_read: NIL,
            last_read: NIL,
            apart: SortedMap::new(),
            crowd: Crowd::default(),
            freed: Vec::new(),
            #[cfg(test)]
            plain: None,
        }
    }
}

impl Precedence {
    /// Adds a request with sectors that comes after all that were added, and says whether it may
    /// start.
    pub fn admit(&mut self, request: &Request) -> bool {
        let may_start = self.add(request);
        #[cfg(test)]
        if let Some(plain) = &mut self.plain {
            assert_eq!(may_start, plain.admit(*request), "{request:?}");
        }
        may_start
    }

    fn add(&mut self, request: &Request) -> bool {
        let (tag, changes) = (request.tag, request.op.changes());
        if tag.index() >= self.members.len() {
            self.members.resize(tag.index() + 1, Live::GONE);
        }
        let member = &mut self.members[tag.index()];
        assert!(member.place == Standing::Gone, "tag {} is live", tag.0);
        *member = Live {
            extent: request.extent,
            sequence: self.came,
            changes,
            ..Live::GONE
        };
        self.came += 1;
        if !changes && self.changing == 0 {
            self.add_read(tag);
            return true;
        }
        if changes {
            if self.changing == 0 {
                self.look_at_reads();
            }
            self.changing += 1;
        }
        self.settle(tag)
    }

    /// Removes a request that is complete; [`Precedence::next_freed`] says who waited for nobody else.
    ///
    /// # Panics
    ///
    /// If it is not live, or waits.
    pub fn finish(&mut self, tag: Tag) {
        let member = self.members.get_mut(tag.index());
        let member = member.unwrap_or_else(|| panic!("request {} is not live", tag.0));
        match core::mem::replace(&mut member.place, Standing::Gone) {
            Standing::Gone => panic!("request {} is not live", tag.0),
            Standing::Read => self.remove_read(tag),
            Standing::Apart => {
                let there = self.apart.remove(&member.extent.start);
                assert!(there == Some(tag), "request {} is not apart", tag.0);
            }
            Standing::Crowd => {
                self.crowd.leave(tag, &mut self.freed);
                let sequence = |tag: &Tag| self.members[tag.index()].sequence;
                self.freed
                    .sort_unstable_by_key(|tag| Reverse(sequence(tag)));
            }
        }
        self.changing -= usize::from(self.members[tag.index()].changes);
        #[cfg(test)]
        if let Some(plain) = &mut self.plain {
            assert!(plain.finish(tag).iter().eq(self.freed.iter().rev()));
            assert_eq!(self.crowd.held(), plain.held());
        }
    }

    /// One of those that may start since requests were finished, in the order in which they came.
    pub fn next_freed(&mut self) -> Option<Tag> {
        self.freed.pop()
    }

    /// The live requests for which `tag` must wait. Looks through all there are.
    pub fn before(&self, tag: Tag) -> impl Iterator<Item = Tag> {
        let this = self.members[tag.index()];
        let before = self.conflicting(this.extent, this.changes);
        before.filter_map(move |(other, tag)| (other.sequence < this.sequence).then_some(tag))
    }

    /// Returns true if a request of this extent would have to wait. Looks through all live requests if any changes
    /// sectors.
    pub fn conflicts(&self, extent: Extent, changes: bool) -> bool {
        (changes || self.changing > 0) && self.conflicting(extent, changes).next().is_some()
    }

    fn conflicting(&self, extent: Extent, changes: bool) -> impl Iterator<Item = (&Live, Tag)> {
        let conflicts = move |(other, _): &(&Live, Tag)| {
            other.place != Standing::Gone
                && (other.changes || changes)
                && other.extent.overlaps(extent)
        };
        self.members.iter().zip((0..).map(Tag)).filter(conflicts)
    }

    /// Returns the number of requests that wait.
    pub fn held(&self) -> usize {
        self.crowd.held()
    }

    /// Puts a new request where it belongs, and says whether it may start.
    fn settle(&mut self, tag: Tag) -> bool {
        let Live {
            extent, changes, ..
        } = self.members[tag.index()];
        let members = &self.members;
        let clear = |before: Option<(Lba, Tag)>, after: Option<(Lba, Tag)>| {
            let behind =
                |(_, other): (Lba, Tag)| members[other.index()].extent.end() <= extent.start;
            before.is_none_or(behind) && after.is_none_or(|(start, _)| extent.end() <= start)
        };
        if !self.crowd.conflicts(extent, changes)
            && self.apart.insert_between(extent.start, tag, clear)
        {
            self.members[tag.index()].place = Standing::Apart;
            return true;
        }
        self.crowd_with(extent);
        self.enter_crowd(tag, true)
    }

    /// Moves those that overlap `extent` and no other so far into the crowd.
    fn crowd_with(&mut self, extent: Extent) {
        // The last that begins before its end; they do not overlap each other, so the one before that
        // ends earlier.
        while let Some((start, other)) = self.apart.last_before(&extent.end())
            && self.members[other.index()].extent.end() > extent.start
        {
            #[cfg(test)]
            headtime_testkit::steps::one();
            self.apart.remove(&start);
            // Whoever is apart waits for nobody.
            self.enter_crowd(other, false);
        }
    }

    fn enter_crowd(&mut self, tag: Tag, waits: bool) -> bool {
        let member = &mut self.members[tag.index()];
        member.place = Standing::Crowd;
        let request = Crowded {
            tag,
            extent: member.extent,
            sequence: member.sequence,
            changes: member.changes,
        };
        self.crowd.enter(request, waits)
    }

    /// Finds a place for the reads that nobody looked at, since something comes that changes sectors.
    fn look_at_reads(&mut self) {
        let mut at = core::mem::replace(&mut self.first_read, NIL);
        self.last_read = NIL;
        while at != NIL {
            #[cfg(test)]
            headtime_testkit::steps::one();
            let next = self.members[at as usize].next;
            self.settle(Tag(at));
            at = next;
        }
    }

    fn add_read(&mut self, Tag(at): Tag) {
        let prev = self.last_read;
        let member = &mut self.members[at as usize];
        (member.place, member.prev) = (Standing::Read, prev);
        self.join(prev, at);
        self.last_read = at;
    }

    fn remove_read(&mut self, Tag(at): Tag) {
        let Live { prev, next, .. } = self.members[at as usize];
        self.join(prev, next);
    }

    /// Makes two reads neighbours; either may be the end of the list.
    fn join(&mut self, prev: u32, next: u32) {
        match prev {
            NIL => self.first_read = next,
            prev => self.members[prev as usize].next = next,
        }
        match next {
            NIL => self.last_read = prev,
            next => self.members[next as usize].prev = prev,
        }
    }
}
