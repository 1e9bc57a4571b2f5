//! Clusters in scenarios.

use super::common::{ended, json, scratch, stdout};

/// The example on three servers.
const CLUSTER: [&str; 15] = [
    "sim",
    "run",
    "goals.toml",
    "--set",
    "engine.gate=depth",
    "--set",
    "program.2.size=10GB",
    "--set",
    "cluster.servers=3",
    "--set",
    "program.0.size=20MB",
    "--set",
    "program.1.size=10MB",
    "--set",
    "program.1.phase=2MB",
];

/// Arguments in a directory with the example.
fn with(name: &str, further: &[&str]) -> Vec<String> {
    let directory = scratch(name);
    let path = directory.to_str().unwrap();
    stdout(&["generate", "examples", path]);
    let file = directory.join("goals.toml").to_str().unwrap().to_owned();
    let all = CLUSTER.iter().chain(further);
    all.map(|word| match *word {
        "goals.toml" => file.clone(),
        word => word.to_owned(),
    })
    .collect()
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn each_server_has_a_row_and_each_program_its_time_of_calls() {
    let args = with("cluster-rows", &["--format", "json"]);
    let run = &json(&borrowed(&args))["runs"][0];
    assert_eq!(run["members"].as_array().unwrap().len(), 3);
    assert!(run["bound"].is_null());
    let programs = run["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 3);
    for program in programs {
        let (io, ended) = (program["io_s"].as_f64(), program["ended_s"].as_f64());
        assert!(io > Some(0.0) && io <= ended, "{program}");
    }
    // Requests at the disks carry the number of the program that asked.
    let by_name = run["by_name"].as_array().unwrap();
    let backup = programs[2]["read_mb"].as_f64().unwrap();
    assert!(backup > 1.0);
    assert_eq!(by_name.len(), 3);
    assert!(
        by_name
            .iter()
            .all(|name| name["requests"].as_u64() > Some(10))
    );
}

#[test]
fn a_log_of_a_cluster_repeats_each_server() {
    let log = scratch("cluster-log").join("cluster.log");
    let log = log.to_str().unwrap();
    stdout(&borrowed(&with("cluster-logged", &["--log", log])));
    let replayed = stdout(&["sim", "replay-log", log]);
    assert_eq!(replayed.matches("identical").count(), 3, "{replayed}");
}

#[test]
fn one_server_is_one_disk() {
    let args = with(
        "cluster-one",
        &["--set", "cluster.servers=1", "--format", "json"],
    );
    let mut args = borrowed(&args);
    args.extend([
        "--set",
        "program.1.start=1GB",
        "--set",
        "program.2.size=1GB",
    ]);
    args.extend(["--set", "program.2.start=2GB"]);
    let run = &json(&args)["runs"][0];
    assert!(run.get("members").is_none());
    assert!(run["programs"][0]["io_s"].as_f64() > Some(0.0));
}

#[test]
fn rows_of_single_requests_are_refused_on_a_cluster() {
    let rows = scratch("cluster-rows-file").join("rows.csv");
    let args = with("cluster-requests", &["--requests", rows.to_str().unwrap()]);
    let (code, error) = ended(&borrowed(&args));
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("leave out [cluster]"), "{error}");
}
