//! Turns: their order and their lengths.

use super::*;

#[test]
fn equal_readers_take_turns_of_a_slice() {
    let readers = [0, 1].map(|p| Program::reader(p, 10_000_000 * u64::from(p)));
    for (mut sched, tick) in [(fine(), 1), (Cfq::default(), 4)] {
        let given = run(&mut sched, &readers, 1, Nanos::from_secs(3));
        let turns = turns(&given);
        assert!(turns.len() > 20, "{turns:?}");
        for pair in turns.windows(2) {
            let (length, others) = (pair[1].1 - pair[0].1, pair[1].0 != pair[0].0);
            // 2 ms to the first completion, and 100 ms less the elapsed part of its tick. Then
            // the request that ends the slice, with the think time before it.
            let least = Nanos::from_millis(102 - tick);
            let most = Nanos::from_micros(102_000 + 2_050);
            assert!(others && least < length && length <= most, "{length}");
        }
    }
}

#[test]
fn ten_readers_get_equal_shares() {
    let readers: Vec<Program> = (0..10)
        .map(|p| Program::reader(p, 10_000_000 * u64::from(p)))
        .collect();
    let given = run(&mut Cfq::default(), &readers, 1, Nanos::from_secs(20));
    let counts: Vec<usize> = (0..10)
        .map(|p| given.iter().filter(|g| g.process == p).count())
        .collect();
    let (least, most) = (counts.iter().min(), counts.iter().max());
    let (least, most) = (*least.expect("ten"), *most.expect("ten"));
    assert!(most - least <= most / 8, "{counts:?}");
    let order: Vec<u32> = turns(&given).iter().map(|(p, ..)| *p).collect();
    assert_eq!(order[10..20], order[20..30], "round robin");
}

#[test]
fn a_slice_is_counted_from_its_first_completion() {
    let mut sched = fine();
    sched.insert(at(0), of(0, read(0, 0, 0)));
    sched.insert(at(0), of(0, read(1, 8, 0)));
    sched.insert(at(0), of(1, read(2, 90_000_000, 0)));
    let first = next(&mut sched, at(0)).expect("the first");
    // Before the first completion, no time counts.
    let second = next(&mut sched, at(300)).expect("the same queue");
    assert_eq!((first.tag, second.tag), (Tag(0), Tag(1)));
    sched.completed(at(400), &first);
    sched.insert(at(499), of(0, read(3, 16, 499)));
    assert_eq!(sched.slice.and_then(|s| s.end), Some(Jiffies::new(500)));
    assert_eq!(next(&mut sched, at(499)).map(|r| r.tag), Some(Tag(3)));
    sched.insert(at(499), of(0, read(4, 24, 499)));
    assert_eq!(next(&mut sched, at(500)).map(|r| r.tag), Some(Tag(2)));
}

#[test]
fn places_are_80_ms_apart_for_readers_and_140_for_background() {
    let mut sched = fine();
    let key = |sched: &Cfq, process| {
        let id = sched.contexts.find(process).expect("it came");
        let queue = sched.contexts[id].queues[1].expect("it reads");
        sched.queues[queue].standing.map(|standing| standing.key)
    };
    for process in 0..3 {
        let lba = 10_000_000 * u64::from(process);
        sched.insert(at(5), of(process, read(process, lba, 5)));
        assert_eq!(key(&sched, process), Some(5 + 80 * i64::from(process)));
    }
    sched.insert(at(6), write(9, 0, 6));
    let shared = QueueId::shared(Level::BestEffort);
    let standing = sched.queues[shared].standing;
    assert_eq!(standing.map(|standing| standing.key), Some(6 + 3 * 140));
}

#[test]
fn a_slice_that_overran_brings_its_queue_forward() {
    let mut sched = fine();
    for tag in 0..3 {
        sched.insert(at(0), of(0, read(tag, 8 * u64::from(tag), 0)));
    }
    sched.insert(at(0), of(1, read(8, 90_000_000, 0)));
    serve(&mut sched, 0, at(0), at(10));
    serve(&mut sched, 1, at(100), at(130));
    assert!(sched.slice.is_none(), "over at 110, seen at 130");
    let first = sched
        .contexts
        .find(0)
        .and_then(|id| sched.contexts[id].queues[1]);
    let standing = sched.queues[first.expect("its queue")].standing;
    assert_eq!(standing.map(|standing| standing.key), Some(130 + 80 - 20));
}
