//! Drives: listed, shown, validated.

use super::common::{headtime, json, keys, number, scratch, stdout};
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_validation_has_its_fields() {
    let found = json(&[
        "drive",
        "validate",
        "-p",
        "atlas10k",
        "-t",
        "measured.trace",
        "--format",
        "json",
    ]);
    assert_eq!(keys(&found).len(), 4);
    assert_eq!(found["drive"], "atlas10k");
    assert_eq!(found["requests"], 3);
    assert_eq!(number(&found["mean_ms"]["measured"]), 6.576_917);
    assert!(number(&found["mean_ms"]["modelled"]) > 0.0);
    assert!(number(&found["demerit_ms"]) > 0.0);
}

#[test]
fn every_shipped_drive_is_listed_and_shown() {
    let list = json(&["drive", "list", "--format", "json"]);
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|drive| drive["name"].as_str().unwrap())
        .collect();
    for name in [
        "atlas10k",
        "cheetah9lp",
        "barracuda-st32171w",
        "ibm18es",
        "hp-c2247a",
        "wd5000aaks",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    for name in names {
        assert!(stdout(&["drive", "show", name]).contains("Where the values come from"));
        let directory = scratch(&format!("show-{name}"));
        let path = directory.join("copy.toml");
        std::fs::write(&path, stdout(&["drive", "show", name, "--format", "toml"])).unwrap();
        let copy = stdout(&["drive", "show", path.to_str().unwrap(), "--format", "json"]);
        assert_eq!(copy, stdout(&["drive", "show", name, "--format", "json"]));
    }
}

/// The slower of the drive's own interface and the bus.
#[test]
fn a_drive_is_shown_with_its_bus() {
    // 512 bytes in 1.71 us, and in 170.1 and 186.86 us.
    assert!(stdout(&["drive", "show", "wd5000aaks"]).contains("\nbus         299.4 MB/s\n"));
    let old = stdout(&["drive", "show", "hp-c2247a"]);
    assert!(
        old.contains("\nbus         reads 3.0 MB/s, writes 2.7 MB/s\n"),
        "{old}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = headtime(&["drive", "show", "ibm18es", "--format", "toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
