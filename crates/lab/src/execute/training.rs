//! The training workload of models on a cluster.

use headtime_host::{
    BarrierId, Behaviour, DiskSize, File, FileId, HostBuilder, HostError, ProcessSpec, Step,
};
use headtime_qos::{Training, TrainingOptions};
use headtime_sched::Op;
use headtime_units::{Extent, Sectors, Time};
use std::iter::Peekable;

/// Longest file of the workload: twice the longest distance between requests, which is 10 GB.
const FILE_MAX: u64 = 20_000_000_000;

/// Adds the processes of the training workload as program 1. They make reads alone if `reads` is set.
///
/// # Errors
///
/// If the disk has no room for the workload's file.
pub fn add(builder: &mut HostBuilder, seed: u64, reads: bool) -> Result<(), HostError> {
    let DiskSize {
        capacity,
        sector_bytes,
    } = builder.disk();
    let bytes = u64::from(sector_bytes);
    let size = (capacity.get() * bytes / 2).min(FILE_MAX) >> 20 << 20;
    let file = builder.add_file(File {
        extents: vec![Extent::at(0, size / bytes)],
        size,
    })?;
    let options = TrainingOptions {
        seed,
        ..TrainingOptions::default()
    };
    let barrier = builder.add_barrier(options.processes);
    for process in 0..options.processes {
        let training = Training::new(options, Sectors::new(size / bytes), sector_bytes);
        builder.add_process(ProcessSpec {
            program: 1,
            behaviour: Box::new(Rank {
                file,
                barrier,
                process,
                reads,
                sector_bytes: bytes,
                requests: training.peekable(),
                met: false,
            }),
            served_by: None,
            start: Time::ZERO,
        });
    }
    Ok(())
}

/// A process of the workload, which meets the others before each call.
struct Rank {
    file: FileId,
    barrier: BarrierId,
    process: u32,
    reads: bool,
    sector_bytes: u64,
    requests: Peekable<Training>,
    /// True if the process has met the others before its next call.
    met: bool,
}

impl Behaviour for Rank {
    fn next(&mut self) -> Step {
        let own = self.process;
        while self
            .requests
            .next_if(|request| request.process != own)
            .is_some()
        {}
        let Some(request) = self.requests.peek().copied() else {
            return Step::Exit;
        };
        if !std::mem::replace(&mut self.met, true) {
            return Step::Barrier(self.barrier);
        }
        self.met = false;
        self.requests.next();
        let file = self.file;
        let offset = request.extent.start.get() * self.sector_bytes;
        let len = request.extent.len.get() * self.sector_bytes;
        match request.op == Op::Write && !self.reads {
            true => Step::Write { file, offset, len },
            false => Step::Read { file, offset, len },
        }
    }
}
