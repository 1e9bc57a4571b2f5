//! Why something cannot be built.

use headtime_linux::shown::one_line;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// Why something cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// A name or the content of a file is wrong.
    #[error("{0}")]
    Input(String),
    /// A file cannot be read.
    #[error("{0}")]
    File(String),
}

impl StackError {
    pub(crate) fn input(error: impl Display) -> StackError {
        StackError::Input(error.to_string())
    }

    /// A description may hold the file's name, so that stays on its line.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> StackError {
        let name = one_line(&path.to_string_lossy());
        StackError::File(format!("{name}: cannot read: {error}"))
    }
}
