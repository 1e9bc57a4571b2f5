//! An ordered map that allocates only to grow beyond its largest size so far.
//!
//! The map keeps the entries sorted by key, in chunks of a bounded size. With few entries, one chunk is
//! enough, and an operation is a binary search and a short memory move. With many entries, a binary
//! search over the chunks' first keys comes first. Empty chunks are retained for reuse.

use alloc::vec::Vec;

/// Values by key, in the order of the keys; a key occurs once.
///
/// # Examples
///
/// ```
/// use headtime_sched::SortedMap;
///
/// let mut map = SortedMap::new();
/// for (key, value) in [(30, 'c'), (10, 'a'), (20, 'b')] {
///     assert_eq!(map.insert(key, value), None);
/// }
/// assert_eq!(map.remove(&10), Some('a'));
/// assert_eq!(map.first(), Some((20, 'b')));
/// assert_eq!(map.last_before(&30), Some((20, 'b')));
/// ```
#[derive(Clone, Debug)]
pub struct SortedMap<K, V> {
    /// The key of the first entry of each run, rising.
    firsts: Vec<K>,
    /// Chunk of each run. A new run among thousands moves little more than these numbers.
    runs: Vec<u32>,
    /// Runs of entries, each sorted, in no order among each other, and empty chunks with their memory.
    chunks: Vec<Vec<(K, V)>>,
    /// Chunks that are not runs. A run is empty only if it is the only run.
    spare: Vec<u32>,
    len: usize,
}

/// Place of an entry in a map, present or absent: run and position in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    run: u32,
    slot: u32,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> SortedMap<K, V> {
        SortedMap::new()
    }
}

impl<K, V> SortedMap<K, V> {
    /// Largest number of entries in a chunk: 2 KiB, so that a move stays within the first-level cache.
    const CHUNK_MAX: usize = match 2048 / size_of::<(K, V)>() {
        16.. => 2048 / size_of::<(K, V)>(),
        _ => 16,
    };

    /// Size at which a shrinking chunk joins its successor, if both then fill at most half a chunk.
    /// Joining keeps a map that shrank from having many short chunks.
    const CHUNK_SPARSE: usize = Self::CHUNK_MAX / 8;

    /// An empty map, which allocates with the first insertion.
    pub const fn new() -> SortedMap<K, V> {
        SortedMap {
            firsts: Vec::new(),
            runs: Vec::new(),
            chunks: Vec::new(),
            spare: Vec::new(),
            len: 0,
        }
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.firsts.clear();
        for chunk in self.runs.drain(..) {
            self.chunks[chunk as usize].clear();
            self.spare.push(chunk);
        }
    }
}

impl<K: Copy + Ord, V: Copy> SortedMap<K, V> {
    /// Adds an entry, or replaces the value of the entry that has this key. Returns the old value.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(cursor) => Some(core::mem::replace(self.value_mut(cursor), value)),
            Err(cursor) => {
                self.insert_at(cursor, key, value);
                None
            }
        }
    }

    /// Adds an entry if the key is absent and `allow` returns true for its neighbours: the last lower
    /// entry and the first higher entry. Returns true if the entry was added.
    pub fn insert_between(
        &mut self,
        key: K,
        value: V,
        allow: impl FnOnce(Option<(K, V)>, Option<(K, V)>) -> bool,
    ) -> bool {
        let Err(cursor) = self.find(&key) else {
            return false;
        };
        let may = allow(self.before(cursor), self.from(cursor));
        if may {
            self.insert_at(cursor, key, value);
        }
        may
    }

    /// The value of this key.
    pub fn get(&self, key: &K) -> Option<V> {
        let cursor = self.find(key).ok()?;
        Some(self.run(cursor.run)?[cursor.slot as usize].1)
    }

    /// Removes the entry of this key.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let cursor = self.find(key).ok()?;
        Some(self.remove_at(cursor))
    }

    /// The entry with the lowest key.
    pub fn first(&self) -> Option<(K, V)> {
        self.run(0)?.first().copied()
    }

    /// The entry with the highest key.
    pub fn last(&self) -> Option<(K, V)> {
        let run = self.runs.len().checked_sub(1)?;
        self.run(run as u32)?.last().copied()
    }

    /// The first entry whose key is `key` or higher.
    pub fn first_at_or_after(&self, key: &K) -> Option<(K, V)> {
        self.from(self.find(key).unwrap_or_else(|cursor| cursor))
    }

    /// The last entry whose key is lower than `key`.
    pub fn last_before(&self, key: &K) -> Option<(K, V)> {
        self.before(self.find(key).unwrap_or_else(|cursor| cursor))
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (K, V)> + '_ {
        self.runs
            .iter()
            .flat_map(|chunk| &self.chunks[*chunk as usize])
            .copied()
    }

    /// Returns the place of this key's entry, or else the place where it would be.
    #[inline]
    pub(crate) fn find(&self, key: &K) -> Result<Cursor, Cursor> {
        let (run, entries) = match &self.chunks[..] {
            // The commonest case: one chunk, full or not.
            [only] => (0, only),
            _ => {
                let run = self.run_of(key);
                let Some(entries) = self.run(run) else {
                    return Err(Cursor { run, slot: 0 });
                };
                (run, entries)
            }
        };
        let slot = entries.partition_point(|(other, _)| other < key);
        let cursor = Cursor {
            run,
            slot: slot as u32,
        };
        match entries.get(slot) {
            Some((other, _)) if other == key => Ok(cursor),
            _ => Err(cursor),
        }
    }

    /// The entries whose key is lower than `key`, downward, and the others, upward.
    #[inline]
    pub fn around(&self, key: &K) -> (Falling<'_, K, V>, Rising<'_, K, V>) {
        let cursor = self.find(key).unwrap_or_else(|cursor| cursor);
        let run = self.run(cursor.run).map_or(&[][..], Vec::as_slice);
        let (lower, upper) = run.split_at(cursor.slot as usize);
        let falling = Falling {
            map: self,
            run: cursor.run,
            entries: lower.iter(),
        };
        let rising = Rising {
            map: self,
            next: cursor.run + 1,
            entries: upper.iter(),
        };
        (falling, rising)
    }

    /// The entry at this place, or else the next entry.
    fn from(&self, cursor: Cursor) -> Option<(K, V)> {
        let here = self.run(cursor.run)?.get(cursor.slot as usize);
        here.or_else(|| self.run(cursor.run + 1)?.first()).copied()
    }

    /// The last entry before this place.
    fn before(&self, Cursor { run, slot }: Cursor) -> Option<(K, V)> {
        match slot.checked_sub(1) {
            Some(slot) => self.run(run)?.get(slot as usize),
            None => self.run(run.checked_sub(1)?)?.last(),
        }
        .copied()
    }

    /// The entry behind the entry at this place.
    pub(crate) fn after(&self, cursor: Cursor) -> Option<(K, V)> {
        let slot = cursor.slot + 1;
        self.from(Cursor { slot, ..cursor })
    }

    /// The value of an existing entry.
    pub(crate) fn value_mut(&mut self, cursor: Cursor) -> &mut V {
        &mut self.run_mut(cursor.run)[cursor.slot as usize].1
    }

    /// Adds an entry at the place that [`SortedMap::find`] returned as absent.
    pub(crate) fn insert_at(&mut self, mut cursor: Cursor, key: K, value: V) {
        self.len += 1;
        if self.runs.is_empty() {
            self.add_run(0, key);
        }
        if self.run_mut(cursor.run).len() == Self::CHUNK_MAX {
            cursor = self.split(cursor);
        }
        let run = self.run_mut(cursor.run);
        run.insert(cursor.slot as usize, (key, value));
        if cursor.slot == 0 {
            self.firsts[cursor.run as usize] = key;
        }
    }

    /// Removes an existing entry.
    pub(crate) fn remove_at(&mut self, cursor: Cursor) -> V {
        self.len -= 1;
        let run = self.run_mut(cursor.run);
        let (_, value) = run.remove(cursor.slot as usize);
        let left = run.len();
        if left == 0 {
            // The last run stays, for later entries.
            if self.runs.len() > 1 {
                self.remove_run(cursor.run);
            }
            return value;
        }
        if cursor.slot == 0 {
            let first = run[0].0;
            self.firsts[cursor.run as usize] = first;
        }
        if left <= Self::CHUNK_SPARSE
            && let Some(next) = self.run(cursor.run + 1)
            && left + next.len() <= Self::CHUNK_MAX / 2
        {
            let chunk = self.remove_run(cursor.run + 1);
            let mut next = core::mem::take(&mut self.chunks[chunk]);
            self.run_mut(cursor.run).append(&mut next);
            self.chunks[chunk] = next;
        }
        value
    }

    fn run(&self, run: u32) -> Option<&Vec<(K, V)>> {
        Some(&self.chunks[*self.runs.get(run as usize)? as usize])
    }

    fn run_mut(&mut self, run: u32) -> &mut Vec<(K, V)> {
        &mut self.chunks[self.runs[run as usize] as usize]
    }

    /// The last run with a first key not above `key`, or else the first run.
    fn run_of(&self, key: &K) -> u32 {
        if self.runs.len() <= 1 {
            return 0;
        }
        let after = self.firsts.partition_point(|first| first <= key);
        after.saturating_sub(1) as u32
    }

    /// Splits a full run and returns the cursor's new place in the two parts.
    fn split(&mut self, cursor: Cursor) -> Cursor {
        let half = Self::CHUNK_MAX / 2;
        let upper = cursor.run + 1;
        let first = self.run_mut(cursor.run)[half].0;
        let chunk = self.add_run(upper, first);
        let mut entries = core::mem::take(&mut self.chunks[chunk]);
        entries.extend(self.run_mut(cursor.run).drain(half..));
        self.chunks[chunk] = entries;
        match cursor.slot.checked_sub(half as u32) {
            Some(slot) if slot > 0 => Cursor { run: upper, slot },
            _ => cursor,
        }
    }

    /// Makes an empty run, and returns its chunk.
    fn add_run(&mut self, at: u32, first: K) -> usize {
        let chunk = self.spare.pop().unwrap_or_else(|| {
            self.chunks.push(Vec::with_capacity(Self::CHUNK_MAX));
            self.chunks.len() as u32 - 1
        });
        self.firsts.insert(at as usize, first);
        self.runs.insert(at as usize, chunk);
        chunk as usize
    }

    /// Removes a run, and returns its chunk.
    fn remove_run(&mut self, at: u32) -> usize {
        self.firsts.remove(at as usize);
        let chunk = self.runs.remove(at as usize);
        self.spare.push(chunk);
        chunk as usize
    }
}

/// Entries upward from a key; see [`SortedMap::around`].
#[derive(Clone, Debug)]
pub struct Rising<'a, K, V> {
    map: &'a SortedMap<K, V>,
    /// The next run after `entries`.
    next: u32,
    entries: core::slice::Iter<'a, (K, V)>,
}

impl<K: Copy + Ord, V: Copy> Iterator for Rising<'_, K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(*entry);
            }
            self.entries = self.map.run(self.next)?.iter();
            self.next += 1;
        }
    }
}

/// Entries downward from a key; see [`SortedMap::around`].
#[derive(Clone, Debug)]
pub struct Falling<'a, K, V> {
    map: &'a SortedMap<K, V>,
    /// The run that `entries` belongs to.
    run: u32,
    entries: core::slice::Iter<'a, (K, V)>,
}

impl<K: Copy + Ord, V: Copy> Iterator for Falling<'_, K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.entries.next_back() {
                return Some(*entry);
            }
            self.run = self.run.checked_sub(1)?;
            self.entries = self.map.run(self.run)?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec;

    impl<K: Copy + Ord, V: Copy> SortedMap<K, V> {
        pub(crate) fn check(&self) {
            assert_eq!(self.firsts.len(), self.runs.len());
            assert_eq!(self.runs.len() + self.spare.len(), self.chunks.len());
            assert_eq!(self.chunks.iter().map(Vec::len).sum::<usize>(), self.len);
            for (chunk, first) in self.runs.iter().zip(&self.firsts) {
                let run = &self.chunks[*chunk as usize];
                assert!(!run.is_empty() || self.runs.len() == 1);
                assert!(run.len() <= Self::CHUNK_MAX);
                assert!(run.first().is_none_or(|(key, _)| key == first));
            }
            let empty = |chunk: &u32| self.chunks[*chunk as usize].is_empty();
            assert!(self.spare.iter().all(empty));
            assert!(self.iter().is_sorted_by(|one, other| one.0 < other.0));
        }

        fn runs(&self) -> usize {
            self.runs.len()
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Remove(u64),
        RemoveNth(usize),
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let run = (prop_oneof![Just(300_u64), Just(1 << 40)], 0..4_u32).prop_flat_map(
            |(range, shrinking)| {
                let step = prop_oneof![
                    8 => (0..range).prop_map(Step::Insert),
                    1 => (0..range).prop_map(Step::Remove),
                    2 + 2 * shrinking => any::<usize>().prop_map(Step::RemoveNth),
                ];
                prop::collection::vec(step, 0..600)
            },
        );
        prop::collection::vec(prop_oneof![9 => run, 1 => Just(vec![Step::Clear])], 1..5)
            .prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_map(steps in steps(), look in 0..300_u64) {
            let (mut map, mut model) = (SortedMap::new(), BTreeMap::new());
            for (at, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(key) => {
                        prop_assert_eq!(map.insert(key, at), model.insert(key, at));
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(map.remove(&key), model.remove(&key));
                    }
                    Step::RemoveNth(nth) => {
                        let key = model.keys().nth(nth % model.len().max(1)).copied();
                        if let Some(key) = key {
                            prop_assert_eq!(map.remove(&key), model.remove(&key));
                        }
                    }
                    Step::Clear => {
                        map.clear();
                        model.clear();
                    }
                }
                let pair = |(key, value): (&u64, &usize)| (*key, *value);
                prop_assert_eq!(map.len(), model.len());
                prop_assert_eq!(map.first(), model.first_key_value().map(pair));
                prop_assert_eq!(map.last(), model.last_key_value().map(pair));
                let after = model.range(look..).next().map(pair);
                prop_assert_eq!(map.first_at_or_after(&look), after);
                let before = model.range(..look).next_back().map(pair);
                prop_assert_eq!(map.last_before(&look), before);
            }
            map.check();
            prop_assert!(map.iter().eq(model.into_iter()));
        }
    }

    #[test]
    fn a_map_that_shrank_is_left_with_few_chunks() {
        let mut map = SortedMap::new();
        // Multiplying by an odd number permutes the keys below a power of two.
        let scattered = (0..100_000_u64).map(|i| i * 0x9E37_79B1 % (1 << 32));
        for key in scattered.clone() {
            map.insert(key, ());
        }
        map.check();
        for (at, key) in scattered.enumerate() {
            assert!(at % 100 == 0 || map.remove(&key).is_some());
        }
        map.check();
        assert_eq!(map.len(), 1_000);
        assert!(map.runs() < 100, "{} runs for 1000 entries", map.runs());
    }
}
