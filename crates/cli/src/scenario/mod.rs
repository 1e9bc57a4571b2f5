//! Scenarios.

pub mod tree;
