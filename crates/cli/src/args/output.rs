//! How results come out; the same for all commands that compare.

use clap::Args;
use std::path::PathBuf;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Table,
    /// JSON, all there is
    Json,
    /// CSV, one line for each row
    Csv,
}

/// How results come out.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Table, JSON or CSV
    ///
    /// JSON has everything, per origin too; CSV has a line per run.
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub format: Format,
    /// Draw a picture: where the head was, response times, head time
    ///
    /// Shows the first eight runs.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// The time that the picture's head panels show, such as 10s..12s
    ///
    /// Counted from the start of the run. By default about the first 150 transfers after the warm-up.
    #[arg(long, value_name = "FROM..TO", requires = "plot", value_parser = window)]
    pub plot_window: Option<Window>,
    /// Leave out what depends on this machine, so that the same command gives the same bytes
    #[arg(long)]
    pub reproducible: bool,
    /// Number of parallel runs; by default one for each processor
    ///
    /// Does not change any result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// A part of the time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Its beginning.
    pub from: f64,
    /// Its end.
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
