//! A probe that can be told to stop.

use crate::{Layer, Probe, ProbeError};
use headtime_sched::Op;
use headtime_units::{Extent, Time};

/// A probe that sends nothing more once `stop` returns true, which is asked with the time before each
/// command. What was sent is answered, and switches can still be put back.
pub struct Stopping<'a, P: Probe> {
    probe: &'a mut P,
    stop: &'a mut dyn FnMut(Time) -> bool,
}

impl<'a, P: Probe> Stopping<'a, P> {
    pub fn new(probe: &'a mut P, stop: &'a mut dyn FnMut(Time) -> bool) -> Stopping<'a, P> {
        Stopping { probe, stop }
    }
}

impl<P: Probe> std::fmt::Debug for Stopping<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopping").finish_non_exhaustive()
    }
}

impl<P: Probe> Layer for Stopping<'_, P> {
    type Under = P;

    fn under(&self) -> &P {
        self.probe
    }

    fn under_mut(&mut self) -> &mut P {
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
