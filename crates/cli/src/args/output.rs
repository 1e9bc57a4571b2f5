//! Output options, shared by all commands that compare runs.

use clap::Args;
use headtime_lab::report::row;
use std::path::PathBuf;

/// Output formats of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Table,
    /// JSON with all results
    Json,
    /// CSV, one line for each row
    Csv,
    /// Parquet, if the program was built with the feature `parquet`
    Parquet,
}

/// Rows of CSV and Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// A row for each run
    Run,
    /// A row for each workload, program or role
    Group,
    /// A row for each process
    Process,
    /// A row for each disk of an array
    Disk,
}

impl Level {
    /// Returns the kind of rows.
    pub fn of(self) -> row::Level {
        match self {
            Level::Run => row::Level::Run,
            Level::Group => row::Level::Group,
            Level::Process => row::Level::Process,
            Level::Disk => row::Level::Disk,
        }
    }
}

/// Options for the output of results.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Output format
    ///
    /// JSON has all results, also apart for each origin of requests. CSV and Parquet have a row for each run.
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub format: Format,
    /// Rows of CSV or Parquet, all of one kind
    ///
    /// Without the option, CSV has a row `all` of each run above the rows of its groups and disks, and Parquet has the level `run`.
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub level: Option<Level>,
    /// Show all columns of a table, however narrow the terminal is
    ///
    /// By default columns at the right that do not fit are left out, and the last line names them. Output to a file or a pipe has all
    /// columns.
    #[arg(long)]
    pub wide: bool,
    /// Draw a picture: head position, response times and head time
    ///
    /// The picture shows the first twelve runs. FILE.html is a page with the picture and the table.
    #[arg(long, value_name = "FILE.svg|FILE.html")]
    pub plot: Option<PathBuf>,
    /// Time window of the head position in the picture, such as 10s..12s
    ///
    /// Times count from the start of the run. By default the window has about the first 150 transfers after the warm-up.
    #[arg(long, value_name = "FROM..TO", requires = "plot", value_parser = window)]
    pub plot_window: Option<Window>,
    /// Leave out the speed of this machine, so that the command always writes the same bytes
    #[arg(long)]
    pub reproducible: bool,
    /// Number of parallel runs, 1 to 1024; by default one for each processor
    ///
    /// The number changes no result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// Time window of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Start of the window, in seconds.
    pub from: f64,
    /// End of the window, in seconds.
    pub to: f64,
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}s..{}s", self.from, self.to)
    }
}

fn window(text: &str) -> Result<Window, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("write two durations, as in 10s..12s")?;
    let seconds = |text: &str| {
        let span = text.parse::<headtime_units::Nanos>();
        span.map(|span| span.as_secs_f64())
            .map_err(|error| format!("`{text}`: {error}"))
    };
    let (from, to) = (seconds(from)?, seconds(to)?);
    if from < to {
        Ok(Window { from, to })
    } else {
        Err("the end must be after the beginning".to_owned())
    }
}
