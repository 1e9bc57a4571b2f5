//! Decides when to read a sequential reader's next pages, and how many.
//!
//! The on-demand readahead of Linux 2.6.31 (`mm/readahead.c`, `ondemand_readahead`), as a state
//! machine whose only state is the window. A read asks for a window when a page is missing
//! ([`Cause::Missing`]), and when the read touches the page that an earlier window marked
//! ([`Cause::Marked`]). The mark starts the next window before the reader needs it.
//!
//! Two rules of the kernel are left out. A congested queue suppresses windows once 113 reads are
//! queued. Free memory limits the windows.

/// Reason for asking readahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The page is not cached.
    Missing,
    /// The page carries the mark of a window.
    Marked,
}

/// Range of pages to read. Cached pages of the range are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first page.
    pub start: u64,
    pub pages: u64,
    /// Page that gets the mark, if this page is among the pages read.
    pub mark: Option<u64>,
}

/// The state of readahead of one open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readahead {
    /// Latest window: first page, number of pages, and number of pages from the mark on.
    start: u64,
    size: u64,
    async_size: u64,
    /// The last page that the last call touched.
    previous: Option<u64>,
    /// The longest window, in pages.
    max: u64,
}

impl Readahead {
    /// State of a file that was just opened. `max` is the longest window in pages; zero switches
    /// readahead off.
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

    /// Window to read when a call, which still needs `request` pages from `page` on, meets a
    /// missing or marked page (`cause`). `cached` returns true if a page of the file is cached or
    /// being read. `None` if there is nothing to read, which happens only at a mark.
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
            // The read is at the place where a sequential reader was expected.
            self.start += self.size;
            self.size = self.next_size(self.size);
            self.async_size = self.size;
        } else if cause == Cause::Marked {
            // The mark is from a window that this state no longer holds, since another stream reads
            // through the same state.
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
                // A random read: only the pages asked for, and no change of state.
                return Some(Window {
                    start: page,
                    pages: request,
                    mark: None,
                });
            }
            // The cached pages in front are the trace of a stream. A stream from the beginning of
            // the file is likely to go on.
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
            // The mark would be on the page that is touched, so the next window is read at the same
            // time.
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

    /// Size of the first window of a reader that asks for `request` pages.
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

    /// Size of the window after a window of `size` pages.
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
