//! Sectors that cannot be read, where the buffer or a write is in the way.

use crate::common::{command, ms, wait};
use headtime_disk::profile::{Destage, NoiseSpec, Preseek, WriteBack, by_name};
use headtime_disk::{Command, Completion, Drive, Fault, Hit, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Time};

fn quiet(name: &str) -> Profile {
    by_name(name)
        .unwrap()
        .with(|spec| spec.noise = NoiseSpec::default())
        .unwrap()
}

fn spoil(drive: &mut Drive, now: Time, start: u64, len: u64) {
    let extent = Extent::at(start, len);
    drive.inject(now, Fault::Unreadable { extent, retries: 1 });
}

fn run(drive: &mut Drive, now: Time, command: Command) -> Completion {
    drive.submit(now, command);
    wait(drive)
}

fn failed(completion: &Completion) -> Option<u64> {
    completion.result.err().map(|error| error.lba.get())
}

/// Sequential reads hit the read-ahead, except for the unreadable sector among them.
#[test]
fn reading_ahead_stops_before_a_sector_that_cannot_be_read() {
    for name in ["cheetah9lp", "atlas10k", "wd5000aaks", "exos-x18"] {
        let mut drive = Drive::new(&quiet(name), 0);
        spoil(&mut drive, Time::ZERO, 403, 2);
        let mut now = Time::ZERO;
        for tag in 0..100 {
            let start = u64::from(tag) * 8;
            let read = run(&mut drive, now, command(tag, Op::Read, start, 8));
            assert_eq!(failed(&read), (start == 400).then_some(403), "{name}");
            now = read.at + ms(1);
        }
    }
}

#[test]
fn a_sector_that_goes_bad_while_it_is_read_ahead_fails() {
    let mut drive = Drive::new(&quiet("wd5000aaks"), 0);
    let first = run(&mut drive, Time::ZERO, command(1, Op::Read, 0, 8));
    // The head has passed 300 sectors or so, and passes as many a little later.
    let now = first.at + ms(3);
    spoil(&mut drive, now, 20, 1);
    spoil(&mut drive, now, 600, 1);
    let later = now + ms(20);
    for (tag, start, bad) in [(2, 16, Some(20)), (3, 24, None), (4, 600, Some(600))] {
        let read = run(
            &mut drive,
            later + ms(20) * tag,
            command(tag as u32, Op::Read, start, 8),
        );
        assert_eq!(failed(&read), bad);
    }
}

/// A drive that buffers sectors on the way to a request does not buffer unreadable ones.
#[test]
fn a_sector_that_cannot_be_read_is_not_kept_in_passing() {
    for name in ["atlas10k", "ibm18es", "wd5000aaks", "exos-x18"] {
        let mut drive = Drive::new(&quiet(name), 0);
        let mut now = Time::ZERO;
        for tag in 0..40 {
            // The bad sector lies in front of the read, on the same track, for any landing of the head.
            let start = 1_000_000 + u64::from(tag) * 30_000;
            spoil(&mut drive, now, start + 70, 1);
            let there = command(2 * tag, Op::Read, start + 100, 8);
            now = run(&mut drive, now, there).at + ms(30);
            let before = command(2 * tag + 1, Op::Read, start + 64, 8);
            let read = run(&mut drive, now, before);
            assert_eq!(failed(&read), Some(start + 70), "{name}");
            now = read.at + Nanos::from_micros(u64::from(tag) * 777);
        }
    }
}

#[test]
fn a_clean_sector_in_front_of_dirty_ones_goes_bad_too() {
    let profile = quiet("wd5000aaks")
        .with(|spec| {
            spec.cache.destage_delay = Nanos::ZERO;
            spec.cache.destage = Destage::Segment;
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    let first = run(
        &mut drive,
        Time::ZERO,
        command(1, Op::Write, 700_000_000, 8),
    );
    // The arm is on its way with the first sectors when the next are joined to them.
    let next = command(2, Op::Write, 700_000_008, 8);
    let next = run(&mut drive, first.at + Nanos::from_micros(10), next);
    let mut now = next.at;
    let dirty = |drive: &mut Drive, now| drive.dirty_extents(now).collect::<Vec<_>>();
    assert_eq!(dirty(&mut drive, now), [Extent::at(700_000_000, 16)]);
    while dirty(&mut drive, now) != [Extent::at(700_000_008, 8)] {
        now += Nanos::from_micros(50);
        assert!(now < Time::ZERO + ms(100));
    }
    spoil(&mut drive, now, 700_000_002, 1);
    spoil(&mut drive, now, 700_000_010, 1);
    let read = run(&mut drive, now, command(3, Op::Read, 700_000_008, 4));
    assert_eq!((read.hit, failed(&read)), (Hit::Full, None), "it is dirty");
    let read = run(&mut drive, read.at, command(4, Op::Read, 700_000_000, 4));
    assert_eq!(failed(&read), Some(700_000_002));
}

/// A drive with one segment, which a read holds as long as it sends its data: a write of these
/// sectors goes past the buffer. When the arm sets out with it.
fn past_the_buffer(extent: Extent) -> (Drive, Time) {
    let profile = quiet("cheetah9lp")
        .with(|spec| {
            spec.bus.interface_sector = Nanos::from_micros(200);
            spec.cache.write_back = WriteBack::Off;
            spec.cache.segments = 1;
            spec.cache.write_segments = 1;
            spec.queue.depth = 2;
            spec.queue.preseek = Preseek::AtMediaEnd;
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    drive.submit(Time::ZERO, command(1, Op::Read, 0, 300));
    let now = Time::ZERO + ms(15);
    assert_eq!(drive.poll(now), None);
    let write = command(2, Op::Write, extent.start.get(), extent.len.get());
    drive.submit(now, write);
    let mut other = drive.clone();
    assert_eq!(wait(&mut other).tag, 1);
    let written = wait(&mut other);
    assert_eq!((written.tag, written.hit), (2, Hit::Through));
    (drive, now)
}

#[test]
fn a_write_that_loses_its_power_mends_the_sectors_that_it_has_written() {
    let extent = Extent::at(5_000_000, 100);
    let bad = [5_000_000, 5_000_040, 5_000_099];
    for record in [false, true] {
        let (mut drive, begun) = past_the_buffer(extent);
        drive.record_written(begun, record);
        spoil(&mut drive, begun, 5_000_000, 100);
        let mut mended = Vec::new();
        for micros in (0..200_000).step_by(500) {
            let mut drive = drive.clone();
            let mut now = begun + Nanos::from_micros(micros);
            while drive.poll(now).is_some() {}
            drive.power_cycle(now);
            let mut results = Vec::new();
            for (tag, start) in (0..).zip(bad) {
                let read = run(&mut drive, now, command(tag, Op::Read, start, 1));
                assert!(failed(&read).is_none_or(|failed| failed == start));
                results.push(failed(&read).is_some());
                now = read.at;
            }
            assert!(
                results.is_sorted(),
                "the first are written first: {results:?}"
            );
            mended.push(results.iter().filter(|failed| !*failed).count());
        }
        assert!(mended.is_sorted(), "{mended:?}");
        assert_eq!((mended[0], mended.last()), (0, Some(&3)), "{mended:?}");
        assert!(mended.contains(&1) && mended.contains(&2), "{mended:?}");
    }
}

#[test]
fn a_sector_that_goes_bad_before_the_arm_has_written_it_is_mended() {
    let extent = Extent::at(5_000_000, 8);
    let (mut drive, begun) = past_the_buffer(extent);
    let now = begun + ms(1);
    assert_eq!(drive.poll(now), None);
    spoil(&mut drive, now, 5_000_000, 8);
    while wait(&mut drive).tag != 2 {}
    let now = now + ms(100);
    let read = run(&mut drive, now, command(3, Op::Read, 5_000_000, 8));
    assert_eq!((read.hit, read.result), (Hit::Miss, Ok(())));
}
