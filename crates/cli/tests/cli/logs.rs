//! Logs of runs, and repeating them.

use super::common::{json, run, scratch, stdout};
use headtime_engine::EngineSpec;
use headtime_units::Bytes;

#[test]
fn a_log_says_what_it_is_a_log_of() {
    let path = scratch("log").join("run.log");
    let path = path.to_str().unwrap();
    let report = json(&[
        "sim",
        "run",
        "small.toml",
        "-s",
        "deadline:fifo_batch=4",
        "--set",
        "engine.depth=2",
        "--set",
        "engine.merge_max=64KiB",
        "--set",
        "drive.belief=cheetah9lp",
        "--log",
        path,
        "--format",
        "json",
    ]);
    let log = std::fs::read_to_string(path).unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("headtime-log 3"));
    let settings: Vec<&str> = lines.take_while(|line| line.starts_with("# ")).collect();
    let text = |key: &str| report[key].as_str().unwrap();
    let engine = EngineSpec {
        depth: 2,
        merge_max: Bytes(64 << 10),
        ..EngineSpec::default()
    };
    let engine = headtime_stack::entries(&engine).into_iter();
    let engine = engine.map(|(key, value)| format!("# {key} {}", value.text()));
    let mut expected = vec![
        format!("# version {}", text("version")),
        format!("# scenario_hash {}", text("scenario_hash")),
        "# seed 7".to_owned(),
        "# drive atlas10k".to_owned(),
        "# firmware fifo".to_owned(),
        "# noise true".to_owned(),
        "# scheduler deadline:fifo_batch=4".to_owned(),
    ];
    expected.extend(engine);
    expected.push("# sector_bytes 512".to_owned());
    assert_eq!(settings, expected);
    let records = headtime_engine::log::read(&log).collect::<Result<Vec<_>, _>>();
    let records = records.unwrap_or_else(|error| panic!("{error}"));
    assert!(records.len() > 800);
    assert_eq!(log.lines().last(), Some("# end"));
}

/// Writes the log of one run under a scheduler, and where it is.
fn log_of(name: &str, scheduler: &str, settings: &[&str]) -> std::path::PathBuf {
    let path = scratch(name).join("run.log");
    let mut args = vec!["sim", "run", "small.toml", "-s", scheduler];
    args.extend(["--set", "engine.depth=2", "--log", path.to_str().unwrap()]);
    for setting in settings {
        args.extend(["--set", setting]);
    }
    stdout(&args);
    path
}

#[test]
fn a_log_is_repeated_with_the_same_decisions() {
    for (scheduler, settings) in [
        ("noop", &[][..]),
        ("stream(deadline)", &[]),
        ("clairvoyant", &["engine.plug=true"]),
        ("sptf", &["drive.belief=cheetah9lp"]),
        // Not a drive that is shipped: the log has it whole.
        ("stream(sptf)", &["drive.override.rotation.rpm=10026"]),
        ("cfq", &["engine.commit_ahead=true", "engine.merge=false"]),
    ] {
        let path = log_of("replayed", scheduler, settings);
        let path = path.to_str().unwrap();
        let output = run(&["sim", "replay-log", path]);
        let (text, notes) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert!(output.status.success(), "{scheduler}: {notes}");
        assert!(text.ends_with(" decisions, identical\n"), "{text}");
        assert!(text.contains(" events in "), "{text}");
        assert_eq!(notes, "", "nothing is missing");
    }
}

#[test]
fn a_log_that_is_not_what_happened_is_told_from_one_that_is_cut() {
    let path = log_of("told", "deadline", &[]);
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let (at, issue) = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("I ") && line.contains(" R "))
        .nth(50)
        .unwrap();
    let replayed = |name: &str, text: &str| {
        let path = path.with_file_name(name);
        std::fs::write(&path, text).unwrap();
        let output = run(&["sim", "replay-log", path.to_str().unwrap()]);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    // Another decision, and one too few.
    let other = issue.replace(" R ", " W ");
    assert_ne!(&other, issue);
    let (code, _, told) = replayed("other.log", &log.replacen(issue, &other, 1));
    assert_eq!(code, Some(1), "{told}");
    let place = format!("line {}: the decisions differ", at + 1);
    assert!(told.contains(&place), "{told}");
    assert!(told.contains(&format!("  expected {other}\n  got      {issue}")));
    for before in &lines[at - 5..at] {
        assert!(told.contains(before), "{before} of {told}");
    }
    let without = log.replacen(&format!("{issue}\n"), "", 1);
    let (code, _, told) = replayed("without.log", &without);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("expected no decision") || told.contains("expected F"),
        "{told}"
    );
    // Whoever wrote it was stopped.
    let cut = &log[..log.len() * 2 / 3];
    let cut = cut
        .trim_end_matches('\n')
        .trim_end_matches(|sign| sign != ' ');
    let (code, text, told) = replayed("cut.log", cut);
    assert_eq!(code, Some(0), "{told}");
    assert!(text.ends_with("identical\n"), "{text}");
    let number = cut.lines().count();
    assert!(
        told.contains(&format!("cut off in line {number}, which was left out")),
        "{told}"
    );
    // Complete, and yet not to the end.
    let last = lines
        .iter()
        .rposition(|line| line.starts_with("F "))
        .unwrap();
    let short = format!("{}\n", lines[..last].join("\n"));
    let (code, _, told) = replayed("short.log", &short);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(&format!(
        "ends before what was decided next: {}",
        lines[last]
    )));
    let (code, _, told) = replayed("ended.log", &format!("{short}# end\n"));
    assert_eq!(code, Some(1), "{told}");
    // No log, and one of an engine that cannot be made.
    for (text, code, expected) in [
        ("hello\n", 3, "line 1: not a log"),
        (
            "headtime-log 3\nW 1\n",
            3,
            "scheduler: this setting is missing",
        ),
        (
            &log.replace("scheduler deadline", "scheduler deadlin"),
            3,
            "did you mean",
        ),
        (
            &log.replace("scheduler deadline", "scheduler stream"),
            3,
            "has no `curve`",
        ),
        (
            &log.replace("scheduler deadline", "scheduler sptf"),
            3,
            "has no `belief`",
        ),
    ] {
        let (got, _, told) = replayed("wrong.log", text);
        assert_eq!(got, Some(code), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}
