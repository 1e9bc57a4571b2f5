//! Merging of requests, withdrawal, draining, memory.

use super::*;
use crate::bfq::queue::REMEMBERED_MAX;
use crate::tests::grown;

#[test]
fn requests_merge_within_a_queue_and_a_process_only() {
    let mut sched = fair();
    sched.insert(at(0), of(1, read(0, 0, 0)));
    let may = |sched: &Bfq, request| sched.may_merge(Tag(0), &request);
    assert!(may(&sched, of(1, read(1, 8, 0))));
    assert!(!may(&sched, of(2, read(1, 8, 0))), "an unknown process");
    assert!(!may(&sched, of(1, write(1, 8, 0))));
    sched.insert(at(0), of(2, read(2, 90_000_000, 0)));
    assert!(!may(&sched, of(2, read(1, 8, 0))));
    // The process moved on to another queue, and its first request stayed.
    let [one, two] = [1, 2].map(|process| sched.queues.find(process, Level::BestEffort).unwrap());
    sched.merge(one, two);
    assert!(!may(&sched, of(1, read(1, 8, 0))));
    sched.insert(at(0), of(1, read(3, 8, 0)));
    assert!(!may(&sched, of(1, read(3, 8, 0))), "two queues");
}

#[test]
fn a_request_that_grew_at_its_front_is_served_from_there() {
    let mut sched = fair();
    for (tag, lba) in [(0, 5_000), (1, 9_000)] {
        sched.insert(at(0), of(1, read(tag, lba, 0)));
    }
    sched.merged(&grown(of(1, read(1, 9_000, 0)), 4_000, 5_008));
    assert_eq!(
        next(&mut sched, at(0)).map(|request| request.tag),
        Some(Tag(1))
    );
    sched.insert(at(0), of(1, read(2, 5_008, 0)));
    sched.merged(&grown(of(1, read(0, 5_000, 0)), 5_000, 16));
    sched.fused(Tag(0), Tag(2));
    assert_eq!(sched.queued(), 1);
}

#[test]
fn a_queue_whose_only_request_is_withdrawn_is_busy_no_more() {
    let mut sched = fair();
    sched.insert(at(0), of(1, read(0, 0, 0)));
    assert_eq!(sched.withdraw(Tag(0)).tag, Tag(0));
    assert!(!queue(&sched, 1).busy && sched.busy_queues() == 0);
    assert_eq!(sched.dispatch(at(0)), Dispatch::Empty);
}

#[test]
fn a_drained_scheduler_starts_anew() {
    let mut sched = Bfq::default();
    for tag in [3, 1, 2] {
        sched.insert(at(0), of(tag, read(tag, 0, 0)));
    }
    let tags: Vec<u32> = sched.drain().iter().map(|request| request.tag.0).collect();
    assert_eq!(tags, [3, 1, 2]);
    assert!(sched.queued() == 0 && sched.slot.is_none() && sched.raised_busy == 0);
}

#[test]
fn the_queue_quiet_for_longest_is_forgotten() {
    let mut sched = fair();
    for process in 0..REMEMBERED_MAX as u32 {
        let ms = u64::from(process) * 20;
        sched.insert(at(ms), of(process, read(process, 0, ms)));
        serve(&mut sched, process, at(ms), at(ms));
        sched.run_timer(at(ms + 10), true);
    }
    let now = at(1_000_000);
    sched.insert(now, of(0, read(0, 0, 0)));
    sched.insert(now, of(90_000, read(1, 0, 0)));
    let known = |process| sched.queues.find(process, Level::BestEffort).is_some();
    assert!(known(0) && !known(1) && known(2) && known(90_000));
}

#[test]
fn requests_without_a_process_share_a_queue() {
    let mut sched = fair();
    for tag in 0..3 {
        sched.insert(at(0), read(tag, 1_000 * u64::from(tag), 0));
    }
    assert_eq!(queue(&sched, 0).sweep.len(), 3);
    assert_eq!(sched.busy_queues(), 1);
}

#[test]
fn a_withdrawal_in_the_middle_of_a_slot_leaves_the_slot() {
    let mut sched = fair();
    for tag in [0, 1] {
        sched.insert(at(0), of(1, read(tag, 8 * u64::from(tag), 0)));
    }
    let first = next(&mut sched, at(0)).unwrap();
    sched.withdraw(Tag(1));
    assert!(queue(&sched, 1).busy && in_service(&sched) == Some(1));
    // The process's requests in the drive are done, and it has a queue that is not busy.
    sched.completed(at(1), &first);
    sched.run_timer(at(9), true);
    assert!(!queue(&sched, 1).busy && sched.busy_queues() == 0);
}
