//! A scratch range that is written and read.

use super::super::bench::Bench;
use super::super::desk::HitTime;
use super::super::error::ExtractError;
use super::super::ground::Ground;
use super::super::turns::median;
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

/// Trials that decide.
pub(super) const VOTES: usize = 7;
/// More writes are not sent until one waits.
const MOST: u64 = 20_000;
/// Writes that wait, which show how fast room is made.
const WAITING: usize = 8;

/// What is known of reads already.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Reads {
    /// True if the drive says that its write cache is on. `None` if the drive does not say.
    pub cached: Option<bool>,
    pub hit: HitTime,
    pub segment: Option<u64>,
    pub segments: Option<u64>,
}

/// A drive, and where it may be written.
pub(super) struct Pad<'b, 'a, 'g> {
    pub bench: &'b mut Bench<'a>,
    pub ground: &'g Ground<'g>,
    pub reads: Reads,
    pub scratch: Extent,
    /// Sectors of a small write.
    pub unit: u64,
    /// Where reads are far from the scratch range: so many sectors from here.
    pub far: Extent,
    /// From there to the scratch range, in nanoseconds.
    pub way: f64,
}

impl Pad<'_, '_, '_> {
    /// So many places of `len` sectors, as far apart as there is room for, in no order.
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

    /// The time of a read far away, in the middle of some: the arm was left there, a small write came, and so much time
    /// passed.
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

    /// What such a read takes at most if the arm stayed, and at least if it went.
    pub fn stayed(&mut self) -> Result<f64, ExtractError> {
        self.flush()?;
        let mut took = Vec::new();
        for _ in 0..4 * VOTES {
            let far = self.far_place();
            took.push(self.read(far)?);
        }
        Ok(median(&mut took).unwrap_or(0.0) + 0.45 * self.way)
    }

    /// How many writes of `len` the drive takes before one has to wait. `None` if none does.
    pub fn fill(&mut self, len: u64) -> Result<Option<f64>, ExtractError> {
        self.flush()?;
        let most = MOST.min(self.scratch.len.get() / (3 * len));
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
                if waited.len() == WAITING {
                    break;
                }
            }
        }
        self.flush()?;
        let Some(full) = full else { return Ok(None) };
        // Beyond half of the room data may have gone to the medium meanwhile, as fast as writes that wait show.
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
