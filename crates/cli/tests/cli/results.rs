//! What comes out: fields of the JSON, files, and that it is always the same.

use super::common::{data, headtime, run, scratch, stdout};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_report_has_its_fields() {
    let report = json(&["sim", "run", "small.toml", "--format", "json"]);
    for key in ["version", "seed", "scenario_hash", "host", "runs"] {
        assert!(report.get(key).is_some(), "{key}");
    }
    assert_eq!(report["seed"], 7);
    let mut host = keys(&report["host"]);
    host.sort_unstable();
    assert_eq!(host, ["requests_per_wall_s", "wall_s"]);
    let runs = report["runs"].as_array().unwrap();
    let made: Vec<(&str, u64)> = runs
        .iter()
        .map(|run| {
            (
                run["scheduler"].as_str().unwrap(),
                run["depth"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(made, [("noop", 1), ("sstf", 1), ("noop", 2), ("sstf", 2)]);
    for run in runs {
        for key in [
            "scheduler",
            "requests",
            "simulated_s",
            "throughput_mb_s",
            "iops",
            "response_ms",
            "queue_ms",
            "device_ms",
            "quiet_ms",
            "head_time",
            "waits",
            "per_origin",
            "fairness",
        ] {
            assert!(run.get(key).is_some(), "{key}");
        }
        for spread in ["response_ms", "queue_ms", "device_ms", "quiet_ms"] {
            let mut names = keys(&run[spread]);
            names.sort_unstable();
            assert_eq!(names, ["max", "mean", "p50", "p90", "p95", "p99", "p999"]);
        }
        let parts = run["head_time"].as_object().unwrap();
        let sum: f64 = parts.values().map(number).sum();
        let all = number(&run["simulated_s"]);
        assert!((sum - all).abs() < 1e-6, "parts sum to {sum}, not {all}");
        assert_eq!(run["requests"], 400);
        assert!((number(&run["iops"]) - 400.0 / all).abs() < 1e-3);
        let origins = run["per_origin"].as_array().unwrap();
        assert_eq!(origins.len(), 4);
        let requests: u64 = origins
            .iter()
            .map(|origin| origin["requests"].as_u64().unwrap())
            .sum();
        assert_eq!(requests, 400);
        let (response, queue, device) = (
            number(&run["response_ms"]["mean"]),
            number(&run["queue_ms"]["mean"]),
            number(&run["device_ms"]["mean"]),
        );
        assert!(
            (response - queue - device).abs() < 1e-5,
            "{response} {queue} {device}"
        );
    }
}

#[test]
fn the_same_command_gives_the_same_bytes() {
    for format in ["table", "json", "csv"] {
        let command = |jobs: &'static str| {
            stdout(&[
                "sim",
                "run",
                "small.toml",
                "--reproducible",
                "--format",
                format,
                "--jobs",
                jobs,
            ])
        };
        assert_eq!(command("1"), command("3"), "{format}");
    }
    let report = json(&[
        "sim",
        "run",
        "small.toml",
        "--format",
        "json",
        "--reproducible",
    ]);
    assert!(report.get("host").is_none());
    let directory = scratch("same-bytes");
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let mut written = Vec::new();
    for number in ["1", "2"] {
        let (plot, log) = (
            file(&format!("{number}.svg")),
            file(&format!("{number}.log")),
        );
        stdout(&[
            "sim",
            "run",
            "small.toml",
            "-s",
            "sstf",
            "--set",
            "engine.depth=2",
            "--plot",
            &plot,
            "--log",
            &log,
        ]);
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        written.push((read(&plot), read(&log)));
    }
    assert_eq!(written[0], written[1]);
    assert!(written[0].0.starts_with("<svg "));
    assert!(written[0].1.lines().count() > 400);
}

#[test]
fn a_log_says_what_it_is_a_log_of() {
    let path = scratch("log").join("run.log");
    let path = path.to_str().unwrap();
    let report = json(&[
        "sim",
        "run",
        "small.toml",
        "-s",
        "deadline:fifo_batch=4",
        "--set",
        "engine.depth=2",
        "--set",
        "engine.merge_max=64KiB",
        "--set",
        "drive.belief=cheetah9lp",
        "--log",
        path,
        "--format",
        "json",
    ]);
    let log = std::fs::read_to_string(path).unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("headtime-log 2"));
    let settings: Vec<&str> = lines.take_while(|line| line.starts_with("# ")).collect();
    let text = |key: &str| report[key].as_str().unwrap();
    let expected = [
        format!("# version {}", text("version")),
        format!("# scenario_hash {}", text("scenario_hash")),
        "# seed 7".to_owned(),
        "# drive atlas10k".to_owned(),
        "# firmware fifo".to_owned(),
        "# noise true".to_owned(),
        "# scheduler deadline:fifo_batch=4".to_owned(),
        "# depth 2".to_owned(),
        "# merge true".to_owned(),
        "# merge_sectors_max 128".to_owned(),
        "# commit_ahead false".to_owned(),
        "# plug off".to_owned(),
        "# hide_processes false".to_owned(),
    ];
    assert_eq!(settings, expected);
    let records = headtime_engine::log::read(&log).collect::<Result<Vec<_>, _>>();
    let records = records.unwrap_or_else(|error| panic!("{error}"));
    assert!(records.len() > 800);
    assert_eq!(log.lines().last(), Some("# end"));
}

/// Writes the log of one run under a scheduler, and where it is.
fn log_of(name: &str, scheduler: &str, settings: &[&str]) -> std::path::PathBuf {
    let path = scratch(name).join("run.log");
    let mut args = vec!["sim", "run", "small.toml", "-s", scheduler];
    args.extend(["--set", "engine.depth=2", "--log", path.to_str().unwrap()]);
    for setting in settings {
        args.extend(["--set", setting]);
    }
    stdout(&args);
    path
}

#[test]
fn a_log_is_repeated_with_the_same_decisions() {
    for (scheduler, settings) in [
        ("noop", &[][..]),
        ("stream(deadline)", &[]),
        ("clairvoyant", &["engine.plug=true"]),
        ("sptf", &["drive.belief=cheetah9lp"]),
        // Not a drive that is shipped: the log has it whole.
        ("stream(sptf)", &["drive.override.rotation.rpm=10026"]),
        ("cfq", &["engine.commit_ahead=true", "engine.merge=false"]),
    ] {
        let path = log_of("replayed", scheduler, settings);
        let path = path.to_str().unwrap();
        let output = run(&["sim", "replay-log", path]);
        let (text, notes) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert!(output.status.success(), "{scheduler}: {notes}");
        assert!(text.ends_with(" decisions, identical\n"), "{text}");
        assert!(text.contains(" events in "), "{text}");
        assert_eq!(notes, "", "nothing is missing");
    }
}

#[test]
fn a_log_that_is_not_what_happened_is_told_from_one_that_is_cut() {
    let path = log_of("told", "deadline", &[]);
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let (at, issue) = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("I ") && line.contains(" R "))
        .nth(50)
        .unwrap();
    let replayed = |name: &str, text: &str| {
        let path = path.with_file_name(name);
        std::fs::write(&path, text).unwrap();
        let output = run(&["sim", "replay-log", path.to_str().unwrap()]);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    // Another decision, and one too few.
    let other = issue.replace(" R ", " W ");
    assert_ne!(&other, issue);
    let (code, _, told) = replayed("other.log", &log.replacen(issue, &other, 1));
    assert_eq!(code, Some(1), "{told}");
    let place = format!("line {}: the decisions differ", at + 1);
    assert!(told.contains(&place), "{told}");
    assert!(told.contains(&format!("  expected {other}\n  got      {issue}")));
    for before in &lines[at - 5..at] {
        assert!(told.contains(before), "{before} of {told}");
    }
    let without = log.replacen(&format!("{issue}\n"), "", 1);
    let (code, _, told) = replayed("without.log", &without);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("expected no decision") || told.contains("expected F"),
        "{told}"
    );
    // Whoever wrote it was stopped.
    let cut = &log[..log.len() * 2 / 3];
    let cut = cut
        .trim_end_matches('\n')
        .trim_end_matches(|sign| sign != ' ');
    let (code, text, told) = replayed("cut.log", cut);
    assert_eq!(code, Some(0), "{told}");
    assert!(text.ends_with("identical\n"), "{text}");
    let number = cut.lines().count();
    assert!(
        told.contains(&format!("cut off in line {number}, which was left out")),
        "{told}"
    );
    // Complete, and yet not to the end.
    let last = lines
        .iter()
        .rposition(|line| line.starts_with("F "))
        .unwrap();
    let short = format!("{}\n", lines[..last].join("\n"));
    let (code, _, told) = replayed("short.log", &short);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(&format!(
        "ends before what was decided next: {}",
        lines[last]
    )));
    let (code, _, told) = replayed("ended.log", &format!("{short}# end\n"));
    assert_eq!(code, Some(1), "{told}");
    // No log, and one of an engine that cannot be made.
    for (text, code, expected) in [
        ("hello\n", 3, "line 1: not a log"),
        ("headtime-log 2\nW 1\n", 3, "the setting `depth` is missing"),
        (
            &log.replace("scheduler deadline", "scheduler deadlin"),
            3,
            "did you mean",
        ),
        (
            &log.replace("scheduler deadline", "scheduler stream"),
            3,
            "has no `curve`",
        ),
        (
            &log.replace("scheduler deadline", "scheduler sptf"),
            3,
            "has no `belief`",
        ),
    ] {
        let (got, _, told) = replayed("wrong.log", text);
        assert_eq!(got, Some(code), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn the_hash_names_the_scenario_and_not_the_seed() {
    let hash = |extra: &[&str]| {
        let mut args = vec!["sim", "run", "small.toml", "--format", "json"];
        args.extend(extra);
        json(&args)["scenario_hash"].as_str().unwrap().to_owned()
    };
    let plain = hash(&[]);
    assert_eq!(plain.len(), 16);
    assert_eq!(plain, hash(&["--seed", "99"]));
    assert_ne!(plain, hash(&["--set", "engine.depth=3"]));
    assert_ne!(plain, hash(&["--set", "drive.override.rotation.rpm=10026"]));
}

#[test]
fn a_seed_changes_the_requests_and_repeats_have_an_interval() {
    let run = |extra: &[&str]| {
        let mut args = vec![
            "sim",
            "run",
            "small.toml",
            "-s",
            "noop",
            "--set",
            "engine.depth=1",
        ];
        args.extend(["--format", "json"]);
        args.extend(extra);
        json(&args)["runs"][0].clone()
    };
    assert_ne!(
        run(&[])["response_ms"],
        run(&["--seed", "8"])["response_ms"]
    );
    let repeated = run(&["--set", "run.repeats=3"]);
    assert_eq!(repeated["requests"], 1200);
    assert!(number(&repeated["ci95"]["iops"]) > 0.0);
    assert!(run(&[]).get("ci95").is_none());
}

#[test]
fn a_scenario_printed_is_the_same_scenario() {
    let directory = scratch("print");
    let path = directory.join("printed.toml");
    let path = path.to_str().unwrap();
    for args in [
        vec!["sim", "run", "small.toml"],
        vec![
            "trace",
            "replay",
            "tiny.trace",
            "-p",
            "atlas10k",
            "--closed",
            "3",
            "-s",
            "sstf",
            "--device",
            "0",
        ],
    ] {
        let mut print = args.clone();
        print.push("--print-scenario");
        let text = stdout(&print).replace(
            "\"tiny.trace\"",
            &format!("{:?}", data().join("tiny.trace")),
        );
        std::fs::write(path, text).unwrap();
        let mut run = args.clone();
        run.extend(["--reproducible", "--format", "json"]);
        assert_eq!(
            stdout(&run),
            stdout(&["sim", "run", path, "--reproducible", "--format", "json"])
        );
    }
}

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

/// A program that reads on and on from the one end of the drive keeps sstf there; the other's requests
/// wait at the far end for ever.
#[test]
fn who_starves_is_said() {
    let directory = scratch("starve");
    let path = directory.join("starve.toml");
    let scenario = "schedulers = [\"sstf\", \"noop\"]\n\
        [drive]\nprofile = \"atlas10k\"\n\
        [[workload]]\nprocesses = 4\nsize = \"64KiB\"\nrange = \"0B..64MiB\"\n\
        [[workload]]\nrange = \"8GB..9GB\"\n\
        [run]\nwarm_up = \"1s\"\nduration = \"21s\"\n";
    std::fs::write(&path, scenario).unwrap();
    let path = path.to_str().unwrap();
    let report = json(&["sim", "run", path, "--format", "json"]);
    let (sstf, noop) = (&report["runs"][0], &report["runs"][1]);
    // Never served, there all the same.
    let last = &sstf["per_origin"][4];
    assert_eq!(
        (&last["process"], &last["requests"]),
        (&5.into(), &0.into())
    );
    assert_eq!(last["unfinished"], 1);
    assert_eq!(number(&last["oldest_unfinished_ms"]), 21_000.0);
    assert_eq!(number(&sstf["oldest_unfinished_ms"]), 21_000.0);
    assert_eq!(sstf["unfinished"], 5);
    assert!(number(&sstf["fairness"]) < 0.81);
    assert!(number(&noop["oldest_unfinished_ms"]) < 1_000.0);
    let table = stdout(&["sim", "run", path]);
    let note = "\nsstf: 1 request of process 5 unfinished, the oldest for 21.0 s\n";
    assert!(table.ends_with(note), "{table}");
    let csv = stdout(&["sim", "run", path, "--format", "csv"]);
    assert!(csv.starts_with("scheduler,") && csv.contains(",unfinished,oldest_unfinished_ms,"));
}

#[test]
fn the_table_of_a_replay_does_not_call_the_trace_fair() {
    let replay = ["trace", "replay", "tiny.trace", "-p", "atlas10k"];
    assert!(!stdout(&replay).contains("fair"));
    assert!(stdout(&["sim", "run", "small.toml"]).contains("  fair  "));
}

#[test]
fn csv_has_a_line_per_run_and_as_many_fields_as_headings() {
    let text = stdout(&["sim", "run", "small.toml", "--format", "csv"]);
    let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(widths.len(), 5);
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    assert!(text.starts_with("scheduler,drive,depth,firmware,"));
}

#[test]
fn a_table_has_its_headings() {
    let text = stdout(&["sim", "run", "small.toml"]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("A small comparison"));
    assert_eq!(
        lines.next(),
        Some("drive atlas10k, firmware fifo, 400 requests, seed 7")
    );
    assert_eq!(lines.next(), Some(""));
    let groups = lines.next().unwrap();
    assert!(
        groups.contains("response ms") && groups.contains("head time %"),
        "{groups}"
    );
    assert!(
        lines.next().unwrap().starts_with("depth  scheduler"),
        "{text}"
    );
    assert_eq!(lines.count(), 4);
    // Not a terminal: nothing but letters.
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn conversions_go_both_ways() {
    let directory = scratch("convert");
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (csv, back) = (file("tiny.csv"), file("tiny.trace"));
    stdout(&["trace", "convert", "tiny.trace", &csv]);
    stdout(&["trace", "convert", &csv, &back]);
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
    let output = run(&["trace", "convert", "tiny.trace", &packed]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("allowed is .gz"), "{text}");
    assert!(!Path::new(&packed).exists());
}

#[test]
fn a_window_outside_the_run_is_refused() {
    let plot = scratch("window").join("picture.svg");
    let plot = plot.to_str().unwrap();
    let window = |window: &str, extra: &[&str]| {
        let mut args = vec!["sim", "run", "small.toml", "-s", "noop", "--plot", plot];
        args.extend(["--plot-window", window]);
        args.extend(extra);
        run(&args)
    };
    // Known before it runs, and after.
    for (extra, span) in [
        (&["--set", "run.duration=3s"][..], "0s..3s"),
        (&[][..], "0s..3."),
    ] {
        let output = window("400s..500s", extra);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(&format!("within {span}")), "{text}");
        assert!(!Path::new(plot).exists());
    }
    // A part of it is inside.
    assert!(window("1s..500s", &[]).status.success());
}

#[test]
fn a_picture_shows_no_more_runs_than_can_be_told_apart() {
    let plot = scratch("many").join("picture.svg");
    let plot = plot.to_str().unwrap();
    let draw = |schedulers: &str| {
        let args = ["sim", "run", "small.toml", "--plot", plot, "-s", schedulers];
        let output = run(&args);
        assert!(output.status.success());
        let stderr = String::from_utf8(output.stderr).unwrap();
        (std::fs::read_to_string(plot).unwrap(), stderr)
    };
    let (picture, stderr) = draw("noop,sstf,clook,sptf");
    assert!(!picture.contains("left out") && !stderr.contains("left out"));
    // At two depths each.
    let (picture, stderr) = draw("noop,sstf,clook,sptf,deadline");
    let note = "shows the first 8 of 10 runs; left out are sptf @2, deadline @2";
    assert!(stderr.contains(note), "{stderr}");
    assert!(picture.contains(note));
    // Over its panel, in the legend and at its bar.
    assert_eq!(picture.matches(">clook @2<").count(), 3);
    assert_eq!(picture.matches(">sptf @2<").count(), 0);
}

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
fn fuzzing_says_what_it_drew() {
    let text = stdout(&["sim", "fuzz", "--seed", "1", "--runs", "2"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("seed 1: ok, ") && lines[1].starts_with("seed 2: ok, "),
        "{text}"
    );
    assert_eq!(text, stdout(&["sim", "fuzz", "--seed", "1", "--runs", "2"]));
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
fn the_scenarios_of_the_documentation_are_scenarios() {
    let page = data().join("../../../../docs/scenario.md");
    let text = std::fs::read_to_string(page).unwrap();
    let directory = scratch("documentation");
    let blocks: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 3);
    for (number, block) in blocks.into_iter().enumerate() {
        let path = directory.join(format!("{number}.toml"));
        std::fs::write(&path, block).unwrap();
        stdout(&["sim", "run", path.to_str().unwrap(), "--print-scenario"]);
    }
}

/// Each `--set` of the page.
#[test]
fn the_settings_of_the_documentation_run() {
    let page = data().join("../../../../docs/scenario.md");
    let text = std::fs::read_to_string(page).unwrap();
    let directory = scratch("documentation-settings");
    let scenario = text.split("```toml\n").nth(1).unwrap();
    let scenario = scenario.split("```").next().unwrap();
    std::fs::write(directory.join("s.toml"), scenario).unwrap();
    std::fs::copy(data().join("tiny.trace"), directory.join("web.trace")).unwrap();
    let settings: Vec<&str> = text
        .split("`--set ")
        .skip(1)
        .map(|rest| rest.split('`').next().unwrap())
        .filter(|setting| *setting != "KEY=VALUE")
        .collect();
    assert!(settings.len() >= 5, "{settings:?}");
    let short = [
        "-s",
        "noop",
        "--set",
        "run.warm_up=0s",
        "--set",
        "run.duration=5s",
    ];
    for setting in settings {
        let mut args = vec!["sim", "run"];
        // The built-in scenario has one group of processes; the page's own has two.
        if setting.starts_with("workload.1") {
            args.push("s.toml");
        }
        let output = headtime(&args)
            .args(short)
            .args(["--set", setting])
            .current_dir(&directory)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "--set {setting}: {stderr}");
    }
}

#[test]
fn the_documentation_has_every_key() {
    let page = data().join("../../../../docs/scenario.md");
    let text = std::fs::read_to_string(page).unwrap();
    // What `--print-scenario` can write is what can be read.
    let printed = [
        stdout(&["sim", "run", "--print-scenario"]),
        stdout(&["sim", "run", "small.toml", "--print-scenario"]),
        stdout(&[
            "trace",
            "replay",
            "tiny.trace",
            "-p",
            "atlas10k",
            "--print-scenario",
        ]),
    ];
    let workloads = data().join("../../../../docs/workloads.md");
    let workloads = std::fs::read_to_string(workloads).unwrap();
    for printed in printed {
        let mut heading = "";
        for line in printed.lines() {
            if line.starts_with('[') {
                heading = line;
            }
            let Some((key, _)) = line.split_once(" = ") else {
                continue;
            };
            let key = format!("`{key}`");
            let is_there = text.contains(&key) || {
                // Keys of a benchmark are on the page of the benchmarks.
                heading == "[[program]]" && workloads.contains(&key)
            };
            assert!(is_there, "{heading} {key}");
        }
    }
    for scenario in ["small.toml", "programs.toml"] {
        let report = json(&["sim", "run", scenario, "--format", "json"]);
        let run = &report["runs"][0];
        let programs = run["programs"].as_array().into_iter().flatten();
        let programs = programs.flat_map(|program| keys(program));
        for key in keys(&report).into_iter().chain(keys(run)).chain(programs) {
            assert!(text.contains(&format!("`{key}`")), "{key}");
        }
    }
}

/// What programs report adds up with what the disk did, and hiding processes changes what is
/// scheduled, never what is reported of processes.
#[test]
fn programs_are_reported() {
    let run = |extra: &[&str]| {
        let mut args = vec!["sim", "run", "programs.toml", "--format", "json"];
        args.extend(extra);
        json(&args)
    };
    let report = run(&[]);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(run["plug"], true);
        assert_eq!(run["commit_ahead"], true);
        let programs = run["programs"].as_array().unwrap();
        let names: Vec<(&str, u64)> = programs
            .iter()
            .map(|program| {
                let name = program["name"].as_str().unwrap();
                (name, program["program"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(
            names,
            [("par-read", 1), ("par-read", 2), ("multi-threads", 3)]
        );
        for program in &programs[..2] {
            // A hundredth of 1 GB in whole pages, over its own time.
            let (read, ended) = (number(&program["read_mb"]), number(&program["ended_s"]));
            assert!((read - 10.0).abs() < 0.01, "{read}");
            assert!((number(&program["throughput_mb_s"]) - read / ended).abs() < 1e-3);
            assert_eq!(program["processes"].as_array().unwrap().len(), 1);
            assert!(number(&program["processes"][0]["ended_s"]) <= number(&run["simulated_s"]));
        }
        assert_eq!(programs[2]["processes"].as_array().unwrap().len(), 2);
        assert!(number(&run["quiet_ms"]["mean"]) > 0.0);
        assert_eq!(run["per_origin"].as_array().unwrap().len(), 4);
    }
    let hidden = run(&["--set", "engine.hide_processes=true"]);
    let (open, hidden) = (&runs[1], &hidden["runs"][1]);
    assert_eq!(open["scheduler"], "cfq");
    assert_eq!(hidden["hide_processes"], true);
    assert_ne!(open["simulated_s"], hidden["simulated_s"]);
    assert_eq!(hidden["per_origin"].as_array().unwrap().len(), 4);
    let table = stdout(&["sim", "run", "programs.toml"]);
    for text in ["ended s", "1 par-read", "3 multi-threads"] {
        assert!(table.contains(text), "{table}");
    }
    let cut = run(&["--set", "run.duration=100ms"]);
    assert!(cut["runs"][0]["programs"][0]["ended_s"].is_null());
}

/// A curve that was saved does as the one that is learned, if it is the same.
#[test]
fn a_curve_comes_from_a_file_or_is_learned() {
    let run = |extra: &[&str]| {
        let mut args = vec![
            "sim",
            "run",
            "programs.toml",
            "-s",
            "stream",
            "--reproducible",
        ];
        args.extend(["--format", "json"]);
        args.extend(extra);
        json(&args)
    };
    let learned = run(&[]);
    let profile = headtime_cli::drives::open("wd5000aaks").unwrap();
    let mut probe = headtime_probe::Modelled::new(&profile, 1);
    let options = headtime_probe::CurveOptions {
        seed: 1,
        ..headtime_probe::CurveOptions::default()
    };
    let curve = headtime_probe::learn(&mut probe, &options).unwrap();
    let directory = scratch("curve-file");
    let file = directory.join("curve.toml");
    std::fs::write(&file, curve.to_toml()).unwrap();
    let set = format!("drive.curve={}", file.display());
    let loaded = run(&["--set", &set]);
    assert_eq!(loaded["runs"], learned["runs"]);
    assert_ne!(loaded["scenario_hash"], learned["scenario_hash"]);
    let other = curve.to_toml().replace("976773168", "1000000");
    assert_ne!(other, curve.to_toml());
    std::fs::write(&file, other).unwrap();
    let output =
        super::common::run(&["sim", "run", "programs.toml", "-s", "stream", "--set", &set]);
    assert_eq!(output.status.code(), Some(3), "the curve of another disk");
    std::fs::write(&file, "not = 'a curve'").unwrap();
    let output =
        super::common::run(&["sim", "run", "programs.toml", "-s", "stream", "--set", &set]);
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("curve.toml"), "{error}");
}

/// Progress was drawn by the threads of the runs while the main thread held standard error locked:
/// the command stopped for good as soon as there was something to show. Needs a terminal, which
/// `script` makes, and `timeout`, so that the test ends if it happens again.
#[test]
#[cfg(target_os = "linux")]
fn progress_on_a_terminal_does_not_stop_the_command() {
    let typescript = scratch("terminal").join("typescript");
    let command = format!(
        "{} sim run {} -s noop,sstf --set run.duration=4000s",
        env!("CARGO_BIN_EXE_headtime"),
        data()
            .join("../../../../experiments/random-4k.toml")
            .display()
    );
    let output = std::process::Command::new("timeout")
        .args(["100", "script", "-qec", &command])
        .arg(&typescript)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output.map(|output| (output.status, output.stdout)) else {
        println!("skipped: no `timeout` here");
        return;
    };
    let text = String::from_utf8_lossy(&output.1);
    if output.0.code() == Some(127) {
        println!("skipped: no `script` here");
        return;
    }
    assert!(output.0.success(), "{:?}: {text}", output.0);
    assert!(text.contains("to go"), "no progress was shown: {text}");
    // Bold headings, and the table after the bar is gone.
    assert!(text.contains("\u{1b}[1mscheduler"), "{text}");
}
