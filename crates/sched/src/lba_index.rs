//! Pending requests in the order of their addresses.
//!
//! Addresses are in a [`SortedMap`]. The requests of one address are a list in order of insertion, linked by tag. So
//! the costs of finding and removing a request do not depend on the number of requests at its address.

use crate::Tag;
use crate::sorted_map::{Falling, Rising, SortedMap};
use alloc::vec::Vec;
use headtime_units::Lba;

/// No request: the end of a list.
const NIL: u32 = u32::MAX;

/// Value of `prev` for a tag that is not in the index.
const ABSENT: u32 = u32::MAX - 1;

/// One pending request in an [`LbaIndex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First sector, or another address under which the entry was inserted.
    pub lba: Lba,
    /// Tag of the request.
    pub tag: Tag,
}

/// The requests of one address: the first and the last in order of insertion.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// Place of a request among the requests of its address.
#[derive(Clone, Copy, Debug)]
struct Link {
    lba: Lba,
    prev: u32,
    next: u32,
}

impl Link {
    const ABSENT: Link = Link {
        lba: Lba::ZERO,
        prev: ABSENT,
        next: NIL,
    };
}

/// Links of requests that share their address, by tag. Several [`LbaGroups`] may share the links, if each tag is in at
/// most one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ties(Vec<Link>);

impl Ties {
    const fn new() -> Ties {
        Ties(Vec::new())
    }

    /// Returns the link of a request at this address, if the request is not alone there.
    fn find(&self, lba: Lba, tag: u32) -> Option<Link> {
        let link = *self.0.get(tag as usize)?;
        (link.prev != ABSENT && link.lba == lba).then_some(link)
    }

    /// Returns the link of a request that has a link.
    fn of(&mut self, tag: u32) -> &mut Link {
        &mut self.0[tag as usize]
    }

    fn add(&mut self, tag: u32, link: Link) {
        if tag as usize >= self.0.len() {
            self.0.resize(tag as usize + 1, Link::ABSENT);
        }
        let before = core::mem::replace(self.of(tag), link);
        assert!(before.prev == ABSENT, "tag {tag} is in the index already");
    }
}

/// Requests by address. The links of requests at equal addresses are in [`Ties`].
#[derive(Clone, Debug, Default)]
pub(crate) struct LbaGroups {
    groups: SortedMap<Lba, Ends>,
    len: usize,
}

impl LbaGroups {
    pub const fn new() -> LbaGroups {
        LbaGroups {
            groups: SortedMap::new(),
            len: 0,
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// As [`LbaIndex::insert`].
    pub fn insert(&mut self, ties: &mut Ties, lba: Lba, Tag(tag): Tag) -> bool {
        self.len += 1;
        let place = match self.groups.find(&lba) {
            Ok(place) => place,
            Err(place) => {
                let alone = Ends {
                    first: tag,
                    last: tag,
                };
                self.groups.insert_at(place, lba, alone);
                return false;
            }
        };
        let ends = self.groups.value_mut(place);
        let prev = core::mem::replace(&mut ends.last, tag);
        if prev == ends.first {
            // The first request had been alone.
            let (prev, next) = (NIL, tag);
            ties.add(ends.first, Link { lba, prev, next });
        } else {
            ties.of(prev).next = tag;
        }
        let next = NIL;
        ties.add(tag, Link { lba, prev, next });
        true
    }

    /// As [`LbaIndex::remove`].
    pub fn remove(&mut self, ties: &mut Ties, lba: Lba, Tag(tag): Tag) -> bool {
        let Ok(place) = self.groups.find(&lba) else {
            return false;
        };
        let ends = self.groups.value_mut(place);
        if ends.first == ends.last {
            let there = ends.first == tag;
            if there {
                self.groups.remove_at(place);
                self.len -= 1;
            }
            return there;
        }
        let Some(Link { prev, next, .. }) = ties.find(lba, tag) else {
            return false;
        };
        self.len -= 1;
        *ties.of(tag) = Link::ABSENT;
        match prev {
            NIL => ends.first = next,
            prev => ties.of(prev).next = next,
        }
        match next {
            NIL => ends.last = prev,
            next => ties.of(next).prev = prev,
        }
        if ends.first == ends.last {
            *ties.of(ends.first) = Link::ABSENT;
        }
        true
    }

    /// As [`LbaIndex::first`].
    pub fn first(&self) -> Option<Entry> {
        self.groups.first().map(first_of)
    }

    /// As [`LbaIndex::first_at_or_after`].
    pub fn first_at_or_after(&self, lba: Lba) -> Option<Entry> {
        self.groups.first_at_or_after(&lba).map(first_of)
    }

    /// As [`LbaIndex::last_before`].
    pub fn last_before(&self, lba: Lba) -> Option<Entry> {
        self.groups.last_before(&lba).map(last_of)
    }
}

fn first_of((lba, ends): (Lba, Ends)) -> Entry {
    Entry {
        lba,
        tag: Tag(ends.first),
    }
}

fn last_of((lba, ends): (Lba, Ends)) -> Entry {
    Entry {
        lba,
        tag: Tag(ends.last),
    }
}

/// An ordered index of pending requests by address; ties are in order of insertion.
///
/// An address may occur any number of times, a tag once. The cost of an operation does not depend on the number of
/// requests at an address. An index that has once held `n` entries allocates nothing until it holds more.
///
/// # Examples
///
/// ```
/// use headtime_sched::{LbaIndex, Tag};
/// use headtime_units::Lba;
///
/// let mut index = LbaIndex::new();
/// for (tag, lba) in [98, 183, 37].into_iter().enumerate() {
///     index.insert(Lba::new(lba), Tag(tag as u32));
/// }
/// let head = Lba::new(53);
/// assert_eq!(index.first_at_or_after(head).unwrap().tag, Tag(0));
/// assert_eq!(index.last_before(head).unwrap().lba, Lba::new(37));
/// let nearest: Vec<u64> = index.outward(head).map(|entry| entry.lba.get()).collect();
/// assert_eq!(nearest, [37, 98, 183]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LbaIndex {
    by_lba: LbaGroups,
    ties: Ties,
}

impl LbaIndex {
    /// An empty index, which allocates with the first insertion.
    pub const fn new() -> LbaIndex {
        LbaIndex {
            by_lba: LbaGroups::new(),
            ties: Ties::new(),
        }
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.by_lba.len
    }

    /// Returns true if there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.by_lba.is_empty()
    }

    /// Adds an entry behind all others of the same address. Returns true if others exist. The tag must not be in the
    /// index.
    pub fn insert(&mut self, lba: Lba, tag: Tag) -> bool {
        self.by_lba.insert(&mut self.ties, lba, tag)
    }

    /// Removes the entry of this address and tag. Returns true if there was one.
    pub fn remove(&mut self, lba: Lba, tag: Tag) -> bool {
        self.by_lba.remove(&mut self.ties, lba, tag)
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.by_lba.groups.clear();
        self.by_lba.len = 0;
        self.ties.0.clear();
    }

    /// The entry with the lowest address.
    pub fn first(&self) -> Option<Entry> {
        self.by_lba.first()
    }

    /// The entry with the highest address.
    pub fn last(&self) -> Option<Entry> {
        self.by_lba.groups.last().map(last_of)
    }

    /// The first entry whose address is `lba` or higher.
    pub fn first_at_or_after(&self, lba: Lba) -> Option<Entry> {
        self.by_lba.first_at_or_after(lba)
    }

    /// The first entry of this address.
    pub fn first_at(&self, lba: Lba) -> Option<Tag> {
        let ends = self.by_lba.groups.get(&lba)?;
        Some(Tag(ends.first))
    }

    /// Returns true if the entry of this address and tag is followed by another of the same address.
    pub fn has_next(&self, lba: Lba, tag: Tag) -> bool {
        let link = self.ties.find(lba, tag.0);
        link.is_some_and(|link| link.next != NIL)
    }

    /// The last entry whose address is lower than `lba`.
    pub fn last_before(&self, lba: Lba) -> Option<Entry> {
        self.by_lba.last_before(lba)
    }

    /// The entry that follows the entry of this address and tag in the order. If the latter is absent, the first entry
    /// with a higher address.
    pub fn next_after(&self, lba: Lba, Tag(tag): Tag) -> Option<Entry> {
        let groups = &self.by_lba.groups;
        let Ok(place) = groups.find(&lba) else {
            return self.first_at_or_after(lba);
        };
        let link = self.ties.find(lba, tag);
        match link.filter(|link| link.next != NIL) {
            Some(Link { next, .. }) => Some(Entry {
                lba,
                tag: Tag(next),
            }),
            None => groups.after(place).map(first_of),
        }
    }

    /// All entries in order.
    pub fn iter(&self) -> Upward<'_> {
        self.upward(Lba::ZERO)
    }

    /// The entries whose address is `lba` or higher, upward.
    pub fn upward(&self, lba: Lba) -> Upward<'_> {
        self.around(lba).1
    }

    /// The entries with addresses lower than `lba`, downward. Entries of one address come in reverse order of
    /// insertion.
    pub fn downward(&self, lba: Lba) -> Downward<'_> {
        self.around(lba).0
    }

    /// [`LbaIndex::downward`] and [`LbaIndex::upward`] at once.
    pub fn around(&self, lba: Lba) -> (Downward<'_>, Upward<'_>) {
        let (falling, rising) = self.by_lba.groups.around(&lba);
        let down = Downward {
            groups: falling,
            ties: &self.ties,
            tag: NIL,
        };
        let up = Upward {
            groups: rising,
            ties: &self.ties,
            tag: NIL,
        };
        (down, up)
    }

    /// All entries, those nearest to `lba` first; of two at the same distance the higher address
    /// comes first.
    pub fn outward(&self, lba: Lba) -> Outward<'_> {
        let (mut down, mut up) = self.around(lba);
        Outward {
            lba,
            next_up: up.next(),
            next_down: down.next(),
            up,
            down,
        }
    }
}

/// Entries upward from an address; see [`LbaIndex::upward`].
#[derive(Clone, Debug)]
pub struct Upward<'a> {
    groups: Rising<'a, Lba, Ends>,
    ties: &'a Ties,
    /// The next one of the last address, if it has more.
    tag: u32,
}

impl Iterator for Upward<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        #[cfg(test)]
        headtime_testkit::steps::one();
        if self.tag != NIL {
            let tag = Tag(self.tag);
            let Link { lba, next, .. } = self.ties.0[tag.index()];
            self.tag = next;
            return Some(Entry { lba, tag });
        }
        let (lba, ends) = self.groups.next()?;
        if ends.first != ends.last {
            self.tag = self.ties.0[ends.first as usize].next;
        }
        Some(first_of((lba, ends)))
    }
}

/// Entries downward from an address; see [`LbaIndex::downward`].
#[derive(Clone, Debug)]
pub struct Downward<'a> {
    groups: Falling<'a, Lba, Ends>,
    ties: &'a Ties,
    /// The next one of the last address, if it has more.
    tag: u32,
}

impl Iterator for Downward<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        #[cfg(test)]
        headtime_testkit::steps::one();
        if self.tag != NIL {
            let tag = Tag(self.tag);
            let Link { lba, prev, .. } = self.ties.0[tag.index()];
            self.tag = prev;
            return Some(Entry { lba, tag });
        }
        let (lba, ends) = self.groups.next()?;
        if ends.first != ends.last {
            self.tag = self.ties.0[ends.last as usize].prev;
        }
        Some(last_of((lba, ends)))
    }
}

/// Entries outward from an address; see [`LbaIndex::outward`].
#[derive(Clone, Debug)]
pub struct Outward<'a> {
    lba: Lba,
    up: Upward<'a>,
    down: Downward<'a>,
    next_up: Option<Entry>,
    next_down: Option<Entry>,
}

impl Iterator for Outward<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let upward = match (self.next_up, self.next_down) {
            (Some(up), Some(down)) => self.lba.distance(up.lba) <= self.lba.distance(down.lba),
            (up, _) => up.is_some(),
        };
        if upward {
            core::mem::replace(&mut self.next_up, self.up.next())
        } else {
            core::mem::replace(&mut self.next_down, self.down.next())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    impl LbaIndex {
        fn check(&self) {
            self.by_lba.groups.check();
            let all: Vec<Entry> = self.iter().collect();
            assert_eq!(all.len(), self.len());
            assert!(all.is_sorted_by_key(|entry| entry.lba));
            let tied = |pair: &[Entry]| pair[0].lba == pair[1].lba;
            let ties = all.windows(2).filter(|pair| tied(pair)).count();
            let groups = all.chunk_by(|one, other| one.lba == other.lba);
            let groups = groups.filter(|group| group.len() > 1).count();
            let links = self.ties.0.iter().filter(|link| link.prev != ABSENT);
            assert_eq!(links.count(), ties + groups);
        }
    }

    /// The obvious index, to compare with.
    #[derive(Default)]
    struct Model(Vec<Entry>);

    impl Model {
        fn insert(&mut self, lba: Lba, tag: Tag) {
            self.0.push(Entry { lba, tag });
            self.0.sort_by_key(|entry| entry.lba);
        }

        fn remove(&mut self, lba: Lba, tag: Tag) -> bool {
            let found = self.0.iter().position(|e| *e == Entry { lba, tag });
            found.map(|at| self.0.remove(at)).is_some()
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u32),
        Remove(usize),
        RemoveAbsent(u64, u32),
        Look(u64),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // A narrow address range makes long ties, a wide one exercises the chunks.
        let run = (prop_oneof![Just(3_u64), Just(40), Just(1 << 40)], 0..4_u32).prop_flat_map(
            |(range, shrinking)| {
                let tag = || 0..1_500_u32;
                let step = prop_oneof![
                    8 => (0..range, tag()).prop_map(|(lba, tag)| Step::Insert(lba, tag)),
                    2 + 2 * shrinking => any::<usize>().prop_map(Step::Remove),
                    1 => (0..range, tag()).prop_map(|(lba, tag)| Step::RemoveAbsent(lba, tag)),
                    1 => (0..range).prop_map(Step::Look),
                ];
                prop::collection::vec(step, 0..400)
            },
        );
        prop::collection::vec(prop_oneof![9 => run, 1 => Just(vec![Step::Clear])], 1..5)
            .prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in steps()) {
            let (mut index, mut model) = (LbaIndex::new(), Model::default());
            for step in steps {
                match step {
                    Step::Insert(_, tag) if model.0.iter().any(|entry| entry.tag == Tag(tag)) => {}
                    Step::Insert(lba, tag) => {
                        let others = model.0.iter().any(|entry| entry.lba == Lba::new(lba));
                        prop_assert_eq!(index.insert(Lba::new(lba), Tag(tag)), others);
                        model.insert(Lba::new(lba), Tag(tag));
                    }
                    Step::Remove(which) if !model.0.is_empty() => {
                        let entry = model.0[which % model.0.len()];
                        prop_assert!(index.remove(entry.lba, entry.tag));
                        prop_assert!(model.remove(entry.lba, entry.tag));
                    }
                    Step::Remove(_) => prop_assert!(index.first().is_none()),
                    Step::RemoveAbsent(lba, tag) => prop_assert_eq!(
                        index.remove(Lba::new(lba), Tag(tag)),
                        model.remove(Lba::new(lba), Tag(tag))
                    ),
                    Step::Clear => {
                        index.clear();
                        model.0.clear();
                    }
                    Step::Look(lba) => {
                        let lba = Lba::new(lba);
                        index.check();
                        let at = model.0.partition_point(|entry| entry.lba < lba);
                        prop_assert_eq!(index.first_at_or_after(lba), model.0.get(at).copied());
                        let below = at.checked_sub(1).map(|at| model.0[at]);
                        prop_assert_eq!(index.last_before(lba), below);
                        prop_assert!(index.upward(lba).eq(model.0[at..].iter().copied()));
                        prop_assert!(index.downward(lba).eq(model.0[..at].iter().rev().copied()));
                        let mut near = model.0[at..].to_vec();
                        near.extend(model.0[..at].iter().rev());
                        near.sort_by_key(|entry| lba.distance(entry.lba));
                        prop_assert_eq!(index.outward(lba).collect::<Vec<_>>(), near);
                        for (at, entry) in model.0.iter().enumerate() {
                            let next = model.0.get(at + 1).copied();
                            prop_assert_eq!(index.next_after(entry.lba, entry.tag), next);
                        }
                        let above = model.0.iter().find(|entry| entry.lba > lba).copied();
                        prop_assert_eq!(index.next_after(lba, Tag(u32::MAX)), above);
                    }
                }
                prop_assert_eq!(index.len(), model.0.len());
                prop_assert_eq!(index.first(), model.0.first().copied());
                prop_assert_eq!(index.last(), model.0.last().copied());
            }
            index.check();
            prop_assert!(index.iter().eq(model.0.iter().copied()));
        }
    }

    #[test]
    #[should_panic(expected = "tag 3 is in the index already")]
    fn a_tag_shares_one_address_with_others() {
        let mut index = LbaIndex::new();
        for tag in [2, 3] {
            index.insert(Lba::new(1), Tag(tag));
        }
        for tag in [4, 3] {
            index.insert(Lba::new(2), Tag(tag));
        }
    }

    #[test]
    fn of_many_at_one_address_each_is_found_and_leaves_without_a_look_at_the_others() {
        const MANY: u32 = 10_000;
        let at = Lba::new(77);
        let mut index = LbaIndex::new();
        for tag in 0..MANY {
            index.insert(at, Tag(tag));
        }
        // From the middle outward, from the end and from the front.
        let middle = (0..MANY / 2).map(|i| {
            if i % 2 == 0 {
                MANY / 2 + i / 2
            } else {
                MANY / 2 - 1 - i / 2
            }
        });
        let order: Vec<u32> = middle
            .chain((MANY * 3 / 4..MANY).rev())
            .chain(0..MANY / 4)
            .collect();
        let steps = headtime_testkit::steps::of(|| {
            for tag in &order {
                index.next_after(at, Tag(*tag));
                assert!(index.remove(at, Tag(*tag)));
            }
        });
        assert!(index.is_empty());
        assert_eq!(steps, 0, "only walking along the list is a step");
    }
}
