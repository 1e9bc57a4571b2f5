//! The pages agree with the program.

use super::common::{data, headtime, json, keys, scratch, stdout};

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
    assert_eq!(blocks.len(), 4);
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
    stdout(&["generate", "examples", directory.to_str().unwrap()]);
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
    // The page has all keys that `--print-scenario` can write.
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

/// Each scenario of the page can be swept, and has as many points as it says; so has each list in a table.
#[test]
fn the_sweeps_of_the_documentation_are_sweeps() {
    let page = data().join("../../../../docs/sweep.md");
    let text = std::fs::read_to_string(page).unwrap();
    let directory = scratch("documentation-sweeps");
    let blocks: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    for (number, (block, runs)) in blocks.iter().zip([72, 8, 14, 13]).enumerate() {
        let path = directory.join(format!("{number}.toml"));
        std::fs::write(&path, block).unwrap();
        let list = stdout(&["sweep", path.to_str().unwrap(), "--list"]);
        assert!(list.contains(&format!("{runs} combinations")), "{list}");
    }
    assert_eq!(blocks.len(), 4);
    // In a table, what may stand in `[sweep]`; each has two values.
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let spans = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let lists: Vec<&str> = spans.filter(|span| span.contains(" = [")).collect();
    assert!(!lists.is_empty());
    let path = directory.join("list.toml");
    for list in lists {
        let scenario = "schedulers = \"noop\"\ndrive.profile = \"wd5000aaks\"";
        std::fs::write(&path, format!("{scenario}\n[sweep]\n{list}\n")).unwrap();
        let shown = stdout(&["sweep", path.to_str().unwrap(), "--list"]);
        assert!(shown.contains("2 combinations"), "{list}: {shown}");
    }
    let shipped = data().join("../../../../experiments/read-ahead.toml");
    let list = stdout(&["sweep", shipped.to_str().unwrap(), "--list"]);
    assert!(list.contains("144 combinations"), "{list}");
}

/// Names of metrics in a text, without the endings of a histogram's series.
fn metrics(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let starts = text
        .match_indices("headtime_")
        .map(|(start, _)| &text[start..]);
    let names = starts.map(|rest| rest.split(|letter| !is_part(letter)).next().unwrap());
    let endings = ["_bucket", "_count", "_sum"];
    let bare = |name| {
        endings.iter().fold(name, |name: &str, end| {
            name.strip_suffix(end).unwrap_or(name)
        })
    };
    names.map(bare).collect()
}

#[test]
fn the_dashboard_and_the_alerts_have_metrics_of_the_documentation() {
    let read = |path: &str| std::fs::read_to_string(data().join("../../../..").join(path)).unwrap();
    let pages = [read("docs/metrics.md"), read("docs/scrub.md")].concat();
    let known = metrics(&pages);
    let dashboard = read("packaging/grafana-dashboard.json");
    let alerts = read("packaging/prometheus-alerts.yml");
    for (text, least) in [(&dashboard, 20), (&alerts, 10)] {
        let used = metrics(text);
        assert!(used.len() >= least, "{used:?}");
        for name in used {
            assert!(known.contains(&name), "{name} is on no page");
        }
    }
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let places: std::collections::BTreeSet<String> = panels
        .iter()
        .map(|panel| panel["gridPos"].to_string())
        .collect();
    assert_eq!(places.len(), panels.len(), "no panel covers another");
    for panel in panels {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            assert!(target["expr"].as_str().unwrap().contains("headtime_"));
        }
    }
    let rules: Vec<&str> = alerts.split("- alert: ").skip(1).collect();
    assert!(rules.len() >= 10);
    for rule in rules {
        for key in [
            "expr: ",
            "labels: {severity: ",
            "annotations:",
            "summary: \"",
        ] {
            assert_eq!(rule.matches(key).count(), 1, "{key}: {rule}");
        }
    }
    // The packages have both files.
    let manifest = read("crates/cli/Cargo.toml");
    for file in [
        "packaging/grafana-dashboard.json",
        "packaging/prometheus-alerts.yml",
    ] {
        assert_eq!(manifest.matches(&format!("{file}\"")).count(), 2, "{file}");
    }
}
