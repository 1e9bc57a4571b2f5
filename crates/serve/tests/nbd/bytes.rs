//! Requests begin and end at any byte. They change no neighbouring byte, even if another client writes that byte.

use crate::client::Client;
use crate::device::{SECTOR, Seen};
use crate::fixture::{Fixture, Folder, Setup, noop};
use headtime_sched::{Class, Flags, Op};
use headtime_serve::disk::{Disk, Export};
use headtime_serve::file::{self, FileOptions};
use headtime_serve::nbd::wire::{command, flag, u32_at};
use headtime_serve::nbd::{Limits, Listen, Server};
use headtime_serve::request::Kind;
use headtime_units::{Extent, Lba};
use proptest::prelude::*;
use std::ops::Range;

const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

const SECTORS: usize = 24;

fn small() -> Fixture {
    Fixture::new(Setup {
        sectors: SECTORS,
        ..Setup::default()
    })
}

fn ops(seen: &[Seen]) -> Vec<(Op, Extent)> {
    seen.iter().map(|seen| (seen.op, seen.extent)).collect()
}

/// Requests of a client for bytes that nobody else touches.
#[derive(Clone, Debug)]
enum Act {
    Write(u8),
    Zero,
    Trim,
    Read,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => any::<u8>().prop_map(Act::Write),
        1 => Just(Act::Zero),
        1 => Just(Act::Trim),
        2 => Just(Act::Read),
    ]
}

/// An act on a part of one of the client's runs: which run, and from where to where in thousandths.
type Step = (Act, usize, u64, u64, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        act(),
        any::<usize>(),
        0..1000u64,
        1..=1000u64,
        any::<bool>(),
    );
    proptest::collection::vec(step, 1..40)
}

/// Runs the steps on the disk, eight in flight at a time, and on `image`.
fn live(mut client: Client, runs: &[Range<u64>], steps: &[Step], image: &mut [u8]) {
    for batch in steps.chunks(8) {
        let mut expected = Vec::new();
        for (act, run, from, len, fua) in batch {
            let run = &runs[run % runs.len()];
            let span = run.end - run.start;
            let from = run.start + span * from / 1000;
            let len = ((span * len / 1000).max(1)).min(run.end - from);
            let bytes = &mut image[from as usize..(from + len) as usize];
            let flags = if *fua { flag::FUA } else { 0 };
            let (command, data) = match act {
                Act::Write(seed) => {
                    let mut next = *seed;
                    bytes.fill_with(|| {
                        next = next.wrapping_mul(5).wrapping_add(1);
                        next
                    });
                    (command::WRITE, bytes.to_vec())
                }
                Act::Zero | Act::Trim => {
                    bytes.fill(0);
                    let zero = matches!(act, Act::Zero);
                    (
                        if zero {
                            command::WRITE_ZEROES
                        } else {
                            command::TRIM
                        },
                        Vec::new(),
                    )
                }
                Act::Read => (command::READ, Vec::new()),
            };
            // Overlapping requests of one connection are done in order.
            let read = (command == command::READ).then(|| bytes.to_vec());
            let cookie = client.request(command, flags, from, len as u32, &data);
            expected.push((cookie, read.unwrap_or_default()));
        }
        for _ in batch {
            let len = |cookie| {
                let found = expected.iter().find(|(other, _)| *other == cookie);
                found.expect("asked for").1.len()
            };
            let reply = client.reply_of(len);
            assert_eq!(reply.error, 0);
            let read = expected.iter().find(|(other, _)| *other == reply.cookie);
            assert_eq!(reply.data, read.expect("asked for").1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The bytes of a disk in runs of any length, which two clients own in turn.
    #[test]
    fn two_clients_lose_nothing_of_neighbouring_bytes(
        widths in proptest::collection::vec(1..1500u64, 2..60),
        first in steps(),
        second in steps(),
        reverse in any::<bool>(),
    ) {
        let fixture = small();
        fixture.memory.inside().reverse = reverse;
        let size = (SECTORS * SECTOR) as u64;
        let mut owned: [Vec<Range<u64>>; 2] = [Vec::new(), Vec::new()];
        let mut at = 0;
        for (index, width) in widths.iter().enumerate() {
            let end = (at + width).min(size);
            if at < end {
                owned[index % 2].push(at..end);
            }
            at = end;
        }
        prop_assume!(!owned[1].is_empty());
        let mut images = [vec![0; size as usize], vec![0; size as usize]];
        std::thread::scope(|scope| {
            for ((image, runs), steps) in images.iter_mut().zip(&owned).zip([&first, &second]) {
                let client = Client::connect(&fixture.path(), "disk");
                scope.spawn(move || live(client, runs, steps, image));
            }
        });
        let mut client = Client::connect(&fixture.path(), "disk");
        let disk = client.pread(0, size as u32);
        for (runs, image) in owned.iter().zip(&images) {
            for run in runs {
                let run = run.start as usize..run.end as usize;
                prop_assert_eq!(&disk[run.clone()], &image[run]);
            }
        }
    }
}

#[test]
fn a_flush_comes_after_the_steps_of_writes_before_it_and_fua_is_the_writes() {
    let fixture = small();
    fixture.memory.hold();
    let mut client = Client::connect(&fixture.path(), "disk");
    client.request(command::WRITE, flag::FUA, 100, 1000, &[7; 1000]);
    client.request(command::FLUSH, 0, 0, 0, b"");
    fixture.memory.wait_for(1);
    fixture.memory.release();
    for _ in 0..2 {
        assert_eq!(client.reply(0).error, 0);
    }
    let seen = fixture.memory.seen();
    assert_eq!(
        ops(&seen),
        [
            (Op::Read, Extent::at(0, 1)),
            (Op::Read, Extent::at(2, 1)),
            (Op::Write, Extent::at(0, 3)),
            (Op::Flush, Extent::at(0, 0)),
        ]
    );
    let flags = seen.iter().map(|seen| seen.flags.has(Flags::FUA));
    assert_eq!(flags.collect::<Vec<_>>(), [false, false, true, false]);
}

#[test]
fn a_whole_sector_waits_for_the_write_of_its_part_and_others_do_not() {
    let fixture = small();
    fixture.memory.hold();
    let mut one = Client::connect(&fixture.path(), "disk");
    let mut other = Client::connect(&fixture.path(), "urgent");
    one.request(command::WRITE, 0, 10, 10, &[1; 10]);
    fixture.memory.wait_for(1);
    other.request(command::WRITE, 0, 0, 512, &[2; 512]);
    other.request(command::WRITE, 0, 1024, 512, &[3; 512]);
    fixture.memory.wait_for(2);
    let (part, beside) = ((Op::Read, Extent::at(0, 1)), (Op::Write, Extent::at(2, 1)));
    assert_eq!(ops(&fixture.memory.inside().seen), [part, beside]);
    fixture.memory.release();
    assert_eq!(one.reply(0).error, 0);
    for _ in 0..2 {
        assert_eq!(other.reply(0).error, 0);
    }
    assert_eq!(one.pread(0, 512), [2; 512]);
}

#[test]
fn more_writes_to_one_sector_than_may_wait() {
    let fixture = Fixture::new(Setup {
        sectors: SECTORS,
        limits: Limits {
            requests: 512,
            ..Limits::default()
        },
        ..Setup::default()
    });
    let mut client = Client::connect(&fixture.path(), "disk");
    for at in 0..400 {
        client.request(command::WRITE, 0, at, 1, &[at as u8]);
    }
    for _ in 0..400 {
        assert_eq!(client.reply(0).error, 0);
    }
    let expected: Vec<u8> = (0..400).map(|at| at as u8).collect();
    assert_eq!(client.pread(0, 400), expected);
}

#[test]
fn zeroes_and_trims_keep_what_is_next_to_them() {
    let fixture = small();
    let mut client = Client::connect(&fixture.path(), "disk");
    for command in [command::WRITE_ZEROES, command::TRIM] {
        client.pwrite(0, &[9; SECTORS * SECTOR]);
        let mut expected = vec![9; SECTORS * SECTOR];
        for (offset, len) in [(3, 2), (700, 324), (2000, 3000), (6144, 513), (7679, 1)] {
            assert_eq!(client.ask(command, flag::FUA, offset, len, b"").error, 0);
            expected[offset as usize..(offset as usize + len as usize)].fill(0);
        }
        assert_eq!(client.pread(0, expected.len() as u32), expected);
    }
}

#[test]
fn an_edge_that_cannot_be_read_fails_the_write_and_no_other() {
    let fixture = small();
    let mut client = Client::connect_structured(&fixture.path(), "disk");
    fixture.memory.inside().bad = Some((Lba::new(2), Kind::Medium));
    assert_eq!(client.ask(command::WRITE, 0, 1000, 30, &[1; 30]).error, EIO);
    let read = client.ask(command::READ, 0, 1100, 30, b"");
    assert_eq!((read.error, read.at), (EIO, Some(1100)));
    // A read that failed is no reason to refuse writes.
    client.pwrite(1, &[1; 700]);
    assert_eq!(client.pread(0, 702)[699..], [1, 1, 0]);
}

/// A server of one file.
fn serving(name: &str, direct: bool, bytes: u64, test: impl FnOnce(Client, &std::path::Path)) {
    let folder = Folder::new();
    let path = folder.join(name);
    std::fs::write(&path, vec![5; bytes as usize]).expect("writes");
    let options = FileOptions {
        direct,
        ..FileOptions::new(&path)
    };
    let disk = Disk::start(noop(), move || {
        file::open(&options).map(|file| Box::new(file) as Box<_>)
    });
    let disk = match disk {
        Ok(disk) => disk,
        Err(error) if direct => {
            assert!(error.to_string().contains("direct I/O"), "{error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let export = Export {
        name: name.to_owned(),
        number: 0,
        class: Class(1),
        read_only: false,
        addresses: disk.addresses(),
        program: 0,
        limits: Default::default(),
        disk: disk.clone(),
    };
    let socket = folder.join("socket");
    let listen = [Listen::unix(&socket)];
    let server = Server::bind(&listen, vec![export], Limits::default()).expect("binds");
    let (end, ends) = tokio::sync::oneshot::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("a runtime");
            let ended = async { drop(ends.await) };
            runtime.block_on(server.run(ended)).expect("serves");
        });
        test(Client::connect_structured(&socket, name), &path);
        drop(end);
    });
    disk.stop().expect("flushes");
    assert_eq!(std::fs::metadata(&path).expect("is there").len(), bytes);
}

#[test]
fn a_file_of_any_length_is_served_to_the_byte() {
    for (direct, bytes) in [(false, 1000u64), (false, 1), (true, 1000), (true, 10_001)] {
        serving("odd", direct, bytes, |mut client, path| {
            assert_eq!(client.size, bytes);
            let all = bytes as usize;
            assert_eq!(client.pread(0, bytes as u32), vec![5; all]);
            let mut image: Vec<u8> = (0..all).map(|at| at as u8).collect();
            client.pwrite(0, &image);
            // Writes to a part of the last sector, to its second half, and to a byte within it.
            for (from, len) in [
                (all - 1, 1),
                (all / 2, all - all / 2),
                (all - all / 9 - 1, 1),
            ] {
                image[from..from + len].fill(0xaa);
                client.pwrite(from as u64, &image[from..from + len]);
            }
            assert_eq!(client.pread(0, bytes as u32), image);
            assert_eq!(client.ask(command::FLUSH, 0, 0, 0, b"").error, 0);
            assert_eq!(std::fs::read(path).expect("reads"), image);
            let from = all - all.min(3);
            let zeroed = (all - from) as u32;
            let reply = client.ask(command::WRITE_ZEROES, flag::FUA, from as u64, zeroed, b"");
            assert_eq!(reply.error, 0);
            image[from..].fill(0);
            assert_eq!(client.pread(0, bytes as u32), image);
            let beyond = client.ask(command::WRITE, 0, bytes - 1, 2, &[1; 2]);
            assert_eq!(beyond.error, ENOSPC);
            let status = client.ask(command::BLOCK_STATUS, 0, 0, bytes as u32, b"");
            assert_eq!(u32_at(&status.data, 4), bytes as u32);
        });
    }
}

#[test]
fn a_request_has_up_to_64_mib_wherever_it_begins() {
    let fixture = Fixture::new(Setup {
        sectors: (65 << 20) / SECTOR,
        ..Setup::default()
    });
    let mut client = Client::connect(&fixture.path(), "disk");
    let most: u32 = 64 << 20;
    let data = vec![0xab; most as usize];
    client.pwrite(1, &data);
    assert!(client.pread(1, most) == data, "64 MiB come back");
    assert_eq!(client.pread(0, 2), [0, 0xab]);
    for command in [command::READ, command::WRITE] {
        let data = vec![
            0;
            if command == command::WRITE {
                most as usize + 1
            } else {
                0
            }
        ];
        assert_eq!(client.ask(command, 0, 1, most + 1, &data).error, EINVAL);
    }
}

/// Bytes of the longest step.
const STEP: u64 = 1 << 20;

#[test]
fn long_requests_go_in_steps_of_1_mib_and_change_the_bytes_of_one_request() {
    let fixture = Fixture::new(Setup::default());
    let mut client = Client::connect(&fixture.path(), "disk");
    let len = 3 * STEP + 700;
    for (command, offset) in [
        (command::WRITE, 4096),
        (command::WRITE, 1001),
        (command::WRITE_ZEROES, 3),
    ] {
        let all = (len + 8192) as u32;
        let mut expected = vec![7; all as usize];
        client.pwrite(0, &expected);
        let data: Vec<u8> = match command {
            command::WRITE => (0..len).map(|at| (at / 511) as u8).collect(),
            _ => vec![0; len as usize],
        };
        expected[offset as usize..][..data.len()].copy_from_slice(&data);
        fixture.memory.seen();
        let sent = if command == command::WRITE {
            &data[..]
        } else {
            b""
        };
        let reply = client.ask(command, flag::FUA, offset, len as u32, sent);
        assert_eq!(reply.error, 0);
        let seen = fixture.memory.seen();
        let writes: Vec<_> = seen.iter().filter(|seen| seen.op == Op::Write).collect();
        let longest = writes.iter().map(|seen| seen.extent.len.bytes(512)).max();
        assert_eq!(longest, Some(STEP));
        // A flush of all steps makes them durable.
        assert!(writes.iter().all(|seen| !seen.flags.has(Flags::FUA)));
        assert_eq!(seen.last().map(|seen| seen.op), Some(Op::Flush));
        assert_eq!(seen.iter().filter(|seen| seen.op == Op::Flush).count(), 1);
        assert_eq!(client.pread(0, all), expected);
        let seen = fixture.memory.seen();
        assert!(
            seen.len() as u64 > 3 && seen.iter().all(|seen| seen.extent.len.bytes(512) <= STEP)
        );
        // Steps may end in any order.
        fixture.memory.hold();
        fixture.memory.inside().reverse = true;
        client.request(command::READ, 0, 0, all, b"");
        fixture.memory.wait_for(2);
        fixture.memory.release();
        assert_eq!(client.reply(all as usize).data, expected);
        fixture.memory.inside().reverse = false;
    }
}

#[test]
fn a_long_write_is_answered_after_its_last_step_and_goes_before_a_read_of_its_bytes() {
    let fixture = Fixture::new(Setup {
        depth: 1,
        ..Setup::default()
    });
    let mut client = Client::connect(&fixture.path(), "disk");
    let mut other = Client::connect(&fixture.path(), "disk");
    fixture.memory.hold();
    client.request(command::WRITE, 0, 0, 4 * STEP as u32, &vec![1; 4 << 20]);
    fixture.memory.wait_for(1);
    other.request(command::READ, 0, 40 << 20, 4096, b"");
    // Within the sectors of the write: waits for the whole write.
    other.request(command::READ, 0, 3 << 20, 4096, b"");
    let bad = other.ask(command::READ, 0, 1 << 40, 4096, b"");
    assert_eq!(bad.error, EINVAL);
    fixture.memory.release();
    assert_eq!(other.reply(4096).data, vec![0; 4096]);
    assert_eq!(other.reply(4096).data, vec![1; 4096]);
    assert_eq!(client.reply(0).error, 0);
    let mut order: Vec<u64> = (fixture.memory.seen().iter())
        .map(|seen| seen.extent.start.get() * 512 / STEP)
        .collect();
    order.retain(|at| *at != 40);
    assert_eq!(order, [0, 1, 2, 3, 3]);
}

#[test]
fn an_error_of_one_step_fails_the_whole_request_and_ends_it() {
    let fixture = Fixture::new(Setup::default());
    let mut client = Client::connect_structured(&fixture.path(), "disk");
    let bad = 2 * STEP / 512 + 5;
    fixture.memory.inside().bad = Some((Lba::new(bad), Kind::Medium));
    // Three of the five steps behind the error may have started.
    let len = 8 * STEP as u32;
    let read = client.ask(command::READ, 0, 0, len, b"");
    assert_eq!((read.error, read.at), (EIO, Some(bad * 512)));
    assert!(fixture.memory.seen().len() <= 6);
    let reply = client.ask(command::WRITE, 0, 0, len, &vec![1; 8 << 20]);
    assert_eq!(reply.error, EIO);
    assert!(fixture.disk.has_failed());
    assert!(fixture.memory.seen().len() <= 6);
    fixture.memory.inside().bad = None;
    let read = client.pread(0, len);
    assert_eq!(read[6 << 20..], vec![0; 2 << 20], "no step has followed");
}
