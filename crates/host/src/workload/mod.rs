//! Benchmarks: programs that make a [`Host`](crate::Host) issue the requests of real benchmarks.
//!
//! Each benchmark has a struct of plain numbers. The first seven have the defaults of the Stream Scheduling paper (Xu
//! and Jiang, FAST 2011, sections 3.3 and 3.4). `small-files` has the defaults of Lumb, Schindler and Ganger (FAST
//! 2002). The source of the six before `replay` is the U-Shape paper (Zhang, Davis and Jiang, SC 2011). The source of
//! the others is the NCQ paper (Yu, Shin, Eom and Yeom, ACM TOS 6(1), 2010). Each struct names its sources. The steps
//! of a process are a function of these numbers and a seed, not of time.
//!
//! | name | struct | programs |
//! |---|---|---|
//! | `par-read` | [`ParReadSpec`] | one for each process |
//! | `grep` | [`GrepSpec`] | one for each instance |
//! | `postmark` | [`PostMarkSpec`] | one for each instance |
//! | `tpch-q19` | [`TpcHSpec`] | one for each instance |
//! | `multi-threads` | [`MultiThreadsSpec`] | one for each process, threads together |
//! | `mpi-io-test` | [`MpiIoSpec`] | one for each |
//! | `proftpd` | [`ProFtpdSpec`] | one for each client |
//! | `transactions` | [`TransactionsSpec`] | one |
//! | `sysbench` | [`SysbenchSpec`] | one |
//! | `bonnie` | [`BonnieSpec`] | one for each instance |
//! | `iozone` | [`IozoneSpec`] | one for each instance |
//! | `kernel-compile` | [`KernelCompileSpec`] | one, processes together |
//! | `small-files` | [`SmallFilesSpec`] | one |
//! | `full-seq` | [`FullSeqSpec`] | one |
//! | `seq-rand` | [`SeqRandSpec`] | one |
//! | `backup` | [`BackupSpec`] | one |
//! | `ior-mpi-io` | [`IorSpec`] | one |
//! | `btio` | [`BtioSpec`] | one |
//! | `s3asim` | [`S3aSimSpec`] | one |
//! | `replay` | [`ReplaySpec`] | one, a process for each device of a trace |
//!
//! `scale` makes a run shorter. The factor multiplies file sizes, and numbers of files and transactions. Distances,
//! sizes of single requests, and times stay as they are. Rates at a smaller scale differ where a start-up or a full
//! cache matters, so results of the paper are reproduced at 1.

mod backup;
mod bonnie;
mod btio;
mod grep;
mod in_step;
mod ior;
mod iozone;
mod kernel_compile;
mod mpi_io;
mod multi_threads;
mod par_read;
mod passes;
mod planned;
mod postmark;
mod proftpd;
mod replay;
mod s3asim;
mod site;
mod small_files;
mod sysbench;
mod tpch;
mod transactions;

pub use backup::BackupSpec;
pub use bonnie::BonnieSpec;
pub use btio::BtioSpec;
pub use grep::GrepSpec;
pub use in_step::{FullSeqSpec, SeqRandSpec};
pub use ior::IorSpec;
pub use iozone::IozoneSpec;
pub use kernel_compile::KernelCompileSpec;
pub use mpi_io::MpiIoSpec;
pub use multi_threads::MultiThreadsSpec;
pub use par_read::ParReadSpec;
pub use postmark::PostMarkSpec;
pub use proftpd::ProFtpdSpec;
pub use replay::{ReplaySpec, Traced};
pub use s3asim::S3aSimSpec;
pub use site::BenchmarkError;
pub use small_files::SmallFilesSpec;
pub use sysbench::{Access, SysbenchSpec};
pub use tpch::TpcHSpec;
pub use transactions::TransactionsSpec;

use crate::builder::PLANNED_MAX;
use crate::{DiskSize, HostBuilder};
use headtime_units::nearest;
use site::{NAMES, Part, Site};
use std::sync::Arc;

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
    /// An FTP server that sends files.
    #[cfg_attr(feature = "serde", serde(rename = "proftpd"))]
    ProFtpd(ProFtpdSpec),
    /// Calls at random places of the whole device.
    Transactions(TransactionsSpec),
    /// Files read at random or in sequence.
    Sysbench(SysbenchSpec),
    /// A large file written, rewritten, read, and read at random.
    Bonnie(BonnieSpec),
    /// Files of many sizes in records of many sizes.
    Iozone(IozoneSpec),
    /// A kernel that is compiled.
    KernelCompile(KernelCompileSpec),
    /// Small files read at random.
    SmallFiles(SmallFilesSpec),
    /// A file read by processes in step.
    FullSeq(FullSeqSpec),
    /// A file read by processes in step, in sequence and at random in turn.
    SeqRand(SeqRandSpec),
    /// A file read until all others have ended.
    Backup(BackupSpec),
    /// Parts of a file read in small calls, between two checkpoints.
    #[cfg_attr(feature = "serde", serde(rename = "ior-mpi-io"))]
    Ior(IorSpec),
    /// A field written row by row now and then.
    Btio(BtioSpec),
    /// A database searched in parallel.
    #[cfg_attr(feature = "serde", serde(rename = "s3asim"))]
    S3aSim(S3aSimSpec),
    /// A recorded trace.
    Replay(ReplaySpec),
}

impl BenchmarkSpec {
    /// The names of all benchmarks that need numbers alone: all but `replay`, which needs a trace.
    pub const NAMES: [&'static str; 19] = NAMES;

    /// The benchmark with this name and the numbers of the paper.
    ///
    /// # Errors
    ///
    /// If no benchmark has this name.
    pub fn from_name(name: &str) -> Result<BenchmarkSpec, BenchmarkError> {
        Ok(match name {
            "par-read" => BenchmarkSpec::ParRead(ParReadSpec::default()),
            "grep" => BenchmarkSpec::Grep(GrepSpec::default()),
            "postmark" => BenchmarkSpec::PostMark(PostMarkSpec::default()),
            "tpch-q19" => BenchmarkSpec::TpcH(TpcHSpec::default()),
            "multi-threads" => BenchmarkSpec::MultiThreads(MultiThreadsSpec::default()),
            "mpi-io-test" => BenchmarkSpec::MpiIo(MpiIoSpec::default()),
            "proftpd" => BenchmarkSpec::ProFtpd(ProFtpdSpec::default()),
            "transactions" => BenchmarkSpec::Transactions(TransactionsSpec::default()),
            "sysbench" => BenchmarkSpec::Sysbench(SysbenchSpec::default()),
            "bonnie" => BenchmarkSpec::Bonnie(BonnieSpec::default()),
            "iozone" => BenchmarkSpec::Iozone(IozoneSpec::default()),
            "kernel-compile" => BenchmarkSpec::KernelCompile(KernelCompileSpec::default()),
            "small-files" => BenchmarkSpec::SmallFiles(SmallFilesSpec::default()),
            "full-seq" => BenchmarkSpec::FullSeq(FullSeqSpec::default()),
            "seq-rand" => BenchmarkSpec::SeqRand(SeqRandSpec::default()),
            "backup" => BenchmarkSpec::Backup(BackupSpec::default()),
            "ior-mpi-io" => BenchmarkSpec::Ior(IorSpec::default()),
            "btio" => BenchmarkSpec::Btio(BtioSpec::default()),
            "s3asim" => BenchmarkSpec::S3aSim(S3aSimSpec::default()),
            _ => {
                return Err(BenchmarkError::Unknown {
                    found: name.to_owned(),
                    suggestion: nearest(name, BenchmarkSpec::NAMES),
                });
            }
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            BenchmarkSpec::ParRead(_) => "par-read",
            BenchmarkSpec::Grep(_) => "grep",
            BenchmarkSpec::PostMark(_) => "postmark",
            BenchmarkSpec::TpcH(_) => "tpch-q19",
            BenchmarkSpec::MultiThreads(_) => "multi-threads",
            BenchmarkSpec::MpiIo(_) => "mpi-io-test",
            BenchmarkSpec::ProFtpd(_) => "proftpd",
            BenchmarkSpec::Transactions(_) => "transactions",
            BenchmarkSpec::Sysbench(_) => "sysbench",
            BenchmarkSpec::Bonnie(_) => "bonnie",
            BenchmarkSpec::Iozone(_) => "iozone",
            BenchmarkSpec::KernelCompile(_) => "kernel-compile",
            BenchmarkSpec::SmallFiles(_) => "small-files",
            BenchmarkSpec::FullSeq(_) => "full-seq",
            BenchmarkSpec::SeqRand(_) => "seq-rand",
            BenchmarkSpec::Backup(_) => "backup",
            BenchmarkSpec::Ior(_) => "ior-mpi-io",
            BenchmarkSpec::Btio(_) => "btio",
            BenchmarkSpec::S3aSim(_) => "s3asim",
            BenchmarkSpec::Replay(_) => "replay",
        }
    }

    /// Returns true if the benchmark runs until all other benchmarks have ended.
    pub fn is_endless(&self) -> bool {
        matches!(self, BenchmarkSpec::Backup(_))
    }

    /// Returns true if the benchmark runs on the nodes of a [cluster](crate::cluster). These benchmarks have files of
    /// one extent, and need neither metadata nor workers of a host.
    pub fn is_for_clusters(&self) -> bool {
        !matches!(
            self,
            BenchmarkSpec::Grep(_)
                | BenchmarkSpec::PostMark(_)
                | BenchmarkSpec::KernelCompile(_)
                | BenchmarkSpec::SmallFiles(_)
                | BenchmarkSpec::MpiIo(_)
                | BenchmarkSpec::Replay(_)
        )
    }

    /// Computes the part of the benchmark that is the same on every host with this disk. The seed fixes all random
    /// choices.
    ///
    /// # Errors
    ///
    /// If a number is out of range, or the data does not fit on the disk. Most benchmarks are checked only in
    /// [`BenchmarkSpec::add`].
    pub fn lay(&self, disk: DiskSize, seed: u64) -> Result<Laid, BenchmarkError> {
        self.lay_within(disk, seed, PLANNED_MAX)
    }

    /// As [`BenchmarkSpec::lay`], with room for `room` planned steps.
    fn lay_within(&self, disk: DiskSize, seed: u64, room: u64) -> Result<Laid, BenchmarkError> {
        Ok(Laid(match self {
            BenchmarkSpec::Grep(spec) => Lay::Grep(spec.lay(disk, seed, room)?.into()),
            BenchmarkSpec::PostMark(spec) => {
                Lay::Planned(self.name(), spec.lay(disk, seed, room)?.into())
            }
            BenchmarkSpec::KernelCompile(spec) => {
                Lay::Planned(self.name(), spec.lay(disk, seed, room)?.into())
            }
            BenchmarkSpec::SmallFiles(spec) => {
                Lay::Planned(self.name(), spec.lay(disk, seed, room)?.into())
            }
            BenchmarkSpec::ParRead(_)
            | BenchmarkSpec::TpcH(_)
            | BenchmarkSpec::MultiThreads(_)
            | BenchmarkSpec::MpiIo(_)
            | BenchmarkSpec::ProFtpd(_)
            | BenchmarkSpec::Transactions(_)
            | BenchmarkSpec::Sysbench(_)
            | BenchmarkSpec::Bonnie(_)
            | BenchmarkSpec::Iozone(_)
            | BenchmarkSpec::FullSeq(_)
            | BenchmarkSpec::SeqRand(_)
            | BenchmarkSpec::Backup(_)
            | BenchmarkSpec::Ior(_)
            | BenchmarkSpec::Btio(_)
            | BenchmarkSpec::S3aSim(_) => Lay::Soon(seed),
            // Without the trace there is nothing to do.
            BenchmarkSpec::Replay(_) => Lay::Traced(Vec::new().into()),
        }))
    }

    /// Adds the benchmark's files and processes to a host. Programs are numbered from `program` on. Returns the number
    /// behind the last program. The seed fixes all random choices.
    ///
    /// # Errors
    ///
    /// If a number is out of range, or the data does not fit on the disk.
    pub fn add(
        &self,
        builder: &mut HostBuilder,
        seed: u64,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let laid = self.lay_within(builder.disk(), seed, builder.room_to_plan())?;
        self.add_laid(&laid, builder, program)
    }

    /// Adds the benchmark's files and processes to a host, from a layout for a disk of the same size.
    ///
    /// # Errors
    ///
    /// As [`BenchmarkSpec::add`].
    ///
    /// # Panics
    ///
    /// If the layout is of another benchmark.
    pub fn add_laid(
        &self,
        laid: &Laid,
        builder: &mut HostBuilder,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        match (self, &laid.0) {
            (BenchmarkSpec::ParRead(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::Grep(spec), Lay::Grep(laid)) => spec.add(laid, builder, program),
            (_, Lay::Planned(name, laid)) if *name == self.name() => {
                planned::add(laid, Site::new(name, builder.disk()), builder, program)
            }
            (BenchmarkSpec::TpcH(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::MultiThreads(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::MpiIo(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::ProFtpd(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::Transactions(spec), Lay::Soon(seed)) => {
                spec.add(builder, *seed, program)
            }
            (BenchmarkSpec::Sysbench(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::Bonnie(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::Iozone(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::FullSeq(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::SeqRand(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::Backup(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::Ior(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::Btio(spec), Lay::Soon(_)) => spec.add(builder, program),
            (BenchmarkSpec::S3aSim(spec), Lay::Soon(seed)) => spec.add(builder, *seed, program),
            (BenchmarkSpec::Replay(_), Lay::Traced(devices)) => {
                ReplaySpec::add(devices, builder, program)
            }
            _ => panic!("laid for another benchmark than {}", self.name()),
        }
    }
}

/// The part of a benchmark that is the same on every host with a disk of one size: the layout of
/// its files, and the steps of its processes. Computed once for many runs, and cheap to clone.
#[derive(Clone)]
pub struct Laid(Lay);

#[derive(Clone)]
enum Lay {
    Grep(Arc<[Part<grep::GrepJob>]>),
    /// Planned steps of the benchmark with this name.
    Planned(&'static str, Arc<[Part<planned::Job>]>),
    /// Requests of each device of a trace.
    Traced(Arc<[Arc<[Traced]>]>),
    /// No layout yet, only the seed. Files and steps take little time to compute later.
    Soon(u64),
}

#[cfg(test)]
mod tests;
