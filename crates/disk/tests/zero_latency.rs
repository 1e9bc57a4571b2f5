//! Reads of a drive that takes sectors as they pass, against the sectors one by one.
//!
//! The rule is DiskSim's (`Immediate buffer read`). From landing on, each requested sector of the track goes into the buffer.
//! The bus sends sectors in order of address, so early sectors wait.

use headtime_disk::profile::{ReadAhead, Skew, by_name};
use headtime_disk::{Command, Completion, Drive, Hit, Layout, Mechanics, Profile};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A drive of 1992: one zone of 57 sectors a track, segments of as many, nothing in the buffer beforehand.
fn drive_of_57(zero_latency: bool, hold: bool, water: f64, sector: Nanos) -> Profile {
    let drive = by_name("hp-c2247a").unwrap().with(|spec| {
        let zone = &mut spec.layout.zones[0];
        (zone.last_cylinder, zone.sectors_per_track) = (2_050, 57);
        (zone.track_skew, zone.cylinder_skew) = (Skew::Sectors(8), Skew::Sectors(19));
        (zone.reserved, zone.slips) = (0, Vec::new());
        spec.layout.zones.truncate(1);
        spec.geometry.capacity = Sectors::new(57 * 13 * 2_000);
        spec.cache.segment_sectors = 57;
        spec.cache.enabled = false;
        spec.cache.read_ahead = ReadAhead::Off;
        spec.cache.read_ahead_max = 0;
        spec.cache.read_high_water = water;
        spec.access.zero_latency_read = zero_latency;
        spec.bus.hold_for_read = hold;
        spec.bus.read_sector = sector;
    });
    drive.unwrap()
}

/// Runs a read of an idle drive.
fn read(drive: &mut Drive, now: Time, tag: u32, extent: Extent) -> Completion {
    let (op, fua, high) = (Op::Read, false, false);
    drive.submit(
        now,
        Command {
            tag,
            op,
            extent,
            fua,
            high,
        },
    );
    loop {
        let at = drive.next_event().unwrap();
        if let Some(completion) = drive.poll(at) {
            return completion;
        }
    }
}

/// When sectors up to each address are in the buffer in order, sector by sector; and the last track.
fn sectors(drive: &Profile, from: Track, at: Time, wanted: Extent) -> (Vec<(Time, u64)>, Track) {
    let (layout, mechanics) = (Layout::new(drive), Mechanics::new(drive));
    let begin = |lba| mechanics.phase(layout.run(Lba::new(lba)).angle(0));
    let (mut at, mut track, mut next) = (at, from, wanted.start.get());
    let mut there = Vec::new();
    while next < wanted.end().get() {
        let on_track = layout.track_extent_of(Lba::new(next));
        let to = layout.run(Lba::new(next)).track;
        let way = mechanics.reposition(track, to, Op::Read).total();
        at += match there.is_empty() {
            true => way + mechanics.set_up(way, Op::Read),
            false => way,
        };
        track = to;
        let landed = mechanics.phase_at(at);
        let wait = |lba: &u64| mechanics.wait(landed, begin(*lba));
        let all = on_track.start.get()..on_track.end().get();
        let mut lba = match mechanics.zero_latency(Op::Read) {
            true => all.min_by_key(wait).unwrap(),
            false => next,
        };
        at += wait(&lba);
        let stop = wanted.end().min(on_track.end()).get();
        let mut early = 0..0;
        while next < stop {
            at += mechanics.turn() / 57;
            if lba == next {
                next += 1;
                if next == early.start {
                    next = early.end;
                }
            } else if lba > next && lba < stop && mechanics.zero_latency(Op::Read) {
                early = if early.is_empty() { lba } else { early.start }..lba + 1;
            }
            there.push((at, next));
            lba = if lba + 1 == on_track.end().get() {
                on_track.start.get()
            } else {
                lba + 1
            };
        }
    }
    (there, track)
}

/// When the bus has sent all, if the read can send from `at` on.
fn sent(drive: &Profile, there: &[(Time, u64)], at: Time, wanted: Extent) -> Time {
    let (overhead, size) = (&drive.overhead, u64::from(drive.cache.segment_sectors));
    let mark = size.min(wanted.len.get()) as f64 * drive.cache.read_high_water;
    let when = |lba| there.iter().find(|(_, until)| *until >= lba).unwrap().0;
    let (mut at, mut next, end) = (at, wanted.start.get(), wanted.end().get());
    let mut off = true;
    while next < end {
        if off {
            at = at.max(when((next + (mark as u64).max(1)).min(end)));
            at += overhead.first_reselect + overhead.data_preparation + drive.bus.arbitration;
        }
        let passed = there.iter().take_while(|(time, _)| *time <= at).last();
        let until = passed.map_or(next, |(_, until)| *until);
        off = false;
        if until > next {
            at += drive.bus.sector(true) * (until - next);
            next = until;
        } else if drive.bus.hold_for_read {
            at = when(next + 1);
        } else {
            at += overhead.read_disconnect_after_read;
            off = true;
        }
    }
    at + overhead.read_completion
}

#[test]
fn single_reads_take_as_long_as_their_sectors_and_the_bus_do() {
    let mut random = Pcg64::seed_from_u64(1);
    let mut gained = 0;
    for (hold, water, sector) in [
        (true, 0.75, 170),
        (true, 0.0, 170),
        (false, 0.5, 50),
        (false, 0.0, 170),
    ] {
        for len in [2, 16, 40, 80] {
            let [off, on] = [false, true].map(|zero_latency| {
                drive_of_57(zero_latency, hold, water, Nanos::from_micros(sector))
            });
            let mut drive = Drive::new(&on, 0);
            let (mut now, mut track) = (Time::ZERO, drive.layout().home());
            for tag in 0..40 {
                let start = random.next_u64() % (on.geometry.capacity.get() - len);
                let extent = Extent::at(start, len);
                let completion = read(&mut drive, now, tag, extent);
                let overhead = match tag {
                    0 => on.overhead.read_miss_after_write,
                    _ => on.overhead.read_miss_after_read,
                };
                let ready = now + overhead;
                let [plain, expected] = [&off, &on].map(|profile| {
                    let (there, last) = sectors(profile, track, ready, extent);
                    let free = ready + on.overhead.read_disconnect_after_read;
                    (sent(profile, &there, free, extent), last)
                });
                let error = completion.at.as_nanos().abs_diff(expected.0.as_nanos());
                assert!(
                    error < 1_000,
                    "{hold} {water} {sector} {extent}: {error} ns"
                );
                gained += u32::from(expected.0 + Nanos::from_micros(10) < plain.0);
                track = expected.1;
                now = completion.at + Nanos::from_micros(1_000 + random.next_u64() % 30_000);
            }
        }
    }
    assert!(
        gained > 20,
        "too few reads in which the order made a difference: {gained}"
    );
}

/// Reading ahead comes to the third track 3 sectors in front of its first. With zero-latency reads, the drive reads these
/// three. A segment of one track then has no place left for the track before.
#[test]
fn the_last_sectors_of_the_next_track_take_their_places_first() {
    for (zero_latency, segment, hit) in [
        (false, 57, Hit::Full),
        (true, 57, Hit::Miss),
        (true, 114, Hit::Full),
    ] {
        let profile = drive_of_57(zero_latency, true, 0.0, Nanos::from_micros(170)).with(|spec| {
            spec.cache.enabled = true;
            spec.cache.segment_sectors = segment;
            spec.cache.read_ahead = ReadAhead::NextTrack;
            spec.cache.read_ahead_max = 57;
        });
        let mut drive = Drive::new(&profile.unwrap(), 0);
        let across = read(&mut drive, Time::ZERO, 1, Extent::at(50, 10));
        let later = across.at + Nanos::from_millis(13);
        let again = read(&mut drive, later, 2, Extent::at(100, 4));
        assert_eq!(again.hit, hit, "{zero_latency}, segments of {segment}");
    }
}
