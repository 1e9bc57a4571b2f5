//! Course of a run: bytes that a program should have been served by a time.

use crate::bound::Alpha;
use crate::profile::Profile;
use headtime_units::Nanos;

/// Course of a run that keeps its goal, by the profile. Epochs of the profile without requests of the program are left out.
///
/// The compute time within the other epochs passes as in the profile. The I/O time is stretched by alpha.
///
/// Invariants: bytes and times of `points` ascend.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// Points at the end of each epoch with requests: bytes served since the start, and time of the epochs that count.
    points: Vec<(u64, Nanos)>,
}

impl Course {
    pub fn new(profile: &Profile, alpha: Alpha) -> Course {
        let (mut bytes, mut active, mut io) = (0, Nanos::ZERO, 0.0);
        let mut latest = Nanos::ZERO;
        let points = profile.epochs().map(|epoch| {
            bytes += epoch.bytes;
            active += epoch.active;
            io += epoch.io;
            let compute = (active.as_secs_f64() - io).max(0.0);
            let time = compute + io * alpha.get();
            latest = latest.max(Nanos::from_nanos((time * 1e9).round() as u64));
            (bytes, latest)
        });
        Course {
            points: points.collect(),
        }
    }

    /// Time by which `bytes` should have been served, counted in epochs with requests.
    pub fn time_of(&self, bytes: u64) -> Nanos {
        let next = self.points.partition_point(|(point, _)| *point <= bytes);
        let before = next.checked_sub(1).map(|last| self.points[last]);
        let (from, start) = before.unwrap_or_default();
        let Some((to, end)) = self.points.get(next) else {
            return start;
        };
        let part = (bytes - from) as f64 / (to - from) as f64;
        start + Nanos::from_nanos((part * (*end - start).as_nanos() as f64) as u64)
    }
}

/// Least time that the rest of a run needs, by the profile and with all servers.
///
/// Invariants: bytes of `points` ascend.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    /// Points at the end of each epoch with requests: bytes served since the start, and least compute and I/O times to the
    /// end of the run.
    points: Vec<(u64, [Nanos; 2])>,
}

impl Rest {
    pub fn new(profile: &Profile) -> Rest {
        let share = profile.setting.share.0 as f64 / 1e6;
        let (mut bytes, mut io) = (0, profile.io.as_secs_f64());
        let points = profile.epochs().map(|epoch| {
            bytes += epoch.bytes;
            io -= epoch.io;
            let left = profile.run.saturating_sub(epoch.start + epoch.active);
            let nanos = |seconds: f64| Nanos::from_nanos((seconds * 1e9) as u64);
            let io = io.max(0.0);
            (bytes, [left.saturating_sub(nanos(io)), nanos(io * share)])
        });
        Rest {
            points: points.collect(),
        }
    }

    /// Least compute and I/O times to the end of the run after `bytes` have been served. Counts from the end of the current
    /// epoch.
    pub fn least(&self, bytes: u64) -> [Nanos; 2] {
        let next = self.points.partition_point(|(point, _)| *point <= bytes);
        self.points
            .get(next)
            .map_or([Nanos::ZERO; 2], |(_, left)| *left)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Recorder, Service, Setting};
    use headtime_sched::Op;
    use headtime_units::{Extent, Millionths, Time};

    /// Half a second of reads at 20 MB/s, half a second without, and as much again at 10 MB/s.
    pub(crate) fn profile() -> Profile {
        let setting = Setting {
            site: "test".to_owned(),
            program: "phases".to_owned(),
            share: Millionths::ONE,
            epoch: Setting::EPOCH,
            service: Service::Program,
            servers: 1,
        };
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut recorder = Recorder::new(setting, 500, at(0)).expect("it is allowed");
        for (from, sectors) in [(0, 400), (1000, 200)] {
            for step in 0..50 {
                let start = from + step * 10;
                recorder.request(at(start), 0, Op::Read, Extent::at(start * 40, sectors));
                recorder.busy(at(start), at(start + 10));
            }
        }
        recorder.finish(at(2000)).expect("there are requests")
    }

    #[test]
    fn the_rest_takes_what_is_behind_the_epoch_under_way() {
        let mut profile = profile();
        let rest = |profile: &Profile, bytes| {
            let [compute, io] = Rest::new(profile).least(bytes);
            compute + io
        };
        let ms = Nanos::from_millis;
        assert_eq!(rest(&profile, 0), ms(1900));
        // If a program asks for the bytes behind its pause, the pause is over.
        assert_eq!(rest(&profile, 10_000_000 - 1), ms(1500));
        assert_eq!(rest(&profile, 10_000_000), ms(900));
        assert_eq!(rest(&profile, 15_000_000), Nanos::ZERO);
        // With twice the servers the I/O takes half the time.
        profile.setting.share = Millionths(500_000);
        assert_eq!(rest(&profile, 10_000_000), ms(900) - ms(200));
    }

    #[test]
    fn input_and_output_are_stretched_and_the_compute_time_is_not() {
        let profile = profile();
        let run_time = Nanos::from_secs(4);
        let alpha = Alpha::new(run_time, &profile).expect("it is possible");
        assert!((alpha.get() - 3.0).abs() < 1e-9);
        let course = Course::new(&profile, alpha);
        let ms = |bytes| course.time_of(bytes).as_nanos() / 1_000_000;
        assert_eq!(ms(0), 0);
        assert_eq!(ms(5_000_000), 750);
        assert_eq!(ms(10_000_000), 1500);
        // The half second without requests is left out.
        assert_eq!(ms(11_000_000), 1800);
        assert_eq!(ms(15_000_000), 3000);
        assert_eq!(ms(u64::MAX), 3000, "the program computes until its end");
    }
}
