//! Buffered and direct reads.

use crate::disk::{Ran, builder, file, process, run, sequential};
use headtime_host::{File, FileId, HostBuilder, HostSpec, Step};
use headtime_sched::Op;
use headtime_units::{Bytes, Extent, Lba, Nanos, Sectors, Time};

const MS: Nanos = Nanos::from_millis(1);

#[test]
fn a_reader_keeps_two_windows_outstanding() {
    let mut builder = builder(|_| {});
    let data = file(&mut builder, 1000, 1024);
    builder.add_process(process(sequential(data, 1024, 1, Nanos::ZERO)));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let sizes: Vec<u64> = ran.served.iter().map(|served| served.pages()).collect();
    assert_eq!(sizes[..6], [4, 8, 16, 32, 32, 32]);
    assert_eq!(sizes.iter().sum::<u64>(), 1024);
    // In the steady state the successor of a window is there when it completes.
    assert!(
        ran.depths[4..ran.depths.len() - 1]
            .iter()
            .all(|depth| *depth == 2)
    );
    // Copying hides behind the disk: 34 requests and the copies of the last two windows.
    let outcome = &host.outcome()[0];
    assert_eq!(outcome.bytes_read, 4 << 20);
    assert_eq!(outcome.calls, 1024);
    let ended = outcome.ended.unwrap().as_nanos() / 1000;
    let requests = ran.served.len() as u64;
    assert!(
        (requests * 1000..requests * 1000 + 100).contains(&ended),
        "{ended} us"
    );
}

#[test]
fn a_reader_sleeps_until_the_whole_request_is_in() {
    let mut builder = builder(|spec| spec.copy_per_page = Nanos::ZERO);
    let data = file(&mut builder, 1000, 64);
    let read = |page: u64, len| Step::Read {
        file: data,
        offset: page * 4096,
        len,
    };
    builder.add_process(process([read(0, 1), read(1, 1), read(5, 1)]));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    // A read of page 1 starts the read-ahead of 8 more pages. A read among these would start 16 more.
    let asked: Vec<(u64, u64)> = ran
        .served
        .iter()
        .map(|s| (s.arrival_us(), s.pages()))
        .collect();
    assert_eq!(asked, [(0, 4), (1000, 8)]);
    assert_eq!(host.outcome()[0].ended, Some(Time::ZERO + MS * 2));
    assert_eq!(ran.unplugged, [Time::ZERO, Time::ZERO + MS]);
}

/// First sector and pages of each request.
fn asked(ran: &Ran) -> Vec<(u64, u64)> {
    ran.served
        .iter()
        .map(|served| (served.request.extent.start.get(), served.pages()))
        .collect()
}

fn read(file: FileId, page: u64, pages: u64) -> Step {
    Step::Read {
        file,
        offset: page * 4096,
        len: pages * 4096,
    }
}

#[test]
fn a_window_becomes_a_request_for_each_run_of_sectors() {
    let mut builder = builder(|_| {});
    let extents = vec![
        Extent::at(1000, 80),
        Extent::at(1080, 16),
        Extent::at(5000, 8),
        Extent::at(400, 400),
    ];
    let size = 40 * 4096;
    let data = builder.add_file(File { extents, size }).unwrap();
    builder.add_process(process([read(data, 0, 16)]));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    // 32 pages in three pieces; then the mark on page 16 would call for the next 32, were it touched.
    assert_eq!(asked(&ran), [(1000, 12), (5000, 1), (400, 19)]);
    // A reader of page 0 sleeps on the first request alone, of page 15 on the last.
    assert_eq!(
        host.outcome()[0].ended,
        Some(Time::ZERO + MS * 3 + Nanos::from_nanos(3 * 1200))
    );
}

#[test]
fn requests_are_no_larger_than_allowed() {
    let mut builder = builder(|spec| spec.request_max = Bytes(100_000));
    let data = file(&mut builder, 1000, 64);
    builder.add_process(process([read(data, 0, 16)]));
    let ran = run(&mut builder.build(1).unwrap(), MS);
    assert_eq!(asked(&ran), [(1000, 24), (1192, 8)]);
}

#[test]
fn requests_of_every_kind_end_at_a_chunk() {
    let mut builder = builder(|spec| {
        spec.chunk = Some(Bytes(64 << 10));
        spec.read_ahead = Bytes(1 << 20);
    });
    // One page before a multiple of 128 sectors, and a file whose pages lie across multiples.
    let data = file(&mut builder, 1016, 64);
    let odd = file(&mut builder, 4092, 64);
    let direct = Step::Direct {
        op: Op::Read,
        file: data,
        offset: 512,
        len: 8 << 10,
    };
    let write = Step::Write {
        file: data,
        offset: 0,
        len: 20 * 4096,
    };
    let block = |page: u64| Step::DirtyBlock(Lba::new((1 << 20) + 120 + page * 8));
    let steps = [read(data, 0, 64), read(odd, 0, 64), direct, write];
    let steps = steps.into_iter().chain([block(0), block(1)]);
    let last = [Step::Sync(data), Step::Think(Nanos::from_secs(60))];
    builder.add_process(process(steps.chain(last)));
    let ran = run(&mut builder.build(1).unwrap(), MS);
    let of = |op: Op, from: u64, to: u64| -> Vec<(u64, u64)> {
        let extents = ran.served.iter().filter(|served| served.request.op == op);
        let extents = extents.map(|served| served.request.extent);
        let within = extents.filter(|extent| (from..to).contains(&extent.start.get()));
        within
            .map(|extent| (extent.start.get(), extent.len.get()))
            .collect()
    };
    let reads = of(Op::Read, 0, 2000);
    assert_eq!(
        reads[..4],
        [(1016, 8), (1024, 128), (1152, 128), (1280, 128)]
    );
    // The direct call from the second sector on.
    assert_eq!(reads[5..], [(1017, 7), (1024, 9)]);
    assert_eq!(
        of(Op::Read, 4000, 4300),
        [(4092, 8), (4100, 120), (4220, 8), (4228, 120)]
    );
    assert_eq!(of(Op::Write, 0, 2000), [(1016, 8), (1024, 128), (1152, 24)]);
    let block = 1 << 20;
    assert_eq!(
        of(Op::Write, block, block + 999),
        [(block + 120, 8), (block + 128, 8)]
    );
}

#[test]
fn reads_end_with_the_file() {
    let mut builder = builder(|_| {});
    let extents = vec![Extent::at(1000, 800)];
    let data = builder
        .add_file(File {
            extents,
            size: 10_000,
        })
        .unwrap();
    builder.add_process(process([
        read(data, 0, 8),
        read(data, 3, 8),
        read(data, 1 << 40, 8),
    ]));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    assert_eq!(asked(&ran), [(1000, 3)], "the last page is a whole block");
    let outcome = &host.outcome()[0];
    assert_eq!((outcome.bytes_read, outcome.calls), (10_000, 3));
}

#[test]
fn requests_on_sectors_of_4096_bytes_are_whole_sectors() {
    let disk = headtime_host::DiskSize {
        capacity: Sectors::new(1 << 20),
        sector_bytes: 4096,
    };
    let mut builder = HostBuilder::new(HostSpec::default(), disk).unwrap();
    let extents = vec![Extent::at(1001, 64)];
    let size = 64 * 4096;
    let data = builder.add_file(File { extents, size }).unwrap();
    let block = Step::ReadBlock(headtime_units::Lba::new(7));
    builder.add_process(process([read(data, 0, 16), block]));
    let ran = run(&mut builder.build(1).unwrap(), MS);
    let extents: Vec<Extent> = ran.served.iter().map(|s| s.request.extent).collect();
    assert_eq!(extents, [Extent::at(1001, 32), Extent::at(7, 1)]);
}

#[test]
fn names_of_one_file_share_its_pages_and_not_its_state() {
    // Two streams in the two halves of a file, each 4 KiB at a time, in turn.
    let streams = |first: FileId, second: FileId| {
        (0..128u64).flat_map(move |page| [read(first, page, 1), read(second, 256 + page, 1)])
    };
    let sizes = |own_name: bool| {
        let mut builder = builder(|_| {});
        let data = file(&mut builder, 1000, 512);
        let other = if own_name {
            builder.reopen(data).unwrap()
        } else {
            data
        };
        let steps: Vec<Step> = streams(data, other).collect();
        builder.add_process(process(steps));
        // A later process reads all pages again from the cache.
        let again = builder.reopen(data).unwrap();
        let mut late = process(
            (0..128)
                .map(move |page| read(again, page, 1))
                .collect::<Vec<_>>(),
        );
        late.start = Time::ZERO + Nanos::from_secs(9);
        builder.add_process(late);
        let ran = run(&mut builder.build(1).unwrap(), MS);
        let of = |half: std::ops::Range<u64>| -> Vec<u64> {
            asked(&ran)
                .iter()
                .filter(|(start, _)| half.contains(&((start - 1000) / 8)))
                .map(|(_, pages)| *pages)
                .take(5)
                .collect()
        };
        (of(0..256), of(256..512))
    };
    assert_eq!(sizes(true), (vec![4, 8, 16, 32, 32], vec![1, 4, 8, 16, 32]));
    // On one name each stream finds its own traces.
    assert_eq!(
        sizes(false),
        (vec![4, 8, 18, 32, 32], vec![1, 12, 18, 32, 32])
    );
}

#[test]
fn pages_that_fit_into_memory_are_read_once() {
    let twice = |memory: u64| {
        let mut builder = builder(|spec| spec.page_cache = Bytes(memory));
        let data = file(&mut builder, 1000, 1024);
        let mut steps = sequential(data, 1024, 1, Nanos::ZERO);
        steps.extend(sequential(data, 1024, 1, Nanos::ZERO));
        builder.add_process(process(steps));
        let mut host = builder.build(1).unwrap();
        let ran = run(&mut host, MS);
        assert!(host.cached_bytes() <= memory);
        asked(&ran).iter().map(|(_, pages)| pages).sum::<u64>()
    };
    assert_eq!(twice(8 << 20), 1024);
    // Read to the end, the beginning is gone.
    assert_eq!(twice(2 << 20), 2048);
}

#[test]
fn two_readers_sleep_on_one_request() {
    let mut builder = builder(|_| {});
    let data = file(&mut builder, 1000, 1024);
    for start in [0, 300] {
        let name = builder.reopen(data).unwrap();
        let mut one = process([read(name, 0, 1)]);
        one.start = Time::ZERO + Nanos::from_micros(start);
        builder.add_process(one);
    }
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    assert_eq!(asked(&ran), [(1000, 4)]);
    let ended: Vec<_> = host.outcome()[0]
        .processes
        .iter()
        .map(|p| p.ended)
        .collect();
    assert_eq!(ended, [Some(Time::ZERO + MS + Nanos::from_nanos(1200)); 2]);
}
