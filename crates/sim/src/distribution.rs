//! Distributions of spans of time, which are added to for every request.

use hdrhistogram::Histogram;
use headtime_units::Nanos;

/// A distribution of spans of time.
///
/// Mean, least and most are exact; percentiles are those of a histogram with three significant
/// digits (HdrHistogram) over steps of 100 ns.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Counts,
    sum: u128,
    least: Nanos,
    most: Nanos,
}

/// The histogram's step: far below what a disk's response times can tell apart, and coarse enough
/// for a compact histogram.
const STEP: Nanos = Nanos::from_nanos(100);

/// The most spans of a small histogram, of which a count could be that of all; in tests so few that
/// there are more.
const SMALL_MAX: u64 = if cfg!(test) { 100 } else { u32::MAX as u64 };

/// What was recorded, by steps. A run has hundreds of these, and each request changes counts here and there
/// in some of them: with counts of half the size twice as many fit into the processor's caches.
#[derive(Clone, Debug)]
enum Counts {
    Small(Histogram<u32>),
    Large(Histogram<u64>),
}

/// The same of either.
macro_rules! of {
    ($counts:expr, $histogram:ident => $what:expr) => {
        match $counts {
            Counts::Small($histogram) => $what,
            Counts::Large($histogram) => $what,
        }
    };
}

/// A histogram resizes itself, and a span of 64 bits in steps fits always.
const FITS: &str = "a histogram that resizes takes any value";

impl Counts {
    fn record(&mut self, steps: u64) {
        if let Counts::Small(small) = self {
            if small.len() < SMALL_MAX {
                small.record(steps).expect(FITS);
                return;
            }
            self.widen();
        }
        of!(self, histogram => histogram.record(steps).expect(FITS));
    }

    fn add(&mut self, other: &Counts) {
        if of!(self, one => one.len()) + of!(other, other => other.len()) > SMALL_MAX {
            self.widen();
        }
        match (self, other) {
            (Counts::Small(all), Counts::Small(other)) => all.add(other).expect(FITS),
            (Counts::Large(all), Counts::Large(other)) => all.add(other).expect(FITS),
            (Counts::Large(all), Counts::Small(other)) => add_small(all, other),
            (Counts::Small(_), Counts::Large(_)) => unreachable!("together they are too many"),
        }
    }

    #[cold]
    fn widen(&mut self) {
        if let Counts::Small(small) = self {
            let mut large = Histogram::new_from(small);
            large.auto(true);
            add_small(&mut large, small);
            *self = Counts::Large(large);
        }
    }
}

fn add_small(large: &mut Histogram<u64>, small: &Histogram<u32>) {
    for bucket in small.iter_recorded() {
        let count = bucket.count_since_last_iteration();
        let added = large.record_n(bucket.value_iterated_to(), count);
        added.expect(FITS);
    }
}

impl Distribution {
    pub(crate) fn new(digits: u8) -> Distribution {
        let histogram = Histogram::new(digits).expect("0 to 5 significant digits are allowed");
        Distribution {
            counts: Counts::Small(histogram),
            sum: 0,
            least: Nanos::MAX,
            most: Nanos::ZERO,
        }
    }

    pub(crate) fn record(&mut self, span: Nanos) {
        self.counts.record(span.as_nanos() / STEP.as_nanos());
        self.sum += u128::from(span.as_nanos());
        self.least = self.least.min(span);
        self.most = self.most.max(span);
    }

    /// How many spans were recorded.
    pub fn count(&self) -> u64 {
        of!(&self.counts, histogram => histogram.len())
    }

    /// Adds what another distribution has recorded.
    pub fn add(&mut self, other: &Distribution) {
        self.counts.add(&other.counts);
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// The mean in milliseconds; zero if there is nothing.
    pub fn mean_ms(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum as f64 / count as f64 / 1e6,
        }
    }

    /// The longest span; zero if there is none.
    pub fn max(&self) -> Nanos {
        self.most
    }

    /// The span that `percent` of all do not exceed, in milliseconds.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        let steps = of!(&self.counts, histogram => histogram.value_at_percentile(percent));
        // The end of the last step of all may lie beyond 64 bits.
        STEP.saturating_mul(steps).min(self.most).as_millis_f64()
    }

    /// The distribution as points: a span in milliseconds, and the share of all that do not exceed
    /// it, 0 to 1.
    pub fn cumulative(&self) -> Vec<(f64, f64)> {
        let count = self.count() as f64;
        let mut below = 0;
        let mut point = |steps: u64, more: u64| {
            below += more;
            (steps as f64 * STEP.as_millis_f64(), below as f64 / count)
        };
        of!(&self.counts, histogram => histogram
            .iter_recorded()
            .map(|bucket| point(bucket.value_iterated_to(), bucket.count_since_last_iteration()))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is said of a distribution.
    fn said(of: &Distribution) -> (u64, f64, Nanos, Vec<f64>, Vec<(f64, f64)>) {
        let percentiles = [0.0, 1.0, 50.0, 99.0, 100.0].map(|percent| of.percentile_ms(percent));
        let percentiles = percentiles.to_vec();
        let (count, mean) = (of.count(), of.mean_ms());
        (count, mean, of.max(), percentiles, of.cumulative())
    }

    /// One that has large counts from the beginning.
    fn large(digits: u8) -> Distribution {
        Distribution {
            counts: Counts::Large(Histogram::new(digits).expect("as above")),
            ..Distribution::new(digits)
        }
    }

    fn spans() -> impl Strategy<Value = Vec<u64>> {
        let span = prop_oneof![0..1_000_u64, 0..1_000_000_000_u64, any::<u64>()];
        prop_oneof![
            prop::collection::vec(span, 0..150),
            // Many of one length.
            (any::<u64>(), 0..250_usize).prop_map(|(span, many)| vec![span; many]),
        ]
    }

    proptest! {
        #[test]
        fn distributions_that_outgrow_small_counts_say_what_large_ones_say(
            parts in prop::collection::vec(spans(), 1..4),
            digits in 2..4_u8,
        ) {
            let (mut added, mut large_added) = (Distribution::new(digits), large(digits));
            let (mut all, mut large_all) = (Distribution::new(digits), large(digits));
            for part in &parts {
                let (mut one, mut large_one) = (Distribution::new(digits), large(digits));
                for span in part.iter().copied().map(Nanos::from_nanos) {
                    for of in [&mut one, &mut large_one, &mut all, &mut large_all] {
                        of.record(span);
                    }
                }
                prop_assert_eq!(said(&one), said(&large_one));
                added.add(&one);
                large_added.add(&large_one);
                let small = |of: &Distribution| matches!(of.counts, Counts::Small(_));
                prop_assert_eq!(small(&one), one.count() <= SMALL_MAX);
                prop_assert_eq!(small(&added), added.count() <= SMALL_MAX);
                prop_assert_eq!(said(&added), said(&large_added));
            }
            prop_assert_eq!(said(&added), said(&all));
            prop_assert_eq!(said(&all), said(&large_all));
        }
    }
}
