//! Behaviour of all drives, with any buffer, bus and queue.

use crate::common::{command, ms, wait};
use headtime_disk::profile::{
    CacheSpec, FirmwarePolicy, NoiseSpec, OverheadSpec, Preseek, ReadAhead, WriteBack, by_name,
};
use headtime_disk::{Command, Completion, Drive, Fault, Hit, Part, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};

/// Submits one command and waits for it.
fn run(drive: &mut Drive, now: Time, command: Command) -> Completion {
    drive.submit(now, command);
    wait(drive)
}

/// No processing, no bus, no reading ahead: only the arm.
fn bare(name: &str) -> Profile {
    by_name(name)
        .unwrap()
        .with(|spec| {
            spec.overhead = OverheadSpec::default();
            spec.bus.interface_sector = Nanos::ZERO;
            spec.bus.read_sector = Nanos::ZERO;
            spec.bus.write_sector = Nanos::ZERO;
            spec.cache.read_ahead = ReadAhead::Off;
            spec.cache.read_ahead_max = 0;
            spec.cache.write_back = WriteBack::Off;
            spec.noise = NoiseSpec::default();
            spec.queue.depth = 32;
            spec.queue.preseek = Preseek::AtMediaEnd;
            spec.queue.policy = FirmwarePolicy::Fifo;
        })
        .unwrap()
}

/// The bare drive with a firmware that considers positions.
fn by_position(name: &str) -> Profile {
    let sptf = FirmwarePolicy::Sptf {
        margin: Nanos::ZERO,
        age_cap: None,
    };
    bare(name).with(|spec| spec.queue.policy = sptf).unwrap()
}

#[test]
fn a_random_read_is_seek_rotation_transfer() {
    let profile = bare("cheetah9lp");
    let mut drive = Drive::new(&profile, 0);
    let completion = run(&mut drive, Time::ZERO, command(1, Op::Read, 9_000_000, 8));
    let parts = completion.breakdown;
    assert_eq!(completion.hit, Hit::Miss);
    assert_eq!(parts.total(), completion.at - Time::ZERO);
    assert!(parts.seek > ms(5) && parts.rotation < drive.turn());
    assert_eq!(
        parts.overhead + parts.bus + parts.queue + parts.switch,
        Nanos::ZERO
    );
    // 8 of some 217 sectors.
    let transfer = drive.turn().as_nanos() as f64 * 8.0 / 217.0;
    assert!((parts.transfer.as_nanos() as f64 - transfer).abs() < 5_000.0);
}

#[test]
fn sequential_reads_in_a_queue_lose_no_turn() {
    for read_ahead in [ReadAhead::Off, ReadAhead::SegmentFull] {
        let profile = bare("cheetah9lp")
            .with(|spec| {
                spec.cache.read_ahead = read_ahead;
                spec.cache.read_ahead_max = 0;
            })
            .unwrap();
        let mut drive = Drive::new(&profile, 0);
        let mut begin = None;
        let mut end = Time::ZERO;
        for tag in 0..64 {
            drive.submit(end, command(tag, Op::Read, u64::from(tag) * 64, 64));
            if tag >= 8 {
                end = wait(&mut drive).at;
                begin = begin.or(Some(end));
            }
        }
        // 55 reads of a quarter of a track each; a track and its skew take 1.38 turns.
        let turns = (end - begin.unwrap()).as_nanos() as f64 / drive.turn().as_nanos() as f64;
        let expected = 55.0 * 64.0 / 254.0 * 1.38;
        assert!(
            (turns - expected).abs() < 1.0,
            "{turns} turns, {expected} expected"
        );
    }
}

#[test]
fn a_sequential_reader_alone_streams_from_the_buffer() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let mut now = Time::ZERO;
    for tag in 0..1000 {
        now = run(
            &mut drive,
            now,
            command(tag, Op::Read, u64::from(tag) * 256, 256),
        )
        .at;
    }
    let rate = 1000.0 * 256.0 * 512.0 / now.as_secs_f64() / 1e6;
    // It starts at the outer edge, where the drive is known to read 91 to 98 MB/s.
    assert!((80.0..110.0).contains(&rate), "{rate} MB/s");
}

#[test]
fn a_drive_of_one_cylinder_has_no_seeks() {
    for name in ["hp-c2247a", "atlas10k", "wd5000aaks"] {
        let shrink = |spec: &mut headtime_disk::Spec| {
            spec.geometry.cylinders = 1;
            spec.layout.zones.truncate(1);
            let zone = &mut spec.layout.zones[0];
            (zone.first_cylinder, zone.last_cylinder) = (0, 0);
            (zone.spares, zone.reserved) = (0, 0);
            (zone.slips, zone.remaps) = (Vec::new(), Vec::new());
            spec.geometry.capacity = Sectors::new(u64::from(zone.sectors_per_track));
            spec.cache = CacheSpec {
                segment_sectors: zone.sectors_per_track,
                ..CacheSpec::default()
            };
        };
        let profile = by_name(name).unwrap().with(shrink).unwrap();
        let mut drive = Drive::new(&profile, 1);
        let last = drive.capacity().get() - 8;
        let mut now = Time::ZERO;
        for (tag, op) in (0..40).zip([Op::Read, Op::Write].into_iter().cycle()) {
            let start = u64::from(tag) * 7 % last;
            let completion = run(&mut drive, now, command(tag, op, start, 8));
            now = completion.at;
            assert_eq!(completion.result, Ok(()));
            assert!(completion.breakdown.seek < ms(1), "{name}");
        }
    }
}

/// A modern drive that processes each command for this time before its arm moves.
fn thinking(overhead: Nanos) -> Profile {
    by_name("wd5000aaks")
        .unwrap()
        .with(|spec| {
            spec.overhead = OverheadSpec::default();
            spec.overhead.per_command = overhead;
            spec.queue.preseek = Preseek::AtMediaEnd;
            // Reads ahead as long as it can.
            spec.cache.segments = 16;
            spec.cache.segment_sectors = 2_000;
            spec.cache.read_ahead_min = 0;
            spec.cache.read_ahead_max = 2_000;
            // With zero-latency reads the head could end before the last sector of a read.
            spec.access.zero_latency_read = false;
            spec.noise = NoiseSpec::default();
        })
        .unwrap()
}

#[test]
fn the_arm_reads_ahead_while_a_command_is_processed() {
    // Reading ahead once ended when a command came. Processing time was then lost to reading ahead, and readers that
    // take turns without a pause had no hits.
    let ahead = |overhead| {
        let mut drive = Drive::new(&thinking(overhead), 0);
        let first = run(&mut drive, Time::ZERO, command(1, Op::Read, 0, 256)).at;
        let away = run(&mut drive, first, command(2, Op::Read, 500_000_000, 8)).at;
        // Number of sectors after the first read that are in the buffer.
        let hits = |len: &u64| {
            let mut drive = drive.clone();
            run(&mut drive, away, command(3, Op::Read, 256, *len)).hit == Hit::Full
        };
        (1..1_000).take_while(hits).count() as u64
    };
    let turn = Drive::new(&thinking(Nanos::ZERO), 0).turn();
    for micros in [0, 200, 2_000] {
        let overhead = Nanos::from_micros(micros);
        let passes = overhead.as_nanos() * 1750 / turn.as_nanos();
        // A little is read while the last sectors go over the bus.
        let range = passes.saturating_sub(2)..passes + 8;
        let read = ahead(overhead);
        assert!(range.contains(&read), "{overhead}: {read}, not {range:?}");
    }
}

#[test]
fn an_arm_that_has_read_ahead_on_to_the_next_track_is_there() {
    let profile = bare("exos-x18")
        .with(|spec| {
            spec.cache.read_ahead = ReadAhead::SegmentFull;
            spec.cache.read_ahead_max = 4_096;
            spec.cache.read_free_sectors = false;
            spec.access.zero_latency_read = false;
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    let turn = drive.turn();
    let last = drive.layout().track_extent_of(Lba::new(0)).end().get();
    let first = run(&mut drive, Time::ZERO, command(1, Op::Read, last - 20, 8));
    // Half a turn later the head is more than a third of a turn into the next track.
    let now = first.at + turn / 2;
    let front = last + 1_856;
    let again = |op, start| {
        let mut drive = drive.clone();
        drive.submit(now, command(2, op, start, 8));
        wait(&mut drive).at - now
    };
    // There is no time for a seek before the sector comes round.
    let read = again(Op::Read, front + 400);
    assert!(read < turn / 4, "{read}");
    let write = again(Op::Write, front + 400);
    assert!(write < turn / 4, "{write}");
}

#[test]
fn a_sector_that_passes_while_its_command_is_processed_is_read() {
    // 2 ms are 420 sectors. The head does not go back for a sector that it has just read.
    let profile = thinking(ms(2));
    for gap in [0, 1, 100, 400] {
        let mut drive = Drive::new(&profile, 0);
        let first = run(&mut drive, Time::ZERO, command(1, Op::Read, 0, 256)).at;
        let next = run(&mut drive, first, command(2, Op::Read, 256 + gap, 8));
        assert!(next.breakdown.total() < ms(3), "{gap}: {:?}", next);
        assert_eq!(next.breakdown.rotation, Nanos::ZERO, "{gap}");
    }
}

#[test]
fn a_hit_leaves_reading_ahead_alone_if_the_drive_can_do_both() {
    let profile = thinking(Nanos::from_micros(200))
        .with(|spec| spec.cache.sneaky_full_read_hits = true)
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    let one = run(&mut drive, Time::ZERO, command(1, Op::Read, 0, 256)).at + ms(50);
    let other = run(&mut drive, one, command(2, Op::Read, 500_000_000, 256)).at;
    let hit = run(&mut drive, other, command(3, Op::Read, 256, 256));
    assert_eq!(hit.hit, Hit::Full);
    // The arm was over the other place all the time.
    let behind = run(
        &mut drive,
        hit.at + ms(50),
        command(4, Op::Read, 500_000_256, 1_000),
    );
    assert_eq!(behind.hit, Hit::Full);
}

#[test]
fn reads_hit_what_was_read_and_what_was_written() {
    let profile = by_name("atlas10k").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let mut now = Time::ZERO;
    let mut next = |drive: &mut Drive, command| {
        let completion = run(drive, now, command);
        now = completion.at + ms(40);
        completion.hit
    };
    let read = |tag, start, len| command(tag, Op::Read, start, len);
    assert_eq!(next(&mut drive, read(1, 100, 4)), Hit::Miss);
    // Sectors after the read are in the buffer. This drive takes whole tracks, so sectors before it are, too.
    assert_eq!(next(&mut drive, read(2, 104, 16)), Hit::Full);
    assert_eq!(next(&mut drive, read(3, 0, 8)), Hit::Full);
    // A write does not spoil the rest of the track.
    assert_eq!(
        next(&mut drive, command(8, Op::Write, 50, 4)),
        Hit::Buffered
    );
    assert_eq!(next(&mut drive, read(9, 40, 30)), Hit::Full);
    // The last of the track, and on.
    assert_eq!(next(&mut drive, read(4, 330, 16)), Hit::Partial);
    assert_eq!(
        next(&mut drive, command(5, Op::Write, 5_000_000, 8)),
        Hit::Buffered
    );
    assert_eq!(next(&mut drive, read(6, 5_000_002, 4)), Hit::Full);
    assert_eq!(next(&mut drive, read(7, 5_000_002, 8)), Hit::Partial);
}

/// The head lands on sector 46 or so. If reading ahead ends on the track, then the drive has the whole track a turn later.
/// Else the head has left the track, with the sectors that had passed.
#[test]
fn a_head_that_reads_on_behind_a_track_has_not_been_all_around_it() {
    for (read_ahead, front) in [
        (ReadAhead::TrackEnd, Hit::Full),
        (ReadAhead::SegmentFull, Hit::Miss),
    ] {
        for (start, hit) in [(60, Hit::Full), (10, front)] {
            let profile = by_name("atlas10k").unwrap().with(|spec| {
                spec.cache.read_ahead = read_ahead;
                spec.cache.segment_sectors = 1_000;
            });
            let mut drive = Drive::new(&profile.unwrap(), 0);
            let read = run(&mut drive, Time::ZERO, command(1, Op::Read, 100, 4));
            let again = run(&mut drive, read.at + ms(40), command(2, Op::Read, start, 4));
            assert_eq!(again.hit, hit, "{read_ahead:?}, {start}");
        }
    }
}

#[test]
fn a_flush_waits_for_what_is_dirty() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let mut now = Time::ZERO;
    for tag in 0..5 {
        let start = u64::from(tag) * 100_000_000;
        let completion = run(&mut drive, now, command(tag, Op::Write, start, 8));
        assert_eq!(completion.hit, Hit::Buffered);
        assert!(completion.breakdown.total() < ms(1));
        now = completion.at;
    }
    assert!(!drive.is_clean(now));
    assert_eq!(drive.dirty_sectors(now), Sectors::new(5 * 8));
    // Sectors that are written again are dirty once, and a write after them is dirty, too.
    for start in [400_000_000, 400_000_008] {
        now = run(&mut drive, now, command(7, Op::Write, start, 8)).at;
    }
    assert_eq!(drive.dirty_sectors(now), Sectors::new(6 * 8));
    let read = run(&mut drive, now, command(8, Op::Read, 300_000_000, 8));
    assert_eq!(read.hit, Hit::Full, "dirty data serve reads");
    let flushed = run(&mut drive, read.at, command(9, Op::Flush, 0, 0));
    assert!(flushed.breakdown.total() > ms(20), "five seeks");
    assert!(drive.is_clean(flushed.at));
    assert_eq!(drive.dirty_sectors(flushed.at), Sectors::ZERO);
    let again = run(&mut drive, flushed.at, command(10, Op::Flush, 0, 0));
    assert!(again.breakdown.total() < ms(1));
}

#[test]
fn an_idle_drive_destages_what_is_dirty() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let written = run(
        &mut drive,
        Time::ZERO,
        command(1, Op::Write, 700_000_000, 8),
    );
    assert!(!drive.is_clean(written.at + profile.cache.destage_delay / 2));
    let later = written.at + profile.cache.destage_delay + ms(40);
    assert!(drive.is_clean(later));
    assert!(drive.head_time(later).get(Part::Destage) > ms(1));
}

#[test]
fn forced_unit_access_reaches_the_medium() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let forced = |tag, op| Command {
        fua: true,
        ..command(tag, op, 600_000_000, 8)
    };
    let written = run(&mut drive, Time::ZERO, forced(1, Op::Write));
    assert_eq!(written.hit, Hit::Through);
    assert!(written.breakdown.seek > ms(5));
    assert!(drive.is_clean(written.at));
    let read = run(&mut drive, written.at, command(2, Op::Read, 600_000_000, 8));
    assert_eq!(read.hit, Hit::Full);
    let read = run(&mut drive, read.at, forced(3, Op::Read));
    assert_eq!(read.hit, Hit::Miss);
    // Dirty data get there first.
    let dirty = run(&mut drive, read.at, command(4, Op::Write, 600_000_000, 8));
    assert_eq!(dirty.hit, Hit::Buffered);
    let read = run(&mut drive, dirty.at, forced(5, Op::Read));
    assert_eq!(read.hit, Hit::Miss);
    assert!(drive.is_clean(read.at));
}

/// A forced read of clean sectors in a segment with other, dirty sectors. The read once took the segment, and the
/// dirty data were lost.
#[test]
fn a_forced_read_beside_dirty_data_loses_none() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let start = 600_000_000;
    let written = run(&mut drive, Time::ZERO, command(1, Op::Write, start, 8));
    // While the arm writes these sectors, a client writes the next ones.
    let now = written.at + profile.cache.destage_delay + ms(1);
    let behind = run(&mut drive, now, command(2, Op::Write, start + 8, 8));
    assert_eq!(drive.dirty_sectors(behind.at), Sectors::new(16));
    let forced = Command {
        fua: true,
        ..command(3, Op::Read, start, 8)
    };
    let read = run(&mut drive, behind.at, forced);
    assert_eq!(read.hit, Hit::Miss);
    assert_eq!(drive.dirty_sectors(read.at), Sectors::new(8));
    let read = run(&mut drive, read.at, command(4, Op::Read, start + 8, 8));
    assert_eq!(read.hit, Hit::Full);
}

#[test]
fn part_of_a_physical_sector_costs_a_turn() {
    let profile = by_name("exos-x18")
        .unwrap()
        .with(|spec| spec.noise = NoiseSpec::default())
        .unwrap();
    let write = |start: u64, len: u64| {
        let mut drive = Drive::new(&profile, 0);
        let command = Command {
            fua: true,
            ..command(1, Op::Write, start, len)
        };
        (run(&mut drive, Time::ZERO, command).breakdown, drive.turn())
    };
    let (whole, turn) = write(8_000_000, 8);
    let (part, _) = write(8_000_001, 7);
    assert!(whole.rotation < turn);
    // The head comes in earlier for a read, which may or may not save it another turn.
    let more = (part.total().as_nanos() as i64 - whole.total().as_nanos() as i64) as f64;
    let turns = more / turn.as_nanos() as f64;
    assert!(
        (turns - turns.round()).abs() < 0.01 && turns > -0.01,
        "{turns}"
    );
    assert!(part.rotation + part.transfer > turn - ms(1), "{part:?}");
}

#[test]
fn a_full_queue_is_ordered_by_position() {
    let fifo = bare("atlas10k");
    let sptf = fifo
        .with(|spec| {
            spec.queue.policy = FirmwarePolicy::Sptf {
                margin: Nanos::ZERO,
                age_cap: None,
            }
        })
        .unwrap();
    let rate = |profile: &Profile| {
        let mut drive = Drive::new(profile, 0);
        let mut random = 12_345_u64;
        let mut now = Time::ZERO;
        for tag in 0..2000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let start = (random >> 33) % 17_900_000;
            drive.submit(now, command(tag, Op::Read, start, 8));
            if tag >= 31 {
                now = wait(&mut drive).at;
            }
        }
        2000.0 / now.as_secs_f64()
    };
    let (fifo, sptf) = (rate(&fifo), rate(&sptf));
    // One at a time: 5.6 ms of seek and half a turn.
    assert!((105.0..120.0).contains(&fifo), "{fifo}");
    assert!(sptf > 2.0 * fifo, "{sptf} against {fifo}");
}

#[test]
fn old_commands_are_not_passed_over() {
    let profile = bare("atlas10k")
        .with(|spec| {
            spec.queue.policy = FirmwarePolicy::Sptf {
                margin: Nanos::ZERO,
                age_cap: Some(ms(100)),
            }
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    // One far away, and a stream of near ones that never ends.
    let mut tag = 0;
    while tag < 16 {
        drive.submit(
            Time::ZERO,
            command(tag, Op::Read, u64::from(tag * 977 % 9_000), 8),
        );
        tag += 1;
    }
    drive.submit(Time::ZERO, command(u32::MAX - 1, Op::Read, 17_900_000, 8));
    let far = loop {
        let completion = wait(&mut drive);
        if completion.tag == u32::MAX - 1 {
            break completion;
        }
        tag += 1;
        drive.submit(
            completion.at,
            command(tag, Op::Read, u64::from(tag * 977 % 9_000), 8),
        );
    };
    assert!(far.breakdown.queue >= ms(95), "{:?}", far.breakdown);
    assert!(far.breakdown.total() < ms(140), "{:?}", far.breakdown);
}

/// A read whose data come in while it waits is a hit, also when the arm then leaves for others that
/// have been kept waiting longer.
#[test]
fn what_comes_in_before_the_arm_leaves_is_sent_before_it_leaves_again() {
    let profile = bare("exos-x18")
        .with(|spec| {
            spec.cache.read_ahead = ReadAhead::SegmentFull;
            spec.cache.read_ahead_max = 1_000;
            spec.cache.read_free_sectors = false;
            spec.access.zero_latency_read = false;
            spec.queue.stream_cap = ms(20);
            spec.queue.policy = FirmwarePolicy::Sptf {
                margin: Nanos::ZERO,
                age_cap: None,
            };
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    let mut read = |now, tag, start, len| drive.submit(now, command(tag, Op::Read, start, len));
    let stream = |n: u32| 1_000_000 + u64::from(n) * 1_024;
    // A stream keeps four other reads waiting up to the cap. The arm reads through the hole between two of these.
    read(Time::ZERO, 0, stream(0), 1_024);
    for (tag, start, len) in [
        (20, 900_000_000, 8),
        (21, 500_000_000, 256),
        (22, 500_000_320, 256),
    ] {
        read(Time::ZERO, tag, start, len);
    }
    for tag in 1..11 {
        read(Time::ZERO, tag, stream(tag), 1_024);
    }
    read(Time::ZERO, 23, 900_200_000, 8);
    // Two come later: one lies in the hole, one near the last of the four.
    let later = Time::ZERO + ms(15);
    let mut order = Vec::new();
    while let Some(at) = drive.next_event().filter(|&at| at < later) {
        order.extend(drive.poll(at).map(|done| done.tag));
    }
    drive.submit(later, command(24, Op::Read, 500_000_256, 8));
    drive.submit(later, command(25, Op::Read, 900_300_000, 8));
    while order.len() < 17 {
        order.push(wait(&mut drive).tag);
    }
    let four = order.iter().position(|&tag| tag == 20).unwrap();
    assert!(order[..four].iter().all(|&tag| tag < 11), "{order:?}");
    let rest: Vec<u32> = order[four..]
        .iter()
        .copied()
        .filter(|&tag| tag > 11)
        .collect();
    assert_eq!(rest, [20, 21, 22, 23, 24, 25], "{order:?}");
}

#[test]
fn a_read_of_what_another_has_just_read_is_sent_before_the_arm_goes_on() {
    let mut drive = Drive::new(&by_position("exos-x18"), 0);
    // Both begin at the same place; the shorter one came later.
    for (tag, start, len) in [(0, 9_000_000, 8), (1, 1_000_000, 256), (2, 1_000_000, 8)] {
        drive.submit(Time::ZERO, command(tag, Op::Read, start, len));
    }
    drive.submit(Time::ZERO, command(3, Op::Read, 1_000_256, 256));
    let order: Vec<u32> = (0..4).map(|_| wait(&mut drive).tag).collect();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn the_seek_overlaps_the_bus_of_the_command_before() {
    let slow = |preseek| {
        bare("cheetah9lp")
            .with(|spec| {
                spec.bus.interface_sector = Nanos::from_micros(105);
                spec.queue.preseek = preseek;
            })
            .unwrap()
    };
    let last = |preseek| {
        let mut drive = Drive::new(&slow(preseek), 0);
        for tag in 0..20 {
            let start = u64::from(tag * 7 % 20) * 800_000;
            drive.submit(Time::ZERO, command(tag, Op::Read, start, 64));
        }
        (0..20).map(|_| wait(&mut drive).at).last()
    };
    // Each sends for 6.7 ms, more than a turn.
    assert!(last(Preseek::AtMediaEnd).unwrap() + ms(50) < last(Preseek::Off).unwrap());
}

#[test]
fn faults_do_what_they_say() {
    let profile = bare("cheetah9lp");
    let mut drive = Drive::new(&profile, 0);
    let bad = Extent::at(5_000, 2);
    drive.inject(
        Time::ZERO,
        Fault::Unreadable {
            extent: bad,
            retries: 10,
        },
    );
    let failed = run(&mut drive, Time::ZERO, command(1, Op::Read, 4_996, 8));
    assert_eq!(failed.result.unwrap_err().lba, Lba::new(5_000));
    assert!(failed.breakdown.total() > drive.turn() * 10);
    let fine = run(&mut drive, failed.at, command(2, Op::Read, 4_996, 4));
    assert_eq!(fine.result, Ok(()));
    let written = run(&mut drive, fine.at, command(3, Op::Write, 4_996, 8));
    let read = run(&mut drive, written.at, command(4, Op::Read, 4_996, 8));
    assert_eq!(read.result, Ok(()));

    drive.inject(read.at, Fault::Stall(ms(500)));
    let late = run(&mut drive, read.at, command(5, Op::Read, 9_000_000, 8));
    assert!(late.breakdown.total() >= ms(500));

    drive.inject(late.at, Fault::LoseNext);
    drive.submit(late.at, command(6, Op::Read, 0, 8));
    assert_eq!(drive.next_event(), None);
    assert_eq!(drive.in_flight(), 1);
    assert!(drive.abort(late.at + ms(7), 6));
    assert!(!drive.abort(late.at + ms(7), 6));
    assert_eq!(drive.in_flight(), 0);
}

#[test]
fn a_write_goes_on_when_the_flush_before_it_is_given_up() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let dirty = run(
        &mut drive,
        Time::ZERO,
        command(1, Op::Write, 500_000_000, 8),
    );
    drive.submit(dirty.at, command(2, Op::Flush, 0, 0));
    drive.submit(dirty.at, command(3, Op::Write, 0, 8));
    // The arm has set out with the first write, and then begins nothing for half a second.
    let stalled = dirty.at + ms(1);
    drive.inject(stalled, Fault::Stall(ms(500)));
    let aborted = stalled + ms(100);
    assert!(drive.is_clean(aborted));
    assert!(drive.abort(aborted, 2));
    let written = wait(&mut drive);
    assert_eq!((written.tag, written.hit), (3, Hit::Buffered));
    assert!(written.at >= stalled + ms(500), "{written:?}");
    assert!(written.at < stalled + ms(502), "{written:?}");
    assert_eq!((drive.next_event(), drive.in_flight()), (None, 0));
}

#[test]
fn a_write_without_room_leaves_the_arm_to_others() {
    let profile = bare("cheetah9lp")
        .with(|spec| {
            spec.bus.interface_sector = Nanos::from_micros(200);
            spec.cache.write_back = WriteBack::Full;
            spec.cache.segments = 1;
            spec.cache.write_segments = 1;
            spec.cache.dedicated_write_segment = false;
        })
        .unwrap();
    let reads = |with_write: bool| {
        let mut drive = Drive::new(&profile, 0);
        // 40 ms on the bus: the arm is free long before.
        drive.submit(Time::ZERO, command(1, Op::Read, 0, 200));
        let mut now = Time::ZERO + ms(15);
        assert_eq!(drive.poll(now), None);
        if with_write {
            drive.submit(now, command(2, Op::Write, 5_000_000, 8));
        }
        now += ms(5);
        assert_eq!(drive.poll(now), None);
        drive.submit(now, command(3, Op::Read, 9_000_000, 8));
        let mut events = 0;
        let mut done = Vec::new();
        while let Some(next) = drive.next_event() {
            events += 1;
            done.extend(drive.poll(next));
        }
        assert!(events <= 12, "{events}");
        done
    };
    let (alone, beside) = (reads(false), reads(true));
    assert_eq!(alone.len(), 2);
    assert_eq!(beside.len(), 3);
    let get = |done: &[Completion], tag| *done.iter().find(|done| done.tag == tag).unwrap();
    assert_eq!(get(&beside, 1), get(&alone, 1));
    // The arm sets out at once.
    assert_eq!(get(&beside, 3), get(&alone, 3));
    assert_eq!(get(&beside, 3).breakdown.queue, Nanos::ZERO);
    // There is room when the first read is done, and no sooner.
    let write = get(&beside, 2);
    assert_eq!(write.hit, Hit::Buffered);
    assert!(write.at >= get(&beside, 1).at, "{write:?}");
}

/// A write that continues another may be longer than the buffer, as any write. Its last sectors find room when the
/// sectors before them are on the medium.
#[test]
fn a_write_longer_than_the_buffer_that_continues_another_waits_for_room() {
    for write_back in [WriteBack::Appending, WriteBack::Flushed] {
        let profile = bare("cheetah9lp")
            .with(|spec| spec.cache.write_back = write_back)
            .unwrap();
        let room = u64::from(profile.cache.segment_sectors);
        for len in [room - 50, room, room + 1, 4 * room] {
            let mut drive = Drive::new(&profile, 0);
            drive.submit(Time::ZERO, command(1, Op::Write, 5_000_000, 50));
            let first = wait(&mut drive).at;
            drive.submit(first, command(2, Op::Write, 5_000_050, len));
            let second = wait(&mut drive);
            assert_eq!((second.tag, second.hit), (2, Hit::Buffered));
            let dirty = drive.dirty_sectors(second.at);
            assert!(
                dirty <= Sectors::new(room),
                "{write_back:?}, {len}: {dirty:?} in a buffer of {room}"
            );
        }
    }
}

#[test]
fn a_write_past_the_buffer_completes_on_the_medium() {
    let profile = bare("cheetah9lp")
        .with(|spec| {
            spec.bus.interface_sector = Nanos::from_micros(200);
            spec.cache.write_back = WriteBack::Flushed;
            spec.cache.segments = 1;
            spec.cache.write_segments = 1;
            spec.cache.dedicated_write_segment = false;
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    // It holds the only segment for 40 ms, the arm for a few.
    drive.submit(Time::ZERO, command(1, Op::Read, 0, 200));
    let now = Time::ZERO + ms(15);
    assert_eq!(drive.poll(now), None);
    drive.submit(now, command(2, Op::Write, 5_000_000, 8));
    assert_eq!(wait(&mut drive).tag, 1);
    let written = wait(&mut drive);
    assert_eq!((written.tag, written.hit), (2, Hit::Through));
    assert!(written.breakdown.seek > ms(3), "{written:?}");
    // With the segment free, it would complete there.
    let next = run(&mut drive, written.at, command(3, Op::Write, 9_000_000, 8));
    assert_eq!(
        (next.hit, next.breakdown.seek),
        (Hit::Buffered, Nanos::ZERO)
    );
}

/// The drive's own time runs slower and faster than the host's. Its promises and its account are in the host's time.
#[test]
fn a_drive_that_wanders_keeps_its_promises_and_accounts_for_the_time_of_the_host() {
    let wandering = |spec: &mut headtime_disk::Spec| {
        spec.noise.wander_ppm = 10_000;
        spec.noise.wander_period = Nanos::from_secs(1);
    };
    let (steady, wandering) = (bare("atlas10k"), bare("atlas10k").with(wandering).unwrap());
    let ends = |profile: &Profile| {
        let mut drive = Drive::new(profile, 3);
        drive.record_spans(Time::ZERO, true);
        let (mut now, mut ends) = (Time::ZERO, Vec::new());
        for number in 0..300_u64 {
            let lba = number * 7_919_317 % 17_000_000;
            drive.submit(now, command(number as u32, Op::Read, lba, 8));
            let done = loop {
                now = drive.next_event().expect("it is in the drive");
                if let Some(done) = drive.poll(now) {
                    break done;
                }
            };
            assert_eq!(done.at, now);
            assert_eq!(drive.head_time(now).total(), now - Time::ZERO);
            ends.push(now);
        }
        let spans = drive.take_spans(now);
        assert!(spans.windows(2).all(|two| two[0].to == two[1].from));
        assert_eq!(spans.last().map(|last| last.to), Some(now));
        ends
    };
    let (even, uneven) = (ends(&steady), ends(&wandering));
    assert_ne!(even, uneven);
    // In the mean the drive is equally fast, within the effect of narrowly missed turns.
    let took = |ends: &[Time]| (ends[299] - Time::ZERO).as_secs_f64();
    let ratio = took(&uneven) / took(&even);
    assert!((0.97..1.03).contains(&ratio), "{ratio}");
}

#[test]
fn noise_comes_from_the_seed() {
    let profile = bare("atlas10k")
        .with(|spec| {
            spec.noise = NoiseSpec {
                seek_sd: Nanos::from_micros(20),
                seek_sd_relative: 0.01,
                overhead_sd: Nanos::from_micros(30),
                speed_ppm: 1000,
                ..NoiseSpec::default()
            }
        })
        .unwrap();
    let times = |seed| {
        let mut drive = Drive::new(&profile, seed);
        let mut now = Time::ZERO;
        let mut times = Vec::new();
        for tag in 0..50 {
            now = run(
                &mut drive,
                now,
                command(tag, Op::Read, u64::from(tag) * 300_007, 8),
            )
            .at;
            times.push(now);
        }
        times
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}
