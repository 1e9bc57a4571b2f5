//! The sweeps of `experiments/`. They run, the page states their numbers of runs, and the page's claims hold on a
//! part of them.

use super::common::{data, run, scratch, stdout};
use super::sweeps::{at, rows, wholes};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

type Row = Vec<(String, String)>;

/// The names of the files that have a `[sweep]`, without their ending. The grid of the calibration is no claim, and the grid of
/// invariants has its own tests.
fn shipped() -> Vec<String> {
    let files = fs::read_dir(experiments()).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let named = paths.filter_map(|path| {
        let name = path
            .file_name()?
            .to_str()?
            .strip_suffix(".toml")?
            .to_owned();
        let swept =
            !["calibration", "grid"].contains(&&*name) && text_of(&name).contains("\n[sweep]\n");
        swept.then_some(name)
    });
    let mut names: Vec<String> = named.collect();
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    names
}

fn experiments() -> PathBuf {
    data().join("../../../../experiments")
}

fn text_of(name: &str) -> String {
    fs::read_to_string(experiments().join(format!("{name}.toml"))).unwrap()
}

fn number(row: &Row, column: &str) -> f64 {
    let text = at(row, column);
    text.parse()
        .unwrap_or_else(|_| panic!("{column} is {text:?}"))
}

/// Runs a shipped scenario with another `[sweep]`. Each pair of `replace` is a text and its replacement.
fn part_of(name: &str, replace: &[(&str, &str)], sweep: &str) -> Vec<Row> {
    let text = text_of(name);
    let (scenario, _) = text.split_once("[sweep]\n").unwrap();
    let mut scenario = scenario.to_owned();
    for (old, new) in replace {
        assert!(scenario.contains(old), "{name}: no {old}");
        scenario = scenario.replace(old, new);
    }
    let path = scratch(&format!("sweeps-shipped-{name}")).join("part.toml");
    fs::write(&path, format!("{scenario}[sweep]\n{sweep}")).unwrap();
    wholes(&stdout(&[
        "sweep",
        path.to_str().unwrap(),
        "--format",
        "csv",
    ]))
}

/// Values of a column in order of a key, for each choice of the other keys.
fn over(rows: &[Row], key: &str, others: &[&str], column: &str) -> BTreeMap<Vec<String>, Vec<f64>> {
    let mut lines: BTreeMap<Vec<String>, Vec<(u64, f64)>> = BTreeMap::new();
    for row in rows {
        let line = others.iter().map(|other| at(row, other).to_owned());
        let value = at(row, key).parse().unwrap();
        let points = lines.entry(line.collect()).or_default();
        points.push((value, number(row, column)));
    }
    let ordered = lines.into_iter().map(|(line, mut points)| {
        points.sort_by_key(|(value, _)| *value);
        (
            line,
            points.into_iter().map(|(_, measured)| measured).collect(),
        )
    });
    ordered.collect()
}

#[test]
fn the_page_says_how_many_combinations_each_shipped_sweep_has() {
    let page = fs::read_to_string(data().join("../../../../docs/sweep.md")).unwrap();
    for name in shipped() {
        let path = experiments().join(format!("{name}.toml"));
        let list = stdout(&["sweep", path.to_str().unwrap(), "--list"]);
        let line = list.lines().nth(1).unwrap();
        let count = line.split_once(" combinations").expect(line).0;
        let start = format!("| [`{name}`](../experiments/{name}.toml) | {count} |");
        assert!(page.contains(&start), "docs/sweep.md: no row {start}");
    }
}

/// A tenth of a second of each choice of keys, on the smallest drive, whose end is the nearest: none is refused, none fails.
#[test]
fn every_choice_of_keys_of_a_shipped_sweep_runs() {
    for name in shipped() {
        let path = experiments().join(format!("{name}.toml"));
        let mut sets = vec!["run.warm_up=0s", "run.duration=100ms", "run.repeats=1"];
        let text = text_of(&name);
        let (scenario, _) = text.split_once("[sweep]\n").unwrap();
        if scenario.contains("\nprofile = [") {
            sets.push("drive.profile=barracuda-7200.10-160");
        }
        if scenario.contains("\nschedulers = ") {
            sets.push("schedulers=stream");
        }
        let mut args = vec!["sweep", path.to_str().unwrap(), "--format", "csv"];
        args.extend(sets.iter().flat_map(|set| ["--set", *set]));
        let output = run(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {stderr}");
        let rows = wholes(std::str::from_utf8(&output.stdout).unwrap());
        let requests: f64 = rows.iter().map(|row| number(row, "requests")).sum();
        assert!(requests > rows.len() as f64, "{name}: {requests} requests");
    }
}

#[test]
fn one_sequential_stream_has_the_rate_of_the_medium_at_every_depth() {
    let rows = part_of(
        "sweep-sequential",
        &[("\"10s\"", "\"3s\""), ("\"5s\"", "\"2s\"")],
        "workload.read_share = [1, 0]
         workload.outstanding = [32]
         workload.size = [\"32KiB\", \"1MiB\"]
         engine.depth = [1, 2, 4, 32]",
    );
    let others = ["workload.read_share", "workload.size", "drive"];
    let lines = over(&rows, "engine.depth", &others, "throughput_mb_s");
    assert_eq!(lines.len(), 2 * 2 * 3);
    for (line, rates) in &lines {
        let best = rates[0].max(rates[1]);
        let medium = match line[2].as_str() {
            "wd5000aaks" => 92.7,
            "barracuda-7200.10-160" => 77.3,
            _ => 269.9,
        };
        for rate in &rates[2..] {
            assert!(*rate >= 0.95 * best, "{line:?}: {rates:?}");
            assert!(*rate >= 0.95 * medium, "{line:?}: {rates:?}");
        }
    }
}

#[test]
fn stream_on_readers_of_files_is_never_behind_its_elevator_on_small_drives() {
    let rows = part_of(
        "sweep-par-read",
        &[
            (
                "\"noop\", \"deadline\", \"anticipatory\", \"cfq\", \"stream\"",
                "\"deadline\", \"stream\"",
            ),
            (", \"exos-x18\"]", "]"),
            ("repeats = 5", "repeats = 1"),
            ("\"12s\"", "\"7s\""),
        ],
        "engine.depth = [1, 32]
         host.read_ahead = [\"32KiB\", \"128KiB\", \"1MiB\"]
         engine.merge = [true, false]",
    );
    let rate = |wanted: &str| -> Vec<(&Row, f64)> {
        let own = rows.iter().filter(|row| at(row, "scheduler") == wanted);
        own.map(|row| (row, number(row, "throughput_mb_s")))
            .collect()
    };
    let (deadline, stream) = (rate("deadline"), rate("stream(deadline)"));
    assert_eq!(
        (deadline.len(), stream.len()),
        (2 * 2 * 3 * 2, 2 * 2 * 3 * 2)
    );
    for ((row, deadline), (_, stream)) in deadline.iter().zip(&stream) {
        assert!(
            *stream >= 0.97 * deadline,
            "{stream} of {deadline}: {row:?}"
        );
        let shown = at(row, "engine.depth") == "1" && at(row, "host.read_ahead") == "128KiB";
        assert!(
            !shown || *stream >= 2.7 * deadline,
            "{stream} of {deadline}: {row:?}"
        );
    }
}

/// Two drives: one chooses between two commands with a margin, and the other does not.
#[test]
fn a_second_command_chosen_late_costs_nothing_and_one_chosen_at_once_can() {
    let rows = part_of(
        "issue",
        &[
            (
                "\"atlas10k\", \"cheetah18lp\", \"cheetah9lp\", \"ibm18es\", \"barracuda-7200.10-160\", ",
                "\"cheetah18lp\", ",
            ),
            (", \"st3400620as\", \"exos-x18\"]", "]"),
            // Of 3,000 requests the rate varies by 0.7 % from seed to seed.
            ("requests = 3000", "requests = 10000"),
        ],
        "schedulers = [\"sptf\"]
         workload.processes = [4, 16]
         workload.size = [\"4KiB\", \"64KiB\"]
         engine.issue = [\"at-once\", \"late\"]
         engine.depth = [1, 2]",
    );
    let keys = [
        "drive",
        "workload.processes",
        "workload.size",
        "engine.issue",
    ];
    let lines = over(&rows, "engine.depth", &keys, "iops");
    assert_eq!(lines.len(), 2 * 2 * 2 * 2);
    for (line, rates) in &lines {
        let gain = rates[1] / rates[0];
        match (line[3].as_str(), line[0].as_str()) {
            ("late", _) => assert!(gain >= 0.99, "{line:?}: {rates:?}"),
            (_, "wd5000aaks") => assert!(gain <= 0.95, "{line:?}: {rates:?}"),
            _ => assert!((0.9..1.1).contains(&gain), "{line:?}: {rates:?}"),
        }
    }
}

#[test]
fn random_reads_and_writes_do_not_fall_with_depth() {
    let rows = part_of(
        "sweep-random",
        &[
            (
                "\"noop\", \"deadline\", \"clook\", \"sstf\", \"sptf\", \"stream\"",
                "\"noop\"",
            ),
            ("repeats = 5", "repeats = 1"),
        ],
        "workload.read_share = [1, 0]
         workload.processes = [32]
         engine.depth = [1, 2, 4, 32]",
    );
    let others = ["workload.read_share", "drive"];
    let lines = over(&rows, "engine.depth", &others, "iops");
    assert_eq!(lines.len(), 2 * 3);
    for (line, rates) in &lines {
        let falls = rates.windows(2).any(|two| two[1] < 0.98 * two[0]);
        assert!(!falls, "{line:?}: {rates:?}");
        // Reads are faster with more commands, since the drive can choose among them.
        let gains = line[0] == "1";
        assert!(!gains || rates[3] > 1.5 * rates[0], "{line:?}: {rates:?}");
    }
}

/// Behind `rsd` the reader has 90 % of its IOPS under `noop` at depth 1, and the scrub three times its speed. On `exos-x18` depth 1
/// costs little, since the drive reads ahead until the arm has to leave: the reader has 55 %.
#[test]
fn beside_a_scrub_a_random_reader_starves_at_depth_32_but_behind_rsd() {
    let path = experiments().join("scrub-starvation.toml");
    let args = ["sweep", path.to_str().unwrap(), "--format", "csv"];
    let shorter = ["--set", "run.repeats=1", "--set", "run.duration=35s"];
    let rows = rows(&stdout(&[&args[..], &shorter].concat()));
    let mut drives = BTreeMap::new();
    for row in &rows {
        let drive = at(row, "drive.override.queue.stream_cap").to_owned();
        let of_drive: &mut BTreeMap<_, [f64; 2]> = drives.entry(drive).or_default();
        let prio = match at(row, "drive.override.queue.ncq_prio") {
            "true" => "ncq_prio",
            _ => at(row, "engine.gate"),
        };
        let what = [at(row, "scheduler"), at(row, "engine.depth"), prio].map(str::to_owned);
        let [reader, scrub] = of_drive.entry(what).or_default();
        match at(row, "origin") {
            "reader" => *reader = number(row, "iops"),
            "scrub" => *scrub = number(row, "throughput_mb_s"),
            _ => {}
        }
    }
    assert_eq!(drives.len(), 3);
    for (drive, measured) in &drives {
        let of = |scheduler: &str, depth: &str, gate: &str| {
            measured[&[scheduler, depth, gate].map(str::to_owned)]
        };
        let one = of("noop", "1", "depth");
        for scheduler in ["noop", "mq-deadline", "cfq", "stream(deadline)"] {
            let [reader, _] = of(scheduler, "32", "depth");
            assert!(reader < 0.7 * one[0], "{drive}, {scheduler}: {reader}");
        }
        let leaves_just_in_time = drive == "1s";
        let share = if leaves_just_in_time { 0.55 } else { 0.9 };
        let [reader, scrub] = of("noop", "32", "rsd:age_th=16");
        assert!(
            reader >= share * one[0] && scrub >= 3.0 * one[1],
            "{drive}: {reader}, {scrub}"
        );
        let [reader, scrub] = of("noop", "32", "rsd-priority:age_th=30");
        assert!(
            reader >= 0.9 * one[0] && scrub <= 1.1 * one[1],
            "{drive}: {reader}, {scrub}"
        );
        // One command of the scrub in the drive is enough for it.
        let [reader, _] = of("noop", "32", "iolatency:real_time=20ms");
        assert!(reader < 0.7 * one[0], "{drive}: {reader}");
        // In the drive the reader comes first, and now the scrub starves, unless it is read ahead before the arm leaves.
        let [reader, scrub] = of("noop", "32", "ncq_prio");
        assert!(
            reader >= 0.75 * one[0] && (leaves_just_in_time || scrub <= 0.6 * one[1]),
            "{drive}: {reader}, {scrub}"
        );
    }
}
