//! Tests of the engine from outside.

mod crowded;
mod merging;
mod order;
mod plug;
mod seam;
mod world;
