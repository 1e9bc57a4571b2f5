//! Threads that read in strides and keep step with each other.

use super::site::{BenchmarkError, Site, add_process, scaled};
use crate::{BarrierId, Behaviour, FileId, HostBuilder, Step};
use headtime_sched::Op;
use headtime_units::Bytes;

/// `multi-threads`: processes of several threads; each thread reads the beginning of every segment of
/// a file of its own, and the threads of a process meet after every few calls.
///
/// Rests on: the paper's own description (section 3.4). Four processes have two threads each, and files have 40 MB. A
/// thread reads the first 4 KB of every segment of 16 KB from beginning to end. There are 100 MB between the files of a
/// process, and 50 GB between files of adjacent processes. Threads synchronise after every five requests of each.
/// Trust: high for the pattern. Open: the end points of a distance (beginnings are taken), and the way from a call to a
/// request.
///
/// Through the page cache of Linux 2.6.31 the strides would be lost. The first call, at the beginning of the file,
/// opens a window of four pages, which is a whole segment. The second call is where the next window is expected. So
/// every page is read, in growing windows. The paper's account of its own result has one request of 4 KB for each call.
/// In this account, a scheduler serves a thread call by call until the thread waits for the other, and then waits in
/// vain. So calls bypass the page cache by default. `direct = false` shows the other reading of the paper.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct MultiThreadsSpec {
    /// Processes, each a program of its own; 1 to 4096, default 4.
    pub processes: u32,
    /// Threads of each process, each with a file of its own; 1 to 4096, default 2.
    pub threads: u32,
    /// Bytes of each file; default 40 MB.
    pub file: Bytes,
    /// Bytes of a segment; default 16 KiB. At least `read`.
    pub segment: Bytes,
    /// Bytes of each call, at the beginning of a segment; default 4 KiB.
    pub read: Bytes,
    /// Calls of each thread after which the threads of a process meet; default 5. A larger number lets one thread run
    /// further ahead of the others. Zero: never.
    pub together: u32,
    /// Bytes from the beginning of a thread's file to the beginning of the next thread's file; default 100 MB.
    pub file_distance: Bytes,
    /// Bytes from the beginning of a process's first file to the beginning of the next process's first file; default 50
    /// GB.
    pub process_distance: Bytes,
    /// Place of the first file on the disk; default 0.
    pub start: Bytes,
    /// True if calls bypass the page cache and readahead; default true.
    pub direct: bool,
    /// Share of each file that is read, more than 0 to 1, default 1.
    pub scale: f64,
}

impl Default for MultiThreadsSpec {
    fn default() -> MultiThreadsSpec {
        MultiThreadsSpec {
            processes: 4,
            threads: 2,
            file: Bytes(40_000_000),
            segment: Bytes(16 << 10),
            read: Bytes(4096),
            together: 5,
            file_distance: Bytes(100_000_000),
            process_distance: Bytes(50_000_000_000),
            start: Bytes(0),
            direct: true,
            scale: 1.0,
        }
    }
}

impl MultiThreadsSpec {
    /// Adds the files, barriers and threads to a host; programs are numbered from `program` on. Returns the number
    /// behind the last program.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the files do not fit on the disk.
    pub fn add(&self, builder: &mut HostBuilder, program: u32) -> Result<u32, BenchmarkError> {
        let site = Site::new("multi-threads", builder.disk());
        site.check_count("processes", self.processes)?;
        site.check_count("threads", self.threads)?;
        site.check_processes(builder, "threads", self.processes, self.threads)?;
        site.check_size("file", self.file)?;
        site.check_call("segment", self.segment)?;
        site.check_call("read", self.read)?;
        if self.direct {
            let sector = u64::from(site.sector_bytes);
            for (key, size) in [("read", self.read), ("segment", self.segment)] {
                let whole = size.0.is_multiple_of(sector);
                site.check(whole, key, size, "whole sectors, since calls are direct")?;
            }
        }
        let within = self.read <= self.segment;
        site.check(within, "read", self.read, "at most a segment")?;
        let apart = self.file_distance >= self.file || self.threads == 1;
        site.check(
            apart,
            "file_distance",
            self.file_distance,
            "at least a file",
        )?;
        site.check_distance("file_distance", self.file_distance)?;
        let process = u64::from(self.threads - 1) * self.file_distance.0 + self.file.0;
        let apart = self.process_distance.0 >= process || self.processes == 1;
        let allowed = "at least the files of a process";
        site.check(apart, "process_distance", self.process_distance, allowed)?;
        site.check_distance("process_distance", self.process_distance)?;
        site.check_distance("start", self.start)?;
        site.check_scale(self.scale)?;
        let size = scaled(self.file, self.scale);
        for number in 0..self.processes {
            let barrier = (self.together > 0).then(|| builder.add_barrier(self.threads));
            for thread in 0..self.threads {
                let place = self.start.0
                    + u64::from(number) * self.process_distance.0
                    + u64::from(thread) * self.file_distance.0;
                let file = site.add_file(builder, place, size)?;
                let behaviour = Strided {
                    file,
                    size,
                    segment: self.segment.0,
                    read: self.read.0,
                    direct: self.direct,
                    barrier,
                    together: self.together,
                    since: 0,
                    offset: 0,
                };
                add_process(builder, program + number, behaviour);
            }
        }
        Ok(program + self.processes)
    }
}

/// Reads the beginning of every segment.
struct Strided {
    file: FileId,
    size: u64,
    segment: u64,
    read: u64,
    direct: bool,
    barrier: Option<BarrierId>,
    together: u32,
    /// Calls since the threads met.
    since: u32,
    offset: u64,
}

impl Behaviour for Strided {
    fn next(&mut self) -> Step {
        if self.offset >= self.size {
            return Step::Exit;
        }
        if let Some(barrier) = self.barrier
            && self.since == self.together
        {
            self.since = 0;
            return Step::Barrier(barrier);
        }
        self.since += 1;
        let (file, offset) = (self.file, self.offset);
        let len = self.read.min(self.size - offset);
        self.offset += self.segment;
        if self.direct {
            Step::Direct {
                op: Op::Read,
                file,
                offset,
                len,
            }
        } else {
            Step::Read { file, offset, len }
        }
    }
}
