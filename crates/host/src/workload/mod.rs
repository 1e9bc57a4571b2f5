//! Benchmarks: programs whose processes ask a [`Host`](crate::Host) for what theirs did.
//!
//! Each has a struct of plain numbers whose defaults are those of the Stream Scheduling paper (Xu and
//! Jiang, FAST 2011, sections 3.3 and 3.4), and says beside each rule what it rests on. What a
//! process does is a function of these numbers and a seed; it knows no time.
//!
//! | name | struct | programs |
//! |---|---|---|
//! | `par-read` | [`ParReadSpec`] | one for each process |
//! | `grep` | [`GrepSpec`] | one for each instance |
//! | `postmark` | [`PostMarkSpec`] | one for each instance |
//! | `tpch-q19` | [`TpcHSpec`] | one for each instance |
//! | `multi-threads` | [`MultiThreadsSpec`] | one for each process, threads together |
//! | `mpi-io-test` | [`MpiIoSpec`] | one for each |
//!
//! `scale` makes a run shorter: it multiplies what is read (file sizes, numbers of files and
//! transactions), never the distances, the sizes of single requests or the times. Rates at a smaller
//! scale differ where a start-up or a full cache matters, so results of the paper are reproduced at 1.

mod grep;
mod mpi_io;
mod multi_threads;
mod par_read;
mod postmark;
mod tpch;

pub use grep::GrepSpec;
pub use mpi_io::MpiIoSpec;
pub use multi_threads::MultiThreadsSpec;
pub use par_read::ParReadSpec;
pub use postmark::PostMarkSpec;
pub use tpch::TpcHSpec;

use crate::layout::LayoutError;
use crate::spec::{PLANNED_MAX, PROCESSES_MAX};
use crate::{Behaviour, DiskSize, File, FileId, HostBuilder, HostError, ProcessSpec};
use headtime_units::{Bytes, Extent, Lba, Sectors, Time, nearest};
use std::sync::Arc;
use thiserror::Error;

/// Bytes of a page of memory and of a block of a file.
const PAGE: u64 = 4096;

/// Why a benchmark cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BenchmarkError {
    /// No benchmark has this name.
    #[error(
        "unknown benchmark `{found}`; allowed are {}{}",
        BenchmarkSpec::NAMES.join(", "),
        suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    )]
    Unknown {
        /// The text.
        found: String,
        /// The name that is most like it.
        suggestion: Option<&'static str>,
    },
    /// A number is out of range.
    #[error("{benchmark}: {key} is {found}; allowed is {allowed}")]
    Range {
        /// Of which benchmark.
        benchmark: &'static str,
        /// Which.
        key: &'static str,
        /// What was given.
        found: String,
        /// What may be.
        allowed: &'static str,
    },
    /// It does more than can be planned ahead.
    #[error(
        "{benchmark}: more than {most} calls to be planned; make fewer or larger ones, or scale it down"
    )]
    TooLong {
        /// Which benchmark.
        benchmark: &'static str,
        /// How many calls and blocks of metadata all programs of a host may plan.
        most: u64,
    },
    /// Its files do not fit on the disk.
    #[error("{benchmark}: the data ends at byte {end}, the disk at {capacity}")]
    DiskSize {
        /// Which benchmark.
        benchmark: &'static str,
        /// Where the last of its data would end.
        end: u64,
        /// Bytes of the disk.
        capacity: u64,
    },
    /// Its files cannot be laid down.
    #[error("{benchmark}: {source}")]
    Layout {
        /// Which benchmark.
        benchmark: &'static str,
        /// Why.
        source: LayoutError,
    },
    /// The host refuses it.
    #[error("{benchmark}: {source}")]
    Host {
        /// Which benchmark.
        benchmark: &'static str,
        /// Why.
        source: HostError,
    },
}

/// A benchmark with its numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename = "$benchmark", rename_all = "kebab-case")
)]
pub enum BenchmarkSpec {
    /// Processes that each read a file from beginning to end.
    ParRead(ParReadSpec),
    /// Searches through copies of a tree of files.
    Grep(GrepSpec),
    /// Mail servers' small files.
    #[cfg_attr(feature = "serde", serde(rename = "postmark"))]
    PostMark(PostMarkSpec),
    /// A query of a decision-support benchmark.
    #[cfg_attr(feature = "serde", serde(rename = "tpch-q19"))]
    TpcH(TpcHSpec),
    /// Threads that read in strides and keep step.
    MultiThreads(MultiThreadsSpec),
    /// Parallel programs on a striped file system, as one server's disk sees them.
    #[cfg_attr(feature = "serde", serde(rename = "mpi-io-test"))]
    MpiIo(MpiIoSpec),
}

impl BenchmarkSpec {
    /// The names of all benchmarks.
    pub const NAMES: [&'static str; 6] = [
        "par-read",
        "grep",
        "postmark",
        "tpch-q19",
        "multi-threads",
        "mpi-io-test",
    ];

    /// The benchmark with this name and the numbers of the paper.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn from_name(name: &str) -> Result<BenchmarkSpec, BenchmarkError> {
        Ok(match name {
            "par-read" => BenchmarkSpec::ParRead(ParReadSpec::default()),
            "grep" => BenchmarkSpec::Grep(GrepSpec::default()),
            "postmark" => BenchmarkSpec::PostMark(PostMarkSpec::default()),
            "tpch-q19" => BenchmarkSpec::TpcH(TpcHSpec::default()),
            "multi-threads" => BenchmarkSpec::MultiThreads(MultiThreadsSpec::default()),
            "mpi-io-test" => BenchmarkSpec::MpiIo(MpiIoSpec::default()),
            _ => {
                return Err(BenchmarkError::Unknown {
                    found: name.to_owned(),
                    suggestion: nearest(name, BenchmarkSpec::NAMES),
                });
            }
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            BenchmarkSpec::ParRead(_) => "par-read",
            BenchmarkSpec::Grep(_) => "grep",
            BenchmarkSpec::PostMark(_) => "postmark",
            BenchmarkSpec::TpcH(_) => "tpch-q19",
            BenchmarkSpec::MultiThreads(_) => "multi-threads",
            BenchmarkSpec::MpiIo(_) => "mpi-io-test",
        }
    }

    /// Works out what is the same on every host with this disk. The seed fixes everything random
    /// about it.
    ///
    /// # Errors
    ///
    /// If one of its numbers is out of range, or its data does not fit on the disk, as far as that is
    /// found out here.
    pub fn lay(&self, disk: DiskSize, seed: u64) -> Result<Laid, BenchmarkError> {
        self.lay_within(disk, seed, PLANNED_MAX)
    }

    /// The same where there is room for `room` steps that are planned ahead.
    fn lay_within(&self, disk: DiskSize, seed: u64, room: u64) -> Result<Laid, BenchmarkError> {
        Ok(Laid(match self {
            BenchmarkSpec::Grep(spec) => Lay::Grep(spec.lay(disk, seed, room)?.into()),
            BenchmarkSpec::PostMark(spec) => Lay::PostMark(spec.lay(disk, seed, room)?.into()),
            BenchmarkSpec::ParRead(_)
            | BenchmarkSpec::TpcH(_)
            | BenchmarkSpec::MultiThreads(_)
            | BenchmarkSpec::MpiIo(_) => Lay::Soon(seed),
        }))
    }

    /// Adds its files and processes to a host. Its programs are numbered from `program` on; returns
    /// the number behind the last. The seed fixes everything random about it.
    ///
    /// # Errors
    ///
    /// If one of its numbers is out of range, or its data does not fit on the disk.
    pub fn add(
        &self,
        builder: &mut HostBuilder,
        seed: u64,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let laid = self.lay_within(builder.disk(), seed, builder.room_to_plan())?;
        self.add_laid(&laid, builder, program)
    }

    /// Adds its files and processes to a host, as they were laid for a disk of its size.
    ///
    /// # Errors
    ///
    /// As [`BenchmarkSpec::add`].
    ///
    /// # Panics
    ///
    /// If they were laid for another benchmark.
    pub fn add_laid(
        &self,
        laid: &Laid,
        builder: &mut HostBuilder,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        match (self, &laid.0) {
            (BenchmarkSpec::ParRead(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::Grep(spec), Lay::Grep(laid)) => spec.add(laid, builder, program),
            (BenchmarkSpec::PostMark(spec), Lay::PostMark(laid)) => {
                spec.add(laid, builder, program)
            }
            (BenchmarkSpec::TpcH(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::MultiThreads(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::MpiIo(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            _ => panic!("laid for another benchmark than {}", self.name()),
        }
    }
}

/// What of a benchmark is the same on every host with a disk of one size: the files as they lie, and
/// what its processes do with them. Worked out once for many runs, and cheap to clone.
#[derive(Clone)]
pub struct Laid(Lay);

#[derive(Clone)]
enum Lay {
    Grep(Arc<[Part<grep::Job>]>),
    PostMark(Arc<[Part<postmark::Job>]>),
    /// Nothing that takes time.
    Soon(u64),
}

/// The files of one process, and what it does; files are named there by their index.
struct Part<J> {
    files: Vec<File>,
    jobs: Arc<[J]>,
}

impl<J> Part<J> {
    fn new(files: Vec<File>, jobs: Vec<J>) -> Part<J> {
        Part {
            files,
            jobs: jobs.into(),
        }
    }

    /// Lays the files down on a host, and counts what is planned; returns their names by their index.
    fn add_files(
        &self,
        site: Site,
        builder: &mut HostBuilder,
    ) -> Result<Vec<FileId>, BenchmarkError> {
        let steps = self.jobs.len() as u64;
        site.check_plan(builder.room_to_plan(), steps)?;
        builder.planned += steps;
        let add = |file: &File| builder.add_file(file.clone());
        let ids = self.files.iter().map(add).collect::<Result<_, _>>();
        ids.map_err(|error| site.host(error))
    }

    /// Adds a program of one process for each part, numbered from `program` on. `behaviour` makes what
    /// the process does from its jobs and the names of its files. Returns the number behind the last.
    fn add_programs<B: Behaviour + 'static>(
        parts: &[Part<J>],
        site: Site,
        builder: &mut HostBuilder,
        program: u32,
        behaviour: impl Fn(Arc<[J]>, Vec<FileId>) -> B,
    ) -> Result<u32, BenchmarkError> {
        for (number, part) in (program..).zip(parts) {
            let ids = part.add_files(site, builder)?;
            builder.add_process(ProcessSpec {
                program: number,
                behaviour: Box::new(behaviour(Arc::clone(&part.jobs), ids)),
                served_by: None,
                start: Time::ZERO,
            });
        }
        Ok(program + parts.len() as u32)
    }
}

/// A benchmark's name, for its errors, and where it is laid down.
#[derive(Clone, Copy)]
struct Site {
    benchmark: &'static str,
    sector_bytes: u32,
    capacity: Sectors,
}

impl Site {
    fn new(benchmark: &'static str, disk: DiskSize) -> Site {
        Site {
            benchmark,
            sector_bytes: disk.sector_bytes,
            capacity: disk.capacity,
        }
    }

    /// An error unless `good`.
    fn check(
        self,
        good: bool,
        key: &'static str,
        found: impl ToString,
        allowed: &'static str,
    ) -> Result<(), BenchmarkError> {
        if good {
            return Ok(());
        }
        Err(BenchmarkError::Range {
            benchmark: self.benchmark,
            key,
            found: found.to_string(),
            allowed,
        })
    }

    fn check_scale(self, scale: f64) -> Result<(), BenchmarkError> {
        let good = scale > 0.0 && scale <= 1.0;
        self.check(good, "scale", scale, "more than 0, at most 1")
    }

    fn check_count(self, key: &'static str, count: u32) -> Result<(), BenchmarkError> {
        self.check((1..=4096).contains(&count), key, count, "1 to 4096")
    }

    fn check_size(self, key: &'static str, size: Bytes) -> Result<(), BenchmarkError> {
        self.check((1..=1 << 44).contains(&size.0), key, size, "1B to 16TiB")
    }

    /// For a distance or a place, which may be zero.
    fn check_distance(self, key: &'static str, size: Bytes) -> Result<(), BenchmarkError> {
        self.check(size.0 <= 1 << 50, key, size, "at most 1024TiB")
    }

    /// For one call.
    fn check_call(self, key: &'static str, size: Bytes) -> Result<(), BenchmarkError> {
        self.check((1..=1 << 30).contains(&size.0), key, size, "1B to 1GiB")
    }

    /// For so many processes more.
    fn check_processes(
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

    /// For so many steps planned ahead where there is room for `room`.
    fn check_plan(self, room: u64, steps: u64) -> Result<(), BenchmarkError> {
        match steps <= room {
            true => Ok(()),
            false => Err(self.too_long()),
        }
    }

    fn too_long(self) -> BenchmarkError {
        BenchmarkError::TooLong {
            benchmark: self.benchmark,
            most: PLANNED_MAX,
        }
    }

    fn layout(self, source: LayoutError) -> BenchmarkError {
        BenchmarkError::Layout {
            benchmark: self.benchmark,
            source,
        }
    }

    fn host(self, source: HostError) -> BenchmarkError {
        BenchmarkError::Host {
            benchmark: self.benchmark,
            source,
        }
    }

    /// So many bytes of the disk from a byte on, moved up to a whole page, as whole pages.
    fn extent(self, start: u64, bytes: u64) -> Result<Extent, BenchmarkError> {
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

    /// A file in one piece from a byte of the disk on. That ext3 puts an indirect block of 4 KiB
    /// between every 4 MiB of data, and tables of 2 MiB between every 128 MiB, is left out.
    fn file(self, start: u64, size: u64) -> Result<File, BenchmarkError> {
        Ok(File {
            extents: vec![self.extent(start, size)?],
            size,
        })
    }
}

/// A size made smaller: whole pages, at least one, and never larger than it was.
fn scaled(size: Bytes, scale: f64) -> u64 {
    if scale == 1.0 {
        return size.0;
    }
    let pages = (size.0 as f64 * scale / PAGE as f64) as u64;
    (pages.max(1) * PAGE).min(size.0)
}

#[cfg(test)]
mod tests;
