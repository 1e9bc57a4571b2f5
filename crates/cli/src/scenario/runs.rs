//! The matrix: one run for each combination of what is compared.

use super::{Alternatives, Scenario};
use headtime_config::Many;
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

/// How many combinations there are of so many values each.
pub fn count(counts: &[usize]) -> u64 {
    let counts = counts.iter().map(|&count| count as u64);
    counts.fold(1, u64::saturating_mul)
}

/// All combinations of so many values each, as the numbers of the values; the last varies fastest.
pub fn combinations(counts: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..count(counts)).map(move |number| {
        let mut rest = number;
        let mut values = vec![0; counts.len()];
        for (value, &count) in values.iter_mut().zip(counts).rev() {
            *value = (rest % count as u64) as usize;
            rest /= count as u64;
        }
        values
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_varies_fastest() {
        let all: Vec<Vec<usize>> = combinations(&[2, 1, 3]).collect();
        let expected = [
            [0, 0, 0],
            [0, 0, 1],
            [0, 0, 2],
            [1, 0, 0],
            [1, 0, 1],
            [1, 0, 2],
        ];
        assert_eq!(all, expected);
        // Of nothing there is one combination, of no values of something none.
        assert_eq!(combinations(&[]).collect::<Vec<_>>(), [Vec::<usize>::new()]);
        assert_eq!(combinations(&[2, 0]).count(), 0);
        assert_eq!(count(&[1000; 30]), u64::MAX);
    }
}
