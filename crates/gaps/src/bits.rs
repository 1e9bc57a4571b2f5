//! A set of block numbers, one bit each.

use core::ops::Range;

/// A set of blocks of a disk.
///
/// Invariant: bit `n % 64` of `used[n / 64]` is 1 if and only if `words[n]` is not zero. A search in a nearly empty set of a large disk
/// skips the other words.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    used: Vec<u64>,
    count: u64,
}

impl Bits {
    /// Returns an empty set for a disk of `blocks` blocks.
    pub fn none(blocks: u64) -> Bits {
        let words = blocks.div_ceil(64) as usize;
        Bits {
            words: vec![0; words],
            used: vec![0; words.div_ceil(64)],
            count: 0,
        }
    }

    /// Returns the number of blocks in the set.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of blocks of a range that are in the set.
    pub fn count_in(&self, range: Range<u64>) -> u64 {
        let mut count = 0;
        for_words(range, |index, mask| {
            count += u64::from((self.words[index] & mask).count_ones());
        });
        count
    }

    /// Returns the bitmap: block `n` is bit `n % 64` of word `n / 64`.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns true if a block is in the set.
    pub fn has(&self, block: u64) -> bool {
        self.words[(block / 64) as usize] & (1 << (block % 64)) != 0
    }

    /// Adds blocks to the set, or removes blocks. Returns the number of blocks for which that was a change.
    pub fn set(&mut self, range: Range<u64>, on: bool) -> u64 {
        let mut changed = 0;
        for_words(range, |index, mask| {
            let word = &mut self.words[index];
            let after = if on { *word | mask } else { *word & !mask };
            changed += u64::from((*word ^ after).count_ones());
            *word = after;
            let bit = 1 << (index % 64);
            match after {
                0 => self.used[index / 64] &= !bit,
                _ => self.used[index / 64] |= bit,
            }
        });
        match on {
            true => self.count += changed,
            false => self.count -= changed,
        }
        changed
    }

    /// Returns the first block of a range that is in the set.
    pub fn next(&self, range: Range<u64>) -> Option<u64> {
        let at = self.words.get((range.start / 64) as usize)? >> (range.start % 64);
        let found = match at {
            0 => {
                let words = (range.start / 64) as usize + 1..range.end.div_ceil(64) as usize;
                let index = self.used_within(words)?;
                index as u64 * 64 + u64::from(self.words[index].trailing_zeros())
            }
            word => range.start + u64::from(word.trailing_zeros()),
        };
        Some(found).filter(|found| *found < range.end)
    }

    /// Returns the index of the first word of a range that is not zero.
    fn used_within(&self, range: Range<usize>) -> Option<usize> {
        let mut at = range.start;
        while at < range.end {
            let rest = self.used[at / 64] >> (at % 64);
            if rest != 0 {
                return Some(at + rest.trailing_zeros() as usize);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Returns the first run of blocks in the set, within a range.
    pub fn next_run(&self, range: Range<u64>) -> Option<Range<u64>> {
        let start = self.next(range.clone())?;
        let end = self.next_gap(start..range.end).unwrap_or(range.end);
        Some(start..end)
    }

    /// Returns the first block of a range that is not in the set.
    fn next_gap(&self, range: Range<u64>) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let word = !self.words[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return Some(found).filter(|found| *found < range.end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

/// Calls `each` for each word of a bitmap that has bits of a range, with the word's index and a mask of these bits.
pub(super) fn for_words(range: Range<u64>, mut each: impl FnMut(usize, u64)) {
    let mut at = range.start;
    while at < range.end {
        let bit = at % 64;
        let here = (64 - bit).min(range.end - at);
        let mask = (u64::MAX >> (64 - here)) << bit;
        each((at / 64) as usize, mask);
        at += here;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn bits_are_a_set() {
        like_a_set(300, 130);
    }

    /// Searches pass words of [`Bits::used`] that are zero.
    #[test]
    fn few_bits_of_many_are_a_set() {
        like_a_set(8_000_000, 3);
    }

    fn like_a_set(blocks: u64, longest: u64) {
        let (mut bits, mut set) = (Bits::none(blocks), BTreeSet::new());
        let mut number = 1_u64;
        for _ in 0..2_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let start = (number >> 33) % blocks;
            let end = (start + (number >> 20) % longest).min(blocks);
            let on = number >> 63 == 0;
            let expected = (start..end).filter(|one| match on {
                true => set.insert(*one),
                false => set.remove(one),
            });
            assert_eq!(bits.set(start..end, on), expected.count() as u64);
            assert_eq!(bits.count(), set.len() as u64);
            let within = (number >> 10) % blocks..blocks;
            let here = set.range(within.clone()).count();
            assert_eq!(bits.count_in(within.clone()), here as u64);
            let first = set.range(within.clone()).next();
            let run = first.map(|first| {
                let end = (*first..blocks).find(|one| !set.contains(one));
                *first..end.unwrap_or(blocks)
            });
            assert_eq!(bits.next_run(within), run);
        }
    }
}
