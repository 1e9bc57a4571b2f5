//! Distributions of a run.

use super::statistics::round;
use headtime_sim::Distribution;
use serde::{Serialize, Serializer};

/// A distribution in milliseconds. As JSON, the values of an empty distribution are `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// True if the distribution has no values. The other fields are then 0.
    pub is_empty: bool,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The largest of all repeats.
    pub max: f64,
    /// Mean over the repeats of the largest value.
    pub max_mean: f64,
    /// 99th percentile with the values in each step of the histogram spread evenly over the step. For figures.
    pub p99_between: f64,
}

/// The percentiles that figures can measure of a distribution.
pub const PERCENTS: [f64; 14] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.9,
];

/// Percentile at each of [`PERCENTS`], the mean over the repeats.
pub type AtPercents = [f64; PERCENTS.len()];

/// Percentiles of some distributions of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Arrival to completion, in ms.
    pub response: AtPercents,
    /// The drive to completion, in ms.
    pub device: AtPercents,
    /// From one completion of the drive to the next, in ms.
    pub interval: AtPercents,
    /// From a call to its return, in ms.
    pub calls: AtPercents,
    /// Number of later commands that overtook a command.
    pub delay: AtPercents,
}

/// Mean of each value over the repeats.
pub fn mean_of_repeats<T, const N: usize>(
    repeats: &[T],
    values: impl Fn(&T) -> [f64; N],
) -> [f64; N] {
    let mut sums = [0.0; N];
    for repeat in repeats {
        for (sum, value) in sums.iter_mut().zip(values(repeat)) {
            *sum += value;
        }
    }
    sums.map(|sum| round(sum / repeats.len() as f64, 6))
}

/// Takes one value out of a distribution.
pub type SpreadValue = fn(&Spread) -> f64;

impl Spread {
    /// Each value of a distribution, with its name.
    pub const VALUES: [(&'static str, SpreadValue); 7] = [
        ("mean", |spread| spread.mean),
        ("p50", |spread| spread.p50),
        ("p90", |spread| spread.p90),
        ("p95", |spread| spread.p95),
        ("p99", |spread| spread.p99),
        ("p999", |spread| spread.p999),
        ("max", |spread| spread.max),
    ];

    /// The means over the distributions of some repeats, and the longest of all.
    pub fn of(repeats: &[&Distribution]) -> Spread {
        let count = repeats.len() as f64;
        let mean = |value: &dyn Fn(&Distribution) -> f64| {
            round(repeats.iter().map(|one| value(one)).sum::<f64>() / count, 6)
        };
        let [p50, p90, p95, p99, p999] = mean_of_repeats(repeats, |one| {
            one.percentiles_ms([50.0, 90.0, 95.0, 99.0, 99.9])
        });
        Spread {
            is_empty: repeats.iter().all(|one| one.count() == 0),
            mean: mean(&Distribution::mean_ms),
            p50,
            p90,
            p95,
            p99,
            p999,
            p99_between: mean(&|one| one.percentile_between_ms(99.0)),
            max_mean: mean(&|one| one.max().as_millis_f64()),
            max: round(
                repeats
                    .iter()
                    .map(|one| one.max().as_millis_f64())
                    .fold(0.0, f64::max),
                6,
            ),
        }
    }
}

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = Spread::VALUES.map(|(name, value)| (name, value(self)));
        let values = values.into_iter().chain([("max_mean", self.max_mean)]);
        serializer
            .collect_map(values.map(|(name, value)| (name, (!self.is_empty).then_some(value))))
    }
}
