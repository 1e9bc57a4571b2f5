//! Makes the runs of figures; those that several figures share are made once.

use super::{Figure, RunOf};
use crate::batch;
use crate::execute::{How, Sample, With, execute};
use crate::fault::Fault;
use crate::prepare::prepare;
use crate::progress::{Goal, Progress};
use crate::report::Run;
use crate::scenario::Scenario;
use crate::stock::Stock;
use std::collections::BTreeMap;

/// The runs of several figures.
#[derive(Debug)]
pub struct Runs {
    /// By the text of their scenario.
    made: BTreeMap<String, Made>,
}

#[derive(Debug)]
struct Made {
    run: Run,
    samples: Vec<Sample>,
}

/// A run to be made.
struct Task {
    scenario: Scenario,
    /// Whether its single requests are wanted.
    record: bool,
    /// For whom, in messages.
    name: String,
}

/// The scenario of one run of a figure.
pub fn scenario(figure: &Figure, run: &RunOf) -> Scenario {
    Scenario {
        schedulers: vec![run.scheduler.clone()],
        ..figure.variants[run.variant].scenario.clone()
    }
}

/// What names a run, whichever figure it is for.
fn key(figure: &Figure, run: &RunOf) -> String {
    Scenario {
        title: None,
        ..scenario(figure, run)
    }
    .to_toml()
}

fn tasks(figures: &[Figure]) -> BTreeMap<String, Task> {
    let mut tasks = BTreeMap::new();
    for figure in figures {
        let measured = figure.points.iter().flat_map(|point| {
            let pairs = point.runs.iter();
            pairs.flat_map(|(own, others)| std::iter::once(own).chain(others))
        });
        let recorded = figure.recorded().map(|run| (run, true));
        for (run, record) in measured.map(|run| (run, false)).chain(recorded) {
            let task = tasks.entry(key(figure, run)).or_insert_with(|| Task {
                scenario: scenario(figure, run),
                record: false,
                name: format!("{}: {}", figure.id, figure.variants[run.variant].name),
            });
            task.record |= record;
        }
    }
    tasks
}

/// How many runs the figures need, those that several share counted once, repeats counted each.
pub fn count(figures: &[Figure]) -> u64 {
    let tasks = tasks(figures);
    tasks
        .values()
        .map(|task| u64::from(task.scenario.repeats))
        .sum()
}

impl Runs {
    /// Makes all runs of some figures, `jobs` at a time or as many as there are processors.
    ///
    /// # Errors
    ///
    /// The first in the order of the runs, with the figure and its scenario.
    pub fn make(figures: &[Figure], jobs: Option<u16>, progress: &Progress) -> Result<Runs, Fault> {
        let tasks = tasks(figures);
        progress.begin(tasks.len() as u64);
        let stock = Stock::default();
        let make = |(key, task): (String, Task)| {
            let made = make(&task, &stock).map_err(|fault| fault.of(&task.name))?;
            progress.task(Goal::Unknown).done();
            Ok((key, made))
        };
        let made: Vec<Result<(String, Made), Fault>> =
            batch::all(jobs, tasks.into_iter().collect(), make)?;
        progress.end();
        let made = made.into_iter().collect::<Result<_, _>>()?;
        Ok(Runs { made })
    }

    fn made(&self, figure: &Figure, run: &RunOf) -> &Made {
        self.made
            .get(&key(figure, run))
            .expect("all runs of the figures were made")
    }

    /// The result of a run of one of these figures.
    ///
    /// # Panics
    ///
    /// If the figure is not one of these.
    pub fn get(&self, figure: &Figure, run: &RunOf) -> &Run {
        &self.made(figure, run).run
    }

    /// The single requests of a run that a scatter of one of these figures names.
    ///
    /// # Panics
    ///
    /// If the figure is not one of these.
    pub fn samples(&self, figure: &Figure, run: &RunOf) -> &[Sample] {
        &self.made(figure, run).samples
    }
}

fn make(task: &Task, stock: &Stock) -> Result<Made, Fault> {
    let prepared = prepare(task.scenario.clone(), stock)?;
    let how = How {
        jobs: Some(1),
        record: task.record,
        ..How::default()
    };
    let with = With {
        stock,
        progress: &Progress::new(false),
        stop: None,
    };
    let mut outcome = execute(&prepared, how, with)?;
    let run = outcome.runs.pop().expect("a run for the one scheduler");
    let samples = outcome.samples.pop().unwrap_or_default();
    Ok(Made { run, samples })
}
