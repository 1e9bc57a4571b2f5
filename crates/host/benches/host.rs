//! Requests per second of wall clock: four sequential readers of 256 MiB each, 4 KiB at a time,
//! through the page cache and readahead.
//!
//! `host` alone is before a disk that answers at once; `host and sim` is under noop, plugged and
//! committing ahead, with a modelled drive.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use headtime_disk::profile;
use headtime_disk::{Layout, drive::Drive};
use headtime_engine::{Config, Plug};
use headtime_host::{DiskSize, File, Host, HostBuilder, HostSpec, ProcessSpec, Step};
use headtime_sched::{NoPositioning, Spec};
use headtime_sim::{Setup, run};
use headtime_units::{Extent, Nanos, Time};
use headtime_workload::Source;
use std::hint::black_box;
use std::sync::Arc;

const READERS: u64 = 4;
const PAGES: u64 = 65_536;

fn readers(disk: DiskSize) -> Host {
    let mut builder = HostBuilder::new(HostSpec::default(), disk).expect("in range");
    for number in 0..READERS {
        let extents = vec![Extent::at(number * 100_000_000, PAGES * 8)];
        let size = PAGES * 4096;
        let file = builder.add_file(File { extents, size }).expect("it fits");
        let mut offset = 0;
        let reader = move || {
            if offset == PAGES * 4096 {
                return Step::Exit;
            }
            offset += 4096;
            Step::Read {
                file,
                offset: offset - 4096,
                len: 4096,
            }
        };
        builder.add_process(ProcessSpec {
            program: 1,
            behaviour: Box::new(reader),
            served_by: None,
            start: Time::ZERO,
        });
    }
    builder.build(1).expect("it can be")
}

/// Answers each request when the next has been made; how many there were.
fn answer(host: &mut Host) -> u64 {
    let (mut now, mut requests) = (Time::ZERO, 0);
    let mut open = Vec::with_capacity(64);
    while !host.done() {
        now = host.next_arrival().map_or(now, |at| at.max(now));
        while let Some(request) = host.poll(now) {
            open.push(request.cookie);
        }
        host.unplug();
        for cookie in open.drain(..) {
            requests += 1;
            now += Nanos::from_micros(100);
            host.completed(now, cookie);
        }
    }
    requests
}

fn bench(c: &mut Criterion) {
    let profile = profile::by_name("wd5000aaks").expect("shipped");
    let layout = Arc::new(Layout::new(&profile));
    let disk = DiskSize {
        capacity: profile.geometry.capacity,
        sector_bytes: profile.geometry.sector_bytes,
    };
    let mut group = c.benchmark_group("par-read");
    group.sample_size(20);
    group.throughput(Throughput::Elements(answer(&mut readers(disk))));
    group.bench_function("host", |b| {
        b.iter(|| black_box(answer(&mut readers(disk))));
    });
    let spec: Spec = "noop".parse().expect("registered");
    group.bench_function("host and sim", |b| {
        b.iter(|| {
            let mut host = readers(disk);
            let config = Config {
                plug: Some(Plug::LINUX_2_6),
                commit_ahead: true,
                ..Config::default()
            };
            let scheduler = spec.build(None::<NoPositioning>).expect("built");
            let drive = Drive::with_layout(&profile, layout.clone(), 1);
            let setup = Setup::new(drive, config, scheduler, &mut host);
            black_box(run(setup).expect("runs"))
        });
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
