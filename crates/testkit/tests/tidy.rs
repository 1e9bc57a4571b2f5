//! Comments that a stranger can read, and no file that nothing names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// First words of sentences that begin with a clause or a pronoun in place of a noun.
const OPENINGS: &[&str] = &[
    "what ",
    "whether ",
    "who ",
    "so many ",
    "of those ",
    "of these ",
    "one that ",
    "one which ",
    "none ",
    "it ",
    "its ",
    "that of ",
    "those of ",
    "those that ",
    "as if ",
];

/// Such sentences allowed in 1,000. Well-kept code bases of the field have 4 to 23.
const ALLOWED: usize = 5;

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/testkit").to_owned()
}

/// All `.rs` files below a directory.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .expect("a directory of the repository")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    sources(&root().join("crates"), &mut found);
    assert!(found.len() > 500, "{}", found.len());
    found
}

/// The sentences of a file's comments, each with its line. Code blocks and lists are left out.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut begins, mut is_code) = (true, false);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let comment = ["///", "//!", "//"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let Some(comment) = comment.map(str::trim) else {
            (begins, is_code) = (true, false);
            continue;
        };
        if comment.starts_with("```") {
            is_code = !is_code;
        }
        let is_prose = !is_code && comment.starts_with(|first: char| first.is_alphabetic());
        if !is_prose {
            begins = true;
            continue;
        }
        for piece in comment.split_inclusive(". ") {
            if begins {
                found.push((number, String::new()));
            }
            found.last_mut().expect("a sentence").1.push_str(piece);
            begins = piece.trim_end().ends_with(['.', ':', '?']);
        }
        if let Some((_, sentence)) = found.last_mut() {
            sentence.push(' ');
        }
    }
    found
}

#[test]
fn sentences_begin_with_a_noun_or_a_verb() {
    let (mut count, mut bad) = (0, Vec::new());
    for path in all() {
        let text = fs::read_to_string(&path).expect("a source");
        for (line, sentence) in sentences(&text) {
            count += 1;
            let lower = sentence.to_lowercase();
            if OPENINGS.iter().any(|opening| lower.starts_with(opening)) {
                bad.push(format!("{}:{line}: {sentence}", path.display()));
            }
        }
    }
    assert!(count > 10_000, "{count}");
    let allowed = count * ALLOWED / 1_000;
    assert!(
        bad.len() <= allowed,
        "{} of {count} sentences begin with a clause in place of a noun, {allowed} may:\n{}",
        bad.len(),
        bad.join("\n")
    );
}

#[test]
fn the_openings_are_seen() {
    let text = "/// Extent to read. What to read.\nfn f() {}\n// Whether it\n// may.\n// ```\n// It is code\n// ```\n";
    let found: Vec<_> = sentences(text)
        .into_iter()
        .map(|(line, text)| (line, text.trim().to_owned()))
        .collect();
    assert_eq!(
        found,
        [
            (1, "Extent to read.".to_owned()),
            (1, "What to read.".to_owned()),
            (3, "Whether it may.".to_owned())
        ]
    );
}

/// A module's file is named by a `mod` or a `path` in its crate; other files are targets.
#[test]
fn each_file_is_part_of_a_crate() {
    let files = all();
    let mut named = BTreeSet::new();
    for path in &files {
        let text = fs::read_to_string(path).expect("a source");
        for line in text.lines() {
            let line = line.trim();
            let module = line
                .split("mod ")
                .nth(1)
                .and_then(|rest| rest.strip_suffix(';'));
            named.extend(module.map(str::to_owned));
            let path = line
                .strip_prefix("#[path = \"")
                .and_then(|rest| rest.strip_suffix("\"]"));
            let stem = path.and_then(|path| Path::new(path).file_stem()?.to_str());
            named.extend(stem.map(str::to_owned));
        }
    }
    let is_target = |path: &Path| {
        let folder = path
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str());
        let is_first = ["lib", "main", "mod", "build"]
            .iter()
            .any(|name| path.file_stem().is_some_and(|stem| stem == *name));
        is_first
            || folder
                .is_some_and(|folder| ["tests", "benches", "examples", "bin"].contains(&folder))
    };
    let unused: Vec<_> = files
        .iter()
        .filter(|path| !is_target(path))
        .filter(|path| {
            path.file_stem()
                .and_then(|stem| stem.to_str())
                .is_none_or(|stem| !named.contains(stem))
        })
        .collect();
    assert!(unused.is_empty(), "no `mod` names {unused:?}");
}
