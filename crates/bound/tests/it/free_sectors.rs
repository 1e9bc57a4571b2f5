//! If a drive takes sectors in any order, its buffer holds no more sectors than have passed under the head.

use crate::draw::replay;
use headtime_bound::{Machine, Term};
use headtime_disk::drive::{Command, Drive, Hit};
use headtime_disk::profile::{self, NoiseSpec, Profile};
use headtime_disk::{Layout, Mechanics};
use headtime_sched::Op;
use headtime_units::{Extent, Lba, Nanos, Sectors, Time};
use std::sync::Arc;

fn calm(name: &str) -> Profile {
    let profile = profile::by_name(name).expect("shipped");
    let calm = profile.with(|spec| spec.noise = NoiseSpec::default());
    calm.expect("in range")
}

/// Returns a drive that reads a part of a track ahead, into a segment of several tracks.
fn lengthened() -> Profile {
    let lengthened = calm("wd5000aaks").with(|spec| {
        (spec.cache.segments, spec.cache.segment_sectors) = (4, 8_000);
        spec.cache.write_segments = 2;
        spec.cache.read_ahead_max = 300;
        spec.bus.interface_sector = Nanos::from_nanos(100);
    });
    lengthened.expect("in range")
}

/// Returns the arm's term for some reads of a drive.
fn arm(profile: &Profile, layout: &Layout, reads: &[Extent]) -> Nanos {
    let machine = Machine {
        array: None,
        profile,
        layout,
        depth: 1,
        merge: None,
    };
    let asked: Vec<_> = reads.iter().map(|extent| (Op::Read, *extent)).collect();
    let mut replay = replay(profile, &asked, 1);
    machine.source(&mut replay).expect("few").term(Term::Arm)
}

/// Reads 8 sectors of a track, `eighths` into the track, and the rest of the track in pieces of `sectors`. Waits while
/// the drive reads ahead. Then reads the front of the track, and continues after the track as far as the buffer has the
/// data. Returns the reads, with the time of each completion.
fn read_around(
    profile: &Profile,
    layout: &Arc<Layout>,
    track: Extent,
    eighths: u64,
    waits: Nanos,
    sectors: Sectors,
) -> Vec<(Extent, Time)> {
    let mut drive = Drive::with_layout(profile, Arc::clone(layout), 1);
    let mut read = |now: Time, extent: Extent| {
        drive.submit(
            now,
            Command {
                tag: 0,
                op: Op::Read,
                extent,
                fua: false,
                high: false,
            },
        );
        loop {
            let at = drive.next_event().expect("it completes");
            if let Some(done) = drive.poll(at) {
                return done;
            }
        }
    };
    let first = Extent::at(track.start.get() + track.len.get() * eighths / 8 - 8, 8);
    let mut reads = vec![(first, read(Time::ZERO, first).at)];
    let turn = profile.rotation.turn();
    // The reads follow the head at its speed.
    let mut now = reads[0].1 + turn / 16;
    let mut at = first.end();
    while at < track.end() {
        let next = Extent::new(at, sectors.min(track.end() - at));
        now += turn * next.len.get() / track.len.get();
        now = read(now, next).at;
        reads.push((next, now));
        at = next.end();
    }
    let mut next = Extent::new(track.start, first.start - track.start);
    now += waits;
    for _ in 0..40 {
        let done = read(now, next);
        if done.hit != Hit::Full {
            break;
        }
        now = done.at;
        reads.push((next, now));
        next = Extent::new(at, sectors);
        at = next.end();
    }
    reads
}

#[test]
fn the_buffer_has_nothing_that_has_not_passed() {
    let mut most = 0.0_f64;
    for (name, from) in [
        ("exos-x18", 0.0),
        ("exos-x18", 0.99),
        ("barracuda-7200.10-160", 0.0),
        ("barracuda-7200.10-160", 0.99),
        ("wd5000aaks", 0.0),
        ("wd5000aaks", 0.99),
        ("atlas10k", 0.9),
        // Read-ahead would end on the track. The reads extend it to the next track.
        ("lengthened", 0.0),
    ] {
        let profile = match name {
            "lengthened" => lengthened(),
            name => calm(name),
        };
        let layout = Arc::new(Layout::new(&profile));
        let capacity = profile.geometry.capacity.get();
        let turn = profile.rotation.turn();
        let track = layout.track_extent_of(Lba::new((capacity as f64 * from) as u64 + 100_000));
        let draws = [1, 3, 5, 8].into_iter();
        for (eighths, tenths) in
            draws.flat_map(|eighths| (0..12).map(move |tenths| (eighths, tenths)))
        {
            let waits = turn / 10 * tenths;
            let sectors = Sectors::new([100, 250, 100, 900][tenths as usize % 4]);
            let done = read_around(&profile, &layout, track, eighths, waits, sectors);
            let reads: Vec<Extent> = done.iter().map(|(extent, _)| *extent).collect();
            let passed = passed(&profile, &layout, &reads);
            for ((_, at), passed) in done.iter().zip(&passed) {
                let took = *at - Time::ZERO;
                assert!(
                    *passed <= took,
                    "{name} at {track}: {passed}, {took}, {reads:?}"
                );
                most = most.max(passed.as_secs_f64() / took.as_secs_f64());
            }
            let bound = arm(&profile, &layout, &reads);
            let took = done[done.len() - 1].1 - Time::ZERO;
            assert!(
                bound <= took,
                "{name} at {track}: {bound}, {took}, {reads:?}"
            );
        }
    }
    // The test is of use only if sectors pass during nearly all the time.
    assert!(most > 0.95, "{most}");
}

/// Returns for each read the time in which all sectors up to this read pass under the head, with the arm's first
/// movement.
fn passed(profile: &Profile, layout: &Layout, reads: &[Extent]) -> Vec<Nanos> {
    let mechanics = Mechanics::new(profile);
    let to = layout.run(reads[0].start).track;
    let mut passed = mechanics.reposition(layout.home(), to, Op::Read).total();
    let passes = |extent: &Extent| {
        let per_track = layout.zone_of(extent.start).sectors_per_track;
        let turns = extent.len.get() * mechanics.turn().as_nanos();
        passed += Nanos::from_nanos(turns.div_ceil(u64::from(per_track)));
        passed
    };
    reads.iter().map(passes).collect()
}
