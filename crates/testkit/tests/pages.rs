//! Links of README, CONTRIBUTING, CHANGELOG and docs lead somewhere, and the site has each page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Most words of README and the pages of the site, without code blocks and the bars of tables.
const WORDS_MAX: usize = 30_000;

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/testkit").to_owned()
}

/// Pages below a directory.
fn pages(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn all() -> Vec<PathBuf> {
    let files = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ];
    let mut found: Vec<PathBuf> = files.iter().map(|file| root().join(file)).collect();
    pages(&root().join("docs"), &mut found);
    found.sort();
    assert!(found.len() > 40, "{}", found.len());
    found
}

/// Lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

/// Targets of the links and pictures of a page.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        for rest in line.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            found.push(target.to_owned());
        }
    }
    found
}

/// Anchors of a page's headings, as mdBook and GitHub make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let mut found = BTreeSet::new();
    for heading in headings {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let anchor: String = words
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect();
        found.insert(anchor);
    }
    found
}

/// Message about a broken link of a page, or `None`.
fn problem(page: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_owned(),
        file => page.parent().expect("a page is in a folder").join(file),
    };
    if !path.exists() {
        return Some(format!("{}: no file {target}", page.display()));
    }
    if anchor.is_empty() || path.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let of_target = match file {
        "" => text.to_owned(),
        _ => fs::read_to_string(&path).expect("a page"),
    };
    let is_there = anchors(&of_target).contains(anchor);
    (!is_there).then(|| format!("{}: no heading for {target}", page.display()))
}

#[test]
fn each_link_leads_to_a_file_and_a_heading() {
    let (mut count, mut broken) = (0, Vec::new());
    for page in all() {
        let text = fs::read_to_string(&page).expect("a page");
        for target in links(&text) {
            count += 1;
            broken.extend(problem(&page, &text, &target));
        }
    }
    assert!(count > 300, "{count}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_summary_has_each_page_once() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary");
    let mut listed: Vec<PathBuf> = links(&summary).iter().map(|file| docs.join(file)).collect();
    listed.sort();
    let mut site = site();
    site.retain(|page| *page != docs.join("SUMMARY.md"));
    assert_eq!(listed, site);
}

/// Pages of the site, with the summary and without design notes.
fn site() -> Vec<PathBuf> {
    let docs = root().join("docs");
    let mut found = all();
    found.retain(|page| page.starts_with(&docs) && !page.starts_with(docs.join("design")));
    found
}

#[test]
fn the_site_stays_short() {
    let mut pages = site();
    pages.push(root().join("README.md"));
    let words = |page: &PathBuf| {
        let text = fs::read_to_string(page).expect("a page");
        let words = prose(&text).flat_map(str::split_whitespace);
        words.filter(|word| *word != "|").count()
    };
    let total: usize = pages.iter().map(words).sum();
    assert!(total <= WORDS_MAX, "{total} words");
}

#[test]
fn broken_links_are_seen() {
    let page = root().join("docs/SUMMARY.md");
    let text = "# One `two`, three\n[a](#one-two-three) [`b`](nowhere.md) ![c](gates.md#none)\n```\n[d](x)\n```\n";
    let targets = links(text);
    assert_eq!(targets, ["#one-two-three", "nowhere.md", "gates.md#none"]);
    let problems: Vec<bool> = targets
        .iter()
        .map(|target| problem(&page, text, target).is_some())
        .collect();
    assert_eq!(problems, [false, true, true]);
}
