//! `headtime sim`

use super::{Gates, OutputOptions, Schedulers, gates_of, names_help, schedulers};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Simulate: compare schedulers on a modelled drive
#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Run a scenario, or the built-in scenario, under each of its schedulers
    ///
    /// The built-in scenario has four virtual machines that read at random beside a scrub, on a disk of 18 TB. The gate `depth` lets the
    /// drive choose among all requests; `head-time` keeps the drive from leaving requests behind, and serves the scrub last.
    ///
    /// A scenario is a TOML file; docs/scenario.md explains the keys. If a scenario lists several values (drives, depths, schedulers, ..),
    /// headtime runs every combination. A job file of fio, FILE.fio, becomes a scenario; docs/fio.md explains the meaning of each key.
    Run(SimRun),
    /// Run random drives, loads, schedulers, gates and faults, and check every guarantee
    ///
    /// Each seed draws a drive, a load, a scheduler and faults; half of the seeds also a gate. Schedulers and gates are swapped while the
    /// run goes on, and gates get orders (depth, age). Then arrivals stop, and the queue must drain.
    ///
    /// No request may be lost, served twice or served out of order. No command may be overtaken in the drive more often than the gate
    /// allows. Every instant of the arm must be accounted for. A second run must write the same log, and the log must replay.
    ///
    /// The command prints the draws of each seed. It stops at the first failure, and prints the command that repeats the failure.
    Fuzz(Fuzz),
    /// Replay a log and compare every decision
    ///
    /// Builds the engine and the scheduler that the log names, and feeds the log's events to them at the recorded times. Compares each
    /// decision with the log, also after swaps of schedulers. `sim run --log` and servers write logs.
    ///
    /// At the first difference, the command shows the difference and ends with exit code 1. A log that was cut off is replayed up to its
    /// end.
    ReplayLog(ReplayLog),
}

/// Scenario of `headtime generate examples`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Example {
    /// Four readers of files on three disks
    Array,
    /// Two programs with goals and a backup on nine servers
    Goals,
    /// Four readers of files on a desktop drive of 2009, as in the paper of Stream Scheduling
    ParRead,
    /// Two programs with goals, urgent and bulk requests and a scrub on three disks
    Together,
    /// Four virtual machines beside a scrub; the default
    VmScrub,
}

/// Arguments of `headtime sim run`.
#[derive(Debug, Args)]
#[command(after_long_help = run_help(), allow_negative_numbers = true)]
pub struct SimRun {
    /// Scenario, or job file of fio; by default the built-in scenario
    #[arg(value_name = "SCENARIO.toml|JOB.fio")]
    pub scenario: Option<PathBuf>,
    /// Run a scenario of `headtime generate examples` in place of a file
    #[arg(long, value_name = "NAME", conflicts_with = "scenario")]
    pub example: Option<Example>,
    /// Set a key of the scenario, as in engine.depth=4 or drive.profile=atlas10k,exos-x18
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Schedulers to compare, in place of the scenario's
    #[arg(short, long, value_name = "LIST", value_parser = schedulers)]
    pub scheduler: Vec<Schedulers>,
    /// Gates to compare, in place of the scenario's
    #[arg(long, value_name = "LIST", value_parser = gates_of)]
    pub gate: Vec<Gates>,
    /// Seed of every random draw, in place of the scenario's; for several seeds, --set run.repeats=5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Write events and decisions to a file; the scenario must have only one run
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write a row for each request to a file, as CSV; the scenario must have only one run
    ///
    /// Columns include the tag of the command that carried the request, and the number of later commands that overtook
    /// this command. Other columns have the priority, and the times of arrival, dispatch to the drive and completion.
    #[arg(long, value_name = "FILE.csv")]
    pub requests: Option<PathBuf>,
    /// Print the scenario in full, with every default, and run nothing
    #[arg(long)]
    pub print_scenario: bool,
    /// Options for the output of results.
    #[command(flatten)]
    pub output: OutputOptions,
}

fn run_help() -> String {
    format!(
        "Examples:\n\
         \x20 headtime sim run\n\
         \x20 headtime sim run --example par-read --set engine.hide_processes=false --set program.think=50us\n\
         \x20 headtime sim run --example par-read --print-scenario > mine.toml\n\
         \x20 headtime sim run job.fio --set drive.profile=exos-x18 --scheduler noop,sptf\n\
         \x20 headtime sim run mine.toml --set program.processes=8 --format json\n\
         \x20 headtime sim run --scheduler noop,sptf --gate depth --set engine.depth=1,4,16 --plot depth.svg\n\n{}",
        names_help()
    )
}

/// Arguments of `headtime sim fuzz`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct Fuzz {
    /// First seed
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// Number of consecutive seeds to run
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Write the log of each run into an existing directory, as SEED.log
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
}

/// Arguments of `headtime sim replay-log`.
#[derive(Debug, Args)]
#[command(after_long_help = REPLAY_LOG_HELP)]
pub struct ReplayLog {
    /// Log to replay, or - for the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

const REPLAY_LOG_HELP: &str = "\
Examples:
  headtime sim run --scheduler stream --gate depth --log run.log && headtime sim replay-log run.log
  zcat disk0.log.gz | headtime sim replay-log -";
