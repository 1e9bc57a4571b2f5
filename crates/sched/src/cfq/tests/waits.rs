//! Processes for which the disk is kept free, and the length of the wait.

use super::*;

#[test]
fn the_disk_is_kept_free_for_eight_milliseconds() {
    for (mut sched, expected) in [
        (fine(), at(18)),
        // Two ticks of 4 ms, including the current tick.
        (Cfq::default(), at(16)),
    ] {
        sched.insert(at(0), of(0, read(0, 0, 0)));
        sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
        serve(&mut sched, 0, at(0), at(10));
        assert_eq!(idle_until(&mut sched, at(10)), Some(expected));
        // Another process's request changes nothing; the awaited process's request ends the
        // wait.
        sched.insert(at(12), of(2, read(2, 80_000_000, 12)));
        assert_eq!(idle_until(&mut sched, at(12)), Some(expected));
        sched.insert(at(13), of(0, read(0, 8, 13)));
        serve(&mut sched, 0, at(13), at(14));
        // Once the wait is over, the next queue has its turn.
        let again = idle_until(&mut sched, at(14)).expect("it waits again");
        assert_eq!(next(&mut sched, again).map(|r| r.tag), Some(Tag(1)));
    }
}

#[test]
fn the_disk_is_not_kept_free_while_anything_is_in_the_drive() {
    let mut sched = fine();
    sched.insert(at(0), write(0, 50_000_000, 0));
    let background = next(&mut sched, at(0)).expect("the write");
    // The reads take over from the asynchronous write.
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

#[test]
fn who_seeks_is_waited_for_two_milliseconds_in_whole_ticks() {
    let now = at(41);
    for (hz, expected) in [(1_000, at(43)), (250, at(44)), (100, at(50))] {
        let hz = Hz::new(hz).expect("it is allowed");
        let config = CfqConfig {
            hz,
            ..CfqConfig::DEFAULT
        };
        // In ticks of 10 ms the wait is never longer than for other processes: one tick.
        let mut sched = seeking(Cfq::new(config), false);
        let until = idle_until(&mut sched, now).expect("it waits");
        assert_eq!(until, expected, "at {} Hz", hz.get());
        assert_eq!(next(&mut sched, until).map(|r| r.tag), Some(Tag(1)));
    }
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
    // The third sample decides. The first sample is no think time.
    let waits = waits_after(&mut sched, 12, 0);
    assert_eq!(waits[..2], [true, true]);
    assert!(waits[3..].iter().all(|waits| !waits), "{waits:?}");
    // If the process thinks less again, the scheduler waits for it again.
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
fn a_wait_that_nobody_else_cares_about_leaves_the_turn_as_it_is() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    serve(&mut sched, 0, at(0), at(1));
    assert_eq!(sched.dispatch(at(1)), Dispatch::Empty);
    // The wait is over at 9 ms, and no request came.
    sched.insert(at(20), of(0, read(0, 8, 20)));
    assert_eq!(sched.slice.and_then(|s| s.end), Some(Jiffies::new(101)));
    serve(&mut sched, 0, at(20), at(21));
    // Another request ends the turn if the wait is over, from 29 ms on. At 28 ms the request
    // is too early.
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
fn a_turn_is_over_when_the_request_that_ended_its_wait_is_withdrawn() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
    serve(&mut sched, 0, at(0), at(10));
    assert_eq!(idle_until(&mut sched, at(10)), Some(at(18)));
    sched.insert(at(12), of(0, read(0, 8, 12)));
    assert_eq!(sched.withdraw(Tag(0)).tag, Tag(0));
    assert_eq!(sched.queued(), 1);
    assert_eq!(next(&mut sched, at(12)).map(|r| r.tag), Some(Tag(1)));
    let waits = sched.waits();
    assert_eq!((waits.waits, waits.waits_won, waits.waits_lost), (1, 0, 1));
}

#[test]
fn a_wait_goes_on_when_others_are_withdrawn_and_when_its_own_request_did_not_end_it() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    sched.insert(at(0), of(1, read(1, 90_000_000, 0)));
    serve(&mut sched, 0, at(0), at(10));
    assert_eq!(idle_until(&mut sched, at(10)), Some(at(18)));
    assert_eq!(sched.withdraw(Tag(1)).tag, Tag(1));
    assert_eq!(sched.dispatch(at(11)), Dispatch::Empty);
    // With no other process, a request of one page does not end the wait for further
    // requests.
    sched.insert(at(12), of(0, read(0, 8, 12)));
    assert_eq!(sched.withdraw(Tag(0)).tag, Tag(0));
    sched.insert(at(14), of(1, read(1, 90_000_000, 14)));
    assert_eq!(idle_until(&mut sched, at(14)), Some(at(18)));
    // The wait goes on to its end. Then no request keeps the turn alive.
    assert_eq!(next(&mut sched, at(18)).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn a_process_without_requests_may_be_forgotten_after_its_last_one_is_withdrawn() {
    let mut sched = fine();
    sched.insert(at(0), of(7, read(0, 0, 0)));
    let context = sched.contexts.find(7).expect("it has a request");
    assert_eq!(sched.contexts[context].requests, 1);
    sched.withdraw(Tag(0));
    assert_eq!(sched.contexts[context].requests, 0);
    assert!(sched.rotation.is_empty() && sched.sweeps.positions.is_empty());
    assert_eq!(sched.dispatch(at(1)), Dispatch::Empty);
}
