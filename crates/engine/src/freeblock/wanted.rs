//! The blocks that a background task still wants, and where there are many.

use headtime_sched::Passing;
use headtime_units::{Cylinder, Extent, Lba, Sectors, Track};

/// The blocks of a disk that are wanted, each once, as one bit each, with counts by cylinder and by track.
///
/// A block counts for a track if all of it is there: only such blocks can be read in a gap.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Sectors of a block.
    block: u64,
    /// Sectors of the disk; the last block may be short.
    capacity: u64,
    bits: Vec<u64>,
    left: u64,
    heads: u32,
    /// Sectors on the longest track that had a wanted block.
    longest: u64,
    by_track: Vec<u32>,
    by_cylinder: Vec<u32>,
    /// The most of any track, for each [`GROUP`] of cylinders.
    most: Vec<u32>,
}

/// Cylinders that a search can pass over at once.
const GROUP: usize = 32;

impl Wanted {
    /// No block of a disk of `capacity` sectors, in blocks of so many, 1 or more.
    ///
    /// # Panics
    ///
    /// If a block has no sectors.
    pub fn none<P: Passing>(model: &P, capacity: Sectors, block: Sectors) -> Wanted {
        assert!(block > Sectors::ZERO, "a block has sectors");
        let (block, capacity) = (block.get(), capacity.get());
        let heads = u32::from(model.heads());
        let cylinders = model.cylinders() as usize;
        Wanted {
            block,
            capacity,
            bits: vec![0; capacity.div_ceil(block).div_ceil(64) as usize],
            left: 0,
            heads,
            longest: 0,
            by_track: vec![0; cylinders * heads as usize],
            by_cylinder: vec![0; cylinders],
            most: vec![0; cylinders.div_ceil(GROUP)],
        }
    }

    fn index(&self, track: Track) -> usize {
        track.cylinder.0 as usize * self.heads as usize + usize::from(track.head.0)
    }

    /// The blocks that lie whole in an extent.
    fn whole(&self, extent: Extent) -> core::ops::Range<u64> {
        let (start, end) = (extent.start.get(), extent.end().get().min(self.capacity));
        let first = start.div_ceil(self.block);
        // The last block of the disk is whole where the disk ends.
        let last = if end == self.capacity {
            end.div_ceil(self.block)
        } else {
            end / self.block
        };
        first..last.max(first)
    }

    /// How many blocks are wanted.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Sectors of a block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Sectors on the longest track that has, or had, a wanted block; no less.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// How many there are.
    pub fn blocks(&self) -> u64 {
        self.capacity.div_ceil(self.block)
    }

    /// How many blocks are wanted that lie whole on a track.
    pub fn on_track(&self, track: Track) -> u64 {
        self.by_track
            .get(self.index(track))
            .copied()
            .map_or(0, u64::from)
    }

    /// The same for all tracks of a cylinder.
    pub fn on_cylinder(&self, cylinder: Cylinder) -> u64 {
        self.by_cylinder
            .get(cylinder.0 as usize)
            .copied()
            .map_or(0, u64::from)
    }

    /// The bitmap: block `n` is bit `n % 64` of word `n / 64`, and set if it is wanted.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// No track of a cylinder, or of some around it, has more wanted blocks than so many.
    pub(super) fn most_around(&self, cylinder: u32) -> u64 {
        self.most
            .get(cylinder as usize / GROUP)
            .copied()
            .map_or(0, u64::from)
    }

    /// Notes that a track had `before` wanted blocks and has another number now.
    fn note_most(&mut self, cylinder: usize, before: u32, now: u32) {
        let group = cylinder / GROUP;
        if now >= self.most[group] {
            self.most[group] = now;
        } else if before == self.most[group] {
            let tracks = GROUP * self.heads as usize;
            let end = ((group + 1) * tracks).min(self.by_track.len());
            let most = self.by_track[group * tracks..end].iter().max();
            self.most[group] = most.copied().unwrap_or(0);
        }
    }

    /// Returns true if a block is wanted.
    pub fn has(&self, block: u64) -> bool {
        self.bits[(block / 64) as usize] & (1 << (block % 64)) != 0
    }

    /// How many blocks in an extent are wanted, and the extent from the first to the last of them; `None` if
    /// none is.
    pub fn within(&self, extent: Extent) -> Option<(u64, Extent)> {
        let range = self.whole(extent);
        let (mut count, mut first, mut last) = (0, None, 0);
        self.words(range, |at, word| {
            if word != 0 {
                first.get_or_insert(at + u64::from(word.trailing_zeros()));
                last = at + 63 - u64::from(word.leading_zeros());
                count += u64::from(word.count_ones());
            }
        });
        let start = first? * self.block;
        let end = ((last + 1) * self.block).min(self.capacity);
        Some((
            count,
            Extent::new(Lba::new(start), Sectors::new(end - start)),
        ))
    }

    /// Calls with each word of the bitmap that has bits in a range, others masked away, and with the block of its first bit.
    fn words(&self, range: core::ops::Range<u64>, mut each: impl FnMut(u64, u64)) {
        let mut at = range.start;
        while at < range.end {
            let (index, bit) = (at / 64, at % 64);
            let here = (64 - bit).min(range.end - at);
            let mask = if here == 64 {
                u64::MAX
            } else {
                ((1 << here) - 1) << bit
            };
            each(index * 64, self.bits[index as usize] & mask);
            at += here;
        }
    }

    /// The wanted blocks that lie whole in an extent, by their first sectors.
    pub fn blocks_in(&self, extent: Extent) -> impl Iterator<Item = Lba> + '_ {
        let blocks = self.whole(extent).filter(|block| self.has(*block));
        blocks.map(|block| Lba::new(block * self.block))
    }

    /// The first wanted blocks at or behind a sector, or from the beginning if there are none, that lie side by side: as many as
    /// fit into `most` sectors, at least one.
    pub fn next(&self, from: Lba, most: Sectors) -> Option<(u64, Extent)> {
        let from = from.get().div_ceil(self.block);
        let first = self.first(from..self.blocks());
        let first = first.or_else(|| self.first(0..from.min(self.blocks())))?;
        let most = (most.get() / self.block).max(1);
        let end = (first + most).min(self.blocks());
        let last = (first..end).find(|block| !self.has(*block)).unwrap_or(end);
        let start = first * self.block;
        let len = (last * self.block).min(self.capacity) - start;
        Some((
            last - first,
            Extent::new(Lba::new(start), Sectors::new(len)),
        ))
    }

    fn first(&self, range: core::ops::Range<u64>) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let word = self.bits[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return Some(found).filter(|found| *found < range.end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// The block that begins at a sector.
    pub fn block_at(&self, lba: Lba) -> Extent {
        let len = self.block.min(self.capacity.saturating_sub(lba.get()));
        Extent::new(lba, Sectors::new(len))
    }

    /// The blocks that lie whole in an extent are wanted no longer. Returns how many were.
    pub fn take<P: Passing>(&mut self, model: &P, extent: Extent) -> u64 {
        self.change(model, extent, false)
    }

    /// The blocks that lie whole in an extent are wanted. Returns how many were not.
    pub fn add<P: Passing>(&mut self, model: &P, extent: Extent) -> u64 {
        self.change(model, extent, true)
    }

    fn change<P: Passing>(&mut self, model: &P, extent: Extent, on: bool) -> u64 {
        let range = self.whole(extent);
        let mut changed = 0;
        let mut next = range.start;
        while next < range.end {
            let lba = Lba::new(next * self.block);
            let track = model.track(model.start(Extent::new(lba, Sectors::new(1))));
            let addresses = model.addresses(track);
            if on {
                self.longest = self.longest.max(addresses.len.get());
            }
            let here = self.whole(addresses);
            // A block that lies on two tracks, or is remapped, counts for none.
            let end = if here.contains(&next) {
                here.end.min(range.end)
            } else {
                next + 1
            };
            let mut count = 0;
            for block in next..end {
                if self.has(block) != on {
                    self.bits[(block / 64) as usize] ^= 1 << (block % 64);
                    count += 1;
                }
            }
            if here.contains(&next) {
                let index = self.index(track);
                let cylinder = track.cylinder.0 as usize;
                let add = |value: &mut u32| {
                    *value = if on { *value + count } else { *value - count };
                };
                let before = self.by_track[index];
                add(&mut self.by_track[index]);
                add(&mut self.by_cylinder[cylinder]);
                self.note_most(cylinder, before, self.by_track[index]);
            }
            changed += u64::from(count);
            next = end;
        }
        self.left = if on {
            self.left + changed
        } else {
            self.left - changed
        };
        changed
    }
}
