//! `headtime sim`

use super::compare::{Files, compare};
use super::context::Context;
use super::examples::scenario;
use crate::args::{Example, Fuzz, Gates, Schedulers, SimRun};
use headtime_config::{Node, Place, Table, Value};
use headtime_disk::profile::Reference;
use headtime_engine::GateSpec;
use headtime_lab::fault::Fault;
use headtime_lab::fio;
use headtime_lab::scenario::Scenario;
use headtime_sim::fuzz;
use headtime_stack::LogSettings;
use std::fs;
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(args: SimRun, context: &mut Context<'_>) -> Result<(), Fault> {
    let (mut table, place) = match &args.scenario {
        None => (
            scenario(args.example.unwrap_or(Example::VmScrub)),
            Place::BuiltIn,
        ),
        Some(path) if is_job(path) => {
            let name = path.display().to_string();
            let (table, notes) = fio::table(&name, &text(path)?).map_err(Fault::from)?;
            for note in notes {
                context.note(&note);
            }
            (table, Place::line(&name, 1))
        }
        Some(path) => open(path)?,
    };
    if !args.scheduler.is_empty() {
        set_schedulers(&mut table, &args.scheduler);
    }
    set_gates(&mut table, &args.gate);
    set_all(&mut table, &args.set)?;
    if let Some(seed) = args.seed {
        set(&mut table, "--seed", "seed", Value::Integer(seed as i64));
    }
    let scenario = Scenario::from_table(&table, place).map_err(Fault::from)?;
    if args.print_scenario {
        return context.print(&scenario.to_portable_toml());
    }
    let files = Files {
        log: args.log.as_deref(),
        requests: args.requests.as_deref(),
    };
    compare(scenario, &table, &args.output, files, context)
}

/// Reads a scenario file.
pub(super) fn open(path: &Path) -> Result<(Table, Place), Fault> {
    let file = path.display().to_string();
    let table = Table::parse(&file, &text(path)?).map_err(Fault::from)?;
    Ok((table, Place::Line(Arc::from(file), 1)))
}

/// Reads the text of a scenario or a job.
pub(super) fn text(path: &Path) -> Result<String, Fault> {
    let content = fs::read(path).map_err(|error| Fault::reading(path, &error))?;
    String::from_utf8(content).map_err(|_| {
        let file = path.display();
        let problem = match is_job(path) {
            true => "is no job file of fio: it is not text in UTF-8",
            false => "is not text in UTF-8; a scenario is TOML",
        };
        Fault::Input(format!("{file}: {problem}"))
    })
}

/// Returns true if a file is a job file of fio, by its name.
fn is_job(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("fio"))
}

/// Puts one value into a scenario on behalf of an option.
///
/// # Panics
///
/// If a part of the key before its last is no table. Options only use keys for which this cannot happen.
pub(super) fn set(table: &mut Table, option: &str, key: &str, value: Value) {
    let place = Place::Option(option.into());
    table
        .set_value(key, Node { value, place })
        .expect("an option sets a key that can be set");
}

pub(super) fn set_schedulers(table: &mut Table, schedulers: &[Schedulers]) {
    let texts: Vec<String> = schedulers
        .iter()
        .flat_map(|Schedulers(specs)| specs)
        .map(ToString::to_string)
        .collect();
    let value = Value::Text(texts.join(","));
    set(table, "--scheduler", "schedulers", value);
}

/// Sets the gates of a scenario, if any are given.
pub(super) fn set_gates(table: &mut Table, gates: &[Gates]) {
    let place = Place::Option("--gate".into());
    let node = |gate: &GateSpec| Node {
        value: Value::Text(gate.to_string()),
        place: place.clone(),
    };
    let gates = gates.iter().flat_map(|Gates(specs)| specs);
    let values: Vec<Node> = gates.map(node).collect();
    if !values.is_empty() {
        set(table, "--gate", "engine.gate", Value::List(values));
    }
}

/// Applies `--set key=value`, in order.
pub(super) fn set_all(table: &mut Table, settings: &[String]) -> Result<(), Fault> {
    let mut settings = settings.iter();
    settings.try_for_each(|setting| {
        Scenario::set(table, &format!("--set {setting}"), setting).map_err(Fault::from)
    })
}

/// Settings to write into the log of a random run. From these settings `sim replay-log` rebuilds the run's engine.
fn settings(seed: u64, stack: &fuzz::Stack<'_>) -> Vec<(String, String)> {
    let sector_bytes = stack.profile.geometry.sector_bytes;
    let scheduler = stack.scheduler.to_string();
    let mut settings = LogSettings::new(&scheduler, stack.engine.clone(), sector_bytes);
    settings.curve = Some(stack.curve.clone());
    settings.belief = Some(Reference::of(stack.profile).to_string());
    let others = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("seed", seed.to_string()),
    ];
    settings.others = others.map(|(key, value)| (key.to_owned(), value)).to_vec();
    settings.to_settings()
}

pub(super) fn fuzz(args: &Fuzz, context: &mut Context<'_>) -> Result<(), Fault> {
    let last = args.seed.checked_add(args.runs - 1);
    let last = last.ok_or_else(|| Fault::Usage("--seed and --runs leave 64 bits".to_owned()))?;
    for seed in args.seed..=last {
        match fuzz::one(seed, |stack| settings(seed, stack)) {
            Ok(run) => {
                if let Some(folder) = &args.logs {
                    let file = folder.join(format!("{seed}.log"));
                    fs::write(&file, &run.log).map_err(|error| Fault::writing(&file, &error))?;
                }
                let (requests, drawn) = (run.requests, run.drawn);
                context.print(&format!("seed {seed}: ok, {requests} requests: {drawn}\n"))?;
            }
            Err(failure) => {
                let failure = failure.to_string();
                let mut lines: Vec<String> = failure.lines().map(str::to_owned).collect();
                lines.push(format!("  again: headtime sim fuzz --seed {seed}"));
                return Err(Fault::Differs(lines));
            }
        }
    }
    Ok(())
}
