//! The command as people and scripts meet it: exit code, standard output, standard error.
//!
//! The snapshots hold words, not simulated results; those belong to the crates that make them.
//! `INSTA_UPDATE=always cargo test -p headtime-cli` writes them anew.

#[path = "cli/arrays.rs"]
mod arrays;
#[path = "cli/bound.rs"]
mod bound;
#[path = "cli/cluster.rs"]
mod cluster;
#[path = "cli/common.rs"]
mod common;
#[path = "cli/curve.rs"]
mod curve;
#[path = "cli/documentation.rs"]
mod documentation;
#[path = "cli/drives.rs"]
mod drives;
#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/freeblock.rs"]
mod freeblock;
#[path = "cli/goals.rs"]
mod goals;
#[path = "cli/guests.rs"]
mod guests;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/invariants.rs"]
mod invariants;
#[path = "cli/logs.rs"]
mod logs;
#[path = "cli/new.rs"]
mod new;
#[path = "cli/numbers.rs"]
mod numbers;
#[path = "cli/pictures.rs"]
mod pictures;
#[path = "cli/printed.rs"]
mod printed;
#[path = "cli/probe.rs"]
mod probe;
#[path = "cli/probe_whole.rs"]
mod probe_whole;
#[path = "cli/qos.rs"]
mod qos;
#[path = "cli/report.rs"]
mod report;
#[path = "cli/reproduce.rs"]
mod reproduce;
#[path = "cli/requests.rs"]
mod requests;
#[path = "cli/results.rs"]
mod results;
#[path = "cli/sweep.rs"]
mod sweep;
#[path = "cli/sweep_resume.rs"]
mod sweep_resume;
#[path = "cli/sweep_wrong.rs"]
mod sweep_wrong;
#[path = "cli/sweeps.rs"]
mod sweeps;
#[path = "cli/sweeps_shipped.rs"]
mod sweeps_shipped;
#[path = "cli/traces.rs"]
mod traces;
