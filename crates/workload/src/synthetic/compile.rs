//! Checks a workload's description and converts bytes to sectors of a drive.

use super::area::Area;
use super::places::Places;
use super::spec::{Cycle, Pacing, ProcessSpec, SizeDistribution, SpecError, TimeDistribution};
use super::weighted::Weights;
use crate::Random;
use headtime_units::{Bytes, Nanos, Sectors};

/// A distribution of counts of sectors, or of bytes.
#[derive(Clone, Debug)]
pub(super) enum Draw {
    /// A constant.
    Constant(u64),
    /// `step` times a number from `least` to `least + count − 1`.
    Uniform { step: u64, least: u64, count: u64 },
    /// `step` times the whole part of `scale` times a unit exponential, plus one. At most `most` steps.
    Geometric { step: u64, scale: f64, most: u64 },
    /// Values with weights.
    Table(Weights<u64>),
}

impl Draw {
    /// Creates a geometric distribution of one step or more, up to `most` steps. `mean_steps` is exact
    /// if `most` is large.
    fn geometric(step: u64, mean_steps: f64, most: u64) -> Draw {
        // P(more than k steps) = exp(−k / scale), so the mean is 1 / (1 − exp(−1 / scale)).
        let scale = -1.0 / libm::log1p(-1.0 / mean_steps);
        Draw::Geometric { step, scale, most }
    }

    pub(super) fn units(&self, stream: &mut Random) -> u64 {
        match *self {
            Draw::Constant(sectors) => sectors,
            Draw::Uniform { step, least, count } => (least + stream.below(count)) * step,
            Draw::Geometric { step, scale, most } => {
                // The cast saturates. The limit `most` lies far below.
                let beyond_one = (scale * stream.exponential()) as u64;
                beyond_one.saturating_add(1).min(most) * step
            }
            Draw::Table(ref weights) => weights.draw(stream),
        }
    }
}

/// 90th percentile of the standard normal distribution.
const NINE_OF_TEN: f64 = 1.281_551_565_544_600_4;
/// Longest time of a lognormal distribution. A configuration file allows durations up to the same
/// length.
const LOGNORMAL_MOST: f64 = 3650.0 * 86_400.0 * 1e9;

impl TimeDistribution {
    /// Draws a time.
    pub fn draw(self, stream: &mut Random) -> Nanos {
        match self {
            TimeDistribution::Constant(span) => span,
            TimeDistribution::Uniform(from, to) => {
                let width = (to - from).as_nanos();
                Nanos::from_nanos(from.as_nanos() + stream.below(width.saturating_add(1)))
            }
            TimeDistribution::Exponential(mean) => {
                Nanos::from_nanos((mean.as_nanos() as f64 * stream.exponential() + 0.5) as u64)
            }
            TimeDistribution::Lognormal(median, most) => {
                let (median, most) = (median.as_nanos() as f64, most.as_nanos() as f64);
                let spread = libm::log(most / median) / NINE_OF_TEN;
                let time = median * libm::exp(spread * stream.normal());
                Nanos::from_nanos((time + 0.5).min(LOGNORMAL_MOST) as u64)
            }
        }
    }

    /// Returns true if the distribution only gives zero.
    pub fn is_always_zero(self) -> bool {
        match self {
            TimeDistribution::Constant(span)
            | TimeDistribution::Uniform(_, span)
            | TimeDistribution::Exponential(span)
            | TimeDistribution::Lognormal(_, span) => span.is_zero(),
        }
    }

    /// Describes the allowed parameters if the distribution's parameters are wrong.
    pub fn problem(self) -> Option<&'static str> {
        match self {
            TimeDistribution::Uniform(from, to) | TimeDistribution::Lognormal(from, to)
                if from > to =>
            {
                Some("two ends of which the first is not the larger")
            }
            TimeDistribution::Lognormal(median, _) if median.is_zero() => {
                Some("a median of more than no time")
            }
            _ => None,
        }
    }
}

/// A checked distribution of sizes.
#[derive(Clone, Debug)]
pub struct Sizes(Draw);

impl Sizes {
    /// Draws a size.
    pub fn draw(&self, stream: &mut Random) -> Bytes {
        Bytes(self.0.units(stream))
    }
}

impl SizeDistribution {
    /// Checks a distribution of sizes from 1 to `most` bytes. A constant and the sizes of a table need
    /// not be multiples of `step`. All other sizes are multiples of `step`.
    ///
    /// # Errors
    ///
    /// Description of the allowed sizes.
    pub fn sizes(&self, step: Bytes, most: Bytes) -> Result<Sizes, String> {
        let good = |size: Bytes| size.0 > 0 && size <= most;
        let table = |entries: &[(Bytes, u32)]| {
            let entries = entries.iter().map(|(size, weight)| (size.0, *weight));
            Weights::new(entries).map(Draw::Table)
        };
        Ok(Sizes(match *self {
            SizeDistribution::Constant(size) if good(size) => Draw::Constant(size.0),
            SizeDistribution::Uniform(from, to)
                if good(from) && good(to) && from <= to && from.0.is_multiple_of(step.0) =>
            {
                Draw::Uniform {
                    step: step.0,
                    least: from.0 / step.0,
                    count: to.0 / step.0 - from.0 / step.0 + 1,
                }
            }
            SizeDistribution::Exponential(mean) if mean >= step && mean <= most => {
                Draw::geometric(step.0, mean.0 as f64 / step.0 as f64, most.0 / step.0)
            }
            SizeDistribution::Table(ref entries)
                if entries.iter().all(|(size, _)| good(*size))
                    && let Some(draw) = table(entries) =>
            {
                draw
            }
            _ => {
                return Err(format!(
                    "1B to {most}; multiples of {step}, the first not the larger, where it varies"
                ));
            }
        }))
    }
}

/// Checks the description of a process.
pub(super) struct Check {
    /// Number of the process, counted from 1.
    pub process: usize,
    pub capacity: Sectors,
    pub sector_bytes: u32,
}

impl Check {
    fn error(
        &self,
        key: &'static str,
        found: impl std::fmt::Display,
        allowed: impl Into<String>,
    ) -> SpecError {
        SpecError {
            process: self.process,
            key,
            found: found.to_string(),
            allowed: allowed.into(),
        }
    }

    /// Converts bytes to whole sectors.
    fn sectors(&self, key: &'static str, bytes: Bytes) -> Result<u64, SpecError> {
        let sector = u64::from(self.sector_bytes);
        if bytes.0.is_multiple_of(sector) {
            Ok(bytes.0 / sector)
        } else {
            let allowed = format!("a multiple of the drive's sectors of {sector} bytes");
            Err(self.error(key, bytes, allowed))
        }
    }

    pub(super) fn step(&self, key: &'static str, bytes: Bytes) -> Result<u64, SpecError> {
        match self.sectors(key, bytes)? {
            0 => Err(self.error(key, bytes, "at least one sector")),
            sectors => Ok(sectors),
        }
    }

    fn share(&self, key: &'static str, share: f64) -> Result<(), SpecError> {
        if (0.0..=1.0).contains(&share) {
            Ok(())
        } else {
            Err(self.error(key, share, "a share from 0 to 1"))
        }
    }

    pub(super) fn shares(&self, spec: &ProcessSpec) -> Result<(), SpecError> {
        self.share("read_share", spec.read_share)?;
        self.share("sequential_share", spec.sequential_share)?;
        self.share("local_share", spec.local_share)?;
        let sum = spec.sequential_share + spec.local_share;
        if sum > 1.0 {
            let allowed = "at most 1 together with sequential_share";
            return Err(self.error("local_share", spec.local_share, allowed));
        }
        Ok(())
    }

    pub(super) fn pacing(&self, pacing: Pacing) -> Result<(), SpecError> {
        let (key, time) = match pacing {
            Pacing::Closed { think, outstanding } => {
                if !(1..=65_535).contains(&outstanding) {
                    return Err(self.error("outstanding", outstanding, "1 to 65535"));
                }
                ("think", think)
            }
            Pacing::Open { gap, outstanding } => {
                if gap.is_always_zero() {
                    return Err(self.error("gap", gap, "more than no time at all"));
                }
                if outstanding == Some(0) {
                    return Err(self.error("outstanding", 0, "1 to 65535"));
                }
                ("gap", gap)
            }
        };
        match time.problem() {
            Some(allowed) => Err(self.error(key, time, allowed)),
            None => Ok(()),
        }
    }

    pub(super) fn cycle(&self, cycle: Option<Cycle>) -> Result<(), SpecError> {
        let Some(Cycle { period, swing }) = cycle else {
            return Ok(());
        };
        if period.is_zero() {
            return Err(self.error("cycle.period", period, "more than no time"));
        }
        // At a rate of zero no request would come any more.
        match (0.0..=0.99).contains(&swing) {
            true => Ok(()),
            false => Err(self.error("cycle.swing", swing, "0 to 0.99")),
        }
    }

    pub(super) fn places(&self, places: &Places) -> Result<(), SpecError> {
        match places.problem() {
            Some(allowed) => Err(self.error("places", places, allowed)),
            None => Ok(()),
        }
    }

    pub(super) fn fsync(&self, every: Option<u64>) -> Result<(), SpecError> {
        match every {
            Some(0) => Err(self.error("fsync", 0, "1 or more")),
            _ => Ok(()),
        }
    }

    pub(super) fn area(&self, spec: &ProcessSpec) -> Result<Area, SpecError> {
        let capacity = self.capacity.get();
        let (start, end) = match spec.range {
            None => (0, capacity),
            Some((from, to)) => {
                let (start, end) = (self.sectors("range", from)?, self.sectors("range", to)?);
                if start >= end || end > capacity {
                    let allowed = format!(
                        "a range that is not empty and ends at {} or before",
                        Bytes(self.capacity.bytes(self.sector_bytes))
                    );
                    return Err(self.error("range", format!("{from}..{to}"), allowed));
                }
                (start, end)
            }
        };
        Ok(Area {
            start,
            end,
            align: self.step("align", spec.align)?,
        })
    }

    /// A distribution of sizes of at least `least` (0 or 1) steps and at most `most` sectors.
    pub(super) fn draw(
        &self,
        key: &'static str,
        size: &SizeDistribution,
        step: u64,
        least: u64,
        most: u64,
    ) -> Result<Draw, SpecError> {
        let step = match size {
            SizeDistribution::Table(_) => 1,
            _ => step,
        };
        let error = |allowed: String| self.error(key, size, allowed);
        let step_bytes = Bytes(step * u64::from(self.sector_bytes));
        let steps = |bytes: Bytes| {
            let sectors = self.sectors(key, bytes)?;
            if !sectors.is_multiple_of(step) || sectors / step < least {
                let least = Bytes(least * step_bytes.0);
                return Err(error(format!("multiples of {step_bytes}, from {least} on")));
            }
            if sectors > most {
                let why = match most == Sectors::REQUEST_MAX.get() {
                    true => "which is the most that a request may ask for",
                    false => "the size of the range",
                };
                let most = Bytes(most * u64::from(self.sector_bytes));
                return Err(error(format!("at most {most}, {why}")));
            }
            Ok(sectors / step)
        };
        match *size {
            SizeDistribution::Constant(bytes) => Ok(Draw::Constant(steps(bytes)? * step)),
            SizeDistribution::Uniform(from, to) => {
                let (from, to) = (steps(from)?, steps(to)?);
                if from > to {
                    let allowed = "two ends of which the first is not the larger";
                    return Err(error(allowed.to_owned()));
                }
                Ok(Draw::Uniform {
                    step,
                    least: from,
                    count: to - from + 1,
                })
            }
            SizeDistribution::Exponential(mean) => {
                if mean < step_bytes || most < step {
                    return Err(error(format!(
                        "a mean of at least one step of {step_bytes}"
                    )));
                }
                let mean_steps = mean.0 as f64 / step_bytes.0 as f64;
                Ok(Draw::geometric(step, mean_steps, most / step))
            }
            SizeDistribution::Table(ref entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(size, weight)| Ok((steps(*size)?, *weight)));
                let entries: Vec<(u64, u32)> = entries.collect::<Result<_, SpecError>>()?;
                let weights = Weights::new(entries).map(Draw::Table);
                weights.ok_or_else(|| error("a table with a size".to_owned()))
            }
        }
    }
}
