//! Timed writes and reads in the writable range of a drive.

use super::super::bench::Bench;
use super::super::buffer_probe::HitTime;
use super::super::error::ExtractError;
use super::super::known_drive::KnownDrive;
use super::super::turns::median;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

/// Trials per decision.
pub(super) const TRIALS_PER_DECISION: usize = 7;
/// Most writes that are sent in the attempt to fill the cache.
const FILLING_WRITES_MAX: u64 = 20_000;
/// Number of delayed writes that measure how fast the cache drains.
const DELAYED_WRITES: usize = 8;

/// Results about reads so far.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Reads {
    /// True if the drive reports that its write cache is on; `None` if the drive reports nothing.
    pub cached: Option<bool>,
    pub hit: HitTime,
    pub segment: Option<u64>,
    pub segments: Option<u64>,
}

/// A drive and its writable range.
pub(super) struct ScratchArea<'b, 'a, 'g> {
    pub bench: &'b mut Bench<'a>,
    pub drive: &'g KnownDrive<'g>,
    pub reads: Reads,
    pub scratch: Extent,
    /// Sectors of a small write.
    pub unit: u64,
    /// Range of sectors far from the scratch range, for reads.
    pub far: Extent,
    /// Time of the arm movement from `far` to the scratch range, in nanoseconds.
    pub way: f64,
}

impl ScratchArea<'_, '_, '_> {
    /// Up to `count` places of `len` sectors in random order, spread over the whole range.
    pub fn places(&mut self, count: u64, len: u64) -> Vec<u64> {
        let stride = self.scratch.len.get() / count;
        let mut places: Vec<u64> = (0..count)
            .map(|index| {
                let first = self.scratch.start.get() + index * stride;
                (first + self.bench.random.up_to(stride / 4)).next_multiple_of(self.unit)
            })
            .filter(|first| first + len <= self.scratch.end().get())
            .collect();
        for at in (1..places.len()).rev() {
            places.swap(at, self.bench.random.up_to(at as u64) as usize);
        }
        places
    }

    pub fn place(&mut self) -> u64 {
        let room = self.scratch.len.get() - 2 * self.unit;
        let first = self.scratch.start.get() + self.bench.random.up_to(room);
        first.next_multiple_of(self.unit)
    }

    pub fn far_place(&mut self) -> u64 {
        self.far.start.get() + self.bench.random.up_to(self.far.len.get() - 1)
    }

    pub fn write(&mut self, lba: u64, len: u64) -> Result<f64, ExtractError> {
        let answer = self.bench.command(Op::Write, Extent::at(lba, len))?;
        Ok((answer.at - answer.sent).as_nanos() as f64)
    }

    pub fn read(&mut self, lba: u64) -> Result<f64, ExtractError> {
        let answer = self.bench.read(lba, 1)?;
        Ok((answer.at - answer.sent).as_nanos() as f64)
    }

    pub fn flush(&mut self) -> Result<(), ExtractError> {
        self.bench.command(Op::Flush, Extent::at(0, 0)).map(|_| ())
    }

    pub fn pause(&mut self, nanos: f64) {
        self.bench.probe.pause(Nanos::from_nanos(nanos as u64));
    }

    /// Median time of a far read after this sequence: a read there, a small write, and a pause of `wait` nanoseconds.
    pub fn read_after(&mut self, wait: f64, times: usize) -> Result<f64, ExtractError> {
        let mut took = Vec::new();
        for _ in 0..times {
            self.flush()?;
            let [first, second] = [self.far_place(), self.far_place()];
            self.read(first)?;
            let place = self.place();
            self.write(place, self.unit)?;
            self.pause(wait);
            took.push(self.read(second)?);
        }
        Ok(median(&mut took).unwrap_or(0.0))
    }

    /// Measures the limit for the time of a read in `far`, in nanoseconds. The arm was at `far` already if the read takes less time. A
    /// destaged write had moved the arm to the scratch range if the read takes more.
    pub fn stayed(&mut self) -> Result<f64, ExtractError> {
        self.flush()?;
        let mut took = Vec::new();
        for _ in 0..4 * TRIALS_PER_DECISION {
            let far = self.far_place();
            took.push(self.read(far)?);
        }
        Ok(median(&mut took).unwrap_or(0.0) + 0.45 * self.way)
    }

    /// Number of writes of `len` that the drive takes before a write has to wait. `None` if no write waits.
    pub fn fill(&mut self, len: u64) -> Result<Option<f64>, ExtractError> {
        self.flush()?;
        let most = FILLING_WRITES_MAX.min(self.scratch.len.get() / (3 * len));
        let places = self.places(most.max(1), len);
        let far = self.far_place();
        self.read(far)?;
        let mut at: Vec<Time> = vec![self.bench.probe.now()];
        let mut least = f64::INFINITY;
        let mut waited: Vec<f64> = Vec::new();
        let mut full = None;
        for (count, place) in places.iter().enumerate() {
            let took = self.write(*place, len)?;
            at.push(self.bench.probe.now());
            least = least.min(took);
            if full.is_some() || took > 1.5 * least + 1e6 {
                full = full.or(Some(count));
                waited.push(took);
                if waited.len() == DELAYED_WRITES {
                    break;
                }
            }
        }
        self.flush()?;
        let Some(full) = full else { return Ok(None) };
        // Beyond half of the room, data may have gone to the medium meanwhile, at the rate of the delayed writes.
        let each = (waited.iter().sum::<f64>() / waited.len().max(1) as f64).max(1.0);
        let mut taken = full as f64;
        for _ in 0..8 {
            let half = at[(taken / 2.0) as usize];
            // The arm comes from far away.
            let gone = ((at[full] - half).as_nanos() as f64 - self.way).max(0.0) / each;
            taken = (full as f64 - gone).max(full as f64 / 2.0);
        }
        let few = full < 12;
        Ok(Some(if few { full as f64 } else { taken }))
    }
}
