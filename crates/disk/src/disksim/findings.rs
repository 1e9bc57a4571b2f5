//! What people are told of an import that succeeds.

/// Notes and warnings in the order in which they come up.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) notes: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Findings {
    /// What was read but not as it stands.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Where files say two things, and which was believed.
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }
}
