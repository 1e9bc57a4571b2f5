//! What holds whoever asks, for what, and of which drive.

use super::{config, simulate, ten};
use headtime_disk::profile::{self, Profile, WriteBack};
use headtime_engine::{FreeblockOptions, Hits};
use headtime_sched::Flags;
use headtime_sim::Setup;
use headtime_units::{Extent, Lba, Nanos};
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn with_endless_conservatism_nobody_sees_a_difference(
        seed in any::<u64>(),
        drive in select(vec!["atlas10k", "cheetah9lp", "wd5000aaks", "exos-x18"]),
        scheduler in select(vec!["sptf", "sptf-sw60", "sstf", "clook", "deadline", "noop", "cfq"]),
        (depth, ahead) in (1..=2_u32, any::<bool>()),
        (reads, in_order) in (0.0..=1.0, prop_oneof![Just(0.0), 0.0..=1.0]),
        think_ms in prop_oneof![Just(0), 1..40_u64],
        (flushes, write_back, hits) in (any::<bool>(), any::<bool>(), select(vec![Hits::Ignored, Hits::Spared, Hits::Guarded])),
    ) {
        let drive = noisy(drive, write_back);
        let mut workload = ten(seed, 500, 5_000);
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
        prop_assert_eq!(read.borrow().stats.blocks, 0);
    }
}
