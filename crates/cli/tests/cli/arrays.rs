//! Arrays in scenarios.

use super::common::{ended, json, scratch, stdout};
use super::sweeps::{at, rows};

/// `small.toml` on three disks, at one depth.
const ARRAY: [&str; 7] = [
    "sim",
    "run",
    "small.toml",
    "--set",
    "engine.depth=2",
    "--set",
    "array.members=3",
];

fn with<'a>(further: &[&'a str]) -> Vec<&'a str> {
    ARRAY.iter().chain(further).copied().collect()
}

#[test]
fn each_disk_has_a_row_and_all_disks_together_do_the_work() {
    let report = json(&with(&["--format", "json"]));
    for run in report["runs"].as_array().unwrap() {
        let members = run["members"].as_array().unwrap();
        assert_eq!(members.len(), 3);
        let issued = members.iter().map(|of| of["issued"].as_u64().unwrap());
        assert_eq!(
            issued.sum::<u64>(),
            run["engine"]["issued"].as_u64().unwrap()
        );
        let seek = members
            .iter()
            .map(|of| of["head_time"]["seek"].as_f64().unwrap());
        let all = run["head_time"]["seek"].as_f64().unwrap();
        assert!((seek.sum::<f64>() - all).abs() < 1e-6);
    }
    let one = json(&[
        "sim",
        "run",
        "small.toml",
        "--set",
        "engine.depth=2",
        "--format",
        "json",
    ]);
    assert!(one["runs"][0].get("members").is_none());
    let faster = |run: usize| {
        let iops = |report: &serde_json::Value| report["runs"][run]["iops"].as_f64().unwrap();
        iops(&report) / iops(&one)
    };
    // Four processes keep three disks busy for most of the time.
    assert!((1.3..3.0).contains(&faster(0)), "{}", faster(0));
    let table = stdout(&with(&[]));
    assert!(table.contains("disk  commands"), "{table}");
}

#[test]
fn csv_has_a_row_for_each_disk_with_its_commands_and_its_head_time() {
    let report = json(&with(&["-s", "noop", "--format", "json"]));
    let rows = rows(&stdout(&with(&["-s", "noop", "--format", "csv"])));
    let members = report["runs"][0]["members"].as_array().unwrap();
    let of_disks = &rows[rows.len() - members.len()..];
    for (disk, (row, member)) in of_disks.iter().zip(members).enumerate() {
        assert_eq!(at(row, "origin"), format!("disk {disk}"));
        assert_eq!(at(row, "issued"), member["issued"].to_string());
        let seek = member["head_time"]["seek"].to_string();
        assert_eq!(at(row, "head_seek_s"), seek);
        assert_ne!(at(row, "head_seek_pct"), "");
        assert_eq!(at(row, "requests"), "", "a disk has parts of requests");
    }
}

#[test]
fn coordinated_disks_stand_beside_each_disk_alone_and_their_log_replays() {
    let mut args = vec!["sim", "run", "programs.toml", "-s", "noop,stream"];
    for setting in [
        "array.members=3",
        "array.coordinate=false,true",
        "host.read_ahead=384KiB",
    ] {
        args.extend(["--set", setting]);
    }
    let table = stdout(&args);
    assert!(table.contains("stream(deadline) coordinated"), "{table}");
    args.extend(["--format", "json"]);
    let report = json(&args);
    let runs = report["runs"].as_array().unwrap();
    let coordinated: Vec<bool> = runs
        .iter()
        .map(|run| run.get("coordinated").is_some())
        .collect();
    assert_eq!(coordinated, [false, false, true], "noop obeys nobody");
    let log = scratch("coordinated").join("array.log");
    let log = log.to_str().unwrap();
    (args[4], args[8]) = ("stream", "array.coordinate=true");
    args.extend(["--log", log]);
    stdout(&args);
    let replayed = stdout(&["sim", "replay-log", log]);
    assert_eq!(replayed.matches("identical").count(), 3, "{replayed}");
    let text = std::fs::read_to_string(log).unwrap();
    let of_array =
        "\n# array.level raid0\n# array.members 3\n# array.chunk 64KiB\n# array.coordinate true\n";
    assert!(text.contains(of_array), "{}", &text[..2000]);
}

#[test]
fn a_log_of_an_array_repeats_each_disk() {
    let log = scratch("array").join("array.log");
    let log = log.to_str().unwrap();
    stdout(&with(&["-s", "sstf", "--log", log]));
    let replayed = stdout(&["sim", "replay-log", log]);
    for member in ["member 0", "member 1", "member 2"] {
        assert!(replayed.contains(member), "{replayed}");
    }
    assert_eq!(replayed.matches("identical").count(), 3, "{replayed}");
}

#[test]
fn a_range_may_reach_over_all_disks() {
    let alone = [
        "sim",
        "run",
        "small.toml",
        "-s",
        "noop",
        "--set",
        "workload.range=9GB..10GB",
    ];
    assert_eq!(ended(&alone).0, 3, "the drive has 9.1 GB");
    let range = ["-s", "noop", "--set", "workload.range=9GB..10GB"];
    stdout(&with(&range));
}

#[test]
fn a_small_write_with_parity_takes_four_commands_on_four_disks_and_three_on_three() {
    let issued = |members: &str, share: &str| {
        let members = format!("array.members={members}");
        let share = format!("workload.read_share={share}");
        let settings = [
            "-s",
            "noop",
            "--set",
            "array.level=raid5",
            "--set",
            &members,
        ];
        let settings = settings
            .into_iter()
            .chain(["--set", "workload.size=4KiB", "--set", &share]);
        let settings = settings.chain(["--set", "engine.merge=false", "--format", "json"]);
        let report = json(&with(&settings.collect::<Vec<_>>()));
        let run = &report["runs"][0];
        (
            run["requests"].as_u64().unwrap(),
            run["engine"]["issued"].as_u64().unwrap(),
        )
    };
    let (requests, commands) = issued("3", "1");
    assert_eq!(commands, requests, "reads need no parity");
    // The old sectors and the old parity are read if the row has three or more other chunks.
    for (members, each) in [("3", 3), ("4", 4), ("5", 4)] {
        let (requests, commands) = issued(members, "0");
        assert_eq!(commands, each * requests, "{members} disks");
    }
}

/// A slice is for a stream that others wait for. Parity belongs to the stream of its write, and is no other program.
#[test]
fn writers_of_whole_rows_are_streams_with_parity_as_without() {
    let coordinated = |level: &str, processes: &str| {
        let settings = [
            format!("array.level={level}"),
            format!("workload.processes={processes}"),
        ];
        let mut arguments = with(&["-s", "stream:lost=1", "--format", "json"]);
        for setting in settings.iter().map(String::as_str).chain([
            "array.coordinate=true",
            "engine.depth=1",
            "workload.read_share=0",
            "workload.sequential_share=1",
            "workload.size=128KiB",
            "workload.align=128KiB",
            "run.requests=1500",
        ]) {
            arguments.extend(["--set", setting]);
        }
        let of = &json(&arguments)["runs"][0]["coordinated"];
        ["streams", "slices"].map(|key| of[key].as_u64().unwrap())
    };
    for level in ["raid0", "raid5"] {
        assert_eq!(coordinated(level, "1")[1], 0, "{level}: nobody waits");
        let [streams, slices] = coordinated(level, "4");
        assert_eq!(streams, 4, "{level}: none is lost and found again");
        assert!(slices > 20, "{level}: {slices}");
    }
}

#[test]
fn parity_needs_a_third_disk() {
    let settings = ["--set", "array.members=2", "--set", "array.level=raid5"];
    let (code, error) = ended(&[&["sim", "run", "small.toml"][..], &settings].concat());
    assert_eq!(code, 3, "{error}");
    assert!(
        error.starts_with("error: array: 2 members; allowed are 3 to 64 with parity"),
        "{error}"
    );
}

/// The gain of the nearer head over reads in turn, which docs/arrays.md shows for longer runs. A write is a command on each disk.
#[test]
fn a_mirror_reads_from_the_nearer_head() {
    let run = |reads: &str, read_share: &str| {
        let (reads, share) = (
            format!("array.reads={reads}"),
            format!("workload.read_share={read_share}"),
        );
        let mut arguments = with(&["-s", "noop", "--format", "json"]);
        for setting in [
            "array.level=raid1",
            "array.members=2",
            &reads,
            &share,
            "engine.depth=1",
            "engine.merge=false",
            "workload.size=4KiB",
            "workload.processes=8",
            "workload.sequential_share=0",
            "run.requests=4000",
        ] {
            arguments.extend(["--set", setting]);
        }
        let run = &json(&arguments)["runs"][0];
        let of = |value: &serde_json::Value| value.as_f64().unwrap();
        assert!(run["bound"].is_null(), "a mirror has no bound");
        (of(&run["iops"]), of(&run["engine"]["issued"]))
    };
    let (nearest, alternate) = (run("nearest", "1"), run("alternate", "1"));
    assert!(nearest.0 > 1.1 * alternate.0, "{nearest:?} {alternate:?}");
    assert_eq!(nearest.1, 4000.0);
    assert_eq!(run("nearest", "0").1, 8000.0);
}

#[test]
fn what_is_no_array_is_refused_with_its_key() {
    for (setting, problem) in [
        ("array.members=1", "allowed is 2 to 64"),
        ("array.members=65", "allowed is 2 to 64"),
        ("array.chunk=6KiB", "a multiple of 4KiB up to 64MiB"),
        ("array.bus=400MB", "allowed is 1MB/s to 1TB/s"),
        ("array.bus=999kB/s", "allowed is 1MB/s to 1TB/s"),
        ("array.level=raid6", "Allowed are \"raid0\""),
        ("array.reads=alternate", "array.reads: is for a mirror"),
        (
            "freeblock.p99=5",
            "freeblock.p99: is a promise of one drive",
        ),
        ("array.coordinate=true", "add `stream` to schedulers"),
    ] {
        let (code, error) = ended(&with(&["--set", setting]));
        assert_eq!(code, 2, "{setting}: {error}");
        assert!(error.contains(problem), "{setting}: {error}");
    }
}

#[test]
fn a_scan_reads_each_disk_and_its_results_are_of_all() {
    let scan = |range: &str| {
        let range = format!("freeblock.range={range}");
        let settings = [
            "-s",
            "noop",
            "--set",
            "run.requests=200",
            "--set",
            "engine.depth=1",
        ];
        let end = [
            "--set",
            "freeblock.to_end=true",
            "--set",
            "freeblock.idle_after=1ms",
        ];
        let mut args = with(&settings);
        args.extend(end);
        args.extend([
            "--set",
            "freeblock.block=64KiB",
            "--set",
            &range,
            "--format",
            "json",
        ]);
        json(&args)["runs"][0]["freeblock"].clone()
    };
    let of = |scan: &serde_json::Value, key: &str| scan[key].as_f64().expect("a number");
    let all = scan("0B..30MiB");
    assert_eq!(of(&all, "left_percent"), 0.0);
    let read = of(&all, "mb_s") * of(&all, "ended_s");
    assert!(
        (read / (3.0 * 30.0 * 1.048_576) - 1.0).abs() < 1e-3,
        "{read} MB"
    );
}

/// A line of the host in the printed scenario of an array.
fn of_host(key: &str, members: &str, chunk: &str, own: &str) -> String {
    let (members, chunk) = (
        format!("array.members={members}"),
        format!("array.chunk={chunk}"),
    );
    let mut args = vec!["sim", "run", "programs.toml", "--print-scenario"];
    args.extend(["--set", members.as_str(), "--set", chunk.as_str()]);
    if !own.is_empty() {
        args.extend(["--set", own]);
    }
    let printed = stdout(&args);
    let host = printed.lines().skip_while(|line| *line != "[host]");
    let line = host.skip(1).find(|line| line.starts_with(key));
    line.expect("a host has this key").to_owned()
}

fn read_ahead(members: &str, chunk: &str, own: &str) -> String {
    of_host("read_ahead", members, chunk, own)
}

#[test]
fn requests_of_a_host_end_with_a_chunk_of_the_array_unless_something_else_is_set() {
    assert_eq!(of_host("chunk", "5", "32KiB", ""), "chunk = \"32KiB\"");
    let own = of_host("chunk", "5", "32KiB", "host.chunk=0B");
    assert_eq!(own, "chunk = \"0B\"");
}

#[test]
fn a_host_reads_two_stripes_ahead_if_that_is_more_than_usual_and_nothing_else_is_set() {
    assert_eq!(read_ahead("5", "64KiB", ""), "read_ahead = \"640KiB\"");
    assert_eq!(read_ahead("2", "4KiB", ""), "read_ahead = \"128KiB\"");
    assert_eq!(read_ahead("64", "64MiB", ""), "read_ahead = \"64MiB\"");
    let own = read_ahead("5", "64KiB", "host.read_ahead=32KiB");
    assert_eq!(own, "read_ahead = \"32KiB\"");
}

#[test]
fn a_bus_is_printed_as_it_is_written_and_bounds_the_rate_of_all_disks() {
    let bus = "array.bus=20.5MB/s";
    let args = |further: &[&'static str]| {
        let of_array = ["--set", "array.members=3", "--set", "program.scale=0.01"];
        [
            &["sim", "run", "--example", "par-read", "-s", "noop"],
            &of_array[..],
            further,
        ]
        .concat()
    };
    let printed = stdout(&args(&["--print-scenario", "--set", bus]));
    assert!(printed.contains("\nbus = \"20500kB/s\"\n"), "{printed}");
    let ran = |further: &[&'static str]| {
        let report = json(&args(&[&["--format", "json"], further].concat()));
        let run = &report["runs"][0];
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let share = number(&run["bound"]["share"]);
        (
            number(&run["throughput_mb_s"]),
            share,
            run["bound"]["by"].clone(),
        )
    };
    let (free, far, by_arm) = ran(&[]);
    let (tight, near, by_bus) = ran(&["--set", bus]);
    assert!(
        tight <= 20.5 && tight > 19.0 && free > 30.0,
        "{tight} of {free} MB/s"
    );
    // The bound of all three disks, and of the bus.
    assert!(
        far > 5.0 && far < 100.0 && near > 90.0 && near <= 100.0,
        "{far}, {near}"
    );
    assert_eq!((by_arm, by_bus), ("arm".into(), "command".into()));
}

#[test]
fn rows_of_single_requests_are_refused_on_an_array() {
    let rows = scratch("array-rows").join("rows.csv");
    let (code, error) = ended(&with(&["-s", "noop", "--requests", rows.to_str().unwrap()]));
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("leave out [array]"), "{error}");
}
