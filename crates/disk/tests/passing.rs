//! Sectors that a model reports as passing in a window, compared with each sector alone.

use headtime_disk::Model;
use headtime_disk::layout::Slot;
use headtime_disk::profile::{self, Profile};
use headtime_sched::{HeadAfter, Op, Pass, Passing, Positioning};
use headtime_units::{Extent, Lba, Nanos, Sectors, Time, Track};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::collections::BTreeMap;

/// Each address that passes whole, with when it begins and ends, by the angle of its slot alone.
fn one_by_one(
    model: &Model,
    track: Track,
    from: Time,
    span: Nanos,
) -> BTreeMap<Lba, (Nanos, Nanos)> {
    let (layout, mechanics) = (model.layout(), model.mechanics());
    let slots = layout.sectors_per_track(track).unwrap_or(0);
    let begins =
        |slot: u32| mechanics.phase(layout.slot_angle(track, slot % slots).expect("there"));
    let mut all = BTreeMap::new();
    for slot in 0..slots {
        let Some(Slot::Data(lba)) = layout.slot(track, slot) else {
            continue;
        };
        let begin = mechanics.wait(mechanics.phase_at(from), begins(slot));
        let long = mechanics.wait(begins(slot), begins(slot + 1));
        let long = if long.is_zero() {
            mechanics.turn()
        } else {
            long
        };
        if begin + long <= span {
            all.insert(lba, (begin, begin + long));
        }
    }
    all
}

fn passes(model: &Model, track: Track, from: Time, span: Nanos) -> Vec<Pass> {
    let mut all = Vec::new();
    model.passing(track, from, span, &mut |pass| all.push(pass));
    all
}

fn near(one: Nanos, other: Nanos) -> bool {
    one.max(other) - one.min(other) <= Nanos::from_nanos(2)
}

fn check(profile: &Profile, rounds: u32) {
    let model = Model::new(profile);
    let mut random = Pcg64::seed_from_u64(1);
    let capacity = model.layout().capacity().get();
    let turn = model.mechanics().turn().as_nanos();
    let mut seen = 0;
    for round in 0..rounds {
        let lba = random.next_u64() % capacity;
        let track = model.track(model.start(Extent::at(lba, 1)));
        let from = Time::from_nanos(random.next_u64() >> 20);
        let span = Nanos::from_nanos(match round % 8 {
            0 => turn,
            1 => 0,
            2 => random.next_u64() % (turn / 50),
            _ => random.next_u64() % turn,
        });
        let truth = one_by_one(&model, track, from, span);
        let mut told = BTreeMap::new();
        for pass in passes(&model, track, from, span) {
            assert!(!pass.extent.is_empty() && pass.end <= span);
            for nth in 0..pass.extent.len.get() {
                let lba = pass.extent.start + Sectors::new(nth);
                let times = (pass.ended(nth), pass.ended(nth + 1));
                assert_eq!(told.insert(lba, times), None, "{lba} passes twice");
            }
        }
        assert!(
            told.keys().eq(truth.keys()),
            "{track:?} from {from} for {span}"
        );
        for (lba, (begin, end)) in &told {
            let (first, last) = truth[lba];
            assert!(
                near(*begin, first) && near(*end, last),
                "{lba}: {begin} {end}, is {first} {last}"
            );
        }
        seen += told.len();
        // Nothing of a track that there is not.
        let nowhere = Track {
            cylinder: headtime_units::Cylinder(u32::MAX),
            ..track
        };
        assert!(model.addresses(nowhere).is_empty());
        assert_eq!(passes(&model, nowhere, from, span), []);
    }
    assert!(seen > 10 * rounds as usize, "{seen}");
}

#[test]
fn what_passes_is_what_each_sector_says_of_itself() {
    for name in [
        "atlas10k",
        "cheetah9lp",
        "ibm18es",
        "hp-c2247a",
        "exos-x18",
        "nearline-20tb",
    ] {
        check(&profile::by_name(name).expect("shipped"), 120);
    }
}

#[test]
fn what_passes_on_drives_that_could_have_been_is_what_each_sector_says() {
    for seed in 0..40 {
        let profile = profile::by_name(&format!("plausible-{seed}")).expect("drawn");
        check(&profile, 40);
    }
}

/// All addresses of a track pass in a turn, except an address that is under the head at both ends of the turn.
#[test]
fn in_a_turn_all_but_one_pass() {
    let model = Model::new(&profile::by_name("atlas10k").expect("shipped"));
    let turn = model.mechanics().turn();
    for nth in 0..200 {
        let lba = Lba::new(nth * 89_000);
        let track = model.track(model.start(Extent::new(lba, Sectors::new(1))));
        let all = model.addresses(track).len.get();
        let passed: u64 = passes(&model, track, Time::from_nanos(nth * 7_777_777), turn)
            .iter()
            .map(|pass| pass.extent.len.get())
            .sum();
        assert!((all - 1..=all).contains(&passed), "{passed} of {all}");
    }
}

#[test]
fn ways_are_no_shorter_than_their_bound() {
    for name in ["atlas10k", "exos-x18"] {
        let model = Model::new(&profile::by_name(name).expect("shipped"));
        let mut random = Pcg64::seed_from_u64(3);
        let mut track = || Track {
            cylinder: headtime_units::Cylinder(random.next_u64() as u32 % model.cylinders()),
            head: headtime_units::Head(random.next_u64() as u16 % model.heads()),
        };
        for _ in 0..2_000 {
            let (from, to) = (track(), track());
            let distance = from.cylinder.distance(to.cylinder);
            for op in [Op::Read, Op::Write] {
                assert!(model.way(from, to, op) >= model.way_at_least(distance));
            }
            assert_eq!(model.way(from, from, Op::Read), Nanos::ZERO);
        }
    }
}

/// Profiles that say different things of when the arm may leave, and one whose layout is a map.
fn several() -> Vec<Model> {
    let names = [
        "atlas10k",
        "hp-c2247a",
        "exos-x18",
        "nearline-20tb",
        "plausible-3",
    ];
    let profiles = names.map(|name| profile::by_name(name).expect("there is such a one"));
    profiles.iter().map(Model::new).collect()
}

fn any_track(model: &Model, random: &mut Pcg64) -> Track {
    let lba = random.next_u64() % model.layout().capacity().get();
    model.track(model.start(Extent::at(lba, 1)))
}

#[test]
fn the_latest_time_to_leave_is_the_latest_at_which_the_head_arrives_in_time() {
    for model in several() {
        let mut random = Pcg64::seed_from_u64(5);
        let (mut some, mut none) = (0, 0);
        for round in 0..4_000 {
            let (from, to) = (
                any_track(&model, &mut random),
                any_track(&model, &mut random),
            );
            let to = Track {
                cylinder: match round % 3 {
                    0 => from.cylinder,
                    _ => to.cylinder,
                },
                ..to
            };
            let op = [Op::Read, Op::Write][round % 2];
            let sent = Time::from_nanos(1_000_000_000);
            let by = sent + Nanos::from_nanos(random.next_u64() % 30_000_000);
            let read = Extent::new(model.addresses(from).start, Sectors::new(1));
            let arrives = |free| {
                let place = model.left_by(read, Op::Read);
                model.arrives(&HeadAfter { place, free }, sent, to, op)
            };
            if model.track(model.left_by(read, Op::Read)) != from {
                // A remapped sector.
                continue;
            }
            match model.leaves(from, sent, to, by, op) {
                Some(free) => {
                    some += 1;
                    assert!(arrives(free) <= by);
                    assert!(arrives(free + Nanos::from_nanos(1)) > by);
                }
                None => {
                    none += 1;
                    assert!(arrives(Time::ZERO) > by);
                }
            }
        }
        assert!(some > 1_000 && none > 100, "{some} {none}");
    }
}

#[test]
fn no_other_surface_of_a_cylinder_is_nearer_than_the_same() {
    for model in several() {
        let mut random = Pcg64::seed_from_u64(6);
        let now = Time::from_nanos(1_000_000_000);
        for _ in 0..2_000 {
            let (from, to) = (
                any_track(&model, &mut random),
                any_track(&model, &mut random),
            );
            if from.cylinder == to.cylinder {
                continue;
            }
            let read = Extent::new(model.addresses(from).start, Sectors::new(1));
            let head = HeadAfter {
                place: model.left_by(read, Op::Read),
                free: now,
            };
            let from = model.track(head.place);
            let same = Track {
                head: from.head,
                ..to
            };
            let by = now + Nanos::from_millis(40);
            for op in [Op::Read, Op::Write] {
                assert!(model.arrives(&head, now, same, op) <= model.arrives(&head, now, to, op));
                let back = |track| model.leaves(track, now, from, by, op);
                assert!(back(same) >= back(to));
            }
        }
    }
}

#[test]
fn the_parts_of_a_track_say_where_its_addresses_are() {
    for model in several() {
        let mut random = Pcg64::seed_from_u64(7);
        for _ in 0..200 {
            let track = any_track(&model, &mut random);
            let slots = model
                .layout()
                .sectors_per_track(track)
                .expect("it has some");
            let mut told = BTreeMap::new();
            model.parts(track, &mut |part| {
                for nth in 0..part.extent.len.get() {
                    let lba = part.extent.start + Sectors::new(nth);
                    assert_eq!(told.insert(lba, part.angle(nth)), None);
                }
            });
            let here = model.addresses(track);
            let mut seen = 0;
            for slot in 0..slots {
                if let Some(Slot::Data(lba)) = model.layout().slot(track, slot)
                    && here.start <= lba
                    && lba < here.end()
                {
                    let angle = model.layout().slot_angle(track, slot).expect("there");
                    let off = (told[&lba] - angle)
                        .to_bits()
                        .min((angle - told[&lba]).to_bits());
                    assert!(off <= 4, "{lba}: {off} of 2^32");
                    seen += 1;
                }
            }
            assert_eq!(seen, told.len());
        }
        let turn = model.mechanics().turn();
        for at in [0, 1, 777_777, 123_456_789_012] {
            let now = Time::from_nanos(at);
            let phase = model.angle_at(now).time(turn);
            assert!(near(phase, model.mechanics().phase_at(now)), "{now}");
        }
    }
}

/// The drive reads on after a read, unless the disk ends there.
#[test]
fn the_head_is_busy_for_a_while_behind_a_read() {
    for model in several() {
        let mut random = Pcg64::seed_from_u64(8);
        for _ in 0..500 {
            let track = any_track(&model, &mut random);
            let here = model.addresses(track);
            let along = random.next_u64() % here.len.get();
            let head = HeadAfter {
                place: model.left_by(Extent::at(1_000, 8), Op::Read),
                free: Time::from_nanos(1_000_000_000),
            };
            let read = Extent::new(here.start + Sectors::new(along), Sectors::new(1));
            let done = model.follow(&head, head.free, read, Op::Read);
            let end = head.free + done.seek + done.rotation + done.transfer;
            if read.end() < Lba::ZERO + model.layout().capacity() {
                assert!(done.head.free >= end + model.lingers(), "{read}");
            }
            // A read of several sectors up to the end of the track.
            let len = 1 + random.next_u64() % (here.end() - read.start).get();
            let read = Extent::new(read.start, Sectors::new(len));
            let done = model.follow(&head, head.free, read, Op::Read);
            let begin = head.free + done.seek + done.rotation;
            let one_by_one =
                len == 1 || done.rotation < model.turn().expect("it turns") - done.transfer;
            if one_by_one && read.end() < Lba::ZERO + model.layout().capacity() {
                let paced = model.pace() * len + model.lingers();
                assert!(done.head.free >= begin + paced, "{read}");
            }
        }
    }
}
