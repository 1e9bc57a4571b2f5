//! The time of the live world.

use headtime_units::{Nanos, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Counts nanoseconds of the machine's monotonic clock since it was created. Copies of one clock
/// stamp everything that passes through one server.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: u64,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Clock {
        Clock { epoch: monotonic() }
    }

    /// The time since the clock was made.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.epoch)
    }

    /// When `time` is on the machine's monotonic clock.
    pub fn absolute(&self, time: Time) -> Timespec {
        timespec(Nanos::from_nanos(
            self.epoch.saturating_add(time.as_nanos()),
        ))
    }
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A span as the kernel takes it.
pub fn timespec(span: Nanos) -> Timespec {
    Timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as i64,
    }
}
