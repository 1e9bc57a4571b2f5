//! Policies of firmware that no shipped drive has switched on.

use crate::common::{command, ms, wait};
use headtime_disk::profile::{FirmwarePolicy, Spec, by_name};
use headtime_disk::{Command, Drive, Profile};
use headtime_sched::Op;
use headtime_units::{Nanos, Time};

/// A drive without a buffer that serves the nearest command first.
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

/// Sixteen near reads are always in the drive beside a far one, until the far one is served. Returns the number of
/// reads before it, and its completion time.
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

/// A stream of 128 KiB reads, one at a time, beside random reads. The stream's reader thinks for `think` after each
/// read. The drive always has `others` random reads, of high priority if `high` is true. Returns the number of
/// completed reads of each by 10 s, and the longest latency of a random read.
fn beside(profile: &Profile, think: Nanos, others: u32, high: bool) -> (u32, u32, Nanos) {
    const STREAM: u32 = u32::MAX;
    let mut drive = Drive::new(profile, 0);
    let end = Time::ZERO + Nanos::from_secs(10);
    let (mut stream, mut random, mut longest) = (0, 0, Nanos::ZERO);
    let mut asked = 0_u64;
    let mut submitted = Vec::new();
    let mut ask = |drive: &mut Drive, now, tag: u32| {
        asked = asked
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let start = (asked >> 33) % 100_000_000 * 8;
        let random = command(tag, Op::Read, start, 8);
        drive.submit(now, Command { high, ..random });
    };
    for tag in 0..others {
        ask(&mut drive, Time::ZERO, tag);
        submitted.push(Time::ZERO);
    }
    let mut next = Some(Time::ZERO);
    loop {
        let event = drive.next_event();
        if let Some(at) = next.filter(|at| event.is_none_or(|event| *at <= event)) {
            let sequential = command(STREAM, Op::Read, u64::from(stream) * 256, 256);
            let high = false;
            drive.submit(at, Command { high, ..sequential });
            next = None;
            continue;
        }
        let at = event.expect("something is under way");
        if at > end {
            return (stream, random, longest);
        }
        let Some(done) = drive.poll(at) else { continue };
        if done.tag == STREAM {
            stream += 1;
            next = Some(done.at + think);
        } else {
            random += 1;
            let since = &mut submitted[done.tag as usize];
            longest = longest.max(done.at - *since);
            *since = done.at;
            ask(&mut drive, done.at, done.tag);
        }
    }
}

fn held(hold: Nanos, cap: Nanos) -> Profile {
    nearest_first(|spec| {
        spec.queue.stream_hold = hold;
        spec.queue.stream_cap = cap;
    })
}

/// Without reading ahead a stream loses the arm at once: its next read comes when the arm is on its way.
#[test]
fn an_arm_that_is_held_for_a_stream_serves_its_next_read_first_up_to_the_cap() {
    let (hold, cap) = (Nanos::from_micros(300), ms(1_000));
    let thinks = Nanos::from_micros(200);
    for others in [1, 7, 15] {
        let (few, all, _) = beside(&held(Nanos::ZERO, cap), thinks, others, false);
        let (stream, random, longest) = beside(&held(hold, cap), thinks, others, false);
        let told = format!("{others} others: {stream} for {few}, {random} for {all}, {longest}");
        // A read of the stream takes more than a turn. When the stream's hold ends, the others that have waited for
        // half the cap go. More of them go until the stream is nearest.
        assert!(stream > 2 * few && stream > 500, "{told}");
        assert!(random < all / 2, "{told}");
        assert!(cap < longest && longest < cap * 2, "{told}");
    }
}

#[test]
fn an_arm_is_held_for_no_reader_that_thinks_for_longer() {
    let (hold, cap) = (Nanos::from_micros(300), ms(1_000));
    let slow = Nanos::from_micros(310);
    let (_, random, longest) = beside(&held(hold, cap), slow, 3, false);
    let (_, without, _) = beside(&held(Nanos::ZERO, cap), slow, 3, false);
    // It waits in vain after each read of the stream.
    assert!(random > without * 9 / 10, "{random} of {without}");
    assert!(longest < cap / 2, "{longest}");
}

#[test]
fn an_arm_is_held_for_nobody_with_a_cap_of_zero() {
    let thinks = Nanos::from_micros(200);
    let (hold, none) = (Nanos::from_micros(300), Nanos::ZERO);
    assert_eq!(
        beside(&held(hold, none), thinks, 3, false),
        beside(&held(none, none), thinks, 3, false)
    );
}

/// Sixteen reads of high priority are always in the drive beside another read near them. Returns the number of reads
/// before this other read, and its completion time.
fn until_the_low_one(profile: &Profile) -> Option<(u32, Time)> {
    let mut drive = Drive::new(profile, 0);
    let near = |tag: u32, high| Command {
        high,
        ..command(tag, Op::Read, u64::from(tag) * 97_711 % 900_000, 8)
    };
    let low = near(1_000_000, false);
    drive.submit(Time::ZERO, near(0, true));
    drive.submit(Time::ZERO, low);
    (1..16).for_each(|tag| drive.submit(Time::ZERO, near(tag, true)));
    (0..1_000).find_map(|served| {
        let done = wait(&mut drive);
        if done.tag == low.tag {
            return Some((served, done.at));
        }
        drive.submit(done.at, near(served + 16, true));
        None
    })
}

#[test]
fn a_command_without_priority_waits_for_all_that_have_it_but_for_the_cap_on_its_age() {
    let (served, _) = until_the_low_one(&nearest_first(|_| {})).expect("it is as near as any");
    assert!(served < 100, "{served}");
    let strict = nearest_first(|spec| spec.queue.ncq_prio = true);
    assert_eq!(until_the_low_one(&strict), None);
    for cap in [100, 1_000] {
        let capped = strict.with(|spec| {
            spec.queue.policy = FirmwarePolicy::Sptf {
                margin: Nanos::ZERO,
                age_cap: Some(ms(cap)),
            }
        });
        let (_, at) = until_the_low_one(&capped.unwrap()).expect("it grows old");
        let waited = at - Time::ZERO;
        assert!(
            ms(cap) < waited && waited < ms(cap + 400),
            "{waited} of {}",
            ms(cap)
        );
    }
}

#[test]
fn a_command_without_priority_has_the_choice_that_is_the_oldests() {
    let fair = nearest_first(|spec| {
        spec.queue.ncq_prio = true;
        spec.queue.oldest_every = 7;
    });
    assert_eq!(until_the_low_one(&fair).map(|(served, _)| served), Some(7));
}

/// The drive as shipped reads ahead for a stream up to the cap; without a buffer the arm is held for it.
#[test]
fn a_read_of_high_priority_beside_a_stream_does_not_wait_for_the_cap() {
    let shipped = by_name("wd5000aaks").unwrap();
    let bare = held(Nanos::from_micros(300), ms(1_000));
    let thinks = Nanos::from_micros(200);
    for profile in [shipped, bare] {
        let profile = profile
            .with(|spec| spec.queue.stream_cap = ms(1_000))
            .unwrap();
        let knows = profile.with(|spec| spec.queue.ncq_prio = true).unwrap();
        let (_, few, long) = beside(&profile, thinks, 1, true);
        assert!(few < 30 && long > ms(1_000), "{few} reads, {long}");
        let (stream, many, longest) = beside(&knows, thinks, 1, true);
        // One under way ends first; then a seek and a turn.
        assert!(longest < ms(60), "{longest}");
        assert!(
            many > 300 && stream > 0,
            "{many} reads, {stream} of the stream"
        );
        assert_eq!(
            beside(&knows, thinks, 1, false),
            beside(&profile, thinks, 1, false)
        );
    }
}
