//! Tests of the estimate against a simulated drive, which knows its arm's position.

use super::*;
use headtime_disk::drive::{Command as DriveCommand, Drive};
use headtime_disk::profile::by_name;
use headtime_workload::Random;
use proptest::prelude::*;

const RANDOM: u64 = 11;

/// True and estimated shares of the time, by part. Parts that are not visible from outside are counted as in the
/// estimate.
#[derive(Debug)]
struct Shares {
    truth: [f64; 8],
    estimate: [f64; 8],
    /// Share of the true idle time in which the arm reads ahead although a command is in the drive.
    ahead: f64,
}

impl Shares {
    /// Moves the time of reading ahead with a command in the drive from idle time to rotation, as in the estimate.
    fn with_waits_read(mut self) -> Shares {
        self.truth[2] += self.ahead;
        self.truth[7] -= self.ahead;
        self
    }

    fn check(&self, parts: &[Part], within: f64) {
        for part in parts {
            let index = PARTS.iter().position(|other| other == part).unwrap();
            let (truth, estimate) = (self.truth[index], self.estimate[index]);
            assert!(
                (truth - estimate).abs() <= within,
                "{}: estimated {estimate} for a true {truth} in {self:#?}",
                part.name()
            );
        }
    }
}

/// Runs `commands` commands on a drive, `depth` at a time, each `think` after a completion. Estimates with the assumed
/// profile `belief`.
fn run(
    drive: &Profile,
    belief: &Profile,
    depth: usize,
    commands: u32,
    think: Nanos,
    mut next: impl FnMut(&mut Random) -> (Op, Extent),
) -> Shares {
    let mut random = Random::new(RANDOM, 0, 0);
    let mut estimate = HeadTimeEstimate::new(belief, belief.geometry.sector_bytes);
    let mut drive = Drive::new(drive, 1);
    let mut now = Time::ZERO;
    let mut free: Vec<u32> = (0..depth as u32).rev().collect();
    let mut left = commands;
    // Time of reading ahead: before a command came to an empty drive, and with commands in the drive.
    let (mut before, mut ahead) = (Nanos::ZERO, Nanos::ZERO);
    loop {
        if free.len() == depth {
            before = drive.head_time(now).get(Part::ReadAhead);
        }
        while left > 0
            && let Some(tag) = free.pop()
        {
            left -= 1;
            let (op, extent) = next(&mut random);
            let request = Request::new(DriveTag(tag), op, extent, now);
            estimate.issue(now, &request);
            let command = DriveCommand {
                tag,
                op,
                extent,
                fua: false,
                high: false,
            };
            drive.submit(now, command);
        }
        let Some(at) = drive.next_event() else { break };
        now = now.max(at);
        if let Some(done) = drive.poll(at) {
            estimate.completed(done.at, DriveTag(done.tag));
            free.push(done.tag);
            if free.len() == depth {
                ahead += drive.head_time(done.at).get(Part::ReadAhead) - before;
            }
            now = done.at + think;
        }
        if left == 0 && free.len() == depth {
            break;
        }
    }
    let truth = drive.head_time(now);
    let account = estimate.account(now);
    assert_eq!(account.total(), now - Time::ZERO);
    assert_eq!(truth.total(), account.total());
    let share = |time: Nanos| time.as_nanos() as f64 / (now - Time::ZERO).as_nanos() as f64;
    Shares {
        truth: PARTS.map(|part| {
            let unseen = match part {
                Part::Idle => truth.get(Part::ReadAhead) + truth.get(Part::Destage),
                _ => Nanos::ZERO,
            };
            share(truth.get(part) + unseen)
        }),
        estimate: PARTS.map(|part| share(account.get(part))),
        ahead: share(ahead),
    }
}

fn quiet(name: &str) -> Profile {
    by_name(name).expect("it is shipped")
}

/// Requests anywhere on the disk, at multiples of their length.
fn anywhere(
    profile: &Profile,
    op: Op,
    len: u64,
) -> impl FnMut(&mut Random) -> (Op, Extent) + use<> {
    let places = profile.geometry.capacity.get() / len;
    move |random| (op, Extent::at(random.below(places) * len, len))
}

fn shipped() -> impl Iterator<Item = Profile> {
    headtime_disk::profile::shipped()
        .iter()
        .map(|shipped| shipped.profile())
}

#[test]
fn random_reads_one_at_a_time() {
    for profile in shipped() {
        let reads = anywhere(&profile, Op::Read, 8);
        let shares = run(&profile, &profile, 1, 2000, Nanos::ZERO, reads).with_waits_read();
        shares.check(&[Part::Seek, Part::Switch, Part::Transfer], 0.005);
        shares.check(&[Part::Rotation, Part::Overhead], 0.02);
        // On a few neighbouring cylinders the seek takes only little of the time. The requests spread over more sectors
        // than a buffer with shared segments can hold. Otherwise the arm would not move.
        let places = 20_000.max(u64::from(profile.cache.room_sectors) / 4);
        let shares = run(&profile, &profile, 1, 2000, Nanos::ZERO, |random| {
            (Op::Read, Extent::at(random.below(places) * 8, 8))
        });
        let shares = shares.with_waits_read();
        shares.check(&[Part::Seek, Part::Switch, Part::Transfer], 0.005);
        shares.check(&[Part::Rotation, Part::Overhead], 0.04);
    }
}

/// Reading ahead hides the processing of the next command only while the arm reads ahead.
#[test]
fn a_command_after_reading_ahead_is_processed_at_a_cost() {
    let profile = quiet("barracuda-7200.10-160");
    let reads = anywhere(&profile, Op::Read, 8);
    let shares = run(&profile, &profile, 1, 500, Nanos::from_millis(100), reads);
    shares.check(&[Part::Rotation, Part::Overhead, Part::Idle], 0.001);
    assert!(shares.truth[4] > 0.003, "{shares:?}");
}

#[test]
fn random_reads_of_which_the_drive_chooses() {
    for profile in shipped() {
        let depth = profile.queue.depth.min(8) as usize;
        let reads = anywhere(&profile, Op::Read, 8);
        let shares = run(&profile, &profile, depth, 2000, Nanos::ZERO, reads).with_waits_read();
        shares.check(&[Part::Seek, Part::Switch, Part::Transfer], 0.005);
        shares.check(&[Part::Rotation, Part::Overhead], 0.05);
    }
}

#[test]
fn sequential_reads_are_transfer() {
    for profile in shipped() {
        let deep = profile.queue.depth.min(8) as usize;
        for (depth, think) in [(1, 0), (1, 300), (deep, 0)] {
            let (mut at, think) = (0, Nanos::from_micros(think));
            let shares = run(&profile, &profile, depth, 2000, think, |_| {
                at += 128;
                (Op::Read, Extent::at(at - 128, 128))
            });
            shares.check(&[Part::Seek, Part::Switch], 0.05);
            // A lost turn that the buffer covers in part looks like transfer.
            shares.check(&[Part::Rotation], 0.1);
            let data = |shares: &[f64; 8]| shares[3] + shares[4] + shares[7];
            assert!((data(&shares.truth) - data(&shares.estimate)).abs() < 0.1);
        }
    }
}

#[test]
fn writes_that_complete_in_the_buffer_do_not_move_the_arm() {
    let profile = quiet("wd5000aaks");
    let writes = anywhere(&profile, Op::Write, 8);
    let shares = run(&profile, &profile, 1, 500, Nanos::from_millis(200), writes);
    // Destaging is idle time in both accounts, see `run`. Commands are processed meanwhile.
    shares.check(&[Part::Overhead, Part::Idle], 0.002);
    assert_eq!(shares.estimate[..4], [0.0; 4]);
    assert!(shares.estimate[4] > 0.0);
}

#[test]
fn writes_to_the_medium_are_accesses() {
    // This drive has no write-back.
    let profile = quiet("hp-c2247a");
    let writes = anywhere(&profile, Op::Write, 8);
    let shares = run(&profile, &profile, 1, 2000, Nanos::ZERO, writes);
    shares.check(&PARTS, 0.02);
    // With a full buffer the writes wait for the arm to write other data.
    let profile = quiet("wd5000aaks");
    let writes = anywhere(&profile, Op::Write, 8);
    let shares = run(&profile, &profile, 1, 2000, Nanos::ZERO, writes);
    assert!(shares.estimate[0] > 0.5, "{shares:?}");
}

#[test]
fn another_drive_is_another_account() {
    let (drive, belief) = (quiet("cheetah9lp"), quiet("hp-c2247a"));
    let few = belief.geometry.capacity.get() / 8;
    let shares = run(&drive, &belief, 1, 2000, Nanos::ZERO, |random| {
        (Op::Read, Extent::at(random.below(few) * 8, 8))
    });
    let off = shares.truth.iter().zip(shares.estimate);
    let off = off.map(|(truth, estimate)| (truth - estimate).abs());
    assert!(off.fold(0.0, f64::max) > 0.05, "{shares:?}");
}

fn at(micros: u64) -> Time {
    Time::ZERO + Nanos::from_micros(micros)
}

fn new() -> HeadTimeEstimate {
    HeadTimeEstimate::new(&quiet("wd5000aaks"), 512)
}

fn micros(estimate: &EstimatedHeadTime, part: Part) -> u64 {
    estimate.get(part).as_nanos() / 1000
}

#[test]
fn an_empty_device_rests_or_is_held_back() {
    let mut estimate = new();
    estimate.pending(at(100), Backlog::Chosen);
    estimate.pending(at(150), Backlog::Chosen);
    estimate.pending(at(400), Backlog::Nothing);
    estimate.pending(at(500), Backlog::Held);
    estimate.pending(at(700), Backlog::Nothing);
    let account = estimate.account(at(1000));
    assert_eq!(micros(&account, Part::Idle), 500);
    assert_eq!(micros(&account, Part::Waiting), 300);
    assert_eq!(micros(&account, Part::Held), 200);
    assert_eq!(account.total(), Nanos::from_millis(1));
}

#[test]
fn a_flush_is_overhead() {
    let mut estimate = new();
    let flush = Request::new(DriveTag(3), Op::Flush, Extent::at(0, 0), at(10));
    estimate.issue(at(10), &flush);
    // Pending requests are not held back while the device is busy.
    estimate.pending(at(20), Backlog::Chosen);
    estimate.completed(at(20_010), DriveTag(3));
    let account = estimate.account(at(20_010));
    assert_eq!(micros(&account, Part::Overhead), 20_000);
    assert_eq!(micros(&account, Part::Idle), 10);
}

#[test]
fn what_one_access_does_not_explain_is_overhead() {
    let mut estimate = new();
    let read = Request::new(DriveTag(0), Op::Read, Extent::at(1 << 28, 8), at(0));
    estimate.issue(at(0), &read);
    estimate.completed(at(500_000), DriveTag(0));
    let account = estimate.account(at(500_000));
    let turn = quiet("wd5000aaks").rotation.turn();
    assert_eq!(account.get(Part::Rotation), turn);
    assert!(account.get(Part::Overhead) > Nanos::from_millis(450));
    assert!(account.get(Part::Seek) > Nanos::from_millis(2));
}

#[test]
fn a_device_that_hangs_shows_after_a_second() {
    let mut estimate = new();
    let read = Request::new(DriveTag(0), Op::Read, Extent::at(1 << 28, 8), at(0));
    estimate.issue(at(0), &read);
    assert_eq!(estimate.account(at(900_000)).total(), Nanos::ZERO);
    let account = estimate.account(at(30_000_000));
    assert_eq!(account.get(Part::Overhead), Nanos::from_secs(29));
    estimate.gave_up(at(31_000_000), DriveTag(0));
    let account = estimate.account(at(31_000_000));
    assert_eq!(account.get(Part::Overhead), Nanos::from_secs(31));
    // The device has no commands with these tags.
    estimate.gave_up(at(31_000_000), DriveTag(0));
    estimate.completed(at(31_000_000), DriveTag(77));
    assert_eq!(account, estimate.account(at(31_000_000)));
}

#[test]
fn sectors_of_another_size_are_converted() {
    let profile = quiet("wd5000aaks");
    let estimate = HeadTimeEstimate::new(&profile, 4096);
    let bytes = profile.geometry.sector_bytes;
    assert_eq!(bytes, 512);
    assert_eq!(estimate.extent(Extent::at(10, 2)), Extent::at(80, 16));
    let capacity = profile.geometry.capacity.get();
    let beyond = estimate.extent(Extent::at(capacity, 4));
    assert_eq!(beyond, Extent::at(capacity - 1, 1));
}

#[test]
fn a_disk_estimates_if_a_drive_is_believed_and_the_device_does_not_know() {
    use crate::disk::{Disk, Options};
    use crate::null::Null;
    use headtime_linux::clock::Clock;
    use headtime_sched::{Noop, WorkConserving};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for belief in [None, Some(quiet("wd5000aaks"))] {
        let build =
            || Box::new(WorkConserving::new(Noop::new())) as Box<dyn headtime_sched::Scheduler>;
        let scheduler = (
            "noop".to_owned(),
            Box::new(build) as crate::disk::BuildScheduler,
        );
        let mut options = Options::new("disk", Clock::start(), scheduler);
        options.engine.depth = 1;
        options.estimate = belief.clone();
        let disk = Disk::start(options, || {
            Ok::<_, std::convert::Infallible>(Box::new(Null::new(Sectors::new(4096), 1)) as Box<_>)
        })
        .unwrap();
        let snapshot = runtime.block_on(disk.snapshot()).unwrap();
        assert_eq!(snapshot.whole.head_time, None);
        let estimated = snapshot.whole.head_time_estimated;
        assert_eq!(estimated.is_some(), belief.is_some());
        if let Some(estimated) = estimated {
            assert_eq!(estimated.get(Part::Idle), snapshot.now - Time::ZERO);
        }
        disk.stop().unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Issue(u32, Op, u64, u64, bool),
    Complete(u32),
    GiveUp(u32),
    Pending(Backlog),
    Look,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let op = prop_oneof![
        4 => Just(Op::Read),
        2 => Just(Op::Write),
        1 => Just(Op::Flush),
        1 => Just(Op::Discard),
    ];
    let tag = 0_u32..6;
    let step = prop_oneof![
        6 => (tag.clone(), op, 0_u64..1 << 31, 1_u64..3000, any::<bool>())
            .prop_map(|(tag, op, at, len, near)| {
                // Reads that continue the last read need adjacent addresses.
                let (at, len) = if near { (at % 8 * 64, 64) } else { (at, len) };
                Step::Issue(tag, op, at, len, near && len % 2 == 1)
            }),
        6 => tag.clone().prop_map(Step::Complete),
        1 => tag.prop_map(Step::GiveUp),
        2 => prop::sample::select(vec![
            Backlog::Nothing,
            Backlog::Busy,
            Backlog::Chosen,
            Backlog::Held,
        ])
        .prop_map(Step::Pending),
        2 => Just(Step::Look),
    ];
    let pause = prop_oneof![
        3 => Just(0_u64),
        3 => 0_u64..400_000,
        3 => 0_u64..20_000_000,
        1 => 0_u64..3_000_000_000,
    ];
    proptest::collection::vec((pause, step), 1..200)
}

proptest! {
    /// After any sequence of events the parts sum to the known time, and no part decreases. The known time is `now` if
    /// the device is empty, otherwise at most a second earlier.
    #[test]
    fn parts_sum_to_the_time(steps in steps()) {
        let mut estimate = new();
        let mut last = EstimatedHeadTime::default();
        let mut now = Time::ZERO;
        let mut there = [false; 6];
        for (pause, step) in steps {
            now += Nanos::from_nanos(pause);
            match step {
                Step::Issue(tag, op, start, len, through) => {
                    if std::mem::replace(&mut there[tag as usize], true) {
                        continue;
                    }
                    let extent = match op {
                        Op::Flush => Extent::at(0, 0),
                        _ => Extent::at(start, len),
                    };
                    let mut request = Request::new(DriveTag(tag), op, extent, now);
                    if through {
                        request.flags = Flags::FUA;
                    }
                    estimate.issue(now, &request);
                }
                Step::Complete(tag) => {
                    estimate.completed(now, DriveTag(tag));
                    there[tag as usize] = false;
                }
                Step::GiveUp(tag) => {
                    estimate.gave_up(now, DriveTag(tag));
                    there[tag as usize] = false;
                }
                Step::Pending(pending) => estimate.pending(now, pending),
                Step::Look => {}
            }
            let account = estimate.account(now);
            let behind = (now - Time::ZERO) - account.total();
            prop_assert!(behind <= BEHIND_MAX);
            if !there.contains(&true) {
                prop_assert_eq!(behind, Nanos::ZERO);
            }
            for part in Part::ALL {
                prop_assert!(account.get(part) >= last.get(part));
            }
            last = account;
        }
    }
}
