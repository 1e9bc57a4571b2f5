//! A spindle whose speed wanders, as with temperature.

use crate::ledger::{HeadTime, Part};
use crate::profile::NoiseSpec;
use headtime_units::{Nanos, Time};

/// Time of a drive: in this time its platters turn evenly.
///
/// The rate of this time against the host's is `1 - w (1 + sin(2 pi t / period + phase))`. The drive's time is
/// therefore never faster, and its lag only grows. In the drive's time a turn is shorter by the factor `1 - w`, so that
/// the mean speed is the unit's. All other durations in the drive, such as seeks and processing, wander along. At the
/// speeds of real disks this is at most a microsecond in ten milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Option<Wander>);

#[derive(Clone, Copy, Debug)]
struct Wander {
    /// 0 to 1.
    part: f64,
    period: u64,
    /// Phase in radians.
    phase: f64,
}

impl Wander {
    /// Lag of the drive's time behind the host's, in nanoseconds.
    fn lag(&self, host: u64) -> u64 {
        let period = self.period as f64;
        let angle = (host % self.period) as f64 / period * core::f64::consts::TAU + self.phase;
        let swing = libm::cos(self.phase) - libm::cos(angle);
        let lag = self.part * (host as f64 + period / core::f64::consts::TAU * swing);
        libm::floor(lag.max(0.0)) as u64
    }

    fn own(&self, host: u64) -> u64 {
        host - self.lag(host).min(host)
    }

    /// The first host time at which the drive's own time is `wanted` or later.
    fn host(&self, wanted: u64) -> u64 {
        let mut host = wanted;
        for _ in 0..4 {
            host = wanted + self.lag(host);
        }
        while self.own(host) < wanted {
            host += 1;
        }
        while host > 0 && self.own(host - 1) >= wanted {
            host -= 1;
        }
        host
    }
}

impl Clock {
    /// A clock whose speed begins at `part` of its period, 0 to 1.
    pub fn new(spec: &NoiseSpec, part: impl FnOnce() -> f64) -> Clock {
        Clock((spec.wander_ppm > 0).then(|| Wander {
            part: f64::from(spec.wander_ppm) / 1e6,
            period: spec.wander_period.as_nanos(),
            phase: core::f64::consts::TAU * part(),
        }))
    }

    /// Duration of a turn by the drive's own time. By the host's time it is `turn` in the mean.
    pub fn turn(&self, turn: Nanos) -> Nanos {
        let Some(wander) = &self.0 else { return turn };
        Nanos::from_nanos(libm::round(turn.as_nanos() as f64 * (1.0 - wander.part)) as u64)
    }

    /// The drive's own time when the host's is `host`.
    #[inline]
    pub fn own(&self, host: Time) -> Time {
        match &self.0 {
            None => host,
            Some(wander) => Time::from_nanos(wander.own(host.as_nanos())),
        }
    }

    /// The first host time at which the drive's own time is `own` or later.
    #[inline]
    pub fn host(&self, own: Time) -> Time {
        match &self.0 {
            None => own,
            Some(wander) => Time::from_nanos(wander.host(own.as_nanos())),
        }
    }

    /// The head time by the host's clock. The lag of the drive's time is counted as idle.
    pub fn head_time(&self, host: Time, mut own: HeadTime) -> HeadTime {
        if let Some(wander) = &self.0 {
            let lag = Nanos::from_nanos(wander.lag(host.as_nanos()));
            own.add(&HeadTime::of_part(Part::Idle, lag));
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(ppm: u32, seconds: u64, phase: f64) -> Clock {
        let spec = NoiseSpec {
            wander_ppm: ppm,
            wander_period: Nanos::from_secs(seconds),
            ..NoiseSpec::default()
        };
        Clock::new(&spec, || phase)
    }

    #[test]
    fn a_time_of_the_drive_is_the_first_of_the_host_at_which_it_is_reached() {
        for clock in [
            clock(100, 120, 0.3),
            clock(10_000, 1, 0.9),
            clock(0, 0, 0.0),
        ] {
            let mut last = Time::ZERO;
            for step in 0..20_000_u64 {
                let own = Time::from_nanos(step * 7_919_333);
                let host = clock.host(own);
                assert!(clock.own(host) >= own && host >= own, "{own} {host}");
                assert!(
                    host == Time::ZERO || clock.own(Time::from_nanos(host.as_nanos() - 1)) < own,
                    "{own} {host}"
                );
                assert!(host >= last);
                last = host;
            }
        }
    }

    #[test]
    fn the_speed_is_the_units_in_the_mean_and_goes_as_far_up_as_down() {
        let clock = clock(100, 120, 0.25);
        let turn = clock.turn(Nanos::from_millis(6)).as_nanos();
        let turns = |from: u64, to: u64| {
            let own = |second: u64| {
                clock
                    .own(Time::from_nanos(second * 1_000_000_000))
                    .as_nanos()
            };
            (own(to) - own(from)) as f64 / turn as f64 * 6e-3 / (to - from) as f64
        };
        // The rounding of a turn to nanoseconds leaves two parts in ten million.
        assert!((turns(0, 1_200) - 1.0).abs() < 2e-7);
        // At a quarter of the period the sine is largest: slowest first, fastest after a minute.
        assert!((turns(0, 1) - (1.0 - 100e-6)).abs() < 1e-6);
        assert!((turns(60, 61) - (1.0 + 100e-6)).abs() < 1e-6);
    }
}
