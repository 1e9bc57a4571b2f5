//! `headtime drive`

use super::trace::TextFormat;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Drive profiles: list, show, import, validate
#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// List the drives that come with the program
    List(List),
    /// Show what is known of a drive
    Show(Show),
    /// Make a profile from DiskSim's parameter files
    Import(Import),
    /// Compare a drive's model with response times measured on the real drive
    Validate(Validate),
}

/// List the drives that come with the program
#[derive(Debug, Args)]
pub struct List {
    /// Table or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
}

/// Show what is known of a drive
#[derive(Debug, Args)]
pub struct Show {
    /// The drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(value_name = "NAME|FILE")]
    pub drive: String,
    /// Table, JSON, or the profile itself as TOML
    #[arg(long, value_enum, default_value_t = ShowFormat::Table, value_name = "FORMAT")]
    pub format: ShowFormat,
}

/// How a drive is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ShowFormat {
    /// A summary for people
    #[default]
    Table,
    /// The summary as JSON
    Json,
    /// The whole profile, as a file to change and use
    Toml,
}

/// Make a profile from DiskSim's parameter files
///
/// Reads a .parv file; the files that it names (.diskspecs, .model, .seek) are found beside it.
#[derive(Debug, Args)]
pub struct Import {
    /// The parameter file
    #[arg(value_name = "NAME.parv")]
    pub parv: PathBuf,
    /// The profile to write; standard output if not given
    #[arg(short, long, value_name = "OUT.toml")]
    pub out: Option<PathBuf>,
}

/// Compare a drive's model with response times measured on the real drive
///
/// The trace has a line per request: R or W, what the buffer did (ignored), first block, blocks,
/// measured response time in us, and the time in us from its completion to the next request. The
/// demerit is the root mean square distance of the two distributions of response times (Ruemmler and
/// Wilkes 1994).
#[derive(Debug, Args)]
pub struct Validate {
    /// The drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(short, long, value_name = "NAME|FILE")]
    pub profile: String,
    /// The measured requests
    #[arg(short, long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Table or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
}
