//! Distributions of durations. Every request adds to several distributions.

use headtime_units::Nanos;
use std::ops::Range;

/// Distribution of durations.
///
/// Mean, least and most are exact. Percentiles come from a histogram with steps of 100 ns and two or three significant digits. Counts lie
/// as in an HdrHistogram, and the results are the same.
///
/// Source: G. Tene, HdrHistogram. The implementation is not HdrHistogram's, since each request is recorded five times. A record takes a
/// fifth of the instructions here. With HdrHistogram it was a twentieth of a simulation.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Counts,
    /// Exponent of the histogram's layout. Values below 2 to the power of `half_bits + 1` steps have a count each. Each further group of 2
    /// to the power of `half_bits` counts covers values twice as coarsely.
    half_bits: u32,
    count: u64,
    sum: u128,
    least: Nanos,
    most: Nanos,
}

/// Step of the histogram: far below the differences between response times of a disk, and coarse enough for a compact histogram.
pub(crate) const HISTOGRAM_STEP: Nanos = Nanos::from_nanos(100);

/// Most durations of a small histogram, in which a single count may reach this number. Tests use a small number, so that they exceed it.
const SMALL_MAX: u64 = if cfg!(test) { 100 } else { u32::MAX as u64 };

/// Counts by step. A run has hundreds of histograms, and each request changes counts here and there in some
/// histograms. With counts of half the size, twice as many fit into the processor's caches.
#[derive(Clone, Debug)]
enum Counts {
    Small(Vec<u32>),
    Large(Vec<u64>),
}

impl Counts {
    fn len(&self) -> usize {
        match self {
            Counts::Small(counts) => counts.len(),
            Counts::Large(counts) => counts.len(),
        }
    }

    /// Returns the counts of a range, in order.
    fn iter(&self, range: Range<usize>) -> impl Iterator<Item = u64> {
        let (small, large): (&[u32], &[u64]) = match self {
            Counts::Small(counts) => (&counts[range], &[]),
            Counts::Large(counts) => (&[], &counts[range]),
        };
        let small = small.iter().copied().map(u64::from);
        small.chain(large.iter().copied())
    }

    /// Makes room for `len` counts.
    #[cold]
    fn grow(&mut self, len: usize) {
        match self {
            Counts::Small(counts) => counts.resize(len, 0),
            Counts::Large(counts) => counts.resize(len, 0),
        }
    }

    #[cold]
    fn widen(&mut self) {
        *self = Counts::Large(self.iter(0..self.len()).collect());
    }
}

impl Distribution {
    /// Returns an empty distribution of 2 or 3 significant digits.
    pub(crate) fn new(digits: u8) -> Distribution {
        let values = 2 * 10_u32.pow(u32::from(digits));
        Distribution {
            counts: Counts::Small(Vec::new()),
            half_bits: values.next_power_of_two().ilog2() - 1,
            count: 0,
            sum: 0,
            least: Nanos::MAX,
            most: Nanos::ZERO,
        }
    }

    /// Records a duration.
    ///
    /// The function is not inlined into its five callers. Five copies would fill much of the processor's first cache, and a call is cheap.
    #[inline(never)]
    pub(crate) fn record(&mut self, span: Nanos) {
        let index = self.index(span.as_nanos() / HISTOGRAM_STEP.as_nanos());
        // The usual case: the count exists and cannot overflow.
        if let Counts::Small(counts) = &mut self.counts
            && self.count < SMALL_MAX
            && let Some(count) = counts.get_mut(index)
        {
            *count += 1;
            self.add_up(span, 1);
        } else {
            self.record_seldom(span);
        }
    }

    #[cold]
    fn record_seldom(&mut self, span: Nanos) {
        self.record_many(span, 1);
    }

    /// Records a duration that `times` requests took.
    #[inline]
    pub(crate) fn record_many(&mut self, span: Nanos, times: u64) {
        if times == 0 {
            return;
        }
        if self.count <= SMALL_MAX && self.count + times > SMALL_MAX {
            self.counts.widen();
        }
        let index = self.index(span.as_nanos() / HISTOGRAM_STEP.as_nanos());
        if index >= self.counts.len() {
            // Grows to the end of the values of the same coarseness.
            self.counts
                .grow(((index >> self.half_bits) + 1) << self.half_bits);
        }
        match &mut self.counts {
            // All counts together fit into 32 bits.
            Counts::Small(counts) => counts[index] += times as u32,
            Counts::Large(counts) => counts[index] += times,
        }
        self.add_up(span, times);
    }

    #[inline(always)]
    fn add_up(&mut self, span: Nanos, times: u64) {
        self.count += times;
        self.sum += u128::from(span.as_nanos()) * u128::from(times);
        self.least = self.least.min(span);
        self.most = self.most.max(span);
    }

    /// Returns the index of the count for a value in steps.
    #[inline]
    fn index(&self, steps: u64) -> usize {
        let coarse = (steps >> self.half_bits | 1).ilog2();
        ((coarse as usize) << self.half_bits) + (steps >> coarse) as usize
    }

    /// Returns the least and the greatest value of a count, in steps.
    fn values(&self, index: usize) -> (u64, u64) {
        let coarse = (index >> self.half_bits).saturating_sub(1);
        let first = ((index - (coarse << self.half_bits)) as u64) << coarse;
        (first, first + ((1 << coarse) - 1))
    }

    /// Returns the range from the first to the last count that is not zero.
    fn recorded(&self) -> Range<usize> {
        let index = |span: Nanos| self.index(span.as_nanos() / HISTOGRAM_STEP.as_nanos());
        match self.count {
            0 => 0..0,
            _ => index(self.least)..index(self.most) + 1,
        }
    }

    /// Returns the number of recorded durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds the durations of another distribution with the same number of digits.
    pub fn add(&mut self, other: &Distribution) {
        assert_eq!(self.half_bits, other.half_bits, "they have as many digits");
        self.count += other.count;
        if self.count > SMALL_MAX && matches!(self.counts, Counts::Small(_)) {
            self.counts.widen();
        }
        if other.counts.len() > self.counts.len() {
            self.counts.grow(other.counts.len());
        }
        let range = other.recorded();
        let more = other.counts.iter(range.clone());
        match &mut self.counts {
            Counts::Small(all) => {
                let all = all[range].iter_mut().zip(more);
                // All counts together fit into 32 bits.
                all.for_each(|(all, more)| *all += more as u32);
            }
            Counts::Large(all) => {
                let all = all[range].iter_mut().zip(more);
                all.for_each(|(all, more)| *all += more);
            }
        }
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// Returns the mean in milliseconds; zero without durations.
    pub fn mean_ms(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum as f64 / count as f64 / 1e6,
        }
    }

    /// Returns the longest duration; zero without durations.
    pub fn max(&self) -> Nanos {
        self.most
    }

    /// Returns the duration that `percent` of all durations do not exceed, in milliseconds; zero without durations.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        let [value] = self.percentiles_ms([percent]);
        value
    }

    /// Returns several percentiles, of rising percents, in one pass.
    pub fn percentiles_ms<const N: usize>(&self, percents: [f64; N]) -> [f64; N] {
        let range = self.recorded();
        let (begin, mut below) = (range.start, 0);
        let mut counts = self.counts.iter(range).zip(begin..);
        let mut at = None;
        percents.map(|percent| {
            let share = (percent / 100.0).min(1.0);
            let wanted = ((share * self.count as f64).ceil() as u64).max(1);
            while below < wanted
                && let Some((count, index)) = counts.next()
            {
                below += count;
                at = Some(index);
            }
            let (first, last) = at.map_or((0, 0), |index| self.values(index));
            let steps = if share == 0.0 { first } else { last };
            // The end of the very last step may exceed 64 bits.
            HISTOGRAM_STEP
                .saturating_mul(steps)
                .min(self.most)
                .as_millis_f64()
        })
    }

    /// Returns a percentile as if the durations within a step were spread evenly. With many requests this is more exact than the step.
    pub fn percentile_between_ms(&self, percent: f64) -> f64 {
        let wanted = (percent / 100.0).min(1.0) * self.count as f64;
        let range = self.recorded();
        let (begin, mut below) = (range.start, 0.0);
        for (count, index) in self.counts.iter(range).zip(begin..) {
            let count = count as f64;
            if count > 0.0 && below + count >= wanted {
                let (first, last) = self.values(index);
                let part = ((wanted - below) / count).clamp(0.0, 1.0);
                let steps = first as f64 + part * (last + 1 - first) as f64;
                let span = steps * HISTOGRAM_STEP.as_millis_f64();
                return span.clamp(self.least.as_millis_f64(), self.most.as_millis_f64());
            }
            below += count;
        }
        0.0
    }

    /// Returns the distribution as points: a duration in milliseconds, and the share of all durations (0 to 1) that do not exceed it.
    pub fn cumulative(&self) -> Vec<(f64, f64)> {
        let mut below = 0;
        let range = self.recorded();
        let counts = range.clone().zip(self.counts.iter(range));
        let recorded = counts.filter(|(_, count)| *count > 0);
        let points = recorded.map(|(index, count)| {
            below += count;
            let (_, steps) = self.values(index);
            let span = steps as f64 * HISTOGRAM_STEP.as_millis_f64();
            (span, below as f64 / self.count as f64)
        });
        points.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    #[test]
    fn a_percentile_between_steps_is_nearer_than_a_step() {
        let mut two = Distribution::new(2);
        assert_eq!(two.percentile_between_ms(99.0), 0.0);
        // Each of 1 to 200,000 us once.
        for us in 1..=200_000 {
            two.record(Nanos::from_micros(us));
        }
        for (percent, is) in [(1.0, 2.0), (50.0, 100.0), (99.0, 198.0), (100.0, 200.0)] {
            let said = two.percentile_between_ms(percent);
            assert!((said / is - 1.0).abs() < 1e-3, "{percent}: {said}");
        }
        let mut one = Distribution::new(2);
        one.record(Nanos::from_micros(12_345));
        assert_eq!(one.percentile_between_ms(99.0), 12.345);
    }

    const PERCENTS: [f64; 7] = [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0];

    /// Returns all results of a distribution.
    fn said(of: &Distribution) -> (u64, f64, Nanos, Vec<f64>, Vec<(f64, f64)>) {
        let percentiles = of.percentiles_ms(PERCENTS).to_vec();
        let each = PERCENTS.map(|percent| of.percentile_ms(percent));
        assert_eq!(percentiles, each, "of all at once as of each");
        let (count, mean) = (of.count(), of.mean_ms());
        (count, mean, of.max(), percentiles, of.cumulative())
    }

    /// Returns the same results from the library.
    fn library(spans: &[u64], digits: u8) -> (Vec<f64>, Vec<(f64, f64)>) {
        let mut histogram = Histogram::<u64>::new(digits).expect("0 to 5 digits are allowed");
        let steps = spans.iter().map(|span| span / HISTOGRAM_STEP.as_nanos());
        steps.for_each(|steps| histogram.record(steps).expect("it resizes itself"));
        let most = Nanos::from_nanos(spans.iter().copied().max().unwrap_or(0));
        let percentile = |percent| {
            let steps = histogram.value_at_percentile(percent);
            HISTOGRAM_STEP
                .saturating_mul(steps)
                .min(most)
                .as_millis_f64()
        };
        let mut below = 0;
        let points = histogram.iter_recorded().map(|bucket| {
            below += bucket.count_since_last_iteration();
            let span = bucket.value_iterated_to() as f64 * HISTOGRAM_STEP.as_millis_f64();
            (span, below as f64 / spans.len() as f64)
        });
        let points = points.collect();
        (PERCENTS.map(percentile).to_vec(), points)
    }

    fn spans() -> impl Strategy<Value = Vec<u64>> {
        let span = prop_oneof![0..1_000_u64, 0..1_000_000_000_u64, any::<u64>()];
        prop_oneof![
            prop::collection::vec(span, 0..150),
            // Many durations of one length.
            (any::<u64>(), 0..250_usize).prop_map(|(span, many)| vec![span; many]),
        ]
    }

    proptest! {
        #[test]
        fn distributions_added_up_say_what_the_library_says_of_all(
            parts in prop::collection::vec(spans(), 1..4),
            digits in 2..4_u8,
        ) {
            let (mut added, mut all) = (Distribution::new(digits), Distribution::new(digits));
            for part in &parts {
                let mut one = Distribution::new(digits);
                for span in part.iter().copied().map(Nanos::from_nanos) {
                    one.record(span);
                    all.record(span);
                }
                added.add(&one);
                let small = |of: &Distribution| matches!(of.counts, Counts::Small(_));
                prop_assert_eq!(small(&one), one.count() <= SMALL_MAX);
                prop_assert_eq!(small(&added), added.count() <= SMALL_MAX);
            }
            prop_assert_eq!(said(&added), said(&all));
            let spans = parts.concat();
            let (_, _, _, percentiles, points) = said(&all);
            prop_assert_eq!((percentiles, points), library(&spans, digits));
        }
    }
}
