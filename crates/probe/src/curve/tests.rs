use super::*;
use crate::Answer;
use headtime_disk::profile::by_name;
use headtime_sched::Op;
use headtime_units::Time;

/// A disk with constant answers that records all requests.
struct Toy {
    capacity: u64,
    answers: Vec<Nanos>,
    reads: Vec<Extent>,
    pauses: Vec<Nanos>,
    now: Time,
}

impl Toy {
    fn new(capacity: u64, answers: &[u64]) -> Toy {
        Toy {
            capacity,
            answers: answers
                .iter()
                .map(|&micros| Nanos::from_micros(micros))
                .collect(),
            reads: Vec::new(),
            pauses: Vec::new(),
            now: Time::ZERO,
        }
    }
}

impl Probe for Toy {
    fn name(&self) -> String {
        "toy \"1\"".to_owned()
    }

    fn capacity(&self) -> Sectors {
        Sectors::new(self.capacity)
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn depth(&self) -> u16 {
        1
    }

    fn now(&mut self) -> Time {
        self.now
    }

    fn send(&mut self, _tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        assert_eq!(op, Op::Read);
        assert!(!extent.is_empty() && extent.end().get() <= self.capacity);
        self.reads.push(extent);
        Ok(())
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        let sent = self.now;
        let answer = self.answers[self.reads.len() % self.answers.len()];
        self.now += answer;
        let bad = answer == Nanos::from_micros(999);
        Ok(Answer {
            tag: 0,
            sent,
            at: self.now,
            failure: bad.then(|| "bad sector".into()),
        })
    }

    fn pause(&mut self, span: Nanos) {
        self.pauses.push(span);
    }
}

fn small() -> CurveOptions {
    CurveOptions {
        samples: 10,
        ..CurveOptions::default()
    }
}

#[test]
fn pairs_are_as_far_apart_as_they_say() {
    let mut toy = Toy::new(1_000_000_000, &[5_000]);
    let learned = learn(&mut toy, &small()).unwrap();
    assert_eq!(toy.reads.len(), 2 * learned.samples().len());
    for (pair, sample) in toy.reads.chunks(2).zip(learned.samples()) {
        assert_eq!(pair[1].start - pair[0].end(), sample.distance);
        assert_eq!(pair[0].start.get() % 8, 0);
        assert_eq!(pair[1].start.get() % 8, 0);
        assert_eq!((pair[0].len.get(), pair[1].len.get()), (8, 8));
    }
    let positions = || toy.reads.iter().map(|extent| extent.start.get());
    assert!(positions().min().unwrap() < 10_000_000);
    assert!(positions().max().unwrap() > 960_000_000);
    let longest = toy.pauses.iter().max().unwrap();
    assert!((Nanos::from_micros(11_900)..=Nanos::from_millis(12)).contains(longest));
}

#[test]
fn distances_reach_from_one_request_to_nearly_the_disk() {
    let plan = CurvePlan::new(1_000_000_000, 8, 96);
    assert_eq!(plan.bins[0], Bin { low: 0, high: 0 });
    assert_eq!(plan.bins[1], Bin { low: 1, high: 1 });
    assert!(
        plan.bins[1..]
            .windows(2)
            .all(|pair| { pair[0].low <= pair[0].high && pair[0].high + 1 == pair[1].low })
    );
    let last = plan.bins.last().unwrap().high * 8;
    assert!((960_000_000..970_000_000).contains(&last), "{last}");
    assert!((80..=97).contains(&plan.bins.len()));
    let mut random = Random::new(1);
    for &bin in &plan.bins {
        for _ in 0..100 {
            assert!((bin.low..=bin.high).contains(&bin.draw(&mut random)));
        }
    }
}

#[test]
fn disks_of_any_size_will_do() {
    for capacity in [1, 2, 3, 7, 8, 16, 17, 31, 100, 1_000, 100_000] {
        let learned = learn(&mut Toy::new(capacity, &[400]), &small()).unwrap();
        let curve = learned.curve();
        assert_eq!(curve.forward(Sectors::ZERO), Nanos::from_micros(400));
    }
    let error = learn(&mut Toy::new(0, &[400]), &small()).unwrap_err();
    assert!(matches!(error, LearnError::Empty));
}

#[test]
fn what_takes_far_too_long_is_dropped() {
    // One answer in 61 is a recalibration of 100 ms.
    let mut answers = vec![5_000; 61];
    answers[17] = 100_000;
    let learned = learn(&mut Toy::new(1_000_000_000, &answers), &small()).unwrap();
    let long = learned
        .samples()
        .iter()
        .filter(|s| s.time == Nanos::from_millis(100));
    let long = long.count() as u64;
    assert!(long > 5);
    assert_eq!(learned.origin().dropped, long);
    for point in learned.points() {
        assert_eq!(point.mean, Nanos::from_millis(5));
        assert_eq!(point.sd, Nanos::ZERO);
        assert!(point.residual().abs() <= 2);
    }
    assert_eq!(
        learned.samples().len() as u64,
        learned
            .points()
            .iter()
            .map(|p| u64::from(p.samples))
            .sum::<u64>()
            + long
    );
}

#[test]
fn what_cannot_be_learned_is_said() {
    let with = |change: fn(&mut CurveOptions)| {
        let mut options = small();
        change(&mut options);
        learn(&mut Toy::new(1_000_000, &[400]), &options)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(with(|o| o.distances = 7), "distances: allowed is 8 to 1000");
    assert_eq!(with(|o| o.samples = 0), "samples: allowed is 8 to 100000");
    assert_eq!(
        with(|o| o.request = Bytes(0)),
        "request: allowed is 512B to 16MiB"
    );
    assert_eq!(
        with(|o| o.pause_max = Nanos::from_secs(11)),
        "pause_max: allowed is 0s to 10s"
    );
    assert_eq!(
        with(|o| o.backward = Millionths(1)),
        "backward: allowed is 1 to 100"
    );
    let error = learn(&mut Toy::new(1_000_000, &[0]), &small()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a read at a distance of 0 took 0ns; that is no disk, or no clock"
    );
    let error = learn(&mut Toy::new(1_000_000, &[400, 400, 400, 999]), &small()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("a read of sectors ") && text.ends_with(" failed: bad sector"),
        "{text}"
    );
}

#[test]
fn the_text_form_reads_back() {
    let mut probe = Modelled::new(&by_name("wd5000aaks").unwrap(), 1);
    let mut learned = learn(&mut probe, &small()).unwrap();
    let read = Learned::from_toml("a.toml", &learned.to_toml()).unwrap();
    learned.samples.clear();
    assert_eq!(read, learned);
    assert_eq!(read.curve(), learned.curve());

    let options = CurveOptions {
        seed: u64::MAX,
        backward: Millionths(1_234_567),
        pause_max: Nanos::ZERO,
        ..small()
    };
    let mut odd = learn(&mut Toy::new(100_000, &[300, 700]), &options).unwrap();
    odd.samples.clear();
    assert_eq!(Learned::from_toml("", &odd.to_toml()).unwrap(), odd);
}

/// The text of a curve with one change.
fn changed(from: &str, to: &str) -> String {
    let learned = learn(&mut Toy::new(100_000, &[300]), &small()).unwrap();
    let text = learned.to_toml();
    assert!(text.contains(from), "{text}");
    let text = text.replacen(from, to, 1);
    Learned::from_toml("c.toml", &text).unwrap_err().to_string()
}

#[test]
fn errors_say_where_and_what_is_allowed() {
    for (from, to, expected) in [
        (
            "version = 1",
            "version = 2",
            "c.toml:2: version: 2 is out of range; allowed is 1",
        ),
        (
            "version = 1\n",
            "",
            "c.toml:1: version: missing; give the number 1",
        ),
        (
            "samples = 10",
            "samples = 1.5",
            "c.toml:11: provenance.samples: is the number 1.5, but should be a whole number from 8 to \
             100000",
        ),
        (
            "samples = 10",
            "sample = 10",
            "c.toml:11: provenance.sample: unknown key; did you mean `samples`? Allowed here: capacity_sectors, \
             distances, drive, dropped, pause_max, program, request, samples, sector, seed",
        ),
        (
            "backward = \"1.5\"",
            "backward = \"0.5\"",
            "c.toml:18: curve.backward: 0.5 is out of range; allowed is 1 to 100",
        ),
        (
            "    [0, 300.000, ",
            "    [1, 300.000, ",
            "c.toml:22: curve.points_us[0]: the first point must be at distance 0",
        ),
        (
            "    [8, 300.000, ",
            "    [0, 300.000, ",
            "c.toml:23: curve.points_us[1]: its distance must be larger than that of the point before",
        ),
        (
            "    [8, 300.000, ",
            "    [8, 299.000, ",
            "c.toml:23: curve.points_us[1]: its time must not be shorter than that of the point before",
        ),
        (
            "    [8, 300.000, ",
            "    [8, ",
            "c.toml:23: curve.points_us[1]: has 4 values, but should be [distance, curve, mean, \
             deviation, samples], the times in us",
        ),
        (
            "    [8, 300.000, ",
            "    [8, -1, ",
            "c.toml:23: curve.points_us[1][1]: -1 is out of range; allowed is 0 to 60000000",
        ),
        (
            "    [8, 300.000, ",
            "    [8, 0.0001, ",
            "c.toml:23: curve.points_us[1]: its curve and its mean must be above 0",
        ),
        (
            "seed = \"1\"",
            "seed = \"18446744073709551616\"",
            "c.toml:13: provenance.seed: \"18446744073709551616\": number too large to fit in target \
             type",
        ),
    ] {
        assert_eq!(changed(from, to), expected);
    }
    // More distances than a measurement makes are not accepted.
    let rows: String = (1..=1_000)
        .map(|at| format!("    [{at}, 300, 300, 0, 1],\n"))
        .collect();
    let text = changed(
        "points_us = [\n    [0,",
        &format!("points_us = [\n{rows}    [0,"),
    );
    let expected = "c.toml:21: curve.points_us: has 1083 points; allowed is 1 to 1000";
    assert!(text.starts_with(expected), "{text}");
    let text = changed("[curve]", "[curve");
    assert!(text.starts_with("c.toml:16: "), "{text}");
}
