//! The wall clock: what this machine needed, which is never part of what was simulated.

#![expect(
    clippy::disallowed_types,
    reason = "measures the host, never the simulation"
)]

use std::time::Instant;

/// Time since it was started.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Begins now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Seconds since it was started.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
