//! What can be learned of a disk in two minutes.
//!
//! Reads alone, buffer and all as they are: rotation, sequential bandwidth over the disk, random reads at
//! two depths, the service time by distance. Each gets a share of [`QuickOptions::time`], on the probe's
//! clock.
//!
//! *Rotation* ([`Rotation`]). Random places are read over and over, with pauses. A sector passes the head
//! once a turn; so whatever happens in between, the times between two reads of one place are whole numbers
//! of turns, unless the buffer answers. The longest period that nearly all of them are multiples of is the
//! turn. Where the buffer answers, more places are read in between.
//!
//! *What cannot be learned* ([`Obstacle`]) shows early, most of it in the first seconds: a disk of a few
//! sectors, answers without a period, answers that vary by more than a turn for the same movement, reads
//! that stall, a failure. What is known by then is kept.

mod emit;
mod found;
mod meter;
mod rotation;
mod transfer;

use crate::Probe;
use crate::curve::{CurveOptions, LearnError, Learned, learn};
use crate::random::Random;
use found::DEPTH_MAX;
pub use found::{Obstacle, Progress, READ_BYTES, RandomReads, Rate, Rotation};
use headtime_units::{Nanos, Sectors};
use meter::Meter;

/// How a disk is learned quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickOptions {
    /// How long it may take, on the probe's clock: [`QuickOptions::TIME_MIN`] to an hour.
    pub time: Nanos,
    /// Determines places and pauses.
    pub seed: u64,
}

impl QuickOptions {
    /// The shortest time in which all parts get enough reads on a disk of 5400 turns a minute.
    pub const TIME_MIN: Nanos = Nanos::from_secs(30);
    /// The longest time; more would not tell more.
    pub const TIME_MAX: Nanos = Nanos::from_secs(3_600);
}

impl Default for QuickOptions {
    /// Two minutes, seed 1.
    fn default() -> QuickOptions {
        QuickOptions {
            time: Nanos::from_secs(120),
            seed: 1,
        }
    }
}

/// What was learned, as far as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Quick {
    /// The probe's name.
    pub drive: String,
    /// Sectors of the drive.
    pub capacity: Sectors,
    pub sector_bytes: u32,
    /// Commands that it was given at a time at most.
    pub depth: u16,
    pub options: QuickOptions,
    pub rotation: Option<Rotation>,
    /// By place, rising.
    pub rates: Vec<Rate>,
    /// One at a time, and as many as the drive takes, up to 32.
    pub random: Vec<RandomReads>,
    /// Sequential reads of 4 KiB in a second, as many at a time as the drive takes, up to 32.
    pub small_sequential: Option<f64>,
    /// Service time by distance.
    pub curve: Option<Learned>,
    /// Why something is missing.
    pub obstacle: Option<Obstacle>,
    /// Commands sent.
    pub reads: u64,
    /// How long it took, on the probe's clock.
    pub took: Nanos,
}

/// The least that a disk has.
const BYTES_MIN: u64 = 16 << 20;

/// Learns what can be learned of a disk in a short time. `watch` is told how far that is, at each answer.
///
/// # Panics
///
/// If the time is out of range.
pub fn quick(
    probe: &mut dyn Probe,
    options: &QuickOptions,
    watch: &mut dyn FnMut(Progress),
) -> Quick {
    assert!(
        (QuickOptions::TIME_MIN..=QuickOptions::TIME_MAX).contains(&options.time),
        "{} to learn a disk",
        options.time
    );
    let mut quick = Quick {
        drive: probe.name(),
        capacity: probe.capacity(),
        sector_bytes: probe.sector_bytes(),
        depth: probe.depth().min(DEPTH_MAX),
        options: *options,
        rotation: None,
        rates: Vec::new(),
        random: Vec::new(),
        small_sequential: None,
        curve: None,
        obstacle: None,
        reads: 0,
        took: Nanos::ZERO,
    };
    let mut meter = Meter::new(probe, options.time, watch);
    if let Err(obstacle) = quick.learn(&mut meter) {
        quick.obstacle = Some(obstacle);
    }
    quick.reads = meter.reads();
    quick.took = meter.elapsed();
    quick
}

impl Quick {
    /// The highest and the lowest sequential bandwidth, in bytes a second.
    pub fn fastest_and_slowest(&self) -> Option<[f64; 2]> {
        let rates = || self.rates.iter().map(|rate| rate.bytes_per_second);
        let fastest = rates().reduce(f64::max)?;
        Some([fastest, rates().reduce(f64::min)?])
    }

    /// Random reads with so many in the drive as it takes, up to 32.
    pub fn deepest(&self) -> Option<&RandomReads> {
        self.random.last()
    }

    fn learn(&mut self, meter: &mut Meter<'_>) -> Result<(), Obstacle> {
        let bytes = self.capacity.bytes(self.sector_bytes);
        if bytes < BYTES_MIN {
            return Err(Obstacle::TooSmall { bytes });
        }
        let mut random = Random::new(self.options.seed);
        let share = |percent: u64| Nanos::from_nanos(self.options.time.as_nanos() / 100 * percent);

        meter.begin("rotation");
        let found = rotation::find(meter, share(20), &mut random);
        let buffered = match found {
            Ok(rotation) => {
                self.rotation = Some(rotation);
                None
            }
            // All else can be measured.
            Err(Obstacle::Buffered { places }) => Some(Obstacle::Buffered { places }),
            Err(Obstacle::NoRotation { reads, mean }) => {
                // The rest of a disk that is none: what it does with random reads.
                self.random_reads(meter, share(3), &mut random)?;
                return Err(Obstacle::NoRotation { reads, mean });
            }
            Err(other) => return Err(other),
        };

        meter.begin("bandwidth");
        transfer::rates(meter, share(22), &mut self.rates)?;
        self.small_sequential = Some(transfer::small(meter, share(2))?);

        meter.begin("random reads");
        self.random_reads(meter, share(9), &mut random)?;
        self.curve = self.seeks(meter)?;
        buffered.map_or(Ok(()), Err)
    }

    /// Random reads at both depths, each for `time`.
    fn random_reads(
        &mut self,
        meter: &mut Meter<'_>,
        time: Nanos,
        random: &mut Random,
    ) -> Result<(), Obstacle> {
        for depth in [1, self.depth] {
            if self.random.iter().all(|known| known.depth != depth) {
                let reads = transfer::random(meter, depth, time, random)?;
                self.random.push(reads);
            }
        }
        Ok(())
    }

    /// The curve in the time that is left. `None` if that is too little.
    fn seeks(&self, meter: &mut Meter<'_>) -> Result<Option<Learned>, Obstacle> {
        meter.begin("seeks");
        let defaults = CurveOptions::default();
        let turn = self.rotation.map_or(0.0, |rotation| rotation.turn_ns);
        let pause_max = defaults.pause_max.max(Nanos::from_nanos(turn as u64));
        let alone = self.random.first().map_or(Nanos::ZERO, |reads| reads.mean);
        let pair = alone * 2 + pause_max / 2;
        let pairs = meter.left().as_nanos() / pair.as_nanos().max(1);
        // Many distances with few reads each, as far as the smoothing carries: neighbours count too.
        let distances = (pairs / SAMPLES).min(DISTANCES_MAX);
        if distances < DISTANCES_MIN {
            return Ok(None);
        }
        let options = CurveOptions {
            distances: distances as u32,
            samples: (pairs / (distances + 1)).max(8) as u32,
            pause_max,
            seed: self.options.seed,
            ..defaults
        };
        match learn(meter, &options) {
            Ok(learned) => {
                meter.check_stalls()?;
                Ok(Some(learned))
            }
            Err(LearnError::Probe(error)) => Err(error.into()),
            Err(other) => Err(Obstacle::Failed(other.to_string())),
        }
    }
}

/// Reads of a distance that are worth one more.
const SAMPLES: u64 = 16;
/// As far as the curve needs them.
const DISTANCES_MAX: u64 = 48;
const DISTANCES_MIN: u64 = 12;

#[cfg(test)]
mod tests;
