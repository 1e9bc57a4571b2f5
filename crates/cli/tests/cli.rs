//! The command as people and scripts meet it: exit code, standard output, standard error.
//!
//! The snapshots hold words, not simulated results; those belong to the crates that make them.
//! `INSTA_UPDATE=always cargo test -p headtime-cli` writes them anew.

#[path = "cli/common.rs"]
mod common;
#[path = "cli/curve.rs"]
mod curve;
#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/reproduce.rs"]
mod reproduce;
#[path = "cli/results.rs"]
mod results;
