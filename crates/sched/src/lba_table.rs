//! Pending requests by address, without an order of the addresses.
//!
//! As long as no two requests share an address, nothing is sorted: each request is in a hash table, found by
//! multiplying its address. If a request comes to an address that is taken, both move to an [`LbaIndex`]. If the table
//! is full, further requests go there too. The size of the table bounds the cost of colliding addresses, even if a
//! client chooses them on purpose.

use crate::{LbaIndex, Tag};
use alloc::vec::Vec;
use headtime_units::Lba;

/// Largest number of requests in the table. In tests the number is so low that tables overflow.
const ALONE_MAX: usize = if cfg!(test) { 8 } else { 1024 };

/// Least number of lists per request, so that hardly any list has two requests.
const LISTS_PER_REQUEST: usize = 8;

/// No request: the end of a list.
const NIL: u32 = u32::MAX;

/// 2⁶⁴ over the golden ratio: neighbours, and addresses at any usual distance, come far apart.
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Pending requests by address. Requests at one address are in order of insertion.
///
/// Like an [`LbaIndex`] without an order of the addresses: an address may occur any number of times, a tag
/// once. A table that has held `n` entries allocates nothing until it holds more.
///
/// # Examples
///
/// ```
/// use headtime_sched::{LbaTable, Tag};
/// use headtime_units::Lba;
///
/// let mut table = LbaTable::new();
/// assert!(!table.insert(Lba::new(98), Tag(0)));
/// assert!(table.insert(Lba::new(98), Tag(1)), "there is another");
/// assert_eq!(table.first_at(Lba::new(98)), Some(Tag(0)));
/// assert!(table.remove(Lba::new(98), Tag(0)));
/// assert_eq!(table.first_at(Lba::new(98)), Some(Tag(1)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LbaTable {
    alone: Table,
    /// All requests of the addresses that are not in the table.
    others: LbaIndex,
}

impl LbaTable {
    /// An empty table, which allocates with the first insertion.
    pub const fn new() -> LbaTable {
        LbaTable {
            alone: Table::new(),
            others: LbaIndex::new(),
        }
    }

    /// Adds an entry behind all others of the same address. Returns true if others exist. The tag must not be in the
    /// table.
    #[inline]
    pub fn insert(&mut self, lba: Lba, tag: Tag) -> bool {
        if let Some(first) = self.alone.find(lba) {
            self.alone.remove(lba, first);
            self.others.insert(lba, first);
            return self.others.insert(lba, tag);
        }
        let elsewhere = !self.others.is_empty() && self.others.first_at(lba).is_some();
        if !elsewhere && self.alone.insert(lba, tag) {
            return false;
        }
        self.others.insert(lba, tag)
    }

    /// Removes the entry of this address and tag. Returns true if there was one.
    #[inline]
    pub fn remove(&mut self, lba: Lba, tag: Tag) -> bool {
        self.alone.remove(lba, tag) || (!self.others.is_empty() && self.others.remove(lba, tag))
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.alone.len = 0;
        self.alone.lists.fill(NIL);
        self.others.clear();
    }

    /// The first entry of this address.
    #[inline]
    pub fn first_at(&self, lba: Lba) -> Option<Tag> {
        match self.alone.find(lba) {
            None if !self.others.is_empty() => self.others.first_at(lba),
            alone => alone,
        }
    }

    /// Returns true if the entry of this address and tag is followed by another of the same address.
    pub fn has_next(&self, lba: Lba, tag: Tag) -> bool {
        self.others.has_next(lba, tag)
    }
}

/// A request in its list.
#[derive(Clone, Copy, Debug)]
struct ChainNode {
    lba: Lba,
    next: u32,
}

/// One request for each address, in short lists. The product of the address selects the list.
#[derive(Clone, Debug, Default)]
struct Table {
    /// First request of each list. The number of lists is zero or a power of two.
    lists: Vec<u32>,
    /// By tag.
    nodes: Vec<ChainNode>,
    /// Number of low bits of a product that are not part of a list's number.
    shift: u32,
    len: usize,
}

impl Table {
    const fn new() -> Table {
        Table {
            lists: Vec::new(),
            nodes: Vec::new(),
            shift: 0,
            len: 0,
        }
    }

    /// Returns the number of the list of an address, if lists exist.
    fn list(&self, lba: Lba) -> usize {
        // The highest bits depend on all others.
        (lba.get().wrapping_mul(HASH_FACTOR) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, lba: Lba) -> Option<Tag> {
        let mut tag = *self.lists.get(self.list(lba))?;
        while tag != NIL {
            let node = self.nodes[tag as usize];
            if node.lba == lba {
                return Some(Tag(tag));
            }
            tag = node.next;
        }
        None
    }

    /// Adds a request whose address is not in the table, unless the table is full.
    #[inline]
    fn insert(&mut self, lba: Lba, Tag(tag): Tag) -> bool {
        if LISTS_PER_REQUEST * self.len >= self.lists.len() {
            if self.len == ALONE_MAX {
                return false;
            }
            self.grow();
        }
        let list = self.list(lba);
        let next = core::mem::replace(&mut self.lists[list], tag);
        let node = ChainNode { lba, next };
        match self.nodes.get_mut(tag as usize) {
            Some(place) => *place = node,
            None => self.nodes.resize(tag as usize + 1, node),
        }
        self.len += 1;
        true
    }

    /// Removes a request. Returns true if it was there.
    #[inline]
    fn remove(&mut self, lba: Lba, Tag(tag): Tag) -> bool {
        let list = self.list(lba);
        let Some(first) = self.lists.get_mut(list) else {
            return false;
        };
        let mut before = *first;
        if before == tag {
            let node = self.nodes[tag as usize];
            if node.lba != lba {
                return false;
            }
            *first = node.next;
            self.len -= 1;
            return true;
        }
        while before != NIL {
            let next = self.nodes[before as usize].next;
            if next == tag {
                let node = self.nodes[tag as usize];
                if node.lba != lba {
                    return false;
                }
                self.nodes[before as usize].next = node.next;
                self.len -= 1;
                return true;
            }
            before = next;
        }
        false
    }

    /// Makes twice as many lists.
    #[cold]
    fn grow(&mut self) {
        let len = (2 * self.lists.len()).max(8 * LISTS_PER_REQUEST);
        let lists = core::mem::replace(&mut self.lists, alloc::vec![NIL; len]);
        self.shift = u64::BITS - len.trailing_zeros();
        for mut tag in lists {
            while tag != NIL {
                let ChainNode { lba, next } = self.nodes[tag as usize];
                let list = self.list(lba);
                self.nodes[tag as usize].next = core::mem::replace(&mut self.lists[list], tag);
                tag = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Lba),
        Remove(prop::sample::Index),
        RemoveAbsent(Lba, u32),
        Clear,
    }

    /// Returns the address with this product. Addresses with close products are in one list.
    fn of_product(product: u64) -> Lba {
        // The inverse of an odd number by Newton's method, which doubles the number of correct bits.
        let inverse = (0..6).fold(HASH_FACTOR, |inverse: u64, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(HASH_FACTOR.wrapping_mul(inverse)))
        });
        Lba::new(product.wrapping_mul(inverse))
    }

    fn lba() -> impl Strategy<Value = Lba> {
        prop_oneof![
            (0..4_u64).prop_map(Lba::new),
            (0..30_u64).prop_map(|block| Lba::new(8 * block)),
            (0..30_u64).prop_map(of_product),
            (0..30_u64).prop_map(|product| of_product(u64::MAX - product)),
            any::<u64>().prop_map(Lba::new),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => lba().prop_map(Step::Insert),
            5 => any::<prop::sample::Index>().prop_map(Step::Remove),
            1 => (lba(), 0..40_u32).prop_map(|(lba, tag)| Step::RemoveAbsent(lba, tag)),
            1 => prop::bool::weighted(0.1).prop_map(|all| match all {
                true => Step::Clear,
                false => Step::Insert(Lba::ZERO),
            }),
        ]
    }

    proptest! {
        #[test]
        fn entries_agree_with_a_plain_list(steps in prop::collection::vec(step(), 0..200)) {
            let (mut table, mut plain) = (LbaTable::new(), Vec::<(Lba, Tag)>::new());
            for (tag, step) in (0..).map(Tag).zip(steps) {
                match step {
                    Step::Insert(lba) => {
                        let others = plain.iter().any(|(other, _)| *other == lba);
                        prop_assert_eq!(table.insert(lba, tag), others);
                        plain.push((lba, tag));
                    }
                    Step::Remove(which) if !plain.is_empty() => {
                        let (lba, tag) = plain.remove(which.index(plain.len()));
                        prop_assert!(table.remove(lba, tag));
                    }
                    Step::Remove(_) => {}
                    Step::RemoveAbsent(lba, tag) if !plain.contains(&(lba, Tag(tag))) => {
                        prop_assert!(!table.remove(lba, Tag(tag)));
                    }
                    Step::RemoveAbsent(..) => {}
                    Step::Clear => {
                        table.clear();
                        plain.clear();
                    }
                }
                for lba in plain.iter().map(|(lba, _)| *lba).chain([Lba::new(3)]) {
                    let here: Vec<Tag> = plain
                        .iter()
                        .filter(|(other, _)| *other == lba)
                        .map(|(_, tag)| *tag)
                        .collect();
                    prop_assert_eq!(table.first_at(lba), here.first().copied());
                    for (at, tag) in here.iter().enumerate() {
                        prop_assert_eq!(table.has_next(lba, *tag), at + 1 < here.len());
                    }
                }
                prop_assert!(table.alone.len <= ALONE_MAX);
            }
        }
    }

    #[test]
    fn addresses_of_one_list_are_found_and_leave() {
        let mut table = LbaTable::new();
        let all = || (0..100_u32).map(|i| (of_product(u64::from(i)), Tag(i)));
        for (lba, tag) in all() {
            assert!(!table.insert(lba, tag));
            assert_eq!(table.alone.list(lba), 0);
        }
        for (lba, tag) in all().step_by(3).chain(all().skip(1).step_by(3)) {
            assert!(table.remove(lba, tag));
        }
        for (lba, tag) in all() {
            let left = (tag.0 % 3 == 2).then_some(tag);
            assert_eq!(table.first_at(lba), left);
        }
    }
}
