//! Runs the combinations of a sweep, several at a time.

use super::journal::Journal;
use super::plan::Plan;
use super::results::{Outcome, Results};
use crate::batch::{self, Taker};
use crate::execute::{MadeRepeat, Wanted, With, make, sum_up};
use crate::fault::Fault;
use crate::prepare::{Prepared, prepare};
use crate::report::catalogue::Measure;
use crate::scenario::cells;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Beginning of the error of a run that ended by a bug of the program.
pub(super) const BUG: &str = "a bug: the program gave up this run: ";

/// How the runs are made.
pub struct RunOptions<'a> {
    /// Runs made at a time; as many as there are processors if absent.
    pub jobs: Option<u16>,
    /// Shared stock and progress, and the check for an early end.
    pub with: With<'a>,
    /// Outcomes that are there already, by combination.
    pub kept: BTreeMap<usize, Outcome>,
    /// Journal that receives each new outcome.
    pub journal: Option<&'a mut Journal>,
}

/// Makes all runs of a plan that have no outcome yet.
///
/// # Errors
///
/// [`Fault::Interrupted`] if told to stop, and the errors of the journal. Errors of a combination become its outcome.
pub fn run(plan: &Plan, running: RunOptions<'_>) -> Result<Results, Fault> {
    let with = running.with;
    run_by(plan, running, |number, repeat| {
        one(plan, number, repeat, with)
    })
}

/// Like [`run`], with a function that makes a repeat of a combination.
fn run_by(
    plan: &Plan,
    running: RunOptions<'_>,
    make: impl Fn(usize, u32) -> Result<Piece, Fault> + Sync,
) -> Result<Results, Fault> {
    let RunOptions {
        jobs,
        with,
        kept,
        journal,
    } = running;
    let mut outcomes: Vec<Option<Outcome>> = Vec::new();
    let mut tasks = Vec::new();
    let (mut first, mut alike) = (BTreeMap::new(), BTreeMap::<usize, Vec<usize>>::new());
    for (number, combination) in plan.combinations.iter().enumerate() {
        let known = combination.error.clone().map(Outcome::Failed);
        let known = known.or_else(|| kept.get(&number).cloned());
        if let (None, Some(scenario)) = (&known, &combination.scenario) {
            // Several invariants may ask for the same run.
            let run = (&combination.hash, scenario.seed);
            match first.get(&run) {
                Some(made) => alike.entry(*made).or_default().push(number),
                None => {
                    first.insert(run, number);
                    tasks.extend((0..scenario.run.repeats).map(|repeat| (number, repeat)));
                }
            }
        }
        outcomes.push(known);
    }
    with.progress.begin(tasks.len() as u64);
    let one = |(number, repeat): (usize, u32)| match catch_unwind(AssertUnwindSafe(|| {
        make(number, repeat)
    })) {
        Ok(made) => made.map_err(Trouble::Fault),
        Err(panic) => Err(Trouble::Bug(words(&*panic))),
    };
    let there = outcomes.iter().flatten();
    let mut gathering = Gathering {
        plan,
        repeats: tasks.clone(),
        alike,
        pieces: BTreeMap::new(),
        done: there.clone().count(),
        failed: there.filter(|outcome| outcome.is_failure()).count(),
        outcomes,
        journal,
        with,
        fault: None,
    };
    gathering.tell();
    let started = batch::each(jobs, tasks, one, &mut gathering);
    with.progress.end();
    let Gathering {
        outcomes,
        journal,
        fault,
        ..
    } = gathering;
    // Finished outcomes stay in the journal even after an error.
    let synced = journal.map_or(Ok(()), Journal::sync);
    started?;
    fault.map_or(Ok(()), Err)?;
    synced?;
    let outcomes = outcomes.into_iter();
    let outcomes = outcomes.map(|outcome| outcome.expect("every combination was made"));
    Ok(Results(outcomes.collect()))
}

/// A repeat of a run.
struct Piece {
    prepared: Prepared,
    made: MadeRepeat,
}

/// Reason for a missing piece.
enum Trouble {
    Fault(Fault),
    /// The program panicked with this message.
    Bug(String),
}

fn one(plan: &Plan, number: usize, repeat: u32, with: With<'_>) -> Result<Piece, Fault> {
    if with.stop.is_some_and(|stop| stop()) {
        return Err(Fault::Interrupted);
    }
    let combination = &plan.combinations[number];
    let scenario = combination.scenario.clone();
    let scenario = scenario.expect("what is no scenario is not run");
    let prepared = prepare(scenario, with.stock)?;
    if prepared.hash != combination.hash {
        return Err(Fault::File(
            "a file that the scenario names has changed while the sweep ran".to_owned(),
        ));
    }
    let cell = &cells(&prepared.scenario)[0];
    let made = make(&prepared, cell, repeat, Wanted::default(), with)?;
    Ok(Piece { prepared, made })
}

/// Message of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").to_owned()
}

/// Takes pieces, joins the repeats of each run, and stores the outcomes.
struct Gathering<'a> {
    plan: &'a Plan,
    /// Combination and repeat of each task.
    repeats: Vec<(usize, u32)>,
    /// Other combinations with the same run, by combination.
    alike: BTreeMap<usize, Vec<usize>>,
    /// Pieces of combinations whose repeats are incomplete, by repeat.
    pieces: BTreeMap<usize, BTreeMap<u32, Result<Piece, Trouble>>>,
    outcomes: Vec<Option<Outcome>>,
    /// Number of outcomes so far; `failed` counts the failures among them.
    done: usize,
    failed: usize,
    journal: Option<&'a mut Journal>,
    with: With<'a>,
    /// Reason for an early end.
    fault: Option<Fault>,
}

impl Gathering<'_> {
    fn tell(&self) {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let all = self.outcomes.len();
        self.with
            .progress
            .say(&format!("{} of {all}{failed}", self.done));
    }

    fn put(&mut self, task: usize, piece: Result<Piece, Trouble>) -> Result<(), Fault> {
        let (number, repeat) = self.repeats[task];
        let piece = match piece {
            Err(Trouble::Fault(Fault::Interrupted)) => return Err(Fault::Interrupted),
            Err(Trouble::Fault(fault)) if !fault.is_about_input() => {
                return Err(fault.of(&self.plan.name(number)));
            }
            piece => piece,
        };
        let scenario = self.plan.combinations[number].scenario.as_ref();
        let repeats = scenario.map_or(1, |scenario| scenario.run.repeats as usize);
        let pieces = self.pieces.entry(number).or_default();
        pieces.insert(repeat, piece);
        if pieces.len() < repeats {
            return Ok(());
        }
        let pieces = self.pieces.remove(&number).unwrap_or_default();
        // The fault of the first repeat counts, even if another came earlier.
        let pieces: Result<Vec<Piece>, Trouble> = pieces.into_values().collect();
        let (outcome, keep) = match pieces {
            Ok(pieces) => {
                let invariants = self.plan.sweep.invariants.iter();
                let judged: Vec<_> = invariants.map(|invariant| invariant.metric).collect();
                (sum_up_pieces(pieces, &judged)?, true)
            }
            Err(Trouble::Fault(fault)) => (Outcome::Failed(fault.to_string()), true),
            // The journal skips the outcome, so that the run is made again once the bug is fixed.
            Err(Trouble::Bug(text)) => (Outcome::Failed(format!("{BUG}{text}")), false),
        };
        let alike = self.alike.remove(&number).unwrap_or_default();
        for number in [number].into_iter().chain(alike) {
            if let Some(journal) = self.journal.as_mut().filter(|_| keep) {
                journal.add(number, &outcome)?;
            }
            self.done += 1;
            self.failed += usize::from(outcome.is_failure());
            self.outcomes[number] = Some(outcome.clone());
        }
        Ok(())
    }
}

fn sum_up_pieces(pieces: Vec<Piece>, judged: &[&'static Measure]) -> Result<Outcome, Fault> {
    let (mut prepared, mut made) = (None, Vec::new());
    for piece in pieces {
        prepared = Some(piece.prepared);
        made.push(piece.made);
    }
    let prepared = prepared.expect("a run has one repeat at least");
    let cell = &cells(&prepared.scenario)[0];
    Ok(Outcome::of(&sum_up(&prepared, cell, &made), judged))
}

impl Taker<Result<Piece, Trouble>> for Gathering<'_> {
    fn take(&mut self, task: usize, piece: Result<Piece, Trouble>) -> ControlFlow<()> {
        let put = self.put(task, piece);
        self.tell();
        match put {
            Ok(()) => self.wait(),
            Err(fault) => {
                self.fault = Some(fault);
                ControlFlow::Break(())
            }
        }
    }

    fn wait(&mut self) -> ControlFlow<()> {
        let rest = self
            .journal
            .as_mut()
            .map_or(Ok(()), |journal| journal.rest());
        let over = self.done == self.outcomes.len();
        let rest = match !over && self.with.stop.is_some_and(|stop| stop()) {
            true => Err(Fault::Interrupted),
            false => rest,
        };
        match rest {
            Ok(()) => ControlFlow::Continue(()),
            Err(fault) => {
                self.fault = Some(fault);
                ControlFlow::Break(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Making;
    use super::super::{Sweep, output};
    use super::*;
    use crate::progress::Progress;
    use crate::stock::Stock;
    use headtime_config::{Place, Table};
    use std::fs;

    const SWEEP: &str = "
        schedulers = 'noop'
        drive.profile = 'atlas10k'
        workload.requests = 20
        run.repeats = 2
        [sweep]
        seed = [1, 2, 3, 4]
    ";

    /// A run that panics ends no other run, and the journal does not count it as done.
    #[test]
    fn a_run_that_panics_is_a_row_that_is_made_again() {
        let mut table = Table::parse("s.toml", SWEEP).unwrap();
        let sweep = Sweep::take(&mut table, &[]).unwrap().unwrap();
        let (stock, progress) = (Stock::default(), Progress::default());
        let making = Making {
            most: 10_000,
            jobs: Some(2),
            stock: &stock,
            progress: &progress,
        };
        let plan = Plan::new(sweep, None, &table, &Place::BuiltIn, making).unwrap();
        let with = With {
            stock: &stock,
            progress: &progress,
            stop: None,
        };
        let name = format!("headtime-sweep-{}.partial", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        let made = |bug: Option<usize>| {
            let (mut journal, kept) = Journal::open(&path, &plan, false).unwrap();
            let has: Vec<usize> = kept.outcomes.keys().copied().collect();
            let running = RunOptions {
                jobs: Some(2),
                with,
                kept: kept.outcomes,
                journal: Some(&mut journal),
            };
            let results = run_by(&plan, running, |number, repeat| {
                assert!(
                    Some(number) != bug || repeat == 0,
                    "this is part of the test"
                );
                one(&plan, number, repeat, with)
            });
            (has, output::csv(&plan, &results.unwrap()))
        };
        let (has, broken) = made(Some(1));
        assert!(has.is_empty());
        let errors: Vec<&str> = broken
            .lines()
            .filter(|line| line.contains("a bug"))
            .collect();
        let said = "a bug: the program gave up this run: this is part of the test";
        assert!(errors.len() == 1 && errors[0].ends_with(said), "{broken}");
        assert!(errors[0].starts_with("2,2,all,"), "{broken}");
        let (has, whole) = made(None);
        assert_eq!(has, [0, 2, 3]);
        assert!(!whole.contains("a bug"));
        let others = |csv: &str| -> Vec<String> {
            let lines = csv.lines().filter(|line| !line.starts_with("2,"));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(others(&whole), others(&broken));
        fs::remove_file(&path).unwrap();
    }
}
