//! What is to be simulated: drives, workload, and the matrix of schedulers and options to compare.
//!
//! A scenario is read from TOML ([`Scenario::from_table`]), or put together from options of the
//! command line. `docs/scenario.md` explains every key.

mod alternatives;
mod header;
mod keys;
mod names;
mod runs;

use headtime_config::{Many, Node, OneOrList, Place, Table, parse, to_text, whole};
use headtime_engine::EngineSpec;
use headtime_host::HostSpec;
use headtime_host::workload::BenchmarkSpec;
use headtime_sched::{Class, Needs, Spec};
use headtime_stack::{Believed, Simulated};
use headtime_units::Nanos;
use headtime_workload::{ArrivalEvent, Fit, Format, ProcessSpec, Speed, TimeUnit};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

pub use alternatives::Alternatives;
pub use header::{Header, options, short};
pub use headtime_config::Error as TreeError;
pub use keys::Device;
pub use names::{WHOLE, WRITE_BACK, of_groups, of_programs};
pub use runs::{Cell, alone, cells, combinations, count};

/// A scenario, checked as far as that is possible without its files. Its fields are its keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// What it shows, in a line.
    pub title: Option<String>,
    /// Fixes every random draw.
    pub seed: u64,
    /// The schedulers to compare.
    pub schedulers: Many<Spec>,
    /// The drives.
    #[serde(rename = "drive")]
    pub drives: Alternatives<DriveSpec>,
    /// What stands between those who ask and the drive.
    #[serde(rename = "engine")]
    pub engines: Alternatives<EngineSpec>,
    /// Who asks for what.
    #[serde(rename = "+workload")]
    pub workload: Workload,
    /// How long, and how often.
    pub run: Run,
}

/// How long a run takes, and how often it is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Requests that finish before this are not measured.
    pub warm_up: Nanos,
    /// When to stop, warm-up included.
    pub duration: Option<Nanos>,
    /// Most requests in all, warm-up included; synthetic workloads only.
    #[serde(deserialize_with = "whole::<_, _, 1, ANY>")]
    pub requests: Option<u64>,
    /// How often each run is made, each time with another seed.
    #[serde(deserialize_with = "whole::<_, _, 1, REPEATS_MAX>")]
    pub repeats: u32,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            warm_up: Nanos::ZERO,
            duration: None,
            requests: None,
            repeats: 1,
        }
    }
}

/// A simulated drive, and what schedulers believe of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveSpec {
    /// Its profile, by name or file.
    #[serde(deserialize_with = "profile")]
    pub profile: String,
    /// What schedulers believe.
    #[serde(rename = "+believed")]
    pub believed: Believed,
    /// What is changed of the profile.
    #[serde(rename = "+simulated")]
    pub simulated: Simulated,
}

fn profile<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let expected = "the name or file of a drive profile, such as \"atlas10k\"";
    parse(from, expected, |text| Ok::<_, String>(text.to_owned()))
}

/// Who asks for what.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "keys::Loads")]
pub enum Workload {
    /// Made-up programs.
    Synthetic(Vec<Group>),
    /// A recorded trace.
    Replay(Replay),
    /// Programs above a page cache.
    Programs(Programs),
}

/// Processes that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What results call it, if that is given.
    #[serde(default, deserialize_with = "names::name")]
    pub name: Option<String>,
    /// How many there are.
    #[serde(default = "one", deserialize_with = "whole::<_, _, 1, PROCESSES_MAX>")]
    pub processes: u32,
    /// What each does. Its origin's process number is counted through all groups, from 1.
    #[serde(rename = "+process")]
    pub process: ProcessSpec,
}

fn is_default(class: &Class) -> bool {
    *class == Class::default()
}

fn one() -> u32 {
    1
}

/// Programs, and the host they run on.
#[derive(Clone, Debug, PartialEq)]
pub struct Programs {
    /// What they share.
    pub host: HostSpec,
    /// The benchmarks, whose programs are numbered through all of them, from 1.
    pub entries: Vec<Program>,
}

/// A benchmark that is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// What results call it, if that is given; with a number if it makes several programs.
    #[serde(default, deserialize_with = "names::name")]
    pub name: Option<String>,
    /// Rank of what its processes ask for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub class: Class,
    /// What it does.
    #[serde(rename = "+benchmark")]
    pub benchmark: BenchmarkSpec,
}

/// A trace and how it is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The file.
    #[serde(deserialize_with = "keys::trace")]
    pub file: String,
    /// How to read it.
    #[serde(rename = "+reading")]
    pub reading: Reading,
    /// Which devices of it; all if empty.
    #[serde(default, skip_serializing_if = "keys::no_devices")]
    pub devices: OneOrList<Device>,
    /// When requests arrive.
    #[serde(rename = "+pace")]
    pub pace: Pace,
    /// How addresses are brought onto the drive.
    #[serde(default)]
    pub fit: Fit,
}

/// How a trace file is to be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Its format; recognised if absent.
    pub format: Option<Format>,
    /// The unit of its times; guessed if absent and open.
    pub time_unit: Option<TimeUnit>,
    /// Which event of a blkparse trace is an arrival.
    pub arrival_event: Option<ArrivalEvent>,
    /// Columns of a CSV file, as text.
    pub columns: Option<String>,
}

/// When the requests of a trace arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "keys::PaceKeys", into = "keys::PaceKeys")]
pub enum Pace {
    /// When they did, or so much faster.
    Open(Speed),
    /// In their order, so many outstanding.
    Closed(u32),
    /// Each process after its think time.
    ClosedPerProcess,
}

/// Any whole number that TOML can hold.
const ANY: u64 = i64::MAX as u64;
/// The most processes of a scenario.
pub const PROCESSES_MAX: u64 = 1_000_000;
/// The most requests that all of them may have outstanding.
pub const OUTSTANDING_MAX: u64 = 10_000_000;
/// The most repeats of a run.
pub const REPEATS_MAX: u64 = 1_000;
/// The most runs of a scenario, repeats included: the lists of what is compared multiply.
pub const RUNS_MAX: u64 = 100_000;

/// The scenario that runs when none is given, as text.
pub const DEFAULT: &str = "\
title = \"Four processes read files 50 GB apart; the scheduler is not told who asks\"
seed = 1
schedulers = [\"noop\", \"deadline\", \"anticipatory\", \"cfq\", \"stream\", \"clairvoyant\"]

[drive]
profile = \"wd5000aaks\"

[engine]
hide_processes = true

[[program]]
benchmark = \"par-read\"
";

impl Scenario {
    /// The scenario that runs when none is given.
    ///
    /// # Panics
    ///
    /// Never: [`DEFAULT`] is a scenario.
    pub fn default_table() -> Table {
        Table::parse("built-in scenario", DEFAULT).expect("the built-in scenario is TOML")
    }

    /// Reads a scenario. `place` stands for the whole text in errors.
    ///
    /// # Errors
    ///
    /// The first key that is unknown, of the wrong kind or out of range, and what does not fit
    /// together; with its place.
    pub fn from_table(table: &Table, place: Place) -> Result<Scenario, TreeError> {
        keys::scenario(table, place)
    }

    /// The first parts of all keys.
    pub const KEYS: [&'static str; 10] = keys::KEYS;

    /// Puts the value of a dotted key into the table of a scenario. A scenario has one kind of load:
    /// a key of one drops the others.
    ///
    /// # Errors
    ///
    /// As [`Table::set`].
    pub fn put(table: &mut Table, key: &str, node: Node) -> Result<(), TreeError> {
        const LOADS: [&str; 3] = ["workload", "program", "trace"];
        let first = key.split('.').next().unwrap_or_default().trim();
        if LOADS.contains(&first) {
            for load in LOADS.into_iter().filter(|load| *load != first) {
                if table.take(load).is_some() && load == "program" {
                    table.take("host");
                }
            }
        }
        table.set_value(key, node)
    }

    /// The effective scenario as TOML, defaults included, always in the same form. Reads back to an
    /// equal scenario.
    pub fn to_toml(&self) -> String {
        to_text(self)
    }

    /// What the schedulers that are compared must know.
    pub fn needs(&self) -> Needs {
        let needs = self.schedulers.iter().map(Spec::needs);
        needs.fold(Needs::NOTHING, Needs::with)
    }
}

#[cfg(test)]
mod tests;
