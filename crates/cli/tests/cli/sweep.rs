//! `headtime sweep`: its runs and its output.

use super::common::{ended, json, keys, number, scratch, stdout};
use super::sweeps::{at, rows, scenario, wholes, within};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn the_same_bytes_come_from_any_number_of_threads() {
    for format in ["csv", "json", "table"] {
        let args = |jobs| ["sweep", "sweep.toml", "--format", format, "--jobs", jobs];
        let one = stdout(&args("1"));
        assert_eq!(one, stdout(&args("3")), "{format}");
        assert_eq!(one, stdout(&args("8")), "{format}");
    }
    let directory = scratch("sweep-threads");
    let picture = |jobs: &str| {
        let path = directory.join(format!("{jobs}.svg"));
        let path = path.to_str().unwrap();
        stdout(&["sweep", "sweep.toml", "--plot", path, "--jobs", jobs]);
        fs::read_to_string(path).unwrap()
    };
    assert_eq!(picture("1"), picture("4"));
}

/// The last key varies fastest, keys that vary together count as one, and the scenario's own lists
/// come last.
#[test]
fn every_combination_is_run_in_the_order_of_the_file() {
    let rows = wholes(&stdout(&["sweep", "sweep.toml", "--format", "csv"]));
    let chosen = |row: &Vec<(String, String)>| {
        [
            "engine.depth",
            "workload.size",
            "engine.merge",
            "engine.merge_max",
            "scheduler",
        ]
        .map(|name| at(row, name).to_owned())
        .join(" ")
    };
    let expected = [
        "1 4KiB true 512KiB noop",
        "1 4KiB true 512KiB sptf",
        "1 4KiB false 4KiB noop",
        "1 4KiB false 4KiB sptf",
        "1 64KiB true 512KiB noop",
        "1 64KiB true 512KiB sptf",
        "1 64KiB false 4KiB noop",
        "1 64KiB false 4KiB sptf",
        "4 4KiB true 512KiB noop",
        "4 4KiB true 512KiB sptf",
        "4 4KiB false 4KiB noop",
        "4 4KiB false 4KiB sptf",
        "4 64KiB true 512KiB noop",
        "4 64KiB true 512KiB sptf",
        "4 64KiB false 4KiB noop",
        "4 64KiB false 4KiB sptf",
    ];
    assert_eq!(rows.iter().map(chosen).collect::<Vec<_>>(), expected);
    let numbers: Vec<&str> = rows.iter().map(|row| at(row, "combination")).collect();
    assert_eq!(numbers[0], "1");
    assert_eq!(numbers[15], "16");
    // The swept keys are in front.
    let names: Vec<&str> = rows[0].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names[..7],
        [
            "engine.depth",
            "workload.size",
            "engine.merge",
            "engine.merge_max",
            "combination",
            "origin",
            "program"
        ]
    );
    assert_eq!(names.last(), Some(&"error"));
}

/// Every row has the values that `sim run` reports for the scenario of `--print-scenario`.
#[test]
fn a_row_is_what_sim_run_says_of_its_scenario() {
    let directory = scratch("sweep-rows");
    let swept = wholes(&stdout(&["sweep", "sweep.toml", "--format", "csv"]));
    for row in &swept {
        let number = at(row, "combination");
        let scenario = stdout(&["sweep", "sweep.toml", "--print-scenario", number]);
        let path = directory.join("one.toml");
        fs::write(&path, scenario).unwrap();
        let path = path.to_str().unwrap();
        let alone = rows(&stdout(&["sim", "run", path, "--format", "csv"]));
        assert_eq!(alone.len(), 1);
        for (name, value) in &alone[0] {
            assert_eq!(at(row, name), value, "combination {number}: {name}");
        }
        let report = json(&["sim", "run", path, "--format", "json", "--reproducible"]);
        assert_eq!(report["scenario_hash"], at(row, "scenario_hash"));
    }
    assert_eq!(swept.len(), 16);
    let (code, stderr) = ended(&["sweep", "sweep.toml", "--print-scenario", "17"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("there are 1 to 16"), "{stderr}");
}

#[test]
fn json_has_the_rows_of_the_csv() {
    let report = json(&["sweep", "sweep.toml", "--format", "json"]);
    assert_eq!(
        keys(&report).len(),
        [
            "version",
            "scenario_hash",
            "title",
            "combinations",
            "failed",
            "swept",
            "rows"
        ]
        .len()
    );
    assert_eq!(report["combinations"], 16);
    assert_eq!(report["failed"], 0);
    let csv = rows(&stdout(&["sweep", "sweep.toml", "--format", "csv"]));
    let lines = report["rows"].as_array().unwrap();
    // The whole and four processes each.
    assert_eq!((lines.len(), csv.len()), (16 * 5, 16 * 5));
    for (line, row) in lines.iter().zip(&csv) {
        for (name, text) in row {
            let same = match &line[name] {
                Value::Null => text.is_empty(),
                Value::String(value) => value == text,
                Value::Bool(value) => value.to_string() == *text,
                value => number(value) == text.parse::<f64>().unwrap(),
            };
            assert!(same, "{name}: {} and {text}", line[name]);
        }
        assert_eq!(keys(line).len(), row.len());
    }
    assert_eq!(lines[0]["engine.depth"], 1);
    assert_eq!(lines[0]["workload.size"], "4KiB");
    assert_eq!(lines[0]["engine.merge"], true);
    assert_eq!(lines[1]["origin"], "process 1");
}

#[test]
fn origins_and_programs_have_rows_where_there_are_several() {
    let csv = stdout(&[
        "sweep",
        "programs.toml",
        "--vary",
        "host.read_ahead=32KiB,128KiB",
        "--format",
        "csv",
    ]);
    let names: Vec<String> = rows(&csv)
        .iter()
        .map(|row| format!("{} {}", at(row, "combination"), at(row, "origin")))
        .collect();
    // Two programs of one process and one of two, under two schedulers.
    let each = [
        "all",
        "par-read 1",
        "par-read 2",
        "multi-threads",
        "process 3",
        "process 4",
    ];
    let expected: Vec<String> = (1..=4)
        .flat_map(|number| each.map(|name| format!("{number} {name}")))
        .collect();
    assert_eq!(names, expected);
    for row in rows(&csv) {
        let has = |name: &str| !at(&row, name).is_empty();
        let origin = at(&row, "origin");
        assert_eq!(has("time_s"), !origin.starts_with("process"), "{origin}");
        assert!(has("response_p99_ms"), "{origin}");
        assert_eq!(has("read_iops"), !origin.starts_with("process"), "{origin}");
        assert!(has("scheduler") && has("host.read_ahead"));
    }
    // The table has a row for each program.
    let vary = ["--vary", "host.read_ahead=32KiB,128KiB"];
    let table = stdout(&[&["sweep", "programs.toml"][..], &vary].concat());
    for name in ["who", "par-read 1", "par-read 2", "multi-threads"] {
        assert!(table.contains(name), "no {name} in {table}");
    }
    assert!(!table.contains("process 3"), "{table}");
    let alone = stdout(&["sweep", "sweep.toml"]);
    assert!(!alone.contains("who"), "{alone}");
    // One process alone has no row beside the whole.
    let one = ["--set", "workload.processes=1", "--format", "csv"];
    let csv = stdout(&[&["sweep", "sweep.toml"][..], &one].concat());
    assert_eq!(rows(&csv).len(), 16);
}

#[test]
fn each_key_alone_goes_around_the_scenario_as_it_stands() {
    let directory = scenario(
        "sweep-each",
        "[sweep]
         mode = \"each\"
         pairs = [[\"engine.depth\", \"workload.size\"]]
         engine.depth = [1, 2, 4]
         workload.size = [\"64KiB\", \"4096B\"]
         seed = [7, 8]
         workload.processes = [1, 16]
         drive.override.cache.enabled = [true, false]",
    );
    let (code, csv, stderr) = within(&directory, &["sweep", "s.toml", "--format", "csv"]);
    assert_eq!(code, Some(0), "{stderr}");
    let names = [
        "engine.depth",
        "workload.size",
        "seed",
        "workload.processes",
        "drive.override.cache.enabled",
    ];
    let mut rows = wholes(&csv);
    rows.retain(|row| at(row, "scheduler") == "noop");
    let chosen: Vec<String> = rows
        .iter()
        .map(|row| names.map(|name| at(row, name)).join(" "))
        .collect();
    // The default size is in its list, in another spelling. The default seed 1 and the 4 processes are not in their
    // lists. The drive's own value for the cache is unknown, so the first value of the list stands for it.
    let expected = [
        "1 4096B 1 4 true",
        "2 4096B 1 4 true",
        "4 4096B 1 4 true",
        "1 64KiB 1 4 true",
        "1 4096B 7 4 true",
        "1 4096B 8 4 true",
        "1 4096B 1 1 true",
        "1 4096B 1 16 true",
        "1 4096B 1 4 false",
        "2 64KiB 1 4 true",
        "4 64KiB 1 4 true",
    ];
    assert_eq!(chosen, expected);
}

/// Without schedulers the scenario is none by itself: the first of those swept stands for them.
#[test]
fn what_the_scenario_lacks_comes_from_the_sweep() {
    let directory = scratch("sweep-lacks");
    let text = "drive.profile = 'atlas10k'
        workload.requests = 20
        [sweep]
        mode = 'each'
        schedulers = ['clook', 'noop']
        engine.depth = [1, 2]";
    fs::write(directory.join("s.toml"), text).unwrap();
    let (code, list, stderr) = within(&directory, &["sweep", "s.toml", "--list"]);
    assert_eq!(code, Some(0), "{stderr}");
    let rows: Vec<Vec<&str>> = list
        .lines()
        .skip(3)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows,
        [["1", "clook", "1"], ["2", "noop", "1"], ["3", "clook", "2"]]
    );
}

#[test]
fn the_command_line_sweeps_too() {
    let args = [
        "sweep",
        "small.toml",
        "--vary",
        "engine.depth=1,3",
        "--list",
    ];
    let list = stdout(&args);
    assert!(list.contains("4 combinations"), "{list}");
    // In place of the values of the file, where these stand.
    let args = [
        "sweep",
        "sweep.toml",
        "--vary",
        "seed=[5]",
        "--vary",
        "engine.depth=2",
        "--list",
    ];
    let list = stdout(&args);
    assert!(
        list.contains("8 combinations, engine.depth 2, seed 5"),
        "{list}"
    );
    // A list of schedulers, whose own commas are within parentheses.
    let args = [
        "sweep",
        "small.toml",
        "--vary",
        "schedulers=noop,stream(clook):slice=50ms",
        "--list",
    ];
    let list = stdout(&args);
    assert!(list.contains("stream(clook):slice=50ms"), "{list}");
}

#[test]
fn a_thousand_combinations_come_in_their_order() {
    let seeds = (1..=250)
        .map(|seed| seed.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let sweep = format!("[sweep]\nengine.depth = [1, 4]\nseed = [{seeds}]");
    let directory = scenario("sweep-thousand", &sweep);
    let small = ["--set", "run.requests=8", "--set", "workload.processes=1"];
    let args = [&["sweep", "s.toml", "--format", "csv"][..], &small].concat();
    let (code, csv, stderr) = within(&directory, &args);
    assert_eq!(code, Some(0), "{stderr}");
    let rows = rows(&csv);
    assert_eq!(rows.len(), 1000);
    for (place, row) in rows.iter().enumerate() {
        assert_eq!(at(row, "combination"), (place + 1).to_string());
        assert_eq!(at(row, "seed"), (place / 2 % 250 + 1).to_string());
        assert_eq!(at(row, "scheduler"), ["noop", "sptf"][place % 2]);
        assert_eq!(at(row, "requests"), "8");
    }
}

#[test]
fn one_value_is_a_sweep_of_one() {
    let directory = scenario(
        "sweep-one",
        "[sweep]\nengine.depth = 2\nschedulers = [\"noop\"]",
    );
    let (code, out, stderr) = within(&directory, &["sweep", "s.toml", "--out", "d/"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        out.contains("1 combination, engine.depth 2, schedulers noop"),
        "{out}"
    );
    let mut names: Vec<String> = fs::read_dir(directory.join("d"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["s.csv", "s.json", "s.svg"]);
    let csv = fs::read_to_string(directory.join("d/s.csv")).unwrap();
    assert_eq!(wholes(&csv).len(), 1);
}

/// The file has the text of the standard output. No reader has to parse the table.
#[test]
fn what_goes_to_a_file_is_what_is_printed() {
    let directory = scenario("sweep-out", "[sweep]\nengine.depth = [1, 2]");
    for format in ["csv", "json"] {
        let (_, printed, _) = within(&directory, &["sweep", "s.toml", "--format", format]);
        let name = format!("s.{format}");
        let (code, table, _) = within(&directory, &["sweep", "s.toml", "--out", &name]);
        assert_eq!(code, Some(0));
        assert!(table.contains("4 combinations"), "{table}");
        assert_eq!(fs::read_to_string(directory.join(&name)).unwrap(), printed);
    }
    // The option decides on the format, with any name of the file.
    let args = ["sweep", "s.toml", "--out", "s.txt", "--format", "csv"];
    assert_eq!(within(&directory, &args).0, Some(0));
    let same = |name: &str| fs::read(directory.join(name)).unwrap();
    assert_eq!(same("s.txt"), same("s.csv"));
    // No file can be made beside a device.
    let args = ["sweep", "s.toml", "--out", "/dev/null", "--format", "csv"];
    assert_eq!(within(&directory, &args).0, Some(0));
    assert!(!Path::new("/dev/null.partial").exists());
    let (code, _, stderr) = within(&directory, &["sweep", "s.toml", "--out", "none/s.csv"]);
    assert_eq!(code, Some(4), "{stderr}");
    // The sweeps leave no journals and no partial files.
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 4);
}

#[test]
fn a_table_names_what_varies() {
    let out = stdout(&["sweep", "sweep.toml"]);
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("A small sweep"));
    assert_eq!(
        lines.next(),
        Some("16 combinations, drive atlas10k, firmware fifo")
    );
    let heading = out.lines().find(|line| line.contains("IOPS")).unwrap();
    let words: Vec<&str> = heading.split_whitespace().collect();
    assert_eq!(
        words[..7],
        [
            "#",
            "engine.depth",
            "workload.size",
            "engine.merge",
            "engine.merge_max",
            "scheduler",
            "IOPS"
        ]
    );
}

#[test]
fn pictures_show_what_was_asked_for() {
    let directory = scratch("sweep-pictures");
    let draw = |args: &[&str]| {
        let path = directory.join("p.svg");
        let all = [
            &["sweep", "sweep.toml", "--plot", path.to_str().unwrap()],
            args,
        ]
        .concat();
        stdout(&all);
        fs::read_to_string(&path).unwrap()
    };
    let has = |picture: &str, texts: &[&str]| {
        for text in texts {
            assert!(picture.contains(text), "no {text} in {picture}");
        }
    };
    // Of equal numbers of values the first along the axis, and lines for the schedulers.
    let picture = draw(&[]);
    let said = [
        ">A small sweep<",
        ">throughput (MB/s)<",
        ">by scheduler<",
        ">engine.depth<",
        ">size 4KiB<",
        ">size 64KiB<",
        ">merge true<",
        ">noop<",
        ">sptf<",
    ];
    has(&picture, &said);
    // Names may be shortened to their ends.
    let picture = draw(&[
        "--x",
        "size",
        "--series",
        "merge",
        "--panel",
        "depth",
        "--only",
        "scheduler=sptf",
        "--metric",
        "iops,head_seek_pct",
    ]);
    let said = [
        ">iops (1/s)<",
        ">head seek (%)<",
        ">by engine.merge<",
        ">true<",
        ">false<",
        ">workload.size<",
        ">depth 4<",
        "shown: scheduler=sptf",
    ];
    has(&picture, &said);
    assert!(!picture.contains(">noop<"));
    // Each key alone has a chart of its own.
    let picture = draw(&["--set", "sweep.mode=each", "--set", "schedulers=noop"]);
    has(
        &picture,
        &[
            ">throughput (MB/s), each key alone<",
            ">engine.depth<",
            ">workload.size<",
            ">engine.merge<",
        ],
    );
    // Drives that the scenario itself crosses have charts apart, lines are the schedulers.
    let both = "drive.profile=atlas10k,cheetah9lp";
    let picture = draw(&["--set", "sweep.mode=each", "--set", both]);
    let said = [
        ">throughput (MB/s), drive atlas10k, each key alone<",
        ">throughput (MB/s), drive cheetah9lp, each key alone<",
        ">by scheduler<",
        ">noop<",
    ];
    has(&picture, &said);
    assert!(!picture.contains(">noop, "));
    let rows = ["--x", "depth", "--panel", "size", "--rows", "drive"];
    let picture = draw(&[&["--set", both][..], &rows].concat());
    let said = [
        ">throughput (MB/s), drive atlas10k<",
        ">throughput (MB/s), drive cheetah9lp<",
    ];
    has(&picture, &said);
    // Schedulers alone are bars.
    let path = directory.join("bars.svg");
    let path = path.to_str().unwrap();
    stdout(&[
        "sweep",
        "small.toml",
        "--vary",
        "schedulers=noop,sstf",
        "--set",
        "engine.depth=1",
        "--plot",
        path,
    ]);
    has(
        &fs::read_to_string(path).unwrap(),
        &[">schedulers<", ">sstf<"],
    );
}

/// More than a picture can show is no reason not to run where nobody asked for a picture.
#[test]
fn a_directory_is_filled_without_a_picture_that_cannot_be_read() {
    let directory = scenario(
        "sweep-no-picture",
        "[sweep]
         engine.depth = \"1,2,3,4,5\"
         workload.read_share = \"0,0.25,0.5,0.75,1\"
         workload.processes = \"1,2,3,4,5\"
         run.requests = \"1,2,3\"
         seed = \"1,2\"",
    );
    let metrics = "iops,fairness,issued,merged";
    let args = [
        "sweep",
        "s.toml",
        "--set",
        "schedulers=noop",
        "--out",
        "d/",
        "--metric",
        metrics,
    ];
    let (code, _, stderr) = within(&directory, &args);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("note: no picture: a picture would have 120 charts of 5 lines"),
        "{stderr}"
    );
    assert!(directory.join("d/s.csv").exists() && !directory.join("d/s.svg").exists());
}
