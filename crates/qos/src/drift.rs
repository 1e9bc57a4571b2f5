//! Comparison of a run with its profile.

use crate::bound::Alpha;
use crate::course::Course;
use crate::profile::Profile;
use headtime_units::{Nanos, Rate};

/// Difference between a run and its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Time of the run for the same number of bytes, in percent of the time in the profile.
    Slower(u32),
    /// The program has moved a sixteenth more bytes than the profile has. The length of the rest is unknown.
    More,
}

/// Compares a run with its profile, period by period.
///
/// The window of a program is time with all servers to itself, as in the profile. So a window has to move as many bytes as
/// the profile did in the same time.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Course of the profile itself.
    alone: Course,
    /// Bytes of the profile, plus a sixteenth.
    most: u64,
    /// Time in windows, and time in the profile for the same bytes. At each period the sums of earlier periods are halved.
    took: Nanos,
    expected: Nanos,
    /// Bytes moved, summed in the same way.
    moved: u64,
    drift: Option<Drift>,
}

impl Watch {
    /// Slack beyond 5/4 of the time in the profile, after which a run has left its profile. Errors of a tree are within a
    /// quarter. An epoch with twice the time is no chance event.
    const EPOCH_SLACK: Nanos = Nanos::from_millis(100);

    pub fn new(profile: &Profile) -> Watch {
        let bytes = profile.bytes();
        Watch {
            alone: Course::new(profile, Alpha::ONE),
            most: bytes + bytes / 16,
            took: Nanos::ZERO,
            expected: Nanos::ZERO,
            moved: 0,
            drift: None,
        }
    }

    /// Ends a period. `window` is the program's time in its own window with requests, or 0 without one. The period moved the
    /// bytes from `before` to `progress`. If `window` is 0, only the number of bytes is checked.
    pub fn period_ends(&mut self, window: Nanos, before: u64, progress: u64) {
        if progress > self.most {
            self.drift = Some(Drift::More);
        }
        if self.drift == Some(Drift::More) || window.is_zero() || progress == before {
            return;
        }
        let expected = self.alone.time_of(progress) - self.alone.time_of(before);
        self.took = self.took / 2 + window;
        self.expected = self.expected / 2 + expected;
        self.moved = self.moved / 2 + (progress - before);
        let leaves = self.took > self.expected * 5 / 4 + Watch::EPOCH_SLACK;
        if leaves || self.drift.is_some() {
            self.drift = Some(Drift::Slower(self.percent()));
        }
    }

    /// Time in windows in percent of the time in the profile, at least 100.
    fn percent(&self) -> u32 {
        let expected = u128::from(self.expected.as_nanos().max(1));
        let percent = u128::from(self.took.as_nanos()) * 100 / expected;
        percent.clamp(100, 100_000) as u32
    }

    /// Throughput in the windows of the last periods.
    pub fn rate(&self) -> Rate {
        Rate::of(self.moved, self.took)
    }

    pub fn drift(&self) -> Option<Drift> {
        self.drift
    }

    /// I/O time of the run in percent of the profile's I/O time for the same bytes. 100 unless the run has become slower.
    pub fn slower(&self) -> u64 {
        match self.drift {
            Some(Drift::Slower(percent)) => u64::from(percent),
            _ => 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::tests::profile;

    const MB: u64 = 1_000_000;

    /// Drift of a run after a number of periods, each with one window and these bytes.
    fn after(periods: u64, window: u64, bytes: u64) -> Option<Drift> {
        let mut watch = Watch::new(&profile());
        for period in 0..periods {
            let before = period * bytes;
            watch.period_ends(Nanos::from_millis(window), before, before + bytes);
        }
        watch.drift()
    }

    #[test]
    fn a_run_that_takes_twice_the_time_has_left_its_profile_after_two_periods() {
        // The profile moves 20 MB/s: 2 MB in 100 ms.
        assert_eq!(after(2, 200, 2 * MB), Some(Drift::Slower(200)));
        assert_eq!(after(1, 400, 4 * MB), Some(Drift::Slower(200)));
        assert_eq!(after(1, 200, 2 * MB), None);
    }

    #[test]
    fn a_run_that_takes_a_fifth_longer_or_is_faster_has_not_left_its_profile() {
        assert_eq!(after(5, 120, 2 * MB), None);
        assert_eq!(after(2, 100, 4 * MB), None);
        assert_eq!(after(5, 0, 2 * MB), None, "no window of its own");
    }

    #[test]
    fn a_run_with_a_sixteenth_more_data_has_left_its_profile() {
        // The profile has 15 MB.
        assert_eq!(after(1, 0, 15_937_500), None);
        assert_eq!(after(1, 0, 15_937_501), Some(Drift::More));
    }

    #[test]
    fn the_factor_follows_the_last_periods() {
        let mut watch = Watch::new(&profile());
        let mut progress = 0;
        let mut period = |watch: &mut Watch, window| {
            watch.period_ends(Nanos::from_millis(window), progress, progress + MB);
            progress += MB;
            watch.slower()
        };
        assert_eq!(period(&mut watch, 200), 400);
        // Half of 200 ms and 50 ms, over half of 50 ms and 50 ms.
        assert_eq!(period(&mut watch, 50), 200);
        for _ in 0..8 {
            period(&mut watch, 50);
        }
        assert_eq!(watch.slower(), 100);
    }
}
