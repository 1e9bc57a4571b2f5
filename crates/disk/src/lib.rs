//! A model of a hard disk.
//!
//! A [`Profile`] describes a drive. A profile is read from TOML and checked, so that nothing built on it
//! can fail. [`Layout`] says where each sector is. [`Mechanics`] says how long the arm and the
//! platter take to reach it. Both are pure: time and the state of the arm are arguments. [`Drive`]
//! is the disk as a whole, with buffer, bus and queue.
//!
//! This crate has no clock, does no I/O, and does not know its clients. A simulator with virtual time can therefore own a drive:
//!
//! ```
//! use headtime_disk::{Capacity, Command, Datasheet, Drive};
//! use headtime_sched::Op;
//! use headtime_units::{Bytes, Extent, Nanos, Time};
//!
//! let sheet = Datasheet {
//!     name: "mine".to_owned(),
//!     capacity: Capacity::Nominal(Bytes(4_000_000_000_000)),
//!     rpm: 7_200.0,
//!     seek: Nanos::from_micros(8_500),
//!     rate: 180_000_000,
//!     cache: Bytes(64 << 20),
//!     // The sheet does not have these.
//!     model: None,
//!     sector: None,
//!     seek_write: None,
//!     track: None,
//!     track_write: None,
//!     maximum: None,
//!     maximum_write: None,
//!     rate_inner: None,
//!     heads: None,
//!     queue: None,
//!     interface: None,
//! };
//! let profile = sheet.profile()?;
//! let mut drive = Drive::new(&profile, 1);
//! for tag in 0..4 {
//!     let extent = Extent::at(1_000_000 * u64::from(tag), 8);
//!     drive.submit(Time::ZERO, Command { tag, op: Op::Read, extent, fua: false, high: false });
//! }
//! let mut done = Vec::new();
//! while let Some(now) = drive.next_event() {
//!     while let Some(completion) = drive.poll(now) {
//!         done.push(completion.tag);
//!     }
//! }
//! done.sort_unstable();
//! assert_eq!(done, [0, 1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The example `deterministic` has two clients on a profile that comes with Headtime.

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
