//! Reports of the drive on data that reached the medium.

use crate::common::{command, ms, wait};
use headtime_disk::profile::{NoiseSpec, RequestedData, WriteBack, by_name};
use headtime_disk::{Command, Drive, Fault, Hit};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Sectors, Time};
use std::collections::BTreeSet;

#[test]
fn a_write_is_reported_when_the_arm_has_written_it() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let extent = Extent::at(700_000_000, 8);
    drive.submit(Time::ZERO, command(1, Op::Write, 700_000_000, 8));
    let completed = wait(&mut drive).at;
    assert_eq!(
        drive.take_written(completed).len(),
        0,
        "it is in the buffer"
    );
    assert_eq!(drive.dirty_extents(completed).collect::<Vec<_>>(), [extent]);
    let begun = completed + profile.cache.destage_delay;
    assert_eq!(drive.take_written(begun).len(), 0, "the arm is on its way");
    let later = begun + ms(40);
    let written: Vec<_> = drive.take_written(later).collect();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].1, extent);
    assert!(written[0].0 > begun && written[0].0 < later);
    assert_eq!(drive.take_written(later).len(), 0, "once");
}

#[test]
fn a_forced_write_is_reported_before_it_completes_and_again_then() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let forced = Command {
        fua: true,
        ..command(1, Op::Write, 600_000_000, 8)
    };
    drive.submit(Time::ZERO, forced);
    let completed = wait(&mut drive).at;
    let written: Vec<_> = drive.take_written(completed).collect();
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(written.iter().all(|(_, extent)| *extent == forced.extent));
    assert!(written[0].0 <= completed);
    assert_eq!(written[1].0, completed);
}

/// The arm continues a forced write with the next write. The first write is reported as being on the medium when it
/// completes. No host has to wait for the second one.
#[test]
fn a_forced_write_that_another_continues_is_reported_before_it_completes() {
    let profile = by_name("cheetah9lp")
        .unwrap()
        .with(|spec| spec.queue.depth = 2)
        .unwrap();
    assert_eq!(profile.cache.write_back, WriteBack::Flushed);
    let (first, second) = (Extent::at(5_000_000, 100), Extent::at(5_000_100, 200));
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let forced = Command {
        fua: true,
        ..command(1, Op::Write, 5_000_000, 100)
    };
    drive.submit(Time::ZERO, forced);
    let mut continued = 0;
    for micros in (0..30_000).step_by(100) {
        let mut drive = drive.clone();
        let now = Time::from_nanos(micros * 1_000);
        if drive.poll(now).is_some() {
            break;
        }
        drive.submit(now, command(2, Op::Write, 5_000_100, 200));
        let mut completion = wait(&mut drive);
        if completion.tag == 2 {
            completion = wait(&mut drive);
        }
        assert_eq!((completion.tag, completion.hit), (1, Hit::Through));
        let at = completion.at;
        let written: Vec<Extent> = drive.take_written(at).map(|(_, extent)| extent).collect();
        assert!(written.contains(&first), "{written:?}");
        let dirty: Vec<Extent> = drive.dirty_extents(at).collect();
        assert!(
            dirty.iter().all(|dirty| !dirty.overlaps(first)),
            "{dirty:?}"
        );
        assert_eq!(
            drive.dirty_sectors(at),
            dirty
                .iter()
                .fold(Sectors::ZERO, |sum, dirty| sum + dirty.len)
        );
        continued += u32::from(dirty == [second]);
        // A flush waits for the second, and that is all there is left to say.
        drive.submit(at, command(3, Op::Flush, 0, 0));
        let mut flushed = wait(&mut drive);
        while flushed.tag != 3 {
            flushed = wait(&mut drive);
        }
        let written: BTreeSet<u64> = drive
            .take_written(flushed.at)
            .flat_map(|(_, extent)| extent.start.get()..extent.end().get())
            .collect();
        assert!(drive.is_clean(flushed.at));
        assert!(
            written.iter().copied().eq(5_000_100..5_000_300),
            "{written:?}"
        );
    }
    assert!(continued > 10, "{continued}");
}

#[test]
fn nothing_is_recorded_unless_asked_for() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let write = |drive: &mut Drive, now, tag| {
        let forced = Command {
            fua: true,
            ..command(tag, Op::Write, 0, 8)
        };
        drive.submit(now, forced);
        wait(drive).at
    };
    let now = write(&mut drive, Time::ZERO, 1);
    assert_eq!(drive.take_written(now).len(), 0);
    drive.record_written(now, true);
    let now = write(&mut drive, now, 2);
    drive.record_written(now, false);
    assert_eq!(drive.take_written(now).len(), 0, "dropped");
}

/// A drive that loses its power in the middle of a write of half a track has written the sectors
/// that had passed, and no part of one.
#[test]
fn a_write_that_is_cut_off_is_on_the_medium_in_part() {
    let profile = by_name("exos-x18")
        .unwrap()
        .with(|spec| {
            spec.noise = NoiseSpec::default();
            spec.cache.write_back = WriteBack::Off;
            spec.access.zero_latency_write = false;
        })
        .unwrap();
    let per = u64::from(profile.geometry.sectors_per_physical());
    assert!(per > 1);
    let whole = Extent::at(80_000, 1_000);
    let cut = |at: Time| {
        let mut drive = Drive::new(&profile, 0);
        drive.record_written(Time::ZERO, true);
        drive.submit(
            Time::ZERO,
            command(1, Op::Write, whole.start.get(), whole.len.get()),
        );
        assert_eq!(drive.poll(at), None);
        drive.power_cycle(at);
        assert_eq!((drive.in_flight(), drive.next_event()), (0, None));
        assert!(drive.is_clean(at));
        let written: Vec<(Time, Extent)> = drive.take_written(at).collect();
        written
            .iter()
            .map(|(_, extent)| extent.len.get())
            .sum::<u64>()
    };
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    drive.submit(
        Time::ZERO,
        command(1, Op::Write, whole.start.get(), whole.len.get()),
    );
    let completed = wait(&mut drive).at;
    let (end, _) = drive.take_written(completed).next().unwrap();
    // The cuts reach until just before the completion, at which all sectors are written.
    let got: Vec<u64> = (1..200)
        .rev()
        .map(|step| cut(Time::from_nanos(end.as_nanos() - 20_000 * step + 19_999)))
        .collect();
    assert!(got.is_sorted(), "{got:?}");
    assert_eq!(got[0], 0);
    let parts: BTreeSet<u64> = got
        .iter()
        .copied()
        .filter(|len| (1..1_000).contains(len))
        .collect();
    assert!(parts.len() > 10, "{parts:?}");
    assert!(parts.iter().all(|len| len % per == 0), "{parts:?}");
}

#[test]
fn a_power_cycle_forgets_everything_but_the_medium() {
    let profile = by_name("wd5000aaks").unwrap();
    let mut drive = Drive::new(&profile, 0);
    let bad = Extent::at(5_000, 2);
    drive.inject(
        Time::ZERO,
        Fault::Unreadable {
            extent: bad,
            retries: 1,
        },
    );
    drive.inject(Time::ZERO, Fault::LoseNext);
    drive.inject(Time::ZERO, Fault::LoseNext);
    for (tag, op) in [Op::Read, Op::Write, Op::Read, Op::Flush]
        .into_iter()
        .enumerate()
    {
        drive.submit(Time::ZERO, command(tag as u32, op, 100_000, 8));
    }
    drive.inject(Time::ZERO, Fault::Stall(ms(10_000)));
    let now = Time::ZERO + ms(30);
    drive.power_cycle(now);
    assert_eq!((drive.in_flight(), drive.next_event()), (0, None));
    assert_eq!(drive.poll(now), None);
    assert!(drive.is_clean(now));
    drive.submit(now, command(1, Op::Read, 100_000, 8));
    let read = wait(&mut drive);
    assert_eq!(read.hit, headtime_disk::Hit::Miss, "the buffer is empty");
    assert!(read.at < now + ms(40), "{read:?}");
    drive.submit(read.at, command(2, Op::Read, 4_996, 8));
    let failed = wait(&mut drive);
    assert_eq!(failed.result.unwrap_err().lba, Lba::new(5_000));
    assert_eq!(drive.head_time(failed.at).total(), failed.at - Time::ZERO);
}

/// The arm writes sectors 0 to 277. Meanwhile a read of sector 259 hits the buffer, and the drive drops the data that
/// were read. A write of sector 0 must wait, since the buffer has the only copy of the data being written. The report
/// about sector 0 then does not mean the new data.
#[test]
fn a_write_over_what_the_arm_writes_waits_although_a_read_has_had_what_is_behind() {
    let profile = by_name("cheetah9lp")
        .unwrap()
        .with(|spec| {
            let cache = &mut spec.cache;
            cache.write_back = WriteBack::Full;
            cache.segments = 3;
            cache.write_segments = 2;
            cache.read_hits_on_write_data = true;
            cache.sneaky_full_read_hits = true;
            cache.requested_data = RequestedData::Dropped;
            spec.queue.depth = 2;
        })
        .unwrap();
    let mut drive = Drive::new(&profile, 0);
    drive.record_written(Time::ZERO, true);
    let first = Extent::at(0, 278);
    drive.submit(Time::ZERO, command(1, Op::Write, 0, 278));
    let begun = wait(&mut drive).at;
    drive.submit(begun, command(2, Op::Read, 259, 1));
    let read = wait(&mut drive);
    assert_eq!(read.hit, Hit::Full);
    drive.submit(read.at, command(3, Op::Write, 0, 1));
    let new = wait(&mut drive);
    assert_eq!(new.hit, Hit::Buffered);
    let written: Vec<_> = drive.take_written(new.at).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0].1, first);
    assert!(written[0].0 > read.at && written[0].0 < new.at);
    let dirty: Vec<_> = drive.dirty_extents(new.at).collect();
    assert_eq!(dirty, [Extent::at(0, 1)], "the new data alone");
}
