//! Reading ahead and the write cache, switched while the drive runs.

use crate::common::{any_drive, at_least, command, commands, ms, wait};
use headtime_disk::profile::{WriteBack, by_name};
use headtime_disk::{Completion, Drive, Fault, Hit};
use headtime_sched::Op;
use headtime_units::Time;
use proptest::prelude::*;

/// Serves a command, after a pause in ms.
fn serve(drive: &mut Drive, now: &mut Time, pause: u64, op: Op, start: u64) -> Completion {
    *now += ms(pause);
    drive.submit(*now, command(1, op, start, 8));
    let completion = wait(drive);
    *now = completion.at;
    completion
}

#[test]
fn what_follows_a_read_is_in_the_buffer_only_while_the_drive_reads_ahead() {
    for name in ["wd5000aaks", "cheetah9lp", "exos-x18"] {
        let mut drive = Drive::new(&by_name(name).unwrap(), 0);
        let mut now = Time::ZERO;
        let hit_behind = |drive: &mut Drive, now: &mut Time, place| {
            serve(drive, now, 0, Op::Read, place);
            serve(drive, now, 40, Op::Read, place + 64).hit
        };
        assert_eq!(drive.look_ahead(), Some(true), "{name}");
        assert_eq!(hit_behind(&mut drive, &mut now, 1_000_000), Hit::Full);
        drive.set_look_ahead(now, false);
        assert_eq!(drive.look_ahead(), Some(false));
        assert_eq!(hit_behind(&mut drive, &mut now, 2_000_000), Hit::Miss);
        // Earlier data stay in the buffer, and a hit reads nothing more.
        assert_eq!(
            serve(&mut drive, &mut now, 0, Op::Read, 2_000_000).hit,
            Hit::Full
        );
        drive.set_look_ahead(now, true);
        assert_eq!(hit_behind(&mut drive, &mut now, 3_000_000), Hit::Full);
    }
}

#[test]
fn the_arm_stops_reading_ahead_when_that_is_switched_off() {
    let mut drive = Drive::new(&by_name("wd5000aaks").unwrap(), 0);
    let mut now = Time::ZERO;
    serve(&mut drive, &mut now, 0, Op::Read, 1_000_000);
    drive.set_look_ahead(now, false);
    assert_eq!(
        serve(&mut drive, &mut now, 40, Op::Read, 1_000_064).hit,
        Hit::Miss
    );
}

#[test]
fn dirty_data_are_on_the_medium_before_the_write_cache_is_off() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let mut now = Time::ZERO;
    for place in [10, 400_000_000, 900_000_000] {
        assert_eq!(
            serve(&mut drive, &mut now, 0, Op::Write, place).hit,
            Hit::Buffered
        );
    }
    assert_eq!(drive.dirty_sectors(now).get(), 24);
    let off = drive.set_write_cache(now, false).unwrap();
    assert!(
        off > now + ms(10),
        "three writes far apart took {}",
        off - now
    );
    assert!(drive.is_clean(off));
    assert_eq!(drive.write_cache(), Some(false));
    now = off;
    for place in [20, 500_000_000] {
        serve(&mut drive, &mut now, 0, Op::Write, place);
        assert!(drive.is_clean(now), "a write at {place} went to the medium");
    }
    assert_eq!(drive.set_write_cache(now, true), Some(now), "no wait");
    serve(&mut drive, &mut now, 0, Op::Write, 600_000_000);
    assert!(!drive.is_clean(now));
}

#[test]
fn a_switch_that_a_drive_has_not_is_none() {
    let plain = by_name("hp-c2247a").unwrap();
    let plain = plain
        .with(|spec| {
            spec.cache.write_back = WriteBack::Off;
            spec.cache.read_ahead = headtime_disk::profile::ReadAhead::Off;
            (spec.cache.read_ahead_min, spec.cache.read_ahead_max) = (0, 0);
        })
        .unwrap();
    let drive = Drive::new(&plain, 0);
    assert_eq!((drive.look_ahead(), drive.write_cache()), (None, None));
}

#[test]
fn a_drive_that_loses_the_command_leaves_the_switch() {
    let mut drive = Drive::new(&by_name("wd5000aaks").unwrap(), 0);
    let mut now = Time::ZERO;
    serve(&mut drive, &mut now, 0, Op::Write, 400_000_000);
    drive.inject(now, Fault::LoseNext);
    assert_eq!(drive.set_write_cache(now, false), None);
    assert_eq!(drive.write_cache(), Some(true));
    assert_eq!(drive.in_flight(), 0);
    assert!(
        drive.set_write_cache(now, false).is_some(),
        "the next time it does"
    );
}

proptest! {
    #![proptest_config(at_least(96))]

    #[test]
    fn any_drive_goes_on_behind_any_switch(
        profile in any_drive(),
        asked in commands(),
        turned in prop::collection::vec((0_usize..60, any::<bool>(), any::<bool>()), 1..12),
        seed in any::<u64>(),
    ) {
        let mut drive = Drive::new(&profile, seed);
        let mut now = Time::ZERO;
        for (number, &(op, start, len, fua, pause)) in asked.iter().enumerate() {
            for &(_, write_cache, on) in turned.iter().filter(|turn| turn.0 == number) {
                if write_cache && drive.write_cache().is_some() {
                    now = drive.set_write_cache(now, on).expect("no fault");
                    prop_assert!(on || drive.is_clean(now));
                    prop_assert_eq!(drive.write_cache(), Some(on));
                } else if !write_cache && drive.look_ahead().is_some() {
                    drive.set_look_ahead(now, on);
                    prop_assert_eq!(drive.look_ahead(), Some(on));
                }
            }
            now += headtime_units::Nanos::from_nanos(pause);
            let op = match op {
                0 => Op::Flush,
                1 => Op::Discard,
                2..=10 => Op::Read,
                _ => Op::Write,
            };
            let mut command = command(1, op, start, len);
            command.fua = fua && op == Op::Write;
            drive.submit(now, command);
            let completion = wait(&mut drive);
            now = completion.at;
            if drive.write_cache() == Some(false) {
                prop_assert!(drive.is_clean(now), "{:?} left dirty data", command);
            }
        }
    }
}
