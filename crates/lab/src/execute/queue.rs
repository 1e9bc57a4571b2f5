//! Drives, schedulers and gates of a cell, and the coordinator of its disks.

use super::seed::mix;
use crate::fault::Fault;
use crate::prepare::{DriveSet, Prepared};
use crate::scenario::Cell;
use headtime_array::Coordinator;
use headtime_disk::Drive;
use headtime_engine::conduct::Conductor;
use headtime_engine::{GateError, Map as _};
use headtime_sched::StreamConfig;
use headtime_sim::{Setup, Station};
use headtime_stack::{Builder, Unbuilt};
use headtime_workload::Source;
use std::num::NonZero;
use std::sync::Arc;

/// Builds a cell's schedulers and gate.
pub(super) fn queue(set: &DriveSet, cell: &Cell) -> Result<Builder, Fault> {
    let sector_bytes = set.profile.geometry.sector_bytes;
    let built = Builder::new(&set.known, &cell.scheduler, &cell.engine, sector_bytes);
    built.map_err(|unbuilt| match unbuilt {
        Unbuilt::Gate(GateError { text, problem }) => {
            Fault::Input(format!("engine.gate: \"{text}\": {problem}"))
        }
        unbuilt => Fault::input(unbuilt),
    })
}

/// Sets a run up: the cell's disks with schedulers and gates, their coordinator, and a load. Each drive draws from a seed of its own, apart from the
/// seeds of programs.
///
/// # Errors
///
/// If a scheduler or gate cannot be built.
pub(super) fn setup<'a>(
    prepared: &Prepared,
    cell: &Cell,
    seed: u64,
    load: &'a mut dyn Source,
) -> Result<Setup<'a>, Fault> {
    let scenario = &prepared.scenario;
    let set = &prepared.drives[cell.drive];
    let drive = |member: u64| {
        let draws = mix((!seed).wrapping_add(member));
        Drive::with_layout(&set.profile, Arc::clone(&set.layout), draws)
    };
    let config = cell.engine.config(set.profile.geometry.sector_bytes);
    let queue = queue(set, cell)?;
    let mut setup = Setup::new(drive(0), config, queue.scheduler(), load);
    if let Some(map) = set.map() {
        let further = (1..u64::from(map.members())).map(drive);
        let station = |drive| Station::new(drive, config, queue.scheduler());
        setup.stations.extend(further.map(station));
        setup.map = Some(map);
        let bus = scenario.array.as_ref().and_then(|array| array.bus);
        setup.bus = bus.and_then(|bus| NonZero::new(bus.0));
    }
    for station in &mut setup.stations {
        station.gate = queue.gated();
        station.coalesce = scenario.drives[cell.drive].coalesce();
    }
    setup.conductor = coordinator(set, cell).map(|all| Box::new(all) as Box<dyn Conductor>);
    setup.timeout = scenario.run.timeout.0;
    Ok(setup)
}

/// The coordinator of an array's disks, if the cell has one.
fn coordinator(set: &DriveSet, cell: &Cell) -> Option<Coordinator> {
    let striped = set.striped.as_ref().filter(|_| cell.coordinate)?;
    let config = StreamConfig::of(&cell.scheduler)?;
    let coordinator = Coordinator::new(striped.members(), &config, set.known.curve()?);
    Some(coordinator.with_data(striped.data_disks()))
}
