//! The coordinator against a second implementation of its rule, and in random volumes with faults.

mod clients;
mod compare;
mod geometry;
mod second;
mod swarm;
mod volume;
