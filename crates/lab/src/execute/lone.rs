//! Runs of one program without the others: profiles and models of programs with goals.

use super::load::{Called, Load, builder};
use super::queue::setup;
use super::seed::mix;
use super::training;
use crate::fault::Fault;
use crate::prepare::Prepared;
use crate::report::BoundErrors;
use crate::scenario::{Cell, Programs, Workload};
use crate::stock::Stock;
use headtime_engine::{Command, EngineSpec, Event, GateSpec, Member, Seen};
use headtime_host::HostBuilder;
use headtime_qos::{
    Aim, Alpha, CartOptions, Errors, Goal, GoalError, Grouped, Model, Profile, Recorder, Service,
    Setting, TrainOptions,
};
use headtime_sim::RunError;
use headtime_units::{Millionths, Nanos, Time};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Name of the site in profiles of simulated runs.
const SITE: &str = "simulation";

/// Name of the training workload.
pub(super) const TRAINING: &str = "training";

/// A program with a goal.
#[derive(Clone, Debug)]
pub(super) struct GoalOf {
    /// Number of the program.
    pub number: u16,
    /// Run time that the goal asks for.
    pub run_time: Nanos,
    pub profile: Arc<Profile>,
    pub alpha: Alpha,
    /// Model of the program, for a gate that obeys a planner, or if bounds are judged.
    pub model: Option<Arc<Model>>,
    /// Errors of the model in another run alone, if one was asked for: of the sum over the servers, in percent.
    pub errors: Option<BoundErrors>,
    /// Findings of the planner on the run.
    pub said: Arc<Mutex<Said>>,
}

/// Findings of the planner on a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// The run has left its profile.
    pub left_profile: Option<Time>,
    /// The goal can no longer be met.
    pub hopeless: Option<Time>,
    /// Choices between the own window and the shared window.
    pub grouped: Grouped,
}

impl GoalOf {
    pub fn aim(&self, sector_bytes: u32) -> Option<Aim> {
        let model = Arc::clone(self.model.as_ref()?);
        let aim = Aim::new(
            &self.profile,
            model,
            self.run_time,
            Time::ZERO,
            sector_bytes,
        );
        Some(aim.expect("the goal has an alpha"))
    }
}

/// How the gate of a cell shares the servers among programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// By windows.
    Windows,
    /// By constant rates, which `average` and `mclock` obey.
    Average,
    /// Not at all.
    None,
}

impl Sharing {
    pub fn of(cell: &Cell) -> Sharing {
        Sharing::by(&cell.engine.gate)
    }

    pub fn by(gate: &GateSpec) -> Sharing {
        match gate.info().name {
            "windows" => Sharing::Windows,
            "average" | "mclock" => Sharing::Average,
            _ => Sharing::None,
        }
    }
}

/// Reason why a program has no bounds.
pub(super) enum Refused {
    Goal(GoalError),
    Run(Fault),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Refused {
        Refused::Run(fault)
    }
}

/// Runs of one program with all servers to itself.
pub(super) struct Lone<'a> {
    prepared: &'a Prepared,
    /// The cell, with the gate of a program alone.
    cell: Cell,
    sharing: Sharing,
    pub programs: &'a Programs,
    stock: &'a Stock,
    pub servers: u16,
}

impl<'a> Lone<'a> {
    /// Lone runs of programs; `None` for other workloads.
    pub fn of(prepared: &'a Prepared, cell: &'a Cell, stock: &'a Stock) -> Option<Lone<'a>> {
        let Workload::Programs(programs) = &prepared.scenario.workload else {
            return None;
        };
        Some(Lone {
            prepared,
            cell: Cell {
                engine: EngineSpec {
                    gate: alone(&cell.engine.gate),
                    ..cell.engine.clone()
                },
                ..cell.clone()
            },
            sharing: Sharing::of(cell),
            programs,
            stock,
            servers: (prepared.drives[cell.drive].map()).map_or(1, |map| map.members()),
        })
    }

    pub fn goal(&self, number: u16, called: &Called, goal: Goal) -> Result<GoalOf, Refused> {
        let key = format!("{number} {}", self.key());
        let file = self.programs.entries[called.entry].profile.as_deref();
        let take = || match file {
            Some(file) => self.read(Path::new(file), called).map(Arc::new),
            None => self.lone(number, called).map(Arc::new),
        };
        let profile = self.stock.profiled(key.clone(), take)?;
        let no_days = |_| Err(GoalError::NoDays);
        let run_time = goal.run_time(profile.run, Nanos::ZERO, no_days);
        let run_time = run_time.map_err(Refused::Goal)?;
        let alpha = Alpha::new(run_time, &profile).map_err(Refused::Goal)?;
        let judges = self.programs.qos.judge;
        let model = match judges || self.sharing == Sharing::Windows {
            true => Some(self.stock.trained(key, || self.train(&profile))?),
            false => None,
        };
        let judged = model.as_ref().filter(|_| judges);
        let errors = judged.map(|model| self.judge(number, called, model));
        Ok(GoalOf {
            errors: errors.transpose()?,
            number,
            run_time,
            profile,
            alpha,
            model,
            said: Arc::default(),
        })
    }

    /// Reads a profile, which may be of another program or of another run.
    fn read(&self, path: &Path, called: &Called) -> Result<Profile, Fault> {
        let wrong = |problem: String| {
            let key = format!("program[{}].profile", called.entry);
            Fault::Input(format!("{key}: {}: {problem}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))?;
        let profile = Profile::from_text(&text).map_err(|error| wrong(error.to_string()))?;
        let expected = self.setting(&called.name);
        let fits = profile.setting.expect_like(&expected);
        fits.map_err(|differs| wrong(differs.to_string()))?;
        Ok(profile)
    }

    /// Circumstances of a profile of a program with this name.
    fn setting(&self, name: &str) -> Setting {
        Setting {
            site: SITE.to_owned(),
            program: name.replace(' ', "-"),
            share: Millionths::ONE,
            epoch: self.programs.qos.epoch,
            service: self.programs.qos.service,
            servers: self.servers,
        }
    }

    /// Seed of lone runs. Lone runs draw other numbers than the run with all programs.
    pub fn seed(&self) -> u64 {
        mix(self.prepared.scenario.seed ^ 1)
    }

    /// Text of everything that a lone run depends on.
    fn key(&self) -> String {
        let Lone { prepared, cell, .. } = self;
        let of = (
            &cell.scheduler,
            cell.coordinate,
            &cell.engine,
            cell.drive,
            prepared.scenario.seed,
        );
        format!("{of:?} {} {:?}", prepared.hash, self.programs)
    }

    /// Takes the profile of a program.
    pub fn lone(&self, number: u16, called: &Called) -> Result<Profile, Fault> {
        self.run(number, called, self.seed())
    }

    fn run(&self, number: u16, called: &Called, seed: u64) -> Result<Profile, Fault> {
        let set = &self.prepared.drives[self.cell.drive];
        let (mut builder, _) = builder(self.programs, set.disk(), seed, self.stock, 1)?;
        builder.silence(|program| program != u32::from(number));
        self.profile(&called.name, number, seed, builder)
    }

    /// Errors of a model in a run that the model has not seen.
    fn judge(&self, number: u16, called: &Called, model: &Model) -> Result<BoundErrors, Fault> {
        let seed = mix(self.seed());
        let take = || self.run(number, called, seed).map(Arc::new);
        let run = (self.stock).profiled(format!("{number} judged {}", self.key()), take)?;
        let errors = model.errors(&run);
        let [servers, sums] = errors.map_err(|error| Fault::Input(error.to_string()))?;
        let percent = |errors: &Errors, share| 100.0 * errors.quantile(share).unwrap_or_default();
        Ok(BoundErrors {
            error_80_percent: percent(&sums, 0.8),
            error_90_percent: percent(&sums, 0.9),
            server_error_90_percent: percent(&servers, 0.9),
        })
    }

    /// Trains a model with the whole profile: a program's locality may change in the course of its run.
    fn train(&self, profile: &Profile) -> Result<Arc<Model>, Fault> {
        let reads = (profile.rows.iter()).all(|row| row.sums.reads == row.sums.pieces);
        let key = format!("training {reads} {}", self.key());
        let synthetic =
            (self.stock).profiled(key, || self.synthetic(self.seed(), reads).map(Arc::new))?;
        let profiles = std::slice::from_ref(profile);
        let default = TrainOptions::default();
        let cart = CartOptions {
            features: self.programs.qos.features,
            ..default.cart
        };
        let options = TrainOptions { cart, ..default };
        let trained = Model::train(profiles, Some(&synthetic), &options);
        let trained = trained.map_err(|error| Fault::Input(error.to_string()))?;
        Ok(Arc::new(trained.model))
    }

    /// The profile of the training workload, which reads only if the program does.
    pub fn synthetic(&self, seed: u64, reads: bool) -> Result<Profile, Fault> {
        let set = &self.prepared.drives[self.cell.drive];
        let fault = |error: headtime_host::HostError| Fault::Input(format!("training: {error}"));
        let host = self.programs.host.clone();
        let mut builder = HostBuilder::new(host, set.disk()).map_err(fault)?;
        training::add(&mut builder, seed, reads)
            .map_err(|error| Fault::Input(error.to_string()))?;
        self.profile(TRAINING, 1, seed, builder)
    }

    /// Takes the profile of a run.
    fn profile(
        &self,
        name: &str,
        number: u16,
        seed: u64,
        builder: HostBuilder,
    ) -> Result<Profile, Fault> {
        let Lone { prepared, cell, .. } = self;
        let set = &prepared.drives[cell.drive];
        let sector_bytes = set.profile.geometry.sector_bytes;
        let fault =
            |error: &dyn std::fmt::Display| Fault::Input(format!("profile of {name}: {error}"));
        let setting = self.setting(name);
        let (epoch, service) = (setting.epoch, setting.service);
        let recorder = Recorder::new(setting, sector_bytes, Time::ZERO);
        let mut recorder = recorder.map_err(|error| fault(&error))?;
        let mut load = Load::of(self.programs, set, builder, Vec::new(), seed)?;
        // A host has no network: its programs wait for disks alone.
        let is_host = match &mut load {
            Load::Cluster(cluster, _) => {
                cluster.keep_epochs(epoch);
                false
            }
            _ => true,
        };
        // The last intervals may end behind the program: a host reads ahead, and epochs are whole.
        let (mut outstanding, mut since, mut last) = (0, Time::ZERO, Time::ZERO);
        let mut note = |now, member: Member, seen: Seen<'_>| match seen {
            Seen::Event(Event::Arrived(arrival)) if arrival.origin.program == number => {
                recorder.request(now, member.0, arrival.op, arrival.extent);
                if outstanding == 0 {
                    since = now;
                }
                outstanding += 1;
            }
            Seen::Command(Command::Finish(done)) if done.request.origin.program == number => {
                outstanding -= 1;
                if service == Service::Disk {
                    let arrival = done.request.arrival;
                    recorder.served(arrival, member.0, now.saturating_since(done.issued));
                }
                if is_host && outstanding == 0 {
                    recorder.busy(since, now);
                    last = now;
                }
            }
            _ => {}
        };
        let mut setup = setup(prepared, cell, seed, load.source())?;
        setup.observer = Some(&mut note);
        headtime_sim::run(setup).map_err(|error: RunError| fault(&error))?;
        let outcomes = load.outcome();
        let outcome = outcomes.iter().find(|one| one.program == u32::from(number));
        let outcome = outcome.ok_or_else(|| fault(&"it has no processes"))?;
        for (epochs, span) in (0..).zip(&outcome.io_epochs) {
            let from = Time::ZERO + epoch * epochs;
            recorder.busy(from, from + *span);
            last = from + epoch;
        }
        let end = outcome
            .ended
            .ok_or_else(|| fault(&"it does not end by itself"))?;
        recorder
            .finish(end.max(last))
            .map_err(|error| fault(&error))
    }
}

/// Gate of a program without others: the gate inside, if this gate shares disks among programs.
fn alone(gate: &GateSpec) -> GateSpec {
    match Sharing::by(gate) {
        Sharing::None => gate.clone(),
        Sharing::Windows | Sharing::Average => gate.inner().unwrap_or_default(),
    }
}
