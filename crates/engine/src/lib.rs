//! The driver's half of a disk scheduler.
//!
//! The [`Engine`] stands between clients and the drive. The engine merges requests that touch, keeps overlapping
//! requests in order, lets no request pass a flush, and hands out the drive's tags. The engine's
//! [`Scheduler`](headtime_sched::Scheduler) chooses the next request. The engine is a function of (time, event): the
//! same events at the same times give the same commands. [`log::replay`] checks this.
//!
//! # The loop
//!
//! A simulator and a live server drive the engine in the same way, with [`Core`] around it:
//!
//! ```text
//! loop {
//!     let (now, event) = next();              // an arrival, a completion, or the time waited for
//!     engine.handle(now, event);
//!     while let Some(command) = engine.poll(now) { .. }
//!     // sleep until engine.next_wakeup() or the next event
//! }
//! ```
//!
//! The crate contains no clock, no I/O and no disk. Time is an argument.

#![warn(missing_docs)]

pub mod audit;
pub mod conduct;
pub mod log;

mod config;
mod core;
mod delays;
mod engine;
mod event;
mod few;
mod fields;
mod gate;
mod in_drive;
mod lane;
pub mod limit;
mod map;
mod merge;
mod names;
mod order;
mod predictions;
mod shared;
pub mod shares;
mod slots;
mod spec;
mod tags;
mod timeouts;
mod volume;
mod world;

pub use self::core::{Core, Due, earliest};
pub use config::{Config, ConfigError, Issue, Plug};
pub use delays::DelayCounts;
pub use engine::Engine;
pub use event::{Arrival, Command, Event, Finished, Join, Outcome, Seen, Stats};
pub use few::Few;
pub use gate::{
    CLASSES, FixedDepth, Gate, GateError, GateOrder, GateProblem, GateSpec, Gated, Gating,
    IoLatency, Lane, LaneState, Lanes, Next, Queueing, Rsd, RsdPriority, class_index, gates,
};
pub use map::{Added, Concat, MEMBERS_MAX, Map, MapError, Member, ReadFrom, Striped};
pub use names::{DriveTag, RequestId};
pub use predictions::{PredictionCounts, Predictions};
pub use shared::SharedCell;
pub use spec::{EngineSpec, KeyError};
pub use volume::Part;
pub use world::{
    Approach, Asked, Background, BackgroundLayer, Broken, Done, GaveUp, Late, Order, World,
};
