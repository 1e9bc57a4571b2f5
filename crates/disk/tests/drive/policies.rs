//! Policies of firmware that no shipped drive has switched on.

use crate::common::{command, ms, wait};
use headtime_disk::profile::{FirmwarePolicy, Spec, by_name};
use headtime_disk::{Drive, Profile};
use headtime_sched::Op;
use headtime_units::{Nanos, Time};

/// A drive without a buffer that serves what is nearest.
fn nearest_first(change: impl Fn(&mut Spec)) -> Profile {
    let profile = by_name("wd5000aaks").unwrap();
    let plain = profile.with(|spec| {
        spec.cache = Default::default();
        spec.noise = Default::default();
        spec.queue.policy = FirmwarePolicy::Sptf {
            margin: Nanos::ZERO,
            age_cap: None,
        };
        change(spec);
    });
    plain.unwrap()
}

/// Sixteen near reads are always in the drive beside a far one, until that is served: how many were served before it,
/// and when it completed.
fn until_the_far_one(profile: &Profile) -> Option<(u32, Time)> {
    let mut drive = Drive::new(profile, 0);
    let near = |tag: u32| command(tag, Op::Read, u64::from(tag) * 97_711 % 900_000, 8);
    // The first one goes as it comes: that is no choice.
    drive.submit(Time::ZERO, near(0));
    drive.submit(Time::ZERO, command(u32::MAX, Op::Read, 900_000_000, 8));
    (1..16).for_each(|tag| drive.submit(Time::ZERO, near(tag)));
    (0..1_000).find_map(|served| {
        let done = wait(&mut drive);
        if done.tag == u32::MAX {
            return Some((served, done.at));
        }
        drive.submit(done.at, near(served + 16));
        None
    })
}

#[test]
fn one_of_every_so_many_choices_is_the_oldest_command() {
    let plain = nearest_first(|_| {});
    assert_eq!(until_the_far_one(&plain), None);
    for every in [1, 2, 7, 100] {
        let fair = nearest_first(|spec| spec.queue.oldest_every = every);
        let served = until_the_far_one(&fair).map(|(served, _)| served);
        assert_eq!(served, Some(every));
    }
}

#[test]
fn the_oldest_command_has_its_choice_only_once_it_has_waited_for_the_least_age() {
    for age in [0, 100, 500] {
        let fair = nearest_first(|spec| {
            spec.queue.oldest_every = 2;
            spec.queue.oldest_age = ms(age);
        });
        let (_, at) = until_the_far_one(&fair).expect("it is served");
        let waited = at - Time::ZERO;
        // Two reads may be served before its turn comes, and its own takes a while.
        let in_time = ms(age) <= waited && waited < ms(age + 60);
        assert!(in_time, "{waited} with an age of {}", ms(age));
    }
}
