//! Why something cannot be built.

use headtime_engine::GateError;
use headtime_linux::shown::one_line;
use headtime_sched::{Spec, SpecError};
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

/// Why schedulers or their gate cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbuilt {
    /// No drive is believed, by which positions could be predicted.
    #[error("{0} asks for positions, and no drive is given to believe in")]
    Positions(Spec),
    /// No drive is believed, by which anybody could tell when the arm is free.
    #[error("issue = late asks when the arm is free, and no drive is given to believe in")]
    Late,
    /// There is no curve, and no drive of which one could be learned.
    #[error("{0} asks for service times, and no curve is given")]
    Curve(Spec),
    /// What names the believed drive leads to none.
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

    /// A description may hold the file's name, so that stays on its line.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> StackError {
        let name = one_line(&path.to_string_lossy());
        StackError::File(format!("{name}: cannot read: {error}"))
    }
}
