//! Helpers for tests of sweeps: a scenario with a `[sweep]`, commands in its directory, and rows of results.

use super::common::{data, headtime, scratch};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs in a directory; exit code, standard output, standard error.
pub fn within(directory: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = headtime(args).current_dir(directory).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A scenario of its own, with a `[sweep]`.
pub fn scenario(name: &str, sweep: &str) -> PathBuf {
    let directory = scratch(name);
    let text = fs::read_to_string(data().join("sweep.toml")).unwrap();
    let (scenario, _) = text.split_once("[sweep]").unwrap();
    fs::write(directory.join("s.toml"), format!("{scenario}{sweep}")).unwrap();
    directory
}

/// The rows of a CSV text, by heading.
pub fn rows(csv: &str) -> Vec<Vec<(String, String)>> {
    let fields = |line: &str| -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut quoted = false;
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                letter => fields.last_mut().unwrap().push(letter),
            }
        }
        fields
    };
    let mut lines = csv.lines();
    let heading = fields(lines.next().unwrap());
    let row = |line: &str| {
        let fields = fields(line);
        assert_eq!(fields.len(), heading.len(), "{line}");
        heading.iter().cloned().zip(fields).collect()
    };
    lines.map(row).collect()
}

/// Value of a row in a column.
pub fn at<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    let found = row.iter().find(|(heading, _)| heading == name);
    &found.unwrap_or_else(|| panic!("no column {name}")).1
}

/// Rows of whole runs, without rows of single origins.
pub fn wholes(csv: &str) -> Vec<Vec<(String, String)>> {
    let mut rows = rows(csv);
    rows.retain(|row| at(row, "origin") == "all");
    rows
}
