//! Requests and replies.

use crate::client::{Client, unix};
use crate::device::{SECTOR, Seen, wait_until};
use crate::fixture::{Fixture, Setup};
use headtime_linux::clock::Clock;
use headtime_sched::{Flags, Op};
use headtime_serve::disk::ExportLimits;
use headtime_serve::nbd::Limits;
use headtime_serve::nbd::wire::{Request, command, export, flag, u32_at};
use headtime_serve::request::Kind;
use headtime_units::{Extent, Lba, Nanos, Sectors};
use std::io::Write as _;
use std::os::unix::net::UnixStream;

const EPERM: u32 = 1;
const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;
const ESHUTDOWN: u32 = 108;

fn fixture() -> Fixture {
    Fixture::new(Setup::default())
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 256 + at) as u8 ^ seed).collect()
}

fn seen(op: Op, extent: Extent, flags: Flags) -> Seen {
    Seen {
        op,
        extent,
        flags,
        export: 0,
        class: 1,
        may_punch: None,
    }
}

#[test]
fn what_was_written_is_read() {
    let fixture = fixture();
    for structured in [false, true] {
        let mut client = match structured {
            false => Client::connect(&fixture.path(), "disk"),
            true => Client::connect_structured(&fixture.path(), "disk"),
        };
        assert_eq!(client.size, 64 << 20);
        assert_eq!(client.flags & export::SEND_DF != 0, structured);
        let mut offset = 0;
        for len in [512, 4096, 16384, 16896, 65536, 1 << 20, 5 << 20] {
            let data = pattern(len, u8::from(structured));
            client.pwrite(offset, &data);
            assert_eq!(client.pread(offset, len as u32), data);
            offset += len as u64;
        }
        let all = client.pread(0, offset as u32);
        assert_eq!(all[..], fixture.memory.inside().bytes[..offset as usize]);
        assert_eq!(client.ask(command::FLUSH, 0, 0, 0, b"").error, 0);
        if structured {
            let whole = client.ask(command::READ, flag::DF, 0, 32 << 20, b"");
            assert_eq!((whole.error, whole.data.len()), (0, 32 << 20));
        }
    }
}

#[test]
fn flags_reach_the_disk() {
    let fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    let data = pattern(1024, 1);
    let ask = |client: &mut Client, command, flags, offset, len, data: &[u8]| {
        assert_eq!(client.ask(command, flags, offset, len, data).error, 0);
        fixture.memory.seen()
    };
    let two = Extent::at(2, 2);
    let write = ask(&mut client, command::WRITE, flag::FUA, 1024, 1024, &data);
    assert_eq!(write, [seen(Op::Write, two, Flags::FUA)]);
    let write = ask(&mut client, command::WRITE, 0, 1024, 1024, &data);
    assert_eq!(write, [seen(Op::Write, two, Flags::NONE)]);
    let trim = ask(&mut client, command::TRIM, 0, 1024, 1024, b"");
    assert_eq!(trim, [seen(Op::Discard, two, Flags::NONE)]);
    // Devices do not say if a discard is durable, so the server adds a flush.
    let trim = ask(&mut client, command::TRIM, flag::FUA, 1024, 1024, b"");
    let flush = seen(Op::Flush, Extent::at(0, 0), Flags::NONE);
    assert_eq!(trim.len(), 2);
    assert_eq!(trim[0].op, Op::Discard);
    assert_eq!(
        (trim[1].op, trim[1].extent.len),
        (flush.op, flush.extent.len)
    );
    for (flags, may_punch) in [(0, true), (flag::NO_HOLE, false)] {
        let zeroes = ask(&mut client, command::WRITE_ZEROES, flags, 1024, 1024, b"");
        let expected = Seen {
            may_punch: Some(may_punch),
            ..seen(Op::Write, two, Flags::NONE)
        };
        assert_eq!(zeroes, [expected]);
    }
    // FUA is harmless on what does not write.
    let read = ask(&mut client, command::READ, flag::FUA, 0, 512, b"");
    assert_eq!(read, [seen(Op::Read, Extent::at(0, 1), Flags::NONE)]);
}

#[test]
fn zeroes_of_any_length_in_pieces() {
    let sectors = (100 << 20) / SECTOR;
    let fixture = Fixture::new(Setup {
        sectors,
        ..Setup::default()
    });
    let mut client = Client::connect(&fixture.path(), "disk");
    fixture.memory.inside().bytes.fill(0xff);
    let reply = client.ask(
        command::WRITE_ZEROES,
        flag::FUA,
        512,
        (100 << 20) - 512,
        b"",
    );
    assert_eq!(reply.error, 0);
    let mut seen = fixture.memory.seen();
    assert_eq!(seen.pop().map(|seen| seen.op), Some(Op::Flush));
    let pieces: Vec<Extent> = seen.iter().map(|seen| seen.extent).collect();
    let most = (1 << 20) / SECTOR as u64;
    let end = sectors as u64;
    let starts = (1..end).step_by(most as usize);
    let expected = starts.map(|at| Extent::at(at, most.min(end - at)));
    assert_eq!(pieces, expected.collect::<Vec<_>>());
    let inside = fixture.memory.inside();
    assert!(inside.bytes[..512].iter().all(|byte| *byte == 0xff));
    assert!(inside.bytes[512..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_piece_that_fails_is_the_last() {
    let fixture = Fixture::new(Setup {
        sectors: (100 << 20) / SECTOR,
        ..Setup::default()
    });
    let mut client = Client::connect_structured(&fixture.path(), "disk");
    fixture.memory.inside().bad = Some((Lba::new((40 << 20) / 512), Kind::NoSpace));
    let reply = client.ask(command::WRITE_ZEROES, 0, 0, 100 << 20, b"");
    assert_eq!((reply.error, reply.at), (ENOSPC, None));
    let last = fixture.memory.seen().last().map(|seen| seen.extent.start);
    // The next step may have begun.
    let bad = Lba::new((40 << 20) / 512);
    let last = last.expect("a step");
    assert!(
        [bad, bad + Sectors::new((1 << 20) / 512)].contains(&last),
        "{last:?}"
    );
}

#[test]
fn replies_out_of_order_carry_their_cookies() {
    let fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    client.pwrite(0, &pattern(32 * 512, 7));
    fixture.memory.seen();
    fixture.memory.hold();
    fixture.memory.inside().reverse = true;
    let cookies: Vec<u64> = (0..32)
        .map(|at| client.request(command::READ, 0, at * 512, 512, b""))
        .collect();
    fixture.memory.wait_for(32);
    fixture.memory.release();
    for (at, cookie) in cookies.iter().enumerate().rev() {
        let reply = client.reply(512);
        assert_eq!(reply.cookie, *cookie);
        assert_eq!(reply.data, pattern(32 * 512, 7)[at * 512..][..512]);
    }
}

#[test]
fn failures_of_the_disk_are_errors_of_the_protocol() {
    for (kind, error) in [
        (Kind::Medium, EIO),
        (Kind::Device, EIO),
        (Kind::Offline, EIO),
    ] {
        let fixture = fixture();
        let mut plain = Client::connect(&fixture.path(), "disk");
        let mut structured = Client::connect_structured(&fixture.path(), "disk");
        fixture.memory.inside().bad = Some((Lba::new(9), kind));
        let reply = plain.ask(command::READ, 0, 4096, 4096, b"");
        assert_eq!((reply.error, reply.at), (error, None));
        let reply = structured.ask(command::READ, 0, 4096, 4096, b"");
        assert_eq!((reply.error, reply.at), (error, Some(9 * 512)));
        // Around it all is well.
        assert_eq!(plain.pread(0, 4096).len(), 4096);
    }
}

#[test]
fn after_a_write_that_failed_there_are_no_more() {
    for (kind, error) in [(Kind::Medium, EIO), (Kind::NoSpace, ENOSPC)] {
        let fixture = fixture();
        let mut client = Client::connect_structured(&fixture.path(), "disk");
        fixture.memory.inside().bad = Some((Lba::new(9), kind));
        let reply = client.ask(command::WRITE, 0, 9 * 512, 512, &[1; 512]);
        assert_eq!((reply.error, reply.at), (error, Some(9 * 512)));
        let reply = client.ask(command::WRITE, 0, 0, 512, &[1; 512]);
        assert_eq!((reply.error, reply.at), (EPERM, None));
        assert_eq!(client.pread(0, 512), [0; 512]);
    }
}

#[test]
fn who_comes_after_a_write_that_failed_is_told() {
    let fixture = fixture();
    let mut before = Client::connect(&fixture.path(), "disk");
    let usual = before.flags;
    assert_eq!(usual & export::READ_ONLY, 0);
    fixture.memory.inside().bad = Some((Lba::new(9), Kind::Medium));
    let reply = before.ask(command::WRITE, 0, 9 * 512, 512, &[1; 512]);
    assert_eq!(reply.error, EIO);
    fixture.memory.inside().bad = None;
    let mut after = Client::connect(&fixture.path(), "urgent");
    assert_ne!(after.flags & export::READ_ONLY, 0);
    assert_eq!(
        after.flags & (export::SEND_TRIM | export::SEND_WRITE_ZEROES),
        0
    );
    let reply = after.ask(command::WRITE, 0, 0, 512, &[1; 512]);
    assert_eq!(reply.error, EPERM);

    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(fixture.disk.clear_failure())
        .expect("the disk runs")
        .expect("nothing was given up on");
    before.pwrite(0, &[2; 512]);
    // The flags of a connection do not change.
    let reply = after.ask(command::WRITE, 0, 0, 512, &[1; 512]);
    assert_eq!(reply.error, EPERM);
    assert_eq!(Client::connect(&fixture.path(), "urgent").flags, usual);
}

#[test]
fn a_request_that_makes_no_sense_is_answered() {
    let size = 65 << 20;
    let fixture = Fixture::new(Setup {
        sectors: size as usize / SECTOR,
        ..Setup::default()
    });
    let large = (64 << 20) + 1;
    for structured in [false, true] {
        let mut client = Client::over(unix(&fixture.path()), "disk", structured, structured);
        let df = [flag::DF, EOVERFLOW as u16];
        let cases: &[(u16, u16, u64, u32, u32)] = &[
            (command::READ, 0, 0, 0, EINVAL),
            (command::READ, 0, size, 512, EINVAL),
            (command::READ, 0, u64::MAX - 511, 512, EINVAL),
            (command::READ, 0, 0, large, EINVAL),
            (
                command::READ,
                df[0],
                0,
                large,
                if structured { EOVERFLOW } else { EINVAL },
            ),
            (command::WRITE, 0, size, 512, ENOSPC),
            (command::WRITE, 0, 0, 0, EINVAL),
            (command::WRITE, 0, 0, large, EINVAL),
            (command::WRITE_ZEROES, 0, size - 512, 1024, ENOSPC),
            (command::WRITE_ZEROES, 1 << 4, 0, 512, EINVAL),
            (command::TRIM, 0, size, 512, EINVAL),
            (command::CACHE, 0, 0, 512, EINVAL),
            (command::FLUSH, 0, 0, 512, EINVAL),
            (1234, 0, 0, 512, EINVAL),
        ];
        for (command, flags, offset, len, error) in cases {
            let data = match *command {
                command::WRITE => vec![7; *len as usize],
                _ => Vec::new(),
            };
            let reply = client.ask(*command, *flags, *offset, *len, &data);
            assert_eq!(reply.error, *error, "{command} {flags} {offset} {len}");
        }
        let status = client.ask(command::BLOCK_STATUS, 0, 0, 512, b"");
        assert_eq!(status.error, if structured { 0 } else { EINVAL });
        assert_eq!(client.pread(0, 512), [0; 512]);
    }
    assert!(fixture.memory.seen().iter().all(|seen| seen.op == Op::Read));
    let mut fixed = Client::connect(&fixture.path(), "fixed");
    assert!(fixed.flags & export::READ_ONLY != 0);
    for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        let data = vec![0; if command == command::WRITE { 512 } else { 0 }];
        assert_eq!(fixed.ask(command, 0, 0, 512, &data).error, EPERM);
    }
    assert_eq!(fixed.pread(0, 512), [0; 512]);
}

#[test]
fn nonsense_ends_the_connection() {
    let fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    client.send(&[0; 28]);
    assert!(client.is_closed());
    let mut client = Client::connect(&fixture.path(), "disk");
    client.request(command::WRITE, 0, 0, u32::MAX, b"");
    assert!(client.is_closed());
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 2);
}

#[test]
fn exports_are_origins_and_classes() {
    let fixture = fixture();
    for (number, name, class) in [(0, "disk", 1), (1, "urgent", 0), (2, "fixed", 2)] {
        Client::connect(&fixture.path(), name).pread(0, 512);
        let seen = fixture.memory.seen();
        assert_eq!((seen[0].export, seen[0].class), (number, class));
    }
}

#[test]
fn connections_to_one_disk_see_the_same() {
    let fixture = fixture();
    let mut one = Client::connect(&fixture.path(), "disk");
    let mut two = Client::connect_structured(&fixture.path(), "urgent");
    assert!(one.flags & export::CAN_MULTI_CONN != 0);
    one.pwrite(0, &[5; 4096]);
    assert_eq!(two.pread(0, 4096), [5; 4096]);
}

#[test]
fn block_status_tells_what_is_allocated() {
    let fixture = fixture();
    let mut client = Client::connect_structured(&fixture.path(), "disk");
    client.pwrite(4096, &[1; 8192]);
    let mut ask = |flags, offset, len| {
        let reply = client.ask(command::BLOCK_STATUS, flags, offset, len, b"");
        assert_eq!(reply.error, 0);
        assert_eq!(reply.data[..4], [0, 0, 0, 1]);
        let pairs = reply.data[4..].chunks_exact(8);
        pairs
            .map(|pair| (u32_at(pair, 0), u32_at(pair, 4)))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ask(0, 0, 64 << 20),
        [(4096, 3), (8192, 0), ((64 << 20) - 12288, 3)]
    );
    assert_eq!(ask(flag::REQ_ONE, 0, 64 << 20), [(4096, 3)]);
    assert_eq!(ask(0, 4608, 512), [(512, 0)]);
}

#[test]
fn many_questions_at_a_time() {
    let fixture = fixture();
    let mut client = Client::connect_structured(&fixture.path(), "disk");
    let mut cookies: Vec<u64> = (0..100)
        .map(|at| client.request(command::BLOCK_STATUS, 0, at * 512, 512, b""))
        .collect();
    for _ in 0..100 {
        let reply = client.reply(0);
        assert_eq!(reply.data, [0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 3]);
        cookies.retain(|cookie| *cookie != reply.cookie);
    }
    assert_eq!(cookies, [] as [u64; 0]);
}

#[test]
fn requests_that_come_in_any_pieces_are_answered() {
    let fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    let mut bytes = Vec::new();
    let data = pattern(3 * 4096, 3);
    for (at, data) in (0..).zip(data.chunks(4096)) {
        let request = |command| Request {
            flags: 0,
            command,
            cookie: at,
            offset: at * 4096,
            len: 4096,
        };
        bytes.extend(request(command::WRITE).to_bytes());
        bytes.extend(data);
    }
    for piece in [1, 27, 29, 1000, bytes.len()] {
        fixture.memory.inside().bytes.fill(0);
        for piece in bytes.chunks(piece) {
            client.send(piece);
        }
        for _ in 0..3 {
            assert_eq!(client.reply(0).error, 0);
        }
        assert_eq!(client.pread(0, data.len() as u32), data);
    }
}

/// Requests beyond the limit stay in the socket.
#[test]
fn so_many_requests_and_no_more() {
    let fixture = Fixture::new(Setup {
        limits: Limits {
            requests: 8,
            ..Limits::default()
        },
        ..Setup::default()
    });
    let mut client = Client::connect(&fixture.path(), "disk");
    fixture.memory.hold();
    for at in 0..20 {
        client.request(command::READ, 0, at * 512, 512, b"");
    }
    fixture.memory.wait_for(8);
    // Another connection is served: the server has had its chance to read more of the first.
    let mut other = Client::connect(&fixture.path(), "disk");
    assert_eq!(other.ask(command::READ, 0, 0, 0, b"").error, EINVAL);
    assert_eq!(fixture.memory.inside().seen.len(), 8);
    fixture.memory.release();
    for _ in 0..20 {
        assert_eq!(client.reply(512).error, 0);
    }
}

#[test]
fn so_many_bytes_and_no_more() {
    let fixture = Fixture::new(Setup {
        limits: Limits {
            bytes: 16384,
            ..Limits::default()
        },
        ..Setup::default()
    });
    let mut client = Client::connect(&fixture.path(), "disk");
    fixture.memory.hold();
    for at in 0..8 {
        client.request(command::READ, 0, at * 8192, 8192, b"");
    }
    fixture.memory.wait_for(2);
    let mut other = Client::connect(&fixture.path(), "disk");
    assert_eq!(other.ask(command::READ, 0, 0, 0, b"").error, EINVAL);
    assert_eq!(fixture.memory.inside().seen.len(), 2);
    fixture.memory.release();
    for _ in 0..8 {
        assert_eq!(client.reply(8192).error, 0);
    }
    // A request larger than the limit goes alone.
    client.pwrite(0, &pattern(1 << 20, 1));
    assert_eq!(client.pread(0, 1 << 20), pattern(1 << 20, 1));
}

/// A full budget of bytes in flight stops reading from sockets. Connections then take turns.
#[test]
fn so_many_bytes_of_all_and_turns() {
    let fixture = Fixture::new(Setup {
        limits: Limits {
            max_bytes: 16384,
            ..Limits::default()
        },
        ..Setup::default()
    });
    fixture.memory.hold();
    let mut clients: Vec<Client> = (0..3)
        .map(|_| {
            let mut client = Client::connect(&fixture.path(), "disk");
            for at in 0..8 {
                client.request(command::READ, 0, at * 8192, 8192, b"");
            }
            client
        })
        .collect();
    fixture.memory.wait_for(2);
    // Requests without data are served.
    let mut other = Client::connect(&fixture.path(), "disk");
    assert_eq!(other.ask(command::READ, 0, 0, 0, b"").error, EINVAL);
    assert_eq!(fixture.memory.inside().seen.len(), 2);
    // One of more than all bytes has its turn, too.
    other.request(command::READ, 0, 0, 1 << 20, b"");
    fixture.memory.release();
    assert_eq!(other.reply(1 << 20).error, 0);
    for client in &mut clients {
        for _ in 0..8 {
            assert_eq!(client.reply(8192).error, 0);
        }
    }
    // Bytes of a client that is gone count no longer.
    fixture.memory.hold();
    fixture.memory.seen();
    for client in &mut clients {
        for at in 0..2 {
            client.request(command::READ, 0, at * 8192, 8192, b"");
        }
    }
    fixture.memory.wait_for(2);
    drop(clients);
    fixture.memory.release();
    wait_until("them to go", || fixture.counts.connected() == 1);
    fixture.memory.hold();
    fixture.memory.seen();
    for at in 0..8 {
        other.request(command::READ, 0, at * 8192, 8192, b"");
    }
    fixture.memory.wait_for(2);
    fixture.memory.release();
    for _ in 0..8 {
        assert_eq!(other.reply(8192).error, 0);
    }
}

/// Bytes that a client sends until the server takes no more for a while. The request is never answered.
fn sent(client: &mut UnixStream, head: &[u8]) -> usize {
    client.set_nonblocking(true).expect("a socket");
    let (clock, mut sent) = (Clock::start(), 0);
    let mut last = clock.now();
    while clock.now() < last + Nanos::from_millis(300) {
        let at = sent % (head.len() + WRITE);
        let piece = match at < head.len() {
            true => &head[at..],
            false => &[5; 1 << 16][..(WRITE + head.len() - at).min(1 << 16)],
        };
        match client.write(piece) {
            Ok(more) => (sent, last) = (sent + more, clock.now()),
            Err(_) => std::thread::yield_now(),
        }
    }
    sent
}

/// Bytes of a large write.
const WRITE: usize = 32 << 20;

#[test]
fn an_export_has_so_many_requests_and_bytes_and_another_is_served() {
    let fixture = Fixture::new(Setup {
        limits: Limits {
            max_bytes: 64 << 20,
            ..Limits::default()
        },
        export: ExportLimits {
            requests: 5,
            bytes: 64 << 20,
        },
        ..Setup::default()
    });
    // The socket's buffers take some.
    let of_sockets = 8 << 20;
    let mut clients: Vec<_> = (0..4)
        .map(|_| {
            let socket = unix(&fixture.path());
            let clone = socket.try_clone().expect("a socket");
            Client::over(socket, "disk", false, false);
            clone
        })
        .collect();
    fixture.memory.hold();
    let mut head = Vec::new();
    // Magic, flags and command, cookie, offset, length.
    for word in [0x2560_9513_u32, 1, 0, 0, 0, 0, WRITE as u32] {
        head.extend(word.to_be_bytes());
    }
    // 64 writes of 32 MiB each would be 2 GiB.
    let all: usize = clients.iter_mut().map(|client| sent(client, &head)).sum();
    assert!((WRITE..(64 << 20) + of_sockets).contains(&all), "{all}");
    // Another export has a request of its own, although all bytes are taken.
    let mut other = Client::connect(&fixture.path(), "urgent");
    let begun = fixture.memory.inside().seen.len();
    other.request(command::READ, 0, 40 << 20, 4096, b"");
    fixture.memory.wait_for(begun + 1);
    drop(clients);
    fixture.memory.release();
    assert_eq!(other.reply(4096).error, 0);
    wait_until("them to go", || fixture.counts.connected() == 1);
    let is_over = || fixture.snapshot().metrics.exports[0].unfinished == 0;
    wait_until("the end of their last request", is_over);

    // Requests without data count, too.
    fixture.memory.hold();
    fixture.memory.seen();
    let mut clients: Vec<_> = (0..3)
        .map(|_| Client::connect(&fixture.path(), "disk"))
        .collect();
    for (client, at) in clients.iter_mut().zip(0..) {
        for number in 0..4 {
            client.request(command::TRIM, 0, (at * 4 + number) * 8192, 512, b"");
        }
    }
    fixture.memory.wait_for(5);
    assert_eq!(other.ask(command::READ, 0, 1 << 40, 1, b"").error, EINVAL);
    assert_eq!(fixture.memory.inside().seen.len(), 5);
    fixture.memory.release();
    for client in &mut clients {
        for _ in 0..4 {
            assert_eq!(client.reply(0).error, 0);
        }
    }
}

/// A client that takes no replies gets no more requests done than it may have.
#[test]
fn a_client_that_does_not_read() {
    let fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    client.pwrite(0, &pattern(1 << 20, 9));
    fixture.memory.seen();
    for _ in 0..100 {
        client.request(command::READ, 0, 0, 1 << 20, b"");
    }
    // 64 MiB are held, and the socket has room for less than one more.
    fixture.memory.wait_for(64);
    let mut other = Client::connect(&fixture.path(), "disk");
    assert_eq!(other.pread(0, 512).len(), 512);
    let done = fixture.memory.inside().seen.len();
    assert!((65..=67).contains(&done), "{done} requests");
    for _ in 0..100 {
        assert_eq!(client.reply(1 << 20).data, pattern(1 << 20, 9));
    }
}

#[test]
fn a_disk_whose_queue_is_full() {
    let fixture = Fixture::new(Setup {
        queue: 1,
        depth: 1,
        ..Setup::default()
    });
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let path = fixture.path();
            std::thread::spawn(move || {
                let mut client = Client::connect(&path, "disk");
                for round in 0..20 {
                    let mut reads = std::collections::BTreeSet::new();
                    let mut others = reads.clone();
                    for at in 0..50 {
                        let offset = (number * 50 + at) * 512;
                        reads.insert(client.request(command::READ, 0, offset, 512, b""));
                        if at == round {
                            let zeroes = command::WRITE_ZEROES;
                            others.insert(client.request(zeroes, 0, 1 << 20, 40 << 20, b""));
                        }
                    }
                    while !reads.is_empty() || !others.is_empty() {
                        let len = |cookie| if reads.contains(&cookie) { 512 } else { 0 };
                        let reply = client.reply_of(len);
                        assert_eq!(reply.error, 0);
                        assert!(reads.remove(&reply.cookie) || others.remove(&reply.cookie));
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("all is answered");
    }
}

#[test]
fn a_disk_that_has_stopped() {
    let fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    fixture.disk.stop().expect("stops");
    assert_eq!(client.ask(command::READ, 0, 0, 512, b"").error, ESHUTDOWN);
    assert_eq!(
        client.ask(command::WRITE, 0, 0, 512, &[0; 512]).error,
        ESHUTDOWN
    );
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, b"").error, ESHUTDOWN);
}
