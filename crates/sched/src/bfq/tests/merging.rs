//! Queues that become one, for a while or for good.

use super::*;

fn id(sched: &Bfq, process: u32) -> BfqQueueId {
    let id = sched.queues.find(process, Level::BestEffort);
    id.expect("the process has come")
}

fn target(sched: &Bfq, process: u32) -> u32 {
    let target = sched.queues.target(id(sched, process));
    sched.queues[target].process.expect("it is synchronous")
}

/// Process 1 is in service and has another request queued. Process 2 comes at `ms` and reads at `lba`.
fn second_reader(lba: u64, ms: u64) -> Bfq {
    let mut sched = fair();
    for (tag, lba) in [(0, 1_000_000), (1, 1_000_008)] {
        sched.insert(at(0), of(1, read(tag, lba, 0)));
    }
    next(&mut sched, at(0)).unwrap();
    sched.insert(at(ms), of(3, read(3, 800_000_000, ms)));
    sched.insert(at(ms), of(2, read(2, lba, ms)));
    sched
}

#[test]
fn a_reader_close_to_the_queue_in_service_shares_it_and_others_do_not() {
    let close = 1_000_008 + 8_192;
    for (lba, into) in [
        (close, 1),
        (close + 1, 2),
        (1_000_008 - 8_192, 1),
        (1_000_008 - 8_193, 2),
    ] {
        assert_eq!(target(&second_reader(lba, 0), 2), into, "{lba}");
    }
    let sched = second_reader(close, 0);
    assert_eq!(queue(&sched, 1).sweep.len(), 2);
    assert_eq!(queue(&sched, 1).sharers, 1);
}

#[test]
fn a_queue_merges_within_100_ms_of_its_first_service() {
    assert_eq!(target(&second_reader(1_000_016, 100), 2), 1);
    assert_eq!(target(&second_reader(1_000_016, 101), 2), 2);
}

#[test]
fn a_reader_close_to_a_queue_that_waits_shares_it() {
    let near = 800_000_000 + 100;
    assert_eq!(target(&second_reader(near, 0), 2), 3);
}

#[test]
fn seeky_queues_classes_and_writes_do_not_share() {
    let mut sched = second_reader(70_000_000, 0);
    queue_mut(&mut sched, 1).history.seeks = u32::MAX;
    sched.insert(at(1), of(4, read(4, 1_000_016, 1)));
    assert_eq!(target(&sched, 4), 4);
    queue_mut(&mut sched, 1).history.seeks = 0;
    sched.insert(at(1), class(Class::REAL_TIME, of(5, read(5, 1_000_016, 1))));
    let real_time = sched.queues.find(5, Level::RealTime).unwrap();
    assert_eq!(sched.queues.target(real_time), real_time);
    sched.insert(at(1), of(6, write(6, 1_000_016, 1)));
    assert_eq!(queue(&sched, 1).sharers, 0);
    sched.insert(at(1), of(7, read(7, 1_000_016, 1)));
    assert_eq!(target(&sched, 7), 4, "the nearest that waits");
}

#[test]
fn a_shared_queue_that_turned_seeky_gives_its_processes_their_queues_back() {
    let mut sched = second_reader(1_000_016, 0);
    queue_mut(&mut sched, 1).history.seeks = u32::MAX;
    sched.insert(at(1), of(2, read(4, 1_000_024, 1)));
    assert_eq!(target(&sched, 2), 1, "the slot goes on");
    sched.expire(at(2), End::Timeout);
    sched.insert(at(3), of(2, read(5, 1_000_032, 3)));
    assert_eq!((target(&sched, 2), queue(&sched, 1).sharers), (2, 0));
    assert_eq!(
        queue(&sched, 2).sweep.len(),
        1,
        "others stay where they are"
    );
    assert!(!queue(&sched, 1).splits && queue(&sched, 2).split_at == Some(at(3)));
}

#[test]
fn a_merged_queue_brings_its_raising_along() {
    let mut sched = Bfq::default();
    sched.insert(at(0), of(1, read(0, 1_000_000, 0)));
    sched.insert(at(0), of(2, read(1, 700_000_000, 0)));
    next(&mut sched, at(0)).unwrap();
    let served = in_service(&sched).unwrap();
    let other = 3 - served;
    let into = id(&sched, served);
    sched.set_raise(into, Default::default());
    assert_eq!(sched.raised_busy, 1);
    let from = id(&sched, other);
    sched.merge(from, into);
    assert!(queue(&sched, served).raise.is_on);
    assert_eq!(sched.raised_busy, 2);
    assert!(!sched.wait_pays(from), "no process uses it");
}

/// Process 2 comes `apart` behind process 1, and again at `ms`, seeky or not. Returns the process whose queue it uses.
fn younger(apart: u64, ms: u64, seeky: bool) -> u32 {
    let mut sched = fair();
    sched.insert(at(0), of(1, read(1, 0, 0)));
    serve(&mut sched, 1, at(0), at(0));
    sched.insert(at(apart), of(2, read(2, 900_000_000, apart)));
    sched.run_timer(at(apart + 20), true);
    serve(&mut sched, 2, at(apart + 20), at(apart + 20));
    sched.run_timer(at(apart + 40), true);
    if seeky {
        queue_mut(&mut sched, 2).history.seeks = u32::MAX;
    }
    queue_mut(&mut sched, 2).history.pauses = false;
    sched.insert(at(ms), of(2, read(2, 100_000_000, ms)));
    target(&sched, 2)
}

#[test]
fn a_queue_created_behind_another_merges_for_good_unless_a_wait_for_it_pays() {
    assert_eq!(younger(180, 781, true), 1);
    assert_eq!(younger(180, 780, true), 2, "not before 600 ms");
    assert_eq!(younger(181, 790, true), 2, "created too late");
    assert_eq!(younger(180, 781, false), 2, "it streams");
}

#[test]
fn a_merge_for_good_is_tried_once_and_stays() {
    let mut sched = fair();
    sched.insert(at(0), of(1, read(1, 0, 0)));
    serve(&mut sched, 1, at(0), at(0));
    sched.run_timer(at(10), true);
    sched.insert(at(10), of(2, read(2, 900_000_000, 10)));
    serve(&mut sched, 2, at(10), at(10));
    sched.run_timer(at(30), true);
    assert!(queue(&sched, 2).elder.is_some());
    queue_mut(&mut sched, 2).history.seeks = u32::MAX;
    sched.insert(at(700), of(2, read(2, 0, 700)));
    assert!(queue(&sched, 2).elder.is_none() && queue(&sched, 2).merged_for_good);
    queue_mut(&mut sched, 1).splits = true;
    sched.insert(at(701), of(2, read(3, 0, 701)));
    assert_eq!(target(&sched, 2), 1);
}

#[test]
fn a_queue_that_was_served_for_long_merges_into_no_other() {
    let mut sched = second_reader(70_000_000, 0);
    queue_mut(&mut sched, 2).first_io = Some(at(0));
    let own = id(&sched, 2);
    let partner = |sched: &mut Bfq, ms| sched.partner(at(ms), own, own, Lba::new(800_000_000));
    assert_eq!(partner(&mut sched, 101), None);
    queue_mut(&mut sched, 3).first_io = None;
    assert_eq!(partner(&mut sched, 100), Some(id(&sched, 3)));
}

#[test]
fn a_queue_that_was_given_back_lately_does_not_merge_for_good() {
    let tested = |ms| {
        let mut sched = fair();
        sched.insert(at(0), of(1, read(1, 0, 0)));
        sched.insert(at(10), of(2, read(2, 900_000_000, 10)));
        queue_mut(&mut sched, 2).history.seeks = u32::MAX;
        queue_mut(&mut sched, 2).split_at = Some(at(5_000));
        let own = id(&sched, 2);
        sched
            .partner(at(ms), own, own, Lba::new(900_000_000))
            .is_some()
    };
    assert_eq!([5_600, 5_601].map(tested), [false, true]);
}
