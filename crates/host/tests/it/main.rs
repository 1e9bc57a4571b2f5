//! The host before a disk.

mod ahead;
mod cluster;
mod disk;
mod errors;
mod guests;
mod processes;
mod properties;
mod reads;
mod world;
mod writes;
