//! The results of programs, as they would report them themselves.

use headtime_units::{Nanos, Time};

/// The result of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutcome {
    pub program: u32,
    /// Start of the program's first process.
    pub started: Time,
    /// End of the program's last process; `None` while a process is running.
    pub ended: Option<Time>,
    /// Bytes that the program's calls read, from memory or from the disk.
    pub bytes_read: u64,
    /// Bytes that the program's calls wrote, to memory or to the disk.
    pub bytes_written: u64,
    /// Time in which any process of the program had a call outstanding; `None` if unknown.
    pub io_time: Option<Nanos>,
    /// Time with a call outstanding in each epoch from the start of the run on; empty unless epochs were asked for.
    pub io_epochs: Vec<Nanos>,
    /// Number of calls; see [`ProcessOutcome::calls`].
    pub calls: u64,
    /// Results of the program's processes, in the order in which the processes were added.
    pub processes: Vec<ProcessOutcome>,
}

/// The result of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessOutcome {
    /// Number of the process, from 1 on. The origin of the process's requests has this number as `process`, unless a
    /// server makes them.
    pub process: u32,
    /// Start of the process.
    pub started: Time,
    /// End of the process; `None` while it is running.
    pub ended: Option<Time>,
    /// Bytes that the process's calls read.
    pub bytes_read: u64,
    /// Bytes that the process's calls wrote.
    pub bytes_written: u64,
    /// Calls of read, write, direct and sync that have returned. Steps on metadata blocks do not count.
    pub calls: u64,
}

/// Gathers processes by program, in the order of the programs' numbers.
pub(crate) fn by_program(
    processes: impl Iterator<Item = (u32, ProcessOutcome)>,
) -> Vec<ProgramOutcome> {
    let mut programs: Vec<ProgramOutcome> = Vec::new();
    for (program, process) in processes {
        let at = match programs.binary_search_by_key(&program, |known| known.program) {
            Ok(at) => at,
            Err(at) => {
                programs.insert(
                    at,
                    ProgramOutcome {
                        program,
                        started: process.started,
                        ended: Some(Time::ZERO),
                        bytes_read: 0,
                        bytes_written: 0,
                        io_time: None,
                        io_epochs: Vec::new(),
                        calls: 0,
                        processes: Vec::new(),
                    },
                );
                at
            }
        };
        let known = &mut programs[at];
        known.started = known.started.min(process.started);
        known.ended = match (known.ended, process.ended) {
            (Some(known), Some(process)) => Some(known.max(process)),
            _ => None,
        };
        known.bytes_read += process.bytes_read;
        known.bytes_written += process.bytes_written;
        known.calls += process.calls;
        known.processes.push(process);
    }
    programs
}
