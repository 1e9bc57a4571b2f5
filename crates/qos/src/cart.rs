//! Regression trees (CART): growth by variance reduction, size by cross-validation.

mod folds;
mod prune;
mod sample;
mod split;
mod tree;

use crate::features::FeatureSet;
use folds::Folds;
use headtime_units::Millionths;
use split::{Branch, Limits};

pub use folds::TooFew;
pub use sample::Sample;
pub use tree::{Node, Tree};

/// Rule for the size of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Growth to the end, then pruning by cost complexity: the smallest tree whose cross-validated error is at most a
    /// standard error above the least.
    Pruned,
    /// Growth by the paper's rule: the leaf that reduces the variance most is split next. Growth ends when the mean relative
    /// error in cross-validation is below the threshold. If no size achieves this, the tree has the size with the least
    /// error.
    Error(Millionths),
}

/// Options of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CartOptions {
    /// Features that the tree may use.
    pub features: FeatureSet,
    /// Rule for the size of the tree.
    pub stop: Stop,
    /// Least number of samples of a node that is split, 2 or more.
    pub min_split: u32,
    /// Least number of samples of a leaf, 1 or more.
    pub min_bucket: u32,
    /// Parts for cross-validation, 2 or more.
    pub folds: u32,
}

impl Default for CartOptions {
    fn default() -> CartOptions {
        CartOptions {
            features: FeatureSet::USUAL,
            stop: Stop::Pruned,
            min_split: 20,
            min_bucket: 7,
            folds: 10,
        }
    }
}

/// A tree, and its errors in cross-validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// The tree, of all samples.
    pub tree: Tree,
    /// Predictions of trees of the same rule that were grown without the sample's part, at the index of the sample.
    pub held_out: Vec<f64>,
    /// True unless [`Stop::Error`] found no tree whose error is below its threshold.
    pub is_met: bool,
}

/// Grows a tree that reduces the variance of the logarithm of the throughput, since relative errors count. A leaf predicts the
/// throughput of all its epochs together: their bytes, divided by their time.
///
/// # Errors
///
/// If there are fewer than two groups.
///
/// # Panics
///
/// If a sample has a number that is not allowed.
pub fn grow(samples: &[Sample], options: &CartOptions) -> Result<Grown, TooFew> {
    for sample in samples {
        let is_finite = sample.vector.iter().all(|value| value.is_finite());
        let is_above = |value: f64| value.is_finite() && value > 0.0;
        assert!(
            is_finite && is_above(sample.rate) && is_above(sample.seconds),
            "{sample:?}"
        );
    }
    let folds = Folds::new(samples.iter().map(|sample| sample.group), options.folds)?;
    let y: Vec<f64> = samples
        .iter()
        .map(|sample| libm::log(sample.rate))
        .collect();
    let limits = Limits {
        features: options.features,
        min_split: options.min_split.max(2) as usize,
        min_bucket: options.min_bucket.max(1) as usize,
    };
    let grown = |members| {
        let branches = split::grow(samples, &y, members, &limits);
        let numbers = match options.stop {
            Stop::Pruned => prune::weakest_links(&branches),
            Stop::Error(_) => prune::best_first(&branches),
        };
        (branches, numbers)
    };
    let (branches, numbers) = grown((0..samples.len() as u32).collect());
    let folds = folds.grown(grown);
    let (size, is_met) = match options.stop {
        Stop::Pruned => {
            let squared = |leaf: &Branch, sample: usize| (leaf.mean - y[sample]).powi(2);
            let sizes = prune::between(&numbers);
            let losses = folds.losses(&sizes, samples, squared);
            (sizes[losses.within_one_error()], true)
        }
        Stop::Error(threshold) => {
            let relative =
                |leaf: &Branch, sample: usize| (leaf.rate / samples[sample].rate - 1.0).abs();
            let sizes = prune::steps(&numbers);
            let losses = folds.losses(&sizes, samples, relative);
            let below = losses.smallest_below(threshold.0 as f64 / 1e6);
            (
                sizes[below.unwrap_or_else(|| losses.least())],
                below.is_some(),
            )
        }
    };
    Ok(Grown {
        tree: prune::cut(&branches, &numbers, size),
        held_out: folds.predictions(size, samples),
        is_met,
    })
}

/// Relative errors of predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct Errors(Vec<f64>);

impl Errors {
    /// Errors of pairs of prediction and truth: `|predicted / actual - 1|`.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Errors {
        let error = |(predicted, actual): (f64, f64)| (predicted / actual - 1.0).abs();
        let mut errors: Vec<f64> = pairs.into_iter().map(error).collect();
        errors.sort_by(f64::total_cmp);
        Errors(errors)
    }

    /// The least error that a share of the predictions, 0 to 1, does not exceed. `None` without predictions.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let nth = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(nth.saturating_sub(1)).copied()
    }

    /// Number of predictions.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests;
