//! What a model says passes in a window, against each sector asked one by one.

use headtime_disk::Model;
use headtime_disk::layout::Slot;
use headtime_disk::profile::{self, Profile};
use headtime_sched::{Op, Pass, Passing, Positioning};
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

/// All addresses of a track pass in a turn, unless one is under the head at both ends of it.
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
