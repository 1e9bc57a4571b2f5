//! How long a walk over the tracks is gone on with.
//!
//! A walk that gets on is slow here and quick there, and one that does not is slow from its beginning. So what is
//! explained of the disk in how much time says whether it will end: the mean of all the walk, or of its later half if that
//! is quicker. Where even that is beyond the patience, this is said after a part of it, and not at its end.

use headtime_units::Nanos;
use serde::{Deserialize, Serialize};

/// How long a walk may take, unless somebody says otherwise.
pub(super) const PATIENCE: Nanos = Nanos::from_secs(3 * 3_600);
/// A walk is not judged before this part of the patience, and no step may take longer.
const PART: u64 = 12;
/// Times at which it is noted how far the walk was, at most.
const SEEN: usize = 64;
/// Means over all the walk and over its later half that differ by more than this say nothing of the rest.
const AGREE: f64 = 4.0;
/// What less of the disk than this took says nothing of the rest.
const LEAST: f64 = 0.01;

/// How far a walk was when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Pace {
    /// Time of the walk, and the address up to which all is explained.
    seen: Vec<(Nanos, u64)>,
    /// When and from where on the walk has gone as it does.
    since: Nanos,
    from: u64,
}

impl Pace {
    /// When it began to go as it does.
    pub fn since(&self) -> Nanos {
        self.since
    }

    /// From now on the walk goes another way.
    pub fn anew(&mut self, spent: Nanos, upto: u64) {
        *self = Pace {
            since: spent,
            from: upto,
            seen: Vec::new(),
        };
    }

    /// Notes up to where all is explained after so much time of the walk.
    pub fn note(&mut self, spent: Nanos, upto: u64) {
        if self.seen.len() == SEEN {
            let mut second = false;
            self.seen.retain(|_| {
                second = !second;
                second
            });
        }
        self.seen.push((spent, upto));
    }

    /// Times that the rest takes by the mean of all and by that of the later half, in nanoseconds.
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

    /// How long the rest of the walk takes, about, in nanoseconds; `None` as long as nothing says.
    pub fn left(&self, capacity: u64) -> Option<f64> {
        let (_, upto) = *self.seen.last()?;
        let [all, late] = self.rest(capacity)?;
        let agree = all.max(late) < AGREE * all.min(late);
        let enough = upto as f64 > LEAST * capacity as f64;
        (agree && enough).then(|| libm::sqrt(all * late))
    }

    /// How long the whole walk takes at least, if it goes on as it did.
    pub fn least(&self, capacity: u64) -> Option<f64> {
        let (spent, _) = *self.seen.last()?;
        let [all, late] = self.rest(capacity)?;
        Some(spent.as_nanos() as f64 + all.min(late))
    }
}

/// The time that one step of a walk may take.
pub(super) fn longest_step(patience: Nanos) -> Nanos {
    patience / PART
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
        // Slow now: all of it counts.
        let stuck = pace(&[(10, 500), (20, 501)]);
        assert_eq!(minutes(stuck.least(1_001)), Some(20.0 + 20.0));
        // Not a sector.
        assert_eq!(pace(&[(20, 0)]).least(1_000), Some(f64::INFINITY));
        assert_eq!(pace(&[]).least(1_000), None);
    }

    #[test]
    fn how_long_the_rest_takes_is_not_said_before_it_shows() {
        assert_eq!(
            minutes(pace(&[(10, 100), (20, 200)]).left(1_000)),
            Some(80.0)
        );
        // Now ten times as slow as before; next to nothing explained.
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
        assert!(pace.seen.len() <= SEEN);
        assert_eq!(
            pace.seen.last(),
            Some(&(Nanos::from_secs(60 * 9_999), 9_999))
        );
        let left = pace.left(20_000).unwrap() / 60e9;
        assert!((left - 10_001.0).abs() < 1.0, "{left}");
    }
}
