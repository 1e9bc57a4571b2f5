//! Reads DiskSim 4 parameter files.
//!
//! [`import`] takes the `.parv` file of a run. The disk's parameters (`.diskspecs`), its model
//! (`.model`) and its seek curve (`.seek`), which the files name, are looked for beside it. What can
//! be imported is the DiskSim manual's `disksim_disk` with a `dm_disk` of layout `dm_layout_g1` (all
//! mapping and sparing schemes), `dm_layout_g2` or `dm_layout_g4` and mechanics `dm_mech_g1`. Anything
//! else is an error that names the file, the line and the key. The rest of a run (statistics,
//! workload, arrays) says nothing about the drive and is passed over.
//!
//! The noise of the profile is off, as in DiskSim itself, whose random spindle speed does nothing.

mod convert;
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

use headtime_disk::profile::{Profile, ProfileError};
use std::path::Path;

/// A drive read from parameter files.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The drive. Its name comes from the name of the file, its model from the name of the disk.
    pub profile: Profile,
    /// What was read but not as it stands, for people.
    pub notes: Vec<String>,
    /// Where the files contradict themselves, and which side is believed, for people.
    pub warnings: Vec<String>,
}

/// Why files could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that cannot be read.
    #[error("{}{file}: {source}", .named_in.as_ref().map(|at| format!("{at}: names a file that cannot be read: ")).unwrap_or_default())]
    Read {
        /// The file.
        file: String,
        /// The file and line that name it.
        named_in: Option<String>,
        /// Why.
        source: std::io::Error,
    },
    /// Text that is no parameter file.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// A parameter that is missing, unknown, out of range or of a kind that is not supported.
    #[error("{file}:{line}: {key}: {message}")]
    Parameter {
        /// The file.
        file: String,
        /// The line of the parameter, or of the block that lacks it.
        line: usize,
        /// The parameter.
        key: String,
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// Parameters that are each in order, but not together.
    #[error("{file}: {source}")]
    Profile {
        /// The file of the model.
        file: String,
        /// What does not fit, in the terms of the profile.
        source: Box<ProfileError>,
    },
}

/// Reads a drive from a `.parv` file (or a `.diskspecs` file, then with no bus).
///
/// # Errors
///
/// Files that are missing or malformed, and whatever is not supported.
pub fn import(parv: &Path) -> Result<Import, ImportError> {
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
    import_text(&file, &text, beside)
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
    beside: impl FnMut(&str) -> std::io::Result<String>,
) -> Result<Import, ImportError> {
    convert::import(file, text, beside)
}

/// Reads one parameter file for its form alone: blocks, keys and values, without looking at what
/// they mean or at files that they name. For tests that feed it arbitrary text; it never panics.
///
/// # Errors
///
/// [`ImportError::Syntax`] for text that is no parameter file.
pub fn parse_str(file: &str, text: &str) -> Result<(), ImportError> {
    syntax::parse(file, text).map(|_| ())
}
