//! Programs on a file system, with steps that are planned before the run. The place of a new file depends on all files
//! that were created and deleted before.

use super::site::{BenchmarkError, Part, Site};
use crate::layout::{Directory, Ext3, FileLayout, LayoutError};
use crate::{BarrierId, Behaviour, File, FileId, HostBuilder, Step};
use headtime_units::{Lba, Nanos};
use std::sync::Arc;

/// One planned step. Files are named by index.
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

/// A file that exists at some time of the run.
pub(super) struct PlannedFile {
    pub layout: FileLayout,
    /// Index of the file's directory, and hash of the file's name there.
    pub directory: usize,
    pub hash: u32,
    /// Bytes of the file before the program starts.
    pub before: u64,
}

/// A file system with its directories and files, and the steps planned so far.
pub(super) struct Planner {
    pub fs: Ext3,
    pub directories: Vec<Directory>,
    pub files: Vec<PlannedFile>,
    pub jobs: Vec<Job>,
    /// Bytes of a read call, and bytes of a write call.
    pub read_call: u64,
    pub write_call: u64,
}

/// Reason why a program cannot be planned.
pub(super) enum Unplanned {
    Layout(LayoutError),
    /// The program has more steps than there is room for.
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
    /// Places a file whose name has `name_bytes` bytes and the hash `hash`. Returns the index of the file.
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

    /// Blocks in which a file's name is looked up: the only block of the directory, or the root of the index and a
    /// leaf.
    fn lookup(&self, file: u32) -> (Lba, Option<Lba>) {
        let entry = &self.files[file as usize];
        let directory = &self.directories[entry.directory];
        self.fs.lookup(directory, entry.hash)
    }

    /// Plans the lookup of a file's name and inode.
    pub fn open(&mut self, file: u32) {
        let (first, leaf) = self.lookup(file);
        let inode = self.files[file as usize].layout.inode;
        self.jobs.push(Job::Load(first));
        self.jobs.extend(leaf.map(Job::Load));
        self.jobs.push(Job::Load(self.fs.inode_block(inode)));
    }

    /// Plans the reading of a whole file that was opened.
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

    /// Plans the creation of a file that was placed: the directory entry, and the data.
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

    /// Plans writes to a file, in calls that end where the C library's buffer is full.
    fn write(&mut self, file: u32, from: u64, bytes: u64) {
        for offset in (from..from + bytes).step_by(self.write_call as usize) {
            let len = self.write_call.min(from + bytes - offset);
            self.jobs.push(Job::Write { file, offset, len });
        }
    }

    /// Plans the change of a block that has to be read first.
    fn change(&mut self, block: Lba) {
        self.jobs.push(Job::Load(block));
        self.jobs.push(Job::Change(block));
    }

    /// Plans reads of the file's indirect blocks that lead to a block or to later blocks. Small files have no indirect
    /// blocks.
    fn load_indirect(&mut self, file: u32, block: u64) {
        let layout = &self.files[file as usize].layout;
        let indirect = layout.indirect.iter().filter(|indirect| {
            indirect.from_block + 1024 > block && indirect.from_block * 4096 < layout.size
        });
        self.jobs
            .extend(indirect.map(|indirect| Job::Load(indirect.lba)));
    }

    /// Files in the form that the host needs.
    pub fn into_files(self) -> Vec<File> {
        let files = self.files.into_iter().map(|file| File {
            extents: file.layout.data,
            size: file.before,
        });
        files.collect()
    }
}

/// Adds the files and processes of planned programs to a host. Programs are numbered from `program` on. Returns the
/// number behind the last program.
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

/// Performs planned steps one after the other.
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
