//! Lists of requests by age.
//!
//! The links are in the slots of the owner of the requests; a list has only its ends. A request usually
//! arrives at the moment it is inserted and goes to the end at once. A request that was held back goes
//! to the place of its arrival, which may be in front of any number of requests. When the search for
//! that place gets long, the list also sorts its ages into a map. It drops the map when the list is
//! short again, or when enough requests have left without a use of the map.

use crate::Tag;
use crate::sorted_map::SortedMap;
use headtime_units::Time;

/// No request: the end of a list.
const NIL: u32 = u32::MAX;

/// Number of requests at each end that a search inspects before the list is sorted into a map. A
/// shorter list has no map. In tests the number is so low that most lists have a map.
const LOOK_MAX: usize = if cfg!(test) { 4 } else { 32 };

/// Position of a request among all that were inserted: by arrival time, then by insertion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    /// Time of arrival.
    pub arrival: Time,
    /// Number of requests inserted earlier.
    pub turn: u64,
}

/// A request's place in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub age: Age,
    prev: u32,
    next: u32,
}

impl Node {
    /// Builds a node that is in no list.
    pub const fn new(arrival: Time, turn: u64) -> Node {
        Node {
            age: Age { arrival, turn },
            prev: NIL,
            next: NIL,
        }
    }

    /// The requests before and after this one in its list.
    pub fn neighbours(&self) -> [Option<Tag>; 2] {
        [self.prev, self.next].map(|at| (at != NIL).then_some(Tag(at)))
    }
}

/// An entry of a linked list.
pub(crate) trait Linked {
    fn node(&self) -> &Node;
    fn node_mut(&mut self) -> &mut Node;
}

/// Requests by age, oldest first. No two have the same age.
#[derive(Clone, Debug)]
pub(crate) struct AgeList {
    head: u32,
    tail: u32,
    len: usize,
    /// All requests by age while the map pays, else empty.
    by_age: SortedMap<Age, Tag>,
    /// Number of requests that have left since the last use of the map.
    unused: usize,
}

impl Default for AgeList {
    fn default() -> AgeList {
        AgeList::EMPTY
    }
}

impl AgeList {
    pub const EMPTY: AgeList = AgeList {
        head: NIL,
        tail: NIL,
        len: 0,
        by_age: SortedMap::new(),
        unused: 0,
    };

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn oldest(&self) -> Option<Tag> {
        (self.head != NIL).then_some(Tag(self.head))
    }

    /// Removes all requests and keeps the memory.
    pub fn clear(&mut self) {
        let mut by_age = core::mem::take(&mut self.by_age);
        by_age.clear();
        *self = AgeList {
            by_age,
            ..AgeList::EMPTY
        };
    }

    /// The requests, oldest first.
    pub fn iter<'a, S: Linked>(&self, slots: &'a [S]) -> impl Iterator<Item = Tag> + use<'a, S> {
        let mut at = self.head;
        core::iter::from_fn(move || {
            let tag = (at != NIL).then_some(Tag(at))?;
            at = slots[tag.index()].node().next;
            Some(tag)
        })
    }

    /// Inserts a request behind all older requests. The request has its age and must be in no list.
    pub fn link<S: Linked>(&mut self, slots: &mut [S], tag: Tag) {
        let age = slots[tag.index()].node().age;
        let prev = self.older(slots, age);
        let next = match prev {
            NIL => self.head,
            prev => slots[prev as usize].node().next,
        };
        self.join(slots, prev, tag.0);
        self.join(slots, tag.0, next);
        self.len += 1;
        if !self.by_age.is_empty() {
            self.by_age.insert(age, tag);
        }
    }

    /// Removes a request.
    pub fn unlink<S: Linked>(&mut self, slots: &mut [S], tag: Tag) {
        let Node { age, prev, next } = *slots[tag.index()].node();
        self.join(slots, prev, next);
        self.len -= 1;
        if !self.by_age.is_empty() {
            self.unused += 1;
            if self.len < LOOK_MAX || self.unused > self.len {
                // Sorting the rest again costs no more than one step for each request that left.
                self.by_age.clear();
            } else {
                let there = self.by_age.remove(&age);
                assert_eq!(
                    there,
                    Some(tag),
                    "a request's age does not change in a list"
                );
            }
        }
    }

    /// Returns the youngest request that is older than `age`.
    fn older<S: Linked>(&mut self, slots: &[S], age: Age) -> u32 {
        if self.tail == NIL || slots[self.tail as usize].node().age < age {
            return self.tail;
        }
        if self.by_age.is_empty() {
            // A request that was held back is usually among the oldest.
            let (mut prev, mut next) = (self.tail, self.head);
            for _ in 0..LOOK_MAX {
                #[cfg(test)]
                headtime_testkit::steps::one();
                if prev == NIL || slots[prev as usize].node().age < age {
                    return prev;
                }
                prev = slots[prev as usize].node().prev;
                // The last request is younger. So the loop finds a younger request before the list
                // ends.
                let node = slots[next as usize].node();
                if node.age > age {
                    return node.prev;
                }
                next = node.next;
            }
            let mut at = self.head;
            while at != NIL {
                #[cfg(test)]
                headtime_testkit::steps::one();
                let node = slots[at as usize].node();
                self.by_age.insert(node.age, Tag(at));
                at = node.next;
            }
        }
        self.unused = 0;
        self.by_age
            .last_before(&age)
            .map_or(NIL, |(_, older)| older.0)
    }

    /// Makes two requests neighbours. `NIL` stands for an end of the list.
    fn join<S: Linked>(&mut self, slots: &mut [S], prev: u32, next: u32) {
        match prev {
            NIL => self.head = next,
            prev => slots[prev as usize].node_mut().next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => slots[next as usize].node_mut().prev = prev,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AgeList, LOOK_MAX, Linked, Node};
    use crate::{ListId, Op, Request, Requests, Tag};
    use headtime_testkit::steps;
    use headtime_units::{Extent, Time};
    use std::vec::Vec;

    const ALL: ListId = ListId(0);

    fn request(tag: u32, arrival: u64) -> Request {
        let arrival = Time::from_nanos(arrival);
        Request::new(Tag(tag), Op::Read, Extent::at(0, 8), arrival)
    }

    /// Inserts requests that were held back, in `of_old` interleaved sequences, in front of `many`
    /// later arrivals.
    fn steps_of(many: u32, of_old: u32) -> u64 {
        let mut requests = Requests::new(1);
        for tag in 0..many {
            requests.insert(ALL, request(tag, 1_000_000 + u64::from(tag)));
        }
        let steps = steps::of(|| {
            for turn in 0..many {
                // Each sequence is in order of age, as when requests are released at several places.
                let arrival = u64::from(turn % of_old * many + turn / of_old);
                requests.insert(ALL, request(many + turn, arrival));
            }
        });
        let mut last = Time::ZERO;
        while let Some(oldest) = requests.oldest(ALL) {
            assert!(oldest.arrival >= last);
            (last, _) = (oldest.arrival, requests.remove(oldest.tag));
        }
        steps
    }

    #[test]
    fn requests_held_back_find_their_place_without_a_look_at_all_that_came_later() {
        for of_old in [1, 2, 3, 50] {
            let steps = steps_of(10_000, of_old);
            // Each request once, to sort the list; then a few for each insertion.
            assert!(steps < 10_000 * 7, "{steps} steps, {of_old} at a time");
        }
    }

    #[test]
    fn requests_in_order_of_arrival_find_their_place_at_the_end() {
        let mut requests = Requests::new(1);
        let steps = steps::of(|| {
            for tag in 0..1_000 {
                requests.insert(ALL, request(tag, u64::from(tag / 3)));
            }
        });
        assert_eq!(steps, 0);
    }

    impl Linked for Node {
        fn node(&self) -> &Node {
            self
        }

        fn node_mut(&mut self) -> &mut Node {
            self
        }
    }

    /// One request was held back, and then none for long. The list drops its map.
    #[test]
    fn a_map_in_which_nobody_looks_is_given_up() {
        const MANY: u32 = 4 * LOOK_MAX as u32;
        let node = |arrival: u32| Node::new(Time::from_nanos(arrival.into()), arrival.into());
        // The last request belongs in the middle of the others.
        let mut nodes: Vec<Node> = (0..MANY).map(|turn| node(10 * turn)).collect();
        nodes.push(node(5 * MANY + 1));
        let mut list = AgeList::EMPTY;
        for tag in 0..=MANY {
            list.link(&mut nodes, Tag(tag));
        }
        assert_eq!(list.by_age.len(), nodes.len());
        for turn in 0..=MANY {
            let oldest = list.oldest().expect("there are as many as before");
            list.unlink(&mut nodes, oldest);
            nodes[oldest.index()] = node(10 * (MANY + turn));
            list.link(&mut nodes, oldest);
        }
        assert!(list.by_age.is_empty());
        assert_eq!(list.iter(&nodes).count(), list.len());
        let ages = list.iter(&nodes).map(|tag| nodes[tag.index()].age);
        assert!(ages.is_sorted());
    }

    #[test]
    fn a_request_that_is_older_than_all_is_put_first_at_once() {
        let mut requests = Requests::new(1);
        let steps = steps::of(|| {
            for tag in 0..1_000 {
                requests.insert(ALL, request(tag, u64::from(1_000 - tag)));
            }
        });
        assert!(steps <= 1_000, "{steps} steps");
    }
}
