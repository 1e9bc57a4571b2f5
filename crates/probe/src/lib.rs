//! Learns properties of a drive from timed reads alone.
//!
//! A [`Probe`] is anything that can be read and timed: a simulated drive ([`Modelled`]), or a
//! device. This crate knows only a drive's size and the times of its answers. So everything that it
//! learns from a model it can learn from the drive in the same way. It learns the service
//! time of a request by its distance ([`curve`]), which a scheduler needs to weigh waiting for
//! a near request against going to a far one. And it learns a whole profile ([`extract`]), by which
//! a scheduler predicts where the head will be.
//!
//! What is not here: files (texts come in and go out), and the clock of the machine, which is the
//! business of a probe.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod accuracy;
pub mod curve;
pub mod extract;
mod guarded;
mod interface;
mod layer;
mod modelled;
mod period;
pub mod quick;
mod random;
mod stopping;

pub use curve::{CurveOptions, LearnError, Learned, curve_of, learn};
pub use guarded::Guarded;
pub use interface::{Answer, Probe, ProbeError, Switch};
pub use layer::Layer;
pub use modelled::Modelled;
pub use quick::{Obstacle, Quick, QuickOptions};
pub use stopping::Stopping;
