//! An export that is a part of a disk.

use crate::client::Client;
use crate::device::SECTOR;
use crate::fixture::{Fixture, Setup};
use headtime_sched::Op;
use headtime_serve::nbd::wire::{command, flag, u32_at};
use headtime_serve::request::Kind;
use headtime_units::{Extent, Lba};

const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

/// Sectors of the part on a disk of 64.
const FIRST: u64 = 16;
const LEN: u64 = 8;

/// Bytes of the part.
const BYTES: u64 = LEN * SECTOR as u64;

fn fixture() -> Fixture {
    let start = FIRST * SECTOR as u64;
    let fixture = Fixture::new(Setup {
        sectors: 64,
        part: Some((start, start + BYTES)),
        ..Setup::default()
    });
    let mut inside = fixture.memory.inside();
    inside.bytes.fill(7);
    inside.allocated.fill(true);
    drop(inside);
    fixture
}

fn connect(fixture: &Fixture) -> Client {
    Client::connect_structured(&fixture.path(), "urgent")
}

/// Bytes of the disk that are no longer 7, from the first to the last one.
fn changed(fixture: &Fixture) -> std::ops::Range<usize> {
    let bytes = &fixture.memory.inside().bytes;
    let first = bytes.iter().position(|byte| *byte != 7);
    let last = bytes.iter().rposition(|byte| *byte != 7);
    first.map_or(0..0, |first| first..last.expect("there is one") + 1)
}

#[test]
fn a_client_sees_the_size_and_the_bytes_of_the_part() {
    let fixture = fixture();
    let mut client = connect(&fixture);
    assert_eq!(client.size, BYTES);
    client.pwrite(0, &[1; BYTES as usize]);
    assert_eq!(changed(&fixture), 16 * SECTOR..24 * SECTOR);
    assert_eq!(client.pread(0, BYTES as u32), [1; BYTES as usize]);
    let mut whole = Client::connect(&fixture.path(), "disk");
    assert_eq!(whole.pread(24 * SECTOR as u64 - 1, 2), [1, 7]);
}

#[test]
fn requests_have_addresses_of_the_disk() {
    let fixture = fixture();
    let mut client = connect(&fixture);
    client.pread(1024, 512);
    assert_eq!(client.ask(command::TRIM, 0, 512, 512, b"").error, 0);
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, b"").error, 0);
    let seen = fixture.memory.seen();
    let seen: Vec<_> = seen
        .iter()
        .map(|seen| (seen.op, seen.extent, seen.export))
        .collect();
    let expected = [
        (Op::Read, Extent::at(18, 1), 1),
        (Op::Discard, Extent::at(17, 1), 1),
        // A flush has the place of its export.
        (Op::Flush, Extent::at(16, 0), 1),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn requests_beyond_the_part_are_refused_though_the_disk_goes_on() {
    let fixture = fixture();
    let mut client = connect(&fixture);
    for (command, offset, len, error) in [
        (command::READ, BYTES, 512, EINVAL),
        (command::READ, BYTES - 512, 1024, EINVAL),
        (command::READ, u64::MAX - 511, 512, EINVAL),
        (command::TRIM, BYTES, 512, EINVAL),
        (command::BLOCK_STATUS, BYTES - 1, 2, EINVAL),
        (command::WRITE_ZEROES, BYTES - 1, 2, ENOSPC),
    ] {
        let reply = client.ask(command, 0, offset, len, b"");
        assert_eq!(reply.error, error, "{command} at {offset}");
    }
    let reply = client.ask(command::WRITE, 0, BYTES - 1, 2, &[1; 2]);
    assert_eq!(reply.error, ENOSPC);
    assert_eq!((fixture.memory.seen().len(), changed(&fixture)), (0, 0..0));
}

#[test]
fn zeroes_and_bytes_at_the_ends_of_the_part_change_nothing_beside_it() {
    let fixture = fixture();
    let mut client = connect(&fixture);
    client.pwrite(BYTES - 1, &[1]);
    assert_eq!(changed(&fixture), 24 * SECTOR - 1..24 * SECTOR);
    client.pwrite(0, &[1]);
    assert_eq!(changed(&fixture), 16 * SECTOR..24 * SECTOR);
    let zeroes = client.ask(command::WRITE_ZEROES, flag::NO_HOLE, 0, BYTES as u32, b"");
    assert_eq!(
        (zeroes.error, changed(&fixture)),
        (0, 16 * SECTOR..24 * SECTOR)
    );
}

#[test]
fn allocation_and_errors_have_addresses_of_the_part() {
    let fixture = fixture();
    let mut client = connect(&fixture);
    fixture.memory.inside().allocated[18..20].fill(false);
    let reply = client.ask(command::BLOCK_STATUS, 0, 512, BYTES as u32 - 512, b"");
    let runs = reply.data[4..].chunks_exact(8);
    let runs: Vec<_> = runs.map(|run| (u32_at(run, 0), u32_at(run, 4))).collect();
    assert_eq!(runs, [(512, 0), (1024, 3), (2048, 0)]);
    fixture.memory.inside().bad = Some((Lba::new(18), Kind::Medium));
    let reply = client.ask(command::READ, 0, 0, 2048, b"");
    assert_eq!((reply.error, reply.at), (EIO, Some(1024)));
    // Where a request begins within the bad sector, the error is at the request.
    let reply = client.ask(command::READ, 0, 1100, 100, b"");
    assert_eq!((reply.error, reply.at), (EIO, Some(1100)));
}
