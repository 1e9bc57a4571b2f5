//! Sockets, limits, and how connections end.

use crate::client::{Client, PATIENCE, unix};
use crate::device::{SECTOR, wait_until};
use crate::fixture::{Fixture, Folder, Setup};
use headtime_linux::clock::Clock;
use headtime_serve::buffer::ALIGNMENT;
use headtime_serve::listen;
use headtime_serve::nbd::wire::command;
use headtime_serve::nbd::{Limits, Listen, Network, Server, SetupError};
use headtime_units::Nanos;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Duration;

fn fixture() -> Fixture {
    Fixture::new(Setup::default())
}

fn limited(limits: Limits) -> Fixture {
    Fixture::new(Setup {
        limits,
        ..Setup::default()
    })
}

fn bind(listen: Listen) -> Result<Server, SetupError> {
    Server::bind(&[listen], Vec::new(), Limits::default())
}

#[test]
fn disconnect_comes_after_the_replies() {
    let fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    fixture.memory.hold();
    for at in 0..5 {
        client.request(command::READ, 0, at * 512, 512, b"");
    }
    client.request(command::DISC, 0, 0, 0, b"");
    client.request(command::READ, 0, 0, 512, b"");
    fixture.memory.wait_for(5);
    fixture.memory.release();
    for _ in 0..5 {
        assert_eq!(client.reply(512).error, 0);
    }
    assert!(client.is_closed());
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 0);
}

#[test]
fn a_client_that_only_reads_any_more() {
    let fixture = fixture();
    let socket = unix(&fixture.path());
    let half = socket.try_clone().expect("the same socket");
    let mut client = Client::over(socket, "disk", false, false);
    fixture.memory.hold();
    for at in 0..5 {
        client.request(command::READ, 0, at * 512, 512, b"");
    }
    // The data of this write never come.
    client.request(command::WRITE, 0, 0, 512, &[1; 100]);
    half.shutdown(Shutdown::Write).expect("shuts down");
    fixture.memory.wait_for(5);
    fixture.memory.release();
    for _ in 0..5 {
        assert_eq!(client.reply(512).error, 0);
    }
    assert!(client.is_closed());
    assert!(fixture.memory.inside().bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn a_client_that_vanishes_leaves_nothing() {
    let fixture = fixture();
    fixture.memory.hold();
    for number in 0..10 {
        let mut client = Client::connect(&fixture.path(), "disk");
        for at in 0..2 {
            client.request(command::READ, 0, at * 65536, 65536, b"");
        }
        client.request(
            command::WRITE,
            0,
            (1 << 20) + number * 4096,
            4096,
            &[3; 4096],
        );
        client.request(command::WRITE, 0, 2 << 20, 4096, &[3; 1000]);
        client.request(command::BLOCK_STATUS, 0, 0, 512, b"");
    }
    fixture.memory.wait_for(30);
    fixture.memory.release();
    fixture.all_gone();
    let mut client = Client::connect(&fixture.path(), "disk");
    // Writes that the server received whole are done, and the others are not.
    assert_eq!(client.pread(1 << 20, 40960), [3; 40960]);
    assert_eq!(client.pread(2 << 20, 4096), [0; 4096]);
    drop(client);
    fixture.all_gone();
    fixture.disk.stop().expect("stops");
    // All buffers of reads are back, so that taking them again allocates nothing.
    let pool = fixture.disk.pool();
    let before = pool.kept_bytes();
    let taken: Vec<_> = (0..20).map(|_| pool.take(65536)).collect();
    let all = taken.iter().map(|buffer| buffer.len() + 2 * ALIGNMENT);
    assert_eq!(before - pool.kept_bytes(), all.sum::<usize>());
}

#[test]
fn the_end_waits_for_what_was_read() {
    let mut fixture = fixture();
    let mut client = Client::connect(&fixture.path(), "disk");
    let mut idle = Client::connect(&fixture.path(), "disk");
    let mut shaking = unix(&fixture.path());
    let mut greeting = [0; 18];
    shaking.read_exact(&mut greeting).expect("a greeting");
    fixture.memory.hold();
    client.request(command::WRITE, 0, 0, 512, &[4; 512]);
    client.request(command::READ, 0, 4096, 512, b"");
    fixture.memory.wait_for(2);
    fixture.shut_down();
    assert!(idle.is_closed());
    assert_eq!(shaking.read(&mut [0; 1]).expect("the end"), 0);
    // No more of this.
    client.request(command::WRITE, 0, 0, 512, &[5; 512]);
    fixture.memory.release();
    assert_eq!(client.reply(0).error, 0);
    assert_eq!(client.reply(512).error, 0);
    assert!(client.is_closed());
    fixture.ended();
    assert!(!fixture.path().exists());
    assert_eq!(fixture.memory.inside().bytes[0], 4);
}

#[test]
fn the_end_does_not_wait_for_ever() {
    let mut fixture = limited(Limits {
        drain: Duration::from_millis(50),
        ..Limits::default()
    });
    let mut client = Client::connect(&fixture.path(), "disk");
    fixture.memory.hold();
    client.request(command::READ, 0, 0, 512, b"");
    fixture.memory.wait_for(1);
    fixture.shut_down();
    fixture.ended();
    assert!(client.is_closed());
    assert_eq!(
        (fixture.counts.connected(), fixture.counts.failed()),
        (0, 1)
    );
}

#[test]
fn connections_are_limited() {
    let fixture = limited(Limits {
        connections: 2,
        ..Limits::default()
    });
    let one = Client::connect(&fixture.path(), "disk");
    let two = Client::connect(&fixture.path(), "disk");
    let mut three = unix(&fixture.path());
    assert_eq!(three.read(&mut [0; 1]).expect("the end"), 0);
    assert_eq!(fixture.counts.turned_away(), 1);
    drop(one);
    wait_until("the first to go", || fixture.counts.connected() == 1);
    Client::connect(&fixture.path(), "disk").pread(0, 512);
    drop(two);
}

#[test]
fn at_the_limit_the_connection_that_was_idle_for_longest_is_closed() {
    let fixture = limited(Limits {
        connections: 2,
        idle: Duration::ZERO,
        ..Limits::default()
    });
    let mut one = Client::connect(&fixture.path(), "disk");
    let mut two = Client::connect(&fixture.path(), "disk");
    one.pread(0, 512);
    two.pread(0, 512);
    // The second one is busy, the first one idle.
    fixture.memory.hold();
    two.request(command::READ, 0, 0, 512, b"");
    fixture.memory.wait_for(3);
    let greeted = || {
        unix(&fixture.path())
            .read(&mut [0; 1])
            .is_ok_and(|read| read == 1)
    };
    wait_until("the first to be idle", greeted);
    assert!(one.is_closed());
    fixture.memory.release();
    assert_eq!(two.reply(512).error, 0);
}

#[test]
fn a_handshake_takes_no_longer_than_it_may() {
    let fixture = limited(Limits {
        handshake: Duration::from_secs(1),
        ..Limits::default()
    });
    let mut slow = unix(&fixture.path());
    let mut greeting = [0; 19];
    // The greeting, and then the end.
    let mut read = 0;
    loop {
        match slow.read(&mut greeting[read..]).expect("the end comes") {
            0 => break,
            more => read += more,
        }
    }
    assert_eq!(read, 18);
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 1);
    // A client that finishes its handshake in time may then be idle.
    let mut client = Client::connect(&fixture.path(), "disk");
    let mut other = unix(&fixture.path());
    while other.read(&mut greeting).expect("the end comes") > 0 {}
    client.pread(0, 512);
}

const STALLED: Duration = Duration::from_millis(500);

fn impatient() -> Fixture {
    limited(Limits {
        stalled: STALLED,
        ..Limits::default()
    })
}

#[test]
fn a_client_that_takes_no_replies_is_dropped() {
    let fixture = impatient();
    let mut deaf = Client::connect(&fixture.path(), "disk");
    for at in 0..100 {
        deaf.request(command::READ, 0, at * 65536, 65536, b"");
    }
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 1);
    // The client finds the replies that fitted into the socket, and then the end. All buffers are back.
    let mut taken = Vec::new();
    let _ = deaf.socket.read_to_end(&mut taken);
    assert!(taken.len() < 100 * 65536, "{}", taken.len());
    let mut other = Client::connect(&fixture.path(), "disk");
    assert_eq!(other.pread(0, 512), [0; 512]);
}

#[test]
fn a_client_that_stops_within_a_write_is_dropped() {
    let fixture = impatient();
    let mut halted = Client::connect(&fixture.path(), "disk");
    halted.request(command::WRITE, 0, 0, 65536, &[1; 1000]);
    // A refused write has the same limit.
    let mut refused = Client::connect(&fixture.path(), "fixed");
    refused.request(command::WRITE, 0, 0, 65536, &[1; 1000]);
    assert!(halted.is_closed());
    assert!(refused.is_closed());
    fixture.all_gone();
    assert_eq!(fixture.counts.failed(), 2);
    assert_eq!(fixture.memory.inside().bytes[0], 0);
}

#[test]
fn a_client_that_waits_or_is_slow_stays() {
    let fixture = impatient();
    let mut idle = Client::connect(&fixture.path(), "disk");
    let mut waits = Client::connect(&fixture.path(), "disk");
    fixture.memory.hold();
    waits.request(command::READ, 0, 0, 512, b"");
    fixture.memory.wait_for(1);
    // These are dropped one after the other: time goes by.
    for _ in 0..3 {
        let mut halted = Client::connect(&fixture.path(), "disk");
        halted.request(command::WRITE, 0, 0, 65536, b"");
        assert!(halted.is_closed());
    }
    fixture.memory.release();
    assert_eq!(waits.reply(512).error, 0);
    assert_eq!(idle.pread(0, 512), [0; 512]);
    assert_eq!(
        (fixture.counts.failed(), fixture.counts.connected()),
        (3, 2)
    );

    let mut slow = Client::connect(&fixture.path(), "disk");
    for at in 0..64 {
        slow.request(command::READ, 0, at << 20, 1 << 20, b"");
    }
    let clock = Clock::start();
    let step = Nanos::from_millis(STALLED.as_millis() as u64 / 20);
    let mut next = clock.now();
    for _ in 0..64 {
        assert_eq!(slow.reply(1 << 20).error, 0);
        // A part of the limit at a time, but several times it in all.
        next += step;
        wait_until("its next turn", || clock.now() >= next);
    }
}

#[test]
fn a_socket_of_a_dead_server_is_replaced() {
    let folder = Folder::new();
    let path = folder.join("nbd");
    drop(UnixListener::bind(&path).expect("binds"));
    assert!(path.exists());
    let server = bind(Listen::unix(&path)).expect("replaces it");
    let error = bind(Listen::unix(&path)).expect_err("somebody listens");
    assert!(
        matches!(error, SetupError::Listen(listen::BindError::InUse(_))),
        "{error}"
    );
    assert!(path.exists());
    drop(server);
    assert!(!path.exists());
    std::fs::write(&path, "valuable").expect("writes");
    let error = bind(Listen::unix(&path)).expect_err("a file");
    assert!(
        matches!(error, SetupError::Listen(listen::BindError::NotASocket(_))),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).expect("is there"), b"valuable");
    let error = bind(Listen::unix(folder.join("no/nbd"))).expect_err("no folder");
    assert!(
        error.to_string().contains("no/nbd: No such file"),
        "{error}"
    );
    let long = Listen::unix(folder.join("x".repeat(200)));
    assert!(matches!(
        bind(long),
        Err(SetupError::Listen(listen::BindError::Io { .. }))
    ));
}

#[test]
fn only_the_own_socket_is_removed() {
    let folder = Folder::new();
    let path = folder.join("nbd");
    let server = bind(Listen::unix(&path)).expect("binds");
    std::fs::rename(&path, folder.join("old")).expect("renames");
    let other = bind(Listen::unix(&path)).expect("binds");
    drop(server);
    assert!(path.exists());
    drop(other);
    assert!(!path.exists());
}

#[test]
fn the_socket_has_the_permissions_that_were_asked_for() {
    let folder = Folder::new();
    for (name, mode) in [("own", 0o600), ("group", 0o660), ("all", 0o666)] {
        let path = folder.join(name);
        let listen = Listen::Unix(listen::UnixSocket {
            path: path.clone(),
            access: listen::Access { mode, group: None },
        });
        let _server = bind(listen).expect("binds");
        let found = std::fs::metadata(&path).expect("is there").permissions();
        assert_eq!(found.mode() & 0o777, mode);
    }
}

#[test]
fn tcp_on_this_machine_only() {
    for text in ["tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:10809"] {
        let error = bind(text.parse().expect("an address")).expect_err("not loopback");
        assert!(matches!(error, SetupError::Beyond(_)), "{error}");
        assert!(error.to_string().starts_with(text), "{error}");
    }
    let trusted = Network {
        is_trusted: true,
        ..Network::default()
    };
    let any = ["tcp:0.0.0.0:0".parse().expect("an address")];
    Server::bind_to(trusted, &any, Vec::new(), Limits::default()).expect("binds");
    let listen = |_: &Folder| vec!["tcp:127.0.0.1:0".parse().expect("an address")];
    let fixture = Fixture::listening(Setup::default(), listen);
    let Listen::Tcp(address) = fixture.listens[0] else {
        panic!("{:?}", fixture.listens);
    };
    let socket = TcpStream::connect(address).expect("the server listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut client = Client::over(socket, "disk", true, true);
    let data: Vec<u8> = (0..5 << 20).map(|at| (at / 7) as u8).collect();
    client.pwrite(SECTOR as u64, &data);
    assert_eq!(client.pread(SECTOR as u64, data.len() as u32), data);
    client.request(command::DISC, 0, 0, 0, b"");
    assert!(client.is_closed());
}

#[test]
fn texts_of_where_to_listen() {
    for text in ["unix:a/b", "tcp:127.0.0.1:10809", "tcp:[::1]:0"] {
        assert_eq!(text.parse::<Listen>().expect("valid").to_string(), text);
    }
    for text in [
        "",
        "unix:",
        "a/b",
        "tcp:localhost:1",
        "tcp:1",
        "udp:127.0.0.1:1",
    ] {
        let error = text.parse::<Listen>().expect_err("invalid");
        assert_eq!(
            error.to_string(),
            format!("\"{text}\" is neither unix:PATH nor tcp:ADDRESS:PORT")
        );
    }
}

#[test]
fn export_names_that_are_not_clear_are_refused() {
    let fixture = fixture();
    let export = |name: String| headtime_serve::disk::Export {
        name,
        number: 0,
        class: Default::default(),
        read_only: false,
        addresses: fixture.disk.addresses(),
        program: 0,
        limits: Default::default(),
        disk: fixture.disk.clone(),
    };
    let bind = |names: &[&str]| {
        let exports = names.iter().map(|name| export(name.to_string())).collect();
        Server::bind(&[], exports, Limits::default())
    };
    assert!(matches!(bind(&["a", "b", "a"]), Err(SetupError::SameName(name)) if name == "a"));
    let long = "x".repeat(4097);
    assert!(matches!(bind(&[&long]), Err(SetupError::NameTooLong(4097))));
}

/// Requests directly after the client's handshake are not lost.
#[test]
fn requests_may_come_with_the_handshake() {
    let fixture = fixture();
    let mut socket = unix(&fixture.path());
    let mut bytes = vec![0, 0, 0, 3];
    bytes.extend(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
    for at in 0..3000 {
        let request = headtime_serve::nbd::wire::Request {
            flags: 0,
            command: command::READ,
            cookie: at,
            offset: 0,
            len: 512,
        };
        bytes.extend(request.to_bytes());
    }
    socket.write_all(&bytes[..50_000]).expect("writes");
    let rest = bytes[50_000..].to_vec();
    let mut other = socket.try_clone().expect("the same socket");
    let writer = std::thread::spawn(move || other.write_all(&rest).expect("writes"));
    let mut replies = vec![0; 18 + 10 + 3000 * (16 + 512)];
    socket.read_exact(&mut replies).expect("all is answered");
    writer.join().expect("all is sent");
}
