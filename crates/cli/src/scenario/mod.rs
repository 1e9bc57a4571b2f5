//! What is to be simulated: drives, workload, and the matrix of schedulers and options to compare.
//!
//! A scenario is read from TOML ([`Scenario::from_table`]), or put together from options of the
//! command line. `docs/scenario.md` explains every key.

mod alternatives;
mod header;
mod keys;
mod names;
mod runs;

use headtime_config::{Both, Node, Place, Table, parse};
use headtime_engine::EngineSpec;
use headtime_host::HostSpec;
use headtime_host::workload::BenchmarkSpec;
use headtime_sched::{Needs, Spec};
use headtime_stack::{Believed, Simulated};
use headtime_units::Nanos;
use headtime_workload::{ArrivalEvent, Fit, Format, ProcessSpec, Speed, TimeUnit};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

pub use alternatives::Alternatives;
pub use header::{Header, options, short};
pub use headtime_config::Error as TreeError;
pub use names::{WHOLE, WRITE_BACK, of_groups, of_programs};
pub use runs::{Cell, alone, cells, combinations, count};

/// A scenario, checked as far as that is possible without its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it shows, in a line.
    pub title: Option<String>,
    /// Fixes every random draw.
    pub seed: u64,
    /// The schedulers to compare.
    pub schedulers: Vec<Spec>,
    /// The drives.
    pub drives: Alternatives<DriveSpec>,
    /// What stands between those who ask and the drive.
    pub engines: Alternatives<EngineSpec>,
    /// Who asks for what.
    pub workload: Workload,
    /// Requests that finish before this are not measured.
    pub warm_up: Nanos,
    /// When to stop, warm-up included.
    pub duration: Option<Nanos>,
    /// Most requests in all, warm-up included; synthetic workloads only.
    pub requests: Option<u64>,
    /// How often each run is made, each time with another seed.
    pub repeats: u32,
}

/// A simulated drive, and what schedulers believe of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "DriveKeys", into = "DriveKeys")]
pub struct DriveSpec {
    /// Its profile, by name or file.
    pub profile: String,
    /// What schedulers believe.
    pub believed: Believed,
    /// What is changed of the profile.
    pub simulated: Simulated,
}

type DriveKeys = Both<ProfileKey, Both<Believed, Simulated>>;

#[derive(Clone, Serialize, Deserialize)]
struct ProfileKey {
    #[serde(deserialize_with = "profile")]
    profile: String,
}

fn profile<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let expected = "the name or file of a drive profile, such as \"atlas10k\"";
    parse(from, expected, |text| Ok::<_, String>(text.to_owned()))
}

impl From<DriveKeys> for DriveSpec {
    fn from(Both(ProfileKey { profile }, Both(believed, simulated)): DriveKeys) -> DriveSpec {
        DriveSpec {
            profile,
            believed,
            simulated,
        }
    }
}

impl From<DriveSpec> for DriveKeys {
    fn from(drive: DriveSpec) -> DriveKeys {
        let profile = drive.profile;
        Both(
            ProfileKey { profile },
            Both(drive.believed, drive.simulated),
        )
    }
}

/// Who asks for what.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Made-up programs.
    Synthetic(Vec<Group>),
    /// A recorded trace.
    Replay(Replay),
    /// Programs above a page cache.
    Programs(Programs),
}

/// Processes that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What results call it, if that is given.
    pub name: Option<String>,
    /// How many there are.
    pub processes: u32,
    /// What each does. Its origin's process number is counted through all groups, from 1.
    pub process: ProcessSpec,
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
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What results call it, if that is given; with a number if it makes several programs.
    pub name: Option<String>,
    /// What it does.
    pub benchmark: BenchmarkSpec,
}

/// A trace and how it is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The file.
    pub file: String,
    /// How to read it.
    pub reading: Reading,
    /// Which devices of it; all if empty.
    pub devices: Vec<String>,
    /// When requests arrive.
    pub pace: Pace,
    /// How addresses are brought onto the drive.
    pub fit: Fit,
}

/// How a trace file is to be read.
#[derive(Clone, Debug, Default, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When they did, or so much faster.
    Open(Speed),
    /// In their order, so many outstanding.
    Closed(u32),
    /// Each process after its think time.
    ClosedPerProcess,
}

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
        keys::write(self)
    }

    /// What the schedulers that are compared must know.
    pub fn needs(&self) -> Needs {
        let needs = self.schedulers.iter().map(Spec::needs);
        needs.fold(Needs::NOTHING, Needs::with)
    }
}

#[cfg(test)]
mod tests;
