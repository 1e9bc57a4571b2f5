//! Makes the runs of figures. A run that several figures share is made once.

use super::{Figure, RunOf};
use crate::accuracy::Learning;
use crate::batch;
use crate::execute::{Execution, Sample, With, execute};
use crate::fault::Fault;
use crate::prepare::prepare;
use crate::progress::{Goal, Progress};
use crate::report::Run;
use crate::scenario::Scenario;
use headtime_config::Many;
use std::collections::{BTreeMap, BTreeSet};

/// The runs of several figures.
#[derive(Debug)]
pub struct FigureRuns {
    /// Runs by the text of their scenario.
    made: BTreeMap<String, FigureRun>,
}

#[derive(Debug)]
struct FigureRun {
    run: Run,
    samples: Vec<Sample>,
}

/// A run to be made.
struct PlannedRun {
    scenario: Scenario,
    /// True if single requests are recorded.
    record: bool,
    /// Ways to learn the drive from outside.
    learn: BTreeSet<Learning>,
    /// Figure and scenario, for messages.
    name: String,
}

/// The scenario of one run of a figure, with the figure's first seed plus `seed`.
fn scenario(figure: &Figure, run: &RunOf, seed: u32) -> Scenario {
    let first = &figure.variants[run.variant].scenario;
    Scenario {
        schedulers: Many(vec![run.scheduler.clone()]),
        seed: first.seed.wrapping_add(u64::from(seed)),
        ..first.clone()
    }
}

/// Key of a run, equal for all figures.
fn key(figure: &Figure, run: &RunOf, seed: u32) -> String {
    Scenario {
        title: None,
        ..scenario(figure, run, seed)
    }
    .to_toml()
}

fn tasks(figures: &[Figure]) -> BTreeMap<String, PlannedRun> {
    let mut tasks = BTreeMap::new();
    for figure in figures {
        let measured = || {
            figure.points.iter().flat_map(|point| {
                let pairs = point.runs.iter();
                let runs = pairs.flat_map(|(own, others)| std::iter::once(own).chain(others));
                runs.map(|run| (run, &point.metric))
            })
        };
        let measured = (0..figure.seeds)
            .flat_map(|seed| measured().map(move |(run, metric)| (run, seed, Some(metric))));
        // Pictures of single requests show the first seed, pictures of errors show all seeds.
        let recorded = figure.recorded().map(|run| (run, 0, None, true));
        let predicted = (0..figure.seeds)
            .flat_map(|seed| figure.predicted().map(move |run| (run, seed, None, false)));
        let measured = measured.map(|(run, seed, metric)| (run, seed, metric, false));
        for (run, seed, metric, record) in measured.chain(recorded).chain(predicted) {
            let task = tasks
                .entry(key(figure, run, seed))
                .or_insert_with(|| PlannedRun {
                    scenario: scenario(figure, run, seed),
                    record: false,
                    learn: BTreeSet::new(),
                    name: format!("{}: {}", figure.id, figure.variants[run.variant].name),
                });
            task.record |= record;
            task.learn.extend(metric.and_then(|metric| metric.learning));
        }
    }
    tasks
}

/// Number of runs that the figures need. A run that several figures share counts once. Each seed and each repeat counts.
pub fn count(figures: &[Figure]) -> u64 {
    let tasks = tasks(figures);
    tasks
        .values()
        .map(|task| u64::from(task.scenario.run.repeats))
        .sum()
}

impl FigureRuns {
    /// Makes all runs of some figures, `jobs` at a time or as many as there are processors.
    ///
    /// # Errors
    ///
    /// The first fault in the order of the runs, with the figure and its scenario.
    pub fn make(
        figures: &[Figure],
        jobs: Option<u16>,
        with: With<'_>,
    ) -> Result<FigureRuns, Fault> {
        let tasks = tasks(figures);
        let progress = with.progress;
        progress.begin(tasks.len() as u64);
        let make = |(key, task): (String, PlannedRun)| {
            let made = make(&task, with).map_err(|fault| fault.of(&task.name))?;
            progress.task(Goal::Unknown).done();
            Ok((key, made))
        };
        let made: Vec<Result<(String, FigureRun), Fault>> =
            batch::all(jobs, tasks.into_iter().collect(), make)?;
        progress.end();
        let made = made.into_iter().collect::<Result<_, _>>()?;
        Ok(FigureRuns { made })
    }

    fn made(&self, figure: &Figure, run: &RunOf, seed: u32) -> &FigureRun {
        self.made
            .get(&key(figure, run, seed))
            .expect("all runs of the figures were made")
    }

    /// The result of a run of one of these figures, with the figure's first seed plus `seed`.
    ///
    /// # Panics
    ///
    /// If the figure is not one of these, or has too few seeds.
    pub fn get(&self, figure: &Figure, run: &RunOf, seed: u32) -> &Run {
        &self.made(figure, run, seed).run
    }

    /// The single requests of a run that a scatter of one of these figures names.
    ///
    /// # Panics
    ///
    /// If the figure is not one of these.
    pub fn samples(&self, figure: &Figure, run: &RunOf) -> &[Sample] {
        &self.made(figure, run, 0).samples
    }

    /// Errors of prediction in us with the number of commands of each, over all seeds, smallest first. A picture of one of these figures
    /// must show the run. Empty if the scheduler does not predict.
    ///
    /// # Panics
    ///
    /// If the figure is not one of these.
    pub fn errors(&self, figure: &Figure, run: &RunOf) -> Vec<(i64, u64)> {
        let mut all = BTreeMap::new();
        for seed in 0..figure.seeds {
            let predictions = self.get(figure, run, seed).predictions.iter();
            for (error, commands) in predictions.flat_map(|of_run| &of_run.errors_us) {
                *all.entry(*error).or_insert(0) += commands;
            }
        }
        all.into_iter().collect()
    }
}

fn make(task: &PlannedRun, with: With<'_>) -> Result<FigureRun, Fault> {
    let prepared = prepare(task.scenario.clone(), with.stock)?;
    let how = Execution {
        jobs: Some(1),
        record: task.record,
        ..Execution::default()
    };
    // A figure's progress counts whole runs.
    let with = With {
        progress: &Progress::default(),
        ..with
    };
    let mut outcome = execute(&prepared, how, with)?;
    let mut run = outcome.runs.pop().expect("a run for the one scheduler");
    for learning in &task.learn {
        let drive = prepared.drives.first().expect("a run has a drive");
        let learned = learning.of(&drive.profile, prepared.scenario.seed);
        let learned = learned.map_err(Fault::input)?;
        run.learned.insert(*learning, learned);
    }
    let samples = outcome.samples.pop().unwrap_or_default();
    Ok(FigureRun { run, samples })
}
