//! Exports that are parts of disks.

use super::common::{Server, run, scratch};
use super::nbd::{Ask, Client};
use super::scrub::done;
use serde_json::json;
use std::fs;

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
emulate = "atlas10k"
store = "disk0.img"
create = true
size = "2MiB"
scheduler = "deadline"
[[disk.export]]
name = "first"
range = "0B..1MiB"
[[disk.export]]
name = "second"
range = "1MiB..2MiB"
[[disk.export]]
name = "all"
read_only = true
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
"#;

#[test]
fn parts_of_a_disk_are_served_logged_and_scrubbed_as_the_disk() {
    let mut server = Server::start("ranges", CONFIG, &["--log", "events.log"]);
    let connect = |export| Client::connect(&server.path("nbd.sock"), export).unwrap();
    let (mut second, mut all) = (connect("second"), connect("all"));
    assert_eq!((second.bytes, all.bytes), (1 << 20, 2 << 20));
    assert_eq!(second.ask(Ask::Write, 4096, &mut [5; 4096]).unwrap(), 0);
    let mut data = [0; 4096];
    assert_eq!(all.ask(Ask::Read, (1 << 20) + 4096, &mut data).unwrap(), 0);
    assert_eq!(data, [5; 4096]);
    let status = server.status();
    let exports = status["disks"][0]["exports"].as_array().unwrap();
    let ranges: Vec<_> = exports.iter().map(|export| &export["range"]).collect();
    let mib = |start, end| json!([start << 20, end << 20]);
    assert_eq!(ranges, [&mib(0, 1), &mib(1, 2), &mib(0, 2)]);
    // The scrub reads the whole disk, with any exports.
    let scrubbed = done(&server, &["--idle", "1ms"]);
    assert!(scrubbed.contains("0B-2MiB"), "{scrubbed}");

    // An address that moves under a client is nothing for a server that runs.
    let moved = CONFIG.replacen("1MiB..2MiB", "1536KiB..2MiB", 1);
    fs::write(server.path("serve.toml"), moved).unwrap();
    server.signal("HUP");
    server.wait_for("disk disk0: export second: another value takes a restart");
    assert_eq!(second.ask(Ask::Read, 4096, &mut data).unwrap(), 0);
    assert_eq!(data, [5; 4096]);
    assert_eq!(server.terminate(), Some(0));
    // The write is at sector 2056 of the disk, by client 2 as process and program 0, of export 1.
    let log = fs::read_to_string(server.path("events.log")).unwrap();
    assert!(log.contains(" W 2056 8 0 2 0 1 1\n"), "{log}");
    let output = run(&server.directory, &["sim", "replay-log", "events.log"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_range_that_the_disk_does_not_have_is_refused_by_check_and_start() {
    let directory = scratch("no-range");
    let store = directory.join("disk0.img");
    for (to, error) in [
        (
            "1MiB..9MiB",
            "1MiB..9MiB: ends beyond the disk, which has 2MiB",
        ),
        (
            "1048577B..2MiB",
            "1048577B..2MiB: 1048577B is within a sector; allowed are multiples of the disk's sectors of 512B",
        ),
    ] {
        let config = CONFIG.replacen("1MiB..2MiB", to, 1);
        fs::write(directory.join("serve.toml"), config).unwrap();
        for args in [
            &["serve", "serve.toml", "--check"][..],
            &["serve", "serve.toml"],
        ] {
            let output = run(&directory, args);
            let found = String::from_utf8(output.stderr).unwrap();
            let found = found.lines().last().unwrap_or_default();
            let expected = format!("error: serve.toml:14: disk[0].export[1].range: {error}");
            assert_eq!((output.status.code(), found), (Some(3), &*expected));
            assert!(!store.exists());
        }
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_share_or_a_limit_that_cannot_be_is_refused_with_its_line() {
    let directory = scratch("no-share");
    for (key, error) in [
        (
            "share = 0",
            "share: 0 is out of range; allowed is 1 to 1000",
        ),
        (
            "share_by = \"user\"",
            "share_by: \"user\" is not allowed; allowed are \"export\", \"peer\", \"none\"",
        ),
        (
            "max_in_flight = 0",
            "max_in_flight: 0 is out of range; allowed is 1 to 65536",
        ),
        ("max_bytes = \"1KiB\"", "max_bytes: allowed is 1MiB to 1TiB"),
    ] {
        let config = CONFIG.replacen("name = \"all\"", &format!("name = \"all\"\n{key}"), 1);
        fs::write(directory.join("serve.toml"), config).unwrap();
        let output = run(&directory, &["serve", "serve.toml", "--check"]);
        let found = String::from_utf8(output.stderr).unwrap();
        let expected = format!("error: serve.toml:17: disk[0].export[2].{error}\n");
        assert_eq!((output.status.code(), found), (Some(3), expected));
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn limits_of_an_export_are_shown() {
    let directory = scratch("limits");
    let keys = "name = \"all\"\nmax_in_flight = 64\nmax_bytes = \"16MiB\"";
    let config = CONFIG.replacen("name = \"all\"", keys, 1);
    fs::write(directory.join("serve.toml"), config).unwrap();
    let output = run(&directory, &["serve", "serve.toml", "--check"]);
    let found = String::from_utf8(output.stdout).unwrap();
    let expected = ", at most 64 requests in flight, at most 16MiB in flight";
    let line = found.lines().find(|line| line.contains("export all"));
    assert!(line.is_some_and(|line| line.ends_with(expected)), "{found}");
    fs::remove_dir_all(&directory).unwrap();
}
