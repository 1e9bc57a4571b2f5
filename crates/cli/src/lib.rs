//! The command `headtime`, as a library that can be tested.
//!
//! What is not here: anything that another program would want. This is the only crate that prints.

mod apart;
pub mod args;
pub mod commands;
pub mod live;
mod object;
pub mod plot;
mod progress;
