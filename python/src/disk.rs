//! The model of a drive, command by command in virtual time.

use crate::error::Failure;
use headtime_disk::{Command, Drive};
use headtime_lab::fault::Fault;
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use pyo3::prelude::*;

/// A disk of `Drive.disk(seed)`: commands go in, completions come out.
///
/// Invariant: `now` is the latest time of any call.
#[pyclass(module = "headtime")]
pub struct Disk {
    drive: Drive,
    now: Time,
}

impl Disk {
    pub fn new(drive: Drive) -> Disk {
        Disk {
            drive,
            now: Time::ZERO,
        }
    }

    /// Moves the disk's time forward.
    fn moves(&mut self, now_ns: u64) -> Result<(), Failure> {
        let now = Time::ZERO + Nanos::from_nanos(now_ns);
        if now < self.now {
            let problem = format!("time goes back from {} to {now_ns} ns", nanos(self.now));
            return Err(usage("now", &problem));
        }
        self.now = now;
        Ok(())
    }
}

fn usage(argument: &str, problem: &str) -> Failure {
    Failure::from(Fault::Usage(format!("{argument}: {problem}")))
}

/// Nanoseconds from the start.
fn nanos(time: Time) -> u64 {
    time.saturating_since(Time::ZERO).as_nanos()
}

#[pymethods]
impl Disk {
    /// Hands a command to the disk.
    #[pyo3(signature = (now, tag, op, lba=0, sectors=0, *, fua=false))]
    fn submit(
        &mut self,
        now: u64,
        tag: u32,
        op: &str,
        lba: u64,
        sectors: u64,
        fua: bool,
    ) -> PyResult<()> {
        self.moves(now)?;
        let op = match op {
            "read" => Op::Read,
            "write" => Op::Write,
            "flush" => Op::Flush,
            other => {
                let problem = format!("`{other}` is unknown; allowed are read, write and flush");
                return Err(usage("op", &problem).into());
            }
        };
        let capacity = self.drive.capacity().get();
        if op != Op::Flush && (sectors == 0 || lba.checked_add(sectors).is_none_or(|end| end > capacity)) {
            let problem = format!("{sectors} sectors from {lba} on; the disk has {capacity}, and a command 1 or more");
            return Err(usage("sectors", &problem).into());
        }
        if self.drive.in_flight() >= self.drive.depth() as usize {
            let depth = self.drive.depth();
            let problem = format!("the disk has {depth} commands already; poll before the next one");
            return Err(usage("submit", &problem).into());
        }
        let extent = match op {
            Op::Flush => Extent::new(Lba::ZERO, Sectors::ZERO),
            _ => Extent::at(lba, sectors),
        };
        let command = Command {
            tag,
            op,
            extent,
            fua,
            high: false,
        };
        self.drive.submit(self.now, command);
        Ok(())
    }

    /// The next time at which `poll` may return a completion, in ns. None while nothing is under way.
    fn next_event(&self) -> Option<u64> {
        self.drive.next_event().map(nanos)
    }

    /// Completions up to a time: tag, time in ns, and true if the medium could be read or written.
    fn poll(&mut self, now: u64) -> PyResult<Vec<(u32, u64, bool)>> {
        self.moves(now)?;
        let mut done = Vec::new();
        while let Some(completion) = self.drive.poll(self.now) {
            let is_good = completion.result.is_ok();
            done.push((completion.tag, nanos(completion.at), is_good));
        }
        Ok(done)
    }

    /// Commands that the disk takes at a time.
    #[getter]
    fn depth(&self) -> u32 {
        self.drive.depth()
    }

    /// Commands in the disk.
    #[getter]
    fn in_flight(&self) -> usize {
        self.drive.in_flight()
    }

    /// Sectors of the disk.
    #[getter]
    fn sectors(&self) -> u64 {
        self.drive.capacity().get()
    }
}
