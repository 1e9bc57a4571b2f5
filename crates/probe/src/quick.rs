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

mod meter;
mod rotation;
mod transfer;

use crate::curve::{CurveOptions, LearnError, Learned, learn};
use crate::random::Random;
use crate::{Probe, ProbeError};
use headtime_units::{Lba, Nanos, Sectors};
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

/// Why a disk cannot be learned, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// It has too few sectors to have an arm that moves.
    #[error("it has {bytes} bytes; a disk of less than 16 MiB is none that has to seek")]
    TooSmall {
        /// Its size.
        bytes: u64,
    },
    /// Times between reads of one place have no period.
    #[error(
        "nothing turns: {reads} reads of the same places, {mean} each on average, come back at any time; \
         that is an SSD, memory, or a cache in front of a disk"
    )]
    NoRotation {
        /// Reads of places that had been read before.
        reads: u64,
        /// Their mean time.
        mean: Nanos,
    },
    /// Reads of places that were read before come from the buffer.
    #[error(
        "the buffer still has what was read {places} reads before, so that no place could be read twice \
         from the medium"
    )]
    Buffered {
        /// Places that were read in between.
        places: u64,
    },
    /// Reads behind the same movement differ by more than a turn.
    #[error(
        "{percent} % of the reads took over a turn longer than others behind the same movement: something \
         else uses the disk; stop it, and try again"
    )]
    Loaded {
        /// Share of such reads.
        percent: u64,
    },
    /// Some reads took far longer than any movement.
    #[error(
        "{count} of {reads} reads took over {} each, the longest {longest}: the disk does something of \
         its own in between, as shingled (SMR) disks do, or retries sectors that it can hardly read",
        Obstacle::STALL
    )]
    Stalls {
        count: u64,
        reads: u64,
        longest: Nanos,
    },
    /// The time is over, and no part got enough reads.
    #[error("{reads} reads took {took}; that is too slow to learn anything in this time")]
    Slow {
        reads: u64,
        /// All of them.
        took: Nanos,
    },
    /// A command failed.
    #[error("{0}")]
    Failed(String),
}

impl Obstacle {
    /// A read that takes so long, alone in the drive, stalled.
    pub const STALL: Nanos = Nanos::from_millis(250);
}

impl From<ProbeError> for Obstacle {
    fn from(error: ProbeError) -> Obstacle {
        Obstacle::Failed(error.to_string())
    }
}

/// How fast it turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation {
    /// Time of a turn, in ns.
    pub turn_ns: f64,
    /// Standard error, as a share of the turn.
    pub error: f64,
    /// Part of the times between reads that are whole turns, up to a tenth of one.
    pub agree: f64,
    /// Times between reads that it rests on.
    pub reads: u64,
}

impl Rotation {
    /// Turns in a minute.
    pub fn rpm(&self) -> f64 {
        60e9 / self.turn_ns
    }
}

/// Sequential bandwidth at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Where.
    pub place: Lba,
    pub bytes_per_second: f64,
}

/// Random reads of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomReads {
    /// Commands in the drive.
    pub depth: u16,
    /// Answers counted.
    pub reads: u64,
    /// Answers in a second.
    pub iops: f64,
    /// Mean time of an answer.
    pub mean: Nanos,
    /// The time that 99 % of the answers stay below.
    pub most: Nanos,
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

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is being measured.
    pub part: &'static str,
    /// Of the time that it may take, 0 to 1.
    pub done: f64,
}

/// A read of this size is one that databases and file systems make, and costs little beside its positioning.
pub const READ_BYTES: u64 = 4096;

/// The least that a disk has.
const BYTES_MIN: u64 = 16 << 20;

/// The most commands at a time.
const DEPTH_MAX: u16 = 32;

/// Learns what can be learned of a disk in a short time. `watch` is told how far that is, at each answer.
///
/// # Panics
///
/// If the time is out of range.
pub fn quick(
    probe: &mut impl Probe,
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

    fn learn<P: Probe>(&mut self, meter: &mut Meter<'_, P>) -> Result<(), Obstacle> {
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
    fn random_reads<P: Probe>(
        &mut self,
        meter: &mut Meter<'_, P>,
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
    fn seeks<P: Probe>(&self, meter: &mut Meter<'_, P>) -> Result<Option<Learned>, Obstacle> {
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
