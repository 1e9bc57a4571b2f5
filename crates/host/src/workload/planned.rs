//! Programs on a file system whose steps are worked out before they begin: where a new file lies depends on all
//! that was created and deleted before.

use super::site::{BenchmarkError, Part, Site};
use crate::layout::{Directory, Ext3, FileLayout, LayoutError};
use crate::{BarrierId, Behaviour, File, FileId, HostBuilder, Step};
use headtime_units::{Lba, Nanos};
use std::sync::Arc;

/// One thing to do; files by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    Think(Nanos),
    Load(Lba),
    Change(Lba),
    Read {
        file: u32,
        offset: u64,
        len: u64,
    },
    Write {
        file: u32,
        offset: u64,
        len: u64,
    },
    Delete(u32),
    /// Waits for the other processes of the program.
    Meet,
}

/// A file that is there at some time.
pub(super) struct PlannedFile {
    pub layout: FileLayout,
    /// The directory that it is in, by index, and the hash of its name there.
    pub directory: usize,
    pub hash: u32,
    /// Bytes before the program begins.
    pub before: u64,
}

/// A file system, what is on it, and what has been planned there.
pub(super) struct Planner {
    pub fs: Ext3,
    pub directories: Vec<Directory>,
    pub files: Vec<PlannedFile>,
    pub jobs: Vec<Job>,
    /// Bytes of a call that reads, and of one that writes.
    pub read_call: u64,
    pub write_call: u64,
}

/// Why a program cannot be worked out.
pub(super) enum Unplanned {
    Layout(LayoutError),
    /// It has more steps than there is room for.
    TooLong,
}

impl Unplanned {
    pub fn of(self, site: Site) -> BenchmarkError {
        match self {
            Unplanned::Layout(error) => site.layout(error),
            Unplanned::TooLong => site.too_long(),
        }
    }
}

impl From<LayoutError> for Unplanned {
    fn from(error: LayoutError) -> Unplanned {
        Unplanned::Layout(error)
    }
}

impl Planner {
    /// Lays a file down whose name has so many bytes and this hash; returns its index.
    pub fn make(
        &mut self,
        directory: usize,
        name_bytes: u32,
        size: u64,
        hash: impl FnOnce() -> u32,
    ) -> Result<u32, LayoutError> {
        let own = &mut self.directories[directory];
        let layout = self.fs.make_file(own, name_bytes, size)?;
        self.files.push(PlannedFile {
            layout,
            directory,
            hash: hash(),
            before: 0,
        });
        Ok(self.files.len() as u32 - 1)
    }

    /// Where its name is looked up: the only block of its directory, or the root of the index and a leaf.
    fn lookup(&self, file: u32) -> (Lba, Option<Lba>) {
        let entry = &self.files[file as usize];
        let directory = &self.directories[entry.directory];
        self.fs.lookup(directory, entry.hash)
    }

    /// Finds its name and inode.
    pub fn open(&mut self, file: u32) {
        let (first, leaf) = self.lookup(file);
        let inode = self.files[file as usize].layout.inode;
        self.jobs.push(Job::Load(first));
        self.jobs.extend(leaf.map(Job::Load));
        self.jobs.push(Job::Load(self.fs.inode_block(inode)));
    }

    /// Reads all of a file that was opened.
    pub fn read(&mut self, file: u32) {
        let size = self.files[file as usize].layout.size;
        self.load_indirect(file, 0);
        let call = self.read_call;
        let mut offset = 0;
        while offset < size {
            let len = call.min(size - offset);
            self.jobs.push(Job::Read { file, offset, len });
            offset += len;
        }
    }

    /// Enters a file that was made into its directory, and writes it.
    pub fn create(&mut self, file: u32) {
        let (first, leaf) = self.lookup(file);
        let layout = &self.files[file as usize].layout;
        let (size, last) = (layout.size, layout.data.last());
        let inode = self.fs.inode_block(layout.inode);
        let inodes = self.fs.inode_bitmap(layout.inode);
        let bitmap = last.map(|last| self.fs.block_bitmap(last.start));
        self.jobs.push(Job::Load(first));
        self.jobs.extend(leaf.map(Job::Load));
        self.change(inodes);
        self.change(inode);
        self.jobs.push(Job::Change(leaf.unwrap_or(first)));
        self.write(file, 0, size);
        if let Some(bitmap) = bitmap {
            self.change(bitmap);
        }
    }

    pub fn append(&mut self, file: u32, more: u64) -> Result<(), LayoutError> {
        self.open(file);
        let layout = &mut self.files[file as usize].layout;
        let (size, blocks) = (layout.size, layout.data.clone());
        self.fs.grow(layout, size + more)?;
        self.load_indirect(file, size / 4096);
        self.write(file, size, more);
        let grown = &self.files[file as usize].layout;
        let inode = self.fs.inode_block(grown.inode);
        let new = grown.data.last().filter(|_| grown.data != blocks);
        if let Some(bitmap) = new.map(|last| self.fs.block_bitmap(last.start)) {
            self.change(bitmap);
        }
        self.jobs.push(Job::Change(inode));
        Ok(())
    }

    pub fn delete(&mut self, file: u32) {
        self.open(file);
        self.load_indirect(file, 0);
        let (first, leaf) = self.lookup(file);
        let layout = &self.files[file as usize].layout;
        let inode = self.fs.inode_block(layout.inode);
        let inodes = self.fs.inode_bitmap(layout.inode);
        let extents = layout.data.iter();
        let bitmaps: Vec<Lba> = extents
            .map(|extent| self.fs.block_bitmap(extent.start))
            .collect();
        self.jobs.push(Job::Change(leaf.unwrap_or(first)));
        self.jobs.push(Job::Change(inode));
        self.change(inodes);
        for bitmap in bitmaps {
            self.change(bitmap);
        }
        self.jobs.push(Job::Delete(file));
        self.fs.remove(&self.files[file as usize].layout);
    }

    /// Writes to a file in calls, which end where the C library's buffer is full.
    fn write(&mut self, file: u32, from: u64, bytes: u64) {
        for offset in (from..from + bytes).step_by(self.write_call as usize) {
            let len = self.write_call.min(from + bytes - offset);
            self.jobs.push(Job::Write { file, offset, len });
        }
    }

    /// Changes a block that has to be read before.
    fn change(&mut self, block: Lba) {
        self.jobs.push(Job::Load(block));
        self.jobs.push(Job::Change(block));
    }

    /// The indirect blocks of a file that lead to a block or to what lies behind; small files have
    /// none.
    fn load_indirect(&mut self, file: u32, block: u64) {
        let layout = &self.files[file as usize].layout;
        let indirect = layout.indirect.iter().filter(|indirect| {
            indirect.from_block + 1024 > block && indirect.from_block * 4096 < layout.size
        });
        self.jobs
            .extend(indirect.map(|indirect| Job::Load(indirect.lba)));
    }

    /// What the host has to know of the files.
    pub fn into_files(self) -> Vec<File> {
        let files = self.files.into_iter().map(|file| File {
            extents: file.layout.data,
            size: file.before,
        });
        files.collect()
    }
}

/// Adds the files and processes of programs that were worked out to a host; programs are numbered from `program` on.
/// Returns the number behind the last.
pub(super) fn add(
    parts: &[Part<Job>],
    site: Site,
    builder: &mut HostBuilder,
    program: u32,
) -> Result<u32, BenchmarkError> {
    Part::add_programs(parts, site, builder, program, |jobs, ids, barrier| {
        let at = 0;
        Planned {
            jobs,
            ids,
            barrier,
            at,
        }
    })
}

/// Does one thing after the other.
struct Planned {
    jobs: Arc<[Job]>,
    ids: Arc<[FileId]>,
    barrier: Option<BarrierId>,
    at: usize,
}

impl Behaviour for Planned {
    fn next(&mut self) -> Step {
        let Some(&job) = self.jobs.get(self.at) else {
            return Step::Exit;
        };
        self.at += 1;
        let id = |file: u32| self.ids[file as usize];
        match job {
            Job::Think(span) => Step::Think(span),
            Job::Load(block) => Step::ReadBlock(block),
            Job::Change(block) => Step::DirtyBlock(block),
            Job::Read { file, offset, len } => Step::Read {
                file: id(file),
                offset,
                len,
            },
            Job::Write { file, offset, len } => Step::Write {
                file: id(file),
                offset,
                len,
            },
            Job::Delete(file) => Step::Forget(id(file)),
            Job::Meet => Step::Barrier(self.barrier.expect("others are there to meet")),
        }
    }
}
