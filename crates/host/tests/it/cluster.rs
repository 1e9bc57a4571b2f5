//! Clients, network and servers.

use crate::disk::{DISK, process};
use headtime_host::cluster::{Cluster, ClusterSpec};
use headtime_host::workload::BenchmarkSpec;
use headtime_host::{File, FileId, HostBuilder, HostError, HostSpec, ProcessSpec, Step};
use headtime_sched::{Class, Op, Origin};
use headtime_units::{Bytes, Extent, Nanos, Sectors, Time};
use headtime_workload::{NewRequest, Source};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const STRIP: u64 = 64 << 10;
/// Sectors of a strip.
const SECTORS: u64 = STRIP / 512;

fn spec(servers: u16) -> ClusterSpec {
    ClusterSpec {
        servers,
        ..ClusterSpec::default()
    }
}

/// A builder for the volume of a cluster, without readahead.
fn builder(spec: &ClusterSpec) -> HostBuilder {
    let host = HostSpec {
        read_ahead: Bytes(0),
        copy_per_page: Nanos::ZERO,
        ..HostSpec::default()
    };
    HostBuilder::new(host, spec.volume(DISK)).unwrap()
}

/// A file with a number of strips, from a byte of the volume on.
fn file(builder: &mut HostBuilder, start: u64, strips: u64) -> FileId {
    let extents = vec![Extent::at(start / 512, strips * SECTORS)];
    let size = strips * STRIP;
    builder.add_file(File { extents, size }).unwrap()
}

fn direct(op: Op, file: FileId, offset: u64, len: u64) -> Step {
    Step::Direct {
        op,
        file,
        offset,
        len,
    }
}

fn read(file: FileId, offset: u64, len: u64) -> Step {
    direct(Op::Read, file, offset, len)
}

fn cluster(spec: ClusterSpec, builder: HostBuilder) -> Cluster {
    Cluster::new(spec, DISK, builder, 1).unwrap()
}

/// Runs a cluster whose disks take this for a request, any number at a time. Returns the requests by time, and the
/// places of unplugs.
fn run_with(
    cluster: &mut Cluster,
    service: impl Fn(&NewRequest) -> Nanos,
) -> (Vec<(Time, NewRequest)>, Vec<u64>) {
    let (mut now, mut served, mut places) = (Time::ZERO, Vec::new(), Vec::new());
    let mut in_work = BinaryHeap::new();
    while !cluster.done() {
        match cluster.poll(now) {
            Some(request) => {
                served.push((now, request));
                in_work.push(Reverse((now + service(&request), request.cookie)));
                continue;
            }
            None => places.extend(cluster.unplug().map(|place| place.get())),
        }
        let arrival = cluster.next_arrival();
        if cluster.done() || arrival.is_some_and(|at| at <= now) {
            continue;
        }
        match in_work.peek() {
            Some(Reverse((at, cookie))) if arrival.is_none_or(|arrival| *at <= arrival) => {
                (now, _) = (*at, cluster.completed(*at, *cookie));
                in_work.pop();
            }
            _ => now = arrival.unwrap_or_else(|| panic!("{now}: nothing happens any more")),
        }
    }
    (served, places)
}

const SERVICE: Nanos = Nanos::from_millis(5);

fn run(cluster: &mut Cluster) -> Vec<(Time, NewRequest)> {
    run_with(cluster, |_| SERVICE).0
}

/// End of a program.
fn ended(cluster: &Cluster, program: usize) -> Nanos {
    cluster.outcome()[program - 1].ended.expect("it ended") - Time::ZERO
}

/// Time of a message in one direction, with this number of data bytes.
fn way(spec: &ClusterSpec, data: u64) -> Nanos {
    spec.message * 2 + spec.latency + spec.link.time(24 + data)
}

#[test]
fn a_read_is_a_request_a_thread_and_an_answer_with_the_data() {
    let spec = spec(3);
    let mut builder = builder(&spec);
    let file = file(&mut builder, 0, 3);
    builder.add_process(process([read(file, 0, STRIP)]));
    let mut cluster = cluster(spec.clone(), builder);
    assert_eq!(run(&mut cluster).len(), 1);
    let there = way(&spec, 0) + spec.request + SERVICE;
    assert_eq!(ended(&cluster, 1), there + way(&spec, STRIP));
}

#[test]
fn a_small_write_takes_its_data_along_and_a_large_write_asks_first() {
    let small = (16 << 10) - 512;
    for (len, extra) in [(small, 0), (2 * small, 2)] {
        let spec = spec(2);
        let mut builder = builder(&spec);
        let file = file(&mut builder, 0, 2);
        builder.add_process(process([direct(Op::Write, file, 0, len)]));
        let mut cluster = cluster(spec.clone(), builder);
        run(&mut cluster);
        let asked = way(&spec, 0) * extra + way(&spec, len);
        let expected = asked + spec.request + SERVICE + way(&spec, 0);
        assert_eq!(ended(&cluster, 1), expected, "{len}");
        assert_eq!(cluster.outcome()[0].bytes_written, len);
    }
}

#[test]
fn a_call_over_several_strips_asks_their_servers_at_once_and_waits_for_the_last() {
    let spec = spec(3);
    let mut builder = builder(&spec);
    // A row of strips is 3 strips, so that the file begins with strip 2 of each disk.
    let file = file(&mut builder, 6 * STRIP, 9);
    builder.add_process(process([read(file, STRIP, 4 * STRIP)]));
    let mut cluster = cluster(spec.clone(), builder);
    let last = DISK.capacity.get() * 2;
    let (served, _) = run_with(&mut cluster, |request| {
        SERVICE
            * if request.extent.start.get() >= last {
                3
            } else {
                1
            }
    });
    let begin = |server: u64, strip: u64| DISK.capacity.get() * server + strip * SECTORS;
    let mut extents: Vec<Extent> = served.iter().map(|(_, request)| request.extent).collect();
    extents.sort_by_key(|extent| extent.start);
    assert_eq!(
        extents,
        [
            // Strip 3 of the file; strips 1 and 4; strip 2.
            Extent::at(begin(0, 3), SECTORS),
            Extent::at(begin(1, 2), 2 * SECTORS),
            Extent::at(begin(2, 2), SECTORS),
        ]
    );
    let first = served[0].0;
    assert!(
        served
            .iter()
            .all(|(at, _)| *at < first + Nanos::from_micros(1))
    );
    let slowest = way(&spec, 0) + spec.request + SERVICE * 3 + way(&spec, STRIP);
    let late = ended(&cluster, 1).saturating_sub(slowest);
    assert!(late < Nanos::from_micros(1), "{late}");
}

#[test]
fn processes_of_a_node_share_its_link_and_others_do_not() {
    let ends = |nodes: u16| {
        let spec = ClusterSpec { nodes, ..spec(2) };
        let mut builder = builder(&spec);
        let file = file(&mut builder, 0, 2);
        for process_of in 0..2 {
            builder.add_process(process([read(file, process_of * STRIP, STRIP)]));
        }
        let mut cluster = cluster(spec, builder);
        run(&mut cluster);
        let outcome = cluster.outcome();
        let ends: Vec<Time> = outcome[0]
            .processes
            .iter()
            .filter_map(|one| one.ended)
            .collect();
        ends[1] - ends[0]
    };
    let wire = spec(2).link.time(STRIP + 24);
    assert_eq!(ends(1), wire);
    assert_eq!(ends(2), Nanos::ZERO);
}

#[test]
fn a_part_above_a_flow_buffer_comes_in_pieces() {
    let spec = ClusterSpec {
        strip: Bytes(1 << 20),
        ..spec(2)
    };
    let mut builder = builder(&spec);
    let file = file(&mut builder, 0, 16);
    builder.add_process(process([read(file, 0, 600 << 10)]));
    let mut cluster = cluster(spec, builder);
    let mut sizes: Vec<u64> = (run(&mut cluster).iter())
        .map(|(_, request)| request.extent.len.get() / 2)
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [88, 256, 256]);
}

#[test]
fn threads_take_pieces_in_turn_and_the_rest_wait_in_order() {
    let spec = ClusterSpec {
        threads: 2,
        nodes: 8,
        ..spec(1)
    };
    let mut builder = builder(&spec);
    let file = file(&mut builder, 0, 5);
    for number in 0..5 {
        builder.add_process(process([
            Step::Think(Nanos::from_micros(number)),
            read(file, number * STRIP, STRIP),
        ]));
    }
    let mut cluster = cluster(spec, builder);
    let served = run(&mut cluster);
    let order: Vec<u64> = (served.iter())
        .map(|(_, request)| request.extent.start.get() / SECTORS)
        .collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
    let threads: Vec<u32> = (served.iter())
        .map(|(_, request)| request.origin.process)
        .collect();
    assert_eq!(threads, [1, 2, 1, 2, 1]);
    let waited = served[2].0 - served[0].0;
    assert_eq!(waited, SERVICE);
}

#[test]
fn requests_have_the_client_s_program_and_class_and_a_thread_of_the_server() {
    let spec = spec(2);
    let mut builder = builder(&spec);
    let file = file(&mut builder, 0, 2);
    let mut other = process([Step::Ask(Class::IDLE), read(file, STRIP, STRIP)]);
    other.program = 7;
    builder.add_process(other);
    let mut cluster = cluster(spec, builder);
    let (served, places) = run_with(&mut cluster, |_| SERVICE);
    let request = served[0].1;
    let origin = Origin {
        // Sixteen threads and the flusher of the first server come before.
        process: 18,
        program: 7,
        export: 0,
    };
    assert_eq!((request.origin, request.class), (origin, Class::IDLE));
    assert_eq!(places, [DISK.capacity.get()], "the second server's disk");
}

#[test]
fn what_is_written_is_in_the_servers_memory_and_a_sync_asks_each_server() {
    let spec = spec(2);
    let mut builder = builder(&spec);
    let file = file(&mut builder, 0, 2);
    builder.add_process(process([
        Step::Write {
            file,
            offset: 0,
            len: 2 * STRIP,
        },
        Step::Think(Nanos::from_millis(1)),
        Step::Sync(file),
    ]));
    let mut cluster = cluster(spec, builder);
    let served = run(&mut cluster);
    assert!(served.iter().all(|(_, request)| request.op == Op::Write));
    let places: Vec<u64> = (served.iter())
        .map(|(_, request)| request.extent.start.get())
        .collect();
    assert_eq!(places, [0, DISK.capacity.get()]);
    assert!(served[0].0 > Time::ZERO + Nanos::from_millis(1));
    let outcome = &cluster.outcome()[0];
    assert_eq!((outcome.calls, outcome.bytes_written), (2, 2 * STRIP));
}

#[test]
fn a_flush_names_the_server_whose_disk_is_flushed() {
    let spec = spec(3);
    let host = HostSpec {
        barriers: true,
        ..HostSpec::default()
    };
    let mut builder = HostBuilder::new(host, spec.volume(DISK)).unwrap();
    let file = file(&mut builder, 0, 3);
    // The second server has nothing to flush.
    let write = |offset| Step::Write {
        file,
        offset,
        len: STRIP,
    };
    builder.add_process(process([write(0), write(2 * STRIP), Step::Sync(file)]));
    let mut cluster = cluster(spec, builder);
    let served = run(&mut cluster);
    let flushes = served.iter().filter(|(_, request)| request.op == Op::Flush);
    let mut places: Vec<u64> = flushes
        .map(|(_, request)| request.extent.start.get())
        .collect();
    places.sort_unstable();
    assert_eq!(places, [0, 2 * DISK.capacity.get()]);
}

#[test]
fn a_barrier_takes_a_round_for_each_doubling_of_its_members() {
    for (members, rounds) in [(1, 0), (2, 1), (5, 3), (8, 3)] {
        let spec = spec(2);
        let mut builder = builder(&spec);
        let barrier = builder.add_barrier(members);
        for number in 0..members {
            let think = Step::Think(Nanos::from_micros(number.into()));
            builder.add_process(process([think, Step::Barrier(barrier)]));
        }
        let mut cluster = cluster(spec.clone(), builder);
        run(&mut cluster);
        let last = Nanos::from_micros(u64::from(members) - 1);
        assert_eq!(
            ended(&cluster, 1),
            last + spec.barrier * rounds,
            "{members}"
        );
    }
}

#[test]
fn a_process_in_the_background_ends_when_the_others_have_ended() {
    let spec = spec(2);
    let mut builder = builder(&spec);
    let file = file(&mut builder, 0, 2);
    builder.add_process(process([Step::Think(Nanos::from_millis(100))]));
    let mut backup = process(std::iter::repeat(read(file, 0, STRIP)));
    backup.program = 2;
    builder.add_background(backup);
    let mut cluster = cluster(spec, builder);
    run(&mut cluster);
    let (first, backup) = (ended(&cluster, 1), ended(&cluster, 2));
    assert!(first <= backup && backup < first + SERVICE * 2, "{backup}");
}

#[test]
fn the_time_of_a_program_s_calls_is_known_and_of_each_epoch() {
    let spec = spec(2);
    let mut builder = builder(&spec);
    let file = file(&mut builder, 0, 2);
    let think = Step::Think(Nanos::from_millis(10));
    for strip in [0, STRIP] {
        builder.add_process(process([think, read(file, strip, STRIP), think]));
    }
    let mut cluster = cluster(spec, builder);
    cluster.keep_epochs(Nanos::from_millis(10));
    run(&mut cluster);
    let outcome = &cluster.outcome()[0];
    let took = ended(&cluster, 1) - Nanos::from_millis(20);
    assert_eq!(outcome.io_time, Some(took));
    assert_eq!(outcome.io_epochs, [Nanos::ZERO, took]);
}

#[test]
fn benchmarks_for_clusters_run_on_a_cluster() {
    for name in BenchmarkSpec::NAMES {
        let benchmark = BenchmarkSpec::from_name(name).unwrap();
        if !benchmark.is_for_clusters() {
            continue;
        }
        let disk = headtime_host::DiskSize {
            capacity: Sectors::new(1 << 29),
            ..DISK
        };
        let spec = spec(2);
        let host = HostSpec::default();
        let mut builder = HostBuilder::new(host, spec.volume(disk)).unwrap();
        let next = benchmark.add(&mut builder, 1, 1).unwrap();
        builder.add_process(ProcessSpec {
            program: next,
            ..process([Step::Think(Nanos::from_secs(100))])
        });
        let mut cluster = Cluster::new(spec, disk, builder, 1).unwrap();
        let mut now = Time::ZERO;
        let mut requests = 0;
        while requests < 100 && !cluster.done() {
            while let Some(request) = cluster.poll(now) {
                requests += 1;
                now += Nanos::from_millis(1);
                cluster.completed(now, request.cookie);
            }
            cluster.unplug();
            now = cluster.next_arrival().map_or(now, |at| at.max(now));
        }
        assert!(requests > 0, "{name}");
    }
}

#[test]
fn what_cannot_be_a_cluster_is_refused() {
    let build = |spec: ClusterSpec, change: fn(&mut HostBuilder)| {
        let mut builder = builder(&ClusterSpec::default());
        builder.add_process(process([]));
        change(&mut builder);
        Cluster::new(spec, DISK, builder, 1).err()
    };
    let key = |spec: ClusterSpec| match build(spec, |_| {}) {
        Some(HostError::Range { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(spec(0)), "servers");
    assert_eq!(key(spec(65)), "servers");
    let strip = |bytes| ClusterSpec {
        strip: Bytes(bytes),
        ..spec(2)
    };
    assert_eq!(key(strip(0)), "strip");
    assert_eq!(key(strip(6 << 10)), "strip");
    let in_pieces = build(spec(2), |builder| {
        let extents = vec![Extent::at(0, 8), Extent::at(16, 8)];
        builder.add_file(File { extents, size: 0 }).unwrap();
    });
    assert_eq!(in_pieces, Some(HostError::InPieces { file: 1 }));
}
