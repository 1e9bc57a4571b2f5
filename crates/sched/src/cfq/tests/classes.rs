//! Classes, and asynchronous requests.

use super::*;

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
    // Number of 40 writes that are handed out in the first turn, one every `gap` milliseconds.
    let first_turn = |others: bool, gap: u64| {
        let mut sched = fine();
        for tag in 0..40 {
            sched.insert(at(0), write(tag, 10_000 * u64::from(tag), 0));
        }
        if others {
            // A process that does not take over.
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
    // The slice is from 8 to 48 ms. The completion at 53 ms ends the turn.
    assert_eq!(first_turn(true, 9), 6);
}

#[test]
fn what_nobody_waits_for_is_not_starved() {
    let mut programs: Vec<Program> = [0, 1]
        .map(|p| Program::reader(p, 10_000_000 * u64::from(p)))
        .into();
    // A hundred writers that always have a request.
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
        // The key is 280 ms later, and the running slice comes on top. The turn is one write:
        // the reader whose slice has just ended takes over with its next request.
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
    // The slice ran to 110 ms. The remaining time delays the queue, as in 2.6.31.
    let interrupted = sched
        .contexts
        .find(0)
        .and_then(|id| sched.contexts[id].queues[1]);
    let standing = sched.queues[interrupted.expect("its queue")].standing;
    assert_eq!(standing.map(|standing| standing.key), Some(40 + 80 + 70));
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
