//! Tests of the engine from outside.

mod merging;
mod order;
mod seam;
mod world;
