//! Properties of gap reads that hold for all clients, requests and drives.

use super::{Timeline, config, simulate, ten};
use headtime_disk::profile::{self, Profile, WriteBack};
use headtime_gaps::{FreeblockOptions, Hits, Idle};
use headtime_sched::Flags;
use headtime_sim::Setup;
use headtime_testkit::cases;
use headtime_units::{Extent, Lba, Nanos, Sectors};
use headtime_workload::{Pacing, TimeDistribution};
use proptest::prelude::*;
use proptest::sample::select;

/// A shipped drive whose seeks and overheads vary.
fn noisy(name: &str, write_back: bool) -> Profile {
    let shipped = profile::by_name(name).expect("shipped");
    let changed = shipped.with(|spec| {
        spec.noise.seek_sd = Nanos::from_micros(20);
        spec.noise.overhead_sd = Nanos::from_micros(30);
        spec.queue.depth = spec.queue.depth.max(2);
        if !write_back {
            spec.cache.write_back = WriteBack::Off;
        }
    });
    changed.expect("it can be")
}

/// Mean time of flushes, and time at which the last request ended.
fn of_flushes(timeline: &Timeline) -> [f64; 2] {
    let flushes: Vec<Nanos> = timeline
        .iter()
        .filter(|went| went.flushes)
        .map(|went| went.ended - went.came)
        .collect();
    assert!(flushes.len() > 50);
    let sum: f64 = flushes.iter().map(|took| took.as_millis_f64()).sum();
    let ended = timeline.last().expect("some").ended.as_nanos() as f64;
    [sum / flushes.len() as f64, ended]
}

/// [`simulate`] asserts that no gap read is made while a flush waits. Here earlier gap reads must not delay a flush,
/// either.
#[test]
fn a_flush_does_not_wait_for_what_is_read_in_gaps() {
    let all = [
        ("atlas10k", "noop", false, 1.005, 5),
        // A flush waits for the request that the scheduler delays longest, and this request differs each time.
        ("atlas10k", "sptf-sw60", false, 1.04, 20),
        ("exos-x18", "sptf-sw60", false, 1.04, 20),
        // Red at 1.018: the drive writes back in another order beside a scan, so that all requests take 1.4 % longer.
        ("exos-x18", "deadline", true, 1.015, 40),
    ];
    for (drive, scheduler, write_back, most, seeds) in cases(1, all) {
        let drive = match drive {
            "atlas10k" => super::noisy(),
            other => noisy(other, write_back),
        };
        let (mut alone, mut beside, mut before) = ([0.0; 2], [0.0; 2], 0);
        for seed in 1..=seeds {
            let mut sync = ten(seed, 8_000, 5_000);
            // Two that think, so that none waits for most of the time.
            for one in &mut sync.processes[..2] {
                (one.read_share, one.write_flags) = (0.0, Flags::PREFLUSH);
                let think = TimeDistribution::Exponential(Nanos::from_millis(100));
                one.pacing = Pacing::Closed {
                    think,
                    outstanding: 1,
                };
            }
            let options = FreeblockOptions {
                block: Sectors::new(16),
                ..FreeblockOptions::default()
            };
            let near = Extent::at(0, 20_000_000.min(drive.geometry.capacity.get()));
            let (without, _) = simulate(&drive, scheduler, &sync, None, |_| {});
            let scan = Some((near, options));
            let (with, read) = simulate(&drive, scheduler, &sync, scan, |_| {});
            for (sums, timeline) in [(&mut alone, &without), (&mut beside, &with)] {
                let of = of_flushes(timeline);
                (sums[0], sums[1]) = (sums[0] + of[0], sums[1] + of[1]);
            }
            before += read.lock().stats.before;
        }
        let ratios = [beside[0] / alone[0], beside[1] / alone[1]];
        let text = format!("{scheduler}, {write_back}: {ratios:?}, {before}");
        assert!(ratios[0] < most && ratios[1] < most.min(1.015), "{text}");
        assert!(before > 5_000, "{text}");
    }
}

/// Drives, the largest last: a scan of its 18 TB takes a gigabyte.
fn drives() -> Vec<&'static str> {
    cases(3, ["atlas10k", "cheetah9lp", "wd5000aaks", "exos-x18"]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(64), ..ProptestConfig::default() })]

    #[test]
    fn with_endless_conservatism_nobody_sees_a_difference(
        seed in any::<u64>(),
        drive in select(drives()),
        scheduler in select(vec!["sptf", "sptf-sw60", "sstf", "clook", "deadline", "noop", "cfq", "bfq"]),
        (depth, ahead) in (1..=2_u32, any::<bool>()),
        (reads, in_order) in (0.0..=1.0, prop_oneof![Just(0.0), 0.0..=1.0]),
        think_ms in prop_oneof![Just(0), 1..40_u64],
        (flushes, write_back, hits) in (any::<bool>(), any::<bool>(), select(vec![Hits::Ignored, Hits::Spared, Hits::Guarded])),
    ) {
        let drive = noisy(drive, write_back);
        let mut workload = ten(seed, 100, 5_000);
        for (number, one) in workload.processes.iter_mut().enumerate() {
            (one.read_share, one.sequential_share) = (reads, in_order);
            if flushes && number < 2 {
                one.write_flags = Flags::PREFLUSH;
            }
            one.pacing = Pacing::Closed {
                think: TimeDistribution::Constant(Nanos::from_millis(think_ms)),
                outstanding: 1,
            };
        }
        let change = |setup: &mut Setup<'_>| {
            setup.stations[0].engine = config();
            let engine = &mut setup.stations[0].engine;
            (engine.depth, engine.commit_ahead) = (depth, ahead);
        };
        let endless = FreeblockOptions {
            conservatism: Nanos::from_secs(1),
            hits,
            ..FreeblockOptions::default()
        };
        let whole = Extent::new(Lba::ZERO, drive.geometry.capacity);
        let (alone, _) = simulate(&drive, scheduler, &workload, None, change);
        let (beside, read) = simulate(&drive, scheduler, &workload, Some((whole, endless)), change);
        prop_assert!(!alone.is_empty());
        prop_assert_eq!(alone, beside);
        prop_assert_eq!(read.lock().stats.blocks, 0);
    }

    /// [`simulate`] makes the assertion.
    #[test]
    fn nothing_is_read_while_a_flush_waits(
        seed in any::<u64>(),
        drive in select(drives()),
        scheduler in select(vec!["sptf", "sptf-sw60", "sstf", "deadline", "noop", "cfq", "bfq"]),
        (depth, ahead) in (1..=2_u32, any::<bool>()),
        (flushing, reads) in (1..=5_usize, 0.0..=1.0),
        (think_ms, idle, write_back) in (1..40_u64, any::<bool>(), any::<bool>()),
    ) {
        let drive = noisy(drive, write_back);
        let mut workload = ten(seed, 600, 5_000);
        for (number, one) in workload.processes.iter_mut().enumerate() {
            one.read_share = reads;
            if number < flushing {
                (one.read_share, one.write_flags) = (0.3, Flags::PREFLUSH);
            }
            one.pacing = Pacing::Closed {
                think: TimeDistribution::Exponential(Nanos::from_millis(think_ms * if number < flushing { 10 } else { 1 })),
                outstanding: 1,
            };
        }
        let change = |setup: &mut Setup<'_>| {
            setup.stations[0].engine = config();
            let engine = &mut setup.stations[0].engine;
            (engine.depth, engine.commit_ahead) = (depth, ahead);
        };
        let options = FreeblockOptions {
            block: Sectors::new(16),
            idle: idle.then_some(Idle { after: Nanos::from_millis(1), piece: Sectors::new(512) }),
            ..FreeblockOptions::default()
        };
        let near = Extent::at(0, drive.geometry.capacity.get().min(20_000_000));
        let (timeline, _) = simulate(&drive, scheduler, &workload, Some((near, options)), change);
        prop_assert_eq!(timeline.len(), 600);
        prop_assert!(timeline.iter().any(|went| went.flushes));
    }
}
