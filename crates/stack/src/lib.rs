//! The stack below whoever asks for sectors: engine, scheduler, drive, and what the scheduler
//! believes of the drive.
//!
//! Each part is described by a struct whose fields are the keys that people write
//! ([`Simulated`], [`Believed`], and the engine's [`EngineSpec`](headtime_engine::EngineSpec)), and is
//! built from that description here. `sim run`, `sweep`, `serve` and `sim replay-log` differ only in
//! where the description comes from: a scenario, a server's configuration, a log.
//!
//! The crate reads the files that a description names. It writes none.

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

pub use array::{ArrayMembers, ArraySpec, Level};
pub use believed::{Beliefs, Believed, Known, Source};
pub use builder::{Builder, asks_for_arm};
pub use describe::{Stack, entries};
pub use error::{StackError, Unbuilt};
pub use log::LogSettings;
pub use scan::{ScanError, ScanSpec, Work};
pub use simulated::{Firmware, Simulated, changed, with_firmware};
pub use timeout::Timeout;
