//! `headtime sweep`

use super::Format;
use super::Judging;
use clap::Args;
use std::path::PathBuf;

/// The most runs of a sweep, repeats included, unless `--max-runs` says otherwise.
pub const MAX_RUNS_DEFAULT: u64 = 20_000;

/// Arguments of `headtime sweep`.
///
/// Invariants of arguments that clap accepts:
///
/// - `list` or `print_scenario` is given ⇒ `out`, `format` and `picture.plot` are `None`, and `!restart`.
/// - `list` ⇒ `print_scenario.is_none()`; `restart` ⇒ `out.is_some()`.
/// - `max_runs ≥ 1`; `print_scenario ≥ 1`; `1 ≤ jobs ≤ 1024`; `seed < 2^63`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP, allow_negative_numbers = true)]
pub struct SweepArgs {
    /// Scenario; by default the built-in scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: Option<PathBuf>,
    /// Show all columns of the table, however narrow the terminal is
    #[arg(long)]
    pub wide: bool,
    /// Sweep a key over a list, in place of its values in the file; can be repeated
    ///
    /// The list is separated by commas, as in engine.depth=1,4,16, or in brackets as in TOML. Keys vary in the order of
    /// the file, then of these options. The last key varies fastest.
    #[arg(long, value_name = "KEY=LIST")]
    pub vary: Vec<String>,
    /// Set a key that is not swept, as in run.duration=60s
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of every random draw, in place of the scenario's; for several seeds, --vary seed=1,2,3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Show the combinations, and run nothing
    #[arg(long, conflicts_with_all = ["out", "restart", "plot", "format"])]
    pub list: bool,
    /// Print the scenario of one combination, ready for `headtime sim run`, and run nothing
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["list", "out", "restart", "plot", "format"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub print_scenario: Option<u64>,
    /// Largest number of runs allowed, repeats included
    #[arg(long, value_name = "N", default_value_t = MAX_RUNS_DEFAULT, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_runs: u64,
    /// Write results to NAME.csv, to NAME.json, or into a directory
    ///
    /// A directory gets NAME.csv, NAME.json and NAME.svg, named after the scenario. A missing directory is created if the
    /// name ends in a slash. The standard output still gets a table.
    #[arg(short, long, value_name = "FILE|DIR/", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Output format; with --out no table
    ///
    /// By default the name of --out tells the format, and a directory gets both. Without --out the default is a table.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub format: Option<Format>,
    /// Start over: delete what an interrupted sweep left beside --out
    #[arg(long, requires = "out", help_heading = "Output")]
    pub restart: bool,
    /// Run on Ray or Slurm, by the Python package `headtime` of the `python3` in PATH
    ///
    /// --out is a directory that all workers share. A second start runs only the combinations that are missing there.
    #[arg(long, value_enum, value_name = "ENGINE", help_heading = "Output", requires_all = ["scenario", "out"],
          conflicts_with_all = ["list", "print_scenario", "plot", "format", "jobs", "check", "bless", "baseline"])]
    pub on: Option<Engine>,
    /// Number of tasks at a time, with --on
    #[arg(long, value_name = "N", help_heading = "Output", requires = "on", value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: Option<u32>,
    /// Options of the check of invariants.
    #[command(flatten, next_help_heading = "Invariants")]
    pub judging: Judging,
    /// Options of the picture.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// Number of parallel runs, 1 to 1024; by default one for each processor
    ///
    /// The number changes no result.
    #[arg(long, value_name = "N", help_heading = "Output", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// Engines that run sweeps on several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Tasks of Ray
    Ray,
    /// Jobs of Slurm
    Slurm,
}

/// Contents and arrangement of a sweep's picture.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Picture")]
pub struct PictureArgs {
    /// Draw a picture: small charts side by side, of the same scale
    ///
    /// The options below arrange the charts. By default the numeric key with most values goes along the axis. Each
    /// scheduler has a line, or else each value of the next key. Further keys have charts side by side and rows of charts.
    /// A sweep of each key alone has a chart for each key. FILE.html is a page with the picture and the table.
    #[arg(long, value_name = "FILE.svg|FILE.html")]
    pub plot: Option<PathBuf>,
    /// Columns of the CSV to draw, separated by commas
    #[arg(
        long,
        value_name = "COLUMN",
        value_delimiter = ',',
        default_value = "throughput_mb_s"
    )]
    pub metric: Vec<String>,
    /// Key along the axis; the end of its name is enough if unique, as in depth
    #[arg(long, value_name = "KEY")]
    pub x: Option<String>,
    /// Key with a line for each value
    #[arg(long, value_name = "KEY")]
    pub series: Option<String>,
    /// Key with a chart for each value, side by side
    #[arg(long, value_name = "KEY", visible_alias = "columns")]
    pub panel: Option<String>,
    /// Key with a row of charts for each value
    #[arg(long, value_name = "KEY")]
    pub rows: Option<String>,
    /// Show only combinations with this value; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub only: Vec<String>,
}

impl PictureArgs {
    /// Returns true if no option arranges the picture.
    pub fn is_plain(&self) -> bool {
        let roles = [&self.x, &self.series, &self.panel, &self.rows];
        roles.into_iter().all(Option::is_none) && self.only.is_empty()
    }
}

const HELP: &str = "\
In a scenario:
  [sweep]
  \"engine.depth\" = [1, 2, 4, 8, 16, 32]        # any key of --set, in the same spelling
  \"host.read_ahead\" = [\"32KiB\", \"1MiB\"]
  schedulers = [\"noop\", \"deadline\", \"stream\"]

  [[sweep.together]]                           # these vary as one: as many values each
  \"drive.profile\" = [\"atlas10k\", \"exos-x18\"]
  \"workload.range\" = [\"0B..9GB\", \"0B..18TB\"]

  [sweep]                                      # or: each key alone, the others as in the scenario,
  mode = \"each\"                                # and these pairs of keys
  pairs = [[\"engine.depth\", \"host.read_ahead\"]]

Examples:
  headtime generate examples .
  headtime sweep depths.toml --out depths.csv --plot depths.svg
  headtime sweep depths.toml --list
  headtime sweep depths.toml --print-scenario 17 > one.toml && headtime sim run one.toml
  headtime sim run --example par-read --print-scenario > mine.toml
  headtime sweep mine.toml --set program.scale=0.1 --vary engine.depth=1,4 --format csv
  headtime sweep depths.toml --plot iops.svg --x depth --panel size --metric iops";
