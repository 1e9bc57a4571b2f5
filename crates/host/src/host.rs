//! The state of a host, and the operations that all its rules share: wake and sleep processes, and
//! make requests.

use crate::builder::{HostBuilder, HostError, PROCESSES_MAX};
use crate::cache::Cache;
use crate::changes::Changes;
use crate::file::{Files, NONE};
use crate::flusher::WriteBack;
use crate::io::Ios;
use crate::outcome::{ProgramOutcome, by_program};
use crate::pool::Pool;
use crate::process::{Asker, Look, Phase, Process};
use crate::readahead::Readahead;
use crate::returned::ReturnedCalls;
use crate::spec::{FileId, HostSpec, PAGE, Step};
use crate::waiters::Chain;
use headtime_sched::{Class, Flags, Foretold, Op, Origin};
use headtime_units::{Extent, Lba, Nanos, Time};
use headtime_workload::NewRequest;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZero;

/// Processes, page cache and write-back above a disk: a [`Source`](headtime_workload::Source) of requests.
///
/// Built by a [`HostBuilder`]. See the crate's page for the rules.
///
/// Invariants: `foreground` is at most `alive`; `links` has an entry for each process; `now` never falls.
pub struct Host {
    pub(crate) spec: HostSpec,
    /// Sectors of a page.
    pub(crate) page_sectors: u64,
    /// Pages of the longest request.
    request_pages: u32,
    /// Sectors of [`HostSpec::chunk`].
    chunk: Option<NonZero<u64>>,
    pub(crate) files: Files,
    pub(crate) cache: Cache,
    pub(crate) processes: Vec<Process>,
    /// By process: the next process that waits for the same thing.
    pub(crate) links: Vec<u32>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) write_back: WriteBack,
    pub(crate) ios: Ios,
    /// Future events by time. Events of the same time come in the order in which they were set. An event of a process
    /// counts only if the process waits for this event's number.
    pub(crate) due: BinaryHeap<Reverse<(Time, u64, u32)>>,
    events: u64,
    /// Requests made and not yet taken.
    pub(crate) outbox: VecDeque<NewRequest>,
    pub(crate) unplug: bool,
    pub(crate) alive: u32,
    /// Running processes that are not background processes.
    pub(crate) foreground: u32,
    /// Server threads whose step is over, and the end of each step.
    handed_back: VecDeque<(u32, Time)>,
    pub(crate) now: Time,
    pub(crate) tell_ahead: bool,
    pub(crate) foretold: VecDeque<Foretold>,
    /// Calls that returned in the last poll and have not been reported yet.
    pub(crate) returned: ReturnedCalls,
    /// Buffer for the changes of a process that is followed.
    pub(crate) changes: Changes,
}

/// A place where processes meet.
#[derive(Debug)]
pub(crate) struct Barrier {
    pub members: u32,
    pub come: u32,
    pub waiters: Chain,
}

/// Longest time that a process may run ahead over pages that it finds in memory.
pub(crate) const RUN_AHEAD_MAX: Nanos = Nanos::from_millis(1);

/// Events of the flusher: a tick of its clock, and a call to continue.
pub(crate) const TICK: u32 = u32::MAX;
pub(crate) const FLUSHER: u32 = u32::MAX - 1;

impl Host {
    /// Makes a host from a builder that was checked.
    pub(crate) fn new(builder: HostBuilder, seed: u64) -> Host {
        let page_sectors = builder.page_sectors();
        let HostBuilder {
            spec,
            files,
            names,
            barriers,
            pools,
            processes,
            classes,
            background,
            ..
        } = builder;
        let window = spec.read_ahead.0 / PAGE;
        let files = Files::new(files, names, page_sectors, Readahead::new(window));
        let cache = Cache::new(files.pages, spec.page_cache.0 / PAGE);
        let count = processes.len();
        // Worker numbers follow process numbers.
        let mut first = count as u32 + 1;
        let pools: Vec<Pool> = (0u32..)
            .zip(pools)
            .map(|(index, workers)| {
                let pool = Pool::new(first, workers, seed, index);
                first += workers;
                pool
            })
            .collect();
        let barriers = barriers.into_iter().map(|members| Barrier {
            members,
            come: 0,
            waiters: Chain::default(),
        });
        let foreground = background.iter().filter(|one| !**one).count();
        let flusher = Asker {
            origin: Origin {
                process: first,
                ..Origin::default()
            },
            class: Class::default(),
        };
        let mut host = Host {
            write_back: WriteBack::new(&spec, flusher, count),
            page_sectors,
            request_pages: (spec.request_max.0 / PAGE) as u32,
            chunk: (spec.chunk).and_then(|chunk| NonZero::new(chunk.0 / PAGE * page_sectors)),
            files,
            cache,
            links: vec![NONE; count],
            barriers: barriers.collect(),
            pools,
            ios: Ios::new(),
            due: BinaryHeap::with_capacity(2 * count + 16),
            events: 0,
            outbox: VecDeque::with_capacity(256),
            unplug: false,
            alive: count as u32,
            foreground: foreground as u32,
            handed_back: VecDeque::new(),
            now: Time::ZERO,
            tell_ahead: false,
            foretold: VecDeque::new(),
            returned: ReturnedCalls::default(),
            changes: Changes::default(),
            processes: (1u32..)
                .zip(processes.into_iter().zip(classes).zip(background))
                .map(|(number, ((spec, class), background))| {
                    Process::new(number, spec, class, background)
                })
                .collect(),
            spec,
        };
        for process in 0..count as u32 {
            host.wake(process, host.processes[process as usize].started);
        }
        host
    }

    /// Makes all processes threads of a server, which wait to be handed steps.
    pub(crate) fn wait_for_steps(&mut self) {
        self.due.clear();
        for process in &mut self.processes {
            process.handed = true;
            process.phase = Phase::Idle;
            process.look = Look::No;
        }
    }

    /// Hands a step to a waiting server thread. The thread starts at `at`, and its requests carry `program`.
    ///
    /// # Panics
    ///
    /// If the thread does not wait.
    pub(crate) fn hand(&mut self, thread: u32, at: Time, step: Step, program: u16, class: Class) {
        let this = &mut self.processes[thread as usize];
        assert!(this.phase == Phase::Idle, "thread {thread} has a step");
        this.origin.program = program;
        this.class = class;
        this.step = step;
        this.called = at;
        this.phase = Phase::Begin;
        self.wake(thread, at);
    }

    /// Next server thread whose step is over, and the end of the step. The end may be up to a millisecond after the
    /// host's time, since a process runs ahead over cached pages.
    pub(crate) fn handed_back(&mut self) -> Option<(u32, Time)> {
        self.handed_back.pop_front()
    }

    /// Notes that the step of a thread of a server is over.
    pub(crate) fn hand_back(&mut self, thread: u32, at: Time) {
        self.processes[thread as usize].phase = Phase::Idle;
        self.handed_back.push_back((thread, at));
    }

    /// Results of the programs so far, in the order of their numbers. May be called at any time.
    pub fn outcome(&self) -> Vec<ProgramOutcome> {
        by_program(
            self.processes
                .iter()
                .map(|process| (u32::from(process.origin.program), process.outcome())),
        )
    }

    /// Origin of the flusher's requests. The program of this origin is 0.
    pub fn flusher(&self) -> Origin {
        self.write_back.asker.origin
    }

    /// Bytes in memory that are not on the disk: dirty, or being written.
    pub fn dirty_bytes(&self) -> u64 {
        (self.cache.dirty() + self.cache.writing()) * PAGE
    }

    /// Bytes of pages and blocks in memory.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.cached() * PAGE
    }

    /// Wakes a process at `at`. Earlier events of the process no longer count.
    pub(crate) fn wake(&mut self, process: u32, at: Time) {
        self.events += 1;
        let this = &mut self.processes[process as usize];
        this.event = self.events;
        this.look = Look::From(at);
        self.due.push(Reverse((at, self.events, process)));
    }

    /// Sets an event of the flusher.
    pub(crate) fn rouse(&mut self, who: u32, at: Time) {
        self.events += 1;
        self.due.push(Reverse((at, self.events, who)));
    }

    /// Puts a process to sleep on a request.
    pub(crate) fn sleep_on(&mut self, process: u32, io: u32) {
        let waiters = &mut self.ios.get_mut(io).waiters;
        waiters.push(&mut self.links, process);
        self.unplug = true;
    }

    /// Sectors of the longest request that begins at `start`.
    pub(crate) fn longest_sectors(&self, start: Lba) -> u64 {
        let most = u64::from(self.request_pages) * self.page_sectors;
        match self.chunk {
            Some(chunk) => most.min(chunk.get() - start.get() % chunk),
            None => most,
        }
    }

    /// Pages of the longest request that begins at `start`; at least 1. A single page may cross a chunk's end.
    pub(crate) fn longest_pages(&self, start: Lba) -> u32 {
        (self.longest_sectors(start) / self.page_sectors).max(1) as u32
    }

    /// Notes that a process sleeps until a request completes.
    pub(crate) fn fell_asleep(&mut self) {
        self.unplug = true;
    }

    /// Submits the request in slot `io`.
    pub(crate) fn submit(
        &mut self,
        io: u32,
        at: Time,
        op: Op,
        extent: Extent,
        flags: Flags,
        asker: Asker,
    ) {
        self.outbox.push_back(NewRequest {
            cookie: self.ios.cookie(io),
            arrival: at,
            op,
            extent,
            flags,
            origin: asker.origin,
            class: asker.class,
        });
    }

    /// Origin and class of the process's requests. If a worker carries out the call, the origin names the worker.
    pub(crate) fn asker(&self, process: u32) -> Asker {
        let process = &self.processes[process as usize];
        let origin = Origin {
            process: process.worker.unwrap_or(process.origin.process),
            ..process.origin
        };
        Asker {
            origin,
            class: process.class,
        }
    }

    /// Returns true if the disk holds no data of a page of a file. In that case the page lies behind the file's end at
    /// the start of the run, and was never written to the disk.
    pub(crate) fn is_hole(&self, data: u32, page: u32) -> bool {
        let file = &self.files.data[data as usize];
        u64::from(page) * PAGE >= file.initial_size && !self.cache.get(file.base + page).written()
    }

    /// Index of the file that a name stands for.
    pub(crate) fn data_of(&self, name: FileId) -> u32 {
        self.files.names[name.0 as usize].data
    }

    /// Returns true if a worker is free for a process.
    pub(crate) fn has_idle(&self, process: u32) -> bool {
        self.processes[process as usize]
            .pool
            .is_some_and(|pool| self.pools[pool as usize].has_idle())
    }
}

impl HostBuilder {
    /// Builds the host at the start of its run, with an empty cache.
    ///
    /// `seed` decides which idle worker of a pool takes a call.
    ///
    /// # Errors
    ///
    /// - There is no process, or there are more than a million.
    /// - A process names an unknown pool, or a program above 65,535.
    /// - A barrier has no members, or more members than there are processes.
    /// - A pool has no workers.
    /// - Every process was added by [`HostBuilder::add_background`].
    pub fn build(self, seed: u64) -> Result<Host, HostError> {
        self.check()?;
        Ok(Host::new(self, seed))
    }

    /// Checks what [`HostBuilder::build`] refuses.
    pub(crate) fn check(&self) -> Result<(), HostError> {
        if self.processes.is_empty() {
            return Err(HostError::NoProcess);
        }
        if self.processes.len() > PROCESSES_MAX {
            return Err(HostError::TooManyProcesses {
                processes: self.processes.len(),
                most: PROCESSES_MAX,
            });
        }
        for (index, process) in self.processes.iter().enumerate() {
            if process.program > u32::from(u16::MAX) {
                return Err(HostError::Program {
                    process: index + 1,
                    program: process.program,
                });
            }
            if let Some(pool) = process.served_by
                && pool.0 as usize >= self.pools.len()
            {
                return Err(HostError::Unknown {
                    kind: "pool",
                    index: pool.0,
                });
            }
        }
        for (index, members) in self.barriers.iter().enumerate() {
            if *members == 0 || *members as usize > self.processes.len() {
                return Err(HostError::BarrierMembers {
                    barrier: index + 1,
                    members: *members,
                    processes: self.processes.len(),
                });
            }
        }
        if let Some(pool) = self.pools.iter().position(|workers| *workers == 0) {
            return Err(HostError::EmptyPool { pool: pool + 1 });
        }
        if self.background.iter().all(|background| *background) {
            return Err(HostError::OnlyBackground);
        }
        Ok(())
    }
}
