//! A report as a table, JSON or CSV.

mod csv;
mod equal;
mod table;

use crate::fault::Fault;
use crate::report::Report;
use serde::Serialize;
use std::io::Write;

pub use csv::{escaped, line};
pub use equal::{Served, reasons};
pub use table::{Column, Terminal, measured, table};

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Table,
    /// JSON, all there is
    Json,
    /// CSV, one line per run, and one per workload or program where there are several
    Csv,
}

/// Writes a report.
///
/// # Errors
///
/// If `out` does not take it.
pub fn write(
    out: &mut dyn Write,
    report: &Report,
    format: Format,
    terminal: Terminal,
) -> Result<(), Fault> {
    match format {
        Format::Table => {
            let text = table::report(report, terminal);
            out.write_all(text.as_bytes())
                .map_err(|error| Fault::output(&error))
        }
        Format::Json => json(out, report),
        Format::Csv => {
            let text = csv::report(report);
            out.write_all(text.as_bytes())
                .map_err(|error| Fault::output(&error))
        }
    }
}

/// Writes anything as JSON, with a line end.
///
/// # Errors
///
/// If `out` does not take it.
pub fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Fault> {
    // Numbers and strings alone: what could fail is the output.
    let text = serde_json::to_string_pretty(value).expect("reports have text keys");
    writeln!(out, "{text}").map_err(|error| Fault::output(&error))
}
