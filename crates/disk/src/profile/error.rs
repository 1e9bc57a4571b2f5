//! What can be wrong with a profile.

use std::fmt;

/// Why a profile is not one: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// The name given for the text; empty for a spec that did not come from a text.
    pub file: String,
    /// The line in it, from 1.
    pub line: Option<usize>,
    /// The key as the text spells it, such as `layout.zones[2].slips`.
    pub key: Option<String>,
    /// What is wrong.
    pub kind: ProfileErrorKind,
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileErrorKind {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that means nothing.
    #[error("unknown key{}", .suggestion.as_ref().map(|key| format!("; did you mean `{key}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key that may have been meant.
        suggestion: Option<String>,
    },
    /// A key that has to be there.
    #[error("missing; it is {expected}")]
    Missing {
        /// What it should hold.
        expected: String,
    },
    /// A value of the wrong kind.
    #[error("is {found}, but should be {expected}")]
    Kind {
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A value outside its range.
    #[error("{value} is not allowed; allowed is {allowed}")]
    Range {
        /// The value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// Values that are each in range, but not together.
    #[error("{0}")]
    Conflict(String),
}

impl ProfileError {
    pub(crate) fn new(key: impl Into<String>, kind: ProfileErrorKind) -> ProfileError {
        ProfileError {
            file: String::new(),
            line: None,
            key: Some(key.into()),
            kind,
        }
    }

    pub(crate) fn range(
        key: impl Into<String>,
        value: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> ProfileError {
        ProfileError::new(
            key,
            ProfileErrorKind::Range {
                value: value.to_string(),
                allowed: allowed.into(),
            },
        )
    }

    pub(crate) fn conflict(key: impl Into<String>, why: impl Into<String>) -> ProfileError {
        ProfileError::new(key, ProfileErrorKind::Conflict(why.into()))
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl std::error::Error for ProfileError {}
