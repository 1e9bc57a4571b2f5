//! Bits in a file, written by pages that end with a checksum.

use super::seal::{BODY, PAGE, Seal};
use headtime_units::{Extent, Sectors};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Words of a page.
const WORDS: usize = BODY / 8;

/// Pages of a file with a bit for each block of a disk. Without the checksums of the pages, bit `n % 8` of byte `n / 8` is block `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    at: u64,
    pages: usize,
    seal: Seal,
}

impl Pages {
    /// Pages for this number of blocks, from byte `at` of the file on.
    pub fn new(at: u64, blocks: u64, seal: Seal) -> Pages {
        Pages {
            at,
            pages: (blocks as usize).div_ceil(BODY * 8),
            seal,
        }
    }

    /// Byte behind the last page.
    pub fn end(&self) -> u64 {
        self.place(self.pages)
    }

    fn place(&self, number: usize) -> u64 {
        self.at + (number * PAGE) as u64
    }

    /// Seal of the pages.
    pub fn seal(&self) -> Seal {
        self.seal
    }

    /// Number of pages.
    pub fn count(&self) -> usize {
        self.pages
    }

    /// Words of all pages.
    pub fn words(&self) -> usize {
        self.pages * WORDS
    }

    /// Page with the bit of a block.
    pub fn page_of(block: u64) -> usize {
        (block / 64) as usize / WORDS
    }

    /// Sectors whose bits are on a page, for a disk in blocks of this size.
    pub fn extent_of(page: usize, block: Sectors, capacity: Sectors) -> Extent {
        let sectors = (BODY * 8) as u64 * block.get();
        let start = (page as u64 * sectors).min(capacity.get());
        Extent::at(start, sectors.min(capacity.get() - start))
    }

    /// Words of all pages, and numbers of the damaged pages, which have no bit set.
    pub fn read(&self, file: &File) -> io::Result<(Vec<u64>, Vec<usize>)> {
        let mut words = vec![0; self.words()];
        let mut damaged = Vec::new();
        for (number, words) in words.chunks_exact_mut(WORDS).enumerate() {
            let Some(page) = self.seal.read(file, self.place(number))? else {
                damaged.push(number);
                continue;
            };
            for (word, bytes) in words.iter_mut().zip(page.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            }
        }
        Ok((words, damaged))
    }

    /// Writes a page. `word` gives the bits of the 64 blocks from 64 times its argument on.
    pub fn write(&self, file: &File, number: usize, word: impl Fn(usize) -> u64) -> io::Result<()> {
        debug_assert!(number < self.pages);
        let mut page = [0; PAGE];
        for (index, bytes) in page[..BODY].chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&word(number * WORDS + index).to_le_bytes());
        }
        self.seal.close(self.place(number), &mut page);
        file.write_all_at(&page, self.place(number))
    }

    /// Writes every page.
    pub fn write_all(&self, file: &File, word: impl Fn(usize) -> u64) -> io::Result<()> {
        (0..self.pages).try_for_each(|number| self.write(file, number, &word))
    }
}
