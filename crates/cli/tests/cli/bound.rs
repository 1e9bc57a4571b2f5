//! The least time that any scheduler needs, beside what each took.

use super::common::{json, number, stdout};
use serde_json::Value;

fn runs(args: &[&str]) -> Vec<Value> {
    let args = [args, &["--format", "json"]].concat();
    json(&args)["runs"].as_array().unwrap().clone()
}

/// Values of a column. Rows of single programs have no value in some columns and are left out.
fn column<'a>(csv: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let mut headings = lines.next().unwrap();
    let at = headings.position(|heading| heading == name).unwrap();
    let fields = lines.map(|mut fields| fields.nth(at).unwrap());
    fields.filter(|field| !field.is_empty()).collect()
}

const SCHEDULERS: &str = "noop,deadline,sptf,anticipatory,cfq,stream,clairvoyant";

#[test]
fn programs_have_one_bound_under_all_schedulers_which_none_passes() {
    let args = ["sim", "run", "programs.toml", "--scheduler", SCHEDULERS];
    let runs = runs(&args);
    assert_eq!(runs.len(), 7);
    for run in &runs {
        let bound = &run["bound"];
        let parts = ["arm", "command", "chain"].map(|part| {
            let part_s = format!("{part}_s");
            (number(&bound[&part_s]), part)
        });
        let (time, by) = parts
            .into_iter()
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .unwrap();
        assert!(time > 0.0);
        assert_eq!(
            (number(&bound["time_s"]), bound["by"].as_str()),
            (time, Some(by))
        );
        assert_eq!(bound["time_s"], runs[0]["bound"]["time_s"]);
        let programs = run["programs"].as_array().unwrap();
        let ends = programs.iter().map(|program| number(&program["ended_s"]));
        let took = ends.reduce(f64::max).unwrap();
        let share = number(&bound["share"]);
        assert!((share - 100.0 * time / took).abs() < 1e-3, "{share}");
        assert!(share > 5.0 && share <= 100.0, "{share}");
        let rates = programs
            .iter()
            .map(|program| number(&program["throughput_mb_s"]));
        let (rates, most) = (rates.sum::<f64>() * 1e3, number(&bound["programs_kb_s"]));
        assert!(rates <= most, "{rates}, {most}");
    }
    // For schedulers with slices, changes between slices make the bound longer.
    let sliced = |run: &Value| run["bound"].get("with_slices_s").map(number);
    assert_eq!(sliced(&runs[0]), None);
    assert!(sliced(&runs[5]).unwrap() >= number(&runs[5]["bound"]["time_s"]));
}

#[test]
fn the_share_is_in_tables_lines_and_sweeps() {
    let args = ["sim", "run", "programs.toml"];
    let shares: Vec<f64> = runs(&args)
        .iter()
        .map(|run| number(&run["bound"]["share"]))
        .collect();
    let table = stdout(&args);
    assert!(table.contains("% of bound"), "{table}");
    for share in &shares {
        assert!(
            table.contains(&format!(" {share:.1} ")),
            "{share} in\n{table}"
        );
    }
    let csv = stdout(&[&args[..], &["--format", "csv"]].concat());
    let written: Vec<f64> = column(&csv, "bound_share")
        .iter()
        .map(|share| share.parse().unwrap())
        .collect();
    assert_eq!(written, shares);
    assert_eq!(column(&csv, "bound_by"), ["arm", "arm"]);
    let args = [
        "sweep",
        "programs.toml",
        "--vary",
        "schedulers=noop,cfq",
        "--format",
        "csv",
    ];
    let csv = stdout(&args);
    let swept: Vec<f64> = column(&csv, "bound_share")
        .iter()
        .map(|share| share.parse().unwrap())
        .collect();
    assert_eq!(swept, shares, "{csv}");
}

/// A closed replay is the same work under every scheduler, and so are processes that end by themselves.
#[test]
fn work_that_ends_by_itself_has_a_bound() {
    for args in [
        &[
            "trace",
            "replay",
            "tiny.trace",
            "-p",
            "atlas10k",
            "--closed",
            "2",
        ][..],
        &[
            "sim",
            "run",
            "small.toml",
            "--set",
            "workload.requests=20",
            "--set",
            "run={}",
        ],
    ] {
        for run in runs(args) {
            let share = number(&run["bound"]["share"]);
            assert!(share > 0.0 && share <= 100.0, "{args:?}: {share}");
        }
    }
}

#[test]
fn where_the_end_depends_on_who_is_served_or_on_no_disk_the_cell_is_empty() {
    let ends = ["--set", "workload.requests=20", "--set"];
    for more in [
        &["sim", "run", "small.toml"][..],
        &["sim", "run", "small.toml", "--set", "run={duration=\"1s\"}"],
        &[
            &["sim", "run", "small.toml"],
            &ends[..],
            &["run={warm_up=\"100ms\"}"],
        ]
        .concat(),
        &[
            &["sim", "run", "small.toml"],
            &ends[..],
            &["run={}", "--set", "workload.gap=10ms"],
        ]
        .concat(),
        &["sim", "run", "programs.toml", "--set", "run.duration=100ms"],
        &["trace", "replay", "tiny.trace", "-p", "atlas10k"],
    ] {
        for run in runs(more) {
            assert!(run["bound"].is_null(), "{more:?}: {}", run["bound"]);
        }
        let table = stdout(more);
        assert!(!table.contains("bound"), "{table}");
        let csv = stdout(&[more, &["--format", "csv"]].concat());
        for name in ["bound_share", "bound_by", "bound_s"] {
            assert!(
                column(&csv, name).iter().all(|field| field.is_empty()),
                "{csv}"
            );
        }
    }
}
