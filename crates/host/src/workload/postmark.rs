//! A mail server's small files.

use super::site::{BenchmarkError, Part, Site};
use crate::layout::{Directory, Ext3, Ext3Options, FileLayout, LayoutError};
use crate::{Behaviour, DiskSize, File, FileId, HostBuilder, Step};
use headtime_units::{Bytes, Lba, Nanos};
use headtime_workload::Random;
use std::collections::BTreeSet;
use std::sync::Arc;

/// `postmark`: several instances of PostMark 1.5, each with a directory of small files.
///
/// A transaction reads a file or appends to one, and then creates a file or deletes one, each choice
/// and each file at random. The measured time is that of the transactions; the program itself divides
/// by its whole run, creating and deleting included, so its own number is not quite the one that comes
/// out here.
///
/// Rests on: the source of PostMark 1.51 for what a transaction is, for the table of files (twice as
/// many places as files), for sizes (500 to 9,999 bytes, the program's defaults and the paper's "0.5KB
/// to 10KB"), for equal chances, and for the C library's buffering, which is on by default: its blocks
/// of 512 bytes reach the kernel as calls of 4 KiB. [`Ext3`] for where files lie. The paper (section 3.3)
/// for instances, files and gap. Trust: high for the program, low for its state at the start and for the
/// number of transactions, which the paper does not give; the program's default of 500 is taken.
///
/// The state at the start is inferred. What PostMark has just created is in memory, and 4 x 52 MB fit
/// there; yet the paper speaks of random synchronous reads at the disk, of which at most one of each
/// process is to be seen, and 815.9 KB/s in all are about 78 accesses a second, one at a time, of about 5 KB
/// with as much written beside them. So the data is taken to be on the disk alone when the transactions
/// begin, and names and inodes in memory; what is read or written then stays there. The run is too short
/// for writes to come due (30 s); in a longer one they would, and schedulers that put off writes would
/// gain by it, which the paper does not see.
///
/// Left out: the journal (metadata is written back like data, within 30 s; ext3 would write both every 5
/// s), and, unless `whole` is set, the start and end of the run, when files are created and deleted.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct PostMarkSpec {
    /// How many instances, each a program of one process with files of its own; 1 to 4096, default 4.
    pub instances: u32,
    /// Files of each at the start; 1 to 1 million, default 10,000.
    pub files: u32,
    /// Smallest file; default 500 bytes. Not larger than `size_high`.
    pub size_low: Bytes,
    /// No file is larger; default 10,000 bytes, at most 1 MiB.
    pub size_high: Bytes,
    /// Transactions of each instance; 1 to 100 million, default 500. The more there are, the more of the
    /// files are in memory in the mean, and the more is written back while they run.
    pub transactions: u32,
    /// Whether the run begins with the creation of the files and ends with the deletion of those that are left;
    /// default no: they are on the disk when the transactions begin. If so, what was created is in memory, and
    /// the disk sees mostly what is written back.
    pub whole: bool,
    /// Whether names, inodes and bitmaps are in memory at the start; default yes. If not, each block
    /// of them is read at its first use.
    pub metadata_cached: bool,
    /// In how many of ten transactions a file is read instead of appended to; 0 to 10, default 5.
    pub bias_read: u32,
    /// In how many of ten a file is created instead of deleted; 0 to 10, default 5.
    pub bias_create: u32,
    /// Bytes of each call; default 4 KiB, the C library's buffer; 512 bytes with its buffering off.
    pub call: Bytes,
    /// Processor time of a transaction besides its calls; default 40 us (assumed).
    pub cpu: Nanos,
    /// Bytes of the partition of each instance; default 1 GiB.
    pub partition: Bytes,
    /// Bytes from the end of a partition to the beginning of the next; default 50 GB.
    pub gap: Bytes,
    /// Where on the disk the first partition begins; default 0.
    pub start: Bytes,
    /// Share of the files and transactions that there are, more than 0 to 1, default 1.
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
            partition: Bytes(1 << 30),
            gap: Bytes(50_000_000_000),
            start: Bytes(0),
            scale: 1.0,
        }
    }
}

impl PostMarkSpec {
    /// Lays down the files, and works out what each instance does with them; there is room for `room`
    /// steps in all.
    ///
    /// # Errors
    ///
    /// If a number is out of range, files do not fit into their partition, the partitions do not fit
    /// on the disk, or there are more steps.
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
            let place = self.start.0 + u64::from(number) * (self.partition.0 + self.gap.0);
            let partition = site.extent(place, self.partition.0)?;
            let mut random = Random::keyed(seed, u64::from(number), 32);
            let own = u64::from(random.bits());
            let mut fs = Ext3::format(partition, site.sector_bytes, Ext3Options::default(), own)
                .map_err(|error| site.layout(error))?;
            fs.set_writer(random.bits());
            let counts = (few(self.files), few(self.transactions));
            let mut instance =
                Instance::prepare(self, fs, random, counts, room.saturating_sub(planned))
                    .map_err(|error| error.of(site))?;
            if self.metadata_cached {
                instance.jobs.retain(|job| !matches!(job, Job::Load(_)));
            }
            planned += instance.jobs.len() as u64;
            let files = instance.files.into_iter().map(|file| File {
                extents: file.layout.data,
                size: file.before,
            });
            instances.push(Part::new(files.collect(), instance.jobs));
        }
        Ok(instances)
    }

    /// Adds the files and processes to a host; programs are numbered from `program` on. Returns the
    /// number behind the last.
    ///
    /// # Errors
    ///
    /// If the host refuses a file.
    pub(super) fn add(
        &self,
        instances: &[Part<Job>],
        builder: &mut HostBuilder,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let site = Site::new("postmark", builder.disk());
        Part::add_programs(instances, site, builder, program, |jobs, ids| {
            Transactions { jobs, ids, at: 0 }
        })
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
        site.check_distance("gap", self.gap)?;
        site.check_distance("start", self.start)?;
        site.check_scale(self.scale)
    }
}

/// A file that is there at some time.
struct Mail {
    layout: FileLayout,
    hash: u32,
    /// Bytes before the transactions begin.
    before: u64,
}

/// One thing to do; files by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    Think(Nanos),
    Load(Lba),
    Change(Lba),
    Read { file: u32, offset: u64, len: u64 },
    Write { file: u32, offset: u64, len: u64 },
    Delete(u32),
}

/// What an instance does, worked out before it begins: where a new file lies depends on all that was
/// created and deleted before.
struct Instance {
    fs: Ext3,
    directory: Directory,
    files: Vec<Mail>,
    jobs: Vec<Job>,
    call: u64,
}

/// Why an instance cannot be worked out.
enum Unplanned {
    Layout(LayoutError),
    /// It has more steps than there is room for.
    TooLong,
}

impl Unplanned {
    fn of(self, site: Site) -> BenchmarkError {
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

impl Instance {
    /// Of so many files and transactions, where there is room for `room` steps.
    fn prepare(
        spec: &PostMarkSpec,
        mut fs: Ext3,
        mut random: Random,
        (count, transactions): (u32, u32),
        room: u64,
    ) -> Result<Instance, Unplanned> {
        let mut root = fs.root();
        let directory = fs.make_directory(&mut root, 8)?;
        let mut instance = Instance {
            fs,
            directory,
            files: Vec::new(),
            jobs: Vec::new(),
            call: spec.call.0,
        };
        let (low, high) = (spec.size_low.0, spec.size_high.0);
        let draw = |random: &mut Random| match high - low {
            0 => low,
            range => low + random.below(range),
        };
        // The program's table: a place for each file that there is, twice as many as at the start.
        let mut table: Vec<Option<u32>> = vec![None; count as usize * 2];
        for (place, slot) in table.iter_mut().enumerate().take(count as usize) {
            let size = draw(&mut random);
            instance.make(&mut random, size)?;
            if spec.whole {
                instance.jobs.push(Job::Think(spec.cpu));
                instance.create(place as u32, size);
            } else {
                instance.files[place].before = size;
            }
            *slot = Some(place as u32);
        }
        // The places that are free.
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
            instance.jobs.push(Job::Think(spec.cpu));
            let (_, file) = used(&table, &mut random);
            if random.below(10) < u64::from(spec.bias_read) {
                instance.read(file);
            } else {
                instance.append(&mut random, file, high)?;
            }
            if random.below(10) < u64::from(spec.bias_create) {
                // Behind the last place taken, or else the first free one.
                let place = match table.get(next_place) {
                    Some(None) => Some(next_place),
                    _ => free.first().copied(),
                };
                if let Some(place) = place {
                    free.remove(&place);
                    let size = draw(&mut random);
                    let file = instance.make(&mut random, size)?;
                    instance.create(file, size);
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
        if spec.whole {
            for file in table.into_iter().flatten() {
                instance.jobs.push(Job::Think(spec.cpu));
                instance.delete(file);
            }
        }
        match instance.jobs.len() as u64 <= room {
            true => Ok(instance),
            false => Err(Unplanned::TooLong),
        }
    }

    /// Lays a file down; returns its index.
    fn make(&mut self, random: &mut Random, size: u64) -> Result<u32, LayoutError> {
        let layout = self.fs.make_file(&mut self.directory, NAME_BYTES, size)?;
        let hash = random.bits();
        self.files.push(Mail {
            layout,
            hash,
            before: 0,
        });
        Ok(self.files.len() as u32 - 1)
    }

    /// Finds its name and inode.
    fn open(&mut self, file: u32) {
        let mail = &self.files[file as usize];
        let (first, leaf) = self.fs.lookup(&self.directory, mail.hash);
        let inode = self.fs.inode_block(mail.layout.inode);
        self.jobs.push(Job::Load(first));
        self.jobs.extend(leaf.map(Job::Load));
        self.jobs.push(Job::Load(inode));
    }

    fn read(&mut self, file: u32) {
        self.open(file);
        let size = self.files[file as usize].layout.size;
        self.load_indirect(file, 0);
        for offset in (0..size).step_by(self.call as usize) {
            let len = self.call.min(size - offset);
            self.jobs.push(Job::Read { file, offset, len });
        }
    }

    fn append(&mut self, random: &mut Random, file: u32, high: u64) -> Result<(), LayoutError> {
        let size = self.files[file as usize].layout.size;
        if size >= high {
            return Ok(());
        }
        let more = random.below(high - size) + 1;
        self.open(file);
        let blocks = self.files[file as usize].layout.data.clone();
        self.fs
            .grow(&mut self.files[file as usize].layout, size + more)?;
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

    fn create(&mut self, file: u32, size: u64) {
        let mail = &self.files[file as usize];
        let (first, leaf) = self.fs.lookup(&self.directory, mail.hash);
        let inode = self.fs.inode_block(mail.layout.inode);
        let inodes = self.fs.inode_bitmap(mail.layout.inode);
        let bitmap = mail
            .layout
            .data
            .last()
            .map(|last| self.fs.block_bitmap(last.start));
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

    fn delete(&mut self, file: u32) {
        self.open(file);
        self.load_indirect(file, 0);
        let mail = &self.files[file as usize];
        let (first, leaf) = self.fs.lookup(&self.directory, mail.hash);
        let inode = self.fs.inode_block(mail.layout.inode);
        let inodes = self.fs.inode_bitmap(mail.layout.inode);
        let bitmaps: Vec<Lba> = mail
            .layout
            .data
            .iter()
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
        for offset in (from..from + bytes).step_by(self.call as usize) {
            let len = self.call.min(from + bytes - offset);
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
        let size = self.files[file as usize].layout.size;
        let indirect = &self.files[file as usize].layout.indirect;
        self.jobs.extend(
            indirect
                .iter()
                .filter(|indirect| {
                    indirect.from_block + 1024 > block && indirect.from_block * 4096 < size
                })
                .map(|indirect| Job::Load(indirect.lba)),
        );
    }
}

/// Bytes of a name: a number of four or five digits.
const NAME_BYTES: u32 = 5;

/// A file of the table, each with equal chance, and its place.
fn used(table: &[Option<u32>], random: &mut Random) -> (usize, u32) {
    loop {
        let place = random.below(table.len() as u64) as usize;
        if let Some(file) = table[place] {
            return (place, file);
        }
    }
}

/// Does one thing after the other.
struct Transactions {
    jobs: Arc<[Job]>,
    ids: Vec<FileId>,
    at: usize,
}

impl Behaviour for Transactions {
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
        }
    }
}
