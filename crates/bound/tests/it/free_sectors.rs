//! A drive that takes sectors in any order has more in its buffer than has passed under its head.

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

/// The arm's term for some reads of a drive.
fn arm(profile: &Profile, layout: &Layout, reads: &[Extent]) -> Nanos {
    let machine = Machine {
        profile,
        layout,
        depth: 1,
        merge: None,
    };
    let asked: Vec<_> = reads.iter().map(|extent| (Op::Read, *extent)).collect();
    let mut replay = replay(profile, &asked, 1);
    machine.source(&mut replay).expect("few").term(Term::Arm)
}

/// Reads the end of a track, waits while the drive reads on, and then has all of the track and what
/// was read behind it from the buffer: the reads, and when each was done.
fn read_by_its_end(
    profile: &Profile,
    layout: &Arc<Layout>,
    track: Extent,
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
    let last = Extent::new(Lba::new(track.end().get() - 8), Sectors::new(8));
    let mut reads = vec![(last, read(Time::ZERO, last).at)];
    let front = Extent::new(track.start, track.len - Sectors::new(8));
    let (mut now, mut next) = (reads[0].1 + waits, front);
    for _ in 0..40 {
        let done = read(now, next);
        if done.hit != Hit::Full {
            break;
        }
        now = done.at;
        reads.push((next, now));
        let behind = if next == front {
            track.end()
        } else {
            next.end()
        };
        next = Extent::new(behind, sectors);
    }
    reads
}

#[test]
fn what_the_buffer_has_without_reading_it_is_not_counted() {
    let mut more = 0;
    for (name, from) in [
        ("exos-x18", 0.99),
        ("barracuda-7200.10-160", 0.99),
        ("wd5000aaks", 0.99),
        ("atlas10k", 0.9),
    ] {
        let profile = calm(name);
        let layout = Arc::new(Layout::new(&profile));
        let capacity = profile.geometry.capacity.get();
        let turn = profile.rotation.turn();
        let mut at = Lba::new((capacity as f64 * from) as u64);
        for _ in 0..3 {
            let track = layout.track_extent_of(at);
            at = track.end();
            for eighths in 20..36 {
                let (waits, sectors) =
                    (turn / 32 * eighths, Sectors::new(eighths * 47 % 1400 + 100));
                let done = read_by_its_end(&profile, &layout, track, waits, sectors);
                for count in 2..=done.len() {
                    let reads: Vec<Extent> =
                        done[..count].iter().map(|(extent, _)| *extent).collect();
                    let took = done[count - 1].1 - Time::ZERO;
                    let bound = arm(&profile, &layout, &reads);
                    assert!(bound <= took, "{name} at {at}: {bound}, {took}, {reads:?}");
                    more += u32::from(physically(&profile, &layout, &reads) > took);
                }
            }
        }
    }
    // It is for these that the bound of such drives is lower.
    assert!(
        more > 0,
        "the drive has no more than has passed: the bound can be raised"
    );
}

/// What the sectors of some reads take to pass, after the arm has come there.
fn physically(profile: &Profile, layout: &Layout, reads: &[Extent]) -> Nanos {
    let mechanics = Mechanics::new(profile);
    let to = layout.run(reads[0].start).track;
    let way = mechanics.reposition(layout.home(), to, Op::Read).total();
    let passing = reads.iter().map(|extent| {
        let per_track = layout.zone_of(extent.start).sectors_per_track;
        let turns = extent.len.get() * mechanics.turn().as_nanos();
        Nanos::from_nanos(turns.div_ceil(u64::from(per_track)))
    });
    way + passing.sum()
}
