//! Shares of the head time for lower levels.

use headtime_sched::Counts;
use headtime_units::{Nanos, Time};

/// Share of the head time that each level but the most urgent gets while it waits.
///
/// A completion ends a span in which the arm was busy for the completed command. While a level waits, its credit grows
/// by the share `floor` of each span. The span of a level's own command is subtracted from its credit. The level is due
/// when its credit exceeds the span of its last command, and the credit stays within one such span.
#[derive(Clone, Debug)]
pub(super) struct Floors {
    percent: u64,
    /// When the span began.
    from: Option<Time>,
    /// True for each level that waits.
    waits: [bool; Counts::MAX],
    /// Credit of each level, in hundredths of nanoseconds.
    owed: [i64; Counts::MAX],
    /// Span of each level's last command, in hundredths of nanoseconds.
    took: [i64; Counts::MAX],
}

impl Floors {
    pub fn new(percent: u64) -> Floors {
        Floors {
            percent,
            from: None,
            waits: [false; Counts::MAX],
            owed: [0; Counts::MAX],
            took: [0; Counts::MAX],
        }
    }

    /// Returns true if levels have a share.
    pub fn is_on(&self) -> bool {
        self.percent > 0
    }

    /// Notes whether a level has a request for the drive.
    #[inline]
    pub fn waits(&mut self, level: usize, waits: bool) {
        self.waits[level] = waits && level > 0;
    }

    /// Returns true if the next command is to be of this level.
    #[inline]
    pub fn is_due(&self, level: usize) -> bool {
        self.percent > 0 && self.waits[level] && self.owed[level] > self.took[level]
    }

    /// Notes that a command goes to the drive.
    #[inline]
    pub fn taken(&mut self, now: Time) {
        self.from.get_or_insert(now);
    }

    /// Notes that the drive is done with a command of this level. `idle` is true if the drive has no other command.
    pub fn returned(&mut self, now: Time, level: usize, idle: bool) {
        let since = self.from.replace(now).unwrap_or(now);
        if idle {
            self.from = None;
        }
        let span = now.saturating_since(since);
        let share = hundredths(span, self.percent);
        for (owed, waits) in self.owed.iter_mut().zip(self.waits) {
            *owed += if waits { share } else { 0 };
        }
        let took = hundredths(span, 100);
        self.took[level] = took;
        self.owed[level] = (self.owed[level] - took).max(-took);
    }
}

fn hundredths(span: Nanos, times: u64) -> i64 {
    i64::try_from(span.as_nanos().saturating_mul(times)).unwrap_or(i64::MAX / 4)
}
