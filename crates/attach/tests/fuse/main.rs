//! A disk as a file, by the programs that people use.

mod common;
mod file;
mod loops;
mod memory;
