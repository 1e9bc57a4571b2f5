//! Scenarios of simulations: drives, workload, and the matrix of schedulers and options to compare.
//!
//! A scenario is read from TOML ([`Scenario::from_table`]), or put together from options of the
//! command line. `docs/scenario.md` explains every key.

mod alternatives;
mod header;
mod keys;
mod names;
mod role;
mod runs;
mod spec;

use crate::files::is_url;
use headtime_config::{Node, Place, Table, to_text};
use headtime_host::workload::BenchmarkSpec;
use headtime_sched::{Needs, Spec};
use headtime_stack::asks_for_arm;

pub use alternatives::{Alternatives, RUNS_MAX};
pub use header::{Header, options, short};
pub use headtime_config::Error as TreeError;
pub use names::{WHOLE, WRITE_BACK, of_programs};
pub use role::RoleSpec;
pub use runs::{Cell, alone, array, cells};
pub use spec::{
    Device, DriveSpec, Group, OUTSTANDING_MAX, PROCESSES_MAX, Pace, Program, Programs, REPEATS_MAX,
    Reading, Replay, Runs, Scenario, Workload, rows_of_groups,
};

/// The scenario that runs when none is given, as text.
pub const DEFAULT: &str = "\
title = \"Four virtual machines read at random beside a scrub, on one disk of 18 TB\"
seed = 1
schedulers = [\"mq-deadline\", \"bfq\", \"stream\"]

[drive]
profile = \"exos-x18\"

[engine]
depth = 32
gate = [\"depth\", \"head-time\"]

[[workload]]
name = \"vm\"
processes = 4
size = \"16KiB\"

[[workload]]
name = \"scrub\"
class = \"idle\"
outstanding = 3
sequential_share = 1.0
first = \"beginning\"
size = \"1MiB\"

[run]
warm_up = \"5s\"
duration = \"60s\"
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
    pub const KEYS: [&'static str; 14] = keys::KEYS;

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
                    table.take("cluster");
                    table.take("qos");
                }
            }
        }
        table.set_value(key, node)
    }

    /// Puts a text KEY=VALUE into the table, as [`Scenario::put`]. Errors call the text `option`.
    ///
    /// # Errors
    ///
    /// If it is no such text, and as [`Table::set`].
    pub fn set(table: &mut Table, option: &str, setting: &str) -> Result<(), TreeError> {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            let problem = "write KEY=VALUE, as in engine.depth=4";
            TreeError::new(Place::Option(option.into()), "", problem)
        })?;
        Scenario::put(table, key.trim(), Node::option(option, value.trim()))
    }

    /// The effective scenario as TOML, defaults included, always in the same form. Reads back to an
    /// equal scenario.
    pub fn to_toml(&self) -> String {
        to_text(self)
    }

    /// [`Scenario::to_toml`] with absolute paths of files, so that the text can be saved in any directory.
    pub fn to_portable_toml(&self) -> String {
        let mut found = self.clone();
        found.each_file(&mut |file| {
            if !is_url(file)
                && let Ok(path) = std::path::absolute(&*file)
            {
                *file = path.to_string_lossy().into_owned();
            }
        });
        found.to_toml()
    }

    /// Changes the paths of all files: profiles and curves of drives, traces, profiles of programs. The standard input is none.
    pub(crate) fn each_file(&mut self, change: &mut dyn FnMut(&mut String)) {
        let mut change =
            |file: Option<&mut String>| file.filter(|file| *file != "-").map(&mut *change);
        let is_file = |name: &&mut String| keys::is_file(name);
        self.drives = self.drives.clone().each(|drive| {
            change(Some(&mut drive.profile).filter(is_file));
            change(drive.believed.belief.as_mut().filter(is_file));
            change(drive.believed.curve.as_mut());
        });
        match &mut self.workload {
            Workload::Replay(replay) => {
                for file in &mut replay.file.0 {
                    change(Some(file));
                }
            }
            Workload::Programs(programs) => {
                for entry in &mut programs.entries {
                    change(entry.profile.as_mut());
                    if let BenchmarkSpec::Replay(spec) = &mut entry.benchmark {
                        change(Some(&mut spec.trace));
                    }
                }
            }
            Workload::Synthetic(_) => {}
        }
    }

    /// Files of the traces that programs replay.
    pub fn program_traces(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.workload {
            Workload::Programs(programs) => programs.entries.as_slice(),
            Workload::Synthetic(_) | Workload::Replay(_) => &[],
        };
        entries.iter().filter_map(|entry| match &entry.benchmark {
            BenchmarkSpec::Replay(spec) => Some(spec.trace.as_str()),
            _ => None,
        })
    }

    /// Files of the profiles that goals are planned by.
    pub fn program_profiles(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.workload {
            Workload::Programs(programs) => programs.entries.as_slice(),
            Workload::Synthetic(_) | Workload::Replay(_) => &[],
        };
        entries.iter().filter_map(|entry| entry.profile.as_deref())
    }

    /// Information that the compared schedulers need.
    pub fn needs(&self) -> Needs {
        let needs = self.schedulers.iter().map(Spec::needs);
        let mut needs = needs.fold(Needs::NOTHING, Needs::with);
        needs.positioning |= self.freeblock.is_some() || self.engines.iter().any(asks_for_arm);
        needs
    }
}

#[cfg(test)]
mod tests;
