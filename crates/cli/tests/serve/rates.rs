//! Exports with a rate.

use super::common::{Server, run, scratch};
use super::nbd::{Ask, Client};
use std::fs;

const CONFIG: &str = r#"
[[disk]]
name = "disk0"
device = "null"
size = "64MiB"
scheduler = "noop"
[[disk.export]]
name = "slow"
rate = "64KiB/s"
[[disk.export]]
name = "fast"
read_only = true
[listen]
nbd = "unix:nbd.sock"
control = "unix:control.sock"
max_bytes = "1MiB"
"#;

#[test]
fn a_rate_is_checked_and_shown_and_keeps_no_bytes_from_other_exports() {
    let server = Server::start("rates", CONFIG, &[]);
    let checked = run(&server.directory, &["serve", "serve.toml", "--check"]);
    let checked = String::from_utf8(checked.stdout).unwrap();
    let lines =
        "  export slow: best-effort, at most 64KiB/s\n  export fast: best-effort, read-only\n";
    assert!(checked.contains(lines), "{checked}");
    let connect = |export| Client::connect(&server.path("nbd.sock"), export).unwrap();
    let (mut slow, mut fast) = (connect("slow"), connect("fast"));
    // The second request waits for 16 s, with as many bytes as all clients of other exports may have in flight.
    for number in 0..4 {
        slow.send(Ask::Read, number, 0, 1 << 20, &[]).unwrap();
    }
    let mut data = vec![0; 1 << 20];
    assert_eq!(slow.answer(&mut data).unwrap().error, 0);
    for place in 0..8 {
        assert_eq!(fast.ask(Ask::Read, place << 20, &mut data).unwrap(), 0);
    }
    let status = server.status();
    let exports = &status["disks"][0]["exports"];
    assert_eq!(exports[0]["rate"], 65_536);
    assert!(exports[1]["rate"].is_null());
    assert_eq!(exports[0]["requests"]["read"], 1);
    assert_eq!(exports[1]["requests"]["read"], 8);
    let table = server.told(&["status"]);
    assert!(table.contains("MB/s at most"), "{table}");
}

#[test]
fn a_rate_that_cannot_be_is_refused_with_its_line() {
    let directory = scratch("no-rate");
    let allowed = "allowed is 64KiB/s to 1TiB/s";
    for (value, error) in [
        ("\"0B/s\"", format!("\"0B/s\": {allowed}")),
        ("\"1KiB/s\"", format!("\"1KiB/s\": {allowed}")),
        ("\"2TiB/s\"", format!("\"2TiB/s\": {allowed}")),
        (
            "\"20/s\"",
            "\"20/s\": a size needs its unit: B, kB, KiB, MB, MiB, GB, GiB, TB or TiB, as in 4KiB"
                .to_owned(),
        ),
        (
            "20",
            "is the number 20, but should be a rate, such as \"20MiB/s\"".to_owned(),
        ),
    ] {
        let config = CONFIG.replacen("\"64KiB/s\"", value, 1);
        fs::write(directory.join("serve.toml"), config).unwrap();
        let output = run(&directory, &["serve", "serve.toml", "--check"]);
        let found = String::from_utf8(output.stderr).unwrap();
        let expected = format!("error: serve.toml:9: disk[0].export[0].rate: {error}\n");
        assert_eq!((output.status.code(), found), (Some(3), expected));
    }
    fs::remove_dir_all(&directory).unwrap();
}
