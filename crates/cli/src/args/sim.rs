//! `headtime sim`

use super::{OutputOptions, Schedulers, schedulers, schedulers_help};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Simulate: compare schedulers on a modelled drive
#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Run a scenario, or the built-in one, under each of its schedulers
    Run(Run),
    /// Try random drives, loads, schedulers and faults, and check every promise
    Fuzz(Fuzz),
    /// Repeat what a log tells, and compare every decision
    ReplayLog(ReplayLog),
}

/// Run a scenario, or the built-in one, under each of its schedulers
///
/// Without a scenario: four processes read files that lie 50 GB apart on a desktop drive, under
/// schedulers that wait and such that do not, none of which is told who asks. A scenario is a TOML file; docs/scenario.md explains its keys. Wherever it lists
/// several values (drives, depths, schedulers, ..), every combination is run.
#[derive(Debug, Args)]
#[command(after_long_help = run_help(), allow_negative_numbers = true)]
pub struct Run {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: Option<PathBuf>,
    /// Set a key of the scenario, as in engine.depth=4 or drive.profile=atlas10k,exos-x18
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Schedulers to compare, in place of those of the scenario
    #[arg(short, long, value_name = "LIST", value_parser = schedulers)]
    pub scheduler: Vec<Schedulers>,
    /// Fixes every random draw
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Write the events and decisions of the run; for a scenario of one run
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print the scenario in full, with every default, and run nothing
    #[arg(long)]
    pub print_scenario: bool,
    /// How results come out.
    #[command(flatten)]
    pub output: OutputOptions,
}

fn run_help() -> String {
    format!(
        "Examples:\n\
         \x20 headtime sim run\n\
         \x20 headtime sim run --set engine.hide_processes=false --set program.think=50us\n\
         \x20 headtime sim run --print-scenario > mine.toml\n\
         \x20 headtime sim run mine.toml --set program.processes=8 --format json\n\
         \x20 headtime sim run --scheduler noop,sptf --set engine.depth=1,4,16 --plot depth.svg\n\n{}",
        schedulers_help()
    )
}

/// Try random drives, loads, schedulers and faults, and check every promise
///
/// Each seed draws a drive, a load, a scheduler and faults; then arrivals stop and the queue must
/// drain: nothing lost, nothing served twice, nothing out of order, every instant of the arm
/// accounted for, and the same log when it is run again. Prints what it drew, and stops at the first
/// failure with the one command that shows it again.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct Fuzz {
    /// The first seed
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// How many seeds, one after the other
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Write the log of each run into this folder, as SEED.log
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

/// Repeat what a log tells, and compare every decision
///
/// Builds the engine and the scheduler that the log names, feeds it the events of the log at their
/// times, and compares what it decides with what the log has, scheduler swaps in flight included. Logs
/// are written by `sim run --log` and by a server. Stops at the first difference and shows it, with
/// exit code 1. A log whose writer was stopped is repeated as far as it goes.
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
