//! Run-time goals of programs on a cluster: profiles of lone runs become bounds, and bounds become orders to gates.

use super::load::{Called, builder};
use super::repeat::queue;
use super::seed::mix;
use super::training;
use crate::fault::Fault;
use crate::prepare::Prepared;
use crate::scenario::{Cell, Programs, Workload, cells};
use crate::stock::Stock;
use headtime_disk::Drive;
use headtime_engine::conduct::{Conduct, Conductor};
use headtime_engine::{
    Command, Engine, EngineSpec, Event, Few, GateOrder, GateSpec, Lane, Member, Order, Part, Seen,
};
use headtime_host::HostBuilder;
use headtime_host::cluster::Cluster;
use headtime_qos::{
    Aim, Alpha, Bounds, Goal, GoalError, Model, Order as PlanOrder, Planned, Planner, Planning,
    Profile, Rate, Recorder, Service, Setting, TrainOptions,
};
use headtime_sched::Request;
use headtime_sim::{RunError, Setup, Station};
use headtime_units::{Lba, Millionths, Nanos, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Name of the site in profiles of simulated runs.
const SITE: &str = "simulation";

/// A program with a goal.
#[derive(Clone, Debug)]
pub(super) struct GoalOf {
    /// Number of the program.
    pub number: u16,
    /// Run time that the goal asks for.
    pub run_time: Nanos,
    profile: Arc<Profile>,
    alpha: Alpha,
    /// Bounds, for a gate that obeys a planner.
    bounds: Option<Bounds>,
}

/// Goals of the programs of a cell.
#[derive(Debug)]
pub(super) struct Goals {
    /// Numbers of all programs.
    all: Vec<u16>,
    pub goals: Vec<GoalOf>,
    servers: u16,
    sector_bytes: u32,
}

/// How the gate of a cell shares the servers among programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// By windows.
    Windows,
    /// By constant rates.
    Average,
    /// Not at all.
    None,
}

impl Sharing {
    fn of(cell: &Cell) -> Sharing {
        match cell.engine.gate.info().name {
            "windows" => Sharing::Windows,
            "average" => Sharing::Average,
            _ => Sharing::None,
        }
    }
}

impl Goals {
    /// Profiles the programs with goals, each in a run without the others, and trains a model for each. `None` if no program
    /// has a goal and the gate plans nothing.
    ///
    /// # Errors
    ///
    /// If a run cannot be, or a goal cannot be kept.
    pub fn of(
        prepared: &Prepared,
        cell: &Cell,
        names: &[Called],
        stock: &Stock,
    ) -> Result<Option<Goals>, Fault> {
        let Some(lone) = Lone::of(prepared, cell, stock) else {
            return Ok(None);
        };
        let programs = lone.programs;
        let numbers = (1..).zip(names);
        let with_goal = numbers.filter_map(|(number, called): (u16, &Called)| {
            Some((number, called, programs.entries[called.entry].goal?))
        });
        let sector_bytes = prepared.drives[cell.drive].profile.geometry.sector_bytes;
        let mut goals = Vec::new();
        for (number, called, goal) in with_goal {
            let refused = |problem: String| {
                let key = format!("program[{}].goal", called.entry + 1);
                Fault::Input(format!("{key}: {}: {problem}", called.name))
            };
            let of = lone.goal(number, called, goal);
            goals.push(of.map_err(|error| match error {
                Refused::Goal(error) => refused(error.to_string()),
                Refused::Run(fault) => fault,
            })?);
        }
        let all = (1..).take(names.len()).collect();
        Ok(Some(Goals {
            all,
            goals,
            servers: lone.servers,
            sector_bytes,
        }))
    }

    /// Run times that the goals ask for, by program's number.
    pub fn run_times(&self) -> impl Iterator<Item = (u16, Nanos)> + '_ {
        self.goals.iter().map(|goal| (goal.number, goal.run_time))
    }

    /// Who gives orders to the gates of all servers in a run, if anybody does.
    ///
    /// # Errors
    ///
    /// If the gate has too few lanes.
    pub fn conductor(&self, prepared: &Prepared, cell: &Cell) -> Result<Option<Windows>, Fault> {
        if Sharing::of(cell) != Sharing::Windows {
            return Ok(None);
        }
        self.check_lanes(cell, self.all.len())?;
        let programs = self.all.iter().map(|number| {
            let goal = self.goals.iter().find(|goal| goal.number == *number);
            Planned {
                number: *number,
                goal: goal.and_then(GoalOf::aim),
            }
        });
        let mut planner = Planner::new(Planning::default(), programs.collect(), Time::ZERO);
        if let Some(curve) = prepared.drives[cell.drive].known.curve() {
            let seek = move |sectors| curve.service(Lba::ZERO, Lba::new(sectors));
            planner = planner.with_seeks(Box::new(seek));
        }
        Ok(Some(Windows {
            planner,
            servers: self.servers,
            sector_bytes: self.sector_bytes,
            waiting: VecDeque::new(),
        }))
    }

    /// Orders that give each program with a goal its constant rate, for the gate `average`.
    ///
    /// # Errors
    ///
    /// If the gate has too few lanes.
    pub fn orders(&self, cell: &Cell) -> Result<Vec<(Time, Order)>, Fault> {
        if Sharing::of(cell) != Sharing::Average {
            return Ok(Vec::new());
        }
        self.check_lanes(cell, self.goals.len())?;
        let mut orders = Vec::new();
        for (lane, goal) in (1..).map(Lane).zip(&self.goals) {
            let sectors = goal.bytes() / u64::from(self.sector_bytes) / u64::from(self.servers);
            let rate = (sectors as f64 / goal.run_time.as_secs_f64()) as u64;
            let of = goal.number;
            for member in (0..self.servers).map(Member) {
                for order in [
                    GateOrder::Assign { of, lane },
                    GateOrder::Rate { lane, rate },
                ] {
                    orders.push((Time::ZERO, Order::Gate(member, order)));
                }
            }
        }
        Ok(orders)
    }

    fn check_lanes(&self, cell: &Cell, programs: usize) -> Result<(), Fault> {
        let gate = cell
            .engine
            .gate
            .build(&cell.engine.config(self.sector_bytes));
        let gate = gate.map_err(|error| Fault::Input(format!("engine.gate: {error}")))?;
        let lanes = gate.map_or(1, |gate| gate.lanes());
        match programs < lanes {
            true => Ok(()),
            false => Err(Fault::Input(format!(
                "engine.gate: {} has {lanes} lanes; allowed are {} to 64 with {programs} programs that have a lane each",
                cell.engine.gate,
                programs + 1
            ))),
        }
    }
}

/// A program with a goal, and what the goal demands.
#[derive(Clone, Debug)]
pub struct Demanded {
    /// Name of the program.
    pub name: String,
    /// Run time that the goal asks for.
    pub run_time: Nanos,
    /// Profile of a run without other programs.
    pub profile: Arc<Profile>,
    /// Share of the servers' time that the goal demands while the program runs; above 1 if the goal cannot be kept.
    pub share: f64,
}

/// Returns what the goals of a scenario demand, in its first run.
///
/// # Errors
///
/// If a goal cannot be kept even alone, or no program has a goal.
pub fn demands(prepared: &Prepared, stock: &Stock) -> Result<Vec<Demanded>, Fault> {
    let (cell, names) = first(prepared, stock)?;
    let goals = Goals::of(prepared, &cell, &names, stock)?;
    let goals = goals.map_or_else(Vec::new, |goals| goals.goals);
    if goals.is_empty() {
        let problem = "program: no program has a goal; add one, such as goal = \"2.5x\"";
        return Err(Fault::Input(problem.to_owned()));
    }
    let demanded = goals.into_iter().map(|goal| Demanded {
        name: names[usize::from(goal.number) - 1].name.clone(),
        run_time: goal.run_time,
        share: 1.0 / goal.alpha.get(),
        profile: goal.profile,
    });
    Ok(demanded.collect())
}

/// Takes the profile of a program of a scenario, in a run without the others; with the name `training`, that of the training
/// workload.
///
/// # Errors
///
/// If no program has this name, or its run cannot be.
pub fn profile(prepared: &Prepared, program: &str, stock: &Stock) -> Result<Profile, Fault> {
    let (cell, names) = first(prepared, stock)?;
    let lone = Lone::of(prepared, &cell, stock).ok_or_else(|| {
        Fault::Input("cluster: missing; profiles are of programs on a [cluster]".to_owned())
    })?;
    if program == TRAINING {
        return lone.synthetic(lone.seed(), false);
    }
    let at = names.iter().position(|called| called.name == program);
    let at = at.ok_or_else(|| {
        let known = names.iter().map(|called| called.name.as_str());
        let known: Vec<&str> = known.chain([TRAINING]).collect();
        let meant = headtime_units::nearest(program, known.clone());
        let meant = meant.map_or(String::new(), |name| format!("; did you mean \"{name}\"?"));
        let known = known.join(", ");
        Fault::Usage(format!(
            "\"{program}\" is no program of the scenario{meant} Allowed are {known}"
        ))
    })?;
    lone.lone(at as u16 + 1, &names[at])
}

/// Name of the training workload.
const TRAINING: &str = "training";

/// First run of a scenario, and the names of its programs.
fn first(prepared: &Prepared, stock: &Stock) -> Result<(Cell, Vec<Called>), Fault> {
    let mut cells = cells(&prepared.scenario).into_iter();
    let cell = cells.next().expect("a scenario has a run");
    let Workload::Programs(programs) = &prepared.scenario.workload else {
        return Ok((cell, Vec::new()));
    };
    let disk = prepared.drives[cell.drive].disk();
    let (_, names) = builder(programs, disk, prepared.scenario.seed, stock)?;
    Ok((cell, names))
}

impl GoalOf {
    fn aim(&self) -> Option<Aim> {
        let seconds = self.profile.io.as_secs_f64().max(1e-9);
        Some(Aim {
            deadline: Time::ZERO + self.run_time,
            alone: Rate((self.bytes() as f64 / seconds) as u64),
            bounds: self.bounds.clone()?,
        })
    }

    /// Bytes that the program asked of all servers.
    fn bytes(&self) -> u64 {
        self.profile.rows.iter().map(|row| row.sums.bytes).sum()
    }
}

/// Why there are no bounds for a program.
enum Refused {
    Goal(GoalError),
    Run(Fault),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Refused {
        Refused::Run(fault)
    }
}

/// Runs of one program with all servers to itself.
struct Lone<'a> {
    prepared: &'a Prepared,
    cell: &'a Cell,
    programs: &'a Programs,
    stock: &'a Stock,
    servers: u16,
}

impl<'a> Lone<'a> {
    /// Lone runs of programs on a cluster; `None` for other workloads.
    fn of(prepared: &'a Prepared, cell: &'a Cell, stock: &'a Stock) -> Option<Lone<'a>> {
        let Workload::Programs(programs) = &prepared.scenario.workload else {
            return None;
        };
        Some(Lone {
            prepared,
            cell,
            programs,
            stock,
            servers: programs.cluster.as_ref()?.servers,
        })
    }

    fn goal(&self, number: u16, called: &Called, goal: Goal) -> Result<GoalOf, Refused> {
        let key = format!("{number} {}", self.key());
        let take = || self.lone(number, called).map(Arc::new);
        let profile = self.stock.profiled(key.clone(), take)?;
        let no_days = |_| Err(GoalError::NoDays);
        let run_time = goal.run_time(profile.run, Nanos::ZERO, no_days);
        let run_time = run_time.map_err(Refused::Goal)?;
        let alpha = Alpha::new(run_time, &profile).map_err(Refused::Goal)?;
        let bounds = match Sharing::of(self.cell) {
            Sharing::Windows => {
                let model = self.stock.trained(key, || self.train(&profile))?;
                Some(Bounds::new(model, alpha, self.sector_bytes()))
            }
            Sharing::Average | Sharing::None => None,
        };
        Ok(GoalOf {
            number,
            run_time,
            profile,
            alpha,
            bounds,
        })
    }

    fn sector_bytes(&self) -> u32 {
        let set = &self.prepared.drives[self.cell.drive];
        set.profile.geometry.sector_bytes
    }

    /// Seed of lone runs, whose draws are others than in the run with all programs.
    fn seed(&self) -> u64 {
        mix(self.prepared.scenario.seed ^ 1)
    }

    /// All that a lone run depends on.
    fn key(&self) -> String {
        let Lone { prepared, cell, .. } = self;
        let engine = without_gate(cell);
        let of = (&cell.scheduler, engine, cell.drive, prepared.scenario.seed);
        format!("{of:?} {} {:?}", prepared.hash, self.programs)
    }

    /// Takes the profile of a program.
    fn lone(&self, number: u16, called: &Called) -> Result<Profile, Fault> {
        let set = &self.prepared.drives[self.cell.drive];
        let (mut builder, _) = builder(self.programs, set.disk(), self.seed(), self.stock)?;
        builder.silence(|program| program != u32::from(number));
        self.profile(&called.name, number, self.seed(), builder)
    }

    /// Trains a model with the whole profile: a program's locality may change in the course of its run.
    fn train(&self, profile: &Profile) -> Result<Arc<Model>, Fault> {
        let reads = (profile.rows.iter()).all(|row| row.sums.reads == row.sums.pieces);
        let key = format!("training {reads} {}", self.key());
        let synthetic =
            (self.stock).profiled(key, || self.synthetic(self.seed(), reads).map(Arc::new))?;
        let profiles = std::slice::from_ref(profile);
        let trained = Model::train(profiles, Some(&synthetic), &TrainOptions::default());
        let trained = trained.map_err(|error| Fault::Input(error.to_string()))?;
        Ok(Arc::new(trained.model))
    }

    /// The profile of the training workload, which reads only if the program does.
    fn synthetic(&self, seed: u64, reads: bool) -> Result<Profile, Fault> {
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
        let setting = Setting {
            site: SITE.to_owned(),
            program: name.replace(' ', "-"),
            share: Millionths::ONE,
            epoch: Setting::EPOCH,
            service: Service::Program,
            servers: self.servers,
        };
        let epoch = setting.epoch;
        let recorder = Recorder::new(setting, sector_bytes, Time::ZERO);
        let mut recorder = recorder.map_err(|error| fault(&error))?;
        let spec = self
            .programs
            .cluster
            .clone()
            .expect("programs with goals are on a cluster");
        let cluster = Cluster::new(spec, set.one_disk(), builder, seed);
        let mut cluster = cluster.map_err(|error| fault(&error))?;
        cluster.keep_epochs(epoch);
        let engine = without_gate(cell);
        let alone = Cell {
            engine,
            ..(*cell).clone()
        };
        let queue = queue(set, &alone)?;
        let config = alone.engine.config(sector_bytes);
        let drive = |member: u64| {
            let draws = mix((!seed).wrapping_add(member));
            Drive::with_layout(&set.profile, Arc::clone(&set.layout), draws)
        };
        let mut note = |now, member: Member, seen: Seen<'_>| {
            if let Seen::Event(Event::Arrived(arrival)) = seen
                && arrival.origin.program == number
            {
                recorder.request(now, member.0, arrival.op, arrival.extent);
            }
        };
        let mut setup = Setup::new(drive(0), config, queue.scheduler(), &mut cluster);
        if let Some(map) = set.map() {
            let further = (1..u64::from(map.members())).map(drive);
            let station = |drive| Station::new(drive, config, queue.scheduler());
            setup.stations.extend(further.map(station));
            setup.map = Some(map);
        }
        setup.observer = Some(&mut note);
        headtime_sim::run(setup).map_err(|error: RunError| fault(&error))?;
        let outcomes = cluster.outcome();
        let outcome = outcomes.iter().find(|one| one.program == u32::from(number));
        let outcome = outcome.ok_or_else(|| fault(&"it has no processes"))?;
        for (epochs, span) in (0..).zip(&outcome.io_epochs) {
            let from = Time::ZERO + epoch * epochs;
            recorder.busy(from, from + *span);
        }
        let end = outcome
            .ended
            .ok_or_else(|| fault(&"it does not end by itself"))?;
        let last = Time::ZERO + epoch * outcome.io_epochs.len() as u64;
        recorder
            .finish(end.max(last))
            .map_err(|error| fault(&error))
    }
}

/// The engine of a cell with the usual gate.
fn without_gate(cell: &Cell) -> EngineSpec {
    EngineSpec {
        gate: GateSpec::default(),
        ..cell.engine.clone()
    }
}

/// The planner as the conductor of all servers.
pub(super) struct Windows {
    planner: Planner,
    servers: u16,
    sector_bytes: u32,
    /// Orders that have not been given.
    waiting: VecDeque<(Member, GateOrder)>,
}

impl Conductor for Windows {
    fn asked(&mut self, _: Time, _: &Request<()>, _: Member, _: &Part, _: &Engine) {}

    fn seen(&mut self, now: Time, member: Member, seen: Seen<'_>, _: &Engine) {
        match seen {
            Seen::Event(Event::Arrived(arrival)) => {
                let (number, op) = (arrival.origin.program, arrival.op);
                self.planner
                    .asked(now, member.0, number, op, arrival.extent);
            }
            Seen::Command(Command::Finish(done)) => {
                let request = &done.request;
                let bytes = request.extent.len.bytes(self.sector_bytes);
                self.planner
                    .done(now, member.0, request.origin.program, bytes);
            }
            _ => {}
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.planner.next_wakeup()
    }

    fn order(&mut self, now: Time, _: &Few<Engine>) -> Option<(Member, Conduct)> {
        if self.waiting.is_empty()
            && let Some(order) = self.planner.order(now)
        {
            let order = match order {
                PlanOrder::Assign { of, lane } => GateOrder::Assign {
                    of,
                    lane: Lane(lane),
                },
                PlanOrder::Window { lane, from, span } => GateOrder::Window {
                    lane: Lane(lane),
                    from,
                    span,
                },
            };
            let members = (0..self.servers).map(Member);
            self.waiting.extend(members.map(|member| (member, order)));
        }
        let (member, order) = self.waiting.pop_front()?;
        Some((member, order.into()))
    }
}
