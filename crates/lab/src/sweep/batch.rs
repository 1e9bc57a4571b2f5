//! Batches of a sweep: some runs that another process makes, and the file with their results.
//!
//! The file has the form of a [journal](super::journal) and is written whole. Any number of processes can write into one directory.
//! Every combination is in the results once, even if several files have it.

use super::journal::{Head, Kept, text_of};
use super::plan::{Combination, Plan};
use super::results::Outcome;
use super::run::{BUG, RunOptions, run};
use super::{Mode, Sweep};
use crate::execute::With;
use crate::fault::Fault;
use crate::files::Output;
use crate::hash::hash_of;
use crate::scenario::{Scenario, cells};
use headtime_config::{Place, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// End of the files' names.
const ENDING: &str = "batch";

/// Some runs of a sweep.
#[derive(Debug, Serialize, Deserialize)]
pub struct Batch {
    head: Head,
    runs: Vec<BatchRun>,
}

#[derive(Debug, Serialize, Deserialize)]
struct BatchRun {
    combination: usize,
    /// The scenario of the run, with whole paths of files.
    scenario: String,
    hash: String,
}

impl Batch {
    /// Runs of a plan by their numbers. A combination that cannot run is left out.
    pub fn of(plan: &Plan, numbers: &[usize]) -> Batch {
        let run = |number: &usize| {
            let combination = &plan.combinations[*number];
            let scenario = combination.scenario.as_ref();
            let scenario = scenario.filter(|_| combination.error.is_none())?;
            Some(BatchRun {
                combination: *number,
                scenario: scenario.to_portable_toml(),
                hash: combination.hash.clone(),
            })
        };
        Batch {
            head: Head::of(plan),
            runs: numbers.iter().filter_map(run).collect(),
        }
    }

    /// The batch as text.
    ///
    /// # Panics
    ///
    /// Never: a batch has text keys.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a batch has text keys")
    }

    /// Reads a batch from its text.
    ///
    /// # Errors
    ///
    /// If another version of the program made the text.
    pub fn parse(text: &str) -> Result<Batch, Fault> {
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        #[derive(Deserialize)]
        struct Any {
            head: Version,
        }
        let wrong = |error: serde_json::Error| Fault::Input(format!("no batch of runs: {error}"));
        let any: Any = serde_json::from_str(text).map_err(wrong)?;
        let (was, is) = (any.head.version, env!("CARGO_PKG_VERSION"));
        if was != is {
            return Err(other_version(&was, is));
        }
        let batch: Batch = serde_json::from_str(text).map_err(wrong)?;
        match batch.head.columns == Head::columns(&of_nothing()) {
            true => Ok(batch),
            false => Err(other_version(&was, &format!("{is} with other columns"))),
        }
    }

    /// Makes the runs, and writes their results into a directory. Returns the numbers and errors of runs that ended by a bug, which have no
    /// results.
    ///
    /// # Errors
    ///
    /// As [`run`]; if the file cannot be written.
    pub fn run(
        self,
        jobs: Option<u16>,
        with: With<'_>,
        directory: &Path,
    ) -> Result<Vec<(usize, String)>, Fault> {
        let Batch { head, runs } = self;
        let combinations = runs.iter().map(BatchRun::combination);
        let plan = Plan {
            sweep: of_nothing(),
            title: None,
            combinations: combinations.collect::<Result<_, Fault>>()?,
            notes: Vec::new(),
            sources: BTreeMap::new(),
            keys: BTreeMap::new(),
            hash: String::new(),
        };
        let options = RunOptions {
            jobs,
            with,
            kept: BTreeMap::new(),
            journal: None,
        };
        let results = run(&plan, options)?;
        let (mut kept, mut bugs) = (BTreeMap::new(), Vec::new());
        for (run, outcome) in runs.iter().zip(results.0) {
            match outcome {
                Outcome::Failed(error) if error.starts_with(BUG) => {
                    bugs.push((run.combination, error));
                }
                outcome => {
                    kept.insert(run.combination, outcome);
                }
            }
        }
        let numbers: Vec<String> = kept.keys().map(usize::to_string).collect();
        let name = hash_of(&numbers.join(","));
        let path = directory.join(format!("{name}.{ENDING}"));
        Output::write_all_of(&path, &text_of(&head, &kept))?;
        Ok(bugs)
    }
}

impl BatchRun {
    fn combination(&self) -> Result<Combination, Fault> {
        let file = format!("combination {}", self.combination + 1);
        let table = Table::parse(&file, &self.scenario)?;
        let scenario = Scenario::from_table(&table, Place::line(&file, 1))?;
        Ok(Combination {
            choice: Vec::new(),
            invariant: None,
            cell: cells(&scenario).into_iter().next(),
            scenario: Some(scenario),
            hash: self.hash.clone(),
            error: None,
        })
    }
}

/// The sweep of a batch: its runs vary as their scenarios say.
fn of_nothing() -> Sweep {
    Sweep {
        mode: Mode::Cross,
        axes: Vec::new(),
        pairs: Vec::new(),
        points: 0,
        invariants: Vec::new(),
        again: Vec::new(),
        place: Place::NoText,
    }
}

fn other_version(was: &str, is: &str) -> Fault {
    Fault::Usage(format!(
        "the sweep was started by headtime {was}, and a worker has {is}; install one version everywhere"
    ))
}

/// The results of a sweep in the files of a directory.
///
/// # Errors
///
/// If a file belongs to another sweep, is no such file, or cannot be read.
pub fn kept(directory: &Path, plan: &Plan) -> Result<Kept, Fault> {
    let fault = |error| Fault::reading(directory, &error);
    let head = Head::of(plan);
    let mut kept = Kept::default();
    for entry in fs::read_dir(directory).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.extension().is_some_and(|end| end == ENDING) {
            kept.add(&path, &head)?;
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::super::output;
    use super::super::plan::Making;
    use super::super::results::Results;
    use super::*;
    use crate::progress::Progress;
    use crate::stock::Stock;

    const SWEEP: &str = "
        schedulers = 'noop'
        drive.profile = 'atlas10k'
        workload.requests = 20
        [sweep]
        seed = [1, 2, 3, 4, 5]
    ";

    /// Two workers make batches that overlap. Together they have the results of one go, each once.
    #[test]
    fn batches_have_the_results_of_one_go() {
        let (stock, progress) = (Stock::default(), Progress::default());
        let with = With {
            stock: &stock,
            progress: &progress,
            stop: None,
        };
        let mut table = Table::parse("s.toml", SWEEP).unwrap();
        let sweep = Sweep::take(&mut table, &[]).unwrap().unwrap();
        let making = Making {
            most: 10,
            jobs: Some(1),
            stock: &stock,
            progress: &progress,
        };
        let plan = Plan::new(sweep, None, &table, &Place::BuiltIn, making).unwrap();
        let name = format!("headtime-batch-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        for numbers in [&[0, 1, 2][..], &[2, 3, 4], &[2, 3, 4]] {
            let text = Batch::of(&plan, numbers).to_text();
            let batch = Batch::parse(&text).unwrap();
            assert_eq!(batch.run(Some(1), with, &directory).unwrap(), []);
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
        let found = kept(&directory, &plan).unwrap();
        assert_eq!((found.outcomes.len(), found.damaged), (5, 0));
        let options = RunOptions {
            jobs: Some(1),
            with,
            kept: BTreeMap::new(),
            journal: None,
        };
        let found = Results(found.outcomes.into_values().collect());
        let whole = run(&plan, options).unwrap();
        assert_eq!(output::csv(&plan, &found), output::csv(&plan, &whole));
        fs::remove_dir_all(&directory).unwrap();
        let text = Batch::of(&plan, &[0]).to_text();
        let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
        for (was, is) in [
            (version.as_str(), "\"version\":\"0.0.9\""),
            ("\"columns\":\"", "\"columns\":\"0"),
        ] {
            let other = text.replacen(was, is, 1);
            let fault = Batch::parse(&other).unwrap_err().to_string();
            assert!(fault.contains("install one version everywhere"), "{fault}");
        }
    }
}
