//! Synthetic programs.
//!
//! A [`Synthetic`] source runs any number of processes. Each has four random streams of its own:
//! for places, sizes, operations and times. So the requests of a process depend neither on when the
//! disk answers nor on other processes. Two schedulers compared on one seed serve the same
//! requests.

mod compile;

mod spec;

pub use spec::{
    Cycle, DistributionError, First, Pacing, ProcessSpec, SizeDistribution, SpecError,
    SyntheticSpec, TimeDistribution,
};

use crate::Random;
use crate::{NewRequest, Source};
pub use compile::Sizes;
use compile::{Area, Check, Draw};
use headtime_sched::{Flags, Op};
use headtime_units::{Extent, Lba, Sectors, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Runs the processes of a [`SyntheticSpec`] on a drive.
#[derive(Clone, Debug)]
pub struct Synthetic {
    processes: Vec<Process>,
    /// When each idle slot of each process asks next, and which process.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// Requests that may still be made by all together.
    left: u64,
    outstanding: u64,
}

#[derive(Clone, Debug)]
struct Process {
    spec: ProcessSpec,
    area: Area,
    size: Draw,
    distance: Draw,
    places: Random,
    sizes: Random,
    operations: Random,
    times: Random,
    last: Option<Extent>,
    made: u64,
    /// Requests for which a time is set or passed, at most `spec.count`.
    promised: u64,
    outstanding: u32,
}

/// Bits of a cookie that count the requests of a process; the process is above.
const COOKIE_SHIFT: u32 = 40;

impl Synthetic {
    /// Runs `spec` on a drive of `capacity` sectors of `sector_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If a process asks for something that the drive or the model does not have.
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
            due: BinaryHeap::with_capacity(slots),
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

    /// Sets the time of the next request of a slot that is free at `from`, if there is to be one.
    fn schedule(&mut self, index: u32, from: Time) {
        let process = &mut self.processes[index as usize];
        if process.promised >= process.spec.count.unwrap_or(u64::MAX) {
            return;
        }
        let wait = match process.spec.pacing {
            Pacing::Closed { think, .. } => think.draw(&mut process.times),
            Pacing::Open { gap } => gap.draw(&mut process.times),
        };
        let wait = match process.spec.cycle {
            None => wait,
            Some(cycle) => cycle.span(from, wait),
        };
        let due = from.saturating_add(wait);
        if due < process.spec.until.unwrap_or(Time::NEVER) {
            process.promised += 1;
            self.due.push(Reverse((due, index)));
        }
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
        let size = check.draw("size", spec.size, step, 1, most)?;
        let distance = if spec.local_share > 0.0 {
            check.draw("local_distance", spec.local_distance, area.align, 0, width)?
        } else {
            Draw::Constant(0)
        };
        let stream = |purpose| Random::new(seed, index, purpose);
        Ok(Process {
            spec: spec.clone(),
            area,
            size,
            distance,
            places: stream(0),
            sizes: stream(1),
            operations: stream(2),
            times: stream(3),
            last: None,
            made: 0,
            promised: 0,
            outstanding: 0,
        })
    }

    /// How many requests of it may be due at a time.
    fn slots(&self) -> u32 {
        match self.spec.pacing {
            Pacing::Closed { outstanding, .. } => outstanding,
            Pacing::Open { .. } => 1,
        }
    }

    fn next_extent(&mut self) -> Extent {
        let len = self.size.units(&mut self.sizes);
        let start = match self.last {
            None => match self.spec.first {
                First::Anywhere => self.area.anywhere(len, &mut self.places),
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
                    self.area.anywhere(len, &mut self.places)
                }
            }
        };
        let extent = Extent::new(Lba::new(start), Sectors::new(len));
        self.last = Some(extent);
        extent
    }
}

impl Source for Synthetic {
    fn next_arrival(&self) -> Option<Time> {
        if self.left == 0 {
            return None;
        }
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    fn poll(&mut self, now: Time) -> Option<NewRequest> {
        self.next_arrival().filter(|due| *due <= now)?;
        let Reverse((arrival, index)) = self.due.pop()?;
        self.left -= 1;
        self.outstanding += 1;
        let process = &mut self.processes[index as usize];
        let extent = process.next_extent();
        let is_read = process.operations.chance(process.spec.read_share);
        let cookie = (u64::from(index) << COOKIE_SHIFT) | (process.made % (1 << COOKIE_SHIFT));
        process.made += 1;
        process.outstanding += 1;
        let request = NewRequest {
            cookie,
            arrival,
            op: if is_read { Op::Read } else { Op::Write },
            extent,
            flags: if is_read {
                Flags::NONE
            } else {
                process.spec.write_flags
            },
            origin: process.spec.origin,
            class: process.spec.class,
        };
        if matches!(process.spec.pacing, Pacing::Open { .. }) {
            self.schedule(index, arrival);
        }
        Some(request)
    }

    fn completed(&mut self, now: Time, cookie: u64) {
        let index = (cookie >> COOKIE_SHIFT) as u32;
        let process = &mut self.processes[index as usize];
        process.outstanding = process
            .outstanding
            .checked_sub(1)
            .expect("a completion too many");
        self.outstanding -= 1;
        if matches!(process.spec.pacing, Pacing::Closed { .. }) {
            self.schedule(index, now);
        }
    }

    fn done(&self) -> bool {
        self.outstanding == 0 && self.next_arrival().is_none()
    }
}

#[cfg(test)]
mod tests;
