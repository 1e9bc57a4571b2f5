//! Writes that complete on the medium: what a queue in the drive must not make slower.

use crate::harness::{Client, Order, run};
use crate::{DEPTHS, QUEUED};
use headtime_disk::profile::{WriteBack, by_name};
use headtime_sched::Op;
use headtime_units::Nanos;

const SECOND: Nanos = Nanos::from_millis(1_000);

#[test]
fn writes_through_one_behind_the_other_are_written_in_one_go_from_depth_2_on() {
    for name in QUEUED {
        let forced = by_name(name).unwrap();
        let off = forced
            .with(|spec| spec.cache.write_back = WriteBack::Off)
            .unwrap();
        for (profile, fua) in [(&forced, true), (&off, false)] {
            for kib in [4, 16, 128, 1024] {
                let rates = DEPTHS.map(|depth| {
                    let client = Client {
                        op: Op::Write,
                        fua,
                        ..Client::reader(kib * 2, depth)
                    };
                    run(profile, depth, &[client], SECOND).rate()
                });
                let least = 0.95 * rates[0].max(rates[1]);
                let slow = rates[1..].iter().any(|rate| *rate < least);
                assert!(!slow, "{name}, {kib} KiB, {fua}: {rates:.1?} MB/s");
                let media = run(profile, 1, &[Client::reader(2048, 1)], SECOND).rate();
                let turns = kib >= 128 && rates[1..].iter().any(|rate| *rate < 0.9 * media);
                assert!(
                    !turns,
                    "{name}, {kib} KiB, {fua}: {rates:.1?} of {media:.1} MB/s"
                );
            }
        }
    }
}

#[test]
fn random_writes_through_gain_with_every_doubling_of_the_depth() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let rates = DEPTHS.map(|depth| {
            let client = Client {
                op: Op::Write,
                order: Order::Random,
                fua: true,
                ..Client::reader(8, depth)
            };
            run(&profile, depth, &[client], Nanos::from_millis(30_000)).commands()
        });
        let gains = rates.windows(2).all(|pair| pair[1] > 1.01 * pair[0]);
        assert!(gains, "{name}: {rates:.1?}");
    }
}

/// A reader beside them waits as beside a stream of reads.
#[test]
fn a_random_read_beside_a_stream_of_writes_through_waits_for_the_cap_and_no_longer() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let writer = Client {
            op: Op::Write,
            fua: true,
            ..Client::reader(256, 8)
        };
        let reader = Client {
            order: Order::Random,
            ..Client::reader(8, 1)
        };
        let done = run(&profile, 32, &[writer, reader], Nanos::from_millis(10_000));
        let (longest, cap) = (done.got[1].longest(), profile.queue.stream_cap);
        assert!(longest < cap + Nanos::from_millis(100), "{name}: {longest}");
        assert!(done.got[1].took.len() > 5, "{name}");
    }
}
