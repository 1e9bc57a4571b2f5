//! Drives with several commands at a time: streams alone, several streams, and streams beside random access.

mod harness;
mod reads;
mod table;
mod writes;

use harness::Client;
use headtime_disk::Profile;
use headtime_disk::profile::{ReadAhead, WriteBack, by_name};
use headtime_units::Nanos;

/// The shipped drives that take several commands.
const QUEUED: [&str; 3] = ["exos-x18", "wd5000aaks", "barracuda-7200.10-160"];
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// A number of read streams, spread over the disk, each with `each` commands outstanding.
fn streams(profile: &Profile, len: u64, count: u32, each: u32) -> Vec<Client> {
    let apart = profile.geometry.capacity.get() / 64 * 8;
    (0..count)
        .map(|n| Client::reader(len, each).at(apart * u64::from(n)))
        .collect()
}

/// The drive with its buffer switched off.
fn cache_off(profile: &Profile) -> Profile {
    let off = profile.with(|spec| {
        spec.cache.enabled = false;
        spec.cache.read_ahead = ReadAhead::Off;
        spec.cache.read_ahead_min = 0;
        spec.cache.read_ahead_max = 0;
        spec.cache.read_free_sectors = false;
        spec.cache.write_back = WriteBack::Off;
    });
    off.unwrap()
}

/// A drive whose firmware keeps to no stream loses streams to waiting commands, and is left out. A drive with the
/// firmware of another one is left out, too.
#[test]
fn every_shipped_drive_that_takes_several_commands_and_keeps_to_streams_is_looked_at() {
    let same = |name: &str, profile: &Profile| by_name(name).unwrap().queue == profile.queue;
    for shipped in headtime_disk::profile::shipped() {
        let profile = shipped.profile();
        let queued = profile.queue.depth > 1 && profile.queue.stream_cap > Nanos::ZERO;
        let looked_at = |name: &&str| **name == profile.name || same(name, &profile);
        assert_eq!(QUEUED.iter().any(looked_at), queued, "{}", profile.name);
    }
}
