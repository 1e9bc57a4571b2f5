//! A probe that can be told to stop.

use crate::{Answer, Probe, ProbeError, Switch};
use headtime_sched::Op;
use headtime_units::{Extent, Nanos, Sectors, Time};

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

impl<P: Probe> Probe for Stopping<'_, P> {
    fn name(&self) -> String {
        self.probe.name()
    }

    fn capacity(&self) -> Sectors {
        self.probe.capacity()
    }

    fn sector_bytes(&self) -> u32 {
        self.probe.sector_bytes()
    }

    fn depth(&self) -> u16 {
        self.probe.depth()
    }

    fn now(&mut self) -> Time {
        self.probe.now()
    }

    fn send(&mut self, tag: u16, op: Op, extent: Extent) -> Result<(), ProbeError> {
        let now = self.probe.now();
        if (self.stop)(now) {
            return Err(ProbeError::Stopped);
        }
        self.probe.send(tag, op, extent)
    }

    fn answer(&mut self) -> Result<Answer, ProbeError> {
        self.probe.answer()
    }

    fn pause(&mut self, span: Nanos) {
        self.probe.pause(span);
    }

    fn switch(&mut self, which: Switch) -> Option<bool> {
        self.probe.switch(which)
    }

    fn set(&mut self, which: Switch, on: bool) -> Result<(), ProbeError> {
        self.probe.set(which, on)
    }
}
