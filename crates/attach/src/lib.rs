//! A served disk on this machine: as a file through FUSE ([`fuse`]), and the file as a block device ([`loopdev`]).
//!
//! The crate leaves the disk itself to `headtime-serve`, and arguments and printing to its callers.

pub mod fuse;
pub mod loopdev;
