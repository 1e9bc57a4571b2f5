//! Run-time goals for programs that share storage (U-Shape).
//!
//! A person states a [`Goal`]: the program must end in 110 s. Three steps make a throughput bound of the goal for each
//! moment of the run:
//!
//! 1. A [`Recorder`] takes the [`Profile`] of a run with a fixed share of the servers. The profile has locality and
//!    throughput for each server and epoch, and the compute time and the I/O time of the run.
//! 2. A [`Model`] is trained with profiles: a regression tree ([`Tree`]) that predicts a server's throughput from the
//!    locality of an epoch ([`Sums::vector`]). Requests of a [`Training`] workload cover localities that the program has not
//!    shown.
//! 3. In a later run, [`Bounds`] follows the requests. At the end of each epoch it gives the bound for the next epoch. The
//!    bound is the predicted throughput, divided by the ratio of the I/O times of goal and profile ([`Alpha`]).
//!
//! The model does not contain the goal, so one model serves every goal of a program.
//!
//! There is no clock and no I/O: time is an argument, and files are texts. Equal inputs give equal models, to the byte.
//!
//! # Source
//!
//! X. Zhang, K. Davis, S. Jiang, "QoS Support for End Users of I/O-intensive Applications using Shared Storage Systems",
//! SC 2011, sections 3.1 and 4.1. `docs/design/2026-11-28-cart.md` has the choices that the paper leaves open, with
//! their measured effect.

#![warn(missing_docs)]

mod aim;
mod bound;
mod cart;
mod course;
mod drift;
mod features;
mod goal;
mod group;
mod model;
mod plan;
mod profile;
mod promise;
mod record;
mod served;
mod setting;
mod sizes;
mod text;
mod training;

pub use aim::Aim;
pub use bound::{Alpha, Bounds};
pub use cart::{CartOptions, Errors, Grown, Node, Sample, Stop, TooFew, Tree, grow};
pub use drift::Drift;
pub use features::{Accumulator, Feature, FeatureSet, FeatureSetError, PIECE_BYTES, Sums, Vector};
pub use goal::{Goal, GoalError, TimeOfDay};
pub use group::Grouped;
pub use model::{Model, TrainError, TrainOptions, Trained};
pub use plan::{Planned, Planner, Planning, Seek, State};
pub use profile::{Profile, ProfileError, Row};
pub use promise::p99;
pub use record::Recorder;
pub use setting::{Differs, Service, Setting, SettingError};
pub use sizes::{Demand, Shortage, Size, sizes};
pub use text::TextError;
pub use training::{Training, TrainingOptions, TrainingRequest};
