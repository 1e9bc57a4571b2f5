//! Waits of roles for each other: divides the response time of each role among the roles that the disk served
//! meanwhile.

use crate::execute::Sample;
use serde::Serialize;

/// Mean response time of a role's requests, divided by who had the disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waits {
    /// Requests.
    pub requests: usize,
    /// Mean time in ms in which the disk served each role, in the order of the roles. The own role's entry has its own requests, and each
    /// request's own service.
    pub served_ms: Vec<f64>,
    /// Mean time in ms in which the disk was idle, or a scheduler or gate held requests back.
    pub held_ms: f64,
}

/// Disk time of one role: disjoint intervals, ascending.
#[derive(Default)]
struct Busy {
    /// Start, end, and total time up to the end, in seconds.
    intervals: Vec<(f64, f64, f64)>,
}

impl Busy {
    fn add(&mut self, from: f64, to: f64) {
        let before = self.intervals.last().map_or(0.0, |(_, _, total)| *total);
        self.intervals.push((from, to, before + to - from));
    }

    /// Time of the role from the start of the run to `at`.
    fn until(&self, at: f64) -> f64 {
        let next = self.intervals.partition_point(|(from, ..)| *from < at);
        match next.checked_sub(1).map(|last| self.intervals[last]) {
            None => 0.0,
            Some((_, to, total)) => total - (to - at).max(0.0),
        }
    }
}

/// Divides response times among `roles` roles. `samples` has each request with the index of its role, in the order of completion. Requests
/// that were done before `from` seconds do not count, but the disk's time for them does.
pub fn waits(samples: &[(usize, Sample)], roles: usize, from: f64) -> Vec<Waits> {
    let mut busy: Vec<Busy> = (0..roles).map(|_| Busy::default()).collect();
    let mut before = 0.0_f64;
    for (role, sample) in samples {
        // The disk works on a request from the completion before, or from the request's dispatch if the disk was idle.
        let start = before.max(sample.issued);
        if sample.done > start {
            busy[*role].add(start, sample.done);
        }
        before = before.max(sample.done);
    }
    (0..roles)
        .map(|role| {
            let own = samples
                .iter()
                .filter(|(of, sample)| *of == role && sample.done >= from);
            let own: Vec<&Sample> = own.map(|(_, sample)| sample).collect();
            let mean = |time: &dyn Fn(&Sample) -> f64| {
                let sum: f64 = own.iter().map(|sample| time(sample)).sum();
                1e3 * sum / own.len().max(1) as f64
            };
            let served = busy
                .iter()
                .map(|busy| mean(&|sample| busy.until(sample.done) - busy.until(sample.arrived)));
            let served_ms: Vec<f64> = served.collect();
            let response = mean(&|sample| sample.done - sample.arrived);
            Waits {
                requests: own.len(),
                held_ms: (response - served_ms.iter().sum::<f64>()).max(0.0),
                served_ms,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::{Op, Origin};
    use headtime_units::Extent;

    fn sample(arrived: f64, issued: f64, done: f64) -> Sample {
        Sample {
            origin: Origin::default(),
            op: Op::Read,
            extent: Extent::default(),
            arrived,
            issued,
            done,
        }
    }

    fn near(got: &[f64], wanted: &[f64]) {
        let equal = |(got, wanted): (&f64, &f64)| (got - wanted).abs() < 1e-9;
        assert!(got.iter().zip(wanted).all(equal), "{got:?} {wanted:?}");
    }

    #[test]
    fn a_wait_is_divided_among_the_roles_that_the_disk_served_meanwhile() {
        // Role 1 has the disk from 0 to 0.5 s and from 0.6 to 1 s. Role 0 waits for both, and is served from 1.0 to 1.2 s.
        let samples = [
            (1, sample(0.0, 0.0, 0.5)),
            (1, sample(0.0, 0.6, 1.0)),
            (0, sample(0.2, 1.0, 1.2)),
        ];
        let got = waits(&samples, 2, 0.0);
        near(&got[0].served_ms, &[200.0, 700.0]);
        near(&[got[0].held_ms], &[100.0]);
        assert_eq!(got[0].requests, 1);
        // The first request of role 1 waits for nobody, the second for the first and for 0.1 s of an idle disk.
        near(&got[1].served_ms, &[0.0, (500.0 + 900.0) / 2.0]);
        near(&[got[1].held_ms], &[50.0]);
    }

    #[test]
    fn requests_before_the_warm_up_count_only_as_what_others_waited_for() {
        let samples = [(0, sample(0.0, 0.0, 2.0)), (1, sample(1.0, 1.0, 3.0))];
        let got = waits(&samples, 2, 2.5);
        assert_eq!(got[0].requests, 0);
        near(&got[0].served_ms, &[0.0, 0.0]);
        near(&got[1].served_ms, &[1000.0, 1000.0]);
    }

    #[test]
    fn the_parts_are_the_whole_response() {
        let mut state = 7_u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f64 / f64::from(1 << 24)
        };
        let (mut now, mut samples) = (0.0, Vec::new());
        for _ in 0..500 {
            let arrived = now - draw();
            let issued = (now - 0.5 * draw()).max(arrived);
            now = now.max(issued) + 0.01 * draw();
            samples.push((usize::from(draw() < 0.3), sample(arrived, issued, now)));
        }
        for (role, got) in waits(&samples, 2, 0.0).iter().enumerate() {
            let own: Vec<_> = samples.iter().filter(|(of, _)| *of == role).collect();
            let response: f64 = own.iter().map(|(_, one)| one.done - one.arrived).sum();
            let parts = got.served_ms.iter().sum::<f64>() + got.held_ms;
            assert!((parts - 1e3 * response / own.len() as f64).abs() < 1e-6);
        }
    }
}
