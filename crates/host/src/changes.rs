//! What a process that is followed ahead of its time will have changed.

use crate::readahead::Readahead;
use crate::spec::FileId;
use headtime_units::Lba;

/// What will be different by then.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Of files, in order of time.
    pub files: Vec<Change>,
    /// States of readahead.
    pub names: Vec<(FileId, Readahead)>,
    /// Files and blocks that are dirty.
    pub dirty: Vec<u32>,
    pub blocks: Vec<Lba>,
}

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Forgotten(u32),
    /// From one page to before another it is in memory, without a mark, and so many bytes long.
    Present {
        file: u32,
        pages: (u64, u64),
        size: u64,
    },
}

impl Changes {
    pub fn clear(&mut self) {
        self.files.clear();
        self.names.clear();
        self.dirty.clear();
        self.blocks.clear();
    }

    /// Notes that pages of a file are in memory, and how many bytes it has at least.
    pub fn present(&mut self, file: u32, pages: (u64, u64), size: u64) {
        if let Some(Change::Present {
            file: last,
            pages: known,
            size: least,
        }) = self.files.last_mut()
            && *last == file
            && known.0 <= pages.0
            && pages.0 <= known.1
        {
            known.1 = known.1.max(pages.1);
            *least = size.max(*least);
            return;
        }
        self.files.push(Change::Present { file, pages, size });
    }

    pub fn forgets(&self, file: u32) -> bool {
        self.files
            .iter()
            .any(|change| matches!(change, Change::Forgotten(other) if *other == file))
    }
}
