//! Learned curves against the drives that they were learned from.

use headtime_disk::profile::{by_name, shipped};
use headtime_disk::{Layout, Mechanics, Profile};
use headtime_probe::{CurveOptions, Modelled, Probe, curve_of, learn};
use headtime_sched::{Op, ServiceCurve};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// Random numbers that are independent of the learner's.
struct Dice(Pcg64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(Pcg64::seed_from_u64(seed ^ 0xd1ce))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// Evenly in the logarithm.
    fn log(&mut self, low: f64, high: f64) -> f64 {
        let part = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        low * (high / low).powf(part)
    }
}

/// The drive's own mean service time of 4 KiB at exactly this distance.
fn service(probe: &mut Modelled, dice: &mut Dice, distance: u64, count: u32) -> f64 {
    let capacity = probe.capacity().get();
    let mut sum = 0.0;
    for _ in 0..count {
        let first = dice.below(capacity - distance - 16);
        probe.read(Extent::at(first, 8)).unwrap();
        probe.pause(Nanos::from_nanos(dice.below(12_000_000)));
        let time = probe.read(Extent::at(first + 8 + distance, 8)).unwrap();
        sum += time.as_millis_f64();
    }
    sum / f64::from(count)
}

/// Errors of a curve at random distances, as shares in ascending order.
fn errors(profile: &Profile, curve: &ServiceCurve, seed: u64) -> Vec<f64> {
    let mut probe = Modelled::new(profile, seed);
    let mut dice = Dice::new(seed);
    let capacity = probe.capacity().get() as f64;
    let mut errors: Vec<f64> = (0..60)
        .map(|_| {
            let distance = dice.log(8.0, capacity * 0.95) as u64;
            let truth = service(&mut probe, &mut dice, distance, 500);
            let said = curve.forward(Sectors::new(distance)).as_millis_f64();
            (said / truth - 1.0).abs()
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    errors
}

#[test]
fn curves_agree_with_their_drives() {
    for shipped in shipped() {
        let profile = shipped.profile();
        let errors = errors(&profile, &curve_of(&profile, 1), 2);
        let (median, most) = (errors[30], errors[54]);
        println!(
            "{}: median error {:.1} %, 90 % within {:.1} %, largest {:.1} %",
            profile.name,
            100.0 * median,
            100.0 * most,
            100.0 * errors[59]
        );
        assert!(median < 0.05, "{}: median {median}", profile.name);
        assert!(most < 0.25, "{}: 90 % {most}", profile.name);
    }
}

#[test]
fn far_requests_take_what_the_mechanics_say() {
    // Not by reading: seek, half a turn, transfer and overhead, over random places.
    let profile = by_name("wd5000aaks").unwrap();
    let curve = curve_of(&profile, 1);
    let (layout, mechanics) = (Layout::new(&profile), Mechanics::new(&profile));
    let mut dice = Dice::new(5);
    for distance in [10_000_000_u64, 100_000_000, 500_000_000] {
        let mut sum = 0.0;
        for _ in 0..4_000 {
            let first = dice.below(layout.capacity().get() - distance - 16);
            let extent = Extent::at(first + 8 + distance, 8);
            let at = Time::from_nanos(dice.below(1_000_000_000_000));
            let from = layout.run(Lba::new(first)).track;
            let access = mechanics.access(&layout, from, at, extent, Op::Read, true);
            sum += access.total().as_millis_f64();
        }
        let overhead = profile.overhead.per_command.as_millis_f64();
        let truth = sum / 4_000.0 + overhead;
        let said = curve.forward(Sectors::new(distance)).as_millis_f64();
        assert!(
            (said / truth - 1.0).abs() < 0.03,
            "{distance}: {said} ms, {truth} ms by the mechanics"
        );
    }
}

#[test]
fn curves_are_repeatable_and_rise() {
    for shipped in shipped() {
        let profile = shipped.profile();
        let curve = curve_of(&profile, 7);
        assert_eq!(curve, curve_of(&profile, 7), "{}", profile.name);
        assert_ne!(curve, curve_of(&profile, 8), "{}", profile.name);
        assert!(curve.points().is_sorted_by_key(|&(_, time)| time));
        assert_eq!(curve.backward(), ServiceCurve::BACKWARD);
    }
}

#[test]
fn a_near_request_costs_less_than_any_far_one() {
    // Schedulers that wait depend on this difference.
    for shipped in shipped() {
        let profile = shipped.profile();
        let curve = curve_of(&profile, 1);
        let near = curve.forward(Sectors::ZERO);
        let far = curve.forward(profile.geometry.capacity);
        assert!(near * 3 < far, "{}: {near} and {far}", profile.name);
    }
}

#[test]
fn pauses_decide_how_far_reading_ahead_helps() {
    let profile = by_name("wd5000aaks")
        .unwrap()
        .with(|spec| {
            spec.cache.segments = 16;
            spec.cache.segment_sectors = 2_000;
            spec.cache.read_ahead_min = 0;
            spec.cache.read_ahead_max = 2_000;
        })
        .unwrap();
    let with = |pause_max| {
        let options = CurveOptions {
            pause_max,
            ..CurveOptions::default()
        };
        let learned = learn(&mut Modelled::new(&profile, 1), &options).unwrap();
        learned.curve()
    };
    let (never, long) = (with(Nanos::ZERO), with(Nanos::from_millis(100)));
    // Half of a segment of 2000 sectors.
    let near = Sectors::new(1_000);
    assert!(never.forward(near) > long.forward(near) * 5);
    // Far away it makes no difference.
    let far = Sectors::new(100_000_000);
    let (one, other) = (
        never.forward(far).as_millis_f64(),
        long.forward(far).as_millis_f64(),
    );
    assert!((one / other - 1.0).abs() < 0.05, "{one} {other}");
}
