//! The section of an array.

use super::disk::{ExportKeys, disk_name, exports};
use super::sections::{ArrayConfig, Backend, DiskConfig, GeometryConfig, Layout};
use super::seen::{Seen, once};
use headtime_config::{Error, OneOrList, Placed};
use headtime_engine::ReadFrom;
use headtime_sched::StreamConfig;
use headtime_stack::{ArraySpec, Level, entries};
use headtime_units::{Bytes, nearest};
use serde::Deserialize;

/// The keys of `[[array]]`.
#[derive(Deserialize)]
pub(super) struct ArrayKeys {
    #[serde(deserialize_with = "disk_name")]
    name: String,
    export: Option<OneOrList<Placed<ExportKeys>>>,
    geometry: Option<Placed<GeometryKeys>>,
    #[serde(rename = "+array")]
    spec: ArraySpec<Vec<String>>,
}

/// The keys of `geometry`.
#[derive(Deserialize)]
struct GeometryKeys {
    offset: OneOrList<Bytes>,
    size: Option<OneOrList<Bytes>>,
    layout: Option<Layout>,
}

impl ArrayKeys {
    /// Names of the disks that have no exports of their own. There may be no disk of such a name.
    pub fn members(&self) -> &[String] {
        match self.geometry {
            None => &self.spec.members,
            Some(_) => &[],
        }
    }
}

/// Checks an array against the disks and the arrays that precede this one.
pub(super) fn array(
    keys: Placed<ArrayKeys>,
    disks: &[DiskConfig],
    seen: &mut Seen,
) -> Result<ArrayConfig, Error> {
    let (name, spec) = (&keys.name, &keys.spec);
    let what = format!("there is a disk or an array \"{name}\" already");
    once(&mut seen.disks, name.clone(), &keys, "name", &what)?;
    let mut members = Vec::with_capacity(spec.members.len());
    for member in &spec.members {
        let wrong = |problem: String| Err(keys.error_at("members", format!("{member}: {problem}")));
        let Some(index) = disks.iter().position(|disk| disk.name == *member) else {
            let names = disks.iter().map(|disk| disk.name.as_str());
            let guess = nearest(member, names).map(|guess| format!("; did you mean \"{guess}\"?"));
            return wrong(format!(
                "there is no [[disk]] of this name in this server, and an array has the disks of one server{}",
                guess.unwrap_or_default()
            ));
        };
        match seen.members.insert(member.clone(), name.clone()) {
            None => members.push(index),
            Some(other) if other == *name => return wrong("is there twice".to_owned()),
            Some(other) => return wrong(format!("is a disk of the array {other}")),
        }
    }
    let first = &disks[members[0]];
    let geometry = keys.geometry.as_ref();
    for disk in members.iter().map(|index| &disks[*index]) {
        may_be_member(disk, first, name, geometry.is_some())?;
    }
    for (key, problem) in [
        (
            "level",
            "a server keeps no parity and no copies; allowed is \"raid0\", and with geometry \"raid5\"",
        ),
        ("reads", "is for scenarios; leave it out"),
        ("bus", "is for scenarios; leave it out"),
        ("coordinate", "a server takes true or false, no list"),
    ] {
        let is_wrong = match key {
            "level" => match geometry {
                None => spec.level != Level::Raid0,
                Some(_) => spec.level == Level::Raid1,
            },
            "reads" => spec.reads != ReadFrom::Nearest,
            "bus" => spec.bus.is_some(),
            _ => spec.coordinate.0.len() > 1,
        };
        if is_wrong {
            return Err(keys.error_at(key, problem));
        }
    }
    if geometry.is_some() {
        for disk in members.iter().map(|index| &disks[*index]) {
            by_clients_alone(disk, first, name)?;
        }
    }
    if coordinates(spec) {
        for disk in members.iter().map(|index| &disks[*index]) {
            obeys(disk, first, name)?;
        }
    }
    let read_only = members.iter().any(|index| disks[*index].read_only);
    let exports = match geometry {
        None => exports(&keys, name, keys.export.as_ref(), read_only, seen)?,
        Some(_) => {
            let problem =
                "is for arrays without geometry; clients see the disks: give [[disk.export]]";
            if keys.export.is_some() {
                return Err(keys.error_at("export", problem));
            }
            Vec::new()
        }
    };
    Ok(ArrayConfig {
        name: name.clone(),
        spec: spec.clone(),
        geometry: geometry.map(|keys| read_geometry(keys, spec)).transpose()?,
        members,
        exports,
        at: keys.map(|_| ()),
    })
}

/// Returns true if the disks of an array are coordinated.
pub fn coordinates<M>(spec: &ArraySpec<M>) -> bool {
    spec.coordinate.0.contains(&true)
}

/// Checks a disk of an array that clients make.
fn by_clients_alone(disk: &DiskConfig, first: &DiskConfig, array: &str) -> Result<(), Error> {
    let of = format!(
        "{} is a disk of the array {array}, which has geometry",
        disk.name
    );
    if disk.read_only != first.read_only {
        let problem = format!("{of}; all its disks have this key alike");
        return Err(disk.at.error_at("read_only", problem));
    }
    let gate = disk.stack.engine.gate.info().name;
    if ["average", "mclock"].contains(&gate) {
        let problem = format!("{of}; `{gate}` divides rates over striped disks. Give another gate");
        return Err(disk.at.error_at("gate", problem));
    }
    Ok(())
}

/// Checks the layout of an array that clients make of the disks.
fn read_geometry(
    keys: &Placed<GeometryKeys>,
    spec: &ArraySpec<Vec<String>>,
) -> Result<GeometryConfig, Error> {
    if !coordinates(spec) {
        let problem = "is for coordinate = true; without it, serve the disks without [[array]]";
        return Err(keys.error(problem));
    }
    let disks = spec.members.len();
    let each = |key: &str, OneOrList(values): &OneOrList<Bytes>| match &values[..] {
        [one] => Ok(vec![*one; disks]),
        values if values.len() == disks => Ok(values.to_vec()),
        values => {
            let problem = format!(
                "{} sizes; allowed is one, or one for each of {disks} disks",
                values.len()
            );
            Err(keys.error_at(key, problem))
        }
    };
    let layout = keys.layout.unwrap_or(match spec.level {
        Level::Raid0 | Level::Raid1 => Layout::Alternate,
        Level::Raid5 => Layout::LeftSymmetric,
    });
    if (layout == Layout::LeftSymmetric) != (spec.level == Level::Raid5) {
        let problem =
            "allowed are \"alternate\" and \"original\" with raid0, \"left-symmetric\" with raid5";
        return Err(keys.error_at("layout", problem));
    }
    let size = keys.size.as_ref().map(|size| each("size", size));
    Ok(GeometryConfig {
        offsets: each("offset", &keys.offset)?,
        sizes: size.transpose()?,
        layout,
    })
}

/// Checks that a disk's scheduler obeys the coordinator. The coordinator has the options of the first disk's scheduler.
fn obeys(disk: &DiskConfig, first: &DiskConfig, array: &str) -> Result<(), Error> {
    let config = StreamConfig::of(&disk.stack.scheduler);
    if config.is_some() && config == StreamConfig::of(&first.stack.scheduler) {
        return Ok(());
    }
    let problem = match config {
        None => "obeys no coordinator; give `stream`".to_owned(),
        Some(_) => format!("has other options than at {}", first.name),
    };
    let problem = format!(
        "{} is a disk of the array {array}, which has coordinate = true; \"{}\" {problem}",
        disk.name, disk.stack.scheduler
    );
    Err(disk.at.error_at("scheduler", problem))
}

/// Checks that a disk can be one of an array whose first disk is `first`. `by_clients` is true if clients make the array.
fn may_be_member(
    disk: &DiskConfig,
    first: &DiskConfig,
    array: &str,
    by_clients: bool,
) -> Result<(), Error> {
    let of = format!("{} is a disk of the array {array}", disk.name);
    for (key, instead) in [
        ("export", "clients ask for the array: give [[array.export]]"),
        ("scrub", "serve the disk by itself, read-only, to scrub it"),
        ("sole_writer", "is for a scrub"),
    ] {
        if disk.at.has(key) && !(key == "export" && by_clients) {
            return Err(disk.at.error_at(key, format!("{of}; {instead}")));
        }
    }
    if disk.create && matches!(disk.backend, Backend::Device { .. }) {
        let instead = match by_clients {
            true => "make its file first, as with `truncate --size`",
            false => "`headtime array create --size` makes its file",
        };
        let problem = format!("{of}; {instead}");
        return Err(disk.at.error_at("create", problem));
    }
    let same = format!(
        "{of}, of which all have this key alike; {} differs",
        first.name
    );
    if disk.timeout != first.timeout {
        return Err(disk.at.error_at("timeout", same));
    }
    if disk.queue_timeout != first.queue_timeout {
        return Err(disk.at.error_at("queue_timeout", same));
    }
    // The depth may be the device's own.
    let engine = |of: &DiskConfig| {
        let mut entries = entries(&of.stack.engine);
        entries.retain(|(key, _)| key != "depth");
        entries
    };
    let (ours, firsts) = (engine(disk), engine(first));
    let mut both = ours.iter().chain(&firsts);
    match both.find(|entry| !(ours.contains(entry) && firsts.contains(entry))) {
        Some((key, _)) => Err(disk.at.error_at(key, same)),
        None => Ok(()),
    }
}
