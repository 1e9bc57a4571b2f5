//! The matrix: one run for each combination of what is compared.

use super::{Firmware, Scenario};
use headtime_sched::Spec;

/// One combination of what is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Which of the scenario's drives.
    pub drive: usize,
    /// The order in the drive.
    pub firmware: Firmware,
    /// Requests in the drive at once.
    pub depth: u32,
    /// Whether requests are merged.
    pub merge: bool,
    /// Whether one request more is taken from the scheduler.
    pub commit_ahead: bool,
    /// The scheduler.
    pub scheduler: Spec,
}

/// All combinations, schedulers varying fastest, so that those compared stand side by side.
pub fn cells(scenario: &Scenario) -> Vec<Cell> {
    let mut cells = Vec::new();
    for drive in 0..scenario.drives.len() {
        for &firmware in &scenario.firmware {
            for &depth in &scenario.depths {
                for &merge in &scenario.merge {
                    for &commit_ahead in &scenario.commit_ahead {
                        for scheduler in &scenario.schedulers {
                            cells.push(Cell {
                                drive,
                                firmware,
                                depth,
                                merge,
                                commit_ahead,
                                scheduler: scheduler.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
    cells
}
