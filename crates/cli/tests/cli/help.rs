//! Help, man pages, completions: all from one definition.

use super::common::{all, run, scratch, stdout};
use headtime_engine::gates;
use headtime_sched::policies;

#[test]
fn short_help() {
    for (name, args) in [
        ("headtime", vec!["-h"]),
        ("sim", vec!["sim", "-h"]),
        ("sim-run", vec!["sim", "run", "-h"]),
        ("sim-fuzz", vec!["sim", "fuzz", "-h"]),
        ("sweep", vec!["sweep", "-h"]),
        ("trace", vec!["trace", "-h"]),
        ("trace-info", vec!["trace", "info", "-h"]),
        ("trace-convert", vec!["trace", "convert", "-h"]),
        ("trace-replay", vec!["trace", "replay", "-h"]),
        ("trace-record", vec!["trace", "record", "-h"]),
        ("drive", vec!["drive", "-h"]),
        ("drive-show", vec!["drive", "show", "-h"]),
        ("drive-new", vec!["drive", "new", "-h"]),
        ("drive-curve", vec!["drive", "curve", "-h"]),
        ("drive-probe", vec!["drive", "probe", "-h"]),
        ("drive-import", vec!["drive", "import", "-h"]),
        ("qos-train", vec!["qos", "train", "-h"]),
        ("qos-explain", vec!["qos", "explain", "-h"]),
        ("qos-plan", vec!["qos", "plan", "-h"]),
        ("qos-profile", vec!["qos", "profile", "-h"]),
        ("qos-coordinate", vec!["qos", "coordinate", "-h"]),
        ("reproduce", vec!["reproduce", "-h"]),
        ("drive-validate", vec!["drive", "validate", "-h"]),
    ] {
        insta::assert_snapshot!(format!("help-{name}"), all(&args));
    }
}

#[test]
fn help_explains_every_scheduler_and_gate_with_its_options() {
    for (topic, table) in [
        ("schedulers", policies().collect::<Vec<_>>()),
        ("gates", gates().collect()),
    ] {
        let text = stdout(&["help", topic]);
        for policy in &table {
            assert!(
                text.contains(&format!("  {}", policy.title())),
                "{}",
                policy.name
            );
            for option in policy.options {
                let shown = format!("{}={}", option.key, option.default);
                assert!(text.contains(&shown), "{topic}: {shown}");
            }
        }
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(100), "{text}");
        for command in [&["sim", "run"][..], &["trace", "replay"], &["serve"]] {
            let text = stdout(&[command, &["--help"]].concat());
            for policy in &table {
                assert!(
                    text.contains(&policy.title().to_string()),
                    "{command:?}: {}",
                    policy.name
                );
            }
            assert!(
                !text.contains("fifo_batch=16") && text.contains(&format!("headtime help {topic}"))
            );
        }
    }
    // The options that mq-deadline shares with deadline are listed once.
    let text = stdout(&["help", "schedulers"]);
    assert_eq!(text.matches("writes_starved=2").count(), 1, "{text}");
    assert!(text.contains("\n    those of deadline\n    prio_aging_expire="));
}

#[test]
fn help_of_a_command_is_the_same_in_two_places() {
    for command in [&["sim", "run"][..], &["drive", "new"], &["control"]] {
        assert_eq!(
            stdout(&[&["help"], command].concat()),
            stdout(&[command, &["--help"]].concat()),
            "{command:?}"
        );
    }
    assert_eq!(stdout(&["help"]), stdout(&["--help"]));
    let output = run(&["help", "sim", "walk"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("help: sim walk: no such topic or command; allowed are schedulers, gates"),
        "{said}"
    );
}

#[test]
fn without_a_verb_there_is_help() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: headtime <COMMAND>"));
}

#[test]
fn pages_and_completions_are_generated() {
    let directory = scratch("generate");
    let path = directory.to_str().unwrap();
    stdout(&["generate", "man", path]);
    stdout(&["generate", "completions", path]);
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    insta::assert_snapshot!("generated-files", names.join("\n"));
    let page = std::fs::read_to_string(directory.join("headtime-trace-replay.1")).unwrap();
    assert!(
        page.contains("headtime\\-trace\\-replay") && page.contains("\\-\\-closed"),
        "{page}"
    );
    let bash = std::fs::read_to_string(directory.join("headtime.bash")).unwrap();
    assert!(bash.contains("--print-scenario"));
}

/// The long help explains sweeps and shows a file.
#[test]
fn long_help_of_a_sweep_shows_its_file() {
    let text = stdout(&["sweep", "--help"]);
    for said in [
        "\n  [sweep]\n",
        "\n  [[sweep.together]] ",
        "mode = \"each\"",
        "continues an interrupted sweep",
        "headtime sweep depths.toml --out depths.csv",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}
