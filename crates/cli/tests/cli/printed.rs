//! Runs every command that README, documentation and help print, and compares the output printed
//! below the command. A table in Markdown is checked too if a comment above it has its command: `<!-- $ headtime .. -->`.
//! A picture that a command draws is compared with the file of that name in docs/pictures.
//!
//! `docs/check.sh` runs the commands with the release build. Commands of minutes run with `HEADTIME_PAGES=full`. With
//! `HEADTIME_BLESS=1` the pages and pictures are written anew.

use super::common::{data, scratch, stdout};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// When a command runs that is not run each time.
#[derive(Debug, PartialEq)]
enum When {
    /// With `HEADTIME_PAGES=full`.
    Full,
    Never,
}

/// Commands that are not run each time, by a part of their text, with the reason. Each is printed somewhere.
const NOT_RUN: [(&str, When, &str); 15] = [
    (
        "headtime serve disk.toml &",
        When::Never,
        "serves until it is stopped; tests/serve.rs does that",
    ),
    (
        "headtime control control.sock",
        When::Never,
        "needs a server; tests/serve.rs has one",
    ),
    (
        "headtime qos coordinate ",
        When::Never,
        "needs servers; tests/serve/coordinate.rs has some",
    ),
    (
        "headtime control goals.sock",
        When::Never,
        "needs a coordinator; tests/serve/coordinate.rs has one",
    ),
    (
        "headtime scrub control.sock",
        When::Never,
        "needs a server; tests/serve.rs has one",
    ),
    (
        "headtime attach ",
        When::Never,
        "needs root or FUSE; tests/attach.rs has both where they are",
    ),
    ("headtime detach ", When::Never, "needs what is attached"),
    (
        "headtime trace record ",
        When::Never,
        "needs root, tracefs and a disk; tests/record.rs has them where they are",
    ),
    (
        "headtime reproduce all",
        When::Never,
        "minutes; .ci/run makes the quick scale and .ci/nightly the full one",
    ),
    ("experiments/efs-iops.toml", When::Full, "seconds a command"),
    ("report --like $mix", When::Full, "a minute"),
    (
        "replays/live/postmark.csv.gz --profile",
        When::Full,
        "a report, for which README has a quicker one",
    ),
    (
        "headtime sweep experiments/sweep-",
        When::Full,
        "minutes; sweeps_shipped.rs runs a part of each",
    ),
    (
        "headtime sweep experiments/scrub-starvation.toml",
        When::Full,
        "half a minute",
    ),
    (
        "headtime drive curve mine.toml --samples 2000",
        When::Full,
        "seconds; the curve tests have others",
    ),
];

/// A command of a page with its printed output.
#[derive(Debug)]
struct Printed {
    command: String,
    /// Lines up to the next command; empty if the page shows none.
    output: String,
}

fn repository() -> PathBuf {
    data().join("../../../..")
}

/// The commands of a page's blocks and comments, in their order. A line that ends in a backslash goes on.
fn of_page(text: &str) -> Vec<Printed> {
    let mut printed: Vec<Printed> = Vec::new();
    let mut language: Option<&str> = None;
    let mut goes_on = false;
    // In a comment with a command; in the table below one.
    let (mut comment, mut table) = (false, false);
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("<!-- $ ") {
            printed.push(Printed {
                command: String::new(),
                output: String::new(),
            });
            (comment, table) = add_comment(&mut printed, command);
            continue;
        }
        if comment {
            (comment, table) = add_comment(&mut printed, line);
            continue;
        }
        if table && !line.is_empty() {
            let last = printed.last_mut().expect("a command has begun");
            last.output.push_str(line);
            last.output.push('\n');
            continue;
        }
        table = false;
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
        let own = ["headtime ", "cargo run --release -- ", "for "];
        own.iter().any(|program| one.command.starts_with(program)) && !is_synopsis(&one.command)
    });
    printed
}

/// Takes a line of a comment that has a command. Returns whether the comment goes on, and whether its table begins.
fn add_comment(printed: &mut [Printed], line: &str) -> (bool, bool) {
    let last = printed.last_mut().expect("a command has begun");
    let end = line.strip_suffix("-->");
    last.command.push_str(end.unwrap_or(line));
    last.command.push('\n');
    (end.is_none(), end.is_some())
}

/// True if the command has a name for a file of the reader.
fn is_synopsis(command: &str) -> bool {
    !command.contains('\n')
        && command.split_whitespace().any(|word| {
            let name = word.split('.').next().unwrap_or(word);
            word == ".."
                || (!name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase()))
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

/// Returns true if the command is left out: always, or unless all are to run.
fn is_left_out(command: &str) -> bool {
    let full = std::env::var_os("HEADTIME_PAGES").is_some_and(|pages| pages == "full");
    let entry = NOT_RUN.iter().find(|(part, ..)| command.contains(part));
    entry.is_some_and(|(_, when, _)| !full || *when == When::Never)
}

/// The program: `HEADTIME` if that is set, else the one built for this test.
fn program() -> PathBuf {
    let named = std::env::var_os("HEADTIME").map(PathBuf::from);
    named.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_headtime")))
}

/// The files that a command draws.
fn plots(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split_whitespace();
    words
        .clone()
        .zip(words.skip(1))
        .filter(|(option, _)| *option == "--plot")
        .map(|(_, file)| file)
}

/// Runs the commands of a source, one after the other, in a directory with the examples and
/// the files that its pages write out. Returns the directory, and the present output of each command with a printed output.
fn run(
    source: &str,
    printed: &[Printed],
    files: &[(String, String)],
) -> (Vec<Option<String>>, PathBuf) {
    let directory = scratch(&format!("printed-{}", source.replace(['/', ' '], "-")));
    stdout(&["generate", "examples", directory.to_str().unwrap()]);
    std::os::unix::fs::symlink(
        repository().join("experiments"),
        directory.join("experiments"),
    )
    .unwrap();
    // A recorded trace as the reader would have one, and a trace of several volumes.
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
    let program = program();
    let bin = program.parent().unwrap();
    // So that it finds the program as if it were installed.
    let script = "set -e; PATH=\"$1:$PATH\"; eval \"$2\"";
    let mut outputs = Vec::new();
    for one in printed {
        let needs_data = one.command.contains("$HEADTIME_DATA");
        if is_left_out(&one.command) || needs_data && headtime_testkit::data("traces").is_none() {
            outputs.push(None);
            continue;
        }
        let command = one
            .command
            .replacen("cargo run --release -- ", "headtime ", 1);
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh", bin.to_str().unwrap(), &command]);
        if let Some(traces) = headtime_testkit::data("traces") {
            shell.env("HEADTIME_DATA", traces.parent().unwrap());
        }
        let done = shell
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
    (outputs, directory)
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

/// README and the pages of docs.
pub fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md")];
    for folder in ["docs", "docs/recipes", "docs/replays", "docs/replays/live"] {
        let files = fs::read_dir(repository().join(folder)).unwrap();
        let paths = files.map(|entry| entry.unwrap().path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages
}

const VERBS: [&str; 28] = [
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
    "array create",
    "array show",
    "array detect",
    "control",
    "top",
    "attach",
    "detach",
];

fn help(verb: &str) -> Vec<Printed> {
    let args: Vec<&str> = verb.split_whitespace().chain(["--help"]).collect();
    of_help(&stdout(&args))
}

#[test]
#[ignore = "docs/check.sh runs it with the release build"]
fn what_the_pages_print_runs_and_says_that() {
    let bless = std::env::var_os("HEADTIME_BLESS").is_some();
    let mut stale = Vec::new();
    for page in pages() {
        let name = page.strip_prefix(repository()).unwrap();
        let name = name.to_str().unwrap();
        let text = fs::read_to_string(&page).unwrap();
        let printed = of_page(&text);
        let (outputs, directory) = run(name, &printed, &files(&text));
        let mut now = text.clone();
        for (one, said) in printed.iter().zip(outputs) {
            let Some(said) = said.filter(|said| *said != one.output) else {
                continue;
            };
            stale.push(format!("{name}: {}\n{said}", one.command));
            now = now.replacen(&one.output, &said, 1);
        }
        if bless && now != text {
            fs::write(&page, now).unwrap();
        }
        for one in printed.iter().filter(|one| !is_left_out(&one.command)) {
            for plot in plots(&one.command) {
                let shown = repository().join("docs/pictures").join(plot);
                if !shown.exists() {
                    continue;
                }
                let drawn = fs::read(directory.join(plot)).unwrap();
                if drawn != fs::read(&shown).unwrap() {
                    stale.push(format!("docs/pictures/{plot}: {}", one.command));
                    if bless {
                        fs::write(&shown, drawn).unwrap();
                    }
                }
            }
        }
    }
    assert!(
        stale.is_empty() || bless,
        "stale, `docs/check.sh --bless` writes them anew: {}",
        stale.join("\n")
    );
}

#[test]
#[ignore = "docs/check.sh runs it with the release build"]
fn what_help_prints_runs() {
    let mut count = 0;
    for verb in VERBS {
        let printed = help(verb);
        count += printed.len();
        run(&format!("help {verb}"), &printed, &[]);
    }
    assert!(count > 25, "{count}");
}

fn commands_of_pages() -> Vec<Printed> {
    let texts = pages()
        .into_iter()
        .map(|page| fs::read_to_string(page).unwrap());
    texts.flat_map(|text| of_page(&text)).collect()
}

/// No excuse outlives its command.
#[test]
fn every_command_that_is_not_run_is_printed() {
    let mut all = commands_of_pages();
    all.extend(VERBS.iter().flat_map(|verb| help(verb)));
    for (part, _, why) in NOT_RUN {
        let printed = all.iter().any(|one| one.command.contains(part));
        assert!(printed, "{part} ({why}) is printed nowhere");
    }
    let run = all.iter().filter(|one| !is_left_out(&one.command)).count();
    assert!(run > 35, "{run}");
}

/// So that no picture grows stale unnoticed. Each must be drawn by a command that a page prints.
#[test]
fn every_picture_is_drawn_by_a_printed_command() {
    let all = commands_of_pages();
    // A golden picture of crates/sched/tests/figure1.rs.
    let mut drawn = vec!["stream-fig1.svg"];
    drawn.extend(all.iter().flat_map(|one| plots(&one.command)));
    for picture in fs::read_dir(repository().join("docs/pictures")).unwrap() {
        let name = picture.unwrap().file_name();
        let name = name.to_str().unwrap();
        assert!(
            drawn.contains(&name),
            "docs/pictures/{name}: no page has its command"
        );
    }
}
