//! Errors name the place and the allowed values, and have their exit codes.

use super::common::{all, data, ended, run, scratch};

#[test]
fn a_wrong_command_line_is_an_error_that_says_what_is_allowed() {
    for (name, args) in [
        ("unknown-verb", vec!["simulate"]),
        ("unknown-option", vec!["sim", "run", "--sheduler", "noop"]),
        (
            "unknown-scheduler",
            vec!["sim", "run", "--scheduler", "noop,dedline"],
        ),
        (
            "unknown-scheduler-option",
            vec!["sim", "run", "-s", "deadline:fifo_bach=4"],
        ),
        (
            "set-unknown-key",
            vec!["sim", "run", "--set", "drive.profle=atlas10k"],
        ),
        ("set-no-value", vec!["sim", "run", "--set", "engine.depth"]),
        (
            "set-bare-duration",
            vec!["sim", "run", "--set", "run.duration=30"],
        ),
        (
            "set-out-of-range",
            vec!["sim", "run", "--set", "engine.depth=300"],
        ),
        (
            "set-scheduler",
            vec!["sim", "run", "--set", "schedulers=ssft"],
        ),
        ("plot-not-svg", vec!["sim", "run", "--plot", "picture.png"]),
        ("log-of-many", vec!["sim", "run", "--log", "/dev/null"]),
        (
            "closed-zero",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--closed",
                "0",
            ],
        ),
        (
            "two-paces",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--closed",
                "4",
                "--open",
            ],
        ),
        (
            "speed-of-closed",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--closed",
                "4",
                "--speed",
                "2",
            ],
        ),
        (
            "speed-zero",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--speed",
                "0",
            ],
        ),
        (
            "speed-nan",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--speed",
                "nan",
            ],
        ),
        (
            "set-speed-nan",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--set",
                "trace.speed=nan",
            ],
        ),
        ("seed-negative", vec!["sim", "run", "--seed", "-1"]),
        (
            "columns",
            vec!["trace", "info", "tiny.trace", "--columns", "op=1"],
        ),
        ("no-profile", vec!["trace", "replay", "tiny.trace"]),
        (
            "unit",
            vec!["trace", "info", "tiny.trace", "--time-unit", "hours"],
        ),
    ] {
        assert_eq!(run(&args).status.code(), Some(2), "{args:?}");
        insta::assert_snapshot!(format!("usage-{name}"), all(&args));
    }
}

#[test]
fn a_wrong_input_file_is_an_error_that_says_where() {
    for (name, args) in [
        (
            "scenario-unknown-key",
            vec!["sim", "run", "unknown-key.toml"],
        ),
        (
            "scenario-bad-duration",
            vec!["sim", "run", "bad-duration.toml"],
        ),
        ("scenario-bad-syntax", vec!["sim", "run", "bad-syntax.toml"]),
        ("scenario-endless", vec!["sim", "run", "endless.toml"]),
        (
            "scenario-nothing-measured",
            vec!["sim", "run", "small.toml", "--set", "run.warm_up=10d"],
        ),
        (
            "scenario-override",
            vec![
                "sim",
                "run",
                "small.toml",
                "--set",
                "drive.override.rotation.rpm=1",
            ],
        ),
        (
            "scenario-override-unknown",
            vec![
                "sim",
                "run",
                "small.toml",
                "--set",
                "drive.override.cache.enable=false",
            ],
        ),
        (
            "workload-range",
            vec![
                "sim",
                "run",
                "small.toml",
                "--set",
                "workload.range=0B..1TB",
            ],
        ),
        ("unknown-drive", vec!["drive", "show", "atlas10"]),
        ("trace-malformed", vec!["trace", "info", "malformed.trace"]),
        ("trace-negative", vec!["trace", "info", "negative.trace"]),
        (
            "trace-truncated",
            vec!["trace", "info", "truncated.trace.gz"],
        ),
        (
            "trace-of-another-kind",
            vec!["trace", "info", "measured.trace"],
        ),
        (
            "trace-past-the-end",
            vec!["trace", "replay", "past-the-end.trace", "-p", "atlas10k"],
        ),
        (
            "trace-no-such-device",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--device",
                "7",
            ],
        ),
        (
            "trace-without-processes",
            vec![
                "trace",
                "replay",
                "tiny.trace",
                "-p",
                "atlas10k",
                "--closed-per-process",
            ],
        ),
        (
            "validation-trace",
            vec![
                "drive",
                "validate",
                "-p",
                "atlas10k",
                "-t",
                "bad-measured.trace",
            ],
        ),
    ] {
        assert_eq!(run(&args).status.code(), Some(3), "{args:?}");
        insta::assert_snapshot!(format!("input-{name}"), all(&args));
    }
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_an_error_that_names_it() {
    for (name, args) in [
        ("no-scenario", vec!["sim", "run", "missing.toml"]),
        (
            "no-trace",
            vec!["trace", "replay", "missing.trace", "-p", "atlas10k"],
        ),
        ("no-profile", vec!["drive", "show", "missing.toml"]),
        ("no-parv", vec!["drive", "import", "missing.parv"]),
        (
            "no-measurements",
            vec!["drive", "validate", "-p", "atlas10k", "-t", "missing.trace"],
        ),
        (
            "no-directory",
            vec!["sim", "run", "small.toml", "--plot", "missing/picture.svg"],
        ),
    ] {
        assert_eq!(run(&args).status.code(), Some(4), "{args:?}");
        insta::assert_snapshot!(format!("file-{name}"), all(&args));
    }
}

#[test]
fn a_profile_with_overlapping_zones_is_refused() {
    let directory = scratch("overlap");
    let profile = super::common::stdout(&["drive", "show", "atlas10k", "--format", "toml"]);
    let overlapping = profile.replacen("cylinders = [433, 848]", "cylinders = [430, 848]", 1);
    assert_ne!(profile, overlapping);
    let path = directory.join("overlap.toml");
    std::fs::write(&path, overlapping).unwrap();
    let (code, text) = ended(&["drive", "show", path.to_str().unwrap()]);
    assert_eq!(code, 3);
    assert!(
        text.contains("overlap.toml") && text.contains("zones[1]"),
        "{text}"
    );
}

#[test]
fn nothing_is_left_behind_by_what_fails() {
    let directory = scratch("left-behind");
    let out = directory.join("out.csv");
    let out = out.to_str().unwrap();
    assert_eq!(
        run(&["trace", "convert", "malformed.trace", out])
            .status
            .code(),
        Some(3)
    );
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    assert!(data().join("malformed.trace").exists());
}

#[test]
fn a_line_break_in_the_name_of_a_file_is_escaped() {
    let directory = scratch("line-breaks");
    let file = |name: &str| {
        let path = directory.join(name);
        std::fs::write(&path, "garbage [\n").unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (plain, toml, fio, parv) = (
        file("nl\nx"),
        file("nl\nx.toml"),
        file("nl\nx.fio"),
        file("nl\nx.parv"),
    );
    let absent = directory.join("no\nnl\nx.parv");
    let absent = absent.to_str().unwrap();
    for args in [
        &["trace", "info", &plain][..],
        &["trace", "info", absent],
        &["trace", "replay", &plain, "-p", "atlas10k"],
        &["trace", "convert", &plain, &plain],
        &["trace", "convert", &plain, &format!("{plain}.csv")],
        &["sim", "run", &toml],
        &["sim", "run", &fio],
        &["sim", "replay-log", &plain],
        &["sweep", &toml],
        &["drive", "show", &toml],
        &["drive", "show", &parv],
        &["drive", "import", &parv],
        &["drive", "import", absent],
        &["drive", "curve", &toml],
        &["reproduce", &toml],
        &["reproduce", &plain.replace('/', "")],
    ] {
        let (code, text) = ended(args);
        assert!((2..=4).contains(&code), "{args:?}: {text}");
        assert!(
            text.contains("nl\\nx") && text.lines().count() == 1,
            "{args:?}: {text}"
        );
    }
    // The parser of the command line refuses these, with hints on further lines.
    for args in [
        &["nl\nx"][..],
        &["sim", "run", "--scheduler", "nl\nx"],
        &["trace", "info", &plain, "--first", "nl\nx"],
        &["trace", "info", &plain, "--nl\nx"],
    ] {
        let (code, text) = ended(args);
        assert_eq!(code, 2, "{args:?}: {text}");
        let is_escaped = text.contains("nl\\nx") && !text.contains("nl\nx");
        assert!(is_escaped, "{args:?}: {text}");
    }
    let trace = directory.join("nl\nx.csv");
    std::fs::copy(data().join("tiny.trace"), &trace).unwrap();
    let output = run(&["trace", "info", trace.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("nl\\nx.csv\n"), "{text}");
}
