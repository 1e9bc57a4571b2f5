//! The host as a source of requests.

use crate::cache::PageId;
use crate::host::{FLUSHER, Host, TICK};
use crate::io::Purpose;
use headtime_sched::Foretold;
use headtime_units::{Lba, Time};
use headtime_workload::{NewRequest, Returned, Source};
use std::cmp::Reverse;

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
        self.returned.clear();
        loop {
            if let Some(request) = self.outbox.pop_front() {
                return Some(request);
            }
            // A process that falls asleep unplugs the queue before another process runs.
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

    fn unplug(&mut self) -> Option<Lba> {
        std::mem::take(&mut self.unplug).then_some(Lba::ZERO)
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

    fn returned(&mut self) -> Option<Returned> {
        self.returned.pop()
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

impl Host {
    /// Notes that request `io` is done with its `pages` pages from `first` on. Returns the number of pages that the
    /// request still concerned.
    fn pages_done(&mut self, io: u32, first: PageId, pages: u32) -> u32 {
        (first..first + pages)
            .map(|page| u32::from(self.cache.io_done(page, io)))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::{DiskSize, File, HostBuilder, HostError, HostSpec, ProcessSpec, Step};
    use headtime_sched::Class;
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

    /// The process waits until the end of time. A look-ahead from there must not go beyond that time.
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
        // The read is foretold for the end of time, or not at all.
        let told = host.foretell().map(|told| told.at);
        assert!(told.is_none_or(|at| at == Time::NEVER), "{told:?}");
    }

    /// A process thinks, reads four pages one after the other from the disk, and reads them again from memory.
    #[test]
    fn a_call_returns_once_from_when_it_was_made_to_when_its_last_page_is_there() {
        let spec = HostSpec {
            read_ahead: headtime_units::Bytes(0),
            copy_per_page: Nanos::ZERO,
            ..HostSpec::default()
        };
        let disk = DiskSize {
            capacity: Sectors::new(1 << 24),
            sector_bytes: 512,
        };
        let mut builder = HostBuilder::new(spec, disk).expect("it is allowed");
        let file = File {
            extents: vec![Extent::at(0, 32)],
            size: 16_384,
        };
        let file = builder.add_file(file).expect("it fits");
        let (offset, len) = (0, 16_384);
        let read = Step::Read { file, offset, len };
        let mut steps = [Step::Think(Nanos::from_millis(5)), read, read, read].into_iter();
        builder.add_process(ProcessSpec {
            behaviour: Box::new(move || steps.next().unwrap_or(Step::Exit)),
            ..process(Step::Exit)
        });
        let mut host = builder.build(1).expect("it can be built");
        let (mut now, mut requests, mut seen) = (Time::ZERO, 0, Vec::new());
        let note = |host: &mut crate::Host, seen: &mut Vec<(u64, u64, u32)>| {
            while let Some(calls) = host.returned() {
                let ms = |at: Time| at.as_nanos() / 1_000_000;
                seen.push((ms(calls.began), ms(calls.ended()), calls.calls));
            }
        };
        while !host.done() {
            now = host.next_arrival().map_or(now, |at| at.max(now));
            while let Some(request) = host.poll(now) {
                note(&mut host, &mut seen);
                requests += 1;
                now += Nanos::from_millis(10);
                host.completed(now, request.cookie);
            }
            note(&mut host, &mut seen);
            host.unplug();
        }
        assert_eq!(requests, 4);
        // The first call took from the end of the think time to the fourth page. The other calls took no time.
        assert_eq!(seen, [(5, 45, 1), (45, 45, 2)]);
        let outcome = &host.outcome()[0];
        assert_eq!(outcome.calls, 3);
    }

    /// Two processes make their own requests, and a server works for a third. The flusher's class stays as it is.
    #[test]
    fn requests_have_the_class_of_the_process_that_asks() {
        let mut host = builder();
        let file = File {
            extents: vec![Extent::at(0, 80)],
            size: 40_960,
        };
        let pool = host.add_pool(1);
        let classes = [Class::BEST_EFFORT, Class::IDLE, Class::REAL_TIME];
        for (number, class) in classes.into_iter().enumerate() {
            let file = host.add_file(file.clone()).expect("it fits");
            let (offset, len) = (0, 4096);
            let read = Step::Read { file, offset, len };
            let write = Step::Write { file, offset, len };
            let think = Step::Think(Nanos::from_secs(60));
            let mut steps = [read, write, think].into_iter();
            host.set_class(class);
            host.add_process(ProcessSpec {
                behaviour: Box::new(move || steps.next().unwrap_or(Step::Exit)),
                served_by: (number == 2).then_some(pool),
                ..process(Step::Exit)
            });
        }
        let mut host = host.build(1).expect("it can be built");
        let flusher = host.flusher().process;
        let (mut now, mut seen) = (Time::ZERO, Vec::new());
        while !host.done() {
            while let Some(request) = host.poll(now) {
                seen.push((request.origin.process, request.class));
                host.completed(now, request.cookie);
            }
            host.unplug();
            now = host.next_arrival().map_or(now, |at| at.max(now));
        }
        seen.sort();
        let worker = (4, Class::REAL_TIME);
        let expected = [(1, Class::BEST_EFFORT), (2, Class::IDLE), worker];
        assert_eq!(seen[..3], expected);
        assert!(
            seen.len() > 3
                && seen[3..]
                    .iter()
                    .all(|one| *one == (flusher, Class::BEST_EFFORT)),
            "{seen:?}"
        );
    }
}
