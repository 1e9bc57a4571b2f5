//! Learns properties of a drive from timed reads alone.
//!
//! A [`Probe`] is anything that can be read and timed: a simulated drive ([`Modelled`]), or a
//! device. This crate knows only a drive's size and the times of its answers. So everything that it
//! learns from a model it can learn from the drive in the same way. So far it learns the service
//! time of a request by its distance ([`curve`]). A scheduler needs that curve to weigh waiting for
//! a near request against going to a far one.
//!
//! What is not here: files (texts come in and go out), and the clock of the machine, which is the
//! business of a probe.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod curve;
mod modelled;
mod random;

pub use curve::{CurveOptions, LearnError, Learned, curve_of, learn};
pub use modelled::Modelled;

use headtime_units::{Extent, Nanos, Sectors};

/// Something that can be read and timed.
pub trait Probe {
    /// What it is called, for the provenance of what is learned.
    fn name(&self) -> String;

    fn capacity(&self) -> Sectors;

    fn sector_bytes(&self) -> u32;

    /// Reads sectors, past any cache of the host's, and says how long that took: from sending the
    /// command to having its data.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    ///
    /// # Panics
    ///
    /// May panic if the extent is empty or leaves the disk.
    fn read(&mut self, extent: Extent) -> Result<Nanos, ProbeError>;

    /// Lets so much time pass without a command.
    fn pause(&mut self, span: Nanos);
}

/// Why a read could not be timed.
#[derive(Debug, thiserror::Error)]
#[error("reading sectors {extent}: {source}")]
pub struct ProbeError {
    pub extent: Extent,
    /// What the drive or the system said.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}
