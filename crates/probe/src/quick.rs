//! Measurement of a disk in two minutes.
//!
//! The measurement uses reads alone and leaves the buffer as it is, and covers rotation, sequential bandwidth over the disk, random reads at
//! two depths, and service time by distance. Each part gets a share of [`QuickOptions::time`], on the probe's clock.
//!
//! *Rotation* ([`Rotation`]). Random places are read repeatedly, with pauses. A sector passes the head once a turn. Two reads of the same
//! place are therefore whole turns apart, unless the buffer answers. The turn is the longest period that divides nearly all of these times.
//! Where the buffer answers, more places are read in between.
//!
//! *Obstacles* ([`Obstacle`]) show early, mostly in the first seconds. Examples are a disk of a few sectors, answers without a period, and
//! reads that stall or fail. Another is answers for the same movement that vary by more than a turn. Results up to an obstacle are
//! retained.

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

/// Options for a quick measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickOptions {
    /// Time limit on the probe's clock: [`QuickOptions::TIME_MIN`] to an hour.
    pub time: Nanos,
    /// Seed of places and pauses.
    pub seed: u64,
}

impl QuickOptions {
    /// Shortest time in which all parts get enough reads on a disk with 5400 turns a minute.
    pub const TIME_MIN: Nanos = Nanos::from_secs(30);
    /// Longest time; a longer measurement would not show more.
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

/// Results of a quick measurement, possibly incomplete.
///
/// Invariants:
///
/// - `TIME_MIN ≤ options.time ≤ TIME_MAX`; `depth ≤ 32`.
/// - `random` has at most an entry for depth 1 and an entry for `depth`, in this order.
/// - `rotation.is_none()` ⇒ `obstacle.is_some()`.
/// - `curve.is_some()` ⇒ `small_sequential.is_some()`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quick {
    /// Name of the probe.
    pub drive: String,
    /// Sectors of the drive.
    pub capacity: Sectors,
    pub sector_bytes: u32,
    /// Most commands in the drive at a time.
    pub depth: u16,
    pub options: QuickOptions,
    pub rotation: Option<Rotation>,
    /// Sequential bandwidth by place, in the order of addresses.
    pub rates: Vec<Rate>,
    /// Random reads, first alone, then with the drive's full depth, up to 32.
    pub random: Vec<RandomReads>,
    /// Sequential reads of 4 KiB in a second, with the drive's full depth, up to 32.
    pub small_sequential: Option<f64>,
    /// Service time by distance.
    pub curve: Option<Learned>,
    /// Reason for missing results.
    pub obstacle: Option<Obstacle>,
    /// Commands sent.
    pub reads: u64,
    /// Time of the measurement, on the probe's clock.
    pub took: Nanos,
}

/// Smallest size of a disk.
const BYTES_MIN: u64 = 16 << 20;

/// Measures a disk in a short time. Calls `watch` with the progress at each answer.
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
    /// Highest and lowest sequential bandwidth, in bytes a second.
    pub fn fastest_and_slowest(&self) -> Option<[f64; 2]> {
        let rates = || self.rates.iter().map(|rate| rate.bytes_per_second);
        let fastest = rates().reduce(f64::max)?;
        Some([fastest, rates().reduce(f64::min)?])
    }

    /// Random reads with the drive's full depth, up to 32.
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
            // All other parts can be measured.
            Err(Obstacle::Buffered { places }) => Some(Obstacle::Buffered { places }),
            Err(Obstacle::NoRotation { reads, mean }) => {
                // For a device that does not turn, only random reads are of interest.
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

    /// Learns the curve in the remaining time. `None` if too little time is left.
    fn seeks(&self, meter: &mut Meter<'_>) -> Result<Option<Learned>, Obstacle> {
        meter.begin("seeks");
        let defaults = CurveOptions::default();
        let turn = self.rotation.map_or(0.0, |rotation| rotation.turn_ns);
        let pause_max = defaults.pause_max.max(Nanos::from_nanos(turn as u64));
        let alone = self.random.first().map_or(Nanos::ZERO, |reads| reads.mean);
        let pair = alone * 2 + pause_max / 2;
        let pairs = meter.left().as_nanos() / pair.as_nanos().max(1);
        // Prefers many distances with few reads each, because the smoothing uses neighbours.
        let distances = (pairs / PAIRS_PER_DISTANCE).min(DISTANCES_MAX);
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

/// Pairs of reads per distance, for the number of distances.
const PAIRS_PER_DISTANCE: u64 = 16;
/// Most and fewest distances of the curve.
const DISTANCES_MAX: u64 = 48;
const DISTANCES_MIN: u64 = 12;

#[cfg(test)]
mod tests;
