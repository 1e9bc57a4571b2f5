//! Builds the source of a run's requests from its scenario.

use super::seed::mix;
use crate::fault::Fault;
use crate::prepare::{DriveSet, Prepared, synthetic, traced};
use crate::progress::Goal;
use crate::scenario::{Cell, Group, Pace, Program, Programs, Workload, of_programs};
use crate::stock::Stock;
use headtime_bound::{Bound, Machine};
use headtime_config::{Error, Place, Table};
use headtime_host::cluster::Cluster;
use headtime_host::guests::Guests;
use headtime_host::workload::{BenchmarkError, BenchmarkSpec};
use headtime_host::{DiskSize, Host, HostBuilder, HostError, ProgramOutcome};
use headtime_units::Bytes;
use headtime_workload::{
    ClosedPerProcess, ClosedReplay, OpenReplay, ReplayError, Source, Start, Synthetic,
};
use std::sync::Arc;

/// A program's names.
#[derive(Clone, Debug)]
pub(super) struct Called {
    /// Name in results.
    pub name: String,
    /// Benchmark that the program runs.
    pub benchmark: &'static str,
    /// Index of the scenario's entry that makes the program.
    pub entry: usize,
}

/// The source of a run's requests.
pub(super) enum Load {
    /// A source that has no results beyond its requests.
    Plain(Box<dyn Source + Send>),
    /// Programs on a host, and the names of each.
    Programs(Box<Host>, Vec<Called>),
    /// Programs on a cluster, and the names of each.
    Cluster(Box<Cluster>, Vec<Called>),
    /// Programs on guests, and the names of each.
    Guests(Guests, Vec<Called>),
}

fn host_fault(error: HostError) -> Fault {
    Fault::Input(format!("host: {error}"))
}

impl Load {
    /// Processes of a builder on one host, or on the nodes of the scenario's cluster.
    pub fn of(
        programs: &Programs,
        set: &DriveSet,
        builder: HostBuilder,
        names: Vec<Called>,
        seed: u64,
    ) -> Result<Load, Fault> {
        Ok(match programs.cluster.clone() {
            None => Load::Programs(Box::new(builder.build(seed).map_err(host_fault)?), names),
            Some(spec) => {
                let cluster = Cluster::new(spec, set.one_disk(), builder, seed);
                Load::Cluster(Box::new(cluster.map_err(host_fault)?), names)
            }
        })
    }

    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Load::Plain(source) => source.as_mut(),
            Load::Programs(host, _) => host.as_mut(),
            Load::Cluster(cluster, _) => cluster.as_mut(),
            Load::Guests(guests, _) => guests,
        }
    }

    /// Returns the names of each program.
    pub fn names(&self) -> &[Called] {
        match self {
            Load::Plain(_) => &[],
            Load::Programs(_, names) | Load::Cluster(_, names) | Load::Guests(_, names) => names,
        }
    }

    /// Returns what each program achieved.
    pub fn outcome(&self) -> Vec<ProgramOutcome> {
        match self {
            Load::Plain(_) => Vec::new(),
            Load::Programs(host, _) => host.outcome(),
            Load::Cluster(cluster, _) => cluster.outcome(),
            Load::Guests(guests, _) => guests.outcome(),
        }
    }

    /// Returns what each program achieved, with its names, and drops the host, which may be large.
    pub fn programs(self) -> Vec<(Called, ProgramOutcome)> {
        let outcome = self.outcome();
        let names = match self {
            Load::Plain(_) => Vec::new(),
            Load::Programs(_, names) | Load::Cluster(_, names) | Load::Guests(_, names) => names,
        };
        names.into_iter().zip(outcome).collect()
    }
}

/// Checks processes against each drive.
///
/// # Errors
///
/// If a process does not fit a drive; with the place of its key in the table of the scenario.
pub fn fits(prepared: &Prepared, table: &Table) -> Result<(), Fault> {
    let Workload::Synthetic(groups) = &prepared.scenario.workload else {
        return Ok(());
    };
    // All processes of a group are alike.
    let one = |group: &Group| Group {
        processes: 1,
        ..group.clone()
    };
    let groups: Vec<Group> = groups.iter().map(one).collect();
    let spec = synthetic(&groups, prepared.scenario.run.requests, 0);
    for set in &prepared.drives {
        let size = set.disk();
        Synthetic::new(&spec, size.capacity, size.sector_bytes).map_err(|error| {
            let entry = format!("workload.{}", error.process - 1);
            let key = format!("{entry}.{}", error.key);
            let node = table.at(&key).or_else(|| table.at(&entry));
            let place = node.map_or(Place::NoText, |node| node.place.clone());
            let key = format!("workload[{}].{}", error.process - 1, error.key);
            let (found, allowed, drive) = (error.found, error.allowed, &set.profile.name);
            let problem = format!("`{found}`: on {drive}, allowed is {allowed}");
            Fault::input(Error::new(place, key, problem))
        })?;
    }
    Ok(())
}

/// Builds the load of a run. Also returns the end of the run, for its progress.
pub(super) fn load(
    prepared: &Prepared,
    cell: &Cell,
    seed: u64,
    stock: &Stock,
) -> Result<(Load, Goal), Fault> {
    let scenario = &prepared.scenario;
    let set = &prepared.drives[cell.drive];
    let DiskSize {
        capacity,
        sector_bytes,
    } = set.disk();
    let goal = |requests: Option<u64>| match (scenario.run.duration, requests) {
        (Some(duration), _) => Goal::Time(duration),
        (None, Some(requests)) => Goal::Requests(requests),
        (None, None) => Goal::Unknown,
    };
    match &scenario.workload {
        Workload::Synthetic(groups) => {
            let spec = synthetic(groups, scenario.run.requests, seed);
            let source = Synthetic::new(&spec, capacity, sector_bytes)
                .map_err(|error| Fault::Input(format!("workload: {error}")))?;
            Ok((Load::Plain(Box::new(source)), goal(scenario.run.requests)))
        }
        Workload::Programs(programs) => {
            let (mut builders, names) = builders(programs, set.disk(), seed, stock)?;
            let load = match programs.guests {
                Some(_) => Load::Guests(Guests::new(builders, seed).map_err(host_fault)?, names),
                None => {
                    let builder = builders.pop().expect("there is one host");
                    Load::of(programs, set, builder, names, seed)?
                }
            };
            Ok((load, goal(None)))
        }
        Workload::Replay(replay) => {
            let script = set.script.as_ref().expect("a replay has a script");
            let goal = goal(Some(script.count()));
            let script = Arc::clone(script);
            let fault = |error: ReplayError| Fault::Input(format!("{}: {error}", replay.name()));
            let source: Box<dyn Source + Send> = match replay.pace {
                Pace::Open(speed) => {
                    Box::new(OpenReplay::new(script, speed, Start::AtOnce).map_err(fault)?)
                }
                Pace::Closed(outstanding) => Box::new(ClosedReplay::new(script, outstanding)),
                Pace::ClosedPerProcess => Box::new(ClosedPerProcess::new(script).map_err(fault)?),
            };
            Ok((Load::Plain(source), goal))
        }
    }
}

/// Computes the bound of the whole work of a run, from a second copy of its load.
pub(super) fn least(
    prepared: &Prepared,
    cell: &Cell,
    seed: u64,
    stock: &Stock,
    machine: &Machine<'_>,
) -> Result<Option<Bound>, Fault> {
    match &prepared.scenario.workload {
        Workload::Programs(programs) => {
            let set = &prepared.drives[cell.drive];
            let (builder, _) = builder(programs, set.disk(), seed, stock, 1)?;
            Ok(machine.programs(builder))
        }
        Workload::Synthetic(_) | Workload::Replay(_) => {
            let (mut load, _) = load(prepared, cell, seed, stock)?;
            Ok(machine.source(load.source()))
        }
    }
}

/// Prepares a host for each guest, on the guest's part of the disk, or one host without guests. Also returns the names
/// of each program.
pub(super) fn builders(
    programs: &Programs,
    disk: DiskSize,
    seed: u64,
    stock: &Stock,
) -> Result<(Vec<HostBuilder>, Vec<Called>), Fault> {
    let Some(guests) = programs.guests else {
        let (builder, names) = builder(programs, disk, seed, stock, 1)?;
        return Ok((vec![builder], names));
    };
    let part = Guests::part(disk, guests, programs.host.chunk);
    let fault = |fault| match fault {
        Fault::Input(problem) => {
            let size = Bytes(part.capacity.get() * u64::from(part.sector_bytes));
            Fault::Input(format!(
                "host.guests: each of {guests} guests has {size} of the disk, fewer guests have more: {problem}"
            ))
        }
        fault => fault,
    };
    let (mut builders, mut names) = (Vec::new(), Vec::new());
    for guest in 1..=guests {
        let first = names.len() as u32 + 1;
        let (builder, called) = builder(programs, part, seed, stock, first).map_err(fault)?;
        builders.push(builder);
        names.extend(called.into_iter().map(|mut called| {
            if guests > 1 {
                called.name = format!("guest {guest}: {}", called.name);
            }
            called
        }));
    }
    Ok((builders, names))
}

/// Prepares a host with the files and processes of some programs, numbered from `first` on. Also returns the names of
/// each program.
pub(super) fn builder(
    programs: &Programs,
    disk: DiskSize,
    seed: u64,
    stock: &Stock,
    mut first: u32,
) -> Result<(HostBuilder, Vec<Called>), Fault> {
    let mut builder = HostBuilder::new(programs.host.clone(), disk).map_err(host_fault)?;
    let mut entries = Vec::new();
    for Program {
        name,
        class,
        goal: _,
        profile: _,
        p99: _,
        benchmark,
    } in &programs.entries
    {
        let fault = |error: BenchmarkError| Fault::Input(format!("program: {error}"));
        let laid = match benchmark {
            BenchmarkSpec::Replay(spec) => traced(spec, disk, stock)?,
            _ => stock
                .laid(benchmark, disk, mix(seed ^ u64::from(first)))
                .map_err(fault)?,
        };
        builder.set_class(*class);
        let next = benchmark
            .add_laid(&laid, &mut builder, first)
            .map_err(fault)?;
        entries.push((name.as_deref(), benchmark.name(), (next - first) as usize));
        first = next;
    }
    let made = entries.iter().enumerate();
    let made = made.flat_map(|(entry, (_, benchmark, count))| {
        std::iter::repeat_n((entry, *benchmark), *count)
    });
    let called = of_programs(&entries).into_iter().zip(made);
    let called = called.map(|(name, (entry, benchmark))| Called {
        name,
        benchmark,
        entry,
    });
    Ok((builder, called.collect()))
}
