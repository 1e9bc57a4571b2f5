//! The command `headtime`, as a library that can be tested.
//!
//! Code that another program could use is in other crates. This is the only crate that prints.

mod advice;
pub mod args;
pub mod commands;
mod file_identity;
pub mod live;
mod object;
pub mod plot;
mod progress;
