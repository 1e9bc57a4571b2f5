//! Learns properties of a drive from timed reads alone.
//!
//! A [`Probe`] is anything that can be read and timed: a simulated drive ([`Modelled`]), or a device. This crate knows only a drive's size
//! and the times of its answers. All that it learns from a model it can learn from a real drive in the same way.
//!
//! The crate learns the service time of a request as a function of its distance ([`curve`]). A scheduler needs this curve to compare
//! waiting for a near request with going to a far request. The crate also learns a whole profile ([`extract`]). With a profile, a scheduler
//! predicts the future position of the head.
//!
//! The crate contains no access to files (texts come in and go out) and no access to the machine's clock, which is the probe's business.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod check;
pub mod curve;
pub mod extract;
mod guarded;
mod interface;
mod layer;
mod modelled;
mod period;
pub mod quick;
pub mod random;
mod stopping;

pub use curve::{CurveOptions, LearnError, Learned, curve_of, learn};
pub use guarded::Guarded;
pub use interface::{Answer, Probe, ProbeError, Switch};
pub use layer::Layer;
pub use modelled::Modelled;
pub use quick::{Obstacle, Quick, QuickOptions};
pub use stopping::Stopping;
