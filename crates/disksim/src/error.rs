//! Why files could not be imported.

use headtime_disk::profile::ProfileError;

/// Why files could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file that cannot be read.
    #[error("{}{file}: {source}", .named_in.as_ref().map(|at| format!("{at}: names a file that cannot be read: ")).unwrap_or_default())]
    Read {
        file: String,
        /// The file and line that name it.
        named_in: Option<String>,
        source: std::io::Error,
    },
    /// Text that is no parameter file.
    #[error("{file}:{line}: {message}")]
    Syntax {
        file: String,
        /// The line, from 1.
        line: usize,
        /// The finding and the expected text.
        message: String,
    },
    /// A parameter that is missing, unknown, out of range or of a kind that is not supported.
    #[error("{file}:{line}: {key}: {message}")]
    Parameter {
        file: String,
        /// The line of the parameter, or of the block that lacks it.
        line: usize,
        key: String,
        /// The fault, and the allowed values.
        message: String,
    },
    /// Parameters that are each in order, but not together.
    #[error("{file}: {source}")]
    Profile {
        /// The file of the model.
        file: String,
        /// The contradiction, in the terms of the profile.
        source: Box<ProfileError>,
    },
}
