//! Course of a run: bytes that a program should have been served by a time.

use crate::bound::Alpha;
use crate::profile::Profile;
use headtime_units::Nanos;

/// Course of a run that keeps its goal, by the profile.
///
/// The compute time passes as in the profile, and the I/O time is stretched by alpha.
///
/// Invariants: bytes and times of `points` ascend.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// At the end of each epoch with requests: bytes served since the start, and time since the start.
    points: Vec<(u64, Nanos)>,
}

impl Course {
    pub fn new(profile: &Profile, alpha: Alpha) -> Course {
        let epochs = || profile.rows.chunk_by(|a, b| a.epoch == b.epoch);
        let busy = |rows: &[crate::Row]| rows.iter().map(|row| row.busy).max().unwrap_or_default();
        let all: Nanos = epochs().map(busy).sum();
        // Service times at disks are shares of the I/O time only.
        let scale = profile.io.as_secs_f64() / all.as_secs_f64().max(1e-9);
        let (mut bytes, mut io) = (0, 0.0);
        let points = epochs().map(|rows| {
            bytes += rows.iter().map(|row| row.sums.bytes).sum::<u64>();
            io += busy(rows).as_secs_f64() * scale;
            let end = profile.setting.epoch * (rows[0].epoch + 1);
            let compute = (end.min(profile.run).as_secs_f64() - io).max(0.0);
            let time = compute + io * alpha.get();
            (bytes, Nanos::from_nanos((time * 1e9).round() as u64))
        });
        let mut latest = Nanos::ZERO;
        let ascending = points.map(|(bytes, time)| {
            latest = latest.max(time);
            (bytes, latest)
        });
        Course {
            points: ascending.collect(),
        }
    }

    /// Time since the start by which this number of bytes should have been served.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Recorder, Service, Setting};
    use headtime_sched::Op;
    use headtime_units::{Extent, Millionths, Time};

    /// Half a second of reads at 20 MB/s, half a second without, and as much again at 10 MB/s.
    fn profile() -> Profile {
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
        // The first epoch behind the pause ends at 1.1 s: 0.6 s of I/O, and 0.5 s of computing.
        assert_eq!(ms(11_000_000), 2300);
        assert_eq!(ms(15_000_000), 3500);
        assert_eq!(ms(u64::MAX), 3500, "the program computes until its end");
    }
}
