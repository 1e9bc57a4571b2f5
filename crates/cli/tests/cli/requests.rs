//! Rows for requests, and the effect of coalescing.

use super::common::{ended, json, number, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs a scenario and returns its only run, and the rows of its requests by heading.
fn rows(name: &str, args: &[&str]) -> (Value, Vec<Vec<(String, String)>>) {
    let path = scratch(name).join("requests.csv");
    let mut all = vec!["sim", "run", "small.toml", "-s", "noop", "--format", "json"];
    all.extend(["--requests", path.to_str().unwrap()]);
    all.extend(args);
    let report = json(&all);
    (report["runs"][0].clone(), read(&path))
}

fn read(path: &Path) -> Vec<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let headings: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let values: Vec<&str> = line.split(',').collect();
        assert_eq!(values.len(), headings.len(), "{line}");
        let pairs = headings.iter().zip(values);
        pairs
            .map(|(name, value)| ((*name).to_owned(), value.to_owned()))
            .collect()
    };
    lines.map(row).collect()
}

fn of<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    let found = row.iter().find(|(heading, _)| heading == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

fn value(row: &[(String, String)], name: &str) -> f64 {
    of(row, name).parse().unwrap()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The report agrees with the rows: times of requests, and order and number of commands.
#[test]
fn each_request_has_a_row_with_its_tag_its_delay_count_and_its_times() {
    let deep = [
        "--set",
        "engine.depth=8",
        "--set",
        "workload.processes=16",
        "--set",
        "drive.firmware=sptf",
    ];
    let (run, rows) = rows("requests-rows", &deep);
    assert_eq!(rows.len() as f64, number(&run["requests"]));
    let tags: BTreeSet<&str> = rows.iter().map(|row| of(row, "tag")).collect();
    assert_eq!(
        tags,
        BTreeSet::from(["0", "1", "2", "3", "4", "5", "6", "7"])
    );
    for row in &rows {
        let times = ["issue_s", "dispatch_s", "complete_s"].map(|name| value(row, name));
        assert!(times[0] <= times[1] && times[1] < times[2], "{row:?}");
        assert!((1.0..=8.0).contains(&value(row, "tags_in_use")), "{row:?}");
        assert_eq!(
            (of(row, "priority"), of(row, "outcome")),
            ("best-effort", "done")
        );
    }
    let close = |one: f64, other: f64| (one - other).abs() <= 1e-3 * other.max(1.0);
    let response = mean(
        rows.iter()
            .map(|row| 1e3 * (value(row, "complete_s") - value(row, "issue_s"))),
    );
    assert!(
        close(response, number(&run["response_ms"]["mean"])),
        "{response}"
    );
    // One row for each command, with or without merged requests.
    let mut commands: Vec<&Vec<(String, String)>> = rows.iter().collect();
    commands.sort_by_key(|row| value(row, "command") as u64);
    commands.dedup_by_key(|row| value(row, "command") as u64);
    assert_eq!(commands.len() as f64, number(&run["commands"]["completed"]));
    let delays = || commands.iter().map(|row| value(row, "delay_count"));
    let counted = &run["commands"]["delay_count"];
    assert!(close(mean(delays()), number(&counted["mean"])));
    assert_eq!(delays().fold(0.0, f64::max), number(&counted["max"]));
    assert!(number(&counted["max"]) > 1.0, "nothing was overtaken");
    // Counted again: rows are in the order in which commands were done.
    let done: Vec<u64> = rows
        .iter()
        .map(|row| value(row, "command") as u64)
        .collect();
    for (place, row) in rows.iter().enumerate() {
        let command = done[place];
        let later: BTreeSet<u64> = done[..place]
            .iter()
            .copied()
            .filter(|other| *other > command)
            .collect();
        assert_eq!(later.len() as f64, value(row, "delay_count"), "{row:?}");
    }
}

#[test]
fn rows_of_many_runs_are_refused() {
    let path = scratch("requests-many").join("requests.csv");
    let path = path.to_str().unwrap();
    let (code, error) = ended(&["sim", "run", "small.toml", "--requests", path]);
    assert_eq!(code, 2);
    assert!(
        error.contains("--requests is for one run, and these are 4"),
        "{error}"
    );
    assert!(!Path::new(path).exists());
}

/// Writing rows and coalescing by one change nothing; with eight, completions come together and late, and none is missing.
#[test]
fn coalesced_completions_come_together_and_each_once() {
    let deep = |coalesce: &'static [&'static str], name| {
        let mut args = vec![
            "--set",
            "engine.depth=8",
            "--set",
            "workload.processes=16",
            "--set",
            "engine.merge=false",
        ];
        args.extend(coalesce);
        rows(name, &args)
    };
    let (plain, _) = deep(&[], "requests-plain");
    let (one, _) = deep(&["--set", "drive.coalesce=1"], "requests-one");
    assert_eq!(plain, one);
    assert_eq!(
        plain["commands"]["interrupts"],
        plain["commands"]["completed"]
    );
    let wanted = [
        "--set",
        "drive.coalesce=4",
        "--set",
        "drive.coalesce_timeout=30ms",
    ];
    let (held, rows) = deep(Vec::from(wanted).leak(), "requests-held");
    assert_eq!(held["requests"], plain["requests"]);
    assert_eq!(held["unfinished"], 0);
    let interrupts = number(&held["commands"]["interrupts"]);
    let completed = number(&held["commands"]["completed"]);
    assert!(
        interrupts < 0.7 * completed && interrupts >= completed / 4.0,
        "{interrupts} of {completed}"
    );
    let at: BTreeSet<&str> = rows.iter().map(|row| of(row, "complete_s")).collect();
    assert_eq!(
        at.len() as f64,
        interrupts,
        "several of one interrupt are at one time"
    );
}

#[test]
fn coalescing_that_cannot_be_is_refused_by_key_and_range() {
    let coalesce = |setting| ended(&["sim", "run", "small.toml", "--set", setting]);
    for (setting, expected) in [
        (
            "drive.coalesce=0",
            "drive.coalesce: 0 is out of range; allowed is 1 to 256",
        ),
        (
            "drive.coalesce=257",
            "drive.coalesce: 257 is out of range; allowed is 1 to 256",
        ),
        ("drive.coalesce_timeout=1", "drive.coalesce_timeout"),
    ] {
        let (code, error) = coalesce(setting);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

/// One call of 64 pages is one transaction, however many commands it needs.
#[test]
fn a_call_of_several_pages_is_one_transaction_from_call_to_return() {
    let path = scratch("requests-calls").join("calls.toml");
    let text = "schedulers = \"noop\"\n[drive]\nprofile = \"st3400620as\"\n[host]\nread_ahead = \"0B\"\n\
                [[program]]\nbenchmark = \"transactions\"\nprocesses = 4\ntransactions = 5\nsize = \"256KiB\"\n";
    std::fs::write(&path, text).unwrap();
    let report = json(&["sim", "run", path.to_str().unwrap(), "--format", "json"]);
    let run = &report["runs"][0];
    let calls = &run["transactions"];
    assert_eq!(number(&calls["calls"]), 20.0);
    assert_eq!(
        number(&calls["commands_per_call"]),
        number(&run["commands"]["completed"]) / 20.0
    );
    assert!(number(&calls["commands_per_call"]) > 10.0);
    // Four processes that only call: their calls fill their time.
    let programs = run["programs"].as_array().unwrap();
    let took = |program: &Value| number(&program["ended_s"]) - number(&program["started_s"]);
    let processes = programs
        .iter()
        .flat_map(|program| program["processes"].as_array().unwrap());
    let took: f64 = processes.map(took).sum();
    let response = number(&calls["response_ms"]["mean"]);
    assert!(
        (20.0 * response / 1e3 - took).abs() < 1e-3 * took,
        "{response} ms, {took} s"
    );
    assert!(response > 5.0 * number(&run["response_ms"]["mean"]));
}
