//! The drive as a whole.

mod behaviour;
mod common;
mod written;
