//! Bits in a file, written by pages.

use super::files::PAGE;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Words of a page.
const WORDS: usize = PAGE / 8;

/// A bit for each block of a disk, from somewhere in a file on: bit `n % 8` of byte `n / 8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    at: u64,
    pages: usize,
}

impl Pages {
    /// Bits of so many blocks, from this byte on.
    pub fn new(at: u64, blocks: u64) -> Pages {
        Pages {
            at,
            pages: (blocks as usize).div_ceil(PAGE * 8),
        }
    }

    /// The byte behind them.
    pub fn end(&self) -> u64 {
        self.at + (self.pages * PAGE) as u64
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pages
    }

    /// Words of all of them.
    pub fn words(&self) -> usize {
        self.pages * WORDS
    }

    /// The page of a block.
    pub fn page_of(block: u64) -> usize {
        (block / 64) as usize / WORDS
    }

    /// All of them.
    pub fn read(&self, file: &File) -> io::Result<Vec<u64>> {
        let mut words = vec![0; self.pages * WORDS];
        let mut page = [0; PAGE];
        for (number, words) in words.chunks_exact_mut(WORDS).enumerate() {
            file.read_exact_at(&mut page, self.at + (number * PAGE) as u64)?;
            for (word, bytes) in words.iter_mut().zip(page.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            }
        }
        Ok(words)
    }

    /// Writes a page; `word` says which of the blocks from 64 times its number on are set.
    pub fn write(&self, file: &File, number: usize, word: impl Fn(usize) -> u64) -> io::Result<()> {
        debug_assert!(number < self.pages);
        let mut page = [0; PAGE];
        for (index, bytes) in page.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&word(number * WORDS + index).to_le_bytes());
        }
        file.write_all_at(&page, self.at + (number * PAGE) as u64)
    }
}
