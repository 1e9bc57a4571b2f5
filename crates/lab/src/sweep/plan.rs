//! Plans a sweep: every combination, and what is wrong with it, before anything runs.

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
    /// Which step of each axis.
    pub choice: Vec<usize>,
    /// The invariant of the run, if there is one.
    pub invariant: Option<usize>,
    /// What it is among those that the scenario's own lists make; nothing if it is no scenario.
    pub cell: Option<Cell>,
    /// What is run; nothing if it is no scenario.
    pub scenario: Option<Scenario>,
    /// Names it, see [`crate::report::Report::scenario_hash`]; empty if it cannot be run.
    pub hash: String,
    /// Why it cannot be run.
    pub error: Option<String>,
}

/// All runs, in the order of the results.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What varies.
    pub sweep: Sweep,
    /// What it shows, in a line.
    pub title: Option<String>,
    /// The runs.
    pub combinations: Vec<Combination>,
    /// What was assumed or changed on the way, for people; each once.
    pub notes: Vec<String>,
    /// What the scenarios name, drives and files, and a hash of the contents of each.
    pub sources: BTreeMap<String, String>,
    /// The keys of the text and their values.
    pub keys: BTreeMap<String, String>,
    /// Names the whole: the choices, and the hash and seed of each.
    pub hash: String,
}

/// How a plan is made.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// The most runs, repeats included.
    pub most: u64,
    /// Combinations looked at a time; as many as there are processors if absent.
    pub jobs: Option<u16>,
    /// What the scenarios share.
    pub stock: &'a Stock,
    /// How far it is.
    pub progress: &'a Progress,
}

/// A combination as it was checked before it runs.
struct Checked {
    combination: Combination,
    problem: Option<Problem>,
    notes: Vec<String>,
    sources: Vec<(String, String)>,
}

/// What is wrong with a combination.
#[derive(Clone, Debug)]
enum Problem {
    /// It is no scenario; the error has its place.
    Text(TreeError),
    /// It cannot be run.
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
    /// Looks at every combination: reads what it names, and finds out whether it can be run.
    ///
    /// `again` are runs to make again, with the settings for that; without, all runs of the sweep are planned.
    /// `table` is the scenario without its `[sweep]`, `place` stands for the whole of it in errors.
    ///
    /// # Errors
    ///
    /// If there are too many; if a key is none, or a value is wrong in all combinations that have it.
    /// What is wrong with some only is kept with these.
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

    /// What a combination is called in messages: its number, and what was chosen.
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

/// Finds out where each key stands while others vary. It stands where the scenario has it, given or
/// by default; that value becomes a step if it is none. If the scenario has nothing, it stands at
/// the first step, which is put into the scenario.
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
    // What it lacks to be one it takes from the sweep.
    let read = |table: &Table| Scenario::from_table(table, place.clone());
    let mut put: Vec<usize> = Vec::new();
    for (number, axis) in axes.iter().enumerate() {
        if base.at(axis.name()).is_none() && read(base).is_err() {
            axis.put(0, base)?;
            put.push(number);
        }
    }
    for (number, axis) in axes.iter_mut().enumerate() {
        // What is wrong is told later, with its combination.
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

/// The runs that a scenario's own lists make.
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

/// Refuses what can never be right: a value that is wrong in every combination that has it.
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
    // Of one key alone its values are told apart below.
    if problems().count() == found.len() && sweep.axes.len() > 1 {
        let first = &found[0].combination;
        let chosen = describe(&sweep.axes, &first.choice, None);
        let what = match found.len() {
            1 => chosen,
            _ => format!("no combination can be run; the first, {chosen}"),
        };
        // One that is at the fault of a value itself says most.
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
        // Of each step: the problems, as long as there is nothing but problems.
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
