//! More weight: who gets it, and when it ends.

use super::*;

/// Serves a read of 8 sectors of this process, which comes at `ms` and is done a millisecond later. Returns true if the
/// queue was raised while the request waited.
fn visit(sched: &mut Bfq, process: u32, ms: u64) -> bool {
    sched.insert(at(ms), of(process, read(process, 0, ms)));
    let raised = queue(sched, process).raise.is_on;
    serve(sched, process, at(ms), at(ms + 1));
    raised
}

#[test]
fn a_new_queue_is_raised_and_gets_a_small_budget() {
    let mut sched = Bfq::default();
    sched.insert(at(0), of(1, read(0, 0, 0)));
    let queue = queue(&sched, 1);
    assert_eq!((queue.raise.is_on, queue.share.weight), (true, 1_200));
    assert_eq!(queue.share.budget, 2 * 512);
    assert_eq!(sched.raised_busy, 1);
}

#[test]
fn nobody_is_raised_without_low_latency_and_nothing_of_the_idle_class() {
    let mut sched = fair();
    assert!(!visit(&mut sched, 1, 0));
    let mut sched = Bfq::default();
    sched.insert(at(0), class(Class::IDLE, of(1, read(0, 0, 0))));
    sched.insert(at(0), write(1, 0, 0));
    assert_eq!(sched.raised_busy, 0);
}

#[test]
fn raising_ends_after_ten_and_a_half_seconds() {
    let mut sched = Bfq::default();
    for ms in (0..=10_500).step_by(500) {
        assert!(visit(&mut sched, 1, ms), "{ms}");
    }
    // The request is handed out too late.
    assert!(visit(&mut sched, 1, 10_501));
    assert!(!visit(&mut sched, 1, 10_600));
    assert_eq!(queue(&sched, 1).share.weight, 40);
}

#[test]
fn raising_ends_after_120000_sectors() {
    let mut sched = Bfq::default();
    for number in 0..469 {
        assert!(number == 0 || queue(&sched, 1).raise.is_on, "{number}");
        sched.insert(at(number), of(1, long(0, number * 256, 256, number)));
        serve(&mut sched, 0, at(number), at(number));
    }
    assert!(!queue(&sched, 1).raise.is_on, "120064 sectors");
}

#[test]
fn a_queue_is_raised_again_after_two_seconds_of_quiet() {
    let again = |quiet: u64| {
        let mut sched = Bfq::default();
        visit(&mut sched, 1, 0);
        sched.run_timer(at(30), true);
        queue_mut(&mut sched, 1).raise.is_on = false;
        assert_eq!(queue(&sched, 1).quiet_since, Some(at(21)));
        visit(&mut sched, 1, 21 + quiet)
    };
    assert_eq!([2_000, 2_001].map(again), [false, true]);
}

#[test]
fn a_large_burst_is_not_raised() {
    let raised = |count: u64, apart: u64| {
        let mut sched = Bfq::default();
        for number in 0..count {
            let ms = number * apart;
            sched.insert(
                at(ms),
                of(number as u32 + 1, read(number as u32, number << 24, ms)),
            );
        }
        // A queue that was raised before the burst was large loses that when it is served.
        let queues = (0..count).map(|_| next(&mut sched, at(count * apart)));
        let served: Vec<_> = queues.flatten().collect();
        assert!(!served.is_empty());
        let served = served.iter().map(|request| request.origin.process);
        served
            .filter(|process| queue(&sched, *process).raise.is_on)
            .count()
    };
    assert!(raised(7, 180) > 0);
    assert_eq!(raised(8, 180), 0);
    assert!(raised(8, 181) > 0);
    assert_eq!(raised(20, 1), 0);
}

#[test]
fn a_queue_of_a_burst_is_raised_after_ten_seconds_of_quiet() {
    let mut sched = Bfq::default();
    visit(&mut sched, 1, 0);
    queue_mut(&mut sched, 1).in_large_burst = true;
    assert!(!visit(&mut sched, 1, 9_000));
    let ten_later = 9_021 + 10_001;
    assert!(
        !visit(&mut sched, 1, ten_later),
        "the burst is over behind this one"
    );
    assert!(visit(&mut sched, 1, ten_later + 3_000));
}

#[test]
fn a_raised_slot_may_last_thirty_times_as_long() {
    let deadline = |mut sched: Bfq| {
        sched.insert(at(0), of(1, read(0, 0, 0)));
        next(&mut sched, at(0)).unwrap();
        let slot = sched.slot.unwrap();
        [3_749, 3_750].map(|ms| sched.may_time_out(at(ms), &slot))
    };
    assert_eq!(deadline(Bfq::default()), [false, true]);
    assert_eq!(deadline(fair()), [true, true]);
}

#[test]
fn a_shared_queue_is_not_raised_and_one_shared_for_good_is() {
    let raised = |for_good| {
        let mut sched = Bfq::default();
        visit(&mut sched, 1, 0);
        visit(&mut sched, 2, 300);
        sched.run_timer(at(400), true);
        let [one, two] = [1, 2].map(|process| sched.queues.find(process, Level::BestEffort));
        let (one, two) = (one.unwrap(), two.unwrap());
        for id in [one, two] {
            sched.set_raise(id, Default::default());
        }
        sched.merge(two, one);
        sched.queues[two].merged_for_good = for_good;
        sched.insert(at(5_000), of(2, read(2, 0, 5_000)));
        sched.queues[one].raise.is_on
    };
    assert_eq!([false, true].map(raised), [false, true]);
}

#[test]
fn a_queue_that_was_just_given_back_is_not_raised() {
    let raised = |ms| {
        let mut sched = Bfq::default();
        visit(&mut sched, 1, 0);
        sched.run_timer(at(400), true);
        let queue = queue_mut(&mut sched, 1);
        queue.raise = Default::default();
        queue.split_at = Some(at(5_000));
        visit(&mut sched, 1, ms)
    };
    assert_eq!([7_000, 7_001].map(raised), [false, true]);
}
