//! Retains the data that a power cut must restore.
//!
//! The store holds the data that were written last. The medium of a real drive holds older data while the new data wait
//! in the drive's buffer. This module retains these older data. At most three versions of a sector matter:
//!
//! ```text
//!           old ──────────► earlier ──────────► new
//!    on the medium      acknowledged,       in the store, its
//!                       in the buffer       write is in the drive
//! ```
//!
//! The model may report that the arm has written a sector while another write of the sector is still in the drive. The
//! arm may then have written the earlier data. `earlier` is therefore retained while such a write is in the drive
//! (`shadow`), and then becomes `old`. At all other times there is only `old`.
//!
//! Zeroes and discards change the store for good when they complete, and no older data are retained for them. The arm
//! still writes them later, perhaps while a newer write waits in the drive. The newer write may be aborted. The data
//! that the newer write replaced are therefore retained until that write completes (`landed`).

use super::places::Places;
use headtime_units::{Extent, Lba, Sectors};

/// Bytes of a block. Older data are retained in aligned blocks, since the usual request covers whole blocks.
const BLOCK: usize = 4096;

/// Largest number of unused blocks that are retained instead of freed.
const SPARE: usize = 4096;

type Bytes = Box<[u8; BLOCK]>;

/// One bit for each sector of a block.
type Bits = u8;

#[derive(Debug)]
struct Block {
    /// Number of the block, counted from the start of the disk.
    number: u64,
    old: Bytes,
    /// Sectors with an old version in `old`. The store's data of these sectors are not on the medium.
    held: Bits,
    /// Sectors with a write in the drive.
    flying: Bits,
    earlier: Option<Bytes>,
    /// Sectors with an earlier version in `earlier`. A subset of `held` and of `flying`.
    shadow: Bits,
    /// Sectors that the arm wrote while a write without an earlier version was in the drive. `old` has the data that
    /// this write replaced. A subset of `flying` without sectors of `held`.
    landed: Bits,
}

/// Older versions of sectors, by block. The structure does not allocate in steady state, whereas an ordered map would
/// allocate with every few writes.
#[derive(Debug)]
pub(super) struct Undo {
    sector: usize,
    /// Blocks with older versions, in arbitrary order and without gaps.
    blocks: Vec<Block>,
    /// Index in `blocks` of each block, by the block's number.
    places: Places,
    spare: Vec<Bytes>,
}

impl Undo {
    /// A structure without older versions.
    ///
    /// # Panics
    ///
    /// If `sector_bytes` is not a power of two from 512 to 4096.
    pub fn new(sector_bytes: u32) -> Undo {
        let sector = sector_bytes as usize;
        assert!((512..=BLOCK).contains(&sector) && sector.is_power_of_two());
        Undo {
            sector,
            blocks: Vec::new(),
            places: Places::default(),
            spare: Vec::new(),
        }
    }

    /// Bytes of memory for the older versions.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter();
        blocks
            .map(|block| BLOCK * (1 + usize::from(block.earlier.is_some())))
            .sum()
    }

    /// Number of sectors whose last completed write is not on the medium. A power cut would lose these acknowledged
    /// data.
    pub fn at_stake(&self) -> Sectors {
        let blocks = self.blocks.iter();
        let sectors = blocks
            .map(|block| (block.held & (!block.flying | block.shadow)).count_ones())
            .map(u64::from);
        Sectors::new(sectors.sum())
    }

    fn per_block(&self) -> u64 {
        (BLOCK / self.sector) as u64
    }

    /// Returns the blocks that an extent touches, each with the extent's sectors in the block.
    fn parts(&self, extent: Extent) -> impl Iterator<Item = (u64, Bits)> + use<> {
        let per = self.per_block();
        let (start, end) = (extent.start.get(), extent.end().get());
        (start / per..end.div_ceil(per)).map(move |block| {
            let from = start.max(block * per) - block * per;
            let to = end.min((block + 1) * per) - block * per;
            (block, bits(from, to))
        })
    }

    /// Notes that a write of `extent` goes to the drive. `before` is the store's data that the write replaces.
    pub fn begin(&mut self, extent: Extent, before: &[u8]) {
        let per = self.per_block();
        for (number, bits) in self.parts(extent) {
            let Undo {
                blocks,
                places,
                spare,
                ..
            } = self;
            let place = places.get(number).unwrap_or_else(|| {
                let place = blocks.len() as u32;
                places.set(number, place);
                blocks.push(Block {
                    number,
                    old: take(spare),
                    held: 0,
                    flying: 0,
                    earlier: None,
                    shadow: 0,
                    landed: 0,
                });
                place
            });
            let block = &mut blocks[place as usize];
            debug_assert_eq!(block.flying & bits, 0, "two writes of a sector at a time");
            let first = number * per + u64::from(bits.trailing_zeros());
            let from = (first - extent.start.get()) as usize * self.sector;
            let source = Source {
                bytes: &before[from..],
                first: bits.trailing_zeros(),
                sector: self.sector,
            };
            let fresh = bits & !block.held;
            source.copy(fresh, &mut block.old);
            block.held |= fresh;
            let shadow = bits & !fresh;
            if shadow != 0 {
                let earlier = block.earlier.get_or_insert_with(|| take(spare));
                source.copy(shadow, earlier);
                block.shadow |= shadow;
            }
            block.flying |= bits;
        }
    }

    /// Notes that the arm has written sectors.
    pub fn on_medium(&mut self, extent: Extent) {
        let sector = self.sector;
        self.each(extent, |block, bits| {
            let single = bits & block.held & !block.shadow;
            block.held &= !single;
            block.landed |= single & block.flying;
            let shadow = bits & block.shadow;
            if let Some(earlier) = &block.earlier {
                copy(shadow, sector, earlier, &mut block.old);
            }
        });
    }

    /// Notes that a write of `extent` has completed.
    pub fn completed(&mut self, extent: Extent) {
        self.each(extent, |block, bits| {
            block.flying &= !bits;
            block.shadow &= !bits;
            block.landed &= !bits;
        });
    }

    /// Cancels a write of `extent`. `restore` puts the replaced data back. Sectors without a write in the drive are
    /// left alone.
    pub fn undone(&mut self, extent: Extent, mut restore: impl FnMut(Lba, &[u8])) {
        let (sector, per) = (self.sector, self.per_block());
        for (number, bits) in self.parts(extent) {
            let Some(place) = self.places.get(number) else {
                continue;
            };
            let block = &mut self.blocks[place as usize];
            let bits = bits & block.flying;
            let shadow = bits & block.shadow;
            let fresh = bits & (block.held | block.landed) & !shadow;
            let start = number * per;
            each_run(fresh, |from, to| {
                restore(
                    Lba::new(start + from as u64),
                    &block.old[from * sector..to * sector],
                );
            });
            if let Some(earlier) = &block.earlier {
                each_run(shadow, |from, to| {
                    restore(
                        Lba::new(start + from as u64),
                        &earlier[from * sector..to * sector],
                    );
                });
            }
            block.held &= !fresh;
            block.flying &= !bits;
            block.shadow &= !shadow;
            block.landed &= !bits;
        }
        self.each(extent, |_, _| {});
    }

    /// Forgets the older versions of `extent`, because the store's sectors are final.
    pub fn forget(&mut self, extent: Extent) {
        self.each(extent, |block, bits| {
            block.held &= !bits;
            block.shadow &= !bits;
            block.landed &= !bits;
        });
    }

    /// Notes that a flush has completed, so that all acknowledged data are on the medium.
    pub fn flushed(&mut self) {
        let sector = self.sector;
        self.each(everything(), |block, _| {
            block.held &= block.flying;
            if let Some(earlier) = &block.earlier {
                copy(block.shadow, sector, earlier, &mut block.old);
            }
            block.shadow = 0;
        });
    }

    /// Cuts the power. `restore` puts the medium's data back into the store, in order of address. Afterwards there are
    /// no older versions and no writes in the drive.
    pub fn power_cut(&mut self, mut restore: impl FnMut(Lba, &[u8])) {
        let (sector, per) = (self.sector, self.per_block());
        self.blocks.sort_unstable_by_key(|block| block.number);
        for block in &self.blocks {
            each_run(block.held, |from, to| {
                let start = Lba::new(block.number * per + from as u64);
                restore(start, &block.old[from * sector..to * sector]);
            });
        }
        // Sorting has changed the places of the blocks.
        self.places.clear();
        for mut block in self.blocks.drain(..) {
            if let Some(earlier) = block.earlier.take() {
                give_back(&mut self.spare, earlier);
            }
            give_back(&mut self.spare, block.old);
        }
    }

    /// Calls a function for every block that an extent touches, and frees memory that is no longer needed.
    fn each(&mut self, extent: Extent, mut act: impl FnMut(&mut Block, Bits)) {
        let per = self.per_block();
        let (start, end) = (extent.start.get(), extent.end().get());
        let numbers = start / per..end.div_ceil(per);
        let mut visit = |undo: &mut Undo, place: usize| {
            let block = &mut undo.blocks[place];
            let number = block.number;
            let from = start.max(number * per) - number * per;
            let to = end.min(number * per + per) - number * per;
            act(block, bits(from, to));
            undo.tidy(place);
        };
        // Either the extent or the set of blocks can be far larger. The smaller of the two is walked.
        if numbers.end.saturating_sub(numbers.start) < self.blocks.len() as u64 {
            for number in numbers {
                if let Some(place) = self.places.get(number) {
                    visit(self, place as usize);
                }
            }
        } else {
            // The walk begins at the end, because the last block takes the place of a removed block.
            for place in (0..self.blocks.len()).rev() {
                if numbers.contains(&self.blocks[place].number) {
                    visit(self, place);
                }
            }
        }
    }

    /// Frees the memory that a block does not need any more, and the block itself if it holds no data.
    fn tidy(&mut self, place: usize) {
        let block = &mut self.blocks[place];
        if block.shadow == 0
            && let Some(earlier) = block.earlier.take()
        {
            give_back(&mut self.spare, earlier);
        }
        if block.held == 0 && block.flying == 0 {
            let gone = self.blocks.swap_remove(place);
            self.places.remove(gone.number);
            if let Some(moved) = self.blocks.get(place) {
                self.places.set(moved.number, place as u32);
            }
            give_back(&mut self.spare, gone.old);
        }
    }
}

fn everything() -> Extent {
    Extent::new(Lba::ZERO, Sectors::new(u64::MAX / 2))
}

fn bits(from: u64, to: u64) -> Bits {
    (((1u16 << to) - 1) & !((1u16 << from) - 1)) as Bits
}

fn take(spare: &mut Vec<Bytes>) -> Bytes {
    spare.pop().unwrap_or_else(|| Box::new([0; BLOCK]))
}

fn give_back(spare: &mut Vec<Bytes>, bytes: Bytes) {
    if spare.len() < SPARE {
        spare.push(bytes);
    }
}

/// Sectors of a block that begin with its sector `first`.
struct Source<'a> {
    bytes: &'a [u8],
    first: u32,
    sector: usize,
}

impl Source<'_> {
    fn copy(&self, which: Bits, to: &mut Bytes) {
        each_run(which, |from, end| {
            let (at, len) = (from * self.sector, (end - from) * self.sector);
            let source = at - self.first as usize * self.sector;
            to[at..at + len].copy_from_slice(&self.bytes[source..source + len]);
        });
    }
}

fn copy(which: Bits, sector: usize, from: &Bytes, to: &mut Bytes) {
    let source = Source {
        bytes: &from[..],
        first: 0,
        sector,
    };
    source.copy(which, to);
}

/// Calls a function for each run of sectors, with the run's first sector and its end.
fn each_run(mut which: Bits, mut act: impl FnMut(usize, usize)) {
    while which != 0 {
        let from = which.trailing_zeros();
        let to = from + (which >> from).trailing_ones();
        act(from as usize, to as usize);
        which &= !bits(u64::from(from), u64::from(to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store of ten blocks in which each sector is filled with one byte.
    struct Image {
        undo: Undo,
        store: Vec<u8>,
    }

    impl Image {
        fn new() -> Image {
            Image {
                undo: Undo::new(512),
                store: vec![0; 80],
            }
        }

        fn write(&mut self, start: u64, len: u64, value: u8) {
            let range = start as usize..(start + len) as usize;
            let before: Vec<u8> = self.store[range.clone()]
                .iter()
                .flat_map(|byte| [*byte; 512])
                .collect();
            self.undo.begin(Extent::at(start, len), &before);
            self.store[range].fill(value);
        }

        fn undone(&mut self, start: u64, len: u64) {
            let Image { undo, store } = self;
            undo.undone(Extent::at(start, len), |lba, bytes| put(store, lba, bytes));
        }

        fn power_cut(&mut self) {
            let Image { undo, store } = self;
            undo.power_cut(|lba, bytes| put(store, lba, bytes));
            assert_eq!(undo.bytes(), 0);
        }
    }

    fn put(store: &mut [u8], lba: Lba, bytes: &[u8]) {
        for (index, sector) in bytes.chunks(512).enumerate() {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
            store[lba.get() as usize + index] = sector[0];
        }
    }

    #[test]
    fn a_power_cut_takes_back_what_is_not_on_the_medium() {
        let mut image = Image::new();
        image.write(5, 20, 1);
        image.undo.completed(Extent::at(5, 20));
        image.undo.on_medium(Extent::at(5, 6));
        image.power_cut();
        let mut wanted = vec![0; 80];
        wanted[5..11].fill(1);
        assert_eq!(image.store, wanted);
    }

    #[test]
    fn the_oldest_version_is_kept() {
        let mut image = Image::new();
        for value in 1..4 {
            image.write(8, 8, value);
            image.undo.completed(Extent::at(8, 8));
        }
        image.power_cut();
        assert_eq!(image.store, vec![0; 80]);
    }

    #[test]
    fn what_the_arm_writes_under_a_newer_write_is_the_earlier_version() {
        let mut image = Image::new();
        image.write(8, 8, 1);
        image.undo.completed(Extent::at(8, 8));
        image.write(10, 4, 2);
        image.undo.on_medium(Extent::at(8, 8));
        image.undo.completed(Extent::at(10, 4));
        image.power_cut();
        assert_eq!(image.store[8..16], [1; 8]);
    }

    #[test]
    fn what_the_arm_writes_after_it_is_the_newer_version() {
        let mut image = Image::new();
        image.write(8, 8, 1);
        image.undo.completed(Extent::at(8, 8));
        image.write(10, 4, 2);
        image.undo.completed(Extent::at(10, 4));
        image.undo.on_medium(Extent::at(8, 8));
        assert_eq!(image.undo.bytes(), 0);
        image.power_cut();
        assert_eq!(image.store[8..16], [1, 1, 2, 2, 2, 2, 1, 1]);
    }

    #[test]
    fn a_write_past_the_buffer_is_there_as_far_as_it_came() {
        let mut image = Image::new();
        image.write(8, 16, 1);
        image.undo.on_medium(Extent::at(8, 3));
        image.power_cut();
        let mut wanted = vec![0; 80];
        wanted[8..11].fill(1);
        assert_eq!(image.store, wanted);
    }

    #[test]
    fn a_write_that_did_not_happen() {
        let mut image = Image::new();
        image.write(8, 8, 1);
        image.undo.completed(Extent::at(8, 8));
        image.write(12, 8, 2);
        image.undone(12, 8);
        assert_eq!(image.store[8..20], [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(image.undo.bytes(), BLOCK);
        image.power_cut();
        assert_eq!(image.store, vec![0; 80]);
    }

    /// The arm has written data without a retained version, such as zeroes.
    #[test]
    fn a_write_that_did_not_happen_after_the_arm_was_there() {
        let mut image = Image::new();
        image.write(10, 13, 2);
        image.undo.on_medium(Extent::at(9, 9));
        image.undone(10, 13);
        assert_eq!(image.store, vec![0; 80]);
        assert_eq!(image.undo.bytes(), 0);
        image.write(10, 4, 3);
        image.undo.on_medium(Extent::at(10, 4));
        image.undo.completed(Extent::at(10, 4));
        assert_eq!(image.undo.bytes(), 0);
        image.power_cut();
        assert_eq!(image.store[8..16], [0, 0, 3, 3, 3, 3, 0, 0]);
    }

    #[test]
    fn a_flush_spares_what_is_not_acknowledged() {
        let mut image = Image::new();
        image.write(8, 8, 1);
        image.undo.completed(Extent::at(8, 8));
        image.write(12, 8, 2);
        image.undo.flushed();
        image.power_cut();
        assert_eq!(image.store[8..20], [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn forgotten_sectors_are_not_taken_back() {
        let mut image = Image::new();
        image.write(8, 8, 1);
        image.undo.completed(Extent::at(8, 8));
        image.store[10..12].fill(0);
        image.undo.forget(Extent::at(10, 2));
        image.power_cut();
        assert_eq!(image.store, vec![0; 80]);
        assert_eq!(bits(0, 8), 0xff);
        assert_eq!(bits(2, 5), 0b11100);
    }
}
