//! An unordered table from block numbers to their places in a vector. The table does not allocate once it has its size.
//! The standard library's maps do not fit. A tree allocates its nodes, and the workspace forbids hash maps, whose order
//! differs from run to run.

/// Hash table from numbers to places, by open addressing with linear probing (Knuth, The Art of Computer Programming,
/// vol. 3, 6.4, algorithms L and R).
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Cells with number and place. The number of cells is 0 or a power of two. At most half are taken.
    cells: Vec<Option<(u64, u32)>>,
    taken: usize,
}

impl Places {
    /// Returns the place of a number.
    pub fn get(&self, number: u64) -> Option<u32> {
        if self.cells.is_empty() {
            return None;
        }
        self.cells[self.find(number)].map(|(_, place)| place)
    }

    /// Sets or changes the place of a number.
    pub fn set(&mut self, number: u64, place: u32) {
        if 2 * (self.taken + 1) > self.cells.len() {
            let larger = (2 * self.cells.len()).max(64);
            let cells = std::mem::replace(&mut self.cells, vec![None; larger]);
            for (number, place) in cells.into_iter().flatten() {
                let at = self.find(number);
                self.cells[at] = Some((number, place));
            }
        }
        let at = self.find(number);
        self.taken += usize::from(self.cells[at].is_none());
        self.cells[at] = Some((number, place));
    }

    /// Removes a number.
    pub fn remove(&mut self, number: u64) {
        if self.cells.is_empty() {
            return;
        }
        let mut hole = self.find(number);
        if self.cells[hole].take().is_none() {
            return;
        }
        self.taken -= 1;
        // Entries that were put further on because this cell was taken move up.
        let mask = self.cells.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some((number, _)) = self.cells[at] else {
                return;
            };
            let from_home = at.wrapping_sub(self.home(number)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.cells[hole] = self.cells[at].take();
                hole = at;
            }
        }
    }

    /// Removes all numbers.
    pub fn clear(&mut self) {
        self.cells.fill(None);
        self.taken = 0;
    }

    /// Returns the first cell in which a number is looked for. The cell is the upper bits of the number's product with
    /// an odd number near the golden section of 2^64 (Knuth, 6.4).
    fn home(&self, number: u64) -> usize {
        let bits = self.cells.len().trailing_zeros();
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }

    /// Returns the cell of a number, or the empty cell for a number that is not in the table.
    fn find(&self, number: u64) -> usize {
        let mask = self.cells.len() - 1;
        let mut at = self.home(number);
        while self.cells[at].is_some_and(|(other, _)| other != number) {
            at = (at + 1) & mask;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn places_are_found_as_in_a_map(steps in prop::collection::vec((0..3u8, 0..90u64, any::<u32>()), 0..600)) {
            let (mut places, mut map) = (Places::default(), BTreeMap::new());
            for (what, number, place) in steps {
                // Some numbers begin at the same cell, and the numbers are spread over the range.
                let number = number % 9 + (number / 9) * (u64::MAX / 10);
                match what {
                    0 | 1 => {
                        places.set(number, place);
                        map.insert(number, place);
                    }
                    _ => {
                        places.remove(number);
                        map.remove(&number);
                    }
                }
                prop_assert_eq!(places.taken, map.len());
            }
            for number in 0..90 {
                let number = number % 9 + (number / 9) * (u64::MAX / 10);
                prop_assert_eq!(places.get(number), map.get(&number).copied());
            }
            places.clear();
            prop_assert_eq!(places.get(0), None);
        }
    }

    #[test]
    fn a_full_house_of_neighbours() {
        let mut places = Places::default();
        for number in 0..100_000u64 {
            places.set(number * 8, number as u32);
        }
        for number in (0..100_000u64).step_by(3) {
            places.remove(number * 8);
        }
        for number in 0..100_000u64 {
            let wanted = (number % 3 != 0).then_some(number as u32);
            assert_eq!(places.get(number * 8), wanted);
        }
        assert_eq!(places.cells.len(), 1 << 18);
    }
}
