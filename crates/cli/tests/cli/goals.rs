//! Run-time goals in scenarios.

use super::common::{ended, json, scratch, stdout};

/// Two programs with goals and a backup on three servers, some seconds long.
const GOALS: &str = r#"
schedulers = "cfq"
drive.profile = "barracuda-7200.10-160"

[engine]
depth = 8
gate = "windows"

[cluster]
servers = 3

[[program]]
benchmark = "full-seq"
size = "300MB"
goal = "3x"

[[program]]
benchmark = "seq-rand"
size = "100MB"
phase = "25MB"
start = "20GB"
goal = "3x"

[[program]]
benchmark = "backup"
size = "10GB"
start = "50GB"
"#;

/// Arguments that run the scenario, with settings.
fn with(name: &str, further: &[&str]) -> Vec<String> {
    let file = scratch(name).join("goals.toml");
    std::fs::write(&file, GOALS).expect("a file");
    let file = file.to_str().expect("a name").to_owned();
    let words = ["sim".to_owned(), "run".to_owned(), file].into_iter();
    let further = further.iter().map(|word| (*word).to_owned());
    words.chain(further).collect()
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn results_say_the_goal_of_each_program_and_how_late_it_is() {
    let gates = ["--set", "engine.gate=[\"depth\", \"average\", \"windows\"]"];
    let args = with("goals", &[&gates[..], &["--format", "json"]].concat());
    let runs = json(&borrowed(&args))["runs"].clone();
    let runs = runs.as_array().expect("runs");
    assert_eq!(runs.len(), 3);
    for run in runs {
        let programs = run["programs"].as_array().expect("programs");
        for program in &programs[..2] {
            let [goal, ended, late] = ["goal_s", "ended_s", "late_percent"].map(|key| {
                program[key]
                    .as_f64()
                    .unwrap_or_else(|| panic!("{key}: {program}"))
            });
            assert!((late - (ended / goal - 1.0) * 100.0).abs() < 1e-3);
        }
        assert!(programs[2].get("goal_s").is_none());
    }
    // All runs have the same goals, and windows the programs that are least late.
    let late = |run: usize| {
        let of = |program: usize| runs[run]["programs"][program]["late_percent"].as_f64();
        of(0).expect("late").max(of(1).expect("late"))
    };
    assert!(
        late(2) < late(0) && late(2) < late(1),
        "{} {} {}",
        late(0),
        late(1),
        late(2)
    );
}

#[test]
fn a_log_of_windows_repeats_without_a_planner() {
    let log = scratch("goals-log").join("goals.log");
    let log = log.to_str().expect("a name");
    stdout(&borrowed(&with("goals-logged", &["--log", log])));
    let text = std::fs::read_to_string(log).expect("a log");
    assert!(text.contains(" assign 1 1\n") && text.contains(" window 2 "));
    let replayed = stdout(&["sim", "replay-log", log]);
    assert_eq!(replayed.matches("identical").count(), 3, "{replayed}");
}

#[test]
fn a_goal_that_cannot_be_is_refused_by_program_and_key() {
    for (exit, setting, expected) in [
        (
            3,
            "program.0.goal=0.5x",
            "program[1].goal: full-seq: the goal of ",
        ),
        (3, "program.0.goal=0.5x", "the least possible is "),
        (
            2,
            "program.1.goal=by 06:00",
            "a simulation has no time of day",
        ),
        (2, "program.1.goal=soon", "is no goal"),
        (
            3,
            "engine.gate=windows:lanes=3",
            "has 3 lanes; allowed are 4 to 64 with 3 programs",
        ),
    ] {
        let args = with("goals-refused", &["--set", setting]);
        let (code, error) = ended(&borrowed(&args));
        assert_eq!(code, exit, "{setting}: {error}");
        assert!(error.contains(expected), "{setting}: {error}");
    }
    let (code, error) = ended(&[
        "sim",
        "run",
        "--set",
        "program.0.benchmark=par-read",
        "--set",
        "program.0.goal=2x",
    ]);
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("leave out the goal or add [cluster]"),
        "{error}"
    );
}

#[test]
fn profiles_train_a_tree_and_a_plan_says_what_goals_demand() {
    let directory = scratch("goals-profile");
    let path = |name: &str| directory.join(name).to_str().expect("a name").to_owned();
    std::fs::write(path("goals.toml"), GOALS).expect("a file");
    let (scenario, profile, tree) = (path("goals.toml"), path("seq.profile"), path("seq.tree"));
    let said = stdout(&["qos", "profile", &scenario, "seq-rand", "--out", &profile]);
    assert!(
        said.starts_with("seq-rand: ") && said.contains("epochs of servers"),
        "{said}"
    );
    let said = stdout(&["qos", "train", &profile, "--out", &tree]);
    assert!(
        said.contains("leaves; errors in cross-validation"),
        "{said}"
    );
    let said = stdout(&["qos", "plan", &scenario]);
    assert!(
        said.contains("full-seq") && said.contains("the goals can be kept"),
        "{said}"
    );
    let tight = [
        "--set",
        "program.0.goal=1.2x",
        "--set",
        "program.1.goal=1.2x",
    ];
    let said = stdout(&[&["qos", "plan", &scenario][..], &tight].concat());
    assert!(said.contains("not all goals can be kept"), "{said}");
    let (code, error) = ended(&["qos", "profile", &scenario, "seqrand", "--out", &profile]);
    assert_eq!(code, 2);
    assert!(error.contains("did you mean \"seq-rand\"?"), "{error}");
}
