//! A parallel search for similar sequences.

use super::site::{BenchmarkError, Site, add_process};
use crate::{HostBuilder, Step};
use headtime_units::{Bytes, Nanos};
use headtime_workload::Random;
use std::iter::once;
use std::sync::Arc;

/// `s3asim`: a master deals parts of a database to workers. Workers search their parts and write results.
///
/// For each query each fragment of the database is one task. Tasks go to the workers in turn. A task reads a run of its
/// fragment and computes. When all tasks of a query are done, each worker writes the results of its tasks into one shared
/// file, in the order of fragments. The master has no I/O.
///
/// Rests on: the U-Shape paper (SC 2011), section 4.1.3: eight processes, 552 MB, requests of various sizes. The paper gives no
/// other parameter. Choices: two thirds are read; sizes and times of tasks are exponential; the runs begin anywhere in their
/// fragment. Trust: low.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct S3aSimSpec {
    /// Processes with the master; 2 to 4096, default 8.
    pub processes: u32,
    /// Queries; 1 to 4096, default 12.
    pub queries: u32,
    /// Fragments of the database; 1 to 4096, default 128.
    pub fragments: u32,
    /// Bytes of the database; default 2 GB.
    pub database: Bytes,
    /// Bytes that all tasks together read; default 368 MB.
    pub read: Bytes,
    /// Bytes that all tasks together write; default 184 MB.
    pub written: Bytes,
    /// Mean time of computing for a task; default 60 ms.
    pub search: Nanos,
    /// Place of the database on the disk; default 0. The results lie behind the database.
    pub start: Bytes,
}

impl Default for S3aSimSpec {
    fn default() -> S3aSimSpec {
        S3aSimSpec {
            processes: 8,
            queries: 12,
            fragments: 128,
            database: Bytes(2_000_000_000),
            read: Bytes(368_000_000),
            written: Bytes(184_000_000),
            search: Nanos::from_millis(60),
            start: Bytes(0),
        }
    }
}

/// A fragment that is searched for a query.
#[derive(Clone, Copy)]
struct Task {
    /// First byte in the database, and bytes.
    read: (u64, u64),
    search: Nanos,
    /// First byte in the results, and bytes.
    written: (u64, u64),
}

impl S3aSimSpec {
    /// Adds the files and processes to a host; the program has the number `program`. Returns the next number.
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
        let site = Site::new("s3asim", builder.disk());
        let several = (2..=4096).contains(&self.processes);
        site.check(several, "processes", self.processes, "2 to 4096")?;
        site.check_processes(builder, "processes", 1, self.processes)?;
        site.check_count("queries", self.queries)?;
        site.check_count("fragments", self.fragments)?;
        site.check_size("database", self.database)?;
        site.check_size("read", self.read)?;
        site.check_size("written", self.written)?;
        site.check_distance("start", self.start)?;
        let tasks: Arc<[Task]> = self.tasks(Random::keyed(seed, 0, 64)).into();
        site.check_plan(builder.room_to_plan(), tasks.len() as u64)?;
        builder.planned += tasks.len() as u64;
        let database = site.add_file(builder, self.start.0, self.database.0)?;
        let behind = self.start.0 + self.database.0;
        let results = site.add_room(builder, behind, self.written.0)?;
        let barrier = builder.add_barrier(self.processes);
        let (fragments, workers) = (self.fragments as usize, self.processes as usize - 1);
        for process in 0..=workers {
            let tasks = Arc::clone(&tasks);
            let mut steps = (0..self.queries as usize).flat_map(move |query| {
                // The first process is the master.
                let own = (process.wrapping_sub(1)..fragments).step_by(workers);
                let of = |tasks: &Arc<[Task]>| {
                    let tasks = Arc::clone(tasks);
                    own.clone()
                        .map(move |number| tasks[query * fragments + number])
                };
                let search = of(&tasks).flat_map(move |task| {
                    let (offset, len) = task.read;
                    let file = database;
                    [Step::Read { file, offset, len }, Step::Think(task.search)]
                });
                let write = of(&tasks).map(move |task| {
                    let (offset, len) = task.written;
                    let file = results;
                    Step::Write { file, offset, len }
                });
                search.chain(once(Step::Barrier(barrier))).chain(write)
            });
            let behaviour = move || steps.next().unwrap_or(Step::Exit);
            add_process(builder, program, behaviour);
        }
        Ok(program + 1)
    }

    /// Draws the tasks of all queries. The sizes of the tasks sum to `read` and `written`, less rounding and less the
    /// bytes of reads that are cut at the size of a fragment.
    fn tasks(&self, mut random: Random) -> Vec<Task> {
        let fragment = self.database.0 as f64 / f64::from(self.fragments);
        let count = self.queries as usize * self.fragments as usize;
        let draws = |random: &mut Random| -> Vec<f64> {
            (0..count).map(|_| random.exponential()).collect()
        };
        let (reads, writes) = (draws(&mut random), draws(&mut random));
        let [reading, writing] = [(self.read, &reads), (self.written, &writes)]
            .map(|(all, draws)| all.0 as f64 / draws.iter().sum::<f64>());
        let mut behind = 0;
        let mut tasks = Vec::with_capacity(count);
        for (number, (read, write)) in reads.into_iter().zip(writes).enumerate() {
            let len = (read * reading).min(fragment);
            let from = (number % self.fragments as usize) as f64 * fragment;
            let offset = from + (fragment - len) * random.unit();
            let written = (behind, (write * writing) as u64);
            behind += written.1;
            let search = self.search.as_nanos() as f64 * random.exponential();
            tasks.push(Task {
                read: (offset as u64, len as u64),
                search: Nanos::from_nanos(search as u64),
                written,
            });
        }
        tasks
    }
}
