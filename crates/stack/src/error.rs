//! Error of building a part of a stack.

use headtime_engine::GateError;
use headtime_linux::shown::one_line;
use headtime_sched::{Spec, SpecError};
use std::fmt::Display;
use std::io;
use std::path::Path;

/// Error of building a part of a stack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// A name or the content of a file is wrong.
    #[error("{0}")]
    Input(String),
    /// A file cannot be read.
    #[error("{0}")]
    File(String),
}

/// Error of building schedulers or their gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbuilt {
    /// The scheduler predicts positions, but no drive is assumed.
    #[error("{0} asks for positions, and no drive is given to believe in")]
    Positions(Spec),
    /// The engine needs to know when the arm is free, but no drive is assumed.
    #[error("issue = late asks when the arm is free, and no drive is given to believe in")]
    Late,
    /// There is no curve, and no drive to learn a curve from.
    #[error("{0} asks for service times, and no curve is given")]
    Curve(Spec),
    /// The setting of the assumed drive names no drive.
    #[error("{0}")]
    Belief(String),
    /// The scheduler is refused.
    #[error(transparent)]
    Scheduler(#[from] SpecError),
    /// The gate does not fit the engine.
    #[error(transparent)]
    Gate(#[from] GateError),
}

impl StackError {
    pub(crate) fn input(error: impl Display) -> StackError {
        StackError::Input(error.to_string())
    }

    /// Returns an error of reading a file. The name of the file may come from a description, so line ends in the name
    /// are escaped.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> StackError {
        let name = one_line(&path.to_string_lossy());
        StackError::File(format!("{name}: cannot read: {error}"))
    }
}
