//! Traces: replayed, converted, looked at.

use super::common::{data, ended, headtime, json, number, run, scratch, stdout};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_trace_is_replayed_in_every_way() {
    let replay = |extra: &[&str]| {
        let mut args = vec![
            "trace",
            "replay",
            "tiny.trace",
            "-p",
            "atlas10k",
            "--format",
            "json",
        ];
        args.extend(extra);
        json(&args)["runs"][0].clone()
    };
    let open = replay(&[]);
    assert_eq!(open["requests"], 8);
    // The recorded arrivals span 41 ms.
    assert!(number(&open["simulated_s"]) > 0.041);
    let slow = replay(&["--speed", "0.5"]);
    assert!(number(&slow["simulated_s"]) > 0.082);
    let devices: Vec<&str> = open["per_origin"]
        .as_array()
        .unwrap()
        .iter()
        .map(|origin| origin["device"].as_str().unwrap())
        .collect();
    assert_eq!(devices, ["0", "1"]);
    assert_eq!(replay(&["--device", "1"])["requests"], 3);
    assert_eq!(replay(&["--device", "0,1", "--closed", "1"])["requests"], 8);
    let closed = replay(&["--closed", "1"]);
    assert_eq!(number(&closed["head_time"]["idle"]), 0.0);
    assert_eq!(number(&closed["queue_ms"]["max"]), 0.0);
    // In the scenario's own way, beside the scenario.
    let path = data().join("replay.toml");
    let report = json(&["sim", "run", path.to_str().unwrap(), "--format", "json"]);
    assert_eq!(report["runs"][0]["requests"], 8);
}

#[test]
fn a_depth_beyond_the_profile_is_said() {
    let output = run(&[
        "trace",
        "replay",
        "tiny.trace",
        "-p",
        "atlas10k",
        "--depth",
        "4",
    ]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("note: atlas10k: its profile says that it takes 1 commands at a time"),
        "{text}"
    );
}

#[test]
fn the_table_of_a_replay_does_not_call_the_trace_fair() {
    let replay = ["trace", "replay", "tiny.trace", "-p", "atlas10k"];
    assert!(!stdout(&replay).contains("fair"));
    assert!(stdout(&["sim", "run", "small.toml"]).contains("  fair  "));
}

#[test]
fn an_open_replay_that_the_drive_cannot_keep_up_with_is_noted() {
    let file = scratch("overload").join("overload.trace");
    let lines = (0..3_000).map(|n| format!("{}.0 0 {} 8 1\n", n / 10, n * 7_919 % 8_000_000));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let noted = |more: &[&str]| {
        let replay = ["trace", "replay", file.to_str().unwrap(), "-p", "atlas10k"];
        let (code, said) = ended(&[&replay, more].concat());
        assert_eq!(code, 0, "{said}");
        said.contains("noop: all requests arrive within") && said.contains("(--closed N)")
    };
    assert!(noted(&["--scheduler", "noop"]));
    assert!(!noted(&["--scheduler", "noop", "--speed", "0.01"]));
    assert!(!noted(&["--scheduler", "noop", "--closed", "1000"]));
}

#[test]
fn conversions_go_both_ways() {
    let directory = scratch("convert");
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (csv, back) = (file("tiny.csv"), file("tiny.trace"));
    stdout(&["trace", "convert", "tiny.trace", &csv]);
    // Options may stand between the files.
    stdout(&["trace", "convert", &csv, "--to", "disksim", &back]);
    let printed = stdout(&["trace", "convert", "tiny.trace", "--to", "csv", "-"]);
    let wanted = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(printed, wanted);
    // A redirected file is neither replaced nor written from its beginning.
    for name in ["-", "/dev/stdout"] {
        let log = directory.join("log");
        std::fs::write(&log, "before\n").unwrap();
        let appended = std::fs::File::options().append(true).open(&log).unwrap();
        let args = ["trace", "convert", "tiny.trace", "--to", "csv", name];
        let status = headtime(&args)
            .stdout(appended)
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text, format!("before\n{wanted}"), "{name}");
    }
    let comment_free = |path: &str| -> String {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let original = data().join("tiny.trace");
    assert_eq!(
        comment_free(&back),
        comment_free(original.to_str().unwrap())
    );
    let (code, alone) = ended(&["trace", "convert", "tiny.trace"]);
    assert_eq!(code, 2);
    assert!(alone.contains("the file to write is missing"), "{alone}");
    let infos = [
        json(&["trace", "info", "tiny.trace", "--format", "json"]),
        json(&["trace", "info", &csv, "--format", "json"]),
    ];
    assert_eq!(infos[0]["total"], infos[1]["total"]);
    assert_eq!(infos[0]["devices"], infos[1]["devices"]);
}

#[test]
fn a_conversion_is_compressed_if_its_name_says_so() {
    let directory = scratch("convert-packed");
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let plain = file("tiny.csv");
    stdout(&["trace", "convert", "tiny.trace", &plain]);
    let info = |path: &str| json(&["trace", "info", path, "--format", "json"]);
    for (name, format) in [("tiny.csv.gz", "csv"), ("tiny.trace.GZ", "disksim")] {
        let packed = file(name);
        stdout(&["trace", "convert", "tiny.trace", &packed]);
        let bytes = std::fs::read(&packed).unwrap();
        assert_eq!(bytes[..2], [0x1f, 0x8b], "{name}");
        let found = info(&packed);
        assert_eq!(found["compression"], "gzip");
        assert_eq!(found["format"], format);
        assert_eq!(found["total"], info(&plain)["total"]);
        stdout(&["trace", "convert", "tiny.trace", &packed]);
        assert_eq!(bytes, std::fs::read(&packed).unwrap());
    }
    let packed = file("tiny.trace.zst");
    let (code, text) = ended(&["trace", "convert", "tiny.trace", &packed]);
    assert_eq!(code, 2);
    assert!(text.contains("allowed is .gz"), "{text}");
    assert!(!Path::new(&packed).exists());
}

#[test]
fn a_conversion_to_a_name_of_no_known_format_is_refused() {
    let directory = scratch("convert-unknown");
    let path = directory.join("tiny.xlsx");
    let out = path.to_str().unwrap();
    let (code, text) = ended(&["trace", "convert", "tiny.trace", out]);
    assert_eq!(code, 2);
    assert!(
        text.contains(".csv (csv) or .trace, .disksim or .ascii (disksim)"),
        "{text}"
    );
    assert!(!path.exists());
    stdout(&["trace", "convert", "tiny.trace", out, "--to", "csv"]);
    assert!(path.exists());
}

#[test]
fn the_standard_input_is_a_trace_for_each_command() {
    let directory = scratch("stdin");
    let out = directory.join("out.csv");
    let out = out.to_str().unwrap();
    let plain = std::fs::read(data().join("tiny.trace")).unwrap();
    let packed = directory.join("tiny.trace.gz");
    stdout(&["trace", "convert", "tiny.trace", packed.to_str().unwrap()]);
    let packed = std::fs::read(packed).unwrap();
    for (args, input) in [
        (vec!["trace", "info", "-"], &plain),
        (vec!["trace", "info", "-"], &packed),
        (vec!["trace", "convert", "-", out], &packed),
        (vec!["trace", "replay", "-", "-p", "atlas10k"], &plain),
    ] {
        let mut child = headtime(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
    }
    let (code, text) = ended(&["trace", "info", "-"]);
    assert_eq!(code, 3);
    assert!(
        text.contains("standard input: no request: it is empty; leave it out"),
        "{text}"
    );
    let (code, text) = ended(&["trace", "replay", "-", "-", "-p", "atlas10k"]);
    assert_eq!(code, 3);
    assert!(
        text.contains("standard input (-) is given twice, and can be read once"),
        "{text}"
    );
}

#[test]
fn several_files_and_parts_of_them_are_replayed_and_said_in_the_scenario() {
    let info = |extra: &[&str]| {
        let mut args = vec!["trace", "info", "--format", "json", "tiny.trace"];
        args.extend(extra);
        json(&args)["total"]["requests"].clone()
    };
    assert_eq!(info(&[]), 8);
    assert_eq!(info(&["tiny.trace"]), 16);
    assert_eq!(info(&["--first", "3"]), 3);
    assert_eq!(info(&["tiny.trace", "--from", "0ms", "--for", "1ns"]), 2);
    let (code, text) = ended(&["trace", "info", "tiny.trace", "--from", "1h"]);
    assert_eq!(code, 3);
    assert!(
        text.contains("none of its 8 requests is in the part"),
        "{text}"
    );
    let args = [
        "trace",
        "replay",
        "tiny.trace",
        "tiny.trace",
        "-p",
        "atlas10k",
        "--from",
        "1ms",
        "--for",
        "1s",
        "--first",
        "5",
        "--lenient",
    ];
    let scenario = stdout(&[&args[..], &["--print-scenario"]].concat());
    assert_eq!(scenario.matches("/tiny.trace\"").count(), 2, "{scenario}");
    for line in [
        "lenient = true",
        "from = \"1ms\"",
        "for = \"1s\"",
        "first = 5",
    ] {
        assert!(scenario.contains(line), "{line} in {scenario}");
    }
    let report = json(&[&args[..], &["--format", "json"]].concat());
    assert_eq!(report["runs"][0]["requests"], 5);
    // Each kind of file has its line.
    let kinds = scratch("kinds");
    let other = kinds.join("other.txt");
    std::fs::write(&other, "8,0 1 1 0.5 7 Q R 8 + 8 [p]\n").unwrap();
    let text = stdout(&["trace", "info", "tiny.trace", other.to_str().unwrap()]);
    assert!(
        text.contains("\nformat       disksim, times in ms (tiny.trace)\n"),
        "{text}"
    );
    assert!(
        text.contains("\nformat       blkparse, arrivals are queue events ("),
        "{text}"
    );
    // A scenario finds its files in its own folder.
    let directory = scratch("several");
    std::fs::copy(data().join("tiny.trace"), directory.join("tiny.trace")).unwrap();
    let path = directory.join("two.toml");
    std::fs::write(&path, scenario).unwrap();
    let report = json(&["sim", "run", path.to_str().unwrap(), "--format", "json"]);
    assert_eq!(report["runs"][0]["requests"], 5);
}

#[test]
fn odd_lines_are_named_by_number_and_counted() {
    let directory = scratch("odd-lines");
    let path = directory.join("bio.txt");
    let text = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.5 fio 9 sda W 8 4096 1.0\n0.6 ? 0 R 0 0 1.0\n";
    std::fs::write(&path, text).unwrap();
    let args = [
        "trace",
        "info",
        path.to_str().unwrap(),
        "--trace-format",
        "biosnoop",
    ];
    let (code, said) = ended(&args);
    assert_eq!(code, 3);
    assert!(
        said.contains("line 3, column 5: the process is `?`"),
        "{said}"
    );
    assert!(said.contains("; --lenient passes over odd lines"), "{said}");
    let lenient = [&args[..], &["--lenient"]].concat();
    let (code, said) = ended(&lenient);
    assert_eq!(code, 0);
    assert!(
        said.contains("bio.txt: 1 odd line was passed over:\n"),
        "{said}"
    );
    assert!(
        said.contains("line 3, column 5: the process is `?`"),
        "{said}"
    );
    let report = json(&[&lenient[..], &["--format", "json"]].concat());
    assert_eq!(
        (&report["odd_lines"], &report["total"]["requests"]),
        (&1.into(), &1.into())
    );
    // Without the name of the format the error has it.
    let (_, said) = ended(&args[..3]);
    assert!(said.contains("its first lines fit biosnoop"), "{said}");
}

#[test]
fn the_busiest_processes_are_shown_by_name_and_names_are_kept_by_a_conversion() {
    let directory = scratch("names");
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (path, csv, disksim) = (file("events.txt"), file("names.csv"), file("names.trace"));
    let event = |process: u64, name: &str, sector: u64| {
        format!("8,0 1 1 0.5 {process} Q R {sector} + 8 [{name}]\n")
    };
    let mut text: String = (1..=12)
        .map(|number| event(100 + number, "z rd,int\u{1b}", number * 1000))
        .collect();
    text.push_str(&event(7, "sh", 8));
    text.push_str(&event(7, "dd", 16));
    text.push_str(&event(105, "<...>", 5008));
    std::fs::write(&path, text).unwrap();
    let shown = stdout(&["trace", "info", &path]);
    let at = shown.find("\n\nprocess  name").expect(&shown);
    let table: Vec<Vec<&str>> = shown[at..]
        .trim()
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(
        table[0],
        [
            "process",
            "name",
            "requests",
            "read %",
            "sequential %",
            "mean size"
        ]
    );
    assert_eq!(table[1], ["7", "dd", "2", "100.0", "50.0", "4096 B"]);
    assert_eq!(table[2][..3], ["105", "z rd,int\\u{1b}", "2"]);
    assert_eq!(table.len(), 11);
    stdout(&["trace", "convert", &path, &csv]);
    for path in [&path, &csv] {
        let info = json(&["trace", "info", path, "--format", "json"]);
        let busiest = info["busiest_processes"].as_array().unwrap();
        assert_eq!((busiest.len(), &info["processes"]), (13, &13.into()));
        assert_eq!(busiest[0]["name"], "dd");
        assert_eq!(busiest[12]["process"], 112);
        assert_eq!(busiest[12]["name"], "z rd,int\\u{1b}");
    }
    let (code, said) = ended(&["trace", "convert", &csv, &disksim]);
    assert_eq!(code, 0);
    let says = "the format has no place for 15 names of processes";
    assert!(said.contains(says), "{said}");
    // A trace without processes has no such table.
    assert!(!stdout(&["trace", "info", &disksim]).contains("\nprocess  "));
    assert!(
        json(&["trace", "info", &disksim, "--format", "json"])["busiest_processes"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

/// A trace whose writes miss the sectors of a 512e drive. `info` counts these writes, a replay reports them, and the
/// head time has their cost. On a drive of 512-byte sectors they are like other writes.
#[test]
fn writes_that_miss_the_sectors_of_a_drive_are_counted_and_have_their_cost() {
    let directory = scratch("off-4k");
    let path = directory.join("vm.trace");
    let lines = (0..60_u64).map(|number| {
        // Each second write is 512 bytes off; so is one read.
        let block = number * 100_000 * 8 + number % 2;
        format!("{}.0 0 {block} 8 {}\n", number * 50, u8::from(number == 1))
    });
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let path = path.to_str().unwrap();
    let total = &json(&["trace", "info", path, "--format", "json"])["total"];
    assert_eq!(
        (&total["reads_off_4k"], &total["writes_off_4k"]),
        (&1.into(), &29.into())
    );
    let text = stdout(&["trace", "info", path]);
    let line = text
        .lines()
        .find(|line| line.starts_with("off 4 KiB"))
        .unwrap();
    assert!(
        line.contains("reads 1 (100.0 %), writes 29 (49.2 %)"),
        "{line}"
    );
    let replay = |drive: &str| {
        let mut args = vec!["trace", "replay", path, "-p", drive, "--format", "json"];
        // Writes that are still in the buffer at the end of the run would not show.
        args.extend(["--set", "drive.override.cache.write_back=off"]);
        let output = run(&args);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let time = number(&report["runs"][0]["head_time"]["read_modify_write"]);
        (String::from_utf8(output.stderr).unwrap(), time)
    };
    let (said, time) = replay("exos-x18");
    let says = "29 of 59 writes do not begin and end with its sectors of 4096 bytes";
    assert!(said.contains(says), "{said}");
    // A turn each, of 7200 a minute.
    let turns = time * 120.0;
    assert!((turns - 29.0).abs() < 0.1, "{turns}");
    assert_eq!(replay("wd5000aaks"), (String::new(), 0.0));
    // A trace without such writes.
    let aligned = directory.join("aligned.trace");
    std::fs::write(&aligned, "0.0 0 800 8 0\n1.0 0 80 16 1\n").unwrap();
    let text = stdout(&["trace", "info", aligned.to_str().unwrap()]);
    assert!(text.contains("off 4 KiB    none: all"), "{text}");
}
