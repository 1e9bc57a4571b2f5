//! A figure as measured, and the verdicts on its points.

use super::{Figure, Judge, Point, RunOf, Scale, Transform, X};
use crate::report::catalogue::Better;
use crate::report::{Run, round};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure as measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredFigure {
    /// Name of the figure.
    pub id: String,
    /// Where the paper's numbers are from.
    pub source: String,
    /// Title of the figure.
    pub title: String,
    /// The seed of its first runs.
    pub seed: u64,
    /// Number of seeds of its runs; left out if 1.
    #[serde(skip_serializing_if = "is_one")]
    pub seeds: u32,
    /// True if the figure was run at its quick scale; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// True if tables and baselines have only points out of range.
    #[serde(skip)]
    pub reds_alone: bool,
    /// Points of the figure.
    pub points: Vec<MeasuredPoint>,
    /// Remarks on the figure and on single points, and the reasons for points out of their range.
    pub notes: Vec<String>,
}

/// One number of a figure as measured.
///
/// Invariants:
///
/// - `range = Some([least, most])` ⇒ `least ≤ measured ≤ most`.
/// - `paper.is_some()` ⇒ `paper = stated`; `calibrated` ⇒ `paper.is_none()`.
/// - `calibrated` ⇒ `within.is_none()`.
/// - `within.is_some()` ⇔ `accept.is_some()`, or the point is judged by `paper`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredPoint {
    /// The line or bar it belongs to.
    pub series: String,
    /// Place on the horizontal axis.
    pub x: X,
    /// Name of the metric.
    pub metric: &'static str,
    /// Unit of the value, in words.
    pub unit: String,
    /// Measured value; with several seeds, the mean of their values.
    pub measured: f64,
    /// Least and largest value of a seed; left out for a single seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The paper's number. `None` if the paper gives no number, or if the number was used to calibrate.
    pub paper: Option<f64>,
    /// Least and largest accepted value, each `None` if that end is open.
    pub accept: Option<[Option<f64>; 2]>,
    /// True if the point passes, as its [`Judge`] decides. `None` if the point is not judged.
    pub within: Option<bool>,
    /// True if the paper's number was used to calibrate; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub calibrated: bool,
    /// Share of the run's bound that the run achieved, in %. `None` for metrics without a bound, and for transforms that do not measure a
    /// single run.
    pub bound_share: Option<f64>,
    /// Shares of the origins, if the figure asks for shares and the point is the value of one run.
    #[serde(flatten)]
    pub shares: Option<Shares>,
    /// The paper's number even if the number was used to calibrate; for people only.
    #[serde(skip)]
    pub stated: Option<f64>,
}

/// Shares of the origins in a run, averaged over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shares {
    /// Jain's index of the origins' throughputs.
    pub fairness: f64,
    /// Share of each origin in the sum of the throughputs, in %, ordered by process and program.
    pub shares: Vec<f64>,
}

impl Shares {
    fn of(runs: &[&Run]) -> Shares {
        let count = runs.len() as f64;
        let mut by_origin: BTreeMap<(u32, u16), f64> = BTreeMap::new();
        for run in runs {
            let rates = run.per_origin.iter().map(|origin| origin.throughput_mb_s);
            let sum: f64 = rates.sum();
            for origin in &run.per_origin {
                let share = if sum > 0.0 {
                    100.0 * origin.throughput_mb_s / sum
                } else {
                    0.0
                };
                *by_origin
                    .entry((origin.process, origin.program))
                    .or_default() += share / count;
            }
        }
        Shares {
            fairness: round(runs.iter().map(|run| run.fairness).sum::<f64>() / count, 6),
            shares: by_origin
                .into_values()
                .map(|share| round(share, 6))
                .collect(),
        }
    }

    /// The least and the largest share.
    pub fn ends(&self) -> [f64; 2] {
        let shares = self.shares.iter().copied();
        [
            shares.clone().fold(f64::INFINITY, f64::min),
            shares.fold(f64::NEG_INFINITY, f64::max),
        ]
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(seeds: &u32) -> bool {
    *seeds == 1
}

/// Number of judged points, and of those within their ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Points that are judged.
    pub judged: usize,
    /// Judged points within their ranges.
    pub within: usize,
    /// Judged points for which the paper gives a number.
    pub stated: usize,
    /// Points within their ranges for which the paper gives a number.
    pub stated_within: usize,
}

impl Tally {
    /// Counts the points of some figures.
    pub fn of<'a>(figures: impl IntoIterator<Item = &'a MeasuredFigure>) -> Tally {
        let mut tally = Tally::default();
        for point in figures.into_iter().flat_map(|measured| &measured.points) {
            let Some(within) = point.within else { continue };
            let stated = point.paper.is_some();
            tally.judged += 1;
            tally.within += usize::from(within);
            tally.stated += usize::from(stated);
            tally.stated_within += usize::from(stated && within);
        }
        tally
    }
}

/// Writes the counts in words: `16 of 18 judged points are within; ..`.
impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally {
            judged,
            within,
            stated,
            stated_within,
        } = self;
        write!(f, "{within} of {judged} judged points are within")?;
        if *stated > 0 {
            let what = "of those with a number in the paper";
            write!(f, "; {what} {stated_within} of {stated}")?;
        }
        Ok(())
    }
}

impl MeasuredPoint {
    /// Name of the point in messages.
    pub fn name(&self) -> String {
        super::name(&self.series, &self.x, self.metric, &self.unit)
    }
}

/// A point in the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownPoint {
    /// The line or bar it belongs to.
    pub series: String,
    /// Place on the horizontal axis.
    pub x: X,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the value, in words.
    pub unit: String,
    /// The value.
    pub measured: f64,
    /// Reason for a point that is out of its range. An empty reason must still be written, and a check refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub red: Option<String>,
}

impl KnownPoint {
    /// True if this entry is about `point`.
    pub fn is_of(&self, point: &MeasuredPoint) -> bool {
        self.series == point.series
            && self.x == point.x
            && self.metric == point.metric
            && self.unit == point.unit
    }
}

/// Measures a figure. `run` gives the result of each run that its points name, with the first seed or a later seed.
///
/// With several seeds, each seed judges the point, and one value outside the range fails the point. [`Judge`] lists the alternatives.
///
/// # Errors
///
/// If a run lacks the value that a point measures. The error names the point.
pub fn measure<'a>(
    figure: &Figure,
    scale: Scale,
    run: impl Fn(&RunOf, u32) -> &'a Run,
    known: &[KnownPoint],
) -> Result<MeasuredFigure, String> {
    let mut notes = figure.notes.clone();
    let mut points = Vec::new();
    for point in &figure.points {
        let problem = |what: &str| format!("{}: {}: {what}", figure.id, point.name());
        let values = (0..figure.seeds).map(|seed| {
            let value = value(point, |of| run(of, seed));
            let value = value.ok_or_else(|| problem("has no such value"))?;
            Ok(round(value, 6))
        });
        let values: Vec<f64> = values.collect::<Result<_, String>>()?;
        let measured = round(values.iter().sum::<f64>() / values.len() as f64, 6);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let within = match point.judge {
            Judge::Each => point.accept.map(|(low, high)| low <= least && most <= high),
            Judge::Mean => point
                .accept
                .map(|(low, high)| (low..=high).contains(&measured)),
            Judge::Among => point.paper.map(|paper| (least..=most).contains(&paper)),
        };
        let shares = (0..figure.seeds).map(|seed| share_of_bound(point, |of| run(of, seed)));
        let shares: Option<Vec<f64>> = shares.collect();
        let made = MeasuredPoint {
            series: point.series.clone(),
            x: point.x.clone(),
            metric: point.metric.name,
            unit: point.unit.clone(),
            measured,
            range: (values.len() > 1).then_some([least, most]),
            paper: point.paper.filter(|_| !point.calibrated),
            accept: point.accept.map(finite),
            within,
            calibrated: point.calibrated,
            bound_share: shares
                .map(|shares| round(shares.iter().sum::<f64>() / f64::from(figure.seeds), 2)),
            shares: match (point.transform, &point.runs[..]) {
                (Transform::Value, [(own, _)]) if figure.shares => {
                    let runs: Vec<&Run> = (0..figure.seeds).map(|seed| run(own, seed)).collect();
                    Some(Shares::of(&runs))
                }
                _ => None,
            },
            stated: point.paper,
        };
        if let Some(note) = &point.note {
            let note = format!("{}, {}: {note}", point.series, point.x);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let reason = known.iter().find(|known| known.is_of(&made));
        if let (Some(false), Some(reason)) = (within, reason.and_then(|known| known.red.as_ref())) {
            notes.push(format!("{}: out of range: {reason}", made.name()));
        }
        points.push(made);
    }
    Ok(MeasuredFigure {
        id: figure.id.clone(),
        source: figure.source.clone(),
        title: figure.title.clone(),
        seed: figure.seed,
        seeds: figure.seeds,
        quick: scale == Scale::Quick,
        reds_alone: false,
        points,
        notes,
    })
}

fn value<'a>(point: &Point, run: impl Fn(&RunOf) -> &'a Run) -> Option<f64> {
    let metric = point.metric;
    // The value of a run, and the best value of the runs for comparison.
    let pair = |(own, others): &(RunOf, Vec<RunOf>)| -> Option<(f64, Option<f64>)> {
        let mut best: Option<f64> = None;
        for other in others {
            let value = metric.of_run(run(other))?;
            let better = best.is_none_or(|best| (value > best) == (metric.better == Better::More));
            best = if better { Some(value) } else { best };
        }
        Some((metric.of_run(run(own))?, best))
    };
    let speedup = |of: &(RunOf, Vec<RunOf>)| {
        let (own, other) = pair(of)?;
        let (good, bad) = match metric.better == Better::More {
            true => (own, other?),
            false => (other?, own),
        };
        (bad != 0.0).then_some(good / bad)
    };
    let first = point.runs.first()?;
    match point.transform {
        Transform::Sooner => {
            let (own, others) = first;
            sooner(run(own), run(others.first()?))
        }
        Transform::Added => {
            let (own, others) = first;
            let (base, others) = others.split_first()?;
            let base = metric.of_run(run(base))?;
            let (own, best) = pair(&(own.clone(), others.to_vec()))?;
            let added = best? - base;
            // If the other runs add nothing, there is no share.
            (added > 0.0).then(|| (own - base) / added)
        }
        Transform::Value => pair(first).map(|(own, _)| own),
        Transform::Ratio => {
            let (own, other) = pair(first)?;
            other.filter(|other| *other != 0.0).map(|other| own / other)
        }
        Transform::Speedup => speedup(first),
        Transform::Improvement => speedup(first).map(|times| (times - 1.0) * 100.0),
        Transform::Rise => {
            let times: Vec<f64> = point.runs.iter().map(speedup).collect::<Option<_>>()?;
            let rises = times.windows(2).map(|pair| pair[1] / pair[0]);
            rises.fold(None, |most: Option<f64>, rise| {
                Some(most.map_or(rise, |most| most.max(rise)))
            })
        }
    }
}

/// Share of a thousand ranks at which a run's response is shorter than another run's response of the same rank, in %.
fn sooner(own: &Run, other: &Run) -> Option<f64> {
    const RANKS: u32 = 1000;
    let at = |run: &Run, rank: u32| {
        let share = (f64::from(rank) + 0.5) / f64::from(RANKS);
        let point = run.curve.iter().find(|(_, below)| *below >= share);
        point.map(|(ms, _)| *ms)
    };
    let shorter = (0..RANKS).map(|rank| Some(at(own, rank)? < at(other, rank)?));
    let shorter: Vec<bool> = shorter.collect::<Option<_>>()?;
    let count = shorter.iter().filter(|shorter| **shorter).count();
    Some(100.0 * count as f64 / f64::from(RANKS))
}

/// Share of its bound that the run of a point achieved.
fn share_of_bound<'a>(point: &Point, run: impl Fn(&RunOf) -> &'a Run) -> Option<f64> {
    match (point.transform, &point.runs[..]) {
        (Transform::Rise | Transform::Sooner | Transform::Added, _) | (_, []) => None,
        (_, [(own, _), ..]) => point.metric.share_of_bound(run(own)),
    }
}

/// Lines that describe the points out of range.
pub fn out_of_range(measured: &MeasuredFigure) -> Vec<String> {
    measured
        .points
        .iter()
        .filter(|point| point.within == Some(false))
        .map(|point| {
            format!(
                "{}: {}: {} is outside {}",
                measured.id,
                point.name(),
                spread(point),
                range(point.accept)
            )
        })
        .collect()
}

/// Text of a point's value, with the range of its seeds' values.
pub fn spread(point: &MeasuredPoint) -> String {
    match point.range {
        Some([least, most]) => format!("{} ({least} to {most})", point.measured),
        None => point.measured.to_string(),
    }
}

/// A range, without ends that are open.
pub fn finite((low, high): (f64, f64)) -> [Option<f64>; 2] {
    [low, high].map(|end| end.is_finite().then_some(end))
}

/// A range as text.
pub fn range(accept: Option<[Option<f64>; 2]>) -> String {
    match accept {
        None | Some([None, None]) => String::new(),
        Some([Some(low), Some(high)]) => format!("{low}..{high}"),
        Some([Some(low), None]) => format!("≥ {low}"),
        Some([None, Some(high)]) => format!("≤ {high}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::catalogue::judged_by_name;
    use headtime_sched::Spec;

    fn figure(transform: Transform, metric: &str, runs: Vec<(RunOf, Vec<RunOf>)>) -> Figure {
        Figure {
            id: "f".to_owned(),
            source: String::new(),
            title: String::new(),
            seed: 1,
            seeds: 1,
            notes: Vec::new(),
            shares: false,
            variants: Vec::new(),
            points: vec![Point {
                series: "s".to_owned(),
                x: X::Number(1.0),
                metric: judged_by_name(metric).unwrap(),
                transform,
                unit: "u".to_owned(),
                runs,
                paper: Some(1.0),
                accept: Some((1.0, f64::INFINITY)),
                why: Some("so".to_owned()),
                judge: Judge::Each,
                calibrated: false,
                note: None,
            }],
            plots: Vec::new(),
        }
    }

    fn run(variant: usize, scheduler: &str) -> RunOf {
        RunOf {
            variant,
            scheduler: scheduler.parse::<Spec>().unwrap(),
        }
    }

    /// Runs whose rate and mean response rise by 10 with each variant, from 10 on. Both are twice as high under sstf, and three times under
    /// sptf.
    fn made() -> Vec<(RunOf, Run)> {
        let mut made = Vec::new();
        for variant in 0..3 {
            for (factor, scheduler) in [(1.0, "noop"), (2.0, "sstf"), (3.0, "sptf")] {
                let mut result = Run {
                    iops: 10.0 * (variant as f64 + 1.0) * factor,
                    ..Run::default()
                };
                result.response_ms.mean = result.iops;
                made.push((run(variant, scheduler), result));
            }
        }
        made
    }

    fn judged(figure: &Figure) -> Result<MeasuredFigure, String> {
        let made = made();
        let find = |of: &RunOf, _| &made.iter().find(|(run, _)| run == of).unwrap().1;
        measure(figure, Scale::Full, find, &[])
    }

    fn measured(figure: &Figure) -> MeasuredFigure {
        judged(figure).unwrap()
    }

    #[test]
    fn transforms_of_a_value_are_what_they_say() {
        let pair = |of: &[&str]| {
            let others = of.iter().map(|name| run(0, name)).collect();
            vec![(run(0, "sstf"), others)]
        };
        let rate = "iops";
        let time = "response_mean_ms";
        for (transform, metric, runs, value) in [
            (Transform::Value, rate, pair(&[]), 20.0),
            (Transform::Ratio, rate, pair(&["noop"]), 2.0),
            (Transform::Ratio, time, pair(&["noop"]), 2.0),
            (Transform::Speedup, rate, pair(&["noop"]), 2.0),
            (Transform::Speedup, time, pair(&["noop"]), 0.5),
            (Transform::Improvement, rate, pair(&["noop"]), 100.0),
            (Transform::Improvement, time, pair(&["noop"]), -50.0),
            // The best of several: the highest rate, the shortest time.
            (Transform::Ratio, rate, pair(&["noop", "sptf"]), 0.666_667),
            (Transform::Ratio, time, pair(&["sptf", "noop"]), 2.0),
        ] {
            let made = measured(&figure(transform, metric, runs));
            assert_eq!(made.points[0].measured, value, "{transform:?} {metric}");
            assert_eq!(made.points[0].within, Some(value >= 1.0));
        }
        // The run adds 20 - 10. The best of the others adds 30 - 10 as a time, and 60 - 10 as a rate.
        let others = vec![run(0, "noop"), run(1, "sptf"), run(0, "sptf")];
        for (metric, value) in [(time, 0.5), (rate, 0.2)] {
            let runs = vec![(run(0, "sstf"), others.clone())];
            let made = measured(&figure(Transform::Added, metric, runs));
            assert_eq!(made.points[0].measured, value, "{metric}");
        }
        // If the best of the others is no better than the first, there is no share.
        let nothing = vec![run(0, "noop"), run(0, "noop")];
        let less = vec![run(0, "sptf"), run(0, "noop")];
        for others in [nothing, less] {
            let figure = figure(Transform::Added, rate, vec![(run(0, "sstf"), others)]);
            assert!(judged(&figure).is_err(), "{figure:?}");
        }
        // Speedups 1, 2/3, 1: over noop of variants 2, 3, 2.
        let row = [2, 3, 2].map(|twice: usize| (run(1, "sstf"), vec![run(twice - 1, "sstf")]));
        let made = measured(&figure(Transform::Rise, rate, row.to_vec()));
        assert_eq!(made.points[0].measured, 1.5);
    }

    #[test]
    fn sooner_compares_responses_rank_by_rank() {
        let of = |curve: &[(f64, f64)]| Run {
            curve: curve.to_vec(),
            ..Run::default()
        };
        // Three quarters are shorter, an eighth is equal, and an eighth is longer.
        let own = of(&[(1.0, 0.5), (2.0, 0.75), (4.0, 0.875), (9.0, 1.0)]);
        let other = of(&[(2.0, 0.5), (4.0, 1.0)]);
        assert_eq!(sooner(&own, &other), Some(75.0));
        assert_eq!(sooner(&other, &own), Some(12.5));
        assert_eq!(sooner(&own, &own), Some(0.0));
        assert_eq!(sooner(&own, &Run::default()), None);
    }

    #[test]
    fn several_seeds_are_judged_each_or_by_their_mean_or_lie_around_the_number_of_the_paper() {
        let mut figure = figure(Transform::Value, "iops", vec![(run(0, "noop"), Vec::new())]);
        figure.seeds = 2;
        // 10 and 20 by the seed.
        let made = made();
        let by_seed = |_: &RunOf, seed: u32| {
            let of = run(seed as usize, "noop");
            &made.iter().find(|(run, _)| *run == of).unwrap().1
        };
        let mut judged = |judge, accept, paper| {
            let point = &mut figure.points[0];
            (point.judge, point.accept, point.paper) = (judge, accept, paper);
            let measured = measure(&figure, Scale::Full, by_seed, &[]).unwrap();
            measured.points[0].within
        };
        for (accept, each, mean) in [
            ((10.0, 20.0), true, true),
            ((14.0, 16.0), false, true),
            ((16.0, 30.0), false, false),
        ] {
            assert_eq!(judged(Judge::Each, Some(accept), None), Some(each));
            assert_eq!(judged(Judge::Mean, Some(accept), None), Some(mean));
        }
        assert_eq!(judged(Judge::Among, None, Some(10.0)), Some(true));
        assert_eq!(judged(Judge::Among, None, Some(20.5)), Some(false));
        assert_eq!(
            judged(Judge::Mean, None, Some(15.0)),
            None,
            "nothing accepted"
        );
    }

    #[test]
    fn the_bound_is_that_of_the_run_that_is_measured() {
        let mut made = made();
        for (of, result) in &mut made {
            result.bound = Some(crate::report::Bound {
                share: if of.scheduler.info().name == "sstf" {
                    61.234_567
                } else {
                    7.0
                },
                ..Default::default()
            });
        }
        let find = |of: &RunOf, _| &made.iter().find(|(run, _)| run == of).unwrap().1;
        let runs = vec![(run(0, "sstf"), vec![run(0, "noop")])];
        for (transform, metric, share) in [
            (Transform::Value, "iops", Some(61.23)),
            (Transform::Speedup, "iops", Some(61.23)),
            (Transform::Ratio, "response_mean_ms", None),
            (Transform::Rise, "iops", None),
        ] {
            let runs = match transform {
                Transform::Rise => [runs.clone(), runs.clone()].concat(),
                _ => runs.clone(),
            };
            let figure = figure(transform, metric, runs);
            let measured = measure(&figure, Scale::Full, find, &[]).unwrap();
            assert_eq!(
                measured.points[0].bound_share, share,
                "{transform:?} {metric}"
            );
        }
    }

    #[test]
    fn a_known_reason_comes_out_while_it_is_needed() {
        let runs = vec![(run(0, "sstf"), vec![run(0, "sptf")])];
        let figure = figure(Transform::Ratio, "iops", runs);
        let known = KnownPoint {
            series: "s".to_owned(),
            x: X::Number(1.0),
            metric: "iops".to_owned(),
            unit: "u".to_owned(),
            measured: 0.0,
            red: Some("arms are slow".to_owned()),
        };
        let made = made();
        let find = |of: &RunOf, _| &made.iter().find(|(run, _)| run == of).unwrap().1;
        let red = measure(&figure, Scale::Full, find, &[known]).unwrap();
        assert_eq!(red.notes, ["s, 1, iops (u): out of range: arms are slow"]);
        let lines = out_of_range(&red);
        assert_eq!(lines, ["f: s, 1, iops (u): 0.666667 is outside ≥ 1"]);
    }
}
