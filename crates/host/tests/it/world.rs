//! The host before a simulated drive, under an engine that plugs and commits ahead as the kernel's.

use crate::disk::{process, sequential};
use headtime_disk::drive::Drive;
use headtime_disk::profile;
use headtime_engine::{Config, Plug};
use headtime_host::{DiskSize, File, Host, HostBuilder, HostSpec};
use headtime_sched::{NoPositioning, Spec};
use headtime_sim::{Report, Setup, run};
use headtime_units::{Extent, Nanos};

/// So many readers of files of so many pages, far from each other.
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
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    let spec: Spec = scheduler.parse().unwrap();
    let config = Config {
        plug: Some(Plug::LINUX_2_6),
        commit_ahead: true,
        ..Config::default()
    };
    let scheduler = spec.build(None::<NoPositioning>).unwrap();
    let mut setup = Setup::new(Drive::new(&profile, 1), config, scheduler, host);
    setup.audit = true;
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
