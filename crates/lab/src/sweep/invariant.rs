//! Invariants of a sweep, and the verdicts on them.

use super::Asked;
use super::plan::{Plan, describe};
use super::results::{Outcome, Results};
use crate::figure::X;
use crate::figure::judge::{MeasuredFigure, MeasuredPoint, finite};
use crate::report::catalogue::{Better, Measure};
use crate::report::round;
use headtime_config::Place;
use std::collections::BTreeMap;

/// Share of a bound. Runs that come nearer to the bound are made again.
const NEAR: f64 = 0.05;

/// A range that a metric must keep at every combination of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Invariant {
    /// Name in results.
    pub name: String,
    /// Settings of its runs, each KEY=VALUE.
    pub set: Vec<String>,
    /// Metric to judge: the value, or with `along` the least ratio of a step to the best step before.
    pub metric: &'static Measure,
    /// Axis whose steps are all run. With `over`, the number behind all axes: an axis of two steps, the other run and the invariant's own
    /// run.
    pub along: Option<usize>,
    /// Further settings of the other run, for the comparison with the own run.
    pub over: Vec<String>,
    /// Least and largest value that hold.
    pub accept: (f64, f64),
    /// Least and largest value for which no run is made again.
    pub sure: (f64, f64),
    /// Place of the invariant, for errors.
    pub place: Place,
}

impl Invariant {
    /// Returns the part of a range that is not near an end.
    pub fn sure((low, high): (f64, f64)) -> (f64, f64) {
        let near = |end: f64| {
            if end.is_finite() {
                NEAR * end.abs()
            } else {
                0.0
            }
        };
        (low + near(low), high - near(high))
    }

    /// Returns the key under which choices are judged together.
    pub fn point(&self, choice: &[usize]) -> Vec<usize> {
        self.step(choice, 0)
    }

    /// Returns a choice at a step of the axis along which values are compared.
    pub fn step(&self, choice: &[usize], step: usize) -> Vec<usize> {
        let mut choice = choice.to_vec();
        if let Some(axis) = self.along {
            choice.resize(choice.len().max(axis + 1), 0);
            choice[axis] = step;
        }
        choice
    }

    /// Returns the settings that a choice needs in addition to the values of its axes.
    pub fn settings<'a>(&'a self, choice: &[usize]) -> impl Iterator<Item = &'a String> + use<'a> {
        let is_other = !self.over.is_empty() && choice.last() == Some(&0);
        let other = self.over.iter().filter(move |_| is_other);
        self.set.iter().chain(other)
    }
}

/// The value of an invariant at a point.
struct SeenPoint {
    value: f64,
    /// The combinations behind this value, with their own values.
    of: Vec<(usize, f64)>,
    /// The combinations to run again.
    doubtful: Vec<usize>,
}

impl SeenPoint {
    /// Returns the least value of an invariant at a point, with the combinations behind that value. `members` are the
    /// point's combinations in the order of the steps. `None` if a combination has no value, or if no comparison is
    /// possible.
    fn of(
        of_invariant: usize,
        invariant: &Invariant,
        members: &[usize],
        results: &Results,
    ) -> Option<SeenPoint> {
        let more = invariant.metric.better == Better::More;
        let (mut seen, mut doubtful) = (None, Vec::new());
        let mut best: Option<(usize, f64)> = None;
        for number in members {
            let value = results.0[*number].judged(of_invariant)?.number()?;
            let own = (*number, value);
            let before = best.filter(|_| invariant.along.is_some());
            if best.is_none_or(|(_, best)| (value > best) == more) {
                best = Some(own);
            }
            let judged = match before {
                None if invariant.along.is_some() => continue,
                None => value,
                // Equal values have ratio 1, zeros too.
                Some((_, before)) if before == value => 1.0,
                Some((_, before)) if more => value / before,
                Some((_, before)) => before / value,
            };
            let of: Vec<(usize, f64)> = before.into_iter().chain([own]).collect();
            // Two runs of one seed with equal values served the same requests.
            if before.is_none_or(|(_, before)| before != value)
                && !(invariant.sure.0..=invariant.sure.1).contains(&judged)
            {
                doubtful.extend(of.iter().map(|(number, _)| *number));
            }
            if seen.as_ref().is_none_or(|(least, _)| judged < *least) {
                seen = Some((judged, of));
            }
        }
        doubtful.sort_unstable();
        doubtful.dedup();
        let (value, of) = seen?;
        Some(SeenPoint {
            value,
            of,
            doubtful,
        })
    }

    /// Returns all points, in the order of invariants and axes.
    fn all(plan: &Plan, results: &Results) -> BTreeMap<(usize, Vec<usize>), Option<SeenPoint>> {
        let mut points: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (number, one) in plan.combinations.iter().enumerate() {
            let Some(of) = one.invariant else { continue };
            let point = plan.sweep.invariants[of].point(&one.choice);
            points.entry((of, point)).or_default().push(number);
        }
        let invariants = &plan.sweep.invariants;
        let seen = points.into_iter();
        seen.map(|(key, of)| {
            let seen = SeenPoint::of(key.0, &invariants[key.0], &of, results);
            (key, seen)
        })
        .collect()
    }
}

/// Returns the runs to make again: near a bound or beyond, with the other side of each comparison.
pub fn doubtful(plan: &Plan, results: &Results) -> Vec<Asked> {
    let seen = SeenPoint::all(plan, results).into_values().flatten();
    let of = |number: usize| {
        let one = &plan.combinations[number];
        (one.choice.clone(), one.invariant)
    };
    seen.flat_map(|seen| seen.doubtful).map(of).collect()
}

/// Returns the verdict on each invariant at each point. Runs that were made again count in place of the first ones.
pub fn judge(
    id: String,
    plan: &Plan,
    results: &Results,
    again: Option<&(Plan, Results)>,
) -> MeasuredFigure {
    let sweep = &plan.sweep;
    let mut scenarios = plan
        .combinations
        .iter()
        .filter_map(|one| one.scenario.as_ref());
    let seed = scenarios.next().map_or(1, |scenario| scenario.seed);
    let mut second = again.map_or(BTreeMap::new(), |(plan, results)| {
        SeenPoint::all(plan, results)
    });
    let (mut points, mut notes, mut without) = (Vec::new(), Vec::new(), 0);
    for (key, first) in SeenPoint::all(plan, results) {
        let (seen, of_plan) = match (second.remove(&key), again) {
            (Some(seen), Some((again, _))) => (seen, again),
            _ => (first, plan),
        };
        let Some(seen) = seen else {
            without += 1;
            continue;
        };
        let (number, choice) = key;
        let invariant = &sweep.invariants[number];
        let within = (invariant.accept.0..=invariant.accept.1).contains(&seen.value);
        let made = MeasuredPoint {
            series: invariant.name.clone(),
            x: X::Text(describe(&sweep.axes, &choice, invariant.along)),
            metric: invariant.metric.name,
            unit: match invariant.along {
                Some(axis) => match sweep.axes.get(axis) {
                    Some(axis) => format!("of the best before, along {}", axis.name()),
                    None => format!("of that with {}", invariant.over.join(", ")),
                },
                None => invariant.metric.unit.to_owned(),
            },
            measured: round(seen.value, 6),
            accept: Some(finite(invariant.accept)),
            within: Some(within),
            ..MeasuredPoint::default()
        };
        if !within {
            let of = seen.of.iter().map(|(number, value)| {
                let one = &of_plan.combinations[*number];
                let same = |own: &super::Combination| {
                    (&own.choice, own.invariant) == (&one.choice, one.invariant)
                };
                let own = plan.combinations.iter().position(same);
                format!("{value} in combination {}", own.map_or(0, |own| own + 1))
            });
            let of: Vec<String> = of.collect();
            notes.push(format!("{}, {}: {}", made.series, made.x, of.join(", ")));
        }
        points.push(made);
    }
    for (number, outcome) in results.0.iter().enumerate() {
        if let Outcome::Failed(error) = outcome {
            notes.push(format!("combination {}: {error}", number + 1));
        }
    }
    if without > 0 {
        notes.push(format!(
            "{without} points are not judged: a run failed or has no such value"
        ));
    }
    MeasuredFigure {
        id,
        source: format!("{} combinations", plan.combinations.len()),
        title: plan.title.clone().unwrap_or_default(),
        seed,
        seeds: 1,
        reds_alone: true,
        points,
        notes,
        ..MeasuredFigure::default()
    }
}
