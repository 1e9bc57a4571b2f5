//! The order within a queue, and the number of its requests in the drive at once.

use super::*;

#[test]
fn one_origin_is_one_queue_in_elevator_order_with_16_in_the_drive() {
    let mut sched = Cfq::default();
    let lba = |tag: u32| u64::from(tag * 7_919 % 24) * 10_000;
    for tag in 0..24 {
        sched.insert(at(0), read(tag, lba(tag), 0));
    }
    let mut drive: Vec<Request> = core::iter::from_fn(|| next(&mut sched, at(0))).collect();
    assert_eq!(drive.len(), 16);
    let starts: Vec<u64> = drive.iter().map(|r| r.extent.start.get()).collect();
    assert_eq!(starts, (0..16).map(|i| i * 10_000).collect::<Vec<_>>());
    // One request comes back, the next goes out.
    sched.completed(at(1), &drive.remove(0));
    assert_eq!(
        next(&mut sched, at(1)).map(|r| r.extent.start.get()),
        Some(160_000)
    );
    assert_eq!(next(&mut sched, at(1)), None);
    assert_eq!(sched.queued(), 7);
}

#[test]
fn a_queue_has_four_in_the_drive_while_others_wait() {
    let mut sched = Cfq::default();
    for tag in 0..8 {
        sched.insert(at(0), of(0, read(tag, 1_000 * u64::from(tag), 0)));
    }
    sched.insert(at(0), of(1, read(8, 90_000_000, 0)));
    let drive: Vec<Request> = core::iter::from_fn(|| next(&mut sched, at(0))).collect();
    assert_eq!(drive.len(), 4);
    assert!(drive.iter().all(|r| r.origin.process == 0));
}

#[test]
fn a_sweep_looks_back_16_mebibytes_at_twice_the_cost() {
    let order = |lbas: &[u64]| -> Vec<u64> {
        let mut sched = Cfq::default();
        sched.insert(at(0), read(0, 1_000_000 - 8, 0));
        let first = next(&mut sched, at(0)).expect("the first");
        sched.completed(at(0), &first);
        for (tag, lba) in (1..).zip(lbas) {
            sched.insert(at(0), read(tag, *lba, 0));
        }
        let served = core::iter::from_fn(|| {
            let request = next(&mut sched, at(0))?;
            sched.completed(at(0), &request);
            Some(request.extent.start.get())
        });
        served.collect()
    };
    assert_eq!(order(&[1_000_300, 999_900]), [999_900, 1_000_300]);
    assert_eq!(order(&[1_000_100, 999_900]), [1_000_100, 999_900]);
    // 32768 sectors are 16 MiB.
    assert_eq!(
        order(&[9_000_000, 1_000_000 - 32_768]),
        [967_232, 9_000_000]
    );
    assert_eq!(
        order(&[9_000_000, 1_000_000 - 32_769]),
        [9_000_000, 967_231]
    );
}

#[test]
fn expiry_is_looked_at_once_per_slice() {
    let mut sched = fine();
    sched.insert(at(0), read(0, 500_000, 0));
    for tag in 1..6 {
        sched.insert(at(1), read(tag, 1_000 * u64::from(tag), 1));
    }
    // The sweep would begin at the bottom, but the oldest has expired.
    let serve_one = |sched: &mut Cfq, ms: u64| {
        let request = next(sched, at(ms)).expect("there are some");
        sched.completed(at(ms), &request);
        request.tag.0
    };
    let mut order: Vec<u32> = vec![serve_one(&mut sched, 125)];
    // All requests have expired since. The sweep goes on regardless, until the slice is over.
    order.push(serve_one(&mut sched, 130));
    order.push(serve_one(&mut sched, 131));
    assert_eq!(order, [0, 1, 2]);
    sched.insert(at(132), read(8, 3_500, 132));
    sched.insert(at(133), read(9, 2_500, 133));
    // The next slice begins at 225 ms with the oldest request, which is not the nearest.
    order.push(serve_one(&mut sched, 224));
    order.push(serve_one(&mut sched, 226));
    assert_eq!(order[3..], [9, 3]);
    let just_before = at(125).saturating_sub(Nanos::from_nanos(1));
    let mut sched = fine();
    sched.insert(at(0), read(0, 500_000, 0));
    sched.insert(at(1), read(1, 1_000, 1));
    assert_eq!(next(&mut sched, just_before).map(|r| r.tag), Some(Tag(1)));
}

#[test]
fn merging_keeps_the_sweep_and_the_older_place() {
    let mut sched = fine();
    for (tag, lba) in [(0, 100), (1, 208), (2, 400), (3, 216)] {
        let ms = u64::from(tag);
        sched.insert(at(ms), read(tag, lba, ms));
    }
    // Request 2 grows in front and is next. Then request 1 becomes part of request 3, which
    // gets the start and the age of request 1.
    sched.merged(&grown(read(2, 400, 2), 50, 358));
    assert_eq!(
        sched.sweeps.positions.first().map(|e| e.lba),
        Some(Lba::new(50))
    );
    sched.fused(Tag(3), Tag(1));
    sched.merged(&grown(read(3, 216, 1), 208, 16));
    assert_eq!(sched.queued(), 3);
    let order: Vec<(u32, Time)> = core::iter::from_fn(|| next(&mut sched, at(9)))
        .map(|request| (request.tag.0, request.arrival))
        .collect();
    // The choice between 100 and 208 counts from the head's place before 50..408: from 0.
    assert_eq!(order, [(2, at(2)), (0, at(0)), (3, at(1))]);
    assert_eq!(sched.contexts[CfqContextId(0)].requests, 3);
}
