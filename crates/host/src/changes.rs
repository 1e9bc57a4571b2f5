//! Changes that a process will have made by a later time, while its steps are followed in advance.

use crate::readahead::Readahead;
use crate::spec::FileId;
use headtime_units::Lba;

/// Changes up to the time to which a process is followed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Changes of files, in order of time.
    pub files: Vec<Change>,
    /// Readahead states of the names that the process has used.
    pub names: Vec<(FileId, Readahead)>,
    /// Files and blocks that the process has made dirty.
    pub dirty: Vec<u32>,
    pub blocks: Vec<Lba>,
}

/// Change of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Forgotten(u32),
    /// Pages `pages.0..pages.1` are cached without a readahead mark. The file has at least `size`
    /// bytes.
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

    /// Notes that pages of a file are in memory, and a lower bound of the file's size.
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
