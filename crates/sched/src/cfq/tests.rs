//! Rules of the policy, one by one, and what follows from them.

use super::*;
use crate::tests::{at, read, write};
use crate::{Class, Flags, Hz, Op, Origin};
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

const HZ_1000: Hz = Hz::new(1_000).expect("it is allowed");

/// With ticks of a millisecond, so that times come out as they are written.
fn fine() -> Cfq {
    Cfq::new(CfqConfig {
        hz: HZ_1000,
        ..CfqConfig::DEFAULT
    })
}

fn of(process: u32, request: Request) -> Request {
    let origin = Origin {
        process,
        ..Origin::default()
    };
    Request { origin, ..request }
}

fn class(class: Class, request: Request) -> Request {
    Request { class, ..request }
}

fn sync(request: Request) -> Request {
    let flags = Flags::SYNC;
    Request { flags, ..request }
}

/// The process and address of what is handed out now; `None` if it is to wait, or nothing is queued.
fn next(sched: &mut Cfq, now: Time) -> Option<Request> {
    match sched.dispatch(now) {
        Dispatch::Request(request) => Some(request),
        Dispatch::IdleUntil(until) => {
            assert!(until > now);
            None
        }
        Dispatch::Empty => None,
    }
}

/// Until when it keeps the disk free.
fn idle_until(sched: &mut Cfq, now: Time) -> Option<Time> {
    match sched.dispatch(now) {
        Dispatch::IdleUntil(until) => Some(until),
        _ => None,
    }
}

/// Hands out what must be this tag, and completes it.
fn serve(sched: &mut Cfq, tag: u32, from: Time, to: Time) {
    let request = next(sched, from).expect("it has a request to serve");
    assert_eq!(request.tag, Tag(tag));
    sched.completed(to, &request);
}

/// Who reads or writes, one request after the other.
#[derive(Clone, Copy, Debug)]
struct Program {
    process: u32,
    op: Op,
    start: u64,
    /// From the start of one request to that of the next.
    stride: u64,
    think: Nanos,
}

impl Program {
    fn reader(process: u32, start: u64) -> Program {
        Program {
            process,
            op: Op::Read,
            start,
            stride: 256,
            think: Nanos::from_micros(50),
        }
    }
}

/// Something that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Given {
    at: Time,
    process: u32,
}

/// Runs programs for so long on a drive that takes as many requests as `depth` and completes one
/// after the other, each in 2 ms; and says what was handed out. Completions go before arrivals and
/// these before the end of waits, each followed by asking for requests.
fn run(sched: &mut Cfq, programs: &[Program], depth: usize, length: Nanos) -> Vec<Given> {
    const SERVICE: Nanos = Nanos::from_millis(2);
    const SECTORS: u64 = 256;
    let end = Time::ZERO + length;
    let mut arrivals: Vec<(Time, u64)> = programs.iter().map(|p| (Time::ZERO, p.start)).collect();
    let mut drive: VecDeque<(Time, Request)> = VecDeque::new();
    let (mut wakes, mut given, mut now) = (Time::NEVER, Vec::new(), Time::ZERO);
    while now < end {
        let arrival = arrivals.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let (who, (arrives, lba)) = arrival.map(|(who, next)| (who, *next)).expect("programs");
        let done = drive.front().map_or(Time::NEVER, |(done, _)| *done);
        now = done.min(arrives).min(wakes);
        wakes = Time::NEVER;
        if done == now {
            let (_, request) = drive.pop_front().expect("there is one");
            sched.completed(now, &request);
            let who = request.tag.index();
            let lba = request.extent.start.get() + programs[who].stride;
            arrivals[who] = (now + programs[who].think, lba);
        } else if arrives == now {
            let request = Request {
                op: programs[who].op,
                extent: Extent::at(lba, SECTORS),
                arrival: now,
                ..of(programs[who].process, read(who as u32, 0, 0))
            };
            arrivals[who].0 = Time::NEVER;
            sched.insert(now, request);
        }
        while drive.len() < depth {
            match sched.dispatch(now) {
                Dispatch::Request(request) => {
                    let start = drive.back().map_or(now, |(done, _)| *done);
                    drive.push_back((start + SERVICE, request));
                    let process = request.origin.process;
                    given.push(Given { at: now, process });
                }
                Dispatch::IdleUntil(until) => {
                    wakes = until;
                    break;
                }
                Dispatch::Empty => break,
            }
        }
    }
    given
}

/// Runs of one process: who, from when, and how many requests.
fn turns(given: &[Given]) -> Vec<(u32, Time, usize)> {
    let mut turns: Vec<(u32, Time, usize)> = Vec::new();
    for one in given {
        match turns.last_mut() {
            Some((process, _, count)) if *process == one.process => *count += 1,
            _ => turns.push((one.process, one.at, 1)),
        }
    }
    turns
}

#[test]
fn equal_readers_take_turns_of_a_slice() {
    let readers = [0, 1].map(|p| Program::reader(p, 10_000_000 * u64::from(p)));
    for (mut sched, tick) in [(fine(), 1), (Cfq::default(), 4)] {
        let given = run(&mut sched, &readers, 1, Nanos::from_secs(3));
        let turns = turns(&given);
        assert!(turns.len() > 20, "{turns:?}");
        for pair in turns.windows(2) {
            let (length, others) = (pair[1].1 - pair[0].1, pair[1].0 != pair[0].0);
            // 2 ms to the first completion, and 100 ms less what was gone of its tick; then the
            // request on which the slice ends, with the time to think before it.
            let least = Nanos::from_millis(102 - tick);
            let most = Nanos::from_micros(102_000 + 2_050);
            assert!(others && least < length && length <= most, "{length}");
        }
    }
}

#[test]
fn ten_readers_get_equal_shares() {
    let readers: Vec<Program> = (0..10)
        .map(|p| Program::reader(p, 10_000_000 * u64::from(p)))
        .collect();
    let given = run(&mut Cfq::default(), &readers, 1, Nanos::from_secs(20));
    let counts: Vec<usize> = (0..10)
        .map(|p| given.iter().filter(|g| g.process == p).count())
        .collect();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    let (least, most) = (*least.expect("ten"), *most.expect("ten"));
    assert!(most - least <= most / 8, "{counts:?}");
    let order: Vec<u32> = turns(&given).iter().map(|(p, ..)| *p).collect();
    assert_eq!(order[10..20], order[20..30], "round robin");
}

#[test]
fn a_slice_is_counted_from_its_first_completion() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    sched.insert(at(0), of(0, read(1, 8, 0)));
    sched.insert(at(0), of(1, read(2, 90_000_000, 0)));
    let first = next(&mut sched, at(0)).expect("the first");
    // Before anything completed, no time counts.
    let second = next(&mut sched, at(300)).expect("the same queue");
    assert_eq!((first.tag, second.tag), (Tag(0), Tag(1)));
    sched.completed(at(400), &first);
    sched.insert(at(499), of(0, read(3, 16, 499)));
    assert_eq!(sched.slice.and_then(|s| s.end), Some(Jiffies::new(500)));
    assert_eq!(next(&mut sched, at(499)).map(|r| r.tag), Some(Tag(3)));
    sched.insert(at(499), of(0, read(4, 24, 499)));
    assert_eq!(next(&mut sched, at(500)).map(|r| r.tag), Some(Tag(2)));
}

#[test]
fn the_disk_is_kept_free_for_eight_milliseconds() {
    for (mut sched, expected) in [
        (fine(), at(18)),
        // Two ticks of 4 ms; the one that is under way counts.
        (Cfq::default(), at(16)),
    ] {
        sched.insert(at(0), of(0, read(0, 0, 0)));
        sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
        serve(&mut sched, 0, at(0), at(10));
        assert_eq!(idle_until(&mut sched, at(10)), Some(expected));
        // Another process' request changes nothing, its own ends the wait.
        sched.insert(at(12), of(2, read(2, 80_000_000, 12)));
        assert_eq!(idle_until(&mut sched, at(12)), Some(expected));
        sched.insert(at(13), of(0, read(0, 8, 13)));
        serve(&mut sched, 0, at(13), at(14));
        // Once the wait is over, the turn is the next one's.
        let again = idle_until(&mut sched, at(14)).expect("it waits again");
        assert_eq!(next(&mut sched, again).map(|r| r.tag), Some(Tag(1)));
    }
}

#[test]
fn the_disk_is_not_kept_free_while_anything_is_in_the_drive() {
    let mut sched = fine();
    sched.insert(at(0), write(0, 50_000_000, 0));
    let background = next(&mut sched, at(0)).expect("the write");
    // Taking over from what nobody waits for.
    sched.insert(at(1), of(0, read(1, 0, 1)));
    sched.insert(at(1), of(1, read(2, 90_000_000, 1)));
    serve(&mut sched, 1, at(1), at(2));
    assert_eq!(next(&mut sched, at(2)).map(|r| r.tag), Some(Tag(2)));
    sched.completed(at(3), &background);
}

#[test]
fn the_disk_is_kept_while_requests_of_the_queue_are_in_the_drive() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
    let first = next(&mut sched, at(0)).expect("the first");
    assert_eq!(next(&mut sched, at(1)), None, "its request is in the drive");
    sched.completed(at(2), &first);
    assert_eq!(idle_until(&mut sched, at(2)), Some(at(10)));
}

/// A process whose requests are far from each other, and another that has one waiting; after the
/// last completion, at 41 ms.
fn seek(sched: &mut dyn Scheduler) {
    for (i, ms, done) in [(0, 0, 10), (1, 11, 21), (2, 22, 32), (7, 33, 41)] {
        let request = of(0, read(0, 10_000_000 * i, ms));
        sched.insert(at(ms), request);
        assert_eq!(sched.dispatch(at(ms)), Dispatch::Request(request));
        if done == 41 {
            sched.insert(at(40), of(1, read(1, 90_000_000, 40)));
        }
        sched.completed(at(done), &request);
    }
}

fn seeking(mut sched: Cfq, drive_queues: bool) -> Cfq {
    sched.drive.queues = drive_queues;
    seek(&mut sched);
    sched
}

#[test]
fn who_seeks_is_waited_for_two_milliseconds_in_whole_ticks() {
    let now = at(41);
    for (hz, expected) in [(1_000, at(43)), (250, at(44)), (100, at(50))] {
        let hz = Hz::new(hz).expect("it is allowed");
        let config = CfqConfig {
            hz,
            ..CfqConfig::DEFAULT
        };
        // In ticks of 10 ms the wait is never longer than for others: one tick.
        let mut sched = seeking(Cfq::new(config), false);
        let until = idle_until(&mut sched, now).expect("it waits");
        assert_eq!(until, expected, "at {} Hz", hz.get());
        assert_eq!(next(&mut sched, until).map(|r| r.tag), Some(Tag(1)));
    }
}

#[test]
fn a_new_one_believes_of_the_drive_what_its_device_would_have_shown() {
    use crate::{Knowledge, NoPositioning, Spec};
    // What the device takes at once, with one committed ahead; and whether it is taken to queue.
    for (options, handed_out_max, queues) in [
        ("", None, true),
        ("", Some(2), false),
        ("", Some(4), false),
        ("", Some(5), true),
        ("", Some(32), true),
        (":hw_tag=cold", Some(2), true),
        (":hw_tag=cold", None, true),
        // Four quanta of a queue that is alone are what is ever in the drive.
        (":quantum=1", Some(32), false),
        (":quantum=2", Some(32), true),
    ] {
        let spec: Spec = std::format!("cfq{options}").parse().expect("a scheduler");
        let config = CfqConfig {
            quantum: match options {
                ":quantum=1" => 1,
                ":quantum=2" => 2,
                _ => 4,
            },
            hw_tag: match options {
                ":hw_tag=cold" => HwTag::Cold,
                _ => HwTag::Sampled,
            },
            ..CfqConfig::DEFAULT
        };
        let mut sched = Cfq::on(handed_out_max, config);
        assert_eq!(sched.drive.queues, queues, "{spec} {handed_out_max:?}");
        sched.drive.queues = !queues;
        sched.drain();
        assert_eq!(
            sched.drive.queues, queues,
            "{spec} {handed_out_max:?}, drained"
        );
        // And so it is built: whoever seeks is waited for, or not.
        let knowledge = Knowledge {
            handed_out_max,
            ..Knowledge::<NoPositioning>::default()
        };
        let mut built = spec.build(knowledge).expect("it needs nothing");
        seek(built.as_mut());
        let waits = matches!(built.dispatch(at(41)), Dispatch::IdleUntil(_));
        assert_eq!(waits, !queues, "{spec} {handed_out_max:?}");
    }
}

#[test]
fn who_seeks_is_not_waited_for_if_the_drive_queues() {
    let mut sched = seeking(fine(), true);
    assert_eq!(next(&mut sched, at(41)).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn who_thinks_long_is_not_waited_for() {
    let mut sched = fine();
    let waits_after = |sched: &mut Cfq, think: u64, from: u64| {
        let mut waits = Vec::new();
        let mut now = from;
        for i in 0..8 {
            sched.insert(at(now), of(0, read(0, from * 1_000 + 8 * i, now)));
            serve(sched, 0, at(now), at(now + 1));
            waits.push(sched.slice.is_some_and(|slice| slice.timer.is_some()));
            now += 1 + think;
        }
        waits
    };
    // Decided with the third sample, of which the first is no think time.
    let waits = waits_after(&mut sched, 12, 0);
    assert_eq!(waits[..2], [true, true]);
    assert!(waits[3..].iter().all(|waits| !waits), "{waits:?}");
    // Who thinks less again is waited for again.
    let waits = waits_after(&mut sched, 1, 1_000);
    assert_eq!(waits.last(), Some(&true), "{waits:?}");
}

#[test]
fn nobody_is_waited_for_with_slice_idle_zero() {
    let config = CfqConfig {
        slice_idle: Nanos::ZERO,
        ..CfqConfig::DEFAULT
    };
    let mut sched = Cfq::new(config);
    sched.insert(at(0), of(0, read(0, 0, 0)));
    sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
    serve(&mut sched, 0, at(0), at(1));
    assert_eq!(next(&mut sched, at(1)).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn whether_the_drive_queues_is_seen_in_51_completions() {
    let mut sched = fine();
    assert!(sched.drive.queues, "assumed at first");
    // Requests of one origin, with `queued` of them left at each completion.
    let complete = |sched: &mut Cfq, depth: u32, queued: u32, count: u32| {
        for tag in 0..depth + queued {
            sched.insert(at(0), read(tag, 1_000 * u64::from(tag), 0));
        }
        let mut drive = VecDeque::new();
        for _ in 0..count {
            while drive.len() < depth as usize {
                drive.push_back(next(sched, at(0)).expect("there is room"));
            }
            let request: Request = drive.pop_front().expect("there is one");
            sched.completed(at(0), &request);
            sched.insert(at(0), request);
        }
        for request in drive {
            sched.completed(at(0), &request);
        }
        sched.pool.drain();
        let drive = sched.drive;
        *sched = fine();
        sched.drive = drive;
        sched.drive.queues
    };
    assert!(complete(&mut sched, 1, 4, 500), "too few to tell");
    assert!(complete(&mut sched, 1, 6, 50), "one less than it takes");
    assert!(!complete(&mut sched, 1, 6, 1));
    assert!(!complete(&mut sched, 4, 6, 200));
    assert!(complete(&mut sched, 5, 6, 60));
}

/// A reader that has read up to sector 1024 in `samples` requests of a millisecond each; while the last
/// was in the drive, there came a request of a process whose turn is next, and one of another at `lba`.
fn beside(samples: u64, lba: u64) -> Cfq {
    let mut sched = fine();
    for i in 0..samples {
        let request = of(0, read(0, 1_024 - 8 * (samples - i), i));
        sched.insert(at(i), request);
        assert_eq!(next(&mut sched, at(i)), Some(request));
        if i + 1 == samples {
            sched.insert(at(i), of(1, read(1, 90_000_000, i)));
            sched.insert(at(i), of(2, read(2, lba, i)));
        }
        sched.completed(at(i) + Nanos::from_micros(500), &request);
    }
    sched
}

#[test]
fn a_queue_gives_way_to_one_that_goes_on_where_it_ended() {
    let mut sched = beside(8, 1_024);
    let now = at(7) + Nanos::from_micros(500);
    assert_eq!(next(&mut sched, now).map(|r| r.tag), Some(Tag(2)));
    let second = sched.slice.expect("it has its turn").queue;
    assert!(sched.queues[second].cooperated);
}

#[test]
fn a_sequential_reader_gives_way_to_nothing_but_that() {
    for lba in [1_032, 1_016, 5_000] {
        let mut sched = beside(8, lba);
        let now = at(7) + Nanos::from_micros(500);
        assert_eq!(next(&mut sched, now), None, "not to {lba}");
    }
}

#[test]
fn until_more_is_known_8192_sectors_are_near() {
    let now = at(1) + Nanos::from_micros(500);
    for (lba, tag) in [
        (1_024 + 8_192, Some(Tag(2))),
        (1_024 + 8_193, None),
        (1_032, Some(Tag(2))),
        (900, Some(Tag(2))),
    ] {
        let mut sched = beside(2, lba);
        assert_eq!(next(&mut sched, now).map(|r| r.tag), tag, "{lba}");
    }
}

#[test]
fn cooperation_needs_a_regular_turn_in_between() {
    let mut sched = beside(8, 1_024);
    let now = at(7) + Nanos::from_micros(500);
    serve(&mut sched, 2, now, at(8));
    // The first reader goes on where the second ended, and takes the disk back with that.
    let request = of(0, read(0, 1_032, 8));
    sched.insert(at(8), request);
    assert_eq!(next(&mut sched, at(8)), Some(request));
    // The second goes on where the first ends, and had its turn that way already.
    sched.insert(at(9), of(2, read(2, 1_040, 9)));
    sched.completed(at(10), &request);
    assert_eq!(sched.cooperator(), None);
    let until = idle_until(&mut sched, at(10)).expect("it waits for the first");
    assert_eq!(until, at(18));
    // With its regular turn it may again.
    let mut order = Vec::new();
    let mut now = until;
    while order.last() != Some(&2) {
        match sched.dispatch(now) {
            Dispatch::Request(request) => {
                order.push(request.tag.0);
                sched.completed(now, &request);
            }
            Dispatch::IdleUntil(until) => now = until,
            Dispatch::Empty => unreachable!("it has a request"),
        }
    }
    assert_eq!(order, [1, 2]);
    let second = sched.slice.expect("it has its turn").queue;
    assert!(!sched.queues[second].cooperated);
}

#[test]
fn a_near_request_takes_over_while_the_disk_is_kept_free() {
    let mut sched = beside(2, 50_000_000);
    let now = at(1) + Nanos::from_micros(500);
    assert_eq!(next(&mut sched, now), None);
    sched.insert(at(2), of(3, read(3, 1_024 + 9_000, 2)));
    assert_eq!(next(&mut sched, at(2)), None, "too far");
    sched.insert(at(3), of(4, read(4, 1_024 + 4_000, 3)));
    assert_eq!(next(&mut sched, at(3)).map(|r| r.tag), Some(Tag(4)));
}

#[test]
fn one_origin_is_one_queue_in_elevator_order_with_16_in_the_drive() {
    let mut sched = Cfq::default();
    let lba = |tag: u32| u64::from(tag * 7_919 % 24) * 10_000;
    for tag in 0..24 {
        sched.insert(at(0), read(tag, lba(tag), 0));
    }
    let mut drive: Vec<Request> = core::iter::from_fn(|| next(&mut sched, at(0))).collect();
    assert_eq!(drive.len(), 16);
    let starts: Vec<u64> = drive.iter().map(|r| r.extent.start.get()).collect();
    assert_eq!(starts, (0..16).map(|i| i * 10_000).collect::<Vec<_>>());
    // One comes back, one goes out.
    sched.completed(at(1), &drive.remove(0));
    assert_eq!(
        next(&mut sched, at(1)).map(|r| r.extent.start.get()),
        Some(160_000)
    );
    assert_eq!(next(&mut sched, at(1)), None);
    assert_eq!(sched.queued(), 7);
}

#[test]
fn a_queue_has_four_in_the_drive_while_others_wait() {
    let mut sched = Cfq::default();
    for tag in 0..8 {
        sched.insert(at(0), of(0, read(tag, 1_000 * u64::from(tag), 0)));
    }
    sched.insert(at(0), of(1, read(8, 90_000_000, 0)));
    let drive: Vec<Request> = core::iter::from_fn(|| next(&mut sched, at(0))).collect();
    assert_eq!(drive.len(), 4);
    assert!(drive.iter().all(|r| r.origin.process == 0));
}

#[test]
fn a_sweep_looks_back_16_mebibytes_at_twice_the_cost() {
    let order = |lbas: &[u64]| -> Vec<u64> {
        let mut sched = Cfq::default();
        sched.insert(at(0), read(0, 1_000_000 - 8, 0));
        let first = next(&mut sched, at(0)).expect("the first");
        sched.completed(at(0), &first);
        for (tag, lba) in (1..).zip(lbas) {
            sched.insert(at(0), read(tag, *lba, 0));
        }
        let served = core::iter::from_fn(|| {
            let request = next(&mut sched, at(0))?;
            sched.completed(at(0), &request);
            Some(request.extent.start.get())
        });
        served.collect()
    };
    assert_eq!(order(&[1_000_300, 999_900]), [999_900, 1_000_300]);
    assert_eq!(order(&[1_000_100, 999_900]), [1_000_100, 999_900]);
    // 32768 sectors are 16 MiB.
    assert_eq!(
        order(&[9_000_000, 1_000_000 - 32_768]),
        [967_232, 9_000_000]
    );
    assert_eq!(
        order(&[9_000_000, 1_000_000 - 32_769]),
        [9_000_000, 967_231]
    );
}

#[test]
fn expiry_is_looked_at_once_per_slice() {
    let mut sched = fine();
    sched.insert(at(0), read(0, 500_000, 0));
    for tag in 1..6 {
        sched.insert(at(1), read(tag, 1_000 * u64::from(tag), 1));
    }
    // The sweep would begin at the bottom, but the oldest has expired.
    let serve_one = |sched: &mut Cfq, ms: u64| {
        let request = next(sched, at(ms)).expect("there are some");
        sched.completed(at(ms), &request);
        request.tag.0
    };
    let mut order: Vec<u32> = vec![serve_one(&mut sched, 125)];
    // All have expired since; the sweep goes on regardless, until the slice is over.
    order.push(serve_one(&mut sched, 130));
    order.push(serve_one(&mut sched, 131));
    assert_eq!(order, [0, 1, 2]);
    sched.insert(at(132), read(8, 3_500, 132));
    sched.insert(at(133), read(9, 2_500, 133));
    // The next slice begins at 225 ms, with the oldest, which is not the nearest.
    order.push(serve_one(&mut sched, 224));
    order.push(serve_one(&mut sched, 226));
    assert_eq!(order[3..], [9, 3]);
    let just_before = at(125).saturating_sub(Nanos::from_nanos(1));
    let mut sched = fine();
    sched.insert(at(0), read(0, 500_000, 0));
    sched.insert(at(1), read(1, 1_000, 1));
    assert_eq!(next(&mut sched, just_before).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn what_nobody_waits_for_is_held_back_while_somebody_waits() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    sched.insert(at(0), write(1, 5_000, 0));
    let first = next(&mut sched, at(0)).expect("the read");
    assert!(first.op.is_read());
    // The reader's slice ends while its request is in the drive.
    sched.slice.as_mut().expect("its turn").end = Some(Jiffies::new(5));
    assert_eq!(
        next(&mut sched, at(6)),
        None,
        "the turn of the write, held back"
    );
    assert!(!sched.queues[sched.slice.expect("the write").queue].sync);
    sched.completed(at(7), &first);
    assert_eq!(next(&mut sched, at(7)).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn what_nobody_waits_for_has_turns_of_16_or_40_milliseconds() {
    // How many of 40 writes are handed out in the first turn, one every so many milliseconds.
    let first_turn = |others: bool, gap: u64| {
        let mut sched = fine();
        for tag in 0..40 {
            sched.insert(at(0), write(tag, 10_000 * u64::from(tag), 0));
        }
        if others {
            // Somebody who does not take over.
            sched.insert(at(0), class(Class::IDLE, of(1, read(50, 90_000_000, 0))));
        }
        let mut count = 0;
        for start in (0..).map(|i| i * gap) {
            let request = next(&mut sched, at(start)).expect("there are more");
            assert_eq!(request.op, Op::Write);
            count += 1;
            if sched.slice.is_none() {
                break;
            }
            sched.completed(at(start + gap.saturating_sub(1)), &request);
            if sched.slice.is_none() || count == 40 {
                break;
            }
        }
        count
    };
    assert_eq!(first_turn(true, 0), 16);
    assert_eq!(first_turn(false, 0), 40);
    // From 8 to 48 ms; seen at the completion at 53.
    assert_eq!(first_turn(true, 9), 6);
}

#[test]
fn what_nobody_waits_for_is_not_starved() {
    let mut programs: Vec<Program> = [0, 1]
        .map(|p| Program::reader(p, 10_000_000 * u64::from(p)))
        .into();
    // A hundred writers that are always there.
    programs.extend((0..100).map(|i| Program {
        op: Op::Write,
        think: Nanos::from_nanos(1),
        ..Program::reader(7, 50_000_000 + 1_000_000 * i)
    }));
    let given = run(&mut fine(), &programs, 1, Nanos::from_secs(5));
    let turns = turns(&given);
    let writes: Vec<_> = turns.iter().filter(|(p, ..)| *p == 7).collect();
    assert!(writes.len() > 12, "{turns:?}");
    for pair in writes.windows(2) {
        // A key that is 280 ms later, and the slice that is under way then. It is one write: the
        // reader whose slice has just ended takes over with its next request.
        assert_eq!(pair[0].2, 1);
        let gap = pair[1].1 - pair[0].1;
        assert!(gap <= Nanos::from_millis(280 + 105), "{gap}: {turns:?}");
    }
}

#[test]
fn real_time_goes_before_best_effort_and_that_before_idle() {
    let mut sched = fine();
    for (tag, of_class) in [Class::IDLE, Class(9), Class::BEST_EFFORT, Class::REAL_TIME]
        .into_iter()
        .enumerate()
    {
        let tag = tag as u32;
        let request = of(tag, read(tag, 1_000_000 * u64::from(tag), 0));
        sched.insert(at(0), class(of_class, request));
    }
    let mut order = Vec::new();
    let mut now = at(0);
    while sched.queued() > 0 {
        match sched.dispatch(now) {
            Dispatch::Request(request) => {
                order.push(request.tag.0);
                sched.completed(now, &request);
            }
            Dispatch::IdleUntil(until) => now = until,
            Dispatch::Empty => unreachable!("something is queued"),
        }
    }
    assert_eq!(order, [3, 2, 0, 1]);
}

#[test]
fn real_time_takes_the_disk_at_once_and_the_rest_of_the_slice_is_kept() {
    let mut sched = fine();
    for tag in 0..3 {
        sched.insert(at(0), of(0, read(tag, 8 * u64::from(tag), 0)));
    }
    serve(&mut sched, 0, at(0), at(10));
    let urgent = class(Class::REAL_TIME, of(1, read(8, 90_000_000, 40)));
    sched.insert(at(40), urgent);
    assert_eq!(next(&mut sched, at(40)).map(|r| r.tag), Some(Tag(8)));
    // The slice ran to 110: what is left of it delays the queue, as in 2.6.31.
    let interrupted = sched
        .contexts
        .find(0)
        .and_then(|id| sched.contexts[id].queues[1]);
    let place = sched.queues[interrupted.expect("its queue")].place;
    assert_eq!(place.map(|place| place.key), Some(40 + 80 + 70));
}

#[test]
fn what_comes_during_a_slice_of_real_time_waits() {
    let mut sched = fine();
    sched.insert(at(0), class(Class::REAL_TIME, of(0, read(0, 0, 0))));
    sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
    serve(&mut sched, 0, at(0), at(1));
    assert_eq!(idle_until(&mut sched, at(1)), Some(at(9)));
}

#[test]
fn the_idle_class_has_one_request_in_the_drive_and_gives_way() {
    let mut sched = fine();
    for tag in 0..3 {
        let request = of(0, read(tag, 1_000 * u64::from(tag), 0));
        sched.insert(at(0), class(Class::IDLE, request));
    }
    let first = next(&mut sched, at(0)).expect("nothing else is to do");
    assert_eq!(next(&mut sched, at(0)), None);
    sched.insert(at(1), of(1, read(8, 90_000_000, 1)));
    assert_eq!(next(&mut sched, at(1)).map(|r| r.tag), Some(Tag(8)));
    sched.completed(at(2), &first);
    assert_eq!(
        next(&mut sched, at(2)),
        None,
        "the other one's turn goes on"
    );
}

#[test]
fn places_are_80_ms_apart_for_readers_and_140_for_background() {
    let mut sched = fine();
    let key = |sched: &Cfq, process| {
        let id = sched.contexts.find(process).expect("it came");
        let queue = sched.contexts[id].queues[1].expect("it reads");
        sched.queues[queue].place.map(|place| place.key)
    };
    for process in 0..3 {
        let lba = 10_000_000 * u64::from(process);
        sched.insert(at(5), of(process, read(process, lba, 5)));
        assert_eq!(key(&sched, process), Some(5 + 80 * i64::from(process)));
    }
    sched.insert(at(6), write(9, 0, 6));
    let shared = QueueId::shared(Level::BestEffort);
    let place = sched.queues[shared].place;
    assert_eq!(place.map(|place| place.key), Some(6 + 3 * 140));
}

#[test]
fn a_slice_that_overran_brings_its_queue_forward() {
    let mut sched = fine();
    for tag in 0..3 {
        sched.insert(at(0), of(0, read(tag, 8 * u64::from(tag), 0)));
    }
    sched.insert(at(0), of(1, read(8, 90_000_000, 0)));
    serve(&mut sched, 0, at(0), at(10));
    serve(&mut sched, 1, at(100), at(130));
    assert!(sched.slice.is_none(), "over at 110, seen at 130");
    let first = sched
        .contexts
        .find(0)
        .and_then(|id| sched.contexts[id].queues[1]);
    let place = sched.queues[first.expect("its queue")].place;
    assert_eq!(place.map(|place| place.key), Some(130 + 80 - 20));
}

#[test]
fn a_wait_that_nobody_else_cares_about_leaves_the_turn_as_it_is() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    serve(&mut sched, 0, at(0), at(1));
    assert_eq!(sched.dispatch(at(1)), Dispatch::Empty);
    // The wait is over at 9 ms, and nobody came.
    sched.insert(at(20), of(0, read(0, 8, 20)));
    assert_eq!(sched.slice.and_then(|s| s.end), Some(Jiffies::new(101)));
    serve(&mut sched, 0, at(20), at(21));
    // Another request ends it, since the wait is over; if that comes exactly then, too early.
    for (comes, goes) in [(40, true), (29, true), (28, false)] {
        let mut sched = sched.clone();
        sched.insert(at(comes), of(1, read(1, 90_000_000, comes)));
        assert_eq!(next(&mut sched, at(comes)).is_some(), goes, "at {comes}");
    }
}

#[test]
fn a_request_of_up_to_a_page_does_not_end_a_wait_that_nobody_else_cares_about() {
    let wait = |sectors: u64, others: bool| {
        let mut sched = fine();
        sched.insert(at(0), of(0, read(0, 0, 0)));
        if others {
            sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
        }
        serve(&mut sched, 0, at(0), at(1));
        let extent = Extent::at(8, sectors);
        let request = of(0, read(0, 0, 3));
        sched.insert(at(3), Request { extent, ..request });
        sched.slice.is_some_and(|slice| slice.timer.is_some())
    };
    assert!(wait(8, false));
    assert!(!wait(9, false));
    assert!(!wait(8, true));
}

#[test]
fn requests_belong_to_queues_by_process_class_and_whether_somebody_waits() {
    let mut sched = Cfq::default();
    sched.insert(at(0), of(1, read(0, 0, 0)));
    sched.insert(at(0), of(1, write(1, 1_000, 0)));
    let (reads, writes) = (Tag(0), Tag(1));
    assert!(sched.may_merge(reads, &of(1, read(2, 8, 0))));
    assert!(!sched.may_merge(reads, &of(2, read(2, 8, 0))));
    assert!(!sched.may_merge(reads, &class(Class::IDLE, of(1, read(2, 8, 0)))));
    assert!(!sched.may_merge(reads, &of(1, write(2, 8, 0))));
    assert!(sched.may_merge(reads, &sync(of(1, write(2, 8, 0)))));
    assert!(sched.may_merge(writes, &of(2, write(2, 1_008, 0))));
    let discard = Request {
        op: Op::Discard,
        ..of(2, write(2, 1_008, 0))
    };
    assert!(sched.may_merge(writes, &discard));
    assert!(!sched.may_merge(writes, &sync(of(1, write(2, 1_008, 0)))));
}

#[test]
fn merging_keeps_the_sweep_and_the_older_place() {
    let mut sched = fine();
    for (tag, lba) in [(0, 100), (1, 208), (2, 400), (3, 216)] {
        let ms = u64::from(tag);
        sched.insert(at(ms), read(tag, lba, ms));
    }
    // Grows in front and is next; then 216 becomes part of 208, and then that of what follows.
    sched.merged(Tag(2), Extent::at(50, 358), at(2));
    assert_eq!(sched.positions.first().map(|e| e.lba), Some(Lba::new(50)));
    sched.fused(Tag(3), Tag(1));
    sched.merged(Tag(3), Extent::at(208, 16), at(1));
    assert_eq!(sched.queued(), 3);
    let order: Vec<(u32, Time)> = core::iter::from_fn(|| next(&mut sched, at(9)))
        .map(|request| (request.tag.0, request.arrival))
        .collect();
    // Which of 100 and 208 follows is chosen from where the head was before 50..408: at 0.
    assert_eq!(order, [(2, at(2)), (0, at(0)), (3, at(1))]);
    assert_eq!(sched.contexts[ContextId(0)].requests, 3);
}

#[test]
fn idle_processes_are_forgotten_beyond_4096() {
    let mut sched = Cfq::default();
    let mut now = 0;
    // Two that stay: one has a request, one was used just before.
    sched.insert(at(0), of(1_000_000, read(9, 500_000_000, 0)));
    for process in 0..9_000_u32 {
        now += 200;
        sched.insert(at(now), of(process, read(0, 1_000_000, now)));
        let mut done = false;
        while !done {
            match sched.dispatch(at(now)) {
                Dispatch::Request(request) if request.tag == Tag(0) => {
                    sched.completed(at(now), &request);
                    done = true;
                }
                Dispatch::Request(request) => {
                    now += 4;
                    sched.completed(at(now), &request);
                    sched.insert(
                        at(now),
                        Request {
                            arrival: at(now),
                            ..request
                        },
                    );
                }
                _ => now += 4,
            }
        }
    }
    assert_eq!(sched.contexts.len(), REMEMBERED_MAX);
    let known = |process| sched.contexts.find(process).is_some();
    assert!(known(1_000_000) && known(8_999) && known(8_999 - 4_000));
    assert!(!known(0) && !known(8_999 - 4_096));
    // Their queues are used again.
    let mut sched = sched.clone();
    assert!(sched.queues.add(Level::BestEffort).0 <= REMEMBERED_MAX as u32 + 3);
}

#[test]
fn draining_leaves_nothing_behind() {
    let mut sched = Cfq::default();
    for (tag, ms) in [(0, 3), (1, 1), (2, 2), (3, 1)] {
        sched.insert(at(3), of(tag, read(tag, 1_000 * u64::from(tag), ms)));
    }
    let out = next(&mut sched, at(3)).expect("the first");
    let tags: Vec<u32> = sched.drain().iter().map(|r| r.tag.0).collect();
    assert_eq!(tags, [1, 3, 2]);
    assert_eq!(sched.dispatch(at(4)), Dispatch::Empty);
    // What was in the drive comes back and is not counted.
    sched.completed(at(5), &out);
    assert_eq!((sched.drive.holds, sched.queued()), (0, 0));
    sched.insert(at(6), out);
    serve(&mut sched, 0, at(6), at(7));
}

#[test]
fn a_drive_that_queues_is_taken_for_one_that_does_not() {
    // While a sequential reader has its slice, one request is in the drive and eight are queued.
    let mut programs = vec![Program::reader(0, 0)];
    programs.extend((1..9).map(|p| Program {
        stride: 7_000_000,
        ..Program::reader(p, 1_000_000_000 * u64::from(p))
    }));
    let mut sched = fine();
    let given = run(&mut sched, &programs, 31, Nanos::from_secs(4));
    assert!(!sched.drive.queues);
    // From then on, those that seek have slices too.
    let turns = turns(&given);
    let late = turns.iter().filter(|(_, from, _)| *from > at(1_000));
    let counts: Vec<usize> = late.map(|(_, _, count)| *count).collect();
    assert!(counts.len() > 20);
    assert!(
        counts[..counts.len() - 1]
            .iter()
            .all(|count| (48..=52).contains(count)),
        "{counts:?}"
    );
}
