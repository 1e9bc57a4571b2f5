//! The rules one by one, and their consequences for streams of reads.

mod readers;

use super::*;
use crate::tests::{at, grown, of, read, write};
use crate::{Flags, Op};
use headtime_units::Extent;
use proptest::prelude::*;
use std::vec;

const DEFAULT: AnticipatoryConfig = AnticipatoryConfig::DEFAULT;

/// Returns the configuration of a kernel with `hz` ticks per second.
fn ticking(hz: u64) -> AnticipatoryConfig {
    AnticipatoryConfig {
        hz: Hz::new(hz).expect("it is allowed"),
        ..DEFAULT
    }
}

fn us(micros: u64) -> Time {
    Time::ZERO + Nanos::from_micros(micros)
}

/// Returns the tag that is handed out, or the time at which to ask again.
fn next(sched: &mut Anticipatory, now: Time) -> Result<u32, Option<Time>> {
    match sched.dispatch(now) {
        Dispatch::Request(request) => Ok(request.tag.0),
        Dispatch::IdleUntil(until) => {
            assert!(until > now);
            Err(Some(until))
        }
        Dispatch::Empty => Err(None),
    }
}

/// Serves a request without competitors, from arrival to completion.
fn serve(sched: &mut Anticipatory, from: Time, to: Time, request: Request) {
    let request = Request {
        arrival: from,
        ..request
    };
    sched.insert(from, request);
    assert_eq!(next(sched, from), Ok(request.tag.0));
    sched.completed(to, &request);
}

/// Returns a scheduler that has served five reads of process 1. Each read came `think` after the
/// completion of the preceding one. The last read ended at sector 1040 and came back at `at(100)`.
fn reader(config: AnticipatoryConfig, think: Nanos) -> Anticipatory {
    let mut sched = Anticipatory::new(config);
    let step = think + Nanos::from_millis(1);
    for index in 0..5 {
        let back = at(100).saturating_sub(step * (4 - index));
        let came = back.saturating_sub(Nanos::from_millis(1));
        serve(&mut sched, came, back, of(1, read(0, 1_000 + 8 * index, 0)));
    }
    assert_eq!(sched.last[Kind::Sync], Lba::new(1_040));
    sched
}

/// Returns true if the scheduler waits for the reader of [`reader`] when another process reads `lba`
/// at `now`.
fn waits_at(sched: &Anticipatory, now: Time, lba: u64) -> bool {
    let mut sched = sched.clone();
    sched.insert(now, of(2, read(1, lba, 0)));
    next(&mut sched, now).is_err()
}

const FAR: u64 = 50_000_000;

#[test]
fn the_defaults_are_the_kernels_at_every_rate() {
    let ms = |hz: u64, ticks: u64| ticks * 1_000 / hz;
    for (hz, expected) in [
        (1_000, [125, 250, 500, 125, 6, 19, 12]),
        (250, [124, 248, 500, 124, 4, 16, 3]),
        (100, [120, 250, 500, 120, 10, 10, 2]),
    ] {
        let sched = Anticipatory::new(ticking(hz));
        let ticks = sched.ticks;
        let times = [
            ticks.expire[Kind::Sync],
            ticks.expire[Kind::Async],
            ticks.batch[Kind::Sync],
            ticks.batch[Kind::Async],
            ticks.antic,
            hz / 50 - 1,
        ];
        assert_eq!(times.map(|ticks| ms(hz, ticks)), expected[..6], "hz={hz}");
        assert_eq!(sched.quota, expected[6], "hz={hz}");
    }
    for hz in Hz::RANGE.0..=Hz::RANGE.1 {
        let ticks = Anticipatory::new(ticking(hz)).ticks;
        assert_eq!(ticks.expire[Kind::Sync], hz / 8);
        assert_eq!(ticks.expire[Kind::Async], hz / 4);
        assert_eq!(ticks.batch[Kind::Sync], hz / 2);
        assert_eq!(ticks.batch[Kind::Async], hz / 8);
        assert_eq!(ticks.antic, (hz / 150).max(1));
    }
}

#[test]
fn the_cheapest_goes_next() {
    const MAX_BACK: u64 = 1 << 20;
    // The sweep stands at 2,000,008.
    for (one, other, first) in [
        (2_000_108, 2_000_208, 2_000_108),
        // 100 sectors behind cost 200: less than 201 ahead, more than 199, and equal to 200.
        (1_999_908, 2_000_209, 1_999_908),
        (1_999_908, 2_000_207, 2_000_207),
        (1_999_908, 2_000_208, 2_000_208),
        // The farthest distance behind that is weighed, and one sector farther.
        (2_000_008 - MAX_BACK, 90_000_000, 2_000_008 - MAX_BACK),
        (2_000_007 - MAX_BACK, 90_000_000, 90_000_000),
        // Both are left for the next sweep.
        (500_000, 400_000, 400_000),
    ] {
        for (first_in, second_in) in [(one, other), (other, one)] {
            let mut sched = Anticipatory::new(DEFAULT);
            sched.insert(at(0), read(0, 2_000_000, 0));
            assert_eq!(next(&mut sched, at(0)), Ok(0));
            sched.insert(at(0), read(1, first_in, 0));
            sched.insert(at(0), read(2, second_in, 0));
            let Dispatch::Request(request) = sched.dispatch(at(0)) else {
                panic!("the process has requests queued")
            };
            assert_eq!(request.extent.start.get(), first, "of {one} and {other}");
        }
    }
}

#[test]
fn a_sweep_goes_on_at_a_neighbour_and_wraps_to_the_lowest() {
    let mut sched = Anticipatory::new(DEFAULT);
    let lbas = [5_000_000, 5_000_100, 4_999_990, 9_000_000, 100, 200];
    for (tag, lba) in lbas.into_iter().enumerate() {
        sched.insert(at(0), read(tag as u32, lba, 0));
    }
    let order: Vec<u32> = (0..6)
        .map(|_| next(&mut sched, at(0)).expect("one is queued"))
        .collect();
    // The oldest first. 18 behind costs 36, and 92 ahead costs 92. Then all requests ahead, then the
    // lowest.
    assert_eq!(order, [0, 2, 1, 3, 4, 5]);
}

#[test]
fn it_waits_for_a_reader_and_serves_it_first() {
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    sched.insert(at(100), of(2, read(1, FAR, 100)));
    assert_eq!(next(&mut sched, at(100)), Err(Some(at(106))));
    assert_eq!(next(&mut sched, us(105_999)), Err(Some(at(106))));
    sched.insert(at(101), of(1, read(2, 1_040, 101)));
    assert_eq!(next(&mut sched, at(101)), Ok(2));
    // The reader's request is in the drive: the scheduler waits for its completion now.
    assert!(next(&mut sched, at(101)).is_err());
    assert_eq!(sched.waiting, Waiting::Drive);
}

#[test]
fn a_wait_in_vain_ends_with_the_tick() {
    for (hz, back, until) in [
        (1_000, us(100_000), at(106)),
        (1_000, us(100_999), at(106)),
        (250, us(100_000), at(104)),
        (250, us(103_999), at(104)),
        (100, us(100_001), at(110)),
    ] {
        let mut sched = reader(ticking(hz), Nanos::ZERO);
        // Only the completion moves within the tick.
        sched.finished = Some(sched.hz.at(back));
        sched.insert(back, of(2, read(1, FAR, 0)));
        assert_eq!(next(&mut sched, back), Err(Some(until)), "hz={hz}");
        assert_eq!(next(&mut sched, until), Ok(1), "hz={hz}");
    }
}

#[test]
fn after_a_wait_in_vain_the_next_goes_and_its_owner_is_waited_for() {
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    sched.insert(at(100), of(2, read(1, FAR, 100)));
    assert!(next(&mut sched, at(100)).is_err());
    assert_eq!(next(&mut sched, at(106)), Ok(1));
    sched.insert(at(107), of(1, read(2, 1_040, 107)));
    // Process 2 is new, and no earlier process has a long think time.
    assert!(next(&mut sched, at(107)).is_err());
    sched.completed(at(110), &of(2, read(1, FAR, 100)));
    assert_eq!(next(&mut sched, at(110)), Err(Some(at(116))));
}

#[test]
fn who_was_back_long_ago_is_not_waited_for() {
    let sched = reader(ticking(1_000), Nanos::ZERO);
    assert!(waits_at(&sched, us(105_999), FAR));
    assert!(!waits_at(&sched, at(106), FAR));
}

#[test]
fn the_window_of_what_is_close() {
    let windows = |hz| {
        let sched = reader(ticking(hz), Nanos::ZERO);
        // The scheduler waits already, so that time widens the window.
        let widest = |sign: bool, now: Time| {
            let (mut low, mut high) = (0_u64, 1 << 30);
            while low < high {
                let middle = (low + high).div_ceil(2);
                let mut sched = sched.clone();
                sched.last[Kind::Sync] = Lba::new(1 << 31);
                sched.insert(at(100), of(3, read(2, 1 << 40, 100)));
                assert!(next(&mut sched, at(100)).is_err());
                let lba = match sign {
                    true => (1 << 31) + middle,
                    false => (1 << 31) - middle,
                };
                sched.insert(now, of(2, read(1, lba, 0)));
                match sched.waiting {
                    Waiting::Finished => low = middle,
                    _ => high = middle - 1,
                }
            }
            low
        };
        let ends = (100..106).map(|ms| (widest(true, at(ms)), widest(false, at(ms))));
        ends.collect::<Vec<_>>()
    };
    let doubled = |ticks: u32| (8_192 << ticks, 4_096 << ticks);
    let expected: Vec<_> = (0..6).map(doubled).collect();
    assert_eq!(windows(1_000), expected);
    // The window is constant within the tick. At its end the wait is over for every request.
    let everything = (1 << 30, 1 << 30);
    let mut expected = vec![doubled(0); 4];
    expected.extend([everything; 2]);
    assert_eq!(windows(250), expected);
}

#[test]
fn the_window_of_a_tick_of_4_ms_is_twice_as_wide() {
    // With two ticks of waiting, the wait includes a second tick.
    let mut sched = reader(
        AnticipatoryConfig {
            antic_expire: Nanos::from_millis(8),
            ..ticking(250)
        },
        Nanos::ZERO,
    );
    sched.insert(at(100), of(3, read(2, FAR, 100)));
    assert!(next(&mut sched, at(100)).is_err());
    let process = sched.anticipated.expect("it waits");
    let close = |ms, lba| sched.is_close(sched.hz.at(at(ms)), process, &read(1, lba, 0));
    assert!(!close(103, 1_040 + 8_193) && close(104, 1_040 + 8_193));
    assert!(close(104, 1_040 + 16_384) && !close(104, 1_040 + 16_385));
}

#[test]
fn the_window_does_not_widen_before_the_wait() {
    let sched = reader(ticking(1_000), Nanos::ZERO);
    // 5 ms after the reader's completion, the scheduler does not wait yet.
    assert!(!waits_at(&sched, at(105), 1_040 + 8_192));
    assert!(waits_at(&sched, at(105), 1_040 + 8_193));
}

#[test]
fn a_reader_that_seeks_makes_more_requests_close() {
    let mut sched = Anticipatory::new(ticking(1_000));
    for index in 0..5 {
        let lba = if index % 2 == 0 { 0 } else { 1_000_000 };
        serve(&mut sched, at(index), at(index), of(1, read(0, lba, 0)));
    }
    let id = sched.anticipated.expect("a read was served");
    let mean = sched.contexts.get(id).seek.mean().expect("it has samples");
    assert!((990_000..1_010_000).contains(&mean), "{mean}");
    let last = sched.last[Kind::Sync].get();
    assert!(!waits_at(&sched, at(4), last + mean - 1));
    assert!(waits_at(&sched, at(4), last + mean));
}

#[test]
fn a_close_request_of_another_ends_the_wait_and_counts_for_the_reader() {
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    let process = sched.anticipated.expect("a read was served");
    sched.insert(at(100), of(2, read(1, FAR, 100)));
    assert!(next(&mut sched, at(100)).is_err());
    let before = sched.contexts.get(process).think;
    sched.insert(at(103), of(3, read(2, 2_000, 103)));
    assert_ne!(sched.contexts.get(process).think, before);
    assert_eq!(next(&mut sched, at(103)), Ok(2));
    // The owner of this request is the next process to wait for.
    let now = sched.anticipated.expect("a read was served");
    assert_eq!(sched.contexts.get(now).process, 3);
    // A write is never close.
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    sched.insert(at(100), of(2, write(1, 1_040, 100)));
    assert!(next(&mut sched, at(100)).is_err());
}

#[test]
fn a_reader_that_thinks_for_longer_than_the_wait_is_not_waited_for() {
    for (think, waits) in [(0, true), (3, true), (7, false), (15, false)] {
        let sched = reader(ticking(1_000), Nanos::from_millis(think));
        assert_eq!(waits_at(&sched, at(100), FAR), waits, "{think} ms");
    }
    for (think, waits) in [(0, true), (1, true), (12, false)] {
        let sched = reader(ticking(250), Nanos::from_millis(think));
        assert_eq!(waits_at(&sched, at(100), FAR), waits, "{think} ms");
    }
}

#[test]
fn a_new_reader_is_waited_for_as_its_first_means_allow() {
    let waits = |hz| {
        let mut sched = Anticipatory::new(ticking(hz));
        let mut waits = Vec::new();
        for index in 0..5 {
            serve(&mut sched, at(0), at(0), of(1, read(0, 8 * index, 0)));
            waits.push(waits_at(&sched, at(0), FAR));
        }
        waits
    };
    // The means are none, 4, 2, 1, 1.
    assert_eq!(waits(250), [true, false, false, true, true]);
    assert_eq!(waits(1_000), [true; 5]);
}

#[test]
fn a_new_reader_is_expected_to_think_as_others_did() {
    let mut sched = Anticipatory::new(ticking(1_000));
    for process in 10..40 {
        // The wait for the preceding process is over when the next process comes.
        let first = 100 * u64::from(process);
        for ms in [first, first + 19] {
            serve(&mut sched, at(ms), at(ms), of(process, read(0, FAR, 0)));
        }
    }
    assert!(sched.contexts.newcomers.think() > 6);
    serve(&mut sched, at(5_000), at(5_000), of(1, read(0, 0, 0)));
    assert!(!waits_at(&sched, at(5_000), FAR));
}

#[test]
fn a_reader_with_another_request_is_not_waited_for() {
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    sched.insert(at(100), of(2, read(1, FAR, 100)));
    // For the sweep, this request is farther than the request of process 2, since it is behind. It
    // counts nevertheless.
    sched.last[Kind::Sync] = Lba::new(FAR - 100_000);
    sched.next[Kind::Sync] = Some(Tag(1));
    sched.insert(at(100), of(1, read(2, 0, 100)));
    assert_eq!(next(&mut sched, at(100)), Ok(1));
}

#[test]
fn without_waiting_it_is_an_elevator() {
    let config = AnticipatoryConfig {
        antic_expire: Nanos::ZERO,
        ..DEFAULT
    };
    let mut sched = reader(config, Nanos::ZERO);
    sched.insert(at(100), of(2, read(1, FAR, 100)));
    assert_eq!(next(&mut sched, at(100)), Ok(1));
}

#[test]
fn it_holds_back_writes_for_a_reader() {
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    let process = sched.anticipated;
    sched.insert(at(100), of(1, write(1, FAR, 100)));
    // The write is the reader's own, so the reader has a request queued.
    assert_eq!(next(&mut sched.clone(), at(100)), Ok(1));
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    sched.insert(at(100), of(2, write(1, FAR, 100)));
    assert_eq!(next(&mut sched, at(100)), Err(Some(at(106))));
    assert_eq!(sched.anticipated, process);
    assert_eq!(next(&mut sched, at(106)), Ok(1));
    assert_eq!(sched.anticipated, None);
    // The scheduler does not wait after a write.
    sched.insert(at(107), of(2, write(2, 0, 107)));
    assert_eq!(next(&mut sched, at(107)), Ok(2));
}

#[test]
fn a_write_that_somebody_waits_for_rides_with_the_reads() {
    let sync = |tag, lba| Request {
        flags: Flags::SYNC,
        ..write(tag, lba, 0)
    };
    let mut sched = Anticipatory::new(DEFAULT);
    for (tag, lba) in [(0, 100), (1, 300)] {
        sched.insert(at(0), sync(tag, lba));
    }
    sched.insert(at(0), write(2, 120, 0));
    sched.insert(at(0), read(3, 200, 0));
    let order: Vec<u32> = (0..3)
        .map(|_| next(&mut sched, at(0)).expect("one is queued"))
        .collect();
    assert_eq!(order, [0, 3, 1]);
    assert_eq!(sched.count(Kind::Async), 1);
}

#[test]
fn expiry_is_looked_at_once_per_expiry() {
    let mut sched = Anticipatory::new(DEFAULT);
    // The first batch begins, and the first check for expired requests counts, in tick 0.
    sched.insert(at(0), read(0, 10_000_000, 0));
    assert_eq!(next(&mut sched, at(0)), Ok(0));
    sched.insert(at(1), read(1, 1_000, 1));
    sched.insert(at(1), read(2, 1_100, 1));
    for tag in 3..40 {
        sched.insert(at(2), read(tag, 10_000_000 + 100 * u64::from(tag), 2));
    }
    let mut expect = |ms, tag| assert_eq!(next(&mut sched, at(ms)), Ok(tag), "at {ms} ms");
    expect(4, 3);
    expect(120, 4);
    // The check is in tick 31. The oldest request is 31 ticks old, which is not more than 31.
    expect(124, 5);
    // The request is old enough now, but no check is due.
    expect(128, 6);
    expect(244, 7);
    expect(248, 1);
    // The next request has expired too, but no check is due before tick 93. The sweep goes on from its
    // position.
    expect(252, 2);
    expect(256, 8);
}

#[test]
fn an_expired_request_keeps_it_from_waiting_but_does_not_end_a_wait() {
    let config = AnticipatoryConfig {
        antic_expire: Nanos::from_millis(60),
        ..ticking(1_000)
    };
    let mut sched = reader(config, Nanos::ZERO);
    // A check is due from 125 ms on, when the request of process 2 will be old enough.
    sched.checked[Kind::Sync] = Jiffies::default();
    let late = sched.clone();
    sched.insert(at(100), of(2, read(1, FAR, 0)));
    assert_eq!(next(&mut sched, at(100)), Err(Some(at(160))));
    assert_eq!(next(&mut sched, at(140)), Err(Some(at(160))));
    // Without a wait under way, an expired request prevents a wait, unless a check took place just
    // before.
    let mut sched = late.clone();
    sched.insert(at(140), of(2, read(1, FAR, 0)));
    assert_eq!(next(&mut sched, at(140)), Ok(1));
    let mut sched = late;
    sched.checked[Kind::Sync] = sched.hz.at(at(139));
    sched.insert(at(140), of(2, read(1, FAR, 0)));
    assert_eq!(next(&mut sched, at(140)), Err(Some(at(160))));
}

#[test]
fn requests_of_one_process_never_wait() {
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    for round in 0..100 {
        let now = at(100 + round);
        for tag in 0..4 {
            let lba = (round * 4 + u64::from(tag)) * 0x9E37_79B1 % FAR;
            sched.insert(now, of(1, read(tag, lba, 100 + round)));
        }
        for _ in 0..4 {
            let tag = next(&mut sched, now).expect("all are of one process");
            sched.completed(now, &of(1, read(tag, 0, 0)));
        }
        assert_eq!(next(&mut sched, now), Err(None));
    }
}

/// Serves all queued requests, each in `service`. Returns the runs of reads (R) and writes (W) with
/// their lengths.
fn batches(sched: &mut Anticipatory, mut now: Time, service: Nanos) -> Vec<(char, usize)> {
    let mut runs: Vec<(char, usize)> = Vec::new();
    loop {
        match sched.dispatch(now) {
            Dispatch::Request(request) => {
                let kind = if request.is_sync() { 'R' } else { 'W' };
                match runs.last_mut() {
                    Some((last, len)) if *last == kind => *len += 1,
                    _ => runs.push((kind, 1)),
                }
                now += service;
                sched.completed(now, &request);
            }
            Dispatch::IdleUntil(until) => now = until,
            Dispatch::Empty => return runs,
        }
    }
}

#[test]
fn batches_of_reads_and_writes_take_turns() {
    let mut sched = Anticipatory::new(ticking(1_000));
    for index in 0..400 {
        sched.insert(at(0), read(index, 8 * u64::from(index), 0));
        sched.insert(at(0), write(1_000 + index, FAR + 8 * u64::from(index), 0));
    }
    let runs = batches(&mut sched, at(0), Nanos::from_millis(5));
    // Reads go from the first completion on for more than 500 ms: 1 + 101. At the first completion the
    // quota of writes doubled to 24, as 0 writes had taken no time. 24 writes and the read after them
    // take the intended 125 ms.
    assert_eq!(
        runs,
        [
            ('R', 102),
            ('W', 24),
            ('R', 102),
            ('W', 24),
            ('R', 102),
            ('W', 24),
            ('R', 94),
            ('W', 328),
        ]
    );
}

#[test]
fn the_quota_of_writes_follows_how_long_they_take() {
    let quota = |took: u64, left: u64, idled: bool| {
        let mut sched = Anticipatory::new(ticking(1_000));
        (sched.quota, sched.writes_left, sched.idled) = (20, left, idled);
        sched.batch_expires = sched.hz.at(at(1_000)) + 125;
        sched.adapt_quota(sched.hz.at(at(1_000 + took)));
        sched.quota
    };
    assert_eq!(
        [41, 42, 124].map(|took| quota(took, 0, false)),
        [40, 21, 21]
    );
    assert_eq!([125, 126].map(|took| quota(took, 0, false)), [20, 19]);
    assert_eq!([375, 376].map(|took| quota(took, 0, false)), [19, 10]);
    // Two batches leave the quota as it is: a short batch with writes left, and a long batch that idled.
    assert_eq!([41, 126].map(|took| quota(took, 1, false)), [20, 19]);
    assert_eq!([41, 126].map(|took| quota(took, 0, true)), [40, 20]);
    let mut sched = Anticipatory::new(ticking(1_000));
    sched.quota = 1;
    sched.adapt_quota(sched.hz.at(at(10_000)));
    assert_eq!(sched.quota, 1);
}

#[test]
fn a_batch_of_writes_that_is_too_slow_ends_with_its_time() {
    let mut sched = Anticipatory::new(ticking(1_000));
    for index in 0..40 {
        sched.insert(at(0), read(index, 8 * u64::from(index), 0));
        sched.insert(at(0), write(1_000 + index, FAR + 8 * u64::from(index), 0));
    }
    // Reads: 1, then 11 for more than 500 ms. Writes: 3, until more than 125 ms have passed.
    let runs = batches(&mut sched, at(0), Nanos::from_millis(50));
    assert_eq!(runs[..4], [('R', 12), ('W', 3), ('R', 12), ('W', 3)]);
}

#[test]
fn a_new_batch_begins_when_the_old_one_is_back() {
    let mut sched = Anticipatory::new(ticking(1_000));
    sched.insert(at(0), write(0, FAR, 0));
    sched.insert(at(0), write(1, FAR + 100, 0));
    assert_eq!(next(&mut sched, at(0)), Ok(0));
    assert_eq!(next(&mut sched, at(0)), Ok(1));
    sched.insert(at(1), read(2, 700, 1));
    sched.insert(at(1), read(3, 100, 1));
    assert!(next(&mut sched, at(1)).is_err());
    sched.completed(at(5), &write(0, FAR, 0));
    assert!(next(&mut sched, at(5)).is_err());
    sched.completed(at(9), &write(1, FAR + 100, 0));
    // The batch begins at the cheapest request, since it had to wait. The sweep of reads stands at 0.
    assert_eq!(next(&mut sched, at(9)), Ok(3));
}

#[test]
fn fusing_moves_the_sweep_on_and_frees_the_owner() {
    let mut sched = Anticipatory::new(DEFAULT);
    sched.insert(at(0), of(1, read(0, 100, 0)));
    assert_eq!(next(&mut sched, at(0)), Ok(0));
    sched.insert(at(1), of(1, read(1, 208, 1)));
    sched.insert(at(1), of(2, read(2, 216, 1)));
    assert_eq!(sched.next[Kind::Sync], Some(Tag(1)));
    sched.fused(Tag(2), Tag(1));
    sched.merged(&grown(of(2, read(2, 216, 1)), 208, 16));
    assert_eq!(sched.next[Kind::Sync], Some(Tag(2)));
    let owner = sched.contexts.of(&of(1, read(1, 0, 0)));
    assert_eq!(sched.contexts.get(owner).queued, 0);
    // The request is close to the last request of process 1, so the scheduler does not wait.
    assert_eq!(next(&mut sched, at(1)), Ok(2));
    assert_eq!(sched.last[Kind::Sync], Lba::new(224));
}

#[test]
fn a_drained_scheduler_is_as_new() {
    let mut sched = reader(DEFAULT, Nanos::ZERO);
    let in_drive = of(1, read(0, 1_040, 100));
    sched.insert(at(100), in_drive);
    assert_eq!(next(&mut sched, at(100)), Ok(0));
    sched.insert(at(100), of(2, read(1, FAR, 100)));
    sched.insert(at(100), of(2, write(2, FAR, 100)));
    assert!(next(&mut sched, at(100)).is_err());
    let drained = sched.drain();
    assert_eq!(drained.iter().map(|r| r.tag.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(next(&mut sched, at(100)), Err(None));
    // A completion now has no effect, and the tag can be reused.
    sched.completed(at(101), &in_drive);
    assert_eq!(sched.in_drive_count, 0);
    sched.insert(at(102), of(2, write(0, FAR, 102)));
    assert_eq!(next(&mut sched, at(102)), Ok(0));
}

#[test]
fn the_clock_of_a_batch_starts_when_the_drive_is_empty() {
    let mut sched = Anticipatory::new(ticking(1_000));
    for (tag, lba) in [(0, 1_000), (1, 2_000)] {
        sched.insert(at(0), read(tag, lba, 0));
    }
    assert_eq!(next(&mut sched, at(0)), Ok(0));
    assert_eq!(next(&mut sched, at(0)), Ok(1));
    sched.insert(at(0), write(2, FAR, 0));
    sched.insert(at(0), read(3, 3_000, 0));
    // The batch of reads does not end before its first request is back, and 500 ms later.
    sched.completed(at(300), &read(0, 1_000, 0));
    assert_eq!(sched.batch_expires, sched.hz.at(at(800)));
    // The writes' turn waits until the last read is back.
    assert!(next(&mut sched, at(801)).is_err());
    assert!(sched.draining);
    sched.completed(at(900), &read(1, 2_000, 0));
    assert_eq!(sched.batch_expires, sched.hz.at(at(1_025)));
    assert_eq!(next(&mut sched, at(900)), Ok(2));
    // Back to reads: the time of the batch starts with its first completion.
    sched.insert(at(901), write(4, FAR + 8, 901));
    assert!(next(&mut sched, at(1_026)).is_err());
    sched.completed(at(1_030), &write(2, FAR, 0));
    assert_eq!(next(&mut sched, at(1_030)), Ok(3));
    sched.completed(at(1_100), &read(3, 3_000, 0));
    assert_eq!(sched.batch_expires, sched.hz.at(at(1_600)));
}

#[test]
fn a_wait_goes_on_when_others_are_withdrawn_and_stays_ended_when_its_own_request_is() {
    let mut sched = reader(ticking(1_000), Nanos::from_millis(1));
    for (process, tag) in [(2, 1), (3, 2)] {
        let lba = FAR * u64::from(tag);
        sched.insert(at(100), of(process, read(tag, lba, 100)));
    }
    assert_eq!(next(&mut sched, at(100)), Err(Some(at(106))));
    // The next request of the sweep leaves.
    assert_eq!(sched.next[Kind::Sync], Some(Tag(1)));
    assert_eq!(sched.withdraw(Tag(1)).tag, Tag(1));
    assert_eq!(sched.next[Kind::Sync], Some(Tag(2)));
    assert_eq!(next(&mut sched, at(101)), Err(Some(at(106))));
    sched.insert(at(102), of(1, read(3, 1_040, 102)));
    assert_eq!(sched.withdraw(Tag(3)).tag, Tag(3));
    let owner = sched.contexts.of(&of(1, read(3, 0, 0)));
    assert_eq!(sched.contexts.get(owner).queued, 0);
    // The tag is reused for a request that is not awaited and is the nearest.
    sched.insert(at(102), of(2, read(3, FAR, 102)));
    assert_eq!(next(&mut sched, at(102)), Ok(3));
    let waits = sched.waits();
    assert_eq!((waits.waits, waits.waits_won, waits.waits_lost), (1, 0, 1));
}

#[test]
fn a_batch_whose_requests_are_all_withdrawn_gives_way() {
    let mut sched = Anticipatory::new(ticking(1_000));
    serve(&mut sched, at(0), at(1), read(0, 1_000, 0));
    sched.insert(at(2), write(1, FAR, 2));
    assert_eq!(next(&mut sched, at(2)), Ok(1));
    sched.insert(at(2), write(2, FAR + 8, 2));
    sched.insert(at(2), read(3, 2_000, 2));
    sched.withdraw(Tag(2));
    sched.completed(at(3), &write(1, FAR, 2));
    assert_eq!(next(&mut sched, at(3)), Ok(3));
    sched.completed(at(4), &read(3, 2_000, 2));
    assert_eq!(next(&mut sched, at(4)), Err(None));
}

#[test]
fn reads_alone_never_end_their_batch() {
    let mut sched = reader(ticking(1_000), Nanos::ZERO);
    for ms in 1..10 {
        let lba = 1_040 + 8 * (ms - 1);
        serve(
            &mut sched,
            at(1_000 * ms),
            at(1_000 * ms),
            of(1, read(0, lba, 0)),
        );
    }
    sched.insert(at(9_100), of(1, read(1, 1_112, 9_100)));
    sched.insert(at(9_100), of(1, write(2, FAR, 9_100)));
    assert_eq!(next(&mut sched, at(9_100)), Ok(1));
    assert_eq!(sched.batch_expires, sched.hz.at(at(9_500)));
}

#[derive(Clone, Debug)]
enum Step {
    /// A request of a process at an address: a read, a write or a synchronous write.
    Insert(u32, u64, u8),
    /// A pause, in microseconds.
    Pass(u64),
    Dispatch,
    Complete(usize),
    /// Fusion of two queued requests.
    Fuse(usize, usize),
    Withdraw(usize),
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lba = prop_oneof![0..20_000_u64, 0..4_000_000_u64];
    let step = prop_oneof![
        40 => (0..4_u32, lba, 0..4_u8).prop_map(|(p, lba, kind)| Step::Insert(p, lba, kind)),
        20 => prop_oneof![0..3_000_u64, 0..200_000_u64].prop_map(Step::Pass),
        60 => Just(Step::Dispatch),
        40 => any::<usize>().prop_map(Step::Complete),
        5 => (any::<usize>(), any::<usize>()).prop_map(|(kept, gone)| Step::Fuse(kept, gone)),
        5 => any::<usize>().prop_map(Step::Withdraw),
        1 => Just(Step::Drain),
    ];
    prop::collection::vec(step, 0..300)
}

impl Anticipatory {
    /// Checks the invariants between any two calls.
    fn check(&self, in_drive: &[Request]) {
        for kind in [Kind::Async, Kind::Sync] {
            assert_eq!(self.next[kind].is_some(), self.count(kind) > 0, "{kind:?}");
            let list = |next| self.sorted.requests().list_of(next);
            assert!(self.next[kind].is_none_or(|next| list(next) == kind.list()));
        }
        assert_eq!(self.in_drive_count, in_drive.len());
        for kind in [Kind::Async, Kind::Sync] {
            for request in self.sorted.requests().iter(kind.list()) {
                let of = |other: &&Request| other.origin.process == request.origin.process;
                let lists = [Kind::Async, Kind::Sync].map(Kind::list);
                let all = lists
                    .iter()
                    .flat_map(|list| self.sorted.requests().iter(*list));
                let context = self.contexts.get(self.contexts.of(request));
                assert_eq!(context.queued as usize, all.filter(of).count());
            }
        }
        let waits = matches!(self.waiting, Waiting::Drive | Waiting::Next(_));
        assert!(!waits || self.anticipated.is_some());
        assert!(self.quota > 0);
    }
}

proptest! {
    #[test]
    fn an_idle_disk_waits_for_a_process_no_longer_than_it_may(
        steps in steps(),
        hz in prop_oneof![Just(100_u64), Just(250), Just(1_000)],
        antic_ms in prop_oneof![Just(0_u64), Just(6), Just(30)],
    ) {
        let config = AnticipatoryConfig {
            antic_expire: Nanos::from_millis(antic_ms),
            ..ticking(hz)
        };
        let mut sched = Anticipatory::new(config);
        let antic = sched.hz.time(Jiffies::new(sched.ticks.antic)) - Time::ZERO;
        let (mut now, mut free) = (Time::ZERO, (0..300).rev().collect::<Vec<u32>>());
        let (mut queued, mut in_drive): (Vec<u32>, Vec<Request>) = (vec![], vec![]);
        // Time since which the drive has been idle although requests are queued.
        let mut idle: Option<Time> = None;
        for step in steps {
            match step {
                Step::Insert(process, lba, kind) => {
                    let tag = free.pop().expect("there are as many as steps");
                    let op = if kind < 2 { Op::Read } else { Op::Write };
                    let mut request = Request::new(Tag(tag), op, Extent::at(lba, 8), now);
                    if kind == 2 {
                        request.flags = Flags::SYNC;
                    }
                    sched.insert(now, of(process, request));
                    queued.push(tag);
                }
                Step::Pass(micros) => now += Nanos::from_micros(micros),
                Step::Complete(which) if !in_drive.is_empty() => {
                    let request = in_drive.remove(which % in_drive.len());
                    sched.completed(now, &request);
                    free.push(request.tag.0);
                }
                Step::Fuse(kept, gone) if queued.len() > 1 => {
                    let (kept, gone) = (queued[kept % queued.len()], gone % queued.len());
                    let one = *sched.sorted.requests().get(Tag(kept));
                    let other = *sched.sorted.requests().get(Tag(queued[gone]));
                    if kept != queued[gone] && one.op == other.op && one.flags == other.flags {
                        sched.fused(Tag(kept), other.tag);
                        let arrival = one.arrival.min(other.arrival);
                        sched.merged(&Request { arrival, ..one });
                        free.push(queued.remove(gone));
                    }
                }
                Step::Withdraw(which) if !queued.is_empty() => {
                    let tag = queued.remove(which % queued.len());
                    prop_assert_eq!(sched.withdraw(Tag(tag)).tag, Tag(tag));
                    free.push(tag);
                }
                Step::Drain => {
                    prop_assert_eq!(sched.drain().len(), queued.len());
                    free.append(&mut queued);
                    free.extend(in_drive.drain(..).map(|request| request.tag.0));
                }
                Step::Dispatch => match sched.dispatch(now) {
                    Dispatch::Request(request) => {
                        queued.retain(|tag| *tag != request.tag.0);
                        in_drive.push(request);
                    }
                    Dispatch::IdleUntil(until) => {
                        prop_assert!(until > now && !queued.is_empty());
                        if in_drive.is_empty() {
                            let since = *idle.get_or_insert(now);
                            prop_assert!(until <= since + antic, "{until} since {since}");
                        }
                    }
                    Dispatch::Empty => prop_assert!(queued.is_empty()),
                },
                _ => {}
            }
            if !in_drive.is_empty() || queued.is_empty() {
                idle = None;
            }
            sched.check(&in_drive);
        }
    }
}
