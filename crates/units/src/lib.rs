//! Units of the disk world.
//!
//! Points and spans are different types: [`Time`] − [`Time`] is a [`Nanos`], [`Lba`] + [`Sectors`]
//! is an [`Lba`], and a point plus a point does not compile. Everything is an integer; floats
//! appear only where a profile or a statistic needs them. Two helpers for messages are here too:
//! [`nearest`] finds the name that was meant, and [`shown`] makes text from elsewhere safe to print.
//!
//! There is no clock. The crate is `no_std` and has no dependencies, so that nothing built on it can ask
//! what time it is.

#![no_std]
#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

mod address;
mod angle;
#[cfg(feature = "serde")]
pub mod as_text;
mod nearest;
mod percent;
mod rate;
pub mod shown;
mod signed;
mod text;
mod time;

pub use address::{Cylinder, Extent, Head, Lba, Sectors, Track};
pub use angle::Angle;
pub use nearest::nearest;
pub use percent::{MorePercent, ParseMorePercentError};
pub use rate::Rate;
pub use signed::SignedNanos;
pub use text::{Bytes, Millionths, ParseUnitError};
pub use time::{Nanos, Time};
