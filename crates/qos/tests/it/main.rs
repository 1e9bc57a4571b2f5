//! Profiles, models and bounds, as a caller has them.

mod collective;
mod formulas;
mod model;
mod planner;
mod recorder;
mod second;
mod simulated;
mod training;
mod twice;
