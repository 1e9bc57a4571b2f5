//! Drives by name or by file.

use crate::{StackError, words};
use headtime_disk::profile::{self, Profile};
pub use headtime_disksim::Choice;
use headtime_disksim::ImportError;
use headtime_linux::shown::one_line;
use headtime_units::nearest;
use std::fs;
use std::path::Path;

/// Returns the profile that a text names: a shipped profile, a size and speed such as `18TB-7200`, a profile file (TOML), or DiskSim's
/// parameter file.
/// `FILE#NAME` names one of several drives in a parameter file.
///
/// # Errors
///
/// If there is no such drive or file, or if the file contains no profile.
pub fn open(text: &str) -> Result<Profile, StackError> {
    open_with_findings(text).map(|(profile, _)| profile)
}

/// Messages about an imported drive.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Contradictions in the drive's files, and the side that is used.
    pub warnings: Vec<String>,
    /// Values that were read with changes.
    pub notes: Vec<String>,
}

/// As [`open`], with messages if the drive was imported.
///
/// # Errors
///
/// As for [`open`].
pub fn open_with_findings(text: &str) -> Result<(Profile, Findings), StackError> {
    let found_none = |profile| (profile, Findings::default());
    if let Some(profile) = profile::by_name(text) {
        return Ok(found_none(profile));
    }
    if let Some(profile) = words::profile(text) {
        let fault = |problem| StackError::Input(format!("drive {}: {problem}", one_line(text)));
        return profile.map(found_none).map_err(fault);
    }
    let path = Path::new(text);
    let is_file = text.contains(['/', '\\']) || path.extension().is_some() || path.exists();
    if !is_file {
        return Err(StackError::Input(unknown(text)));
    }
    if is_disksim(path) {
        return import(path, &Choice::default());
    }
    if let Some((file, drive)) = text.rsplit_once('#')
        && is_disksim(Path::new(file))
    {
        let choice = Choice {
            drive: Some(drive.to_owned()),
            ..Choice::default()
        };
        return import(Path::new(file), &choice);
    }
    let content = fs::read(path).map_err(|error| StackError::reading(path, &error))?;
    let content = String::from_utf8(content).map_err(|_| {
        let text = one_line(text);
        StackError::Input(format!("{text}: is not text in UTF-8; a profile is TOML"))
    })?;
    Profile::from_toml(text, &content)
        .map(found_none)
        .map_err(StackError::input)
}

fn unknown(text: &str) -> String {
    let names: Vec<&str> = profile::shipped()
        .iter()
        .map(|shipped| shipped.name)
        .collect();
    let guess = nearest(text, names.iter().copied()).map_or_else(
        || ".".to_owned(),
        |guess| format!("; did you mean `{guess}`?"),
    );
    let text = one_line(text);
    format!(
        "no drive is called `{text}`{guess} There are {}, each also as NAME-4kn, and plausible-SEED, drawn from a number, and SIZE-RPM, such as 18TB-7200; or give a file, FILE.toml or FILE.parv",
        names.join(", ")
    )
}

/// Returns true if a file belongs to DiskSim, by its name.
pub fn is_disksim(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end == "parv" || end == "diskspecs")
}

/// Reads a drive of DiskSim's parameter files.
///
/// # Errors
///
/// If a file cannot be read, or has contents that cannot be imported.
pub fn import(path: &Path, choice: &Choice) -> Result<(Profile, Findings), StackError> {
    let import = headtime_disksim::import(path, choice).map_err(|error| match error {
        ImportError::Read { .. } => StackError::File(error.to_string()),
        _ => StackError::input(error),
    })?;
    let findings = Findings {
        warnings: import.warnings,
        notes: import.notes,
    };
    Ok((import.profile, findings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_files() {
        assert_eq!(open("atlas10k").unwrap().name, "atlas10k");
        let error = open("atlas10").unwrap_err();
        assert!(matches!(error, StackError::Input(_)));
        let text = error.to_string();
        assert!(
            text.starts_with("no drive is called `atlas10`; did you mean `atlas10k`? There are "),
            "{text}"
        );
        let text = open("a\nb").unwrap_err().to_string();
        assert!(text.starts_with("no drive is called `a\\nb`. "), "{text}");
        let text = open("foo").unwrap_err().to_string();
        assert!(
            text.starts_with("no drive is called `foo`. There are "),
            "{text}"
        );
        for missing in ["missing.toml", "missing.parv"] {
            assert!(matches!(open(missing), Err(StackError::File(_))));
        }
    }
}
