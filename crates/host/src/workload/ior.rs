//! IOR between two checkpoints.

use super::site::{BenchmarkError, Site, add_process};
use crate::{HostBuilder, Step};
use headtime_units::Bytes;
use std::iter::once;

/// `ior-mpi-io`: processes write a checkpoint together, read a part of a file each, and write another checkpoint.
///
/// Each process reads its part from beginning to end in small calls. A checkpoint is written in the order in which
/// [`FullSeqSpec`](super::FullSeqSpec) reads. Process i of P writes block i + jP at call j, and all processes meet
/// before each call. The second checkpoint lies behind the first. Nothing is flushed.
///
/// Rests on: the U-Shape paper (Zhang, Davis and Jiang, SC 2011), sections 4.1.2 and 4.3. The paper describes eight
/// processes, a file of 2 GB, and calls of 32 KiB "at the same relative offset in each process's access scope". The
/// checkpoints of 2 GB are in sequence, on a partition of their own. Calls are in step by default, as collective calls
/// are. IOR has no barrier between independent calls. Trust: high for the pattern, low for the step. Open: how the
/// paper copied its checkpoints, and in which calls.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct IorSpec {
    /// Processes; 1 to 4096, default 8.
    pub processes: u32,
    /// Bytes of the file, all parts together; default 2 GiB.
    pub size: Bytes,
    /// Bytes of each call of reading; default 32 KiB.
    pub read: Bytes,
    /// True if all processes meet before each call of reading; default true.
    pub in_step: bool,
    /// Bytes of each checkpoint; default 2 GiB. Zero: no checkpoints.
    pub checkpoint: Bytes,
    /// Bytes of each call of writing; default 64 KiB.
    pub write: Bytes,
    /// Place of the file on the disk; default 0.
    pub start: Bytes,
    /// Place of the first checkpoint on the disk; default 10 GB.
    pub checkpoint_start: Bytes,
}

impl Default for IorSpec {
    fn default() -> IorSpec {
        IorSpec {
            processes: 8,
            size: Bytes(2 << 30),
            read: Bytes(32 << 10),
            in_step: true,
            checkpoint: Bytes(2 << 30),
            write: Bytes(64 << 10),
            start: Bytes(0),
            checkpoint_start: Bytes(10_000_000_000),
        }
    }
}

impl IorSpec {
    /// Adds the files and processes to a host; the program has the number `program`. Returns the next number.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the files do not fit on the disk.
    pub fn add(&self, builder: &mut HostBuilder, program: u32) -> Result<u32, BenchmarkError> {
        let site = Site::new("ior-mpi-io", builder.disk());
        site.check_count("processes", self.processes)?;
        site.check_processes(builder, "processes", 1, self.processes)?;
        site.check_size("size", self.size)?;
        site.check_call("read", self.read)?;
        site.check_distance("checkpoint", self.checkpoint)?;
        site.check_call("write", self.write)?;
        site.check_distance("start", self.start)?;
        site.check_distance("checkpoint_start", self.checkpoint_start)?;
        let (size, call) = (self.checkpoint.0, self.write.0);
        let processes = u64::from(self.processes);
        let file = site.add_file(builder, self.start.0, self.size.0)?;
        let checkpoints = (0..2).map(|number| {
            let place = self.checkpoint_start.0 + number * size;
            site.add_room(builder, place, size)
        });
        let checkpoints = match size {
            0 => Vec::new(),
            _ => checkpoints.collect::<Result<_, _>>()?,
        };
        let barrier = builder.add_barrier(self.processes);
        for process in 0..processes {
            let write = move |file| {
                let rounds = size.div_ceil(call).div_ceil(processes);
                (0..rounds).flat_map(move |round| {
                    let offset = (round * processes + process) * call;
                    let len = call.min(size.saturating_sub(offset));
                    let step = Step::Write { file, offset, len };
                    once(Step::Barrier(barrier)).chain((len > 0).then_some(step))
                })
            };
            let part = |number| self.size.0 * number / processes;
            let (begin, end, read) = (part(process), part(process + 1), self.read.0);
            // Processes with a shorter part meet the others to the end.
            let rounds = self.size.0.div_ceil(processes).div_ceil(read);
            let meet = self.in_step.then_some(Step::Barrier(barrier));
            let reads = (0..rounds).flat_map(move |round| {
                let offset = begin + round * read;
                let len = read.min(end.saturating_sub(offset));
                let step = Step::Read { file, offset, len };
                meet.into_iter().chain((len > 0).then_some(step))
            });
            let [first, last] = [0, 1].map(|number| checkpoints.get(number).copied());
            let mut steps = (first.into_iter().flat_map(write))
                .chain(once(Step::Barrier(barrier)))
                .chain(reads)
                .chain(last.into_iter().flat_map(write));
            let behaviour = move || steps.next().unwrap_or(Step::Exit);
            add_process(builder, program, behaviour);
        }
        Ok(program + 1)
    }
}
