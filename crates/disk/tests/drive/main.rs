//! The drive as a whole.

mod account;
mod behaviour;
mod common;
mod faults;
mod partial;
mod written;
