//! `headtime report`

use super::ReadingOptions;
use clap::Args;
use headtime_lab::advice::{DiskSetting, MIXES, today};
use std::path::PathBuf;

/// Arguments of `headtime report`.
#[derive(Debug, Args)]
#[command(after_long_help = report_help())]
pub struct Report {
    /// Load: a trace, a job file of fio (.fio) or its JSON output (.json), a scenario (.toml), or a block device to record
    ///
    /// fio's JSON has the options of the job; the percentiles that fio measured stand beside the model's.
    /// A trace may be compressed with gzip or zstd; several files are one trace. A block device is recorded for the time of --for, and its
    /// settings of today are read from sysfs.
    #[arg(value_name = "LOAD", required_unless_present = "like")]
    pub load: Vec<PathBuf>,
    /// Made-up load in place of LOAD, listed below
    #[arg(long, value_name = "MIX", conflicts_with = "load", value_parser = mix)]
    pub like: Option<String>,
    /// Drive: a name from `drive list`, size and speed as in 18TB-7200, a profile FILE.toml, or a DiskSim FILE.parv
    ///
    /// A scenario has a drive already.
    #[arg(short, long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// Name and class of a group of processes, as in scrub:idle=z_rd_int*,txg_sync; can be repeated
    ///
    /// Processes of a trace are given by name, or by number. A name that ends in * fits all names that begin so. The class is real-time,
    /// best-effort (the default) or idle. Processes of no role are `others`.
    #[arg(long, value_name = "ROLE[:CLASS]=NAME,..")]
    pub role: Vec<String>,
    /// Linux scheduler of the disk today, and commands in the drive
    ///
    /// By default mq-deadline@32, or the values of a recorded device.
    #[arg(long, value_name = "SCHEDULER@DEPTH", value_parser = today_setting)]
    pub today: Option<DiskSetting>,
    /// Number of seeds in the second round
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: u32,
    /// First seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Set a key of the scenario, as in drive.override.queue.stream_cap=100ms
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write a page with tables and pictures, in one file
    #[arg(short, long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
    /// Output format: text or JSON
    #[arg(long, value_enum, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
    pub format: ReportFormat,
    /// Number of parallel runs, 1 to 1024; by default one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Options for reading a trace.
    #[command(flatten)]
    pub reading: ReadingOptions,
}

/// Output formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// Some lines for people
    #[default]
    Text,
    /// JSON with all settings
    Json,
}

fn mix(text: &str) -> Result<String, String> {
    let names = MIXES.iter().map(|mix| mix.name);
    match names.clone().any(|name| name == text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "allowed are {}",
            names.collect::<Vec<_>>().join(", ")
        )),
    }
}

fn today_setting(text: &str) -> Result<DiskSetting, String> {
    today(text).map_err(|fault| fault.to_string())
}

fn report_help() -> String {
    let width = MIXES.iter().map(|mix| mix.name.len()).max().unwrap_or(0);
    let mixes = MIXES
        .iter()
        .map(|mix| format!("  {:width$}  {}\n", mix.name, mix.idea));
    let mixes: String = mixes.collect();
    format!(
        "Mixes:\n{mixes}\n\
         Score: the speed of each role over today's, as a geometric mean in which class idle has a quarter of the weight of others.\n\n\
         Examples:\n\
         \x20 headtime report --like vm+scrub --profile exos-x18 -o report.html\n\
         \x20 headtime report disk.csv.gz --profile 18TB-7200 --role 'scrub:idle=z_rd_int*,txg_sync'\n\
         \x20 headtime report /dev/sdb --for 60s --profile 18TB-7200\n\
         \x20 headtime report job.fio --profile wd5000aaks --today none@32"
    )
}
