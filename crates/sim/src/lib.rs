//! The simulated world: a virtual clock around the engine, a modelled drive and a workload.
//!
//! A run is a function of its [`Setup`]: the same setup gives the same [`Report`] and the same log,
//! byte for byte, on every machine.
//!
//! Policies, the disk model, files and printing are in other crates.

mod bus;
mod coalesce;
mod commands;
mod distribution;
pub mod fuzz;
mod measure;
mod world;

pub use coalesce::Coalesce;
pub use commands::{Commands, Counted};
pub use distribution::Distribution;
pub use measure::{Got, Measured, PerOrigin};
pub use world::{MemberReport, Observer, Report, RunError, Setup, Station, Watch, run};
