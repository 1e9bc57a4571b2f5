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
    /// Returns a clock that shows zero now.
    pub fn start() -> Clock {
        Clock { epoch: monotonic() }
    }

    /// Returns the time since the clock was made.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.epoch)
    }

    /// Returns `time` on the machine's monotonic clock.
    pub fn absolute(&self, time: Time) -> Timespec {
        timespec(Nanos::from_nanos(
            self.epoch.saturating_add(time.as_nanos()),
        ))
    }
}

/// A date: milliseconds since 1970 began, by the wall clock. The wall clock may be set, also back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall(pub u64);

impl Wall {
    /// Reads the wall clock.
    pub fn now() -> Wall {
        let now = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Wall(seconds.saturating_mul(1_000) + now.tv_nsec as u64 / 1_000_000)
    }

    /// Returns the date that is later by `span`.
    pub fn after(self, span: Nanos) -> Wall {
        Wall(self.0.saturating_add(span.as_nanos() / 1_000_000))
    }

    /// Returns the time since another date; zero if the other date is later.
    pub fn since(self, before: Wall) -> Nanos {
        let millis = self.0.saturating_sub(before.0);
        Nanos::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// Returns the seconds since 1970 began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

/// Returns the time from now until the wall clock next shows `hour` and `minute`, in the machine's time zone. The time is more than zero,
/// and mostly at most a day.
#[allow(unsafe_code, reason = "the C library knows the time zone")]
pub fn until(hour: u8, minute: u8) -> Nanos {
    let now = Wall::now();
    let seconds = (now.0 / 1_000) as libc::time_t;
    // SAFETY: both calls get valid pointers, and `localtime_r` writes all that `mktime` reads. A zeroed `tm` is valid.
    let then = unsafe {
        let mut day: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&raw const seconds, &raw mut day).is_null() {
            return Nanos::from_secs(86_400);
        }
        (day.tm_hour, day.tm_min, day.tm_sec) = (hour.into(), minute.into(), 0);
        // `mktime` derives from the date whether summer time holds.
        day.tm_isdst = -1;
        let today = libc::mktime(&raw mut day);
        if today > seconds {
            today
        } else {
            day.tm_mday += 1;
            (day.tm_hour, day.tm_min, day.tm_isdst) = (hour.into(), minute.into(), -1);
            libc::mktime(&raw mut day)
        }
    };
    Wall(then.max(0) as u64 * 1_000).since(now)
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns a duration in the kernel's form.
pub fn timespec(span: Nanos) -> Timespec {
    Timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_within_the_next_day() {
        let day = Nanos::from_secs(86_400);
        let spans: Vec<Nanos> = (0..24).map(|hour| until(hour, 30)).collect();
        // Where summer time begins or ends, a day has an hour more or less.
        let hour = Nanos::from_secs(3_600);
        assert!(
            spans
                .iter()
                .all(|span| !span.is_zero() && *span <= day + hour)
        );
        let next = spans.iter().min().expect("there are hours");
        assert!(*next <= hour * 2, "{next}");
        assert!(*spans.iter().max().expect("there are hours") > hour * 21);
    }
}
