//! Every table of results in README and docs says where its numbers come from, and has them.
//!
//! A comment above a table names figures: `<!-- numbers: stream-fig3 ncq-fig5 -->`. Each number of the table is then the
//! rounding of a number there. Numbers of figures come from `experiments/baseline.json` at full scale; `headtime reproduce all --check --baseline` of
//! `.ci/nightly` measures them again. `except` names numbers that are labels: `<!-- numbers: stream-fig7 except 100 124 -->`.
//! Columns of references and of accepted ranges are not compared.
//!
//! Other tables are printed by a command (`printed.rs`), compared by a test that a comment names, or recorded. The
//! section of a recorded table has a line with a date and a commit and, unless the table is simulated, the machine.

use super::printed::pages;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Columns that are not compared, by a word of their heading.
const GIVEN: [&str; 8] = [
    "paper",
    "accepted",
    "reference",
    "target",
    "what",
    "whose",
    "figure",
    "DiskSim",
];

/// A table of a page.
struct Table<'a> {
    /// Number of the line of its headings, from 1.
    line: usize,
    /// The comment above, without its marks.
    comment: Option<&'a str>,
    /// Text from the section's heading to the table.
    before: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

fn tables(text: &str) -> Vec<Table<'_>> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let (mut before, mut comment, mut inside, mut code) = (Vec::new(), None, false, false);
    for (number, line) in text.lines().enumerate() {
        code ^= line.starts_with("```");
        if line.starts_with('|') && !code {
            if !inside {
                tables.push(Table {
                    line: number + 1,
                    comment,
                    before: before.clone(),
                    rows: Vec::new(),
                });
            }
            inside = true;
            let cells = line.trim_matches('|').split('|').map(str::trim);
            let table = tables.last_mut().expect("a table has begun");
            table.rows.push(cells.collect());
            continue;
        }
        inside = false;
        if line.starts_with('#') && !code {
            before.clear();
        }
        before.push(line);
        // The last line of a command ends the comment.
        comment = line.strip_suffix("-->").map(str::trim);
    }
    tables
}

/// The numbers of a cell as they are written, without signs. Code is left out.
fn numbers_of_cell(cell: &str) -> Vec<String> {
    numbers(&cell.split('`').step_by(2).collect::<Vec<_>>().join(" "))
}

/// The numbers of a text as they are written, without signs.
fn numbers(text: &str) -> Vec<String> {
    let part_of_one = |letter: char| letter.is_ascii_digit() || ".,".contains(letter);
    let mut found = Vec::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric() && !part_of_one(letter)) {
        let word = word.trim_matches(['.', ',']).replace(',', "");
        if !word.is_empty() && word.parse::<f64>().is_ok() {
            found.push(word);
        }
    }
    found
}

/// True if `written` is a rounding of one of `values`.
fn is_rounding(written: &str, values: &[f64]) -> bool {
    let digits = written
        .split_once('.')
        .map_or(0, |(_, behind)| behind.len());
    let half = 0.5 * 0.1_f64.powi(digits.try_into().expect("few digits")) + 1e-9;
    let number: f64 = written.parse().expect("a number");
    values
        .iter()
        .any(|value| (value.abs() - number).abs() <= half)
}

/// The numbers of each figure at full scale.
fn figures() -> BTreeMap<String, Vec<f64>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/baseline.json");
    let baseline: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let figures = baseline["figures"].as_object().unwrap();
    let numbers_of = |figure: &Value| {
        let points = figure["full"].as_array().into_iter().flatten();
        let values = points.flat_map(|point| {
            let range = point["range"].as_array().into_iter().flatten();
            range.chain([&point["measured"]]).filter_map(Value::as_f64)
        });
        values.collect()
    };
    figures
        .iter()
        .map(|(id, figure)| (id.clone(), numbers_of(figure)))
        .collect()
}

#[test]
fn the_numbers_of_tables_are_those_of_their_sources() {
    let figures = figures();
    let (mut compared, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for table in tables(&text) {
            let Some(sources) = table.comment.and_then(|c| c.strip_prefix("<!-- numbers: ")) else {
                continue;
            };
            let (sources, labels) = sources.split_once("except").unwrap_or((sources, ""));
            let labels: Vec<&str> = labels.split_whitespace().collect();
            let named: Vec<&str> = sources.split_whitespace().collect();
            let values_of = |source: &str| -> Vec<f64> {
                let known = figures.get(source).cloned();
                known.unwrap_or_else(|| panic!("{}: no figure {source}", page.display()))
            };
            let headings = &table.rows[0];
            for row in &table.rows[2..] {
                // A row that names a figure has numbers of that one.
                let own = row[0].trim_matches('`');
                let of_row = match figures.contains_key(own) {
                    true => std::slice::from_ref(&own),
                    false => &named[..],
                };
                let values: Vec<f64> = of_row.iter().flat_map(|id| values_of(id)).collect();
                for (heading, cell) in headings.iter().zip(row).skip(1) {
                    if GIVEN.iter().any(|word| heading.contains(word)) {
                        continue;
                    }
                    for number in numbers_of_cell(cell) {
                        compared += 1;
                        if !labels.contains(&number.as_str()) && !is_rounding(&number, &values) {
                            let page = page.file_name().unwrap().to_str().unwrap();
                            wrong.push(format!("{page}:{}: {number} in: {cell}", table.line));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no such numbers:\n{}", wrong.join("\n"));
    assert!(compared > 40, "{compared}");
}

/// True if a line says when and from what its numbers were measured.
fn is_record(line: &str) -> bool {
    let words = || line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let is_date =
        |word: &str| word.len() == 10 && word.starts_with("20") && word.matches('-').count() == 2;
    let is_commit = |word: &str| {
        word.len() >= 7 && word.chars().all(|digit| "0123456789abcdef".contains(digit))
    };
    let commit = words()
        .zip(words().skip(1))
        .any(|(word, next)| word == "commit" && is_commit(next));
    commit && words().any(is_date) && (line.contains("processors") || line.contains("imulated"))
}

/// True if more than a third of the cells behind the first begin with a number.
fn has_results(table: &Table<'_>) -> bool {
    let rows = table.rows.iter().skip(2);
    let cells = rows
        .flat_map(|row| row.iter().skip(1))
        .filter(|cell| !cell.is_empty());
    let is_number = |cell: &&&str| {
        let start = cell.trim_start_matches(['-', '+', '*']);
        start.starts_with(|letter: char| letter.is_ascii_digit())
    };
    3 * cells.clone().filter(is_number).count() > cells.count()
}

#[test]
fn every_table_of_results_says_where_its_numbers_come_from() {
    let mut without = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        // Tests of the crates that write these compare them.
        if text.starts_with("<!-- Written by ") {
            continue;
        }
        for table in tables(&text).iter().filter(|table| has_results(table)) {
            if table.comment.is_none() && !table.before.iter().any(|line| is_record(line)) {
                without.push(format!("{}:{}", page.display(), table.line));
            }
        }
    }
    assert!(
        without.is_empty(),
        "add `<!-- numbers: .. -->`, the command that prints the table, or date, machine and commit:\n{}",
        without.join("\n")
    );
}

/// The checks above notice errors.
#[test]
fn a_stale_number_and_a_record_without_a_commit_are_noticed() {
    assert!(is_rounding("0.80", &[0.8049]) && !is_rounding("0.80", &[0.8051]));
    assert!(is_rounding("1234", &[-1234.4]));
    assert_eq!(
        numbers_of_cell("`a 1` 2.5 (99 % at 31: 9,981)"),
        ["2.5", "99", "31", "9981"]
    );
    assert!(is_record(
        "2026-11-22, 4 virtual processors; commit 06e07d5"
    ));
    assert!(!is_record("2026-11-22, 4 virtual processors"));
    assert!(!is_record("4 virtual processors; commit 06e07d5"));
}
