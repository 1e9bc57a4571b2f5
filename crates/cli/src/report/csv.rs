//! A report as CSV: one line per run, and below it one for each of its names where there are several.

use super::Report;
use super::columns::{self, Row};
use crate::output::line;

/// The text, with a heading.
pub(super) fn text(report: &Report) -> String {
    let names = columns::of_run()
        .iter()
        .map(|column| column.name.to_owned());
    let mut text = line(["origin".to_owned()].into_iter().chain(names));
    let rows = report.runs.iter().flat_map(Row::all);
    for row in rows.filter(|row| !matches!(row, Row::Origin(..))) {
        let fields = columns::of_run()
            .iter()
            .map(|column| column.of(&row).to_string());
        text.push_str(&line([row.name()].into_iter().chain(fields)));
    }
    text
}
