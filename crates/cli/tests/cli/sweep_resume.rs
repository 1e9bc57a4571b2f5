//! `headtime sweep` that is ended early, and goes on.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a command that is ended runs in real time"
)]

use super::common::{data, headtime};
use super::sweeps::{rows, scenario, within};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Forty runs of some ten milliseconds.
const LONG: &str = "[sweep]
    seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    engine.depth = [1, 4]
    run.requests = [8000]";

const RUN: [&str; 4] = ["sweep", "s.toml", "--out", "s.csv"];

/// Waits, a minute at most, until something holds.
fn wait_until(mut holds: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn lines(journal: &Path) -> usize {
    let text = fs::read(journal).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Starts a command whose messages are kept.
fn spawn(directory: &Path, args: &[&str]) -> Child {
    headtime(args)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts a sweep, and waits until its journal has a number of outcomes.
fn started(directory: &Path, outcomes: usize, args: &[&str]) -> Child {
    let child = spawn(directory, &[&RUN[..], args].concat());
    let journal = directory.join("s.csv.partial");
    wait_until(|| lines(&journal) > outcomes, "the sweep does not get on");
    child
}

/// Kills a sweep, which can do nothing about it.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Sends a signal to a sweep, which ends early. Returns its messages.
fn interrupt(child: Child, signal: &str) -> String {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    stderr
}

/// Output of an uninterrupted sweep.
fn whole(directory: &Path) -> String {
    let (code, csv, stderr) = within(directory, &["sweep", "s.toml", "--format", "csv"]);
    assert_eq!(code, Some(0), "{stderr}");
    csv
}

/// Ends a sweep, and leaves the beginning of its journal: two outcomes.
fn ended(name: &str, sweep: &str) -> PathBuf {
    let directory = scenario(name, sweep);
    let child = started(&directory, 2, &["--jobs", "2"]);
    kill(child);
    let journal = directory.join("s.csv.partial");
    let text = fs::read_to_string(&journal).unwrap();
    let kept: String = text.split_inclusive('\n').take(3).collect();
    fs::write(&journal, kept).unwrap();
    directory
}

fn goes_on(directory: &Path, said: &str) {
    goes_on_to(&whole(directory), directory, said);
}

fn goes_on_to(whole: &str, directory: &Path, said: &str) {
    let (code, _, stderr) = within(directory, &RUN);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains(said), "{stderr}");
    let csv = fs::read_to_string(directory.join("s.csv")).unwrap();
    assert!(csv == whole, "other bytes than in one go");
    // Nothing else is left.
    assert!(!directory.join("s.csv.partial").exists());
}

#[test]
fn a_sweep_that_was_killed_goes_on_to_the_same_bytes() {
    let directory = scenario("sweep-killed", LONG);
    let child = started(&directory, 3, &["--jobs", "2"]);
    kill(child);
    assert!(!directory.join("s.csv").exists());
    let has = lines(&directory.join("s.csv.partial")) - 1;
    assert!((3..40).contains(&has), "{has}");
    // Killed once more, on another number of threads.
    let child = started(&directory, has + 3, &["--jobs", "1"]);
    kill(child);
    let more = lines(&directory.join("s.csv.partial")) - 1;
    assert!((has + 3..40).contains(&more), "{more}");
    let said = format!("s.csv.partial: goes on there, with {more} of 40 combinations done");
    goes_on(&directory, &said);
}

/// Also in the middle of a run that would take hours.
#[test]
fn a_sweep_that_is_interrupted_keeps_what_is_done() {
    let directory = scenario("sweep-interrupted", LONG);
    for (number, signal) in ["-INT", "-TERM"].into_iter().enumerate() {
        let args: &[&str] = match number {
            0 => &["--jobs", "2"],
            _ => &["--jobs", "1"],
        };
        let journal = directory.join("s.csv.partial");
        let before = lines(&journal).max(1);
        let child = started(&directory, before + 1, args);
        let stderr = interrupt(child, signal);
        let text = fs::read_to_string(&journal).unwrap();
        assert!(text.ends_with('\n'));
        let said = format!(
            "ended early; {} of 40 combinations are kept in s.csv.partial, and the same command goes on there",
            text.lines().count() - 1
        );
        assert!(stderr.contains(&said), "{stderr}");
    }
    let kept = lines(&directory.join("s.csv.partial")) - 1;
    goes_on(&directory, &format!("with {kept} of 40 combinations done"));

    let endless = "[sweep]\nseed = [1, 2]\nrun.requests = [5, 1000000000000]";
    let directory = scenario("sweep-endless", endless);
    let child = started(&directory, 4, &["--jobs", "8"]);
    let stderr = interrupt(child, "-INT");
    assert!(
        stderr.contains("ended early; 4 of 8 combinations are kept"),
        "{stderr}"
    );
}

#[test]
fn without_a_file_nothing_is_kept() {
    let directory = scenario("sweep-unkept", "[sweep]\nrun.requests = [1000000000000]");
    let child = spawn(&directory, &["sweep", "s.toml"]);
    // Once it catches the signal it is about to run.
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let catches = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask >> 1 & 1 == 1)
    };
    wait_until(catches, "no run begins");
    let stderr = interrupt(child, "-INT");
    assert!(
        stderr.contains("ended early; nothing is kept, as there is no --out"),
        "{stderr}"
    );
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn a_torn_or_damaged_journal_loses_only_what_is_torn() {
    let directory = ended("sweep-torn", LONG);
    let journal = directory.join("s.csv.partial");
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let put = |content: &[u8]| fs::write(&journal, content).unwrap();
    let torn = &lines[2][..lines[2].len() / 2];
    let whole = whole(&directory);
    for (content, said) in [
        // The last line, as a kill in the middle of writing leaves it; and all but its end.
        (format!("{}{}{torn}", lines[0], lines[1]), "with 1 of 40 "),
        (
            format!("{}{}{}", lines[0], lines[1], lines[2].trim_end()),
            "with 1 of 40 ",
        ),
        // A line in the middle that lost a letter: its hash is another.
        (
            format!(
                "{}{}{}",
                lines[0],
                lines[1].replacen("n1", "n2", 1),
                lines[2]
            ),
            "1 line of it is damaged, and is made again",
        ),
        (
            format!("{}{}\0\0\0\0\n{}", lines[0], "x\n", lines[2]),
            "2 lines of it are damaged, and are made again",
        ),
    ] {
        put(content.as_bytes());
        goes_on_to(&whole, &directory, said);
    }
    // A journal that is torn within its first line has no further lines.
    for content in ["", &lines[0][..40]] {
        put(content.as_bytes());
        goes_on_to(&whole, &directory, "");
    }
    // A file of somebody else's is left alone, also if told to start anew.
    put(b"shopping list\nmilk\n");
    for args in [&RUN[..], &[&RUN[..], &["--restart"]].concat()] {
        let (code, _, stderr) = within(&directory, args);
        assert_eq!(code, Some(3));
        assert!(
            stderr.contains("s.csv.partial: is no journal of a sweep; remove it"),
            "{stderr}"
        );
        assert_eq!(fs::read(&journal).unwrap(), b"shopping list\nmilk\n");
    }
}

/// FNV-1a, as the journal has it.
fn hash(text: &str) -> String {
    let bytes = text.bytes().chain([0]);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[test]
fn what_has_changed_is_told_and_nothing_is_lost() {
    let directory = ended("sweep-changed", LONG);
    let journal = directory.join("s.csv.partial");
    let text = fs::read_to_string(directory.join("s.toml")).unwrap();
    let kept = fs::read_to_string(&journal).unwrap();
    let refused = |said: &str| {
        let (code, _, stderr) = within(&directory, &RUN);
        assert_eq!(code, Some(3), "{stderr}");
        let start = "s.csv.partial: has 2 of 40 combinations of another sweep: ";
        assert!(stderr.contains(start) && stderr.contains(said), "{stderr}");
        assert!(
            stderr.contains("--restart drops them and starts anew"),
            "{stderr}"
        );
        assert_eq!(fs::read_to_string(&journal).unwrap(), kept);
    };
    for (from, to, said) in [
        (
            "processes = 4",
            "processes = 5",
            "workload was [{ processes = 4",
        ),
        (
            "[1, 4]",
            "[1, 4, 16]",
            "sweep.engine.depth was [1, 4] and is [1, 4, 16]",
        ),
        (
            "atlas10k",
            "ibm18es",
            "drive.profile was \"atlas10k\" and is \"ibm18es\"",
        ),
        (
            "[sweep]",
            "[engine]\nplug = true\n[sweep]",
            "engine.plug was not given and is true",
        ),
        ("\"sptf\"", "\"sstf\"", "schedulers was"),
        (
            "requests = 200\n",
            "requests = 200\nwarm_up = \"1s\"\n",
            "run.warm_up was not given",
        ),
        // Keys in another order make other combinations.
        (
            "engine.depth = [1, 4]\n    run.requests = [8000]",
            "run.requests = [8000]\n    engine.depth = [1, 4]",
            "",
        ),
    ] {
        let changed = text.replacen(from, to, 1);
        assert!(changed != text, "{from}");
        fs::write(directory.join("s.toml"), changed).unwrap();
        if said.is_empty() {
            // .. unless there is but one value: the runs are the same.
            continue;
        }
        refused(said);
    }
    // A comment, another spelling and an explicit default change nothing.
    let same = text
        .replacen("seed = [1, 2,", "\"seed\" = [1, 0x2,", 1)
        .replacen("[drive]", "# the drive\n[drive]\nnoise = true", 1);
    assert!(same != text, "nothing was changed");
    fs::write(directory.join("s.toml"), &same).unwrap();
    // Another version of the program.
    let (first, rest) = kept.split_once('\n').unwrap();
    let (_, head) = first.split_once(' ').unwrap();
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let head = head.replacen(&version, "\"version\":\"0.0.9\"", 1);
    assert!(head.contains("0.0.9"), "{head}");
    fs::write(&journal, format!("{} {head}\n{rest}", hash(&head))).unwrap();
    let (code, _, stderr) = within(&directory, &RUN);
    assert_eq!(code, Some(3));
    let said = format!(
        "headtime was version 0.0.9 and is {}",
        env!("CARGO_PKG_VERSION")
    );
    assert!(stderr.contains(&said), "{stderr}");
    fs::write(&journal, &kept).unwrap();
    goes_on(&directory, "with 2 of 40 combinations done");
}

#[test]
fn a_file_that_has_changed_is_told() {
    let profile = "[sweep]
        drive.profile = [\"own.toml\", \"atlas10k\"]
        seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        run.requests = [8000]";
    let directory = scenario("sweep-files", "");
    let text = fs::read_to_string(directory.join("s.toml")).unwrap();
    let own = super::common::stdout(&["drive", "show", "ibm18es", "--format", "toml"]);
    fs::write(directory.join("own.toml"), &own).unwrap();
    fs::write(directory.join("s.toml"), format!("{text}{profile}")).unwrap();
    let child = started(&directory, 2, &["--jobs", "2"]);
    kill(child);
    let slower = own.replacen("rpm = 7200", "rpm = 7100", 1);
    assert!(slower != own, "no rpm");
    fs::write(directory.join("own.toml"), slower).unwrap();
    let (code, _, stderr) = within(&directory, &RUN);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("own.toml has other contents"), "{stderr}");
    // A comment does not change the contents of the file.
    fs::write(directory.join("own.toml"), format!("# mine\n{own}")).unwrap();
    goes_on(&directory, "goes on there, with ");

    // A trace.
    let directory = super::common::scratch("sweep-trace");
    let trace = fs::read_to_string(data().join("tiny.trace")).unwrap();
    fs::write(directory.join("web.trace"), &trace).unwrap();
    let text = "schedulers = 'clook'
        drive.profile = 'atlas10k'
        trace.file = 'web.trace'
        [sweep]
        trace.speed = [1, 2]";
    let seeds = (1..=1000).map(|seed| seed.to_string()).collect::<Vec<_>>();
    let text = format!("{text}\nseed = [{}]", seeds.join(", "));
    fs::write(directory.join("s.toml"), text).unwrap();
    let child = started(&directory, 2, &["--jobs", "1"]);
    kill(child);
    let longer = format!("{trace}{}", trace.lines().last().unwrap());
    fs::write(directory.join("web.trace"), longer).unwrap();
    let (code, _, stderr) = within(&directory, &RUN);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("web.trace has other contents"), "{stderr}");
    fs::write(directory.join("web.trace"), trace).unwrap();
    goes_on(&directory, "goes on there, with ");
}

#[test]
fn a_restart_drops_what_was_left() {
    let directory = ended("sweep-restart", LONG);
    let text = fs::read_to_string(directory.join("s.toml")).unwrap();
    fs::write(directory.join("s.toml"), text.replace("[8000]", "[300]")).unwrap();
    let (code, _, stderr) = within(&directory, &[&RUN[..], &["--restart"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("goes on"), "{stderr}");
    let csv = fs::read_to_string(directory.join("s.csv")).unwrap();
    assert_eq!(csv, whole(&directory));
    assert_eq!(rows(&csv).len(), 40 * 5);
    let (code, _, stderr) = within(&directory, &["sweep", "s.toml", "--restart"]);
    assert_eq!(code, Some(2), "{stderr}");
}

#[test]
fn two_sweeps_do_not_write_to_one_file() {
    let directory = scenario("sweep-two", LONG);
    let child = started(&directory, 1, &["--jobs", "1"]);
    let (code, _, stderr) = within(&directory, &RUN);
    kill(child);
    assert_eq!(code, Some(4), "{stderr}");
    assert!(
        stderr.contains("s.csv.partial: another sweep is writing it"),
        "{stderr}"
    );
    goes_on(&directory, "goes on there");
}

/// The results stand in their file; that nobody reads the table is nobody's loss.
#[test]
fn a_closed_output_leaves_no_journal() {
    let directory = scenario("sweep-closed", "[sweep]\nseed = [1, 2]");
    let mut child = headtime(&RUN)
        .current_dir(&directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(directory.join("s.csv").exists());
    assert!(!directory.join("s.csv.partial").exists());
}
