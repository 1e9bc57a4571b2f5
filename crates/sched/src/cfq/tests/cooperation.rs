//! Queues that give way to a queue that reads nearby.

use super::*;

/// Returns the state after a reader has read up to sector 1024 in `samples` requests of a millisecond
/// each. While the last request was in the drive, two more came: of a process whose turn is next, and
/// of another process at `lba`.
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
    // The first reader continues at the end of the second, and thereby takes the disk back.
    let request = of(0, read(0, 1_032, 8));
    sched.insert(at(8), request);
    assert_eq!(next(&mut sched, at(8)), Some(request));
    // The second reader continues at the end of the first, but already had a turn by cooperation.
    sched.insert(at(9), of(2, read(2, 1_040, 9)));
    sched.completed(at(10), &request);
    assert_eq!(sched.cooperator(), None);
    let until = idle_until(&mut sched, at(10)).expect("it waits for the first");
    assert_eq!(until, at(18));
    // After its regular turn it may cooperate again.
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
