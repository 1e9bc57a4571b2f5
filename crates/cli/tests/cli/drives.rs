//! Drives: listed, shown, validated.

use super::common::{headtime, json, keys, number, run, scratch, stdout};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

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
        "cheetah18lp",
        "barracuda-st32171w",
        "ibm18es",
        "hp-c2247a",
        "wd5000aaks",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    let listed = stdout(&["drive", "list"]);
    let native = listed.lines().find(|line| line.starts_with("NAME-4kn, "));
    let (_, native) = native.unwrap().split_once(" is there of ").unwrap();
    let native: Vec<&str> = native.trim_end_matches('.').split(", ").collect();
    assert!(native.contains(&"nearline-20tb"), "{native:?}");
    for name in &names {
        let small = format!("{name}-4kn");
        assert_eq!(
            run(&["drive", "show", &small]).status.success(),
            native.contains(name),
            "{small}"
        );
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

/// Every command that names the file reports the import's notes, and the imported profile describes the same drive.
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

/// Heads with tracks of different lengths, which zones cannot say.
#[test]
fn a_parameter_file_with_a_table_of_tracks_is_shown_and_simulated() {
    let small = include_str!("../data/small.parv");
    let (before, rest) = small.split_once("    Layout Model").unwrap();
    let (_, after) = rest.split_once("    Mechanical Model").unwrap();
    let table = "    Layout Model = dm_layout_g4 {
      TP = [ 0, 19, 20, 0, 17, 18 ],
      IDX = [ [ 0, 0, 0.0, 20, 1, 0.25, 400, 20, TRACK, 0, 0,
                400, 19, 0.5, 18, 1, 0.25, 342, -19, TRACK, 1, 1 ] ],
      Slips = [ 30, 2 ],
      Remaps = [ 50, 1, 0, 1, 3, 18 ]
    },
    Mechanical Model";
    let directory = scratch("import-table");
    let path = directory.join("table.parv");
    std::fs::write(&path, format!("{before}{table}{after}")).unwrap();
    let shown = stdout(&["drive", "show", path.to_str().unwrap()]);
    for line in [
        "sectors     700 of 512 bytes\n",
        "tracks      20 sectors outside, 18 inside",
        "layout      mapped, 2 slipped, 1 remapped\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let profile = directory.join("table.toml");
    let imported = stdout(&["drive", "import", path.to_str().unwrap()]);
    std::fs::write(&profile, imported).unwrap();
    let run = |drive: &std::path::Path| {
        let scenario = directory.join("run.toml");
        let text = format!(
            "title = \"table\"\nseed = 1\nschedulers = [\"noop\", \"sptf\"]\n[drive]\nprofile = {:?}\n\
             [engine]\ndepth = 4\n[[workload]]\nprocesses = 4\nrequests = 50\nsize = \"4KiB\"\n",
            drive.to_str().unwrap()
        );
        std::fs::write(&scenario, text).unwrap();
        stdout(&["sim", "run", scenario.to_str().unwrap(), "--format", "csv"])
    };
    assert_eq!(run(&path), run(&profile));
}

/// A file with several drives names one in each command, and wherever a drive is named.
#[test]
fn of_a_parameter_file_with_several_drives_one_is_named() {
    let small = include_str!("../data/small.parv");
    let kind = small.find("disksim_disk ").unwrap() + "disksim_disk ".len();
    let name = small[kind..].split([' ', '{']).next().unwrap();
    let directory = scratch("import-several");
    let path = directory.join("several.parv");
    let (before, after) = small.split_at(small.find("topology").unwrap_or(small.len()));
    let other = format!("{name} OTHER {{ Max queue length = 1 }}\n");
    // Without a topology, drives have the names of their blocks.
    std::fs::write(&path, format!("{before}{other}")).unwrap();
    assert!(
        after.is_empty() || after.contains("disksim_disk"),
        "{after}"
    );
    let path = path.to_str().unwrap();
    let output = run(&["drive", "import", path]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    let listed = format!(
        "say which with --drive NAME, or as FILE#NAME where a drive is named; there are {name}, OTHER"
    );
    assert!(said.contains(&listed), "{said}");
    let queue = "\nqueue       1 commands, in their order\n";
    let named = format!("{path}#OTHER");
    for args in [
        &["drive", "show", path, "--drive", "OTHER"][..],
        &["drive", "show", &named],
    ] {
        assert!(stdout(args).contains(queue), "{args:?}");
    }
    let small = stdout(&[
        "drive", "import", path, "--drive", "OTHER", "--sector", "256B",
    ]);
    assert!(small.contains("\nsector = \"256B\"\n"), "{small}");
    for (args, problem) in [
        (
            &["drive", "show", "atlas10k", "--drive", "x"][..],
            "is no DiskSim file",
        ),
        (
            &["drive", "import", path, "--sector", "520B"],
            "allowed are 256B, 512B and 4KiB",
        ),
        (
            &["drive", "show", path, "--drive", "x"],
            "no drive is called x",
        ),
    ] {
        let said = run(args).stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(problem), "{said}");
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
fn a_drive_is_shown_with_all_that_its_firmware_goes_by() {
    let plain = stdout(&["drive", "show", "wd5000aaks"]);
    let line = "queue       32 commands, shortest positioning time first, margin 1.3ms, none waits longer than 4s, \
                stays with a stream for 100ms, waits 500us for its next read\n";
    assert!(plain.contains(line), "{plain}");
    let toml = stdout(&["drive", "show", "wd5000aaks", "--format", "toml"]);
    let toml = toml.replace("stream_hold = \"500us\"", "stream_hold = \"300us\"");
    let more = "[queue]\nncq_prio = true\noldest_every = 16\noldest_age = \"50ms\"\n";
    let path = scratch("show-firmware").join("policies.toml");
    let toml = toml.replace("[queue]\n", more);
    let given = ["ncq_prio", "stream_hold", "oldest_every", "oldest_age"];
    let given = given.map(|key| toml.matches(&format!("\n{key} = ")).count());
    assert_eq!(given, [1; 4], "{toml}");
    std::fs::write(&path, toml).unwrap();
    let all = stdout(&["drive", "show", path.to_str().unwrap()]);
    let end = "for 100ms, waits 300us for its next read, one choice of 16 is the oldest from 50ms on, commands of high \
               priority first\n";
    assert!(all.contains(end), "{all}");
    let none = stdout(&["drive", "show", "st3400620as"]);
    assert!(none.contains(", stays with no stream\n"), "{none}");
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

#[test]
fn a_scenario_that_is_printed_names_its_files_wherever_it_is_saved() {
    let directory = scratch("drives-printed");
    let profile = stdout(&["drive", "show", "wd5000aaks", "--format", "toml"]);
    fs::create_dir_all(directory.join("one/two")).unwrap();
    fs::write(directory.join("one/mine.toml"), profile).unwrap();
    let scenario = "schedulers = \"noop\"\ndrive.profile = \"mine.toml\"\nworkload.processes = 1\nrun.requests = 9\n";
    fs::write(directory.join("one/scenario.toml"), scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_headtime"))
        .args(["sim", "run", "one/scenario.toml", "--print-scenario"])
        .current_dir(&directory)
        .output()
        .unwrap();
    let saved = directory.join("one/two/saved.toml");
    fs::write(&saved, output.stdout).unwrap();
    let [first, second] = [directory.join("one/scenario.toml"), saved].map(|path| {
        let args = ["sim", "run", path.to_str().unwrap(), "--format", "json"];
        let report: Value = serde_json::from_str(&stdout(&args)).unwrap();
        report["scenario_hash"].clone()
    });
    assert!(first.is_string() && first == second);
}
