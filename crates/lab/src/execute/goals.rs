//! Run-time goals of programs: profiles of lone runs become bounds, and bounds become orders to gates.

use super::load::{Called, builder};
use super::lone::{GoalOf, Lone, Refused, Sharing, TRAINING};
use super::windows::{Watched, Windows};
use crate::fault::Fault;
use crate::prepare::Prepared;
use crate::scenario::{Cell, Workload, cells};
use crate::stock::Stock;
use headtime_engine::conduct::Conductor;
use headtime_engine::{GateOrder, Lane, Member, Order};
use headtime_qos::{Planned, Planner, Planning, Profile};
use headtime_sched::Class;
use headtime_units::{Lba, Nanos, Time};
use std::sync::Arc;

/// Goals of the programs of a cell.
#[derive(Debug)]
pub(super) struct Goals {
    /// Numbers of all programs that share windows: all but urgent ones.
    all: Vec<u16>,
    pub goals: Vec<GoalOf>,
    /// Programs with a promise: entry and number, and time within which 99 % of the requests are to be done.
    promises: Vec<(usize, u16, Nanos)>,
    servers: u16,
    sector_bytes: u32,
    epoch: Nanos,
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
                let key = format!("program[{}].goal", called.entry);
                Fault::Input(format!("{key}: {}: {problem}", called.name))
            };
            let of = lone.goal(number, called, goal);
            goals.push(of.map_err(|error| match error {
                Refused::Goal(error) => refused(error.to_string()),
                Refused::Run(fault) => fault,
            })?);
        }
        let numbers = (1..).zip(names);
        let shares = numbers.filter(|(_, of)| programs.entries[of.entry].class != Class::REAL_TIME);
        let all = shares.map(|(number, _)| number).collect();
        let promises = (1..).zip(names).filter_map(|(number, of): (u16, _)| {
            Some((of.entry, number, programs.entries[of.entry].p99?))
        });
        Ok(Some(Goals {
            all,
            goals,
            promises: promises.collect(),
            servers: lone.servers,
            sector_bytes,
            epoch: programs.qos.epoch,
        }))
    }

    /// Conductor that gives orders to the gates of all servers in a run. `streams` coordinates their schedulers.
    ///
    /// # Errors
    ///
    /// If the gate has too few lanes.
    pub fn conductor(
        &self,
        prepared: &Prepared,
        cell: &Cell,
        streams: Option<Box<dyn Conductor>>,
    ) -> Result<Option<Box<dyn Conductor>>, Fault> {
        if Sharing::of(cell) != Sharing::Windows {
            return Ok(streams);
        }
        self.check_lanes(cell, self.all.len())?;
        let programs = self.all.iter().map(|number| {
            let goal = self.goals.iter().find(|goal| goal.number == *number);
            Planned {
                number: *number,
                goal: goal.and_then(|goal| goal.aim(self.sector_bytes)),
            }
        });
        Planning::check(&cell.engine.gate).map_err(|problem| {
            Fault::Input(format!("engine.gate: {}: {problem}", cell.engine.gate))
        })?;
        let planning = Planning::of(&cell.engine.gate);
        let planning = Planning {
            epoch: self.epoch.min(planning.period),
            ..planning
        };
        let mut planner = Planner::new(planning, programs.collect(), Time::ZERO);
        if let Some(curve) = prepared.drives[cell.drive].known.curve() {
            let seek = move |sectors| curve.service(Lba::ZERO, Lba::new(sectors));
            planner = planner.with_seeks(Box::new(seek));
        }
        let times: Vec<Nanos> = self.promises.iter().map(|(.., p99)| *p99).collect();
        for (entry, number, p99) in &self.promises {
            let possible = planning.check_p99(self.all.len(), &times);
            possible.map_err(|problem| Fault::Input(format!("program[{entry}].p99: {problem}")))?;
            planner = planner.with_p99(*number, *p99);
        }
        let watched = self.goals.iter().map(|goal| Watched {
            number: goal.number,
            deadline: Time::ZERO + goal.run_time,
            said: Arc::clone(&goal.said),
        });
        let watched = watched.collect();
        let windows = Windows::new(planner, streams, watched, self.servers, self.sector_bytes);
        Ok(Some(Box::new(windows)))
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
            let rate = (goal.profile).constant_rate(goal.run_time, self.sector_bytes);
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
        let lanes = cell.engine.gate.options().count("lanes") as usize;
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

/// A program with a goal, and the demands of the goal.
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

/// Returns the demands of a scenario's goals in its first run, and the share of the servers' time that promises take.
///
/// # Errors
///
/// If a goal cannot be kept even alone, or no program has a goal.
pub fn demands(prepared: &Prepared, stock: &Stock) -> Result<(Vec<Demanded>, f64), Fault> {
    let (cell, names) = first(prepared, stock)?;
    let goals = Goals::of(prepared, &cell, &names, stock)?;
    let promises = goals.iter().flat_map(|goals| &goals.promises);
    let promises: Vec<Nanos> = promises.map(|(.., p99)| *p99).collect();
    let cells = cells(&prepared.scenario);
    let windows = cells
        .iter()
        .find(|cell| Sharing::of(cell) == Sharing::Windows);
    let planning = windows.map_or_else(Planning::default, |cell| Planning::of(&cell.engine.gate));
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
    Ok((demanded.collect(), planning.promised_share(&promises)))
}

/// Takes the profile of a program in a run without the scenario's other programs. The name `training` stands for the training workload.
///
/// # Errors
///
/// If no program has this name, or its run cannot be.
pub fn profile(prepared: &Prepared, program: &str, stock: &Stock) -> Result<Profile, Fault> {
    let (cell, names) = first(prepared, stock)?;
    let lone = Lone::of(prepared, &cell, stock)
        .ok_or_else(|| Fault::Input("program: missing; profiles are of programs".to_owned()))?;
    if program == TRAINING {
        return lone.synthetic(lone.seed(), false);
    }
    let at = names.iter().position(|called| called.name == program);
    let at = at.ok_or_else(|| {
        let known = names.iter().map(|called| called.name.as_str());
        let known: Vec<&str> = known.chain([TRAINING]).collect();
        let meant = headtime_units::nearest(program, known.clone());
        let meant = meant.map_or_else(
            || ".".to_owned(),
            |name| format!("; did you mean \"{name}\"?"),
        );
        let known = known.join(", ");
        Fault::Usage(format!(
            "\"{program}\" is no program of the scenario{meant} Allowed are {known}"
        ))
    })?;
    lone.lone(at as u16 + 1, &names[at])
}

/// First run of a scenario, and the names of its programs.
fn first(prepared: &Prepared, stock: &Stock) -> Result<(Cell, Vec<Called>), Fault> {
    let mut cells = cells(&prepared.scenario).into_iter();
    let cell = cells.next().expect("a scenario has a run");
    let Workload::Programs(programs) = &prepared.scenario.workload else {
        return Ok((cell, Vec::new()));
    };
    let disk = prepared.drives[cell.drive].disk();
    let (_, names) = builder(programs, disk, prepared.scenario.seed, stock, 1)?;
    Ok((cell, names))
}
