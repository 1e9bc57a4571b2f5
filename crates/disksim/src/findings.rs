//! Notes and warnings of an import that succeeds.

/// Notes and warnings in the order in which they come up.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl Findings {
    /// Notes a parameter that the profile has in another form or not at all.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Notes a contradiction, and the side that the importer believes.
    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }
}
