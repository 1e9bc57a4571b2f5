//! Parts of blocks that clients have read. A block counts as read once several requests have read all of its parts.

use headtime_units::Extent;

/// Number of places for partly read blocks; a mebibyte in all. If two blocks share a place, the newer block has the place.
const PLACES_MAX: usize = 1 << 16;

/// A block of which clients have read some pieces.
#[derive(Clone, Copy, Debug, Default)]
struct PartRead {
    block: u64,
    /// One bit for each piece that has been read whole.
    read: u64,
}

/// Parts of blocks that clients have read, as far as there are places.
///
/// A block is divided into up to 64 pieces. A piece that is read in part counts as not read.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Sectors of a block.
    block: u64,
    /// Sectors of a piece.
    piece: u64,
    /// Allocated when the first part is read.
    places: Vec<PartRead>,
}

impl Parts {
    /// Returns an empty set for blocks of `block` sectors.
    pub fn of(block: u64) -> Parts {
        Parts {
            block,
            piece: block.div_ceil(64),
            places: Vec::new(),
        }
    }

    /// Returns the blocks that an extent covers in part, at most two. `end` is the end of the disk.
    pub fn of_extent(&self, extent: Extent, end: u64) -> impl Iterator<Item = u64> + use<> {
        let (from, to, block) = (extent.start.get(), extent.end().get().min(end), self.block);
        let (first, last) = (from / block, to.saturating_sub(1) / block);
        let ends = [first, last]
            .into_iter()
            .take(1 + usize::from(last > first));
        let in_part = move |number: &u64| {
            let start = number * block;
            from > start || to < (start + block).min(end)
        };
        ends.filter(move |number| from < to && in_part(number))
    }

    /// Notes that an extent has been read that covers a part of a block of `len` sectors. Returns true if the whole block has been read
    /// now. The block is then forgotten.
    pub fn read(&mut self, number: u64, len: u64, extent: Extent) -> bool {
        let start = number * self.block;
        let from = extent.start.get().max(start) - start;
        let to = extent.end().get().min(start + len) - start;
        let first = from.div_ceil(self.piece);
        // The last piece of a block may be short.
        let last = match to == len {
            true => len.div_ceil(self.piece),
            false => to / self.piece,
        };
        if first >= last {
            return false;
        }
        if self.places.is_empty() {
            self.places = vec![PartRead::default(); PLACES_MAX];
        }
        let place = &mut self.places[place(number)];
        if place.block != number {
            *place = PartRead {
                block: number,
                read: 0,
            };
        }
        place.read |= ones(last) & !ones(first);
        let all = place.read == ones(len.div_ceil(self.piece));
        if all {
            place.read = 0;
        }
        all
    }

    /// Forgets all parts of some blocks.
    pub fn forget(&mut self, blocks: core::ops::Range<u64>) {
        if self.places.is_empty() {
            return;
        }
        if blocks.end - blocks.start < PLACES_MAX as u64 {
            for number in blocks {
                let place = &mut self.places[place(number)];
                if place.block == number {
                    place.read = 0;
                }
            }
        } else {
            let within = |place: &&mut PartRead| blocks.contains(&place.block);
            for place in self.places.iter_mut().filter(within) {
                place.read = 0;
            }
        }
    }
}

/// Returns the place of a block. Neighbouring blocks, which may be of one file, have distant places.
fn place(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
}

/// Returns a number with `count` low bits set.
fn ones(count: u64) -> u64 {
    match count {
        64.. => u64::MAX,
        _ => (1 << count) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_block_is_read_when_all_of_its_sectors_are_and_not_before() {
        let mut state = 1_u64;
        let mut below = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most
        };
        for block in [1_u64, 2, 7, 64, 65, 128, 500] {
            // The last block of the disk is short.
            let end = block * 9 + block.div_ceil(2);
            let mut parts = Parts::of(block);
            let mut read: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            let mut whole = 0;
            for _ in 0..20_000 {
                let start = below(end);
                let extent = Extent::at(start, 1 + below(block + 3));
                if below(100) == 0 {
                    parts.forget(start / block..start / block + 1);
                    read.remove(&(start / block));
                }
                for number in parts.of_extent(extent, end) {
                    let sectors = number * block..(number * block + block).min(end);
                    let len = sectors.end - sectors.start;
                    let here =
                        extent.start.get().max(sectors.start)..extent.end().get().min(sectors.end);
                    assert!(
                        here.end - here.start < len,
                        "{extent:?} has all of {number}"
                    );
                    let set = read.entry(number).or_default();
                    set.extend(here);
                    if parts.read(number, len, extent) {
                        assert_eq!(set.len() as u64, len, "{number} of {block}");
                        read.remove(&number);
                        whole += 1;
                    } else if block <= 64 {
                        // Each sector is a piece.
                        assert!((set.len() as u64) < len, "{number} of {block}");
                    }
                }
            }
            assert_eq!(whole > 50, block > 1, "{block}: {whole}");
        }
    }

    #[test]
    fn what_is_read_of_many_blocks_is_forgotten_and_not_taken_for_another() {
        let mut parts = Parts::of(8);
        for number in 0..1_000_000 {
            assert!(!parts.read(number, 8, Extent::at(number * 8, 4)));
        }
        let read = |number: &u64| parts.read(*number, 8, Extent::at(number * 8 + 4, 4));
        let kept = (0..1_000_000).rev().filter(read).count();
        assert!((60_000..=PLACES_MAX).contains(&kept), "{kept}");
        parts.forget(0..1_000_000);
        assert!((0..1_000_000).all(|number| !parts.read(number, 8, Extent::at(number * 8, 4))));
    }
}
