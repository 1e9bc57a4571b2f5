//! Programs of several processes that read a shared file in step.

use super::site::{BenchmarkError, Site, add_process};
use crate::{BarrierId, Behaviour, FileId, HostBuilder, Step};
use headtime_units::Bytes;
use headtime_workload::Random;

/// `full-seq`: the processes of a parallel program read one file block by block, and meet before each call.
///
/// Process i of P reads block i + jP at call j. The file is read in sequence by all together, and each block by one
/// process. PVFS2's mpi-io-test does the same, so a scenario gives that name to a `full-seq`.
///
/// Rests on: the U-Shape paper (Zhang, Davis and Jiang, SC 2011), sections 2 and 4.1.2, for processes, file and block.
/// 10 GiB in 42.3 s are the paper's 242 MB/s if MB means MiB. The program calls collectively. ROMIO makes independent
/// calls of collective ones whose blocks do not interleave, after an exchange that synchronises. Trust: high. Left out:
/// computing.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct FullSeqSpec {
    /// Processes; 1 to 4096, default 8.
    pub processes: u32,
    /// Bytes of the file; default 10 GiB.
    pub size: Bytes,
    /// Bytes of a block, which is a call; default 64 KiB.
    pub read: Bytes,
    /// Place of the file on the disk; default 0.
    pub start: Bytes,
}

impl Default for FullSeqSpec {
    fn default() -> FullSeqSpec {
        FullSeqSpec {
            processes: 8,
            size: Bytes(10 << 30),
            read: Bytes(64 << 10),
            start: Bytes(0),
        }
    }
}

impl FullSeqSpec {
    /// Adds the file and processes to a host; the program has the number `program`. Returns the next number.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the file does not fit on the disk.
    pub fn add(&self, builder: &mut HostBuilder, program: u32) -> Result<u32, BenchmarkError> {
        let site = Site::new("full-seq", builder.disk());
        in_step(site, self, None, builder, program)
    }
}

/// `seq-rand`: as [`FullSeqSpec`], but every second phase reads random blocks.
///
/// A phase of `phase` bytes reads in sequence, and the next phase reads blocks at random. The program ends when it has
/// read as many bytes as the file has. A sequential phase begins at the offset that equals the number of bytes read so
/// far. A random block is any block of the file with the same probability, read before or not.
///
/// Rests on: the same paper, section 2: 500 MB of each kind in turn, blocks of 64 KiB, eight processes. Trust: high for
/// these. Open: whether random places are multiples of a block, and whether a block is read twice.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct SeqRandSpec {
    /// Processes; 1 to 4096, default 8.
    pub processes: u32,
    /// Bytes of the file, and bytes that are read in all; default 10 GiB.
    pub size: Bytes,
    /// Bytes that are read in sequence, and then at random; default 500 MiB. At least a block.
    pub phase: Bytes,
    /// Bytes of a block, which is a call; default 64 KiB.
    pub read: Bytes,
    /// Place of the file on the disk; default 0.
    pub start: Bytes,
}

impl Default for SeqRandSpec {
    fn default() -> SeqRandSpec {
        let FullSeqSpec {
            processes,
            size,
            read,
            start,
        } = FullSeqSpec::default();
        SeqRandSpec {
            processes,
            size,
            phase: Bytes(500 << 20),
            read,
            start,
        }
    }
}

impl SeqRandSpec {
    /// Adds the file and processes to a host; the program has the number `program`. Returns the next number.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the file does not fit on the disk.
    pub fn add(
        &self,
        builder: &mut HostBuilder,
        seed: u64,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let site = Site::new("seq-rand", builder.disk());
        site.check_size("phase", self.phase)?;
        let whole = self.phase >= self.read;
        site.check(whole, "phase", self.phase, "at least a block (read)")?;
        let SeqRandSpec {
            processes,
            size,
            read,
            start,
            ..
        } = *self;
        let sequential = FullSeqSpec {
            processes,
            size,
            read,
            start,
        };
        let blocks = self.phase.0 / read.0;
        in_step(site, &sequential, Some((blocks, seed)), builder, program)
    }
}

/// Adds a program whose processes read in step. `phase` has the blocks of a phase, and the seed of random blocks.
fn in_step(
    site: Site,
    spec: &FullSeqSpec,
    phase: Option<(u64, u64)>,
    builder: &mut HostBuilder,
    program: u32,
) -> Result<u32, BenchmarkError> {
    site.check_count("processes", spec.processes)?;
    site.check_processes(builder, "processes", 1, spec.processes)?;
    site.check_size("size", spec.size)?;
    site.check_call("read", spec.read)?;
    site.check_distance("start", spec.start)?;
    let file = site.add_file(builder, spec.start.0, spec.size.0)?;
    let barrier = builder.add_barrier(spec.processes);
    for process in 0..spec.processes {
        let random = |seed| Random::keyed(seed, process.into(), 56);
        let behaviour = InStep {
            file,
            barrier,
            size: spec.size.0,
            read: spec.read.0,
            processes: spec.processes.into(),
            phase: phase.map(|(blocks, seed)| (blocks, random(seed))),
            next: process.into(),
            met: false,
        };
        add_process(builder, program, behaviour);
    }
    Ok(program + 1)
}

/// A process that reads in step with others.
struct InStep {
    file: FileId,
    barrier: BarrierId,
    size: u64,
    read: u64,
    processes: u64,
    /// Blocks of a phase, and the source of random blocks.
    phase: Option<(u64, Random)>,
    /// Number of the next block among all that are read.
    next: u64,
    /// True if the processes met for the next call.
    met: bool,
}

impl Behaviour for InStep {
    fn next(&mut self) -> Step {
        let blocks = self.size.div_ceil(self.read);
        loop {
            // All processes come to the last call, also processes that have no block left.
            let round = self.next / self.processes * self.processes;
            if round >= blocks {
                return Step::Exit;
            }
            if !std::mem::replace(&mut self.met, true) {
                return Step::Barrier(self.barrier);
            }
            self.met = false;
            let number = self.next;
            self.next += self.processes;
            if number >= blocks {
                continue;
            }
            let block = match &mut self.phase {
                Some((phase, random)) if number / *phase % 2 == 1 => random.below(blocks),
                _ => number,
            };
            return Step::Read {
                file: self.file,
                offset: block * self.read,
                len: self.read,
            };
        }
    }
}
