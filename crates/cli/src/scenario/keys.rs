//! A scenario as text: its keys, each in one place for reading and for writing.

use super::alternatives::Alternatives;
use super::names::Name;
use super::{
    DriveSpec, Group, OUTSTANDING_MAX, PROCESSES_MAX, Pace, Program, Programs, REPEATS_MAX,
    RUNS_MAX, Reading, Replay, Scenario, TreeError, Workload, options, runs,
};
use headtime_config::{
    Both, Many, Node, OneOrList, Place, Placed, Table, Value, number, parse, read, to_text, whole,
};
use headtime_disk::profile::shipped;
use headtime_engine::EngineSpec;
use headtime_host::HostSpec;
use headtime_host::workload::BenchmarkSpec;
use headtime_sched::{Class, Flags, Origin, Spec};
use headtime_stack::entries;
use headtime_units::{Bytes, Nanos, Time};
use headtime_workload::{
    ArrivalEvent, First, Fit, Format, Pacing, ProcessSpec, SizeDistribution, Speed,
    TimeDistribution, TimeUnit,
};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::path::Path;

/// Any whole number that TOML can hold.
const ANY: u64 = i64::MAX as u64;

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

/// A scenario; `D` and `E` are its drives and engines.
#[derive(Serialize, Deserialize)]
struct File<D, E> {
    title: Option<String>,
    #[serde(default = "one", deserialize_with = "whole::<_, u64, 0, ANY>")]
    seed: u64,
    schedulers: Many<Spec>,
    drive: D,
    engine: Option<E>,
    #[serde(default, serialize_with = "each")]
    workload: Option<OneOrList<Placed<GroupKeys>>>,
    trace: Option<Placed<TraceKeys>>,
    host: Option<HostSpec>,
    #[serde(default, serialize_with = "each")]
    program: Option<OneOrList<Placed<ProgramKeys>>>,
    run: Option<Placed<RunKeys>>,
}

/// Writes `[[name]]` also where there is but one.
fn each<T: Serialize, S: Serializer>(all: &Option<OneOrList<T>>, to: S) -> Result<S::Ok, S::Error> {
    all.as_ref().map(|OneOrList(all)| all).serialize(to)
}

fn one() -> u64 {
    1
}

#[derive(Serialize, Deserialize)]
#[serde(default)]
struct RunKeys {
    warm_up: Nanos,
    duration: Option<Nanos>,
    #[serde(deserialize_with = "whole::<_, Option<u64>, 1, ANY>")]
    requests: Option<u64>,
    #[serde(deserialize_with = "whole::<_, u32, 1, REPEATS_MAX>")]
    repeats: u32,
}

impl Default for RunKeys {
    fn default() -> RunKeys {
        RunKeys {
            warm_up: Nanos::ZERO,
            duration: None,
            requests: None,
            repeats: 1,
        }
    }
}

/// Processes that are alike.
#[derive(Serialize, Deserialize)]
#[serde(default)]
struct GroupKeys {
    name: Option<Name>,
    #[serde(deserialize_with = "whole::<_, u32, 1, PROCESSES_MAX>")]
    processes: u32,
    #[serde(deserialize_with = "whole::<_, u16, 0, 65535>")]
    program: u16,
    class: Class,
    write_flags: Option<Many<WriteFlag>>,
    think: Option<TimeDistribution>,
    #[serde(deserialize_with = "whole::<_, Option<u32>, 1, 65535>")]
    outstanding: Option<u32>,
    gap: Option<TimeDistribution>,
    start: Nanos,
    until: Option<Nanos>,
    #[serde(deserialize_with = "whole::<_, Option<u64>, 0, ANY>")]
    requests: Option<u64>,
    #[serde(deserialize_with = "number::<_, f64, 0, 1>")]
    read_share: f64,
    #[serde(deserialize_with = "number::<_, f64, 0, 1>")]
    sequential_share: f64,
    #[serde(deserialize_with = "number::<_, f64, 0, 1>")]
    local_share: f64,
    local_distance: SizeDistribution,
    size: SizeDistribution,
    size_step: Bytes,
    align: Bytes,
    range: Option<Range>,
    first: First,
}

impl Default for GroupKeys {
    fn default() -> GroupKeys {
        let group = Group {
            name: None,
            processes: 1,
            process: ProcessSpec::default(),
        };
        GroupKeys {
            think: None,
            outstanding: None,
            ..GroupKeys::from(&group)
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WriteFlag {
    Fua,
    Preflush,
    Sync,
}

const WRITE_FLAGS: [(WriteFlag, Flags); 3] = [
    (WriteFlag::Fua, Flags::FUA),
    (WriteFlag::Preflush, Flags::PREFLUSH),
    (WriteFlag::Sync, Flags::SYNC),
];

/// Two sizes, the first below the second.
struct Range(Bytes, Bytes);

headtime_units::serde_as_text!(Range, "two sizes, such as \"0B..10GB\"");

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.0, self.1)
    }
}

impl std::str::FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let (from, to) = text
            .split_once("..")
            .ok_or("the two ends are not separated by ..")?;
        let size = |text: &str| {
            text.parse::<Bytes>()
                .map_err(|error| format!("`{text}`: {error}"))
        };
        let (from, to) = (size(from)?, size(to)?);
        if from < to {
            Ok(Range(from, to))
        } else {
            Err("the first end must be below the second".to_owned())
        }
    }
}

impl From<&Group> for GroupKeys {
    fn from(group: &Group) -> GroupKeys {
        let ProcessSpec {
            origin,
            class,
            write_flags,
            pacing,
            start,
            until,
            count,
            read_share,
            sequential_share,
            local_share,
            local_distance,
            size,
            size_step,
            align,
            range,
            first,
        } = group.process;
        let (think, outstanding, gap) = match pacing {
            Pacing::Closed { think, outstanding } => (Some(think), Some(outstanding), None),
            Pacing::Open { gap } => (None, None, Some(gap)),
        };
        let flags = WRITE_FLAGS
            .iter()
            .filter(|(_, flag)| write_flags.has(*flag));
        let flags: Vec<WriteFlag> = flags.map(|(name, _)| *name).collect();
        GroupKeys {
            name: group.name.clone().map(Name),
            processes: group.processes,
            program: origin.program,
            class,
            write_flags: (!flags.is_empty()).then_some(Many(flags)),
            think,
            outstanding,
            gap,
            start: start - Time::ZERO,
            until: until.map(|until| until - Time::ZERO),
            requests: count,
            read_share,
            sequential_share,
            local_share,
            local_distance,
            size,
            size_step,
            align,
            range: range.map(|(from, to)| Range(from, to)),
            first,
        }
    }
}

impl GroupKeys {
    fn group(keys: &Placed<GroupKeys>) -> Result<Group, TreeError> {
        if keys.gap.is_some() {
            for key in ["think", "outstanding"] {
                if keys.has(key) {
                    let problem =
                        "is for processes that wait; with gap they ask whatever the disk does";
                    return Err(keys.error_at(key, problem));
                }
            }
        }
        if keys.sequential_share + keys.local_share > 1.0 {
            let problem = "allowed is at most 1 together with sequential_share";
            return Err(keys.error_at("local_share", problem));
        }
        let pacing = match (keys.gap, Pacing::default()) {
            (Some(gap), _) => Pacing::Open { gap },
            (None, Pacing::Closed { think, outstanding }) => Pacing::Closed {
                think: keys.think.unwrap_or(think),
                outstanding: keys.outstanding.unwrap_or(outstanding),
            },
            (None, open) => open,
        };
        let flags = keys.write_flags.iter().flat_map(|Many(names)| names);
        let flags = flags.map(|name| WRITE_FLAGS[*name as usize].1);
        Ok(Group {
            name: keys.name.as_ref().map(|Name(name)| name.clone()),
            processes: keys.processes,
            process: ProcessSpec {
                origin: Origin {
                    program: keys.program,
                    ..Origin::default()
                },
                class: keys.class,
                write_flags: flags.fold(Flags::NONE, Flags::with),
                pacing,
                start: Time::ZERO + keys.start,
                until: keys.until.map(|until| Time::ZERO + until),
                count: keys.requests,
                read_share: keys.read_share,
                sequential_share: keys.sequential_share,
                local_share: keys.local_share,
                local_distance: keys.local_distance,
                size: keys.size,
                size_step: keys.size_step,
                align: keys.align,
                range: keys.range.as_ref().map(|Range(from, to)| (*from, *to)),
                first: keys.first,
            },
        })
    }
}

#[derive(Serialize, Deserialize)]
struct TraceKeys {
    file: Placed<TraceFile>,
    format: Option<Format>,
    time_unit: Option<TimeUnit>,
    arrival_event: Option<ArrivalEvent>,
    columns: Option<String>,
    #[serde(default, skip_serializing_if = "no_devices")]
    devices: OneOrList<Device>,
    #[serde(default)]
    replay: PaceKey,
    #[serde(default, deserialize_with = "whole::<_, Option<u32>, 1, 65535>")]
    outstanding: Option<u32>,
    #[serde(default)]
    speed: Option<SpeedKey>,
    #[serde(default)]
    fit: Fit,
}

fn no_devices(devices: &OneOrList<Device>) -> bool {
    devices.0.is_empty()
}

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PaceKey {
    #[default]
    Open,
    Closed,
    ClosedPerProcess,
}

/// The name of a file.
#[derive(Clone, Serialize)]
struct TraceFile(String);

impl<'de> Deserialize<'de> for TraceFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TraceFile, D::Error> {
        let as_it_is = |text: &str| Ok::<_, String>(TraceFile(text.to_owned()));
        parse(from, "the trace to replay", as_it_is)
    }
}

/// A device of a trace is a number or a name.
#[derive(Clone, Serialize)]
struct Device(String);

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

/// A speed is a number.
#[derive(Clone, Copy)]
struct SpeedKey(Speed);

impl<'de> Deserialize<'de> for SpeedKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SpeedKey, D::Error> {
        let speed = f64::deserialize(from)?;
        let refuse = |error| de::Error::custom(format_args!("{speed}: {error}"));
        Speed::new(speed).map(SpeedKey).map_err(refuse)
    }
}

impl Serialize for SpeedKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        headtime_config::verbatim(&self.0, to)
    }
}

impl From<&Replay> for TraceKeys {
    fn from(replay: &Replay) -> TraceKeys {
        let Reading {
            format,
            time_unit,
            arrival_event,
            columns,
        } = replay.reading.clone();
        let (pace, outstanding, speed) = match replay.pace {
            Pace::Open(speed) => (PaceKey::Open, None, Some(SpeedKey(speed))),
            Pace::Closed(outstanding) => (PaceKey::Closed, Some(outstanding), None),
            Pace::ClosedPerProcess => (PaceKey::ClosedPerProcess, None, None),
        };
        TraceKeys {
            file: Placed::built_in(TraceFile(replay.file.clone())),
            format,
            time_unit,
            arrival_event,
            columns,
            devices: OneOrList(replay.devices.iter().cloned().map(Device).collect()),
            replay: pace,
            outstanding,
            speed,
            fit: replay.fit,
        }
    }
}

impl TraceKeys {
    fn replay(keys: &Placed<TraceKeys>) -> Result<Replay, TreeError> {
        for (key, of) in [("speed", PaceKey::Open), ("outstanding", PaceKey::Closed)] {
            if keys.has(key) && keys.replay != of {
                let only = ["open", "closed"][of as usize];
                return Err(keys.error_at(key, format!("is for replay = \"{only}\" only")));
            }
        }
        Ok(Replay {
            file: beside(keys.file.place(), &keys.file.0),
            reading: Reading {
                format: keys.format,
                time_unit: keys.time_unit,
                arrival_event: keys.arrival_event,
                columns: keys.columns.clone(),
            },
            devices: keys
                .devices
                .0
                .iter()
                .map(|Device(name)| name.clone())
                .collect(),
            pace: match keys.replay {
                PaceKey::Open => Pace::Open(
                    keys.speed
                        .map_or(Speed::AS_RECORDED, |SpeedKey(speed)| speed),
                ),
                PaceKey::Closed => Pace::Closed(keys.outstanding.unwrap_or(1)),
                PaceKey::ClosedPerProcess => Pace::ClosedPerProcess,
            },
            fit: keys.fit,
        })
    }
}

type ProgramKeys = Both<Named, BenchmarkSpec>;

#[derive(Serialize, Deserialize)]
struct Named {
    name: Option<Name>,
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

/// The drives of `[drive]`.
fn drives(table: Node, place: &Place) -> Result<Alternatives<DriveSpec>, TreeError> {
    let beside_scenario = |table: &mut Table| {
        for (key, only_files) in [("profile", true), ("belief", true), ("curve", false)] {
            let key = format!("drive.{key}");
            let Some(Node { value, place }) = table.at(&key).cloned() else {
                continue;
            };
            if let Value::Text(name) = value
                && (!only_files || is_file(&name))
            {
                let value = Value::Text(beside(&place, &name));
                table.set_value(&key, Node { value, place })?;
            }
        }
        Ok(())
    };
    let keys = ["profile", "firmware"];
    Alternatives::read(("drive", table), place, keys, beside_scenario)
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
    let error = |key: &str, problem: &str| {
        let place = table.get(key).map_or(&place, |node| &node.place);
        Err(TreeError::new(place.clone(), key, problem))
    };
    if table.get("sweep").is_some() {
        let problem = "is for `headtime sweep`, which runs a scenario for each of its values";
        return error("sweep", problem);
    }
    let file: File<Node, Node> = read(table, &place)?;
    let drives = drives(file.drive, &place)?;
    // What stands above the disk in simulation is a host of the era whose programs these are.
    let usual = match file.program {
        Some(_) => EngineSpec::linux_2_6(),
        None => EngineSpec::default(),
    };
    let none = || Node::built_in(Value::Table(Table::default()));
    let engines = engines(file.engine.unwrap_or_else(none), &place, &usual)?;
    let run = file
        .run
        .unwrap_or_else(|| Placed::built_in(RunKeys::default()));
    if run.duration.is_some_and(|duration| duration <= run.warm_up) {
        let problem = "allowed is more than the warm-up, which it includes";
        return Err(run.error_at("duration", problem));
    }
    let Many(schedulers) = file.schedulers;
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
    if file.host.is_some() && file.program.is_none() {
        return error("host", "is for [[program]] only");
    }
    const ONE: &str = "allowed is one of [[workload]], [[program]] and [trace]";
    let workload = match (file.workload, file.trace, file.program) {
        (Some(OneOrList(groups)), None, None) => Workload::Synthetic(self::groups(groups)?),
        (None, Some(trace), None) => Workload::Replay(TraceKeys::replay(&trace)?),
        (None, None, Some(OneOrList(programs))) => {
            Workload::Programs(self::programs(programs, file.host.unwrap_or_default())?)
        }
        (None, None, None) => {
            let problem = "missing; give [[workload]], [[program]] or [trace]";
            return error("workload", problem);
        }
        (_, Some(_), _) => return error("trace", ONE),
        (Some(_), None, Some(_)) => return error("program", ONE),
    };
    let endless = match &workload {
        Workload::Synthetic(groups) => groups
            .iter()
            .any(|group| group.process.count.is_none() && group.process.until.is_none()),
        Workload::Replay(_) | Workload::Programs(_) => false,
    };
    if endless && run.duration.is_none() && run.requests.is_none() {
        let problem = "the workload never ends; give duration = \"60s\" or requests = 10000";
        return error("run", problem);
    }
    if run.requests.is_some() && !matches!(workload, Workload::Synthetic(_)) {
        let problem = "is for [[workload]] only; traces and programs have as many as they have";
        return Err(run.error_at("requests", problem));
    }
    Ok(Scenario {
        title: file.title,
        seed: file.seed,
        schedulers,
        drives,
        engines,
        workload,
        warm_up: run.warm_up,
        duration: run.duration,
        requests: run.requests,
        repeats: run.repeats,
    })
}

fn not_empty<T>(list: &[T], key: &str) -> Result<(), TreeError> {
    let problem = "is an empty list; give at least one";
    match list.is_empty() {
        true => Err(TreeError::new(Place::BuiltIn, key, problem)),
        false => Ok(()),
    }
}

/// Refuses a name that an earlier one has.
fn is_new<T>(
    of: &Placed<T>,
    name: Option<&Name>,
    earlier: &[Option<String>],
) -> Result<(), TreeError> {
    match name {
        Some(Name(name)) if earlier.iter().flatten().any(|other| other == name) => {
            let problem = format!("{name:?} is the name of another already; allowed is any other");
            Err(of.error_at("name", problem))
        }
        _ => Ok(()),
    }
}

fn groups(all: Vec<Placed<GroupKeys>>) -> Result<Vec<Group>, TreeError> {
    not_empty(&all, "workload")?;
    let mut groups: Vec<Group> = Vec::new();
    let mut names = Vec::new();
    let (mut processes, mut outstanding) = (0, 0);
    for keys in all {
        is_new(&keys, keys.name.as_ref(), &names)?;
        let group = GroupKeys::group(&keys)?;
        names.push(group.name.clone());
        processes += u64::from(group.processes);
        if let Pacing::Closed {
            outstanding: each, ..
        } = group.process.pacing
        {
            outstanding += u64::from(group.processes) * u64::from(each);
        }
        for (count, most, what) in [
            (processes, PROCESSES_MAX, "processes"),
            (outstanding, OUTSTANDING_MAX, "requests outstanding"),
        ] {
            if count > most {
                return Err(keys.error(format!("more than {most} {what} in all")));
            }
        }
        groups.push(group);
    }
    Ok(groups)
}

fn programs(all: Vec<Placed<ProgramKeys>>, host: HostSpec) -> Result<Programs, TreeError> {
    not_empty(&all, "program")?;
    let mut names = Vec::new();
    let mut entries = Vec::new();
    for keys in all {
        let name = keys.0.name.clone();
        is_new(&keys, name.as_ref(), &names)?;
        let name = name.map(|Name(name)| name);
        names.push(name.clone());
        let benchmark = keys.value.1;
        entries.push(Program { name, benchmark });
    }
    Ok(Programs { host, entries })
}

pub(super) fn write(scenario: &Scenario) -> String {
    let mut file = File {
        title: scenario.title.clone(),
        seed: scenario.seed,
        schedulers: Many(scenario.schedulers.clone()),
        drive: &scenario.drives,
        engine: Some(&scenario.engines),
        workload: None,
        trace: None,
        host: None,
        program: None,
        run: Some(Placed::built_in(RunKeys {
            warm_up: scenario.warm_up,
            duration: scenario.duration,
            requests: scenario.requests,
            repeats: scenario.repeats,
        })),
    };
    match &scenario.workload {
        Workload::Synthetic(groups) => {
            let groups = groups.iter().map(GroupKeys::from);
            let groups = groups.map(Placed::built_in).collect();
            file.workload = Some(OneOrList(groups));
        }
        Workload::Replay(replay) => file.trace = Some(Placed::built_in(TraceKeys::from(replay))),
        Workload::Programs(programs) => {
            file.host = Some(programs.host.clone());
            let programs = programs.entries.iter().map(|program| {
                let name = program.name.clone().map(Name);
                Placed::built_in(Both(Named { name }, program.benchmark.clone()))
            });
            file.program = Some(OneOrList(programs.collect()));
        }
    }
    to_text(&file)
}
