//! A report as CSV: one line per run, and below it one for each of its names where there are several.

use crate::columns::{self, Row};
use crate::report::Report;

/// The text, with a heading.
pub(super) fn report(report: &Report) -> String {
    let names = columns::of_run().map(|column| column.name);
    let mut text = line(["origin"].into_iter().chain(names).map(str::to_owned));
    for run in &report.runs {
        for row in Row::all(run) {
            if matches!(row, Row::Origin(..)) {
                continue;
            }
            let fields = columns::of_run().map(|column| column.of(&row).to_string());
            text.push_str(&line([row.name()].into_iter().chain(fields)));
        }
    }
    text
}

/// A line of fields.
pub fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.map(|field| escaped(&field)).collect();
    format!("{}\n", fields.join(","))
}

/// A field as RFC 4180 wants it.
pub fn escaped(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(escaped("stream(a,b)"), "\"stream(a,b)\"");
        assert_eq!(escaped("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(escaped("noop"), "noop");
    }
}
