//! Scans beside a workload.

use super::common::{ended, json, number, run, scratch};

/// Each request finds the drive idle. The scan therefore chooses its gap reads before the request goes to the drive.
#[test]
fn a_scan_reads_all_in_the_gaps_of_a_program_that_thinks_and_its_log_replays() {
    let path = scratch("scan").join("run.log");
    let path = path.to_str().expect("UTF-8");
    let report = json(&["sim", "run", "scan.toml", "--log", path, "--format", "json"]);
    let scan = &report["runs"][0]["freeblock"];
    let of = |key: &str| number(&scan[key]);
    assert_eq!(of("left_percent"), 0.0, "{scan}");
    assert_eq!(of("alone"), 0.0, "{scan}");
    assert!(of("ended_s") > 0.0 && of("before_percent") > 1.0, "{scan}");
    assert!(
        of("free_mb_s") > 0.0 && of("free_mb_s") <= of("mb_s"),
        "{scan}"
    );
    // Each tenth takes the time of its rate, and all tenths take the time of the scan.
    let rates = (0..10).map(|at| number(&scan["tenths_mb_s"][at]));
    let took: f64 = rates.map(|rate| 1.6 / rate).sum();
    assert!(
        (took / of("ended_s") - 1.0).abs() < 0.01,
        "{took} of {scan}"
    );
    let again = run(&["sim", "replay-log", path]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success(), "{said}");
    let log = std::fs::read_to_string(path).expect("it was written");
    for line in ["\nP ", "\nR ", "\nJ "] {
        assert!(log.contains(line), "{line:?}");
    }
}

#[test]
fn idle_time_is_used_if_that_is_asked_for_and_costs_a_piece_at_most() {
    let with = |idle: &[&str]| {
        let args = ["sim", "run", "scan.toml", "--format", "json"];
        json(&[&args[..], idle].concat())["runs"][0].clone()
    };
    let gaps = with(&[]);
    let idle = with(&[
        "--set",
        "freeblock.idle_after=5ms",
        "--set",
        "freeblock.idle_piece=64KiB",
    ]);
    let value = |run: &serde_json::Value, key: &str| number(&run["freeblock"][key]);
    assert!(value(&idle, "alone") > 0.0, "{idle}");
    assert_eq!(value(&idle, "left_percent"), 0.0);
    assert!(value(&idle, "ended_s") < value(&gaps, "ended_s") / 4.0);
    // A piece of 64 KiB takes a seek, a turn at most, and 3 ms.
    let longest = number(&idle["response_ms"]["max"]);
    assert!(longest < 60.0, "{longest}");
}

#[test]
fn a_scan_with_a_date_ends_by_it_says_so_and_its_log_replays() {
    let gaps = json(&["sim", "run", "scan.toml", "--format", "json"]);
    let half = number(&gaps["runs"][0]["freeblock"]["ended_s"]) / 2.0;
    let within = format!("freeblock.finish_within={}ms", (half * 1e3) as u64);
    let path = scratch("promised").join("run.log");
    let path = path.to_str().expect("UTF-8");
    let report = json(&[
        "sim",
        "run",
        "scan.toml",
        "--set",
        &within,
        "--set",
        "freeblock.p99=1000",
        "--log",
        path,
        "--format",
        "json",
    ]);
    let run_of = &report["runs"][0];
    let (scan, promise) = (&run_of["freeblock"], &run_of["promise"]);
    assert_eq!(number(&scan["left_percent"]), 0.0, "{scan}");
    assert!(number(&scan["ended_s"]) <= half, "{scan} {half}");
    assert_eq!(promise["verdict"], "holds", "{promise}");
    assert_eq!(promise["changes"][0]["verdict"], "not known yet");
    let ways = ["gaps", "idle", "outright", "others"];
    let ways = ways.map(|way| number(&promise[format!("{way}_percent")]));
    assert!((ways.iter().sum::<f64>() - 100.0).abs() < 0.01, "{promise}");
    assert!(ways[0] > 0.0 && ways[1] + ways[2] > 0.0, "{promise}");
    let again = run(&["sim", "replay-log", path]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success(), "{said}");
}

#[test]
fn a_scan_that_cannot_be_is_refused_with_its_key() {
    for (set, said) in [
        ("freeblock.block=1000", "freeblock.block"),
        (
            "freeblock.block=700B",
            "freeblock.block: is 700B; allowed is a multiple of 512B",
        ),
        (
            "freeblock.range=0B..1TB",
            "freeblock.range: ends behind the disk",
        ),
        (
            "freeblock.range=1GB..1MB",
            "the first end must be below the second",
        ),
        (
            "freeblock.idle_piece=0B",
            "freeblock.idle_piece: allowed is a sector to",
        ),
        (
            "freeblock.limits=none",
            "allowed are \"outside\", \"firmware\"",
        ),
        ("freeblock.picks=1001", "freeblock.picks"),
        ("freeblock.pick=1", "did you mean"),
    ] {
        let (code, stderr) = ended(&["sim", "run", "scan.toml", "--set", set]);
        assert!([2, 3].contains(&code), "{set}: {code} {stderr}");
        assert!(stderr.contains(said), "{set}: {stderr}");
    }
}

#[test]
fn a_scan_does_not_believe_in_a_drive_that_is_too_small_for_it() {
    let run = |range: &str| {
        let belief = ["--set", "drive.belief=hp-c2247a", "--set", range];
        ended(&[&["sim", "run", "scan.toml"][..], &belief].concat())
    };
    let (code, stderr) = run("freeblock.range=0B..2GB");
    assert_eq!(code, 3, "{stderr}");
    let said = "freeblock.range: ends behind the assumed drive, which has";
    assert!(stderr.contains(said), "{stderr}");
    let (code, stderr) = run("freeblock.range=0B..16MB");
    assert_eq!(code, 0, "{stderr}");
}
