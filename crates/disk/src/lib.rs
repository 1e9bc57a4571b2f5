//! A model of a hard disk.
//!
//! A [`Profile`] describes a drive. A profile is read from TOML and checked, so that nothing built on it
//! can fail. [`Layout`] says where each sector is. [`Mechanics`] says how long the arm and the
//! platter take to reach it. Both are pure: time and the state of the arm are arguments. [`Drive`]
//! is the disk as a whole, with buffer, bus and queue.
//!
//! This crate has no clock, does no I/O, and does not know its clients.

#![warn(missing_docs)]

pub mod datasheet;
pub mod layout;
pub mod mechanics;
mod passing;
mod positioning;
pub mod profile;

mod cache;
mod dirty;
pub mod drive;
pub mod ledger;
mod queue;
mod twin;
pub mod validate;

pub use datasheet::{Capacity, Datasheet, SectorFormat, SheetError};
pub use layout::{Layout, Place, Run};
pub use mechanics::{Access, Mechanics, Step};
pub use positioning::{Model, ModelPlace};
pub use profile::{Profile, ProfileError, Spec};

pub use drive::{Breakdown, Command, Completion, Drive, Fault, Hit, MediumError};
pub use ledger::{HeadTime, Part, Span};
pub use validate::{Measured, TraceError, Validation};
