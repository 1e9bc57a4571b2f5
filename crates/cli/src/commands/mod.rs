//! What the verbs do.

#[cfg(feature = "fuse")]
mod attach;
mod compare;
mod control;
mod drive;
mod examples;
mod generate;
mod replay_log;
mod reproduce;
mod serve;
mod signals;
mod sim;
mod sweep;
mod trace;

use crate::args::{Cli, DriveVerb, SimVerb, TraceVerb, Verb};
use crate::fault::Fault;
use crate::output::Terminal;
use headtime_disk::Profile;
use headtime_linux::shown::one_line;
use headtime_stack::drives::{self, Findings};
use std::io::Write;

/// Where a command writes to.
pub struct Context<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Notes.
    pub err: &'a mut dyn Write,
    /// What the terminal of the results is like.
    pub terminal: Terminal,
    /// Whether notes go to a terminal, so that progress can be seen.
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

    /// Writes a note; a lost one does not matter.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.err, "note: {}", one_line(text));
    }

    /// Writes a warning; a lost one does not matter.
    pub fn warn(&mut self, text: &str) {
        let _ = writeln!(self.err, "warning: {}", one_line(text));
    }

    /// Opens a drive, and says what its file leaves to be said.
    ///
    /// # Errors
    ///
    /// As [`drives::open`].
    pub fn drive(&mut self, name: &str) -> Result<Profile, Fault> {
        let (profile, findings) = drives::open_with_findings(name)?;
        self.found(&findings);
        Ok(profile)
    }

    /// Writes what an import has found.
    pub fn found(&mut self, findings: &Findings) {
        for warning in &findings.warnings {
            self.warn(warning);
        }
        for note in &findings.notes {
            self.note(note);
        }
    }
}

/// Runs a command.
///
/// # Errors
///
/// What went wrong; [`Fault::exit_code`] says what the process ends with.
pub fn run(cli: Cli, context: &mut Context<'_>) -> Result<(), Fault> {
    match cli.verb {
        Verb::Sim(SimVerb::Run(args)) => sim::run(args, context),
        Verb::Sim(SimVerb::Fuzz(args)) => sim::fuzz(&args, context),
        Verb::Sim(SimVerb::ReplayLog(args)) => replay_log::replay_log(&args, context),
        Verb::Sweep(args) => sweep::sweep(*args, context),
        Verb::Trace(TraceVerb::Info(args)) => trace::info(&args, context),
        Verb::Trace(TraceVerb::Convert(args)) => trace::convert(&args, context),
        Verb::Trace(TraceVerb::Replay(args)) => trace::replay(*args, context),
        Verb::Trace(TraceVerb::Record(args)) => trace::record(&args, context),
        Verb::Drive(DriveVerb::List(args)) => drive::list(&args, context),
        Verb::Drive(DriveVerb::Show(args)) => drive::show(&args, context),
        Verb::Drive(DriveVerb::Import(args)) => drive::import(&args, context),
        Verb::Drive(DriveVerb::Validate(args)) => drive::validate(&args, context),
        Verb::Drive(DriveVerb::Curve(args)) => drive::curve(&args, context),
        Verb::Serve(args) => serve::serve(&args, context),
        #[cfg(feature = "fuse")]
        Verb::Attach(args) => attach::attach(&args),
        #[cfg(feature = "fuse")]
        Verb::Detach(args) => attach::detach(&args, context),
        Verb::Control(args) => control::control(&args, context),
        Verb::Reproduce(args) => reproduce::reproduce(&args, context),
        Verb::Generate(args) => generate::generate(&args),
    }
}
