//! The stack below the clients: engine, scheduler, drive, and the drive's profile that the scheduler assumes.
//!
//! A struct describes each part ([`Simulated`], [`Believed`], and the engine's
//! [`EngineSpec`](headtime_engine::EngineSpec)). The fields of the struct are keys in configuration files. This crate
//! builds the part from the description. `sim run`, `sweep`, `serve` and `sim replay-log` differ only in the source of
//! the description: a scenario, a server's configuration, or a log.
//!
//! The crate reads the files that a description names. It writes no files.

mod array;
mod believed;
mod builder;
mod describe;
pub mod drives;
mod error;
mod log;
mod scan;
mod simulated;
mod timeout;
mod words;

pub use array::{ArrayMembers, ArraySpec, Level};
pub use believed::{Beliefs, Believed, Known, Source};
pub use builder::{Builder, asks_for_arm};
pub use describe::{Stack, entries};
pub use error::{StackError, Unbuilt};
pub use log::LogSettings;
pub use scan::{ScanError, ScanSpec, Work};
pub use simulated::{Firmware, Simulated, changed, with_firmware};
pub use timeout::Timeout;
