//! Experiments: scenarios read from TOML, simulated, summed up, swept and drawn up as a paper's figures.
//!
//! Arguments, printing, pictures and the live server are in the crate `cli`.

pub mod accuracy;
pub mod advice;
mod batch;
pub mod execute;
pub mod fault;
pub mod figure;
pub mod files;
pub mod fio;
pub mod hash;
pub mod output;
pub mod prepare;
pub mod progress;
pub mod report;
pub mod scenario;
pub mod stock;
pub mod sweep;
