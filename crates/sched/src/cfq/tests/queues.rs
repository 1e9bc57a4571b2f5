//! Queues of requests, and the life of queues and processes.

use super::*;

#[test]
fn requests_belong_to_queues_by_process_class_and_whether_somebody_waits() {
    let mut sched = Cfq::default();
    sched.insert(at(0), of(1, read(0, 0, 0)));
    sched.insert(at(0), of(1, write(1, 1_000, 0)));
    let (reads, writes) = (Tag(0), Tag(1));
    assert!(sched.may_merge(reads, &of(1, read(2, 8, 0))));
    assert!(!sched.may_merge(reads, &of(2, read(2, 8, 0))));
    assert!(!sched.may_merge(reads, &class(Class::IDLE, of(1, read(2, 8, 0)))));
    assert!(!sched.may_merge(reads, &of(1, write(2, 8, 0))));
    assert!(sched.may_merge(reads, &sync(of(1, write(2, 8, 0)))));
    assert!(sched.may_merge(writes, &of(2, write(2, 1_008, 0))));
    let discard = Request {
        op: Op::Discard,
        ..of(2, write(2, 1_008, 0))
    };
    assert!(sched.may_merge(writes, &discard));
    assert!(!sched.may_merge(writes, &sync(of(1, write(2, 1_008, 0)))));
}

#[test]
fn idle_processes_are_forgotten_beyond_4096() {
    let mut sched = Cfq::default();
    let mut now = 0;
    // Two processes stay: one has a request, and one was used just before.
    sched.insert(at(0), of(1_000_000, read(9, 500_000_000, 0)));
    for process in 0..9_000_u32 {
        now += 200;
        sched.insert(at(now), of(process, read(0, 1_000_000, now)));
        let mut done = false;
        while !done {
            match sched.dispatch(at(now)) {
                Dispatch::Request(request) if request.tag == Tag(0) => {
                    sched.completed(at(now), &request);
                    done = true;
                }
                Dispatch::Request(request) => {
                    now += 4;
                    sched.completed(at(now), &request);
                    sched.insert(
                        at(now),
                        Request {
                            arrival: at(now),
                            ..request
                        },
                    );
                }
                _ => now += 4,
            }
        }
    }
    assert_eq!(sched.contexts.len(), REMEMBERED_MAX);
    let known = |process| sched.contexts.find(process).is_some();
    assert!(known(1_000_000) && known(8_999) && known(8_999 - 4_000));
    assert!(!known(0) && !known(8_999 - 4_096));
    // The queues of forgotten processes are reused.
    let mut sched = sched.clone();
    assert!(sched.queues.add(Level::BestEffort).0 <= REMEMBERED_MAX as u32 + 3);
}

#[test]
fn draining_leaves_nothing_behind() {
    let mut sched = Cfq::default();
    for (tag, ms) in [(0, 3), (1, 1), (2, 2), (3, 1)] {
        sched.insert(at(3), of(tag, read(tag, 1_000 * u64::from(tag), ms)));
    }
    let out = next(&mut sched, at(3)).expect("the first");
    let tags: Vec<u32> = sched.drain().iter().map(|r| r.tag.0).collect();
    assert_eq!(tags, [1, 3, 2]);
    assert_eq!(sched.dispatch(at(4)), Dispatch::Empty);
    // The request that was in the drive comes back and does not count.
    sched.completed(at(5), &out);
    assert_eq!((sched.drive.holds, sched.queued()), (0, 0));
    sched.insert(at(6), out);
    serve(&mut sched, 0, at(6), at(7));
}
