//! Budgets, charges and ends of slots.

use super::*;
use crate::bfq::slot::{min_budget, next_budget};

const MAX: u64 = 16_384;
const MIN: u64 = 512;

#[test]
fn the_next_budget_follows_from_the_end_of_the_slot() {
    assert_eq!(min_budget(MAX), MIN);
    for (end, budget, served, in_drive, next) in [
        (End::Exhausted, 1_000, 999, 0, 4_000),
        (End::Exhausted, 5_000, 5_000, 0, MAX),
        (End::Timeout, 5_000, 100, 0, 10_000),
        (End::Timeout, 10_000, 100, 0, MAX),
        (End::TooIdle, 3_000, 100, 1, 6_000),
        (End::TooIdle, 3_000, 100, 0, 3_000 - 4 * MIN),
        (End::TooIdle, 2_000, 100, 0, MIN),
        (End::NoMore, 3_000, 2_000, 0, 2_000),
        (End::NoMore, 3_000, 100, 0, MIN),
        (End::Preempted, 3_000, 100, 0, 3_000),
    ] {
        let got = next_budget(end, budget, served, in_drive, MAX);
        assert_eq!(got, next, "{end:?}, {budget}");
    }
}

#[test]
fn the_largest_budget_goes_by_the_rate_from_the_eleventh_slot_on() {
    let mut sched = fair();
    assert_eq!(sched.max_budget(), 16_384);
    sched.slots = 10;
    assert_eq!(sched.max_budget(), 16_384);
    sched.slots = 11;
    // 72.9 MB/s for 125 ms.
    assert_eq!(sched.max_budget(), 17_801);
    sched.config.max_budget = 77;
    assert_eq!(sched.max_budget(), 77);
}

/// Queues `queued` reads of 256 sectors of process 1, with tags from 0. Serves the first `count`, each in `each`
/// milliseconds, and returns the end of the last.
fn stream(sched: &mut Bfq, queued: u32, count: u32, each: u64) -> Time {
    for tag in 0..queued {
        let request = of(1, long(tag, u64::from(tag) * 256, 256, 0));
        sched.insert(at(0), request);
    }
    for tag in 0..count {
        let now = each * u64::from(tag);
        serve(sched, tag, at(now), at(now + each));
    }
    at(each * u64::from(count))
}

#[test]
fn a_new_queue_has_two_thirds_of_the_largest_budget_and_then_four_times_that() {
    let mut sched = fair();
    // 42 requests of 256 sectors fit into 10922.
    let now = stream(&mut sched, 44, 42, 1);
    assert_eq!(queue(&sched, 1).max_budget, 10_922);
    assert_eq!(queue(&sched, 1).share.served, 42 * 256);
    assert!(next(&mut sched, now).is_some(), "it is alone");
    assert_eq!(queue(&sched, 1).max_budget, MAX);
    assert_eq!(queue(&sched, 1).share.served, 256);
}

#[test]
fn a_slot_ends_after_125_ms_and_counts_time_if_a_third_of_the_budget_is_left() {
    let mut sched = fair();
    let now = stream(&mut sched, 20, 12, 10);
    sched.insert(now, of(2, long(90, 50_000_000, 256, 120)));
    let request = next(&mut sched, now).expect("time is left");
    assert_eq!(in_service(&sched), Some(1));
    sched.completed(at(130), &request);
    // 3328 sectors were served in 130 ms, which count as the largest budget.
    assert_eq!(queue(&sched, 1).max_budget, MAX);
    assert_eq!(next(&mut sched, at(130)).map(|r| r.tag), Some(Tag(90)));
}

#[test]
fn two_thirds_of_the_budget_in_a_slot_that_times_out_are_charged_as_sectors() {
    let charged = |each| {
        let mut sched = fair();
        let now = stream(&mut sched, 44, 40, each);
        let share = queue(&sched, 1).share;
        sched.slot.expect("it is in service");
        sched.charge_time(
            sched.slot.unwrap().queue,
            End::Timeout,
            now.saturating_since(at(0)),
        );
        queue(&sched, 1).share.served - share.served
    };
    assert_eq!(charged(1), 0, "10240 of 10922 sectors");
    let mut sched = fair();
    let now = stream(&mut sched, 44, 20, 7);
    let id = sched.slot.expect("it is in service").queue;
    let length = now.saturating_since(at(0));
    sched.charge_time(id, End::Timeout, length);
    assert_eq!(queue(&sched, 1).share.served, MAX, "5120 of 10922 sectors");
}

#[test]
fn a_seeky_slot_of_less_than_a_millisecond_counts_eight() {
    let charged = |micros| {
        let mut sched = fair();
        for tag in 0..21 {
            sched.insert(at(0), of(1, read(tag, u64::from(tag) * 5_000_000, 0)));
        }
        next(&mut sched, at(0)).expect("it is alone");
        let id = sched.slot.expect("it is in service").queue;
        assert!(queue(&sched, 1).history.is_seeky());
        sched.charge_time(id, End::NoMore, Nanos::from_micros(micros));
        queue(&sched, 1).share.served
    };
    assert_eq!(charged(999), MAX * 8 / 125);
    assert_eq!(charged(0), MAX * 8 / 125);
    assert_eq!(charged(1_000), MAX / 125);
    assert_eq!(charged(2_000), MAX * 2 / 125);
    // More than 20 ms with less than half of the largest budget.
    assert_eq!(charged(25_000), MAX * 25 / 125);
}

#[test]
fn a_sequential_slot_counts_time_only_if_it_was_long_and_slow() {
    let charged = |millis| {
        let mut sched = fair();
        stream(&mut sched, 20, 10, 1);
        let id = sched.slot.expect("it is in service").queue;
        sched.charge_time(id, End::NoMore, Nanos::from_millis(millis));
        queue(&sched, 1).share.served
    };
    assert_eq!(charged(20), 2_560);
    assert_eq!(charged(21), MAX * 21 / 125);
}

#[test]
fn asynchronous_sectors_count_three_times() {
    let mut sched = fair();
    sched.insert(at(0), write(0, 0, 0));
    assert_eq!(
        sched.next_charge(BfqQueueId::shared(Level::BestEffort)),
        Some(24)
    );
    // Not while several classes are busy.
    sched.insert(at(0), class(Class::REAL_TIME, read(1, 0, 0)));
    assert_eq!(
        sched.next_charge(BfqQueueId::shared(Level::BestEffort)),
        Some(8)
    );
}

#[test]
fn the_oldest_request_goes_second_if_it_has_expired() {
    let second = |age| {
        let mut sched = fair();
        for (tag, lba, ms) in [(0, 900_000, 0), (1, 1_000, 1), (2, 1_008, 1)] {
            sched.insert(at(ms), of(1, read(tag, lba, ms)));
        }
        next(&mut sched, at(age)).expect("it is alone");
        next(&mut sched, at(age)).map(|request| request.tag.0)
    };
    assert_eq!([124, 125].map(second), [Some(2), Some(0)]);
}

#[test]
fn an_idle_class_is_asked_for_one_request_at_a_time() {
    let mut sched = fair();
    for tag in 0..3 {
        sched.insert(
            at(0),
            class(Class::IDLE, of(1, read(tag, 8 * u64::from(tag), 0))),
        );
    }
    assert!(
        next(&mut sched, at(0)).is_some() && sched.slot.is_some(),
        "alone"
    );
    sched.insert(at(0), of(2, read(9, 0, 0)));
    assert_eq!(
        next(&mut sched, at(0)).map(|request| request.tag),
        Some(Tag(9))
    );
}

#[test]
fn a_wait_after_the_timeout_goes_on_if_most_of_the_budget_is_used() {
    let mut sched = fair();
    stream(&mut sched, 44, 9, 13);
    let mut slot = sched.slot.expect("it is in service");
    slot.timer = Some(at(138));
    let mut late = |used| {
        queue_mut(&mut sched, 1).share.served = used;
        sched.may_time_out(at(138), &slot)
    };
    assert_eq!(
        [7_282, 7_283].map(&mut late),
        [true, false],
        "of 10922 sectors"
    );
}

#[test]
fn the_wait_does_not_count_for_the_length_of_the_slot() {
    let mut sched = fair();
    sched.insert(at(0), of(1, long(0, 0, 256, 0)));
    serve(&mut sched, 0, at(0), at(15));
    assert_eq!(sched.slot.expect("it is waited for").timer, Some(at(23)));
    sched.run_timer(at(23), true);
    assert_eq!(queue(&sched, 1).share.served, 256, "15 ms, not 23");
}
