//! The three classes of queues that Linux schedulers with queues per process keep.

use crate::Class;

/// Number of levels: real-time, best effort, idle.
pub(crate) const LEVELS: usize = 3;

/// Rank of a class among the queues of a scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    RealTime,
    #[default]
    BestEffort,
    Idle,
}

impl Level {
    /// Returns the level of a class. Classes below [`Class::IDLE`] count as idle.
    pub fn of(class: Class) -> Level {
        match class {
            Class::REAL_TIME => Level::RealTime,
            Class::BEST_EFFORT => Level::BestEffort,
            _ => Level::Idle,
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// The kernel's priority within the class: 0 is the highest, 7 the lowest. The default of a
    /// process is 4. The idle class uses 7.
    pub const fn priority(self) -> i64 {
        match self {
            Level::RealTime | Level::BestEffort => 4,
            Level::Idle => 7,
        }
    }
}
