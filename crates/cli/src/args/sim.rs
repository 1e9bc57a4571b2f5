//! `headtime sim`

use super::{Gates, OutputOptions, Schedulers, gates_of, schedulers, schedulers_help};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Simulate: compare schedulers on a modelled drive
#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Run a scenario, or the built-in one, under each of its schedulers
    Run(SimRun),
    /// Try random drives, loads, schedulers and faults, and check every promise
    Fuzz(Fuzz),
    /// Replay a log and compare every decision
    ReplayLog(ReplayLog),
}

/// Run a scenario, or the built-in one, under each of its schedulers
///
/// Without a scenario, four processes read files that lie 50 GB apart on a desktop drive. Some of
/// the schedulers wait for requests and some do not; none is told which process asks. A scenario is
/// a TOML file; docs/scenario.md explains its keys. Where it lists several values (drives, depths,
/// schedulers, ..), headtime runs every combination. A job file of fio, FILE.fio, becomes a scenario;
/// docs/fio.md says what its keys mean here.
#[derive(Debug, Args)]
#[command(after_long_help = run_help(), allow_negative_numbers = true)]
pub struct SimRun {
    /// The scenario, or a job file of fio
    #[arg(value_name = "SCENARIO.toml|JOB.fio")]
    pub scenario: Option<PathBuf>,
    /// Set a key of the scenario, as in engine.depth=4 or drive.profile=atlas10k,exos-x18
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Schedulers to compare, in place of those of the scenario
    #[arg(short, long, value_name = "LIST", value_parser = schedulers)]
    pub scheduler: Vec<Schedulers>,
    /// Gates to compare, in place of those of the scenario
    #[arg(long, value_name = "LIST", value_parser = gates_of)]
    pub gate: Vec<Gates>,
    /// The seed of every random draw
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Write events and decisions to a file; the scenario must have only one run
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write a row for each request to a file, as CSV; the scenario must have only one run
    ///
    /// The tag of the command that carried it, by how many later ones that was overtaken, priority, and when the
    /// request came, went to the drive and was done.
    #[arg(long, value_name = "FILE.csv")]
    pub requests: Option<PathBuf>,
    /// Print the scenario in full, with every default, and run nothing
    #[arg(long)]
    pub print_scenario: bool,
    /// How to write results.
    #[command(flatten)]
    pub output: OutputOptions,
}

fn run_help() -> String {
    format!(
        "Examples:\n\
         \x20 headtime sim run\n\
         \x20 headtime sim run --set engine.hide_processes=false --set program.think=50us\n\
         \x20 headtime sim run --print-scenario > mine.toml\n\
         \x20 headtime sim run job.fio --set drive.profile=exos-x18 --scheduler noop,sptf\n\
         \x20 headtime sim run mine.toml --set program.processes=8 --format json\n\
         \x20 headtime sim run --scheduler noop,sptf --set engine.depth=1,4,16 --plot depth.svg\n\n{}",
        schedulers_help()
    )
}

/// Try random drives, loads, schedulers, gates and faults, and check every promise
///
/// Each seed draws a drive, a load, a scheduler and faults; half of the seeds also a gate. Schedulers
/// and gates are swapped while the run goes on, and gates get orders (depth, age). Then arrivals stop,
/// and the queue must drain: no request is lost, served twice or served out of order, no command is
/// overtaken in the drive more often than its gate allows, every instant of the arm is accounted for,
/// a second run writes the same log, and the log replays. Prints what each seed drew. Stops at the
/// first failure, with the command that repeats it.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct Fuzz {
    /// The first seed
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// The number of consecutive seeds
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Write the log of each run into a folder, as SEED.log
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

/// Replay a log and compare every decision
///
/// Builds the engine and the scheduler that the log names, feeds them the log's events at their
/// times, and compares their decisions with the log's, also after a swap of schedulers in flight.
/// `sim run --log` and servers write logs. Stops at the first difference and shows it, with exit
/// code 1. Replays a log that was cut off as far as it goes.
#[derive(Debug, Args)]
#[command(after_long_help = REPLAY_LOG_HELP)]
pub struct ReplayLog {
    /// The log, or - for the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

const REPLAY_LOG_HELP: &str = "\
Examples:
  headtime sim run --scheduler stream --log run.log && headtime sim replay-log run.log
  zcat disk0.log.gz | headtime sim replay-log -";
