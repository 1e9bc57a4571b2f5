//! Goal of a program: deadline, bounds, and the course and rest of the run.

use crate::bound::{Alpha, Bounds};
use crate::course::{Course, Rest};
use crate::drift::Watch;
use crate::goal::GoalError;
use crate::model::Model;
use crate::profile::Profile;
use headtime_units::{Nanos, Rate, Time};
use std::sync::Arc;

/// Goal of a program.
#[derive(Clone, Debug)]
pub struct Aim {
    /// Time by which the program must have ended.
    pub deadline: Time,
    /// Throughput of the program with the servers to itself.
    pub alone: Rate,
    /// Bounds of the program.
    pub bounds: Bounds,
    pub(crate) start: Time,
    pub(crate) alpha: Alpha,
    pub(crate) course: Course,
    pub(crate) rest: Rest,
    pub(crate) watch: Watch,
    /// True if the bound was derived again from the rest of the run.
    pub(crate) again: bool,
}

impl Aim {
    /// Creates the goal of a run that starts at `start` and must end after `run_time`. `profile` is the program's. `model`
    /// was trained with that profile. Sectors have `sector_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If the program cannot end so early, or the profile has no I/O time.
    pub fn new(
        profile: &Profile,
        model: Arc<Model>,
        run_time: Nanos,
        start: Time,
        sector_bytes: u32,
    ) -> Result<Aim, GoalError> {
        let alpha = Alpha::new(run_time, profile)?;
        let io = profile.least().saturating_sub(profile.compute());
        Ok(Aim {
            deadline: Time::from_nanos(start.as_nanos().saturating_add(run_time.as_nanos())),
            alone: Rate::of(profile.bytes(), io),
            bounds: Bounds::new(model, alpha, sector_bytes),
            start,
            alpha,
            course: Course::new(profile, alpha),
            rest: Rest::new(profile),
            watch: Watch::new(profile),
            again: false,
        })
    }

    /// Least time that the rest of a run needs with all servers, after `progress` bytes. The profile and the measured
    /// slowdown determine this time.
    pub fn rest_of(&self, progress: u64) -> Nanos {
        let [compute, io] = self.rest(progress);
        compute + io
    }

    /// Least compute and I/O times of the rest of a run, after `progress` bytes.
    pub(crate) fn rest(&self, progress: u64) -> [Nanos; 2] {
        let [compute, io] = self.rest.least(progress);
        [compute, io * self.watch.slower() / 100]
    }
}
