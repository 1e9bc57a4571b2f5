//! A set of block numbers, one bit each.

use core::ops::Range;

/// Some of the blocks of a disk.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    count: u64,
}

impl Bits {
    /// None of so many blocks.
    pub fn none(blocks: u64) -> Bits {
        Bits {
            words: vec![0; blocks.div_ceil(64) as usize],
            count: 0,
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Puts blocks in, or takes them out. Returns how many were not in, or were.
    pub fn set(&mut self, range: Range<u64>, on: bool) -> u64 {
        let mut changed = 0;
        let mut at = range.start;
        while at < range.end {
            let (bit, here) = (at % 64, (64 - at % 64).min(range.end - at));
            let mask = (u64::MAX >> (64 - here)) << bit;
            let word = &mut self.words[(at / 64) as usize];
            let new = if on { *word | mask } else { *word & !mask };
            changed += u64::from((new ^ *word).count_ones());
            *word = new;
            at += here;
        }
        match on {
            true => self.count += changed,
            false => self.count -= changed,
        }
        changed
    }

    /// The first run of blocks that are in, within a range.
    pub fn next_run(&self, range: Range<u64>) -> Option<Range<u64>> {
        let start = self.first(range.clone(), false)?;
        let end = self.first(start..range.end, true).unwrap_or(range.end);
        Some(start..end)
    }

    /// Returns true if none of a range is in.
    pub fn has_none(&self, range: Range<u64>) -> bool {
        self.first(range, false).is_none()
    }

    /// The first block of a range that is in, or is not.
    fn first(&self, range: Range<u64>, out: bool) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let word = self.words[(at / 64) as usize];
            let word = (if out { !word } else { word }) >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return Some(found).filter(|found| *found < range.end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn bits_are_a_set() {
        let (mut bits, mut set) = (Bits::none(300), BTreeSet::new());
        let mut number = 1_u64;
        for _ in 0..2_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005) + 1_442_695_040_888_963_407;
            let start = (number >> 33) % 300;
            let end = (start + (number >> 20) % 130).min(300);
            let on = number >> 63 == 0;
            let expected = (start..end).filter(|one| match on {
                true => set.insert(*one),
                false => set.remove(one),
            });
            assert_eq!(bits.set(start..end, on), expected.count() as u64);
            assert_eq!(bits.count(), set.len() as u64);
            let within = (number >> 10) % 300..300;
            let first = set.range(within.clone()).next();
            let run = first.map(|first| {
                let end = (*first..300).find(|one| !set.contains(one));
                *first..end.unwrap_or(300)
            });
            assert_eq!(bits.next_run(within.clone()), run);
            assert_eq!(bits.has_none(within), run.is_none());
        }
    }
}
