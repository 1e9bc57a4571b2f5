//! Description of a synthetic workload.

use super::places::Places;
use super::weighted::{DistributionError, weighted, write_weighted};
use headtime_sched::{Class, Flags, Origin};
use headtime_units::{Bytes, Nanos, ParseUnitError, Time};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// A synthetic workload: any number of processes.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticSpec {
    /// Seed of every random draw. The random streams of a process depend on the seed and on its place
    /// in the list. So a process added at the end does not change the others.
    pub seed: u64,
    /// Largest number of requests of all processes together. `None` sets no limit.
    pub count: Option<u64>,
    pub processes: Vec<ProcessSpec>,
}

/// A process of a synthetic workload. The default makes random reads of 4 KiB over the whole drive,
/// one at a time, without thinking.
///
/// Invariants of a process that [`Synthetic::new`](crate::Synthetic::new) accepts:
///
/// - `read_share`, `sequential_share` and `local_share` are in `0.0..=1.0`; `sequential_share + local_share ≤ 1`.
/// - `fsync = Some(n)` ⇒ `n ≥ 1`.
/// - `cycle = Some(c)` ⇒ `c.period > 0` and `0 ≤ c.swing ≤ 0.99`.
/// - `size_step` and `align` are multiples of a sector, of one sector or more.
/// - `range = Some((from, to))` ⇒ `from < to`, both multiples of a sector and within the drive.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, remote = "Self")
)]
pub struct ProcessSpec {
    /// Origin of the requests, which schedulers see.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "program", with = "crate::text::program")
    )]
    pub origin: Origin,
    /// Class of the requests.
    pub class: Class,
    /// Flags of the writes. Reads have none.
    #[cfg_attr(feature = "serde", serde(with = "crate::text::write_flags"))]
    pub write_flags: Flags,
    /// The number of writes between two flushes of the drive's cache; `None` never flushes. The process waits for each
    /// flush.
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "crate::text::at_least_one",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub fsync: Option<u64>,
    /// Times of the requests.
    #[cfg_attr(feature = "serde", serde(rename = "+pacing"))]
    pub pacing: Pacing,
    /// Rise and fall of the request rate.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub cycle: Option<Cycle>,
    /// Start of the process.
    pub start: Time,
    /// End of the process. `None` sets no limit. A request due at this instant is not made.
    pub until: Option<Time>,
    /// Largest number of requests of this process. `None` sets no limit.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "requests", deserialize_with = "crate::text::count")
    )]
    pub count: Option<u64>,
    /// Share of reads, 0 to 1. The other requests are writes.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "headtime_config::number::<_, _, 0, 1>")
    )]
    pub read_share: f64,
    /// Share of requests that begin where the process's last request ended, 0 to 1. At the end of the
    /// range they continue at its beginning.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "headtime_config::number::<_, _, 0, 1>")
    )]
    pub sequential_share: f64,
    /// Share of requests that begin near the beginning of the process's last request, 0 to 1. Requests
    /// of neither share are random in the range.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "headtime_config::number::<_, _, 0, 1>")
    )]
    pub local_share: f64,
    /// Distance of a local request from the last request's beginning. Both directions are equally
    /// likely. If the request would leave the range, the request goes in the other direction, or as far
    /// as the range allows.
    pub local_distance: SizeDistribution,
    /// True if reads continue from the last read, and writes from the last write.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub writes_apart: bool,
    /// Size of a request.
    pub size: SizeDistribution,
    /// Size of a write. `None` means the size of a read.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub write_size: Option<SizeDistribution>,
    /// Unit of the sizes: sizes are multiples of this, except for the sizes of a table.
    pub size_step: Bytes,
    /// Unit of the addresses: random and local requests begin at multiples of this.
    pub align: Bytes,
    /// Distribution of random requests over the range.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Places::is_uniform"))]
    pub places: Places,
    /// Range of the addresses, from the first byte to the byte behind the last. `None` means the whole
    /// drive.
    #[cfg_attr(feature = "serde", serde(with = "headtime_config::sizes"))]
    pub range: Option<(Bytes, Bytes)>,
    /// Place of the first request.
    pub first: First,
}

/// Rule for the times of a process's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "crate::text::PacingKeys", into = "crate::text::PacingKeys")
)]
pub enum Pacing {
    /// The process waits for its requests.
    Closed {
        /// Time between a completion and the next request. The first requests also come after one such
        /// time.
        think: TimeDistribution,
        /// Number of outstanding requests, 1 to 65,535.
        outstanding: u32,
    },
    /// The process makes requests at given times, without waiting for the disk.
    Open {
        /// Time between two requests. The first request comes after one such time.
        gap: TimeDistribution,
        /// Largest number of outstanding requests. `None` sets no limit. At the limit, a request
        /// arrives at the next completion.
        outstanding: Option<u32>,
    },
}

/// A load that rises and falls, as by day and night. The times between requests are divided by a rate
/// whose mean is 1.
///
/// The rate is 1 - swing cos(2 pi t / period): lowest at the beginning, highest after half a period.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Cycle {
    /// Time after which the rate repeats.
    #[cfg_attr(feature = "serde", serde(default = "Cycle::day"))]
    pub period: Nanos,
    /// Share of the mean by which the rate rises and falls, 0 to 0.99.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "headtime_config::number::<_, _, 0, 1>")
    )]
    pub swing: f64,
}

impl Cycle {
    #[cfg(feature = "serde")]
    fn day() -> Nanos {
        Nanos::from_secs(86_400)
    }

    /// Returns the rate at a time.
    fn rate(self, now: Time) -> f64 {
        let along = now.as_nanos() % self.period.as_nanos().max(1);
        let turns = along as f64 / self.period.as_nanos().max(1) as f64;
        1.0 - self.swing * libm::cos(turns * 2.0 * core::f64::consts::PI)
    }

    /// Scales a time between requests that begins at `now`.
    pub(super) fn span(self, now: Time, span: Nanos) -> Nanos {
        Nanos::from_nanos((span.as_nanos() as f64 / self.rate(now) + 0.5) as u64)
    }
}

/// Place of the first request of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum First {
    /// Anywhere in the range.
    #[default]
    Anywhere,
    /// To the beginning of the range.
    Beginning,
}

/// A distribution of durations.
///
/// As text: `30ms`, `uniform(10ms..50ms)`, `exponential(30ms)`, `lognormal(900us..5.4ms)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeDistribution {
    /// A constant time.
    Constant(Nanos),
    /// Every nanosecond between the two bounds, both included, with equal chance.
    Uniform(Nanos, Nanos),
    /// Exponential with this mean, cut off at 36.8 times the mean.
    Exponential(Nanos),
    /// Lognormal: half of the times are below the first value, and one in ten is above the second. Most
    /// times are short, and a few are very long. Times are cut off at 3650 days.
    Lognormal(Nanos, Nanos),
}

/// A distribution of sizes. Drawn sizes are multiples of a step that the user of the distribution
/// gives.
///
/// As text: `4KiB`, `uniform(4KiB..128KiB)`, `exponential(8KiB)`, `4KiB/70:64KiB/30`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SizeDistribution {
    /// A constant size.
    Constant(Bytes),
    /// Every multiple of the step between the two bounds, both included, with equal chance.
    Uniform(Bytes, Bytes),
    /// Multiples of the step, from one step on. From each multiple to the next the chance falls by the
    /// same factor: an exponential distribution rounded up. The given mean is the mean of the rounded
    /// sizes.
    Exponential(Bytes),
    /// Each of these sizes, with its weight's share of all weights. The step does not matter.
    Table(Arc<[(Bytes, u32)]>),
}

impl Default for ProcessSpec {
    fn default() -> ProcessSpec {
        ProcessSpec {
            origin: Origin::default(),
            class: Class::default(),
            write_flags: Flags::NONE,
            fsync: None,
            pacing: Pacing::default(),
            cycle: None,
            start: Time::ZERO,
            until: None,
            count: None,
            read_share: 1.0,
            sequential_share: 0.0,
            local_share: 0.0,
            local_distance: SizeDistribution::Constant(Bytes(0)),
            writes_apart: false,
            size: SizeDistribution::Constant(Bytes(4096)),
            write_size: None,
            size_step: Bytes(4096),
            align: Bytes(4096),
            places: Places::Uniform,
            range: None,
            first: First::Anywhere,
        }
    }
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing::Closed {
            think: TimeDistribution::Constant(Nanos::ZERO),
            outstanding: 1,
        }
    }
}

impl SyntheticSpec {
    /// Creates `count` processes that differ only in their number, from 1 on.
    pub fn alike(seed: u64, count: u32, process: &ProcessSpec) -> SyntheticSpec {
        let processes = (1..=count)
            .map(|number| {
                let mut process = process.clone();
                process.origin.process = number;
                process
            })
            .collect();
        SyntheticSpec {
            seed,
            count: None,
            processes,
        }
    }
}

/// Reason why a synthetic workload cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("process {process}: {key} is {found}; allowed is {allowed}")]
pub struct SpecError {
    /// Place of the process in the list, counted from 1.
    pub process: usize,
    pub key: &'static str,
    pub found: String,
    pub allowed: String,
}

/// A distribution as text, split into its parts.
enum AnyDistribution<T> {
    Constant(T),
    Uniform(T, T),
    Exponential(T),
    Lognormal(T, T),
}

fn parts<T>(text: &str, allowed: &'static str) -> Result<AnyDistribution<T>, DistributionError>
where
    T: FromStr<Err = ParseUnitError> + PartialOrd,
{
    let error = |problem: String| DistributionError {
        found: text.to_owned(),
        problem,
        allowed,
    };
    let value = |part: &str| {
        part.parse::<T>()
            .map_err(|problem| error(problem.to_string()))
    };
    let inside = |name: &str| {
        text.trim()
            .strip_prefix(name)?
            .trim_start()
            .strip_prefix('(')?
            .strip_suffix(')')
    };
    let two = |inside: &str| {
        let (from, to) = inside
            .split_once("..")
            .ok_or_else(|| error("the two ends are not separated by ..".to_owned()))?;
        let (from, to) = (value(from)?, value(to)?);
        if from > to {
            return Err(error("the first end is larger than the second".to_owned()));
        }
        Ok((from, to))
    };
    if let Some(inside) = inside("uniform") {
        let (from, to) = two(inside)?;
        Ok(AnyDistribution::Uniform(from, to))
    } else if let Some(inside) = inside("lognormal") {
        let (median, most) = two(inside)?;
        Ok(AnyDistribution::Lognormal(median, most))
    } else if let Some(inside) = inside("exponential") {
        Ok(AnyDistribution::Exponential(value(inside)?))
    } else {
        Ok(AnyDistribution::Constant(value(text)?))
    }
}

impl FromStr for TimeDistribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<TimeDistribution, DistributionError> {
        let allowed = "30ms, uniform(10ms..50ms), exponential(30ms) and lognormal(900us..5.4ms)";
        let times = match parts(text, allowed)? {
            AnyDistribution::Constant(value) => TimeDistribution::Constant(value),
            AnyDistribution::Uniform(from, to) => TimeDistribution::Uniform(from, to),
            AnyDistribution::Exponential(mean) => TimeDistribution::Exponential(mean),
            AnyDistribution::Lognormal(median, most) => TimeDistribution::Lognormal(median, most),
        };
        match times.problem() {
            None => Ok(times),
            Some(problem) => Err(DistributionError {
                found: text.to_owned(),
                problem: format!("it needs {problem}"),
                allowed,
            }),
        }
    }
}

impl FromStr for SizeDistribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<SizeDistribution, DistributionError> {
        let allowed = "4KiB, uniform(4KiB..128KiB), exponential(8KiB) and 4KiB/70:64KiB/30";
        if text.contains('/') {
            let table = weighted(text).map_err(|problem| DistributionError {
                found: text.to_owned(),
                problem,
                allowed,
            })?;
            return Ok(SizeDistribution::Table(table));
        }
        Ok(match parts(text, allowed)? {
            AnyDistribution::Constant(value) => SizeDistribution::Constant(value),
            AnyDistribution::Uniform(from, to) => SizeDistribution::Uniform(from, to),
            AnyDistribution::Exponential(mean) => SizeDistribution::Exponential(mean),
            AnyDistribution::Lognormal(..) => {
                return Err(DistributionError {
                    found: text.to_owned(),
                    problem: "lognormal is for times".to_owned(),
                    allowed,
                });
            }
        })
    }
}

impl fmt::Display for TimeDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeDistribution::Constant(value) => write!(f, "{value}"),
            TimeDistribution::Uniform(from, to) => write!(f, "uniform({from}..{to})"),
            TimeDistribution::Exponential(mean) => write!(f, "exponential({mean})"),
            TimeDistribution::Lognormal(median, most) => write!(f, "lognormal({median}..{most})"),
        }
    }
}

impl fmt::Display for SizeDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeDistribution::Constant(value) => write!(f, "{value}"),
            SizeDistribution::Uniform(from, to) => write!(f, "uniform({from}..{to})"),
            SizeDistribution::Exponential(mean) => write!(f, "exponential({mean})"),
            SizeDistribution::Table(entries) => write_weighted(entries, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_from_text_and_written_back() {
        for text in [
            "30ms",
            "uniform(10ms..50ms)",
            "exponential(1.5s)",
            "lognormal(900us..5.4ms)",
        ] {
            assert_eq!(text.parse::<TimeDistribution>().unwrap().to_string(), text);
        }
        for text in [
            "4KiB",
            "uniform(4KiB..128KiB)",
            "exponential(8KiB)",
            "512B/10:1KiB/5:64KiB/85",
        ] {
            assert_eq!(text.parse::<SizeDistribution>().unwrap().to_string(), text);
        }
        assert_eq!(
            "uniform(50ms..10ms)"
                .parse::<TimeDistribution>()
                .unwrap_err()
                .to_string(),
            "`uniform(50ms..10ms)` is no distribution: the first end is larger than the second; \
             allowed are 30ms, uniform(10ms..50ms), exponential(30ms) and lognormal(900us..5.4ms)"
        );
        let problem = |text: &str| text.parse::<TimeDistribution>().unwrap_err().problem;
        assert_eq!(
            problem("lognormal(5.4ms..900us)"),
            "the first end is larger than the second"
        );
        assert_eq!(
            problem("lognormal(0ms..5.4ms)"),
            "it needs a median of more than no time"
        );
        assert_eq!(
            problem("lognormal(900us)"),
            "the two ends are not separated by .."
        );
        assert_eq!(
            "lognormal(4KiB..8KiB)"
                .parse::<SizeDistribution>()
                .unwrap_err()
                .problem,
            "lognormal is for times"
        );
        assert_eq!(
            "30".parse::<TimeDistribution>().unwrap_err().problem,
            "a duration needs its unit: ns, us, ms, s, m, h or d, as in 30ms"
        );
        for (bad, problem) in [
            (
                "4KiB/0:8KiB/1",
                "the weight `0` is no whole number from 1 on",
            ),
            ("4KiB/1:8KiB", "`8KiB` has no / before its weight"),
            ("4KiB/1.5", "the weight `1.5` is no whole number from 1 on"),
            (
                "4/1",
                "a size needs its unit: B, kB, KiB, MB, MiB, GB, GiB, TB or TiB, as in 4KiB",
            ),
        ] {
            assert_eq!(
                bad.parse::<SizeDistribution>().unwrap_err().problem,
                problem
            );
        }
        for bad in ["exponential(8KiB", "uniform(1KiB)", "normal(4KiB)", ""] {
            assert!(bad.parse::<SizeDistribution>().is_err(), "{bad}");
        }
    }
}
