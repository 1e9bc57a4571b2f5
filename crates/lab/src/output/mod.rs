//! Results as text: tables for people, lines of CSV, JSON. Each caller names the columns and the rows.

#[cfg(feature = "arrow")]
pub mod columnar;
mod contrast;
mod csv;
mod equal;
mod table;

use crate::fault::Fault;
use serde::Serialize;
use std::io::Write;

pub use contrast::{Contrasted, Part, contrasts};
pub use csv::{escaped, line};
pub use equal::{Served, reasons};
pub use table::{TableColumn, Terminal, measured, places, table, table_that_fits};

/// Writes anything as JSON, with a line end.
///
/// # Errors
///
/// If `out` does not take it.
pub fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Fault> {
    let written = out.write_all(json_text(value).as_bytes());
    written.map_err(|error| Fault::output(&error))
}

/// Anything as JSON, with a line end.
pub fn json_text(value: &impl Serialize) -> String {
    // Numbers and strings alone.
    let text = serde_json::to_string_pretty(value).expect("reports have text keys");
    text + "\n"
}
