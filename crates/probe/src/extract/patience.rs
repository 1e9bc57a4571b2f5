//! Time limit of the walk over the tracks.
//!
//! A walk that works is slow on some parts of the disk and quick on others. A walk that fails is slow from its beginning. The progress so
//! far therefore shows if the walk will end in time. The estimate uses the mean pace of the whole walk or of its later half, whichever is
//! quicker. If even this estimate exceeds the patience, the walk ends after a part of the patience.

use headtime_units::Nanos;
use serde::{Deserialize, Serialize};

/// Default limit for a walk.
pub(super) const PATIENCE_DEFAULT: Nanos = Nanos::from_secs(3 * 3_600);
/// Divisor of the patience. No walk is judged before this part of the patience, and no step may take longer.
const PATIENCE_PART: u64 = 12;
/// Most records of the walk's progress.
const RECORDS_MAX: usize = 64;
/// Ratio of the estimates by the whole walk and by its later half, above which neither is used.
const ESTIMATE_RATIO_MAX: f64 = 4.0;
/// Share of the disk below which the pace says nothing about the rest.
const DISK_SHARE_MIN: f64 = 0.01;

/// Progress of a walk over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Pace {
    /// Time of the walk, and first address that is not yet explained.
    seen: Vec<(Nanos, u64)>,
    /// Time and address at which the current method of the walk started.
    since: Nanos,
    from: u64,
}

impl Pace {
    /// Time at which the current method of the walk started.
    pub fn since(&self) -> Nanos {
        self.since
    }

    /// Restarts the record because the walk changes its method.
    pub fn anew(&mut self, spent: Nanos, upto: u64) {
        *self = Pace {
            since: spent,
            from: upto,
            seen: Vec::new(),
        };
    }

    /// Records the walk's progress at a time.
    pub fn note(&mut self, spent: Nanos, upto: u64) {
        if self.seen.len() == RECORDS_MAX {
            let mut second = false;
            self.seen.retain(|_| {
                second = !second;
                second
            });
        }
        self.seen.push((spent, upto));
    }

    /// Estimates of the remaining time, in nanoseconds: by the mean pace of the whole walk, and by its later half.
    fn rest(&self, capacity: u64) -> Option<[f64; 2]> {
        let &(spent, upto) = self.seen.last()?;
        let half = (spent.as_nanos() + self.since.as_nanos()) / 2;
        let first = (self.since, self.from);
        let before = self
            .seen
            .iter()
            .rfind(|(time, _)| time.as_nanos() <= half)
            .copied()
            .unwrap_or(first);
        let left = capacity.saturating_sub(upto) as f64;
        let rest = |(time, from): (Nanos, u64)| {
            let took = spent.saturating_sub(time).as_nanos() as f64;
            left * took / upto.saturating_sub(from) as f64
        };
        Some([rest(first), rest(before)])
    }

    /// Estimate of the remaining time, in nanoseconds; `None` while there is no basis for an estimate.
    pub fn left(&self, capacity: u64) -> Option<f64> {
        let (_, upto) = *self.seen.last()?;
        let [all, late] = self.rest(capacity)?;
        let agree = all.max(late) < ESTIMATE_RATIO_MAX * all.min(late);
        let enough = upto as f64 > DISK_SHARE_MIN * capacity as f64;
        (agree && enough).then(|| libm::sqrt(all * late))
    }

    /// Lower estimate of the time of the whole walk, in nanoseconds.
    pub fn least(&self, capacity: u64) -> Option<f64> {
        let (spent, _) = *self.seen.last()?;
        let [all, late] = self.rest(capacity)?;
        Some(spent.as_nanos() as f64 + all.min(late))
    }
}

/// Time limit for a single step of a walk.
pub(super) fn longest_step(patience: Nanos) -> Nanos {
    patience / PATIENCE_PART
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(seen: &[(u64, u64)]) -> Pace {
        let mut pace = Pace::default();
        for &(minutes, upto) in seen {
            pace.note(Nanos::from_secs(60 * minutes), upto);
        }
        pace
    }

    fn minutes(time: Option<f64>) -> Option<f64> {
        time.map(|time| libm::round(time / 60e9))
    }

    #[test]
    fn a_walk_takes_as_long_as_its_better_half_says() {
        // Slow at first: the later half counts.
        let slow = pace(&[(10, 1), (20, 101)]);
        assert_eq!(minutes(slow.least(1_001)), Some(20.0 + 90.0));
        // Slow in the end: the whole walk counts.
        let stuck = pace(&[(10, 500), (20, 501)]);
        assert_eq!(minutes(stuck.least(1_001)), Some(20.0 + 20.0));
        // No progress at all.
        assert_eq!(pace(&[(20, 0)]).least(1_000), Some(f64::INFINITY));
        assert_eq!(pace(&[]).least(1_000), None);
    }

    #[test]
    fn how_long_the_rest_takes_is_not_said_before_it_shows() {
        assert_eq!(
            minutes(pace(&[(10, 100), (20, 200)]).left(1_000)),
            Some(80.0)
        );
        // A tenth of the former pace or less, and almost nothing explained.
        assert_eq!(pace(&[(10, 500), (20, 501)]).left(1_000), None);
        assert_eq!(pace(&[(10, 4), (20, 8)]).left(1_000), None);
        assert_eq!(pace(&[]).left(1_000), None);
    }

    #[test]
    fn what_is_kept_of_a_long_walk_is_little_and_the_last_of_it_is_right() {
        let mut pace = Pace::default();
        for minute in 1..10_000 {
            pace.note(Nanos::from_secs(60 * minute), minute);
        }
        assert!(pace.seen.len() <= RECORDS_MAX);
        assert_eq!(
            pace.seen.last(),
            Some(&(Nanos::from_secs(60 * 9_999), 9_999))
        );
        let left = pace.left(20_000).unwrap() / 60e9;
        assert!((left - 10_001.0).abs() < 1.0, "{left}");
    }
}
