//! Reads: loads that a queue in the drive must not slow down, and the waits of others.

use crate::harness::{Client, Order, run};
use crate::{DEPTHS, QUEUED, cache_off, streams};
use headtime_disk::Profile;
use headtime_disk::profile::{NoiseSpec, Preseek, ReadAhead, by_name};
use headtime_units::Nanos;

const SECOND: Nanos = Nanos::from_millis(1_000);

fn random(outstanding: u32) -> Client {
    Client {
        order: Order::Random,
        ..Client::reader(8, outstanding)
    }
}

/// Megabytes a second at each of the depths, that many commands outstanding.
fn rates(profile: &Profile, client: Client) -> [f64; 6] {
    DEPTHS.map(|depth| {
        let client = Client {
            outstanding: depth,
            ..client
        };
        run(profile, depth, &[client], SECOND * 2).rate()
    })
}

/// One stream of reads of this size is at any depth as fast as at the better of depth 1 and 2.
fn loses_nothing(profile: &Profile, kib: u64) {
    let rates = rates(profile, Client::reader(kib * 2, 1));
    let least = 0.95 * rates[0].max(rates[1]);
    let slow = rates[1..].iter().any(|rate| *rate < least);
    assert!(!slow, "{}, {kib} KiB: {rates:.1?} MB/s", profile.name);
}

#[test]
fn one_stream_of_reads_at_any_depth_is_as_fast_as_at_the_better_of_depth_1_and_2() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        for kib in [4, 16, 64, 128, 512, 1024] {
            loses_nothing(&profile, kib);
        }
    }
}

#[test]
fn several_streams_of_reads_at_any_depth_are_as_fast_as_at_depth_1() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        for (count, each) in [(2, 1), (2, 16), (4, 1), (4, 8)] {
            for kib in [16, 128, 1024] {
                let clients = streams(&profile, kib * 2, count, each);
                let rates = DEPTHS.map(|depth| run(&profile, depth, &clients, SECOND * 10).rate());
                // The bound of the grid (docs/design/2026-11-27-grid.md).
                let slow = rates[1..].iter().any(|rate| *rate < 0.97 * rates[0]);
                assert!(!slow, "{name}, {count} of {each}, {kib} KiB: {rates:.1?}");
            }
        }
    }
}

#[test]
fn several_streams_of_reads_share_the_drive_and_none_waits_for_more_than_the_caps_of_the_others() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let cap = profile.queue.stream_cap;
        for (count, each) in [(2, 16), (4, 1), (4, 8)] {
            let clients = streams(&profile, 256, count, each);
            let done = run(&profile, 32, &clients, SECOND * 20);
            let fair = done.rate() / f64::from(count);
            for got in &done.got {
                let rate = got.bytes as f64 / 20e6;
                assert!(rate > 0.8 * fair, "{name}, {count} of {each}: {rate} MB/s");
                let most = cap * u64::from(count) + Nanos::from_millis(100);
                assert!(got.longest() < most, "{name}: {}", got.longest());
            }
        }
    }
}

/// The drive reads through holes up to the length of a read.
#[test]
fn reads_with_short_holes_between_them_are_as_fast_with_a_queue_as_without() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        for hole in [8, 64, 256] {
            let order = Order::Holes(hole);
            let reader = Client {
                order,
                ..Client::reader(256, 1)
            };
            let rates = rates(&profile, reader);
            let slow = rates[1..].iter().any(|rate| *rate < 0.95 * rates[0]);
            assert!(!slow, "{name}, {order:?}: {rates:.1?} MB/s");
        }
    }
}

#[test]
fn reads_out_of_order_gain_from_a_queue_that_holds_a_group_of_them() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let shuffled = |group| Client {
            order: Order::Shuffled(group),
            ..Client::reader(256, 1)
        };
        for group in [4_u64, 16] {
            let rates = rates(&profile, shuffled(group));
            let media = run(&profile, 1, &[Client::reader(2048, 1)], SECOND).rate();
            for (depth, rate) in DEPTHS.into_iter().zip(rates) {
                let least = match u64::from(depth) >= group {
                    true => 0.9 * media,
                    false => 0.85 * rates[0],
                };
                assert!(rate >= least, "{name}, {group}: {rates:.1?} of {media:.1}");
            }
        }
    }
}

#[test]
fn reads_backward_with_a_queue_are_not_slower_than_without_by_more_than_a_tenth() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let backward = Client {
            order: Order::Backward,
            place: (0, 4_000_000),
            ..Client::reader(256, 1)
        };
        let rates = rates(&profile, backward);
        let slow = rates[1..].iter().any(|rate| *rate < 0.9 * rates[0]);
        assert!(!slow, "{name}: {rates:.1?} MB/s");
        assert!(rates[5] > 1.4 * rates[0], "{name}: {rates:.1?} MB/s");
    }
}

#[test]
fn reads_with_the_cache_off_that_are_in_the_queue_in_time_are_read_in_one_go() {
    for name in QUEUED {
        let profile = cache_off(&by_name(name).unwrap());
        for kib in [4, 128, 1024] {
            loses_nothing(&profile, kib);
        }
    }
}

/// Throughput of random reads of a page over depth. The drive that models the family of table V of the NCQ study (ACM
/// TOS 2010) must match the table. No drive loses the gain of a queue.
#[test]
fn random_reads_gain_with_every_doubling_of_the_depth() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let rates = DEPTHS.map(|depth| run(&profile, depth, &[random(depth)], SECOND * 30));
        let rates = rates.map(|done| done.commands());
        let gains = rates.windows(2).all(|pair| pair[1] > 1.01 * pair[0]);
        assert!(gains, "{name}: {rates:.1?}");
    }
    let profile = by_name("barracuda-7200.10-160").unwrap();
    for (depth, published, percent) in [
        (1, 76.2, 1.5),
        (4, 91.4, 3.5),
        (8, 103.2, 4.5),
        (16, 114.3, 6.0),
        (31, 123.1, 9.5),
    ] {
        let rate = run(&profile, depth, &[random(depth)], SECOND * 30).commands();
        let off = 100.0 * (rate / published - 1.0).abs();
        assert!(off < percent, "depth {depth}: {rate:.1} for {published}");
    }
}

#[test]
fn a_random_read_beside_a_stream_waits_for_the_cap_and_no_longer() {
    for name in QUEUED {
        for cap in [50, 250, 1000] {
            let cap = Nanos::from_millis(cap);
            let profile = by_name(name)
                .unwrap()
                .with(|spec| (spec.queue.stream_cap, spec.noise) = (cap, NoiseSpec::default()))
                .unwrap();
            for (stream, depth) in [(1, 2), (8, 4), (8, 32)] {
                let clients = [Client::reader(256, stream), random(1)];
                let done = run(&profile, depth, &clients, SECOND * 10);
                let (stream, random) = (&done.got[0], &done.got[1]);
                let longest = random.longest();
                // With four reads on a drive that takes two or four commands, some wait for the drive.
                let most = cap + Nanos::from_millis(50);
                assert!(longest < most, "{name}: {longest} with a cap of {cap}");
                assert!(longest >= cap, "{name}: {longest} with a cap of {cap}");
                let reads = random.took.len() as u64;
                assert!(
                    reads >= 10_000 / (cap.as_nanos() / 1_000_000 + 50),
                    "{reads}"
                );
                let alone = run(&profile, 1, &[Client::reader(2048, 1)], SECOND).rate();
                let share = stream.bytes as f64 / 10e6 / alone;
                let least = match cap.as_nanos() {
                    50_000_000 => 0.4,
                    _ => 0.8,
                };
                assert!(share > least, "{name}, {cap}: {share:.2} of the media rate");
            }
        }
    }
}

/// A read that waits for the stream's own reads is not kept waiting by the stream.
#[test]
fn a_random_read_beside_a_deep_queue_of_long_reads_waits_for_the_cap_and_no_longer() {
    let cap = Nanos::from_millis(100);
    for name in QUEUED {
        let profile = by_name(name)
            .unwrap()
            .with(|spec| spec.queue.stream_cap = cap)
            .unwrap();
        for order in [Order::Forward, Order::Holes(64)] {
            let stream = Client {
                order,
                ..Client::reader(2048, 31)
            };
            let done = run(&profile, 32, &[stream, random(1)], SECOND * 10);
            let longest = done.got[1].longest();
            // A long read under way ends first, and the arm goes to the random one.
            assert!(
                longest < cap + Nanos::from_millis(50),
                "{name}, {order:?}: {longest}"
            );
            let alone = run(&profile, 1, &[Client::reader(2048, 1)], SECOND).rate();
            let share = done.got[0].bytes as f64 / 10e6 / alone;
            assert!(
                share > 0.7,
                "{name}, {order:?}: {share:.2} of the media rate"
            );
        }
    }
}

#[test]
fn a_cap_of_zero_lets_whatever_waits_go_before_a_stream() {
    for name in QUEUED {
        let profile = by_name(name)
            .unwrap()
            .with(|spec| spec.queue.stream_cap = Nanos::ZERO)
            .unwrap();
        let clients = [Client::reader(256, 8), random(1)];
        let done = run(&profile, 32, &clients, SECOND * 5);
        let longest = done.got[1].longest();
        assert!(longest < Nanos::from_millis(60), "{name}: {longest}");
        let alone = run(&profile, 32, &[Client::reader(256, 8)], SECOND).rate();
        let single = run(&profile, 1, &[Client::reader(256, 1)], SECOND).rate();
        assert!(alone > 0.95 * single, "{name}: {alone} of {single} MB/s");
    }
}

/// Hits keep the arm where it waits for the bus; reads of the same few sectors must not keep it for good.
#[test]
fn a_random_read_beside_reads_of_what_the_buffer_has_waits_for_the_cap_and_no_longer() {
    for preseek in [Preseek::Off, Preseek::AtCompletion, Preseek::AtMediaEnd] {
        for name in QUEUED {
            let shipped = by_name(name).unwrap();
            for cap in [shipped.queue.stream_cap, Nanos::ZERO] {
                let profile = shipped.with(|spec| {
                    spec.queue.preseek = preseek;
                    spec.queue.stream_cap = cap;
                    // Read-ahead would evict the sectors.
                    spec.cache.read_ahead = ReadAhead::Off;
                    spec.cache.read_ahead_min = 0;
                    spec.cache.read_ahead_max = 0;
                });
                let again = Client {
                    order: Order::Random,
                    place: (0, 64),
                    ..Client::reader(8, 8)
                };
                let done = run(&profile.unwrap(), 32, &[again, random(1)], SECOND * 3);
                let longest = done.got[1].longest();
                let most = cap + Nanos::from_millis(100);
                assert!(longest < most, "{name}, {preseek:?}, {cap}: {longest}");
                let served = [done.got[0].took.len(), done.got[1].took.len()];
                let enough = served[0] > 1_000 && served[1] > 1;
                assert!(enough, "{name}, {preseek:?}, {cap}: {served:?}");
            }
        }
    }
}

/// Where reads lie near each other, the arm often comes to one by going on. If all that waits then went in order of
/// arrival, a longer queue would serve less.
#[test]
fn near_reads_on_a_drive_that_keeps_to_no_stream_gain_from_every_command_in_it() {
    for shipped in headtime_disk::profile::shipped() {
        let shipped = shipped.profile();
        if shipped.queue.depth == 1 {
            continue;
        }
        let profile = shipped.with(|spec| spec.queue.stream_cap = Nanos::ZERO);
        let profile = profile.unwrap();
        let rates = [1, 8, 31].map(|depth| {
            let near = Client {
                order: Order::Random,
                place: (0, 2_000_000),
                ..Client::reader(32, depth)
            };
            run(&profile, depth, &[near], SECOND * 10).rate()
        });
        let gains = rates[1] > 1.2 * rates[0] && rates[2] > 1.05 * rates[1];
        assert!(gains, "{}: {rates:.2?} MB/s", profile.name);
    }
}
