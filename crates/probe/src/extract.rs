//! Learns a whole profile of a drive from timed reads.
//!
//! ```text
//! rotation ─► tracks, skews, slips, zones ─► surfaces ─► bus ─► gaps ─► seeks ─► writes ─► access ─► hold-out
//!     ─► buffer, queue, write cache ─► sectors that are elsewhere
//! ```
//!
//! An [`Extraction`] is plain data: all results, and the progress of the work. Each [`Extraction::step`] works on a drive for some seconds
//! of the drive's time. Between steps an extraction can be saved and restored. Each step measures the phase of the platters anew and draws
//! its own random numbers. An extraction that was interrupted therefore gives the same result as an uninterrupted one.
//!
//! The probe reads single sectors and notes the times of the answers. Read-ahead and the buffer stay on. An answer that came too fast for
//! the medium is repeated after other reads have evicted the sector.

mod ahead;
mod assemble;
mod averaged_samples;
mod bench;
mod buffer_probe;
mod comb;
mod consistency;
mod cycle;
mod electronics;
mod error;
mod gaps;
mod holdout;
mod jitter;
mod known_drive;
mod learned_keys;
mod of_model;
mod patience;
mod phase;
mod prefetch_trap;
mod queueing;
mod reach;
mod remaps;
mod rotation;
mod row_starts;
mod rows;
mod seeks;
mod segments;
mod separate_tracks;
mod shape;
mod solve;
mod spindle;
mod stages;
mod stalls;
mod strips;
mod surfaces;
mod transfer;
pub(crate) mod turns;
mod verdict;
mod walk;
mod walk_limits;
mod write_cache;
mod writes;
mod zone;
mod zones;

use crate::Probe;
use bench::Bench;
use headtime_disk::Profile;
use headtime_units::{Extent, Nanos, Sectors};
use patience::Pace;
use serde::{Deserialize, Serialize};

pub use ahead::Ahead;
pub use assemble::skews;
pub use buffer_probe::HitTime;
pub use electronics::Electronics;
pub use error::ExtractError;
pub use holdout::Held;
pub use jitter::Jitter;
pub use rotation::{Mark, Spindle};

pub use learned_keys::LearnedKeys;
pub use of_model::{UnlearnedModel, profile_of, run_model};
pub use queueing::{Leaves, OrderOf, Queueing};
pub use remaps::{Combing, Remapped, Remaps};
pub use segments::Segments;
pub use shape::{Shape, Spared};
pub use stalls::Stalls;
pub use transfer::Transfer;
pub use verdict::{Finding, KeyState, Verdict, Worth};
pub use walk::Walked;
pub use write_cache::WriteCache;
pub use writes::Writes;
pub use zone::{Fault, FoundZone, Row};

/// Subject of the current measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Rotation,
    Tracks,
    Surfaces,
    Bus,
    Gaps,
    Seeks,
    Writes,
    Access,
    HoldOut,
    Electronics,
    Remaps,
    Done,
}

impl Stage {
    /// Description of the stage's work.
    pub fn text(self) -> &'static str {
        match self {
            Stage::Rotation => "rotation",
            Stage::Tracks => "tracks and zones",
            Stage::Surfaces => "surfaces",
            Stage::Bus => "bus",
            Stage::Gaps => "short seeks",
            Stage::Seeks => "seeks",
            Stage::Writes => "writes",
            Stage::Access => "zero latency",
            Stage::HoldOut => "checking by other reads",
            Stage::Electronics => "buffer, queue and write cache",
            Stage::Remaps => "sectors that are elsewhere",
            Stage::Done => "done",
        }
    }
}

/// Progress of an extraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    pub stage: Stage,
    /// Share of the stage that is done.
    pub share: f64,
    /// Estimated drive time for the rest; `None` while there is no basis for an estimate.
    pub left: Option<Nanos>,
}

/// Results about a drive, and the progress of the work.
///
/// Invariants: `stage > Rotation` ⇔ `spindle` is `Some`; `stage > Bus` ⇒ `transfer` is `Some`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extraction {
    name: String,
    capacity: u64,
    sector_bytes: u32,
    seed: u64,
    steps: u64,
    stage: Stage,
    /// Commands so far.
    pub reads: u64,
    /// Drive time spent so far.
    pub spent: Nanos,
    /// Number and time of commands in failed steps, whose results were discarded.
    #[serde(skip)]
    pub in_vain: (u64, Nanos),
    #[serde(default)]
    stage_spent: Nanos,
    pub spindle: Option<Spindle>,
    /// Rotation time in nanoseconds at each measurement, after the drive time spent until then.
    pub turns: Vec<(Nanos, f64)>,
    pub walked: Walked,
    pub shape: Option<Shape>,
    /// Contradictions in the layout, each a sentence with advice.
    #[serde(default)]
    pub contradictions: Vec<String>,
    pub transfer: Option<Transfer>,
    /// Cylinders without data before each zone of the profile.
    pub gaps: Vec<u32>,
    /// Number of short seeks that were tried.
    short: usize,
    /// Number of seeks that were tried.
    tried: usize,
    /// Least time by distance in cylinders, processing included, in nanoseconds.
    pub seeks: Vec<(u32, f64)>,
    /// Least time to another surface, processing included, in nanoseconds.
    pub switch: Option<f64>,
    /// Upper bound of the time to another surface, since the switch fits between two tracks.
    #[serde(default)]
    crossing: Option<f64>,
    /// Scratch range for writes: first sector and number of sectors.
    scratch: Option<(u64, u64)>,
    pub writes: Option<Writes>,
    pub zero_latency: Option<bool>,
    pub held: Held,
    #[serde(default)]
    pub electronics: Electronics,
    /// Sectors whose data is elsewhere.
    #[serde(default)]
    pub remaps: Remaps,
    #[serde(default)]
    stalls: Stalls,
    #[serde(default)]
    pace: Pace,
    /// Longest time for the walk over the tracks. A limit of the caller, not a property of the drive.
    #[serde(skip, default = "patience")]
    patience: Nanos,
}

fn patience() -> Nanos {
    patience::PATIENCE_DEFAULT
}

/// Attempts at a step in which the drive fails a command.
pub const STEP_TRIES: u32 = 4;

/// Random reads that check the profile.
const HELD_OUT: u64 = 5_000;

impl Extraction {
    /// Starts an extraction. Reads nothing yet.
    pub fn new(probe: &dyn Probe, seed: u64) -> Extraction {
        Extraction {
            name: probe.name(),
            capacity: probe.capacity().get(),
            sector_bytes: probe.sector_bytes(),
            seed,
            steps: 0,
            stage: Stage::Rotation,
            reads: 0,
            spent: Nanos::ZERO,
            in_vain: (0, Nanos::ZERO),
            stage_spent: Nanos::ZERO,
            spindle: None,
            turns: Vec::new(),
            walked: Walked::default(),
            shape: None,
            contradictions: Vec::new(),
            transfer: None,
            gaps: Vec::new(),
            short: 0,
            tried: 0,
            seeks: Vec::new(),
            switch: None,
            crossing: None,
            scratch: None,
            writes: None,
            zero_latency: None,
            held: Held::default(),
            electronics: Electronics::default(),
            remaps: Remaps::default(),
            stalls: Stalls::default(),
            pace: Pace::default(),
            patience: patience(),
        }
    }

    /// Smallest useful scratch range: 256 MiB, or an eighth of a drive below 2 GiB.
    pub fn scratch_min(capacity: Sectors, sector_bytes: u32) -> Sectors {
        let sectors = writes::BYTES_MIN.div_ceil(u64::from(sector_bytes));
        let part = capacity.get().div_ceil(8);
        Sectors::new(sectors.min(part).max(writes::SECTORS_MIN))
    }

    /// Permits timed writes to these sectors, and the loss of their data.
    #[must_use]
    pub fn with_scratch(mut self, range: Extent) -> Extraction {
        self.scratch = Some((range.start.get(), range.len.get()));
        self
    }

    /// Adds a scan of all sectors for data that is elsewhere, also for a drive that is learned already.
    #[must_use]
    pub fn with_remaps(mut self) -> Extraction {
        if self.remaps.combing.is_none() {
            self.remaps.combing = Some(Combing::of(self.capacity));
            if self.stage == Stage::Done {
                self.stage = Stage::Remaps;
            }
        }
        self
    }

    /// Name of the drive.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of sectors of the drive.
    pub fn capacity(&self) -> Sectors {
        Sectors::new(self.capacity)
    }

    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Seed of the random choice of sectors.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Sectors that may be written.
    pub fn scratch(&self) -> Option<Extent> {
        self.scratch.map(|(first, count)| Extent::at(first, count))
    }

    /// Next subject to learn.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Continues until all is learned, or until the total drive time reaches `budget`.
    ///
    /// # Errors
    ///
    /// If the drive cannot be read or cannot be learned. Earlier results stay.
    pub fn run(&mut self, probe: &mut dyn Probe, budget: Nanos) -> Result<(), ExtractError> {
        while self.stage != Stage::Done && self.spent < budget {
            self.step(probe)?;
        }
        Ok(())
    }

    /// Continues for some seconds. If that fails, the results stay unchanged.
    ///
    /// If the drive fails a command, the step is repeated with other places, because a single bad sector should not end a probe. After
    /// [`STEP_TRIES`] such failures in a row the error is returned. A later call draws other places again.
    ///
    /// # Errors
    ///
    /// As for [`Extraction::run`].
    pub fn step_or_stay(&mut self, probe: &mut dyn Probe) -> Result<Outlook, ExtractError> {
        let mut tries = 0;
        loop {
            let mut next = self.clone();
            let error = match next.step(probe) {
                Ok(outlook) => {
                    *self = next;
                    return Ok(outlook);
                }
                Err(error) => error,
            };
            let (commands, time) = (next.reads - self.reads, next.spent - self.spent);
            self.in_vain = (self.in_vain.0 + commands, self.in_vain.1 + time);
            let ExtractError::Failed(_) = error else {
                return Err(error);
            };
            self.steps = next.steps;
            tries += 1;
            if tries == STEP_TRIES {
                return Err(error);
            }
        }
    }

    /// Continues for some seconds.
    ///
    /// # Errors
    ///
    /// As for [`Extraction::run`].
    pub fn step(&mut self, probe: &mut dyn Probe) -> Result<Outlook, ExtractError> {
        let begin = probe.now();
        let mut bench = Bench::new(
            probe,
            self.seed ^ self.steps.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        bench.stalls = self.stalls;
        self.steps += 1;
        let stage = self.stage;
        let result = self.work(&mut bench);
        self.reads += bench.reads;
        self.stalls = bench.stalls;
        let spent = probe.now() - begin;
        self.spent += spent;
        self.stage_spent = if stage == self.stage {
            self.stage_spent + spent
        } else {
            Nanos::ZERO
        };
        result.map(|()| self.progress())
    }

    /// Progress of the work, and an estimate of the time left.
    pub fn progress(&self) -> Outlook {
        let cylinders = match self.stage {
            Stage::Seeks => self
                .draft()
                .map_or(10_000, |draft| draft.geometry.cylinders),
            _ => 10_000,
        };
        let seeks = seeks::distances(cylinders).len();
        let combing = self.remaps.combing.as_ref();
        let combed = combing.map_or(0.0, |combing| combing.share(self.capacity));
        let combing = combing.and_then(|combing| combing.takes);
        let combing = combing.map_or(1_000.0, Nanos::as_millis_f64);
        // Stages with their assumed time in milliseconds and the share that is done.
        let parts = [
            (Stage::Rotation, 0.0, 0.0),
            (
                Stage::Tracks,
                0.0,
                self.walked.upto as f64 / self.capacity.max(1) as f64,
            ),
            (Stage::Surfaces, 4_000.0, 0.0),
            (Stage::Bus, 1_000.0, 0.0),
            (Stage::Gaps, 30_000.0, 0.0),
            (
                Stage::Seeks,
                300.0 * seeks as f64,
                self.tried as f64 / seeks.max(1) as f64,
            ),
            (
                Stage::Writes,
                if self.scratch.is_some() {
                    15_000.0
                } else {
                    0.0
                },
                0.0,
            ),
            (Stage::Access, 1_000.0, 0.0),
            (
                Stage::HoldOut,
                12.0 * HELD_OUT as f64,
                self.held.reads as f64 / HELD_OUT as f64,
            ),
            (Stage::Electronics, 30_000.0, self.electronics.share()),
            (Stage::Remaps, combing, combed),
        ];
        // The time left is unknown before the rotation is found, and until the walk has shown its pace.
        let mut left = match self.stage {
            Stage::Rotation => None,
            Stage::Tracks => self.pace.left(self.capacity).map(|left| left / 1e6),
            _ => Some(0.0),
        };
        let mut share = 1.0;
        for (stage, takes, done) in parts {
            let more = if stage == self.stage {
                share = done;
                let spent = self.stage_spent.as_millis_f64();
                if done > 0.02 || done > 0.0 && spent > takes {
                    spent * (1.0 - done) / done
                } else {
                    takes
                }
            } else if stage > self.stage {
                takes
            } else {
                0.0
            };
            if stage != Stage::Tracks {
                left = left.map(|left| left + more);
            }
        }
        Outlook {
            stage: self.stage,
            share,
            left: left.map(Nanos::from_millis_f64),
        }
    }

    /// Profile of the results so far. Requires at least tracks and surfaces.
    ///
    /// # Errors
    ///
    /// If tracks and surfaces are not known yet, or do not make a valid profile.
    pub fn profile(&self) -> Result<Profile, ExtractError> {
        self.with_remapped(self.draft()?)
    }
}
