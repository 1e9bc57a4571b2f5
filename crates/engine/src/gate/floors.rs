//! What lower levels are owed of the head time.

use headtime_sched::Counts;
use headtime_units::{Nanos, Time};

/// The share of the head time that each level but the most urgent has while it waits.
///
/// A completion ends a span in which the arm was busy, for the command that completed. While a level waits, each span adds `floor`
/// of itself to what it is owed, and a command of its own takes what that took. The level is due when it is owed as much
/// as its last command took. So a level that comes to wait goes first after one such command's worth of spans, and its debt stays within
/// one command.
#[derive(Clone, Debug)]
pub(super) struct Floors {
    percent: u64,
    /// When the span began.
    from: Option<Time>,
    /// By level: whether it waits, what it is owed, and what its last command took; in hundredths of nanoseconds.
    waits: [bool; Counts::MAX],
    owed: [i64; Counts::MAX],
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

    /// Notes whether a level has a request that could go.
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

    /// Notes that the drive is done with a command of this level; `idle` if it has no other.
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
