//! The content of a scenario, as structs whose fields are its keys.

use super::alternatives::Alternatives;
use super::names::{name, rows_of};
use super::role::RoleSpec;
use headtime_config::{KeyError, Many, OneOrList, parse, whole};
use headtime_engine::EngineSpec;
use headtime_host::cluster::ClusterSpec;
use headtime_host::guests::Guests;
use headtime_host::workload::BenchmarkSpec;
use headtime_host::{HostError, HostSpec};
use headtime_qos::{FeatureSet, Goal, GoalError, Service, Setting, p99};
use headtime_sched::{Class, Spec};
use headtime_sim::Coalesce;
use headtime_stack::{ArraySpec, Believed, ScanSpec, Simulated, Timeout};
use headtime_units::Nanos;
use headtime_workload::{ArrivalEvent, Fit, Format, Pacing, ProcessSpec, Speed, TimeUnit};
use serde::de::{Deserializer, Error as _, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::ops::RangeInclusive;

/// A scenario. Everything is checked that can be checked without its files. Each field is a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// Title, in a line.
    pub title: Option<String>,
    /// Seed of every random draw.
    pub seed: u64,
    /// The schedulers to compare.
    pub schedulers: Many<Spec>,
    /// The drives.
    #[serde(rename = "drive")]
    pub drives: Alternatives<DriveSpec>,
    /// Engines between the clients and the drive.
    #[serde(rename = "engine")]
    pub engines: Alternatives<EngineSpec>,
    /// Array of such drives behind one address space. `None` for one disk.
    pub array: Option<ArraySpec>,
    /// Source of the requests.
    #[serde(rename = "+workload")]
    pub workload: Workload,
    /// Background scan, if there is one.
    pub freeblock: Option<ScanSpec>,
    /// Length and number of runs.
    pub run: Runs,
}

/// Length of a run, and the number of repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runs {
    /// Length of the warm-up. Requests that finish within it are not measured.
    pub warm_up: Nanos,
    /// End of the run, warm-up included.
    pub duration: Option<Nanos>,
    /// Most requests in all, warm-up included; synthetic workloads only.
    #[serde(deserialize_with = "whole::<_, _, 1, ANY>")]
    pub requests: Option<u64>,
    /// Number of repeats of each run, each with another seed.
    #[serde(deserialize_with = "whole::<_, _, 1, REPEATS_MAX>")]
    pub repeats: u32,
    /// Time after which the engine gives up on a command.
    #[serde(skip_serializing_if = "Timeout::is_off")]
    pub timeout: Timeout,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs {
            warm_up: Nanos::ZERO,
            duration: None,
            requests: None,
            repeats: 1,
            timeout: Timeout::default(),
        }
    }
}

/// A simulated drive, and the profile that schedulers assume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveSpec {
    /// Profile of the drive, by name or file.
    #[serde(deserialize_with = "profile")]
    pub profile: String,
    /// True if the profile learned by probing the drive replaces the drive's own profile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probed: bool,
    /// Profile and curve that schedulers assume.
    #[serde(rename = "+believed")]
    pub believed: Believed,
    /// Changes to the profile for the simulation.
    #[serde(rename = "+simulated")]
    pub simulated: Simulated,
    /// Number of completions that make the adapter interrupt the host. With 1, each completion interrupts.
    #[serde(
        default = "one",
        deserialize_with = "whole::<_, _, 1, 256>",
        skip_serializing_if = "is_one"
    )]
    pub coalesce: u32,
    /// Time after which the adapter interrupts with fewer completions.
    #[serde(
        default = "coalesce_timeout",
        skip_serializing_if = "is_coalesce_timeout"
    )]
    pub coalesce_timeout: Nanos,
}

impl DriveSpec {
    /// Rule for notifying the engine of completions; `None` notifies it of each completion at once.
    pub fn coalesce(&self) -> Option<Coalesce> {
        (self.coalesce > 1).then_some(Coalesce {
            commands: self.coalesce,
            timeout: self.coalesce_timeout,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(commands: &u32) -> bool {
    *commands == 1
}

fn coalesce_timeout() -> Nanos {
    Nanos::from_millis(1)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_coalesce_timeout(timeout: &Nanos) -> bool {
    *timeout == coalesce_timeout()
}

fn profile<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let expected = "the name or file of a drive profile, such as \"atlas10k\"";
    parse(from, expected, |text| Ok::<_, String>(text.to_owned()))
}

/// Source of the requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "Loads")]
pub enum Workload {
    /// Made-up programs.
    Synthetic(Vec<Group>),
    /// A recorded trace.
    Replay(Replay),
    /// Programs above a page cache.
    Programs(Programs),
}

/// Processes that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Name in the results, if given.
    #[serde(default, deserialize_with = "name")]
    pub name: Option<String>,
    /// Number of processes.
    #[serde(default = "one", deserialize_with = "whole::<_, _, 1, PROCESSES_MAX>")]
    pub processes: u32,
    /// Behaviour of each process. Process numbers of origins count through all groups, from 1.
    #[serde(rename = "+process")]
    pub process: ProcessSpec,
}

fn one() -> u32 {
    1
}

/// Programs, and the host they run on, or the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Programs {
    /// Properties of the host, or of each guest, or of each server of the cluster.
    pub host: HostSpec,
    /// Number of virtual machines that each run all entries. If absent, the host itself runs the entries.
    pub guests: Option<u16>,
    /// Nodes that run the programs, and servers with one disk each.
    pub cluster: Option<ClusterSpec>,
    /// Profiles of programs with goals.
    pub qos: QosSpec,
    /// The benchmarks. Programs are numbered through all entries, from 1.
    pub entries: Vec<Program>,
}

/// Profiles of programs with goals, and trees that are trained with the profiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QosSpec {
    /// Length of an epoch: each bound is for the next one.
    #[serde(deserialize_with = "epoch")]
    pub epoch: Nanos,
    /// Features that trees may ask for.
    #[serde(deserialize_with = "features", serialize_with = "as_text")]
    pub features: FeatureSet,
    /// Time that counts as service.
    #[serde(deserialize_with = "service", serialize_with = "as_text")]
    pub service: Service,
    /// True if another run of each program alone judges the tree.
    pub judge: bool,
}

impl Default for QosSpec {
    fn default() -> QosSpec {
        QosSpec {
            epoch: Setting::EPOCH,
            features: FeatureSet::USUAL,
            service: Service::Program,
            judge: false,
        }
    }
}

/// Reads the length of an epoch: a period of gate `windows` has one epoch or more.
fn epoch<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
    const ALLOWED: RangeInclusive<Nanos> = Nanos::from_millis(1)..=Nanos::from_millis(1000);
    let epoch = Nanos::deserialize(from)?;
    match ALLOWED.contains(&epoch) {
        true => Ok(epoch),
        false => Err(D::Error::custom(format!(
            "`{epoch}`: allowed is {} to {}",
            ALLOWED.start(),
            ALLOWED.end()
        ))),
    }
}

/// Reads features of trees.
fn features<'de, D: Deserializer<'de>>(from: D) -> Result<FeatureSet, D::Error> {
    parse(
        from,
        "features of trees, such as \"distance,size\"",
        str::parse,
    )
}

/// Reads the time that counts as service.
fn service<'de, D: Deserializer<'de>>(from: D) -> Result<Service, D::Error> {
    parse(from, "\"program\" or \"disk\"", str::parse)
}

fn as_text<T: fmt::Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.to_string().serialize(to)
}

fn is_usual(qos: &QosSpec) -> bool {
    *qos == QosSpec::default()
}

fn is_default(class: &Class) -> bool {
    *class == Class::default()
}

/// A benchmark to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Name in the results, if given. If the entry makes several programs, each name has a number.
    #[serde(default, deserialize_with = "name")]
    pub name: Option<String>,
    /// Class of the processes' requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub class: Class,
    /// Time in which the program must end, if it has a goal.
    #[serde(
        default,
        deserialize_with = "goal",
        serialize_with = "goal_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub goal: Option<Goal>,
    /// Profile file for planning the goal. If absent, a run of the program alone is profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Time within which 99 % of the requests must finish beside goals of other programs.
    #[serde(
        default,
        deserialize_with = "promise",
        serialize_with = "promise_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub p99: Option<Nanos>,
    /// Benchmark of the program.
    #[serde(rename = "+benchmark")]
    pub benchmark: BenchmarkSpec,
}

/// Reads the goal of a program in a simulation, which has no time of day.
fn goal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Goal>, D::Error> {
    let expected =
        "a run time, such as \"110s\", or a multiple of the run time alone, such as \"2.5x\"";
    parse(from, expected, |text| match text.parse()? {
        Goal::By(_) => Err(GoalError::NoDays),
        goal => Ok(Some(goal)),
    })
}

fn promise<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Nanos>, D::Error> {
    parse(from, "a time, such as \"200ms\"", |text| {
        p99(text).map(Some)
    })
}

fn promise_text<S: Serializer>(p99: &Option<Nanos>, to: S) -> Result<S::Ok, S::Error> {
    p99.map(|p99| p99.to_string()).serialize(to)
}

fn goal_text<S: Serializer>(goal: &Option<Goal>, to: S) -> Result<S::Ok, S::Error> {
    goal.map(|goal| goal.to_string()).serialize(to)
}

/// A trace and how it is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The files, which are one trace; `-` is the standard input.
    #[serde(deserialize_with = "traces")]
    pub file: OneOrList<String>,
    /// How to read it.
    #[serde(rename = "+reading")]
    pub reading: Reading,
    /// Devices to replay; all if empty.
    #[serde(default, skip_serializing_if = "no_devices")]
    pub devices: OneOrList<Device>,
    /// Groups of processes with rows of their own in results. If there are none, devices have rows.
    #[serde(default = "no_roles", skip_serializing_if = "OneOrList::is_empty")]
    pub roles: OneOrList<RoleSpec>,
    /// When requests arrive.
    #[serde(rename = "+pace")]
    pub pace: Pace,
    /// How addresses are brought onto the drive.
    #[serde(default)]
    pub fit: Fit,
}

/// How a trace file is to be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Format of the trace; recognised if absent.
    pub format: Option<Format>,
    /// Unit of the trace's times; guessed if absent and the format leaves it open.
    pub time_unit: Option<TimeUnit>,
    /// Event of a blkparse trace that counts as an arrival.
    pub arrival_event: Option<ArrivalEvent>,
    /// Columns of a CSV file, as text.
    pub columns: Option<String>,
    /// True if malformed lines are skipped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lenient: bool,
    /// Time after the first arrival before which requests are skipped.
    pub from: Option<Nanos>,
    /// Length of the part to use.
    #[serde(rename = "for")]
    pub span: Option<Nanos>,
    /// The most requests to use.
    #[serde(deserialize_with = "whole::<_, _, 1, ANY>", default)]
    pub first: Option<u64>,
}

fn no_roles() -> OneOrList<RoleSpec> {
    OneOrList(Vec::new())
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Replay {
    /// True if a run needs all requests of the trace in memory.
    pub fn is_whole(&self) -> bool {
        self.pace == Pace::ClosedPerProcess
    }

    /// The trace of a program: all devices, addresses modulo the capacity.
    pub fn of_program(file: &str) -> Replay {
        Replay {
            file: OneOrList(vec![file.to_owned()]),
            reading: Reading::default(),
            devices: OneOrList(Vec::new()),
            roles: no_roles(),
            pace: Pace::Closed(1),
            fit: Fit::Wrap,
        }
    }

    /// The names of the files, for messages.
    pub fn name(&self) -> String {
        self.file.join(", ")
    }
}

/// When the requests of a trace arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PaceKeys", into = "PaceKeys")]
pub enum Pace {
    /// At the recorded times, divided by the speed.
    Open(Speed),
    /// In the recorded order, with this number of requests outstanding.
    Closed(u32),
    /// Each process after its think time.
    ClosedPerProcess,
}

/// Any whole number that TOML can hold.
pub(super) const ANY: u64 = i64::MAX as u64;
/// The most processes of a scenario.
pub const PROCESSES_MAX: u64 = 1_000_000;
/// The most requests that all processes together may have outstanding.
pub const OUTSTANDING_MAX: u64 = 10_000_000;
/// The most repeats of a run.
pub const REPEATS_MAX: u64 = 1_000;

/// The keys of a [`Workload`].
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Loads {
    #[serde(default, serialize_with = "each")]
    workload: Option<OneOrList<Group>>,
    trace: Option<Replay>,
    host: Option<HostKeys>,
    cluster: Option<ClusterSpec>,
    qos: Option<QosSpec>,
    #[serde(default, serialize_with = "each")]
    pub(super) program: Option<OneOrList<Program>>,
}

/// The keys of `[host]`.
#[derive(Default, Serialize, Deserialize)]
struct HostKeys {
    #[serde(
        default,
        deserialize_with = "whole::<_, _, 1, GUESTS_MAX>",
        skip_serializing_if = "Option::is_none"
    )]
    guests: Option<u16>,
    #[serde(rename = "+host")]
    host: HostSpec,
}

const GUESTS_MAX: u64 = Guests::MAX as u64;

/// Writes `[[name]]` even for a single entry.
fn each<T: Serialize, S: Serializer>(all: &Option<OneOrList<T>>, to: S) -> Result<S::Ok, S::Error> {
    all.as_ref().map(|OneOrList(all)| all).serialize(to)
}

impl From<Workload> for Loads {
    fn from(workload: Workload) -> Loads {
        let mut keys = Loads::default();
        match workload {
            Workload::Synthetic(groups) => keys.workload = Some(OneOrList(groups)),
            Workload::Replay(replay) => keys.trace = Some(replay),
            Workload::Programs(Programs {
                host,
                guests,
                cluster,
                qos,
                entries,
            }) => {
                (keys.host, keys.cluster) = (Some(HostKeys { guests, host }), cluster);
                keys.qos = Some(qos).filter(|qos| !is_usual(qos));
                keys.program = Some(OneOrList(entries));
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
        if keys.program.is_none() {
            let given = [
                ("host", keys.host.is_some()),
                ("cluster", keys.cluster.is_some()),
                ("qos", keys.qos.is_some()),
            ];
            if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
                return error(key, "is for [[program]] only");
            }
        }
        match (keys.workload, keys.trace, keys.program) {
            (Some(OneOrList(groups)), None, None) => {
                some("workload", groups.len())?;
                bounded(&groups)?;
                Ok(Workload::Synthetic(groups))
            }
            (None, Some(trace), None) => Ok(Workload::Replay(trace)),
            (None, None, Some(OneOrList(entries))) => {
                named("program", entries.iter().map(|entry| entry.name.as_deref()))?;
                let HostKeys { guests, host } = keys.host.unwrap_or_default();
                match &keys.cluster {
                    Some(_) if guests.is_some() => {
                        let problem = "is for one host; leave out [cluster] or this";
                        return error("host.guests", problem);
                    }
                    Some(cluster) => fit_cluster(cluster, &host, &entries)?,
                    None => {}
                }
                fit_goals(guests, &entries)?;
                if entries.iter().all(|entry| entry.benchmark.is_endless()) {
                    let problem = "every program goes on until the others have ended; add another";
                    return error("program", problem);
                }
                Ok(Workload::Programs(Programs {
                    host,
                    guests,
                    cluster: keys.cluster,
                    qos: keys.qos.unwrap_or_default(),
                    entries,
                }))
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

/// Refuses an impossible cluster, and benchmarks that do not run on a cluster.
fn fit_cluster(
    cluster: &ClusterSpec,
    host: &HostSpec,
    entries: &[Program],
) -> Result<(), KeyError> {
    cluster.check().map_err(|error| match error {
        HostError::Range {
            key,
            value,
            allowed,
        } => KeyError::new(
            format!("cluster.{key}"),
            format!("`{value}`: allowed is {allowed}"),
        ),
        error => KeyError::new("cluster", error.to_string()),
    })?;
    if host.chunk.is_some() {
        let problem =
            "is for a host above an array; leave out [cluster], whose servers have one disk each";
        return Err(KeyError::new("host.chunk", problem));
    }
    let unfit = |entry: &Program| !entry.benchmark.is_for_clusters();
    match entries.iter().position(unfit) {
        None => Ok(()),
        Some(at) => {
            let name = entries[at].benchmark.name();
            let names = BenchmarkSpec::NAMES.into_iter();
            let runs =
                |name: &&str| BenchmarkSpec::from_name(name).is_ok_and(|one| one.is_for_clusters());
            let allowed = names.filter(runs).collect::<Vec<_>>().join(", ");
            let problem = format!(
                "`{name}` needs a host with a disk of its own; with [cluster] allowed are {allowed}"
            );
            Err(KeyError::new(format!("program[{at}].benchmark"), problem))
        }
    }
}

/// Refuses goals of programs that no planner handles.
fn fit_goals(guests: Option<u16>, entries: &[Program]) -> Result<(), KeyError> {
    let is_refused = |entry: &Program| {
        entry.goal.is_some() && (guests.is_some() || entry.class == Class::REAL_TIME)
    };
    for (at, entry) in entries.iter().enumerate() {
        let error = |key, problem| Err(KeyError::new(format!("program[{at}].{key}"), problem));
        if entry.profile.is_some() && entry.goal.is_none() {
            return error(
                "profile",
                "is for a program with a goal; give a goal, or leave out the profile",
            );
        }
        let planned = guests.is_none() && entry.class != Class::REAL_TIME;
        if entry.p99.is_some() && (entry.goal.is_some() || !planned) {
            return error(
                "p99",
                "is for a program without a goal, of another class than real-time, and without host.guests; leave out p99 or the other key",
            );
        }
    }
    match entries.iter().position(is_refused) {
        None => Ok(()),
        Some(at) => {
            let problem = match guests {
                Some(_) => {
                    "is for programs on one host or a [cluster]; leave out the goal or host.guests"
                }
                None => {
                    "a program of class real-time is served before all others; leave out the goal or the class"
                }
            };
            Err(KeyError::new(format!("program[{at}].goal"), problem))
        }
    }
}

/// Different names of groups of processes, and the place of each group's name among them. Groups of one name share a row of results.
pub fn rows_of_groups(groups: &[Group]) -> (Vec<String>, Vec<usize>) {
    rows_of(
        groups
            .iter()
            .map(|group| (group.name.as_deref(), &group.process)),
    )
}

/// Refuses an empty list, and a name that is there twice.
fn named<'a>(key: &str, names: impl Iterator<Item = Option<&'a str>>) -> Result<(), KeyError> {
    let names: Vec<Option<&str>> = names.collect();
    some(key, names.len())?;
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

/// Refuses an empty list.
fn some(key: &str, count: usize) -> Result<(), KeyError> {
    match count {
        0 => Err(KeyError::new(key, "is an empty list; give at least one")),
        _ => Ok(()),
    }
}

/// Refuses more processes or outstanding requests than the limits allow.
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

/// Reads the names of trace files.
pub(super) fn traces<'de, D: Deserializer<'de>>(from: D) -> Result<OneOrList<String>, D::Error> {
    let files = OneOrList::deserialize(from)?;
    if files.is_empty() {
        return Err(D::Error::custom("is an empty list; give at least one file"));
    }
    Ok(files)
}

/// A device of a trace: a number or a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Device(pub String);

impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Device, D::Error> {
        struct DeviceVisitor;

        impl Visitor<'_> for DeviceVisitor {
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

        from.deserialize_any(DeviceVisitor)
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
