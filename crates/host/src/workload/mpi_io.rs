//! Parallel programs on a striped file system, as the disk of one server sees them.

use super::site::{BenchmarkError, Site, beside};
use crate::{Behaviour, FileId, HostBuilder, ProcessSpec, Step};
use headtime_units::{Bytes, Nanos, Time};
use headtime_workload::Random;

/// `mpi-io-test`: programs of several MPI processes that take turns in reading a file of PVFS2 block by
/// block, as the disk of one data server sees them.
///
/// A file is striped over the servers, one block to each in turn. A server's share of a file is one piece on the
/// server's disk. Process p of P reads blocks p, p + P, p + 2P, .. and waits for each. This server has the blocks whose
/// number is a multiple of the number of servers. Blocks on other servers only take time. With as many processes as
/// servers, as in the paper, process p has all its blocks on server p. Each program then keeps exactly one process busy
/// here, and the other servers do not matter.
///
/// Besides the server's work, a block costs its process a request and an answer over the network, the transfer, and a
/// wait for the client's link. The other processes of the node use the same link. The server hands each request to a
/// thread of its pool. The thread reads through the page cache, from the one descriptor that the server has open for
/// the file.
///
/// Rests on: the paper (section 3.4) for programs, processes, servers, the block, the distances and the pool. Gigabit
/// Ethernet moves 64 KiB in 0.52 ms. Trust: high for the pattern at the disk, moderate for the network, low for the
/// file's size. The paper says 10 GB and 1 GB in one paragraph, and 1 GB is taken. Left out: metadata, the server's own
/// flow buffers, and a client that is late.
///
/// The network decides how much there is to gain, since a process asks for nothing while an answer is on its way. 0.2
/// ms for each message are assumed.
///
/// The wait for the link is computed. Four nodes receive the data of eight servers. Under Noop each server sends 20.5
/// MB/s here, with any wait, which makes 164 MB/s in all. A link of 125 MB/s is then a third busy, and a transfer waits
/// 0.13 ms for random others (M/D/1). The two processes that a program has on a node often come together, which adds
/// 0.26 ms. The sum is 0.4 ms. A scheduler that loads the links more would make processes wait longer: 0.7 ms at twice
/// the rate.
///
/// Invariants of a spec that a host accepts:
///
/// - `programs`, `processes`, `servers` and `workers` are in `1..=4096`; `0 < scale ≤ 1`.
/// - `4 KiB ≤ block ≤ 1 GiB`, a multiple of 4 KiB.
/// - `1 B ≤ file ≤ 16 TiB`; `gap ≤ 1024 TiB`; `start ≤ 1024 TiB`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct MpiIoSpec {
    /// Programs, each with a file of its own; 1 to 4096, default 4.
    pub programs: u32,
    /// Processes of each program; 1 to 4096, default 8.
    pub processes: u32,
    /// Servers that the files are striped over; 1 to 4096, default 8. The simulated disk is on the first server.
    pub servers: u32,
    /// Bytes of a block, which is a stripe and a call; default 64 KiB.
    pub block: Bytes,
    /// Bytes of each file, on all servers together; default 1 GB.
    pub file: Bytes,
    /// Bytes from the end of a file's share to the beginning of the next on this disk; default 10 GB.
    pub gap: Bytes,
    /// Place of the first share on the disk; default 0.
    pub start: Bytes,
    /// Threads of the server; 1 to 4096, default 16 (assumed).
    pub workers: u32,
    /// Time that a message takes, each way; default 0.2 ms.
    pub latency: Nanos,
    /// Time that a block takes over the link; default 524 us: 64 KiB at 125 MB/s.
    pub transfer: Nanos,
    /// Mean time that an answer waits for the client's link, exponential; default 0.4 ms. A longer wait makes a process
    /// come later to its next block, so a disk that waits for the process gains less.
    pub link_wait: Nanos,
    /// Time that a block takes at another server, including its disk; default 4 ms. The time counts only if there are
    /// not as many processes as servers.
    pub elsewhere: Nanos,
    /// Share of each file that is read, more than 0 to 1, default 1.
    pub scale: f64,
}

impl Default for MpiIoSpec {
    fn default() -> MpiIoSpec {
        MpiIoSpec {
            programs: 4,
            processes: 8,
            servers: 8,
            block: Bytes(64 << 10),
            file: Bytes(1_000_000_000),
            gap: Bytes(10_000_000_000),
            start: Bytes(0),
            workers: 16,
            latency: Nanos::from_micros(200),
            transfer: Nanos::from_micros(524),
            link_wait: Nanos::from_micros(400),
            elsewhere: Nanos::from_millis(4),
            scale: 1.0,
        }
    }
}

impl MpiIoSpec {
    /// Adds the shares of the files, the server's pool and the processes that have blocks here to a host; programs are
    /// numbered from `program` on. Returns the number behind the last program. The seed fixes the waits for links.
    ///
    /// # Errors
    ///
    /// If a number is out of range or the shares do not fit on the disk.
    pub fn add(
        &self,
        builder: &mut HostBuilder,
        seed: u64,
        program: u32,
    ) -> Result<u32, BenchmarkError> {
        let site = Site::new("mpi-io-test", builder.disk());
        site.check_count("programs", self.programs)?;
        site.check_count("processes", self.processes)?;
        site.check_processes(builder, "processes", self.programs, self.processes)?;
        site.check_count("servers", self.servers)?;
        site.check_count("workers", self.workers)?;
        let pages = self.block.0 >= 4096 && self.block.0.is_multiple_of(4096);
        let allowed = "a multiple of 4KiB, at most 1GiB";
        site.check(
            pages && self.block.0 <= 1 << 30,
            "block",
            self.block,
            allowed,
        )?;
        site.check_size("file", self.file)?;
        site.check_place(self.gap, self.start, self.scale)?;
        let servers = u64::from(self.servers);
        let share = |blocks: u64| blocks.div_ceil(servers) * self.block.0;
        // Whole blocks, and one for this server at least.
        let whole = (self.file.0 / self.block.0).max(1);
        let blocks = ((whole as f64 * self.scale) as u64).max(1);
        let pool = builder.add_pool(self.workers);
        for number in 0..self.programs {
            let place = beside(self.start, number, share(whole), self.gap);
            let file = site.add_file(builder, place, share(blocks))?;
            for process in 0..u64::from(self.processes) {
                let behaviour = Turns {
                    file,
                    block: self.block.0,
                    blocks,
                    servers,
                    stride: u64::from(self.processes),
                    next: process,
                    here: self
                        .latency
                        .saturating_add(self.latency)
                        .saturating_add(self.transfer),
                    elsewhere: self.elsewhere,
                    request: self.latency,
                    link_wait: self.link_wait,
                    random: Random::keyed(seed, u64::from(number) << 32 | process, 48),
                    told: false,
                    answer: None,
                };
                if !behaviour.comes_here() {
                    continue;
                }
                builder.add_process(ProcessSpec {
                    program: program + number,
                    behaviour: Box::new(behaviour),
                    served_by: Some(pool),
                    start: Time::ZERO,
                });
            }
        }
        Ok(program + self.programs)
    }
}

/// Reads every `stride`-th block of a striped file.
///
/// Invariants:
///
/// - `stride`, `servers` and `blocks` are at least 1; `next` modulo `stride` is constant.
/// - `request ≤ here`.
/// - `answer.is_some()` ⇒ `!told`.
struct Turns {
    file: FileId,
    block: u64,
    blocks: u64,
    servers: u64,
    stride: u64,
    /// The block that comes next.
    next: u64,
    /// Network time of a block, without the wait for the link.
    here: Nanos,
    elsewhere: Nanos,
    link_wait: Nanos,
    random: Random,
    /// The part of `here` before the server.
    request: Nanos,
    /// True if the request for the next block has reached the server.
    told: bool,
    /// The answer that is on its way.
    answer: Option<Nanos>,
}

impl Turns {
    /// Draws the time that the next answer waits for the link.
    fn wait(&mut self) -> Nanos {
        let mean = self.link_wait.as_nanos() as f64;
        Nanos::from_nanos((mean * self.random.exponential()) as u64)
    }

    /// Returns true if any block of the process is on this server.
    fn comes_here(&self) -> bool {
        (self.next..self.blocks)
            .step_by(self.stride as usize)
            .take(self.servers as usize)
            .any(|block| block % self.servers == 0)
    }
}

impl Behaviour for Turns {
    fn next(&mut self) -> Step {
        if let Some(answer) = self.answer.take()
            && !answer.is_zero()
        {
            return Step::Think(answer);
        }
        // Blocks on other servers, up to the next block on this server.
        let mut away = 0_u64;
        while self.next < self.blocks && !self.next.is_multiple_of(self.servers) {
            away += 1;
            self.next += self.stride;
        }
        if away > 0 {
            let each = self.here.saturating_add(self.elsewhere).as_nanos();
            let mut span = Nanos::from_nanos(each.saturating_mul(away));
            for _ in 0..away {
                span = span.saturating_add(self.wait());
            }
            if !span.is_zero() {
                return Step::Think(span);
            }
        }
        if self.next >= self.blocks {
            return Step::Exit;
        }
        if !self.told {
            self.told = true;
            if !self.request.is_zero() {
                return Step::Think(self.request);
            }
        }
        self.told = false;
        let answer = self.here.saturating_sub(self.request);
        self.answer = Some(answer.saturating_add(self.wait()));
        let offset = self.next / self.servers * self.block;
        self.next += self.stride;
        Step::Read {
            file: self.file,
            offset,
            len: self.block,
        }
    }
}
