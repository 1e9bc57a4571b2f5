//! The host before a simulated drive, under an engine that plugs and commits ahead as the kernel's.

use crate::disk::{process, sequential};
use crate::properties::{self, act};
use headtime_disk::drive::Drive;
use headtime_disk::profile;
use headtime_engine::{Config, Plug};
use headtime_host::{DiskSize, File, Host, HostBuilder, HostSpec};
use headtime_sched::{Knowledge, NoPositioning, ServiceCurve, Spec};
use headtime_sim::{Report, Setup, run};
use headtime_units::{Extent, Millionths, Nanos, Sectors};
use proptest::prelude::*;
use std::sync::Arc;

/// A number of readers, each of a file with `pages` pages, far from each other.
fn readers(count: u64, pages: u64, think: Nanos) -> Host {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    let disk = DiskSize {
        capacity: profile.geometry.capacity,
        sector_bytes: profile.geometry.sector_bytes,
    };
    let mut builder = HostBuilder::new(HostSpec::default(), disk).unwrap();
    for number in 0..count {
        let extent = Extent::at(number * 100_000_000, pages * 8);
        let file = builder
            .add_file(File {
                extents: vec![extent],
                size: pages * 4096,
            })
            .unwrap();
        let mut reader = process(sequential(file, pages, 1, think));
        reader.program = number as u32 + 1;
        builder.add_process(reader);
    }
    builder.build(1).unwrap()
}

fn simulate(host: &mut Host, scheduler: &str) -> Report {
    let config = Config {
        plug: Some(Plug::LINUX_2_6),
        commit_ahead: true,
        ..Config::default()
    };
    simulate_with(host, scheduler, config)
}

fn simulate_with(host: &mut Host, scheduler: &str, config: Config) -> Report {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    let spec: Spec = scheduler.parse().unwrap();
    // A curve of about the right shape.
    let points = [
        (0, 100),
        (1_000, 4_500),
        (10_000_000, 9_000),
        (900_000_000, 18_000),
    ]
    .map(|(distance, micros)| (Sectors::new(distance), Nanos::from_micros(micros)));
    let knowledge = Knowledge {
        positioning: None::<NoPositioning>,
        curve: Some(Arc::new(
            ServiceCurve::new(points.to_vec(), Millionths(1_500_000)).unwrap(),
        )),
        handed_out_max: Some(config.handed_out_max()),
    };
    let tell_ahead = scheduler.starts_with("clairvoyant");
    let scheduler = spec.build(knowledge).unwrap();
    let mut setup = Setup::new(Drive::new(&profile, 1), config, scheduler, host);
    setup.audit = true;
    setup.tell_ahead = tell_ahead;
    run(setup).unwrap()
}

#[test]
fn windows_merge_while_they_wait() {
    let pages = 8192;
    let mut host = readers(4, pages, Nanos::ZERO);
    let report = simulate(&mut host, "noop");
    let bytes: u64 = host
        .outcome()
        .iter()
        .map(|program| program.bytes_read)
        .sum();
    assert_eq!(bytes, 4 * pages * 4096);
    assert_eq!(report.measured.bytes, bytes, "every page is read once");
    println!(
        "{:.1} MB/s, {} requests, {} commands, {} merged",
        report.measured.throughput_mb_s(),
        report.engine.arrived,
        report.engine.issued,
        report.engine.merged_back,
    );
    // In contention the successor of a window joins it in the queue: 256 KiB.
    assert!(report.engine.merged_back * 3 > report.engine.arrived);
}

#[test]
fn a_slow_reader_leaves_its_window_plugged() {
    // The reader asks for the next window 32 pages before it needs the window: 6.4 ms. No process sleeps, so only the
    // timer opens the plug.
    let mut host = readers(1, 2048, Nanos::from_micros(200));
    let report = simulate(&mut host, "noop");
    let waited = report.measured.queue.percentile_ms(50.0);
    assert!(waited > 3.99 && waited < 4.01, "{waited} ms");
    // A reader faster than the timer asks for one more window. The reader then opens the plug by going to sleep after
    // 32 pages of 101.2 us, and the second window joins the first.
    let mut host = readers(1, 2048, Nanos::from_micros(100));
    let report = simulate(&mut host, "noop");
    let waited = |percent| report.measured.queue.percentile_ms(percent);
    assert!(waited(40.0) < 0.01, "{} ms", waited(40.0));
    assert!(
        waited(80.0) > 3.2 && waited(80.0) < 3.25,
        "{} ms",
        waited(80.0)
    );
    assert!(report.engine.merged_back * 2 + 3 >= report.engine.arrived);
    // A reader faster than the disk hardly ever closes the plug.
    let mut host = readers(1, 2048, Nanos::ZERO);
    let report = simulate(&mut host, "noop");
    assert!(report.measured.queue.percentile_ms(50.0) < 1.0);
}

#[test]
fn the_same_seed_runs_the_same() {
    let ran = || {
        let mut host = readers(4, 1024, Nanos::from_micros(20));
        let report = simulate(&mut host, "deadline");
        (report.simulated, report.engine, host.outcome())
    };
    assert_eq!(ran(), ran());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// With any programs and schedulers, the run ends, the engine keeps its promises, and the programs get their
    /// bytes.
    #[test]
    fn any_programs_under_any_scheduler(
        programs in prop::collection::vec(prop::collection::vec(act(), 0..30), 1..6),
        scheduler in prop::sample::select(vec![
            "noop", "deadline", "mq-deadline", "clook", "sstf", "anticipatory", "cfq",
            "bfq",
            "stream(deadline)", "stream(clook)", "clairvoyant(deadline)",
        ]),
        depth in prop_oneof![Just(1u32), Just(8)],
        (hidden, plug, ahead, workers) in (any::<bool>(), any::<bool>(), any::<bool>(), 0u32..3),
    ) {
        let mut host = properties::host(&programs, 1 << 20, workers);
        let config = Config {
            depth,
            plug: plug.then_some(Plug::LINUX_2_6),
            commit_ahead: ahead,
            hide_origins: hidden,
            ..Config::default()
        };
        let report = simulate_with(&mut host, scheduler, config);
        let outcome = host.outcome();
        prop_assert!(outcome.iter().all(|program| program.ended.is_some()));
        prop_assert_eq!(report.engine.arrived, report.engine.finished);
        let mut alone = properties::host(&programs, 1 << 20, workers);
        crate::disk::run(&mut alone, Nanos::from_millis(1));
        let bytes = |host: &Host| -> Vec<(u64, u64, u64)> {
            let processes = host.outcome().into_iter().flat_map(|program| program.processes);
            processes.map(|p| (p.bytes_read, p.bytes_written, p.calls)).collect()
        };
        prop_assert_eq!(bytes(&host), bytes(&alone));
    }
}
