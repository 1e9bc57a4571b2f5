//! `headtime reproduce`

use super::TextFormat;
use clap::Args;
use std::path::PathBuf;

/// Reproduce the papers' figures and judge the results
///
/// A figure is a set of scenarios and of points that are measured in them. Each point says what the
/// paper has and which values are accepted, and why. docs/experiments.md explains the files.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Reproduce {
    /// The figures: names, `all`, or files FIGURE.toml
    #[arg(value_name = "ID", required_unless_present = "list")]
    pub figures: Vec<String>,
    /// List the figures that come with the program, and run nothing
    #[arg(long, conflicts_with_all = [
        "figures", "format", "out", "check", "baseline", "bless", "print_scenario", "jobs",
    ])]
    pub list: bool,
    /// Table or JSON
    ///
    /// JSON is an object for one figure and a list of them for several or for `all`.
    #[arg(long, value_enum, default_value_t = TextFormat::Table, value_name = "FORMAT")]
    pub format: TextFormat,
    /// Write ID.json, ID.csv and ID.svg of each figure into a directory
    ///
    /// Creates the directory if it is missing. A figure that shows single requests also gets
    /// ID-requests.csv.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Options of the check.
    #[command(flatten)]
    pub judging: Judging,
    /// Run each figure at its smaller scale, for a quick check
    ///
    /// The ranges are those of the full scale; the baseline has its own values for the smaller one.
    #[arg(long)]
    pub quick: bool,
    /// Print one scenario of the figure, ready for `headtime sim run`, and run nothing
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "check", "baseline", "bless"])]
    pub print_scenario: Option<String>,
    /// Number of parallel runs; by default one for each processor
    ///
    /// Does not change any result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// Options of a check of verdicts.
#[derive(Clone, Debug, Default, Args)]
pub struct Judging {
    /// End with exit code 1 if a point leaves its range
    #[arg(long)]
    pub check: bool,
    /// With --check: fail only if results differ from the known ones
    ///
    /// A difference is a point newly out of its range, a point in its range that was known to be
    /// out of it, or a value that is more than 0.5 % off the one measured before. Without FILE, the
    /// known results are those that come with the program.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
    )]
    pub baseline: Option<Option<PathBuf>>,
    /// Write the measured values into the baseline FILE; keeps the reasons
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
