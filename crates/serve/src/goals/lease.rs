//! Notes of a server that wait for a coordinator.

use super::feed::Note;
use headtime_units::Time;
use std::collections::VecDeque;

/// Session of a coordinator.
#[derive(Debug)]
pub(super) struct Lease {
    pub coordinator: u64,
    pub session: u64,
    /// Number of the last question.
    pub number: u64,
    /// Time of the last question.
    pub last: Time,
    /// Number of the first note.
    pub first: u64,
    pub notes: VecDeque<(u16, Note)>,
}
