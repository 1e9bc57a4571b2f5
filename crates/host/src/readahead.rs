//! Decides when to read a sequential reader's next pages, and how many.
//!
//! The on-demand readahead of Linux 2.6.31 (`mm/readahead.c`, `ondemand_readahead`), as a state
//! machine whose only state is the window. A read asks it when a page is missing
//! ([`Cause::Missing`]), and when it touches the page that an earlier window marked
//! ([`Cause::Marked`]). The mark starts the next window before the reader needs it.
//!
//! What is left out: the queue's congestion, which suppresses windows once 113 reads are queued, and
//! the limit by free memory.

/// Why readahead is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The page is not cached.
    Missing,
    /// The page carries the mark of a window.
    Marked,
}

/// The pages to read: those of them that are not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first page.
    pub start: u64,
    pub pages: u64,
    /// The page that gets the mark, if it is among those read.
    pub mark: Option<u64>,
}

/// The state of readahead of one open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readahead {
    /// The latest window: its first page, its pages, and how many of them follow the mark, which is
    /// included.
    start: u64,
    size: u64,
    async_size: u64,
    /// The last page that the last call touched.
    previous: Option<u64>,
    /// The longest window, in pages.
    max: u64,
}

impl Readahead {
    /// Of a file just opened. `max` is the longest window in pages; zero switches readahead off.
    pub fn new(max: u64) -> Readahead {
        Readahead {
            start: 0,
            size: 0,
            async_size: 0,
            previous: None,
            max,
        }
    }

    /// Notes that a call of `read()` ended with this page.
    pub fn call_ended(&mut self, last_page: u64) {
        self.previous = Some(last_page);
    }

    /// The last page that the last call touched.
    pub(crate) fn previous(&self) -> Option<u64> {
        self.previous
    }

    /// What to read when a call that has `request` pages to go from `page` on finds what `cause`
    /// says. `cached` tells whether a page of the file is cached or being read. `None` if there is
    /// nothing to read, which only a mark can bring about.
    pub fn ask(
        &mut self,
        cause: Cause,
        page: u64,
        request: u64,
        cached: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        if self.max == 0 {
            return (cause == Cause::Missing).then_some(Window {
                start: page,
                pages: 1,
                mark: None,
            });
        }
        if page == 0 {
            self.begin(page, request);
        } else if page == self.start + self.size - self.async_size || page == self.start + self.size
        {
            // Where a sequential reader was expected.
            self.start += self.size;
            self.size = self.next_size(self.size);
            self.async_size = self.size;
        } else if cause == Cause::Marked {
            // The mark of a window that this state has lost: another stream reads through it.
            let hole = (page + 1..=page + self.max).find(|page| !cached(*page))?;
            self.start = hole;
            self.size = self.next_size(hole - page + request);
            self.async_size = self.size;
        } else if request > self.max
            || self
                .previous
                .is_some_and(|previous| page == previous || page == previous + 1)
        {
            self.begin(page, request);
        } else {
            let history = (1..=self.max.min(page))
                .take_while(|back| cached(page - back))
                .count() as u64;
            if history == 0 {
                // Alone: what was asked, and nothing to remember.
                return Some(Window {
                    start: page,
                    pages: request,
                    mark: None,
                });
            }
            // What a stream leaves behind; one that began with the file is likely to go on.
            let stretched = if history >= page {
                2 * history
            } else {
                history
            };
            self.start = page;
            self.size = self.first_size(stretched + request);
            self.async_size = self.size;
        }
        if page == self.start && self.size == self.async_size {
            // The mark would be on the very page that is touched: take the next window along.
            self.async_size = self.next_size(self.size);
            self.size += self.async_size;
        }
        Some(Window {
            start: self.start,
            pages: self.size,
            mark: Some(self.start + self.size - self.async_size),
        })
    }

    fn begin(&mut self, page: u64, request: u64) {
        self.start = page;
        self.size = self.first_size(request);
        self.async_size = if self.size > request {
            self.size - request
        } else {
            self.size
        };
    }

    /// The first window of a reader that asks for so many pages.
    fn first_size(&self, request: u64) -> u64 {
        let rounded = request.next_power_of_two();
        if rounded <= self.max / 32 {
            4 * rounded
        } else if rounded <= self.max / 4 {
            2 * rounded
        } else {
            self.max
        }
    }

    /// The window after one of so many pages.
    fn next_size(&self, size: u64) -> u64 {
        let grown = if size < self.max / 16 {
            4 * size
        } else {
            2 * size
        };
        grown.min(self.max)
    }
}

#[cfg(test)]
mod tests;
