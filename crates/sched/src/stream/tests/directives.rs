//! A scheduler that obeys a coordinator of several disks.

use super::*;
use crate::Directive;

fn stream() -> Stream<Noop> {
    Stream::new(Noop::new(), StreamConfig::DEFAULT, curve())
}

fn dedicated(until: u64) -> Stream<Noop> {
    let mut sched = stream();
    sched.directed(at(0), &Directive::Dedicate { until: at(until) });
    sched
}

fn handed_out(dispatch: Dispatch) -> u32 {
    match dispatch {
        Dispatch::Request(request) => request.tag.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn marked_requests_go_in_the_order_of_their_marks_and_others_wait_for_the_end() {
    let mut sched = dedicated(50);
    for (tag, lba) in [(0, 0), (1, 8_000), (2, 16_000)] {
        sched.insert(at(1), read(tag, lba, 1));
    }
    assert_eq!(
        sched.candidate(at(1)).map(|request| request.tag),
        Some(Tag(0))
    );
    sched.directed(at(1), &Directive::Mark(Tag(2)));
    sched.directed(at(1), &Directive::Mark(Tag(1)));
    assert_eq!(handed_out(sched.dispatch(at(1))), 2);
    assert_eq!(handed_out(sched.dispatch(at(1))), 1);
    assert_eq!(sched.dispatch(at(1)), Dispatch::IdleUntil(at(50)));
    assert_eq!(handed_out(sched.dispatch(at(50))), 0);
    assert_eq!(sched.dispatch(at(50)), Dispatch::Empty);
}

#[test]
fn a_release_ends_the_dedication_and_forgets_marks() {
    let mut sched = dedicated(50);
    sched.insert(at(1), read(0, 0, 1));
    sched.insert(at(1), read(1, 8_000, 1));
    sched.directed(at(1), &Directive::Mark(Tag(1)));
    sched.directed(at(2), &Directive::Release);
    assert_eq!(handed_out(sched.dispatch(at(2))), 0);
    sched.directed(at(3), &Directive::Dedicate { until: at(40) });
    assert_eq!(sched.dispatch(at(3)), Dispatch::IdleUntil(at(40)));
}

#[test]
fn a_flush_does_not_wait_for_the_end_of_a_dedication() {
    let mut sched = dedicated(50);
    sched.insert(at(1), read(0, 0, 1));
    assert_eq!(sched.dispatch(at(1)), Dispatch::IdleUntil(at(50)));
    assert_eq!(handed_out(sched.dispatch_forced(at(1))), 0);
}

#[test]
fn an_expired_request_goes_at_once() {
    let deadline = Deadline::new(DeadlineConfig {
        read_expire: Nanos::from_millis(20),
        ..DeadlineConfig::DEFAULT
    });
    let mut sched = Stream::new(deadline, StreamConfig::DEFAULT, curve());
    sched.directed(at(0), &Directive::Dedicate { until: at(100) });
    sched.insert(at(1), read(0, 0, 1));
    let Dispatch::IdleUntil(until) = sched.dispatch(at(1)) else {
        panic!("it is not marked");
    };
    assert!(until <= at(22), "{until}");
    sched.insert(at(2), read(1, 8_000, 2));
    sched.directed(at(2), &Directive::Mark(Tag(1)));
    assert_eq!(handed_out(sched.dispatch(until)), 0);
    assert_eq!(handed_out(sched.dispatch(until)), 1);
}

#[test]
fn a_request_that_has_become_part_of_another_hands_on_its_mark() {
    let mut sched = dedicated(50);
    sched.insert(at(1), read(0, 0, 1));
    sched.insert(at(1), read(1, 16, 1));
    sched.directed(at(1), &Directive::Mark(Tag(1)));
    sched.fused(Tag(0), Tag(1));
    sched.merged(&grown(read(0, 0, 1), 0, 24));
    assert_eq!(handed_out(sched.dispatch(at(1))), 0);
}
