//! Write-back, sync, and metadata.

use crate::disk::{Ran, builder, empty, file, process, run};
use headtime_host::{FileId, Host, HostSpec, Step};
use headtime_sched::{Flags, Op};
use headtime_units::{Bytes, Lba, Nanos, Time};

const MS: Nanos = Nanos::from_millis(1);

fn write(file: FileId, page: u64, pages: u64) -> Step {
    Step::Write {
        file,
        offset: page * 4096,
        len: pages * 4096,
    }
}

fn think(seconds: u64) -> Step {
    Step::Think(Nanos::from_secs(seconds))
}

/// Arrival in seconds, first sector and pages of each write.
fn writes(ran: &Ran) -> Vec<(u64, u64, u64)> {
    ran.served
        .iter()
        .filter(|served| served.is_write())
        .map(|served| {
            let seconds = served.arrival_us() / 1_000_000;
            (seconds, served.request.extent.start.get(), served.pages())
        })
        .collect()
}

#[test]
fn what_is_old_is_written_on_the_tick() {
    let mut builder = builder(|_| {});
    let one = empty(&mut builder, 1000, 1000);
    let other = empty(&mut builder, 100_000, 1000);
    let steps = [
        think(7),
        // Three pages in two pieces, and dirty again before they are written.
        write(other, 0, 2),
        write(other, 10, 1),
        think(2),
        write(one, 0, 300),
        write(other, 0, 2),
        think(60),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    // 30 s old at 37 s and 39 s, seen at 40 s: the first dirtied first, 512 KiB at a time.
    let expected = [
        (40, 100_000, 2),
        (40, 100_080, 1),
        (40, 1000, 128),
        (40, 2024, 128),
        (40, 3048, 44),
    ];
    assert_eq!(writes(&ran), expected);
    let first = ran.served[0].request;
    assert_eq!((first.origin, first.flags), (host.flusher(), Flags::NONE));
    assert_eq!((first.origin.process, first.origin.program), (2, 0));
    assert_eq!(host.dirty_bytes(), 0);
    assert_eq!(host.outcome()[0].bytes_written, 305 * 4096);
}

#[test]
fn much_dirty_memory_is_written_at_once() {
    // 64 MiB: the flusher begins above 6.4 MiB, writers are held above 12.8 MiB.
    let mut builder = builder(|spec| spec.page_cache = Bytes(64 << 20));
    let data = empty(&mut builder, 1000, 20_000);
    let mut steps: Vec<Step> = (0..20_000).map(|page| write(data, page, 1)).collect();
    steps.push(Step::Sync(data));
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS * 6);
    let pages: u64 = writes(&ran).iter().map(|(_, _, pages)| pages).sum();
    assert_eq!(pages, 20_000, "each page once");
    let first = ran.served[0].request.arrival;
    assert!(first < Time::ZERO + MS * 6, "long before 30 s: {first}");
    // 78 MiB at 512 KiB in 6 ms: the writer cannot be faster than the disk but for what may be dirty.
    let ended = host.outcome()[0].ended.unwrap();
    assert!(ended >= Time::ZERO + MS * 6 * (20_000 / 128), "{ended}");
    assert!(
        ran.served
            .iter()
            .any(|served| served.request.origin.process == 1),
        "it had to help"
    );
    assert!(
        ran.served
            .iter()
            .any(|served| served.request.origin.process == 2)
    );
}

#[test]
fn a_writer_is_held_at_the_limit() {
    let mut builder = builder(|spec| spec.page_cache = Bytes(64 << 20));
    let data = empty(&mut builder, 1000, 200_000);
    let steps = (0..200_000).map(move |page| write(data, page, 1));
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS * 6);
    let ended = host.outcome()[0].ended.unwrap();
    // By this time the disk has all pages, except for the limit and the pages that may become dirty before a check.
    let on_disk = (0..200_000 * 4096u64).step_by(4096).count() as u64 * 4096 - host.dirty_bytes();
    let written: u64 = ran
        .served
        .iter()
        .filter(|served| served.done <= ended)
        .map(|served| served.pages() * 4096)
        .sum();
    let most = 64 * (1 << 20) / 5 + 2 * 4096 * 1024;
    assert!(
        200_000 * 4096 - written <= most,
        "{} bytes at once",
        200_000 * 4096 - written
    );
    assert!(on_disk >= written);
}

#[test]
fn sync_writes_what_is_dirty_and_waits() {
    for barriers in [false, true] {
        let mut builder = builder(|spec: &mut HostSpec| spec.barriers = barriers);
        let data = empty(&mut builder, 1000, 100);
        let other = empty(&mut builder, 100_000, 100);
        let steps = [
            write(data, 10, 5),
            write(data, 3, 1),
            write(other, 0, 1),
            Step::Sync(data),
            // Clean by now.
            Step::Sync(data),
        ];
        builder.add_process(process(steps));
        let mut host = builder.build(1).unwrap();
        let ran = run(&mut host, MS);
        assert_eq!(writes(&ran), [(0, 1024, 1), (0, 1080, 5)]);
        assert!(ran.served[0].request.flags.has(Flags::SYNC));
        assert_eq!(ran.served[0].request.origin.process, 1);
        let flushes = ran
            .served
            .iter()
            .filter(|s| s.request.op == Op::Flush)
            .count();
        assert_eq!(flushes, usize::from(barriers));
        let ended = host.outcome()[0].ended.unwrap();
        let copied = Nanos::from_nanos(7 * 1200);
        let requests = 2 + u64::from(barriers);
        assert_eq!(ended, Time::ZERO + copied + MS * requests);
        assert_eq!(host.dirty_bytes(), 4096, "the other file's");
    }
}

#[test]
fn a_page_changed_while_it_is_written_is_written_again() {
    let mut builder = builder(|_| {});
    let data = empty(&mut builder, 1000, 100);
    // One syncs, the other changes the page meanwhile and syncs as well.
    builder.add_process(process([write(data, 0, 1), Step::Sync(data)]));
    let half = Step::Think(MS / 2);
    builder.add_process(process([half, write(data, 0, 1), Step::Sync(data)]));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    assert_eq!(writes(&ran), [(0, 1000, 1), (0, 1000, 1)]);
    // Not at once: the data on its way is not to be overtaken.
    assert_eq!(ran.served[1].request.arrival, ran.served[0].done);
    let ended = |host: &Host, index: usize| host.outcome()[0].processes[index].ended;
    // The first process does not wait for the later change, since its own data are on the disk.
    assert_eq!(ended(&host, 0), Some(ran.served[0].done));
    assert_eq!(ended(&host, 1), Some(ran.served[1].done));
    assert_eq!(host.dirty_bytes(), 0);
}

#[test]
fn a_part_of_a_page_is_read_before() {
    let mut builder = builder(|_| {});
    let data = file(&mut builder, 1000, 10);
    let part = |offset, len| Step::Write {
        file: data,
        offset,
        len,
    };
    let steps = [
        part(100, 10),
        // There by now; whole; and behind the end of the file.
        part(200, 10),
        part(4096, 4096),
        part(10 * 4096, 10),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let reads: Vec<u64> = ran
        .served
        .iter()
        .map(|s| s.request.extent.start.get())
        .collect();
    assert_eq!(reads, [1000]);
    assert_eq!(
        host.outcome()[0].bytes_written,
        20 + 4096,
        "the file cannot grow"
    );
}

#[test]
fn what_is_forgotten_is_not_written() {
    let mut builder = builder(|_| {});
    let data = empty(&mut builder, 1000, 100);
    let read = |len| Step::Read {
        file: data,
        offset: 0,
        len,
    };
    let steps = [
        write(data, 0, 10),
        read(1 << 20),
        Step::Forget(data),
        read(1 << 20),
        think(50),
        write(data, 0, 1),
        read(1 << 20),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    assert_eq!(ran.served, []);
    // Ten pages, none, one.
    assert_eq!(host.outcome()[0].bytes_read, 11 * 4096);
    assert_eq!(host.dirty_bytes(), 4096);
}

#[test]
fn blocks_are_read_once_and_written_in_order() {
    let mut builder = builder(|_| {});
    // Not aligned: the partition begins at sector 63.
    let block = |number: u64| Lba::new(63 + number * 8);
    let steps = [
        Step::ReadBlock(block(5)),
        Step::ReadBlock(block(5)),
        Step::DirtyBlock(block(600)),
        Step::DirtyBlock(block(5)),
        Step::DirtyBlock(block(4)),
        Step::DirtyBlock(block(5)),
        think(40),
        Step::ReadBlock(block(600)),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let read = ran.served[0].request;
    assert_eq!(
        (read.op, read.extent.start, read.flags),
        (Op::Read, block(5), Flags::SYNC)
    );
    assert_eq!(ran.served[0].pages(), 1);
    assert_eq!(
        writes(&ran),
        [(35, block(4).get(), 2), (35, block(600).get(), 1)]
    );
    assert_eq!(ran.served.len(), 3);
    assert_eq!(host.outcome()[0].calls, 0);
}

#[test]
fn direct_calls_are_as_large_as_may_be() {
    let mut builder = builder(|_| {});
    let data = file(&mut builder, 1000, 1000);
    let direct = |op, offset, len| Step::Direct {
        op,
        file: data,
        offset,
        len,
    };
    let steps = [
        direct(Op::Write, 512, (1 << 20) + 512),
        direct(Op::Read, 999 * 4096 + 1024, 1 << 20),
        direct(Op::Read, 1000 * 4096, 512),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let asked: Vec<(Op, u64, u64)> = ran
        .served
        .iter()
        .map(|s| {
            (
                s.request.op,
                s.request.extent.start.get(),
                s.request.extent.len.get(),
            )
        })
        .collect();
    assert_eq!(
        asked,
        [
            (Op::Write, 1001, 1024),
            (Op::Write, 2025, 1024),
            (Op::Write, 3049, 1),
            (Op::Read, 1000 + 999 * 8 + 2, 6),
        ]
    );
    assert_eq!(ran.depths[0], 3, "all of a call at once");
    assert_eq!(host.outcome()[0].ended, Some(Time::ZERO + MS * 4));
    assert_eq!(host.cached_bytes(), 0);
}

#[test]
fn files_take_turns_and_the_queue_is_not_flooded() {
    let mut builder = builder(|spec| spec.request_max = Bytes(64 << 10));
    let files = [0, 1].map(|number| empty(&mut builder, number * 1_000_000, 3000));
    let mut steps = vec![think(1)];
    steps.extend(files.iter().map(|file| write(*file, 0, 3000)));
    steps.push(think(60));
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    // 1024 pages of the first, 1024 of the second, and so on, 16 at a time.
    let mut turns: Vec<(u64, u64)> = Vec::new();
    for (_, start, pages) in writes(&ran) {
        let file = start / 1_000_000;
        match turns.last_mut() {
            Some((last, count)) if *last == file => *count += pages,
            _ => turns.push((file, pages)),
        }
    }
    assert_eq!(
        turns,
        [
            (0, 1024),
            (1, 1024),
            (0, 1024),
            (1, 1024),
            (0, 952),
            (1, 952)
        ]
    );
    // The queue counts as congested at 113, and again not below 103.
    assert_eq!(ran.depths.iter().max(), Some(&113));
    let again = ran
        .served
        .iter()
        .find(|served| served.request.arrival > ran.served[0].request.arrival);
    assert_eq!(
        again.unwrap().request.arrival,
        ran.served[10].done,
        "113 less 11 are 102"
    );
}

#[test]
fn blocks_that_are_left_over_keep_their_age() {
    let mut builder = builder(|_| {});
    // Far apart, so that each is a request; more than the queue takes at once.
    let block = |number: u64| Lba::new(number * 5000);
    let mut steps: Vec<Step> = (0..300)
        .rev()
        .map(|number| Step::DirtyBlock(block(number)))
        .collect();
    steps.push(think(40));
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let starts: Vec<u64> = writes(&ran).iter().map(|(_, start, _)| *start).collect();
    assert_eq!(
        starts,
        (0..300).map(|number| number * 5000).collect::<Vec<_>>()
    );
    assert_eq!(ran.end, Time::ZERO + Nanos::from_secs(40));
    let last = ran.served.last().unwrap().done;
    assert_eq!(
        last,
        Time::ZERO + Nanos::from_secs(30) + MS * 300,
        "one after the other from the tick on"
    );
}

#[test]
fn a_part_of_a_page_is_read_before_it_is_written_only_if_the_disk_has_the_page() {
    let mut builder = builder(|spec| spec.page_cache = Bytes(1 << 20));
    let sparse = empty(&mut builder, 1000, 100);
    let other = file(&mut builder, 100_000, 600);
    let part = |page: u64| Step::Write {
        file: sparse,
        offset: page * 4096 + 10,
        len: 100,
    };
    let steps = [
        part(50),
        // A hole in front of the end.
        part(10),
        Step::Sync(sparse),
        Step::Read {
            file: other,
            offset: 0,
            len: 600 * 4096,
        },
        // Written before, and no longer in memory; and a hole still.
        part(10),
        part(20),
    ];
    builder.add_process(process(steps));
    let mut host = builder.build(1).unwrap();
    let ran = run(&mut host, MS);
    let reads = ran.served.iter().filter(|served| !served.is_write());
    let places = reads.map(|served| served.request.extent.start.get());
    let of_sparse: Vec<u64> = places.filter(|place| *place < 100_000).collect();
    assert_eq!(of_sparse, [1000 + 80]);
}
