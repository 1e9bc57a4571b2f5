//! Small files, read at random.

use super::planned::Job;
use super::site::{BenchmarkError, Part, Site, scaled_count, share};
use crate::layout::{Ffs, FfsEntry};
use crate::{DiskSize, File};
use headtime_units::Bytes;
use headtime_workload::Random;

/// Separates the random numbers of this benchmark from all others.
const PURPOSE: u64 = 67;

/// `small-files`: tasks that read small files, each read at random, on a file system with cylinder groups.
///
/// A read finds the name of the directory in the root, then the directory's inode, the name of the file in it, the
/// file's inode, and its data. Blocks of metadata and files are in memory after their first use.
///
/// Rests on: Lumb, Schindler and Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.2. The
/// section describes 10,000 reads of files of 3 KB, 2000 directories of 50 files, and blocks of 4 KB, on FreeBSD.
/// [`Ffs`] gives the places of files. Trust: high for the counts, moderate for the layout. Open: the number of tasks
/// that read at the same time. The paper's other workloads have ten tasks. Two effects are left out: FreeBSD reads only
/// the fragments of a file, 3 KB and not 4, and has data of its own in memory.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct SmallFilesSpec {
    /// Tasks of one program that read at the same time; 1 to 4096, default 10.
    pub tasks: u32,
    /// Directories of the root; 1 to 1 million, default 2000.
    pub directories: u32,
    /// Files of each directory; 1 to 60, default 50.
    pub files: u32,
    /// Bytes of a file; 1 B to 4 KiB, default 3 KiB.
    pub size: Bytes,
    /// Reads of all tasks; 1 to 16,777,216, default 10,000.
    pub reads: u32,
    /// Bytes of the file system; default 9.1 GB, the paper's disk.
    pub partition: Bytes,
    /// Place of the file system on the disk; default 0.
    pub start: Bytes,
    /// Factor for the numbers of directories and reads, more than 0 to 1; default 1.
    pub scale: f64,
}

impl Default for SmallFilesSpec {
    fn default() -> SmallFilesSpec {
        SmallFilesSpec {
            tasks: 10,
            directories: 2_000,
            files: 50,
            size: Bytes(3 << 10),
            reads: 10_000,
            partition: Bytes(9_100_000_000),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl SmallFilesSpec {
    /// Lays out the files and plans the reads, which the seed fixes. There is room for `room` planned steps.
    ///
    /// # Errors
    ///
    /// If a number is out of range, or there are more than `room` steps. If the files do not fit into the partition, or
    /// the partition does not fit on the disk.
    pub(super) fn lay(
        &self,
        disk: DiskSize,
        seed: u64,
        room: u64,
    ) -> Result<Vec<Part<Job>>, BenchmarkError> {
        let site = Site::new("small-files", disk);
        site.check_count("tasks", self.tasks)?;
        let some = (1..=1_000_000).contains(&self.directories);
        site.check(some, "directories", self.directories, "1 to 1000000")?;
        site.check(
            (1..=60).contains(&self.files),
            "files",
            self.files,
            "1 to 60",
        )?;
        let small = (1..=4_096).contains(&self.size.0);
        site.check(small, "size", self.size, "1B to 4KiB")?;
        let few = (1..=1 << 24).contains(&self.reads);
        site.check(few, "reads", self.reads, "1 to 16777216")?;
        site.check_size("partition", self.partition)?;
        site.check_distance("start", self.start)?;
        site.check_scale(self.scale)?;
        let (directories, reads) = (
            scaled_count(self.directories, self.scale),
            scaled_count(self.reads, self.scale),
        );
        site.check_plan(room, u64::from(reads) * READ_STEPS)?;
        let partition = site.extent(self.start.0, self.partition.0)?;
        let layout = |error| site.layout(error);
        let mut fs = Ffs::format(partition, disk.sector_bytes, directories).map_err(layout)?;
        let mut entries: Vec<(FfsEntry, Vec<FfsEntry>)> = Vec::new();
        for _ in 0..directories {
            let directory = fs.make_directory().map_err(layout)?;
            let files = (0..self.files).map(|_| fs.make_file(&directory, self.size.0));
            let files = files.collect::<Result<_, _>>().map_err(layout)?;
            entries.push((directory, files));
        }
        let mut random = Random::keyed(seed, 0, PURPOSE);
        let jobs = (0..self.tasks).map(|task| {
            let own = share(reads, self.tasks, task);
            let mut jobs = Vec::with_capacity((u64::from(own) * READ_STEPS) as usize);
            for _ in 0..own {
                let at = random.below(u64::from(directories)) as u32;
                let file = random.below(u64::from(self.files)) as u32;
                let (directory, files) = &entries[at as usize];
                jobs.extend(fs.root(at).map(Job::Load));
                jobs.push(Job::Load(directory.inode_block));
                jobs.push(Job::Load(directory.data.start));
                jobs.push(Job::Load(files[file as usize].inode_block));
                jobs.push(Job::Read {
                    file: at * self.files + file,
                    offset: 0,
                    len: self.size.0,
                });
            }
            jobs
        });
        let jobs: Vec<Vec<Job>> = jobs.collect();
        let files = entries
            .iter()
            .flat_map(|(_, files)| files)
            .map(|file| File {
                extents: vec![file.data],
                size: self.size.0,
            });
        Ok(vec![Part::new(files.collect(), jobs)])
    }
}

/// Steps of a read.
const READ_STEPS: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use crate::workload::BenchmarkSpec;
    use crate::workload::tests::{builder, steps};
    use std::collections::BTreeSet;

    fn read(spec: SmallFilesSpec) -> Vec<Vec<Step>> {
        let mut builder = builder();
        let spec = BenchmarkSpec::SmallFiles(spec);
        assert_eq!(spec.add(&mut builder, 7, 3), Ok(4));
        let all = steps(&mut builder).into_iter();
        all.map(|(program, steps)| {
            assert_eq!(program, 3);
            steps
        })
        .collect()
    }

    #[test]
    fn tasks_share_the_reads_and_each_finds_its_file_through_directory_and_inodes() {
        let spec = SmallFilesSpec {
            tasks: 3,
            reads: 1_000,
            ..SmallFilesSpec::default()
        };
        let all = read(spec);
        let counts: Vec<usize> = all.iter().map(Vec::len).collect();
        assert_eq!(counts, [334 * 6, 333 * 6, 333 * 6]);
        let mut files = BTreeSet::new();
        for one in all.iter().flat_map(|steps| steps.chunks(6)) {
            let [root, _, directory, _, inode, data] = one else {
                panic!("{one:?}");
            };
            assert!(matches!(root, Step::ReadBlock(_)), "{root:?}");
            let (Step::ReadBlock(directory), Step::ReadBlock(inode)) = (directory, inode) else {
                panic!("{one:?}");
            };
            // Both inodes are in one group of 18 MiB, the file's at most two blocks behind.
            let apart = inode.get() - directory.get();
            assert!(apart <= 16, "{apart}");
            let Step::Read {
                file,
                offset: 0,
                len: 3_072,
            } = data
            else {
                panic!("{data:?}");
            };
            files.insert(file.0);
        }
        // Few of a thousand among 100,000 are read twice.
        assert!(files.len() > 980, "{}", files.len());
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let refused = |change: fn(&mut SmallFilesSpec)| {
            let mut spec = SmallFilesSpec::default();
            change(&mut spec);
            let spec = BenchmarkSpec::SmallFiles(spec);
            spec.add(&mut builder(), 1, 1).unwrap_err().to_string()
        };
        assert_eq!(
            refused(|spec| spec.size = Bytes(4_097)),
            "small-files: size is 4097B; allowed is 1B to 4KiB"
        );
        assert_eq!(
            refused(|spec| spec.files = 61),
            "small-files: files is 61; allowed is 1 to 60"
        );
        assert_eq!(
            refused(|spec| spec.directories = 0),
            "small-files: directories is 0; allowed is 1 to 1000000"
        );
        let full = refused(|spec| spec.partition = Bytes(100 << 20));
        assert_eq!(full, "small-files: the file system has no free block");
    }
}
