//! Tests of the engine from outside.

mod core;
mod counts;
mod crowded;
mod docs;
mod following;
mod gates;
mod held;
mod lanes;
mod lending;
mod merging;
mod names;
mod order;
mod pieces;
mod plug;
mod rig;
mod seam;
mod split;
mod volume;
mod windows;
mod windows_model;
mod world;
