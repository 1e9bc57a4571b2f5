//! When a wait pays, how long it is, and who may take the disk.

use super::*;

fn id(process: u32, sched: &Bfq) -> BfqQueueId {
    let id = sched.queues.find(process, Level::BestEffort);
    id.expect("the process has come")
}

/// A scheduler with a sequential process 1, whose last request is done at 20 ms, and a request of process 2.
fn after_a_scan(mut sched: Bfq) -> Bfq {
    sched.insert(at(0), of(1, long(0, 0, 256, 0)));
    serve(&mut sched, 0, at(0), at(10));
    sched.insert(at(10), of(1, long(0, 256, 256, 10)));
    sched.insert(at(10), of(2, read(1, 90_000_000, 10)));
    serve(&mut sched, 0, at(10), at(20));
    sched
}

#[test]
fn a_streaming_process_is_waited_for_8_ms() {
    let mut sched = after_a_scan(fair());
    assert_eq!(idle_until(&mut sched, at(20)), Some(at(28)));
    sched.insert(at(27), of(1, long(0, 512, 256, 27)));
    assert_eq!(next(&mut sched, at(27)).map(|r| r.tag), Some(Tag(0)));
    assert_eq!((sched.waits().waits, sched.waits().waits_won), (1, 1));
}

#[test]
fn a_wait_in_vain_ends_the_slot_and_shrinks_the_budget() {
    let mut sched = after_a_scan(fair());
    assert_eq!(idle_until(&mut sched, at(20)), Some(at(28)));
    assert_eq!(next(&mut sched, at(28)).map(|r| r.tag), Some(Tag(1)));
    assert_eq!(queue(&sched, 1).max_budget, 10_922 - 4 * 512);
    assert_eq!((sched.waits().waits, sched.waits().waits_lost), (1, 1));
}

#[test]
fn nobody_waits_without_slice_idle() {
    let mut sched = after_a_scan(Bfq::new(BfqConfig {
        low_latency: false,
        slice_idle: Nanos::ZERO,
        ..config()
    }));
    assert_eq!(next(&mut sched, at(20)).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn a_process_that_streams_no_more_is_not_waited_for() {
    type Change = fn(&mut Bfq);
    let changes: [(Change, bool); 6] = [
        (|_| {}, true),
        (|sched| queue_mut(sched, 1).history.seeks = u32::MAX, false),
        (|sched| queue_mut(sched, 1).history.pauses = true, false),
        (
            |sched| (0..60).for_each(|_| queue_mut(sched, 1).history.think.add(4_100_000, |_| 128)),
            false,
        ),
        (
            |sched| (0..60).for_each(|_| queue_mut(sched, 1).history.think.add(3_800_000, |_| 128)),
            true,
        ),
        (|sched| sched.raised_busy += 1, false),
    ];
    for (number, (change, pays)) in changes.into_iter().enumerate() {
        let mut sched = after_a_scan(fair());
        change(&mut sched);
        assert_eq!(sched.wait_pays(id(1, &sched)), pays, "{number}");
        assert_eq!(sched.boosts(id(1, &sched)), pays, "{number}");
    }
}

#[test]
fn every_process_is_waited_for_on_a_drive_that_does_not_queue() {
    let mut sched = after_a_scan(fair());
    queue_mut(&mut sched, 1).history.seeks = u32::MAX;
    assert!(!sched.wait_pays(id(1, &sched)));
    sched.drive.queues = Some(false);
    assert!(sched.wait_pays(id(1, &sched)));
    sched.wait(at(20));
    assert_eq!(sched.slot.unwrap().timer, Some(at(22)), "it is seeky");
}

#[test]
fn a_seeky_process_is_waited_for_if_no_other_is_busy_or_if_classes_differ() {
    let mut sched = fair();
    sched.insert(at(0), of(1, read(0, 0, 0)));
    next(&mut sched, at(0)).unwrap();
    queue_mut(&mut sched, 1).history.seeks = u32::MAX;
    assert!(sched.wait_pays(id(1, &sched)));
    queue_mut(&mut sched, 1).history.seeks = 0;
    sched.insert(at(1), of(2, read(1, 90_000_000, 1)));
    queue_mut(&mut sched, 1).history.seeks = u32::MAX;
    assert!(!sched.wait_pays(id(1, &sched)));
    sched.insert(at(1), class(Class::IDLE, of(3, read(2, 70_000_000, 1))));
    assert!(sched.wait_pays(id(1, &sched)));
    sched.wait(at(2));
    assert_eq!(sched.slot.unwrap().timer, Some(at(10)), "classes differ");
}

#[test]
fn a_raised_process_is_waited_for_20_ms_if_another_is_not_raised() {
    let mut sched = after_a_scan(fair());
    let raised = |sched: &mut Bfq, process| {
        let raise = crate::bfq::raise::Raise {
            is_on: true,
            ..Default::default()
        };
        let id = id(process, sched);
        sched.set_raise(id, raise);
    };
    queue_mut(&mut sched, 1).history.seeks = u32::MAX;
    raised(&mut sched, 1);
    assert!(sched.wait_pays(id(1, &sched)));
    sched.wait(at(20));
    assert_eq!(sched.slot.unwrap().timer, Some(at(40)));
    raised(&mut sched, 2);
    assert!(!sched.wait_pays(id(1, &sched)), "all are raised");
    sched.drive.by_level[1] += 4;
    assert!(
        sched.wait_pays(id(1, &sched)),
        "others press into the drive"
    );
}

#[test]
fn a_request_takes_the_disk_from_a_process_that_is_not_worth_a_wait() {
    let mut sched = after_a_scan(fair());
    sched.insert(at(21), of(1, long(0, 512, 256, 21)));
    sched.insert(at(21), of(3, read(2, 70_000_000, 21)));
    assert_eq!(in_service(&sched), Some(1));
    queue_mut(&mut sched, 1).history.seeks = u32::MAX;
    sched.insert(at(21), of(4, read(3, 80_000_000, 21)));
    assert_eq!(in_service(&sched), None);
}

#[test]
fn a_higher_class_takes_the_disk_and_a_lower_does_not() {
    let mut sched = after_a_scan(fair());
    sched.insert(at(21), class(Class::IDLE, of(3, read(2, 70_000_000, 21))));
    assert_eq!(in_service(&sched), Some(1));
    sched.insert(
        at(21),
        class(Class::REAL_TIME, of(4, read(3, 80_000_000, 21))),
    );
    assert_eq!(in_service(&sched), None);
    assert_eq!(next(&mut sched, at(21)).map(|r| r.tag), Some(Tag(3)));
}

#[test]
fn a_process_that_comes_back_on_time_takes_the_disk() {
    // Process 2 leaves budget, and comes back when its requests have been done for this long.
    let takes = |ms: u64, dry| {
        let mut sched = after_a_scan(fair());
        assert_eq!(idle_until(&mut sched, at(20)), Some(at(28)));
        queue_mut(&mut sched, 2).history.seeks = 0;
        sched.insert(at(20), of(1, long(0, 512, 256, 20)));
        serve(&mut sched, 0, at(20), at(30));
        assert_eq!(next(&mut sched, at(38)).map(|r| r.tag), Some(Tag(1)));
        sched.completed(at(39), &of(2, read(1, 90_000_000, 10)));
        assert_eq!(next(&mut sched, at(39)), None);
        sched.run_timer(at(47), true);
        queue_mut(&mut sched, 2).ran_dry &= dry;
        sched.insert(at(47), of(1, long(0, 768, 256, 47)));
        next(&mut sched, at(47)).expect("process 2 is waited for no more");
        queue_mut(&mut sched, 1).history.pauses = false;
        sched.insert(at(39 + ms), of(2, read(1, 90_000_008, 39 + ms)));
        in_service(&sched) != Some(1)
    };
    assert!(takes(24, true));
    assert!(!takes(25, true));
    assert!(!takes(24, false));
}

#[test]
fn an_empty_queue_that_needs_its_share_keeps_its_place_when_preempted() {
    let mut sched = fair();
    sched.insert(at(0), of(1, read(0, 0, 0)));
    let first = next(&mut sched, at(0)).unwrap();
    sched.insert(at(1), class(Class::REAL_TIME, of(2, read(1, 8_000, 1))));
    assert!(queue(&sched, 1).busy && queue(&sched, 1).is_empty());
    assert_eq!(next(&mut sched, at(1)).map(|r| r.tag), Some(Tag(1)));
    sched.completed(at(2), &first);
    sched.completed(at(3), &class(Class::REAL_TIME, of(2, read(1, 8_000, 1))));
    sched.run_timer(at(11), true);
    sched.insert(at(12), of(3, read(0, 900_000, 12)));
    assert_eq!(next(&mut sched, at(12)).map(|r| r.tag), Some(Tag(0)));
    assert!(!queue(&sched, 1).busy, "nothing of it is in the drive");
}

#[test]
fn strict_guarantees_keep_one_request_in_the_drive() {
    let mut sched = Bfq::new(BfqConfig {
        strict_guarantees: true,
        low_latency: false,
        ..config()
    });
    sched.insert(at(0), write(0, 0, 0));
    sched.insert(at(0), write(1, 900, 0));
    let first = next(&mut sched, at(0)).unwrap();
    assert_eq!(next(&mut sched, at(0)), None);
    sched.completed(at(5), &first);
    serve(&mut sched, 1, at(5), at(9));
    sched.insert(at(9), of(1, read(0, 0, 9)));
    assert_eq!(
        idle_until(&mut sched, at(9)),
        Some(at(17)),
        "also for writes"
    );
}

#[test]
fn a_queue_is_seeky_with_more_than_19_seeks_among_32_requests() {
    let seeky = |seeks: u64| {
        let mut queue = queue::BfqQueue::default();
        let mut lba = 0;
        for number in 0..32 {
            lba += if number < seeks + 1 { 801 + 8 } else { 800 + 8 };
            queue.observe(at(0), Extent::at(lba, 8), Nanos::from_millis(8));
        }
        queue.history.is_seeky()
    };
    assert_eq!([19, 20].map(seeky), [false, true]);
}

#[test]
fn a_queue_that_pauses_for_more_than_a_fifth_is_not_io_bound() {
    // Each period of 10 ms has a pause of this length.
    let bound = |pause: u64| {
        let mut queue = queue::BfqQueue {
            is_known: true,
            ..queue::BfqQueue::default()
        };
        for period in 0..100 {
            let now = at(10 * period);
            queue.history.last_completion = now.saturating_sub(Nanos::from_millis(pause));
            queue.observe(now, Extent::at(0, 8), Nanos::from_millis(8));
        }
        !queue.history.pauses
    };
    assert_eq!([1, 2, 3].map(bound), [true, true, false]);
}

#[test]
fn a_heavier_queue_takes_the_disk_and_one_on_time_only_from_its_like() {
    let raised = crate::bfq::raise::Raise {
        is_on: true,
        until: Time::LATEST,
        served: 0,
    };
    // Process 3 comes back on time or anew, raised or not, while the scan of process 1 is in service.
    let takes = |on_time: bool, mine: bool, of_scan: bool| {
        let mut sched = after_a_scan(fair());
        sched.insert(at(20), of(1, long(0, 512, 256, 20)));
        sched.insert(at(20), of(1, long(4, 768, 256, 20)));
        if of_scan {
            let scan = id(1, &sched);
            sched.set_raise(scan, raised);
            sched.queues.weigh(scan);
        }
        sched.queues.add(3, Level::BestEffort, at(20), 10_922);
        let queue = queue_mut(&mut sched, 3);
        (queue.ran_dry, queue.share.budget) = (on_time, 5_000);
        queue.is_known = true;
        queue.raise.is_on = mine;
        queue.raise.until = Time::LATEST;
        // Other requests in the drive make the raised scan worth a wait.
        sched.drive.by_level[1] += 9;
        // So that only the weight decides.
        sched.config.strict_guarantees = mine;
        sched.insert(at(21), of(3, read(3, 80_000_000, 21)));
        in_service(&sched) != Some(1)
    };
    assert!(!takes(false, false, false), "equal");
    assert!(takes(true, false, false), "on time");
    assert!(takes(false, true, false), "heavier");
    assert!(!takes(true, false, true), "on time, but the scan is raised");
}

#[test]
fn a_think_time_counts_no_more_than_two_waits() {
    let mut queue = queue::BfqQueue::default();
    for _ in 0..60 {
        queue.observe(at(1_000), Extent::at(0, 8), Nanos::from_millis(8));
    }
    assert!(queue.history.think.mean.abs_diff(16_000_000) < 500_000);
}
