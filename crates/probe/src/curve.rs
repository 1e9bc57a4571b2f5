//! The service time of a request by its distance.
//!
//! FAST'11 section 3.2 sends requests of various distances to the disk, collects how long they take,
//! and fits a smooth curve through the points (distance, time). It leaves open how; this is how it is
//! done here.
//!
//! *Pairs.* A sample is a pair of reads of [`CurveOptions::request`] bytes: the first, anywhere on the
//! disk, brings the head to a known place; the second, `distance` sectors behind the end of the first,
//! is timed. Between the two passes a random pause of up to [`CurveOptions::pause_max`], so that the
//! second finds the platter at any angle. Positions and distances are multiples of the request, so
//! that no read touches part of a larger physical sector.
//!
//! *Distances* run from 0, the sequential read, over one request, evenly in the logarithm, to 31/32 of
//! the disk. A sample of each distance is taken in turn, so that a drift of the drive meets all of them
//! alike; each draws its distance between those of its neighbours, so that no track length resonates.
//!
//! *The buffer.* Positions being random, reads hardly ever meet what an earlier pair has left in the
//! drive's buffer. But the drive reads ahead behind the first read of a pair, and a second one that is
//! near enough finds its data there, or the head on its way: then that is its service time, since a
//! drive gives a scheduler's near requests the same. How far that goes depends on the pause, as it does
//! in use; a `pause_max` of zero gives the curve of a host that never pauses.
//!
//! *Mean.* The mean of what is left when the accesses are dropped that took more than three times what
//! 95 % of all accesses of the run stay below: they were retries or recalibrations. (A median would not
//! do: near requests are either hits or not.)
//!
//! *Fit.* Through the logarithms of distance and mean, a line is fitted around each distance by least
//! squares, neighbours counting less the farther they are (tricube weights, as in Cleveland's loess,
//! 1979), so that errors count by their share; then neighbours that fall are pooled, so that a farther
//! request never costs less. Distance 0 stands for itself. Everything is computed by `libm` and so the
//! same on every machine.
//!
//! *Transfer.* The time of a request of another size differs by its transfer, which the curve does not
//! know: 4 KiB take 0.04 to 0.08 ms of about 10 on a drive of 2008, 128 KiB 1.2 to 2.4 ms. A scheduler
//! compares two requests of the same kind, in which that falls out; so the request is small, to measure
//! positioning.

mod fit;
mod text;

pub use fit::Point;
pub use text::CurveFileError;

use crate::random::Random;
use crate::{Modelled, Probe, ProbeError};
use headtime_disk::Profile;
use headtime_sched::ServiceCurve;
use headtime_units::{Bytes, Extent, Millionths, Nanos, Sectors};

/// How a curve is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurveOptions {
    /// Distances besides 0, at most: 8 to 1,000. Short ones fall together where they are less than a
    /// request apart.
    pub distances: u32,
    /// Timed reads for each of them: 8 to 100,000. The error of a mean falls with the square root.
    pub samples: u32,
    /// Size of a read, 512 B to 16 MiB; rounded up to sectors.
    pub request: Bytes,
    /// The longest pause within a pair, up to 10 s; one turn or more evens out the rotation.
    pub pause_max: Nanos,
    /// Determines positions, distances and pauses.
    pub seed: u64,
    /// By what a backward access costs more, 1 to 100; it is not measured.
    pub backward: Millionths,
}

impl Default for CurveOptions {
    /// 96 distances, 200 samples each of 4 KiB, pauses of up to 12 ms (a turn at 5000 rpm), seed 1, and
    /// what the paper says of backward accesses: half as much again.
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

/// The longest time that a curve may have: what [`ServiceCurve`] takes.
const TIME_MAX: Nanos = Nanos::from_secs(60);

/// Why no curve was learned.
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
    /// A read that takes no time, or more than a minute, was not timed.
    #[error("a read at a distance of {distance} took {time}; that is no disk, or no clock")]
    Time {
        distance: Sectors,
        /// What the probe said.
        time: Nanos,
    },
    /// A read failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// Where a curve comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The probe's name.
    pub drive: String,
    /// The program and its version.
    pub program: String,
    /// Sectors of the drive.
    pub capacity: Sectors,
    pub sector_bytes: u32,
    /// How it was learned.
    pub options: CurveOptions,
    /// Samples that were dropped as too long.
    pub dropped: u64,
}

/// One timed read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Sectors from the end of the read before to the start of this one.
    pub distance: Sectors,
    /// How long it took.
    pub time: Nanos,
}

/// A learned curve, and all that it was learned from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    origin: Origin,
    points: Vec<Point>,
    samples: Vec<Sample>,
}

impl Learned {
    /// Where it comes from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Means and curve, distances rising from 0, the curve never falling.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Every timed read, in the order in which they were made, also those that were dropped. The text
    /// form does not have them, so that of a loaded curve there are none.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The curve, for a scheduler.
    pub fn curve(&self) -> ServiceCurve {
        let points = self.points.iter().map(|point| (point.distance, point.fit));
        ServiceCurve::new(points.collect(), self.origin.options.backward)
            .expect("points of a learned curve are in order")
    }

    /// How far the measured means are from the curve: the root mean square of their distances as
    /// shares of the curve, 0.01 for one per cent.
    pub fn spread(&self) -> f64 {
        let squares = self.points.iter().map(|point| {
            let share = point.residual() as f64 / point.fit.as_nanos() as f64;
            share * share
        });
        libm::sqrt(squares.sum::<f64>() / self.points.len() as f64)
    }
}

/// Learns how long a request takes by its distance. See the [module](self) for how.
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
    let plan = Plan::new(capacity, request, options.distances);
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

/// The curve of a modelled drive, learned with the [default options](CurveOptions::default) but for
/// the seed. Takes the time of some 40,000 simulated reads: keep it.
pub fn curve_of(profile: &Profile, seed: u64) -> ServiceCurve {
    let options = CurveOptions {
        seed,
        ..CurveOptions::default()
    };
    learn(&mut Modelled::new(profile, seed), &options)
        .expect("a modelled drive has sectors, and its reads take time and do not fail")
        .curve()
}

/// Which distances are measured, and where on the disk.
#[derive(Debug)]
struct Plan {
    capacity: u64,
    /// Sectors of a read.
    request: u64,
    bins: Vec<Bin>,
}

/// The distances of one point, in requests: these and all between. No two points share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bin {
    low: u64,
    high: u64,
}

impl Bin {
    /// One of them, evenly in the logarithm.
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

impl Plan {
    fn new(capacity: u64, request: u64, distances: u32) -> Plan {
        let mut plan = Plan {
            capacity,
            request,
            bins: vec![Bin { low: 0, high: 0 }],
        };
        // In requests, so that short distances fall together.
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
        // On a disk of one sector, both are that one.
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

/// Means and curve, and how many samples were dropped. The samples go around the bins.
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
        // Every one took more than three times what nearly all others take.
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

/// Mean and deviation of samples of about the same distance.
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
