//! Reads DiskSim 4 parameter files.
//!
//! [`import`] takes the `.parv` file of a run. The importer looks beside this file for the files that the run names:
//! the disk's parameters (`.diskspecs`), model (`.model`) and seek curve (`.seek`). The importer reads the DiskSim
//! manual's `disksim_disk` with a `dm_disk`. Mechanics `dm_mech_g1` and layouts `dm_layout_g1` (all mapping and
//! sparing schemes), `dm_layout_g2` and `dm_layout_g4` are supported. Anything else is an error that names the file,
//! the line and the key. The importer passes over the rest of a run (statistics, workload, arrays), which says
//! nothing about the drive.
//!
//! The noise of the profile is off, as in DiskSim itself, whose random spindle speed does nothing.

mod convert;
mod error;
mod extents;
mod fields;
mod findings;
mod fit;
mod mechanism;
mod parts;
mod run;
mod syntax;
#[cfg(test)]
mod tests;
mod tracks;
mod zones;

pub use convert::{Choice, Import};
pub use error::ImportError;

use std::path::Path;

/// Reads a drive from a `.parv` file (or a `.diskspecs` file, then with no bus).
///
/// # Errors
///
/// If a file is missing, malformed or not supported, or if several drives differ and `choice` names none.
pub fn import(parv: &Path, choice: &Choice) -> Result<Import, ImportError> {
    let file = parv
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = read(parv).map_err(|source| ImportError::Read {
        file: parv.display().to_string(),
        named_in: None,
        source,
    })?;
    let beside = |name: &str| {
        let literal = parv.with_file_name(name);
        if literal.exists() {
            return read(&literal);
        }
        // Parameter files are often moved together; then only the last part of a path still holds.
        match Path::new(name).file_name() {
            Some(last) => read(&parv.with_file_name(last)),
            None => read(&literal),
        }
    };
    import_text(&file, &text, choice, beside)
}

/// Parameter files are from before UTF-8; comments may have any bytes.
fn read(path: &Path) -> std::io::Result<String> {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a drive from text. `beside` gives the text of a file that another one names.
///
/// # Errors
///
/// As [`import`].
pub fn import_text(
    file: &str,
    text: &str,
    choice: &Choice,
    beside: impl FnMut(&str) -> std::io::Result<String>,
) -> Result<Import, ImportError> {
    convert::import(file, text, choice, beside)
}

/// Reads one parameter file for its form alone: blocks, keys and values. The function ignores their meaning and the
/// files that they name. Tests feed it arbitrary text; it never panics.
///
/// # Errors
///
/// [`ImportError::Syntax`] for text that is no parameter file.
pub fn parse_str(file: &str, text: &str) -> Result<(), ImportError> {
    syntax::parse(file, text).map(|_| ())
}
