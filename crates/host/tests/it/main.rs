//! The host before a disk.

mod disk;
mod reads;
mod world;
