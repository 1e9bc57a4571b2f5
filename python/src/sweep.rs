//! Sweeps: their plan, their batches, and their results.

use crate::error::Failure;
use crate::source::{Source, each};
use crate::table::Table;
use crate::waiting::wait;
use headtime_config::Error;
use headtime_lab::fault::Fault;
use headtime_lab::output::Terminal;
use headtime_lab::output::columnar::Origin;
use headtime_lab::report::field::Field;
use headtime_lab::sweep::batch::{Batch, kept};
use headtime_lab::sweep::plan::{self, Making};
use headtime_lab::sweep::results::{Outcome, Results};
use headtime_lab::sweep::run::{RunOptions, run};
use headtime_lab::sweep::{Sweep, output};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Every combination of a sweep, checked.
#[pyclass(frozen, module = "headtime._headtime")]
pub struct Plan {
    plan: Arc<plan::Plan>,
    notes: Vec<String>,
    seed: Option<u64>,
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (scenario, vary, settings, seed, max_runs, jobs, show))]
    #[expect(clippy::too_many_arguments, reason = "the package calls it by name")]
    fn new(
        py: Python<'_>,
        scenario: Option<&Bound<'_, PyAny>>,
        vary: Option<&Bound<'_, PyDict>>,
        settings: Option<&Bound<'_, PyDict>>,
        seed: Option<u64>,
        max_runs: u64,
        jobs: Option<u16>,
        show: Option<Py<PyAny>>,
    ) -> PyResult<Plan> {
        let mut source = Source::new(scenario, settings, seed)?;
        let mut varied: Vec<String> = Vec::new();
        if let Some(vary) = vary {
            each(vary, "", &source.place, &mut |key, node| {
                varied.push(format!("{key}={}", node.value.text()));
                Ok(())
            })?;
        }
        let sweep = Sweep::take(&mut source.table, &varied).map_err(Failure::from)?;
        let sweep = sweep.ok_or_else(|| {
            let problem = "missing; give [sweep] in the scenario, or vary={KEY: LIST}";
            Failure::from(Error::new(source.place.clone(), "sweep", problem))
        })?;
        let mut set: Vec<String> = Vec::new();
        if let Some(settings) = settings {
            each(settings, "", &source.place, &mut |key, _| {
                set.push(key.to_owned());
                Ok(())
            })?;
        }
        set.extend(seed.map(|_| "seed".to_owned()));
        for key in set {
            if let Some((swept, at)) = sweep.key_at(&source.table, &key) {
                let problem = format!("{key}: {swept} is swept ({at}); vary gives it other values");
                return Err(Failure::from(Fault::Usage(problem)).into());
            }
        }
        if !sweep.invariants.is_empty() {
            let problem =
                "the scenario has [[sweep.invariant]], whose verdicts `headtime sweep` gives";
            return Err(Failure::from(Fault::Usage(problem.to_owned())).into());
        }
        let Source {
            table,
            place,
            mut notes,
        } = source;
        let plan = wait(py, show, |with| {
            let making = Making {
                most: max_runs,
                jobs,
                stock: with.stock,
                progress: with.progress,
            };
            plan::Plan::new(sweep, None, &table, &place, making)
        })?;
        notes.extend(plan.notes.iter().cloned());
        Ok(Plan {
            plan: Arc::new(plan),
            notes,
            seed,
        })
    }

    fn __len__(&self) -> usize {
        self.plan.combinations.len()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    #[getter]
    fn hash(&self) -> &str {
        &self.plan.hash
    }

    /// Numbers of combinations without results in a directory, and the number of damaged lines there.
    fn missing(&self, directory: PathBuf) -> PyResult<(Vec<usize>, usize)> {
        let kept = kept(&directory, &self.plan).map_err(Failure::from)?;
        let all = self.plan.combinations.iter().enumerate();
        let missing = all
            .filter(|(number, one)| one.error.is_none() && !kept.outcomes.contains_key(number))
            .map(|(number, _)| number);
        Ok((missing.collect(), kept.damaged))
    }

    /// Some combinations as the text of a batch.
    fn batch(&self, numbers: Vec<usize>) -> String {
        Batch::of(&self.plan, &numbers).to_text()
    }

    /// The results in a directory. `bugs` are errors of runs that have none.
    fn results(&self, directory: PathBuf, bugs: BTreeMap<usize, String>) -> PyResult<Swept> {
        let mut kept = kept(&directory, &self.plan)
            .map_err(Failure::from)?
            .outcomes;
        kept.extend(
            bugs.into_iter()
                .map(|(number, error)| (number, Outcome::Failed(error))),
        );
        let all = self.plan.combinations.iter().enumerate();
        let outcomes = all.map(|(number, one)| {
            let known = one.error.clone().map(Outcome::Failed);
            known.or_else(|| kept.remove(&number)).ok_or_else(|| {
                let name = self.plan.name(number);
                Failure::from(Fault::File(format!("{name}: has no results; start again")))
            })
        });
        let results = Results(outcomes.collect::<Result<_, Failure>>()?);
        Ok(self.swept(results))
    }

    /// Makes all runs, and keeps nothing.
    fn run(&self, py: Python<'_>, jobs: Option<u16>, show: Option<Py<PyAny>>) -> PyResult<Swept> {
        let results = wait(py, show, |with| {
            let options = RunOptions {
                jobs,
                with,
                kept: BTreeMap::new(),
                journal: None,
            };
            run(&self.plan, options)
        })?;
        Ok(self.swept(results))
    }
}

impl Plan {
    fn swept(&self, results: Results) -> Swept {
        Swept {
            plan: Arc::clone(&self.plan),
            results,
            notes: self.notes.clone(),
            seed: self.seed,
        }
    }
}

/// Makes the runs of a batch, and writes their results into a directory. Returns the runs that ended by a bug.
#[pyfunction]
pub fn run_batch(
    py: Python<'_>,
    text: &str,
    directory: PathBuf,
    jobs: Option<u16>,
) -> PyResult<Vec<(usize, String)>> {
    let batch = Batch::parse(text).map_err(Failure::from)?;
    Ok(wait(py, None, |with| batch.run(jobs, with, &directory))?)
}

/// The results of a sweep.
#[pyclass(frozen, module = "headtime")]
pub struct Swept {
    plan: Arc<plan::Plan>,
    results: Results,
    notes: Vec<String>,
    seed: Option<u64>,
}

#[pymethods]
impl Swept {
    /// A row for each line of the CSV.
    #[getter]
    fn rows(&self) -> Table {
        let mut names: Vec<&str> = Vec::new();
        let rows = output::rows(&self.plan, &self.results).map(|fields| {
            if names.is_empty() {
                names.extend(fields.0.iter().map(|(name, _)| *name));
            }
            fields.0.into_iter().map(|(_, field)| field).collect()
        });
        let rows: Vec<Vec<Field>> = rows.collect();
        let origin = Origin {
            seed: self.seed,
            scenario_hash: self.plan.hash.clone(),
        };
        Table::of_rows(&names, &rows, &origin)
    }

    /// The number of combinations that failed. The column `error` says why.
    #[getter]
    fn failed(&self) -> usize {
        self.results.failed()
    }

    /// Assumptions and changes during preparation.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Names all combinations together.
    #[getter]
    fn scenario_hash(&self) -> &str {
        &self.plan.hash
    }

    /// The results as JSON, as `headtime sweep --format json` prints them.
    fn json(&self) -> String {
        output::json(&self.plan, &self.results)
    }

    /// The results as CSV, as `headtime sweep --format csv` prints them.
    fn csv(&self) -> String {
        output::csv(&self.plan, &self.results)
    }

    fn __len__(&self) -> usize {
        self.plan.combinations.len()
    }

    /// The table that `headtime sweep` prints.
    fn __str__(&self) -> String {
        output::text(&self.plan, Some(&self.results), Terminal::default())
    }

    fn __repr__(&self) -> String {
        format!(
            "<headtime.Swept of {} combinations>",
            self.plan.combinations.len()
        )
    }
}
