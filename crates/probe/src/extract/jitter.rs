//! Variation of a drive's processing time, measured by reads that its buffer answers.
//!
//! A read of the medium is answered when its sector has passed. Longer processing shows there only if the sector comes a turn late. An
//! answer from the buffer comes as soon as the command is processed and its data are sent, and shows all of the variation. Reads of one
//! sector and of many sectors also give the bus time of each sector.

use super::bench::Bench;
use super::buffer_probe::HitTime;
use super::error::ExtractError;
use super::transfer::Transfer;
use super::turns::{median, quantile};
use headtime_disk::profile::OverheadSpec;
use headtime_units::Nanos;
use serde::{Deserialize, Serialize};

/// Key that is learned.
pub(super) const KEY: &str = "noise.overhead_sd";
/// Keys that are not learned, and the reason.
pub(super) const NOT: [&str; 2] = ["noise.seek_sd", "noise.seek_sd_relative"];
pub(super) const WHY_NOT: &str = "a seek that varies shows only in whether a sector is caught, together with processing that varies";
/// Number of places to read.
const PLACES_READ: usize = 64;
/// Long reads per place, and reads of one sector per place once the buffer holds the place.
const LONG_READS: usize = 3;
const SHORT_READS: usize = 24;
/// Most bytes of a long read.
const LONG_READ_BYTES: u64 = 128 << 10;
/// Divisor of a segment: long reads take at most `1 / SEGMENT_PART` of a segment. Read-ahead behind such a read then evicts none of the read
/// sectors.
const SEGMENT_PART: u64 = 2;
/// Ratio of the lower to the upper quartile's distance from the median, below which a distribution counts as cut off below.
const CUT_OFF_RATIO: f64 = 0.7;
/// Distance of a normal distribution's quartiles from its median, in deviations.
const QUARTILE_DEVIATIONS: f64 = 0.6745;
/// Standard error of a median, relative to the standard error of a mean.
const OF_MIDDLE: f64 = 1.25;

/// Times of reads that the buffer answered, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Standard deviation of processing.
    pub deviation: f64,
    /// True if no processing time is shorter than the median: a fixed time plus noise about zero that is cut off at zero.
    pub fixed: bool,
    /// Median time of a read of one sector.
    pub one: f64,
    /// Sectors and median time of the long reads; `None` if the buffer did not answer all of them.
    pub long: Option<(u64, f64)>,
}

impl Jitter {
    pub(super) fn overhead_sd(self) -> Nanos {
        Nanos::from_nanos(libm::round(self.deviation) as u64)
    }

    /// Processing time of a miss, given the estimate `overhead` from arm movements and the time `hit` of a hit. Returns `hit` if the two
    /// differ by less than the variation. The estimate from arm movements also contains the variation of seeks.
    pub(super) fn miss(self, overhead: f64, hit: f64) -> f64 {
        match self.fixed && (overhead - hit).abs() < self.deviation {
            true => hit,
            false => overhead,
        }
    }

    /// Moves the fixed part of all processing times into `per_command`, and leaves the remainders. Changes nothing if another time is
    /// shorter than the fixed part of a read hit by more than the variation. Shorter write hits become as long as read hits.
    pub(super) fn part(self, spec: &mut OverheadSpec) {
        let fixed = spec.read_hit_after_read;
        let rest = |time: Nanos| match time.saturating_sub(fixed) {
            rest if rest.as_nanos() as f64 > self.deviation => rest,
            _ => Nanos::ZERO,
        };
        let mut times = [
            &mut spec.read_hit_after_read,
            &mut spec.read_hit_after_write,
            &mut spec.read_miss_after_read,
            &mut spec.read_miss_after_write,
            &mut spec.write_miss_after_read,
            &mut spec.write_miss_after_write,
        ];
        let shorter = |time: &&mut Nanos| fixed.saturating_sub(**time).as_nanos() as f64;
        let least = times.iter().map(shorter).fold(0.0, f64::max);
        if !self.fixed || least > self.deviation {
            return;
        }
        for time in &mut times {
            **time = rest(**time);
        }
        spec.per_command += fixed;
        spec.write_hit_after_read = rest(spec.write_hit_after_read);
        spec.write_hit_after_write = rest(spec.write_hit_after_write);
    }

    /// Uncertainty of the bus time per sector, in nanoseconds: the error of the difference of two medians.
    fn doubt(deviation: f64, count: u64, reads: usize) -> f64 {
        let middle = OF_MIDDLE * deviation / (reads as f64).sqrt();
        core::f64::consts::SQRT_2 * middle / (count - 1) as f64
    }

    /// Bus times, corrected by these reads if they agree with `transfer`.
    pub(super) fn steady(self, transfer: Transfer) -> Transfer {
        let Some((count, long)) = self.long.filter(|_| transfer.hit > 0.0) else {
            return transfer;
        };
        let sector = ((long - self.one) / (count - 1) as f64).max(0.0);
        let off = (sector - transfer.sector).abs();
        let doubt = Jitter::doubt(
            self.deviation,
            super::transfer::LONG_READ_SECTORS,
            super::transfer::BUFFER_READS_MIN,
        );
        if off > 4.0 * doubt + 0.05 * transfer.sector {
            return transfer;
        }
        Transfer {
            sector,
            hit: (self.one - sector).max(0.0),
            ..transfer
        }
    }
}

/// Reads places that the buffer holds. Returns `None` if the buffer held too few of them.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    hit: HitTime,
    segment: Option<u64>,
) -> Result<Option<Jitter>, ExtractError> {
    let bytes = u64::from(bench.probe.sector_bytes());
    let count = segment.map_or(1, |segment| {
        (LONG_READ_BYTES / bytes).min(segment / SEGMENT_PART)
    });
    let count = count.clamp(1, bench.capacity());
    let (mut ones, mut longs) = (Vec::new(), Vec::new());
    for _ in 0..PLACES_READ {
        let lba = bench.random.up_to(bench.capacity() - count);
        bench.read(lba, count)?;
        for _ in 0..LONG_READS {
            let answer = bench.read(lba, count)?;
            longs.push((answer.at - answer.sent).as_nanos() as f64);
        }
        for _ in 0..SHORT_READS {
            let answer = bench.read(lba, 1)?;
            let time = (answer.at - answer.sent).as_nanos() as f64;
            if time < hit.limit {
                ones.push(time);
            }
        }
    }
    if ones.len() < PLACES_READ * SHORT_READS / 2 {
        return Ok(None);
    }
    let one = median(&mut ones).expect("some");
    let (deviation, fixed) = deviation(&mut ones, one);
    let long = median(&mut longs).expect("some");
    // Times of the medium scatter; times of the buffer do not.
    let far = 3.0 * deviation + 0.02 * long;
    let near = longs.iter().filter(|time| (**time - long).abs() <= far);
    let is_steady = near.count() * 10 >= longs.len() * 9;
    Ok(Some(Jitter {
        deviation,
        fixed,
        one,
        long: (count > super::transfer::LONG_READ_SECTORS && is_steady).then_some((count, long)),
    }))
}

/// Standard deviation of times, and true if they are cut off below because the noise is about zero. Only times above the median give the
/// deviation. It comes from quartiles, since a few late answers of a real host would multiply a deviation by squares.
fn deviation(times: &mut [f64], middle: f64) -> (f64, bool) {
    let above = quantile(times, 0.75) - middle;
    let below = middle - quantile(times, 0.25);
    (above / QUARTILE_DEVIATIONS, below < CUT_OFF_RATIO * above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Modelled;
    use headtime_disk::profile::by_name;

    /// Result for a unit of a shipped drive whose processing time varies by `micros`.
    fn shown(name: &str, micros: u64, seed: u64) -> Option<Jitter> {
        let noisy = by_name(name).unwrap().with(|spec| {
            spec.noise = Default::default();
            spec.noise.overhead_sd = Nanos::from_micros(micros);
        });
        let truth = noisy.unwrap();
        let mut probe = Modelled::new(&truth, seed);
        let mut bench = Bench::new(&mut probe, seed);
        let hit = HitTime::measure(&mut bench, truth.rotation.turn().as_nanos() as f64);
        let hit = hit.unwrap()?;
        let segment = u64::from(truth.cache.segment_sectors);
        measure(&mut bench, hit, Some(segment)).unwrap()
    }

    const NAMES: [&str; 12] = [
        "atlas10k",
        "cheetah9lp",
        "cheetah18lp",
        "ibm18es",
        "hp-c2247a",
        "barracuda-st32171w",
        "wd5000aaks",
        "st3400620as",
        "barracuda-7200.10-160",
        "exos-x18",
        "nearline-20tb",
        "nearline-20tb-4kn",
    ];

    #[test]
    fn processing_varies_as_it_does_within_20_percent_or_2_us() {
        for name in NAMES {
            for micros in [0, 3, 10, 30, 60] {
                for seed in 1..=5 {
                    let is = micros as f64;
                    let found = shown(name, micros, seed).unwrap().deviation / 1e3;
                    let most = f64::max(2.0, 0.2 * is);
                    assert!((found - is).abs() < most, "{name} {seed}: {found} of {is}");
                }
            }
        }
    }

    #[test]
    fn without_noise_nothing_varies() {
        for name in NAMES {
            let found = shown(name, 0, 1).unwrap().deviation;
            assert!(found < 1.0, "{name}: {found} ns");
        }
    }

    #[test]
    fn a_sector_on_the_bus_is_known_within_5_percent_though_processing_varies() {
        for name in NAMES {
            let is = by_name(name).unwrap().bus.sector(true).as_nanos() as f64;
            for seed in 1..=5 {
                let found = shown(name, 30, seed).unwrap();
                // A rough first measurement of the bus.
                let rough = Transfer {
                    sector: is + 400.0,
                    hit: found.one,
                    ..Transfer::default()
                };
                let sector = found.steady(rough).sector;
                let most = 0.05 * is;
                assert!(
                    (sector - is).abs() < most,
                    "{name} {seed}: {sector} of {is}"
                );
            }
        }
    }

    #[test]
    fn a_few_answers_that_come_late_hardly_widen_the_deviation() {
        let mut random = crate::random::Random::new(7);
        // About normal, by the law of large numbers.
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        for (late, most) in [(0, 1.08), (5, 1.18), (10, 1.28)] {
            let mut times: Vec<f64> = (0..4_000)
                .map(|at| match at % 100 < late {
                    true => 2e6,
                    false => 200e3 + 30e3 * normal(),
                })
                .collect();
            let middle = median(&mut times).unwrap();
            let (found, fixed) = deviation(&mut times, middle);
            assert!(!fixed);
            assert!((0.92..most).contains(&(found / 30e3)), "{late} %: {found}");
        }
    }

    #[test]
    fn what_is_fixed_is_apart_from_what_varies_on_top_of_it() {
        let jitter = Jitter {
            deviation: 30e3,
            fixed: true,
            ..Jitter::default()
        };
        let micros = Nanos::from_micros;
        let whole = OverheadSpec {
            read_hit_after_read: micros(200),
            read_hit_after_write: micros(200),
            read_miss_after_read: micros(219),
            read_miss_after_write: micros(350),
            write_hit_after_read: micros(200),
            write_hit_after_write: micros(200),
            write_miss_after_read: micros(190),
            write_miss_after_write: micros(200),
            ..OverheadSpec::default()
        };
        let mut apart = whole;
        jitter.part(&mut apart);
        let fixed = OverheadSpec {
            per_command: micros(200),
            read_miss_after_write: micros(150),
            ..OverheadSpec::default()
        };
        assert_eq!(apart, fixed);
        // Nothing is fixed, or a miss is processed sooner than a hit.
        let mut apart = whole;
        let varies = Jitter {
            fixed: false,
            ..jitter
        };
        varies.part(&mut apart);
        assert_eq!(apart, whole);
        let soon = OverheadSpec {
            read_miss_after_read: micros(5),
            ..whole
        };
        let mut apart = soon;
        jitter.part(&mut apart);
        assert_eq!(apart, soon);
        // The estimate of a miss from arm movements is as close as the variation permits.
        assert_eq!(jitter.miss(219e3, 200e3), 200e3);
        assert_eq!(jitter.miss(190e3, 200e3), 200e3);
        assert_eq!(jitter.miss(240e3, 200e3), 240e3);
        assert_eq!(varies.miss(219e3, 200e3), 219e3);
    }

    #[test]
    fn what_contradicts_the_first_look_at_the_bus_does_not_count() {
        let jitter = Jitter {
            deviation: 30e3,
            fixed: true,
            one: 200e3,
            long: Some((257, 8.3e6)),
        };
        let first = Transfer {
            sector: 900.0,
            hit: 199e3,
            ..Transfer::default()
        };
        assert_eq!(jitter.steady(first), first);
    }
}
