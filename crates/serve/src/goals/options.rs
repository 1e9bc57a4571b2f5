//! Programs of a server, and what their goals take.

use super::feed::SECTOR_BYTES;
use headtime_engine::GateSpec;
use headtime_qos::{Aim, Goal, GoalError, Model, Planning, Profile, Service, Setting, TimeOfDay};
use headtime_sched::ServiceCurve;
use headtime_units::{Millionths, Nanos, Sectors, Time};
use std::fmt;
use std::sync::Arc;

/// Time from now to a time of day.
pub type Until<'a> = &'a dyn Fn(TimeOfDay) -> Nanos;

/// Periods without a request after which a run is over, once its deadline has passed. The gates repeat a plan for this
/// number of periods.
pub(super) const IDLE_PERIODS: u64 = 3;

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
    /// Time within which 99 % of the requests are to be done beside goals of other programs.
    pub p99: Option<Nanos>,
}

/// Time of seeks, by the curve of the first disk with programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeks {
    curve: Arc<ServiceCurve>,
    /// Sectors of [`SECTOR_BYTES`] in a sector of the disk, 1 or more.
    scale: u64,
}

impl Seeks {
    /// Seeks of a disk with this curve, whose sectors are `scale` sectors of [`SECTOR_BYTES`].
    pub fn new(curve: Arc<ServiceCurve>, scale: u64) -> Seeks {
        let scale = scale.max(1);
        Seeks { curve, scale }
    }

    /// Time of a seek over this number of sectors of [`SECTOR_BYTES`].
    pub fn time(&self, sectors: u64) -> Nanos {
        self.curve.forward(Sectors::new(sectors / self.scale))
    }

    pub(super) fn parts(&self) -> (&ServiceCurve, u64) {
        (&self.curve, self.scale)
    }
}

/// Programs of a server, and how windows are planned.
#[derive(Clone)]
pub struct GoalsOptions {
    /// Names of the disks that programs share. A profile records their number as its servers.
    pub disks: Vec<String>,
    /// Gate of these disks: `windows`; or `average` or `mclock`, where goals become constant rates and no windows are planned.
    pub gate: GateSpec,
    /// Periods and windows, as the gate has them.
    pub planning: Planning,
    /// Time of seeks, so that programs whose data are near may share a window; none if `None`.
    pub seek: Option<Seeks>,
    /// Programs. The first program has the number 1 in requests.
    pub programs: Vec<ProgramOptions>,
}

/// Longest name of disks together, in bytes.
const SITE_MAX: usize = 200;

/// Reason why a request about a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedGoal {
    /// There is no such program.
    #[error("no program has this name; there are {0}")]
    NoProgram(String),
    /// The program has a promise.
    #[error("program {0} has a p99, and takes no goal; remove the p99 from the configuration")]
    HasPromise(String),
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
    /// A coordinator plans for several servers.
    #[error(
        "a coordinator plans the windows of this server's programs; ask the coordinator (`headtime control` with its socket), or end the coordinator and wait for {0}"
    )]
    Coordinated(Nanos),
    /// A coordinator asks for what this server cannot do.
    #[error("{0}")]
    Uncoordinated(String),
    /// No profile can be made of the recorded requests.
    #[error("{0}")]
    Profile(String),
}

/// Checks that a gate serves this number of programs separately.
///
/// # Errors
///
/// If the gate gives lanes to no programs, or has too few lanes, or if windows cannot be planned for the gate.
pub fn check_gate(gate: &GateSpec, programs: usize) -> Result<(), String> {
    let kind = gate.info().name;
    if !["windows", "average", "mclock"].contains(&kind) || gate.options().choice("by") != "program"
    {
        return Err("give gate = \"windows\" (or \"average\")".to_owned());
    }
    let (lanes, needs) = (gate.options().count("lanes"), programs + 1);
    if lanes < needs as u64 {
        return Err(format!(
            "{programs} programs take {needs} lanes, one for each and one for others, and the gate has {lanes}; give \"{kind}:lanes={needs}\""
        ));
    }
    match kind {
        "windows" => Planning::check(gate),
        _ => Ok(()),
    }
}

impl fmt::Debug for GoalsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GoalsOptions({}, {:?})", self.site(), self.programs)
    }
}

impl GoalsOptions {
    /// Options of disks with the same gate, without programs so far.
    pub fn new(disks: Vec<String>, gate: &GateSpec, seek: Option<Seeks>) -> GoalsOptions {
        let mut options = GoalsOptions {
            disks,
            gate: gate.clone(),
            planning: Planning::default(),
            seek,
            programs: Vec::new(),
        };
        if !options.rates() {
            options.planning = Planning::of(gate);
        }
        options
    }

    /// Name of the disks together, as profiles have it.
    pub fn site(&self) -> String {
        let site = self.disks.join("+");
        match &self.disks[..] {
            [first, .., last] if site.len() > SITE_MAX => {
                format!("{} disks, {first} to {last}", self.disks.len())
            }
            _ => site,
        }
    }

    /// Number of the disks.
    ///
    /// # Panics
    ///
    /// If there are more than 65,535.
    pub fn servers(&self) -> u16 {
        u16::try_from(self.disks.len()).expect("there are not so many")
    }

    /// True if the gates serve programs at constant rates.
    pub(super) fn rates(&self) -> bool {
        ["average", "mclock"].contains(&self.gate.info().name)
    }

    /// Circumstances of a profile of a program.
    pub(super) fn setting(&self, index: usize) -> Setting {
        Setting {
            site: self.site(),
            program: self.programs[index].name.clone(),
            share: Millionths::ONE,
            epoch: self.planning.epoch,
            service: Service::Program,
            servers: self.servers(),
        }
    }

    fn known(&self, index: usize) -> Result<&Profiled, RefusedGoal> {
        let program = &self.programs[index];
        let known = program.known.as_ref();
        known.ok_or_else(|| RefusedGoal::NoProfile(program.name.clone()))
    }

    /// Checks that the windows of a period have room for the promises of all programs.
    ///
    /// # Errors
    ///
    /// If the gate plans no windows, or a time is too short.
    pub fn check_p99(&self) -> Result<(), String> {
        if self.rates() {
            let gate = self.gate.info().name;
            return Err(format!(
                "needs windows, and gate \"{gate}\" has none; give the disks gate = \"windows\", or leave out p99"
            ));
        }
        self.planning
            .check_p99(self.programs.len(), &self.promises())
    }

    /// Promises of all programs.
    pub(super) fn promises(&self) -> Vec<Nanos> {
        self.programs.iter().filter_map(|one| one.p99).collect()
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
        let program = &self.programs[index];
        if program.p99.is_some() {
            return Err(RefusedGoal::HasPromise(program.name.clone()));
        }
        let Profiled { profile, model } = self.known(index)?;
        let wrong = |error| RefusedGoal::Goal(self.programs[index].name.clone(), error);
        let run_time = goal.run_time(profile.least(), Nanos::ZERO, |time| Ok(until(time)));
        let run_time = run_time.map_err(wrong)?;
        Aim::new(profile, Arc::clone(model), run_time, at, SECTOR_BYTES).map_err(wrong)
    }
}
