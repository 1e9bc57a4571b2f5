//! A search through a tree of files.

use super::site::{BenchmarkError, Part, Site, beside, of_kib};
use crate::layout::{LayoutError, TreeSpec, Visit, Written};
use crate::{Behaviour, DiskSize, File, FileId, HostBuilder, Step};
use headtime_units::{Bytes, Lba, Nanos};
use headtime_workload::Random;
use std::sync::Arc;

/// `grep`: searches for a word that does not occur, each in its own copy of the sources of Linux 2.6.31.
///
/// Each directory is listed: first the inode, then the blocks. The entries are visited in the order of the list, which
/// on ext3 is the order of a hash. For each file, the inode's block is read first. Then the data is read in calls of
/// one buffer, with time for the search after each call. Blocks of metadata are in memory after their first use. An
/// indirect block is read before the first call that needs the block. On a real host, readahead needs the block one
/// window earlier, which concerns one file in 25.
///
/// Rests on: the paper for the two instances, the tree and the gap. [`TreeSpec`] gives the shape of the tree, and
/// [`Ext3`](crate::layout::Ext3) the places of files. The order, and calls of 32 KiB, are from GNU grep 2.5. Trust:
/// high for the pattern of a call, moderate for the tree, low for the processor's time, which is assumed.
///
/// Open: the way in which the copies were made (`written`). If a copy was unpacked from an archive, the files of a
/// directory lie near each other and are read out of order. If a program copied in the order of the list, within a file
/// system, the files are read in the order in which they lie. The drive's read-ahead decides which copy is read faster,
/// and by how much.
///
/// Invariants of a spec that a host accepts:
///
/// - `1 ≤ instances ≤ 4096`; `0 < scale ≤ 1`.
/// - `files ≥ 1`, `⌊files scale⌋ ≤ 10^7`; `directories ≥ 1`, `⌊directories scale⌋ ≤ 10^6`.
/// - `1 B ≤ median ≤ 1 GiB`; `0 ≤ spread ≤ 3`; `1 B ≤ read ≤ 1 GiB`.
/// - `0 ≤ aged ≤ 0.95`; `4 KiB ≤ hole ≤ 10^6 · 4 KiB`.
/// - `1 B ≤ partition ≤ 16 TiB`; `gap ≤ 1024 TiB`; `start ≤ 1024 TiB`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct GrepSpec {
    /// Instances, each a program of one process with a copy of its own; 1 to 4096, default 2.
    pub instances: u32,
    /// Files of the tree; 1 to 10 million, default 29,100.
    pub files: u32,
    /// Directories of the tree; 1 to 1 million, default 1,760.
    pub directories: u32,
    /// Median size of the files; default 5,600 bytes.
    pub median: Bytes,
    /// Standard deviation of the logarithm of the sizes; 0 to 3, default 1.27, which makes the mean
    /// 12.5 KB.
    pub spread: f64,
    /// Order in which each copy was written; default [`Written::Unpacked`].
    pub written: Written,
    /// Share of the file system that was taken before, in pieces, 0 to 0.95; default 0, a fresh one.
    pub aged: f64,
    /// Mean length of the holes that an aged file system has; default 64 KiB.
    pub hole: Bytes,
    /// Bytes of each call; default 32 KiB.
    pub read: Bytes,
    /// Processor time for each file: opening and closing it; default 15 us.
    pub file_cpu: Nanos,
    /// Processor time for each KiB searched; default 1 us.
    pub kib_cpu: Nanos,
    /// Bytes of the partition of each copy; default 2 GiB.
    pub partition: Bytes,
    /// Bytes from the end of a partition to the beginning of the next; default 50 GB.
    pub gap: Bytes,
    /// Place of the first partition on the disk; default 0.
    pub start: Bytes,
    /// Factor for the numbers of files and directories, more than 0 to 1; default 1.
    pub scale: f64,
}

impl Default for GrepSpec {
    fn default() -> GrepSpec {
        let tree = TreeSpec::default();
        GrepSpec {
            instances: 2,
            files: tree.files,
            directories: tree.directories,
            median: tree.median,
            spread: tree.spread,
            written: Written::Unpacked,
            aged: 0.0,
            hole: Bytes(64 << 10),
            read: Bytes(32 << 10),
            file_cpu: Nanos::from_micros(15),
            kib_cpu: Nanos::from_micros(1),
            partition: Bytes(2 << 30),
            gap: Bytes(50_000_000_000),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl GrepSpec {
    /// Lays out the trees, which are copies of one tree. The seed fixes the tree and all other random choices. There is
    /// room for `room` planned steps.
    ///
    /// # Errors
    ///
    /// If a number is out of range, a tree does not fit into its partition, the partitions do not fit on the disk, or
    /// there are more than `room` steps.
    pub(super) fn lay(
        &self,
        disk: DiskSize,
        seed: u64,
        room: u64,
    ) -> Result<Vec<Part<GrepJob>>, BenchmarkError> {
        let site = Site::new("grep", disk);
        site.check_count("instances", self.instances)?;
        site.check_call("read", self.read)?;
        site.check_size("partition", self.partition)?;
        site.check_place(self.gap, self.start, self.scale)?;
        let layout = |error: LayoutError| site.layout(error);
        let few = |count: u32| ((f64::from(count) * self.scale) as u32).max(1);
        let tree = TreeSpec {
            files: few(self.files).min(self.files),
            directories: few(self.directories).min(self.directories),
            median: self.median,
            spread: self.spread,
            ..TreeSpec::default()
        };
        let plan = tree.plan(seed).map_err(layout)?;
        let mut copies = Vec::new();
        let mut planned = 0;
        for number in 0..self.instances {
            let place = beside(self.start, number, self.partition.0, self.gap);
            let mut random = Random::keyed(seed, u64::from(number), 16);
            let state = (self.aged, self.hole);
            let (mut fs, own) = site.ext3(place, self.partition.0, state, &mut random)?;
            let mut root = fs.root();
            let tree = plan
                .lay(&mut fs, &mut root, self.written, own)
                .map_err(layout)?;
            let (mut files, mut jobs) = (Vec::new(), Vec::new());
            for visit in tree.walk() {
                match visit {
                    Visit::Directory(at) => {
                        let directory = &tree.directories[at as usize];
                        jobs.push(GrepJob::Block(directory.inode_block));
                        jobs.extend(directory.blocks.iter().map(|&lba| GrepJob::Block(lba)));
                    }
                    Visit::File(at) => {
                        let file = &tree.files[at as usize];
                        let (size, data) = (file.layout.size, &file.layout.data);
                        let steps = jobs.len() + 1 + file.layout.indirect.len();
                        let steps = steps as u64 + size.div_ceil(self.read.0);
                        site.check_plan(room - planned, steps)?;
                        let own = files.len() as u32;
                        files.push(File {
                            extents: data.clone(),
                            size,
                        });
                        jobs.push(GrepJob::Block(file.inode_block));
                        let mut indirect = file.layout.indirect.iter().peekable();
                        for offset in (0..size).step_by(self.read.0 as usize) {
                            let len = self.read.0.min(size - offset);
                            while let Some(next) =
                                indirect.next_if(|next| next.from_block * 4096 < offset + len)
                            {
                                jobs.push(GrepJob::Block(next.lba));
                            }
                            jobs.push(GrepJob::Read(own, offset, len));
                        }
                    }
                }
            }
            // Directories are so few that their steps always fit.
            planned = room.min(planned + jobs.len() as u64);
            copies.push(Part::new(files, [jobs]));
        }
        Ok(copies)
    }

    /// Adds the trees and processes to a host; programs are numbered from `program` on. Returns the number behind the
    /// last program.
    ///
    /// # Errors
    ///
    /// If the host refuses a file.
    pub(super) fn add(
        &self,
        copies: &[Part<GrepJob>],
        builder: &mut HostBuilder,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let site = Site::new("grep", builder.disk());
        Part::add_programs(copies, site, builder, program, |jobs, ids, _| Search {
            jobs,
            ids,
            at: 0,
            file_cpu: self.file_cpu,
            kib_cpu: self.kib_cpu,
            work: Nanos::ZERO,
        })
    }
}

/// One block or part of a file to read. Files are named by index.
pub(super) enum GrepJob {
    Block(Lba),
    Read(u32, u64, u64),
}

/// Reads blocks and files one after the other, and works on the data of files.
struct Search {
    jobs: Arc<[GrepJob]>,
    ids: Arc<[FileId]>,
    at: usize,
    file_cpu: Nanos,
    kib_cpu: Nanos,
    work: Nanos,
}

impl Behaviour for Search {
    fn next(&mut self) -> Step {
        if !self.work.is_zero() {
            return Step::Think(std::mem::replace(&mut self.work, Nanos::ZERO));
        }
        let Some(job) = self.jobs.get(self.at) else {
            return Step::Exit;
        };
        self.at += 1;
        match *job {
            GrepJob::Block(lba) => Step::ReadBlock(lba),
            GrepJob::Read(file, offset, len) => {
                self.work = of_kib(self.kib_cpu, len);
                if offset == 0 {
                    self.work = self.work.saturating_add(self.file_cpu);
                }
                Step::Read {
                    file: self.ids[file as usize],
                    offset,
                    len,
                }
            }
        }
    }
}
