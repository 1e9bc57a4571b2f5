//! Requests that run on the thread of their connection, and requests that do not.

use crate::client::Client;
use crate::device::wait_until;
use crate::fixture::{Fixture, Setup};
use headtime_sched::Op;
use headtime_serve::nbd::wire::{command, flag};
use headtime_serve::request::Kind;
use headtime_units::Lba;

fn fixture() -> (Fixture, Client) {
    let fixture = Fixture::new(Setup::default());
    let mut client = Client::connect(&fixture.path(), "disk");
    // The disk's thread sleeps after its start, though perhaps not at once.
    wait_until("a request on the connection's thread", || {
        client.pread(0, 512);
        fixture.memory.inside().by_the_disk.last() == Some(&false)
    });
    fixture.memory.seen();
    fixture.memory.inside().by_the_disk.clear();
    (fixture, client)
}

/// Asks once. Returns true if the disk's thread handed the last command to the device.
fn by_the_disk(fixture: &Fixture, client: &mut Client, ask: (u16, u16, u64, u32)) -> bool {
    let (command, flags, offset, len) = ask;
    let data = vec![
        7;
        if command == command::WRITE {
            len as usize
        } else {
            0
        }
    ];
    client.ask(command, flags, offset, len, &data);
    fixture
        .memory
        .inside()
        .by_the_disk
        .pop()
        .expect("a command")
}

#[test]
fn a_short_request_of_an_idle_disk_runs_on_the_thread_of_its_connection() {
    let (fixture, mut client) = fixture();
    let end = fixture.memory.inside().bytes.len() as u64;
    for (ask, expected) in [
        ((command::READ, 0, 512, 4096), false),
        ((command::WRITE, 0, 512, 4096), false),
        ((command::READ, 0, 0, 64 << 10), false),
        // The kernel would copy for a long time.
        ((command::READ, 0, 0, 128 << 10), true),
        // These may wait for the file system.
        ((command::FLUSH, 0, 0, 0), true),
        ((command::WRITE, flag::FUA, 512, 4096), true),
        ((command::WRITE, 0, end - 4096, 4096), true),
        ((command::READ, 0, end - 4096, 4096), false),
    ] {
        // A disk whose thread has just answered is not idle yet.
        wait_until("the thread that is expected", || {
            by_the_disk(&fixture, &mut client, (command::READ, 0, 0, 512));
            by_the_disk(&fixture, &mut client, (command::WRITE, 0, 0, 512));
            by_the_disk(&fixture, &mut client, ask) == expected
        });
    }
}

#[test]
fn the_disk_goes_on_with_a_command_that_takes_long() {
    let (fixture, mut client) = fixture();
    fixture.memory.hold();
    client.request(command::READ, 0, 0, 512, b"");
    fixture.memory.wait_for(1);
    assert_eq!(fixture.memory.inside().by_the_disk, [false]);
    for at in 1..40 {
        client.request(command::READ, 0, at * 512, 512, b"");
    }
    fixture.memory.wait_for(32);
    assert!(
        fixture.memory.inside().by_the_disk[1..]
            .iter()
            .all(|by| *by)
    );
    fixture.memory.release();
    for _ in 0..40 {
        assert_eq!(client.reply(512).error, 0);
    }
    // A device that takes time for a command gets the next ones from the disk's thread.
    fixture.memory.inside().by_the_disk.clear();
    client.pread(0, 512);
    assert_eq!(fixture.memory.inside().by_the_disk, [true]);
}

#[test]
fn a_bug_on_the_thread_of_a_connection_ends_the_disk_and_not_the_server() {
    let (fixture, mut client) = fixture();
    fixture.memory.inside().panics = true;
    let reply = client.ask(command::READ, 0, 0, 512, b"");
    assert_ne!(reply.error, 0);
    assert_eq!(fixture.memory.inside().by_the_disk, [false]);
    // The connection, others, and the disk's handle still have answers.
    assert_ne!(client.ask(command::WRITE, 0, 0, 512, &[1; 512]).error, 0);
    let mut other = Client::connect(&fixture.path(), "urgent");
    assert_ne!(other.ask(command::READ, 0, 0, 512, b"").error, 0);
    let error = fixture.disk.stop().expect_err("ended by a bug").to_string();
    assert!(error.contains("a device with a bug"), "{error}");
    assert!(fixture.disk.has_failed());
}

#[test]
fn no_reply_to_a_request_of_several_steps_is_left_behind() {
    let fixture = Fixture::new(Setup::default());
    let mut client = Client::connect(&fixture.path(), "disk");
    // The disk's thread looks for orders once in 1,024 events, which must hit each event of a request.
    for _ in 0..3_000 {
        let reply = client.ask(command::WRITE_ZEROES, 0, 0, 2 << 20, b"");
        assert_eq!(reply.error, 0);
    }
}

#[test]
fn a_refused_write_of_part_of_a_sector_counts_as_refused_alone() {
    let fixture = Fixture::new(Setup::default());
    let mut client = Client::connect(&fixture.path(), "disk");
    fixture.memory.inside().bad = Some((Lba::ZERO, Kind::Medium));
    assert_ne!(client.ask(command::WRITE, 0, 0, 512, &[1; 512]).error, 0);
    fixture.memory.inside().bad = None;
    // The read of the sector succeeds, and the write is refused.
    assert_ne!(client.ask(command::WRITE, 0, 5_000, 10, &[1; 10]).error, 0);
    let counts = &fixture.snapshot().metrics.exports[0];
    let writes = Op::Write as usize;
    assert_eq!((counts.requests[writes], counts.failed[writes]), (1, 1));
    assert_eq!((counts.refused, counts.unfinished), (1, 0));
}
