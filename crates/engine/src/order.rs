//! Order of overlapping requests: the waits among live requests.
//!
//! Two requests conflict if they share a sector that at least one request changes. The later request of a conflict
//! waits until the earlier one is complete.
//!
//! Any number of live requests may overlap, so a request does not list the requests that it waits for. The cost of a
//! request depends on the number of live requests only by the depth of the search. Most requests overlap no other, and
//! stay in an index by address. Overlapping requests are in a [`Crowd`]. The crowd releases a request when the last
//! request that it waits for is complete.

mod crowd;
#[cfg(test)]
pub(crate) mod tests;
mod tree;

use core::cmp::Reverse;
use crowd::{Crowd, Crowded};
use headtime_sched::{Request, SortedMap, Tag};
use headtime_units::{Extent, Lba};

/// Marker for no request: the end of a list.
const NIL: u32 = u32::MAX;

/// The structure that contains a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// No structure, since the request is not live.
    Gone,
    /// The list of unchecked reads.
    Read,
    /// The index `apart` of requests that do not overlap each other.
    Apart,
    /// The crowd.
    Crowd,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    extent: Extent,
    /// Number of earlier requests.
    sequence: u64,
    changes: bool,
    place: Standing,
    /// Neighbours in the list of unchecked reads.
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

/// The live requests, and the waits among them.
#[derive(Debug)]
pub(crate) struct Precedence {
    /// By tag.
    members: Vec<Live>,
    came: u64,
    /// Number of live requests that change sectors.
    changing: usize,
    /// List of unchecked reads, which came while no live request changed sectors. These reads have no conflicts. They
    /// are checked when a request comes that changes sectors.
    first_read: u32,
    last_read: u32,
    /// Requests by start that do not overlap each other.
    apart: SortedMap<Lba, Tag>,
    crowd: Crowd,
    /// Requests that may start now, the last one first.
    freed: Vec<Tag>,
    /// In some tests, the plain rule, which must give the same results.
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
    /// Adds a request with sectors, later than all requests so far. Returns true if the request may start.
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

    /// Removes a complete request. [`Precedence::next_freed`] returns the requests that may start now.
    ///
    /// # Panics
    ///
    /// If the request is not live, or waits.
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

    /// Returns the next request that may start since requests were finished, in order of arrival.
    pub fn next_freed(&mut self) -> Option<Tag> {
        self.freed.pop()
    }

    /// Returns the live requests for which `tag` must wait. Scans all live requests.
    pub fn before(&self, tag: Tag) -> impl Iterator<Item = Tag> {
        let this = self.members[tag.index()];
        let before = self.conflicting(this.extent, this.changes);
        before.filter_map(move |(other, tag)| (other.sequence < this.sequence).then_some(tag))
    }

    /// Returns true if a request of this extent would have to wait. Scans all live requests, unless neither it nor any
    /// live request changes sectors.
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

    /// Puts a new request into the index or the crowd. Returns true if the request may start.
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

    /// Moves the requests of the index that overlap `extent` into the crowd.
    fn crowd_with(&mut self, extent: Extent) {
        // Start with the last request that begins before the end of `extent`. Requests of the index do not overlap, so
        // earlier ones end earlier.
        while let Some((start, other)) = self.apart.last_before(&extent.end())
            && self.members[other.index()].extent.end() > extent.start
        {
            #[cfg(test)]
            headtime_testkit::steps::one();
            self.apart.remove(&start);
            // Requests of the index do not wait.
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

    /// Checks the unchecked reads and finds a place for each, since a request comes that changes sectors.
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

    /// Makes two reads neighbours; either may be [`NIL`], the end of the list.
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
