//! A probe that can be told to stop.

use crate::{Layer, Probe, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Time};

/// A probe that sends nothing more once `stop` returns true. Before each command, `stop` is called with the time. Commands in the drive are
/// still answered, and switches can still be restored.
pub struct Stopping<'a> {
    probe: &'a mut dyn Probe,
    stop: &'a mut dyn FnMut(Time) -> bool,
}

impl<'a> Stopping<'a> {
    pub fn new(probe: &'a mut dyn Probe, stop: &'a mut dyn FnMut(Time) -> bool) -> Stopping<'a> {
        Stopping { probe, stop }
    }
}

impl std::fmt::Debug for Stopping<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopping").finish_non_exhaustive()
    }
}

impl Layer for Stopping<'_> {
    fn under(&self) -> &dyn Probe {
        self.probe
    }

    fn under_mut(&mut self) -> &mut dyn Probe {
        self.probe
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        let now = self.probe.now();
        if (self.stop)(now) {
            return Err(ProbeError::Stopped);
        }
        self.probe.send(tag, op, extent)
    }
}
