//! Programs of a server, and what their goals take.

use super::feed::SECTOR_BYTES;
use headtime_qos::{Aim, Goal, GoalError, Model, Planning, Profile, Service, Setting, TimeOfDay};
use headtime_units::{Millionths, Nanos, Time};
use std::fmt;
use std::sync::Arc;

/// Time from now to a time of day.
pub type Until<'a> = &'a dyn Fn(TimeOfDay) -> Nanos;

/// Knowledge of a program before a run.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// A run of the program without others.
    pub profile: Profile,
    /// Throughputs by locality, trained with the profile.
    pub model: Arc<Model>,
}

/// A program.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// Name of the program.
    pub name: String,
    /// Names of the program's exports.
    pub exports: Vec<String>,
    /// Goal of the first run.
    pub goal: Option<Goal>,
    /// Basis of bounds; without this the program takes no goal.
    pub known: Option<Profiled>,
}

/// Time of a seek over so many sectors of [`SECTOR_BYTES`].
pub type SeekTime = dyn Fn(u64) -> Nanos + Send + Sync;

/// Programs of a server, and how windows are planned.
#[derive(Clone)]
pub struct GoalsOptions {
    /// Name of the disks together, as profiles have it.
    pub site: String,
    /// Number of disks. A profile is of so many servers.
    pub servers: u16,
    /// Periods and windows, as the disks' gates have them.
    pub planning: Planning,
    /// True if the disks' gates are `average`: goals become constant rates, and no windows are planned.
    pub rates: bool,
    /// Time of seeks, so that programs whose data are near may share a window; none if `None`.
    pub seek: Option<Arc<SeekTime>>,
    /// Programs, of which the first has the number 1 in requests.
    pub programs: Vec<ProgramOptions>,
}

/// Why something about a program cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedGoal {
    /// There is no such program.
    #[error("no program has this name; there are {0}")]
    NoProgram(String),
    /// The program has no profile.
    #[error(
        "program {0}: a goal needs a profile; record one (`headtime control SOCKET qos profile {0} start`), and give it as `profile` of the program"
    )]
    NoProfile(String),
    /// The goal cannot be had.
    #[error("program {0}: {1}")]
    Goal(String, GoalError),
    /// A program is recorded.
    #[error("the profile of program {0} is being recorded, without windows; stop that first")]
    Recording(String),
    /// A program has a goal.
    #[error(
        "program {0} has a goal, and a profile is of a run without windows; clear the goal first (`none`)"
    )]
    HasGoal(String),
    /// Nothing is recorded.
    #[error("program {0}: no profile is being recorded; start that first")]
    NotRecording(String),
    /// No profile can be made of what was recorded.
    #[error("{0}")]
    Profile(String),
}

impl fmt::Debug for GoalsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GoalsOptions({}, {:?})", self.site, self.programs)
    }
}

impl GoalsOptions {
    /// Circumstances of a profile of a program.
    pub(super) fn setting(&self, index: usize) -> Setting {
        Setting {
            site: self.site.clone(),
            program: self.programs[index].name.clone(),
            share: Millionths::ONE,
            epoch: self.planning.epoch,
            service: Service::Program,
            servers: self.servers,
        }
    }

    fn known(&self, index: usize) -> Result<&Profiled, RefusedGoal> {
        let program = &self.programs[index];
        let known = program.known.as_ref();
        known.ok_or_else(|| RefusedGoal::NoProfile(program.name.clone()))
    }

    /// Checks that a program can have a goal. A goal by a time of day is known when the run starts.
    ///
    /// # Errors
    ///
    /// If the program has no profile, or if the goal is impossible.
    pub fn check(&self, index: usize, goal: Goal) -> Result<(), RefusedGoal> {
        let until = |_| Nanos::from_nanos(u64::MAX);
        self.aim(index, goal, Time::ZERO, &until).map(|_| ())
    }

    /// Constant rate of a run of a program that has a profile, in sectors of [`SECTOR_BYTES`] a second and disk.
    pub(super) fn rate(&self, index: usize, run_time: Nanos) -> u64 {
        let known = self.programs[index].known.as_ref();
        known.map_or(0, |known| {
            known.profile.constant_rate(run_time, SECTOR_BYTES)
        })
    }

    pub(super) fn aim(
        &self,
        index: usize,
        goal: Goal,
        at: Time,
        until: Until<'_>,
    ) -> Result<Aim, RefusedGoal> {
        let Profiled { profile, model } = self.known(index)?;
        let wrong = |error| RefusedGoal::Goal(self.programs[index].name.clone(), error);
        let run_time = goal.run_time(profile.least(), Nanos::ZERO, |time| Ok(until(time)));
        let run_time = run_time.map_err(wrong)?;
        Aim::new(profile, Arc::clone(model), run_time, at, SECTOR_BYTES).map_err(wrong)
    }
}
