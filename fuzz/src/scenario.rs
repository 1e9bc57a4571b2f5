//! Checks on scenarios.

use crate::parts::split;
use headtime_config::{Error as TreeError, Place, Table};
use headtime_lab::scenario::{Scenario, cells};

/// The first part of an input is a scenario; the lines of the second are settings, as given to
/// `--set`.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (text, parts) = split(text);
    let mut table = match Table::parse("FILE", text) {
        Ok(table) => table,
        Err(error) => return wrong(&error),
    };
    for line in parts.iter().flat_map(|(_, text)| text.lines()) {
        if let Some((key, value)) = line.split_once('=')
            && let Err(error) = table.set("--set", key, value)
        {
            wrong(&error);
        }
    }
    let place = Place::Line("FILE".into(), 1);
    let scenario = match Scenario::from_table(&table, place) {
        Ok(scenario) => scenario,
        Err(error) => return wrong(&error),
    };
    let runs = cells(&scenario);
    assert!(!runs.is_empty());

    // What is written is what was read.
    let written = scenario.to_toml();
    let again = Table::parse("AGAIN", &written)
        .and_then(|table| Scenario::from_table(&table, Place::BuiltIn))
        .unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.to_toml(), written);
    // Except that no NaN equals another, not even in what replaces a key of the profile.
    if !written.contains("nan") {
        assert_eq!(again, scenario, "{written}");
    }
}

fn wrong(error: &TreeError) {
    let text = error.to_string();
    assert!(
        text.starts_with("FILE:") || text.starts_with("--set:"),
        "{text}"
    );
}
