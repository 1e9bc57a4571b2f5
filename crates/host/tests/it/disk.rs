//! A disk that serves requests one by one in order of arrival, each in the same time. The module also builds hosts
//! and records their requests.

use headtime_host::{DiskSize, File, FileId, Host, HostBuilder, HostSpec, ProcessSpec, Step};
use headtime_sched::{Foretold, Op};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source};
use std::collections::VecDeque;

/// A disk of 8 GiB.
pub const DISK: DiskSize = DiskSize {
    capacity: Sectors::new(1 << 24),
    sector_bytes: 512,
};

pub fn builder(change: impl FnOnce(&mut HostSpec)) -> HostBuilder {
    let mut spec = HostSpec::default();
    change(&mut spec);
    HostBuilder::new(spec, DISK).unwrap()
}

/// A file with this number of pages, contiguous from this sector on.
pub fn file(builder: &mut HostBuilder, start: u64, pages: u64) -> FileId {
    let file = File {
        extents: vec![Extent::at(start, pages * 8)],
        size: pages * 4096,
    };
    builder.add_file(file).unwrap()
}

/// An empty file with room for this number of pages.
pub fn empty(builder: &mut HostBuilder, start: u64, pages: u64) -> FileId {
    let file = File {
        extents: vec![Extent::at(start, pages * 8)],
        size: 0,
    };
    builder.add_file(file).unwrap()
}

/// A process of program 1 that does this, from time zero on.
pub fn process(steps: impl IntoIterator<Item = Step, IntoIter: Send + 'static>) -> ProcessSpec {
    let mut steps = steps.into_iter();
    ProcessSpec {
        program: 1,
        behaviour: Box::new(move || steps.next().unwrap_or(Step::Exit)),
        served_by: None,
        start: Time::ZERO,
    }
}

/// Reads of a file from beginning to end, `call` pages each, with think times between them.
pub fn sequential(file: FileId, pages: u64, call: u64, think: Nanos) -> Vec<Step> {
    let mut steps = Vec::new();
    for page in (0..pages).step_by(call as usize) {
        steps.push(Step::Read {
            file,
            offset: page * 4096,
            len: call * 4096,
        });
        steps.push(Step::Think(think));
    }
    steps
}

/// A request and its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    pub request: NewRequest,
    pub done: Time,
}

impl Served {
    pub fn pages(&self) -> u64 {
        self.request.extent.len.get() / 8
    }

    pub fn is_write(&self) -> bool {
        self.request.op == Op::Write
    }

    /// Arrival in microseconds.
    pub fn arrival_us(&self) -> u64 {
        self.request.arrival.as_nanos() / 1000
    }
}

/// Record of a run.
pub struct Ran {
    pub served: Vec<Served>,
    /// When the queue was unplugged.
    pub unplugged: Vec<Time>,
    /// Number of outstanding requests at each completion, with the completed request.
    pub depths: Vec<usize>,
    /// Foretold requests, with the times at which they were foretold.
    pub foretold: Vec<(Time, Foretold)>,
    pub end: Time,
}

impl Ran {
    /// Returns true if a request came as it was foretold.
    pub fn has_served(&self, told: &Foretold) -> bool {
        self.served.iter().any(|Served { request, .. }| {
            request.arrival == told.at
                && request.extent == told.extent
                && request.op == told.op
                && request.origin == told.origin
        })
    }
}

/// Runs a host to its end on a disk that takes `service` for each request. Returns a record of the run.
///
/// # Panics
///
/// If the host breaks the rules of a source, or does not end.
pub fn run(host: &mut Host, service: Nanos) -> Ran {
    let mut queue: VecDeque<NewRequest> = VecDeque::new();
    let mut busy_until = None;
    let mut ran = Ran {
        served: Vec::new(),
        unplugged: Vec::new(),
        depths: Vec::new(),
        foretold: Vec::new(),
        end: Time::ZERO,
    };
    let mut now = Time::ZERO;
    while !host.done() {
        let arrival = host.next_arrival();
        let next = match (arrival, busy_until) {
            (Some(arrival), Some(done)) => arrival.min(done),
            (arrival, done) => arrival
                .or(done)
                .expect("a host that is not done has something to do"),
        };
        now = now.max(next);
        if busy_until.is_some_and(|done| done <= now) {
            ran.depths.push(queue.len());
            let request = queue.pop_front().unwrap();
            ran.served.push(Served { request, done: now });
            // The next one goes to the disk before anybody wakes.
            busy_until = (!queue.is_empty()).then_some(now + service);
            host.completed(now, request.cookie);
            ran.foretold
                .extend(std::iter::from_fn(|| host.foretell()).map(|told| (now, told)));
            continue;
        }
        while let Some(request) = host.poll(now) {
            assert!(request.arrival <= now);
            queue.push_back(request);
            busy_until = busy_until.or(Some(now + service));
        }
        if host.unplug().is_some() {
            ran.unplugged.push(now);
        }
        ran.foretold
            .extend(std::iter::from_fn(|| host.foretell()).map(|told| (now, told)));
    }
    assert!(queue.is_empty());
    ran.end = now;
    ran
}
