//! Virtual machines in scenarios.

use super::common::{ended, json, scratch, stdout};
use std::collections::BTreeSet;

/// Arguments for two readers on a number of guests. Processes are not hidden.
fn guests<'a>(count: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    let settings = [
        count,
        "engine.hide_processes=false",
        "program.processes=2",
        "program.gap=20GB",
        "program.scale=0.002",
    ];
    let mut args = vec!["sim", "run", "--example", "par-read", "--scheduler", "cfq"];
    args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    args.extend(further);
    args
}

#[test]
fn each_guest_runs_all_programs_and_is_one_process_to_the_scheduler() {
    let run = &json(&guests("host.guests=3", &["--format", "json"]))["runs"][0];
    let programs = run["programs"].as_array().unwrap();
    let names: Vec<&str> = programs
        .iter()
        .map(|program| program["name"].as_str().unwrap())
        .collect();
    let expected =
        (1..=3).flat_map(|guest| [1, 2].map(|at| format!("guest {guest}: par-read {at}")));
    assert_eq!(names, expected.collect::<Vec<_>>());
    let read: BTreeSet<String> = programs
        .iter()
        .map(|program| program["read_mb"].to_string())
        .collect();
    assert_eq!(read.len(), 1, "{read:?}");
    assert!(run["bound"].is_null());
    let origins = run["per_origin"].as_array().unwrap().iter();
    let origins: BTreeSet<(u64, u64)> = origins
        .map(|origin| {
            let number = |key| origin[key].as_u64().unwrap();
            (number("process"), number("program"))
        })
        .collect();
    let expected = [(1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (3, 6)];
    assert_eq!(origins, BTreeSet::from(expected));
}

#[test]
fn one_guest_keeps_the_names_of_programs() {
    let run = &json(&guests("host.guests=1", &["--format", "json"]))["runs"][0];
    assert_eq!(run["programs"][1]["name"], "par-read 2");
    assert!(run["bound"].is_null());
}

#[test]
fn a_log_of_guests_repeats() {
    let log = scratch("guests-log").join("guests.log");
    let log = log.to_str().unwrap();
    stdout(&guests("host.guests=2", &["--log", log]));
    let replayed = stdout(&["sim", "replay-log", log]);
    assert_eq!(replayed.matches("identical").count(), 1, "{replayed}");
}

#[test]
fn guests_on_an_array_share_all_disks() {
    let args = guests(
        "host.guests=2",
        &["--set", "array.members=2", "--format", "json"],
    );
    let run = &json(&args)["runs"][0];
    let issued = |member: usize| run["members"][member]["issued"].as_u64().unwrap();
    assert!(issued(0) > 10 && issued(1) > 10);
    assert_eq!(run["programs"].as_array().unwrap().len(), 4);
}

#[test]
fn a_part_that_is_too_small_is_refused_with_its_size() {
    let (code, error) = ended(&guests("host.guests=25", &["--set", "program.gap=50GB"]));
    assert_eq!(code, 3, "{error}");
    let expected = "host.guests: each of 25 guests has ";
    assert!(error.contains(expected), "{error}");
    assert!(
        error.contains("fewer guests have more: program: par-read"),
        "{error}"
    );
}
