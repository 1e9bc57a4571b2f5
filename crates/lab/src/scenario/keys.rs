//! Reads a scenario: which files it means, which engine is usual, and what must fit together.

use super::alternatives::{Alternatives, RUNS_MAX};
use super::header::options;
use super::runs::obeys;
use super::spec::{ANY, DriveSpec, Group, Loads, Programs, Runs, Scenario, Workload};
use crate::files::is_url;
use headtime_config::{Error, KeyError, Many, Node, Place, Table, Value, count, read, whole};
use headtime_disk::profile::shipped;
use headtime_engine::EngineSpec;
use headtime_host::HostSpec;
use headtime_host::guests::Guests;
use headtime_sched::Spec;
use headtime_stack::{ArraySpec, Level, ScanSpec, entries};
use serde::Deserialize;
use std::path::Path;

/// The keys of a scenario.
pub(super) const KEYS: [&str; 14] = [
    "title",
    "seed",
    "schedulers",
    "drive",
    "engine",
    "array",
    "run",
    "freeblock",
    "workload",
    "trace",
    "program",
    "host",
    "cluster",
    "qos",
];

/// A scenario whose drives and engines have not been read.
#[derive(Deserialize)]
struct ScenarioKeys {
    title: Option<String>,
    #[serde(default = "one", deserialize_with = "whole::<_, _, 0, ANY>")]
    seed: u64,
    schedulers: Many<Spec>,
    drive: Node,
    engine: Option<Node>,
    array: Option<ArraySpec>,
    #[serde(rename = "+loads")]
    loads: Loads,
    freeblock: Option<ScanSpec>,
    #[serde(default)]
    run: Runs,
}

fn one() -> u64 {
    1
}

/// Path of a file that a scenario names, relative to the scenario. A file named on the command line is relative to the working directory.
fn beside(place: &Place, file: &str) -> String {
    match place {
        // `-` is the standard input.
        _ if file == "-" || is_url(file) => file.to_owned(),
        Place::Line(scenario, _) => {
            let path = Path::new(scenario.as_ref()).with_file_name(file);
            path.to_string_lossy().into_owned()
        }
        _ => file.to_owned(),
    }
}

/// True if a text names a file rather than a shipped drive. A misspelt name of a drive has no slash, and mostly no point.
pub(super) fn is_file(drive: &str) -> bool {
    let is_shipped = shipped().iter().any(|shipped| shipped.name == drive);
    !is_shipped && drive.contains(['.', '/', '\\'])
}

/// Finds the files of these keys beside the scenario. For keys of a drive, names of shipped drives are left as they are.
fn beside_scenario(table: &mut Table, keys: &[(&str, bool)]) -> Result<(), Error> {
    let found = |node: &mut Node, of_drive: bool| {
        if let Value::Text(name) = &mut node.value
            && (!of_drive || is_file(name))
        {
            *name = beside(&node.place, name);
        }
    };
    for (key, of_drive) in keys {
        if let Some(mut node) = table.at(key).cloned() {
            match &mut node.value {
                Value::List(nodes) => nodes.iter_mut().for_each(|node| found(node, *of_drive)),
                _ => found(&mut node, *of_drive),
            }
            table.set_value(key, node)?;
        }
    }
    Ok(())
}

/// The drives of `[drive]`.
fn drives(table: Node, place: &Place) -> Result<Alternatives<DriveSpec>, Error> {
    const FILES: [(&str, bool); 3] = [
        ("drive.profile", true),
        ("drive.belief", true),
        ("drive.curve", false),
    ];
    let found = |table: &mut Table| beside_scenario(table, &FILES);
    Alternatives::read(("drive", table), place, ["profile", "firmware"], found)
}

/// The engines of `[engine]`, with `usual` for keys that are not given.
fn engines(
    table: Node,
    place: &Place,
    usual: &EngineSpec,
) -> Result<Alternatives<EngineSpec>, Error> {
    let with_usual = |table: &mut Table| {
        for (key, value) in entries(usual) {
            let key = format!("engine.{key}");
            if table.at(&key).is_none() {
                table.set_value(&key, Node::built_in(value))?;
            }
        }
        Ok(())
    };
    Alternatives::read(("engine", table), place, options(), with_usual)
}

pub(super) fn scenario(table: &Table, place: Place) -> Result<Scenario, Error> {
    let error = |key: &str, problem: &str| Err(KeyError::new(key, problem).within(table, &place));
    if table.get("sweep").is_some() {
        let problem = "is for `headtime sweep`, which runs a scenario for each of its values";
        return error("sweep", problem);
    }
    let mut found = table.clone();
    beside_scenario(&mut found, &[("trace.file", false)])?;
    let traces = match found.get("program").map(|node| &node.value) {
        Some(Value::List(programs)) => (0..programs.len())
            .flat_map(|at| ["trace", "profile"].map(|key| format!("program.{at}.{key}")))
            .collect(),
        Some(_) => ["trace", "profile"]
            .map(|key| format!("program.{key}"))
            .into(),
        None => Vec::new(),
    };
    for key in traces {
        beside_scenario(&mut found, &[(&key, false)])?;
    }
    let ScenarioKeys {
        title,
        seed,
        schedulers,
        drive,
        engine,
        array,
        loads,
        freeblock,
        run,
    } = read(&found, &place)?;
    let drives = drives(drive, &place)?;
    // In simulation, a host of the programs' own era stands above the disk.
    let usual = match loads.program {
        Some(_) => EngineSpec::linux_2_6(),
        None => EngineSpec::default(),
    };
    let none = || Node::built_in(Value::Table(Table::default()));
    let engines = engines(engine.unwrap_or_else(none), &place, &usual)?;
    if run.duration.is_some_and(|duration| duration <= run.warm_up) {
        let problem = "allowed is more than the warm-up, which it includes";
        return error("run.duration", problem);
    }
    let compared = [
        schedulers.len(),
        drives.len(),
        engines.len(),
        run.repeats as usize,
    ];
    let runs = count(&compared);
    if runs > RUNS_MAX {
        let problem = format!(
            "with the drives, the options and the repeats these make {runs} runs; allowed are \
             {RUNS_MAX}"
        );
        return error("schedulers", &problem);
    }
    let mut workload = Workload::try_from(loads).map_err(|error| error.within(table, &place))?;
    let has_cluster =
        matches!(&workload, Workload::Programs(programs) if programs.cluster.is_some());
    if has_cluster && array.is_some() {
        let problem = "each server has one disk; leave out [cluster] or this";
        return error("array", problem);
    }
    let promise = freeblock.as_ref().and_then(ScanSpec::promises);
    if let Some(key) = promise.filter(|_| has_cluster || array.is_some()) {
        let problem = "is a promise of one drive; leave it out, or [array] and [cluster]";
        return error(&format!("freeblock.{key}"), problem);
    }
    // A guest knows its own disk, and not the host's.
    let mut has_guests = false;
    if let Workload::Programs(Programs { host, guests, .. }) = &mut workload {
        has_guests = guests.is_some();
        if has_guests && table.at("host.request_max").is_none() {
            host.request_max = Guests::REQUEST_MAX;
        }
    }
    if let Some(array) = &array {
        // A figure names its schedulers point by point.
        let are_named = table.get("schedulers").is_some();
        let obey = !are_named || schedulers.iter().any(obeys);
        if array.coordinate.0.contains(&true) && !obey {
            let problem = "no scheduler here obeys a coordinator; add `stream` to schedulers";
            return error("array.coordinate", problem);
        }
        if array.level == Level::Raid1 && array.coordinate.0.contains(&true) {
            let problem = "is for levels that spread a reader over all disks: raid0 and raid5";
            return error("array.coordinate", problem);
        }
        if array.level == Level::Raid1
            && let Some(early) = schedulers.iter().find(|spec| spec.needs().foresight)
        {
            let problem = format!(
                "{early} is notified of reads before they come, and a mirror chooses the disk when they come; leave {early} out"
            );
            return error("schedulers", &problem);
        }
        if array.level != Level::Raid1 && table.at("array.reads").is_some() {
            return error("array.reads", "is for a mirror, level = \"raid1\"");
        }
        if let Workload::Programs(programs) = &mut workload {
            let host = &mut programs.host;
            if array.level != Level::Raid1 {
                host.chunk = host.chunk.or(Some(array.chunk));
            }
            if table.at("host.read_ahead").is_none() && !has_guests {
                let most = HostSpec::READ_AHEAD_MAX;
                host.read_ahead = array.read_ahead().clamp(host.read_ahead, most);
            }
        }
    }
    let groups = match &workload {
        Workload::Synthetic(groups) => Some(groups),
        Workload::Replay(_) | Workload::Programs(_) => None,
    };
    let endless = |group: &Group| group.process.count.is_none() && group.process.until.is_none();
    let is_endless = groups.is_some_and(|groups| groups.iter().any(endless));
    let to_end = freeblock.as_ref().is_some_and(|scan| scan.to_end);
    if is_endless && run.duration.is_none() && run.requests.is_none() && !to_end {
        let problem = "the workload never ends; give duration = \"60s\" or requests = 10000";
        return error("run", problem);
    }
    if run.requests.is_some() && groups.is_none() {
        let problem = "is for [[workload]] only; traces and programs have as many as they have";
        return error("run.requests", problem);
    }
    Ok(Scenario {
        title,
        seed,
        schedulers,
        drives,
        engines,
        array,
        workload,
        freeblock,
        run,
    })
}
