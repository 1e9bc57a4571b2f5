//! Tests of a disk as a file, with common programs.

mod common;
mod file;
mod loops;
mod memory;
