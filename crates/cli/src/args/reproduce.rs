//! `headtime reproduce`

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Reproduce the papers' figures, and judge what comes out
///
/// A figure is a set of scenarios and of points that are measured in them. Each point says what the
/// paper has and which values are accepted, and why. docs/experiments.md explains the files.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Reproduce {
    /// Which figures: names, `all`, or files FIGURE.toml
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
    #[arg(long, value_enum, default_value_t = FigureFormat::Table, value_name = "FORMAT")]
    pub format: FigureFormat,
    /// Write ID.json, ID.csv and ID.svg of each figure into a directory
    ///
    /// It is made if it is not there. A figure that shows single requests also gets
    /// ID-requests.csv.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// End with exit code 1 if a point leaves its range
    #[arg(long)]
    pub check: bool,
    /// With --check: end so only if something is not as known before
    ///
    /// That is: a point newly out of its range, one that is in its range against expectation, or a
    /// value that differs by more than 0.5 % from the one measured before. Without FILE, by what
    /// comes with the program.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
    )]
    pub baseline: Option<Option<PathBuf>>,
    /// Write the values measured into the baseline, which must be a file; keeps the reasons
    #[arg(long, requires = "baseline", conflicts_with = "check")]
    pub bless: bool,
    /// Run at the smaller scale that each figure has for a check that is soon over
    ///
    /// The ranges are those of the full scale; the baseline has values of its own for it.
    #[arg(long)]
    pub quick: bool,
    /// Print one scenario of the figure, ready for `headtime sim run`, and run nothing
    #[arg(long, value_name = "NAME", conflicts_with_all = ["out", "check", "baseline", "bless"])]
    pub print_scenario: Option<String>,
    /// Runs made at a time; as many as there are processors if not given
    ///
    /// Does not change any result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// How measured figures come out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FigureFormat {
    /// A table for people
    #[default]
    Table,
    /// JSON
    Json,
}

const HELP: &str = "\
Examples:
  headtime reproduce --list
  headtime reproduce efs-shares
  headtime reproduce all --out figures --check
  headtime reproduce all --quick --check --baseline
  headtime reproduce all --bless --baseline=experiments/baseline.json
  headtime reproduce efs-shares --print-scenario '4 KiB' > mine.toml";
