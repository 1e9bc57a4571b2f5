//! Every command that README, documentation and help print runs, and what is printed below it is what it
//! says.
//!
//! `HEADTIME_BLESS=1 cargo test -p headtime-cli --test cli printed` writes the outputs into the pages anew.

use super::common::{data, scratch, stdout};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands that are not run, by what they contain, and why. Each must be printed somewhere.
const NOT_RUN: [(&str, &str); 12] = [
    (
        "headtime serve disk.toml &",
        "serves until it is stopped; tests/serve.rs does that",
    ),
    (
        "headtime control control.sock",
        "needs a server; tests/serve.rs has one",
    ),
    (
        "headtime scrub control.sock",
        "needs a server; tests/serve.rs has one",
    ),
    (
        "headtime attach ",
        "needs root or FUSE; tests/attach.rs has both where they are",
    ),
    ("headtime detach ", "needs what is attached"),
    (
        "headtime trace record ",
        "needs root, tracefs and a disk; tests/record.rs has them where they are",
    ),
    (
        "headtime reproduce all",
        "minutes; .ci/run makes it with the release build, checks included",
    ),
    (
        "headtime reproduce stream-",
        "minutes in a debug build; .ci/run as well",
    ),
    (
        "headtime reproduce freeblock-",
        "minutes, with whole scans; .ci/run makes what is quick of them",
    ),
    (
        "headtime sim run experiments/efs-iops.toml",
        "a minute in a debug build; .ci/run makes the figure of it",
    ),
    (
        "headtime sweep experiments/sweep-",
        "minutes in a debug build; sweeps_shipped.rs runs a part of each",
    ),
    (
        "headtime drive curve mine.toml --samples 2000",
        "half a minute in a debug build; the curve tests have others",
    ),
];

/// A command, and what is printed below it.
#[derive(Debug)]
struct Printed {
    command: String,
    /// Lines behind it up to the next command; empty if none are shown.
    output: String,
}

fn repository() -> PathBuf {
    data().join("../../../..")
}

/// The commands of a page's blocks, in their order. A line that ends in a backslash goes on.
fn of_page(text: &str) -> Vec<Printed> {
    let mut printed: Vec<Printed> = Vec::new();
    let mut language: Option<&str> = None;
    let mut goes_on = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("```") {
            language = match language {
                Some(_) => None,
                None => Some(rest),
            };
            goes_on = false;
            continue;
        }
        let console = match language {
            Some("console") => true,
            Some("sh" | "text" | "") => false,
            _ => continue,
        };
        let begins = match console {
            true => line.strip_prefix("$ "),
            false => Some(line).filter(|line| line.starts_with("headtime ")),
        };
        match (begins, printed.last_mut()) {
            (_, Some(last)) if goes_on => last.command.push_str(line),
            (Some(command), _) => printed.push(Printed {
                command: command.to_owned(),
                output: String::new(),
            }),
            (None, Some(last)) if console => {
                last.output.push_str(line);
                last.output.push('\n');
                continue;
            }
            (None, _) => continue,
        }
        let last = printed.last_mut().expect("a command has begun");
        goes_on = last.command.ends_with('\\');
        if goes_on {
            last.command.pop();
        }
    }
    printed.retain(|one| {
        let own = ["headtime ", "cargo run --release -- "];
        own.iter().any(|program| one.command.starts_with(program)) && !is_synopsis(&one.command)
    });
    printed
}

/// Whether it names what the reader is to put in its place.
fn is_synopsis(command: &str) -> bool {
    command.split_whitespace().any(|word| {
        let name = word.split('.').next().unwrap_or(word);
        word == ".." || (!name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase()))
    })
}

/// The commands of a help text.
fn of_help(text: &str) -> Vec<Printed> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("  headtime "));
    let commands = lines.map(|rest| Printed {
        command: format!("headtime {rest}"),
        output: String::new(),
    });
    commands.collect()
}

fn not_run(command: &str) -> Option<usize> {
    NOT_RUN.iter().position(|(part, _)| command.contains(part))
}

/// Runs what a source prints, one after the other in a directory of its own that has the examples, and
/// the files that its pages write out. Returns what is said now where something is printed.
fn run(source: &str, printed: &[Printed], files: &[(String, String)]) -> Vec<Option<String>> {
    let directory = scratch(&format!("printed-{}", source.replace(['/', ' '], "-")));
    stdout(&["generate", "examples", directory.to_str().unwrap()]);
    std::os::unix::fs::symlink(
        repository().join("experiments"),
        directory.join("experiments"),
    )
    .unwrap();
    // What one would have recorded, and volumes of one's own.
    fs::copy(
        directory.join("database.csv.gz"),
        directory.join("disk.csv.gz"),
    )
    .unwrap();
    let volume = "Timestamp,Disk,Type,Offset,Size,Cache,Response\n1000,0,Read,4096,8192,0,250\n";
    fs::write(directory.join("volume.csv"), volume).unwrap();
    fs::write(
        directory.join("ops.tsv"),
        "0.5\t0\t8\t1\ta\n0.75\t1\t16\t9\tb\n",
    )
    .unwrap();
    for (name, content) in files {
        fs::write(directory.join(name), content).unwrap();
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_headtime")).parent().unwrap();
    // So that it finds the program as if it were installed.
    let script = "PATH=\"$1:$PATH\"; eval \"$2\"";
    let mut outputs = Vec::new();
    for one in printed {
        if not_run(&one.command).is_some() {
            outputs.push(None);
            continue;
        }
        let command = one
            .command
            .replacen("cargo run --release -- ", "headtime ", 1);
        let done = Command::new("sh")
            .args(["-c", script, "sh", bin.to_str().unwrap(), &command])
            .env_remove("COLUMNS")
            .current_dir(&directory)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{source}: {command}: {stderr}");
        let said = String::from_utf8(done.stdout).unwrap();
        outputs.push((!one.output.is_empty()).then_some(said));
    }
    outputs
}

/// The files that a page shows with `# NAME` in their first line, and the first configuration of a server.
fn files(text: &str) -> Vec<(String, String)> {
    let blocks = text.split("```toml\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    let mut files: Vec<(String, String)> = Vec::new();
    for block in blocks {
        let first = block.lines().next().unwrap_or_default();
        let name = first
            .strip_prefix("# ")
            .and_then(|rest| rest.split([':', ' ']).next());
        let name = name.filter(|name| name.ends_with(".toml") && !name.contains('/'));
        let server = block.contains("[[disk]]").then_some("disk.toml");
        if let Some(name) = name.or(server)
            && files.iter().all(|(other, _)| other != name)
        {
            files.push((name.to_owned(), block.to_owned()));
        }
    }
    files
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(repository().join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.push(repository().join("README.md"));
    pages.sort();
    pages
}

const VERBS: [&str; 24] = [
    "",
    "sim",
    "sim run",
    "sim fuzz",
    "sim replay-log",
    "sweep",
    "trace",
    "trace info",
    "trace convert",
    "trace replay",
    "trace record",
    "drive",
    "drive list",
    "drive show",
    "drive new",
    "drive probe",
    "drive curve",
    "drive import",
    "drive validate",
    "reproduce",
    "serve",
    "control",
    "attach",
    "detach",
];

fn help(verb: &str) -> Vec<Printed> {
    let args: Vec<&str> = verb.split_whitespace().chain(["--help"]).collect();
    of_help(&stdout(&args))
}

#[test]
fn what_the_pages_print_runs_and_says_that() {
    let mut stale = Vec::new();
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&page).unwrap();
        let printed = of_page(&text);
        let outputs = run(&name, &printed, &files(&text));
        let mut now = text.clone();
        for (one, said) in printed.iter().zip(outputs) {
            let Some(said) = said.filter(|said| *said != one.output) else {
                continue;
            };
            stale.push(format!("{name}: {}\n{said}", one.command));
            now = now.replacen(&one.output, &said, 1);
        }
        if std::env::var_os("HEADTIME_BLESS").is_some() && now != text {
            fs::write(&page, now).unwrap();
        }
    }
    let blessed = std::env::var_os("HEADTIME_BLESS").is_some();
    assert!(
        stale.is_empty() || blessed,
        "printed was something else: {}",
        stale.join("\n")
    );
}

#[test]
fn what_help_prints_runs() {
    let mut count = 0;
    for verb in VERBS {
        let printed = help(verb);
        count += printed.len();
        run(&format!("help {verb}"), &printed, &[]);
    }
    assert!(count > 25, "{count}");
}

/// What is excused is printed, so that no excuse outlives its command.
#[test]
fn every_command_that_is_not_run_is_printed() {
    let texts = pages()
        .into_iter()
        .map(|page| fs::read_to_string(page).unwrap());
    let mut all: Vec<Printed> = texts.flat_map(|text| of_page(&text)).collect();
    all.extend(VERBS.iter().flat_map(|verb| help(verb)));
    for (part, why) in NOT_RUN {
        let printed = all.iter().any(|one| one.command.contains(part));
        assert!(printed, "{part} ({why}) is printed nowhere");
    }
    let run = all
        .iter()
        .filter(|one| not_run(&one.command).is_none())
        .count();
    assert!(run > 35, "{run}");
}
