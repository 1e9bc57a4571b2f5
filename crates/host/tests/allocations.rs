//! Nothing is allocated per request in steady state: a run three times as long allocates hardly more
//! often.

use headtime_host::cluster::{Cluster, ClusterSpec};
use headtime_host::{DiskSize, File, HostBuilder, HostSpec, ProcessSpec, Step};
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};
use headtime_workload::Source;
use std::collections::VecDeque;

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

const PAGES: u64 = 100_000;

/// A number of rounds of reads, writes, metadata if any, and syncs.
fn program(
    file: headtime_host::FileId,
    rounds: u64,
    metadata: bool,
) -> impl FnMut() -> Step + Send {
    let mut step = 0;
    move || {
        step += 1;
        let round = step / 6;
        let offset = round * 20_480 % (PAGES * 4096);
        match step % 6 {
            _ if round == rounds => Step::Exit,
            0 => Step::Read {
                file,
                offset,
                len: 20_000,
            },
            1 => Step::Write {
                file,
                offset,
                len: 5_000,
            },
            2 | 3 if !metadata => Step::Think(Nanos::from_micros(10)),
            2 => Step::ReadBlock(Lba::new(round % 4096 * 8)),
            3 => Step::DirtyBlock(Lba::new(round % 4096 * 8)),
            4 if round % 50 == 0 => Step::Sync(file),
            4 => Step::Direct {
                op: headtime_sched::Op::Read,
                file,
                offset,
                len: 4096,
            },
            _ => Step::Think(Nanos::from_millis(1)),
        }
    }
}

/// Allocations of a run with this number of rounds in each of four processes, on a host or a cluster.
fn allocations(rounds: u64, cluster: Option<ClusterSpec>) -> (u64, u64) {
    let disk = DiskSize {
        capacity: Sectors::new(1 << 24),
        sector_bytes: 512,
    };
    let spec = HostSpec {
        page_cache: Bytes(16 << 20),
        ..HostSpec::default()
    };
    let volume = cluster
        .as_ref()
        .map_or(disk, |cluster| cluster.volume(disk));
    let mut builder = HostBuilder::new(spec, volume).unwrap();
    let pool = builder.add_pool(3);
    for number in 0..4 {
        let extents = vec![Extent::at(100_000 + number * 1_000_000, PAGES * 8)];
        let size = PAGES * 4096;
        let file = builder.add_file(File { extents, size }).unwrap();
        builder.add_process(ProcessSpec {
            program: 1,
            behaviour: Box::new(program(file, rounds, cluster.is_none())),
            served_by: (number == 0).then_some(pool),
            start: Time::ZERO,
        });
    }
    let mut host: Box<dyn Source> = match cluster {
        None => Box::new(builder.build(1).unwrap()),
        Some(spec) => Box::new(Cluster::new(spec, disk, builder, 1).unwrap()),
    };
    let mut queue = VecDeque::with_capacity(1024);
    let (mut now, mut requests) = (Time::ZERO, 0);
    let before = dhat::HeapStats::get().total_blocks;
    while !host.done() {
        now = host.next_arrival().map_or(now, |at| at.max(now));
        while let Some(request) = host.poll(now) {
            queue.push_back(request.cookie);
        }
        host.unplug();
        if let Some(cookie) = queue.pop_front() {
            requests += 1;
            now += Nanos::from_micros(300);
            host.completed(now, cookie);
        }
    }
    (dhat::HeapStats::get().total_blocks - before, requests)
}

#[test]
fn a_longer_run_allocates_no_more_often() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let three = ClusterSpec {
        servers: 3,
        ..ClusterSpec::default()
    };
    for cluster in [None, Some(three)] {
        let (short, few) = allocations(8_000, cluster.clone());
        let (long, many) = allocations(24_000, cluster);
        assert!(many > few * 2 && few > 20_000, "{few} and {many} requests");
        assert!(
            long <= short + 10,
            "{short} allocations for {few} requests, {long} for {many}"
        );
    }
}
