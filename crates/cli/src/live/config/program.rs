//! The sections of programs with goals.

use super::disk::disk_name;
use super::sections::{ArrayConfig, DiskConfig, ExportConfig, ProgramConfig};
use headtime_config::{Error, OneOrList, Placed, parse};
use headtime_engine::GateSpec;
use headtime_qos::{Goal, p99};
use headtime_sched::Class;
use headtime_serve::goals::check_gate;
use headtime_units::{Nanos, nearest};
use serde::Deserialize;
use serde::de::Deserializer;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The keys of `[qos]`.
#[derive(Deserialize)]
pub(super) struct QosKeys {
    program: Option<OneOrList<Placed<ProgramKeys>>>,
}

/// The keys of `[[qos.program]]`.
#[derive(Clone, Deserialize)]
struct ProgramKeys {
    #[serde(deserialize_with = "disk_name")]
    name: String,
    exports: Option<Vec<String>>,
    #[serde(default, deserialize_with = "goal")]
    goal: Option<Goal>,
    profile: Option<PathBuf>,
    tree: Option<PathBuf>,
    #[serde(default, deserialize_with = "promise")]
    p99: Option<Nanos>,
}

fn promise<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Nanos>, D::Error> {
    parse(from, "a time, such as \"200ms\"", |text| {
        p99(text).map(Some)
    })
}

fn goal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Goal>, D::Error> {
    parse(
        from,
        "a goal, such as \"110s\", \"2.5x\" or \"by 06:00\"",
        |text| text.parse().map(Some),
    )
}

/// A disk or an array whose exports programs may have.
pub(super) struct Place<'a> {
    exports: &'a mut [ExportConfig],
    gate: &'a GateSpec,
    /// Disk that errors about the gate name.
    disk: &'a Placed<()>,
    name: &'a str,
}

/// Checks programs, and numbers their exports from 1 on.
pub(super) fn programs(
    keys: &Placed<QosKeys>,
    disks: &mut [DiskConfig],
    arrays: &mut [ArrayConfig],
) -> Result<Vec<ProgramConfig>, Error> {
    // An array's gate is its first disk's gate, since all its disks have the same gate.
    let of_arrays: Vec<(GateSpec, Placed<()>)> = arrays
        .iter()
        .map(|array| {
            let first = &disks[array.members[0]];
            (first.stack.engine.gate.clone(), first.at.clone())
        })
        .collect();
    let alone = disks.iter_mut().filter(|disk| !disk.exports.is_empty());
    let alone = alone.map(|disk| Place {
        exports: &mut disk.exports,
        gate: &disk.stack.engine.gate,
        disk: &disk.at,
        name: &disk.name,
    });
    let of_arrays = arrays.iter_mut().zip(&of_arrays);
    let of_arrays = of_arrays.map(|(array, (gate, disk))| Place {
        exports: &mut array.exports,
        gate,
        disk,
        name: &array.name,
    });
    let mut places: Vec<Place<'_>> = alone.chain(of_arrays).collect();
    let read = listed(keys, Some(&mut places))?;
    gates(&places, read.len())?;
    Ok(read)
}

/// Checks programs. Without places, their exports are on other servers.
pub(super) fn listed(
    keys: &Placed<QosKeys>,
    mut places: Option<&mut [Place<'_>]>,
) -> Result<Vec<ProgramConfig>, Error> {
    let Some(OneOrList(programs)) = &keys.program else {
        return Err(keys.error_at("program", "missing; give at least one [[qos.program]]"));
    };
    if programs.is_empty() {
        return Err(keys.error_at("program", "is an empty list; give at least one"));
    }
    let mut names = BTreeMap::new();
    let mut read = Vec::with_capacity(programs.len());
    for (number, program) in (1..).zip(programs) {
        super::seen::once(
            &mut names,
            program.name.clone(),
            program,
            "name",
            &format!("there is a program \"{}\" already", program.name),
        )?;
        let exports = program.exports.as_deref();
        match (exports, &mut places) {
            (Some(exports), Some(places)) => {
                number_exports(program, exports, number, places, &read)?
            }
            (None, Some(_)) => return Err(program.error_at("exports", "missing")),
            (Some(_), None) => {
                let problem = "is for servers, whose configurations name the exports of this program; remove the key";
                return Err(program.error_at("exports", problem));
            }
            (None, None) => {}
        }
        read.push(one(program, exports.unwrap_or_default())?);
    }
    Ok(read)
}

/// Gives the exports of a program its number.
fn number_exports(
    program: &Placed<ProgramKeys>,
    exports: &[String],
    number: u16,
    places: &mut [Place<'_>],
    before: &[ProgramConfig],
) -> Result<(), Error> {
    if exports.is_empty() {
        return Err(program.error_at("exports", "is an empty list; give at least one"));
    }
    for name in exports {
        let wrong = |problem: String| program.error_at("exports", format!("{name}: {problem}"));
        let mut exports = places.iter_mut().flat_map(|place| place.exports.iter_mut());
        let Some(export) = exports.find(|export| export.name == *name) else {
            let names = places.iter().flat_map(|place| place.exports.iter());
            let guess = nearest(name, names.map(|export| export.name.as_str()));
            let guess = guess.map_or(String::new(), |guess| {
                format!("; did you mean \"{guess}\"?")
            });
            return Err(wrong(format!("there is no export of this name{guess}")));
        };
        let key = match (
            program.goal.is_some() || program.profile.is_some(),
            program.p99,
        ) {
            (true, _) => Some("goal"),
            (false, Some(_)) => Some("p99"),
            (false, None) => None,
        };
        if let (Class::REAL_TIME, Some(key)) = (export.class, key) {
            return Err(wrong(format!(
                "has the class real-time, whose requests wait for no window; give the export another class, or the program no {key}"
            )));
        }
        match export.program {
            0 => export.program = number,
            own if own == number => return Err(wrong("is there twice".to_owned())),
            other => {
                let other = &before[usize::from(other) - 1].name;
                return Err(wrong(format!(
                    "is an export of the program {other} already"
                )));
            }
        }
    }
    Ok(())
}

fn one(program: &Placed<ProgramKeys>, exports: &[String]) -> Result<ProgramConfig, Error> {
    for (key, needs) in [
        ("goal", program.goal.is_some()),
        ("tree", program.tree.is_some()),
    ] {
        if needs && program.profile.is_none() {
            let problem = format!(
                "takes profile = \"FILE\"; `headtime control SOCKET qos profile {} start` records one",
                program.name
            );
            return Err(program.error_at(key, problem));
        }
    }
    if program.p99.is_some() && program.profile.is_some() {
        let problem = "is for programs without a goal; leave out p99, or profile and goal";
        return Err(program.error_at("p99", problem));
    }
    Ok(ProgramConfig {
        name: program.name.clone(),
        exports: exports.to_vec(),
        goal: program.goal,
        profile: program.profile.clone(),
        tree: program.tree.clone(),
        p99: program.p99,
        at: program.clone().map(|_| ()),
    })
}

/// Checks the gates of disks with programs.
fn gates(places: &[Place<'_>], programs: usize) -> Result<(), Error> {
    let with_programs = |place: &&Place<'_>| place.exports.iter().any(|export| export.program > 0);
    let mut texts: BTreeSet<String> = BTreeSet::new();
    for place in places.iter().filter(with_programs) {
        let (gate, name) = (place.gate, place.name);
        let wrong = |problem: String| {
            Err(place
                .disk
                .error_at("gate", format!("programs share {name}; {problem}")))
        };
        check_gate(gate, programs).or_else(wrong)?;
        texts.insert(gate.to_string());
        if texts.len() > 1 {
            let texts: Vec<String> = texts.into_iter().collect();
            return wrong(format!(
                "all disks with programs have the same gate, and not {}",
                texts.join(" and ")
            ));
        }
    }
    Ok(())
}
