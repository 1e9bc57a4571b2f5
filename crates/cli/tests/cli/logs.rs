//! Logs of runs, and repeating them.

use super::common::{json, run, scratch, stdout};
use headtime_disk::drive::Drive;
use headtime_disk::profile::by_name;
use headtime_engine::EngineSpec;
use headtime_sched::{Knowledge, NoPositioning, Spec};
use headtime_sim::{Setup, Station};
use headtime_stack::LogSettings;
use headtime_testkit::{Striped, cases};
use headtime_units::{Bytes, Sectors};
use headtime_workload::{ProcessSpec, Synthetic, SyntheticSpec};

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
        ("bfq", &[]),
        // The engine follows the arm, whose scheduler does not.
        ("sstf", &["engine.issue=late", "drive.belief=cheetah9lp"]),
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

/// Random drives, schedulers, gates, swaps and faults. A third of the seeds draw values at the ends of ranges.
#[test]
fn the_log_of_a_random_run_is_repeated_with_the_same_decisions() {
    let folder = scratch("random");
    let logs = folder.to_str().unwrap();
    let seeds: Vec<u32> = cases(12, 1..=60).collect();
    let runs = seeds.len().to_string();
    stdout(&[
        "sim", "fuzz", "--seed", "1", "--runs", &runs, "--logs", logs,
    ]);
    for seed in seeds {
        let path = folder.join(format!("{seed}.log"));
        let text = stdout(&["sim", "replay-log", path.to_str().unwrap()]);
        assert!(text.ends_with(" decisions, identical\n"), "{text}");
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
    // A log whose writer was stopped.
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
        (
            &log.replace("issue at-once", "issue late"),
            3,
            "issue = late asks when the arm is free, and the log has no `belief`",
        ),
    ] {
        let (got, _, told) = replayed("wrong.log", text);
        assert_eq!(got, Some(code), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

/// The log of a volume of three drives.
fn log_of_a_volume() -> String {
    const STRIPED: Striped = Striped {
        members: 3,
        stripe: 64,
        stripes: 1000,
        parity: false,
    };
    let engine = EngineSpec {
        depth: 2,
        ..EngineSpec::default()
    };
    let settings = LogSettings::new("deadline", engine, 512);
    let deadline = || {
        let spec: Spec = settings.scheduler.parse().unwrap();
        spec.build(Knowledge::<NoPositioning>::default()).unwrap()
    };
    let readers = SyntheticSpec {
        count: Some(600),
        ..SyntheticSpec::alike(7, 6, &ProcessSpec::default())
    };
    let mut source = Synthetic::new(&readers, Sectors::new(64 * 3 * 1000), 512).unwrap();
    let mut log = String::new();
    let mut write = |piece: &str| log.push_str(piece);
    let profile = by_name("wd5000aaks").unwrap();
    let drive = |number| Drive::new(&profile, number);
    let config = settings.config();
    let mut setup = Setup::new(drive(0), config, deadline(), &mut source);
    let station = |number| Station::new(drive(number), config, deadline());
    setup.stations = (0..3).map(station).collect();
    setup.map = Some(Box::new(STRIPED.map()));
    setup.log_settings = settings.to_settings();
    setup.log = Some(&mut write);
    headtime_sim::run(setup).unwrap();
    log
}

/// Member of a line of a log.
fn member_of(line: &str) -> usize {
    let named = line
        .strip_prefix('@')
        .and_then(|rest| rest.split(' ').next());
    named.map_or(0, |number| number.parse().unwrap())
}

#[test]
fn every_member_of_a_volume_is_repeated_alone_and_said_to_be() {
    let log = log_of_a_volume();
    let replayed = |name: &str, text: &str| {
        let path = scratch("volume").join(name);
        std::fs::write(&path, text).unwrap();
        let output = run(&["sim", "replay-log", path.to_str().unwrap()]);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (told, notes) = (text(output.stdout), text(output.stderr));
        (output.status.code(), told, notes)
    };
    let lines_of = |member| {
        let lines = log.lines().skip(1);
        lines.filter(move |line| !line.starts_with('#') && member_of(line) == member)
    };
    let is_decision = |line: &str| {
        let kind = line.split(' ').find(|word| !word.starts_with('@'));
        ["I", "F"].contains(&kind.unwrap())
    };
    let (code, told, notes) = replayed("whole.log", &log);
    assert_eq!((code, notes.as_str()), (Some(0), ""), "{told}");
    assert_eq!(told.lines().count(), 3, "{told}");
    for (member, line) in told.lines().enumerate() {
        let decisions = lines_of(member).filter(|line| is_decision(line)).count();
        let events = lines_of(member).count() - decisions;
        assert!(decisions > 100, "{decisions}");
        let begins = format!("whole.log: member {member}: deadline: {events} events in ");
        assert!(line.contains(&begins), "{line}");
        let ends = format!(" s, {decisions} decisions, identical");
        assert!(line.ends_with(&ends), "{line}");
    }
    // Without the lines of another one.
    let others = log.lines().filter(|line| member_of(line) != 1);
    let others: Vec<&str> = others.collect();
    let (code, fewer, notes) = replayed("whole.log", &(others.join("\n") + "\n"));
    assert_eq!((code, notes.as_str()), (Some(0), ""));
    let expected = told.lines().filter(|line| !line.contains("member 1"));
    assert!(fewer.lines().eq(expected), "{fewer}");
    // Another decision of one member, in the middle of the others' lines.
    let lines: Vec<&str> = log.lines().collect();
    let issues = lines.iter().enumerate();
    let mut issues = issues.filter(|(_, line)| line.starts_with("@2 I ") && line.contains(" R "));
    let (at, issue) = issues.nth(40).unwrap();
    let other = issue.replace(" R ", " W ");
    let (code, told, notes) = replayed("other.log", &log.replacen(issue, &other, 1));
    assert_eq!((code, told.as_str()), (Some(1), ""));
    let place = format!("line {}: the decisions of member 2 differ", at + 1);
    assert!(notes.contains(&place), "{notes}");
    let differ = format!("  expected {other}\n  got      {issue}");
    assert!(notes.contains(&differ), "{notes}");
    let before = lines[..at].iter().rev().filter(|line| member_of(line) == 2);
    for line in before.take(5) {
        assert!(notes.contains(line), "{line} of {notes}");
    }
    assert!(!notes.contains("@1"), "{notes}");
    // A member whose last decision is missing.
    let last = lines.iter().rposition(|line| line.starts_with("@1 "));
    let mut short = lines.clone();
    let missing = short.remove(last.unwrap());
    assert!(is_decision(missing), "{missing}");
    let (code, told, notes) = replayed("short.log", &(short.join("\n") + "\n"));
    assert_eq!(code, Some(1), "{told}");
    assert!(
        notes.contains("the decisions of member 1 differ"),
        "{notes}"
    );
    assert!(notes.contains(&format!("  got      {missing}")), "{notes}");
}

#[test]
fn the_log_of_a_server_that_was_killed_before_anything_happened_has_no_events() {
    let path = scratch("killed").join("events.log");
    let settings = "headtime-log 3\n# scheduler noop\n# dep";
    for cut in [0, 5, 14, 15, 20, settings.len()] {
        std::fs::write(&path, &settings[..cut]).unwrap();
        let out = stdout(&["sim", "replay-log", path.to_str().unwrap()]);
        assert!(
            out.contains(": 0 events, 0 decisions, identical"),
            "{cut}: {out}"
        );
    }
    for other in ["\n", "headtime-lo\n", "another text"] {
        std::fs::write(&path, other).unwrap();
        let output = run(&["sim", "replay-log", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3), "{other}");
    }
}
