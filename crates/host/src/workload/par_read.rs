//! Parallel sequential readers.

use super::site::{BenchmarkError, Site, add_process, beside, scaled};
use crate::{Behaviour, FileId, HostBuilder, Step};
use headtime_units::{Bytes, Nanos};
use headtime_workload::{Random, TimeDistribution};

/// Separates the random numbers of think times from all others.
const PURPOSE: u64 = 64;

/// `par-read`: processes that each read a file from beginning to end, call by call.
///
/// Rests on: the paper's own description (section 3.3). Four independent processes each read a file of 1 GB in requests
/// of 4 KB. There are 50 GB between adjacent files, and no time to think by default. Trust: high. Open: whether GB
/// means 10⁹ or 2³⁰ bytes (10⁹ is taken; rates do not depend on it), and where on the disk the first file lies (its
/// start is taken).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct ParReadSpec {
    /// Processes, each with a file and a program number of its own; 1 to 4096, default 4.
    pub processes: u32,
    /// Bytes of each file; default 1 GB.
    pub file: Bytes,
    /// Bytes of each call; default 4 KiB, at most 1 GiB. Smaller calls cost more processor time. Above 128 KiB, a
    /// single call fills the readahead window.
    pub read: Bytes,
    /// Bytes from the end of a file to the beginning of the next; default 50 GB. A larger gap makes each change from
    /// one reader to another cost a longer seek.
    pub gap: Bytes,
    /// Place of the first file on the disk; default 0.
    pub start: Bytes,
    /// Time between two calls of a process; default 0. The disk reads in advance during this time. The more pages a
    /// call finds in memory, the less of the time is therefore visible at the disk. Each process draws its own times.
    pub think: TimeDistribution,
    /// Delay of the kernel in ending a sleep, if processes think by sleeping; default 0. Linux since 2.6.28 gives a
    /// timer 50 us of slack. The timer fires at the end of the slack, unless another timer is due meanwhile. The delay
    /// is added to each `think` that is not 0.
    pub slack: Nanos,
    /// Share of each file that is read, more than 0 to 1, default 1. Files are shorter, and begin at the same places.
    pub scale: f64,
}

impl Default for ParReadSpec {
    fn default() -> ParReadSpec {
        ParReadSpec {
            processes: 4,
            file: Bytes(1_000_000_000),
            read: Bytes(4096),
            gap: Bytes(50_000_000_000),
            start: Bytes(0),
            think: TimeDistribution::Constant(Nanos::ZERO),
            slack: Nanos::ZERO,
            scale: 1.0,
        }
    }
}

impl ParReadSpec {
    /// Adds the files and processes to a host; programs are numbered from `program` on. Returns the number behind the
    /// last program. The seed fixes the think times.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the files do not fit on the disk.
    pub fn add(
        &self,
        builder: &mut HostBuilder,
        seed: u64,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let site = Site::new("par-read", builder.disk());
        site.check_count("processes", self.processes)?;
        site.check_size("file", self.file)?;
        site.check_call("read", self.read)?;
        site.check_place(self.gap, self.start, self.scale)?;
        let size = scaled(self.file, self.scale);
        if let Some(allowed) = self.think.problem() {
            site.check(false, "think", self.think, allowed)?;
        }
        for number in 0..self.processes {
            let place = beside(self.start, number, self.file.0, self.gap);
            let behaviour = Sequential {
                file: site.add_file(builder, place, size)?,
                size,
                read: self.read.0,
                think: self.think,
                slack: self.slack,
                random: Random::keyed(seed, u64::from(program + number), PURPOSE),
                offset: 0,
                thinks: false,
            };
            add_process(builder, program + number, behaviour);
        }
        Ok(program + self.processes)
    }
}

/// Reads a file from beginning to end in calls of one size, thinking between them.
pub(super) struct Sequential {
    file: FileId,
    size: u64,
    read: u64,
    think: TimeDistribution,
    slack: Nanos,
    random: Random,
    offset: u64,
    /// True if the process thinks before the next call.
    thinks: bool,
}

impl Sequential {
    /// A reader that does not think.
    pub fn new(file: FileId, size: u64, read: u64) -> Sequential {
        Sequential {
            file,
            size,
            read,
            think: TimeDistribution::Constant(Nanos::ZERO),
            slack: Nanos::ZERO,
            random: Random::keyed(0, 0, PURPOSE),
            offset: 0,
            thinks: false,
        }
    }
}

impl Behaviour for Sequential {
    fn next(&mut self) -> Step {
        if self.offset >= self.size {
            return Step::Exit;
        }
        if self.thinks {
            self.thinks = false;
            let think = self.think.draw(&mut self.random);
            if !think.is_zero() {
                return Step::Think(think.saturating_add(self.slack));
            }
        }
        let offset = self.offset;
        let len = self.read.min(self.size - offset);
        self.offset += len;
        self.thinks = true;
        Step::Read {
            file: self.file,
            offset,
            len,
        }
    }
}
