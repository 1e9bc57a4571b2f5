//! `headtime drive`

use super::Format;
use super::new::New;
use super::probe::Probe;
use super::trace::TextFormat;
use clap::{Args, Subcommand};
use headtime_units::Bytes;
use std::path::PathBuf;

/// Drive profiles: list, show, make, import, validate, learn
#[derive(Debug, Subcommand)]
pub enum DriveVerb {
    /// List the drives that come with the program
    List(List),
    /// Show what is known of a drive
    Show(Show),
    /// Make a profile of a disk from its datasheet
    New(Box<New>),
    /// Make a profile from DiskSim's parameter files
    Import(Import),
    /// Compare a drive's model with response times measured on the real drive
    Validate(Validate),
    /// Learn how long a request takes, by its distance from the previous one
    Curve(Curve),
    /// Learn what a disk is by reading it
    Probe(Box<Probe>),
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
    /// Which drive of a DiskSim file that has several
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
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
/// Reads a .parv file and the files beside it that it names (.diskspecs, .model, .seek).
#[derive(Debug, Args)]
pub struct Import {
    /// The parameter file
    #[arg(value_name = "NAME.parv")]
    pub parv: PathBuf,
    /// Which drive of a DiskSim file that has several
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// Bytes of the sectors that the file counts as blocks: 256B, 512B or 4KiB
    #[arg(long, value_name = "SIZE", default_value = "512B")]
    pub sector: Bytes,
    /// The profile to write; by default the standard output
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
    /// Which drive of a DiskSim file that has several
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// The measured requests
    #[arg(short, long, value_name = "FILE")]
    pub trace: PathBuf,
    /// Table or JSON
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
}

/// Learn how long a request takes, by its distance from the previous one
///
/// Sends pairs of 4 KiB reads to the modelled drive: the first, anywhere on the disk, brings the head
/// to a known place; the second, so far behind it, is timed. A smooth curve that never falls goes
/// through the means. Schedulers that weigh waiting for a near request against going to a far one
/// (stream, anticipatory, clairvoyant) need such a curve.
#[derive(Debug, Args)]
#[command(after_long_help = CURVE_HELP)]
pub struct Curve {
    /// The drive: a name from `drive list`, a profile FILE.toml, or a DiskSim FILE.parv
    #[arg(value_name = "NAME|FILE")]
    pub drive: String,
    /// Which drive of a DiskSim file that has several
    #[arg(long = "drive", value_name = "NAME")]
    pub one: Option<String>,
    /// Write the curve to a file, with what was measured and how
    #[arg(short, long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,
    /// Timed reads for each distance, 8 to 100000
    ///
    /// The error of a mean falls with the square root: 200 leave 1 to 2 % of a service time.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(8..=100_000),
    )]
    pub samples: u32,
    /// The seed of the places, of the pauses and of the drive's noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Table, JSON or CSV
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub format: Format,
    /// Draw a picture: single reads, means, the curve
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

const CURVE_HELP: &str = "\
How it is measured:
  distance  from the end of the first read to the start of the second, from 0
            to 31/32 of the disk, evenly in the logarithm
  pause     between the two, 0 to 12 ms at random, so that the platter is at
            any angle
  buffer    a second read that finds its data read ahead counts as what it
            took: a near request really is that cheap
  backward  not measured: 1.5 times as much, as in the paper on Stream
            Scheduling (FAST 2011)

Examples:
  headtime drive curve wd5000aaks
  headtime drive curve wd5000aaks --plot curve.svg --out curve.toml
  headtime drive show exos-x18 --format toml > mine.toml
  headtime drive curve mine.toml --samples 2000 --format csv > curve.csv";
