//! `headtime sweep`: errors of the whole sweep, and errors of some combinations.

use super::common::{ended, headtime};
use super::sweeps::{at, scenario, wholes, within};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// An error of one combination is its result. The other combinations have the same results as without it.
#[test]
fn a_combination_that_fails_is_a_row_and_not_the_end() {
    // The drive has 9 GB.
    let sweep = "[sweep]
        drive.profile = [\"atlas10k\", \"wd5000aaks\"]
        workload.range = [\"0B..5GB\", \"100GB..200GB\"]
        run.requests = [50, 100]";
    let directory = scenario("sweep-fails", sweep);
    let (code, csv, stderr) = within(&directory, &["sweep", "s.toml", "--format", "csv"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("4 of 16 combinations failed; the column `error` says why"),
        "{stderr}"
    );
    let rows = wholes(&csv);
    for row in &rows {
        let fails =
            at(row, "drive.profile") == "atlas10k" && at(row, "workload.range") == "100GB..200GB";
        assert_eq!(at(row, "error").contains("workload"), fails, "{row:?}");
        assert_eq!(at(row, "iops").is_empty(), fails);
        // The row has the scenario's scheduler, also after an error.
        assert!(["noop", "sptf"].contains(&at(row, "scheduler")));
    }
    let (_, json, _) = within(&directory, &["sweep", "s.toml", "--format", "json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["failed"], 4);
    let (code, table, _) = within(&directory, &["sweep", "s.toml"]);
    assert_eq!(code, Some(1));
    assert!(
        table.contains("\n4 combinations failed\n  5: workload: "),
        "{table}"
    );
    let (code, list, _) = within(&directory, &["sweep", "s.toml", "--list"]);
    assert_eq!(code, Some(0));
    assert!(list.contains("4 combinations cannot be run"), "{list}");
    // Alone, and so with the same bytes.
    let args = [
        "sweep",
        "s.toml",
        "--format",
        "csv",
        "--vary",
        "drive.profile=wd5000aaks",
    ];
    let (code, alone, _) = within(&directory, &args);
    assert_eq!(code, Some(0));
    let without = |row: &Vec<(String, String)>| -> Vec<(String, String)> {
        let kept = row.iter().filter(|(name, _)| name != "combination");
        kept.cloned().collect()
    };
    let of_drive = rows
        .iter()
        .filter(|row| at(row, "drive.profile") == "wd5000aaks");
    let expected: Vec<_> = of_drive.map(without).collect();
    assert_eq!(
        wholes(&alone).iter().map(without).collect::<Vec<_>>(),
        expected
    );
}

/// A combination may also fail during its run.
#[test]
fn a_run_that_measures_nothing_fails_alone() {
    let sweep = "[sweep]\nrun.warm_up = [\"0s\", \"100s\"]\nrun.repeats = [1, 3]";
    let directory = scenario("sweep-nothing", sweep);
    let args = ["sweep", "s.toml", "--format", "csv", "--jobs"];
    let (code, csv, _) = within(&directory, &[&args[..], &["3"]].concat());
    assert_eq!(code, Some(1));
    let errors: Vec<bool> = wholes(&csv)
        .iter()
        .map(|row| at(row, "error").contains("no request finished after the warm-up of 100s"))
        .collect();
    assert_eq!(errors, [false, false, false, false, true, true, true, true]);
    // Of several repeats the first one's error, whichever came first.
    let (_, again, _) = within(&directory, &[&args[..], &["1"]].concat());
    assert_eq!(again, csv);
}

/// Faults of the sweep's text, each with its message and exit code.
#[test]
fn what_cannot_be_right_is_told_before_anything_runs() {
    for (sweep, said, code) in [
        (
            "[sweep]\n\"engine.deph\" = [1, 2]",
            "s.toml:15: engine.deph: unknown key; did you mean `depth`?",
            3,
        ),
        (
            "[sweep]\n\"engin.depth\" = [1, 2]",
            "s.toml:15: sweep.engin.depth: unknown key; did you mean `engine`?",
            3,
        ),
        (
            "[sweep]\nmod = \"each\"",
            "s.toml:15: sweep.mod: unknown key; did you mean `mode`?",
            3,
        ),
        (
            "[sweep]\nmode = \"eech\"\nseed = 1",
            "s.toml:15: sweep.mode: \"eech\" is not allowed; did you mean \"each\"? Allowed are \"cross\", \"each\"",
            3,
        ),
        (
            "[sweep]\nengine.depth = []",
            "s.toml:15: sweep.engine.depth: is an empty list; give at least one value",
            3,
        ),
        (
            "[sweep]",
            "s.toml:14: sweep: varies nothing; give a key and its values",
            3,
        ),
        ("", "s.toml:1: sweep: missing; give [sweep]", 3),
        (
            "[sweep]\nengine.depth = [1,\n 2,\n 300]",
            "s.toml:17: engine.depth: 300 is out of range; allowed is 1 to 256",
            3,
        ),
        (
            "[sweep]\nengine.depth = [1, 2]\nworkload.size = [\"4KiB\", \"4\"]",
            "s.toml:16: workload[0].size: \"4\": `4` is no distribution: a size needs its unit",
            3,
        ),
        (
            "[sweep]\nschedulers = [\"noop\", \"ssft\"]",
            "there is no policy \"ssft\"; did you mean \"sstf\"?",
            3,
        ),
        (
            "[sweep]\ndrive.profile = [\n \"atlas10k\",\n \"exos-x81\",\n]",
            "s.toml:17: drive.profile = exos-x81: no drive is called `exos-x81`; did you mean `exos-x18`?",
            3,
        ),
        (
            "[sweep]\ndrive.profile = \"atlas10\"",
            "s.toml:15: drive.profile = atlas10: no drive is called `atlas10`",
            3,
        ),
        (
            "[sweep]\ndrive.override.cache.enabeld = [true, false]",
            "s.toml:15: drive.override.cache.enabeld = true: atlas10k with drive.override: \
             cache.enabeld: unknown key",
            3,
        ),
        (
            "[sweep]\nseed = [1, 2]\ndrive.override.cache.enabeld = [true, false]",
            "s.toml:14: no combination can be run; the first, seed = 1, \
             drive.override.cache.enabeld = true: atlas10k with drive.override: cache.enabeld: unknown",
            3,
        ),
        (
            "[sweep]\nengine.depth = [1, 2]\nengine.depth = [4]",
            "s.toml:16: not TOML: duplicate key",
            3,
        ),
        (
            "[sweep]\nworkload.3.size = [\"4KiB\"]",
            "s.toml:15: workload: has no entry 3; there are 1, from 0",
            3,
        ),
        (
            "[sweep]\nengine.depth = [1, 2]\n\"engine.depth\" = [4]",
            "s.toml:16: sweep.engine.depth: is swept twice; the other is at s.toml:15",
            3,
        ),
        (
            "[sweep]\nengine.depth = [1, 2]\n[[sweep.together]]\nengine.depth = [4]\nseed = [1]",
            "s.toml:17: sweep.engine.depth: is swept twice; the other is at s.toml:15",
            3,
        ),
        (
            "[sweep]\nworkload.size = [\"4KiB\"]\n\"workload.0.size\" = [\"8KiB\"]",
            "s.toml:16: sweep.workload.0.size: workload.size at s.toml:15 is about the same",
            3,
        ),
        (
            "[sweep]\n\"workload\" = [{ processes = 4 }]\n\"workload.size\" = [\"8KiB\"]",
            "s.toml:16: sweep.workload.size: workload at s.toml:15 is about the same",
            3,
        ),
        (
            "[sweep]\nengine.depth = [1, 2, 1]",
            "s.toml:15: sweep.engine.depth: 1 stands there twice",
            3,
        ),
        (
            "[[sweep.together]]\nengine.depth = [1, 2]\nseed = [1, 2, 3]",
            "s.toml:16: sweep.seed: has 3 values, engine.depth has 2; keys that vary together have as many",
            3,
        ),
        (
            "[[sweep.together]]",
            "s.toml:14: sweep.together: names no key",
            3,
        ),
        (
            "[sweep]\nseed = [1]\npairs = [[\"seed\", \"engine.depth\"]]",
            "s.toml:16: sweep.pairs: is for mode = \"each\"",
            3,
        ),
        (
            "[sweep]\nmode = \"each\"\nseed = [1]\npairs = [[\"sed\", \"seed\"]]",
            "s.toml:17: sweep.pairs: `sed` is not swept; did you mean `seed`?",
            3,
        ),
        (
            "[sweep]\nmode = \"each\"\nseed = [1]\npairs = [\"seed\"]",
            "s.toml:17: sweep.pairs[0]: is the string \"seed\", but should be a pair of keys; write a list of them",
            3,
        ),
        (
            "[sweep]\nmode = \"each\"\nseed = [1]\npairs = [[\"seed\", \"seed\"]]",
            "s.toml:17: sweep.pairs: `seed` and `seed` vary together anyhow",
            3,
        ),
        (
            "[sweep]\nmode = \"each\"\nschedulers = [\"noop\", \"clook\"]",
            "s.toml:2: schedulers: has several values; where each key varies alone, the others need one",
            3,
        ),
        (
            "[sweep]\ndrive = [{ profile = \"atlas10k\" }]",
            "s.toml:15: sweep.drive: is a table; vary its keys, such as drive.profile",
            3,
        ),
        (
            "[sweep]\nprogram = [{ benchmark = \"grep\" }]",
            "s.toml:15: sweep.program: is a table; vary its keys, such as program.benchmark",
            3,
        ),
        (
            "[sweep]\ndrive.profile = [\"atlas10k\", \"none.toml\"]",
            "s.toml:15: drive.profile = none.toml: none.toml: cannot read: ",
            4,
        ),
    ] {
        let directory = scenario("sweep-wrong", sweep);
        let (found, out, stderr) = within(&directory, &["sweep", "s.toml", "--out", "s.csv"]);
        assert!(stderr.contains(said), "{sweep}: {stderr}");
        assert_eq!((found, out.as_str()), (Some(code), ""), "{sweep}: {stderr}");
        // Nothing ran, and nothing is left.
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "{sweep}");
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_told_with_its_option() {
    for (args, said) in [
        (
            &["--set", "engine.depth=4"][..],
            "--set engine.depth=4: engine.depth is swept (sweep.toml:15); --vary engine.depth=.. gives it \
             other values",
        ),
        (
            &["--set", "workload.0.size=4KiB"],
            "--set workload.0.size=4KiB: workload.size is swept (sweep.toml:16)",
        ),
        (
            &["--vary", "seed=1,2", "--seed", "4"],
            "--seed 4: seed is swept (--vary seed=1,2)",
        ),
        (
            &["--vary", "engine.depth"],
            "--vary engine.depth: write KEY=LIST",
        ),
        (&["--vary", "engine.depth="], "is an empty list"),
        (
            &["--vary", "engine.depth=1,300"],
            "--vary engine.depth=1,300: engine.depth: 300 is out of range",
        ),
        (
            &["--vary", "seed=1", "--vary", "seed=2"],
            "--vary seed=2: seed: is varied twice",
        ),
        (
            &["--vary", "engine.merge=true"],
            "engine.merge: varies together with others in sweep.toml:19: engine.merge, engine.merge_max",
        ),
        (
            &["--vary", "drive.profile=atlas10k,atlas10"],
            "--vary drive.profile=atlas10k,atlas10: drive.profile = atlas10: no drive is called",
        ),
        (&["--out", "x.txt"], "--out x.txt: in which format?"),
        (
            &["--out", "x.csv", "--format", "table"],
            "--format table is for the standard output",
        ),
        (&["--plot", "x.png"], "--plot x.png: pictures are SVG"),
        (
            &["--plot", "x.svg", "--metric", "iosp"],
            "--metric iosp: no column of numbers is called that; did you mean `iops`?",
        ),
        (
            &["--plot", "x.svg", "--metric", "drive"],
            "--metric drive: no column of numbers is called that",
        ),
        (
            &["--plot", "x.svg", "--x", "depht"],
            "--x depht: does not vary",
        ),
        (
            &[
                "--plot",
                "x.svg",
                "--x",
                "depth",
                "--series",
                "engine.depth",
            ],
            "--series engine.depth: has another place in the picture already",
        ),
        (
            &["--plot", "x.svg", "--only", "depth=3"],
            "--only depth=3: engine.depth has 1, 4",
        ),
        (
            &["--plot", "x.svg", "--only", "depth"],
            "--only depth: write KEY=VALUE",
        ),
        (
            &[
                "--vary",
                "seed=1,2,3,4,5,6,7",
                "--vary",
                "workload.processes=1,2,3,4,5",
                "--plot",
                "x.svg",
                "--metric",
                "iops,fairness,issued",
            ],
            "a picture would have 120 charts of 2 lines; at most 96 of 24 can be read",
        ),
    ] {
        let (code, stderr) = ended(&[&["sweep", "sweep.toml"], args].concat());
        assert!(stderr.contains(said), "{args:?}: {stderr}");
        assert_eq!(code, 2, "{args:?}: {stderr}");
    }
    for (args, said) in [
        (
            ["sim", "run", "sweep.toml"].as_slice(),
            "sweep.toml:14: sweep: is for `headtime sweep`",
        ),
        (
            &["sweep", "small.toml"],
            "small.toml:1: sweep: missing; give [sweep]",
        ),
    ] {
        let (_, stderr) = ended(args);
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn products_that_are_too_large_are_refused_with_their_count() {
    let list = |count: u32| {
        (1..=count)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let seeds = format!("seed={}", list(100));
    let processes = format!("workload.processes={}", list(30));
    let args = [
        "sweep",
        "sweep.toml",
        "--list",
        "--vary",
        &seeds,
        "--vary",
        &processes,
    ];
    let (code, stderr) = ended(&args);
    assert_eq!(code, 3, "{stderr}");
    assert!(
        stderr.contains(
            "sweep.toml:14: sweep: these make 24000 runs; allowed are 20000, or what --max-runs says. \
             mode = \"each\" and \"draw\" make fewer"
        ),
        "{stderr}"
    );
    // The scenario's own two schedulers double it, and repeats count.
    let raised =
        |most: &str, more: &[&str]| ended(&[&args, &["--max-runs", most][..], more].concat());
    let (code, stderr) = raised("47999", &[]);
    assert_eq!(code, 3);
    assert!(
        stderr.contains("these make 48000 runs; allowed are 47999"),
        "{stderr}"
    );
    let (code, stderr) = raised("48000", &["--set", "run.repeats=2"]);
    assert_eq!(code, 3);
    assert!(stderr.contains("these make 96000 runs"), "{stderr}");
    // More than a count can hold.
    let axes: Vec<String> = ["seed", "run.warm_up", "workload.until", "workload.start"]
        .iter()
        .map(|key| {
            let values: Vec<String> = (1..60_000).map(|n| format!("\"{n}s\"")).collect();
            format!("{key} = [{}]", values.join(","))
        })
        .collect();
    let directory = scenario(
        "sweep-huge",
        &format!("[sweep]\n{}\nengine.depth = [1, 2]", axes.join("\n")),
    );
    let (code, _, stderr) = within(&directory, &["sweep", "s.toml", "--list"]);
    assert_eq!(code, Some(3));
    assert!(
        stderr.contains("these make more than can be counted"),
        "{stderr}"
    );
}

/// With `--on` the Python package takes the command over, and an environment without the package gets an error that says what to do.
#[test]
fn a_sweep_on_other_machines_is_the_python_packages() {
    let directory = scenario("sweep-elsewhere", "[sweep]\nengine.depth = [1, 4]");
    // Stands in for Python: shows its arguments, and lacks the package if the environment says so.
    let python = directory.join("python3");
    let script = "#!/bin/sh\n[ \"$1\" != -c ] || exit ${LACKS:-0}\nprintf '%s\\n' \"$@\"\nexit 5\n";
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = [
        "sweep",
        "s.toml",
        "--on",
        "slurm",
        "--out",
        "results",
        "--workers",
        "3",
        "--vary",
        "seed=1,2",
        "--restart",
    ];
    let of = |lacks: &str| {
        let mut command = headtime(&arguments);
        command.current_dir(&directory).env("LACKS", lacks);
        let path = format!("{}:/usr/bin:/bin", directory.display());
        let output = command.env("PATH", path).output().unwrap();
        let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (output.status.code(), texts)
    };
    let (code, [stdout, _]) = of("0");
    assert_eq!(code, Some(5), "the package's exit code");
    let expected = "-m headtime sweep --on slurm --workers=3 --max-runs=20000 --vary=seed=1,2 --restart --out results -- s.toml";
    assert_eq!(stdout.lines().collect::<Vec<_>>().join(" "), expected);
    let (code, [_, stderr]) = of("1");
    assert_eq!(code, Some(2));
    assert!(stderr.contains("has no package `headtime`"), "{stderr}");
}
