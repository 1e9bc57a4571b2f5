//! The page cache: pages in memory, and eviction.
//!
//! Pages of all files and blocks of metadata share one numbering. A file's pages have consecutive
//! numbers from its base on. Blocks get numbers in chunks, when a block of a chunk is first
//! touched. A page costs 16 bytes whether cached or not.
//!
//! Clean pages are evicted in the order in which they came, but a page that several calls have touched gets a second
//! turn. This approximates Linux's two lists (a page read once is on the inactive list and leaves first).

use std::collections::BTreeMap;

/// The number of a page; zero is none.
pub(crate) type PageId = u32;

/// Entry of a page of a file or of a metadata block. The numbers are the previous page and the next page in the ring,
/// the request that reads or writes the page, and the state. Requests are counted from 1; zero is none.
///
/// The entry is four numbers and not a struct, since a vector of zeroed numbers takes no memory until it is written. A
/// whole disk can be one file, and few of its pages are ever touched.
type Numbers = [u32; 4];

const PREVIOUS: usize = 0;
const NEXT: usize = 1;
const IO: usize = 2;
const STATE: usize = 3;

/// State of a page of a file or of a metadata block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Page {
    io: u32,
    state: u32,
}

impl Page {
    /// The page is in memory, or about to be.
    const CACHED: u32 = 1;
    /// The request that reads the page has not completed.
    const READING: u32 = 2;
    /// The request that writes the page has not completed.
    const WRITING: u32 = 4;
    const DIRTY: u32 = 8;
    /// The page carries the mark of a readahead window.
    const MARKED: u32 = 16;
    const TOUCHED: u32 = 32;
    const TOUCHED_AGAIN: u32 = 64;
    /// A request has written the page. Stays while the page is not in memory.
    const WRITTEN: u32 = 128;

    fn is(self, bits: u32) -> bool {
        self.state & bits != 0
    }

    /// In memory, or about to be.
    pub fn cached(self) -> bool {
        self.is(Page::CACHED)
    }

    /// Returns true if the page is in memory, is not being read, and carries no readahead mark.
    pub fn plain(self) -> bool {
        self.state & (Page::CACHED | Page::READING | Page::MARKED) == Page::CACHED
    }

    pub fn reading(self) -> bool {
        self.is(Page::READING)
    }

    pub fn writing(self) -> bool {
        self.is(Page::WRITING)
    }

    pub fn dirty(self) -> bool {
        self.is(Page::DIRTY)
    }

    /// Returns true if a request has written the page since its file was last deleted.
    pub fn written(self) -> bool {
        self.is(Page::WRITTEN)
    }

    pub fn marked(self) -> bool {
        self.is(Page::MARKED)
    }

    /// Request that reads or writes the page, if any.
    pub fn io(self) -> Option<u32> {
        self.io.checked_sub(1)
    }
}

/// All pages.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Entry 0 is the head of the ring of cached pages, oldest first.
    pages: Vec<Numbers>,
    /// First page number of each chunk of blocks.
    chunks: BTreeMap<u64, PageId>,
    capacity: u64,
    cached: u64,
    /// Dirty pages, as the kernel counts `NR_FILE_DIRTY`. A page that is being written counts only if it became dirty
    /// again.
    dirty: u64,
    writing: u64,
}

/// Blocks of a chunk: 2 MiB of disk.
pub(crate) const CHUNK: u64 = 512;

/// Attempts to evict a page before memory is exceeded. Pages at the old end may be dirty or in flight.
const EVICTION_TRIES: u32 = 64;

/// Largest table, in pages, that is written as soon as it is allocated: 64 MiB of entries.
const WRITTEN_AT_ONCE: usize = 4 << 20;

/// Allocates entries of zero.
///
/// Memory that is read before its first write costs two faults per page, and the second fault stops all threads of a
/// process. Small tables are therefore written at once.
fn zeroed(pages: usize) -> Vec<Numbers> {
    match pages <= WRITTEN_AT_ONCE {
        true => std::iter::repeat_n([0; 4], pages).collect(),
        false => vec![[0; 4]; pages],
    }
}

impl Cache {
    /// Makes an empty cache for `pages` pages of files. Memory holds `capacity` pages.
    pub fn new(pages: u64, capacity: u64) -> Cache {
        Cache {
            pages: zeroed(pages as usize + 1),
            chunks: BTreeMap::new(),
            capacity,
            cached: 0,
            dirty: 0,
            writing: 0,
        }
    }

    pub fn get(&self, page: PageId) -> Page {
        let numbers = &self.pages[page as usize];
        Page {
            io: numbers[IO],
            state: numbers[STATE],
        }
    }

    fn state(&mut self, page: PageId) -> &mut u32 {
        &mut self.pages[page as usize][STATE]
    }

    /// Page number of a metadata block. The block's chunk gets numbers if it has none.
    pub fn block(&mut self, block: u64) -> PageId {
        let next = self.pages.len();
        let base = *self
            .chunks
            .entry(block / CHUNK)
            .or_insert_with(|| u32::try_from(next).expect("fewer than 2^32 pages"));
        if base as usize == next {
            self.pages.resize(next + CHUNK as usize, [0; 4]);
        }
        base + (block % CHUNK) as u32
    }

    /// Page number of a block, if a block of the same chunk was ever touched.
    pub fn known_block(&self, block: u64) -> Option<PageId> {
        let base = self.chunks.get(&(block / CHUNK))?;
        Some(base + (block % CHUNK) as u32)
    }

    /// Pages in memory.
    pub fn cached(&self) -> u64 {
        self.cached
    }

    /// Number of dirty pages.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Pages that requests are writing.
    pub fn writing(&self) -> u64 {
        self.writing
    }

    /// Takes a page into memory in its initial state. Other pages are evicted to make room.
    pub fn insert(&mut self, page: PageId) {
        debug_assert!(!self.get(page).cached());
        let mut tries = EVICTION_TRIES;
        while self.cached >= self.capacity && tries > 0 {
            tries -= 1;
            self.make_room();
        }
        self.cached += 1;
        self.link(page);
        let state = self.state(page);
        *state = *state & Page::WRITTEN | Page::CACHED;
    }

    /// Notes that request `io` reads a page just taken in.
    pub fn read(&mut self, page: PageId, io: u32, mark: bool) {
        let entry = &mut self.pages[page as usize];
        entry[IO] = io + 1;
        entry[STATE] |= Page::READING | if mark { Page::MARKED } else { 0 };
    }

    /// Notes that request `io` is done with a page. Returns false if the request no longer concerned the page.
    pub fn io_done(&mut self, page: PageId, io: u32) -> bool {
        let entry = self.get(page);
        if entry.io != io + 1 {
            return false;
        }
        self.pages[page as usize][IO] = 0;
        self.writing -= u64::from(entry.writing());
        *self.state(page) &= !(Page::READING | Page::WRITING);
        true
    }

    pub fn unmark(&mut self, page: PageId) {
        *self.state(page) &= !Page::MARKED;
    }

    /// Notes that a call used a page.
    pub fn touch(&mut self, page: PageId) {
        let state = self.state(page);
        // `TOUCHED` shifted by one bit is `TOUCHED_AGAIN`.
        *state |= (*state & Page::TOUCHED) << 1 | Page::TOUCHED;
    }

    /// Makes a page dirty. Returns true if the page was not dirty before.
    pub fn make_dirty(&mut self, page: PageId) -> bool {
        let fresh = !self.get(page).dirty();
        *self.state(page) |= Page::DIRTY;
        self.dirty += u64::from(fresh);
        fresh
    }

    /// Notes that request `io` writes a dirty page. The page no longer counts as dirty.
    pub fn write(&mut self, page: PageId, io: u32) {
        let old = self.get(page);
        debug_assert!(old.dirty() && !old.writing() && !old.reading());
        let entry = &mut self.pages[page as usize];
        entry[IO] = io + 1;
        entry[STATE] = entry[STATE] & !Page::DIRTY | Page::WRITING | Page::WRITTEN;
        self.dirty -= 1;
        self.writing += 1;
    }

    /// Drops a page from memory, and the note that the page was written. An outstanding request no longer concerns the
    /// page.
    pub fn forget(&mut self, page: PageId) {
        self.drop(page);
        if self.get(page).written() {
            *self.state(page) = 0;
        }
    }

    /// Drops a page from memory.
    fn drop(&mut self, page: PageId) {
        let entry = self.get(page);
        if !entry.cached() {
            return;
        }
        self.dirty -= u64::from(entry.dirty());
        self.writing -= u64::from(entry.writing());
        self.unlink(page);
        let numbers = &mut self.pages[page as usize];
        *numbers = [0, 0, 0, numbers[STATE] & Page::WRITTEN];
        self.cached -= 1;
    }

    /// Evicts the oldest page. A page that is dirty, in flight or touched again moves to the young end instead.
    fn make_room(&mut self) {
        let oldest = self.pages[0][NEXT];
        if oldest == 0 {
            return;
        }
        let entry = self.get(oldest);
        let busy = entry.is(Page::READING | Page::WRITING | Page::DIRTY);
        if busy || entry.is(Page::TOUCHED_AGAIN) {
            self.unlink(oldest);
            self.link(oldest);
            if !busy {
                *self.state(oldest) &= !(Page::TOUCHED | Page::TOUCHED_AGAIN);
            }
        } else {
            self.drop(oldest);
        }
    }

    fn link(&mut self, page: PageId) {
        let youngest = self.pages[0][PREVIOUS];
        let entry = &mut self.pages[page as usize];
        (entry[PREVIOUS], entry[NEXT]) = (youngest, 0);
        self.pages[youngest as usize][NEXT] = page;
        self.pages[0][PREVIOUS] = page;
    }

    fn unlink(&mut self, page: PageId) {
        let [previous, next, ..] = self.pages[page as usize];
        self.pages[previous as usize][NEXT] = next;
        self.pages[next as usize][PREVIOUS] = previous;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_read_once_leave_first() {
        let mut cache = Cache::new(100, 4);
        for page in 1..=4 {
            cache.insert(page);
            cache.touch(page);
        }
        cache.touch(1);
        cache.make_dirty(2);
        cache.insert(5);
        // Page 1 was used twice, page 2 is dirty: page 3 goes.
        let cached = |cache: &Cache| -> Vec<u32> {
            (1..100).filter(|page| cache.get(*page).cached()).collect()
        };
        assert_eq!(cached(&cache), [1, 2, 4, 5]);
        assert_eq!(cache.cached(), 4);
        cache.insert(6);
        assert_eq!(cached(&cache), [1, 2, 5, 6]);
        // The second turn of page 1 is over.
        cache.insert(7);
        cache.insert(8);
        assert_eq!(
            cached(&cache),
            [2, 6, 7, 8],
            "5 went before 1: it came later but was used less"
        );
    }

    #[test]
    fn pages_in_use_stay_in_memory_when_others_make_room() {
        let mut cache = Cache::new(10, 2);
        for page in 1..=2 {
            cache.insert(page);
            cache.read(page, 0, false);
        }
        cache.insert(3);
        assert_eq!(
            cache.cached(),
            3,
            "memory is exceeded rather than a page lost"
        );
        assert!(cache.io_done(1, 0) && cache.io_done(2, 0));
        assert!(!cache.io_done(2, 0), "done already");
        cache.insert(4);
        assert_eq!(cache.cached(), 2, "and comes back");
    }

    #[test]
    fn a_page_dirtied_while_it_is_written_stays_dirty() {
        let mut cache = Cache::new(10, 8);
        cache.insert(1);
        assert!(cache.make_dirty(1));
        assert!(!cache.make_dirty(1));
        cache.write(1, 7);
        assert_eq!((cache.dirty(), cache.writing()), (0, 1));
        assert!(cache.make_dirty(1), "dirty again while it is written");
        assert_eq!((cache.dirty(), cache.writing()), (1, 1));
        assert!(cache.io_done(1, 7));
        assert_eq!((cache.dirty(), cache.writing()), (1, 0));
        cache.forget(1);
        assert_eq!((cache.dirty(), cache.cached()), (0, 0));
    }

    #[test]
    fn a_forgotten_page_belongs_to_no_request() {
        let mut cache = Cache::new(10, 8);
        cache.insert(1);
        cache.read(1, 3, true);
        cache.forget(1);
        cache.insert(1);
        cache.read(1, 4, false);
        assert!(
            !cache.io_done(1, 3),
            "the old request is not about the new page"
        );
        assert!(cache.get(1).reading());
        assert!(cache.io_done(1, 4));
        assert!(cache.get(1).plain());
    }

    #[test]
    fn blocks_have_numbers_of_their_own() {
        let mut cache = Cache::new(10, 8);
        assert_eq!(cache.known_block(5), None);
        let block = cache.block(5);
        assert_eq!(block, 16);
        assert_eq!(cache.block(5), block);
        assert_eq!(cache.block(6), block + 1);
        assert_eq!(cache.block(1 << 40), 11 + 512);
        assert_eq!(cache.known_block(7), Some(block + 2));
    }
}
