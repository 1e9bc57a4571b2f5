//! A link that all drives share: together they move no more than it carries, and a drive alone does not notice a faster one.

mod scripted;

use headtime_disk::drive::Drive;
use headtime_disk::ledger::Part;
use headtime_disk::profile::{self, Profile, Spec, WriteBack};
use headtime_engine::{Command, Config, Seen, Striped};
use headtime_sched::{Class, Flags, NoPositioning, Op, Origin};
use headtime_sim::{Coalesce, Report, Setup, Station, run};
use headtime_units::{Extent, Nanos, Sectors, Time};
use headtime_workload::NewRequest;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use scripted::Scripted;
use std::num::NonZero;

/// Results of a run, its log, and the bytes of each part with the time of its end.
struct Ran {
    report: Report,
    log: String,
    done: Vec<(Time, u64)>,
}

fn ran(profile: &Profile, members: u16, depth: u32, bus: Option<u64>, asked: &[NewRequest]) -> Ran {
    changed(profile, members, depth, bus, asked, |_| {})
}

/// Runs like [`ran`] after a change of the set-up.
fn changed(
    profile: &Profile,
    members: u16,
    depth: u32,
    bus: Option<u64>,
    asked: &[NewRequest],
    change: impl FnOnce(&mut Setup<'_>),
) -> Ran {
    let config = Config {
        depth,
        ..Config::default()
    };
    let noop = || {
        let spec: headtime_sched::Spec = "noop".parse().expect("registered");
        spec.build(None::<NoPositioning>).expect("built")
    };
    let mut source = Scripted::new(asked);
    let (mut log, mut done) = (String::new(), Vec::new());
    let mut write = |piece: &str| log.push_str(piece);
    let bytes = u64::from(profile.geometry.sector_bytes);
    let mut observe = |now: Time, _, seen: Seen<'_>| {
        if let Seen::Command(Command::Finish(end)) = seen {
            done.push((now, end.request.extent.len.get() * bytes));
        }
    };
    let mut setup = Setup::new(Drive::new(profile, 0), config, noop(), &mut source);
    for member in 1..members {
        let drive = Drive::new(profile, member.into());
        setup.stations.push(Station::new(drive, config, noop()));
    }
    if members > 1 {
        let sizes = vec![profile.geometry.capacity; members.into()];
        let striped = Striped::new(Sectors::new(128), &sizes).expect("allowed");
        setup.map = Some(Box::new(striped));
    }
    setup.bus = bus.and_then(NonZero::new);
    setup.audit = true;
    setup.log = Some(&mut write);
    setup.observer = Some(&mut observe);
    change(&mut setup);
    let report = run(setup).expect("it ends");
    Ran { report, log, done }
}

fn request(cookie: u64, op: Op, extent: Extent, arrival: Time) -> NewRequest {
    NewRequest {
        cookie,
        arrival,
        op,
        extent,
        flags: Flags::NONE,
        origin: Origin::default(),
        class: Class::BEST_EFFORT,
    }
}

/// Random reads and writes of 1 to 256 sectors, many in a row.
fn mixed(seed: u64, gap_us: u64) -> Vec<NewRequest> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut below = |end: u64| random.next_u64() % end;
    let (mut now, mut next) = (Time::ZERO, 0);
    let one = |cookie| {
        now += Nanos::from_micros(below(gap_us));
        let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Flush][below(9).min(4) as usize];
        if below(3) == 0 {
            next = below(1 << 20);
        }
        let extent = match op {
            Op::Flush => Extent::default(),
            _ => Extent::at(next, 1 + below(256)),
        };
        next += extent.len.get();
        request(cookie, op, extent, now)
    };
    (0..150).map(one).collect()
}

#[test]
fn a_drive_alone_does_not_notice_a_bus_that_is_faster_than_its_interface() {
    for name in [
        "atlas10k",
        "cheetah9lp",
        "wd5000aaks",
        "barracuda-7200.10-160",
    ] {
        let shipped = profile::by_name(name).expect("shipped");
        for (depth, write_back) in [(1, None), (8, None), (8, Some(WriteBack::Off))] {
            let change = |spec: &mut Spec| {
                spec.queue.depth = depth;
                spec.cache.write_prebuffering |= write_back.is_some();
                spec.cache.write_back = write_back.unwrap_or(spec.cache.write_back);
            };
            let profile = shipped.with(change).expect("allowed");
            let sector = profile.bus.sector(true).min(profile.bus.sector(false));
            let sector_bytes = u64::from(profile.geometry.sector_bytes);
            // The first rate that is faster.
            let faster = sector_bytes * 1_000_000_000 / sector.as_nanos() + 1;
            for gap_us in [100, 20_000] {
                let asked = mixed(u64::from(depth) + gap_us, gap_us);
                let without = ran(&profile, 1, depth, None, &asked);
                let with = ran(&profile, 1, depth, Some(faster), &asked);
                assert_eq!(with.log, without.log, "{name}, {depth}");
                assert_eq!(with.report.head_time, without.report.head_time, "{name}");
                let slow = ran(&profile, 1, depth, Some(faster / 4), &asked);
                assert_ne!(slow.log, without.log, "{name}, {depth}");
            }
        }
    }
}

#[test]
fn drives_together_move_no_more_than_the_bus_carries() {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    for (members, rate) in [
        (1, 40_000_000),
        (2, 60_000_000),
        (5, 100_000_000),
        (5, 400_000_000),
    ] {
        for depth in [1, 4] {
            let asked = mixed(u64::from(members), 10);
            let mut moved = 0;
            for (now, bytes) in ran(&profile, members, depth, Some(rate), &asked).done {
                moved += bytes;
                let carried = u128::from(now.as_nanos()) * u128::from(rate) / 1_000_000_000;
                assert!(u128::from(moved) <= carried, "{moved} bytes at {now}");
            }
        }
    }
}

#[test]
fn the_wait_for_the_bus_is_in_response_times_and_head_time() {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    // A stripe of five chunks of 64 KiB after the other.
    let one = |n: u64| request(n, Op::Read, Extent::at(n * 640, 640), Time::ZERO);
    let asked: Vec<NewRequest> = (0..400).map(one).collect();
    let bytes = 400 * 640 * 512_u64;
    let ran = |rate| ran(&profile, 5, 1, rate, &asked).report;
    let (free, tight) = (ran(None), ran(Some(100_000_000)));
    let seconds = |report: &Report| report.simulated.as_secs_f64();
    assert!(
        bytes as f64 / seconds(&free) > 2.0 * 100e6,
        "the disks are faster"
    );
    let rate = bytes as f64 / seconds(&tight);
    assert!((0.97 * 100e6..=100e6).contains(&rate), "{rate}");
    let response = |report: &Report| report.measured.response.mean_ms();
    assert!(response(&tight) > 1.9 * response(&free));
    // At depth 1 each disk waits for its data to be across before its next command.
    let overhead = |report: &Report| report.head_time.get(Part::Overhead).as_secs_f64();
    let longer = 5.0 * (seconds(&tight) - seconds(&free));
    let rest = |report: &Report| {
        let ahead = report.head_time.get(Part::ReadAhead) + report.head_time.get(Part::Idle);
        ahead.as_secs_f64() + overhead(report)
    };
    assert!(rest(&tight) - rest(&free) > 0.9 * longer);
    assert_eq!(tight.head_time.total(), tight.simulated * 5);
}

#[test]
fn interrupts_are_held_back_behind_the_bus() {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    let asked = mixed(3, 10);
    let rule = Coalesce {
        commands: 3,
        timeout: Nanos::from_millis(2),
    };
    let few = changed(&profile, 5, 4, Some(100_000_000), &asked, |setup| {
        for station in &mut setup.stations {
            station.coalesce = Some(rule);
        }
    });
    let each = ran(&profile, 5, 4, Some(100_000_000), &asked);
    assert_eq!(few.report.measured.requests, asked.len() as u64);
    let interrupts = |ran: &Ran| ran.report.commands.interrupts;
    assert!(interrupts(&few) < interrupts(&each));
}

/// The drive has answered, so that the host cannot take the command back.
#[test]
fn a_command_that_is_on_the_bus_at_its_timeout_completes() {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    let one = |n: u64| request(n, Op::Read, Extent::at(n * 256, 256), Time::ZERO);
    let asked: Vec<NewRequest> = (0..40).map(one).collect();
    // A command takes 0.13 s on the bus.
    let late = changed(&profile, 2, 4, Some(1_000_000), &asked, |setup| {
        setup.timeout = Some(Nanos::from_millis(300));
    });
    assert_eq!(late.report.measured.requests, 40);
    assert_eq!(late.report.measured.failed, 0);
    assert!(late.report.measured.device.max() > Nanos::from_millis(500));
}
