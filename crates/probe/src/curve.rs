//! Service time of a request as a function of its distance.
//!
//! FAST'11 section 3.2 sends requests of various distances to the disk and collects their times. It then fits a smooth curve through the
//! points (distance, time). The paper leaves the details open; this module decides as follows.
//!
//! *Pairs.* A sample is a pair of reads of [`CurveOptions::request`] bytes. The first, anywhere on the disk, brings the head to a known
//! place. The second, `distance` sectors behind the end of the first, is timed. A random pause of up to [`CurveOptions::pause_max`] between
//! the two randomizes the angle of the platter. Positions and distances are multiples of the request size, so no read touches part of a
//! larger physical sector.
//!
//! *Distances* run from 0, the sequential read, over one request, evenly in the logarithm, to 31/32 of the disk. All distances are sampled
//! in turn, and a drift of the drive affects all of them equally. Each sample draws its distance from the range between its neighbours, to
//! avoid resonance with a track length.
//!
//! *The buffer.* Positions are random, so reads hardly ever hit the remains of an earlier pair in the drive's buffer. But the drive reads
//! ahead behind the first read of a pair. A second read that is close enough finds its data in the buffer, or finds the head on its way.
//! The measured time is used unchanged, since a scheduler's near requests get the same benefit. The benefit depends on the pause, as in
//! normal operation. A `pause_max` of zero gives the curve of a host that never pauses.
//!
//! *Mean.* A limit is set at three times the 95th percentile of all accesses. Accesses above the limit are dropped as retries or
//! recalibrations, and the rest is averaged. A median would not do, because near requests are either hits or misses.
//!
//! *Fit.* Around each distance a line is fitted by least squares through the logarithms of distance and mean. Neighbours count less with
//! distance (tricube weights, as in Cleveland's loess, 1979). The logarithms make errors count by their share. Then falling neighbours are
//! pooled, and a farther request never costs less. Distance 0 is separate. All functions come from `libm`, and results are the same on
//! every machine.
//!
//! *Transfer.* Requests of other sizes have other transfer times, which the curve does not contain. On a drive of 2008, 4 KiB take 0.04 to
//! 0.08 ms, and 128 KiB take 1.2 to 2.4 ms. A whole access takes about 10 ms. In a scheduler's comparison of two requests of the same kind
//! the transfer cancels. The request is therefore small, to measure positioning.

mod fit;
mod text;

pub use fit::Point;
pub use text::CurveFileError;

use crate::random::Random;
use crate::{Modelled, Probe, ProbeError};
use headtime_disk::Profile;
use headtime_sched::ServiceCurve;
use headtime_units::{Bytes, Extent, Millionths, Nanos, Sectors};

/// Options for learning a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurveOptions {
    /// Most distances besides 0: 8 to 1,000. Distances of less than a request apart are merged.
    pub distances: u32,
    /// Timed reads for each distance: 8 to 100,000. The error of a mean falls with the square root.
    pub samples: u32,
    /// Size of a read, 512 B to 16 MiB; rounded up to sectors.
    pub request: Bytes,
    /// Longest pause within a pair, up to 10 s; a turn or more averages over the rotation.
    pub pause_max: Nanos,
    /// Seed of positions, distances and pauses.
    pub seed: u64,
    /// Assumed cost factor of a backward access, 1 to 100. This factor is not measured.
    pub backward: Millionths,
}

impl Default for CurveOptions {
    /// 96 distances with 200 samples each of 4 KiB, pauses of up to 12 ms (a turn at 5000 rpm), and seed 1. Backward accesses cost half as
    /// much again, as in the paper.
    fn default() -> CurveOptions {
        CurveOptions {
            distances: 96,
            samples: 200,
            request: Bytes(4096),
            pause_max: Nanos::from_millis(12),
            seed: 1,
            backward: ServiceCurve::BACKWARD,
        }
    }
}

impl CurveOptions {
    fn check(&self) -> Result<(), LearnError> {
        let within = |option, value: u64, low: u64, high: u64, allowed| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(LearnError::Option { option, allowed })
            }
        };
        within(
            "distances",
            self.distances.into(),
            8,
            DISTANCES_MAX.into(),
            "8 to 1000",
        )?;
        within(
            "samples",
            self.samples.into(),
            8,
            SAMPLES_MAX.into(),
            "8 to 100000",
        )?;
        within("request", self.request.0, 512, REQUEST_MAX, "512B to 16MiB")?;
        within(
            "pause_max",
            self.pause_max.as_nanos(),
            0,
            PAUSE_MAX.as_nanos(),
            "0s to 10s",
        )?;
        within(
            "backward",
            self.backward.0,
            1_000_000,
            100_000_000,
            "1 to 100",
        )
    }
}

const DISTANCES_MAX: u32 = 1_000;
const SAMPLES_MAX: u32 = 100_000;
const REQUEST_MAX: u64 = 16 << 20;
const PAUSE_MAX: Nanos = Nanos::from_secs(10);

/// Longest time of a curve, as in [`ServiceCurve`].
const TIME_MAX: Nanos = Nanos::from_secs(60);

/// Reasons for a failure to learn a curve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LearnError {
    /// An option outside its range.
    #[error("{option}: allowed is {allowed}")]
    Option {
        /// The field of [`CurveOptions`].
        option: &'static str,
        allowed: &'static str,
    },
    /// The probe has no sectors.
    #[error("there is nothing to read")]
    Empty,
    /// A read that took no time or more than a minute: its timing is wrong.
    #[error("a read at a distance of {distance} took {time}; that is no disk, or no clock")]
    Time {
        distance: Sectors,
        /// Time reported by the probe.
        time: Nanos,
    },
    /// A read failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// Origin of a curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name of the probe.
    pub drive: String,
    /// Program and version.
    pub program: String,
    /// Sectors of the drive.
    pub capacity: Sectors,
    pub sector_bytes: u32,
    /// Options of the measurement.
    pub options: CurveOptions,
    /// Samples that were dropped because they took too long.
    pub dropped: u64,
}

/// A timed read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Sectors from the end of the previous read to the start of this read.
    pub distance: Sectors,
    /// Service time.
    pub time: Nanos,
}

/// A learned curve with its measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    origin: Origin,
    points: Vec<Point>,
    samples: Vec<Sample>,
}

impl Learned {
    /// Origin of the curve.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Means and curve. Distances rise from 0, and the curve never falls.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// All timed reads in the order of measurement, including the dropped reads. Empty for a loaded curve, because the text form does not
    /// contain samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The curve, for a scheduler.
    pub fn curve(&self) -> ServiceCurve {
        let points = self.points.iter().map(|point| (point.distance, point.fit));
        ServiceCurve::new(points.collect(), self.origin.options.backward)
            .expect("points of a learned curve are in order")
    }

    /// Root mean square distance of the measured means from the curve, as a share of the curve: 0.01 for one per cent.
    pub fn spread(&self) -> f64 {
        let squares = self.points.iter().map(|point| {
            let share = point.residual() as f64 / point.fit.as_nanos() as f64;
            share * share
        });
        libm::sqrt(squares.sum::<f64>() / self.points.len() as f64)
    }
}

/// Learns the service time as a function of distance. The [module](self) describes the method.
///
/// # Errors
///
/// If an option is outside its range, the probe has no sectors or no sensible clock, or a read fails.
pub fn learn(probe: &mut dyn Probe, options: &CurveOptions) -> Result<Learned, LearnError> {
    options.check()?;
    let capacity = probe.capacity().get();
    if capacity == 0 {
        return Err(LearnError::Empty);
    }
    let sector_bytes = probe.sector_bytes().max(1);
    let request = options.request.0.div_ceil(u64::from(sector_bytes));
    let request = request.min(capacity / 2).max(1);
    let plan = CurvePlan::new(capacity, request, options.distances);
    let mut random = Random::new(options.seed);
    let mut samples = Vec::with_capacity(plan.bins.len() * options.samples as usize);
    for _ in 0..options.samples {
        for &bin in &plan.bins {
            samples.push(plan.pair(probe, bin, options.pause_max, &mut random)?);
        }
    }
    let (points, dropped) = reduce(&samples, plan.bins.len());
    Ok(Learned {
        origin: Origin {
            drive: probe.name(),
            program: concat!("headtime ", env!("CARGO_PKG_VERSION")).to_owned(),
            capacity: Sectors::new(capacity),
            sector_bytes,
            options: *options,
            dropped,
        },
        points,
        samples,
    })
}

/// Learns the curve of a modelled drive with the [default options](CurveOptions::default), except for the seed. The call simulates some
/// 40,000 reads, so callers should save the result.
pub fn curve_of(profile: &Profile, seed: u64) -> ServiceCurve {
    let options = CurveOptions {
        seed,
        ..CurveOptions::default()
    };
    learn(&mut Modelled::new(profile, seed), &options)
        .expect("a modelled drive has sectors, and its reads take time and do not fail")
        .curve()
}

/// Plan of a measurement: distances, and room on the disk.
#[derive(Debug)]
struct CurvePlan {
    capacity: u64,
    /// Sectors of a read.
    request: u64,
    bins: Vec<Bin>,
}

/// Range of distances of one point, in requests, both ends included. Ranges do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bin {
    low: u64,
    high: u64,
}

impl Bin {
    /// Random distance from the range, evenly in the logarithm.
    fn draw(self, random: &mut Random) -> u64 {
        let part = random.unit();
        if self.low == self.high {
            return self.low;
        }
        let (low, high) = (self.low as f64 - 0.5, self.high as f64 + 0.5);
        let drawn = libm::round(low * libm::exp(libm::log(high / low) * part));
        (drawn as u64).clamp(self.low, self.high)
    }
}

impl CurvePlan {
    fn new(capacity: u64, request: u64, distances: u32) -> CurvePlan {
        let mut plan = CurvePlan {
            capacity,
            request,
            bins: vec![Bin { low: 0, high: 0 }],
        };
        // Distances are counted in requests, which merges the short distances.
        let most = (capacity / 32 * 31).saturating_sub(2 * request) / request;
        if most == 0 {
            return plan;
        }
        let end = libm::log(most as f64);
        let steps = f64::from(distances - 1);
        let mut centres: Vec<u64> = (0..distances)
            .map(|step| libm::round(libm::exp(end * f64::from(step) / steps)) as u64)
            .collect();
        centres.dedup();
        let mut low = 1;
        for (index, &centre) in centres.iter().enumerate() {
            let high = centres.get(index + 1).map_or(centre, |&after| {
                let middle = libm::sqrt(centre as f64 * after as f64) as u64;
                middle.clamp(centre, after - 1)
            });
            plan.bins.push(Bin { low, high });
            low = high + 1;
        }
        plan
    }

    /// Sends a pair of reads and times the second.
    fn pair(
        &self,
        probe: &mut dyn Probe,
        bin: Bin,
        pause_max: Nanos,
        random: &mut Random,
    ) -> Result<Sample, LearnError> {
        let distance = bin.draw(random) * self.request;
        let room = self.capacity.saturating_sub(2 * self.request + distance) / self.request;
        let first = random.up_to(room) * self.request;
        // On a disk of one sector, both reads use that sector.
        let second = (first + self.request + distance).min(self.capacity - self.request);
        let pause = Nanos::from_nanos(random.up_to(pause_max.as_nanos()));
        probe.read(Extent::at(first, self.request))?;
        probe.pause(pause);
        let time = probe.read(Extent::at(second, self.request))?;
        let distance = Sectors::new(distance);
        if time.is_zero() || time > TIME_MAX {
            return Err(LearnError::Time { distance, time });
        }
        Ok(Sample { distance, time })
    }
}

/// Means, curve, and number of dropped samples. Samples are ordered round-robin by bin.
fn reduce(samples: &[Sample], bins: usize) -> (Vec<Point>, u64) {
    let mut times: Vec<Nanos> = samples.iter().map(|sample| sample.time).collect();
    let place = (times.len() * 95 / 100).min(times.len() - 1);
    let usual = *times.select_nth_unstable(place).1;
    let most = usual.as_nanos().saturating_mul(3);
    let mut dropped = 0;
    let mut points = Vec::with_capacity(bins);
    for bin in 0..bins {
        let all = samples.iter().skip(bin).step_by(bins);
        let kept: Vec<&Sample> = all
            .filter(|sample| sample.time.as_nanos() <= most)
            .collect();
        dropped += (samples.len() / bins - kept.len()) as u64;
        // All samples of this bin exceed the limit.
        if kept.is_empty() {
            continue;
        }
        points.push(summary(&kept));
    }
    let fitted = fit::fit(&points);
    for (point, fitted) in points.iter_mut().zip(fitted) {
        point.fit = fitted;
    }
    (points, dropped)
}

/// Mean and deviation of samples with similar distances.
fn summary(samples: &[&Sample]) -> Point {
    let count = samples.len() as f64;
    let sum: u128 = samples
        .iter()
        .map(|sample| u128::from(sample.time.as_nanos()))
        .sum();
    let mean = sum as f64 / count;
    let squares: f64 = samples
        .iter()
        .map(|sample| sample.time.as_nanos() as f64 - mean)
        .map(|apart| apart * apart)
        .sum();
    let sd = libm::sqrt(squares / (count - 1.0).max(1.0));
    let first = samples[0].distance;
    let distance = if samples.iter().all(|sample| sample.distance == first) {
        first
    } else {
        let logs: f64 = samples
            .iter()
            .map(|sample| libm::log(sample.distance.get() as f64))
            .sum();
        Sectors::new(libm::round(libm::exp(logs / count)) as u64)
    };
    let mean = Nanos::from_nanos(libm::round(mean) as u64);
    Point {
        distance,
        mean,
        sd: Nanos::from_nanos(libm::round(sd) as u64),
        samples: samples.len() as u32,
        fit: mean,
    }
}

#[cfg(test)]
mod tests;
