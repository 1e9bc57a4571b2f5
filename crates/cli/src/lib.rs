//! The command `headtime`, as a library that can be tested.
//!
//! What is not here: anything that another program would want. This is the only crate that prints.

mod apart;
pub mod args;
pub mod batch;
pub mod clock;
pub mod commands;
#[cfg(test)]
mod damage;
pub mod execute;
pub mod fault;
pub mod figure;
pub mod files;
pub mod fio;
mod hash;
pub mod live;
pub mod output;
pub mod plot;
pub mod prepare;
pub mod progress;
pub mod report;
pub mod scenario;
pub mod stock;
pub mod sweep;
