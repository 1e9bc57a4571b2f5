//! The emulated drive, driven with made-up times: nothing here sleeps or asks a clock.

mod host;
mod kill;
mod oracle;
mod power;
mod store;
mod time;
