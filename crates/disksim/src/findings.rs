//! Notes and warnings of an import that succeeds.

/// Notes and warnings in the order in which they come up.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Findings {
    /// What was read but not as it stands.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Where files say two things, and which was believed.
    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }
}
