//! Outputs for the results, notes and warnings of commands.

use headtime_disk::Profile;
use headtime_lab::fault::Fault;
use headtime_lab::output::Terminal;
use headtime_linux::shown::one_line;
use headtime_stack::drives::{self, Findings};
use std::io::Write;
use std::path::Path;

/// Outputs of a command.
pub struct Context<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Notes and warnings.
    pub err: &'a mut dyn Write,
    /// Properties of the results' terminal.
    pub terminal: Terminal,
    /// True if notes go to a terminal, which can show progress.
    pub progress: bool,
}

impl Context<'_> {
    /// Writes results.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn print(&mut self, text: &str) -> Result<(), Fault> {
        self.out
            .write_all(text.as_bytes())
            .map_err(|error| Fault::output(&error))
    }

    /// Writes a note. A note that cannot be written is lost without an error.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.err, "note: {}", one_line(text));
    }

    /// Writes a warning. A warning that cannot be written is lost without an error.
    pub fn warn(&mut self, text: &str) {
        let _ = writeln!(self.err, "warning: {}", one_line(text));
    }

    /// Opens a drive, and reports the findings about its file.
    ///
    /// # Errors
    ///
    /// As [`drives::open`].
    pub fn drive(&mut self, name: &str) -> Result<Profile, Fault> {
        let (profile, findings) = drives::open_with_findings(name)?;
        self.found(&findings);
        Ok(profile)
    }

    /// Opens a drive. If a file has several drives, an option names one.
    ///
    /// # Errors
    ///
    /// As [`drives::open`], and if an option names a drive in a file that does not have several.
    pub fn one_drive(&mut self, file: &str, one: Option<&str>) -> Result<Profile, Fault> {
        match one {
            None => self.drive(file),
            Some(one) if drives::is_disksim(Path::new(file)) => {
                self.drive(&format!("{file}#{one}"))
            }
            Some(one) => Err(Fault::Usage(format!(
                "--drive {one}: {file} is no DiskSim file (.parv, .diskspecs), which may have several drives"
            ))),
        }
    }

    /// Writes the findings of an import.
    pub fn found(&mut self, findings: &Findings) {
        for warning in &findings.warnings {
            self.warn(warning);
        }
        for note in &findings.notes {
            self.note(note);
        }
    }
}
