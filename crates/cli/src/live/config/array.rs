//! The section of an array.

use super::disk::{ExportKeys, disk_name, exports};
use super::sections::{ArrayConfig, Backend, DiskConfig};
use super::seen::{Seen, once};
use headtime_config::{Error, OneOrList, Placed};
use headtime_sched::StreamConfig;
use headtime_stack::{ArraySpec, Level, entries};
use headtime_units::nearest;
use serde::Deserialize;

/// The keys of `[[array]]`.
#[derive(Deserialize)]
pub(super) struct ArrayKeys {
    #[serde(deserialize_with = "disk_name")]
    name: String,
    export: Option<OneOrList<Placed<ExportKeys>>>,
    #[serde(rename = "+array")]
    spec: ArraySpec<Vec<String>>,
}

impl ArrayKeys {
    /// Names of the disks. Such disks need not exist.
    pub fn members(&self) -> &[String] {
        &self.spec.members
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
                "there is no [[disk]] of this name{}",
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
    for disk in members.iter().map(|index| &disks[*index]) {
        may_be_member(disk, first, name)?;
    }
    for (key, problem) in [
        (
            "level",
            "\"raid5\" is for scenarios; a server keeps no parity, so it serves \"raid0\"",
        ),
        ("bus", "is for scenarios; leave it out"),
        ("coordinate", "a server takes true or false, no list"),
    ] {
        let is_wrong = match key {
            "level" => spec.level != Level::Raid0,
            "bus" => spec.bus.is_some(),
            _ => spec.coordinate.0.len() > 1,
        };
        if is_wrong {
            return Err(keys.error_at(key, problem));
        }
    }
    if coordinates(spec) {
        for disk in members.iter().map(|index| &disks[*index]) {
            obeys(disk, first, name)?;
        }
    }
    let read_only = members.iter().any(|index| disks[*index].read_only);
    Ok(ArrayConfig {
        name: name.clone(),
        spec: spec.clone(),
        members,
        exports: exports(&keys, name, keys.export.as_ref(), read_only, seen)?,
        at: keys.map(|_| ()),
    })
}

/// Returns true if the disks of an array are coordinated.
pub fn coordinates<M>(spec: &ArraySpec<M>) -> bool {
    spec.coordinate.0.contains(&true)
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

/// Checks that a disk can be one of an array whose first disk is `first`.
fn may_be_member(disk: &DiskConfig, first: &DiskConfig, array: &str) -> Result<(), Error> {
    let of = format!("{} is a disk of the array {array}", disk.name);
    for (key, instead) in [
        ("export", "clients ask for the array: give [[array.export]]"),
        ("scrub", "serve the disk by itself, read-only, to scrub it"),
        ("sole_writer", "is for a scrub"),
    ] {
        if disk.at.has(key) {
            return Err(disk.at.error_at(key, format!("{of}; {instead}")));
        }
    }
    if disk.create && matches!(disk.backend, Backend::Device { .. }) {
        let problem = format!("{of}; `headtime array create --size` makes its file");
        return Err(disk.at.error_at("create", problem));
    }
    let same = format!(
        "{of}, of which all have this key alike; {} differs",
        first.name
    );
    if disk.timeout != first.timeout {
        return Err(disk.at.error_at("timeout", same));
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
