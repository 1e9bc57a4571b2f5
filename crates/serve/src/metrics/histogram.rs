//! Histograms of times and other values, written by one thread and read by any thread.

use headtime_units::Nanos;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Binary logarithm of the number of cells in an octave. The width of a cell is at most 1/64 of its times.
const FINE: u32 = 6;

/// Number of octaves. Times from 2^42 ns (73 minutes) on are in the last cell.
const OCTAVES: u32 = 42;

const CELLS: usize = ((OCTAVES - FINE + 1) << FINE) as usize;

/// A histogram of times with a resolution of 1.6 %. Times up to 64 ns have a bucket each. Times
/// from 73 minutes on share one.
///
/// A clone shares the same cells. One thread records, with plain stores and without a lock. Other threads read at any
/// time. A reader may see a time in the counts that is not in the sum yet.
#[derive(Clone)]
pub struct Histogram(Arc<Cells>);

struct Cells {
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
    max: AtomicU64,
}

fn cell(value: u64) -> usize {
    let value = value.min((1 << OCTAVES) - 1);
    let shift = (64 - value.leading_zeros()).saturating_sub(FINE + 1);
    ((u64::from(shift) << FINE) + (value >> shift)) as usize
}

/// The largest time of a cell.
fn highest(cell: usize) -> u64 {
    let octave = (cell >> FINE) as u32;
    let shift = octave.saturating_sub(1);
    let first = cell as u64 - (u64::from(shift) << FINE);
    ((first + 1) << shift) - 1
}

/// Adds to a number. Only one thread writes, so no atomic read-modify-write is needed.
fn add(to: &AtomicU64, value: u64) {
    let sum = to.load(Ordering::Relaxed).saturating_add(value);
    to.store(sum, Ordering::Relaxed);
}

impl Histogram {
    /// A histogram without times.
    pub fn new() -> Histogram {
        Histogram(Arc::new(Cells {
            counts: std::iter::repeat_with(AtomicU64::default)
                .take(CELLS)
                .collect(),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }))
    }

    /// Counts a time. Only one thread may call this, because times that two threads record at once may be lost.
    pub fn record(&self, time: Nanos) {
        self.count(time.as_nanos());
    }

    /// Counts a value other than a time, as a number of nanoseconds. Values below 128 have a cell each.
    pub fn count(&self, value: u64) {
        let cells = &*self.0;
        add(&cells.counts[cell(value)], 1);
        add(&cells.sum, value);
        if value > cells.max.load(Ordering::Relaxed) {
            cells.max.store(value, Ordering::Relaxed);
        }
    }

    /// A copy of the present counts.
    pub fn read(&self) -> Times {
        let cells = &*self.0;
        let counts: Vec<u64> = cells
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect();
        Times {
            len: counts.iter().sum(),
            counts,
            sum: cells.sum.load(Ordering::Relaxed),
            max: cells.max.load(Ordering::Relaxed),
        }
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self.read();
        write!(f, "Histogram({} up to {})", times.len, times.max())
    }
}

/// The counts of a [`Histogram`] at one time.
#[derive(Clone, Debug)]
pub struct Times {
    counts: Vec<u64>,
    len: u64,
    sum: u64,
    max: u64,
}

impl Times {
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if there are no times.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sum of all times.
    pub fn sum(&self) -> Nanos {
        Nanos::from_nanos(self.sum)
    }

    /// The longest time, exactly; zero if there are no times.
    pub fn max(&self) -> Nanos {
        Nanos::from_nanos(self.max)
    }

    /// Exact mean of the times; zero if there are no times.
    pub fn mean(&self) -> Nanos {
        Nanos::from_nanos(self.sum / self.len.max(1))
    }

    /// A time that the share `quantile` (0 to 1) of all times do not exceed, at most 1.6 % above
    /// the least such time. Zero if there are no times.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let rank = (quantile.clamp(0.0, 1.0) * self.len as f64).ceil().max(1.0) as u64;
        let mut before = 0;
        for (cell, count) in self.counts.iter().enumerate() {
            before += count;
            if before >= rank {
                return Nanos::from_nanos(highest(cell).min(self.max));
            }
        }
        self.max()
    }

    /// The number of times that are not above each of these ascending bounds. A time less than 1.6
    /// % below its bound may be missing.
    pub fn not_above<'a>(&'a self, bounds: &'a [Nanos]) -> impl Iterator<Item = u64> + 'a {
        let (mut next, mut below) = (0, 0);
        bounds.iter().map(move |bound| {
            while next < CELLS && highest(next) <= bound.as_nanos() {
                below += self.counts[next];
                next += 1;
            }
            below
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_follow_each_other_without_gaps() {
        let mut value = 0;
        for number in 0..CELLS {
            assert_eq!(cell(value), number, "{value}");
            assert_eq!(cell(highest(number)), number, "{value}");
            value = highest(number) + 1;
        }
        assert_eq!(value, 1 << OCTAVES);
        assert_eq!(cell(u64::MAX), CELLS - 1);
    }

    #[test]
    fn an_empty_histogram_has_quantiles_of_zero() {
        let times = Histogram::new().read();
        assert!(times.is_empty());
        assert_eq!(times.quantile(0.99), Nanos::ZERO);
        assert_eq!((times.mean(), times.max()), (Nanos::ZERO, Nanos::ZERO));
    }

    proptest! {
        /// Compares a histogram with the sorted times.
        #[test]
        fn quantiles_are_as_exact_as_promised(mut given in proptest::collection::vec(0_u64..1 << 41, 1..200), q in 0.0..=1.0_f64) {
            let histogram = Histogram::new();
            for time in &given {
                histogram.record(Nanos::from_nanos(*time));
            }
            let times = histogram.clone().read();
            given.sort_unstable();
            prop_assert_eq!(times.len(), given.len() as u64);
            prop_assert_eq!(times.sum().as_nanos(), given.iter().sum::<u64>());
            prop_assert_eq!(times.max().as_nanos(), given[given.len() - 1]);
            let rank = ((q * given.len() as f64).ceil() as usize).max(1);
            let exact = given[rank - 1];
            let found = times.quantile(q).as_nanos();
            prop_assert!(found >= exact && found <= exact + exact / 64, "{} for {}", found, exact);
            let bounds = [Nanos::from_micros(50), Nanos::from_millis(1), Nanos::from_secs(3)];
            for (bound, count) in bounds.iter().zip(times.not_above(&bounds)) {
                let limit = bound.as_nanos();
                let most = given.iter().filter(|time| **time <= limit).count() as u64;
                let least = given.iter().filter(|time| **time <= limit - limit / 60).count() as u64;
                prop_assert!(count >= least && count <= most, "{} of {} to {}", count, least, most);
            }
        }
    }
}
