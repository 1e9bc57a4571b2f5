//! The matrix: one run for each combination of what is compared.

use super::alternatives::Alternatives;
use super::spec::Scenario;
use headtime_config::{Many, combinations};
use headtime_engine::EngineSpec;
use headtime_sched::Spec;

/// One combination of what is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Which of the scenario's drives.
    pub drive: usize,
    /// The engine.
    pub engine: EngineSpec,
    /// The scheduler.
    pub scheduler: Spec,
}

/// All combinations, schedulers varying fastest, so that those compared stand side by side.
pub fn cells(scenario: &Scenario) -> Vec<Cell> {
    let counts = [
        scenario.drives.len(),
        scenario.engines.len(),
        scenario.schedulers.len(),
    ];
    combinations(&counts)
        .map(|of| Cell {
            drive: of[0],
            engine: scenario.engines[of[1]].clone(),
            scheduler: scenario.schedulers[of[2]].clone(),
        })
        .collect()
}

/// The scenario of one of the runs of a scenario.
pub fn alone(scenario: &Scenario, cell: &Cell) -> Scenario {
    Scenario {
        schedulers: Many(vec![cell.scheduler.clone()]),
        drives: Alternatives::one(scenario.drives[cell.drive].clone()),
        engines: Alternatives::one(cell.engine.clone()),
        ..scenario.clone()
    }
}
