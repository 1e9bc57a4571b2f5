//! Files as they lie on the disk.

use crate::cache::PageId;
use crate::readahead::Readahead;
use crate::spec::{File, PAGE};
use headtime_units::{Extent, Lba, Sectors, Time};

/// Null index of a list.
pub(crate) const NONE: u32 = u32::MAX;

/// Pages of a file that are contiguous on the disk. A run ends at the next run or at the end of the
/// file.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first page.
    page: u32,
    /// First sector of the run.
    start: u64,
}

/// A file's data.
///
/// Invariant: every page that is dirty or being written is in `busy`.
#[derive(Debug)]
pub(crate) struct Data {
    /// Cache number of the file's page 0.
    pub base: PageId,
    /// Pages of the file's extents.
    pub room: u32,
    /// Index of the file's first run in the table of all runs.
    runs: u32,
    /// First name of the file, the head of a list.
    pub names: u32,
    pub initial_size: u64,
    pub size: u64,
    /// Dirty pages, and pages being written.
    pub dirty: u32,
    pub writing: u32,
    /// First page and end of a range. No page outside the range is dirty or being written.
    pub busy: (u32, u32),
    /// Time at which the file became dirty.
    pub dirtied: Time,
    /// Page at which write-back continues.
    pub cursor: u32,
    /// True if pages of the file were written since the drive's cache was last flushed for this
    /// file.
    pub unflushed: bool,
    pub list: List,
    pub previous: u32,
    pub next: u32,
}

/// Which list of dirty files a file is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// The file is clean.
    None,
    /// The file is dirty and not yet due. The file that was dirtied first is in front.
    Dirty,
    /// The file is due to be written.
    Due,
}

impl Data {
    /// Pages up to the end of the file.
    pub fn pages(&self) -> u32 {
        self.size.div_ceil(PAGE) as u32
    }

    /// Notes that a page is dirty or being written.
    pub fn is_busy(&mut self, page: u32) {
        self.busy = match self.busy {
            (first, end) if first < end => (first.min(page), end.max(page + 1)),
            _ => (page, page + 1),
        };
    }

    /// Resets the busy range and the cursor if no page is dirty or being written.
    pub fn rest(&mut self) {
        if self.dirty == 0 && self.writing == 0 {
            self.busy = (0, 0);
            self.cursor = 0;
        }
    }
}

/// Name of a file: an open file with its readahead state.
#[derive(Debug)]
pub(crate) struct Name {
    pub data: u32,
    pub readahead: Readahead,
    /// The next name of the same data.
    pub next: u32,
}

/// All files.
#[derive(Debug)]
pub(crate) struct Files {
    pub data: Vec<Data>,
    pub names: Vec<Name>,
    runs: Vec<Run>,
    page_sectors: u64,
    pub pages: u64,
}

impl Files {
    /// Makes the tables from files and names that the builder has checked.
    pub fn new(
        files: Vec<File>,
        names: Vec<u32>,
        page_sectors: u64,
        readahead: Readahead,
    ) -> Files {
        let mut all = Files {
            data: Vec::with_capacity(files.len()),
            names: Vec::with_capacity(names.len()),
            runs: Vec::new(),
            page_sectors,
            pages: 0,
        };
        for file in files {
            all.add(&file);
        }
        for data in names {
            let next = all.data[data as usize].names;
            all.data[data as usize].names = all.names.len() as u32;
            all.names.push(Name {
                data,
                readahead,
                next,
            });
        }
        all
    }

    fn add(&mut self, file: &File) {
        let runs = self.runs.len() as u32;
        let mut page = 0;
        let mut end = None;
        for extent in &file.extents {
            let start = extent.start.get();
            if end != Some(start) {
                self.runs.push(Run { page, start });
            }
            page += (extent.len.get() / self.page_sectors) as u32;
            end = Some(extent.end().get());
        }
        self.data.push(Data {
            // Page 0 is none.
            base: self.pages as u32 + 1,
            room: page,
            runs,
            names: NONE,
            initial_size: file.size,
            size: file.size,
            dirty: 0,
            writing: 0,
            busy: (0, 0),
            dirtied: Time::ZERO,
            cursor: 0,
            unflushed: false,
            list: List::None,
            previous: NONE,
            next: NONE,
        });
        self.pages += u64::from(page);
    }

    /// First sector of a page, and the end of the page's run.
    pub fn place(&self, file: u32, page: u32) -> (Lba, u32) {
        let data = &self.data[file as usize];
        debug_assert!(page < data.room);
        let end = self
            .data
            .get(file as usize + 1)
            .map_or(self.runs.len(), |next| next.runs as usize);
        let runs = &self.runs[data.runs as usize..end];
        let after = runs.partition_point(|run| run.page <= page);
        let run = runs[after - 1];
        let until = runs.get(after).map_or(data.room, |next| next.page);
        let sector = run.start + u64::from(page - run.page) * self.page_sectors;
        (Lba::new(sector), until)
    }

    /// Sectors on the disk of at most `len` sectors of a file, from sector `at` of the file on. The
    /// extent ends where the file is no longer contiguous.
    pub fn sectors(&self, file: u32, at: u64, len: u64) -> Extent {
        let page = (at / self.page_sectors) as u32;
        let within = at % self.page_sectors;
        let (start, until) = self.place(file, page);
        let run = u64::from(until - page) * self.page_sectors - within;
        Extent::new(start + Sectors::new(within), Sectors::new(len.min(run)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lie_where_the_extents_say() {
        let file = |extents: &[(u64, u64)]| File {
            extents: extents.iter().map(|(a, b)| Extent::at(*a, *b)).collect(),
            size: 0,
        };
        let files = vec![file(&[(1000, 16), (1016, 8), (500, 24)]), file(&[(80, 8)])];
        let files = Files::new(files, vec![0, 1, 0], 8, Readahead::new(32));
        // The first two extents are one run.
        assert_eq!(files.place(0, 0), (Lba::new(1000), 3));
        assert_eq!(files.place(0, 2), (Lba::new(1016), 3));
        assert_eq!(files.place(0, 3), (Lba::new(500), 6));
        assert_eq!(files.place(0, 5), (Lba::new(516), 6));
        assert_eq!(files.place(1, 0), (Lba::new(80), 1));
        assert_eq!((files.data[0].base, files.data[1].base), (1, 7));
        assert_eq!((files.data[0].names, files.names[2].next), (2, 0));
        assert_eq!(files.sectors(0, 17, 100), Extent::at(1017, 7));
        assert_eq!(files.sectors(0, 25, 4), Extent::at(501, 4));
    }
}
