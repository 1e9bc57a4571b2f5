//! The algorithms again, from their definitions and without regard to time, on random samples.

use super::folds::Folds;
use super::prune::{best_first, between, steps, weakest_links};
use super::sample::Sample;
use super::split::{Branch, Limits, grow};
use super::{CartOptions, Stop};
use crate::features::{Feature, FeatureSet, Vector};
use headtime_units::Millionths;
use headtime_workload::Random;

const FEATURES: FeatureSet = FeatureSet::of(&[Feature::Distance, Feature::Size, Feature::Reads]);

/// Random samples. Coarse samples have few values, which makes ties.
fn drawn(seed: u64, count: u64, is_coarse: bool) -> Vec<Sample> {
    let mut random = Random::new(seed, 0, 0);
    let sample = |nth: u64| {
        let mut number = || match is_coarse {
            true => random.below(4) as f64,
            false => random.unit() * 10.0,
        };
        let vector: Vector = std::array::from_fn(|_| number());
        let noise = number();
        Sample {
            vector,
            rate: 1.0 + vector[0] * vector[0] + 3.0 * vector[2] + noise,
            seconds: 1.0 + noise,
            is_judged: !nth.is_multiple_of(3),
            group: nth / 2,
        }
    };
    (0..count).map(sample).collect()
}

fn limits(min_split: usize, min_bucket: usize) -> Limits {
    Limits {
        features: FEATURES,
        min_split,
        min_bucket,
    }
}

fn rates(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.rate).collect()
}

fn whole(samples: &[Sample], y: &[f64], limits: &Limits) -> Vec<Branch> {
    grow(samples, y, (0..samples.len() as u32).collect(), limits)
}

/// Sum of the squared differences from the mean.
fn sse(y: &[f64], members: &[usize]) -> f64 {
    let mean = members.iter().map(|member| y[*member]).sum::<f64>() / members.len() as f64;
    members
        .iter()
        .map(|member| (y[*member] - mean).powi(2))
        .sum()
}

/// The best split, with its gain, by trying each: the first of equals in the order of features and thresholds.
fn best_split(
    samples: &[Sample],
    y: &[f64],
    members: &[usize],
    limits: &Limits,
) -> Option<(Feature, f64, f64)> {
    let mut best = None;
    let mut least = sse(y, members) * 1e-9;
    if members.len() < limits.min_split {
        return None;
    }
    for feature in limits.features.iter() {
        let value = |member: &usize| samples[*member].vector[feature.index()];
        let mut values: Vec<f64> = members.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        for pair in values.windows(2) {
            let threshold = (pair[0] + pair[1]) / 2.0;
            let (left, right): (Vec<usize>, Vec<usize>) = members
                .iter()
                .partition(|member| value(member) <= threshold);
            if left.len().min(right.len()) < limits.min_bucket {
                continue;
            }
            let gain = sse(y, members) - sse(y, &left) - sse(y, &right);
            if gain > least * (1.0 + 1e-10) {
                (best, least) = (Some((feature, threshold, gain)), gain);
            }
        }
    }
    best
}

/// Compares a tree with the splits that are best by trying each. Returns the place behind the subtree.
fn compare(
    branches: &[Branch],
    at: usize,
    samples: &[Sample],
    y: &[f64],
    members: &[usize],
    limits: &Limits,
) -> usize {
    let branch = &branches[at];
    assert_eq!(branch.count as usize, members.len());
    assert!((branch.sse - sse(y, members)).abs() <= 1e-9 * (1.0 + branch.sse));
    let bytes: f64 = members
        .iter()
        .map(|member| samples[*member].rate * samples[*member].seconds)
        .sum();
    let seconds: f64 = members.iter().map(|member| samples[*member].seconds).sum();
    assert!((branch.rate / (bytes / seconds) - 1.0).abs() < 1e-12);
    let Some((feature, threshold, gain)) = best_split(samples, y, members, limits) else {
        assert!(branch.split.is_none(), "{branch:?} is split");
        return at + 1;
    };
    let split = branch.split.expect("a split reduces the variance");
    assert_eq!(split.feature, feature);
    assert!((split.threshold - threshold).abs() < 1e-12 * (1.0 + threshold.abs()));
    assert!(
        (split.gain / gain - 1.0).abs() < 1e-6,
        "{} and {gain}",
        split.gain
    );
    let is_left = |member: &&usize| samples[**member].vector[feature.index()] <= threshold;
    let (left, right): (Vec<&usize>, Vec<&usize>) = members.iter().partition(is_left);
    let owned = |members: Vec<&usize>| members.into_iter().copied().collect::<Vec<_>>();
    let next = compare(branches, at + 1, samples, y, &owned(left), limits);
    assert_eq!(branch.right, next);
    compare(branches, next, samples, y, &owned(right), limits)
}

#[test]
fn each_split_is_the_best_of_all_and_the_first_of_equals() {
    for seed in 0..60 {
        let samples = drawn(seed, 5 + seed, seed % 2 == 0);
        let (y, limits) = (
            rates(&samples),
            limits(2 + seed as usize % 5, 1 + seed as usize % 3),
        );
        let branches = whole(&samples, &y, &limits);
        let members: Vec<usize> = (0..samples.len()).collect();
        assert_eq!(
            compare(&branches, 0, &samples, &y, &members, &limits),
            branches.len()
        );
    }
}

/// The leaves of a tree whose splits are `open`.
fn leaves(branches: &[Branch], at: usize, open: &[bool], found: &mut Vec<usize>) {
    if branches[at].split.is_some() && open[at] {
        leaves(branches, at + 1, open, found);
        leaves(branches, branches[at].right, open, found);
    } else {
        found.push(at);
    }
}

/// Mean squared difference and number of leaves of the subtree at a node.
fn cost(branches: &[Branch], at: usize, open: &[bool]) -> (f64, usize) {
    let mut found = Vec::new();
    leaves(branches, at, open, &mut found);
    let sse: f64 = found.iter().map(|leaf| branches[*leaf].sse).sum();
    (sse / f64::from(branches[0].count), found.len())
}

fn reached(branches: &[Branch], at: usize, open: &[bool], found: &mut Vec<usize>) {
    if branches[at].split.is_some() && open[at] {
        found.push(at);
        reached(branches, at + 1, open, found);
        reached(branches, branches[at].right, open, found);
    }
}

/// Leaves of the tree of a size.
fn sized(branches: &[Branch], numbers: &[f64], size: f64) -> Vec<usize> {
    let open: Vec<bool> = numbers.iter().map(|number| *number > size).collect();
    let mut found = Vec::new();
    leaves(branches, 0, &open, &mut found);
    found
}

#[test]
fn the_weakest_link_goes_first_and_trees_are_nested() {
    for seed in 0..30 {
        let samples = drawn(seed, 60, seed % 2 == 0);
        let branches = whole(&samples, &rates(&samples), &limits(4, 2));
        let numbers = weakest_links(&branches);
        let sizes = between(&numbers);
        let mut open: Vec<bool> = branches
            .iter()
            .map(|branch| branch.split.is_some())
            .collect();
        let mut trees = vec![sized(&branches, &numbers, sizes[0])];
        trees.extend(
            sizes[1..]
                .iter()
                .map(|size| sized(&branches, &numbers, *size)),
        );
        let mut nth = 0;
        loop {
            let mut splits = Vec::new();
            reached(&branches, 0, &open, &mut splits);
            let link = |at: usize| {
                let ((before, count), after) = (cost(&branches, at, &open), branches[at].sse);
                (after / f64::from(branches[0].count) - before) / (count - 1) as f64
            };
            let mut current = Vec::new();
            leaves(&branches, 0, &open, &mut current);
            if trees.get(nth) == Some(&current) {
                nth += 1;
            }
            // A tree of a size costs no more than any other on the way.
            for (tree, size) in trees
                .iter()
                .zip(&sizes)
                .filter(|(_, size)| size.is_finite())
            {
                let cost = |tree: &[usize]| {
                    let sse: f64 = tree.iter().map(|leaf| branches[*leaf].sse).sum();
                    sse / f64::from(branches[0].count) + size * tree.len() as f64
                };
                assert!(
                    cost(tree) <= cost(&current) * (1.0 + 1e-9),
                    "seed {seed}, size {size}"
                );
            }
            let Some(weakest) = splits
                .iter()
                .copied()
                .min_by(|a, b| link(*a).total_cmp(&link(*b)))
            else {
                break;
            };
            let number = numbers[weakest];
            assert!(
                (number - link(weakest)).abs() <= 1e-9 * number.max(1.0),
                "{number} and {}",
                link(weakest)
            );
            open[weakest] = false;
        }
        // In coarse samples some links are equal but for rounding, and may go in another order.
        assert!(
            seed % 2 == 0 || nth == trees.len(),
            "seed {seed}: each size is a tree on the way"
        );
    }
}

#[test]
fn the_leaf_with_the_largest_gain_is_split_next() {
    for seed in 0..30 {
        let samples = drawn(seed, 60, seed % 2 == 0);
        let branches = whole(&samples, &rates(&samples), &limits(4, 2));
        let numbers = best_first(&branches);
        let mut open = vec![false; branches.len()];
        let sizes = steps(&numbers);
        for size in sizes.iter().rev() {
            let mut current = Vec::new();
            leaves(&branches, 0, &open, &mut current);
            assert_eq!(
                sized(&branches, &numbers, *size),
                current,
                "seed {seed}, size {size}"
            );
            let gain = |leaf: &usize| branches[*leaf].split.map(|split| split.gain);
            let next = current
                .iter()
                .rev()
                .max_by(|a, b| gain(a).partial_cmp(&gain(b)).unwrap());
            let next = *next.unwrap();
            open[next] = branches[next].split.is_some();
        }
        assert!(sizes.len() > 10 && *sizes.last().unwrap() == 0.0);
    }
}

#[test]
fn losses_are_those_of_walking_each_tree_of_each_size() {
    for seed in 0..20 {
        let samples = drawn(seed, 80, seed % 2 == 0);
        let (y, limits) = (rates(&samples), limits(4, 2));
        let numbers = weakest_links(&whole(&samples, &y, &limits));
        let sizes = between(&numbers);
        let folds = Folds::new(samples.iter().map(|sample| sample.group), 5).unwrap();
        let folds = folds.grown(|members| {
            let branches = grow(&samples, &y, members, &limits);
            let numbers = weakest_links(&branches);
            (branches, numbers)
        });
        let loss = |leaf: &Branch, sample: usize| (leaf.rate - samples[sample].rate).powi(2);
        let losses = folds.losses(&sizes, &samples, loss);
        let naive = sizes.iter().map(|size| {
            let predicted = folds.predictions(*size, &samples);
            let pairs = predicted
                .iter()
                .zip(&samples)
                .filter(|(_, sample)| sample.is_judged);
            let losses: Vec<f64> = pairs
                .map(|(rate, sample)| (rate - sample.rate).powi(2))
                .collect();
            let (count, sum) = (losses.len() as f64, losses.iter().sum::<f64>());
            let variance = losses
                .iter()
                .map(|loss| (loss - sum / count).powi(2))
                .sum::<f64>()
                / count;
            (sum / count, (variance / count).sqrt())
        });
        let naive: Vec<(f64, f64)> = naive.collect();
        for (found, naive) in losses.0.iter().zip(&naive) {
            let is_near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + a.abs());
            assert!(
                is_near(found.0, naive.0) && is_near(found.1, naive.1),
                "{found:?} and {naive:?}"
            );
        }
        let least = naive
            .iter()
            .map(|(loss, _)| *loss)
            .fold(f64::INFINITY, f64::min);
        let chosen = losses.within_one_error();
        let (limit, last) = (least + naive[losses.least()].1, naive.len() - 1);
        assert!(naive[chosen].0 <= limit * (1.0 + 1e-9));
        assert!(
            chosen == last
                || naive[chosen + 1..]
                    .iter()
                    .all(|(loss, _)| *loss > limit * (1.0 - 1e-9))
        );
    }
}

#[test]
fn no_group_is_divided_and_parts_are_nearly_equal() {
    let groups = |count: u64| (0..3 * count).map(|nth| nth / 3);
    assert_eq!(Folds::new(groups(1), 10).err().unwrap().groups, 1);
    for count in [2, 7, 100] {
        let parts = Folds::new(groups(count), 10).unwrap().part;
        assert!(
            parts
                .chunks(3)
                .all(|group| group.iter().all(|part| *part == group[0]))
        );
        let sizes: Vec<usize> = (0..10)
            .map(|part| parts.iter().filter(|of| **of == part).count())
            .collect();
        let used = count.min(10) as usize;
        assert!(
            sizes[..used]
                .iter()
                .all(|size| size.abs_diff(parts.len() / used) < 3 + parts.len() / used / 10)
        );
    }
}

#[test]
fn noise_alone_gives_a_single_leaf_and_a_step_gives_two() {
    let mut random = Random::new(7, 0, 0);
    let mut samples = |step: f64| -> Vec<Sample> {
        let sample = |nth| {
            let vector: Vector = std::array::from_fn(|_| random.unit());
            let rate = if vector[0] > 0.5 { 1.0 + step } else { 1.0 };
            let (is_judged, rate) = (true, rate * (1.0 + random.unit() / 10.0));
            Sample {
                vector,
                rate,
                seconds: 1.0,
                is_judged,
                group: nth,
            }
        };
        (0..300).map(sample).collect()
    };
    let (noise, step) = (samples(0.0), samples(1.0));
    let options = CartOptions::default();
    assert_eq!(super::grow(&noise, &options).unwrap().tree.leaves(), 1);
    assert_eq!(super::grow(&step, &options).unwrap().tree.leaves(), 2);
    let stop = |millionths| Stop::Error(Millionths(millionths));
    let paper = |stop| super::grow(&step, &CartOptions { stop, ..options }).unwrap();
    assert_eq!(
        (
            paper(stop(100_000)).tree.leaves(),
            paper(stop(100_000)).is_met
        ),
        (2, true)
    );
    assert_eq!(
        (
            paper(stop(900_000)).tree.leaves(),
            paper(stop(900_000)).is_met
        ),
        (1, true)
    );
    assert!(!paper(stop(1)).is_met);
}
