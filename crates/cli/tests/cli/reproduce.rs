//! `headtime reproduce`: its output, its checks, and errors in figures.

use super::common::{data, ended, scratch, stdout};
use headtime_lab::figure::baseline::Baseline;
use headtime_lab::figure::{BASELINE, Figure, SHIPPED, Scale};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn figure() -> String {
    fs::read_to_string(data().join("figure.toml")).unwrap()
}

/// A figure file of this test's own, with a piece replaced.
fn changed(directory: &Path, from: &str, to: &str) -> PathBuf {
    let text = figure();
    assert!(text.contains(from), "{from}");
    let path = directory.join("changed.toml");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    path
}

#[test]
fn a_figure_has_the_fields_of_the_plan() {
    let text = stdout(&["reproduce", "figure.toml", "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    let all = ["id", "notes", "points", "seed", "source", "title"];
    assert_eq!(keys(&json), all);
    let points = json["points"].as_array().unwrap();
    let names: Vec<(&str, u64)> = points
        .iter()
        .map(|point| {
            let x = point["x"].as_f64().unwrap();
            (point["series"].as_str().unwrap(), x as u64)
        })
        .collect();
    let expected = [
        ("noop", 4),
        ("noop", 16),
        ("sstf", 4),
        ("sstf", 16),
        ("gain", 16),
        ("calibrated", 4),
    ];
    assert_eq!(names, expected);
    let plain = [
        "accept",
        "bound_share",
        "measured",
        "metric",
        "paper",
        "series",
        "unit",
        "within",
        "x",
    ];
    for point in &points[..5] {
        assert_eq!(keys(point), plain);
        assert!(point["paper"].is_null());
    }
    assert!(points[0]["accept"].is_null() && points[0]["within"].is_null());
    let of = |point: &Value| point["measured"].as_f64().unwrap();
    // The gain compares two other points of the figure. Mean response times of closed processes are their number
    // divided by the rate.
    let gain = of(&points[4]);
    assert!(
        (gain - of(&points[3]) / of(&points[1])).abs() < 0.1,
        "{gain}"
    );
    assert_eq!(points[4]["accept"], serde_json::json!([1.0, null]));
    assert_eq!(points[4]["within"], gain >= 1.0);
    assert_eq!(points[4]["unit"], "times noop");
    // Points that were used for calibration are not judged.
    assert_eq!(points[5]["calibrated"], true);
    assert!(points[5]["paper"].is_null() && points[5]["within"].is_null());
    assert_eq!(of(&points[5]), of(&points[0]));
    assert_eq!(json["notes"][1], "calibrated, 4: said, not judged");

    let quick = stdout(&["reproduce", "figure.toml", "--format", "json", "--quick"]);
    let quick: Value = serde_json::from_str(&quick).unwrap();
    assert_eq!(quick["quick"], true);
    assert_ne!(of(&quick["points"][0]), of(&points[0]));
}

#[test]
fn the_table_and_the_list() {
    let table = stdout(&["reproduce", "figure.toml"]);
    let headings =
        "series      x   metric            measured  unit        paper  accepted  within";
    for text in [
        "figure: Two <small> scenarios\nNobody, Nothing (nowhere, 2000), Figure 1\nseed 7\n",
        headings,
        "  times noop         ≥ 1       yes\n",
        "  1/s         110.0            calibrated\n",
        "- one, two\n",
    ] {
        assert!(table.contains(text), "no {text:?} in\n{table}");
    }
    let list = stdout(&["reproduce", "--list"]);
    for shipped in SHIPPED {
        assert!(list.contains(shipped.id), "{list}");
    }
}

/// A run as a scenario of its own gives the figure's values.
#[test]
fn scenarios_of_a_figure_run_alone() {
    let directory = scratch("reproduce-scenario");
    let args = ["reproduce", "figure.toml", "--print-scenario", "sixteen"];
    let scenario = directory.join("sixteen.toml");
    fs::write(&scenario, stdout(&args)).unwrap();
    let args = ["sim", "run", scenario.to_str().unwrap(), "--format", "json"];
    let alone: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let args = ["reproduce", "figure.toml", "--format", "json"];
    let json: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let schedulers: Vec<&str> = alone["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["scheduler"].as_str().unwrap())
        .collect();
    assert_eq!(schedulers, ["noop", "sstf"]);
    assert_eq!(alone["runs"][1]["iops"], json["points"][3]["measured"]);
    let (code, error) = ended(&["reproduce", "figure.toml", "--print-scenario", "five"]);
    assert_eq!(code, 2);
    assert!(error.contains("there are four, sixteen"), "{error}");
}

#[test]
fn files_of_a_figure() {
    let directory = scratch("reproduce-out");
    let out = directory.join("new/figures");
    let table = stdout(&["reproduce", "figure.toml", "--out", out.to_str().unwrap()]);
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let json = stdout(&["reproduce", "figure.toml", "--format", "json"]);
    assert_eq!(read("figure.json"), json);
    let csv = read("figure.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 7);
    assert!(lines[0].starts_with("id,series,x,metric,unit,measured,paper,"));
    assert!(lines[5].contains(",1,,true,false"), "{}", lines[5]);
    let svg = read("figure.svg");
    for text in [
        "Two &lt;small&gt; scenarios",
        ">Requests<",
        ">processes<",
        ">Waits<",
        ">wait (ms)<",
    ] {
        assert!(svg.contains(text), "no {text}");
    }
    // With a closed load at depth 1, each request waits for the ones before, except at the start.
    let requests = read("figure-requests.csv");
    let rows: Vec<Vec<&str>> = requests
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(
        rows[0],
        [
            "scenario",
            "scheduler",
            "arrived_s",
            "wait_ms",
            "service_ms"
        ]
    );
    assert_eq!(rows.len(), 401);
    let mean = |column: usize| -> f64 {
        let values = rows[1..]
            .iter()
            .map(|row| row[column].parse::<f64>().unwrap());
        values.sum::<f64>() / 400.0
    };
    let sstf: f64 = table
        .lines()
        .find(|line| line.starts_with("sstf ") && line.contains(" 4 "))
        .map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap())
        .unwrap();
    assert!((mean(4) - 1e3 / sstf).abs() < 0.1, "{} {sstf}", mean(4));
    assert!((mean(3) + mean(4) - 4e3 / sstf).abs() < 0.3, "{}", mean(3));
}

/// A bar for each point, with the accepted range in the background and the paper's number as a line.
#[test]
fn bars_of_a_figure() {
    let out = scratch("reproduce-bars");
    let args = [
        "reproduce",
        "efs-shares",
        "--quick",
        "--out",
        out.to_str().unwrap(),
    ];
    stdout(&args);
    let svg = fs::read_to_string(out.join("efs-shares.svg")).unwrap();
    let figure = Figure::parse(SHIPPED[0].id, SHIPPED[0].text, Scale::Quick).unwrap();
    let points = figure.points.len();
    let (_, drawn) = svg.split_once("</style>").unwrap();
    // One more of each is in the legend.
    assert_eq!(drawn.matches("fill=\"#d9d9d9\"").count(), points + 1);
    assert_eq!(
        drawn
            .matches("stroke=\"#000000\" stroke-width=\"2\"")
            .count(),
        points + 1
    );
    for text in [">4 KiB<", ">256 KiB<", ">sptf<", ">noop<", "quick scale"] {
        assert!(svg.contains(text), "no {text}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    // The ratio of two bars' heights is the ratio of their values.
    let json = fs::read_to_string(out.join("efs-shares.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let height = |colour: &str| -> f64 {
        let bar = drawn
            .lines()
            .filter(|line| line.contains(&format!("fill=\"{colour}\"")))
            .nth(1)
            .unwrap();
        let rest = bar.split("height=\"").nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let of = |number: usize| json["points"][number]["measured"].as_f64().unwrap();
    // The colours of the first two series; the first rectangle of each is its legend's.
    let ratio = height("#d55e00") / height("#0072b2");
    assert!((ratio - of(1) / of(0)).abs() < 0.01, "{ratio}");
}

/// The value of a point and, of several seeds, its least and largest.
fn point(json: &Value, number: usize) -> (f64, Option<[f64; 2]>) {
    let point = &json["points"][number];
    let range = point["range"].as_array();
    let range = range.map(|range| [0, 1].map(|end: usize| range[end].as_f64().unwrap()));
    (point["measured"].as_f64().unwrap(), range)
}

#[test]
fn with_several_seeds_a_figure_has_means_and_ranges_and_each_seed_is_judged() {
    let directory = scratch("reproduce-seeds");
    let json = |path: &Path| -> Value {
        let path = path.to_str().unwrap();
        let text = stdout(&["reproduce", path, "--format", "json"]);
        serde_json::from_str(&text).unwrap()
    };
    let gains: Vec<f64> = [7, 8, 9]
        .map(|seed| json(&changed(&directory, "seed = 7", &format!("seed = {seed}"))))
        .iter()
        .map(|json| {
            assert_eq!(json.get("seeds"), None);
            let (gain, range) = point(json, 4);
            assert_eq!(range, None);
            gain
        })
        .collect();
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    let most = gains.iter().copied().fold(0.0, f64::max);
    assert!(least < most, "{gains:?}");
    let three = changed(&directory, "seed = 7", "seed = 7\nseeds = 3");
    let all = json(&three);
    assert_eq!(all["seeds"], 3);
    let (mean, range) = point(&all, 4);
    assert_eq!(range, Some([least, most]));
    assert!(
        (mean - gains.iter().sum::<f64>() / 3.0).abs() < 1e-5,
        "{mean}"
    );
    assert_eq!(all["points"][4]["within"], true);
    let table = stdout(&["reproduce", three.to_str().unwrap()]);
    let seeds = "seeds 7 to 9: means, and the least and largest value\n";
    let tally = "\n1 of 1 judged points are within\n";
    for text in [seeds, "of the seeds", tally] {
        assert!(table.contains(text), "no {text:?} in\n{table}");
    }
    // One seed outside is enough, and its value is told.
    let text = fs::read_to_string(&three).unwrap();
    let low = (least + mean.min(most)) / 2.0;
    fs::write(
        &three,
        text.replacen("[1, inf]", &format!("[{low}, inf]"), 1),
    )
    .unwrap();
    let (code, error) = ended(&["reproduce", three.to_str().unwrap(), "--check"]);
    assert_eq!(code, 1);
    let values = format!("{mean} ({least} to {most}) is outside ≥ {low}");
    assert!(error.contains(&values), "{error}");
}

#[test]
fn a_name_of_a_figure_stands_for_a_scheduler() {
    let directory = scratch("reproduce-names");
    let named = "seed = 7\nschedulers = { sstf = \"fcfs\" }";
    let path = changed(&directory, "seed = 7", named);
    let args = ["reproduce", path.to_str().unwrap(), "--format", "json"];
    let json: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let series = |number: usize| json["points"][number]["series"].as_str().unwrap();
    assert_eq!((series(1), series(3)), ("noop", "sstf"));
    assert_eq!(point(&json, 1), point(&json, 3));
    assert_eq!(point(&json, 4).0, 1.0);
}

#[test]
fn a_scenario_can_be_left_out_at_the_quick_scale() {
    let directory = scratch("reproduce-quick-without");
    let path = changed(
        &directory,
        "seed = 7",
        "seed = 7\nquick_without = [\"sixteen\"]",
    );
    let args = ["reproduce", path.to_str().unwrap(), "--format", "json"];
    let points = |more: &[&str]| -> Vec<String> {
        let json: Value = serde_json::from_str(&stdout(&[&args, more].concat())).unwrap();
        let points = json["points"].as_array().unwrap();
        points.iter().map(|point| point["x"].to_string()).collect()
    };
    assert_eq!(points(&[]).len(), 6);
    // Both schedulers with four processes, and the calibrated point.
    assert_eq!(points(&["--quick"]), ["4.0"; 3]);
}

#[test]
fn learning_a_drive_is_measured_and_the_same_seed_gives_the_same_bytes() {
    use headtime_lab::accuracy::Learning;

    let directory = scratch("reproduce-learning");
    let judged = "series = \"gain\"\nscheduler = \"sstf\"\nscenario = \"sixteen\"\nmetric = \"response_mean_ms\"\n\
                  transform = \"speedup\"\nof = \"noop\"\naccept = [1, inf]";
    let learned = "series = \"minutes\"\nscheduler = \"sstf\"\nscenario = \"sixteen\"\n\
                   metric = \"probe_minutes\"\naccept = [0, 10]";
    let path = changed(&directory, judged, learned);
    let text = fs::read_to_string(&path).unwrap();
    let slower = "drive.profile = \"hp-c2247a\"\ndrive.override.noise.overhead_sd = \"30us\"";
    let text = text.replacen("drive.profile = \"atlas10k\"", slower, 1);
    fs::write(&path, text).unwrap();
    let args = ["reproduce", path.to_str().unwrap(), "--format", "json"];
    let first = stdout(&args);
    assert_eq!(first, stdout(&args));
    let json: Value = serde_json::from_str(&first).unwrap();
    // It is a unit of the scenario's drive, with its changes, that was learned.
    let truth = headtime_disk::profile::by_name("hp-c2247a").unwrap();
    let noisy = truth.with(|spec| spec.noise.overhead_sd = headtime_units::Nanos::from_micros(30));
    let minutes = Learning::Read
        .of(&noisy.unwrap(), 7)
        .unwrap()
        .spent
        .as_millis_f64()
        / 60_000.0;
    assert!((point(&json, 4).0 - minutes).abs() < 1e-5, "{minutes}");
    assert_ne!(
        Learning::Read.of(&truth, 7).unwrap().spent.as_millis_f64() / 60_000.0,
        minutes
    );
}

#[test]
fn ranges_are_checked() {
    let directory = scratch("reproduce-check");
    assert_eq!(ended(&["reproduce", "figure.toml", "--check"]).0, 0);
    let red = changed(&directory, "accept = [1, inf]", "accept = [90, inf]");
    let red = red.to_str().unwrap();
    assert_eq!(ended(&["reproduce", red]).0, 0);
    let (code, error) = ended(&["reproduce", red, "--check"]);
    assert_eq!(code, 1);
    assert!(error.contains("1 point is not as expected"), "{error}");
    assert!(
        error.contains("figure: gain, 16, response_mean_ms (times noop): "),
        "{error}"
    );
    assert!(error.contains("is outside ≥ 90"), "{error}");
}

#[test]
fn a_baseline_knows_what_is_red_and_what_was_measured() {
    let directory = scratch("reproduce-baseline");
    let red = changed(&directory, "accept = [1, inf]", "accept = [90, inf]");
    let red = red.to_str().unwrap();
    let file = directory.join("baseline.json");
    let known = format!("--baseline={}", file.display());
    let check = |figure: &str| ended(&["reproduce", figure, "--check", &known]);
    fs::write(&file, "{\"figures\": {}}").unwrap();
    let (code, error) = check(red);
    assert_eq!(code, 1);
    assert!(error.contains("is not in the baseline"), "{error}");

    let (code, note) = ended(&["reproduce", red, "--bless", &known]);
    assert_eq!(code, 0);
    assert!(note.contains("is out of its range; write into"), "{note}");
    let (code, error) = check(red);
    assert_eq!(code, 1);
    assert!(error.contains("the baseline does not say why"), "{error}");

    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("\"red\":\"\"", "\"red\":\"arms are slow\"");
    fs::write(&file, &text).unwrap();
    assert_eq!(check(red), (0, String::new()));
    // The reason comes out with the results.
    let table = stdout(&["reproduce", red, &known]);
    assert!(table.contains("out of range: arms are slow"), "{table}");
    // A point in its range that was expected out of range.
    let (code, error) = check("figure.toml");
    assert_eq!(code, 1);
    assert!(error.contains("is in its range now"), "{error}");
    // The values of another seed.
    let moved = changed(&directory, "seed = 7", "seed = 8");
    let (code, error) = check(moved.to_str().unwrap());
    assert_eq!(code, 1);
    assert!(error.contains("--bless if the change is meant"), "{error}");
    // A blessing without change changes nothing, and the quick scale has entries of its own.
    changed(&directory, "accept = [1, inf]", "accept = [90, inf]");
    assert_eq!(ended(&["reproduce", red, "--bless", &known]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(
        ended(&["reproduce", red, "--check", "--quick", &known]).0,
        1
    );
    let (code, error) = ended(&["reproduce", red, "--bless", "--baseline"]);
    assert_eq!(code, 2);
    assert!(error.contains("write --baseline=FILE"), "{error}");
    fs::write(&file, "{\"figures\": 3}").unwrap();
    let (code, error) = check(red);
    assert_eq!(code, 3);
    assert!(error.contains("baseline.json: "), "{error}");
}

#[test]
fn what_is_wrong_with_a_figure_is_told_with_its_place() {
    let directory = scratch("reproduce-errors");
    for (from, to, problem) in [
        ("id = \"figure\"", "", "id: missing"),
        (
            "metric = \"iops\"\n",
            "metric = \"iop\"\n",
            "did you mean `iops`?",
        ),
        (
            "scenario = \"four,sixteen\"",
            "scenario = \"fours\"",
            "did you mean `four`?",
        ),
        ("of = \"noop\"", "", "say with which scheduler to compare"),
        ("seed = 7", "seeds = 0", "seeds: "),
        (
            "seed = 7",
            "base = \"freeblock-hosts\"",
            "base: no base is called `freeblock-hosts`; did you mean `freeblock-host`? There are freeblock-host",
        ),
        (
            "seed = 7",
            "schedulers = { stream = \"sstff\" }",
            "schedulers.stream: ",
        ),
        (
            "seed = 7",
            "schedulers = { stream = 1 }",
            "schedulers.stream: is the number 1, but should be the text of a scheduler",
        ),
        ("why = \"it moves less\"", "", "why: a range and why"),
        (
            "accept = [1, inf]",
            "accept = [2, 1]",
            "accept: allowed are two numbers",
        ),
        (
            "series = \"gain\"",
            "colour = 1",
            "point[1].colour: unknown key",
        ),
        (
            "name = \"sixteen\"",
            "name = \"four\"",
            "another one is called `four`",
        ),
        (
            "set = [\"workload.processes=16\"]",
            "set = [\"workload.procesess=16\"]",
            "did you mean `processes`?",
        ),
        (
            "set = [\"workload.processes=16\"]",
            "engine.depth = [1, 2]",
            "engine.depth: a scenario of a figure has one",
        ),
        (
            "set = [\"workload.processes=16\"]",
            "schedulers = \"noop\"",
            "the points of a figure say which",
        ),
        (
            "paper = 110",
            "accept = [1, 2]\nwhy = \"x\"",
            "what was used to calibrate is not judged",
        ),
        (
            "series = \"calibrated\"",
            "series = \"noop\"",
            "another point is noop, 4, iops (1/s)",
        ),
        (
            "unit = \"1/s\"",
            "unit = \"1/m\"",
            "unit: no point has that",
        ),
        ("x = 4\n", "", "lines are over numbers"),
        (
            "scheduler = \"noop,sstf\"",
            "scheduler = \"nop\"",
            "did you mean \"noop\"?",
        ),
    ] {
        let path = changed(&directory, from, to);
        let (code, error) = ended(&["reproduce", path.to_str().unwrap()]);
        assert_eq!(code, 3, "{from}: {error}");
        assert!(error.contains("changed.toml:"), "{error}");
        assert!(error.contains(problem), "{error}");
    }
    let (code, error) = ended(&["reproduce", "efs-share"]);
    assert_eq!(code, 2);
    assert!(error.contains("did you mean `efs-shares`?"), "{error}");
    assert_eq!(ended(&["reproduce"]).0, 2);
    assert_eq!(ended(&["reproduce", "--list", "efs-shares"]).0, 2);
    assert_eq!(ended(&["reproduce", "--list", "--format", "json"]).0, 2);
    assert_eq!(ended(&["reproduce", "no-such.toml"]).0, 4);
}

/// Every figure reads at both scales, is called as its file, is in the baseline point by point, and
/// each red there has its reason.
#[test]
fn what_comes_with_the_program_is_whole() {
    let baseline = Baseline::parse(BASELINE).unwrap();
    let ids: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.id).collect();
    let known: Vec<&String> = baseline.figures.keys().collect();
    assert!(
        known.iter().all(|id| ids.contains(&id.as_str())),
        "{known:?}"
    );
    for shipped in SHIPPED {
        for scale in [Scale::Full, Scale::Quick] {
            let file = format!("experiments/{}.toml", shipped.id);
            let figure = Figure::parse(&file, shipped.text, scale).unwrap();
            assert_eq!(figure.id, shipped.id);
            // Names of drives are no files beside the figure, points in them or not.
            let drives = figure
                .variants
                .iter()
                .flat_map(|variant| variant.scenario.drives.iter());
            for drive in drives {
                headtime_stack::drives::open(&drive.profile).unwrap();
            }
            let known = baseline.of(shipped.id, scale);
            for point in &figure.points {
                let is_of = |known: &&headtime_lab::figure::judge::KnownPoint| {
                    let name = (&known.series, &known.x, known.metric.as_str(), &known.unit);
                    name == (&point.series, &point.x, point.metric.name, &point.unit)
                };
                assert!(
                    known.iter().any(|known| is_of(&known)),
                    "{}: {}",
                    shipped.id,
                    point.name()
                );
            }
            assert_eq!(known.len(), figure.points.len(), "{}", shipped.id);
            let unexplained = known.iter().find(|known| known.red.as_deref() == Some(""));
            assert_eq!(unexplained, None);
        }
    }
}

#[test]
fn a_figure_says_who_gets_what_if_it_is_to() {
    let directory = scratch("figure-shares");
    let path = changed(&directory, "seed = 7", "seed = 7\nseeds = 2\nshares = true");
    let path = path.to_str().unwrap();
    let text = stdout(&["reproduce", path, "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let points = json["points"].as_array().unwrap();
    for (point, origins) in points[..4].iter().zip([4, 16, 4, 16]) {
        let shares = point["shares"].as_array().unwrap();
        let sum: f64 = shares.iter().map(|share| share.as_f64().unwrap()).sum();
        assert_eq!(shares.len(), origins);
        assert!((sum - 100.0).abs() < 1e-3, "{sum}");
        assert!((0.5..=1.0).contains(&point["fairness"].as_f64().unwrap()));
    }
    // A point that compares two runs has no shares.
    assert!(points[4].get("shares").is_none());
    let table = stdout(&["reproduce", path]);
    assert!(
        table.contains("fairness") && table.contains("16 of "),
        "{table}"
    );
    let out = directory.join("out");
    stdout(&["reproduce", path, "--out", out.to_str().unwrap()]);
    let csv = fs::read_to_string(out.join("figure.csv")).unwrap();
    let heading = csv.lines().next().unwrap();
    assert!(
        heading.ends_with(",fairness,share_least,share_most"),
        "{heading}"
    );
    let fields = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|line| fields(line) == fields(heading)));
}

/// One drive and one host serve all figures of the NCQ paper. One figure varies the read-ahead.
#[test]
fn the_figures_of_ncq_share_one_drive_and_one_host() {
    use headtime_lab::scenario::Workload;

    let mut hosts = Vec::new();
    for shipped in SHIPPED
        .iter()
        .filter(|shipped| shipped.id.starts_with("ncq-"))
    {
        let figure = Figure::parse(shipped.id, shipped.text, Scale::Full).unwrap();
        assert!(figure.shares, "{} does not say who gets what", figure.id);
        for variant in &figure.variants {
            let name = format!("{}: {}", figure.id, variant.name);
            let [drive] = &variant.scenario.drives[..] else {
                panic!("{name} compares drives");
            };
            assert_eq!(drive.profile, "st3400620as", "{name}");
            assert_eq!(drive.simulated, Default::default(), "{name}");
            let Workload::Programs(programs) = &variant.scenario.workload else {
                panic!("{name} runs no programs");
            };
            let mut host = programs.host.clone();
            // Raw devices are read page by page, files are not.
            let reads_device = |program: &headtime_lab::scenario::Program| {
                program.benchmark.name() == "transactions"
            };
            if !programs.entries.iter().any(reads_device) {
                assert_eq!(
                    host.request_max,
                    headtime_host::HostSpec::default().request_max,
                    "{name}"
                );
                host.request_max = headtime_units::Bytes(4096);
            }
            if variant.name == "no read-ahead" {
                host.read_ahead = headtime_host::HostSpec::default().read_ahead;
            }
            hosts.push((name, host));
        }
    }
    let (_, first) = hosts.first().expect("there are such figures");
    for (name, host) in &hosts {
        assert_eq!(host, first, "{name}");
    }
}

/// Profile of a figure of the freeblock study, with the changes of its host.
fn on_the_host_of_freeblock(variant: &headtime_lab::figure::Variant) -> headtime_disk::Profile {
    let drive = &variant.scenario.drives[0];
    let profile = headtime_stack::drives::open(&drive.profile).unwrap();
    let simulated = &drive.simulated;
    assert!(simulated.noise);
    headtime_stack::changed(&profile, &simulated.overrides, true, &drive.profile).unwrap()
}

/// One host serves all figures of the freeblock study, with every drive. The study did not measure the shares of
/// section 2.1, and they leave the bus out.
#[test]
fn the_figures_of_freeblock_share_one_host() {
    use headtime_disk::profile::{FirmwarePolicy, Preseek, WriteBack};
    use headtime_units::Nanos;

    let directory = scratch("figure-host");
    let mut figures = Vec::new();
    for drive in ["atlas10k", "cheetah18lp"] {
        let path = changed(
            &directory,
            "seed = 7",
            "seed = 7\nbase = \"freeblock-host\"",
        );
        let text = fs::read_to_string(path).unwrap();
        let text = text.replace("\"atlas10k\"", &format!("\"{drive}\""));
        let figure = Figure::parse("changed.toml", &text, Scale::Full).unwrap();
        assert_eq!(figure.variants[0].scenario.drives[0].profile, drive);
        figures.push(figure);
    }
    for shipped in SHIPPED.iter().filter(|other| other.id != "efs-shares") {
        let figure = Figure::parse(shipped.id, shipped.text, Scale::Full).unwrap();
        if figure.source.starts_with("Lumb, Schindler and Ganger") {
            figures.push(figure);
        }
    }
    for figure in &figures {
        for variant in &figure.variants {
            let name = format!("{}: {}", figure.id, variant.name);
            // Figures about firmware and pictures of passing sectors have no host.
            if !variant.scenario.drives[0].simulated.noise {
                let simulated = ["freeblock-fig10", "freeblock-fig11"];
                assert!(simulated.contains(&&*figure.id), "{name}");
                continue;
            }
            if figure.id.starts_with("freeblock-") {
                let belief = &variant.scenario.drives[0].believed.belief;
                assert_eq!(belief.as_deref(), Some("probed"), "{name}");
            }
            let found = on_the_host_of_freeblock(variant);
            for is_read in [true, false] {
                assert_eq!(
                    found.bus.sector(is_read),
                    Nanos::from_nanos(6_400),
                    "{name}"
                );
            }
            assert_eq!(found.cache.write_back, WriteBack::Off, "{name}");
            assert_eq!(found.queue.preseek, Preseek::AtMediaEnd, "{name}");
            assert_eq!(found.queue.depth, 16, "{name}");
            let by_position = FirmwarePolicy::Sptf {
                margin: Nanos::ZERO,
                age_cap: None,
            };
            assert_eq!(found.queue.policy, by_position, "{name}");
            let noise = found.noise;
            assert_eq!(
                (noise.speed_ppm, noise.seek_sd_relative),
                (1000, 0.01),
                "{name}"
            );
        }
    }
}

/// Keys of the figure override keys of its base.
#[test]
fn a_figure_is_laid_over_its_base() {
    let directory = scratch("figure-base");
    let text = "base = \"freeblock-host\"\n\n[common]\ndrive.override.queue.depth = 4";
    let path = changed(&directory, "[common]", text);
    let text = fs::read_to_string(path).unwrap();
    let figure = Figure::parse("changed.toml", &text, Scale::Full).unwrap();
    for variant in &figure.variants {
        let found = on_the_host_of_freeblock(variant);
        assert_eq!((found.queue.depth, found.noise.speed_ppm), (4, 1000));
    }
}

/// One drive and one host serve all figures of Stream Scheduling. A figure sets the keys that it compares, and no
/// others of drive, host or benchmark. Figures without a paper vary more on purpose.
#[test]
fn no_figure_is_tuned() {
    use headtime_engine::EngineSpec;
    use headtime_host::HostSpec;
    use headtime_host::workload::BenchmarkSpec;
    use headtime_lab::scenario::Workload;
    use headtime_stack::{Believed, Simulated};

    let mut seen = 0;
    for shipped in SHIPPED {
        let figure = Figure::parse(shipped.id, shipped.text, Scale::Full).unwrap();
        if !figure.id.starts_with("stream-") || figure.source.starts_with("no paper:") {
            continue;
        }
        for variant in &figure.variants {
            let name = format!("{}: {}", figure.id, variant.name);
            let scenario = &variant.scenario;
            let ([drive], [engine]) = (&scenario.drives[..], &scenario.engines[..]) else {
                panic!("{name} compares stacks");
            };
            assert_eq!(drive.believed, Believed::default(), "{name}");
            let deep = variant.name.contains("depth 31");
            let usual = EngineSpec {
                depth: if deep { 31 } else { 1 },
                hide_processes: engine.hide_processes,
                ..EngineSpec::linux_2_6().complete().unwrap()
            };
            assert_eq!(*engine, usual, "{name}");
            let simulated = match deep {
                true => Simulated {
                    firmware: drive.simulated.firmware,
                    ..Simulated::default()
                },
                false => Simulated::default(),
            };
            assert_eq!(drive.simulated, simulated, "{name}");
            let Workload::Programs(programs) = &scenario.workload else {
                panic!("{name} runs no programs");
            };
            let mut host = HostSpec::default();
            if programs.guests.is_some() {
                host.request_max = headtime_host::guests::Guests::REQUEST_MAX;
            }
            if let Some(array) = &scenario.array {
                // Figure 6 has one fitted number, which is the same for all that is judged.
                let stripes = programs.host.read_ahead.0 / (array.read_ahead().0 / 2);
                let shown = ["two", "eight"]
                    .iter()
                    .any(|many| variant.name.contains(many));
                assert!(stripes == 4 || shown, "{name}: {stripes} stripes");
                (host.read_ahead, host.chunk) = (programs.host.read_ahead, Some(array.chunk));
            }
            assert_eq!(programs.host, host, "{name}");
            if programs.cluster.is_some() {
                // Copies of one program, each with a file of its own.
                for program in &programs.entries {
                    let BenchmarkSpec::FullSeq(spec) = &program.benchmark else {
                        panic!("{name} runs {}", program.benchmark.name());
                    };
                    let usual = headtime_host::workload::FullSeqSpec {
                        size: spec.size,
                        start: spec.start,
                        ..Default::default()
                    };
                    assert_eq!(*spec, usual, "{name}");
                }
                assert_eq!(drive.profile, "barracuda-7200.10-160", "{name}");
                seen += 1;
                continue;
            }
            let [program] = &programs.entries[..] else {
                panic!("{name} runs several benchmarks");
            };
            let benchmark = &program.benchmark;
            let mut plain = benchmark.clone();
            match &mut plain {
                // Figures 4 and 7 vary these keys.
                BenchmarkSpec::ParRead(spec) => {
                    spec.think = headtime_host::workload::ParReadSpec::default().think;
                    if variant.name.contains("timer slack") {
                        spec.slack = headtime_units::Nanos::ZERO;
                    }
                }
                // The paper does not give these values, so the figures show both choices and are never judged.
                BenchmarkSpec::PostMark(spec) if variant.name.contains("10,000") => {
                    spec.transactions = 500;
                }
                BenchmarkSpec::MpiIo(spec) if variant.name.contains("0.7 ms") => {
                    spec.link_wait = headtime_units::Nanos::from_micros(400);
                }
                _ => {}
            }
            assert_eq!(
                plain,
                BenchmarkSpec::from_name(benchmark.name()).unwrap(),
                "{name}"
            );
            let profile = match benchmark {
                BenchmarkSpec::MpiIo(_) => "barracuda-7200.10-160",
                _ => "wd5000aaks",
            };
            assert_eq!(drive.profile, profile, "{name}");
            seen += 1;
        }
        for point in &figure.points {
            let schedulers = point.runs.iter().map(|(own, _)| &own.scheduler);
            for scheduler in schedulers {
                let options = scheduler
                    .options()
                    .filter(|(option, value)| *value != option.default);
                let set: Vec<&str> = options.map(|(option, _)| option.key).collect();
                // Allowed are the option of figure 7a, the timers of all kernels, and the paper's rule.
                let stream = scheduler.info().name == "stream";
                let set: Vec<&str> = set
                    .into_iter()
                    .filter(|key| !(stream && ["hz", "lost"].contains(key)))
                    .collect();
                assert!(
                    set.is_empty() || set == ["slice"],
                    "{}: {set:?}",
                    point.name()
                );
            }
        }
    }
    assert!(seen > 25, "{seen}");
}
