//! Plans a sweep: lists every combination and its errors before anything runs.

use super::{Asked, Mode, Sweep, SweptAxis, column_of};
use crate::batch;
use crate::execute::check;
use crate::fault::Fault;
use crate::hash::Hash;
use crate::prepare::prepare;
use crate::progress::{Goal, Progress};
use crate::scenario::{Cell, Scenario, alone, cells};
use crate::stock::Stock;
use headtime_config::{Error as TreeError, Node, Place, Table, Value};
use std::collections::BTreeMap;

/// One run.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Step of each axis.
    pub choice: Vec<usize>,
    /// The invariant of the run, if there is one.
    pub invariant: Option<usize>,
    /// Place among the runs of the scenario's own lists. `None` if the combination is no valid scenario.
    pub cell: Option<Cell>,
    /// Scenario to run. `None` if the combination is no valid scenario.
    pub scenario: Option<Scenario>,
    /// Identifies the scenario, see [`crate::report::Report::scenario_hash`]; empty if the combination cannot run.
    pub hash: String,
    /// Reason why the combination cannot run, if there is one.
    pub error: Option<String>,
}

/// All runs, in the order of the results.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The sweep.
    pub sweep: Sweep,
    /// Title, in a line.
    pub title: Option<String>,
    /// The runs.
    pub combinations: Vec<Combination>,
    /// Assumptions and changes during preparation, for people; each once.
    pub notes: Vec<String>,
    /// Drives and files that the scenarios name, each with a hash of its contents.
    pub sources: BTreeMap<String, String>,
    /// The keys of the text and their values.
    pub keys: BTreeMap<String, String>,
    /// Identifies the whole plan: the choices, and the hash and seed of each.
    pub hash: String,
}

/// How a plan is made.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// The most runs, repeats included.
    pub most: u64,
    /// Combinations checked at a time; as many as there are processors if absent.
    pub jobs: Option<u16>,
    /// Stock that the scenarios share.
    pub stock: &'a Stock,
    /// Progress of the checks.
    pub progress: &'a Progress,
}

/// A combination after its check.
struct Checked {
    combination: Combination,
    problem: Option<Problem>,
    notes: Vec<String>,
    sources: Vec<(String, String)>,
}

/// Problem of a combination.
#[derive(Clone, Debug)]
enum Problem {
    /// The combination is no valid scenario; the error has its place.
    Text(TreeError),
    /// The scenario cannot run.
    Run(Fault),
}

impl Problem {
    fn text(&self) -> String {
        match self {
            Problem::Text(error) => error.to_string(),
            Problem::Run(fault) => fault.to_string(),
        }
    }
}

impl Plan {
    /// Checks every combination: reads its drives and files, and finds out whether it can run.
    ///
    /// `again` are runs to make again, with the settings for that. If absent, all runs of the sweep are planned. `table` is the scenario
    /// without its `[sweep]`; `place` stands for the whole table in errors.
    ///
    /// # Errors
    ///
    /// If there are too many runs, if a key is unknown, or if a value is wrong in all combinations that have it. Errors of single
    /// combinations stay with the combinations.
    pub fn new(
        mut sweep: Sweep,
        again: Option<Vec<Asked>>,
        table: &Table,
        place: &Place,
        making: Making<'_>,
    ) -> Result<Plan, Fault> {
        let mut base = table.clone();
        let mut keys = base.flat();
        keys.extend(sweep.flat());
        if sweep.mode == Mode::Each {
            settle(&mut sweep.axes, &mut base, place)?;
        }
        // No limit for runs that are made again: the limit has let the first runs pass.
        let most = again.as_ref().map_or(making.most, |_| u64::MAX);
        refuse_many(&sweep, sweep.count(), most)?;
        let seed = match base.at("seed").map(|node| &node.value) {
            Some(Value::Integer(seed)) => *seed as u64,
            _ => 1,
        };
        let settings = again.as_ref().map_or(&[][..], |_| &sweep.again);
        let runs = again.unwrap_or_else(|| sweep.runs(seed));
        let scenarios = batch::all(making.jobs, runs, |run| {
            let scenario = scenario(&sweep, &run, settings, &base, place);
            (run, scenario)
        })?;
        let runs = scenarios.iter().map(|(_, scenario)| match scenario {
            Ok(scenario) => cells(scenario).len() as u64 * u64::from(scenario.run.repeats),
            Err(_) => 1,
        });
        refuse_many(&sweep, runs.sum(), most)?;
        let title = scenarios
            .iter()
            .find_map(|(_, scenario)| scenario.as_ref().ok()?.title.clone());
        let tasks = scenarios.into_iter().flat_map(expand).collect::<Vec<_>>();
        making.progress.begin(tasks.len() as u64);
        making.progress.say("preparing");
        let found = batch::all(making.jobs, tasks, |task| {
            let found = look_at(task, making.stock);
            making.progress.task(Goal::Unknown).done();
            found
        })?;
        making.progress.end();
        refuse_wrong(&sweep, &found)?;
        let mut hash = Hash::default();
        let (mut notes, mut sources) = (Vec::new(), BTreeMap::new());
        let mut combinations = Vec::new();
        for one in found {
            let Checked {
                combination,
                notes: said,
                sources: named,
                ..
            } = one;
            for (axis, step) in sweep.axes.iter().zip(&combination.choice) {
                hash.text(&axis.text(*step));
            }
            hash.text(&combination.hash);
            if let Some(scenario) = &combination.scenario {
                hash.text(&scenario.seed.to_string());
            }
            for note in said {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            sources.extend(named);
            combinations.push(combination);
        }
        Ok(Plan {
            sweep,
            title,
            combinations,
            notes,
            sources,
            keys,
            hash: hash.finish(),
        })
    }

    /// Name of a combination in messages: its number and its values.
    pub fn name(&self, number: usize) -> String {
        let combination = &self.combinations[number];
        let chosen = describe(&self.sweep.axes, &combination.choice, None);
        format!("combination {} ({chosen})", number + 1)
    }
}

/// The values of a choice, with their keys. One axis may be left out.
pub fn describe(axes: &[SweptAxis], choice: &[usize], without: Option<usize>) -> String {
    let all = axes.iter().zip(choice).enumerate();
    let told = all.filter(|(number, _)| Some(*number) != without);
    let values = told.flat_map(|(_, (axis, step))| {
        let pairs = axis.keys.iter().zip(axis.step(*step));
        pairs.map(|(key, node)| format!("{key} = {}", node.value.text()))
    });
    values.collect::<Vec<_>>().join(", ")
}

/// Finds the step of each axis while others vary. The step is the scenario's value, given or by default. If no step has this value, the
/// value becomes a step. If the scenario has no value, the axis stands at the first step, which is put into the scenario.
fn settle(axes: &mut [SweptAxis], base: &mut Table, place: &Place) -> Result<(), TreeError> {
    for axis in &*axes {
        let given: Vec<_> = axis.keys.iter().map(|key| base.at(key)).collect();
        let several = axis.keys.iter().zip(&given).find(|(key, node)| {
            let count = node.map_or(1, |node| node.items().len());
            count > 1 && column_of(&base.full_key(key)).is_some()
        });
        if let Some((key, Some(node))) = several {
            return Err(TreeError {
                place: node.place.clone(),
                key: key.clone(),
                problem: "has several values; where each key varies alone, the others need one"
                    .to_owned(),
            });
        }
        let missing = given.iter().position(Option::is_none);
        if let Some(missing) = missing.filter(|_| given.iter().any(Option::is_some)) {
            return Err(TreeError {
                place: axis.places[missing].clone(),
                key: format!("sweep.{}", axis.keys[missing]),
                problem: "varies together with keys that the scenario itself gives, and is not \
                          given there; give all of them or none"
                    .to_owned(),
            });
        }
    }
    // Values that the scenario lacks to be valid come from the sweep.
    let read = |table: &Table| Scenario::from_table(table, place.clone());
    let mut put: Vec<usize> = Vec::new();
    for (number, axis) in axes.iter().enumerate() {
        if base.at(axis.name()).is_none() && read(base).is_err() {
            axis.put(0, base)?;
            put.push(number);
        }
    }
    for (number, axis) in axes.iter_mut().enumerate() {
        // Errors are reported later, with their combinations.
        let Ok(stands) = read(base) else { break };
        let same = |step: &usize| {
            let mut table = base.clone();
            axis.put(*step, &mut table).is_ok() && read(&table).as_ref() == Ok(&stands)
        };
        if put.contains(&number) {
            continue;
        }
        if let Some(step) = (0..axis.len()).find(same) {
            axis.base = step;
            continue;
        }
        let written = Table::parse("the scenario in full", &stands.to_toml())?;
        let own = axis
            .keys
            .iter()
            .map(|key| base.at(key).or_else(|| written.at(key)));
        match own.map(Option::<&Node>::cloned).collect::<Option<Vec<_>>>() {
            Some(own) => axis.values.insert(0, own),
            None => axis.put(0, base)?,
        }
    }
    Ok(())
}

fn scenario(
    sweep: &Sweep,
    (choice, invariant): &Asked,
    again: &[String],
    base: &Table,
    place: &Place,
) -> Result<Scenario, TreeError> {
    let mut table = base.clone();
    for (axis, step) in sweep.axes.iter().zip(choice) {
        axis.put(*step, &mut table)?;
    }
    let invariant = invariant.map(|number| &sweep.invariants[number]);
    let own = invariant.map(|invariant| invariant.settings(choice));
    for setting in own.into_iter().flatten().chain(again) {
        let place = invariant.map_or(&sweep.place, |invariant| &invariant.place);
        Scenario::set(&mut table, &format!("{place}: {setting}"), setting)?;
    }
    let scenario = Scenario::from_table(&table, place.clone())?;
    match invariant {
        Some(invariant) if cells(&scenario).len() > 1 => {
            let problem = "is about one run for each combination; the scenario lists several \
                           values of a key, such as schedulers";
            let place = invariant.place.clone();
            Err(TreeError::new(place, "sweep.invariant", problem))
        }
        _ => Ok(scenario),
    }
}

/// Runs that a scenario's own lists make.
fn expand(
    ((choice, invariant), scenario): (Asked, Result<Scenario, TreeError>),
) -> Vec<(Combination, Option<Problem>)> {
    let combination = |cell, scenario| Combination {
        choice: choice.clone(),
        invariant,
        cell,
        scenario,
        hash: String::new(),
        error: None,
    };
    match scenario {
        Err(error) => vec![(combination(None, None), Some(Problem::Text(error)))],
        Ok(scenario) => cells(&scenario)
            .into_iter()
            .map(|cell| {
                let alone = alone(&scenario, &cell);
                (combination(Some(cell), Some(alone)), None)
            })
            .collect(),
    }
}

fn look_at(
    (mut combination, mut problem): (Combination, Option<Problem>),
    stock: &Stock,
) -> Checked {
    let (mut notes, mut sources) = (Vec::new(), Vec::new());
    if let Some(scenario) = &combination.scenario {
        let prepared = prepare(scenario.clone(), stock).and_then(|prepared| {
            check(&prepared, &cells(&prepared.scenario)[0], stock)?;
            Ok(prepared)
        });
        match prepared {
            Ok(prepared) => {
                combination.hash = prepared.hash;
                (notes, sources) = (prepared.notes, prepared.sources);
            }
            Err(fault) => problem = Some(Problem::Run(fault)),
        }
    }
    combination.error = problem.as_ref().map(Problem::text);
    Checked {
        combination,
        problem,
        notes,
        sources,
    }
}

/// Refuses more runs than are allowed.
fn refuse_many(sweep: &Sweep, runs: u64, most: u64) -> Result<(), TreeError> {
    if runs <= most {
        return Ok(());
    }
    let runs = match runs {
        u64::MAX => "more than can be counted".to_owned(),
        runs => format!("{runs} runs"),
    };
    Err(TreeError {
        place: sweep.place.clone(),
        key: "sweep".to_owned(),
        problem: format!(
            "these make {runs}; allowed are {most}, or what --max-runs says. mode = \"each\" and \"draw\" make fewer"
        ),
    })
}

/// Refuses values that are wrong in every combination that has them.
fn refuse_wrong(sweep: &Sweep, found: &[Checked]) -> Result<(), Fault> {
    let fault = |problem: &Problem, place: &Place, what: String| match problem {
        Problem::Text(error) => Fault::from(error.clone()),
        Problem::Run(fault) => {
            let text = format!("{place}: {what}: {fault}");
            match (place, fault) {
                (_, Fault::File(_)) => Fault::File(text),
                (Place::Option(_), _) => Fault::Usage(text),
                _ => Fault::Input(text),
            }
        }
    };
    let problems = || found.iter().filter_map(|one| one.problem.as_ref());
    // The values of a single axis are judged one by one below.
    if problems().count() == found.len() && sweep.axes.len() > 1 {
        let first = &found[0].combination;
        let chosen = describe(&sweep.axes, &first.choice, None);
        let what = match found.len() {
            1 => chosen,
            _ => format!("no combination can be run; the first, {chosen}"),
        };
        // A problem at the place of a swept value says most.
        let values = sweep.axes.iter().flat_map(|axis| &axis.values).flatten();
        let places: Vec<&Place> = values.map(|node| &node.place).collect();
        let of_a_value = |problem: &&Problem| match problem {
            Problem::Text(error) => places.contains(&&error.place),
            Problem::Run(_) => false,
        };
        let problem = problems().find(of_a_value).or(problems().next());
        let problem = problem.expect("there is one combination at least");
        return Err(fault(problem, &sweep.place, what));
    }
    for (number, invariant) in sweep.invariants.iter().enumerate() {
        let mut own = found
            .iter()
            .filter(|one| one.combination.invariant == Some(number));
        let first = own.clone().find_map(|one| one.problem.as_ref());
        if let (Some(problem), true) = (first, own.all(|one| one.problem.is_some())) {
            return Err(fault(problem, &invariant.place, invariant.name.clone()));
        }
    }
    for (number, axis) in sweep.axes.iter().enumerate() {
        // Problems of each step, as long as every combination of the step has one.
        let mut wrong: Vec<Option<Vec<&Problem>>> = vec![Some(Vec::new()); axis.len()];
        for one in found {
            let step = &mut wrong[one.combination.choice[number]];
            match (&one.problem, &mut *step) {
                (Some(problem), Some(problems)) => problems.push(problem),
                _ => *step = None,
            }
        }
        for (step, wrong) in wrong.into_iter().enumerate() {
            let Some(problems) = wrong.filter(|problems| !problems.is_empty()) else {
                continue;
            };
            let nodes = axis.step(step);
            let own = problems.iter().find(|problem| match problem {
                Problem::Text(error) => nodes.iter().any(|node| node.place == error.place),
                Problem::Run(_) => false,
            });
            let what = format!("{} = {}", axis.keys.join(", "), axis.text(step));
            return Err(fault(own.unwrap_or(&problems[0]), &nodes[0].place, what));
        }
    }
    Ok(())
}
