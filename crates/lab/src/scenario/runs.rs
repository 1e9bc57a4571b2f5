//! The matrix: one run for each combination of compared values.

use super::alternatives::Alternatives;
use super::spec::Scenario;
use headtime_config::{Many, combinations};
use headtime_engine::EngineSpec;
use headtime_sched::{Spec, StreamConfig};
use headtime_stack::ArraySpec;

/// One combination of compared values.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index of the scenario's drive.
    pub drive: usize,
    /// The engine.
    pub engine: EngineSpec,
    /// The scheduler.
    pub scheduler: Spec,
    /// True if the disks of an array are coordinated.
    pub coordinate: bool,
}

/// True if the scheduler of an array's disks obeys a coordinator.
pub fn obeys(scheduler: &Spec) -> bool {
    StreamConfig::of(scheduler).is_some()
}

/// Values of `array.coordinate` for a scheduler. A scheduler that does not obey runs without a coordinator.
fn coordinate(scenario: &Scenario, scheduler: &Spec) -> Vec<bool> {
    match &scenario.array {
        Some(array) if obeys(scheduler) => array.coordinate.0.clone(),
        _ => vec![false],
    }
}

/// All combinations, schedulers varying fastest, so that those compared stand side by side.
pub fn cells(scenario: &Scenario) -> Vec<Cell> {
    let counts = [
        scenario.drives.len(),
        scenario.engines.len(),
        scenario.schedulers.len(),
    ];
    combinations(&counts)
        .flat_map(|of| {
            let scheduler = &scenario.schedulers[of[2]];
            let values = coordinate(scenario, scheduler).into_iter();
            values.map(move |coordinate| Cell {
                drive: of[0],
                engine: scenario.engines[of[1]].clone(),
                scheduler: scheduler.clone(),
                coordinate,
            })
        })
        .collect()
}

/// The array of one of the runs of a scenario.
pub fn array(scenario: &Scenario, cell: &Cell) -> Option<ArraySpec> {
    scenario.array.clone().map(|array| ArraySpec {
        coordinate: Many(vec![cell.coordinate]),
        ..array
    })
}

/// The scenario of one of the runs of a scenario.
pub fn alone(scenario: &Scenario, cell: &Cell) -> Scenario {
    Scenario {
        schedulers: Many(vec![cell.scheduler.clone()]),
        drives: Alternatives::one(scenario.drives[cell.drive].clone()),
        engines: Alternatives::one(cell.engine.clone()),
        array: array(scenario, cell),
        ..scenario.clone()
    }
}
