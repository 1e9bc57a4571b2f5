//! A served disk on this machine: as a file through FUSE ([`fuse`]), and that file as a block device
//! ([`loopdev`]).
//!
//! What is not here: the disk itself (`headtime-serve`), arguments, printing.

pub mod fuse;
pub mod loopdev;
