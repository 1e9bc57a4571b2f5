//! Firmware that takes two reads on a track for the beginning of a sequence.

use crate::common::{command, wait};
use headtime_disk::profile::{
    FirmwarePolicy, NoiseSpec, OverheadSpec, Preseek, ReadAhead, WriteBack, by_name,
};
use headtime_disk::{Drive, Hit, Profile};
use headtime_sched::Op;
use headtime_units::{Lba, Nanos, Time};

/// A drive with its arm and its read-ahead alone. Its layout is cylinder-first, without zero-latency reads.
fn drive(second: u32) -> Profile {
    let profile = by_name("cheetah9lp").unwrap().with(|spec| {
        spec.overhead = OverheadSpec::default();
        spec.bus.interface_sector = Nanos::ZERO;
        spec.cache.read_ahead = ReadAhead::SegmentFull;
        spec.cache.write_back = WriteBack::Off;
        spec.cache.second_read_ahead_min = second;
        spec.noise = NoiseSpec::default();
        spec.queue.depth = 8;
        spec.queue.preseek = Preseek::AtMediaEnd;
        spec.queue.policy = FirmwarePolicy::Fifo;
    });
    profile.unwrap()
}

/// Commands before the last read: operation and sector. Sector 0 is the first address of a track with 254 sectors.
type Before = &'static [(Op, u64)];

const PLACES: u64 = 200;

/// Number of turns by which reads elsewhere complete later than without the key, summed over [`PLACES`] places.
fn turns_lost(second: u32, before: Before) -> u64 {
    let mut lost = 0;
    for place in 0..PLACES {
        let at = |second| {
            let mut drive = Drive::new(&drive(second), 0);
            // Tracks of the outermost zone, in some order, and a read somewhere else.
            let track = drive.layout().track_extent_of(Lba::new(place * 9_973));
            assert!(track.len.get() > 250, "{track}");
            let tags = 0..before.len() as u32;
            for (tag, &(op, sector)) in tags.zip(before) {
                let start = track.start.get() + sector;
                drive.submit(Time::ZERO, command(tag, op, start, 8));
            }
            let elsewhere = 4_000_000 + place * 60_013;
            drive.submit(Time::ZERO, command(99, Op::Read, elsewhere, 8));
            loop {
                let completion = wait(&mut drive);
                if completion.tag == 99 {
                    assert_eq!(completion.hit, Hit::Miss);
                    return (completion.at, drive.turn());
                }
            }
        };
        let ((with, turn), (without, _)) = (at(second), at(0));
        // The sector passes once a turn, at any departure of the arm.
        let later = with - without;
        let turns = (later.as_nanos() + 1_000) / turn.as_nanos();
        let off = later.as_nanos().abs_diff(turns * turn.as_nanos());
        assert!(off < 1_000, "{later} later");
        lost += turns;
    }
    lost
}

const TWICE: Before = &[(Op::Read, 0), (Op::Read, 40)];

/// After the second read 206 of 254 sectors are left, so the next read loses a turn in four of five places.
#[test]
fn a_second_read_on_a_track_costs_the_next_read_a_turn_as_often_as_the_rest_of_the_track_is_long() {
    let lost = turns_lost(65_535, TWICE);
    assert!((140..=185).contains(&lost), "{lost} of {PLACES}");
}

#[test]
fn with_few_sectors_to_read_on_few_turns_are_lost_and_with_none_no_turn() {
    let lost = [0, 25, 127].map(|second| turns_lost(second, TWICE));
    assert_eq!(lost[0], 0);
    // Losses of about a tenth and a half.
    assert!((8..=34).contains(&lost[1]), "{lost:?}");
    assert!((75..=125).contains(&lost[2]), "{lost:?}");
}

#[test]
fn nothing_is_lost_unless_two_reads_in_a_row_are_on_one_track() {
    for before in [
        &[(Op::Read, 40)][..],
        &[(Op::Write, 0), (Op::Read, 40)],
        &[(Op::Read, 0), (Op::Write, 40)],
        // The next track.
        &[(Op::Read, 0), (Op::Read, 300)],
        // Elsewhere in between.
        &[(Op::Read, 0), (Op::Read, 3_000_000), (Op::Read, 40)],
    ] {
        assert_eq!(turns_lost(65_535, before), 0, "{before:?}");
    }
    // A write in between is no read.
    let before = &[(Op::Read, 0), (Op::Write, 300), (Op::Read, 40)];
    assert!(turns_lost(65_535, before) > 100);
}

/// Sectors up to the end of the track are in the buffer.
#[test]
fn the_rest_of_the_track_is_in_the_buffer_and_no_more() {
    let mut drive = Drive::new(&drive(65_535), 0);
    for (tag, start) in [(0, 0), (1, 40), (2, 9_000_000)] {
        drive.submit(Time::ZERO, command(tag, Op::Read, start, 8));
    }
    let ends = [0, 1, 2].map(|_| wait(&mut drive).at);
    let hit = |drive: &mut Drive, start| {
        drive.submit(ends[2], command(7, Op::Read, start, 8));
        wait(drive).hit
    };
    assert_eq!(hit(&mut drive.clone(), 246), Hit::Full);
    assert_eq!(hit(&mut drive, 260), Hit::Miss);
}
