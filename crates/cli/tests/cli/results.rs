//! Results of a run: fields of the report, the same in every run.

use super::common::{data, ended, json, keys, number, run, scratch, stdout};

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
            assert_eq!(
                names,
                [
                    "max", "max_mean", "mean", "p50", "p90", "p95", "p99", "p999"
                ]
            );
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
    // The report has the process whose request was never served.
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
    assert!(
        csv.starts_with("origin,scheduler,") && csv.contains(",unfinished,oldest_unfinished_ms,")
    );
}

#[test]
fn csv_has_a_line_per_run_and_as_many_fields_as_headings() {
    let text = stdout(&["sim", "run", "small.toml", "--format", "csv"]);
    let widths: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(widths.len(), 5);
    assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    assert!(text.starts_with("origin,scheduler,drive,depth,firmware,"));
}

#[test]
fn csv_of_a_level_has_the_rows_of_this_level_alone() {
    let of = |level: &str| {
        let text = stdout(&[
            "sim",
            "run",
            "small.toml",
            "--format",
            "csv",
            "--level",
            level,
        ]);
        let names = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let (runs, groups, processes) = (of("run"), of("group"), of("process"));
    assert!(
        runs.iter().all(|name| name == "all") && runs.len() > 1,
        "{runs:?}"
    );
    assert!(
        groups.len() >= runs.len() && !groups.contains(&"all".to_owned()),
        "{groups:?}"
    );
    assert!(
        processes.len() > groups.len() && !processes.contains(&"all".to_owned()),
        "{processes:?}"
    );
    assert_eq!(of("disk"), [""; 0]);
    let output = run(&["sim", "run", "small.toml", "--level", "run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--level is for --format csv"));
}

/// Builds with the feature `parquet` write a file for programs; other builds refuse the format before they run anything.
#[test]
fn parquet_is_a_file_or_an_error_that_says_what_to_do() {
    for arguments in [
        &["sim", "run", "small.toml", "--format", "parquet"][..],
        &[
            "drive",
            "curve",
            "exos-x18",
            "--samples",
            "8",
            "--format",
            "parquet",
        ][..],
    ] {
        let output = run(arguments);
        if cfg!(feature = "parquet") {
            assert!(output.status.success());
            assert_eq!(output.stdout[..4], *b"PAR1");
            assert_eq!(output.stdout[output.stdout.len() - 4..], *b"PAR1");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("headtime.schema"));
        } else {
            assert_eq!(output.status.code(), Some(2));
            assert!(output.stdout.is_empty());
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(error.contains("build with `--features parquet`"), "{error}");
        }
    }
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

/// The report of programs adds up with the disk's work. Hiding processes changes the schedule, but not the processes
/// in the report.
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
            [("par-read 1", 1), ("par-read 2", 2), ("multi-threads", 3)]
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
    for text in ["ended s", "par-read 1", "multi-threads"] {
        assert!(table.contains(text), "{table}");
    }
    let cut = run(&["--set", "run.duration=100ms"]);
    assert!(cut["runs"][0]["programs"][0]["ended_s"].is_null());
}

/// A saved curve gives the same run as a learned one, if both are equal.
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
    let profile = headtime_stack::drives::open("wd5000aaks").unwrap();
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
    let args = ["sim", "run", "programs.toml", "-s", "stream", "--set", &set];
    assert_eq!(ended(&args).0, 3, "the curve of another disk");
    let nobody_asks = ["sim", "run", "programs.toml", "-s", "noop", "--set", &set];
    let (code, error) = ended(&nobody_asks);
    assert!(
        code == 3 && error.contains("which has 1000000 sectors"),
        "{error}"
    );
    let (_, error) = ended(&[&nobody_asks[..5], &["--set", "drive.belief=atlas10"]].concat());
    assert!(error.contains("did you mean `atlas10k`"), "{error}");
    std::fs::write(&file, "not = 'a curve'").unwrap();
    let (code, error) = ended(&args);
    assert_eq!(code, 3);
    assert!(error.contains("curve.toml"), "{error}");
}

/// A scrub beside a database: each has a row with its reads and its writes apart, and the rows have all
/// that the run as a whole has.
#[test]
fn workloads_are_told_apart_in_every_format() {
    let report = json(&["sim", "run", "mixed.toml", "--format", "json"]);
    let csv = stdout(&["sim", "run", "mixed.toml", "--format", "csv"]);
    let mut lines = csv.lines();
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| heading.iter().position(|own| *own == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * runs.len());
    for (run, rows) in runs.iter().zip(rows.chunks(4)) {
        let named = run["by_name"].as_array().unwrap();
        let names: Vec<&str> = named
            .iter()
            .map(|of| of["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["scrub", "database", "random 8KiB writes"]);
        assert_eq!(rows[0][at("origin")], "all");
        for (of, row) in named.iter().zip(&rows[1..]) {
            assert_eq!(row[at("origin")], of["name"].as_str().unwrap());
            let (reads, writes) = (&of["of_reads"], &of["of_writes"]);
            for (kind, name) in [(reads, "read_iops"), (writes, "write_iops")] {
                match kind.is_null() {
                    true => assert_eq!(row[at(name)], "", "{row:?}"),
                    false => assert_eq!(row[at(name)].parse().ok(), kind["iops"].as_f64()),
                }
            }
            let of_kinds = |key: &str| -> f64 {
                let kinds = [reads, writes].into_iter().filter(|kind| !kind.is_null());
                kinds.map(|kind| number(&kind[key])).sum()
            };
            for key in ["requests", "iops", "throughput_mb_s"] {
                let all = number(&of[key]);
                assert!((of_kinds(key) - all).abs() < 1e-5 * all.max(1.0), "{of}");
            }
        }
        let sum = |value: &dyn Fn(&serde_json::Value) -> f64| named.iter().map(value).sum::<f64>();
        assert_eq!(sum(&|of| number(&of["requests"])), number(&run["requests"]));
        assert_eq!(
            sum(&|of| number(&of["unfinished"])),
            number(&run["unfinished"])
        );
        let reads = sum(&|of| of["of_reads"]["requests"].as_f64().unwrap_or(0.0));
        assert_eq!(reads, number(&run["reads"]));
        assert_eq!(reads, number(&run["of_reads"]["requests"]));
        // Only the scrub reads much at a time.
        assert!(number(&named[0]["of_reads"]["throughput_mb_s"]) > 1.0);
        assert!(named[0]["of_writes"].is_null() && named[2]["of_reads"].is_null());
        assert_eq!(named[1]["processes"], 3);
    }
    let table = stdout(&["sim", "run", "mixed.toml"]);
    let lines: Vec<&str> = table.lines().collect();
    let heading = lines
        .iter()
        .position(|line| line.contains("  who  "))
        .unwrap();
    assert!(lines[heading - 1].contains("reads") && lines[heading - 1].contains("writes"));
    assert!(lines[heading + 1].contains("scrub"), "{table}");
    assert!(
        lines[heading + 2].trim_start().starts_with("database"),
        "{table}"
    );
    let rows = lines[heading + 1..]
        .iter()
        .take_while(|line| !line.is_empty());
    assert_eq!(rows.count(), 3 * runs.len(), "{table}");
    // One workload alone is the whole.
    let alone = stdout(&["sim", "run", "small.toml"]);
    assert!(!alone.contains(" who "), "{alone}");
}

/// Commas and quotes of a name are one field, and what cannot be one is refused.
#[test]
fn a_name_with_commas_is_one_field() {
    let set = |name: &str| format!("workload.0.name=\"{name}\"");
    let name = set("a, 'b'");
    let csv = stdout(&[
        "sim",
        "run",
        "mixed.toml",
        "--set",
        &name,
        "--format",
        "csv",
    ]);
    assert!(csv.contains("\n\"a, 'b'\",noop,"), "{csv}");
    let name = set("all");
    let (code, error) = ended(&["sim", "run", "mixed.toml", "--set", &name]);
    assert_eq!(code, 2);
    assert!(
        error.contains("workload[0].name") && error.contains("allowed"),
        "{error}"
    );
}

/// Equal rows have a reason below the table, and the reason is true of the run.
#[test]
fn a_table_says_why_rows_are_equal() {
    let equal = |extra: &[&str]| -> Vec<String> {
        let mut args = vec!["sim", "run", "small.toml", "-s", "noop,deadline"];
        args.extend(extra);
        let text = stdout(&args);
        let lines = text.lines().filter(|line| line.contains(": equal, as "));
        lines.map(str::to_owned).collect()
    };
    // Of four requests at a time one is in the drive, and the order matters.
    assert!(equal(&["--set", "engine.depth=1"]).is_empty());
    let none = "noop and deadline: equal, as there was never more than one request to choose from at depth 4";
    assert_eq!(equal(&["--set", "engine.depth=4"]), [none]);
    // One process that asks for one thing at a time.
    let alone = ["--set", "engine.depth=1", "--set", "workload.processes=1"];
    assert_eq!(equal(&alone).len(), 1);
    // Going up in order of arrival is what both do.
    let order = "noop and deadline: equal, as each served requests in the order in which they came, and none waited";
    let scan = [
        "--set",
        "engine.depth=1",
        "--set",
        "workload.read_share=1",
        "--set",
        "workload.sequential_share=1",
        "--set",
        "workload.first=beginning",
        "--set",
        "workload.size=4KiB",
        "--set",
        "workload.processes=1",
        "--set",
        "workload.outstanding=3",
        "--set",
        "engine.merge=false",
    ];
    assert_eq!(equal(&scan), [order]);
}

/// Four readers that think. With short thinking, waiting serves four times as much. With long thinking, waiting
/// serves less.
#[test]
fn stream_waits_where_that_serves_more_and_not_where_it_serves_less() {
    let rates = |think: &str| {
        let think = format!("program.think={think}");
        let report = json(&[
            "sim",
            "run",
            "waits.toml",
            "--set",
            &think,
            "--format",
            "json",
        ]);
        let runs = report["runs"].as_array().unwrap().iter();
        let rates: Vec<f64> = runs.map(|run| number(&run["throughput_mb_s"])).collect();
        (rates[0], rates[1], rates[2])
    };
    let (deadline, paper, bounded) = rates("0us");
    assert!(paper > 3.5 * deadline, "{paper}, {deadline}");
    assert!(bounded > 0.98 * paper, "{bounded}, {paper}");
    let (deadline, paper, bounded) = rates("100us");
    assert!(paper > 1.4 * deadline, "{paper}, {deadline}");
    assert!(bounded > 0.95 * paper, "{bounded}, {paper}");
    let (deadline, paper, bounded) = rates("300us");
    assert!(paper < 0.8 * deadline, "{paper}, {deadline}");
    assert!(bounded > 0.97 * deadline, "{bounded}, {deadline}");
}

/// The drive has 31 reads at a time, and the last one waits for longer than the timeout.
#[test]
fn commands_that_the_drive_does_not_answer_in_time_fail_if_there_is_a_timeout() {
    let directory = scratch("timeout");
    let file = directory.join("timeout.toml");
    let failed = |timeout: &str| {
        let text = format!(
            "schedulers = [\"noop\"]\n[drive]\nprofile = \"wd5000aaks\"\nfirmware = \"fifo\"\n[engine]\ndepth = 31\n\
             [[workload]]\nprocesses = 31\n[run]\nrequests = 200\n{timeout}\n"
        );
        std::fs::write(&file, text).expect("it can be written");
        let report = json(&["sim", "run", file.to_str().unwrap(), "--format", "json"]);
        report["runs"][0]["failed"].as_u64().unwrap()
    };
    assert_eq!(failed(""), 0);
    assert_eq!(failed("timeout = \"off\""), 0);
    assert_eq!(failed("timeout = \"100s\""), 0);
    assert!(failed("timeout = \"100ms\"") > 50);
}

/// A job file and its printed scenario give the same results.
#[test]
fn a_job_file_runs_as_its_scenario_does() {
    let directory = scratch("fio");
    let job = directory.join("a.fio");
    let text = "[a]\nfilename=/dev/sdb\nrw=randrw\nbssplit=4k/70:64k/30\nsize=1g\nnumber_ios=200\n\
                random_distribution=zipf:1.2\nfsync=10\nthread\n";
    std::fs::write(&job, text).unwrap();
    let job = job.to_str().unwrap();
    let printed = stdout(&["sim", "run", job, "--print-scenario", "-s", "noop,deadline"]);
    let scenario = directory.join("a.toml");
    std::fs::write(&scenario, printed).unwrap();
    let csv = |file: &str| stdout(&["sim", "run", file, "-s", "noop,deadline", "--format", "csv"]);
    assert_eq!(csv(job), csv(scenario.to_str().unwrap()));
    let output = run(&["sim", "run", job]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("these keys do nothing here: thread (line 9)"),
        "{said}"
    );
    std::fs::write(directory.join("b.fio"), "[a]\nsize=1m\nrw=trim\n").unwrap();
    let output = run(&["sim", "run", directory.join("b.fio").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("b.fio:3: rw: `trim`: allowed are read, "),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_job_file_that_cannot_run_is_an_error_with_its_place() {
    let directory = scratch("fio-errors");
    for (name, text, expected) in [
        (
            "JOB.FIO",
            &b"[a]\nrw=read\nsize=900g\nruntime=1\n"[..],
            "JOB.FIO:3: size: `0B..900GiB`: on wd5000aaks, allowed is ",
        ),
        ("a.fio", b"\xff\xfe", "a.fio: is no job file of fio: "),
        (
            "b.fio",
            b"[a]\nfilename=/dev/sdb\nruntime=1\nrate=1\n",
            ": no request finished within the time; give a longer one ",
        ),
    ] {
        let job = directory.join(name);
        std::fs::write(&job, text).unwrap();
        let (code, said) = ended(&["sim", "run", job.to_str().unwrap(), "-s", "noop"]);
        assert_eq!(code, 3, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
