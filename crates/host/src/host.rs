//! The host as a source of requests.

use crate::ahead::{Changes, Look};
use crate::cache::{Cache, PageId};
use crate::file::{Files, NONE};
use crate::io::{Ios, Purpose};
use crate::outcome::{ProgramOutcome, by_program};
use crate::pool::Pool;
use crate::process::Process;
use crate::readahead::Readahead;
use crate::spec::{HostBuilder, HostSpec, PAGE};
use crate::waiters::Chain;
use crate::writeback::WriteBack;
use headtime_sched::{Class, Flags, Foretold, Op, Origin};
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::{NewRequest, Source};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Processes, page cache and write-back before a disk: a [`Source`] of requests.
///
/// Made by [`HostBuilder`]. See the page of the crate for the rules.
pub struct Host {
    pub(crate) spec: HostSpec,
    /// Sectors of a page, and pages of the longest request and of the longest window.
    pub(crate) page_sectors: u64,
    pub(crate) request_pages: u32,
    pub(crate) files: Files,
    pub(crate) cache: Cache,
    pub(crate) processes: Vec<Process>,
    /// The next process that waits for the same as this one.
    pub(crate) links: Vec<u32>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) write_back: WriteBack,
    pub(crate) ios: Ios,
    /// What is to happen and when; at one time, in the order in which it was set. An event of a
    /// process counts only if its number is the one that the process waits for.
    due: BinaryHeap<Reverse<(Time, u64, u32)>>,
    events: u64,
    /// Requests made and not yet taken.
    outbox: VecDeque<NewRequest>,
    unplug: bool,
    pub(crate) alive: u32,
    now: Time,
    pub(crate) tell_ahead: bool,
    pub(crate) foretold: VecDeque<Foretold>,
    /// Room for what a process that is followed changes.
    pub(crate) changes: Changes,
}

/// A place where processes meet.
#[derive(Debug)]
pub(crate) struct Barrier {
    pub members: u32,
    pub come: u32,
    pub waiters: Chain,
}

/// Events of the flusher: its clock, and that it may go on.
pub(crate) const TICK: u32 = u32::MAX;
pub(crate) const FLUSHER: u32 = u32::MAX - 1;

impl Host {
    /// From what the builder has checked.
    pub(crate) fn new(builder: HostBuilder, seed: u64) -> Host {
        let page_sectors = builder.page_sectors();
        let HostBuilder {
            spec,
            files,
            names,
            barriers,
            pools,
            processes,
            ..
        } = builder;
        let window = spec.read_ahead.0 / PAGE;
        let files = Files::new(files, names, page_sectors, Readahead::new(window));
        let cache = Cache::new(files.pages, spec.page_cache.0 / PAGE);
        let count = processes.len();
        // Numbers of workers follow those of processes.
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
        let flusher = Origin {
            process: first,
            ..Origin::default()
        };
        let mut host = Host {
            write_back: WriteBack::new(&spec, flusher, count),
            page_sectors,
            request_pages: (spec.request_max.0 / PAGE) as u32,
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
            now: Time::ZERO,
            tell_ahead: false,
            foretold: VecDeque::new(),
            changes: Changes::default(),
            processes: (1u32..)
                .zip(processes)
                .map(|(number, spec)| Process::new(number, spec))
                .collect(),
            spec,
        };
        for process in 0..count as u32 {
            host.wake(process, host.processes[process as usize].started);
        }
        host
    }

    /// What the programs have achieved, in the order of their numbers. To be asked at any time.
    pub fn outcome(&self) -> Vec<ProgramOutcome> {
        by_program(
            self.processes
                .iter()
                .map(|process| (u32::from(process.origin.program), process.outcome())),
        )
    }

    /// Who writes back what nobody waits for: the origin of such requests. Its program is 0.
    pub fn flusher(&self) -> Origin {
        self.write_back.origin
    }

    /// Bytes in memory that are not on the disk: dirty, or being written.
    pub fn dirty_bytes(&self) -> u64 {
        (self.cache.dirty() + self.cache.writing()) * PAGE
    }

    /// Bytes of pages and blocks in memory.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.cached() * PAGE
    }

    /// Lets a process go on at `at`, whatever else it was to be woken by.
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

    /// Notes that somebody sleeps until the disk has done something.
    pub(crate) fn fell_asleep(&mut self) {
        self.unplug = true;
    }

    /// Makes the request that slot `io` stands for.
    pub(crate) fn submit(
        &mut self,
        io: u32,
        at: Time,
        op: Op,
        extent: Extent,
        flags: Flags,
        origin: Origin,
    ) {
        self.outbox.push_back(NewRequest {
            cookie: self.ios.cookie(io),
            arrival: at,
            op,
            extent,
            flags,
            origin,
            class: Class::default(),
        });
    }

    /// Who asks when this process does.
    pub(crate) fn origin(&self, process: u32) -> Origin {
        let process = &self.processes[process as usize];
        Origin {
            process: process.worker.unwrap_or(process.origin.process),
            ..process.origin
        }
    }

    /// Notes that request `io` is done with its pages, counted from `first` on; how many of them it
    /// was still about.
    fn pages_done(&mut self, io: u32, first: PageId, pages: u32) -> u32 {
        (first..first + pages)
            .map(|page| u32::from(self.cache.io_done(page, io)))
            .sum()
    }
}

impl Source for Host {
    fn next_arrival(&self) -> Option<Time> {
        if self.unplug || !self.outbox.is_empty() {
            return Some(self.now);
        }
        if self.alive == 0 {
            return None;
        }
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        loop {
            if let Some(request) = self.outbox.pop_front() {
                return Some(request);
            }
            // Who sleeps unplugs the queue before anybody else runs.
            if self.unplug || self.alive == 0 {
                return None;
            }
            let Reverse((at, event, who)) = *self.due.peek()?;
            if at > now {
                return None;
            }
            self.due.pop();
            self.now = self.now.max(at);
            match who {
                TICK => self.tick(at),
                FLUSHER => self.flush_on(at),
                process if self.processes[process as usize].event == event => {
                    self.run(process, at);
                }
                _ => {}
            }
        }
    }

    fn unplug(&mut self) -> bool {
        std::mem::take(&mut self.unplug)
    }

    fn tell_ahead(&mut self, ahead: bool) {
        self.tell_ahead = ahead;
    }

    fn foretell(&mut self) -> Option<Foretold> {
        if self.foretold.is_empty() && self.tell_ahead {
            self.look_ahead();
        }
        self.foretold.pop_front()
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        self.now = self.now.max(now);
        let (io, done) = self.ios.remove(cookie);
        let left = self.pages_done(io, done.first, done.pages);
        match done.purpose {
            Purpose::Read => {}
            Purpose::WriteBack(file) => self.written_back(now, file, left),
            Purpose::Sync(file) => self.pages_written(file, left),
            Purpose::Direct(process) | Purpose::Flush(process) => {
                let waiting = &mut self.processes[process as usize].pending;
                *waiting -= 1;
                if *waiting == 0 {
                    self.wake(process, now);
                }
            }
        }
        let mut waiters = done.waiters;
        while let Some(process) = waiters.pop(&self.links) {
            self.wake(process, now);
        }
        if self.tell_ahead {
            self.look_again();
        }
    }

    fn done(&self) -> bool {
        self.alive == 0 && self.outbox.is_empty() && self.ios.outstanding == 0
    }
}

/// So long a process may run ahead over what it finds in memory.
pub(crate) const HORIZON: Nanos = Nanos::from_millis(1);

#[cfg(test)]
mod tests {
    use crate::{DiskSize, File, HostBuilder, HostError, HostSpec, ProcessSpec, Step};
    use headtime_units::{Extent, Nanos, Sectors, Time};
    use headtime_workload::Source;

    fn builder() -> HostBuilder {
        let disk = DiskSize {
            capacity: Sectors::new(1 << 24),
            sector_bytes: 512,
        };
        HostBuilder::new(HostSpec::default(), disk).expect("the defaults are allowed")
    }

    fn process(step: Step) -> ProcessSpec {
        ProcessSpec {
            program: 1,
            behaviour: Box::new(move || step),
            served_by: None,
            start: Time::ZERO,
        }
    }

    #[test]
    #[should_panic(expected = "process 1 takes steps without end, and no time passes")]
    fn a_program_that_takes_no_time() {
        let mut builder = builder();
        let barrier = builder.add_barrier(1);
        builder.add_process(process(Step::Barrier(barrier)));
        let mut host = builder.build(1).expect("it can be built");
        host.poll(Time::ZERO);
    }

    #[test]
    fn what_would_not_fit_into_memory_is_refused() {
        let mut host = builder();
        let empty = || File {
            extents: Vec::new(),
            size: 0,
        };
        let refused = (0..1 << 20).find_map(|_| host.add_file(empty()).err());
        assert_eq!(refused, Some(HostError::TooManyFiles { most: 1 << 17 }));

        let mut host = builder();
        for _ in 0..=1_000_000 {
            host.add_process(process(Step::Exit));
        }
        let error = host.build(1).err().map(|error| error.to_string());
        let expected = "there are 1000001 processes; allowed are 1000000";
        assert_eq!(error.as_deref(), Some(expected));
    }

    /// The end of the wait is the end of time, and who looks ahead from there looked beyond it.
    #[test]
    fn a_process_that_thinks_beyond_all_time_is_looked_ahead_of() {
        let mut host = builder();
        let file = File {
            extents: vec![Extent::at(0, 8)],
            size: 4096,
        };
        let file = host.add_file(file).expect("it fits");
        let read = Step::Read {
            file,
            offset: 0,
            len: 4096,
        };
        let mut steps = [Step::Think(Nanos::MAX), Step::Think(Nanos::MAX), read].into_iter();
        let next = move || steps.next().unwrap_or(Step::Exit);
        host.add_process(ProcessSpec {
            behaviour: Box::new(next),
            ..process(Step::Exit)
        });
        let mut host = host.build(1).expect("it can be built");
        host.tell_ahead(true);
        let start = Time::LATEST;
        assert_eq!(host.poll(start), None);
        assert_eq!(host.next_arrival(), Some(Time::NEVER));
        // The read is foretold for then, or not at all.
        let told = host.foretell().map(|told| told.at);
        assert!(told.is_none_or(|at| at == Time::NEVER), "{told:?}");
    }
}
