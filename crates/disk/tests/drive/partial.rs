//! Cost of writing a part of a sector of the medium, and its place in the account of the arm's time.

use crate::common::{command, ms, wait};
use headtime_disk::profile::{Destage, NoiseSpec, OverheadSpec, Profile, WriteBack, by_name};
use headtime_disk::{Command, Drive, Part};
use headtime_sched::Op;
use headtime_units::{Nanos, Time};

/// A drive of 4 KiB sectors that take 512 bytes.
fn emulating(write_back: WriteBack) -> Profile {
    let profile = by_name("exos-x18").expect("shipped");
    let changed = profile.with(|spec| {
        spec.noise = NoiseSpec::default();
        spec.cache.write_back = write_back;
        spec.overhead = OverheadSpec {
            per_command: Nanos::from_micros(200),
            ..OverheadSpec::default()
        };
    });
    changed.expect("in range")
}

/// Where the time went of writing `len` sectors from `start` on, until they are on the medium.
fn account(profile: &Profile, start: u64, len: u64) -> (headtime_disk::HeadTime, Nanos) {
    let mut drive = Drive::new(profile, 1);
    let write = Command {
        fua: true,
        ..command(0, Op::Write, start, len)
    };
    drive.submit(Time::ZERO, write);
    let done = wait(&mut drive).at;
    let account = drive.head_time(done);
    assert_eq!(account.total(), done - Time::ZERO);
    (account, drive.turn())
}

#[test]
fn a_partial_sector_costs_a_turn_that_has_its_name() {
    let profile = emulating(WriteBack::Off);
    let (whole, turn) = account(&profile, 80_000, 8);
    assert_eq!(whole.get(Part::ReadModifyWrite), Nanos::ZERO);
    for (start, len) in [
        (80_000, 1),
        (80_003, 2),
        (80_004, 8),
        (80_000, 15),
        (80_007, 250),
    ] {
        let (part, _) = account(&profile, start, len);
        // The arm reads all of the sectors, and comes back to the first.
        let off = part.get(Part::ReadModifyWrite).as_nanos() as f64 - turn.as_nanos() as f64;
        assert!(
            off.abs() < 1e-4 * turn.as_nanos() as f64,
            "{start}+{len}: {part:?}"
        );
        assert!(part.get(Part::Rotation) < turn, "{start}+{len}: {part:?}");
    }
}

/// Reading over more than a track takes longer, and all of this time has the same name in the account.
#[test]
fn partial_sectors_at_the_ends_of_tracks_cost_what_reading_them_does() {
    let profile = emulating(WriteBack::Off);
    let (whole, turn) = account(&profile, 80_000, 20_000);
    let (part, _) = account(&profile, 80_001, 19_998);
    let extra = part.total() - whole.total();
    let named = part.get(Part::ReadModifyWrite);
    assert!(named > turn * 4, "{part:?}");
    // The drive takes data while it reads, which it would otherwise wait for.
    let off = extra.as_nanos() as f64 - named.as_nanos() as f64;
    assert!(off.abs() < 2.0 * turn.as_nanos() as f64, "{extra} {named}");
}

/// Twenty scattered writes of 4 KiB from this sector on, and a flush.
fn written_back(profile: &Profile, start: u64) -> headtime_disk::HeadTime {
    let mut drive = Drive::new(profile, 1);
    let mut now = Time::ZERO;
    for tag in 0..20 {
        let place = start + u64::from(tag) * 40_000_000;
        drive.submit(now, command(tag, Op::Write, place, 8));
        now = wait(&mut drive).at;
    }
    drive.submit(now, command(20, Op::Flush, 0, 0));
    let end = wait(&mut drive).at + ms(100);
    let account = drive.head_time(end);
    assert_eq!(account.total(), end - Time::ZERO);
    account
}

/// A write-back of partial sectors has the same cost, apart from the destaging of the data themselves.
#[test]
fn partial_sectors_that_are_written_back_have_their_cost_apart() {
    let profile = emulating(WriteBack::Full);
    let profile = profile.with(|spec| spec.cache.destage = Destage::Segment);
    let profile = profile.expect("in range");
    let (whole, part) = (
        written_back(&profile, 80_000),
        written_back(&profile, 80_004),
    );
    assert_eq!(whole.get(Part::ReadModifyWrite), Nanos::ZERO);
    assert!(whole.get(Part::Destage) > Nanos::ZERO);
    let turns =
        part.get(Part::ReadModifyWrite).as_secs_f64() / profile.rotation.turn().as_secs_f64();
    assert!((turns - 20.0).abs() < 0.1, "{turns} turns for 20 writes");
}

/// A drive that sweeps reads the missing parts of all sectors on one sweep, and writes on another.
#[test]
fn partial_sectors_that_are_swept_have_the_cost_of_reading_them_apart() {
    let profile = emulating(WriteBack::Full);
    assert_eq!(profile.cache.destage, Destage::Sweep);
    let (whole, part) = (
        written_back(&profile, 80_000),
        written_back(&profile, 80_004),
    );
    assert_eq!(whole.get(Part::ReadModifyWrite), Nanos::ZERO);
    let named = part.get(Part::ReadModifyWrite).as_secs_f64();
    let all = named + part.get(Part::Destage).as_secs_f64();
    let extra = all - whole.get(Part::Destage).as_secs_f64();
    let turn = profile.rotation.turn().as_secs_f64();
    assert!(named > turn, "{part:?}");
    // Reading passes over sectors, too, and the ways of writing differ a little.
    let share = named / extra;
    assert!((0.95..1.05).contains(&share), "{named} of {extra}");
}
