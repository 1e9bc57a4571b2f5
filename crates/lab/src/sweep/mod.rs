//! Runs a scenario for many values of its keys.
//!
//! A [`Sweep`] names the keys that vary and their values. A [`Plan`] has every combination, each a scenario of one run. [`Results`] hold
//! the measurements, and a [`Journal`](journal::Journal) stores them while the sweep runs. A [`Batch`](batch::Batch) has runs for another process. See docs/sweep.md for users, and
//! docs/design/2026-11-22-sweep.md for the reasons.

pub mod batch;
mod invariant;
pub mod journal;
pub mod output;
pub mod plan;
mod read;
pub mod results;
pub mod run;

use crate::scenario::{self, Scenario};
use headtime_config::{Error as TreeError, Node, Place, Table};
use headtime_workload::Random;
use std::collections::BTreeSet;

pub use invariant::{Invariant, doubtful, judge};
pub use plan::{Combination, Plan};
pub use results::Results;

/// Columns between the swept keys and the measured values.
pub const FIRST_COLUMNS: [&str; 3] = ["combination", "origin", "program"];
/// Columns behind the measured values.
pub const LAST_COLUMNS: [&str; 2] = ["scenario_hash", "error"];

/// Keys that may have a list of values in a scenario, each with its column of results. Each value makes a run. The last key varies
/// fastest, as in [`scenario::cells`].
pub fn lists() -> impl Iterator<Item = (String, &'static str)> {
    let drive = [("drive.profile", "drive"), ("drive.firmware", "firmware")];
    let schedulers = [("schedulers", "scheduler")];
    let own = |(key, column): (&str, &'static str)| (key.to_owned(), column);
    let engine = scenario::options().map(|key| (format!("engine.{key}"), key));
    let before = drive.into_iter().map(own).chain(engine);
    before.chain(schedulers.into_iter().map(own))
}

/// Column that has the value of a key.
pub fn column_of(key: &str) -> Option<&'static str> {
    let found = lists().find(|(own, _)| *own == key);
    found.map(|(_, column)| column)
}

/// Which combinations are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every one.
    #[default]
    Cross,
    /// Each key alone, all others as in the scenario; and pairs of keys that are named.
    Each,
    /// A number of combinations, drawn at random, each at most once.
    Draw,
}

/// A run to make: the step of each axis, and the invariant, if there is one.
pub type Asked = (Vec<usize>, Option<usize>);

/// Keys that vary, and the combinations to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Which combinations are run.
    pub mode: Mode,
    /// Axes. The first varies most slowly.
    pub axes: Vec<SweptAxis>,
    /// Axes that [`Mode::Each`] crosses in pairs, in addition to each axis alone.
    pub pairs: Vec<[usize; 2]>,
    /// Number of combinations to draw.
    pub points: usize,
    /// Invariants, each with its own runs.
    pub invariants: Vec<Invariant>,
    /// Settings of runs that are made again, each KEY=VALUE.
    pub again: Vec<String>,
    /// Place of the sweep in the scenario or on the command line, for errors.
    pub place: Place,
}

/// A key and its values, or several keys that vary together.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptAxis {
    /// The keys, as they are written.
    pub keys: Vec<String>,
    /// Place of each key.
    places: Vec<Place>,
    /// Steps of the axis, each with a value for each key.
    values: Vec<Vec<Node>>,
    /// Step of this axis while other axes vary alone.
    pub base: usize,
}

/// Line of a place in its file. Places outside a file come behind all lines.
fn line_of(place: &Place) -> usize {
    match place {
        Place::Line(_, line) => *line,
        _ => usize::MAX,
    }
}

impl SweptAxis {
    /// Name in messages and pictures: the first key.
    pub fn name(&self) -> &str {
        &self.keys[0]
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if the axis has no steps, which never happens.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of a step, a node for each key.
    pub fn step(&self, number: usize) -> &[Node] {
        &self.values[number]
    }

    /// The values of a step as text.
    pub fn text(&self, number: usize) -> String {
        let texts: Vec<String> = self.values[number]
            .iter()
            .map(|node| node.value.text())
            .collect();
        texts.join(" · ")
    }

    fn place(&self) -> &Place {
        &self.places[0]
    }

    /// The first line of the axis, and its first key.
    fn line(&self) -> (usize, String) {
        let lines = self.places.iter().map(line_of);
        (lines.min().unwrap_or(usize::MAX), self.keys[0].clone())
    }

    /// Puts a step into the table of a scenario.
    fn put(&self, number: usize, table: &mut Table) -> Result<(), TreeError> {
        let mut pairs = self.keys.iter().zip(&self.values[number]);
        pairs.try_for_each(|(key, node)| Scenario::put(table, key, node.clone()))
    }
}

impl Sweep {
    /// Content of the sweep, by dotted key.
    fn flat(&self) -> Vec<(String, String)> {
        let mut flat = Vec::new();
        for axis in &self.axes {
            for (at, key) in axis.keys.iter().enumerate() {
                let texts = axis.values.iter().map(|values| values[at].value.text());
                let list = format!("[{}]", texts.collect::<Vec<_>>().join(", "));
                flat.push((format!("sweep.{key}"), list));
            }
        }
        let mode = format!("{:?}", self.mode).to_lowercase();
        flat.push(("sweep.mode".to_owned(), mode));
        flat.push(("sweep.points".to_owned(), self.points.to_string()));
        if !self.pairs.is_empty() {
            let name = |axis: usize| self.axes[axis].name();
            let pairs = self.pairs.iter();
            let pairs = pairs.map(|[one, other]| format!("{} with {}", name(*one), name(*other)));
            let list = pairs.collect::<Vec<_>>().join(", ");
            flat.push(("sweep.pairs".to_owned(), list));
        }
        flat
    }

    /// Number of choices of values. The scenario's own lists multiply this number.
    pub fn count(&self) -> u64 {
        let counts: Vec<usize> = self.axes.iter().map(SweptAxis::len).collect();
        match self.mode {
            Mode::Cross => headtime_config::count(&counts),
            Mode::Draw => headtime_config::count(&counts).min(self.points as u64),
            Mode::Each => {
                let others = |axis: &SweptAxis| axis.len() as u64 - 1;
                let alone: u64 = self.axes.iter().map(others).sum();
                let pairs = self.pairs.iter();
                let pairs = pairs.map(|[one, other]| {
                    others(&self.axes[*one]).saturating_mul(others(&self.axes[*other]))
                });
                pairs.fold(1 + alone, u64::saturating_add)
            }
        }
    }

    /// All runs, in the order of the results. Without invariants each choice is a run. An invariant has a run for each choice, or for each
    /// step of its axis.
    fn runs(&self, seed: u64) -> Vec<Asked> {
        let choices = self.choices(seed);
        if self.invariants.is_empty() {
            return choices.into_iter().map(|choice| (choice, None)).collect();
        }
        let mut seen = BTreeSet::new();
        let mut runs = Vec::new();
        for choice in choices {
            for (number, invariant) in self.invariants.iter().enumerate() {
                let point = invariant.point(&choice);
                if !seen.insert((number, point.clone())) {
                    continue;
                }
                let steps = |axis| self.axes.get(axis).map_or(2, SweptAxis::len);
                let steps = 0..invariant.along.map_or(1, steps);
                let of = |step| (invariant.step(&choice, step), Some(number));
                runs.extend(steps.map(of));
            }
        }
        runs
    }

    /// All choices of a step of each axis, in the order of the results.
    fn choices(&self, seed: u64) -> Vec<Vec<usize>> {
        let counts: Vec<usize> = self.axes.iter().map(SweptAxis::len).collect();
        if self.mode == Mode::Cross {
            return headtime_config::combinations(&counts).collect();
        }
        if self.mode == Mode::Draw {
            // Fewer points of the same seed are the first of these points.
            let (mut random, mut drawn) = (Random::keyed(seed, 0, 0), BTreeSet::new());
            let mut step = |count: &usize| random.below(*count as u64) as usize;
            let draw = || counts.iter().map(&mut step).collect::<Vec<usize>>();
            let new = std::iter::repeat_with(draw).filter(|choice| drawn.insert(choice.clone()));
            return new.take(self.count() as usize).collect();
        }
        let base: Vec<usize> = self.axes.iter().map(|axis| axis.base).collect();
        let others = |axis: usize| {
            let own = self.axes[axis].base;
            (0..counts[axis]).filter(move |step| *step != own)
        };
        let mut choices = vec![base.clone()];
        for axis in 0..self.axes.len() {
            for step in others(axis) {
                let mut choice = base.clone();
                choice[axis] = step;
                choices.push(choice);
            }
        }
        for &[one, other] in &self.pairs {
            for step in others(one) {
                for beside in others(other) {
                    let mut choice = base.clone();
                    (choice[one], choice[other]) = (step, beside);
                    choices.push(choice);
                }
            }
        }
        choices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_testkit::damaged;
    use proptest::prelude::*;

    const CROSS: &str = include_str!("../../../../experiments/read-ahead.toml");
    const EACH: &str = "
        schedulers = 'noop'
        drive.profile = 'atlas10k'
        workload.requests = 20
        [sweep]
        mode = 'each'
        pairs = [['seed', 'engine.depth'], ['drive.firmware', 'run.repeats']]
        engine.depth = [1, 2, 4]
        seed = '1, 2, 3, 4'
        run.repeats = [1, 2]
        [[sweep.together]]
        drive.firmware = ['fifo', 'sptf']
        engine.merge = [true, false]
    ";

    fn take(text: &str) -> Result<Option<Sweep>, TreeError> {
        Sweep::take(&mut Table::parse("s.toml", text)?, &[])
    }

    #[test]
    fn there_are_as_many_choices_as_counted() {
        for (text, count) in [(CROSS, 2 * 3 * 8), (EACH, 1 + 2 + 3 + 1 + 1 + 3 * 2 + 1)] {
            let sweep = take(text).unwrap().unwrap();
            let mut choices = sweep.choices(1);
            assert_eq!((sweep.count(), choices.len()), (count, count as usize));
            choices.sort();
            choices.dedup();
            assert_eq!(choices.len(), count as usize);
        }
        assert_eq!(take("seed = 1").unwrap(), None);
    }

    /// Axes follow the order of lines, and not the names or the notation of keys.
    #[test]
    fn keys_stand_in_the_order_of_the_file() {
        let names = |text: &str| -> Vec<String> {
            let sweep = take(text).unwrap().unwrap();
            let names = sweep.axes.iter().map(|axis| axis.name().to_owned());
            names.collect()
        };
        assert_eq!(
            names(CROSS),
            ["engine.hide_processes", "engine.depth", "host.read_ahead"]
        );
        assert_eq!(
            names(EACH),
            ["engine.depth", "seed", "run.repeats", "drive.firmware"]
        );
        let sweep = "[[sweep.together]]\nworkload.processes = [1, 2]\nengine.depth = [1, 2]";
        let sweep = take(&format!("seed = 1\n{sweep}")).unwrap().unwrap();
        assert_eq!(sweep.axes[0].keys, ["workload.processes", "engine.depth"]);
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(text in damaged(&[CROSS, EACH])) {
            if let Ok(Some(sweep)) = take(&text) {
                prop_assert!(sweep.count() > 0);
                prop_assert_eq!(sweep.choices(1).len() as u64, sweep.count());
            }
        }

        #[test]
        fn no_option_makes_it_panic(option in "[a-z0-9._=, \\[\\]]{0,30}") {
            let mut table = Table::parse("s.toml", EACH).unwrap();
            if let Ok(sweep) = Sweep::take(&mut table, &[option]) {
                prop_assert!(sweep.unwrap().count() > 0);
            }
        }
    }
}
