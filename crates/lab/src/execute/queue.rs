//! Schedulers and gate of a cell.

use crate::fault::Fault;
use crate::prepare::DriveSet;
use crate::scenario::Cell;
use headtime_engine::GateError;
use headtime_stack::{Builder, Unbuilt};

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
