//! Clients that depend on the drive's buffer keep their hits.

use super::{shipped, with_its_buffer};
use headtime_gaps::{FreeblockStats, Hits};
use headtime_testkit::cases;
use headtime_units::Bytes;
use headtime_workload::{ProcessSpec, SizeDistribution};

/// Random reads in a part of the disk. The drive's buffer holds a good deal of this part.
fn near(mib: u64) -> ProcessSpec {
    ProcessSpec {
        size: SizeDistribution::Constant(Bytes(4 << 10)),
        range: Some((Bytes(1 << 30), Bytes((1024 + mib) << 20))),
        ..ProcessSpec::default()
    }
}

/// Rate of clients beside a scan of `exos-x18` over their rate alone, and counts of the scan.
fn left(each: &ProcessSpec, hits: Hits) -> (f64, FreeblockStats) {
    let ([alone, beside], stats) =
        with_its_buffer(&shipped("exos-x18"), "deadline", 2, each, hits, 3);
    (beside as f64 / alone as f64, stats)
}

#[test]
fn clients_that_ask_for_what_lies_near_keep_their_hits() {
    for mib in cases(1, [300, 600]) {
        let (share, stats) = left(&near(mib), Hits::Guarded);
        assert!(share > 0.98, "{mib}: {share}, {stats:?}");
        assert!(stats.suspensions() > 2 * stats.gaps, "{mib}: {stats:?}");
        // The drive reads sectors directly in front of a request anyway, so these gap reads remain.
        assert!(stats.with > 0, "{mib}: {stats:?}");
    }
    // Without the guard the clients lose many hits.
    let (share, _) = left(&near(300), Hits::Spared);
    assert!(share < 0.9, "{share}");
}

#[test]
fn they_keep_them_whatever_the_drive_and_the_order() {
    let all = [
        ("wd5000aaks", "clook", 1, 30),
        ("exos-x18", "sptf", 2, 300),
        ("exos-x18", "sstf", 1, 300),
    ];
    for (drive, scheduler, depth, mib) in cases(1, all) {
        let [guarded, spared] = [Hits::Guarded, Hits::Spared].map(|hits| {
            let ([alone, beside], _) =
                with_its_buffer(&shipped(drive), scheduler, depth, &near(mib), hits, 1);
            beside as f64 / alone as f64
        });
        assert!(guarded > 0.97, "{drive}, {scheduler}: {guarded}");
        assert!(spared < 0.9, "{drive}, {scheduler}: {spared}");
    }
}

/// Clients who ask anywhere have no hits to lose.
#[test]
fn random_reads_and_writes_have_no_rest() {
    for read_share in cases(1, [0.5, 1.0]) {
        let random = ProcessSpec {
            read_share,
            ..ProcessSpec::default()
        };
        let (share, guarded) = left(&random, Hits::Guarded);
        assert!(share > 0.95, "{read_share}: {share}");
        assert!(guarded.suspensions() * 20 < guarded.gaps, "{guarded:?}");
        let (_, spared) = left(&random, Hits::Spared);
        let of = guarded.blocks as f64 / spared.blocks as f64;
        assert!(of > 0.8, "{read_share}: {of}, {guarded:?}");
    }
}

/// A drive that writes back small amounts again and again does so between a gap read and its request.
#[test]
#[ignore = "a minute of processor time"]
fn clients_that_write_keep_their_rate_where_the_drive_writes_back_between_two_reads() {
    let writing = ProcessSpec {
        read_share: 0.667,
        size: SizeDistribution::Constant(Bytes(4 << 10)),
        ..ProcessSpec::default()
    };
    for drive in cases(1, ["exos-x18", "nearline-20tb"]) {
        let few = shipped(drive).with(|spec| spec.cache.destage_runs = 64);
        let few = few.expect("it can be");
        let left = |hits| {
            let ([alone, beside], stats) = with_its_buffer(&few, "sptf-sw60", 2, &writing, hits, 6);
            (beside as f64 / alone as f64, stats)
        };
        let (share, stats) = left(Hits::Guarded);
        assert!(share > 0.97, "{drive}: {share}, {stats:?}");
        let (share, stats) = left(Hits::Ignored);
        assert!(
            share < 0.96 && stats.before > 100,
            "{drive}: {share}, {stats:?}"
        );
    }
}
