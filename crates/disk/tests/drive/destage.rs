//! Runs of dirty data: their way onto the medium, and the rest of the buffer beside them.

use crate::common::{command, ms, wait};
use headtime_disk::profile::{Destage, NoiseSpec, by_name};
use headtime_disk::{Command, Completion, Drive, Hit, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

fn quiet(name: &str) -> Profile {
    by_name(name)
        .unwrap()
        .with(|spec| spec.noise = NoiseSpec::default())
        .unwrap()
}

fn run(drive: &mut Drive, now: Time, command: Command) -> Completion {
    drive.submit(now, command);
    wait(drive)
}

fn force(tag: u32, op: Op, start: u64, len: u64) -> Command {
    Command {
        fua: true,
        ..command(tag, op, start, len)
    }
}

/// Times at which stretches reached the medium, up to a flush.
fn written(drive: &mut Drive, now: Time) -> Vec<(Time, Extent)> {
    drive.submit(now, command(999, Op::Flush, 0, 0));
    let flushed = wait(drive);
    assert!(drive.is_clean(flushed.at));
    drive.take_written(flushed.at).collect()
}

#[test]
fn a_write_that_continues_what_the_arm_is_writing_is_written_without_losing_a_turn() {
    for name in ["exos-x18", "wd5000aaks", "barracuda-7200.10-160"] {
        let profile = quiet(name);
        let mut drive = Drive::new(&profile, 0);
        drive.record_written(Time::ZERO, true);
        let first = run(&mut drive, Time::ZERO, command(1, Op::Write, 80_000, 256));
        // The arm is under way with it.
        let now = first.at + profile.cache.destage_delay + Nanos::from_micros(100);
        let second = run(&mut drive, now, command(2, Op::Write, 80_256, 256));
        let done = written(&mut drive, second.at);
        let ends: Vec<(Time, u64)> = done.iter().map(|(at, e)| (*at, e.end().get())).collect();
        let first = ends.iter().find(|(_, end)| *end == 80_256).unwrap().0;
        let second = ends.iter().find(|(_, end)| *end == 80_512).unwrap().0;
        assert!(
            second - first < drive.turn() / 2,
            "{name}: {}",
            second - first
        );
    }
}

/// Reads that the arm reaches on its way cost a flush no extra time.
#[test]
fn reads_behind_each_other_that_came_before_a_flush_are_read_in_one_go() {
    for name in ["exos-x18", "wd5000aaks", "barracuda-7200.10-160"] {
        let profile = quiet(name);
        let last_read = |flush: bool| {
            let mut drive = Drive::new(&profile, 0);
            let dirty = run(&mut drive, Time::ZERO, command(0, Op::Write, 80_000, 8)).at;
            for tag in 1..=6_u32 {
                let start = 40_000_000 + u64::from(tag) * 256;
                drive.submit(dirty, command(tag, Op::Read, start, 256));
            }
            if flush {
                drive.submit(dirty, command(9, Op::Flush, 0, 0));
            }
            loop {
                let done = wait(&mut drive);
                match done.tag {
                    6 => return done.at,
                    9 => panic!("{name}: the flush did not wait for its turn"),
                    _ => {}
                }
            }
        };
        assert_eq!(last_read(true), last_read(false), "{name}");
    }
}

/// After the flush no write is urgent, so reads pass the writes that came after it.
#[test]
fn writes_behind_a_flush_let_reads_pass_once_it_is_done() {
    for name in ["exos-x18", "wd5000aaks", "barracuda-7200.10-160"] {
        let profile = quiet(name);
        let mut drive = Drive::new(&profile, 0);
        drive.record_written(Time::ZERO, true);
        let now = run(&mut drive, Time::ZERO, command(0, Op::Write, 80_000, 8)).at;
        drive.submit(now, command(1, Op::Read, 40_000_000, 256));
        drive.submit(now, command(2, Op::Flush, 0, 0));
        for tag in 3..9_u32 {
            let at = u64::from(tag - 2);
            drive.submit(now, command(tag, Op::Read, 40_000_000 + at * 256, 256));
            drive.submit(
                now,
                command(tag + 10, Op::Write, 80_000_000 + at * 5_000, 8),
            );
        }
        let flushed = std::iter::repeat_with(|| wait(&mut drive)).find(|done| done.tag == 2);
        drop(drive.take_written(flushed.unwrap().at));
        let last = std::iter::repeat_with(|| wait(&mut drive)).find(|done| done.tag == 8);
        let written = drive.take_written(last.unwrap().at).count();
        assert_eq!(written, 0, "{name}");
    }
}

#[test]
fn a_far_write_beside_a_stream_of_them_is_written_when_it_is_old() {
    let profile = quiet("exos-x18");
    let age = profile.cache.destage_age;
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let far = Extent::at(30_000_000_000, 8);
    let mut now = run(
        &mut drive,
        Time::ZERO,
        command(1, Op::Write, far.start.get(), 8),
    )
    .at;
    let mut got = None;
    for n in 0.. {
        let start = 8_000 + n * 1_024;
        now = run(&mut drive, now, command(2, Op::Write, start, 1_024)).at;
        got = drive.take_written(now).find(|(_, extent)| *extent == far);
        if got.is_some() || now > Time::ZERO + age * 2 {
            break;
        }
    }
    let (at, _) = got.expect("it is written");
    assert!(
        at > Time::ZERO + age && at < Time::ZERO + age + ms(100),
        "{at:?}"
    );
}

/// Readers never let the drive rest; a write that the buffer has room for is not kept back for ever.
#[test]
fn a_write_beside_readers_that_never_pause_is_written_when_it_is_old() {
    for (name, depth, sequential) in [
        ("exos-x18", 1, false),
        ("exos-x18", 8, false),
        ("exos-x18", 1, true),
        ("exos-x18", 2, true),
        ("wd5000aaks", 1, false),
        ("wd5000aaks", 8, false),
        ("wd5000aaks", 8, true),
    ] {
        let profile = quiet(name);
        let age = profile.cache.destage_age;
        let mut drive = Drive::new(&profile, 0);
        drive.record_written(Time::ZERO, true);
        let far = Extent::at(900_000_000, 8);
        drive.submit(Time::ZERO, command(99, Op::Write, far.start.get(), 8));
        let mut now = wait(&mut drive).at;
        let mut place = 1;
        let mut read = |drive: &mut Drive, now, tag| {
            place = match sequential {
                true => place + 256,
                false => (place * 48_271) % 800_000_011,
            };
            drive.submit(now, command(tag, Op::Read, place, 256));
        };
        for tag in 0..depth {
            read(&mut drive, now, tag);
        }
        let mut got = None;
        while got.is_none() && now < Time::ZERO + age * 2 {
            let next = drive.next_event().expect("reads are under way");
            if let Some(done) = drive.poll(next) {
                now = done.at;
                read(&mut drive, now, done.tag);
            }
            got = drive.take_written(next).find(|(_, extent)| *extent == far);
        }
        let (at, _) = got.unwrap_or_else(|| panic!("{name}, {depth}, {sequential}: never"));
        let late = at.saturating_since(Time::ZERO + age);
        assert!(
            at >= Time::ZERO + age && late < ms(100),
            "{name}, {depth}, {sequential}: {at:?}"
        );
    }
}

/// Before, every write took a segment.
#[test]
fn a_few_small_writes_leave_reads_their_segments() {
    let profile = quiet("wd5000aaks");
    let hits = |profile: &Profile| {
        let mut drive = Drive::new(profile, 0);
        let mut now = Time::ZERO;
        let segments = u64::from(profile.cache.segments);
        for n in 0..segments {
            now = run(&mut drive, now, command(1, Op::Read, n * 1_000_000, 8)).at + ms(30);
        }
        for n in 0..40 {
            now = run(
                &mut drive,
                now,
                command(1, Op::Write, 500_000_000 + n * 999, 8),
            )
            .at + ms(100);
        }
        let mut hits = 0;
        for n in (0..segments).rev() {
            let ahead = command(1, Op::Read, n * 1_000_000 + 100, 8);
            let read = run(&mut drive, now, ahead);
            hits += u64::from(read.hit == Hit::Full);
            now = read.at;
        }
        (hits, segments)
    };
    let (swept, segments) = hits(&profile);
    assert_eq!(swept, segments - 1);
    let before = profile.with(|spec| spec.cache.destage = Destage::Segment);
    assert!(hits(&before.unwrap()).0 < segments / 2);
}

/// The segment that is given back with a run was read into before, at a higher address: how far that
/// was to go on says nothing about the run.
#[test]
fn reading_ahead_behind_a_run_goes_no_farther_than_behind_any_other_read() {
    let profile = quiet("wd5000aaks")
        .with(|spec| (spec.cache.segments, spec.cache.write_segments) = (1, 1))
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    let far = run(&mut drive, Time::ZERO, command(1, Op::Read, 50_000_000, 8));
    let write = run(&mut drive, far.at, command(2, Op::Write, 1_000_000, 8));
    let rest = write.at + ms(200);
    assert!(drive.is_clean(rest));
    let part = run(&mut drive, rest, command(3, Op::Read, 1_000_004, 8));
    assert_eq!(
        part.hit,
        Hit::Partial,
        "its first sectors are those of the run"
    );
    let next = run(&mut drive, part.at, command(4, Op::Read, 700_000_000, 8));
    assert!(next.at < part.at + ms(50), "{:?}", next.at - part.at);
}

#[test]
fn a_read_of_sectors_that_are_in_part_dirty_passes_them() {
    let profile = quiet("wd5000aaks");
    let mut drive = Drive::new(&profile, 0);
    let dirty = run(
        &mut drive,
        Time::ZERO,
        command(1, Op::Write, 600_000_004, 4),
    );
    let read = run(&mut drive, dirty.at, command(2, Op::Read, 600_000_000, 16));
    assert_eq!(read.hit, Hit::Partial);
    assert!(!drive.is_clean(read.at), "it need not be written for that");
    let read = run(&mut drive, read.at, command(3, Op::Read, 600_000_000, 16));
    assert_eq!(read.hit, Hit::Full, "the copy has what was written");
    let read = run(&mut drive, read.at, force(4, Op::Read, 600_000_000, 16));
    assert_eq!(read.hit, Hit::Miss);
    assert!(
        drive.is_clean(read.at),
        "a forced one comes from the medium"
    );
}

#[test]
fn part_of_a_sector_of_the_medium_costs_nothing_more_where_the_buffer_has_the_rest() {
    for destage in [Destage::Segment, Destage::Sweep] {
        let profile = quiet("exos-x18")
            .with(|spec| spec.cache.destage = destage)
            .unwrap();
        // Extra time of a forced write of a part of a sector over the whole sector, in turns.
        let more = |before: Option<Command>, len: u64| {
            let mut took = [(8_000_001, 7), (8_000_000, 8)].map(|(start, whole)| {
                let mut drive = Drive::new(&profile, 0);
                let mut now = Time::ZERO;
                if let Some(before) = before {
                    now = run(&mut drive, now, before).at;
                }
                // Arm and platter start at the same place.
                now = run(&mut drive, now, force(2, Op::Read, 20_000_000, 8)).at;
                let part = force(3, Op::Write, start, len.min(whole));
                let write = run(&mut drive, now, part);
                write.breakdown.total().as_nanos() as f64 / drive.turn().as_nanos() as f64
            });
            took.sort_by(f64::total_cmp);
            took[1] - took[0]
        };
        assert!(more(None, 8) > 0.5, "{destage:?}: it has to be read");
        let read = command(1, Op::Read, 8_000_000, 8);
        assert!(
            more(Some(read), 8) < 0.01,
            "{destage:?}: it was read before"
        );
    }
    // The rest of the sector is dirty, and stays so.
    let mut drive = Drive::new(&quiet("exos-x18"), 0);
    let dirty = run(&mut drive, Time::ZERO, command(1, Op::Write, 8_000_000, 4));
    let now = run(&mut drive, dirty.at, force(2, Op::Read, 20_000_000, 8)).at;
    let write = run(&mut drive, now, force(3, Op::Write, 8_000_004, 4));
    let parts = write.breakdown;
    assert!(parts.rotation + parts.transfer < drive.turn(), "{parts:?}");
}

#[test]
fn partial_writes_that_touch_are_written_as_one() {
    let profile = quiet("exos-x18");
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let mut now = Time::ZERO;
    for (start, len) in [(8_000_005, 9), (8_000_000, 5), (8_000_014, 2)] {
        now = run(&mut drive, now, command(1, Op::Write, start, len)).at;
    }
    let begun = drive.head_time(now).get(headtime_disk::Part::Destage);
    let done = written(&mut drive, now);
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(done[0].1, Extent::at(8_000_000, 16));
    let took = drive.head_time(done[0].0).get(headtime_disk::Part::Destage) - begun;
    assert!(took < drive.turn() + ms(7), "no turn for reading: {took}");
}

/// The missing part of the sector is read when the arm passes, and the write has its turn later.
#[test]
fn what_was_read_of_a_sector_for_a_run_is_there_for_what_joins_it() {
    let profile = quiet("exos-x18");
    let took = |joins: &[(u64, u64)]| {
        let mut drive = Drive::new(&profile, 0);
        let first = run(&mut drive, Time::ZERO, command(1, Op::Write, 8_000_003, 2)).at;
        // The arm is under way to read the rest.
        let begun = first + profile.cache.destage_delay + Nanos::from_micros(100);
        let mut now = begun;
        for &(start, len) in joins {
            now = run(&mut drive, now, command(2, Op::Write, start, len)).at;
        }
        let last = run(&mut drive, begun + ms(1), command(3, Op::Flush, 0, 0));
        (last.at - first, drive.turn())
    };
    let (alone, turn) = took(&[]);
    let joins: [&[(u64, u64)]; 7] = [
        &[(8_000_003, 2)],
        &[(8_000_004, 1)],
        &[(8_000_005, 2)],
        &[(8_000_001, 2)],
        &[(8_000_000, 8)],
        &[(8_000_005, 11)],
        &[(8_000_005, 9), (8_000_014, 2)],
    ];
    for joins in joins {
        let (with, _) = took(joins);
        assert!(with < alone + turn / 2, "{joins:?}: {with}, {alone} alone");
    }
    // The sector that it goes on into is another matter.
    assert!(took(&[(8_000_005, 9)]).0 > alone + turn / 2);
}

#[test]
fn a_run_that_lacks_part_of_a_sector_lets_others_pass_while_that_comes_round() {
    let profile = quiet("exos-x18");
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let mut now = Time::ZERO;
    for n in 0..64 {
        now = run(
            &mut drive,
            now,
            command(1, Op::Write, 8_000_003 + n * 500, 8),
        )
        .at;
    }
    let begun = now;
    let done = written(&mut drive, now);
    let took = done.last().unwrap().0 - begun;
    // Each alone would cost a turn and more.
    assert!(took < drive.turn() * 40, "{took}");
    assert_eq!(done.len(), 64);
}
