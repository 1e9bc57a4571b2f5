//! Pending requests in the order of their addresses.
//!
//! Entries are kept sorted by start address, and by insertion among equal addresses, in chunks of a
//! bounded size: with few entries there is one chunk, so an operation is a binary search and a short
//! memory move; with many, a second binary search over the chunks' first addresses comes before it.
//! Chunks that fall empty are kept for reuse, so an index that has once held `n` entries allocates
//! nothing until it holds more.

use crate::Tag;
use alloc::vec::Vec;
use headtime_units::Lba;

/// Most entries of a chunk: 2 KiB of them, so that a move stays within the first-level cache.
const CHUNK_MAX: usize = 128;

/// A chunk that shrinks to this size joins its successor if both then fill at most half a chunk, so
/// that an index which shrank is not left with many short chunks.
const CHUNK_SPARSE: usize = CHUNK_MAX / 8;

/// One pending request in an [`LbaIndex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its first sector, or whatever address it was inserted under.
    pub lba: Lba,
    /// Its name.
    pub tag: Tag,
}

/// An ordered index of pending requests by address; ties are in order of insertion.
///
/// The same address may occur any number of times, and so may a tag.
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
    /// The address of the first entry of each chunk.
    firsts: Vec<Lba>,
    /// Non-empty runs of entries, sorted within and among each other.
    chunks: Vec<Vec<Entry>>,
    /// Empty chunks with their memory.
    spare: Vec<Vec<Entry>>,
    len: usize,
}

/// A place in the index: chunk and position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    chunk: usize,
    slot: usize,
}

impl LbaIndex {
    /// An empty index, which allocates with the first insertion.
    pub const fn new() -> LbaIndex {
        LbaIndex {
            firsts: Vec::new(),
            chunks: Vec::new(),
            spare: Vec::new(),
            len: 0,
        }
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry, behind all others of the same address.
    pub fn insert(&mut self, lba: Lba, tag: Tag) {
        let entry = Entry { lba, tag };
        self.len += 1;
        if self.chunks.is_empty() {
            let mut chunk = self.fresh_chunk();
            chunk.push(entry);
            self.firsts.push(lba);
            self.chunks.push(chunk);
            return;
        }
        let mut place = self.last_chunk_from(lba, |first, lba| first <= lba);
        if self.chunks[place].len() == CHUNK_MAX {
            place = self.split(place, lba);
        }
        let chunk = &mut self.chunks[place];
        let slot = chunk.partition_point(|entry| entry.lba <= lba);
        chunk.insert(slot, entry);
        self.firsts[place] = chunk[0].lba;
    }

    /// Removes the entry of this address and tag, and says whether there was one.
    ///
    /// Takes longer the more entries of the same address were inserted before it.
    pub fn remove(&mut self, lba: Lba, tag: Tag) -> bool {
        let Some(place) = self.find(Entry { lba, tag }) else {
            return false;
        };
        self.len -= 1;
        let chunk = &mut self.chunks[place.chunk];
        chunk.remove(place.slot);
        let left = chunk.len();
        if left == 0 {
            self.firsts.remove(place.chunk);
            let chunk = self.chunks.remove(place.chunk);
            self.spare.push(chunk);
            return true;
        }
        self.firsts[place.chunk] = chunk[0].lba;
        if left <= CHUNK_SPARSE
            && let Some(next) = self.chunks.get(place.chunk + 1)
            && left + next.len() <= CHUNK_MAX / 2
        {
            self.firsts.remove(place.chunk + 1);
            let mut next = self.chunks.remove(place.chunk + 1);
            self.chunks[place.chunk].append(&mut next);
            self.spare.push(next);
        }
        true
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.firsts.clear();
        for mut chunk in self.chunks.drain(..) {
            chunk.clear();
            self.spare.push(chunk);
        }
    }

    /// The entry with the lowest address.
    pub fn first(&self) -> Option<Entry> {
        Some(self.chunks.first()?[0])
    }

    /// The entry with the highest address.
    pub fn last(&self) -> Option<Entry> {
        self.chunks.last()?.last().copied()
    }

    /// The first entry whose address is `lba` or higher.
    pub fn first_at_or_after(&self, lba: Lba) -> Option<Entry> {
        self.entry(self.lower_bound(lba))
    }

    /// The last entry whose address is lower than `lba`.
    pub fn last_before(&self, lba: Lba) -> Option<Entry> {
        self.entry(self.before(self.lower_bound(lba))?)
    }

    /// The entry that follows the one of this address and tag in the order, or that would follow it
    /// if it is not there: then the first with a higher address.
    pub fn next_after(&self, lba: Lba, tag: Tag) -> Option<Entry> {
        match self.find(Entry { lba, tag }) {
            Some(place) => self.entry(self.after(place)),
            None => self.entry(self.upper_bound(lba)),
        }
    }

    /// All entries in order, from either end.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// The entries whose address is `lba` or higher, upward.
    pub fn upward(&self, lba: Lba) -> Upward<'_> {
        Upward {
            index: self,
            place: self.lower_bound(lba),
        }
    }

    /// The entries whose address is lower than `lba`, downward; those of one address come in the
    /// reverse order of insertion.
    pub fn downward(&self, lba: Lba) -> Downward<'_> {
        Downward {
            index: self,
            place: self.lower_bound(lba),
        }
    }

    /// All entries, those nearest to `lba` first; of two at the same distance the higher address
    /// comes first.
    pub fn outward(&self, lba: Lba) -> Outward<'_> {
        let (mut up, mut down) = (self.upward(lba), self.downward(lba));
        Outward {
            lba,
            next_up: up.next(),
            next_down: down.next(),
            up,
            down,
        }
    }

    /// The last chunk for whose first address `holds(first, lba)` is true, or chunk 0 if it is true
    /// of none.
    fn last_chunk_from(&self, lba: Lba, holds: impl Fn(Lba, Lba) -> bool) -> usize {
        if self.chunks.len() <= 1 {
            return 0;
        }
        self.firsts
            .partition_point(|first| holds(*first, lba))
            .saturating_sub(1)
    }

    /// The place of the first entry at `lba` or higher; the end if there is none.
    fn lower_bound(&self, lba: Lba) -> Place {
        self.bound(lba, |at, lba| at < lba)
    }

    /// The place of the first entry higher than `lba`; the end if there is none.
    fn upper_bound(&self, lba: Lba) -> Place {
        self.bound(lba, |at, lba| at <= lba)
    }

    /// The place of the first entry whose address is not `below` the given one.
    fn bound(&self, lba: Lba, below: impl Fn(Lba, Lba) -> bool) -> Place {
        let chunk = self.last_chunk_from(lba, &below);
        let slot = match self.chunks.get(chunk) {
            Some(entries) => entries.partition_point(|entry| below(entry.lba, lba)),
            None => 0,
        };
        self.normal(Place { chunk, slot })
    }

    /// The same place, with that behind the last entry of a chunk written as the start of the next.
    fn normal(&self, place: Place) -> Place {
        match self.chunks.get(place.chunk) {
            Some(chunk) if place.slot >= chunk.len() => Place {
                chunk: place.chunk + 1,
                slot: 0,
            },
            _ => place,
        }
    }

    fn after(&self, place: Place) -> Place {
        self.normal(Place {
            slot: place.slot + 1,
            ..place
        })
    }

    fn before(&self, place: Place) -> Option<Place> {
        if place.slot > 0 {
            return Some(Place {
                slot: place.slot - 1,
                ..place
            });
        }
        let chunk = place.chunk.checked_sub(1)?;
        Some(Place {
            chunk,
            slot: self.chunks[chunk].len() - 1,
        })
    }

    fn entry(&self, place: Place) -> Option<Entry> {
        self.chunks.get(place.chunk)?.get(place.slot).copied()
    }

    fn find(&self, wanted: Entry) -> Option<Place> {
        let mut place = self.lower_bound(wanted.lba);
        loop {
            let entry = self.entry(place)?;
            if entry == wanted {
                return Some(place);
            }
            if entry.lba != wanted.lba {
                return None;
            }
            place = self.after(place);
        }
    }

    /// Splits a full chunk and returns which of the two parts an entry for `lba` belongs to.
    fn split(&mut self, at: usize, lba: Lba) -> usize {
        let mut upper = self.fresh_chunk();
        let chunk = &mut self.chunks[at];
        upper.extend_from_slice(&chunk[CHUNK_MAX / 2..]);
        chunk.truncate(CHUNK_MAX / 2);
        let first = upper[0].lba;
        self.firsts.insert(at + 1, first);
        self.chunks.insert(at + 1, upper);
        if first <= lba { at + 1 } else { at }
    }

    fn fresh_chunk(&mut self) -> Vec<Entry> {
        self.spare
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(CHUNK_MAX))
    }
}

/// Entries upward from an address; see [`LbaIndex::upward`].
#[derive(Clone, Debug)]
pub struct Upward<'a> {
    index: &'a LbaIndex,
    place: Place,
}

impl Iterator for Upward<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let entry = self.index.entry(self.place)?;
        self.place = self.index.after(self.place);
        Some(entry)
    }
}

/// Entries downward from an address; see [`LbaIndex::downward`].
#[derive(Clone, Debug)]
pub struct Downward<'a> {
    index: &'a LbaIndex,
    /// The place behind the next entry.
    place: Place,
}

impl Iterator for Downward<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        self.place = self.index.before(self.place)?;
        self.index.entry(self.place)
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
            assert_eq!(self.firsts.len(), self.chunks.len());
            assert_eq!(self.chunks.iter().map(Vec::len).sum::<usize>(), self.len);
            for (chunk, first) in self.chunks.iter().zip(&self.firsts) {
                assert!(!chunk.is_empty() && chunk.len() <= CHUNK_MAX);
                assert_eq!(chunk[0].lba, *first);
            }
            assert!(self.spare.iter().all(Vec::is_empty));
            let all: Vec<Entry> = self.iter().collect();
            assert!(all.windows(2).all(|pair| pair[0].lba <= pair[1].lba));
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
        // A narrow address range makes ties that span chunks, a wide one exercises the directory.
        let run = (prop_oneof![Just(3_u64), Just(40), Just(1 << 40)], 0..4_u32).prop_flat_map(
            |(range, shrinking)| {
                let step = prop_oneof![
                    8 => (0..range, 0..50_u32).prop_map(|(lba, tag)| Step::Insert(lba, tag)),
                    2 + 2 * shrinking => any::<usize>().prop_map(Step::Remove),
                    1 => (0..range, 0..50_u32).prop_map(|(lba, tag)| Step::RemoveAbsent(lba, tag)),
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
                    Step::Insert(lba, tag) => {
                        index.insert(Lba::new(lba), Tag(tag));
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
                            if !model.0[..at].contains(entry) {
                                let next = model.0.get(at + 1).copied();
                                prop_assert_eq!(index.next_after(entry.lba, entry.tag), next);
                            }
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
    fn a_hundred_thousand_entries_come_back_in_order() {
        let mut index = LbaIndex::new();
        // Multiplying by an odd number permutes the addresses below a power of two.
        let scattered = (0..100_000_u64).map(|i| i * 0x9E37_79B1 % (1 << 32));
        for (tag, lba) in scattered.clone().enumerate() {
            index.insert(Lba::new(lba), Tag(tag as u32));
        }
        index.check();
        for (tag, lba) in scattered.enumerate().filter(|(tag, _)| tag % 100 != 0) {
            assert!(index.remove(Lba::new(lba), Tag(tag as u32)));
        }
        index.check();
        assert_eq!(index.len(), 1_000);
        assert!(
            index.chunks.len() < 100,
            "{} chunks for 1000 entries",
            index.chunks.len()
        );
    }
}
