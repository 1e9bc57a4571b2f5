//! `headtime sweep` of drawn points, with invariants.

use super::common::{data, headtime, scratch, stdout};
use super::sweeps::{at, scenario, wholes, within};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// An invariant that holds: depth does not halve the rate.
const HOLDS: &str = "[sweep]
    mode = \"draw\"
    points = 3
    again = [\"run.requests=300\", \"run.repeats=2\"]
    workload.size = [\"4KiB\", \"16KiB\", \"64KiB\"]
    engine.depth = [1, 4]
    [[sweep.invariant]]
    name = \"rates\"
    set = \"schedulers=noop\"
    metric = \"iops\"
    along = \"engine.depth\"
    accept = [0.5, inf]
";
/// An invariant that breaks: no response is so short.
const BREAKS: &str = "
    [[sweep.invariant]]
    name = \"responses\"
    set = [\"schedulers=sptf\", \"drive.noise=false\"]
    metric = \"response_mean_ms\"
    accept = [0, 0.001]
";

fn verdicts(directory: &Path, more: &[&str]) -> Value {
    let args = [&["sweep", "s.toml", "--format", "json"], more].concat();
    let (_, json, stderr) = within(directory, &args);
    serde_json::from_str(&json).unwrap_or_else(|_| panic!("{stderr}"))
}

#[test]
fn drawn_points_are_fixed_by_the_seed_and_fewer_are_the_first_of_them() {
    let directory = scenario(
        "invariants-draw",
        "[sweep]\nmode = \"draw\"\npoints = 12\nworkload.size = [\"4KiB\", \"8KiB\", \"16KiB\"]
         engine.depth = [1, 2, 4, 8]\nworkload.processes = [1, 2, 3]",
    );
    let drawn = |more: &[&str]| -> Vec<String> {
        let set = ["--set", "schedulers=noop", "--set", "run.requests=20"];
        let args = [&["sweep", "s.toml", "--format", "csv"], &set[..], more].concat();
        let (code, csv, stderr) = within(&directory, &args);
        assert_eq!(code, Some(0), "{stderr}");
        let keys = ["workload.size", "engine.depth", "workload.processes"];
        let name = |row: &Vec<(String, String)>| keys.map(|key| at(row, key)).join(" ");
        wholes(&csv).iter().map(name).collect()
    };
    let all = drawn(&[]);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 12, "{all:?}");
    assert_eq!(drawn(&["--set", "sweep.points=5"]), all[..5]);
    assert_ne!(drawn(&["--seed", "2"]), all);
    // Not more than there are.
    assert_eq!(drawn(&["--set", "sweep.points=1000"]).len(), 36);
}

/// Near a bound the value comes from the runs with the settings of `again`. Both sides have the same seeds.
#[test]
fn an_invariant_is_judged_along_a_key_by_runs_that_are_made_again() {
    let directory = scenario("invariants-along", HOLDS);
    // Nothing is sure, so that all runs are made again.
    let unsure = format!("{HOLDS}sure = [9, inf]\n");
    let text = fs::read_to_string(directory.join("s.toml")).unwrap();
    let rate = |size: &str, depth: u64, again: bool| -> f64 {
        let (size, depth) = (
            format!("workload.size={size}"),
            format!("engine.depth={depth}"),
        );
        let mut args = vec![
            "sim",
            "run",
            "plain.toml",
            "--format",
            "json",
            "--scheduler",
            "noop",
        ];
        args.extend(["--set", &size, "--set", &depth]);
        if again {
            args.extend(["--set", "run.requests=300", "--set", "run.repeats=2"]);
        }
        let (_, json, stderr) = within(&directory, &args);
        let report: Value = serde_json::from_str(&json).expect(&stderr);
        report["runs"][0]["iops"].as_f64().unwrap()
    };
    fs::write(
        directory.join("plain.toml"),
        text.split_once("[sweep]").unwrap().0,
    )
    .unwrap();
    // Ratio of two runs at one point.
    let over = unsure
        .replace("engine.depth = [1, 4]\n", "\n")
        .replace(
            "\"schedulers=noop\"",
            "[\"schedulers=noop\", \"engine.depth=4\"]",
        )
        .replace("along = \"engine.depth\"", "over = \"engine.depth=1\"");
    for (sweep, again) in [(HOLDS, false), (&unsure, true), (&over, true)] {
        let (plain, _) = text.split_once("[sweep]").unwrap();
        fs::write(directory.join("s.toml"), format!("{plain}{sweep}")).unwrap();
        let found = verdicts(&directory, &[]);
        let points = found["points"].as_array().unwrap();
        assert!((2..=3).contains(&points.len()), "{found}");
        for point in points {
            let size = point["x"].as_str().unwrap().rsplit(" = ").next().unwrap();
            let ratio = rate(size, 4, again) / rate(size, 1, again);
            let measured = point["measured"].as_f64().unwrap();
            assert!(
                (measured - ratio).abs() < 1e-5,
                "{measured} for {ratio}: {point}"
            );
            assert_eq!(point["within"], true);
        }
    }
}

#[test]
fn a_check_fails_on_a_break_until_the_baseline_has_it_with_its_cause() {
    let directory = scenario("invariants-check", &format!("{HOLDS}{BREAKS}"));
    let found = verdicts(&directory, &[]);
    let of = |name: &str| -> Vec<&Value> {
        let points = found["points"].as_array().unwrap().iter();
        points.filter(|point| point["series"] == name).collect()
    };
    let broken = of("responses").len();
    assert!(broken == 3 && of("rates").iter().all(|point| point["within"] == true));
    let sweep = |more: &[&str]| within(&directory, &[&["sweep", "s.toml"], more].concat());
    let (code, table, _) = sweep(&[]);
    assert_eq!(code, Some(0));
    assert!(
        table.contains("responses") && !table.contains("rates  "),
        "{table}"
    );
    let (code, _, stderr) = sweep(&["--check"]);
    assert!(
        code == Some(1) && stderr.contains("3 points are not as expected"),
        "{stderr}"
    );
    fs::write(directory.join("b.json"), "{\"figures\": {}}").unwrap();
    let (code, _, stderr) = sweep(&["--check", "--baseline=b.json"]);
    assert!(
        code == Some(1) && stderr.contains("newly out of range"),
        "{stderr}"
    );
    assert_eq!(sweep(&["--bless", "--baseline=b.json"]).0, Some(0));
    let (code, _, stderr) = sweep(&["--check", "--baseline=b.json"]);
    assert!(
        code == Some(1) && stderr.contains("does not say why"),
        "{stderr}"
    );
    let text = fs::read_to_string(directory.join("b.json")).unwrap();
    assert_eq!(text.matches("\"red\":\"\"").count(), broken, "{text}");
    let text = text.replace("\"red\":\"\"", "\"red\":\"it must be so\"");
    fs::write(directory.join("b.json"), text).unwrap();
    for points in ["sweep.points=3", "sweep.points=1"] {
        let (code, _, stderr) = sweep(&["--check", "--baseline=b.json", "--set", points]);
        assert_eq!(code, Some(0), "{stderr}");
    }
    // The causes of points that a smaller number leaves out stay.
    let fewer = ["--bless", "--baseline=b.json", "--set", "sweep.points=1"];
    assert_eq!(sweep(&fewer).0, Some(0));
    assert_eq!(sweep(&["--check", "--baseline=b.json"]).0, Some(0));
}

#[test]
fn a_check_that_judges_nothing_does_not_pass() {
    let none = "[sweep]\n    engine.depth = [1, 4]\n";
    let directory = scenario("invariants-none", none);
    let (code, _, stderr) = within(&directory, &["sweep", "s.toml", "--check"]);
    assert!(
        code == Some(2) && stderr.contains("write [[sweep.invariant]]"),
        "{stderr}"
    );
    // `noop` predicts nothing.
    let blind = HOLDS
        .replace("\"iops\"", "\"predicted_50us\"")
        .replace("along = \"engine.depth\"", "");
    let directory = scenario("invariants-blind", &blind);
    let (code, _, stderr) = within(&directory, &["sweep", "s.toml", "--check"]);
    assert!(
        code == Some(1) && stderr.contains("rates: no point is judged"),
        "{stderr}"
    );
}

/// The journals of both parts are there until the results are.
#[test]
fn a_sweep_with_invariants_goes_on_where_it_was_ended() {
    let unsure = format!("{HOLDS}sure = [9, inf]\n");
    let directory = scenario("invariants-resume", &unsure);
    let whole = verdicts(&directory, &[]);
    let out = ["sweep", "s.toml", "--out", "s.json"];
    // The second part cannot be written: the first one stays.
    let blocked = directory.join("s.json.again.partial");
    fs::create_dir(&blocked).unwrap();
    let (code, _, stderr) = within(&directory, &out);
    assert_eq!(code, Some(4), "{stderr}");
    fs::remove_dir(&blocked).unwrap();
    let (code, _, stderr) = within(&directory, &out);
    assert!(
        code == Some(0) && stderr.contains("goes on there"),
        "{stderr}"
    );
    let resumed = fs::read_to_string(directory.join("s.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&resumed).unwrap(), whole);
    let left = fs::read_dir(&directory).unwrap();
    let left = left.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.contains("partial")).count(), 0);
}

#[test]
fn what_is_wrong_with_an_invariant_is_refused_with_its_line() {
    let wrong = |old: &str, new: &str, said: &str| {
        let text = HOLDS.replace(old, new);
        assert_ne!(text, HOLDS, "{old}");
        let directory = scenario("invariants-wrong", &text);
        let (code, _, stderr) = within(&directory, &["sweep", "s.toml"]);
        assert!(
            matches!(code, Some(2 | 3)) && stderr.contains(said),
            "{said}: {stderr}"
        );
    };
    wrong("points = 3", "", "s.toml:14: sweep.points: goes with mode");
    wrong(
        "points = 3",
        "points = 0",
        "sweep.points: 0 is out of range; allowed is 1 to 1000000",
    );
    wrong(
        "\"draw\"",
        "\"each\"",
        "s.toml:16: sweep.points: goes with mode",
    );
    wrong(
        "metric = \"iops\"",
        "metric = \"ips\"",
        "did you mean `iops`?",
    );
    wrong("\"iops\"", "\"probe_minutes\"", "needs a learned drive");
    wrong(
        "along = \"engine.depth\"",
        "along = \"engine.merge\"",
        "is not swept",
    );
    wrong(
        "engine.depth = [1, 4]",
        "engine.depth = [1]",
        "has one value; give two or more",
    );
    wrong(
        "along = \"engine.depth\"",
        "along = \"engine.depth\"\nover = \"engine.depth=1\"",
        "does not go with along",
    );
    wrong("[0.5, inf]", "[2, 1]", "allowed are two numbers");
    wrong("\"schedulers=noop\"", "\"schedulers\"", "write KEY=VALUE");
    wrong(
        "\"schedulers=noop\"",
        "\"engine.depht=2\"",
        "did you mean `depth`?",
    );
    wrong(
        "set = \"schedulers=noop\"",
        "",
        "is about one run for each combination",
    );
    wrong("[1, 4]", "[1, 4]\nworkload.think = [\"x\"]", "s.toml:");
}

/// Four points, short: none fails, and all have a verdict but where nothing is predicted.
#[test]
fn the_shipped_grid_runs() {
    let grid = data().join("../../../../experiments/grid.toml");
    let short = [
        "sweep.points=4",
        "sweep.again=run.duration=150ms",
        "run.warm_up=0s",
        "run.duration=150ms",
    ];
    let mut args = vec!["sweep", grid.to_str().unwrap(), "--format", "json"];
    args.extend(short.iter().flat_map(|set| ["--set", *set]));
    let found: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let points = found["points"].as_array().unwrap();
    // A value without a column.
    let of_gaps = |point: &&Value| point["metric"] == "gap_share";
    assert!(points.iter().any(|point| of_gaps(&point)), "{points:?}");
    let count = points.len();
    assert!((26..=32).contains(&count), "{count}: {}", found["notes"]);
}

/// The head of the grid has the datasheets. HEADTIME_BLESS=1 writes the drives anew.
#[test]
fn the_drives_of_the_grid_are_those_of_their_datasheets() {
    let folder = data().join("../../../../experiments");
    let text = fs::read_to_string(folder.join("grid.toml")).unwrap();
    let made = scratch("invariants-drives");
    let mut count = 0;
    for line in text
        .lines()
        .filter_map(|line| line.strip_prefix("#   drives/"))
    {
        let (name, flags) = line.split_once(": ").unwrap();
        let path = made.join(name);
        let mut args = vec![
            "drive",
            "new",
            "--from-datasheet",
            "--force",
            "--out",
            path.to_str().unwrap(),
        ];
        args.extend(flags.split_whitespace());
        let output = headtime(&args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let (now, kept) = (fs::read(&path).unwrap(), folder.join("drives").join(name));
        if std::env::var_os("HEADTIME_BLESS").is_some() {
            fs::write(&kept, &now).unwrap();
        }
        assert!(
            fs::read(&kept).is_ok_and(|kept| kept == now),
            "{name} is stale"
        );
        count += 1;
    }
    assert_eq!(count, 5);
}
