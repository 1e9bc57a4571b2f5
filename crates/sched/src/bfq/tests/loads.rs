//! Whole loads on a simple drive: what processes get, at the start and later.

use super::*;

/// A scan beside a random reader: megabytes of the scan and requests of the other, from second 1 to 10 and 15 to 60.
fn scan_beside_random(config: BfqConfig) -> [(u64, u64); 2] {
    // Processes that begin at once would merge for good.
    let random = Reader {
        begins: at(200),
        ..Reader::random()
    };
    let done = run(&mut Bfq::new(config), &[Reader::scan(0), random], 60);
    [(1, 10), (15, 60)].map(|(from, to)| (rate(&done, 0, from, to), iops(&done, 1, from, to)))
}

/// Four scans: megabytes of all, from second 1 to 10 and 15 to 60.
fn four_scans(config: BfqConfig) -> [u64; 2] {
    let readers = [0, 1, 2, 3].map(|number| Reader {
        begins: at(200 * number),
        ..Reader::scan(number * 100_000_000)
    });
    let done = run(&mut Bfq::new(config), &readers, 60);
    [(1, 10), (15, 60)].map(|(from, to)| (0..4).map(|reader| rate(&done, reader, from, to)).sum())
}

fn with(low_latency: bool, slice_idle: u64) -> BfqConfig {
    BfqConfig {
        low_latency,
        slice_idle: Nanos::from_millis(slice_idle),
        ..config()
    }
}

#[test]
fn a_scan_keeps_most_of_the_drive_beside_a_random_reader() {
    let [start, later] = scan_beside_random(with(false, 8));
    for (scan, random) in [start, later] {
        assert!(scan > 105 && (5..15).contains(&random), "{scan} {random}");
    }
}

#[test]
fn a_random_reader_goes_first_while_it_is_raised() {
    let [start, later] = scan_beside_random(with(true, 8));
    assert!(start.0 < 20 && start.1 > 45, "{start:?}");
    assert!(later.0 > 105 && (5..15).contains(&later.1), "{later:?}");
}

#[test]
fn a_scan_loses_most_without_waits() {
    let [_, later] = scan_beside_random(with(false, 0));
    assert!(later.0 < 20 && later.1 > 30, "{later:?}");
}

#[test]
fn scans_share_the_whole_drive_unless_all_are_raised() {
    let [start, later] = four_scans(with(false, 8));
    assert!(start > 120 && later > 120, "{start} {later}");
    let [start, later] = four_scans(with(true, 8));
    assert!(start < 40 && later > 120, "{start} {later}");
}

#[test]
fn processes_that_begin_at_once_share_a_queue_for_good_if_they_are_raised() {
    let mut sched = Bfq::default();
    run(&mut sched, &[Reader::scan(0), Reader::random()], 2);
    assert!(queue(&sched, 2).merged_for_good);
}
