//! Drives: listed, shown, validated.

use super::common::{headtime, json, keys, number, run, scratch, stdout};
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

/// What is said of an import is said wherever its file is named, and its profile says the same drive.
#[test]
fn a_parameter_file_is_a_drive_and_what_it_contradicts_is_a_warning() {
    let said = "warning: small.parv:9: `Block count` is 700, but the layout has room for 720 blocks; the \
                block count is believed, and the last 20 blocks stay unused\n\
                note: small.parv:57: `Sector remanence`: unknown parameter of disksim_disk, passed over\n";
    let mut shown = Vec::new();
    for args in [
        &["drive", "import", "small.parv"][..],
        &["drive", "show", "small.parv", "--format", "toml"],
    ] {
        let output = run(args);
        assert!(output.status.success(), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), said, "{args:?}");
        shown.push(String::from_utf8(output.stdout).unwrap());
    }
    assert_eq!(shown[0], shown[1]);
    assert!(shown[0].contains("\nwrite_settle = \"-300us\"\n"));
    let table = stdout(&["drive", "show", "small.parv"]);
    for line in [
        "switch      0.500 ms head switch, 0.300 ms less to settle before a write\n",
        "layout      serpentine-throughout, spares cylinder-end, 2 slipped, 1 remapped\n",
    ] {
        assert!(table.contains(line), "{table}");
    }
    let path = scratch("import-small").join("small.toml");
    std::fs::write(&path, &shown[0]).unwrap();
    let profile = ["drive", "show", path.to_str().unwrap(), "--format", "json"];
    let file = ["drive", "show", "small.parv", "--format", "json"];
    assert_eq!(stdout(&profile), stdout(&file));
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
