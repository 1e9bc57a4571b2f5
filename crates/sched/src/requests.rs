//! The queued requests of a policy, by tag and in lists by order of arrival.
//!
//! There is a slot for each tag, linked into one of a few lists. Each list is sorted by arrival, then by
//! insertion, so that its front is the oldest request. A request usually arrives at the moment it is
//! inserted and goes to the end at once. A request that was held back, or that came from another
//! scheduler, goes where its arrival puts it. Nothing is allocated once the highest tag was seen, except
//! for finding the place of a request that was held back among many others.

use crate::ages::{AgeList, Linked, Node};
use crate::{Age, Request, Tag};
use alloc::vec::Vec;
use headtime_units::{Extent, Time};

/// Which of the lists of a [`Requests`]; its use is the policy's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListId(pub u8);

impl ListId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug)]
struct Slot {
    request: Option<Request>,
    list: ListId,
    node: Node,
}

impl Linked for Slot {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

/// Queued requests by tag, each in one of several lists that are in order of arrival.
///
/// # Examples
///
/// ```
/// use headtime_sched::{ListId, Op, Request, Requests, Tag};
/// use headtime_units::{Extent, Time};
///
/// const ALL: ListId = ListId(0);
/// let mut requests = Requests::new(1);
/// for (tag, arrival) in [(0, 20), (1, 10), (2, 20)] {
///     let arrival = Time::from_nanos(arrival);
///     requests.insert(ALL, Request::new(Tag(tag), Op::Read, Extent::at(0, 8), arrival));
/// }
/// assert_eq!(requests.oldest(ALL).unwrap().tag, Tag(1));
/// requests.remove(Tag(1));
/// assert_eq!(requests.oldest(ALL).unwrap().tag, Tag(0));
/// ```
#[derive(Clone, Debug)]
pub struct Requests {
    slots: Vec<Slot>,
    lists: Vec<AgeList>,
    inserted: u64,
    len: usize,
}

impl Requests {
    /// Without requests, with the lists 0 to `lists` − 1.
    pub fn new(lists: u8) -> Requests {
        Requests {
            slots: Vec::new(),
            lists: alloc::vec![AgeList::EMPTY; usize::from(lists)],
            inserted: 0,
            len: 0,
        }
    }

    /// Returns the number of requests.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no requests.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of requests in a list.
    pub fn len_of(&self, list: ListId) -> usize {
        self.lists[list.index()].len()
    }

    /// Adds a request to a list, at the place that its arrival gives it; at the end if no request of
    /// the list arrived later.
    ///
    /// # Panics
    ///
    /// If its tag is queued already.
    pub fn insert(&mut self, list: ListId, request: Request) {
        let at = request.tag.index();
        if at >= self.slots.len() {
            self.slots.resize(
                at + 1,
                Slot {
                    request: None,
                    list,
                    node: Node::new(Time::ZERO, 0),
                },
            );
        }
        let slot = &mut self.slots[at];
        assert!(
            slot.request.is_none(),
            "tag {} is queued already",
            request.tag.0
        );
        slot.request = Some(request);
        slot.node = Node::new(request.arrival, self.inserted);
        self.inserted += 1;
        self.len += 1;
        self.link(list, request.tag);
    }

    /// Removes a request and returns it.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn remove(&mut self, tag: Tag) -> Request {
        let request = *self.get(tag);
        self.unlink(tag);
        self.slots[tag.index()].request = None;
        self.len -= 1;
        request
    }

    /// Returns true if a request of this tag is queued.
    pub fn contains(&self, tag: Tag) -> bool {
        self.find(tag).is_some()
    }

    /// A queued request, or `None` if no request with this tag is queued.
    pub fn find(&self, tag: Tag) -> Option<&Request> {
        self.slots.get(tag.index())?.request.as_ref()
    }

    /// A queued request.
    ///
    /// # Panics
    ///
    /// If the request is not queued.
    pub fn get(&self, tag: Tag) -> &Request {
        self.find(tag)
            .unwrap_or_else(|| panic!("tag {} is not queued", tag.0))
    }

    /// The age of a queued request.
    ///
    /// # Panics
    ///
    /// If the request is not queued.
    pub fn age(&self, tag: Tag) -> Age {
        self.get(tag);
        self.slots[tag.index()].node.age
    }

    /// Returns the list of a queued request.
    ///
    /// # Panics
    ///
    /// If the request is not queued.
    pub fn list_of(&self, tag: Tag) -> ListId {
        self.get(tag);
        self.slots[tag.index()].list
    }

    /// The request of a list that arrived first.
    pub fn oldest(&self, list: ListId) -> Option<&Request> {
        self.find(self.lists[list.index()].oldest()?)
    }

    /// The requests of a list, oldest first.
    pub fn iter(&self, list: ListId) -> impl Iterator<Item = &Request> {
        let tags = self.lists[list.index()].iter(&self.slots);
        tags.map(|tag| self.get(tag))
    }

    /// The requests that arrived just before and just after this one, of its list.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn neighbours(&self, tag: Tag) -> (Option<&Request>, Option<&Request>) {
        self.get(tag);
        let [before, after] = self.slots[tag.index()].node.neighbours();
        (
            before.map(|tag| self.get(tag)),
            after.map(|tag| self.get(tag)),
        )
    }

    /// A queued request has grown to `grown`. Returns its extent before. If its new part came earlier,
    /// the request takes the place in its list that this arrival gives it.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn grow(&mut self, grown: &Request) -> Extent {
        let (tag, arrival) = (grown.tag, grown.arrival);
        self.get(tag);
        let slot = self.slots[tag.index()].request.as_mut();
        let request = slot.expect("looked up above");
        let old = core::mem::replace(&mut request.extent, grown.extent);
        if arrival < request.arrival {
            request.arrival = arrival;
            let list = self.slots[tag.index()].list;
            self.unlink(tag);
            self.slots[tag.index()].node.age.arrival = arrival;
            self.link(list, tag);
        }
        old
    }

    /// Moves a queued request to another list.
    ///
    /// # Panics
    ///
    /// If it is not queued.
    pub fn move_to(&mut self, tag: Tag, list: ListId) {
        self.get(tag);
        self.unlink(tag);
        self.link(list, tag);
    }

    /// Removes the queued request `gone`, which became part of the queued request `kept`, and
    /// returns it. If `gone` is the older one, `kept` takes its place: its age, and its list.
    ///
    /// # Panics
    ///
    /// If either is not queued, or if they differ in operation.
    pub fn fuse(&mut self, kept: Tag, gone: Tag) -> Request {
        let (place, list) = (self.age(gone), self.list_of(gone));
        let older = place < self.age(kept);
        let gone = self.remove(gone);
        let slot = &mut self.slots[kept.index()];
        let request = slot.request.as_mut().expect("its age was looked up above");
        assert_eq!(
            request.op, gone.op,
            "requests {} and {} cannot be one",
            kept.0, gone.tag.0
        );
        if older {
            request.arrival = place.arrival;
            self.unlink(kept);
            self.slots[kept.index()].node.age = place;
            self.link(list, kept);
        }
        gone
    }

    /// Removes all requests and returns them, oldest first.
    pub fn drain(&mut self) -> Vec<Request> {
        let mut all: Vec<(Age, Request)> = Vec::with_capacity(self.len);
        for slot in &mut self.slots {
            if let Some(request) = slot.request.take() {
                all.push((slot.node.age, request));
            }
        }
        for list in &mut self.lists {
            list.clear();
        }
        self.len = 0;
        all.sort_unstable_by_key(|(age, _)| *age);
        all.into_iter().map(|(_, request)| request).collect()
    }

    fn link(&mut self, list: ListId, tag: Tag) {
        self.slots[tag.index()].list = list;
        self.lists[list.index()].link(&mut self.slots, tag);
    }

    fn unlink(&mut self, tag: Tag) {
        let list = self.slots[tag.index()].list;
        self.lists[list.index()].unlink(&mut self.slots, tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;
    use proptest::prelude::*;

    fn request(tag: u32, arrival: u64) -> Request {
        Request::new(
            Tag(tag),
            Op::Read,
            Extent::at(u64::from(tag) * 8, 8),
            Time::from_nanos(arrival),
        )
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32, u64, u8),
        Remove(usize),
        Grow(usize, u64),
        Fuse(usize, usize),
        Move(usize, u8),
        Drain,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..40_u32, 0..8_u64, 0..3_u8).prop_map(|(t, a, l)| Step::Insert(t, a, l)),
            2 => any::<usize>().prop_map(Step::Remove),
            2 => (any::<usize>(), 0..8_u64).prop_map(|(t, a)| Step::Grow(t, a)),
            2 => (any::<usize>(), any::<usize>()).prop_map(|(k, g)| Step::Fuse(k, g)),
            1 => (any::<usize>(), 0..3_u8).prop_map(|(t, l)| Step::Move(t, l)),
            1 => Just(Step::Drain),
        ]
    }

    /// A queued request of the obvious store: list, age, request.
    type Entry = (ListId, Age, Request);

    proptest! {
        #[test]
        fn agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..150)) {
            let mut requests = Requests::new(3);
            let mut model: Vec<Entry> = Vec::new();
            let mut turn = 0;
            for step in steps {
                match step {
                    Step::Insert(tag, arrival, list) => {
                        if requests.contains(Tag(tag)) {
                            continue;
                        }
                        let request = request(tag, arrival);
                        requests.insert(ListId(list), request);
                        let age = Age { arrival: request.arrival, turn };
                        model.push((ListId(list), age, request));
                        turn += 1;
                    }
                    Step::Remove(which) if !model.is_empty() => {
                        let (_, _, request) = model.remove(which % model.len());
                        prop_assert_eq!(requests.remove(request.tag), request);
                    }
                    Step::Grow(which, arrival) if !model.is_empty() => {
                        let which = which % model.len();
                        let (_, age, grown) = &mut model[which];
                        let old = grown.extent;
                        grown.extent.len += headtime_units::Sectors::new(8);
                        grown.arrival = grown.arrival.min(Time::from_nanos(arrival));
                        age.arrival = grown.arrival;
                        prop_assert_eq!(requests.grow(grown), old);
                    }
                    Step::Fuse(kept, gone) if model.len() > 1 => {
                        let kept = kept % model.len();
                        let gone = (kept + 1 + gone % (model.len() - 1)) % model.len();
                        let (list, age, old) = model[gone];
                        prop_assert_eq!(requests.fuse(model[kept].2.tag, old.tag), old);
                        if age < model[kept].1 {
                            model[kept].0 = list;
                            model[kept].1 = age;
                            model[kept].2.arrival = age.arrival;
                        }
                        model.remove(gone);
                    }
                    Step::Move(which, list) if !model.is_empty() => {
                        let which = which % model.len();
                        model[which].0 = ListId(list);
                        requests.move_to(model[which].2.tag, ListId(list));
                    }
                    Step::Drain => {
                        model.sort_by_key(|(_, age, _)| *age);
                        let all: Vec<Request> = model.drain(..).map(|(_, _, r)| r).collect();
                        prop_assert_eq!(requests.drain(), all);
                    }
                    _ => {}
                }
                prop_assert_eq!(requests.len(), model.len());
                for list in [0, 1, 2].map(ListId) {
                    let mut of: Vec<&Entry> = model.iter().filter(|e| e.0 == list).collect();
                    of.sort_by_key(|(_, age, _)| *age);
                    prop_assert_eq!(requests.len_of(list), of.len());
                    prop_assert!(requests.iter(list).eq(of.iter().map(|(_, _, r)| r)));
                    prop_assert_eq!(requests.oldest(list), of.first().map(|(_, _, r)| r));
                    for (at, (_, age, request)) in of.iter().enumerate() {
                        prop_assert_eq!(requests.age(request.tag), *age);
                        let before = at.checked_sub(1).map(|at| &of[at].2);
                        let after = of.get(at + 1).map(|(_, _, r)| r);
                        prop_assert_eq!(requests.neighbours(request.tag), (before, after));
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "tag 3 is queued already")]
    fn a_tag_is_queued_once() {
        let mut requests = Requests::new(1);
        requests.insert(ListId(0), request(3, 0));
        requests.insert(ListId(0), request(3, 1));
    }

    #[test]
    #[should_panic(expected = "tag 3 is not queued")]
    fn only_queued_requests_leave() {
        Requests::new(1).remove(Tag(3));
    }
}
