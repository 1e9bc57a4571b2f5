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

/// A date: milliseconds since 1970 began, as the clock on the wall has it. That may be set, also back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall(pub u64);

impl Wall {
    /// Reads it.
    pub fn now() -> Wall {
        let now = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Wall(seconds.saturating_mul(1_000) + now.tv_nsec as u64 / 1_000_000)
    }

    /// So much later.
    pub fn after(self, span: Nanos) -> Wall {
        Wall(self.0.saturating_add(span.as_nanos() / 1_000_000))
    }

    /// How long after another date this is; no time if it is before it.
    pub fn since(self, before: Wall) -> Nanos {
        let millis = self.0.saturating_sub(before.0);
        Nanos::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// Seconds since 1970 began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e3
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
