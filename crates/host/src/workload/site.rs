//! Common parts of benchmarks: errors, checks, places of files, and parts of programs.

use crate::builder::{PLANNED_MAX, PROCESSES_MAX};
use crate::layout::{BLOCK_BYTES, Ext3, Ext3Options, LayoutError};
use crate::spec::PAGE;
use crate::{BarrierId, Behaviour, DiskSize, File, FileId, HostBuilder, HostError, ProcessSpec};
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};
use headtime_workload::Random;
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

/// The names of all benchmarks.
pub(super) const NAMES: [&str; 19] = [
    "par-read",
    "grep",
    "postmark",
    "tpch-q19",
    "multi-threads",
    "mpi-io-test",
    "proftpd",
    "transactions",
    "sysbench",
    "bonnie",
    "iozone",
    "kernel-compile",
    "small-files",
    "full-seq",
    "seq-rand",
    "backup",
    "ior-mpi-io",
    "btio",
    "s3asim",
];

/// Reason why a benchmark cannot be built.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BenchmarkError {
    /// No benchmark has this name.
    #[error(
        "unknown benchmark `{found}`; allowed are {}{}",
        NAMES.join(", "),
        suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    )]
    Unknown {
        found: String,
        /// The most similar name of a benchmark.
        suggestion: Option<&'static str>,
    },
    /// A number is out of range.
    #[error("{benchmark}: {key} is {found}; allowed is {allowed}")]
    Range {
        benchmark: &'static str,
        key: &'static str,
        found: String,
        allowed: Cow<'static, str>,
    },
    /// The benchmark has more steps than can be planned in advance.
    #[error(
        "{benchmark}: more than {most} calls to be planned; make fewer or larger ones, or scale it down"
    )]
    TooLong {
        benchmark: &'static str,
        /// Most calls and metadata blocks that all programs of a host may plan.
        most: u64,
    },
    /// The benchmark's files do not fit on the disk.
    #[error("{benchmark}: the data ends at byte {end}, the disk at {capacity}")]
    DiskSize {
        benchmark: &'static str,
        /// Byte at which the data would end.
        end: u64,
        /// Bytes of the disk.
        capacity: u64,
    },
    /// The benchmark's files cannot be laid out.
    #[error("{benchmark}: {source}")]
    Layout {
        benchmark: &'static str,
        source: LayoutError,
    },
    /// The host refuses the benchmark.
    #[error("{benchmark}: {source}")]
    Host {
        benchmark: &'static str,
        source: HostError,
    },
}

/// Files of one program, and jobs of each of its processes. Jobs name files by index.
pub(super) struct Part<J> {
    files: Vec<File>,
    jobs: Vec<Arc<[J]>>,
}

impl<J> Part<J> {
    pub fn new(files: Vec<File>, jobs: impl IntoIterator<Item = Vec<J>>) -> Part<J> {
        Part {
            files,
            jobs: jobs.into_iter().map(Vec::into).collect(),
        }
    }

    /// Adds the files to a host, and counts the planned steps. Returns the files' names by index.
    fn add_files(
        &self,
        site: Site,
        builder: &mut HostBuilder,
    ) -> Result<Arc<[FileId]>, BenchmarkError> {
        let steps = self.jobs.iter().map(|jobs| jobs.len() as u64).sum();
        site.check_plan(builder.room_to_plan(), steps)?;
        builder.planned += steps;
        let add = |file: &File| builder.add_file(file.clone());
        let ids = self.files.iter().map(add).collect::<Result<_, _>>();
        ids.map_err(|error| site.host(error))
    }

    /// Adds a program for each part, numbered from `program` on. `behaviour` makes the behaviour of a process from its
    /// jobs, the names of the files, and the program's barrier. A program of one process has no barrier. Returns the
    /// number behind the last program.
    pub fn add_programs<B: Behaviour + 'static>(
        parts: &[Part<J>],
        site: Site,
        builder: &mut HostBuilder,
        program: u32,
        behaviour: impl Fn(Arc<[J]>, Arc<[FileId]>, Option<BarrierId>) -> B,
    ) -> Result<u32, BenchmarkError> {
        for (number, part) in (program..).zip(parts) {
            let ids = part.add_files(site, builder)?;
            let several = part.jobs.len() > 1;
            let barrier = several.then(|| builder.add_barrier(part.jobs.len() as u32));
            for jobs in &part.jobs {
                let behaviour = behaviour(Arc::clone(jobs), Arc::clone(&ids), barrier);
                add_process(builder, number, behaviour);
            }
        }
        Ok(program + parts.len() as u32)
    }
}

/// Name of a benchmark, for errors, and size of the disk for its files.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub benchmark: &'static str,
    pub sector_bytes: u32,
    pub capacity: Sectors,
}

impl Site {
    pub fn new(benchmark: &'static str, disk: DiskSize) -> Site {
        Site {
            benchmark,
            sector_bytes: disk.sector_bytes,
            capacity: disk.capacity,
        }
    }

    /// Returns an error unless `good`.
    pub fn check(
        self,
        good: bool,
        key: &'static str,
        found: impl ToString,
        allowed: &'static str,
    ) -> Result<(), BenchmarkError> {
        match good {
            true => Ok(()),
            false => Err(self.refused(key, found, allowed)),
        }
    }

    /// Error for a value that is not allowed.
    pub fn refused(
        self,
        key: &'static str,
        found: impl ToString,
        allowed: impl Into<Cow<'static, str>>,
    ) -> BenchmarkError {
        BenchmarkError::Range {
            benchmark: self.benchmark,
            key,
            found: found.to_string(),
            allowed: allowed.into(),
        }
    }

    pub fn check_scale(self, scale: f64) -> Result<(), BenchmarkError> {
        let good = scale > 0.0 && scale <= 1.0;
        self.check(good, "scale", scale, "more than 0, at most 1")
    }

    pub fn check_count(self, key: &'static str, count: u32) -> Result<(), BenchmarkError> {
        self.check((1..=4096).contains(&count), key, count, "1 to 4096")
    }

    pub fn check_size(self, key: &'static str, size: Bytes) -> Result<(), BenchmarkError> {
        self.check((1..=1 << 44).contains(&size.0), key, size, "1B to 16TiB")
    }

    /// Checks a distance or a place, which may be zero.
    pub fn check_distance(self, key: &'static str, size: Bytes) -> Result<(), BenchmarkError> {
        self.check(size.0 <= 1 << 50, key, size, "at most 1024TiB")
    }

    /// Checks the size of one call.
    pub fn check_call(self, key: &'static str, size: Bytes) -> Result<(), BenchmarkError> {
        self.check((1..=1 << 30).contains(&size.0), key, size, "1B to 1GiB")
    }

    /// Checks the gap, start and scale of files that lie one behind the other.
    pub fn check_place(self, gap: Bytes, start: Bytes, scale: f64) -> Result<(), BenchmarkError> {
        self.check_distance("gap", gap)?;
        self.check_distance("start", start)?;
        self.check_scale(scale)
    }

    /// Checks that the host has room for `programs` programs of `each` processes.
    pub fn check_processes(
        self,
        builder: &HostBuilder,
        key: &'static str,
        programs: u32,
        each: u32,
    ) -> Result<(), BenchmarkError> {
        let room = PROCESSES_MAX.saturating_sub(builder.processes.len()) as u64;
        let good = u64::from(programs) * u64::from(each) <= room;
        self.check(good, key, each, "at most 1000000 processes in all")
    }

    /// Checks that `steps` planned steps fit into `room`.
    pub fn check_plan(self, room: u64, steps: u64) -> Result<(), BenchmarkError> {
        match steps <= room {
            true => Ok(()),
            false => Err(self.too_long()),
        }
    }

    pub fn too_long(self) -> BenchmarkError {
        BenchmarkError::TooLong {
            benchmark: self.benchmark,
            most: PLANNED_MAX,
        }
    }

    pub fn layout(self, source: LayoutError) -> BenchmarkError {
        BenchmarkError::Layout {
            benchmark: self.benchmark,
            source,
        }
    }

    pub fn host(self, source: HostError) -> BenchmarkError {
        BenchmarkError::Host {
            benchmark: self.benchmark,
            source,
        }
    }

    /// Extent of `bytes` bytes of the disk from byte `start` on. The start is moved up to a page boundary, and the
    /// length is rounded up to whole pages.
    pub fn extent(self, start: u64, bytes: u64) -> Result<Extent, BenchmarkError> {
        let sectors = PAGE / u64::from(self.sector_bytes);
        let first = start.div_ceil(PAGE) * sectors;
        let len = bytes.div_ceil(PAGE) * sectors;
        if first + len > self.capacity.get() {
            return Err(BenchmarkError::DiskSize {
                benchmark: self.benchmark,
                end: (first + len) * u64::from(self.sector_bytes),
                capacity: self.capacity.bytes(self.sector_bytes),
            });
        }
        Ok(Extent::new(Lba::new(first), Sectors::new(len)))
    }

    /// Adds a file in one piece from a byte of the disk on. On ext3, an indirect block of 4 KiB lies between every 4
    /// MiB of data, and tables of 2 MiB between every 128 MiB. These interruptions are left out.
    pub fn add_file(
        self,
        builder: &mut HostBuilder,
        start: u64,
        size: u64,
    ) -> Result<FileId, BenchmarkError> {
        self.add_file_with(builder, start, size, size)
    }

    /// Adds an empty file with room for `bytes` bytes.
    pub fn add_room(
        self,
        builder: &mut HostBuilder,
        start: u64,
        bytes: u64,
    ) -> Result<FileId, BenchmarkError> {
        self.add_file_with(builder, start, bytes, 0)
    }

    fn add_file_with(
        self,
        builder: &mut HostBuilder,
        start: u64,
        bytes: u64,
        size: u64,
    ) -> Result<FileId, BenchmarkError> {
        let extents = vec![self.extent(start, bytes)?];
        let added = builder.add_file(File { extents, size });
        added.map_err(|error| self.host(error))
    }

    /// Opens a file once more, under another name.
    pub fn reopen(self, builder: &mut HostBuilder, file: FileId) -> Result<FileId, BenchmarkError> {
        builder.reopen(file).map_err(|error| self.host(error))
    }

    /// Makes an ext3 of `bytes` bytes from byte `start` of the disk on. The share `aged` of the file system was taken
    /// before, and left holes of the size `hole`. Returns the file system, and the number that fixes its random
    /// choices.
    pub fn ext3(
        self,
        start: u64,
        bytes: u64,
        (aged, hole): (f64, Bytes),
        random: &mut Random,
    ) -> Result<(Ext3, u64), BenchmarkError> {
        let own = u64::from(random.bits());
        let partition = self.extent(start, bytes)?;
        let layout = |error| self.layout(error);
        let options = Ext3Options::default();
        let mut fs = Ext3::format(partition, self.sector_bytes, options, own).map_err(layout)?;
        fs.age(aged, hole.0 as f64 / BLOCK_BYTES as f64)
            .map_err(layout)?;
        fs.set_writer(random.bits());
        Ok((fs, own))
    }
}

/// Adds a process of a program. The process starts at once.
pub(super) fn add_process(
    builder: &mut HostBuilder,
    program: u32,
    behaviour: impl Behaviour + 'static,
) {
    builder.add_process(ProcessSpec {
        program,
        behaviour: Box::new(behaviour),
        served_by: None,
        start: Time::ZERO,
    });
}

/// First byte of item `number` in a row of items with `size` bytes each and `gap` bytes between them.
pub(super) fn beside(start: Bytes, number: u32, size: u64, gap: Bytes) -> u64 {
    start.0 + u64::from(number) * (size + gap.0)
}

/// Key for a process of a program.
pub(super) fn pair(program: u32, process: u32) -> u64 {
    u64::from(program) << 32 | u64::from(process)
}

/// Number of calls of one process when `processes` processes share `all` calls. If the calls do not divide evenly, the
/// first processes make one call more.
pub(super) fn share(all: u32, processes: u32, process: u32) -> u32 {
    all / processes + u32::from(process < all % processes)
}

/// Scales a size down to whole pages: at least one page, and never more than the size.
pub(super) fn scaled(size: Bytes, scale: f64) -> u64 {
    if scale == 1.0 {
        return size.0;
    }
    let pages = (size.0 as f64 * scale / PAGE as f64) as u64;
    (pages.max(1) * PAGE).min(size.0)
}

/// Scales a count down, to at least one.
pub(super) fn scaled_count(count: u32, scale: f64) -> u32 {
    ((f64::from(count) * scale) as u32).max(1)
}

/// Time for `bytes` bytes at `each` per KiB.
pub(super) fn of_kib(each: Nanos, bytes: u64) -> Nanos {
    Nanos::from_nanos(each.as_nanos().saturating_mul(bytes) / 1024)
}
