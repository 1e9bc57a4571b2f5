//! `headtime reproduce`

use super::TextFormat;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `headtime reproduce`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Reproduce {
    /// Figures to run: names from --list, `all`, or files FIGURE.toml
    #[arg(value_name = "ID", required_unless_present = "list")]
    pub figures: Vec<String>,
    /// List the figures that come with the program, and run nothing
    #[arg(long, conflicts_with_all = [
        "figures", "format", "out", "check", "baseline", "bless", "print_scenario", "jobs",
    ])]
    pub list: bool,
    /// Output format: table or JSON
    ///
    /// JSON is an object for a single figure, and a list for several figures or for `all`.
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
    /// Write ID.json, ID.csv, ID.svg and ID.html of each figure into a directory
    ///
    /// A missing directory is created. A figure that shows single requests also gets ID-requests.csv. A figure that
    /// shows errors of predictions also gets ID-errors.csv.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Options of the check.
    #[command(flatten)]
    pub judging: Judging,
    /// Run each figure at its smaller scale, for a quick check
    ///
    /// Accepted ranges are meant for the full scale. The baseline has separate values for the smaller scale.
    #[arg(long)]
    pub quick: bool,
    /// Print one scenario of a single figure, ready for `headtime sim run`, and run nothing
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "check", "baseline", "bless"])]
    pub print_scenario: Option<String>,
    /// Number of parallel runs, 1 to 1024; by default one for each processor
    ///
    /// The number changes no result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// Options of a check of verdicts.
#[derive(Clone, Debug, Default, Args)]
pub struct Judging {
    /// End with exit code 1 if a point is outside its accepted range
    #[arg(long)]
    pub check: bool,
    /// With --check: fail only if results differ from the known results in FILE
    ///
    /// A point differs in three cases. The point is newly outside its range. The point is inside its range, but was known
    /// to be outside. Or the value is more than 0.5 % off the known value. Points that are only in the results or only
    /// in FILE differ too. Without FILE, known results come with the program.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
    )]
    pub baseline: Option<Option<PathBuf>>,
    /// Write the measured values into FILE of --baseline; keep the reasons of known points
    #[arg(long, requires = "baseline", conflicts_with = "check")]
    pub bless: bool,
}

const HELP: &str = "\
Examples:
  headtime reproduce --list
  headtime reproduce efs-shares
  headtime reproduce all --out figures --check
  headtime reproduce all --quick --check --baseline
  headtime reproduce all --bless --baseline=experiments/baseline.json
  headtime reproduce efs-shares --print-scenario '4 KiB' > mine.toml";
