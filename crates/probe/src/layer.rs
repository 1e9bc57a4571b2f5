//! A probe over another probe.

use crate::{Answer, Probe, ProbeError, Switch};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};

/// A probe over another probe that changes or observes some of the calls.
///
/// Methods that an implementation leaves out go to the probe below. The name and size of the drive always come from there. Bring this trait
/// into scope only where a layer is written, since its methods have the names of [`Probe`]'s.
pub trait Layer {
    /// Probe below this layer.
    fn under(&self) -> &dyn Probe;

    /// Probe below this layer, for commands.
    fn under_mut(&mut self) -> &mut dyn Probe;

    /// See [`Probe::depth`].
    fn depth(&self) -> u16 {
        self.under().depth()
    }

    /// See [`Probe::now`].
    fn now(&mut self) -> Time {
        self.under_mut().now()
    }

    /// See [`Probe::send`].
    ///
    /// # Errors
    ///
    /// As [`Probe::send`].
    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        self.under_mut().send(tag, op, extent)
    }

    /// See [`Probe::answer`].
    ///
    /// # Errors
    ///
    /// As [`Probe::answer`].
    fn answer(&mut self) -> Result<Answer, ProbeError> {
        self.under_mut().answer()
    }

    /// See [`Probe::pause`].
    fn pause(&mut self, span: Nanos) {
        self.under_mut().pause(span);
    }

    /// See [`Probe::switch`].
    fn switch(&mut self, which: Switch) -> Option<bool> {
        self.under_mut().switch(which)
    }

    /// See [`Probe::set`].
    ///
    /// # Errors
    ///
    /// As [`Probe::set`].
    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        self.under_mut().set(which, on)
    }
}

impl<L: Layer> Probe for L {
    fn name(&self) -> String {
        self.under().name()
    }

    fn capacity(&self) -> Sectors {
        self.under().capacity()
    }

    fn sector_bytes(&self) -> u32 {
        self.under().sector_bytes()
    }

    fn physical_bytes(&self) -> u32 {
        self.under().physical_bytes()
    }

    fn depth(&self) -> u16 {
        Layer::depth(self)
    }

    fn now(&mut self) -> Time {
        Layer::now(self)
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        Layer::send(self, tag, op, extent)
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        Layer::answer(self)
    }

    fn pause(&mut self, span: Nanos) {
        Layer::pause(self, span);
    }

    fn switch(&mut self, which: Switch) -> Option<bool> {
        Layer::switch(self, which)
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        Layer::set(self, which, on)
    }
}
