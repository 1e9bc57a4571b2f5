//! The page of the server's promises names tests that exist.

use std::fs;
use std::path::Path;

/// Most words of the page.
const WORDS_MAX: usize = 700;

/// A row of a table: promise, file and test.
fn rows(page: &str) -> Vec<[&str; 3]> {
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let row = [cells.next()?, cells.next()?, cells.next()?];
        assert!(cells.next().is_none(), "{line}");
        Some(row)
    });
    rows.filter(|row| row[0] != "promise").collect()
}

/// The text between two backticks.
fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// Returns true if a source has a test of this name. Tests of properties have their attribute within a macro, too.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let begins = |line: &str| {
        let rest = ["fn ", "async fn "]
            .iter()
            .find_map(|of| line.strip_prefix(of));
        rest.and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    };
    let places = (0..lines.len()).filter(|at| begins(lines[*at]));
    let is_attribute = |line: &&&str| line.starts_with("#[") || line.starts_with("//");
    places
        .map(|at| lines[..at].iter().rev().take_while(is_attribute))
        .any(|mut above| {
            above.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
        })
}

#[test]
fn each_promise_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/promises.md")).expect("the page");
    let rows = rows(&page);
    assert!(rows.len() > 30, "{}", rows.len());
    let missing: Vec<_> = rows
        .iter()
        .filter(|[promise, file, test]| {
            let named = quoted(file).zip(quoted(test));
            let holds = named.is_some_and(|(file, test)| {
                let source = fs::read_to_string(root.join("crates").join(file));
                source.is_ok_and(|source| has_test(&source, test))
            });
            promise.is_empty() || !holds
        })
        .collect();
    assert!(missing.is_empty(), "no such test: {missing:#?}");
    let words = page.split_whitespace().filter(|word| *word != "|").count();
    assert!(words <= WORDS_MAX, "{words} words");
}

#[test]
fn a_function_without_an_attribute_is_no_test() {
    let source = "#[test]\n#[cfg(unix)]\nfn one() {}\nfn two() {}\n#[test]\nfn three_more() {}\n";
    assert!(has_test(source, "one"));
    assert!(!has_test(source, "two"));
    assert!(!has_test(source, "three"));
    let page = "| promise | file | test |\n|---|---|---|\n| P. | `a.rs` | `t` |\n";
    assert_eq!(rows(page), [["P.", "`a.rs`", "`t`"]]);
}
