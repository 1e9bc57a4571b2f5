//! Synthetic programs.
//!
//! A [`Synthetic`] source runs any number of processes. Each process has its own random streams for
//! places, sizes, operations and times. So the requests of a process depend neither on the disk's
//! answers nor on other processes. Two schedulers compared on one seed serve the same requests.

mod area;
mod compile;
mod places;
mod spec;
mod weighted;

pub use places::Places;
pub use spec::{
    Cycle, First, Pacing, ProcessSpec, SizeDistribution, SpecError, SyntheticSpec, TimeDistribution,
};

pub use weighted::DistributionError;

use crate::Random;
use crate::{NewRequest, Source};
use area::Area;
pub use compile::Sizes;
use compile::{Check, Draw};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Lba, Sectors, Time};
use places::PlacesDraw;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Runs the processes of a [`SyntheticSpec`] on a drive.
#[derive(Clone, Debug)]
pub struct Synthetic {
    processes: Vec<Process>,
    /// Next request of each idle slot: its time and its process. True marks a request that was due
    /// before and had to wait.
    due: BinaryHeap<Reverse<(Time, u32, bool)>>,
    /// Number of requests that all processes together may still make.
    left: u64,
    outstanding: u64,
}

/// A process of the workload, and its requests so far.
///
/// Invariants:
///
/// - `spec.count = Some(n)` ⇒ `promised ≤ n`; `spec.fsync = Some(n)` ⇒ `unflushed ≤ n`.
/// - `is_released` ⇒ `waiting > 0`; `flush.is_some()` ⇒ `outstanding > 0`.
/// - `spec.pacing` is open with a limit ⇒ `outstanding` is at most the limit.
/// - `write_size.is_some()` ⇔ `spec.write_size.is_some()`.
/// - `!spec.writes_apart` ⇒ `last[1].is_none()`.
#[derive(Clone, Debug)]
struct Process {
    spec: ProcessSpec,
    area: Area,
    size: Draw,
    write_size: Option<Draw>,
    distance: Draw,
    spread: PlacesDraw,
    places: Random,
    sizes: Random,
    operations: Random,
    times: Random,
    /// Last request. With `writes_apart`, the last read and the last write.
    last: [Option<Extent>; 2],
    made: u64,
    /// Requests that are due and wait for a flush, or for the number of outstanding requests to fall
    /// below the limit.
    waiting: u64,
    /// True while an entry of `due` stands for the first waiting request.
    is_released: bool,
    /// Number of writes since the last flush.
    unflushed: u64,
    /// Cookie of the flush under way.
    flush: Option<u64>,
    /// Number of requests whose time is set or past, at most `spec.count`.
    promised: u64,
    outstanding: u32,
}

/// Bits of a cookie that count the requests of a process. The higher bits are the process.
const COOKIE_SHIFT: u32 = 40;

impl Synthetic {
    /// Runs `spec` on a drive of `capacity` sectors of `sector_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If a process has a value that the drive or the model does not allow.
    ///
    /// # Panics
    ///
    /// If there are more than 16,777,215 processes, or the drive has no sectors.
    pub fn new(
        spec: &SyntheticSpec,
        capacity: Sectors,
        sector_bytes: u32,
    ) -> Result<Synthetic, SpecError> {
        assert!(
            spec.processes.len() < 1 << (64 - COOKIE_SHIFT),
            "too many processes"
        );
        assert!(
            capacity > Sectors::ZERO && sector_bytes > 0,
            "a drive has sectors"
        );
        let mut processes = Vec::with_capacity(spec.processes.len());
        for (index, process) in spec.processes.iter().enumerate() {
            let check = Check {
                process: index + 1,
                capacity,
                sector_bytes,
            };
            processes.push(Process::new(spec.seed, index as u32, process, &check)?);
        }
        let slots: usize = processes
            .iter()
            .map(Process::slots)
            .map(|slots| slots as usize)
            .sum();
        let mut source = Synthetic {
            processes,
            due: BinaryHeap::with_capacity(slots + spec.processes.len()),
            left: spec.count.unwrap_or(u64::MAX),
            outstanding: 0,
        };
        for index in 0..source.processes.len() as u32 {
            let process = &source.processes[index as usize];
            let start = process.spec.start;
            for _ in 0..process.slots() {
                source.schedule(index, start);
            }
        }
        Ok(source)
    }

    /// Sets the time of the next request of a slot that is free at `from`. No time is set at the end of
    /// the process.
    fn schedule(&mut self, index: u32, from: Time) {
        let process = &mut self.processes[index as usize];
        if process.promised >= process.spec.count.unwrap_or(u64::MAX) {
            return;
        }
        let wait = match process.spec.pacing {
            Pacing::Closed { think, .. } => think.draw(&mut process.times),
            Pacing::Open { gap, .. } => gap.draw(&mut process.times),
        };
        let wait = match process.spec.cycle {
            None => wait,
            Some(cycle) => cycle.span(from, wait),
        };
        let due = from.saturating_add(wait);
        if due < process.spec.until.unwrap_or(Time::NEVER) {
            process.promised += 1;
            self.due.push(Reverse((due, index, false)));
        }
    }

    /// Schedules the first waiting request at `now`, if there is one and the process is not held back.
    fn release(&mut self, index: u32, now: Time) {
        let process = &mut self.processes[index as usize];
        if process.waiting == 0 || process.is_released || process.is_held() {
            return;
        }
        if process.spec.until.is_some_and(|until| now >= until) {
            process.waiting = 0;
            return;
        }
        process.is_released = true;
        self.due.push(Reverse((now, index, true)));
    }
}

impl Process {
    fn new(seed: u64, index: u32, spec: &ProcessSpec, check: &Check) -> Result<Process, SpecError> {
        check.shares(spec)?;
        check.pacing(spec.pacing)?;
        check.cycle(spec.cycle)?;
        let area = check.area(spec)?;
        let step = check.step("size_step", spec.size_step)?;
        let width = area.end - area.start;
        let most = width.min(Sectors::REQUEST_MAX.get());
        check.places(&spec.places)?;
        check.fsync(spec.fsync)?;
        let size = check.draw("size", &spec.size, step, 1, most)?;
        let write_size = spec.write_size.as_ref();
        let write_size = write_size.map(|size| check.draw("write_size", size, step, 1, most));
        let distance = if spec.local_share > 0.0 {
            let distance = &spec.local_distance;
            check.draw("local_distance", distance, area.align, 0, width)?
        } else {
            Draw::Constant(0)
        };
        let stream = |purpose| Random::new(seed, index, purpose);
        Ok(Process {
            spec: spec.clone(),
            area,
            size,
            write_size: write_size.transpose()?,
            distance,
            spread: PlacesDraw::new(&spec.places, area, stream(4)),
            places: stream(0),
            sizes: stream(1),
            operations: stream(2),
            times: stream(3),
            last: [None; 2],
            made: 0,
            waiting: 0,
            is_released: false,
            unflushed: 0,
            flush: None,
            promised: 0,
            outstanding: 0,
        })
    }

    /// Returns true if the process may not make a request at the moment.
    fn is_held(&self) -> bool {
        let limit = match self.spec.pacing {
            Pacing::Closed { .. } => None,
            Pacing::Open { outstanding, .. } => outstanding,
        };
        self.flush.is_some() || limit.is_some_and(|limit| self.outstanding >= limit)
    }

    /// Largest number of requests that may have a time set at once.
    fn slots(&self) -> u32 {
        match self.spec.pacing {
            Pacing::Closed { outstanding, .. } => outstanding,
            Pacing::Open { .. } => 1,
        }
    }

    fn next_extent(&mut self, is_read: bool) -> Extent {
        let size = self.write_size.as_ref().filter(|_| !is_read);
        let len = size.unwrap_or(&self.size).units(&mut self.sizes);
        let last = &mut self.last[usize::from(self.spec.writes_apart && !is_read)];
        let random = |places: &mut Random| self.spread.draw(self.area, len, places);
        let start = match *last {
            None => match self.spec.first {
                First::Anywhere => random(&mut self.places),
                First::Beginning => self.area.start,
            },
            Some(last) => {
                let kind = self.places.unit();
                if kind < self.spec.sequential_share {
                    self.area.onward(last.end().get(), len)
                } else if kind < self.spec.sequential_share + self.spec.local_share {
                    let distance = self.distance.units(&mut self.places);
                    let up = self.places.chance(0.5);
                    self.area.near(last.start.get(), distance, up, len)
                } else {
                    random(&mut self.places)
                }
            }
        };
        let extent = Extent::new(Lba::new(start), Sectors::new(len));
        *last = Some(extent);
        extent
    }

    /// Makes a request, or the flush that must precede the request.
    fn next(&mut self, index: u32, arrival: Time) -> NewRequest {
        let is_flush = self.spec.fsync.is_some_and(|every| self.unflushed >= every);
        let cookie = (u64::from(index) << COOKIE_SHIFT) | (self.made % (1 << COOKIE_SHIFT));
        let mut request = NewRequest {
            cookie,
            arrival,
            op: Op::Flush,
            extent: Extent::default(),
            flags: Flags::NONE,
            origin: self.spec.origin,
            class: self.spec.class,
        };
        self.made += 1;
        self.outstanding += 1;
        if is_flush {
            (self.flush, self.unflushed) = (Some(cookie), 0);
            return request;
        }
        let is_read = self.operations.chance(self.spec.read_share);
        request.extent = self.next_extent(is_read);
        request.op = if is_read { Op::Read } else { Op::Write };
        if !is_read {
            request.flags = self.spec.write_flags;
            self.unflushed += 1;
        }
        request
    }
}

impl Source for Synthetic {
    fn next_arrival(&self) -> Option<Time> {
        if self.left == 0 {
            return None;
        }
        self.due.peek().map(|Reverse((due, ..))| *due)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        loop {
            self.next_arrival().filter(|due| *due <= now)?;
            let Reverse((arrival, index, waited)) = self.due.pop()?;
            let process = &mut self.processes[index as usize];
            let is_open = matches!(process.spec.pacing, Pacing::Open { .. });
            process.is_released &= !waited;
            if !waited {
                // Requests that already wait go first.
                process.waiting += 1;
            }
            let is_free = !process.is_held() && (waited || process.waiting == 1);
            let request = is_free.then(|| process.next(index, arrival));
            let is_asked = request.is_some_and(|request| request.op != Op::Flush);
            process.waiting -= u64::from(is_asked);
            self.left -= u64::from(is_asked);
            self.outstanding += u64::from(request.is_some());
            if is_open && !waited {
                self.schedule(index, arrival);
            }
            self.release(index, arrival);
            if request.is_some() {
                return request;
            }
        }
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        let index = (cookie >> COOKIE_SHIFT) as u32;
        let process = &mut self.processes[index as usize];
        process.outstanding = process
            .outstanding
            .checked_sub(1)
            .expect("a completion too many");
        self.outstanding -= 1;
        let is_flush = process.flush == Some(cookie);
        if is_flush {
            process.flush = None;
        } else if matches!(process.spec.pacing, Pacing::Closed { .. }) {
            self.schedule(index, now);
        }
        self.release(index, now);
    }

    fn done(&self) -> bool {
        self.outstanding == 0 && self.next_arrival().is_none()
    }
}

#[cfg(test)]
mod tests;
