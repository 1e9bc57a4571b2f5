//! The drive as a whole.

mod account;
mod behaviour;
mod common;
mod destage;
mod drawn;
mod faults;
mod partial;
mod policies;
mod promises;
mod second;
mod switches;
mod written;
