//! Checks on job files of fio.

use headtime_config::{Error as TreeError, Place, Table};
use headtime_lab::fio;
use headtime_lab::scenario::{Scenario, cells};

/// A job file is a scenario, which reads back as it was written, or an error with its line.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let table = match fio::table("FILE", text) {
        Ok((table, notes)) => {
            assert!(notes.iter().all(|note| note.starts_with("FILE: ")));
            table
        }
        Err(error) => return wrong(&error),
    };
    let scenario = match Scenario::from_table(&table, Place::Line("FILE".into(), 1)) {
        Ok(scenario) => scenario,
        Err(error) => return wrong(&error),
    };
    assert!(!cells(&scenario).is_empty());
    let written = scenario.to_toml();
    let again = Table::parse("AGAIN", &written)
        .and_then(|table| Scenario::from_table(&table, Place::BuiltIn))
        .unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again, scenario, "{written}");
}

fn wrong(error: &TreeError) {
    let text = error.to_string();
    assert!(text.starts_with("FILE:"), "{text}");
}
