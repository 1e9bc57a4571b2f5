//! A scenario as text: what of it is not as its fields are, and what must fit together.

use super::alternatives::Alternatives;
use super::{
    DriveSpec, Group, OUTSTANDING_MAX, PROCESSES_MAX, Pace, Program, Programs, RUNS_MAX, Replay,
    Run, Scenario, TreeError, Workload, options, runs,
};
use headtime_config::{KeyError, Many, Node, OneOrList, Place, Table, Value, parse, read, whole};
use headtime_disk::profile::shipped;
use headtime_engine::EngineSpec;
use headtime_host::HostSpec;
use headtime_sched::Spec;
use headtime_stack::entries;
use headtime_workload::{Pacing, Speed};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::path::Path;

/// The keys of a scenario.
pub(super) const KEYS: [&str; 10] = [
    "title",
    "seed",
    "schedulers",
    "drive",
    "engine",
    "run",
    "workload",
    "trace",
    "program",
    "host",
];

/// A scenario whose drives and engines have not been read.
#[derive(Deserialize)]
struct File {
    title: Option<String>,
    #[serde(default = "one", deserialize_with = "whole::<_, _, 0, { super::ANY }>")]
    seed: u64,
    schedulers: Many<Spec>,
    drive: Node,
    engine: Option<Node>,
    #[serde(rename = "+loads")]
    loads: Loads,
    #[serde(default)]
    run: Run,
}

fn one() -> u64 {
    1
}

/// The keys of a [`Workload`].
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Loads {
    #[serde(default, serialize_with = "each")]
    workload: Option<OneOrList<Group>>,
    trace: Option<Replay>,
    host: Option<HostSpec>,
    #[serde(default, serialize_with = "each")]
    program: Option<OneOrList<Program>>,
}

/// Writes `[[name]]` also where there is but one.
fn each<T: Serialize, S: Serializer>(all: &Option<OneOrList<T>>, to: S) -> Result<S::Ok, S::Error> {
    all.as_ref().map(|OneOrList(all)| all).serialize(to)
}

impl From<Workload> for Loads {
    fn from(workload: Workload) -> Loads {
        let mut keys = Loads::default();
        match workload {
            Workload::Synthetic(groups) => keys.workload = Some(OneOrList(groups)),
            Workload::Replay(replay) => keys.trace = Some(replay),
            Workload::Programs(Programs { host, entries }) => {
                (keys.host, keys.program) = (Some(host), Some(OneOrList(entries)));
            }
        }
        keys
    }
}

impl TryFrom<Loads> for Workload {
    type Error = KeyError;

    fn try_from(keys: Loads) -> Result<Workload, KeyError> {
        const ONE: &str = "allowed is one of [[workload]], [[program]] and [trace]";
        let error = |key: &str, problem: &str| Err(KeyError::new(key, problem));
        if keys.host.is_some() && keys.program.is_none() {
            return error("host", "is for [[program]] only");
        }
        match (keys.workload, keys.trace, keys.program) {
            (Some(OneOrList(groups)), None, None) => {
                named("workload", groups.iter().map(|group| group.name.as_deref()))?;
                bounded(&groups)?;
                Ok(Workload::Synthetic(groups))
            }
            (None, Some(trace), None) => Ok(Workload::Replay(trace)),
            (None, None, Some(OneOrList(entries))) => {
                named("program", entries.iter().map(|entry| entry.name.as_deref()))?;
                let host = keys.host.unwrap_or_default();
                Ok(Workload::Programs(Programs { host, entries }))
            }
            (None, None, None) => error(
                "workload",
                "missing; give [[workload]], [[program]] or [trace]",
            ),
            (_, Some(_), _) => error("trace", ONE),
            (Some(_), None, Some(_)) => error("program", ONE),
        }
    }
}

/// Refuses an empty list, and a name that is there twice.
fn named<'a>(key: &str, names: impl Iterator<Item = Option<&'a str>>) -> Result<(), KeyError> {
    let names: Vec<Option<&str>> = names.collect();
    if names.is_empty() {
        return Err(KeyError::new(key, "is an empty list; give at least one"));
    }
    let is_taken = |at: &usize| names[*at].is_some() && names[..*at].contains(&names[*at]);
    match (0..names.len()).find(is_taken) {
        None => Ok(()),
        Some(at) => {
            let name = names[at].unwrap_or_default();
            let problem = format!("{name:?} is the name of another already; allowed is any other");
            Err(KeyError::new(format!("{key}[{at}].name"), problem))
        }
    }
}

/// Refuses more processes, or requests of them, than there may be.
fn bounded(groups: &[Group]) -> Result<(), KeyError> {
    let (mut processes, mut outstanding) = (0, 0);
    for (at, group) in groups.iter().enumerate() {
        let of_group = u64::from(group.processes);
        processes += of_group;
        if let Pacing::Closed {
            outstanding: each, ..
        } = group.process.pacing
        {
            outstanding += of_group * u64::from(each);
        }
        for (count, most, what) in [
            (processes, PROCESSES_MAX, "processes"),
            (outstanding, OUTSTANDING_MAX, "requests outstanding"),
        ] {
            if count > most {
                let problem = format!("more than {most} {what} in all");
                return Err(KeyError::new(format!("workload[{at}]"), problem));
            }
        }
    }
    Ok(())
}

/// Reads the name of a trace file.
pub(super) fn trace<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    parse(from, "the trace to replay", |text| {
        Ok::<_, String>(text.to_owned())
    })
}

/// A device of a trace: a number or a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device(pub String);

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Device, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Device;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number or the name of a device")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Device, E> {
                Ok(Device(number.to_string()))
            }

            fn visit_str<E>(self, name: &str) -> Result<Device, E> {
                Ok(Device(name.to_owned()))
            }
        }

        from.deserialize_any(Either)
    }
}

pub(super) fn no_devices(devices: &OneOrList<Device>) -> bool {
    devices.is_empty()
}

/// The keys of a [`Pace`].
#[derive(Serialize, Deserialize)]
pub(super) struct PaceKeys {
    #[serde(default)]
    replay: PaceWord,
    #[serde(default, deserialize_with = "whole::<_, _, 1, 65535>")]
    outstanding: Option<u32>,
    speed: Option<Speed>,
}

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PaceWord {
    #[default]
    Open,
    Closed,
    ClosedPerProcess,
}

impl From<Pace> for PaceKeys {
    fn from(pace: Pace) -> PaceKeys {
        let (replay, outstanding, speed) = match pace {
            Pace::Open(speed) => (PaceWord::Open, None, Some(speed)),
            Pace::Closed(outstanding) => (PaceWord::Closed, Some(outstanding), None),
            Pace::ClosedPerProcess => (PaceWord::ClosedPerProcess, None, None),
        };
        PaceKeys {
            replay,
            outstanding,
            speed,
        }
    }
}

impl TryFrom<PaceKeys> for Pace {
    type Error = KeyError;

    fn try_from(keys: PaceKeys) -> Result<Pace, KeyError> {
        let (speed, outstanding) = (keys.speed, keys.outstanding);
        match keys.replay {
            replay if replay != PaceWord::Open && speed.is_some() => {
                Err(KeyError::new("speed", "is for replay = \"open\" only"))
            }
            replay if replay != PaceWord::Closed && outstanding.is_some() => {
                let problem = "is for replay = \"closed\" only";
                Err(KeyError::new("outstanding", problem))
            }
            PaceWord::Open => Ok(Pace::Open(speed.unwrap_or(Speed::AS_RECORDED))),
            PaceWord::Closed => Ok(Pace::Closed(outstanding.unwrap_or(1))),
            PaceWord::ClosedPerProcess => Ok(Pace::ClosedPerProcess),
        }
    }
}

/// A file that a scenario names is looked for beside that; one that is named on the command line, where
/// the command runs.
fn beside(place: &Place, file: &str) -> String {
    match place {
        Place::Line(scenario, _) => {
            let path = Path::new(scenario.as_ref()).with_file_name(file);
            path.to_string_lossy().into_owned()
        }
        _ => file.to_owned(),
    }
}

/// Names come before files; one that is misspelt has no slash, and mostly no point.
fn is_file(drive: &str) -> bool {
    let is_shipped = shipped().iter().any(|shipped| shipped.name == drive);
    !is_shipped && drive.contains(['.', '/', '\\'])
}

/// Finds the files of these keys beside the scenario; of a drive only what is no name.
fn beside_scenario(table: &mut Table, keys: &[(&str, bool)]) -> Result<(), TreeError> {
    for (key, of_drive) in keys {
        if let Some(Node {
            value: Value::Text(name),
            place,
        }) = table.at(key).cloned()
            && (!of_drive || is_file(&name))
        {
            let value = Value::Text(beside(&place, &name));
            table.set_value(key, Node { value, place })?;
        }
    }
    Ok(())
}

/// The drives of `[drive]`.
fn drives(table: Node, place: &Place) -> Result<Alternatives<DriveSpec>, TreeError> {
    const FILES: [(&str, bool); 3] = [
        ("drive.profile", true),
        ("drive.belief", true),
        ("drive.curve", false),
    ];
    let found = |table: &mut Table| beside_scenario(table, &FILES);
    Alternatives::read(("drive", table), place, ["profile", "firmware"], found)
}

/// The engines of `[engine]`, above `usual` where nothing is said.
fn engines(
    table: Node,
    place: &Place,
    usual: &EngineSpec,
) -> Result<Alternatives<EngineSpec>, TreeError> {
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

pub(super) fn scenario(table: &Table, place: Place) -> Result<Scenario, TreeError> {
    let error = |key: &str, problem: &str| Err(KeyError::new(key, problem).within(table, &place));
    if table.get("sweep").is_some() {
        let problem = "is for `headtime sweep`, which runs a scenario for each of its values";
        return error("sweep", problem);
    }
    let mut found = table.clone();
    beside_scenario(&mut found, &[("trace.file", false)])?;
    let File {
        title,
        seed,
        schedulers,
        drive,
        engine,
        loads,
        run,
    } = read(&found, &place)?;
    let drives = drives(drive, &place)?;
    // What stands above the disk in simulation is a host of the era whose programs these are.
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
    let runs = runs::count(&compared);
    if runs > RUNS_MAX {
        let problem = format!(
            "with the drives, the options and the repeats these make {runs} runs; allowed are \
             {RUNS_MAX}"
        );
        return error("schedulers", &problem);
    }
    let workload = Workload::try_from(loads).map_err(|error| error.within(table, &place))?;
    let groups = match &workload {
        Workload::Synthetic(groups) => Some(groups),
        Workload::Replay(_) | Workload::Programs(_) => None,
    };
    let endless = |group: &Group| group.process.count.is_none() && group.process.until.is_none();
    let is_endless = groups.is_some_and(|groups| groups.iter().any(endless));
    if is_endless && run.duration.is_none() && run.requests.is_none() {
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
        workload,
        run,
    })
}
