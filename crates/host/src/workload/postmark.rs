//! A mail server's small files.

use super::planned::{Job, Planner, Unplanned};
use super::site::{BenchmarkError, Part, Site, beside};
use crate::DiskSize;
use crate::layout::Ext3;
use headtime_units::{Bytes, Nanos};
use headtime_workload::Random;
use std::collections::BTreeSet;

/// `postmark`: several instances of PostMark 1.5, each with a directory of small files.
///
/// A transaction reads a file or appends to a file, and then creates a file or deletes a file. Each choice and each
/// file is random. The measured time is the time of the transactions. PostMark itself divides by the time of its whole
/// run, including creation and deletion. PostMark's own result therefore differs a little from the result here.
///
/// Rests on: the source of PostMark 1.51 for transactions, sizes, equal chances, and the table of files, which has
/// twice as many places as files. Sizes are 500 to 9,999 bytes, the program's defaults and the paper's "0.5KB to 10KB".
/// The C library's buffering is on by default, so PostMark's blocks of 512 bytes reach the kernel as calls of 4 KiB.
/// [`Ext3`] gives the places of files. The paper (section 3.3) gives instances, files and gap. Trust: high for the
/// program, low for the state at the start and for the number of transactions. The paper does not give this number, and
/// the program's default of 500 is taken.
///
/// The state at the start is inferred. Files that PostMark has just created are in memory, and 4 x 52 MB fit there. Yet
/// the paper speaks of random synchronous reads at the disk, with at most one visible read of each process. The paper's
/// 815.9 KB/s in all are about 78 accesses a second, one at a time, of about 5 KB, with as many bytes written besides.
/// So the data is assumed to be only on the disk when the transactions begin, and names and inodes in memory. Data that
/// is read or written then stays in memory.
///
/// The run is too short for writes to come due (30 s). In a longer run writes would come due, and schedulers that delay
/// writes would gain. The paper does not see this gain.
///
/// Left out: the journal. Metadata is written back like data, within 30 s, while ext3 would write both every 5 s.
/// Unless `whole` is set, the start and end of the run, with creation and deletion of the files, are left out as well.
///
/// Invariants of a spec that a host accepts:
///
/// - `1 ≤ instances ≤ 4096`; `1 ≤ files ≤ 10^6`; `1 ≤ transactions ≤ 10^8`; `0 < scale ≤ 1`.
/// - `1 B ≤ size_low ≤ size_high ≤ 1 MiB`; `1 B ≤ call ≤ 1 GiB`.
/// - `bias_read ≤ 10`; `bias_create ≤ 10`.
/// - `0 ≤ aged ≤ 0.95`; `4 KiB ≤ hole ≤ 10^6 · 4 KiB`.
/// - `1 B ≤ partition ≤ 16 TiB`; `gap ≤ 1024 TiB`; `start ≤ 1024 TiB`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct PostMarkSpec {
    /// Instances, each a program of one process with files of its own; 1 to 4096, default 4.
    pub instances: u32,
    /// Files of each instance at the start; 1 to 1 million, default 10,000.
    pub files: u32,
    /// Bytes of the smallest file; default 500. Not larger than `size_high`.
    pub size_low: Bytes,
    /// Upper limit of a file's size; default 10,000 bytes, at most 1 MiB.
    pub size_high: Bytes,
    /// Transactions of each instance; 1 to 100 million, default 500. With more transactions, more of the files are in
    /// memory in the mean, and more is written back during the run.
    pub transactions: u32,
    /// True if the run begins with the creation of the files and ends with the deletion of the remaining files; default
    /// false. If false, the files are on the disk when the transactions begin. If true, created files are in memory,
    /// and the disk sees mostly write-back.
    pub whole: bool,
    /// True if names, inodes and bitmaps are in memory at the start; default true. If false, each metadata block is
    /// read at its first use.
    pub metadata_cached: bool,
    /// Transactions of ten that read a file instead of appending to a file; 0 to 10, default 5.
    pub bias_read: u32,
    /// Transactions of ten that create a file instead of deleting a file; 0 to 10, default 5.
    pub bias_create: u32,
    /// Bytes of each call; default 4 KiB, the C library's buffer; 512 bytes with its buffering off.
    pub call: Bytes,
    /// Processor time of a transaction besides its calls; default 40 us (assumed).
    pub cpu: Nanos,
    /// Share of the file system that was taken before, in pieces, 0 to 0.95; default 0, a fresh one.
    pub aged: f64,
    /// Mean length of the holes that an aged file system has; default 64 KiB.
    pub hole: Bytes,
    /// Bytes of the partition of each instance; default 1 GiB.
    pub partition: Bytes,
    /// Bytes from the end of a partition to the beginning of the next; default 50 GB.
    pub gap: Bytes,
    /// Place of the first partition on the disk; default 0.
    pub start: Bytes,
    /// Factor for the numbers of files and transactions, more than 0 to 1; default 1.
    pub scale: f64,
}

impl Default for PostMarkSpec {
    fn default() -> PostMarkSpec {
        PostMarkSpec {
            instances: 4,
            files: 10_000,
            size_low: Bytes(500),
            size_high: Bytes(10_000),
            transactions: 500,
            whole: false,
            metadata_cached: true,
            bias_read: 5,
            bias_create: 5,
            call: Bytes(4096),
            cpu: Nanos::from_micros(40),
            aged: 0.0,
            hole: Bytes(64 << 10),
            partition: Bytes(1 << 30),
            gap: Bytes(50_000_000_000),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl PostMarkSpec {
    /// Lays out the files, and plans the steps of each instance. There is room for `room` steps in all.
    ///
    /// # Errors
    ///
    /// If a number is out of range, files do not fit into their partition, the partitions do not fit on the disk, or
    /// there are more than `room` steps.
    pub(super) fn lay(
        &self,
        disk: DiskSize,
        seed: u64,
        room: u64,
    ) -> Result<Vec<Part<Job>>, BenchmarkError> {
        let site = Site::new("postmark", disk);
        self.check(site)?;
        let few = |count: u32| ((f64::from(count) * self.scale) as u32).max(1);
        let mut instances = Vec::new();
        let mut planned = 0;
        for number in 0..self.instances {
            let place = beside(self.start, number, self.partition.0, self.gap);
            let mut random = Random::keyed(seed, u64::from(number), 32);
            let state = (self.aged, self.hole);
            let (fs, _) = site.ext3(place, self.partition.0, state, &mut random)?;
            let counts = (few(self.files), few(self.transactions));
            let mut instance = self
                .prepare(fs, random, counts, room.saturating_sub(planned))
                .map_err(|error| error.of(site))?;
            if self.metadata_cached {
                instance.jobs.retain(|job| !matches!(job, Job::Load(_)));
            }
            planned += instance.jobs.len() as u64;
            let jobs = std::mem::take(&mut instance.jobs);
            instances.push(Part::new(instance.into_files(), [jobs]));
        }
        Ok(instances)
    }

    /// Plans one instance with these numbers of files and transactions. There is room for `room` steps.
    fn prepare(
        &self,
        mut fs: Ext3,
        mut random: Random,
        (count, transactions): (u32, u32),
        room: u64,
    ) -> Result<Planner, Unplanned> {
        let mut root = fs.root();
        let directory = fs.make_directory(&mut root, 8)?;
        let mut instance = Planner {
            fs,
            directories: vec![directory],
            files: Vec::new(),
            jobs: Vec::new(),
            read_call: self.call.0,
            write_call: self.call.0,
        };
        let (low, high) = (self.size_low.0, self.size_high.0);
        let draw = |random: &mut Random| match high - low {
            0 => low,
            range => low + random.below(range),
        };
        // The program's table of files, with twice as many places as files at the start.
        let mut table: Vec<Option<u32>> = vec![None; count as usize * 2];
        for slot in table.iter_mut().take(count as usize) {
            let size = draw(&mut random);
            let file = instance.make(0, NAME_BYTES, size, || random.bits())?;
            if self.whole {
                instance.jobs.push(Job::Think(self.cpu));
                instance.create(file);
            } else {
                instance.files[file as usize].before = size;
            }
            *slot = Some(file);
        }
        // Free places of the table.
        let mut free: BTreeSet<usize> = (count as usize..table.len()).collect();
        let mut there = count;
        let mut next_place = count as usize;
        for _ in 0..transactions {
            if there == 0 {
                break;
            }
            if instance.jobs.len() as u64 > room {
                return Err(Unplanned::TooLong);
            }
            instance.jobs.push(Job::Think(self.cpu));
            let (_, file) = used(&table, &mut random);
            let size = instance.files[file as usize].layout.size;
            if random.below(10) < u64::from(self.bias_read) {
                instance.open(file);
                instance.read(file);
            } else if size < high {
                instance.append(file, random.below(high - size) + 1)?;
            }
            if random.below(10) < u64::from(self.bias_create) {
                // The place behind the last one taken, or else the first free place.
                let place = match table.get(next_place) {
                    Some(None) => Some(next_place),
                    _ => free.first().copied(),
                };
                if let Some(place) = place {
                    free.remove(&place);
                    let size = draw(&mut random);
                    let file = instance.make(0, NAME_BYTES, size, || random.bits())?;
                    instance.create(file);
                    table[place] = Some(file);
                    next_place = place + 1;
                    there += 1;
                }
            } else {
                let (place, file) = used(&table, &mut random);
                instance.delete(file);
                table[place] = None;
                free.insert(place);
                there -= 1;
            }
        }
        if self.whole {
            for file in table.into_iter().flatten() {
                instance.jobs.push(Job::Think(self.cpu));
                instance.delete(file);
            }
        }
        match instance.jobs.len() as u64 <= room {
            true => Ok(instance),
            false => Err(Unplanned::TooLong),
        }
    }

    fn check(&self, site: Site) -> Result<(), BenchmarkError> {
        site.check_count("instances", self.instances)?;
        let good = (1..=1_000_000).contains(&self.files);
        site.check(good, "files", self.files, "1 to 1000000")?;
        let good = self.size_low.0 > 0 && self.size_low <= self.size_high;
        site.check(good, "size_low", self.size_low, "1B to size_high")?;
        let good = self.size_high.0 <= 1 << 20;
        site.check(good, "size_high", self.size_high, "at most 1MiB")?;
        let good = (1..=100_000_000).contains(&self.transactions);
        site.check(good, "transactions", self.transactions, "1 to 100000000")?;
        site.check(self.bias_read <= 10, "bias_read", self.bias_read, "0 to 10")?;
        site.check(
            self.bias_create <= 10,
            "bias_create",
            self.bias_create,
            "0 to 10",
        )?;
        site.check_call("call", self.call)?;
        site.check_size("partition", self.partition)?;
        site.check_place(self.gap, self.start, self.scale)
    }
}

/// Bytes of a name: a number of four or five digits.
const NAME_BYTES: u32 = 5;

/// Draws a file of the table with equal probability. Returns the file's place and the file.
fn used(table: &[Option<u32>], random: &mut Random) -> (usize, u32) {
    loop {
        let place = random.below(table.len() as u64) as usize;
        if let Some(file) = table[place] {
            return (place, file);
        }
    }
}
