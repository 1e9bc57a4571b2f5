//! What is to be simulated: drives, workload, and the matrix of schedulers and options to compare.
//!
//! A scenario is read from TOML ([`Scenario::from_table`]), or put together from options of the
//! command line. `docs/scenario.md` explains every key.

mod canonical;
mod names;
mod programs;
mod read;
mod runs;
mod section;
pub mod tree;

use headtime_engine::Plug;
use headtime_sched::{Needs, Spec};
use headtime_stack::Firmware;
use headtime_units::{Bytes, Nanos};
use headtime_workload::{ArrivalEvent, Fit, Format, ProcessSpec, Speed, TimeUnit};
use tree::{Node, Place, Table, TreeError};

pub use names::{WHOLE, WRITE_BACK, of_groups, of_programs};
pub use programs::{Program, Programs};
pub use read::{class, class_name};
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
    /// The drives, by name or file.
    pub drives: Vec<String>,
    /// Which drive the position-aware schedulers believe to have; the simulated one if absent.
    pub belief: Option<String>,
    /// The file of the service-time curve that schedulers are given which need one; if absent, it is
    /// learned from the drive that they believe to have.
    pub curve: Option<String>,
    /// In what order the drive serves the commands it holds.
    pub firmware: Vec<Firmware>,
    /// Whether the noise of the profile is on.
    pub noise: bool,
    /// Keys of the drive profile that are replaced.
    pub overrides: toml::Table,
    /// Requests in the drive at once.
    pub depths: Vec<u32>,
    /// Whether requests that touch become one.
    pub merge: Vec<bool>,
    /// The most that a merged request may ask for.
    pub merge_max: Bytes,
    /// Whether one request more than fits is taken from the scheduler.
    pub commit_ahead: Vec<bool>,
    /// Whether and how requests that come to an empty queue wait for others.
    pub plug: Option<Plug>,
    /// Whether the scheduler is not told who asks.
    pub hide_processes: bool,
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
/// The most that a merged request may ask for.
pub const MERGE_MAX: Bytes = Bytes(1 << 30);
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
        read::scenario(table, place)
    }

    /// The first parts of all keys.
    pub const KEYS: [&'static str; 10] = read::KEYS;

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
                if table.remove(load) && load == "program" {
                    table.remove("host");
                }
            }
        }
        table.set_value(key, node)
    }

    /// The effective scenario as TOML, defaults included, always in the same form. Reads back to an
    /// equal scenario.
    pub fn to_toml(&self) -> String {
        canonical::write(self)
    }

    /// What the schedulers that are compared must know.
    pub fn needs(&self) -> Needs {
        let needs = self.schedulers.iter().map(Spec::needs);
        needs.fold(Needs::NOTHING, Needs::with)
    }
}
