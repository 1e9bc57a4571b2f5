//! From a tree to a scenario.

use super::names;
use super::programs;
use super::runs;
use super::tree::{Node, Place, Section, Table, TreeError, Value};
use super::{
    Group, MERGE_MAX, OUTSTANDING_MAX, PROCESSES_MAX, Pace, REPEATS_MAX, RUNS_MAX, Reading, Replay,
    Scenario, Workload,
};
use headtime_disk::profile::shipped;
use headtime_engine::Plug;
use headtime_sched::{Class, Flags, Spec};
use headtime_stack::Firmware;
use headtime_units::{Bytes, Nanos, Time};
use headtime_workload::{
    ArrivalEvent, DistributionError, First, Fit, Format, Pacing, ProcessSpec, SizeDistribution,
    Speed, TimeDistribution, TimeUnit,
};

/// Any whole number that TOML can hold.
const ANY: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

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

pub(super) fn scenario(table: &Table, place: Place) -> Result<Scenario, TreeError> {
    let mut top = Section::new(table, place);
    if top.has("sweep") {
        let problem = "is for `headtime sweep`, which runs a scenario for each of its values";
        return Err(top.error("sweep", problem));
    }
    top.allow(&KEYS)?;
    let title = top.text("title")?.map(str::to_owned);
    let seed = top.integer("seed", ANY)?.unwrap_or(1);
    let schedulers = top
        .parse_list(
            "schedulers",
            "the text of a scheduler, such as \"deadline\"",
            |text| text.parse::<Spec>().map_err(|error| error.to_string()),
        )?
        .ok_or_else(|| {
            top.error(
                "schedulers",
                "missing; give for example [\"noop\", \"sstf\"]",
            )
        })?;

    let mut drive = top
        .section("drive")?
        .ok_or_else(|| top.error("drive", "missing; give for example profile = \"atlas10k\""))?;
    drive.allow(&[
        "profile", "belief", "curve", "firmware", "noise", "override",
    ])?;
    let drives = drive
        .parse_list("profile", "the name or file of a drive profile", |text| {
            Ok(text.to_owned())
        })?
        .ok_or_else(|| drive.error("profile", "missing; give for example \"atlas10k\""))?;
    // Names come before files; one that is misspelt has no slash, and mostly no point.
    let is_shipped = |text: &str| shipped().iter().any(|shipped| shipped.name == text);
    let is_file = |text: &str| !is_shipped(text) && text.contains(['.', '/', '\\']);
    let named = |section: &Section<'_>, key: &str, text: &str| {
        if is_file(text) {
            section.beside(key, text)
        } else {
            text.to_owned()
        }
    };
    let drives: Vec<String> = drives
        .iter()
        .map(|text| named(&drive, "profile", text))
        .collect();
    let belief = drive
        .text("belief")?
        .map(|text| named(&drive, "belief", text));
    let curve = drive.text("curve")?.map(|file| drive.beside("curve", file));
    let firmware = drive
        .parse_list("firmware", "\"profile\", \"fifo\" or \"sptf\"", str::parse)?
        .unwrap_or_else(|| vec![Firmware::Profile]);
    let noise = drive.flag("noise")?.unwrap_or(true);
    let overrides = drive
        .any_table("override")?
        .map(Table::to_toml)
        .unwrap_or_default();
    drive.finish()?;

    let mut depths = vec![1];
    let mut merge = vec![true];
    let mut merge_max = Bytes(512 << 10);
    // What stands above the disk in simulation is a host of the era whose programs these are.
    let is_host = top.has("program");
    let mut commit_ahead = vec![is_host];
    let mut plug = is_host.then_some(Plug::LINUX_2_6);
    let mut hide_processes = false;
    if let Some(mut engine) = top.section("engine")? {
        if let Some(given) = engine.integers("depth", 1..=256)? {
            depths = given.into_iter().map(|depth| depth as u32).collect();
        }
        merge = engine.flags("merge")?.unwrap_or(merge);
        merge_max = engine.size("merge_max")?.unwrap_or(merge_max);
        if merge_max.0 == 0 || !merge_max.0.is_multiple_of(512) || merge_max > MERGE_MAX {
            let problem = "allowed is a multiple of 512B, up to 1GiB";
            return Err(engine.error("merge_max", problem));
        }
        commit_ahead = engine.flags("commit_ahead")?.unwrap_or(commit_ahead);
        plug = self::plug(&mut engine, plug)?;
        hide_processes = engine.flag("hide_processes")?.unwrap_or(false);
        engine.finish()?;
    }

    let (mut warm_up, mut duration, mut requests, mut repeats) = (None, None, None, 1);
    if let Some(mut run) = top.section("run")? {
        warm_up = run.duration("warm_up")?;
        duration = run.duration("duration")?;
        requests = run.integer("requests", 1..=i64::MAX as u64)?;
        repeats = run.integer("repeats", 1..=REPEATS_MAX)?.unwrap_or(1) as u32;
        if duration.is_some_and(|duration| duration <= warm_up.unwrap_or_default()) {
            return Err(run.error(
                "duration",
                "allowed is more than the warm-up, which it includes",
            ));
        }
        run.finish()?;
    }

    let compared = [
        schedulers.len(),
        drives.len(),
        firmware.len(),
        depths.len(),
        merge.len(),
        commit_ahead.len(),
        repeats as usize,
    ];
    let runs = runs::count(&compared);
    if runs > RUNS_MAX {
        let problem = format!(
            "with the drives, the options and the repeats these make {runs} runs; allowed are \
             {RUNS_MAX}"
        );
        return Err(top.error("schedulers", problem));
    }

    let (groups, trace) = (top.sections("workload")?, top.section("trace")?);
    let (programs, host) = (top.sections("program")?, top.section("host")?);
    if host.is_some() && programs.is_none() {
        return Err(top.error("host", "is for [[program]] only"));
    }
    let workload = match (groups, trace, programs) {
        (Some(groups), None, None) => Workload::Synthetic(self::groups(groups)?),
        (None, Some(trace), None) => Workload::Replay(replay(trace)?),
        (None, None, Some(programs)) => Workload::Programs(programs::programs(programs, host)?),
        (None, None, None) => {
            let problem = "missing; give [[workload]], [[program]] or [trace]";
            return Err(top.error("workload", problem));
        }
        (_, Some(_), _) => {
            let problem = "allowed is one of [[workload]], [[program]] and [trace]";
            return Err(top.error("trace", problem));
        }
        (Some(_), None, Some(_)) => {
            let problem = "allowed is one of [[workload]], [[program]] and [trace]";
            return Err(top.error("program", problem));
        }
    };
    let endless = match &workload {
        Workload::Synthetic(groups) => groups
            .iter()
            .any(|group| group.process.count.is_none() && group.process.until.is_none()),
        Workload::Replay(_) | Workload::Programs(_) => false,
    };
    if endless && duration.is_none() && requests.is_none() {
        let problem = "the workload never ends; give duration = \"60s\" or requests = 10000";
        return Err(top.error("run", problem));
    }
    if requests.is_some() && !matches!(workload, Workload::Synthetic(_)) {
        let problem = "is for [[workload]] only; traces and programs have as many as they have";
        return Err(top.error("run.requests", problem));
    }
    top.finish()?;
    Ok(Scenario {
        title,
        seed,
        schedulers,
        drives,
        belief,
        curve,
        firmware,
        noise,
        overrides,
        depths,
        merge,
        merge_max,
        commit_ahead,
        plug,
        hide_processes,
        workload,
        warm_up: warm_up.unwrap_or_default(),
        duration,
        requests,
        repeats,
    })
}

/// Whether and how requests that come to an empty queue wait for others.
fn plug(engine: &mut Section<'_>, otherwise: Option<Plug>) -> Result<Option<Plug>, TreeError> {
    let requests = engine.integer("plug_requests", 1..=65_535)?;
    let timeout = engine.duration("plug_timeout")?;
    if timeout.is_some_and(Nanos::is_zero) {
        return Err(engine.error("plug_timeout", "allowed is more than 0s"));
    }
    let plug = match engine.flag("plug")? {
        None => otherwise,
        Some(true) => Some(Plug::LINUX_2_6),
        Some(false) => None,
    };
    match plug {
        Some(plug) => Ok(Some(Plug {
            requests: requests.map_or(plug.requests, |requests| requests as u32),
            timeout: timeout.unwrap_or(plug.timeout),
        })),
        None => {
            for (key, given) in [
                ("plug_requests", requests.is_some()),
                ("plug_timeout", timeout.is_some()),
            ] {
                if given {
                    return Err(engine.error(key, "is for plug = true"));
                }
            }
            Ok(None)
        }
    }
}

fn groups(sections: Vec<Section<'_>>) -> Result<Vec<Group>, TreeError> {
    let mut groups: Vec<Group> = Vec::new();
    let (mut processes, mut outstanding) = (0, 0);
    for section in sections {
        let place = section.place().clone();
        let key = section.path().to_owned();
        let given: Vec<Option<String>> = groups.iter().map(|group| group.name.clone()).collect();
        let group = group(section, &given)?;
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
                let problem = format!("more than {most} {what} in all");
                return Err(TreeError {
                    place,
                    key,
                    problem,
                });
            }
        }
        groups.push(group);
    }
    Ok(groups)
}

fn group(mut section: Section<'_>, names: &[Option<String>]) -> Result<Group, TreeError> {
    let name = names::name(&mut section)?;
    names::is_new(&section, &name, names)?;
    let mut process = ProcessSpec::default();
    let processes = section
        .integer("processes", 1..=PROCESSES_MAX)?
        .unwrap_or(1) as u32;
    if let Some(program) = section.integer("program", 0..=65_535)? {
        process.origin.program = program as u16;
    }
    if let Some(class) = section.parse("class", "a class", class)? {
        process.class = class;
    }
    if let Some(flags) =
        section.parse_list("write_flags", "\"fua\", \"preflush\" or \"sync\"", flag)?
    {
        process.write_flags = flags.into_iter().fold(Flags::NONE, Flags::with);
    }
    process.pacing = pacing(&mut section)?;
    if let Some(start) = section.duration("start")? {
        process.start = Time::ZERO + start;
    }
    process.until = section.duration("until")?.map(|until| Time::ZERO + until);
    process.count = section.integer("requests", ANY)?;
    process.read_share = section
        .float("read_share", 0.0..=1.0)?
        .unwrap_or(process.read_share);
    process.sequential_share = section.float("sequential_share", 0.0..=1.0)?.unwrap_or(0.0);
    process.local_share = section.float("local_share", 0.0..=1.0)?.unwrap_or(0.0);
    if process.sequential_share + process.local_share > 1.0 {
        let problem = "allowed is at most 1 together with sequential_share";
        return Err(section.error("local_share", problem));
    }
    let size = |text: &str| {
        text.parse::<SizeDistribution>()
            .map_err(|error| error.to_string())
    };
    let expected = "a size or a distribution of sizes, such as \"4KiB\"";
    if let Some(distance) = section.parse("local_distance", expected, size)? {
        process.local_distance = distance;
    }
    if let Some(size) = section.parse("size", expected, size)? {
        process.size = size;
    }
    process.size_step = section.size("size_step")?.unwrap_or(process.size_step);
    process.align = section.size("align")?.unwrap_or(process.align);
    process.range = section.parse("range", "two sizes, such as \"0B..10GB\"", range)?;
    process.first = section
        .parse("first", "\"anywhere\" or \"beginning\"", first)?
        .unwrap_or(process.first);
    section.finish()?;
    Ok(Group {
        name,
        processes,
        process,
    })
}

/// A duration or a distribution of durations.
pub(super) fn times(
    section: &mut Section<'_>,
    key: &'static str,
) -> Result<Option<TimeDistribution>, TreeError> {
    let expected = "a duration or a distribution of durations, such as \"30ms\"";
    section.parse(key, expected, |text| {
        text.parse()
            .map_err(|error: DistributionError| error.to_string())
    })
}

fn pacing(section: &mut Section<'_>) -> Result<Pacing, TreeError> {
    let think = times(section, "think")?;
    let outstanding = section.integer("outstanding", 1..=65_535)?;
    match times(section, "gap")? {
        Some(gap) => {
            for (key, given) in [
                ("think", think.is_some()),
                ("outstanding", outstanding.is_some()),
            ] {
                if given {
                    let problem =
                        "is for processes that wait; with gap they ask whatever the disk does";
                    return Err(section.error(key, problem));
                }
            }
            Ok(Pacing::Open { gap })
        }
        None => {
            let Pacing::Closed {
                think: no_time,
                outstanding: one,
            } = Pacing::default()
            else {
                unreachable!("the default waits");
            };
            Ok(Pacing::Closed {
                think: think.unwrap_or(no_time),
                outstanding: outstanding.map_or(one, |count| count as u32),
            })
        }
    }
}

/// The names of classes.
pub(super) const CLASSES: [(&str, Class); 3] = [
    ("real-time", Class::REAL_TIME),
    ("best-effort", Class::BEST_EFFORT),
    ("idle", Class::IDLE),
];

/// The class of a name.
///
/// # Errors
///
/// If there is none.
pub fn class(text: &str) -> Result<Class, String> {
    let class = CLASSES
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, class)| *class);
    class.ok_or_else(|| "allowed are real-time, best-effort, idle".to_owned())
}

/// The name of a class; that of its kind if it is one that has no name of its own.
pub fn class_name(class: Class) -> &'static str {
    let named = CLASSES.iter().find(|(_, named)| *named == class);
    named.map_or("unnamed", |(name, _)| name)
}

/// The names of flags.
pub(super) const FLAGS: [(&str, Flags); 3] = [
    ("fua", Flags::FUA),
    ("preflush", Flags::PREFLUSH),
    ("sync", Flags::SYNC),
];

fn flag(text: &str) -> Result<Flags, String> {
    let flag = FLAGS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, flag)| *flag);
    flag.ok_or_else(|| format!("no flag is called `{text}`; allowed are fua, preflush, sync"))
}

fn first(text: &str) -> Result<First, String> {
    match text {
        "anywhere" => Ok(First::Anywhere),
        "beginning" => Ok(First::Beginning),
        _ => Err("allowed are anywhere, beginning".to_owned()),
    }
}

fn range(text: &str) -> Result<(Bytes, Bytes), String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("the two ends are not separated by ..")?;
    let size = |text: &str| {
        text.parse::<Bytes>()
            .map_err(|error| format!("`{text}`: {error}"))
    };
    let (from, to) = (size(from)?, size(to)?);
    if from < to {
        Ok((from, to))
    } else {
        Err("the first end must be below the second".to_owned())
    }
}

fn replay(mut section: Section<'_>) -> Result<Replay, TreeError> {
    section.allow(&[
        "file",
        "format",
        "time_unit",
        "arrival_event",
        "columns",
        "devices",
        "fit",
        "replay",
        "outstanding",
        "speed",
    ])?;
    let file = section
        .text("file")?
        .ok_or_else(|| section.error("file", "missing; give the trace to replay"))?;
    let file = section.beside("file", file);
    let format = section.parse("format", "a trace format", |text| {
        text.parse::<Format>().map_err(|error| error.to_string())
    })?;
    let time_unit = section.parse("time_unit", "a unit of time", |text| {
        text.parse::<TimeUnit>().map_err(|error| error.to_string())
    })?;
    let arrival_event = section.parse("arrival_event", "\"queue\" or \"issue\"", |text| {
        text.parse::<ArrivalEvent>()
            .map_err(|error| error.to_string())
    })?;
    let columns = section.text("columns")?.map(str::to_owned);
    let devices = match section.node("devices") {
        None => Vec::new(),
        Some(node) => devices(&section, node)?,
    };
    let fit = section
        .parse("fit", "\"error\" or \"wrap\"", |text| {
            text.parse::<Fit>().map_err(|error| error.to_string())
        })?
        .unwrap_or_default();
    let pace = pace(&mut section)?;
    section.finish()?;
    Ok(Replay {
        file,
        reading: Reading {
            format,
            time_unit,
            arrival_event,
            columns,
        },
        devices,
        pace,
        fit,
    })
}

/// Devices are numbers or names, one or several.
fn devices(section: &Section<'_>, node: &Node) -> Result<Vec<String>, TreeError> {
    let name = |node: &Node| match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        _ => Err(section.error("devices", "allowed are numbers and names of devices")),
    };
    match &node.value {
        Value::List(list) => list.iter().map(name).collect(),
        _ => Ok(vec![name(node)?]),
    }
}

fn pace(section: &mut Section<'_>) -> Result<Pace, TreeError> {
    let replay = section.text("replay")?.unwrap_or("open");
    let outstanding = section.integer("outstanding", 1..=65_535)?;
    let speed = section.float("speed", 1e-4..=1e4)?;
    let pace = match replay {
        "open" => {
            let speed = Speed::new(speed.unwrap_or(1.0));
            Pace::Open(speed.map_err(|error| section.error("speed", error.to_string()))?)
        }
        "closed" => Pace::Closed(outstanding.unwrap_or(1) as u32),
        "closed-per-process" => Pace::ClosedPerProcess,
        other => {
            let problem = format!("\"{other}\": allowed are open, closed, closed-per-process");
            return Err(section.error("replay", problem));
        }
    };
    if speed.is_some() && !matches!(pace, Pace::Open(_)) {
        return Err(section.error("speed", "is for replay = \"open\" only"));
    }
    if outstanding.is_some() && !matches!(pace, Pace::Closed(_)) {
        return Err(section.error("outstanding", "is for replay = \"closed\" only"));
    }
    Ok(pace)
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT, cells};
    use super::*;
    use crate::damage::damaged;
    use proptest::prelude::*;

    const RANDOM: &str = include_str!("../../../../experiments/random-4k.toml");

    fn read(text: &str) -> Result<Scenario, TreeError> {
        let table = Table::parse("s.toml", text)?;
        Scenario::from_table(&table, Place::BuiltIn)
    }

    /// Changes of a scenario, and what is said about them.
    #[test]
    fn what_does_not_fit_together() {
        for (from, to, error) in [
            (
                "[run]",
                "[trace]\nfile = \"x\"\n[run]",
                "trace: allowed is one of",
            ),
            (
                "duration = \"310s\"",
                "duration = \"10s\"",
                "run.duration: allowed is more than the warm-up",
            ),
            (
                "size = \"4KiB\"",
                "gap = \"1s\"\nthink = \"1s\"",
                "think: is for processes that wait",
            ),
            (
                "size = \"4KiB\"",
                "sequential_share = 0.7\nlocal_share = 0.7",
                "local_share: allowed is at most 1",
            ),
            (
                "size = \"4KiB\"",
                "range = \"4KiB..4KiB\"",
                "the first end must be below the second",
            ),
            (
                "size = \"4KiB\"",
                "name = \"\"",
                "s.toml:12: workload[0].name: \"\": allowed are 1 to 64 letters",
            ),
            (
                "size = \"4KiB\"",
                "name = \"12345678901234567890123456789012345678901234567890123456789012345\"",
                "allowed are 1 to 64 letters",
            ),
            (
                "size = \"4KiB\"",
                "name = \"two\\nlines\"",
                "workload[0].name: \"two\\nlines\": allowed are letters that can be seen",
            ),
            (
                "size = \"4KiB\"",
                "name = \"\\u202eturned\"",
                "allowed are letters that can be seen",
            ),
            (
                "size = \"4KiB\"",
                "name = \" web\"",
                "allowed are single blanks between words",
            ),
            (
                "size = \"4KiB\"",
                "name = \"all\"",
                "is what results call something else",
            ),
            (
                "size = \"4KiB\"",
                "name = \"process 3\"",
                "is what results call something else",
            ),
            (
                "size = \"4KiB\"",
                "name = 3",
                "workload[0].name: is the number 3, but should be a string",
            ),
            (
                "size = \"4KiB\"",
                "name = \"web\"\n[[workload]]\nname = \"web\"",
                "workload[1].name: \"web\" is the name of another already",
            ),
            (
                "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
                "[[program]]\nname=\"a\"\nbenchmark=\"grep\"\n[[program]]\nname=\"a\"\nbenchmark=\"grep\"",
                "program[1].name: \"a\" is the name of another already",
            ),
            (
                "size = \"4KiB\"",
                "class = \"best\"",
                "allowed are real-time, best-effort, idle",
            ),
            (
                "processes = 16",
                "processes = 1000001",
                "allowed is 1 to 1000000",
            ),
            (
                "[drive]",
                "[drive]\nfirmware = \"sptff\"",
                "did you mean `sptf`",
            ),
            (
                "[run]",
                "[engine]\nmerge_max = \"1000B\"\n[run]",
                "allowed is a multiple of 512B",
            ),
            (
                "[run]",
                "[engine]\nmerge_max = \"1073742336B\"\n[run]",
                "engine.merge_max: allowed is a multiple of 512B, up to 1GiB",
            ),
            (
                "[run]",
                "[engine]\nplug = true\nplug_timeout = \"213503d\"\n[run]",
                "s.toml:16: engine.plug_timeout: \"213503d\": a duration is at most 3650d",
            ),
            (
                "warm_up = \"10s\"",
                "warm_up = \"315360000.000000001s\"",
                "run.warm_up: \"315360000.000000001s\": a duration is at most 3650d",
            ),
            (
                "duration = \"310s\"",
                "duration = \"3651d\"",
                "run.duration: \"3651d\": a duration is at most 3650d",
            ),
            (
                "size = \"4KiB\"",
                "think = \"exponential(213503d)\"",
                "a duration is at most 3650d",
            ),
            (
                "size = \"4KiB\"",
                "gap = \"uniform(1s..99999d)\"",
                "a duration is at most 3650d",
            ),
            (
                "size = \"4KiB\"",
                "start = \"99999d\"",
                "workload[0].start: \"99999d\": a duration is at most 3650d",
            ),
            (
                "size = \"4KiB\"",
                "until = \"99999d\"",
                "workload[0].until: \"99999d\": a duration is at most 3650d",
            ),
            (
                "schedulers = [\"noop\",",
                "schedulers = [\"stream(deadline:read_expire=213503d)\",",
                "read_expire is \"213503d\"; allowed is 0ns to 86400s",
            ),
            (
                "schedulers = [\"noop\",",
                "schedulers = [\"stream(deadline):slice=213503d\",",
                "slice is \"213503d\"; allowed is 0ns to 86400s",
            ),
            (
                "processes = 16",
                "processes = 1000000\noutstanding = 11",
                "workload[0]: more than 10000000 requests outstanding in all",
            ),
            (
                "seed = 1",
                "seed = -1",
                "seed: -1 is out of range; allowed is 0 and more",
            ),
            (
                "[run]",
                "[host]\nread_ahead = \"1MiB\"\n[run]",
                "host: is for [[program]] only",
            ),
            (
                "[run]",
                "[[program]]\nbenchmark = \"par-read\"\n[run]",
                "program: allowed is one of",
            ),
            (
                "[run]",
                "[engine]\nplug_requests = 4\n[run]",
                "engine.plug_requests: is for plug = true",
            ),
            (
                "[run]",
                "[engine]\nplug = true\nplug_timeout = \"0s\"\n[run]",
                "engine.plug_timeout: allowed is more than 0s",
            ),
            (
                "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
                "[[program]]\nbenchmark = \"parread\"",
                "did you mean `par-read`?",
            ),
            (
                "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
                "[[program]]\nbenchmark = \"par-read\"\nthinks = \"1ms\"",
                "did you mean `think`?",
            ),
            (
                "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
                "[[program]]\nbenchmark = \"par-read\"\nthink = \"lognormal(5.4ms)\"",
                "program[0].think: \"lognormal(5.4ms)\": `lognormal(5.4ms)` is no distribution: the two \
                 ends are not separated by ..; allowed are 30ms, uniform(10ms..50ms), exponential(30ms) and \
                 lognormal(900us..5.4ms)",
            ),
            (
                "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
                "[[program]]\nbenchmark = \"par-read\"\nthink = 5",
                "program[0].think: is the number 5, but should be a duration or a distribution of durations",
            ),
            (
                "[[workload]]\nprocesses = 16\nsize = \"4KiB\"",
                "[[program]]\nthink = \"1ms\"",
                "program[0].benchmark: missing",
            ),
            (
                "profile = ",
                "profil = ",
                "drive.profil: unknown key; did you mean `profile`?",
            ),
            (
                "profile = \"wd5000aaks\"",
                "noise = true",
                "drive.profile: missing; give for example \"atlas10k\"",
            ),
            (
                "schedulers = ",
                "scheduler = ",
                "scheduler: unknown key; did you mean `schedulers`?",
            ),
        ] {
            let changed = RANDOM.replacen(from, to, 1);
            assert_ne!(changed, RANDOM, "{from}");
            let found = read(&changed).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
    }

    /// Five lists of a hundred multiply to more runs than memory could hold; once only their making
    /// failed, by running out of it.
    #[test]
    fn runs_are_limited() {
        let with = |schedulers: usize, depths: usize, repeats: u32| {
            let text = RANDOM
                .replacen(
                    "[\"noop\", ",
                    &format!("[{}", "\"noop\", ".repeat(schedulers - 6)),
                    1,
                )
                .replacen("repeats = 3", &format!("repeats = {repeats}"), 1);
            let depths = vec!["1"; depths].join(", ");
            read(&format!("{text}[engine]\ndepth = [{depths}]\n"))
        };
        assert_eq!(cells(&with(100, 100, 10).unwrap()).len(), 10_000);
        let error = with(100, 100, 11).unwrap_err().to_string();
        assert!(
            error.contains("these make 110000 runs; allowed are 100000"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            let _ = read(&text);
        }

        #[test]
        fn no_damage_makes_it_panic(text in damaged(&[DEFAULT, RANDOM])) {
            if let Ok(scenario) = read(&text) {
                prop_assert_eq!(read(&scenario.to_toml()), Ok(scenario));
            }
        }

        #[test]
        fn no_setting_makes_it_panic(key in "[a-z0-9._]{0,20}", value in ".{0,40}") {
            let mut table = Scenario::default_table();
            if table.set("--set", &key, &value).is_ok() {
                let _ = Scenario::from_table(&table, Place::BuiltIn);
            }
        }
    }
}
