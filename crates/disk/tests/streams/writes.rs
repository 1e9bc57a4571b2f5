//! Writes: loads that a queue in the drive must not slow down, and the gain of sweeps over a full buffer.

use crate::harness::{Client, Order, run, run_warm};
use crate::{DEPTHS, QUEUED};
use headtime_disk::Profile;
use headtime_disk::profile::{Destage, WriteBack, by_name};
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

fn writer(len: u64, outstanding: u32) -> Client {
    Client {
        op: Op::Write,
        ..Client::reader(len, outstanding)
    }
}

fn random(op: Op, outstanding: u32) -> Client {
    Client {
        op,
        order: Order::Random,
        ..Client::reader(8, outstanding)
    }
}

/// Results of clients once the buffer is full.
fn sustained(profile: &Profile, depth: u32, clients: &[Client]) -> crate::harness::Outcome {
    let (warm, span) = (Nanos::from_millis(5_000), Nanos::from_millis(10_000));
    run_warm(profile, depth, clients, warm, span)
}

/// The drive with one segment for each write. Segments are written one at a time.
fn by_segment(profile: &Profile) -> Profile {
    profile
        .with(|spec| spec.cache.destage = Destage::Segment)
        .unwrap()
}

#[test]
fn buffered_writes_one_behind_the_other_go_on_at_the_rate_of_the_medium_at_every_depth_and_edge() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let inner = (profile.geometry.capacity.get() - 20_000_000) / 8 * 8;
        for place in [0, inner] {
            let media = sustained(&profile, 1, &[Client::reader(2048, 1).at(place)]).rate();
            // Off the borders of the medium's sectors too: writes that touch are one.
            for (kib, shift) in [(4, 0), (16, 0), (128, 0), (128, 1), (1024, 0), (1024, 3)] {
                for depth in DEPTHS {
                    let client = writer(kib * 2, depth).at(place + shift);
                    // Small commands cannot come that fast.
                    let sent = profile.bus.sector(false) * client.len + Nanos::from_micros(215);
                    let most = f64::from(depth) * kib as f64 * 1.024e-3 / sent.as_secs_f64();
                    let rate = sustained(&profile, depth, &[client]).rate();
                    let least = 0.97 * media.min(most);
                    assert!(
                        rate > least,
                        "{name}, {kib} KiB at {place} + {shift}, depth {depth}: {rate:.1} of {media:.1} MB/s"
                    );
                }
            }
        }
    }
}

#[test]
fn streams_of_buffered_writes_share_the_medium_and_lose_little() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        let apart = profile.geometry.capacity.get() / 64 * 8;
        for count in [2, 4] {
            let clients: Vec<Client> = (0..count).map(|n| writer(256, 4).at(apart * n)).collect();
            let swept = sustained(&profile, 32, &clients);
            let before = sustained(&by_segment(&profile), 32, &clients).rate();
            assert!(
                swept.rate() > 1.3 * before,
                "{name}: {:.1}, {before:.1}",
                swept.rate()
            );
            let least = swept.got.iter().map(|got| got.bytes).min().unwrap();
            let most = swept.got.iter().map(|got| got.bytes).max().unwrap();
            assert!(least as f64 > 0.8 * most as f64, "{name}: {least}, {most}");
        }
    }
}

#[test]
fn random_buffered_writes_gain_from_all_that_is_dirty_and_not_from_the_queue() {
    for (name, least) in [
        ("exos-x18", 2.0),
        ("wd5000aaks", 1.4),
        ("barracuda-7200.10-160", 1.4),
    ] {
        let profile = by_name(name).unwrap();
        let before = sustained(&by_segment(&profile), 16, &[random(Op::Write, 16)]).commands();
        for depth in [1, 16] {
            let client = random(Op::Write, depth);
            let swept = sustained(&profile, depth, &[client]).commands();
            assert!(
                swept > least * before,
                "{name}, {depth}: {swept:.1}, {before:.1}"
            );
        }
        let few = profile.with(|spec| spec.cache.destage_runs = 32).unwrap();
        let few = sustained(&few, 16, &[random(Op::Write, 16)]).commands();
        let many = sustained(&profile, 16, &[random(Op::Write, 16)]).commands();
        assert!(many > 1.1 * few, "{name}: {many:.1}, {few:.1}");
    }
}

/// The missing parts of the medium's sectors are read in passing, and the writes have their turn later.
#[test]
fn random_writes_off_the_sectors_of_the_medium_cost_two_ways_and_no_turn() {
    let profile = by_name("exos-x18").unwrap();
    let aligned = sustained(&profile, 16, &[random(Op::Write, 16)]).commands();
    let off = sustained(&profile, 16, &[random(Op::Write, 16).at(3)]).commands();
    assert!(off > 0.4 * aligned, "{off:.1} of {aligned:.1}");
    let before = sustained(&by_segment(&profile), 16, &[random(Op::Write, 16).at(3)]).commands();
    assert!(off > 2.0 * before, "{off:.1}, {before:.1}");
}

#[test]
fn reads_pass_what_is_dirty_and_writes_get_on() {
    for name in QUEUED {
        let profile = by_name(name).unwrap();
        // A reader beside writers that fill the buffer waits for hardly more than a write.
        let clients = [random(Op::Read, 1), random(Op::Write, 16)];
        let done = sustained(&profile, 32, &clients);
        let (longest, writes) = (done.got[0].longest(), done.got[1].took.len());
        assert!(longest < Nanos::from_millis(200), "{name}: {longest}");
        assert!(writes > 300, "{name}: {writes}");
        // A stream keeps most of the arm, but not all.
        let clients = [Client::reader(256, 1), random(Op::Write, 1)];
        let done = sustained(&profile, 32, &clients);
        let stream = done.got[0].bytes as f64 / 10e6;
        let media = sustained(&profile, 1, &[Client::reader(256, 1)]).rate();
        assert!(stream > 0.6 * media, "{name}: {stream:.1} of {media:.1}");
        let writes = done.got[1].took.len();
        assert!(writes > 100, "{name}: {writes}");
    }
}
